//! Multi handles in a forked child, which has none of the threads of its parent.

use std::sync::atomic::Ordering;

use haul::fork::fork_count;

use super::locked;
use super::state::{Multi, TransferPhase};
use crate::codes::CURLE_RECV_ERROR;
use crate::handle_table::lock;
use crate::request::TransferFailure;

impl Multi {
    /// Replaces the engine and the descriptors if this process is a forked child of the process
    /// that made them. Transfers that the parent has begun fail, because the parent continues them.
    /// Does nothing while `curl_multi_perform` runs.
    pub(super) fn renew_after_fork(&self) {
        let now = fork_count();
        if self.generation.load(Ordering::SeqCst) == now || self.is_busy() {
            return;
        }
        if self.generation.swap(now, Ordering::SeqCst) == now {
            return;
        }
        self.watch(&[]);
        self.notifier.replace();
        self.wakeup.replace();
        let mut state = locked(self);
        let old = state.engine.take();
        let new = old.as_ref().and_then(|old| old.for_child(&state.settings));
        state.engine = new.map(std::sync::Arc::new);
        let has_engine = state.engine.is_some();
        let mut ended = Vec::new();
        for added in &mut state.handles {
            match std::mem::replace(&mut added.phase, TransferPhase::Over) {
                TransferPhase::Running(transfer) => {
                    // A lock of the transfer may stay locked for ever in this process.
                    std::mem::forget(transfer);
                }
                TransferPhase::New if !has_engine => {}
                TransferPhase::Taken => {}
                unchanged => {
                    added.phase = unchanged;
                    continue;
                }
            }
            added.set_message(CURLE_RECV_ERROR);
            ended.push(std::sync::Arc::clone(&added.easy));
        }
        state.messages.extend(ended.iter().map(|easy| easy.number));
        drop(state);
        for easy in ended {
            easy.set_running(None);
            let text = "the transfer belongs to the parent of this process";
            lock(&easy.state).fail_transfer(&TransferFailure::new(CURLE_RECV_ERROR, text));
        }
        drop(old);
        self.notifier.notify();
        self.update();
    }
}
