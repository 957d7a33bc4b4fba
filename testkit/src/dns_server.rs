//! A DNS server on loopback, over UDP and TCP. A function of the test supplies its responses.
//!
//! ```
//! use testkit::dns_server::DnsServer;
//!
//! let server = DnsServer::start(|query| vec![query.addresses(&["127.0.0.1".parse().unwrap()])]).unwrap();
//! assert!(server.address().ip().is_loopback());
//! assert!(server.queries().is_empty());
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read, Write};
use std::mem;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size_force;

const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;
const TYPE_AAAA: u16 = 28;
const TYPE_HTTPS: u16 = 65;
const CLASS_IN: u16 = 1;
/// The header flags of a DNS response: QR (response), RD (recursion desired) and RA (recursion
/// available).
const RESPONSE: u16 = 0x8180;
/// The flag TC: the response is truncated.
const TRUNCATED: u16 = 0x0200;
const TTL: u32 = 60;
/// The size of the server's UDP receive buffer in bytes, enough for thousands of queries.
const RECEIVE_BUFFER: usize = 4 << 20;

/// A DNS query as the server received it. Its methods create responses to the query.
#[derive(Clone, Debug)]
pub struct ReceivedQuery {
    /// The queried name, spelt in upper and lower case as in the query, without a final dot.
    pub name: String,
    /// The queried record type: 1 for A, 28 for AAAA, 65 for HTTPS.
    pub record_type: u16,
    /// True if the query came over TCP, false if over UDP.
    pub tcp: bool,
    /// The identifier of the query, which its response repeats.
    pub id: u16,
    /// The client's address, from which the query came.
    pub from: SocketAddr,
    question: Vec<u8>,
}

/// The contents of an HTTPS record (RFC 9460).
#[derive(Clone, Debug, Default)]
pub struct HttpsRecordData {
    /// The SvcPriority; 0 makes an AliasMode record.
    pub priority: u16,
    /// The TargetName; empty stands for the name that owns the record.
    pub target: String,
    /// The protocols in the `alpn` parameter.
    pub alpn: Vec<String>,
    /// The port in the `port` parameter; `None` if the record has none.
    pub port: Option<u16>,
    /// The addresses in the `ipv4hint` parameter.
    pub ipv4_hints: Vec<Ipv4Addr>,
    /// The ECHConfigList in the `ech` parameter, for Encrypted Client Hello; empty if the record
    /// has none.
    pub ech: Vec<u8>,
}

impl HttpsRecordData {
    /// Makes a record of priority 1 whose target is the owner of the record, with this ALPN
    /// identifier.
    #[must_use]
    pub fn with_alpn(alpn: &str) -> Self {
        Self { priority: 1, alpn: vec![alpn.to_owned()], ..Self::default() }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.priority.to_be_bytes().to_vec();
        bytes.extend(if self.target.is_empty() { vec![0] } else { wire_name(&self.target) });
        let mut parameter = |key: u16, value: &[u8]| {
            if !value.is_empty() {
                bytes.extend(key.to_be_bytes());
                bytes.extend(u16::try_from(value.len()).expect("a short value").to_be_bytes());
                bytes.extend(value);
            }
        };
        let alpn: Vec<u8> =
            self.alpn.iter().flat_map(|name| [&[name.len() as u8][..], name.as_bytes()].concat()).collect();
        parameter(1, &alpn);
        parameter(3, &self.port.map(u16::to_be_bytes).map(Vec::from).unwrap_or_default());
        parameter(4, &self.ipv4_hints.iter().flat_map(Ipv4Addr::octets).collect::<Vec<_>>());
        parameter(5, &self.ech);
        bytes
    }
}

/// A response, and the time to wait before it is sent.
#[derive(Clone, Debug)]
pub struct DnsReply {
    /// The encoded DNS message.
    pub message: Vec<u8>,
    /// The time to wait before the message is sent over UDP. Over TCP, messages are sent without a
    /// delay.
    pub delay: Duration,
}

impl DnsReply {
    /// Sets the time to wait before this reply is sent.
    #[must_use]
    pub fn with_delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

impl ReceivedQuery {
    pub(crate) fn parse(message: &[u8], tcp: bool, from: SocketAddr) -> Option<Self> {
        let id = u16::from_be_bytes(*message.first_chunk()?);
        let (mut name, mut at) = (String::new(), 12);
        loop {
            let length = usize::from(*message.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(&String::from_utf8_lossy(message.get(at..at + length)?));
            at += length;
        }
        let record_type = u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]);
        Some(Self { name, record_type, tcp, id, from, question: message.get(12..at + 4)?.to_vec() })
    }

