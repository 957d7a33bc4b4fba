//! Generates replies over HTTP/1 from a grammar.

use super::confusing_non_framing_fields::{self, HostileField};
use super::reply_draft::{ReplyDraft, body, random_choice};
use super::{HostileProtocol, ReplyEnd};
use crate::content_coding::{self, ContentCoding};
use crate::rng::Rng;

/// Invalid status lines (RFC 9112 §4).
const BAD_LINES: &[&[u8]] = &[
    b"HTTP/1.1 OK",
    b"HTTP/1.1 20 OK",
    b"HTTP/1.1 2000 OK",
    b"HTTP/1.1 099 OK",
    b"HTTP/1.1  200 OK",
    b"HTTP/1.1200 OK",
    b"HTTP/1.1 200 O\0K",
    b"SSH-2.0-OpenSSH_9.2",
    b"<html>hello</html>",
    b"http/1.1 200 OK",
    b"HTTP/2 200",
    b"HTTP/1.2 200 OK",
    b"HTTP/1.1 -20 OK",
    b"HTTP/11 200 OK",
    b"ICY 200 OK",
    b"\0",
    b"HTTP/1.1 2\xd9\xa00 OK",
];

/// Invalid lines in the head of a response (RFC 9112 §5).
const BAD_FIELDS: &[&[u8]] = &[
    b"Content-Length : 5",
    b"no colon",
    b": no name",
    b"Transfer Encoding: x",
    b"X\0: y",
    b"X: a\0b",
    b"X: a\rb",
    b"X\r: y",
];

/// Lists of framing fields that make a client refuse a response with a body (RFC 9112 §6).
const BAD_FRAMING: &[&str] = &[
    "Content-Length: -1",
    "Content-Length: +5",
    "Content-Length: 42s",
    "Content-Length: 42, 30",
    "Content-Length: 0x2a",
    "Content-Length: 99999999999999999999999999",
    "Content-Length: 1\r\nContent-Length: 2",
    "Content-Length:",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked;q=1",
    "Transfer-Encoding: ,\r\nContent-Length: x",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
];

/// Invalid chunks of a chunked body (RFC 9112 §7.1).
const BAD_CHUNKS: &[&[u8]] = &[
    b"\r\nhello\r\n",
    b";a\r\n",
    b"-5\r\nhello\r\n",
    b"+5\r\nhello\r\n",
    b" 5\r\nhello\r\n",
    b"0x5\r\nhello\r\n",
    b"5h\r\nhello\r\n",
    b"5,5\r\nhello\r\n",
    b"10000000000000005\r\nhello\r\n",
    b"5\rhello\r\n",
    b"5;a\0b\r\nhello\r\n",
    b"5\r\nhello!\r\n",
    b"7\r\nhello\r\n",
    b"0\r\nA : b\r\n\r\n",
    b"5 x\r\nhello\r\n",
    b"5\r\nhello\n\r\n",
    b"\nhello\n",
    b"0\r\nA: b\r\n c\r\n\r\n",
];

/// The line ends for a chunked body. One is chosen at random, LF alone less often than CRLF.
const LINE_ENDS: &[&str] = &["\r\n", "\r\n", "\r\n", "\n"];

/// Status codes that a client may accept or refuse, depending on the client's options.
const STATUSES: &[&str] = &[
    "101 Switching Protocols",
    "204 No Content",
    "205 Reset Content",
    "206 Partial Content",
    "300 Multiple Choices",
    "301 Moved",
    "302 Found",
    "303 See Other",
    "304 Not Modified",
    "307 Temporary",
    "308 Permanent",
    "399 x",
    "401 Unauthorized",
    "404 Not Found",
    "407 Proxy",
    "408 Timeout",
    "412 No",
    "416 Range",
    "417 Expect",
    "421 Misdirected",
    "429 Slow down",
    "500 x",
    "502 x",
    "503 x",
    "599 x",
    "600 x",
    "999 x",
    "000 x",
];

