//! Sinks after a stage's window: they print, filter, or feed the next stage.
//!
//! ```text
//!  last stage:     window ─▶ [Sift: once, sorted] ─▶ Print ─▶ standard output or a file
//!  other stages:   window ─▶  Sift: once           ─▶ Feed  ─▶ the next stage's queue
//! ```

use std::path::Path;
use std::sync::Arc;

use super::Stage;
use super::dispatch::Dispatch;
use super::window::{Outlet, Window};
use crate::Result;
use crate::buffer::Lease;
use crate::pipeline::{Deferred, Distinct, Seen, Sorted, Sorter};
use crate::sink::output::{Output, Room};
use crate::sink::records::Records;

/// Writes to the output.
pub(super) struct Print {
    output: Output,
}

impl Print {
    pub(super) fn new(output: Output) -> Self {
        Self { output }
    }
}

impl Outlet for Print {
    fn bytes(&mut self, bytes: &[u8]) -> Result<Room> {
        self.output.write(bytes)
    }

    fn records(&mut self, records: &mut Records) -> Result<Room> {
        let room = self.output.write(&records.to_lines());
        records.clear();
        room
    }

    fn flush(&mut self) -> Result<Room> {
        self.output.flush()
    }

    fn rest(&mut self, mut tail: Option<Tail>) -> Result<Option<Tail>> {
        // Nothing else is going on by now, so it may wait for a slow reader.
        if let Some(tail) = &mut tail {
            let mut line = Vec::new();
            while let Some(value) = tail.next_value()? {
                line.clear();
                line.extend_from_slice(value);
                line.push(b'\n');
                if self.output.write(&line)? == Room::Full {
                    self.output.drain(None)?;
                }
            }
        }
        self.output.drain(None)?;
        Ok(None)
    }
}

/// Lets each value pass once, or keeps them to be sorted.
pub(super) struct Sift {
    distinct: Option<Distinct>,
    sorter: Option<Sorter>,
    next: Box<dyn Outlet>,
    passing: Records,
}

impl Sift {
    /// A filter with the stage's `unique` and `sort`, within `memory` bytes.
    pub(super) fn new(unique: bool, sort: bool, memory: u64, dir: &Path, next: Box<dyn Outlet>) -> Self {
        Self {
            // A sorter that drops equals needs no other to do it.
            distinct: (unique && !sort).then(|| Distinct::new(memory, dir)),
            sorter: sort.then(|| Sorter::new(memory, dir, unique)),
            next,
            passing: Records::default(),
        }
    }
}

impl Outlet for Sift {
    fn bytes(&mut self, bytes: &[u8]) -> Result<Room> {
        self.next.bytes(bytes)
    }

    fn records(&mut self, records: &mut Records) -> Result<Room> {
        if let Some(sorter) = &mut self.sorter {
            for value in records.iter() {
                sorter.push(value)?;
            }
            records.clear();
            return Ok(Room::Free);
        }
        let Some(distinct) = &mut self.distinct else { return self.next.records(records) };
        self.passing.clear();
        self.passing.place = records.place.clone();
        for value in records.iter() {
            if matches!(distinct.push(value)?, Seen::New) {
                self.passing.push(value);
            }
        }
        records.clear();
        if self.passing.is_empty() { self.next.flush() } else { self.next.records(&mut self.passing) }
    }

    fn may_run_ahead(&self) -> bool {
        self.next.may_run_ahead()
    }

    fn flush(&mut self) -> Result<Room> {
        self.next.flush()
    }

    fn rest(&mut self, _tail: Option<Tail>) -> Result<Option<Tail>> {
        let tail = match (self.sorter.take(), self.distinct.take()) {
            (Some(sorter), _) => Some(Tail::Sorted(sorter.finish()?)),
            (None, Some(distinct)) => Some(Tail::Deferred(distinct.finish()?)),
            (None, None) => None,
        };
        self.next.rest(tail)
    }
}

/// Values that could be passed on only after all others were seen.
pub(super) enum Tail {
    /// All of them, sorted.
    Sorted(Sorted),
    /// The values that did not fit into memory, in the order in which they were first seen.
    Deferred(Deferred),
}

impl Tail {
    pub(super) fn next_value(&mut self) -> Result<Option<&[u8]>> {
        match self {
            Self::Sorted(sorted) => sorted.next_value(),
            Self::Deferred(deferred) => deferred.next_value(),
        }
    }
}

/// Makes each value a transfer of the next stage.
pub(super) struct Feed {
    pub(super) dispatch: Arc<Dispatch>,
    /// The stage that is fed.
    pub(super) stage: Stage,
    pub(super) window: Arc<Window>,
    /// The number of the stage that is fed.
    pub(super) number: usize,
}

impl Outlet for Feed {
    /// Prints nothing itself. The heads and reports of its pages have their turn in the output of
    /// the stage that is fed, between the pages of the values before them and those of the values
    /// after them.
    fn bytes(&mut self, bytes: &[u8]) -> Result<Room> {
        if !bytes.is_empty() {
            let slot = self.window.reserve();
            self.window.bytes(slot, Lease::borrowed(bytes))?;
            self.window.finish(slot)?;
        }
        self.flush()
    }

    fn records(&mut self, records: &mut Records) -> Result<Room> {
        let place = records.place.take();
        for (i, value) in records.iter().enumerate() {
            let order = place.as_ref().map_or_else(Vec::new, |place| place.order_of(i));
            self.dispatch.feed(self.number, &self.stage, &self.window, value, order.into());
        }
        records.clear();
        self.flush()
    }

    fn flush(&mut self) -> Result<Room> {
        Ok(if self.dispatch.has_appetite(self.number) { Room::Free } else { Room::Full })
    }

    /// Pages that wait for a later stage to accept values hold slots of hosts that this stage needs. Their values are small.
    fn may_run_ahead(&self) -> bool {
        true
    }

    fn rest(&mut self, tail: Option<Tail>) -> Result<Option<Tail>> {
        Ok(tail)
    }
}