    /// Returns a response with an address record for each of `addresses` whose family matches the
    /// queried type: IPv4 for A, IPv6 for AAAA.
    #[must_use]
    pub fn addresses(&self, addresses: &[IpAddr]) -> DnsReply {
        let records: Vec<Vec<u8>> = addresses.iter().filter_map(|address| self.record(&self.name, address)).collect();
        self.reply(RESPONSE, &records)
    }

    /// Returns a response with a chain of CNAME records that starts at the name of the query, and
    /// with the addresses of the last name.
    #[must_use]
    pub fn aliases(&self, chain: &[&str], addresses: &[IpAddr]) -> DnsReply {
        let mut owner = self.name.as_str();
        let mut records = Vec::new();
        for target in chain {
            records.push(record(owner, TYPE_CNAME, &wire_name(target)));
            owner = target;
        }
        records.extend(addresses.iter().filter_map(|address| self.record(owner, address)));
        self.reply(RESPONSE, &records)
    }

    /// Returns a response with these HTTPS records (RFC 9460). The response is empty if another
    /// type was queried.
    #[must_use]
    pub fn https(&self, records: &[HttpsRecordData]) -> DnsReply {
        let records: Vec<Vec<u8>> = match self.record_type {
            TYPE_HTTPS => records.iter().map(|data| record(&self.name, TYPE_HTTPS, &data.to_bytes())).collect(),
            _ => Vec::new(),
        };
        self.reply(RESPONSE, &records)
    }

    /// Returns a response with this DNS response code, such as 2 (SERVFAIL), 3 (NXDOMAIN) or 5
    /// (REFUSED).
    #[must_use]
    pub fn error(&self, code: u8) -> DnsReply {
        self.reply(RESPONSE | u16::from(code), &[])
    }

    /// Returns an empty response with the flag TC, which tells the client to ask again over TCP.
    #[must_use]
    pub fn truncated(&self) -> DnsReply {
        self.reply(RESPONSE | TRUNCATED, &[])
    }

    fn record(&self, owner: &str, address: &IpAddr) -> Option<Vec<u8>> {
        match address {
            IpAddr::V4(address) if self.record_type == TYPE_A => Some(record(owner, TYPE_A, &address.octets())),
            IpAddr::V6(address) if self.record_type == TYPE_AAAA => Some(record(owner, TYPE_AAAA, &address.octets())),
            _ => None,
        }
    }

    fn reply(&self, flags: u16, records: &[Vec<u8>]) -> DnsReply {
        let mut message = Vec::new();
        let count = u16::try_from(records.len()).expect("few records");
        for word in [self.id, flags, 1, count, 0, 0] {
            message.extend(word.to_be_bytes());
        }
        message.extend(&self.question);
        message.extend(records.concat());
        DnsReply { message, delay: Duration::ZERO }
    }
}

fn wire_name(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).expect("a short label"));
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

fn record(owner: &str, record_type: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = wire_name(owner);
    bytes.extend(record_type.to_be_bytes());
    bytes.extend(CLASS_IN.to_be_bytes());
    bytes.extend(TTL.to_be_bytes());
    bytes.extend(u16::try_from(data.len()).expect("short data").to_be_bytes());
    bytes.extend(data);
    bytes
}

/// The function with which a test answers queries. It returns the responses to send; an empty list
/// means no response.
pub type DnsAnswerFunction = dyn Fn(&ReceivedQuery) -> Vec<DnsReply> + Send + Sync;

struct DnsServerState {
    answer: Box<DnsAnswerFunction>,
    queries: Mutex<Vec<ReceivedQuery>>,
    stop: AtomicBool,
}

impl DnsServerState {
    fn replies(&self, message: &[u8], tcp: bool, from: SocketAddr) -> Vec<DnsReply> {
        let Some(query) = ReceivedQuery::parse(message, tcp, from) else { return Vec::new() };
        let replies = (self.answer)(&query);
        self.queries.lock().expect("no panic").push(query);
        replies
    }
}

/// A running DNS server. Dropping it stops it.
pub struct DnsServer {
    address: SocketAddr,
    shared: Arc<DnsServerState>,
    threads: Vec<JoinHandle<()>>,
}

impl DnsServer {
    /// Starts a DNS server on a free port of 127.0.0.1. `answer` returns the replies to a query; if
    /// it returns none, the server stays silent.
    ///
    /// # Errors
    /// If no port is free.
    pub fn start(answer: impl Fn(&ReceivedQuery) -> Vec<DnsReply> + Send + Sync + 'static) -> io::Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), answer)
    }

