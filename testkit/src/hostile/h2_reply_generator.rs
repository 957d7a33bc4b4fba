//! Generates sessions over HTTP/2, with their replies, from a grammar.

use super::confusing_non_framing_fields::{self, HostileField};
use super::reply_draft::{ReplyDraft, body, random_choice};
use super::{HostileProtocol, ReplyEnd, ReplyPiece};
use crate::frames::{
    Frame, block, continuation, data, frame, goaway, headers, ping, rst, settings, settings_ack, window_update,
};
use crate::rng::Rng;

/// A frame to send: a description for the report, and the function that encodes it.
type NamedFrame = (&'static str, fn() -> Vec<u8>);

/// HTTP/2 frames that a server must not send during a response. A client that receives such a frame
/// must end the connection or the stream (RFC 9113 §5, §6).
const BREACHES: &[NamedFrame] = &[
    ("a window raised by nothing", || window_update(0, 0)),
    ("a window above 2^31-1", || window_update(0, 0x7fff_ffff)),
    ("a push", || frame(Frame::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2, 0x82])),
    ("DATA on stream 0", || data(0, false, b"x")),
    ("HEADERS on stream 0", || headers(0, true, &[OK])),
    ("PING on a stream", || frame(Frame::PING, 0, 1, &[0; 8])),
    ("SETTINGS on a stream", || frame(Frame::SETTINGS, 0, 1, &[])),
    ("GOAWAY on a stream", || frame(Frame::GOAWAY, 0, 1, &[0; 8])),
    ("PING of seven bytes", || frame(Frame::PING, 0, 0, &[0; 7])),
    ("SETTINGS of seven bytes", || frame(Frame::SETTINGS, 0, 0, &[0; 7])),
    ("an acknowledgement with content", || frame(Frame::SETTINGS, 1, 0, &[0; 6])),
    ("RST_STREAM of three bytes", || frame(Frame::RST_STREAM, 0, 1, &[0; 3])),
    ("WINDOW_UPDATE of three bytes", || frame(Frame::WINDOW_UPDATE, 0, 0, &[0; 3])),
    ("GOAWAY of four bytes", || frame(Frame::GOAWAY, 0, 0, &[0; 4])),
    ("a frame above the limit", || data(1, false, &[0; 100_000])),
    ("a window setting above 2^31-1", || settings(&[(4, 1 << 31)])),
    ("a frame size below the least", || settings(&[(5, 100)])),
    ("push switched on", || settings(&[(2, 1)])),
    ("a stream of even number", || headers(2, true, &[OK])),
    ("a stream never opened", || headers(99, true, &[OK])),
    ("a reset of a stream never opened", || rst(99, 0)),
    ("CONTINUATION of nothing", || continuation(1, true, &[])),
    ("PING within a block", || [frame(Frame::HEADERS, 0, 1, &[]), ping([0; 8])].concat()),
    ("a block never ended", || frame(Frame::HEADERS, 0, 1, &[0x88])),
    ("padding above the payload", || frame(Frame::DATA, Frame::PADDED, 1, &[200, 0, 0])),
    ("an index of 0", || frame(Frame::HEADERS, 5, 1, &[0x80])),
    ("an index beyond the table", || frame(Frame::HEADERS, 5, 1, &[0xff, 0xff, 0x7f])),
    ("a number without end", || frame(Frame::HEADERS, 5, 1, &[0xff; 40])),
    ("a cut block", || frame(Frame::HEADERS, 5, 1, &[0x40, 5, b'a'])),
    ("a Huffman code of 30 ones", || frame(Frame::HEADERS, 5, 1, &[0, 0x84, 0xff, 0xff, 0xff, 0xff, 0])),
    ("a table above the limit", || frame(Frame::HEADERS, 5, 1, &[0x3f, 0xe1, 0xff, 0xff, 0x7f])),
    ("CANCEL", || rst(1, 8)),
    ("INTERNAL_ERROR", || rst(1, 2)),
    ("an unknown error", || rst(1, 0xffff_ffff)),
    ("GOAWAY with an error", || goaway(0, 1)),
];

/// Lists of fields that are not the head of a valid HTTP/2 response (RFC 9113 §8.3).
const BAD_HEADS: &[&[(&str, &str)]] = &[
    &[("content-length", "0")],
    &[OK, OK],
    &[("a", "b"), OK],
    &[OK, (":path", "/")],
    &[OK, (":x", "/")],
    &[(":status", "abc")],
    &[(":status", "20")],
    &[(":status", "")],
    &[OK, ("Content-Type", "x")],
    &[OK, ("connection", "close")],
    &[OK, ("transfer-encoding", "chunked")],
    &[OK, ("upgrade", "h3")],
    &[OK, ("a", "b\r\nset-cookie: c=d")],
    &[OK, ("a", "b\0c")],
    &[OK, ("a b", "c")],
    &[OK, ("", "c")],
    &[OK, ("content-length", "1"), ("content-length", "2")],
    &[OK, ("content-length", "-1")],
    &[OK, ("content-length", "18446744073709551616")],
];

