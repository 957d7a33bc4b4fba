//! The memory of a fleet's stages: what a program notes of their values, so that a later run can go
//! on without the pages from which they came.
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

/// Stores the values of a fleet's stages ([`FleetOptions::stage_memory`](super::FleetOptions)), and
/// returns the values of earlier runs. Workers call the first four methods while they hold locks of
/// the fleet, so these must not wait for the fleet.
pub trait StageMemory: Send + Sync {
    /// Records that a new value became the transfer with this number of a stage after the first.
    fn on_queued(&self, stage: usize, number: u64, value: &[u8]);

    /// Records that an unfinished transfer of a stage after the first need not be fetched.
    fn on_skipped(&self, stage: usize, number: u64);

    /// Records a value that a stage keeps until its end.
    fn on_kept(&self, stage: usize, value: &[u8]);

    /// Records a value that the last stage has printed, and prints only once.
    fn on_printed(&self, stage: usize, value: &[u8]);

    /// Returns the values that earlier runs queued, kept or printed, and that belong to a stage, in
    /// the order in which they were noted.
    ///
    /// # Errors
    /// The memory cannot be read.
    fn recall_values(&self, stage: usize, kind: RecalledKind, value: &mut dyn FnMut(&[u8]) -> Result<()>)
    -> Result<()>;

    /// Returns the transfers of a stage after the first that earlier runs queued and did not finish. A
    /// program that asks again for all pages returns all of them.
    fn unfinished_transfers(&self, stage: usize) -> Box<dyn UnfinishedTransfers>;

    /// Returns the number of the first new transfer of a stage after the first.
    fn next_number(&self, stage: usize) -> u64;
}

/// The kind of values that [`StageMemory::recall_values`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecalledKind {
    /// Values that became transfers of a later stage ([`StageMemory::on_queued`]).
    Queued,
    /// Values that a stage keeps until its end ([`StageMemory::on_kept`]).
    Kept,
    /// Values that the last stage has printed ([`StageMemory::on_printed`]).
    Printed,
}

/// The transfers of a stage that earlier runs queued and did not finish, in their order.
pub trait UnfinishedTransfers: Send {
    /// Returns the next transfer; `None` if there are no more.
    ///
    /// # Errors
    /// The memory cannot be read.
    fn next_transfer(&mut self) -> Result<Option<RecalledTransfer>>;
}

/// A transfer that an earlier run queued.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecalledTransfer {
    /// The number of the transfer in its stage.
    pub number: u64,
    /// The value from which the transfer is made.
    pub value: Vec<u8>,
    /// Header fields to send in addition to the fields of the stage, such as conditions.
    pub fields: Vec<(String, Vec<u8>)>,
    /// True if the transfer replaces an existing file, because it is the file of its earlier
    /// attempt.
    pub replaces_file: bool,
}

impl fmt::Debug for dyn StageMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StageMemory(..)")
    }
}