    /// Starts a DNS server on a free port of `ip`, an address of this computer. `answer` returns
    /// the replies to a query; if it returns none, the server stays silent.
    ///
    /// # Errors
    /// If the computer has no such address, or no port is free.
    pub fn start_on(
        ip: IpAddr,
        answer: impl Fn(&ReceivedQuery) -> Vec<DnsReply> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::start_at((ip, 0).into(), answer)
    }

    /// Starts a DNS server on this address and port; port 0 means any free port. `answer` returns
    /// the replies to a query; if it returns none, the server stays silent.
    ///
    /// # Errors
    /// If the computer has no such address, or if the port is in use or not allowed.
    pub fn start_at(
        address: SocketAddr,
        answer: impl Fn(&ReceivedQuery) -> Vec<DnsReply> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let (udp, tcp) = bind_both(address)?;
        // Without root the buffer keeps its size, and a burst of some hundred queries may be cut.
        let _ = set_socket_recv_buffer_size_force(&udp, RECEIVE_BUFFER);
        let address = udp.local_addr()?;
        let shared =
            DnsServerState { answer: Box::new(answer), queries: Mutex::default(), stop: AtomicBool::new(false) };
        let shared = Arc::new(shared);
        let (for_udp, for_tcp) = (Arc::clone(&shared), Arc::clone(&shared));
        let threads = vec![
            thread::spawn(move || serve_udp(&udp, &for_udp)),
            thread::spawn(move || {
                for stream in tcp.incoming().flatten() {
                    if for_tcp.stop.load(Ordering::SeqCst) {
                        return;
                    }
                    // A client that is broken off is no fault of the server.
                    let _ = serve_tcp(stream, &for_tcp);
                }
            }),
        ];
        Ok(Self { address, shared, threads })
    }

    /// Returns the address and port on which the server listens over both UDP and TCP.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the queries received so far, in order of arrival.
    ///
    /// # Panics
    /// If a thread of the server has panicked while it recorded a query.
    #[must_use]
    pub fn queries(&self) -> Vec<ReceivedQuery> {
        self.shared.queries.lock().expect("no panic").clone()
    }

    /// Removes and returns the queries recorded since the last call of this function.
    ///
    /// # Panics
    /// If a thread of the server has panicked while it recorded a query.
    #[must_use]
    pub fn take_queries(&self) -> Vec<ReceivedQuery> {
        mem::take(&mut self.shared.queries.lock().expect("no panic"))
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Wakes both threads.
        let _ = UdpSocket::bind((self.address.ip(), 0)).and_then(|socket| socket.send_to(&[], self.address));
        let _ = TcpStream::connect(self.address);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Binds a UDP socket and a TCP listener to one port number of this address.
fn bind_both(address: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
    let mut last = io::Error::other("no port");
    for _ in 0..20 {
        let udp = UdpSocket::bind(address)?;
        match TcpListener::bind(udp.local_addr()?) {
            Ok(tcp) => return Ok((udp, tcp)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn serve_udp(socket: &UdpSocket, shared: &DnsServerState) {
    let mut later: BinaryHeap<Reverse<(Instant, SocketAddr, Vec<u8>)>> = BinaryHeap::new();
    let mut buffer = [0; 2048];
    let mut waits = None;
    while !shared.stop.load(Ordering::SeqCst) {
        let now = Instant::now();
        while later.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            if let Some(Reverse((_, to, message))) = later.pop() {
                let _ = socket.send_to(&message, to);
            }
        }
        let wait =
            later.peek().map(|Reverse((at, ..))| at.saturating_duration_since(now).max(Duration::from_millis(1)));
        if wait.is_some() || waits != wait {
            let _ = socket.set_read_timeout(wait);
            waits = wait;
        }
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        for reply in shared.replies(&buffer[..length], false, from) {
            if reply.delay.is_zero() {
                let _ = socket.send_to(&reply.message, from);
            } else {
                later.push(Reverse((Instant::now() + reply.delay, from, reply.message)));
            }
        }
    }
}

fn serve_tcp(mut stream: TcpStream, shared: &DnsServerState) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message)?;
    for reply in shared.replies(&message, true, stream.peer_addr()?) {
        let length = u16::try_from(reply.message.len()).map_err(io::Error::other)?;
        stream.write_all(&length.to_be_bytes())?;
        stream.write_all(&reply.message)?;
    }
    Ok(())
}
