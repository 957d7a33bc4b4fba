//! Tells the observer of the output which transfers have left the window.

use std::sync::Arc;

use super::{OrderedWindow, OrderedWindowState};
use crate::fleet::output_observer::OutputObserver;

/// The observer of the transfers that leave a window.
pub(super) struct Departures {
    observer: Arc<dyn OutputObserver>,
    stage: usize,
}

impl OrderedWindow {
    /// Reports to the observer when a transfer of the stage with the index `stage` leaves the
    /// window, and how much of the output is written.
    pub(in crate::fleet) fn observed_by(mut self, observer: Option<&Arc<dyn OutputObserver>>, stage: usize) -> Self {
        self.departures = observer.map(|observer| Departures { observer: Arc::clone(observer), stage });
        self
    }

    /// Notes the number of the transfer whose content is in a slot, if there is an observer.
    pub(in crate::fleet) fn set_transfer(&self, slot: u64, number: u64) {
        if self.departures.is_some() {
            self.lock().slot(self.order, slot).transfer = Some(number);
        }
    }

    /// Reports that the transfer with this number has left the window.
    pub(super) fn report_departure(&self, state: &OrderedWindowState, transfer: Option<u64>) {
        if let (Some(Departures { observer, stage }), Some(number)) = (&self.departures, transfer) {
            observer.passed_on(*stage, number, state.sink.position().passed);
        }
    }

    /// Reports how much of the output is written, if that has changed.
    pub(super) fn report_written(&self, state: &mut OrderedWindowState) {
        let Some(Departures { observer, .. }) = &self.departures else { return };
        let written = state.sink.position().written;
        if written != state.reported {
            state.reported = written;
            observer.written(written);
        }
    }
}
