//! Counts frames that make no progress.
//!
//! Any frame costs some time, and an acknowledgement costs memory too, so a peer could keep a
//! client busy for ever with allowed frames. The rule for all kinds is: in any ten seconds, no more
//! frames of a kind than its limit, plus one for each frame that made progress (a head, payload, a
//! body frame that we sent). A peer that answers each frame of an upload with two WINDOW_UPDATEs
//! never gets near the limit, and a hostile peer's cost is a constant rate.
//!
//! Rejected: a limit for the whole connection, which ends every long-lived connection some day, and
//! one that ignores progress, which ends busy ones.

use super::{FloodKind, H2Error};
use crate::time::Timestamp;
use core::time::Duration;

const PERIOD: Duration = Duration::from_secs(10);

/// Limits on HTTP/2 frames without progress: for each kind, the number of frames that may arrive in
/// ten seconds.
///
/// Such frames cost no memory, except those that [`FloodLimits::unread`] counts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FloodLimits {
    /// The number of PING frames. Default 1,000. Hazard: some servers send a PING to measure each
    /// round trip.
    pub ping: u32,
    /// The number of SETTINGS frames, acknowledgements included. Default 100.
    pub settings: u32,
    /// The number of DATA frames that have no payload and do not end the stream. Default 1,000.
    pub empty_data: u32,
    /// The number of WINDOW_UPDATE frames. Default 10,000; four more are allowed for each frame of
    /// a request's body that was sent.
    pub window_update: u32,
    /// The number of PRIORITY frames. Default 1,000.
    pub priority: u32,
    /// The number of RST_STREAM frames on streams that had ended. Default 1,000. A reset of an open
    /// stream is not counted, because it ends a request.
    pub reset: u32,
    /// The number of GOAWAY frames. Default 16.
    pub go_away: u32,
    /// The number of frames of unknown types. Default 1,000.
    pub unknown: u32,
    /// The number of CONTINUATION frames of one header block, however long the block takes to
    /// arrive. Default 64: a head of 300 KiB needs 19.
    pub continuation: u32,
    /// The number of PING and SETTINGS frames whose acknowledgements are still unsent because the
    /// peer does not read, whatever their age. Default 2,000, about 34 KB.
    pub unread: u32,
}

impl Default for FloodLimits {
    fn default() -> FloodLimits {
        FloodLimits {
            ping: 1_000,
            settings: 100,
            empty_data: 1_000,
            window_update: 10_000,
            priority: 1_000,
            reset: 1_000,
            go_away: 16,
            unknown: 1_000,
            continuation: 64,
            unread: 2_000,
        }
    }
}

impl FloodLimits {
    fn limit(&self, of: FloodKind) -> u32 {
        match of {
            FloodKind::Ping => self.ping,
            FloodKind::Settings => self.settings,
            FloodKind::EmptyData => self.empty_data,
            FloodKind::WindowUpdate => self.window_update,
            FloodKind::Priority => self.priority,
            FloodKind::Reset => self.reset,
            FloodKind::GoAway => self.go_away,
            FloodKind::Unknown => self.unknown,
            FloodKind::Continuation => self.continuation,
            FloodKind::Unread => self.unread,
        }
    }
}

/// The counts of useless frames, by kind, in the current period of ten seconds.
#[derive(Debug)]
pub(crate) struct FloodCounts {
    limits: FloodLimits,
    since: Timestamp,
    useful: u32,
    counts: [u32; FloodKind::Unread as usize + 1],
}

impl FloodCounts {
    pub(crate) fn new(limits: FloodLimits) -> FloodCounts {
        FloodCounts { limits, since: Timestamp(0), useful: 0, counts: [0; FloodKind::Unread as usize + 1] }
    }

    /// Records this many frames that made progress, which lowers the counts of useless frames.
    pub(crate) fn useful(&mut self, frames: u32) {
        self.useful = self.useful.saturating_add(frames);
    }

    /// Counts a frame of this kind that made no progress. Fails if the kind's limit is exceeded.
    pub(crate) fn count(&mut self, now: Timestamp, of: FloodKind) -> Result<(), H2Error> {
        if now - self.since >= PERIOD {
            *self = FloodCounts { since: now, ..FloodCounts::new(self.limits) };
        }
        self.counts[of as usize] += 1;
        self.check(of, self.counts[of as usize], self.useful)
    }

    /// Checks a count of useless frames that the caller keeps. Unlike the counts of
    /// [`FloodCounts::count`], it does not decrease with time or progress.
    pub(crate) fn check_absolute(&self, of: FloodKind, count: u32) -> Result<(), H2Error> {
        self.check(of, count, 0)
    }

    fn check(&self, of: FloodKind, count: u32, useful: u32) -> Result<(), H2Error> {
        let limit = self.limits.limit(of);
        if count > limit.saturating_add(useful) { Err(H2Error::Flood { of, limit }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_and_time_reset_flood_counts() {
        let mut tally = FloodCounts::new(FloodLimits { ping: 2, ..FloodLimits::default() });
        let flood = Err(H2Error::Flood { of: FloodKind::Ping, limit: 2 });
        assert_eq!([0; 3].map(|_| tally.count(Timestamp(5), FloodKind::Ping)), [Ok(()), Ok(()), flood]);
        tally.useful(2);
        assert_eq!([0; 2].map(|_| tally.count(Timestamp(6), FloodKind::Ping)), [Ok(()), flood]);
        assert_eq!(tally.count(Timestamp(6), FloodKind::Settings), Ok(()), "each kind by itself");
        let later = Timestamp(5) + PERIOD;
        assert_eq!([0; 3].map(|_| tally.count(later, FloodKind::Ping)), [Ok(()), Ok(()), flood]);
    }
}
