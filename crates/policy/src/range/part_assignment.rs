//! Assigns the parts of a body to connections: present bytes, bytes in flight, and the next part.
//!
//! ```text
//!  in order    out        first stream ┊ part      part      part   ┊ out + memory
//!  (a pipe)    ├───────────────────────┊─────────┬─────────┬────────┊──────────
//!
//!  anywhere    first stream ─────────────▶ ┊ ... ◀── part   part   part   total
//!  (a file)    ├───────────────────────────┊─────────────┬──────┬──────┬──────┤
//! ```
//!
//! The first stream (the request without a range) owns the rest of the body until a part is claimed
//! from it. Its claim then ends where the first part begins. For a pipe, the parts follow the first
//! stream, no further ahead of the output than memory allows. For a file, the parts are claimed
//! from the end of the body, so that the first stream continues undisturbed until it meets them.
//! Each of the last parts is half of the first stream's remaining claim, so that all streams end
//! together.
//!
//! ```
//! use haul_policy::range::byte_range_set::ByteRangeSet;
//! use haul_policy::range::part_assignment::{PartFetchOrder, PartTracker};
//! let mut window = PartTracker::new(1000, ByteRangeSet::new(), PartFetchOrder::Anywhere);
//! let first = window.claim_for_first_stream(100);
//! let part = window.claim_part(200, 10).unwrap();
//! assert_eq!((part.span.clone(), window.claim_end(first)), (800..1000, Some(800)));
//! window.on_received(part.id, 1000);
//! window.release_claim(part.id);
//! assert_eq!(window.missing_bytes(), 700);
//! ```

use core::ops::Range;

use super::byte_range_set::ByteRangeSet;

/// The order in which connections may fetch the parts of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartFetchOrder {
    /// In ascending order, for an output such as a pipe. Each part ends at most `ahead` bytes after
    /// the bytes already written; a longer part is cut there.
    InOrder {
        /// The number of received bytes that may wait in memory for the output.
        ahead: u64,
    },
    /// In any order, for an output such as a file.
    Anywhere,
}

/// A part of a body that a connection has claimed, to fetch it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedPart {
    /// The id by which the methods of [`PartTracker`] find this claim.
    pub id: usize,
    /// The range of the part in the body, in bytes.
    pub span: Range<u64>,
}

/// The record of a body that several connections fetch: the bytes that are present, and the range
/// of missing bytes that each connection has claimed to fetch. The first stream is the response to
/// the request without a range, with which the download began. Other connections request parts.
#[derive(Clone, Debug)]
pub struct PartTracker {
    total: u64,
    order: PartFetchOrder,
    out: u64,
    done: ByteRangeSet,
    claims: Vec<PartClaim>,
    next_id: usize,
}

/// The claim of a connection to fetch the bytes from `at` (the next byte to arrive) to `end`.
#[derive(Clone, Debug)]
struct PartClaim {
    id: usize,
    at: u64,
    end: u64,
    /// True for the claim of the first stream, the response to the request without a range. Only
    /// the `end` of this claim can be moved: back if another connection claims bytes before the
    /// end, forward if the next bytes become unclaimed.
    is_open: bool,
}

impl PartTracker {
    /// Creates the tracker of a body of `total` bytes. `done` are the bytes that are already
    /// present.
    pub fn new(total: u64, done: ByteRangeSet, order: PartFetchOrder) -> PartTracker {
        PartTracker { total, order, out: 0, done, claims: Vec::new(), next_id: 0 }
    }

    /// Makes the claim of the first stream, the response to the request without a range. The claim
    /// begins at `at` and ends at the next byte that is present or claimed, or at the end of the
    /// body. The bytes before `at` count as present. Returns the claim's id.
    pub fn claim_for_first_stream(&mut self, at: u64) -> usize {
        self.done.insert(self.out..at.max(self.out));
        self.out = self.out.max(if matches!(self.order, PartFetchOrder::InOrder { .. }) { at } else { self.out });
        let end = self.end_of_free_bytes(at, None);
        self.push_claim(at, end, true)
    }

    fn push_claim(&mut self, at: u64, end: u64, is_open: bool) -> usize {
        let id = self.next_id;
        self.next_id += 1;
        self.claims.push(PartClaim { id, at, end, is_open });
        id
    }

