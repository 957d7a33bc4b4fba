//! Changes bytes of a reply as bad links, faulty memory and attackers do.

use super::reply_draft::{ReplyDraft, random_choice};
use super::{HostileProtocol, ReplyPiece};
use crate::rng::Rng;

/// Bytes with a meaning in the syntax of HTTP. The function [`damage`] inserts one of them into a
/// reply, or replaces a byte by one of them.
const BYTES: &[u8] = b"\0\r\n\t :;,=\"\\-+0159af\x7f\x80\xff";

/// Parts of HTTP/1 messages, such as line ends, field lines and chunk sizes. The function
/// [`damage`] inserts one of them at a random position of a reply.
const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\r",
    b"0\r\n\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Length: 18446744073709551615\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"chunked",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.1 100 \r\n\r\n",
    b"ffffffffffffffff",
    b"Connection: close\r\n",
    b"\r\n ",
    b"Content-Encoding: gzip\r\n",
    b"Location: /\r\n",
    b"HTTP/2 200\r\n",
];

/// HTTP/2 frame headers (length, type, flags, stream). The function [`damage`] inserts one of them
/// at a random position of a reply.
const FRAMES: &[&[u8]] = &[
    b"\0\0\0\x04\x01\0\0\0\0",
    b"\0\0\0\0\x01\0\0\0\x01",
    b"\0\0\0\0\0\0\0\0\x01",
    b"\0\0\x01\x01\x05\0\0\0\x01\x88",
    b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\0",
    b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\0\0\0\x09\x04\0\0\0\x01",
    b"\0\0\x04\x08\0\0\0\0\0\x7f\xff\xff\xff",
    b"\0\0\x06\x04\0\0\0\0\0\0\x01\0\0\0\0",
    b"\xff\xff\xff",
    b"\0\0\0\xff\0\0\0\0\0",
];

/// The largest number of bytes in a damaged reply. A piece that is sent repeatedly counts once.
const MAX_DAMAGED_LENGTH: usize = 2 << 20;

pub(super) fn damage(draft: &mut ReplyDraft, rng: &mut Rng) {
    draft.is_damaged = true;
    draft.add_note("damaged");
    for _ in 0..=rng.below(4) {
        let at = rng.below(draft.pieces.len() as u64) as usize;
        let words = if draft.protocol == HostileProtocol::Http1 { WORDS } else { FRAMES };
        match &mut draft.pieces[at] {
            ReplyPiece::Send(bytes) if bytes.len() < MAX_DAMAGED_LENGTH => change(bytes, words, rng),
            ReplyPiece::Send(bytes) => bytes.truncate(MAX_DAMAGED_LENGTH),
            ReplyPiece::Repeat(bytes, _) => change(bytes, words, rng),
            ReplyPiece::Await(_) => {}
        }
    }
    if rng.below(20) == 0 {
        let at = rng.below(draft.pieces.len() as u64) as usize;
        draft.pieces.truncate(at + 1);
        draft.add_note("cut short");
    }
}

fn change(bytes: &mut Vec<u8>, words: &[&[u8]], rng: &mut Rng) {
    // Heads are short and bodies are long: half of the places are near the beginning.
    let near = if rng.below(2) == 0 { bytes.len().min(200) } else { bytes.len() };
    let at = rng.below(near as u64 + 1) as usize;
    let end = (at + 1 + rng.below(30) as usize).min(bytes.len());
    match rng.below(9) {
        0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
        1 if at < bytes.len() => bytes[at] = random_choice(rng, BYTES),
        2 => bytes.insert(at, random_choice(rng, BYTES)),
        3 => drop(bytes.drain(at..end)),
        4 | 5 => {
            bytes.splice(at..at, random_choice(rng, words).iter().copied());
        }
        6 => {
            let again = bytes[at..end].repeat(1 + rng.below(500) as usize);
            bytes.splice(at..at, again);
        }
        7 => bytes.truncate(at),
        _ => {
            // Copies a part of it elsewhere.
            let part: Vec<u8> = bytes.drain(at..end).collect();
            let to = rng.below(bytes.len() as u64 + 1) as usize;
            bytes.splice(to..to, part);
        }
    }
}
