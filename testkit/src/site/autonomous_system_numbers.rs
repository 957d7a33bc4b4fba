//! The numbers of the autonomous systems (AS) of a site, and the length of the page of each AS.

use std::collections::HashSet;

use crate::rng::{Rng, mix};

/// Returns `count` distinct numbers of autonomous systems, of one to nine digits. Most of them have
/// four to six digits.
pub(super) fn distinct(seed: u64, count: usize) -> Vec<u32> {
    // Of a thousand numbers, how many have 1, 2, … 9 digits.
    const WEIGHTS: [u64; 9] = [1, 4, 25, 220, 450, 270, 10, 10, 10];
    let mut rng = Rng::new(mix(seed, 0x6e75_6d62));
    let mut seen = HashSet::with_capacity(count);
    let mut numbers = Vec::with_capacity(count);
    while numbers.len() < count {
        let digits = weighted(&WEIGHTS, rng.below(1000)) as u32;
        let low = 10u64.pow(digits);
        let number = (low + rng.below(low * 9)) as u32;
        if seen.insert(number) {
            numbers.push(number);
        }
    }
    numbers
}

/// Returns the length in bytes of the page of the autonomous system with this number. Most pages
/// are short, a few are long.
///
/// The length is computed with whole numbers only: `powf` differs between maths libraries, which
/// could change a length by a byte.
pub(super) fn page_len(seed: u64, number: u32) -> usize {
    const BOUNDS_KIB: [u64; 8] = [12, 24, 48, 96, 192, 384, 768, 892];
    // Mean 49.2 KiB.
    const WEIGHTS: [u64; 7] = [480, 290, 137, 63, 22, 7, 1];
    let mut rng = Rng::new(mix(mix(seed, 0x7369_7a65), u64::from(number)));
    let class = weighted(&WEIGHTS, rng.below(1000));
    let (low, high) = (BOUNDS_KIB[class] << 10, BOUNDS_KIB[class + 1] << 10);
    (low + rng.below(high - low + 1)) as usize
}

fn weighted(weights: &[u64], mut point: u64) -> usize {
    for (index, weight) in weights.iter().enumerate() {
        if point < *weight {
            return index;
        }
        point -= weight;
    }
    weights.len() - 1
}
