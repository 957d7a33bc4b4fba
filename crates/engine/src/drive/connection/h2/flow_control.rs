//! Flow control: sends window updates to the peer, and sets the socket's low-water mark.

use std::time::Instant;

use haul_proto::h2::RequestId;

use super::super::pause_before_next_read::set_low_water_mark;
use super::super::{ConnectionWaker, FinishedTransfers};
use super::H2Connection;
use crate::drive::rcvlowat;
use crate::time_conversions;
use crate::transfer::ReceiveCredit;

/// The number of remaining body bytes above which a stream is bulky. Bulky streams raise the
/// low-water mark of the socket (`SO_RCVLOWAT`).
const MIN_BULKY_STREAM: u64 = 1 << 20;
const MAX_BULKY_STREAMS: usize = rcvlowat::MARK_FOR_MANY_STREAMS / LOW_WATER_PER_STREAM;
const LOW_WATER_PER_STREAM: usize = 64 << 10;

impl H2Connection {
    /// Allows the peer to send more (by window updates) on the streams that received body bytes in
    /// the last read of the socket. Leaves out streams whose sinks have no room for more.
    pub(super) fn release_received(
        &mut self,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) {
        let mut touched = std::mem::take(&mut self.touched);
        for id in touched.drain(..) {
            self.release_window(id, now, waker, finished);
        }
        self.touched = touched;
    }

    /// Allows the peer to send more on the streams whose sinks had no room before and have room
    /// now.
    pub(super) fn release_stalled(
        &mut self,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) {
        if self.stalled.is_empty() {
            return;
        }
        self.pacing.resumes_at = None;
        for id in std::mem::take(&mut self.stalled) {
            self.release_window(id, now, waker, finished);
        }
    }

    fn release_window(&mut self, id: u64, now: Instant, waker: ConnectionWaker<'_>, finished: &mut FinishedTransfers) {
        let Some(active) = self.active.get_mut(&id) else { return };
        active.is_touched = false;
        match active.transfer.credit(now, waker.wake, waker.token) {
            ReceiveCredit::Bytes(_) => {
                let bytes = std::mem::take(&mut active.unreleased);
                self.conn.release(time_conversions::to_monotonic_timestamp(now), RequestId(id), bytes);
            }
            _ if active.transfer.has_all_wanted_bytes() => self.cancel_rest(id, now, finished),
            stopped => {
                if let ReceiveCredit::Until(at) = stopped {
                    self.pacing.resumes_at = Some(self.pacing.resumes_at.map_or(at, |other| other.min(at)));
                }
                if !self.stalled.contains(&id) {
                    self.stalled.push(id);
                }
            }
        }
    }

    /// Records that `bytes` bytes were received, and sets the socket's low-water mark
    /// (`SO_RCVLOWAT`) so that large bodies seldom wake the reader.
    ///
    /// A stream is bulky if more than [`MIN_BULKY_STREAM`] bytes are still to come. With bulky
    /// streams, the mark is at most [`LOW_WATER_PER_STREAM`] for each of them. So the peer can send
    /// enough bytes to reach the mark without a window update: at least half a flow-control window
    /// on each bulky stream, which is more.
    pub(super) fn on_received(&mut self, bytes: u64, now: Instant) {
        let left = self.active.values().map(|active| active.left).fold(0, u64::saturating_add);
        let bulky =
            self.active.values().filter(|active| active.left > MIN_BULKY_STREAM).take(MAX_BULKY_STREAMS).count();
        let left = if self.stalled.is_empty() { left } else { 0 };
        let (raised_mark, most) = if bulky == 0 {
            (rcvlowat::MARK_FOR_SMALL_BODIES, rcvlowat::MARK_FOR_SMALL_BODIES)
        } else {
            (rcvlowat::MARK_FOR_MANY_STREAMS, bulky * LOW_WATER_PER_STREAM)
        };
        let changed = self.pacing.low_water.set_raised_mark(raised_mark);
        if let Some(mark) = self.pacing.low_water.on_received(bytes, left, now).or(changed) {
            set_low_water_mark(&self.stream, mark.min(most));
        }
    }
}
