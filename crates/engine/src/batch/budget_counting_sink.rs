//! A sink whose bytes count towards the memory budget of a batch.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use haul_policy::target::Target;
use rustix::fd::BorrowedFd;

use super::memory_budget::MemoryBudget;
use crate::buffer_pool::OfferedBodyBytes;
use crate::sink::{ExistingPartialContent, ReceivedIntoSink, ResponseForSink, Sink, TransferWaker};
use crate::{Error, Result};

/// A sink that passes body bytes on to another sink. The bytes that the other sink keeps in memory
/// count towards the memory budget of the batch.
pub(super) struct BudgetCountingSink {
    sink: Box<dyn Sink>,
    id: u64,
    holds: BudgetShare,
}

/// The number of bytes of the memory budget that the body of one request uses. Dropping the value
/// releases them.
struct BudgetShare {
    bytes: u64,
    budget: Arc<MemoryBudget>,
}

impl BudgetShare {
    fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.budget.add(bytes);
    }

    fn release_all(&mut self) {
        self.budget.release(std::mem::take(&mut self.bytes));
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.release_all();
        }
    }
}

impl BudgetCountingSink {
    pub(super) fn new(sink: Box<dyn Sink>, id: u64, budget: Arc<MemoryBudget>) -> Self {
        Self { sink, id, holds: BudgetShare { bytes: 0, budget } }
    }

    /// Counts `bytes` further bytes of the body, if the wrapped sink keeps them in memory.
    fn count(&mut self, bytes: u64) {
        if self.sink.keeps_in_memory() {
            self.holds.add(bytes);
        }
    }

    /// Returns the wrapped sink, and the number of bytes that it keeps. These bytes still count
    /// towards the budget.
    pub(super) fn into_parts(mut self) -> (Box<dyn Sink>, u64) {
        let bytes = std::mem::take(&mut self.holds.bytes);
        (self.sink, bytes)
    }
}

impl Sink for BudgetCountingSink {
    fn takes_encoded(&mut self, coding: &[u8]) -> bool {
        self.sink.takes_encoded(coding)
    }

    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        self.sink.begin(begin)
    }

    fn credit(&mut self, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> u64 {
        let own = self.sink.credit(waker, token);
        if !self.sink.keeps_in_memory() {
            return own;
        }
        self.holds.budget.credit(own, self.id, waker, token)
    }

    fn is_awaited(&self) -> bool {
        self.sink.is_awaited()
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        self.count(offered.bytes().len() as u64);
        self.sink.bytes(offered)
    }

    fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<ReceivedIntoSink>> {
        let received = self.sink.receive(socket, most)?;
        if let Ok(received) = &received {
            self.count(received.bytes as u64);
        }
        Some(received)
    }

    fn write_error(&self, error: io::Error) -> Error {
        self.sink.write_error(error)
    }

    fn partial(&mut self, target: &Target) -> Option<ExistingPartialContent> {
        self.sink.partial(target)
    }

    fn keeps_in_memory(&self) -> bool {
        self.sink.keeps_in_memory()
    }

    fn continues_file(&self) -> bool {
        self.sink.continues_file()
    }

    fn next_gap(&mut self) -> Option<Range<u64>> {
        self.sink.next_gap()
    }

    fn keeps(&mut self) -> bool {
        self.sink.keeps()
    }

    fn restart(&mut self) -> bool {
        let may = self.sink.restart();
        if may {
            self.holds.release_all();
        }
        may
    }

    fn finish(&mut self) -> Result<()> {
        self.sink.finish()
    }

    fn file_name(&self) -> Option<&std::path::Path> {
        self.sink.file_name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::file::FileSink;
    use crate::sink::memory::MemorySink;

    #[test]
    fn bytes_of_a_file_do_not_count() {
        let place = tempfile::tempdir().unwrap();
        let file = FileSink::new(place.path().join("body"));
        for (sink, counts) in [(Box::new(file) as Box<dyn Sink>, false), (Box::<MemorySink>::default(), true)] {
            let budget = Arc::new(MemoryBudget::new(0));
            let mut counting = BudgetCountingSink::new(sink, 0, Arc::clone(&budget));
            counting.count(1 << 30);
            assert_eq!((budget.is_full(), counting.credit(None, 0) < u64::MAX), (counts, counts));
            assert_eq!(counting.into_parts().1 > 0, counts);
        }
    }
}
