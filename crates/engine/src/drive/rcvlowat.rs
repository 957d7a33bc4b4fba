//! Bulk reads of a body: the socket wakes its reader only when a large piece waits (`SO_RCVLOWAT`),
//! so that there are few, large reads.
//!
//! The mark is raised for a bulk body: [`BULK_TEST_BYTES`] bytes arrived within [`BULK_TEST_TIME`],
//! and much more is to come. It is lowered near the end of the body, because a reader would wait
//! for ever for bytes that never come. It is also lowered when the body becomes slow and does not
//! reach the mark within [`MAX_WAIT_FOR_MARK`], so that received bytes do not stay in the kernel.
//! The end of the stream and a reset wake the reader whatever the mark.
//!
//! ```
//! use haul::drive::rcvlowat::{LowWaterMark, MARK_WHEN_MOVED, MAX_WAIT_FOR_MARK};
//! use std::time::Instant;
//! let (mut mark, now) = (LowWaterMark::new(MARK_WHEN_MOVED), Instant::now());
//! assert_eq!(mark.on_received(256 << 10, 1 << 30, now), None);
//! assert_eq!(mark.on_received(256 << 10, 1 << 30, now), Some(MARK_WHEN_MOVED));
//! assert_eq!(mark.timeout(), Some(now + MAX_WAIT_FOR_MARK));
//! assert_eq!(mark.lower(), Some(1));
//! ```

use std::time::{Duration, Instant};

/// The low-water mark (`SO_RCVLOWAT`), in bytes, for a body that the kernel moves to the sink
/// without copying it into this process. Twice the size would be hardly faster, and bytes that wait
/// in the kernel take memory (measurements: `docs/design/data-path.md`).
pub const MARK_WHEN_MOVED: usize = 512 << 10;
/// The low-water mark (`SO_RCVLOWAT`), in bytes, for a body without TLS that receive calls copy
/// into this process, because the kernel cannot move it to the sink. The mark is half the size of
/// the buffers ([`BULK_BUFFER_SIZE`](crate::buffer_pool::BULK_BUFFER_SIZE)).
pub const MARK_WHEN_COPIED: usize = 2 << 20;
/// The low-water mark (`SO_RCVLOWAT`), in bytes, for a body over TLS, which this process decrypts.
/// A transfer takes an eighth less time than with half this size ([`MARK_WHEN_MOVED`]).
pub const MARK_WHEN_DECRYPTED: usize = 1 << 20;
/// The low-water mark (`SO_RCVLOWAT`), in bytes, for large bodies on many HTTP/2 streams. It may be
/// large: each stream has its own flow-control window, so the peer can go on sending while these
/// bytes wait.
pub const MARK_FOR_MANY_STREAMS: usize = 2 << 20;
/// The low-water mark (`SO_RCVLOWAT`), in bytes, for small bodies on many HTTP/2 streams. With a
/// lower mark, client and server would wake each other after every few TLS records.
pub const MARK_FOR_SMALL_BODIES: usize = 128 << 10;
/// The number of bytes that must arrive within [`BULK_TEST_TIME`] for a body to count as bulk.
pub const BULK_TEST_BYTES: usize = 512 << 10;
/// The time within which [`BULK_TEST_BYTES`] bytes must arrive for a body to count as bulk: a rate
/// of 20 MB/s. Only a bulk body raises the low-water mark. For a slower body, the number of reads
/// does not matter.
pub const BULK_TEST_TIME: Duration = Duration::from_millis(25);
/// The longest time to wait until a raised low-water mark is reached. After this time, the mark is
/// lowered.
pub const MAX_WAIT_FOR_MARK: Duration = Duration::from_millis(50);
/// The minimum number of bytes of a body that must still arrive for the low-water mark to be
/// raised, as a multiple of the raised mark.
const MIN_REST_TO_RAISE: u64 = 4;
/// The minimum rest of a body (the bytes still to come) for which a raised low-water mark stays
/// raised, as a multiple of the mark. The multiple 1 would be too small over TLS: this process may
/// already hold some bytes of the rest, in an incomplete record. The bytes in the socket would then
/// never reach the mark, and the reader would wait for [`MAX_WAIT_FOR_MARK`].
const MIN_REST_TO_KEEP: u64 = 2;

/// The low-water mark of one socket (`SO_RCVLOWAT`). It is raised if the body arrives fast enough.
#[derive(Debug)]
pub struct LowWaterMark {
    /// The value to which the mark is raised, in bytes. With a larger value, the socket's reader is
    /// woken less often and reads more at once.
    raised_mark: usize,
    is_raised: bool,
    since: Option<Instant>,
    came: u64,
    last: Option<Instant>,
}

impl LowWaterMark {
    /// Makes a low-water mark that is not raised yet. `raised_mark` is the value to which it will
    /// be raised: [`MARK_WHEN_MOVED`], [`MARK_WHEN_DECRYPTED`], [`MARK_FOR_MANY_STREAMS`] or
    /// [`MARK_FOR_SMALL_BODIES`].
    #[must_use]
    pub fn new(raised_mark: usize) -> Self {
        Self { raised_mark, is_raised: false, since: None, came: 0, last: None }
    }

    /// Sets the value to which the mark will be raised, `raised_mark` bytes. If this value changes,
    /// a raised mark is lowered to 1 byte, and the measurement of the speed starts again. Returns
    /// 1, which the caller must set on the socket, if the mark was lowered; otherwise `None`.
    pub fn set_raised_mark(&mut self, raised_mark: usize) -> Option<usize> {
        if raised_mark == self.raised_mark {
            return None;
        }
        let mark = self.lower();
        self.raised_mark = raised_mark;
        mark
    }

