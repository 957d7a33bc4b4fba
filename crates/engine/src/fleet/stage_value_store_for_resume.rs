//! The interface by which a program stores the values of a fleet's stages, so that a later run can
//! continue without fetching the pages from which the values came.
//!
//! ```text
//!  page of stage k ─▶ value ─▶ on_queued(k + 1, number)      a transfer of the next stage
//!                        ├───▶ on_kept(k)                    waits for the end of stage k
//!                        └───▶ on_printed(k)                 a unique value of the last stage
//! ```
//!
//! A page is reported to the [`OutputObserver`](super::OutputObserver) after its values.

use std::fmt;

use crate::Result;

/// A store for the values that the stages of a fleet extract
/// ([`FleetOptions::stage_memory`](super::FleetOptions)). Each later stage makes its requests from
/// the values of the previous stage. In a later run of the program, the store returns the values of
/// earlier runs. Worker threads call the methods whose names begin with `on_` while they hold locks
/// of the fleet. Therefore, these methods must not wait for the fleet.
pub trait StageValueStore: Send + Sync {
    /// Records that a transfer of a later stage was queued for a new value. `stage` is the index of
    /// that stage (at least 1), and `number` the transfer's number in it.
    fn on_queued(&self, stage: usize, number: u64, value: &[u8]);

    /// Records that an unfinished transfer of an earlier run need not be fetched. `stage` is the
    /// index of the transfer's stage (at least 1), and `number` the transfer's number in that
    /// stage.
    fn on_skipped(&self, stage: usize, number: u64);

    /// Records a value that the stage with the index `stage` has extracted and passes on only when
    /// it ends, because its values are sorted or because this value did not fit into memory.
    fn on_kept(&self, stage: usize, value: &[u8]);

    /// Records a value that the last stage has output, so that no later run outputs it again.
    /// `stage` is the index of the last stage.
    fn on_printed(&self, stage: usize, value: &[u8]);

    /// Calls `value` with each value of the kind `kind` that earlier runs of the program recorded
    /// for the stage with the index `stage`, in the order in which the values were recorded.
    ///
    /// # Errors
    /// The store cannot be read.
    fn recall_values(
        &self,
        stage: usize,
        kind: RecalledValueKind,
        value: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()>;

    /// Returns the transfers of the stage with the index `stage` (at least 1) that this run of the
    /// program must fetch: the transfers that earlier runs queued and did not finish. A program
    /// that fetches all pages again may return the finished transfers, too.
    fn unfinished_transfers(&self, stage: usize) -> Box<dyn UnfinishedTransferIterator>;

    /// Returns the number that the first new transfer of a stage gets in this run of the program.
    /// `stage` is the index of the stage (at least 1).
    fn next_number(&self, stage: usize) -> u64;
}

/// The kind of values that [`StageValueStore::recall_values`] returns. Each kind is recorded by a
/// method of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecalledValueKind {
    /// Values from which transfers of the next stage were made ([`StageValueStore::on_queued`]).
    /// They are recorded under the index of that next stage.
    Queued,
    /// Values that a stage passes on only when it ends ([`StageValueStore::on_kept`]).
    Kept,
    /// Values that the last stage has output ([`StageValueStore::on_printed`]).
    Printed,
}

/// An iterator over the unfinished transfers of one stage of a fleet (many parallel transfers), in
/// the order of their numbers. Earlier runs of the program have queued these transfers.
pub trait UnfinishedTransferIterator: Send {
    /// Returns the next transfer; `None` if there are no more.
    ///
    /// # Errors
    /// The store cannot be read.
    fn next_transfer(&mut self) -> Result<Option<EarlierQueuedTransfer>>;
}

/// A transfer that an earlier run of the program queued in a later stage of a fleet. A later stage
/// requests URLs that are made from values which the previous stage extracted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EarlierQueuedTransfer {
    /// The number of the transfer within its stage.
    pub number: u64,
    /// The extracted value from which the transfer's request is made.
    pub value: Vec<u8>,
    /// The header fields to send in addition to the fields that all requests of the stage have,
    /// such as `If-None-Match`.
    pub fields: Vec<(String, Vec<u8>)>,
    /// True if the transfer may replace an existing file, because an earlier attempt of the same
    /// transfer wrote it.
    pub replaces_file: bool,
}

impl fmt::Debug for dyn StageValueStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StageValueStore(..)")
    }
}
