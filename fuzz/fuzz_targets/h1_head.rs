//! Fuzzes response heads: the events do not depend on how the input is cut, and the parts of a head
//! lie within its bytes.
//!
//! The first byte selects the method and the size of the pieces; the rest is the server's bytes.
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
