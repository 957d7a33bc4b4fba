//! Helpers of the property tests.

use proptest::test_runner::{Config, RngSeed};

/// Returns a configuration that tests the same cases in every run and records no failures in a
/// file.
pub(crate) fn config(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(0x6861_756c), failure_persistence: None, ..Config::default() }
}
