//! Fuzzes the text of a body: its pieces make the text that a search in the body sees, and a body
//! that is no text comes back unchanged.
#![no_main]

use std::sync::LazyLock;

use haul::body::decoded_text::BodyTextPieces;
use haul::extraction::{ExtractRegexes, PageInfo, PageQuery};
use libfuzzer_sys::fuzz_target;

/// The values of `Content-Type`. After the last one, the first line of the input is the value.
const CONTENT_TYPES: [Option<&[u8]>; 14] = [
    None,
    Some(b""),
    Some(b"text/html"),
    Some(b"text/plain"),
    Some(b"application/json"),
    Some(b"application/xml"),
    Some(b"image/png"),
    Some(b"text/plain; charset=utf-8"),
    Some(b"text/html; charset=iso-8859-1"),
    Some(b"text/plain; charset=shift_jis"),
    Some(b"text/plain; charset=gb18030"),
    Some(b"text/plain; charset=iso-2022-jp"),
    Some(b"text/xml; charset=utf-16"),
    Some(b"text/plain; charset=x-user-defined"),
];

static ALL: LazyLock<PageQuery> =
    LazyLock::new(|| PageQuery::matches(ExtractRegexes::new("(?s).+").expect("an expression")));

fuzz_target!(|data: &[u8]| {
    let [first, rest @ ..] = data else { return };
    let line =
        || rest.iter().position(|byte| *byte == b'\n').map_or((rest, &b""[..]), |at| (&rest[..at], &rest[at + 1..]));
    let (content_type, body) = match CONTENT_TYPES.get(usize::from(*first) % (CONTENT_TYPES.len() + 1)) {
        Some(content_type) => (*content_type, rest),
        None => (Some(line().0), line().1),
    };
    match BodyTextPieces::new(body.to_vec(), content_type) {
        Err(unchanged) => assert_eq!(unchanged, body),
        Ok(mut text) => {
            assert_eq!((text.len(), text.is_empty()), (body.len(), body.is_empty()));
            let mut whole = String::new();
            while let Some(piece) = text.next_piece() {
                whole.push_str(&piece);
            }
            let found = ALL.values_in(&PageInfo { url: None, content_type }, body).expect("a search of text");
            assert_eq!(found.concat(), whole);
        }
    }
});
