//! A simple client on plain sockets that parses replies itself, so that the tests do not depend on
//! an HTTP library.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A parsed response. Its body may still have chunked framing.
pub struct PlainReply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl PlainReply {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// Sends one GET for `target` on a new connection and reads to the end of the connection. `fields`
/// contains additional header lines, each terminated by CRLF.
pub fn get(addr: SocketAddr, target: &str, fields: &str) -> PlainReply {
    let request = format!("GET {target} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n{fields}\r\n");
    talk(&mut TcpStream::connect(addr).unwrap(), request.as_bytes())
}

/// Sends the bytes of `request` and reads the response up to the end of the connection.
pub fn talk(stream: &mut (impl Read + Write), request: &[u8]) -> PlainReply {
    stream.write_all(request).unwrap();
    stream.flush().unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    parse(&bytes)
}

pub fn parse(bytes: &[u8]) -> PlainReply {
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    PlainReply { status: head[9..12].parse().unwrap(), head, body: bytes[end..].to_vec() }
}

/// Removes the chunked framing from a body. Returns the content, and the bytes after the size line
/// of the last chunk (the trailer section).
pub fn unchunked(mut bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut out = Vec::new();
    loop {
        let line = bytes.windows(2).position(|w| w == b"\r\n").expect("a size line");
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..line]).unwrap(), 16).unwrap();
        bytes = &bytes[line + 2..];
        if size == 0 {
            return (out, bytes.to_vec());
        }
        out.extend_from_slice(&bytes[..size]);
        bytes = &bytes[size + 2..];
    }
}
