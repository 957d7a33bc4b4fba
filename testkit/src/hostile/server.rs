//! A server that sends a hostile reply on each connection.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use socket2::SockRef;

use super::{HostileProtocol, HostileReply, ReplyEnd, ReplyPiece};

/// The maximum time for which a read or write of the server waits for an idle client. After that
/// time the session ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The time for which the server waits for a second or later request, before it continues with the
/// reply. It is short, since most replies give the client no reason to send another request.
const PAUSE: Duration = Duration::from_millis(50);
/// The length of the preface of an HTTP/2 connection (RFC 9113 §3.4).
const PREFACE: usize = 24;

/// A running server that sends a hostile reply. Dropping it stops accepting connections; running
/// sessions continue until their clients close them.
pub struct HostileServer {
    addr: SocketAddr,
    stop: Arc<AtomicBool>,
    connections: Arc<AtomicUsize>,
}

impl HostileServer {
    /// Starts a server that sends this reply on every connection, on any free port of loopback.
    ///
    /// # Errors
    /// If no port can be bound on loopback.
    pub fn start(reply: HostileReply) -> io::Result<HostileServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let addr = listener.local_addr()?;
        let (stop, connections) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let server = HostileServer { addr, stop: stop.clone(), connections: connections.clone() };
        let reply = Arc::new(reply);
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if stop.load(SeqCst) {
                    return;
                }
                connections.fetch_add(1, SeqCst);
                let reply = reply.clone();
                // Most sessions end with a client that disconnects.
                thread::spawn(move || drop(play(&stream, &reply)));
            }
        });
        Ok(server)
    }

    /// Returns the address on which the server listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the URL to request, `http://ADDRESS/file`.
    pub fn url(&self) -> String {
        format!("http://{}/file", self.addr)
    }

    /// Returns the number of connections accepted so far.
    pub fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        // Wakes the accept call; if it fails there is nobody to wake.
        let _ = TcpStream::connect(self.addr);
    }
}

fn play(stream: &TcpStream, reply: &HostileReply) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(IDLE_TIMEOUT))?;
    stream.set_read_timeout(Some(IDLE_TIMEOUT))?;
    let (sender, heads) = channel();
    let (reading, protocol) = (stream.try_clone()?, reply.protocol);
    let reader = thread::spawn(move || read(reading, protocol, &sender));
    let sent = send(stream, &reply.pieces, &heads);
    match reply.end {
        ReplyEnd::Close => stream.shutdown(Shutdown::Write)?,
        // The reader shares the socket: only its end closes it.
        ReplyEnd::Reset => {
            SockRef::from(stream).set_linger(Some(Duration::ZERO))?;
            stream.shutdown(Shutdown::Read)?;
        }
        ReplyEnd::Stall => {}
    }
    // Unread bytes would turn the close into a reset, which may overtake what was sent.
    let _ = reader.join();
    sent
}

fn send(mut stream: &TcpStream, pieces: &[ReplyPiece], heads: &Receiver<()>) -> io::Result<()> {
    let mut seen = 0;
    for piece in pieces {
        match piece {
            ReplyPiece::Send(bytes) => stream.write_all(bytes)?,
            ReplyPiece::Repeat(bytes, times) => {
                // Many small writes would only cost time.
                let batch = (1 + 16_000 / bytes.len().max(1)).min(*times as usize).max(1);
                let several = bytes.repeat(batch);
                for _ in 0..(*times as usize).div_ceil(batch) {
                    stream.write_all(&several)?;
                }
            }
            ReplyPiece::Await(count) => {
                while seen < *count {
                    match heads.recv_timeout(if *count == 1 { IDLE_TIMEOUT } else { PAUSE }) {
                        Ok(()) => seen += 1,
                        Err(RecvTimeoutError::Timeout) => break,
                        Err(RecvTimeoutError::Disconnected) => return Ok(()),
                    }
                }
            }
        }
    }
    Ok(())
}

/// Reads from the client until it closes, and sends a message to `heads` for each request head.
fn read(mut stream: TcpStream, protocol: HostileProtocol, heads: &Sender<()>) {
    let mut finder = match protocol {
        HostileProtocol::Http1 => RequestHeadEndFinder::Lines(0),
        HostileProtocol::Http2 => RequestHeadEndFinder::Frames { skip: PREFACE, head: Vec::new() },
    };
    let mut buffer = [0; 8 << 10];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        for _ in 0..finder.find(&buffer[..length]) {
            // The session may be over.
            let _ = heads.send(());
        }
    }
}

/// A parser that finds the ends of request heads in the bytes of a connection. The bytes may arrive
/// in pieces of any size.
enum RequestHeadEndFinder {
    /// HTTP/1: the number of bytes of CR LF CR LF (the end of a head) matched by the last bytes
    /// received.
    Lines(usize),
    /// HTTP/2: `skip` is the number of bytes before the next frame header, and `head` the received
    /// part of that header.
    Frames { skip: usize, head: Vec<u8> },
}

impl RequestHeadEndFinder {
    fn find(&mut self, bytes: &[u8]) -> usize {
        let mut found = 0;
        for &byte in bytes {
            match self {
                RequestHeadEndFinder::Lines(matched) => {
                    *matched = match (byte, *matched) {
                        (b'\r', 0 | 2) | (b'\n', 1 | 3) => *matched + 1,
                        (b'\r', _) => 1,
                        _ => 0,
                    };
                    if *matched == 4 {
                        (*matched, found) = (0, found + 1);
                    }
                }
                RequestHeadEndFinder::Frames { skip, .. } if *skip > 0 => *skip -= 1,
                RequestHeadEndFinder::Frames { skip, head } => {
                    head.push(byte);
                    if let [a, b, c, kind, _, _, _, _, _] = head[..] {
                        *skip = u32::from_be_bytes([0, a, b, c]) as usize;
                        found += usize::from(kind == crate::frames::Frame::HEADERS);
                        head.clear();
                    }
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_heads_are_found_in_split_input() {
        let lines = b"GET / HTTP/1.1\r\nA: b\r\n\r\nGET /\r\r\n\r\n";
        let frames =
            [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], b"\0\0\x02\x04\0\0\0\0\0xx", b"\0\0\x01\x01\x05\0\0\0\x01\x82"]
                .concat();
        for (protocol, bytes, expected) in
            [(HostileProtocol::Http1, &lines[..], 2), (HostileProtocol::Http2, &frames, 1)]
        {
            for cut in 0..bytes.len() {
                let mut finder = match protocol {
                    HostileProtocol::Http1 => RequestHeadEndFinder::Lines(0),
                    HostileProtocol::Http2 => RequestHeadEndFinder::Frames { skip: PREFACE, head: Vec::new() },
                };
                assert_eq!(finder.find(&bytes[..cut]) + finder.find(&bytes[cut..]), expected, "{protocol:?} {cut}");
            }
        }
    }
}
