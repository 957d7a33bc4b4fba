//! Bodies in memory from C's `malloc`, which a C program can take over without a copy.

use std::ffi::{c_char, c_void};
use std::io;
use std::mem::MaybeUninit;

use haul::buffer_pool::{OfferedBodyBytes, should_receive_via_buffer};
use haul::sink::{ReceivedIntoSink, ResponseForSink, Sink};
use haul::system::fd::BorrowedFd;
use haul::{Error, ErrorKind, Result};
use rustix::net::{RecvFlags, recv};

use crate::reply_destination::TRUSTED_LENGTH;

unsafe extern "C" {
    fn realloc(memory: *mut c_void, size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
}

/// A body in memory from `malloc`. Dropping the value frees the memory.
#[derive(Debug)]
pub(crate) struct MallocBody {
    /// The start of the memory; NULL before the first allocation.
    start: *mut u8,
    len: usize,
    /// The number of bytes for the body. The memory has `SPARE` bytes more.
    capacity: usize,
}

/// The number of bytes that are allocated behind the body: one for the NUL, and one that Perl needs
/// in a string. Without the second one, Perl would enlarge the memory, which copies the body.
const SPARE: usize = 2;

// SAFETY: the memory belongs to this value alone, and `malloc` and `free` work in all threads.
unsafe impl Send for MallocBody {}

impl Default for MallocBody {
    fn default() -> Self {
        Self { start: std::ptr::null_mut(), len: 0, capacity: 0 }
    }
}

impl Drop for MallocBody {
    fn drop(&mut self) {
        // SAFETY: the memory is from `realloc`, or NULL.
        unsafe { free(self.start.cast()) };
    }
}

impl MallocBody {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        if self.start.is_null() {
            return &[];
        }
        // SAFETY: `len` bytes are initialized.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    /// Returns a copy of the bytes; `None` if there is no memory for the copy.
    pub(crate) fn copy_of(bytes: &[u8]) -> Option<Self> {
        let mut body = Self::default();
        body.append(bytes).ok()?;
        Some(body)
    }

    /// Returns the memory, with a NUL byte behind the body. The caller frees it with `free`. Returns
    /// `None` if the body is empty and `malloc` fails to provide memory for the NUL byte.
    pub(crate) fn into_raw(mut self) -> Option<*mut c_char> {
        if self.start.is_null() {
            self.grow(0).ok()?;
        }
        // SAFETY: `len` is at most `capacity`, and the memory has `SPARE` bytes more.
        unsafe { self.start.add(self.len).write(0) };
        // The dropped value has no memory.
        Some(std::mem::replace(&mut self.start, std::ptr::null_mut()).cast())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let needed = self.len.saturating_add(bytes.len());
        if needed > self.capacity {
            self.grow(needed.max(self.capacity.saturating_mul(2)))?;
        }
        if !bytes.is_empty() {
            // SAFETY: the memory has room for `needed` bytes, and `bytes` is other memory.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(self.len), bytes.len()) };
            self.len = needed;
        }
        Ok(())
    }

    /// Allocates memory for a body of `capacity` bytes, which is at least `len`.
    fn grow(&mut self, capacity: usize) -> Result<()> {
        let size = capacity.checked_add(SPARE).filter(|&size| isize::try_from(size).is_ok());
        // SAFETY: the memory is from `realloc`, or NULL.
        let start = size.map_or(std::ptr::null_mut(), |size| unsafe { realloc(self.start.cast(), size) });
        if start.is_null() {
            let message = format!("no memory for a body of more than {} bytes", self.len);
            return Err(Error::new(ErrorKind::Write, message));
        }
        (self.start, self.capacity) = (start.cast(), capacity);
        Ok(())
    }
}

impl Sink for MallocBody {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        let length = begin.length.unwrap_or(0).min(TRUSTED_LENGTH) as usize;
        let capacity = self.len.saturating_add(length);
        if capacity > self.capacity { self.grow(capacity) } else { Ok(()) }
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        self.append(offered.bytes())
    }

    fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<ReceivedIntoSink>> {
        let room = self.capacity - self.len;
        if room == 0 || room > most || should_receive_via_buffer(self.start, room) {
            return None;
        }
        // SAFETY: the memory has `capacity` bytes, of which `len` are used.
        let free = unsafe { std::slice::from_raw_parts_mut(self.start.add(self.len).cast::<MaybeUninit<u8>>(), room) };
        let received = recv(socket, free, RecvFlags::empty()).map(|(_, n)| n).map_err(io::Error::from);
        if let Ok(n) = received {
            self.len += n;
        }
        Some(received.map(|n| ReceivedIntoSink::new(n, room)))
    }

    fn restart(&mut self) -> bool {
        self.len = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn body_grows_and_is_taken_with_a_nul() {
        let mut body = MallocBody::default();
        assert_eq!(body.as_bytes(), b"");
        for piece in [&b"discarded"[..], b"longer than the piece before"] {
            body.bytes(OfferedBodyBytes::borrowed(piece)).unwrap();
        }
        assert!(body.restart());
        for piece in [&b"ab"[..], b"", b"cdefghijklmnopqrstuvwxyz"] {
            body.bytes(OfferedBodyBytes::borrowed(piece)).unwrap();
        }
        assert_eq!(body.as_bytes(), b"abcdefghijklmnopqrstuvwxyz");
        for (body, text) in [(body, c"abcdefghijklmnopqrstuvwxyz"), (MallocBody::default(), c"")] {
            let memory = body.into_raw().unwrap();
            // SAFETY: the memory ends with a NUL, and is freed once.
            unsafe {
                assert_eq!(CStr::from_ptr(memory), text);
                free(memory.cast());
            }
        }
    }

    #[test]
    fn too_large_body_is_an_error() {
        let mut body = MallocBody::copy_of(b"a").unwrap();
        assert_eq!(body.grow(usize::MAX).unwrap_err().kind(), ErrorKind::Write);
        assert_eq!(body.as_bytes(), b"a");
    }
}
