//! Streams by their numbers.
//!
//! A number is looked up several times for each response. They are given by us, one after the other, so no peer can choose
//! them to collide, and the hash that guards against that is not needed: with those of origins it took 2,200 of the 52,000
//! instructions of a small response.
//!
//! The sorted list that the machine has was the alternative: what is kept of a stream here is larger, and would be moved
//! along when one in the middle ends.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Values by the number of a stream.
pub(super) type ByNumber<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

/// Spreads numbers over all bits: the table looks at the highest and at the lowest.
#[derive(Default)]
pub(super) struct Spread(u64);

/// 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming, volume 3, section 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = (self.0 ^ number).wrapping_mul(GOLDEN);
        self.0 = product ^ (product >> 32);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, Hash};

    use super::*;

    #[test]
    fn neighbours_are_spread_over_the_bits_that_a_table_looks_at() {
        let hash = |number: u64| BuildHasherDefault::<Spread>::default().hash_one(number);
        let odd = || (0..128).map(|n| 2 * n + 1);
        let low: HashSet<u64> = odd().map(|number| hash(number) & 127).collect();
        let high: HashSet<u64> = odd().map(|number| hash(number) >> 57).collect();
        assert!(low.len() > 64 && high.len() > 64, "{} {}", low.len(), high.len());
    }

    #[test]
    fn bytes_are_hashed_in_order() {
        let hash = |text: &str| {
            let mut spread = Spread::default();
            text.hash(&mut spread);
            spread.finish()
        };
        assert_ne!(hash("ab"), hash("ba"));
    }
}
