//! Measures the speed of a transfer, weighted towards the last seconds.
//!
//! ```ignore
//! let mut rate = MovingAverageRate::default();
//! rate.add_sample(Duration::from_secs(2), 10_000);
//! assert_eq!(rate.per_second(), 5_000);
//! ```
//!
//! At first the speed is the average since the beginning. Later, the weight of old samples
//! decreases exponentially with the time constant [`AVERAGING_TIME`]. A division approximates the
//! exponential function, because calling that function would make the program load another library
//! at its start (docs/design/startup.md).

use std::time::Duration;

/// The time constant of the moving average: a speed that is this old has about a third of the
/// weight of the current speed.
const AVERAGING_TIME: Duration = Duration::from_secs(15);

/// The speed of a transfer, weighted towards the last seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MovingAverageRate {
    /// The time of the last sample, measured from the beginning of the transfer.
    at: Duration,
    bytes: u64,
    per_second: f64,
}

impl MovingAverageRate {
    /// Adds a sample: `bytes`, the total number of bytes of the transfer at the time `at` since its
    /// beginning.
    pub(crate) fn add_sample(&mut self, at: Duration, bytes: u64) {
        let step = at.saturating_sub(self.at);
        if step.is_zero() {
            return;
        }
        let now = bytes.saturating_sub(self.bytes) as f64 / step.as_secs_f64();
        let weight = step.div_duration_f64(at.min(AVERAGING_TIME + step));
        self.per_second += (now - self.per_second) * weight;
        self.at = at;
        self.bytes = bytes;
    }

    /// Returns the weighted speed of the transfer in bytes per second.
    pub(crate) fn per_second(&self) -> u64 {
        self.per_second as u64
    }

    /// Returns the time, in whole seconds, that `bytes` more bytes take at the current speed;
    /// `None` at speed 0.
    pub(crate) fn time_for(&self, bytes: u64) -> Option<Duration> {
        let per_second = self.per_second();
        (per_second > 0).then(|| Duration::from_secs(bytes.div_ceil(per_second)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn early_transfer_rate_is_the_average() {
        let mut once = MovingAverageRate::default();
        once.add_sample(4 * SECOND, 4_000);
        let mut often = MovingAverageRate::default();
        for (tenth, bytes) in [(1, 700), (7, 900), (20, 900), (40, 4_000)] {
            often.add_sample(tenth * SECOND / 10, bytes);
        }
        assert_eq!(once.per_second(), 1_000);
        assert!(often.per_second().abs_diff(1_000) <= 1, "{often:?}");
    }

    #[test]
    fn old_transfer_rate_samples_lose_weight() {
        let mut rate = MovingAverageRate::default();
        let mut bytes = 0;
        for second in 1..=200 {
            bytes += if second <= 100 { 1_000_000 } else { 1_000 };
            rate.add_sample(second * SECOND, bytes);
        }
        assert!((1_000..5_000).contains(&rate.per_second()), "{rate:?}");
    }

    #[test]
    fn rate_is_zero_without_time_or_bytes() {
        let mut rate = MovingAverageRate::default();
        assert_eq!((rate.per_second(), rate.time_for(10)), (0, None));
        rate.add_sample(Duration::ZERO, 1_000);
        assert_eq!(rate, MovingAverageRate::default());
        rate.add_sample(SECOND, 1_000);
        assert_eq!((rate.time_for(10_500), rate.time_for(0)), (Some(11 * SECOND), Some(Duration::ZERO)));
        rate.add_sample(2 * SECOND, 0);
        assert_eq!(rate.per_second(), 500);
    }
}