/// Framing fields with which a client may either accept or refuse the response.
const AMBIGUOUS_FRAMING: &[&str] = &[
    "Location: /next",
    "Location: http://[",
    "Location: //",
    "Location: http://user:pw@127.0.0.1:1/",
    "Location: \u{e9}/%zz#?",
    "Location: file:///etc/passwd",
    "Location: https://127.0.0.1:1/",
    "Location:",
    "Location: /a\r\nLocation: /b",
    "Content-Range: bytes 0-9/10",
    "Content-Range: bytes 9-0/1",
    "Content-Range: bytes */*",
    "Content-Range: bytes 0-18446744073709551615/*",
    "Content-Range: x",
    "Connection: close, keep-alive, \"",
    "Connection: upgrade",
    "Upgrade: h2c, websocket",
    "Retry-After: 1",
    "Retry-After: 99999999999999999999",
    "Retry-After: soon",
    "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT",
    "Keep-Alive: timeout=99999999999999, max=-1",
    "X: a\r\n b\r\n\tc",
    "Content-Encoding: gzip",
    "Content-Encoding: gzip, br, zstd, deflate, gzip, gzip",
    "Content-Encoding: x-unknown",
    "Content-Encoding: identity, identity",
    "Content-Encoding: ,",
    "Transfer-Encoding: identity",
    "Trailer: Content-Length",
    "Content-Type: multipart/byteranges; boundary=",
    "Proxy-Connection: close",
];

/// The number of repetitions of an element in a flood. It exceeds the limits of every client.
const FLOOD: u32 = 20_000;

pub(super) fn reply(rng: &mut Rng) -> ReplyDraft {
    let mut draft = ReplyDraft::new(HostileProtocol::Http1);
    interim(&mut draft, rng);
    let version = if rng.below(8) == 0 { "1.0" } else { "1.1" };
    let line = if rng.below(10) == 0 {
        draft.head_is_broken = true;
        draft.add_note("bad line");
        random_choice(rng, BAD_LINES).to_vec()
    } else if rng.below(6) == 0 {
        draft.is_unsure = true;
        draft.add_note("status");
        format!("HTTP/{version} {}", random_choice(rng, STATUSES)).into_bytes()
    } else {
        format!("HTTP/{version} 200 OK").into_bytes()
    };
    draft.send(line);
    draft.send("\r\n");
    let fields: Vec<HostileField> = confusing_non_framing_fields::random_fields(rng);
    for (name, value) in &fields {
        draft.send(format!("{}: {value}\r\n", cased(name, rng)));
    }
    if rng.below(6) == 0 {
        draft.is_unsure = true;
        draft.add_note("unsure field");
        for _ in 0..=rng.below(2) {
            draft.send(format!("{}\r\n", random_choice(rng, AMBIGUOUS_FRAMING)));
        }
    }
    if rng.below(10) == 0 {
        draft.head_is_broken = true;
        draft.add_note("bad field");
        draft.send(random_choice(rng, BAD_FIELDS));
        draft.send("\r\n");
    }
    if rng.below(10) == 0 {
        draft.body_is_broken = true;
        draft.add_note("bad framing");
        draft.send(random_choice(rng, BAD_FRAMING));
        draft.send("\r\n");
    }
    if rng.below(60) == 0 {
        draft.head_is_broken = true;
        draft.add_note("endless head");
        draft.repeat(format!("X-{}: y\r\n", "z".repeat(rng.below(60) as usize)), FLOOD);
    }
    content(&mut draft, rng, version == "1.0");
    if draft.end == ReplyEnd::Close {
        draft.choose_end(rng);
    }
    draft
}

fn cased(name: &str, rng: &mut Rng) -> String {
    if rng.below(3) == 0 { name.to_ascii_uppercase() } else { name.to_owned() }
}

