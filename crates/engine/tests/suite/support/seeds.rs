//! The seeds for tests with random cases: selecting the seeds to run, and reporting the failed
//! seed.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use testkit::rng::Rng;

/// Returns one of `choices` at random.
pub(crate) fn one_of<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}

fn seeds(few: u64) -> Range<u64> {
    let Ok(text) = std::env::var("HAUL_MODELS") else { return 0..few };
    let number = |text: &str| text.parse().expect("HAUL_MODELS is a number of seeds, or A..B");
    match text.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => 0..number(&text),
    }
}

/// Calls `try_one` for each seed, in `threads` threads. By default, there are `few` seeds. The
/// first seed that fails is printed, and the test fails.
pub(crate) fn each(few: u64, threads: usize, try_one: fn(u64)) {
    let seeds = seeds(few);
    let next = AtomicU64::new(seeds.start);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) {
                        break;
                    }
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| try_one(seed))) {
                        eprintln!("HAUL_MODELS={seed}..{} is wrong", seed + 1);
                        resume_unwind(panic);
                    }
                }
            });
        }
    });
}
