//! Fuzzes the search in a body that arrives in pieces: it finds the same matches as a search in the
//! whole body.
#![no_main]

use haul::extraction::{ExtractRegexes, Extractor};
use libfuzzer_sys::fuzz_target;

const PATTERNS: [&str; 8] =
    ["AS[0-9]{1,9}", "[0-9.]{7,15}/[0-9]{1,2}", "\"([^\"]*)\"", "(?m)^a+$", r"\bé\w*\b", "a|ab|abc", "(?s)<.*?>", "x*"];

fn matches(pattern: &ExtractRegexes, pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut extractor = Extractor::new(pattern.clone());
    let mut found = Vec::new();
    let mut take = |value: &[u8]| {
        found.push(value.to_vec());
        Ok(())
    };
    for piece in pieces {
        extractor.push(piece, &mut take).expect("a short body has no match too long");
    }
    extractor.finish(&mut take).expect("a short body has no match too long");
    found
}

fuzz_target!(|data: &[u8]| {
    let [first, cut, body @ ..] = data else { return };
    let pattern = ExtractRegexes::new(PATTERNS[usize::from(*first) % PATTERNS.len()]).expect("a pattern");
    // The same text over and over, so that the first cut is past what is gathered.
    let long: Vec<u8> = body.iter().copied().cycle().take(body.len() * 40).collect();
    let step = usize::from(*cut).max(1) * body.len().div_ceil(7).max(1);
    let pieces: Vec<&[u8]> = long.chunks(step).collect();
    assert_eq!(matches(&pattern, &[&long]), matches(&pattern, &pieces));
});