/// Status codes that a client may accept or refuse, depending on the client's options.
const STATUSES: &[&str] = &[
    "101", "204", "206", "301", "302", "304", "307", "401", "404", "407", "416", "421", "429", "503", "599", "999",
    "000",
];

/// HTTP/2 frames without an effect. A generated reply repeats one of them so often that it floods
/// the client (RFC 9113 §10.5).
const FLOODS: &[NamedFrame] = &[
    ("flood of PING", || ping([7; 8])),
    ("flood of SETTINGS", || settings(&[(4, 65_535)])),
    ("flood of empty DATA", || data(1, false, &[])),
    ("flood of PRIORITY", || frame(Frame::PRIORITY, 0, 1, &[0, 0, 0, 0, 1])),
    ("flood of unknown frames", || frame(0x42, 0xff, 0, &[0; 20])),
    ("flood of padding", || frame(Frame::DATA, Frame::PADDED, 1, &[200; 201])),
];
const FLOOD: u32 = 20_000;

const OK: (&str, &str) = (":status", "200");

/// The maximum payload length in bytes of an HTTP/2 frame: the default of SETTINGS_MAX_FRAME_SIZE,
/// which every client accepts.
const MOST: usize = 16_384;
/// The largest number of body bytes, padding included, that a generated reply sends. The generator
/// does not read the client's flow-control windows, and no client announces a smaller window.
const WINDOW: usize = 16_384;

pub(super) fn reply(rng: &mut Rng) -> ReplyDraft {
    let mut draft = ReplyDraft::new(HostileProtocol::Http2);
    greeting(&mut draft, rng);
    if rng.below(12) == 0 {
        for _ in 0..rng.below(5) {
            draft.add_note("interim");
            draft.send(headers(1, false, &[(":status", random_choice(rng, &["100", "103", "199"])), ("link", "</a>")]));
        }
    }
    match rng.below(30) {
        0 => bomb(&mut draft),
        1 => endless(&mut draft, rng),
        _ => response(&mut draft, rng),
    }
    if rng.below(12) == 0 {
        draft.add_note("frames behind");
        // These frames do not change a complete response; it does not matter whether they end the
        // connection.
        draft.send(random_choice(rng, BREACHES).1());
    }
    draft.choose_end(rng);
    draft
}

/// Adds a SETTINGS frame, the acknowledgement of the client's SETTINGS, and frames without an
/// effect to the reply (RFC 9113 §3.4, §5.5).
fn greeting(draft: &mut ReplyDraft, rng: &mut Rng) {
    if rng.below(20) == 0 {
        draft.head_is_broken = true;
        draft.add_note("no greeting");
        draft.pieces.clear();
        draft.send(random_choice(
            rng,
            &[
                &b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"[..],
                b"220 mail.example ESMTP\r\n",
                b"\0\0\x08\x06\0\0\0\0\0\0\0\0\0\0\0\0\0",
                b"\xff",
            ],
        ));
        return;
    }
    // Before any request: a client may wait for it.
    draft.pieces.clear();
    let values: &[(u16, u32)] = random_choice(
        rng,
        &[
            &[],
            &[],
            &[(3, 100)],
            &[(3, 1), (4, 65_535), (5, 16_384), (6, 1_000)],
            &[(1, 0)],
            &[(4, 0x7fff_ffff), (5, 0x00ff_ffff)],
            &[(0xffff, 1), (0, 0)],
            &[(2, 0), (2, 0), (8, 1), (9, 1)],
        ],
    );
    draft.send(settings(values));
    // A header list of a thousand bytes may be too small for the request, and the largest window
    // cannot be raised.
    draft.is_unsure |= values.contains(&(6, 1_000)) || values.contains(&(4, 0x7fff_ffff));
    draft.send(settings_ack());
    draft.pieces.push(ReplyPiece::Await(1));
    for _ in 0..rng.below(4) {
        draft.send(random_choice::<fn() -> Vec<u8>>(
            rng,
            &[
                || ping([1; 8]),
                || window_update(0, 1),
                || window_update(1, 70_000),
                || frame(0x42, 0xff, 7, &[0; 300]),
                || frame(Frame::PRIORITY, 0, 1, &[0, 0, 0, 0, 1]),
                || settings(&[(3, 7)]),
                || goaway(0x7fff_ffff, 0),
            ],
        )());
    }
}

