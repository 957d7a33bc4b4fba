//! Fuzzes chunked bodies: the events do not depend on how the input is cut, and an accepted body is
//! the one that a second, simple decoder reads.
#![no_main]

#[path = "support/h1.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use support::{H1Output, asked, feed};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

fuzz_target!(|data: &[u8]| {
    let wire = [HEAD, data].concat();
    let whole = feed(asked("GET", 2 + data.len() / 8), &wire, wire.len());
    assert_eq!(feed(asked("GET", 2 + data.len() / 8), &wire, 1), whole);
    assert_eq!(feed(asked("GET", 2 + data.len() / 8), &wire, 3), whole);
    let body = match &whole[..] {
        [H1Output::Head(..), H1Output::Body(body), H1Output::Complete(..), ..] => body.as_slice(),
        [H1Output::Head(..), H1Output::Complete(..), ..] => &[],
        _ => return,
    };
    assert_eq!(naive(data).as_deref(), Some(body));
});

/// Decodes a chunked body without regard to speed; `None` if it is malformed. Lines may end in LF
/// without CR.
fn naive(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line_end = rest.iter().position(|byte| *byte == b'\n')?;
        let line = core::str::from_utf8(rest[..line_end].split(|byte| *byte == b';').next()?).ok()?;
        let size = usize::from_str_radix(line.trim_end_matches('\r').trim_end_matches([' ', '\t']), 16).ok()?;
        rest = &rest[line_end + 1..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size..)?;
        rest = rest.strip_prefix(b"\r").unwrap_or(rest).strip_prefix(b"\n")?;
    }
}
