//! A buffer of bytes to send, and the number of bytes sent since the connection began.

use alloc::vec::Vec;
use core::fmt;

/// The largest capacity in bytes that the output buffer of a connection keeps while it is empty, so
/// that an idle connection costs little memory.
const MAX_IDLE_CAPACITY: usize = 4 * 1024;

/// The number of unsent bytes in a connection's output buffer at which no more of a request's body
/// is added. 64 KiB fill a socket's buffer in one write, and limit the memory of a connection with
/// any number of uploads.
pub(crate) const OUTPUT_LIMIT: usize = 64 * 1024;
/// The number of unsent bytes in a connection's output buffer at which no more of a request's body
/// is added, once [`LARGE_BODY`] bytes have been sent on the connection. It is larger than
/// [`OUTPUT_LIMIT`] because fewer and larger writes take less processor time.
const LARGE_OUTPUT_LIMIT: usize = 256 * 1024;
/// The number of bytes sent on a connection after which its output buffer may grow to
/// [`LARGE_OUTPUT_LIMIT`].
const LARGE_BODY: u64 = 4 << 20;

#[derive(Default)]
pub(crate) struct OutputBuffer {
    bytes: Vec<u8>,
    /// The number of bytes at the front of the buffer that have been sent. They are removed later:
    /// moving the remaining bytes after each write would take quadratic time.
    start: usize,
    sent: u64,
    /// True if the buffer keeps its allocated memory while it is empty.
    keeps_capacity: bool,
}

impl OutputBuffer {
    pub(crate) fn pending(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Returns the number of request-body bytes that may be appended now.
    pub(crate) fn body_room(&self) -> usize {
        let limit = if self.sent < LARGE_BODY { OUTPUT_LIMIT } else { LARGE_OUTPUT_LIMIT };
        limit.saturating_sub(self.pending().len())
    }

    /// Marks the first `n` unsent bytes as sent.
    pub(crate) fn advance(&mut self, n: usize) {
        debug_assert!(n <= self.pending().len(), "more was sent than was there");
        let n = n.min(self.pending().len());
        self.sent += n as u64;
        self.start += n;
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
            self.release_capacity();
        }
    }

    /// Sets whether the buffer keeps its allocated memory when it becomes empty. Pass true while a
    /// request body is being sent, since the next bytes of the body need the memory again. If
    /// false, the empty buffer keeps at most [`MAX_IDLE_CAPACITY`] bytes.
    pub(crate) fn keep_capacity(&mut self, keeps: bool) {
        self.keeps_capacity = keeps;
        if self.bytes.is_empty() {
            self.release_capacity();
        }
    }

    fn release_capacity(&mut self) {
        if !self.keeps_capacity && self.bytes.capacity() > MAX_IDLE_CAPACITY {
            self.bytes.shrink_to(MAX_IDLE_CAPACITY);
        }
    }

    /// Counts `n` bytes that the caller sent directly, not from this buffer. The buffer must be
    /// empty.
    pub(crate) fn count_direct_bytes(&mut self, n: u64) {
        debug_assert!(self.pending().is_empty(), "bytes before these wait");
        self.sent += n;
    }

    /// Returns the buffer, for appending bytes to send. First removes the sent bytes if they are
    /// more than half of the buffer.
    pub(crate) fn append_buffer(&mut self) -> &mut Vec<u8> {
        if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        &mut self.bytes
    }

    /// Returns the number of bytes sent since the connection began.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent
    }

    /// Returns the position of the next byte to be appended, counted from the first byte sent on
    /// the connection.
    pub(crate) fn end_position(&self) -> u64 {
        self.sent + self.pending().len() as u64
    }
}

/// Prints only lengths, since the bytes to send may contain credentials.
impl fmt::Debug for OutputBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputBuffer").field("pending", &self.pending().len()).field("sent", &self.sent).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_positions_survive_compaction() {
        let mut output = OutputBuffer::default();
        output.append_buffer().extend_from_slice(b"0123456789");
        output.advance(7);
        assert_eq!((output.pending(), output.sent_bytes(), output.end_position()), (&b"789"[..], 7, 10));
        output.append_buffer().extend_from_slice(b"ab");
        assert_eq!((output.pending(), output.sent_bytes(), output.end_position()), (&b"789ab"[..], 7, 12));
        output.advance(5);
        assert_eq!((output.pending(), output.sent_bytes(), output.end_position()), (&b""[..], 12, 12));
    }

    #[test]
    fn room_for_body_bytes_grows_after_four_mebibytes() {
        let mut output = OutputBuffer::default();
        output.append_buffer().extend_from_slice(&[0; 100]);
        assert_eq!(output.body_room(), OUTPUT_LIMIT - 100);
        output.advance(100);
        output.count_direct_bytes(LARGE_BODY - 101);
        assert_eq!(output.body_room(), OUTPUT_LIMIT);
        output.count_direct_bytes(1);
        assert_eq!(output.body_room(), LARGE_OUTPUT_LIMIT);
        output.append_buffer().resize(LARGE_OUTPUT_LIMIT + 1, 0);
        assert_eq!(output.body_room(), 0);
    }

    #[test]
    fn drained_output_buffer_is_freed() {
        let mut output = OutputBuffer::default();
        output.append_buffer().resize(100_000, 0);
        output.advance(100_000);
        assert!(output.bytes.capacity() <= MAX_IDLE_CAPACITY);
    }

    #[test]
    fn output_buffer_is_kept_until_body_ends() {
        let mut output = OutputBuffer::default();
        output.keep_capacity(true);
        output.append_buffer().resize(100_000, 0);
        output.advance(100_000);
        assert!(output.bytes.capacity() >= 100_000);
        output.keep_capacity(false);
        assert!(output.bytes.capacity() <= MAX_IDLE_CAPACITY);
    }

    #[test]
    fn debug_of_output_shows_only_lengths() {
        let mut output = OutputBuffer::default();
        output.append_buffer().extend_from_slice(b"secret");
        output.advance(2);
        assert_eq!(alloc::format!("{output:?}"), "OutputBuffer { pending: 4, sent: 2 }");
    }

    #[test]
    fn sent_bytes_leave_the_buffer_in_time() {
        let mut output = OutputBuffer::default();
        for _ in 0..100 {
            output.append_buffer().extend_from_slice(&[0; 100]);
            let pending = output.pending().len();
            assert!(output.bytes.len() <= 2 * pending + 100, "{} bytes for {pending}", output.bytes.len());
            output.advance(pending.min(100) - 1);
        }
    }
}