fn response(draft: &mut ReplyDraft, rng: &mut Rng) {
    draft.body = body(rng);
    let mut head: Vec<(String, String)> = vec![(":status".to_owned(), "200".to_owned())];
    if rng.below(10) == 0 {
        draft.head_is_broken = true;
        draft.add_note("bad head");
        head = random_choice(rng, BAD_HEADS)
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
    } else if rng.below(8) == 0 {
        draft.is_unsure = true;
        draft.add_note("status");
        head[0].1 = random_choice(rng, STATUSES).to_owned();
    }
    let more: Vec<HostileField> = confusing_non_framing_fields::random_fields(rng);
    head.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    if rng.below(8) == 0 {
        draft.is_unsure = true;
        draft.add_note("unsure field");
        let (name, value) = random_choice(
            rng,
            &[
                ("location", "/next"),
                ("location", "http://["),
                ("content-encoding", "gzip"),
                ("content-encoding", "x, y, z, gzip, br, br"),
                ("content-range", "bytes 9-0/1"),
                ("retry-after", "99999999999"),
                ("trailer", "content-length"),
            ],
        );
        head.push((name.to_owned(), value.to_owned()));
    }
    let length = draft.body.len();
    let told = match rng.below(10) {
        0 => {
            draft.body_is_broken = true;
            draft.add_note("another length");
            Some(length as u64 + 1 + rng.below(1_000))
        }
        1 if length > 0 => {
            draft.body_is_broken = true;
            draft.add_note("a smaller length");
            Some(rng.below(length as u64))
        }
        2..=5 => None,
        _ => Some(length as u64),
    };
    // A second length would be another violation, and the bad heads have their own.
    if let Some(told) = told.filter(|_| !draft.head_is_broken) {
        head.push(("content-length".to_owned(), told.to_string()));
    }
    send_head(draft, rng, &head);
    if rng.below(6) == 0 {
        draft.body_is_broken = true;
        let (what, breach) = random_choice(rng, BREACHES);
        draft.add_note(what);
        draft.send(breach());
    } else if rng.below(12) == 0 {
        draft.body_is_broken = true;
        let (what, flood) = random_choice(rng, FLOODS);
        draft.add_note(what);
        draft.repeat(flood(), FLOOD);
    }
    send_body(draft, rng);
}

fn send_head(draft: &mut ReplyDraft, rng: &mut Rng, head: &[(String, String)]) {
    let borrowed: Vec<(&str, &str)> = head.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let block = block(&borrowed);
    let most = if rng.below(6) == 0 { 1 + block.len() / (1 + rng.below(20) as usize) } else { MOST };
    let mut parts = block.chunks(most.min(MOST)).peekable();
    let first = parts.next().unwrap_or_default();
    let flags = if parts.peek().is_none() { Frame::END_HEADERS } else { 0 };
    draft.send(frame(Frame::HEADERS, flags, 1, first));
    while let Some(part) = parts.next() {
        draft.send(continuation(1, parts.peek().is_none(), part));
    }
}

fn send_body(draft: &mut ReplyDraft, rng: &mut Rng) {
    let content = draft.body.clone();
    let mut room = WINDOW;
    let most = random_choice(rng, &[MOST as u64, MOST as u64, 1_000]);
    let mut rest = content.as_slice();
    let has_trailers = rng.below(8) == 0;
    if rng.below(15) == 0 {
        draft.body_is_broken = true;
        draft.add_note("no end");
        draft.send(data(1, false, &rest[..rest.len().min(MOST)]));
        return;
    }
    while !rest.is_empty() {
        let (part, behind) = rest.split_at((1 + rng.below(most) as usize).min(rest.len()));
        rest = behind;
        room = room.saturating_sub(part.len());
        if part.len() < 16_000 && rng.below(5) == 0 {
            let padding = rng.below(200) as usize;
            let payload = [&[padding as u8][..], part, &vec![0; padding]].concat();
            room = room.saturating_sub(payload.len() - part.len());
            let ends = u8::from(rest.is_empty() && !has_trailers);
            draft.send(frame(Frame::DATA, Frame::PADDED | ends, 1, &payload));
        } else {
            draft.send(data(1, rest.is_empty() && !has_trailers, part));
        }
    }
    // A client may treat more than its window as an error.
    draft.is_unsure |= room == 0;
    if has_trailers {
        draft.add_note("trailers");
        draft.send(headers(1, true, &[("x-trailer", "y"), ("set-cookie", "a=b")]));
    } else if content.is_empty() {
        draft.send(data(1, true, &[]));
    }
}

/// Adds an HPACK bomb to the reply: a field of 4,000 bytes is added to the dynamic table, and then
/// repeated many times by an index of one byte.
fn bomb(draft: &mut ReplyDraft) {
    draft.head_is_broken = true;
    draft.add_note("HPACK bomb");
    let mut bomb = vec![0x88, 0x40, 1, b'x', 127, 0xa1, 0x1e];
    bomb.extend([b'y'; 4_000]);
    bomb.extend([0xbe; 12_000]);
    draft.send(frame(Frame::HEADERS, Frame::END_HEADERS | Frame::END_STREAM, 1, &bomb));
}

/// Adds the start of a response that never gets further: an endless number of interim responses, or
/// a head that is continued without end.
fn endless(draft: &mut ReplyDraft, rng: &mut Rng) {
    draft.head_is_broken = true;
    draft.add_note("endless head");
    draft.end = ReplyEnd::Close;
    match rng.below(3) {
        0 => draft.repeat(headers(1, false, &[(":status", "103"), ("link", "</a>")]), FLOOD),
        1 => {
            draft.send(frame(Frame::HEADERS, 0, 1, &block(&[OK])));
            draft.repeat(continuation(1, false, &[]), FLOOD);
        }
        _ => {
            draft.send(frame(Frame::HEADERS, 0, 1, &block(&[OK])));
            draft.repeat(continuation(1, false, &block(&[("x-a", &"b".repeat(10_000))])), FLOOD);
        }
    }
}
