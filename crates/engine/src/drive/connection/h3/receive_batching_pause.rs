//! Pauses before the receives of a bulk body, so that one call receives many datagrams.
//!
//! A UDP socket has no low-water mark: each batch of datagrams (about 50 KB) wakes the reader,
//! which receives it, acknowledges it and sleeps again. While a body comes fast, the reader sleeps
//! a moment instead of waiting for the next batch. Datagrams gather in the socket meanwhile, so the
//! pause is no longer than it takes to fill a part of the socket's buffer.
//!
//! Only the blocking driver pauses. In an event loop, other connections would wait as well.

use std::time::{Duration, Instant};

/// The number of received bytes after which the speed of a connection is computed again.
const MEASURED_BYTES: u64 = 1 << 20;
/// The minimum receive speed of a connection, in bytes per second, for pauses before its receives.
/// At such a speed, many datagrams arrive during one pause, and a single receive takes them all.
const MIN_BULK_SPEED: f64 = 20e6;
/// The longest pause before a receive. A longer pause would delay the sender, which waits for
/// acknowledgements.
const MAX_PAUSE: Duration = Duration::from_millis(1);
/// The ratio of the socket's receive buffer to the bytes that may arrive in one pause. With 8, a
/// pause is no longer than the time in which an eighth of the buffer fills.
const BUFFER_DIVISOR: usize = 8;

/// The measured speed of a connection, and the pause before a receive. During the pause, many
/// datagrams arrive, and one call receives all of them. Only a thread that runs a single transfer
/// pauses.
#[derive(Debug, Default)]
pub(super) struct ReceiveBatchingPause {
    /// The number of bytes received since the time `since`.
    bytes: u64,
    since: Option<Instant>,
    pause: Duration,
    /// True if the last receive returned bytes.
    has_received: bool,
}

impl ReceiveBatchingPause {
    /// Records that a receive returned `bytes` bytes. `buffer` is the size of the socket's receive
    /// buffer in bytes.
    pub(super) fn on_received(&mut self, bytes: usize, buffer: usize, now: Instant) {
        self.has_received = bytes > 0;
        let since = *self.since.get_or_insert(now);
        self.bytes += bytes as u64;
        if self.bytes < MEASURED_BYTES {
            return;
        }
        let speed = self.bytes as f64 / now.duration_since(since).as_secs_f64().max(1e-6);
        let fills = Duration::from_secs_f64((buffer / BUFFER_DIVISOR) as f64 / speed);
        self.pause = if speed >= MIN_BULK_SPEED { fills.min(MAX_PAUSE) } else { Duration::ZERO };
        (self.bytes, self.since) = (0, Some(now));
    }

    /// Returns the time to sleep before the next receive, if the body is large and arrives fast.
    /// Returns `None` if the caller must wait for the next datagram instead. `remaining` is the
    /// number of body bytes still to come.
    pub(super) fn next(&mut self, remaining: u64) -> Option<Duration> {
        let is_bulk = remaining >= MEASURED_BYTES && !self.pause.is_zero();
        (is_bulk && std::mem::take(&mut self.has_received)).then_some(self.pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the state after a test body of 4 MiB that arrived in pieces of `piece` bytes, one
    /// piece per `interval`.
    fn after(piece: usize, interval: Duration, buffer: usize) -> ReceiveBatchingPause {
        let (mut pause, mut now) = (ReceiveBatchingPause::default(), Instant::now());
        for _ in 0..(4 << 20) / piece {
            pause.on_received(piece, buffer, now);
            now += interval;
        }
        pause
    }

    const INTERVAL: Duration = Duration::from_micros(250);

    #[test]
    fn receives_pause_only_for_fast_large_bodies() {
        assert_eq!(after(1 << 15, INTERVAL, 8 << 20).next(1 << 30), Some(MAX_PAUSE));
        assert_eq!(after(1 << 12, INTERVAL, 8 << 20).next(1 << 30), None);
        assert_eq!(after(1 << 15, INTERVAL, 8 << 20).next(MEASURED_BYTES - 1), None, "the end of a body");
    }

    #[test]
    fn pause_lasts_until_an_eighth_of_buffer_fills() {
        // 128 MiB a second, and an eighth of 256 KiB.
        let pause = after(1 << 15, INTERVAL, 1 << 18).next(1 << 30).expect("a pause");
        assert!(pause > Duration::from_micros(200) && pause < Duration::from_micros(300), "{pause:?}");
    }

    #[test]
    fn receive_without_bytes_ends_the_pauses() {
        let mut pause = after(1 << 15, INTERVAL, 8 << 20);
        assert_eq!((pause.next(1 << 30), pause.next(1 << 30)), (Some(MAX_PAUSE), None), "one for each receive");
        pause.on_received(0, 8 << 20, Instant::now());
        assert_eq!(pause.next(1 << 30), None);
    }
}
