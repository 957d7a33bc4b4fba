//! Response heads: what is seen does not depend on how the input was cut, and what a head says lies
//! inside it.
//!
//! The first byte picks the method and the size of the pieces, the rest is the wire.
#![no_main]

#[path = "support/h1.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use support::{asked, feed};

fuzz_target!(|data: &[u8]| {
    let Some((&pick, wire)) = data.split_first() else { return };
    let (method, requests) = match pick % 3 {
        0 => ("GET", wire.len() / 8 + 2),
        1 => ("HEAD", wire.len() / 8 + 2),
        _ => ("CONNECT", 1),
    };
    let whole = feed(asked(method, requests), wire, wire.len());
    if requests > 1 {
        assert_eq!(feed(asked(method, requests), wire, 1), whole);
        assert_eq!(feed(asked(method, requests), wire, usize::from(pick / 3)), whole);
    }
});
