//! SplitMix64: the one source of every made-up byte here.
//!
//! A generator of our own, because its stream must never change: a site's answer and a committed hash depend on it.
//!
//! ```
//! use testkit::rng::{mix, Rng};
//!
//! assert_eq!(Rng::new(7).next(), Rng::new(7).next());
//! assert_ne!(mix(1, 2), mix(2, 1));
//! ```

/// A SplitMix64 generator.
#[derive(Clone, Debug)]
pub struct Rng(u64);

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rng {
    /// A generator that starts from `seed`.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "an endless stream needs no Option")]
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        finish(self.0)
    }

    /// A number below `bound` (by multiplication; the bias is below 2⁻³² for the small bounds used here).
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// One of `choices`.
    #[inline]
    pub fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

#[inline]
fn finish(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A hash of two words, not symmetric in them.
#[inline]
pub fn mix(a: u64, b: u64) -> u64 {
    finish(finish(a.wrapping_add(GAMMA)) ^ b.wrapping_mul(GAMMA))
}
