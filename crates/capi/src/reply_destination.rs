//! The destination of a reply's body: memory of the caller, a callback of the caller, or memory of
//! haul.
//!
//! If the destination is memory, bytes are received from the socket directly into it.

use std::io;
use std::mem::MaybeUninit;

use haul::buffer_pool::{OfferedBodyBytes, should_receive_via_buffer};
use haul::sink::memory::{make_room, receive_into};
use haul::sink::{ReceivedIntoSink, ResponseForSink, Sink};
use haul::system::fd::BorrowedFd;
use haul::{Error, ErrorKind, Result};
use rustix::net::{RecvFlags, recv};

use crate::c_arguments::haul_slice;
use crate::callbacks::{UserPointer, haul_body_fn, haul_head_fn, haul_reserve_fn};
use crate::error::CallFailure;
use crate::malloc_body::MallocBody;
use crate::response::haul_reply;

/// The largest number of bytes that are allocated at once because a server announced that length. A
/// server that announces a false length therefore wastes little memory.
pub(crate) const TRUSTED_LENGTH: u64 = 4 << 20;

/// The caller's callbacks for a reply. If none receives the body, haul stores the body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyCallbacks {
    pub(crate) on_head: haul_head_fn,
    pub(crate) reserve: haul_reserve_fn,
    pub(crate) on_body: haul_body_fn,
    pub(crate) user: UserPointer,
}

impl ReplyCallbacks {
    /// No callbacks: haul stores the body in memory.
    pub(crate) const IN_MEMORY: Self =
        Self { on_head: None, reserve: None, on_body: None, user: UserPointer(std::ptr::null_mut()) };

    pub(crate) fn check(&self) -> std::result::Result<(), CallFailure> {
        if self.reserve.is_some() && self.on_body.is_some() {
            return Err(CallFailure::setup("the body can go to reserve or to on_body, not to both"));
        }
        Ok(())
    }

    /// Passes the head to the callback `on_head`, if there is one.
    pub(crate) fn call_on_head(&self, head: &haul_reply) -> Result<()> {
        let Some(on_head) = self.on_head else { return Ok(()) };
        // SAFETY: a function of the caller's, with its own pointer and a reply that lives during
        // the call.
        if unsafe { on_head(self.user.0, head) } == 0 {
            Ok(())
        } else {
            Err(callback_error("the head was refused by its taker"))
        }
    }
}

/// The body of a reply that was received, completely or in part.
#[derive(Debug, Default)]
pub(crate) struct StoredBody {
    /// The body if haul stored it, else empty. The memory is reused for the next reply.
    pub(crate) stored: Vec<u8>,
    /// The body in memory that the caller supplied (haul_reserve_fn): its start and length. The
    /// pointer is NULL if the body is stored elsewhere.
    pub(crate) callers_memory: haul_slice,
    /// The body in memory from `malloc`, which only the response of a batch has. `None` if the body
    /// is stored elsewhere.
    pub(crate) malloc: Option<MallocBody>,
    /// The length of the body in bytes, wherever it is stored.
    pub(crate) len: u64,
    /// True if the body is in `stored`; false if the caller has it, in memory or by a callback.
    pub(crate) is_stored: bool,
}

impl StoredBody {
    /// Returns the body; `data` is NULL if there is none in memory.
    pub(crate) fn bytes(&self) -> haul_slice {
        match &self.malloc {
            Some(body) => haul_slice::from_bytes(body.as_bytes()),
            None if self.is_stored => haul_slice::from_bytes(&self.stored),
            None => self.callers_memory,
        }
    }

    /// Removes and returns the body as memory from `malloc`. A body in memory of haul or of the
    /// caller is copied. Returns `None` if a callback received the body, or if the memory for the
    /// copy cannot be allocated.
    pub(crate) fn take(&mut self) -> Option<MallocBody> {
        let body = self.malloc.take().or_else(|| {
            let body = self.bytes();
            // SAFETY: the caller's memory, or haul's, has the body until the next call.
            (!body.data.is_null()).then(|| unsafe { body.bytes() }).and_then(MallocBody::copy_of)
        })?;
        *self = Self { stored: std::mem::take(&mut self.stored), ..Self::default() };
        Some(body)
    }
}

/// Receives one body and writes it to its destination.
pub(crate) struct ReplyBodyWriter {
    output: ReplyCallbacks,
    stored: Vec<u8>,
    /// The start of the caller's memory, whose size is `room`; NULL before the memory is requested.
    start: *mut u8,
    room: usize,
    len: usize,
}

// SAFETY: the pointer is the caller's memory, which only this writer writes to; the engine uses it
// in the caller's thread, since a call that waits has no other.
unsafe impl Send for ReplyBodyWriter {}

impl ReplyBodyWriter {
    /// Creates a writer of a reply's body. `stored` is the memory of an earlier body, which is
    /// reused.
    pub(crate) fn new(output: ReplyCallbacks, stored: Vec<u8>) -> Self {
        Self { output, stored, start: std::ptr::null_mut(), room: 0, len: 0 }
    }

    fn is_stored(&self) -> bool {
        self.output.reserve.is_none() && self.output.on_body.is_none()
    }

