//! The server for both commands. The path of a request determines the response, and all received
//! bytes are stored.
//!
//! | path | response |
//! |---|---|
//! | `/hello` | `hello\n`, a type, a date of modification, an entity tag; ranges and conditions are respected |
//! | `/r?s=301&h=Location:/hello&b=x` | this status, these fields (`h`, several), this body; see [`reply`] |
//! | `/basic`, `/digest` | 401 without credentials |
//! | `/empty`, `/garbage`, `/reset` | no response; bytes that are not HTTP; a reset in the middle of a head |
//!
//! The server uses threads, and parses only as much HTTP as it needs to find the end of a request.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The bytes of a request that the test server received, and the number of its connection.
/// Connections are counted from the last call of [`ScriptedOrigin::take`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestBytes {
    pub(crate) connection: usize,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Default)]
struct RequestLog {
    connections: usize,
    requests: Vec<RequestBytes>,
}

pub(crate) struct ScriptedOrigin {
    port: u16,
    seen: Arc<Mutex<RequestLog>>,
}

impl ScriptedOrigin {
    pub(crate) fn start() -> ScriptedOrigin {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let seen = Arc::new(Mutex::new(RequestLog::default()));
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&shared);
                thread::spawn(move || serve(stream, port, &seen));
            }
        });
        ScriptedOrigin { port, seen }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the requests that the test server received since the last call.
    pub(crate) fn take(&self) -> Vec<RequestBytes> {
        std::mem::take(&mut *self.seen.lock().expect("nobody panics with it")).requests
    }
}

