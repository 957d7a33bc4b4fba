//! Receive windows (RFC 9113 §5.2, §6.9): the number of bytes that may be in flight or unreleased,
//! and its division among streams.
//!
//! ```text
//!   connection  |<──────────────────────────── total (the memory budget) ─────────────────────────────>|
//!               |  held: delivered, not released  |  pending: released, not announced  |  peer's window |
//!
//!   budget      |  initial × streams that may open  |             pool for growth             |
//! ```
//!
//! **Bound.** The peer can never send more than the connection's window, and only released bytes
//! reopen it. All streams together therefore hold at most `total`, whichever of them are not read.
//!
//! **No starvation.** A stream's target is the sum of its window and its delivered but unreleased
//! bytes. Targets are reserved in `total`, and a new stream begins only if its initial window fits.
//! Streams whose bytes are not read therefore cannot use up the bytes reserved for another stream.
//!
//! **Batching.** A WINDOW_UPDATE for a stream is sent when half of its target is free. A
//! WINDOW_UPDATE for the connection is sent when at least as many bytes are released as the peer
//! may still send: at half of the total if everything is released, and earlier if bytes are
//! unreleased.
//!
//! **Growth.** A stream that uses up half of its window W within one round trip is limited by the
//! window: its rate is W/2 in a time t < RTT, so the product of bandwidth and delay exceeds W/2,
//! and the window is empty before an update arrives. The stream's target is then doubled, up to its
//! share of the pool. The round-trip time is the shortest one measured, by the acknowledgement of
//! SETTINGS and of keep-alive PINGs. Rejected: a PING for each measurement, which looks like a
//! flood to some servers. If the driver releases bytes slowly, half a window takes longer than a
//! round trip, so that the windows do not grow.

use super::frame::{INITIAL_WINDOW, MAX_WINDOW};
use crate::time::MonotonicTimestamp;
use core::time::Duration;

/// The smallest increment of the connection's receive window, in bytes, that is worth a
/// WINDOW_UPDATE frame. A smaller increment is announced only if the window is 0, so that the peer
/// cannot send.
const MIN_WINDOW_UPDATE: u64 = 4 * 1024;

/// The receive window of one HTTP/2 stream, which limits the response's body.
#[derive(Debug)]
pub(crate) struct StreamReceiveWindow {
    /// The number of bytes that the peer may still send on the stream.
    pub(crate) window: i64,
    /// The number of bytes of the stream that the caller has not released: received bytes, and
    /// bytes announced by the header of a DATA frame.
    pub(crate) held: u64,
    /// The window size of the stream, in bytes. Each WINDOW_UPDATE raises `window` to `target` -
    /// `held`. For example, with a `target` of 64 KiB and 16 KiB of bytes that the caller has not
    /// released, the peer may send 48 KiB.
    target: u64,
    /// The time of the last WINDOW_UPDATE for the stream; `None` before the first.
    since: Option<MonotonicTimestamp>,
}

impl StreamReceiveWindow {
    /// Subtracts the payload length of a received DATA frame from the stream's window. Returns
    /// `false` if the frame exceeds the window.
    pub(crate) fn consume(&mut self, length: u32) -> bool {
        self.window -= i64::from(length);
        self.window >= 0
    }

    /// Raises the stream's window and the size to which each WINDOW_UPDATE restores it, by
    /// `difference` bytes.
    pub(crate) fn widen(&mut self, difference: u32) {
        self.window += i64::from(difference);
        self.target += u64::from(difference);
    }
}

/// The receive window of an HTTP/2 connection, which all its streams share.
#[derive(Debug)]
pub(crate) struct ConnectionReceiveWindow {
    total: u64,
    initial: u64,
    /// The number of bytes that the peer may still send on the connection.
    window: i64,
    /// The number of bytes that the caller has released and that no WINDOW_UPDATE has announced
    /// yet.
    pending: u64,
    /// The number of bytes of ended streams that the caller has not released yet.
    orphaned: u64,
    /// The sum, over all open streams, of the bytes by which a stream's window size `target`
    /// exceeds the initial window.
    grown: u64,
    rtt: Option<Duration>,
}