/// Adds interim (1xx) responses to the reply (RFC 9110 §15.2).
fn interim(draft: &mut ReplyDraft, rng: &mut Rng) {
    match rng.below(30) {
        0 => {
            draft.head_is_broken = true;
            draft.add_note("endless 1xx");
            draft.repeat(*b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", FLOOD);
        }
        1..=4 => {
            draft.add_note("1xx");
            for _ in 0..=rng.below(5) {
                draft.send(random_choice(
                    rng,
                    &["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 102 x\r\nA: b\r\n\r\n", "HTTP/1.1 199 \r\n\r\n"],
                ));
            }
        }
        _ => {}
    }
}

fn content(draft: &mut ReplyDraft, rng: &mut Rng, is_old: bool) {
    draft.body = body(rng);
    match rng.below(10) {
        0 => {
            draft.add_note("until the end");
            draft.send("Connection: close\r\n\r\n");
            draft.send(draft.body.clone());
        }
        1..=4 => length(draft, rng),
        // A decompression bomb, and one that is long without being coded.
        5 if rng.below(6) == 0 => bomb(draft, rng),
        _ => {
            // Chunks from an HTTP/1.0 server, which does not have them.
            draft.is_unsure |= is_old;
            chunks(draft, rng);
        }
    }
}

fn length(draft: &mut ReplyDraft, rng: &mut Rng) {
    let length = draft.body.len();
    let told = match rng.below(8) {
        0 => {
            draft.add_note("short");
            draft.body_is_broken = true;
            length as u64 + 1 + rng.below(1_000)
        }
        1 => {
            // A cut body cannot be told from one that something follows, so it ends there.
            draft.add_note("long");
            let cut = rng.below(length as u64 + 1);
            draft.send(format!("Content-Length: {cut}\r\n\r\n"));
            draft.send(draft.body.clone());
            draft.body.truncate(cut as usize);
            return;
        }
        2 if rng.below(4) == 0 => {
            draft.add_note("huge length");
            draft.body_is_broken = true;
            u64::MAX - rng.below(3)
        }
        _ => length as u64,
    };
    draft.send(format!("Content-Length: {told}\r\n\r\n"));
    draft.send(draft.body.clone());
    if !draft.body_is_broken && rng.below(8) == 0 {
        draft.add_note("bytes behind");
        draft.send(random_choice(
            rng,
            &["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", "\r\n", "\0\0\0", "garbage"],
        ));
    }
}

fn chunks(draft: &mut ReplyDraft, rng: &mut Rng) {
    draft.add_note("chunks");
    if rng.below(10) == 0 {
        // Transfer-Encoding overrides this Content-Length (RFC 9112 §6.3).
        draft.send(format!("Content-Length: {}\r\n", rng.below(100)));
        draft.add_note("length beside chunks");
    }
    draft.send(format!(
        "Transfer-Encoding: {}\r\n\r\n",
        random_choice(rng, &["chunked", "chunked", "identity, chunked"])
    ));
    let content = draft.body.clone();
    let mut rest = content.as_slice();
    let bad_at = (rng.below(5) == 0).then(|| rng.below(4));
    for number in 0.. {
        if bad_at == Some(number) || (rest.is_empty() && bad_at.is_some()) {
            draft.body_is_broken = true;
            draft.add_note("bad chunk");
            draft.send(random_choice(rng, BAD_CHUNKS));
            return;
        }
        if rest.is_empty() {
            break;
        }
        let most = if rng.below(4) == 0 { 30 } else { 70_000 };
        let (chunk, behind) = rest.split_at(1 + rng.below(most.min(rest.len() as u64)) as usize);
        // Small chunks to the end would make a long script.
        let (chunk, behind) = if number > 60 { (rest, &rest[rest.len()..]) } else { (chunk, behind) };
        // Blanks and lines without CR are breaches that leave no doubt.
        let extension = random_choice(rng, &["", "", "", ";a", ";a=b;c=\"d\"", ";", " ", "\t "]);
        draft.send(format!("{:x}{extension}{}", chunk.len(), random_choice(rng, LINE_ENDS)));
        draft.send(chunk);
        draft.send(random_choice(rng, LINE_ENDS));
        rest = behind;
    }
    match rng.below(12) {
        0 => {
            draft.body_is_broken = true;
            draft.add_note("no last chunk");
        }
        1 => {
            draft.body_is_broken = true;
            draft.add_note("endless extensions");
            draft.repeat(format!("1;{}\r\nx\r\n", "y".repeat(200)), FLOOD);
        }
        2 => {
            draft.body_is_broken = true;
            draft.add_note("endless trailers");
            draft.send("0\r\n");
            draft.repeat(*b"X-Trailer: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n", FLOOD);
        }
        3 => {
            // Trailers do not change the head (RFC 9110 §6.5.1).
            draft.add_note("trailers");
            draft.send("0\r\nContent-Length: 5\r\nX-Trailer: y\r\nSet-Cookie: a=b\r\n\r\n");
        }
        _ => draft.send("0\r\n\r\n"),
    }
}

fn bomb(draft: &mut ReplyDraft, rng: &mut Rng) {
    draft.is_unsure = true;
    draft.add_note("bomb");
    let coding =
        random_choice(rng, &[ContentCoding::Gzip, ContentCoding::Deflate, ContentCoding::Br, ContentCoding::Zstd]);
    if coding == ContentCoding::Gzip {
        draft.send("Content-Encoding: gzip\r\nConnection: close\r\n\r\n");
        content_coding::bomb(64 + rng.below(200)).iter().for_each(|piece| draft.send(piece));
    } else {
        draft.send(format!("Content-Encoding: {}, {}\r\nConnection: close\r\n\r\n", coding.token(), coding.token()));
        draft.send(coding.encode(&coding.encode(&vec![b'a'; 1 << 22])));
    }
}