    /// Returns true if the mark is raised, because the body in progress arrives fast.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.is_raised
    }

    /// Records that `bytes` bytes were received and that `remaining` bytes of the body are still to
    /// come (0 if unknown). Returns the new value of the mark in bytes, which the caller must set
    /// on the socket; `None` if the mark does not change.
    pub fn on_received(&mut self, bytes: u64, remaining: u64, now: Instant) -> Option<usize> {
        if self.is_raised {
            self.last = Some(now);
            return if remaining < MIN_REST_TO_KEEP * self.raised_mark as u64 { self.lower() } else { None };
        }
        if remaining < MIN_REST_TO_RAISE * self.raised_mark as u64 {
            return None;
        }
        let since = *self.since.get_or_insert(now);
        if now.saturating_duration_since(since) > BULK_TEST_TIME {
            self.since = Some(now);
            self.came = 0;
        }
        self.came += bytes;
        if self.came < BULK_TEST_BYTES as u64 {
            return None;
        }
        self.is_raised = true;
        self.last = Some(now);
        Some(self.raised_mark)
    }

    /// Returns the time at which the mark must be lowered if no bytes arrive before. Returns `None`
    /// if the mark is not raised.
    #[must_use]
    pub fn timeout(&self) -> Option<Instant> {
        self.last.filter(|_| self.is_raised).map(|last| last + MAX_WAIT_FOR_MARK)
    }

    /// Lowers the mark to 1 byte, because it was not reached in time, or because the body has
    /// ended. Returns the new value, or `None` if the mark was not raised.
    pub fn lower(&mut self) -> Option<usize> {
        let was_raised = self.is_raised;
        *self = Self::new(self.raised_mark);
        was_raised.then_some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const NEAR: u64 = MIN_REST_TO_KEEP * MARK_WHEN_MOVED as u64;

    #[test]
    fn slow_body_never_raises_the_low_water_mark() {
        let mut mark = LowWaterMark::new(MARK_WHEN_MOVED);
        let mut now = Instant::now();
        for _ in 0..10_000 {
            now += BULK_TEST_TIME / 8;
            assert_eq!(mark.on_received(BULK_TEST_BYTES as u64 / 16, GIB, now), None);
        }
    }

    #[test]
    fn low_water_mark_is_lowered_near_body_end() {
        let mut mark = LowWaterMark::new(MARK_WHEN_MOVED);
        let now = Instant::now();
        assert_eq!(mark.on_received(BULK_TEST_BYTES as u64, GIB, now), Some(MARK_WHEN_MOVED));
        assert_eq!(mark.on_received(BULK_TEST_BYTES as u64, NEAR, now), None);
        assert_eq!(mark.on_received(BULK_TEST_BYTES as u64, NEAR - 1, now), Some(1));
        assert_eq!(mark.on_received(BULK_TEST_BYTES as u64, NEAR - 2, now), None);
        assert_eq!(mark.on_received(NEAR, 0, now), None);
    }

    #[test]
    fn low_water_mark_rises_only_for_fast_data() {
        let mut mark = LowWaterMark::new(MARK_WHEN_MOVED);
        let now = Instant::now();
        assert_eq!(mark.on_received(BULK_TEST_BYTES as u64, GIB, now), Some(MARK_WHEN_MOVED));
        assert_eq!(mark.lower(), Some(1));
        assert_eq!((mark.lower(), mark.timeout()), (None, None));
        assert_eq!(mark.on_received(BULK_TEST_BYTES as u64 - 1, GIB, now + MAX_WAIT_FOR_MARK), None);
        assert_eq!(mark.on_received(1, GIB, now + MAX_WAIT_FOR_MARK + BULK_TEST_TIME), Some(MARK_WHEN_MOVED));
    }

    #[test]
    fn larger_low_water_mark_needs_more_remaining_bytes() {
        for raised_mark in [MARK_WHEN_DECRYPTED, MARK_FOR_MANY_STREAMS, MARK_WHEN_COPIED] {
            let (mut mark, now) = (LowWaterMark::new(raised_mark), Instant::now());
            assert_eq!(mark.on_received(BULK_TEST_BYTES as u64, 4 * raised_mark as u64 - 1, now), None);
            assert_eq!(mark.on_received(BULK_TEST_BYTES as u64, 4 * raised_mark as u64, now), Some(raised_mark));
            assert_eq!(mark.on_received(BULK_TEST_BYTES as u64, 2 * raised_mark as u64 - 1, now), Some(1));
        }
    }

    #[test]
    fn changed_raised_mark_restarts_the_speed_measurement() {
        let (mut mark, now) = (LowWaterMark::new(MARK_FOR_MANY_STREAMS), Instant::now());
        assert_eq!(
            (mark.set_raised_mark(MARK_FOR_MANY_STREAMS), mark.set_raised_mark(MARK_FOR_SMALL_BODIES)),
            (None, None)
        );
        assert_eq!(
            mark.on_received(BULK_TEST_BYTES as u64, 4 * MARK_FOR_SMALL_BODIES as u64, now),
            Some(MARK_FOR_SMALL_BODIES)
        );
        assert_eq!(
            (mark.set_raised_mark(MARK_FOR_SMALL_BODIES), mark.set_raised_mark(MARK_FOR_MANY_STREAMS)),
            (None, Some(1))
        );
        assert_eq!(mark.on_received(BULK_TEST_BYTES as u64 - 1, GIB, now), None);
        assert_eq!(mark.on_received(1, GIB, now), Some(MARK_FOR_MANY_STREAMS));
    }

    #[test]
    fn body_of_unknown_length_never_raises_the_mark() {
        let mut mark = LowWaterMark::new(MARK_WHEN_MOVED);
        assert_eq!(mark.on_received(GIB, 0, Instant::now()), None);
    }
}
