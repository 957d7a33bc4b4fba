//! Sets of present and missing bytes of a body.
//!
//! ```
//! use haul_policy::range::ByteRangeSet;
//!
//! let mut there = ByteRangeSet::new();
//! there.insert(0..100);
//! there.insert(300..400);
//! there.insert(100..150); // joins the first
//! assert_eq!(there.iter().collect::<Vec<_>>(), [0..150, 300..400]);
//! assert_eq!(there.gaps(500).collect::<Vec<_>>(), [150..300, 400..500]);
//! assert_eq!(there.first_gap(310, 500), Some(400..500));
//! assert_eq!((there.byte_count(), there.is_complete(500)), (250, false));
//! ```

use core::ops::Range;

/// A set of byte offsets in a body. It is stored as half-open ranges in ascending order that
/// neither overlap nor touch.
///
/// The set is small in practice: one range for each connection, and one for each part that was
/// received by an earlier run of the program. A look-up is a binary search; a change moves the
/// ranges after it. A range occupies 16 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteRangeSet {
    sorted: Vec<Range<u64>>,
}

impl ByteRangeSet {
    /// Creates an empty set.
    pub const fn new() -> ByteRangeSet {
        ByteRangeSet { sorted: Vec::new() }
    }

    /// Adds a range and joins it with overlapping or adjacent ranges. An empty or reversed range
    /// adds nothing.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.sorted.partition_point(|span| span.end < range.start);
        let behind = self.sorted.partition_point(|span| span.start <= range.end);
        let joined = match self.sorted[first..behind] {
            [] => range,
            [ref one] => range.start.min(one.start)..range.end.max(one.end),
            [ref low, .., ref high] => range.start.min(low.start)..range.end.max(high.end),
        };
        self.sorted.splice(first..behind, [joined]);
    }

    /// Removes a range of offsets from the set. An empty range removes nothing.
    pub fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.sorted.partition_point(|span| span.end <= range.start);
        let behind = self.sorted.partition_point(|span| span.start < range.end);
        let left = self.sorted[first..behind].first().map(|span| span.start..range.start);
        let right = self.sorted[first..behind].last().map(|span| range.end..span.end);
        let kept = [left, right].into_iter().flatten().filter(|span| !span.is_empty());
        self.sorted.splice(first..behind, kept);
    }

    /// Returns `true` if the set contains the byte at `offset`.
    pub fn contains(&self, offset: u64) -> bool {
        self.range_containing(offset).is_some()
    }

    /// Returns `true` if the set contains every byte of the range. An empty range is always
    /// contained.
    pub fn contains_range(&self, range: Range<u64>) -> bool {
        range.is_empty() || self.range_containing(range.start).is_some_and(|span| range.end <= span.end)
    }

    /// Returns the number of bytes in the set.
    pub fn byte_count(&self) -> u64 {
        self.sorted.iter().map(|span| span.end - span.start).sum()
    }

    /// Iterates over the ranges of the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.sorted.iter().cloned()
    }

    /// Iterates over the ranges that are missing from a body of `total` bytes, in ascending order.
    /// Ranges of the set beyond `total` are ignored.
    pub fn gaps(&self, total: u64) -> impl Iterator<Item = Range<u64>> {
        let starts = [0].into_iter().chain(self.sorted.iter().map(|span| span.end));
        let ends = self.sorted.iter().map(|span| span.start).chain([u64::MAX]);
        starts.zip(ends).map(move |(start, end)| start..end.min(total)).filter(|gap| !gap.is_empty())
    }

    /// Returns the first range of missing bytes at or after `from` in a body of `total` bytes. If
    /// `from` itself is missing, the range begins at `from`. Returns `None` if no such byte is
    /// missing.
    pub fn first_gap(&self, from: u64, total: u64) -> Option<Range<u64>> {
        let next = self.sorted.partition_point(|span| span.end <= from);
        let mut behind = self.sorted[next..].iter();
        let (start, stop) = match behind.next() {
            Some(span) if span.start <= from => (span.end, behind.next()),
            other => (from, other),
        };
        let gap = start..stop.map_or(total, |span| span.start.min(total));
        (!gap.is_empty()).then_some(gap)
    }

    /// Returns the last missing range of a body of `total` bytes; `None` if no byte is missing.
    pub fn last_gap(&self, total: u64) -> Option<Range<u64>> {
        let behind = self.sorted.partition_point(|span| span.start < total);
        let mut before = self.sorted[..behind].iter().rev();
        let (end, stop) = match before.next() {
            Some(span) if span.end >= total => (span.start, before.next()),
            other => (total, other),
        };
        let gap = stop.map_or(0, |span| span.end)..end;
        (!gap.is_empty()).then_some(gap)
    }

    /// Returns `true` if the set contains all bytes of a body of `total` bytes.
    pub fn is_complete(&self, total: u64) -> bool {
        self.contains_range(0..total)
    }

    fn range_containing(&self, offset: u64) -> Option<&Range<u64>> {
        let next = self.sorted.partition_point(|span| span.end <= offset);
        self.sorted.get(next).filter(|span| span.start <= offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn byte_ranges_are_correct_at_the_edges_of_u64() {
        let mut spans = ByteRangeSet::new();
        spans.insert(u64::MAX - 5..u64::MAX);
        spans.insert(0..1);
        assert_eq!(spans.byte_count(), 6);
        assert!(spans.gaps(u64::MAX).eq(core::iter::once(1..u64::MAX - 5)));
        assert_eq!(spans.first_gap(u64::MAX, u64::MAX), None);
        spans.insert(1..u64::MAX);
        assert!(spans.is_complete(u64::MAX));
        assert_eq!(spans.byte_count(), u64::MAX);
        spans.remove(0..u64::MAX);
        assert_eq!(spans, ByteRangeSet::new());
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "that is the point")]
    fn empty_and_reversed_ranges_change_nothing() {
        let mut spans = ByteRangeSet::new();
        spans.insert(5..5);
        spans.insert(9..3);
        assert_eq!(spans, ByteRangeSet::new());
        spans.insert(0..10);
        spans.remove(5..5);
        spans.remove(9..3);
        assert!(spans.iter().eq(core::iter::once(0..10)));
        assert!(spans.contains_range(50..50) && spans.contains_range(9..3));
        assert!(ByteRangeSet::new().is_complete(0));
        assert_eq!((ByteRangeSet::new().first_gap(0, 0), ByteRangeSet::new().last_gap(0)), (None, None));
        assert_eq!(ByteRangeSet::new().gaps(0).count(), 0);
    }

    const SIZE: u64 = 48;

    /// Returns the ranges of consecutive bits that are set, or that are clear if `there` is false.
    fn runs(bits: &[bool], there: bool) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for (at, _) in bits.iter().enumerate().filter(|(_, bit)| **bit == there) {
            let at = at as u64;
            match runs.last_mut() {
                Some(run) if run.end == at => run.end += 1,
                _ => runs.push(at..at + 1),
            }
        }
        runs
    }

    proptest! {
        #[test]
        fn byte_ranges_behave_like_a_bitmap(ops in vec((any::<bool>(), 0..SIZE + 4, 0..12u64), 0..40), total in 0..=SIZE) {
            let mut spans = ByteRangeSet::new();
            let mut bits = vec![false; SIZE as usize + 20];
            for (add, start, length) in ops {
                let range = start..start + length;
                bits[start as usize..range.end as usize].fill(add);
                if add { spans.insert(range) } else { spans.remove(range) }

                let there = runs(&bits, true);
                prop_assert_eq!(spans.iter().collect::<Vec<_>>(), there);
                prop_assert_eq!(spans.byte_count(), bits.iter().filter(|bit| **bit).count() as u64);
            }
            let body = &bits[..total as usize];
            let missing = runs(body, false);
            prop_assert_eq!(spans.gaps(total).collect::<Vec<_>>(), missing.clone());
            prop_assert_eq!(spans.is_complete(total), missing.is_empty());
            prop_assert_eq!(spans.last_gap(total), missing.last().cloned());
            for at in 0..SIZE {
                prop_assert_eq!(spans.contains(at), bits[at as usize]);
                let first = missing.iter().find(|gap| at < gap.end).map(|gap| gap.start.max(at)..gap.end);
                prop_assert_eq!(spans.first_gap(at, total), first);
                for end in at..SIZE {
                    prop_assert_eq!(spans.contains_range(at..end), bits[at as usize..end as usize].iter().all(|bit| *bit));
                }
            }
        }
    }
}
