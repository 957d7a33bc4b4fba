//! Fuzzes URL globs: the count equals the number of expansions, and each expansion fills a
//! template.
#![no_main]

use haul_policy::glob::{UrlGlob, fill_template};
use libfuzzer_sys::fuzz_target;

/// The largest number of expansions that are examined.
const MOST: usize = 200;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let Ok(glob) = UrlGlob::parse(&text) else { return };
    let made: Vec<_> = glob.iter().take(MOST).collect();
    if let Some(count) = glob.count() {
        assert_eq!(made.len() as u64, count.min(MOST as u64));
    }
    for expansion in &made {
        fill_template(&text, &expansion.parts);
    }
});
