//! Fuzzes the frames of a server: events and output do not depend on how the input is cut.
//!
//! The first byte selects the method and the size of the pieces; the rest is the server's bytes
//! after its SETTINGS.
#![no_main]

#[path = "support/h2.rs"]
#[allow(dead_code, reason = "each target uses its own part")]
mod support;

use libfuzzer_sys::fuzz_target;
use support::{SETTINGS, asked, feed};

fuzz_target!(|data: &[u8]| {
    let Some((&pick, rest)) = data.split_first() else { return };
    let method = ["GET", "HEAD", "CONNECT"][usize::from(pick % 3)];
    // One in four begins without them.
    let wire = if pick & 0xc0 == 0 { rest.to_vec() } else { [SETTINGS, rest].concat() };
    let whole = feed(asked(method, 4), &wire, wire.len());
    assert_eq!(feed(asked(method, 4), &wire, 1), whole);
    assert_eq!(feed(asked(method, 4), &wire, usize::from(pick / 3)), whole);
});
