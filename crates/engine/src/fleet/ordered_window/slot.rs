//! A slot of an ordered window: the content of one body that has not been passed to the sink yet.

use std::collections::VecDeque;
use std::path::Path;

use super::super::record_memory_sink::RecordTextIterator;
use super::value_overflow_file::{OverflowFile, StoredValuesPosition};
use crate::buffer_pool::KeptBodyBytes;
use crate::sink::extracted_value_list::ExtractedValues;

/// A piece of the content of a body that an output window keeps in a slot until the body's turn.
#[derive(Debug)]
pub(super) enum OrderedSlotPiece {
    Bytes(KeptBodyBytes),
    Records(ExtractedValues),
    /// Extracted values that were written to a temporary file because the window's memory budget
    /// was used up.
    Stored(StoredValuesPosition),
    Pieces(RecordTextIterator),
}

impl OrderedSlotPiece {
    /// Returns the number of bytes by which this piece counts towards the memory budget of the
    /// output window.
    pub(super) fn cost(&self) -> usize {
        match self {
            Self::Bytes(chunk) => chunk.memory_size(),
            Self::Records(records) => records.memory_size(),
            Self::Stored(values) => values.cost(),
            Self::Pieces(pieces) => pieces.cost,
        }
    }
}

/// A slot of an output window (an ordered queue of bodies): one body, with the part of its content
/// that has not been passed to the sink yet.
#[derive(Debug, Default)]
pub(super) struct OrderedBodySlot {
    pub(super) content: VecDeque<OrderedSlotPiece>,
    /// True if the slot's body is complete, so that the slot receives no more content.
    pub(super) done: bool,
    /// True if a part of the content of the current page has been passed to the sink. The page's
    /// transfer can then not be repeated.
    pub(super) has_left: bool,
    /// The number of pieces at the beginning of `content` that belong to complete earlier pages of
    /// a listing.
    pub(super) complete: usize,
    /// The number of bytes of memory that the slot's body uses outside of the window. These bytes
    /// count towards the window's memory budget.
    pub(super) outside: usize,
    /// The number of the transfer to which the content belongs. `None` if no observer is informed
    /// of the output.
    pub(super) transfer: Option<u64>,
    /// The file for values that exceed the window's memory budget; `None` if there were no such
    /// values.
    overflow: Option<OverflowFile>,
}

impl OrderedBodySlot {
    /// Writes values to a file in the directory `dir`, and returns a reference to them as the
    /// slot's content. If the file cannot be written, returns the values themselves: they exceed
    /// the memory budget, but none is lost.
    pub(super) fn store(&mut self, values: ExtractedValues, dir: &Path) -> OrderedSlotPiece {
        if self.overflow.is_none() {
            self.overflow = OverflowFile::create(dir).ok();
        }
        let stored = self.overflow.as_mut().and_then(|overflow| overflow.store(&values).ok());
        stored.map_or(OrderedSlotPiece::Records(values), OrderedSlotPiece::Stored)
    }

    /// Returns true if a part of the slot's first piece may have been passed to the sink.
    pub(super) fn may_have_output(&self) -> bool {
        self.has_left || self.complete > 0
    }
}
