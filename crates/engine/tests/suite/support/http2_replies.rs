//! Responses of scripted HTTP/2 peers, and request options to reach these peers.
use std::io;

use haul::RequestOptions;
use testkit::byte_pattern::BytePattern;
use testkit::frames::{H2PeerRequest, H2ScriptConnection, data, headers};

use crate::common::with_prior_knowledge;

pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const CANCEL: u32 = 8;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;
pub(crate) const HTTP_1_1_REQUIRED: u32 = 13;

pub(crate) fn body(len: usize) -> Vec<u8> {
    BytePattern::new(3).slice(0, len)
}

pub(crate) fn defaults() -> RequestOptions {
    with_prior_knowledge(RequestOptions::default())
}

/// Answers a request. The body of the response is the request's path.
pub(crate) fn answer(conn: &mut H2ScriptConnection, asked: &H2PeerRequest) -> io::Result<()> {
    let length = asked.path().len().to_string();
    conn.send(headers(asked.stream, false, &[(":status", "200"), ("content-length", &length)]))?;
    conn.send(data(asked.stream, true, asked.path().as_bytes()))
}

/// Answers every request on the connection. The body of each response is the path of its request.
pub(crate) fn answer_all(conn: &mut H2ScriptConnection) -> io::Result<()> {
    loop {
        let asked = conn.request()?;
        answer(conn, &asked)?;
    }
}

/// Answers a request with the bytes of `all` from the requested offset to the offset `to`. The
/// stream ends only if that completes the body.
pub(crate) fn send_from(conn: &mut H2ScriptConnection, asked: &H2PeerRequest, all: &[u8], to: usize) -> io::Result<()> {
    let from = asked.get("range").map_or(0, |range| {
        range.trim_start_matches("bytes=").split('-').next().and_then(|from| from.parse().ok()).expect("a range")
    });
    let (length, range) = ((all.len() - from).to_string(), format!("bytes {from}-{}/{}", all.len() - 1, all.len()));
    let mut fields = vec![(":status", "200"), ("content-length", &length), ("etag", "\"v\"")];
    if from > 0 {
        fields[0].1 = "206";
        fields.push(("content-range", &range));
    }
    conn.send(headers(asked.stream, false, &fields))?;
    let mut at = from;
    for piece in all[from..to].chunks(9_999) {
        at += piece.len();
        conn.send(data(asked.stream, at == all.len(), piece))?;
    }
    Ok(())
}
