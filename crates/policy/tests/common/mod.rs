//! Helpers of the property tests.

use proptest::test_runner::{Config, RngSeed};

/// The same cases on every run, and no file of past failures.
pub(crate) fn config(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(0x6861_756c), failure_persistence: None, ..Config::default() }
}