fn serve(mut stream: TcpStream, port: u16, seen: &Mutex<RequestLog>) {
    let _ = stream.set_nodelay(true);
    let mut number = None;
    let mut ahead = Vec::new();
    while let Some(head) = read_head(&mut stream, &mut ahead) {
        let text = String::from_utf8_lossy(&head).into_owned();
        let field = |name: &str| {
            text.lines().skip(1).find_map(|line| {
                let (found, value) = line.split_once(':')?;
                found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let (connection, index) = {
            let mut seen = seen.lock().expect("nobody panics with it");
            let connection = *number.get_or_insert_with(|| {
                seen.connections += 1;
                seen.connections
            });
            seen.requests.push(RequestBytes { connection, bytes: head.clone() });
            (connection, seen.requests.len() - 1)
        };
        let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
        let refuses = path.contains("refuse-body");
        if field("expect").is_some() && !refuses && !path.contains("no-continue") {
            let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let mut body = Vec::new();
        if !(refuses && field("expect").is_some()) {
            let is_chunked = field("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
            if is_chunked {
                while !ends_chunks(&ahead) && fill(&mut stream, &mut ahead) {}
                body = std::mem::take(&mut ahead);
            } else {
                let length = field("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
                while ahead.len() < length && fill(&mut stream, &mut ahead) {}
                body = ahead.drain(..length.min(ahead.len())).collect();
            }
        }
        let answered = {
            let mut seen = seen.lock().expect("nobody panics with it");
            // The test may have gone on to another case; then the request is no longer in the list.
            if let Some(request) = seen.requests.get_mut(index).filter(|request| request.connection == connection) {
                request.bytes.extend_from_slice(&body);
            }
            reply(&text, &path, port, &field)
        };
        if stream.write_all(&answered.bytes).is_err() || answered.closes {
            return;
        }
    }
}

fn ends_chunks(bytes: &[u8]) -> bool {
    bytes == b"0\r\n\r\n" || bytes.ends_with(b"\r\n0\r\n\r\n")
}

fn fill(stream: &mut TcpStream, into: &mut Vec<u8>) -> bool {
    let mut piece = [0; 65536];
    match stream.read(&mut piece) {
        Ok(0) | Err(_) => false,
        Ok(n) => {
            into.extend_from_slice(&piece[..n]);
            true
        }
    }
}

fn read_head(stream: &mut TcpStream, ahead: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        if let Some(end) = ahead.windows(4).position(|window| window == b"\r\n\r\n") {
            return Some(ahead.drain(..end + 4).collect());
        }
        if !fill(stream, ahead) {
            return None;
        }
    }
}

/// The bytes of a response of the test server. `closes` is true if the server then closes the
/// connection.
pub(crate) struct ScriptedAnswer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) closes: bool,
}

impl ScriptedAnswer {
    fn of(bytes: impl Into<Vec<u8>>, closes: bool) -> ScriptedAnswer {
        ScriptedAnswer { bytes: bytes.into(), closes }
    }
}

const MODIFIED: &str = "Wed, 21 Oct 2015 07:28:00 GMT";
const HELLO: &[u8] = b"hello\n";

fn reply(head: &str, path: &str, port: u16, field: &dyn Fn(&str) -> Option<String>) -> ScriptedAnswer {
    let is_head = head.starts_with("HEAD ");
    // A proxy receives the whole URL.
    let path = match path.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        None => path,
    };
    let (place, query) = path.split_once('?').unwrap_or((path, ""));
    match place.split('/').nth(1).unwrap_or_default() {
        "empty" => ScriptedAnswer::of("", true),
        "garbage" => ScriptedAnswer::of("this is no HTTP\n", true),
        "reset" => ScriptedAnswer::of("HTTP/1.1 200 OK\r\nContent-", true),
        "r" => scripted(query, port, is_head),
        "basic" if field("authorization").is_none() => ScriptedAnswer::of(
            "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 3\r\n\r\nno\n",
            false,
        ),
        "digest" if !field("authorization").is_some_and(|value| value.contains("response=")) => {
            let challenge = match place.rsplit('/').next() {
                Some("sha256") => "algorithm=SHA-256, qop=\"auth\"",
                Some("session") => "algorithm=MD5-sess, qop=\"auth\"",
                Some("opaque") => "opaque=\"o\", algorithm=MD5",
                _ => "qop=\"auth\", algorithm=MD5",
            };
            let text = format!(
                "HTTP/1.1 401 No\r\nWWW-Authenticate: Digest realm=\"x\", nonce=\"abc\", {challenge}\r\n\
                 Content-Length: 3\r\n\r\n{}",
                if is_head { "" } else { "no\n" }
            );
            ScriptedAnswer::of(text, false)
        }
        "proxy-auth" if field("proxy-authorization").is_none() => ScriptedAnswer::of(
            "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 3\r\n\r\nno\n",
            false,
        ),
        _ => hello(place, is_head, field),
    }
}

/// Returns the response of the test server for `/hello` and for every path that has no special
/// response. `place` is the path, and `field` returns the value of a request field.
fn hello(place: &str, is_head: bool, field: &dyn Fn(&str) -> Option<String>) -> ScriptedAnswer {
    let fields = format!("Content-Type: text/plain\r\nLast-Modified: {MODIFIED}\r\nETag: \"one\"\r\nServer: test\r\n");
    let is_same = field("if-none-match").is_some_and(|tag| tag.contains("\"one\""));
    let is_old = field("if-modified-since").is_some_and(|date| date == MODIFIED);
    if is_same || is_old {
        return ScriptedAnswer::of(format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n"), false);
    }
    let long: Vec<u8> = (0..1000).flat_map(|line| format!("line {line}\n").into_bytes()).collect();
    let content = if place.starts_with("/long") { &long[..] } else { HELLO };
    let mut status = "200 OK".to_owned();
    let (mut range, mut extra) = (0..content.len(), String::new());
    if let Some(asked) = field("range").and_then(|value| value.strip_prefix("bytes=").map(str::to_owned)) {
        match asked_range(&asked, content.len()) {
            Some(found) => {
                status = "206 Partial Content".to_owned();
                extra = format!("Content-Range: bytes {}-{}/{}\r\n", found.start, found.end - 1, content.len());
                range = found;
            }
            None => {
                let text =
                    format!("HTTP/1.1 416 No\r\nContent-Range: bytes */{}\r\nContent-Length: 0\r\n\r\n", content.len());
                return ScriptedAnswer::of(text, false);
            }
        }
    }
    let body = &content[range];
    let mut bytes = format!("HTTP/1.1 {status}\r\n{fields}{extra}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    if !is_head {
        bytes.extend_from_slice(body);
    }
    ScriptedAnswer::of(bytes, false)
}

/// Returns the first range of a `Range` header field, for content of `length` bytes. Returns `None`
/// if the range is beyond the content.
fn asked_range(asked: &str, length: usize) -> Option<std::ops::Range<usize>> {
    let first = asked.split(',').next()?;
    let (from, to) = first.split_once('-')?;
    let range = match (from.parse::<usize>().ok(), to.parse::<usize>().ok()) {
        (Some(from), Some(to)) => from..(to + 1).min(length),
        (Some(from), None) => from..length,
        (None, Some(last)) => length.saturating_sub(last)..length,
        (None, None) => return None,
    };
    (range.start < range.end && range.start < length).then_some(range)
}

/// Returns the response that the query of the path `/r` describes. Its parameters are:
///
/// - `s`: the status (default 200)
/// - `v`: the HTTP version (default 1.1)
/// - `h`: a header field (may be repeated)
/// - `b`: the body
/// - `chunked`: sends the body in chunks
/// - `nolen`: sends the body without a length
/// - `close`: closes the connection after the response
/// - `cut`: sends only half of the body
/// - `gzip`: the body, which is sent in gzip format
/// - `i`: the status of an interim response that is sent first
fn scripted(query: &str, port: u16, is_head: bool) -> ScriptedAnswer {
    let (mut status, mut version) = ("200".to_owned(), "1.1".to_owned());
    let (mut fields, mut body, mut interim) = (String::new(), Vec::new(), String::new());
    let (mut chunked, mut nolen, mut closes, mut cut) = (false, false, false, false);
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value).replace("PORT", &port.to_string());
        match key {
            "s" => status = value,
            "v" => version = value,
            "h" => fields.push_str(&format!("{value}\r\n")),
            "b" => body = value.into_bytes(),
            "i" => interim = format!("HTTP/1.1 {value} Interim\r\nX-Interim: yes\r\n\r\n"),
            "gzip" => body = gzip(value.as_bytes()),
            "chunked" => chunked = true,
            "nolen" => nolen = true,
            "close" => closes = true,
            "cut" => cut = true,
            _ => {}
        }
    }
    let has_body = !matches!(status.as_str(), "204" | "304");
    if chunked {
        fields.push_str("Transfer-Encoding: chunked\r\n");
    } else if !nolen && has_body {
        fields.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    if closes {
        fields.push_str("Connection: close\r\n");
    }
    let mut bytes = format!("{interim}HTTP/{version} {status} Scripted\r\n{fields}\r\n").into_bytes();
    if !is_head && has_body {
        if chunked {
            for piece in body.chunks(4) {
                bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                bytes.extend_from_slice(piece);
                bytes.extend_from_slice(b"\r\n");
            }
            if !cut {
                bytes.extend_from_slice(b"0\r\n\r\n");
            }
        } else {
            let end = if cut { body.len() / 2 } else { body.len() };
            bytes.extend_from_slice(&body[..end]);
        }
    }
    ScriptedAnswer::of(bytes, nolen || closes || cut)
}

/// Returns `content` in gzip format. It is stored in one block without compression, so that no
/// compressor is needed.
fn gzip(content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let length = u16::try_from(content.len()).expect("a small body");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&(!length).to_le_bytes());
    bytes.extend_from_slice(content);
    let crc = content.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    });
    bytes.extend_from_slice(&(!crc).to_le_bytes());
    bytes.extend_from_slice(&u32::from(length).to_le_bytes());
    bytes
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let digits = rest.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (byte, digits) {
            (b'%', Some(value)) => {
                bytes.push(value);
                rest = &rest[2..];
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
