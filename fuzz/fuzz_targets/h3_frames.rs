//! Fuzzes the streams of a server: events do not depend on how the input is cut.
//!
//! The first byte selects the method and the size of the parts; the rest is pieces of streams (see
//! `support::pieces`).
#![no_main]

#[path = "support/h3.rs"]
#[allow(dead_code, reason = "each target uses its own part")]
mod support;

use libfuzzer_sys::fuzz_target;
use support::{H3Observed, KeptInput, StreamPiece, asked, drain_output, pieces};

fn feed(method: &str, data: &[u8], size: usize) -> Vec<H3Observed> {
    let (mut conn, mut kept, mut seen) = (asked(method, 3), KeptInput::default(), Vec::new());
    for StreamPiece { stream, bytes, fin } in pieces(data) {
        let (mut rest, mut is_last) = (bytes, false);
        while !is_last {
            let (part, behind) = rest.split_at(size.max(1).min(rest.len()));
            rest = behind;
            is_last = rest.is_empty();
            let piece = StreamPiece { stream, bytes: part, fin: fin && is_last };
            if !kept.feed(&mut conn, &piece, &mut seen) {
                return seen;
            }
            drain_output(&mut conn);
        }
    }
    seen
}

fuzz_target!(|data: &[u8]| {
    let Some((&pick, rest)) = data.split_first() else { return };
    let method = ["GET", "HEAD", "CONNECT"][usize::from(pick % 3)];
    let whole = feed(method, rest, usize::MAX);
    assert_eq!(feed(method, rest, 1), whole);
    assert_eq!(feed(method, rest, usize::from(pick / 3)), whole);
});
