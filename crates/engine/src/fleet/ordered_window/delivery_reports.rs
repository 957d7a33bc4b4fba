//! Reports to the observer of the output when all content of a transfer has been passed to the
//! sink.

use std::sync::Arc;

use super::{OrderedWindow, OrderedWindowState};
use crate::fleet::output_progress_observer::{FleetOutputProgress, OutputObserver};

/// Reports to an observer when all content of a transfer has been passed to the sink.
pub(super) struct DeliveryReporter {
    observer: Arc<dyn OutputObserver>,
    output: Arc<FleetOutputProgress>,
    stage: usize,
}

impl OrderedWindow {
    /// Makes the window report to `observer` when all content of a transfer has been passed to the
    /// sink, and how many output bytes have been written. `stage` is the index of the window's
    /// stage.
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

    /// Records the number of the transfer whose content is in a slot. Does nothing without an
    /// observer.
    pub(in crate::fleet) fn set_transfer(&self, slot: u64, number: u64) {
        if self.departures.is_some() {
            self.lock().slot_mut(self.order, slot).transfer = Some(number);
        }
    }

    /// Reports that the content of the transfer with this number has been passed to the sink
    /// completely.
    pub(super) fn report_departure(&self, transfer: Option<u64>) {
        if let (Some(DeliveryReporter { observer, output, stage }), Some(number)) = (&self.departures, transfer) {
            observer.on_passed_to_sink(*stage, number, output.passed_bytes());
        }
    }

    /// Reports the number of written output bytes, if it has changed.
    pub(super) fn report_written(&self, state: &mut OrderedWindowState) {
        let Some(DeliveryReporter { observer, output, .. }) = &self.departures else { return };
        let written = output.written_bytes();
        if written != state.reported {
            state.reported = written;
            observer.on_written(written);
        }
    }
}
