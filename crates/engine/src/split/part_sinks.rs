//! The sinks of parts. [`PartToCoordinatorSink`] passes the bytes to the coordinator, which writes
//! them in order. [`FilePartSink`] writes the bytes directly to the file.

use std::io::{self, IoSlice};
use std::sync::Arc;

#[cfg(unix)]
use rustix::fd::BorrowedFd;

use super::coordinator::SplitCoordinator;
use crate::buffer_pool::OfferedBodyBytes;
use crate::sink::partial::PartialFileWriter;
use crate::sink::{ResponseForSink, Sink};
use crate::{Error, ErrorKind, Result};

/// The sink of one part of a split download. Passes the bytes of the part to the
/// [`SplitCoordinator`], which delivers the parts in order.
pub(super) struct PartToCoordinatorSink {
    pub(super) coordinator: Arc<SplitCoordinator>,
    pub(super) id: usize,
}

impl Sink for PartToCoordinatorSink {
    fn begin(&mut self, _begin: &ResponseForSink<'_>) -> Result<()> {
        self.coordinator.on_part_begun(self.id);
        Ok(())
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        self.coordinator.on_part_bytes(self.id, offered.bytes())
    }

    fn restart(&mut self) -> bool {
        false
    }
}

/// The sink of one part of a split download. Writes the bytes of the part directly into the file,
/// at the part's offset.
pub(super) struct FilePartSink {
    pub(super) coordinator: Arc<SplitCoordinator>,
    pub(super) id: usize,
    pub(super) writer: PartialFileWriter,
}

impl FilePartSink {
    fn error(&self, error: io::Error) -> Error {
        let path = self.writer.partial().path();
        Error::with_source(ErrorKind::Write, format!("failed to write {}", path.display()), error)
    }
}

impl Sink for FilePartSink {
    fn begin(&mut self, _begin: &ResponseForSink<'_>) -> Result<()> {
        self.coordinator.on_part_begun(self.id);
        Ok(())
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        self.writer.write(offered.bytes()).map_err(|error| self.error(error))?;
        self.coordinator.on_written(self.id, offered.bytes().len() as u64);
        Ok(())
    }

    fn pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        self.writer.write_pieces(pieces).map_err(|error| self.error(error))?;
        self.coordinator.on_written(self.id, bytes);
        Ok(())
    }

    #[cfg(unix)]
    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        Some(self.writer.descriptor())
    }

    fn moved(&mut self, bytes: u64) {
        self.writer.on_moved_bytes(bytes);
        self.coordinator.on_written(self.id, bytes);
    }

    fn write_error(&self, error: io::Error) -> Error {
        self.error(error)
    }

    fn restart(&mut self) -> bool {
        false
    }
}
