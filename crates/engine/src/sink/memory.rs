//! Sinks that collect bodies in memory.
//!
//! ```
//! use haul::buffer_pool::OfferedBodyBytes;
//! use haul::sink::{Sink, memory::MemorySink};
//! let mut sink = MemorySink::default();
//! sink.bytes(OfferedBodyBytes::borrowed(b"hello"))?;
//! assert_eq!(sink.into_bytes(), b"hello");
//! # Ok::<(), haul::Error>(())
//! ```

use std::io;

use rustix::buffer::spare_capacity;
use rustix::fd::BorrowedFd;
use rustix::net::{RecvFlags, recv};

use super::{ReceivedIntoSink, ResponseForSink, Sink};
use crate::buffer_pool::{OfferedBodyBytes, should_receive_via_buffer};
use crate::{Error, ErrorKind, Result};

/// The maximum number of bytes that are allocated in advance for the announced length of a body.
/// The memory for a longer body grows as the body arrives, so a false length costs nothing.
const TRUSTED_LENGTH: u64 = 4 << 20;

/// Allocates memory in `bytes` for `more` further bytes of a body.
///
/// # Errors
/// [`ErrorKind::Write`] if the system has too little memory. The server decides how large a body
/// is, so a lack of memory must not abort the program.
pub fn make_room(bytes: &mut Vec<u8>, more: usize) -> Result<()> {
    bytes.try_reserve(more).map_err(|error| {
        let message = format!("no memory for a body of more than {} bytes", bytes.len());
        Error::with_source(ErrorKind::Write, message, error)
    })
}

/// Receives once from the socket, at most `most` bytes, into the unused capacity of a vector.
/// Returns `None` if the vector has no unused capacity. Sinks that keep a body in a vector call
/// this in [`Sink::receive`].
pub fn receive_into(bytes: &mut Vec<u8>, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<ReceivedIntoSink>> {
    let room = bytes.capacity() - bytes.len();
    if room == 0 || room > most || should_receive_via_buffer(bytes.as_ptr(), room) {
        return None;
    }
    let received = recv(socket, spare_capacity(bytes), RecvFlags::empty());
    Some(received.map(|(n, _)| ReceivedIntoSink::new(n, room)).map_err(io::Error::from))
}

/// A sink that collects one body in memory.
#[derive(Debug, Default)]
pub struct MemorySink {
    bytes: Vec<u8>,
}

impl MemorySink {
    /// Returns the collected body.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the number of bytes of memory that are allocated for the body.
    #[must_use]
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns the part of the body received so far.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Sink for MemorySink {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        self.bytes.reserve_exact(begin.length.unwrap_or(0).min(TRUSTED_LENGTH) as usize);
        Ok(())
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        make_room(&mut self.bytes, offered.bytes().len())?;
        self.bytes.extend_from_slice(offered.bytes());
        Ok(())
    }

    fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<ReceivedIntoSink>> {
        receive_into(&mut self.bytes, socket, most)
    }

    fn restart(&mut self) -> bool {
        self.bytes.clear();
        true
    }
}
