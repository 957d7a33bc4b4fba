//! A histogram of times in bounded memory, for percentiles.
//!
//! Each power of two is divided into 64 classes, so that a percentile is at most 1.6 % above the
//! exact value.

/// The binary logarithm of the number of classes between one power of two and the next: there are
/// 64 classes.
const CLASS_BITS: u32 = 6;

/// A histogram of times in microseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeHistogram {
    classes: Vec<u64>,
    count: u64,
    max: u64,
}

impl TimeHistogram {
    pub(super) fn add(&mut self, micros: u64) {
        let class = class_of_time(micros);
        if class >= self.classes.len() {
            self.classes.resize(class + 1, 0);
        }
        self.classes[class] += 1;
        self.count += 1;
        self.max = self.max.max(micros);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns a percentile in microseconds: the fraction `part` of all times is not longer than
    /// the result. `part` is between 0 and 1. Returns 0 if there are no times.
    pub(super) fn percentile(&self, part: f64) -> u64 {
        let wanted = ((self.count as f64 * part).ceil() as u64).max(1);
        let mut seen = 0;
        for (class, count) in self.classes.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper_end(class).min(self.max);
            }
        }
        self.max
    }

    pub(super) fn max(&self) -> u64 {
        self.max
    }
}

fn class_of_time(micros: u64) -> usize {
    let bits = u64::BITS - micros.leading_zeros();
    let shift = bits.saturating_sub(CLASS_BITS + 1);
    ((u64::from(shift) << CLASS_BITS) + (micros >> shift)) as usize
}

/// Returns the greatest time, in microseconds, that belongs to the class of the histogram with this
/// index.
fn upper_end(class: usize) -> u64 {
    let class = class as u64;
    let shift = (class >> CLASS_BITS).saturating_sub(1);
    let first = class - (shift << CLASS_BITS);
    ((first + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_classes_are_contiguous_and_narrow() {
        let mut last = 0;
        for micros in (0..100_000_u64).chain((100_000..u64::from(u32::MAX)).step_by(9_973)) {
            let class = class_of_time(micros);
            assert!(class >= last, "{micros}");
            last = class;
            let end = upper_end(class);
            assert!(end >= micros && end - micros <= micros / 64, "{micros}: class {class} ends at {end}");
        }
    }

    #[test]
    fn percentile_is_within_two_percent_of_exact() {
        let mut histogram = TimeHistogram::default();
        assert_eq!((histogram.percentile(0.5), histogram.count()), (0, 0));
        (1..=1000).for_each(|number| histogram.add(number * 1000));
        for (part, exact) in [(0.5, 500_000), (0.9, 900_000), (0.99, 990_000), (1.0, 1_000_000)] {
            let found = histogram.percentile(part);
            assert!((exact..=exact + exact / 60).contains(&found), "{part}: {found}");
        }
        assert_eq!(histogram.max(), 1_000_000);
    }
}