impl ConnectionReceiveWindow {
    pub(crate) fn new(total: u32, initial: u32) -> ConnectionReceiveWindow {
        ConnectionReceiveWindow {
            total: u64::from(total),
            initial: u64::from(initial),
            window: i64::from(INITIAL_WINDOW),
            pending: u64::from(total.saturating_sub(INITIAL_WINDOW)),
            orphaned: 0,
            grown: 0,
            rtt: None,
        }
    }

    /// Returns the increment in bytes in the connection's first WINDOW_UPDATE, which raises the
    /// window from the initial size of RFC 9113 to the configured size. `None` if the increment is
    /// too small to be worth a frame.
    pub(crate) fn first_increment(&mut self) -> Option<u32> {
        self.take_increment()
    }

    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    pub(crate) fn add_rtt_sample(&mut self, sample: Duration) {
        self.rtt = Some(self.rtt.map_or(sample, |known| known.min(sample)));
    }

    /// Returns `true` if the memory budget has room for one more stream in addition to the `open`
    /// streams.
    pub(crate) fn admits_stream(&self, open: usize) -> bool {
        self.has_room(self.initial, open)
    }

    fn has_room(&self, initial: u64, open: usize) -> bool {
        initial * (open as u64 + 1) + self.grown + self.orphaned <= self.total
    }

    /// Raises the initial receive window of streams to `initial` bytes. Returns the increment for
    /// the window of each open stream. Returns `None` and does nothing if `initial` is not larger,
    /// or if the memory budget is too small for all open streams and one more.
    pub(crate) fn raise_initial_window(&mut self, initial: u32, open: usize) -> Option<u32> {
        let wider = u64::from(initial);
        let difference = wider.checked_sub(self.initial).filter(|difference| *difference > 0)?;
        if !self.has_room(wider, open) {
            return None;
        }
        self.initial = wider;
        Some(difference as u32)
    }

    pub(crate) fn begin_stream(&self) -> StreamReceiveWindow {
        StreamReceiveWindow { window: self.initial as i64, held: 0, target: self.initial, since: None }
    }

    /// Subtracts the payload length of a received DATA frame from the connection's window. Returns
    /// `false` if the frame exceeds the window.
    pub(crate) fn consume(&mut self, length: u32) -> bool {
        self.window -= i64::from(length);
        self.window >= 0
    }

    /// Records that a stream has ended. The caller may release the remaining bytes of the stream
    /// later.
    pub(crate) fn end_stream(&mut self, inbound: &StreamReceiveWindow) {
        self.grown -= inbound.target - self.initial;
        self.orphaned += inbound.held;
    }

    /// Releases bytes that belong to no open stream (padding, or payload of a stream that has
    /// ended): the peer may send as many bytes again. Returns the increment that a WINDOW_UPDATE
    /// for the connection has to announce; `None` if no frame is due.
    ///
    /// Also call this function with 0 after each received DATA frame. The frame makes the window
    /// smaller, so a WINDOW_UPDATE for bytes that were released earlier may be due now. Without
    /// this call, the WINDOW_UPDATE would wait until the caller releases more bytes, which may
    /// never happen.
    pub(crate) fn release_without_stream(&mut self, bytes: u64) -> Option<u32> {
        self.pending += bytes;
        let left = self.window.max(0) as u64;
        if self.pending >= left && (self.pending >= MIN_WINDOW_UPDATE || left == 0) {
            self.take_increment()
        } else {
            None
        }
    }

    /// Releases up to `bytes` received bytes of streams that have ended, so that the peer may send
    /// as many more. Returns the increment that a WINDOW_UPDATE for the connection has to announce;
    /// `None` if no frame is due.
    pub(crate) fn release_orphaned(&mut self, bytes: u64) -> Option<u32> {
        let bytes = bytes.min(self.orphaned);
        self.orphaned -= bytes;
        self.release_without_stream(bytes)
    }

    fn take_increment(&mut self) -> Option<u32> {
        let increment = self.pending.min((MAX_WINDOW - self.window.max(0)) as u64);
        self.pending -= increment;
        self.window += increment as i64;
        if increment == 0 { None } else { Some(increment as u32) }
    }

