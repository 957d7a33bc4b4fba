//! Reports to the observer of the output when all content of a transfer has been passed to the
//! sink.

use std::sync::Arc;

use super::{OrderedWindow, OrderedWindowState};
use crate::fleet::written_output_observer::{FleetOutputProgress, OutputObserver};

/// A reporter that tells an observer when all content of a transfer has been passed to the sink of
/// the output window (an ordered queue of bodies).
pub(super) struct DeliveryReporter {
    observer: Arc<dyn OutputObserver>,
    output: Arc<FleetOutputProgress>,
    stage: usize,
}

impl OrderedWindow {
    /// Makes the window report two events to `observer`: all content of a transfer has been passed
    /// to the window's sink, or further bytes of the fleet's output have left the sink's buffer and
    /// were written to the output. `output` provides the numbers of passed and written bytes.
    /// `stage` is the index of the window's stage.
    pub(in crate::fleet) fn observed_by(
        mut self,
        observer: Option<&Arc<dyn OutputObserver>>,
        output: &Arc<FleetOutputProgress>,
        stage: usize,
    ) -> Self {
        self.departures = observer.map(|observer| DeliveryReporter {
            observer: Arc::clone(observer),
            output: Arc::clone(output),
            stage,
        });
        self
    }

    /// Records the number of the transfer whose body is in the slot `slot` of this output window
    /// (an ordered queue of bodies), for reports to the observer. Does nothing without an observer.
    pub(in crate::fleet) fn set_transfer(&self, slot: u64, number: u64) {
        if self.departures.is_some() {
            self.lock().slot_mut(self.order, slot).transfer = Some(number);
        }
    }

    /// Reports to the observer that all content of a transfer has been passed to the sink.
    /// `transfer` is the number of the transfer. Does nothing if no number was recorded for the
    /// slot (`None`), or if there is no observer.
    pub(super) fn report_departure(&self, transfer: Option<u64>) {
        if let (Some(DeliveryReporter { observer, output, stage }), Some(number)) = (&self.departures, transfer) {
            observer.on_passed_to_sink(*stage, number, output.passed_bytes());
        }
    }

    /// Reports the number of written output bytes to the observer, if it has changed.
    pub(super) fn report_written(&self, state: &mut OrderedWindowState) {
        let Some(DeliveryReporter { observer, output, .. }) = &self.departures else { return };
        let written = output.written_bytes();
        if written != state.reported {
            state.reported = written;
            observer.on_written(written);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::buffer_pool::OfferedBodyBytes;
    use crate::fleet::ordered_window::DeliveryOrder;
    use crate::fleet::sinks_of_stages::FleetOutputSink;
    use crate::sink::descriptor_writer::DescriptorWriter;

    #[derive(Debug, PartialEq, Eq)]
    enum OutputReport {
        PassedToSink { stage: usize, number: u64, end: u64 },
        Written(u64),
    }

    #[derive(Default)]
    struct OutputReports(Mutex<Vec<OutputReport>>);

    impl OutputObserver for OutputReports {
        fn on_passed_to_sink(&self, stage: usize, number: u64, end: u64) {
            self.0.lock().unwrap().push(OutputReport::PassedToSink { stage, number, end });
        }

        fn on_written(&self, end: u64) {
            self.0.lock().unwrap().push(OutputReport::Written(end));
        }
    }

    #[test]
    fn observer_learns_of_passed_and_written_output() {
        let reports = Arc::new(OutputReports::default());
        let observer: Arc<dyn OutputObserver> = reports.clone();
        let progress = Arc::new(FleetOutputProgress::default());
        let output = DescriptorWriter::new(tempfile::tempfile().unwrap().into());
        let sink = Box::new(FleetOutputSink::new(output, Arc::clone(&progress)));
        let window = OrderedWindow::new(DeliveryOrder::Input, 1000, sink).observed_by(Some(&observer), &progress, 2);
        for (slot, number) in [(0, 7), (1, 8)] {
            assert_eq!(window.reserve_slot(), slot);
            window.set_transfer(slot, number);
        }
        window.add_bytes(0, OfferedBodyBytes::borrowed(b"abc")).unwrap();
        assert!(reports.0.lock().unwrap().is_empty());
        window.finish_slot(0).unwrap();
        let passed = |number| OutputReport::PassedToSink { stage: 2, number, end: 3 };
        assert_eq!(*reports.0.lock().unwrap(), [passed(7)], "the output keeps the bytes");
        window.flush().unwrap();
        assert_eq!(*reports.0.lock().unwrap(), [passed(7), OutputReport::Written(3)]);
        window.finish_slot(1).unwrap();
        assert_eq!(*reports.0.lock().unwrap(), [passed(7), OutputReport::Written(3), passed(8)]);
    }
}
