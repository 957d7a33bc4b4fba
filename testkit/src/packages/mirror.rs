//! The server of a package catalogue: HTTP/1.1 on plain threads, with range requests. It sends the
//! index gzip-coded if the client accepts this. It counts the bytes that it sends.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustls::ServerConfig;

use super::PackageCatalogue;
use crate::byte_range::RequestedPart;
use crate::lock_even_if_poisoned::lock;
use crate::peer_stream::PeerStream;
use crate::test_certificates::TestCertificates;

/// The longest request head that the mirror accepts, in bytes.
const LONGEST_HEAD: usize = 64 << 10;
/// The size of one write to a client in bytes. If a client closes early, the count of bytes sent is
/// too high by at most this number.
const PIECE: usize = 8 << 10;

/// A running mirror of a catalogue of packages. It serves until the process ends, since its threads
/// sleep in `accept`.
pub struct PackageMirror {
    addr: SocketAddr,
    scheme: &'static str,
    shared: Arc<MirrorState>,
}

struct MirrorState {
    catalogue: PackageCatalogue,
    coded_index: Vec<u8>,
    connections: AtomicU64,
    requests: AtomicU64,
    /// The number of body bytes written to sockets, for each path.
    sent: Mutex<HashMap<String, u64>>,
}

impl PackageMirror {
    /// Starts a mirror that serves the catalogue on loopback. With an `identity`, the mirror uses
    /// TLS with that server certificate.
    ///
    /// # Errors
    /// If no port can be bound.
    pub fn start(catalogue: PackageCatalogue, identity: Option<&TestCertificates>) -> io::Result<PackageMirror> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let addr = listener.local_addr()?;
        let tls = identity.map(|identity| identity.server_config(&[b"http/1.1"]));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(catalogue.index())?;
        let shared = Arc::new(MirrorState {
            coded_index: encoder.finish()?,
            catalogue,
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            sent: Mutex::default(),
        });
        let scheme = if tls.is_some() { "https" } else { "http" };
        let mirror = PackageMirror { addr, scheme, shared: Arc::clone(&shared) };
        thread::Builder::new().name("testkit-mirror".into()).spawn(move || {
            for stream in listener.incoming().flatten() {
                shared.connections.fetch_add(1, SeqCst);
                let (shared, tls) = (Arc::clone(&shared), tls.clone());
                // A connection that breaks is the client's business.
                thread::spawn(move || shared.serve(stream, tls.as_ref()));
            }
        })?;
        Ok(mirror)
    }

    /// Returns the address on which the mirror listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the URL of the file with this name at the mirror.
    pub fn url(&self, name: &str) -> String {
        self.url_by(self.addr, name)
    }

    /// Returns the URL of a file for a client that connects through a relay at `addr`.
    pub fn url_by(&self, addr: SocketAddr, name: &str) -> String {
        format!("{}://{addr}/packages/{name}", self.scheme)
    }

    /// Returns the number of connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(SeqCst)
    }

    /// Returns the number of requests received so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(SeqCst)
    }

    /// Returns the number of body bytes of a file that the mirror has written to sockets so far.
    /// Clients received at most this many.
    pub fn sent(&self, name: &str) -> u64 {
        self.shared.sent().get(name).copied().unwrap_or(0)
    }

    /// Returns the length of the gzip-coded index page in bytes.
    pub fn coded_index(&self) -> u64 {
        self.shared.coded_index.len() as u64
    }

    /// Sets the mirror's counts of connections, requests and bytes to zero.
    pub fn reset_counts(&self) {
        self.shared.connections.store(0, SeqCst);
        self.shared.requests.store(0, SeqCst);
        self.shared.sent().clear();
    }
}

impl MirrorState {
    fn sent(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        lock(&self.sent)
    }

    fn serve(&self, stream: TcpStream, tls: Option<&Arc<ServerConfig>>) -> io::Result<()> {
        let mut wire = PeerStream::from_socket(stream, tls)?;
        let mut buffer = Vec::new();
        loop {
            let end = loop {
                if let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                    break end + 4;
                }
                let mut piece = [0; 4096];
                let count = wire.read(&mut piece)?;
                if count == 0 || buffer.len() > LONGEST_HEAD {
                    return Ok(());
                }
                buffer.extend_from_slice(&piece[..count]);
            };
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            buffer.drain(..end);
            self.requests.fetch_add(1, SeqCst);
            self.answer(&mut wire, &head)?;
        }
    }

    fn answer(&self, wire: &mut PeerStream, head: &str) -> io::Result<()> {
        let field = |name: &str| {
            head.lines().find_map(|line| {
                let (field, value) = line.split_once(':')?;
                field.eq_ignore_ascii_case(name).then(|| value.trim())
            })
        };
        let name = head.split(' ').nth(1).and_then(|path| path.strip_prefix("/packages/")).unwrap_or("?");
        let takes_gzip = field("accept-encoding").is_some_and(|codings| codings.contains("gzip"));
        let (body, coding) = match name {
            "" if takes_gzip => (&self.coded_index[..], "Content-Encoding: gzip\r\n"),
            "" => (self.catalogue.index(), ""),
            name => match self.catalogue.find(name) {
                Some(package) => (&package.bytes[..], ""),
                None => {
                    let reply = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone";
                    return wire.write_all(reply.as_bytes()).and_then(|()| wire.flush());
                }
            },
        };
        let tag = format!("\"{name}-{}\"", body.len());
        let range = field("range").filter(|_| field("if-range").is_none_or(|wanted| wanted == tag));
        let (status, place, bytes) = match RequestedPart::from_range_field(range, body.len() as u64) {
            RequestedPart::Part(from, to) => {
                let place = format!("Content-Range: bytes {from}-{}/{}\r\n", to - 1, body.len());
                ("206 Partial Content", place, &body[from as usize..to as usize])
            }
            RequestedPart::Whole | RequestedPart::Unsatisfiable => ("200 OK", String::new(), body),
        };
        let reply =
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: {tag}\r\n{coding}{place}\r\n", bytes.len());
        let first = bytes.len().min(PIECE);
        wire.write_all(&[reply.as_bytes(), &bytes[..first]].concat())?;
        self.count(name, first);
        for piece in bytes[first..].chunks(PIECE) {
            wire.write_all(piece)?;
            self.count(name, piece.len());
        }
        wire.flush()
    }

    fn count(&self, name: &str, bytes: usize) {
        *self.sent().entry(name.to_owned()).or_default() += bytes as u64;
    }
}
