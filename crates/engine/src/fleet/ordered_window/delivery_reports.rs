//! Reports to the observer of the output when all content of a transfer has been passed to the
//! sink.

use std::sync::Arc;

use super::{OrderedWindow, OrderedWindowState};
use crate::fleet::output_progress_observer::{FleetOutputProgress, OutputObserver};

/// A reporter that tells an observer when all content of a transfer has been passed to the window's
/// sink.
pub(super) struct DeliveryReporter {
    observer: Arc<dyn OutputObserver>,
    output: Arc<FleetOutputProgress>,
    stage: usize,
}

impl OrderedWindow {
    /// Makes the window report two events to `observer`: all content of a transfer has been passed
    /// to the sink, and more output bytes have been written. `output` contains the numbers of these
    /// bytes. `stage` is the index of the window's stage.
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

    /// Records the number of the transfer whose content is in the slot `slot`, for reports to the
    /// observer. Does nothing without an observer.
    pub(in crate::fleet) fn set_transfer(&self, slot: u64, number: u64) {
        if self.departures.is_some() {
            self.lock().slot_mut(self.order, slot).transfer = Some(number);
        }
    }

    /// Reports that all content of a transfer has been passed to the sink. `transfer` is the number
    /// of the transfer; for `None`, there is no report.
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
