//! Sinks for the bytes of parts: the window, or their final position in the file.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::crew::Crew;
use crate::buffer::Lease;
use crate::sink::partial::PartWriter;
use crate::sink::{Begin, Sink};
use crate::{Error, ErrorKind, Result};

/// A part whose bytes go out in order.
pub(super) struct WindowPart {
    pub(super) crew: Arc<Crew>,
    pub(super) id: usize,
}

impl Sink for WindowPart {
    fn begin(&mut self, _begin: &Begin<'_>) -> Result<()> {
        self.crew.began(self.id);
        Ok(())
    }

    fn bytes(&mut self, lease: Lease<'_>) -> Result<()> {
        self.crew.takes(self.id, lease.bytes())
    }

    fn restart(&mut self) -> bool {
        false
    }
}

/// A part that is written directly to its position in the file.
pub(super) struct FilePart {
    pub(super) crew: Arc<Crew>,
    pub(super) id: usize,
    pub(super) writer: PartWriter,
}

impl FilePart {
    fn error(&self, error: io::Error) -> Error {
        let path = self.writer.partial().path();
        Error::with_source(ErrorKind::Write, format!("failed to write {}", path.display()), error)
    }
}

impl Sink for FilePart {
    fn begin(&mut self, _begin: &Begin<'_>) -> Result<()> {
        self.crew.began(self.id);
        Ok(())
    }

    fn bytes(&mut self, lease: Lease<'_>) -> Result<()> {
        self.writer.write(lease.bytes()).map_err(|error| self.error(error))?;
        self.crew.wrote(self.id, lease.bytes().len() as u64);
        Ok(())
    }

    fn pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        self.writer.write_pieces(pieces).map_err(|error| self.error(error))?;
        self.crew.wrote(self.id, bytes);
        Ok(())
    }

    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        Some(self.writer.descriptor())
    }

    fn moved(&mut self, bytes: u64) {
        self.writer.moved(bytes);
        self.crew.wrote(self.id, bytes);
    }

    fn cannot_write(&self, error: io::Error) -> Error {
        self.error(error)
    }

    fn restart(&mut self) -> bool {
        false
    }
}