    /// Releases `bytes` bytes of an open stream, which the caller has processed: the peer may send
    /// as many bytes again. Returns the increments that WINDOW_UPDATE frames have to announce,
    /// first for the stream and then for the connection; `None` if no frame is due.
    ///
    /// `left` is the number of bytes of the response's body that have not arrived; `None` if
    /// unknown. `open` is the number of open streams, and `max_streams` the largest number of
    /// streams that may be open at the same time. Both limit how much the stream's window may grow.
    pub(crate) fn release_of_stream(
        &mut self,
        inbound: &mut StreamReceiveWindow,
        bytes: u64,
        now: MonotonicTimestamp,
        left: Option<u64>,
        (open, max_streams): (usize, u64),
    ) -> (Option<u32>, Option<u32>) {
        let bytes = bytes.min(inbound.held);
        inbound.held -= bytes;
        (self.raise_stream_target(inbound, now, left, open, max_streams), self.release_without_stream(bytes))
    }

    fn raise_stream_target(
        &mut self,
        inbound: &mut StreamReceiveWindow,
        now: MonotonicTimestamp,
        left: Option<u64>,
        open: usize,
        max_streams: u64,
    ) -> Option<u32> {
        let window = inbound.window.max(0) as u64;
        if left.is_some_and(|left| left < window) {
            // The rest fits, so an update would be useless. It is not if the rest fits exactly: a
            // server that learns of the end after the last byte sends a DATA frame without payload,
            // and some send none while the window is 0.
            return None;
        }
        let free = inbound.target.saturating_sub(window + inbound.held);
        if free == 0 || free < inbound.target / 2 {
            return None;
        }
        if let (Some(since), Some(rtt)) = (inbound.since, self.rtt)
            && now - since <= rtt
        {
            let more = self.allowed_growth(inbound, open, max_streams);
            inbound.target += more;
            self.grown += more;
        }
        inbound.since = Some(now);
        let increment = inbound.target - window - inbound.held;
        inbound.window += increment as i64;
        Some(increment as u32)
    }

