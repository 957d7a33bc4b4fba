//! The numbers of URLs for `%{urlnum}`, counted as curl does.

use std::sync::{Arc, Mutex, PoisonError};

/// Records the source of each transfer: an argument, or a line of a file of URLs. curl numbers URLs
/// by their source, so that all URLs of a glob have the same number.
#[derive(Clone, Default)]
pub(crate) struct UrlNumbers {
    runs: Arc<Mutex<Vec<TransferSourceRange>>>,
}

/// A range of consecutive transfers, which begins with the transfer `first` from the source
/// `source`. The next transfer comes from the same source (`step` 0, such as the URLs of a glob) or
/// from the next source (`step` 1, such as the lines of a file). Ranges keep the memory small for
/// millions of transfers.
struct TransferSourceRange {
    first: u64,
    source: u64,
    step: u64,
}

impl TransferSourceRange {
    fn number_of_transfer(&self, transfer: u64) -> u64 {
        self.source + self.step * (transfer - self.first)
    }
}

impl UrlNumbers {
    /// Records that the transfer with the index `transfer` comes from the source with the index
    /// `source`. Transfers are added in ascending order.
    pub(crate) fn add(&self, transfer: u64, source: u64) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = runs.last_mut() {
            if transfer == run.first + 1 {
                run.step = u64::from(source > run.source);
            }
            if run.number_of_transfer(transfer) == source {
                return;
            }
        }
        runs.push(TransferSourceRange { first: transfer, source, step: 0 });
    }

    /// Returns the index of the source from which the transfer with the index `transfer` comes.
    pub(crate) fn source_of_transfer(&self, transfer: u64) -> u64 {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let at = runs.partition_point(|run| run.first <= transfer);
        at.checked_sub(1).map_or(transfer, |at| runs[at].number_of_transfer(transfer))
    }
}
