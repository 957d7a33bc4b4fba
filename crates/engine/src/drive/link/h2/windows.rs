//! Returns credit to the peer's windows, and decides how often the socket wakes us.

use std::time::Instant;

use haul_proto::h2::RequestId;

use super::super::pace::set_mark;
use super::super::{Finished, Waker};
use super::Link;
use crate::clock;
use crate::drive::bulk;
use crate::transfer::Credit;

/// A stream with this much to come raises the mark; at most this many do, each by this much.
const BULKY: u64 = 1 << 20;
const MOST_BULKY: usize = bulk::SHARED / MARK_A_STREAM;
const MARK_A_STREAM: usize = 64 << 10;

impl Link {
    /// Returns the bytes of this round to the windows, as far as the sinks have credit.
    pub(super) fn settle(&mut self, now: Instant, waker: Waker<'_>, finished: &mut Finished) {
        let mut touched = std::mem::take(&mut self.touched);
        for id in touched.drain(..) {
            self.release(id, now, waker, finished);
        }
        self.touched = touched;
    }

    /// Releases the bytes of streams whose sinks had no room before.
    pub(super) fn release_held(&mut self, now: Instant, waker: Waker<'_>, finished: &mut Finished) {
        if self.held.is_empty() {
            return;
        }
        self.pace.resumes_at = None;
        for id in std::mem::take(&mut self.held) {
            self.release(id, now, waker, finished);
        }
    }

    fn release(&mut self, id: u64, now: Instant, waker: Waker<'_>, finished: &mut Finished) {
        let Some(active) = self.active.get_mut(&id) else { return };
        active.is_touched = false;
        match active.transfer.credit(now, waker.wake, waker.token) {
            Credit::Bytes(_) => {
                let bytes = std::mem::take(&mut active.unreleased);
                self.conn.release(clock::time(now), RequestId(id), bytes);
            }
            _ if active.transfer.is_satisfied() => self.leave(id, now, finished),
            stopped => {
                if let Credit::Until(at) = stopped {
                    self.pace.resumes_at = Some(self.pace.resumes_at.map_or(at, |other| other.min(at)));
                }
                if !self.held.contains(&id) {
                    self.held.push(id);
                }
            }
        }
    }

    /// Notes that `bytes` were received, and makes the socket wake the reader rarely for bulk
    /// bodies. The mark stays below the number of bytes that the peer may send without a window
    /// update: at least half a window of each stream.
    pub(super) fn came(&mut self, bytes: u64, now: Instant) {
        let left = self.active.values().map(|active| active.left).fold(0, u64::saturating_add);
        let bulky = self.active.values().filter(|active| active.left > BULKY).take(MOST_BULKY).count();
        let left = if self.held.is_empty() { left } else { 0 };
        let (piece, most) = if bulky == 0 { (bulk::SMALL, bulk::SMALL) } else { (bulk::SHARED, bulky * MARK_A_STREAM) };
        let changed = self.pace.bulk.wait_for(piece);
        if let Some(mark) = self.pace.bulk.came(bytes, left, now).or(changed) {
            set_mark(&self.stream, mark.min(most));
        }
    }
}
