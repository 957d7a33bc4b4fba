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

/// A slot of an output window (an ordered queue of bodies): one body, or the values extracted from
/// one body, as far as the sink has not received them yet. The pages of a paginated listing may
/// follow each other in one slot.
#[derive(Debug, Default)]
pub(super) struct OrderedBodySlot {
    pub(super) content: VecDeque<OrderedSlotPiece>,
    /// True if the slot's body is complete, so that the slot receives no more content.
    pub(super) done: bool,
    /// True if a part of the content of the slot's last page has been passed to the sink. The
    /// transfer of that page can then not be repeated.
    pub(super) has_left: bool,
    /// The number of pieces at the beginning of `content` that belong to completely received pages
    /// of a listing. They remain in the slot when the transfer of a later page is repeated.
    pub(super) complete: usize,
    /// The number of bytes of memory that the slot's body uses outside of the window. These bytes
    /// count towards the window's memory budget.
    pub(super) outside: usize,
    /// The number of the transfer to which the content belongs, for the report to the observer of
    /// the output. `None` if nothing is reported.
    pub(super) transfer: Option<u64>,
    /// The temporary file for values extracted from the body that did not fit into the window's
    /// memory budget; `None` if there is no such file.
    overflow: Option<OverflowFile>,
}

impl OrderedBodySlot {
    /// Writes values extracted from the slot's body to a temporary file in the directory `dir`, and
    /// returns the piece of content that refers to them. If the file cannot be written, returns the
    /// values themselves as a piece in memory, beyond the memory budget of the window.
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