    /// Returns the end of the missing and unclaimed bytes that start at `at`. This is the next
    /// present byte, the start of the next claim, or the end of the body. The claim with the id
    /// `own` is ignored.
    fn end_of_free_bytes(&self, at: u64, own: Option<usize>) -> u64 {
        // A part that was finished while another waited at its start may have been joined with what
        // lies before it.
        let there = self.done.iter().filter(|span| span.end > at).map(|span| span.start.max(at)).min();
        let others = self.claims.iter().filter(|claim| Some(claim.id) != own && claim.end > claim.at);
        let claimed = others.map(|claim| claim.at).filter(|&start| start >= at).min();
        [there, claimed].into_iter().flatten().min().unwrap_or(self.total)
    }

    /// Moves the end of the first stream's claim `id` back to the offset `at`. Other connections
    /// may then claim the bytes from `at` on.
    pub fn shorten_first_claim(&mut self, id: usize, at: u64) {
        if let Some(claim) = self.claims.iter_mut().find(|claim| claim.id == id && claim.is_open) {
            claim.end = claim.end.min(at.max(claim.at));
        }
    }

    /// Extends the first stream's claim `id` over the missing bytes after it, up to the next byte
    /// that is present or claimed by another connection, or to the end of the body.
    pub fn extend_claim(&mut self, id: usize) {
        let Some(index) = self.claims.iter().position(|claim| claim.id == id && claim.is_open) else { return };
        let end = self.end_of_free_bytes(self.claims[index].at, Some(id));
        self.claims[index].end = end;
    }

    /// Claims a part of about `size` bytes for another connection. Returns `None` if nothing can be
    /// claimed. If all missing bytes are claimed already, the part is taken from the end of the
    /// first stream's claim, but only if the part has at least `least` bytes.
    pub fn claim_part(&mut self, size: u64, least: u64) -> Option<ClaimedPart> {
        let (size, least) = (size.max(1), least.max(1));
        let span = match self.order {
            PartFetchOrder::InOrder { ahead } => {
                let limit = self.out.saturating_add(ahead).min(self.total);
                let free = self.unclaimed_gaps().next()?;
                // A remainder that is not worth a request of its own is included.
                let end = if free.end - free.start < size + size / 2 { free.end } else { free.start + size };
                free.start..end.min(limit)
            }
            PartFetchOrder::Anywhere => match self.unclaimed_gaps().last() {
                Some(free) if free.end - free.start < size + size / 2 => free,
                Some(free) => free.end - size..free.end,
                None => self.take_from_first(size, least)?,
            },
        };
        let is_enough = span.end > span.start;
        is_enough.then(|| ClaimedPart { id: self.push_claim(span.start, span.end, false), span })
    }

    /// Cuts a part off the end of the first stream's claim: at most `size` bytes, and at most half
    /// of the claim. Returns `None` if the part would have less than `least` bytes.
    fn take_from_first(&mut self, size: u64, least: u64) -> Option<Range<u64>> {
        let first = self.claims.iter_mut().find(|claim| claim.is_open)?;
        let size = size.min((first.end - first.at) / 2);
        if size < least {
            return None;
        }
        let end = first.end;
        first.end -= size;
        Some(end - size..end)
    }

    /// Iterates over the ranges of the body that are neither present nor claimed.
    fn unclaimed_gaps(&self) -> impl Iterator<Item = Range<u64>> {
        let mut taken = self.done.clone();
        for claim in &self.claims {
            taken.insert(claim.at..claim.end);
        }
        let gaps: Vec<_> = taken.gaps(self.total).collect();
        gaps.into_iter()
    }

    /// Records that all bytes of the claim with this id before the offset `to` have been received.
    pub fn on_received(&mut self, id: usize, to: u64) {
        if let Some(claim) = self.claims.iter_mut().find(|claim| claim.id == id) {
            let to = to.min(claim.end).max(claim.at);
            self.done.insert(claim.at..to);
            claim.at = to;
        }
    }

    /// Drops the claim with this id. Its missing bytes can be claimed again.
    pub fn release_claim(&mut self, id: usize) {
        self.claims.retain(|claim| claim.id != id);
    }

    /// Returns the offset at which the claim with this id ends; `None` if there is no such claim.
    pub fn claim_end(&self, id: usize) -> Option<u64> {
        self.claims.iter().find(|claim| claim.id == id).map(|claim| claim.end)
    }

    /// Records that all bytes before the offset `to` have been written to the output.
    pub fn on_output(&mut self, to: u64) {
        self.out = self.out.max(to);
    }

