//! Counts frames that make no progress.
//!
//! Any frame costs some time, and an acknowledgement costs memory too, so a peer could keep a
//! client busy for ever with allowed frames. Each kind of useless frames has a limit. In any ten
//! seconds, the number of frames of a kind must not exceed its limit plus the number of frames that
//! made progress: a head, payload, or a body frame that the client sent (which counts as four in
//! HTTP/2). In HTTP/2, a peer that answers each frame of an upload with two WINDOW_UPDATEs never
//! gets near the limit, and a hostile peer's cost is a constant rate.
//!
//! Rejected: a limit for the whole lifetime of a connection, since it would end every long-lived
//! connection some day. Rejected: a limit that ignores progress, since it would end busy
//! connections.

use crate::time::MonotonicTimestamp;
use core::marker::PhantomData;
use core::time::Duration;

const COUNTING_PERIOD: Duration = Duration::from_secs(10);

/// A kind of useless frame. Such frames are allowed and cost the receiver work, but make no
/// progress.
pub(crate) trait Flood: Copy {
    type Error;

    /// Returns the index of this kind in an array with one element for each kind.
    fn index(self) -> usize;

    /// Returns the error for a peer that sent more than `limit` useless frames of this kind.
    fn exceeded(self, limit: u32) -> Self::Error;
}

/// The counts of useless frames, by kind, in the current period of ten seconds.
#[derive(Debug)]
pub(crate) struct FloodCounts<K, const KINDS: usize> {
    limits: [u32; KINDS],
    since: MonotonicTimestamp,
    useful: u32,
    counts: [u32; KINDS],
    kind: PhantomData<K>,
}

impl<K: Flood, const KINDS: usize> FloodCounts<K, KINDS> {
    /// Creates the counts. `limits` contains, at the index of each kind, the number of frames
    /// allowed in ten seconds.
    pub(crate) fn new(limits: [u32; KINDS]) -> FloodCounts<K, KINDS> {
        FloodCounts { limits, since: MonotonicTimestamp(0), useful: 0, counts: [0; KINDS], kind: PhantomData }
    }

    /// Records frames that made progress. For each of them, one more useless frame of every kind is
    /// allowed in the current ten seconds.
    pub(crate) fn count_useful(&mut self, frames: u32) {
        self.useful = self.useful.saturating_add(frames);
    }

    /// Counts a frame of this kind that made no progress. Fails if the kind's limit is exceeded.
    pub(crate) fn count(&mut self, now: MonotonicTimestamp, kind: K) -> Result<(), K::Error> {
        self.count_many(now, kind, 1)
    }

    /// Counts `n` frames of this kind that made no progress. Fails if the kind's limit is exceeded.
    pub(crate) fn count_many(&mut self, now: MonotonicTimestamp, kind: K, n: u32) -> Result<(), K::Error> {
        if now - self.since >= COUNTING_PERIOD {
            *self = FloodCounts { since: now, ..FloodCounts::new(self.limits) };
        }
        let count = &mut self.counts[kind.index()];
        *count = count.saturating_add(n);
        let count = *count;
        self.check(kind, count, self.useful)
    }

    /// Fails if `count`, a number of useless frames that the caller has counted itself, exceeds the
    /// limit of `kind`. Unlike in [`FloodCounts::count`], the limit does not apply to a period of
    /// ten seconds, and frames that made progress do not raise it.
    pub(crate) fn check_absolute(&self, kind: K, count: u32) -> Result<(), K::Error> {
        self.check(kind, count, 0)
    }

    fn check(&self, kind: K, count: u32, useful: u32) -> Result<(), K::Error> {
        let limit = self.limits[kind.index()];
        if count > limit.saturating_add(useful) { Err(kind.exceeded(limit)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::{FloodKind, FloodLimits, H2Error};

    #[test]
    fn progress_and_time_reset_flood_counts() {
        let mut tally = FloodCounts::<FloodKind, 10>::new(FloodLimits { ping: 2, ..FloodLimits::default() }.by_kind());
        let flood = Err(H2Error::Flood { kind: FloodKind::Ping, limit: 2 });
        assert_eq!([0; 3].map(|_| tally.count(MonotonicTimestamp(5), FloodKind::Ping)), [Ok(()), Ok(()), flood]);
        tally.count_useful(2);
        assert_eq!([0; 2].map(|_| tally.count(MonotonicTimestamp(6), FloodKind::Ping)), [Ok(()), flood]);
        assert_eq!(tally.count(MonotonicTimestamp(6), FloodKind::Settings), Ok(()), "each kind by itself");
        let later = MonotonicTimestamp(5) + COUNTING_PERIOD;
        assert_eq!([0; 3].map(|_| tally.count(later, FloodKind::Ping)), [Ok(()), Ok(()), flood]);
    }
}
