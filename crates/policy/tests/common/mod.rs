//! Helpers of the property tests.

use proptest::test_runner::{Config, RngSeed};

/// Returns a configuration that tests the same cases on every run and writes no file of failures.
pub(crate) fn config(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(0x6861_756c), failure_persistence: None, ..Config::default() }
}