    /// Returns the number of bytes of the body that are missing.
    pub fn missing_bytes(&self) -> u64 {
        self.total - self.done.byte_count()
    }

    /// Returns the number of bytes that are left for other connections to claim: the unclaimed
    /// bytes, and the missing bytes of the first stream's claim.
    pub fn bytes_left_to_claim(&self) -> u64 {
        let of_first = self.claims.iter().filter(|claim| claim.is_open).map(|claim| claim.end - claim.at);
        self.unclaimed_gaps().map(|free| free.end - free.start).chain(of_first).sum()
    }

    /// Returns the offset of the first missing byte; the total length if no byte is missing.
    pub fn first_missing_offset(&self) -> u64 {
        self.done.first_gap(0, self.total).map_or(self.total, |gap| gap.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_for_a_pipe_stay_within_memory_limit() {
        let mut window = PartTracker::new(10_000, ByteRangeSet::new(), PartFetchOrder::InOrder { ahead: 1000 });
        let first = window.claim_for_first_stream(500);
        assert_eq!(window.claim_part(300, 1), None, "all of it is the first stream's");
        window.shorten_first_claim(first, 700);
        let parts: Vec<_> = std::iter::from_fn(|| window.claim_part(300, 1)).map(|part| part.span).collect();
        assert_eq!(parts, [700..1000, 1000..1300, 1300..1500]);
        window.on_output(600);
        assert_eq!(window.claim_part(300, 1).unwrap().span, 1500..1600);
    }

    #[test]
    fn released_parts_are_claimed_first() {
        let mut window = PartTracker::new(10_000, ByteRangeSet::new(), PartFetchOrder::InOrder { ahead: 5000 });
        let first = window.claim_for_first_stream(0);
        window.shorten_first_claim(first, 1000);
        let part = window.claim_part(1000, 1).unwrap();
        window.claim_part(1000, 1).unwrap();
        window.on_received(part.id, 1300);
        window.release_claim(part.id);
        assert_eq!(window.claim_part(1000, 1).unwrap().span, 1300..2000);
    }

    #[test]
    fn first_stream_claim_extends_over_unclaimed_bytes() {
        let mut window = PartTracker::new(10_000, ByteRangeSet::new(), PartFetchOrder::InOrder { ahead: 5000 });
        let first = window.claim_for_first_stream(0);
        window.shorten_first_claim(first, 1000);
        let part = window.claim_part(1000, 1).unwrap();
        window.extend_claim(first);
        assert_eq!(window.claim_end(first), Some(1000));
        window.release_claim(part.id);
        window.extend_claim(first);
        assert_eq!(window.claim_end(first), Some(10_000));
    }

    #[test]
    fn bytes_left_to_claim_exclude_claimed_parts() {
        let mut window = PartTracker::new(10_000, ByteRangeSet::new(), PartFetchOrder::InOrder { ahead: 5000 });
        let first = window.claim_for_first_stream(500);
        assert_eq!(window.bytes_left_to_claim(), 9500);
        window.shorten_first_claim(first, 700);
        window.claim_part(300, 1).unwrap();
        assert_eq!((window.bytes_left_to_claim(), window.missing_bytes()), (200 + 9000, 9500));
        window.release_claim(first);
        assert_eq!(window.bytes_left_to_claim(), 200 + 9000, "what it left is anybody's");
    }

    #[test]
    fn file_parts_halve_the_first_streams_claim() {
        let mut window = PartTracker::new(1000, ByteRangeSet::new(), PartFetchOrder::Anywhere);
        let first = window.claim_for_first_stream(0);
        let sizes: Vec<_> =
            std::iter::from_fn(|| window.claim_part(400, 20)).map(|part| part.span.end - part.span.start).collect();
        assert_eq!(sizes, [400, 300, 150, 75, 37]);
        assert_eq!(window.claim_end(first), Some(38));
    }

    #[test]
    fn missing_ranges_of_earlier_runs_are_claimed() {
        let mut done = ByteRangeSet::new();
        done.insert(0..100);
        done.insert(500..800);
        let mut window = PartTracker::new(1000, done, PartFetchOrder::Anywhere);
        let first = window.claim_for_first_stream(100);
        assert_eq!(window.claim_end(first), Some(500));
        assert_eq!(window.claim_part(1000, 10).unwrap().span, 800..1000);
        assert_eq!(window.claim_part(1000, 10).unwrap().span, 300..500);
        assert_eq!((window.missing_bytes(), window.first_missing_offset()), (600, 100));
    }

    proptest::proptest! {
        /// Checks that each byte is claimed only once and that the body becomes complete, whichever
        /// claims are released.
        #[test]
        fn every_byte_of_the_body_is_fetched_once(
            steps in proptest::collection::vec((0_u8..6, 0_u64..400), 1..200),
            in_order: bool,
        ) {
            let total = 5000;
            let order = if in_order { PartFetchOrder::InOrder { ahead: 1500 } } else { PartFetchOrder::Anywhere };
            let mut window = PartTracker::new(total, ByteRangeSet::new(), order);
            let first = window.claim_for_first_stream(0);
            let mut live = vec![first];
            let mut got = ByteRangeSet::new();
            for (step, number) in steps {
                match step {
                    0 => window.shorten_first_claim(first, number * 10),
                    1 => window.extend_claim(first),
                    2 => live.extend(window.claim_part(number, 10).map(|part| part.id)),
                    3 if live.len() > 1 => window.release_claim(live.remove(1 + number as usize % (live.len() - 1))),
                    _ => {
                        let id = live[number as usize % live.len()];
                        let claim = window.claims.iter().find(|claim| claim.id == id).unwrap().clone();
                        let to = claim.end.min(claim.at + number);
                        proptest::prop_assert!(got.gaps(total).any(|gap| gap.start <= claim.at && to <= gap.end) || to == claim.at);
                        got.insert(claim.at..to);
                        window.on_received(id, to);
                        window.on_output(window.first_missing_offset());
                    }
                }
            }
            for id in live {
                window.release_claim(id);
            }
            while let Some(part) = window.claim_part(700, 1) {
                proptest::prop_assert!(!got.contains_range(part.span.clone()));
                got.insert(part.span.clone());
                window.on_received(part.id, part.span.end);
                window.release_claim(part.id);
                window.on_output(window.first_missing_offset());
            }
            proptest::prop_assert_eq!((got.byte_count(), window.missing_bytes()), (total, 0));
        }
    }

    #[test]
    fn only_the_first_stream_extends_its_claim() {
        let mut window = PartTracker::new(10_000, ByteRangeSet::new(), PartFetchOrder::InOrder { ahead: 5000 });
        let first = window.claim_for_first_stream(0);
        window.shorten_first_claim(first, 1000);
        let part = window.claim_part(1000, 1).unwrap();
        window.release_claim(first);
        let second = window.claim_for_first_stream(0);
        window.shorten_first_claim(second, 500);
        window.extend_claim(part.id);
        assert_eq!((window.claim_end(second), window.claim_end(part.id)), (Some(500), Some(2000)));
    }

    #[test]
    fn remainder_below_half_a_part_is_included() {
        for (order, whole, cut) in [
            (PartFetchOrder::InOrder { ahead: 9000 }, 1000..1449, 1000..1300),
            (PartFetchOrder::Anywhere, 1000..1449, 1150..1450),
        ] {
            for (total, expected) in [(1449, whole), (1450, cut)] {
                let mut window = PartTracker::new(total, ByteRangeSet::new(), order);
                let first = window.claim_for_first_stream(0);
                window.shorten_first_claim(first, 1000);
                assert_eq!(window.claim_part(300, 1).unwrap().span, expected, "{order:?}");
            }
        }
    }

    #[test]
    fn only_the_first_claim_is_shortened() {
        let mut window = PartTracker::new(3000, ByteRangeSet::new(), PartFetchOrder::Anywhere);
        let first = window.claim_for_first_stream(0);
        let part = window.claim_part(1000, 1).unwrap();
        window.shorten_first_claim(part.id, 2500);
        window.shorten_first_claim(part.id, 1800);
        assert_eq!((window.claim_end(first), window.claim_end(part.id)), (Some(2000), Some(3000)));
        window.shorten_first_claim(first, 1500);
        assert_eq!((window.claim_end(first), window.claim_end(part.id)), (Some(1500), Some(3000)));
    }

    #[test]
    fn part_of_exactly_the_least_size_is_claimed() {
        for (least, expected) in [(100, Some(900..1000)), (101, None)] {
            let mut window = PartTracker::new(1000, ByteRangeSet::new(), PartFetchOrder::Anywhere);
            window.claim_for_first_stream(0);
            assert_eq!(window.claim_part(100, least).map(|part| part.span), expected);
        }
    }
}