    /// Prepares for a body of this length in bytes; `None` if the length is unknown.
    pub(crate) fn set_expected_length(&mut self, length: Option<u64>) -> Result<()> {
        let length = length.unwrap_or(0).min(TRUSTED_LENGTH) as usize;
        if self.is_stored() {
            self.stored.reserve_exact(length);
        } else if self.output.reserve.is_some() && length > self.room {
            self.grow(length)?;
        }
        Ok(())
    }

    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if self.is_stored() {
            make_room(&mut self.stored, bytes.len())?;
            self.stored.extend_from_slice(bytes);
        } else if let Some(on_body) = self.output.on_body {
            // SAFETY: a function of the caller's, with its own pointer and bytes that live during
            // the call.
            if unsafe { on_body(self.output.user.0, bytes.as_ptr().cast(), bytes.len()) } != 0 {
                return Err(callback_error("the body was refused by its taker"));
            }
        } else if !bytes.is_empty() {
            let needed =
                self.len.checked_add(bytes.len()).ok_or_else(|| callback_error("the body does not fit into memory"))?;
            if needed > self.room {
                self.grow(needed.max(self.room.saturating_mul(2)))?;
            }
            // SAFETY: `reserve` gave `room` bytes, which hold `len` already and take these: `needed
            // <= room`. They are the caller's, so `bytes`, which is haul's, does not overlap.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(self.len), bytes.len()) };
        }
        self.len += bytes.len();
        Ok(())
    }

    fn grow(&mut self, size: usize) -> Result<()> {
        let Some(reserve) = self.output.reserve else { return Ok(()) };
        // SAFETY: a function of the caller's, with its own pointer.
        let start = unsafe { reserve(self.output.user.0, size) }.cast::<u8>();
        if start.is_null() {
            return Err(callback_error("no memory for the body was given"));
        }
        (self.start, self.room) = (start, size);
        Ok(())
    }

    /// Returns the received body. Must be called after the last byte, or after an error.
    pub(crate) fn finish(self) -> StoredBody {
        let is_stored = self.is_stored();
        let callers_memory = if self.output.reserve.is_some() && !self.start.is_null() {
            haul_slice { data: self.start.cast(), len: self.len }
        } else {
            haul_slice::NONE
        };
        StoredBody { stored: self.stored, callers_memory, malloc: None, len: self.len as u64, is_stored }
    }
}

impl Sink for ReplyBodyWriter {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        self.set_expected_length(begin.length)
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        self.write_bytes(offered.bytes())
    }

    fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<ReceivedIntoSink>> {
        let received = if self.is_stored() {
            receive_into(&mut self.stored, socket, most)?
        } else {
            // A callback receives the bytes as an argument, so there is no memory of the caller to
            // receive them into.
            self.output.reserve?;
            let room = self.room.checked_sub(self.len)?.min(most);
            if room == 0 || should_receive_via_buffer(self.start, room) {
                return None;
            }
            // SAFETY: `reserve` gave `room` bytes, of which `len` are filled; what is left is the
            // caller's, and nobody else looks at it meanwhile.
            let free =
                unsafe { std::slice::from_raw_parts_mut(self.start.add(self.len).cast::<MaybeUninit<u8>>(), room) };
            recv(socket, free, RecvFlags::empty()).map(|(_, n)| ReceivedIntoSink::new(n, room)).map_err(io::Error::from)
        };
        if let Ok(received) = &received {
            self.len += received.bytes;
        }
        Some(received)
    }

    fn restart(&mut self) -> bool {
        // Bytes that were passed to a callback cannot be taken back.
        if self.output.on_body.is_some() && self.len > 0 {
            return false;
        }
        self.stored.clear();
        self.len = 0;
        true
    }
}

fn callback_error(text: &str) -> Error {
    Error::new(ErrorKind::Write, text)
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use super::*;

    /// A `reserve` callback that moves the memory whenever more is requested.
    unsafe extern "C" fn moving(user: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: it is the test's, which does not look at it meanwhile.
        let held = unsafe { &mut *user.cast::<Vec<u8>>() };
        let mut larger = vec![0; size];
        larger[..held.len()].copy_from_slice(held);
        *held = larger;
        held.as_mut_ptr().cast()
    }

    unsafe extern "C" fn none(_user: *mut c_void, _size: usize) -> *mut c_void {
        std::ptr::null_mut()
    }

    fn into(reserve: haul_reserve_fn, memory: &mut Vec<u8>) -> ReplyBodyWriter {
        ReplyBodyWriter::new(
            ReplyCallbacks { reserve, user: UserPointer((&raw mut *memory).cast()), ..ReplyCallbacks::IN_MEMORY },
            Vec::new(),
        )
    }

    #[test]
    fn body_stays_whole_when_reserved_memory_moves() {
        let mut memory = Vec::new();
        let mut filler = into(Some(moving), &mut memory);
        filler.set_expected_length(Some(2)).unwrap();
        filler.write_bytes(b"what is thrown away").unwrap();
        assert!(filler.restart());
        for piece in [&b"ab"[..], b"", b"cdefghijklmnopqrstuvw", b"xyz"] {
            filler.write_bytes(piece).unwrap();
        }
        let body = filler.finish();
        // SAFETY: the memory is still there, and as long as was said.
        assert_eq!(unsafe { body.callers_memory.bytes() }, b"abcdefghijklmnopqrstuvwxyz");
        assert_eq!((body.len, body.is_stored), (26, false));
    }

    #[test]
    fn failed_reserve_callback_ends_the_body() {
        let mut filler = into(Some(none), &mut Vec::new());
        filler.write_bytes(b"").unwrap();
        assert_eq!(filler.write_bytes(b"a").unwrap_err().kind(), ErrorKind::Write);
        assert!(filler.finish().callers_memory.data.is_null());
    }
}