    /// Returns the number of bytes by which the target of a stream may grow. Each WINDOW_UPDATE
    /// raises the sum of the stream's window and its unreleased bytes to the target.
    ///
    /// Streams grow from a pool: the memory budget minus the initial windows of all streams that
    /// may be open, but at least half of the budget. Each open stream has an equal share of the
    /// pool. The growth of a stream so far is its target minus its initial window. The result is
    /// the smallest of these numbers:
    ///
    /// * the stream's present target,
    /// * the stream's share of the pool, minus the stream's growth so far,
    /// * the pool, minus the growth of all streams so far,
    /// * the memory budget, minus the targets of all open streams and the unreleased bytes of ended
    ///   streams,
    /// * the largest window that HTTP/2 allows, minus the stream's present target.
    ///
    /// `open` is the number of open streams. `max_streams` is the largest number of streams that
    /// may be open at the same time.
    fn allowed_growth(&self, inbound: &StreamReceiveWindow, open: usize, max_streams: u64) -> u64 {
        let needed = self.initial.saturating_mul(max_streams.max(open as u64)).min(self.total / 2);
        let pool = self.total - needed;
        let share = pool / open.max(1) as u64;
        let has = inbound.target - self.initial;
        // Small streams may have taken more than the half that is kept for them.
        let used = self.grown + self.orphaned + self.initial * open as u64;
        inbound
            .target
            .min(share.saturating_sub(has))
            .min(pool.saturating_sub(self.grown))
            .min(self.total.saturating_sub(used))
            .min((MAX_WINDOW as u64).saturating_sub(inbound.target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u32 = 1024;

    fn used_up(
        intake: &mut ConnectionReceiveWindow,
        stream: &mut StreamReceiveWindow,
        bytes: u32,
        now: MonotonicTimestamp,
    ) -> (Option<u32>, Option<u32>) {
        assert!(stream.consume(bytes) && intake.consume(bytes));
        stream.held += u64::from(bytes);
        intake.release_of_stream(stream, u64::from(bytes), now, None, (1, 100))
    }

    #[test]
    fn window_grows_if_half_used_within_a_roundtrip() {
        let mut intake = ConnectionReceiveWindow::new(4096 * KIB, 64 * KIB);
        assert_eq!(intake.first_increment(), Some(4096 * KIB - INITIAL_WINDOW));
        intake.add_rtt_sample(Duration::from_nanos(300));
        intake.add_rtt_sample(Duration::from_nanos(100));
        intake.add_rtt_sample(Duration::from_nanos(200));
        let mut stream = intake.begin_stream();
        assert_eq!(used_up(&mut intake, &mut stream, 31 * KIB, MonotonicTimestamp(0)), (None, None));
        assert_eq!(
            used_up(&mut intake, &mut stream, KIB, MonotonicTimestamp(0)),
            (Some(32 * KIB), None),
            "nothing to compare with"
        );
        let (now, later) = (MonotonicTimestamp(100), MonotonicTimestamp(201));
        assert_eq!(used_up(&mut intake, &mut stream, 32 * KIB, now), (Some(96 * KIB), None), "doubled");
        assert_eq!(used_up(&mut intake, &mut stream, 64 * KIB, later), (Some(64 * KIB), None), "slow enough");
        for _ in 0..10 {
            let half = (stream.target / 2) as u32;
            used_up(&mut intake, &mut stream, half, later);
        }
        assert_eq!(stream.target, 64 * 1024 + 2048 * 1024, "its share: half of the budget is for others");
        intake.end_stream(&stream);
        assert_eq!(intake.grown, 0);
    }

    #[test]
    fn unreleased_streams_do_not_stop_other_streams() {
        let mut intake = ConnectionReceiveWindow::new(1024 * KIB, 256 * KIB);
        intake.first_increment();
        let mut stuck = [(); 3].map(|()| intake.begin_stream());
        for stream in &mut stuck {
            assert!(stream.consume(256 * KIB) && intake.consume(256 * KIB));
            stream.held += u64::from(256 * KIB);
        }
        assert!(intake.admits_stream(3));
        assert!(!intake.admits_stream(4));
        let mut moving = intake.begin_stream();
        let mut announced = 0;
        for _ in 0..100 {
            announced += used_up(&mut intake, &mut moving, 64 * KIB, MonotonicTimestamp(0)).1.unwrap_or(0);
        }
        assert!(announced > 6_000 * KIB, "three quarters are held, and the fourth stream went on: {announced}");
    }

    #[test]
    fn orphaned_bytes_are_released_once() {
        let mut intake = ConnectionReceiveWindow::new(INITIAL_WINDOW, INITIAL_WINDOW);
        let mut stream = intake.begin_stream();
        assert!(stream.consume(40 * KIB) && intake.consume(40 * KIB));
        stream.held += u64::from(40 * KIB);
        intake.end_stream(&stream);
        assert_eq!(intake.orphaned, u64::from(40 * KIB));
        assert_eq!(intake.release_orphaned(u64::from(30 * KIB)), Some(30 * KIB));
        assert_eq!(intake.release_orphaned(u64::from(30 * KIB)), None, "10 KiB are not worth a frame");
        assert_eq!((intake.orphaned, intake.pending), (0, u64::from(10 * KIB)));
        assert_eq!(intake.release_orphaned(u64::from(30 * KIB)), None);
        assert_eq!(intake.pending, u64::from(10 * KIB));
    }

    #[test]
    fn nearly_complete_body_needs_no_window_update() {
        let mut intake = ConnectionReceiveWindow::new(1024 * KIB, 64 * KIB);
        let mut stream = intake.begin_stream();
        assert!(stream.consume(48 * KIB));
        stream.held = u64::from(48 * KIB);
        let left = Some(u64::from(16 * KIB) - 1);
        assert_eq!(intake.release_of_stream(&mut stream, 48 * 1024, MonotonicTimestamp(0), left, (1, 1)).0, None);
        let left = Some(u64::from(16 * KIB));
        assert_eq!(intake.release_of_stream(&mut stream, 0, MonotonicTimestamp(0), left, (1, 1)).0, Some(48 * KIB));
    }

    #[test]
    fn orphaned_bytes_leave_less_room_to_grow() {
        let budget = ConnectionReceiveWindow {
            grown: u64::from(300 * KIB),
            orphaned: u64::from(600 * KIB),
            ..ConnectionReceiveWindow::new(1000 * KIB, 64 * KIB)
        };
        let stream = budget.begin_stream();
        assert_eq!(budget.allowed_growth(&stream, 1, 1), u64::from(36 * KIB));
    }

    #[test]
    fn initial_window_is_raised_within_the_budget() {
        let mut intake = ConnectionReceiveWindow::new(256 * KIB, 64 * KIB);
        assert_eq!(intake.raise_initial_window(64 * KIB, 1), None, "it is not larger");
        assert_eq!(intake.raise_initial_window(64 * KIB - 1, 1), None);
        assert_eq!(intake.raise_initial_window(128 * KIB + 1, 1), None, "two streams do not fit");
        assert_eq!(intake.raise_initial_window(128 * KIB, 1), Some(64 * KIB));
        assert_eq!((intake.initial, intake.begin_stream().window), (131_072, 131_072));
    }

    #[test]
    fn frame_may_use_the_whole_window() {
        let mut intake = ConnectionReceiveWindow::new(INITIAL_WINDOW, INITIAL_WINDOW);
        let mut stream = intake.begin_stream();
        assert!(stream.consume(INITIAL_WINDOW) && intake.consume(INITIAL_WINDOW));
        assert!(!stream.consume(1) && !intake.consume(1));
    }

    #[test]
    fn small_connection_updates_wait_for_four_kibibytes() {
        let released = |window, bytes| {
            let mut intake = ConnectionReceiveWindow {
                window,
                pending: 0,
                ..ConnectionReceiveWindow::new(INITIAL_WINDOW, INITIAL_WINDOW)
            };
            intake.release_without_stream(bytes)
        };
        assert_eq!([released(4096, 4095), released(4096, 4096)], [None, Some(4096)]);
        assert_eq!([released(4097, 4096), released(1, 4095), released(1, 4096)], [None, None, Some(4096)]);
        assert_eq!([released(0, 1), released(-5, 1), released(0, 0)], [Some(1), Some(1), None]);
    }

    #[test]
    fn stream_update_waits_for_half_of_the_target() {
        let released = |bytes: u32, held| {
            let mut intake = ConnectionReceiveWindow::new(1024 * KIB, 64 * KIB);
            let mut stream = intake.begin_stream();
            assert!(stream.consume(bytes));
            stream.held = u64::from(bytes);
            let update =
                intake.release_of_stream(&mut stream, u64::from(bytes) - held, MonotonicTimestamp(7), None, (1, 1)).0;
            assert_eq!(stream.held, held);
            update
        };
        assert_eq!([released(32 * KIB - 1, 0), released(32 * KIB, 0)], [None, Some(32 * KIB)]);
        assert_eq!([released(40 * KIB, 8192), released(40 * KIB, 8193)], [Some(32 * KIB), None]);
    }

    #[test]
    fn stream_window_grows_by_its_share_at_most() {
        let growth = |grown: u32, target: u32, open, max_streams| {
            let intake = ConnectionReceiveWindow {
                grown: u64::from(grown * KIB),
                ..ConnectionReceiveWindow::new(1024 * KIB, 64 * KIB)
            };
            let stream = StreamReceiveWindow { target: u64::from(target * KIB), ..intake.begin_stream() };
            intake.allowed_growth(&stream, open, max_streams) / u64::from(KIB)
        };
        assert_eq!(growth(0, 64, 1, 1), 64, "at most the target");
        assert_eq!(growth(0, 512, 1, 1), 512, "the pool has 960 KiB, and 448 are used");
        assert_eq!(growth(0, 512, 2, 2), 0, "a stream's share is 448 KiB");
        assert_eq!(growth(0, 256, 2, 2), 256);
        assert_eq!(growth(0, 128, 4, 100), 64, "half of the budget is kept");
        assert_eq!(growth(800, 512, 1, 4), 0);
        assert_eq!(growth(700, 64, 1, 4), 64);
        assert_eq!(growth(740, 64, 1, 4), 28);
    }
}
