//! SplitMix64, the source of all random numbers in this crate.
//!
//! The generator is implemented here, because its sequence must never change: the known answer of a
//! site, and a hash in the repository depend on it.
//!
//! ```
//! use testkit::rng::{mix, Rng};
//!
//! assert_eq!(Rng::new(7).next(), Rng::new(7).next());
//! assert_ne!(mix(1, 2), mix(2, 1));
//! ```

/// A random number generator (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rng {
    /// Creates a generator that starts from `seed`.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// Returns the next 64 random bits.
    #[expect(clippy::should_implement_trait, reason = "an endless stream needs no Option")]
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        finish(self.0)
    }

    /// Returns a random number below `bound`. It is computed by multiplication, whose bias is below
    /// 2⁻³² for the small bounds used here.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns one of `choices` at random.
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

/// Returns a hash of two numbers. Swapping the numbers gives a different hash.
#[inline]
pub fn mix(a: u64, b: u64) -> u64 {
    finish(finish(a.wrapping_add(GAMMA)) ^ b.wrapping_mul(GAMMA))
}
