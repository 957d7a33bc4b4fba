//! A test proxy with simple threads: HTTP (forwarding and CONNECT, plain or over TLS) and SOCKS 4,
//! 4a and 5. It records what it receives, and shares no code with the client.

use crate::common::FetchOutcome;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use haul::net::dns::{DnsCacheOptions, Resolver};
use haul::net::proxy::ProxyOptions;
use haul::{Client, ErrorKind, RequestOptions};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

trait ProxyStream: Read + Write + Send {
    fn socket(&self) -> &TcpStream;
}

impl ProxyStream for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl ProxyStream for StreamOwned<ServerConnection, TcpStream> {
    fn socket(&self) -> &TcpStream {
        &self.sock
    }
}

/// The behaviour of a [`TestProxy`].
#[derive(Clone, Default)]
pub(crate) struct TestProxyBehavior {
    /// The user and password that the proxy requires; `None` if it requires none.
    pub(crate) login: Option<(&'static str, &'static str)>,
    /// True to require Digest authentication instead of Basic.
    pub(crate) digest: bool,
    /// True to send the proxy's responses byte by byte.
    pub(crate) bytewise: bool,
    /// The TLS configuration of the proxy; `None` for a proxy without TLS.
    pub(crate) tls: Option<Arc<ServerConfig>>,
}

/// A running test proxy.
pub(crate) struct TestProxy {
    pub(crate) addr: SocketAddr,
    received_heads: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
}

impl TestProxy {
    pub(crate) fn start(rules: TestProxyBehavior) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let received_heads = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let (log, count) = (Arc::clone(&received_heads), Arc::clone(&connections));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                *count.lock().unwrap() += 1;
                let _ = stream.set_nodelay(true);
                let (rules, log) = (rules.clone(), Arc::clone(&log));
                thread::spawn(move || {
                    // A client that closes its connection ends the relay.
                    let _ = match &rules.tls {
                        Some(config) => {
                            let tls = ServerConnection::new(Arc::clone(config)).unwrap();
                            serve(&mut StreamOwned::new(tls, stream), &rules, &log)
                        }
                        None => serve(&mut { stream }, &rules, &log),
                    };
                });
            }
        });
        Self { addr, received_heads, connections }
    }

    /// Returns all that the proxy has received: the heads of requests, and SOCKS requests as
    /// `socks5 host:port` and `login user:password`.
    pub(crate) fn received(&self) -> Vec<String> {
        self.received_heads.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

fn serve(client: &mut dyn ProxyStream, rules: &TestProxyBehavior, log: &Mutex<Vec<String>>) -> io::Result<()> {
    match byte(client)? {
        4 => socks4(client, rules, log),
        5 => socks5(client, rules, log),
        first => http(client, first, rules, log),
    }
}

/// Connects to the host and port in `authority`. Names under `.test` are resolved to this machine,
/// as by the client's resolver.
fn reach(authority: &str) -> io::Result<TcpStream> {
    match authority.split_once(".test:") {
        Some((_, port)) => TcpStream::connect(format!("127.0.0.1:{port}")),
        None => TcpStream::connect(authority),
    }
}

fn byte(from: &mut dyn ProxyStream) -> io::Result<u8> {
    let mut one = [0];
    from.read_exact(&mut one)?;
    Ok(one[0])
}

fn bytes(from: &mut dyn ProxyStream, count: usize) -> io::Result<Vec<u8>> {
    let mut all = vec![0; count];
    from.read_exact(&mut all)?;
    Ok(all)
}

fn until_nul(from: &mut dyn ProxyStream) -> io::Result<String> {
    let mut text = Vec::new();
    loop {
        match byte(from)? {
            0 => return Ok(String::from_utf8(text).unwrap()),
            other => text.push(other),
        }
    }
}

fn answer(client: &mut dyn ProxyStream, rules: &TestProxyBehavior, bytes: &[u8]) -> io::Result<()> {
    if rules.bytewise {
        for byte in bytes {
            client.write_all(&[*byte])?;
            client.flush()?;
        }
        return Ok(());
    }
    client.write_all(bytes)?;
    client.flush()
}

fn socks4(client: &mut dyn ProxyStream, rules: &TestProxyBehavior, log: &Mutex<Vec<String>>) -> io::Result<()> {
    let head = bytes(client, 7)?;
    let user = until_nul(client)?;
    let port = u16::from_be_bytes([head[1], head[2]]);
    let host = match head[3..7] {
        [0, 0, 0, 1] => until_nul(client)?,
        [a, b, c, d] => Ipv4Addr::new(a, b, c, d).to_string(),
        _ => unreachable!(),
    };
    log.lock().unwrap().push(format!("socks4 {host}:{port}"));
    if rules.login.is_some_and(|(known, _)| known != user) {
        return answer(client, rules, &[0, 93, 0, 0, 0, 0, 0, 0]);
    }
    let Ok(far) = reach(&format!("{host}:{port}")) else {
        return answer(client, rules, &[0, 91, 0, 0, 0, 0, 0, 0]);
    };
    answer(client, rules, &[0, 90, 0, 0, 0, 0, 0, 0])?;
    relay(client, far)
}

fn socks5(client: &mut dyn ProxyStream, rules: &TestProxyBehavior, log: &Mutex<Vec<String>>) -> io::Result<()> {
    let count = byte(client)?;
    let methods = bytes(client, count.into())?;
    match rules.login {
        Some((user, password)) => {
            if !methods.contains(&2) {
                return answer(client, rules, &[5, 0xff]);
            }
            answer(client, rules, &[5, 2])?;
            byte(client)?;
            let mut part = || {
                let length = byte(client)?;
                bytes(client, length.into()).map(|part| String::from_utf8(part).unwrap())
            };
            let login = (part()?, part()?);
            log.lock().unwrap().push(format!("login {}:{}", login.0, login.1));
            if (login.0.as_str(), login.1.as_str()) != (user, password) {
                return answer(client, rules, &[1, 1]);
            }
            answer(client, rules, &[1, 0])?;
        }
        None => answer(client, rules, &[5, 0])?,
    }
    let head = bytes(client, 4)?;
    let host = match head[3] {
        1 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes(client, 4)?).unwrap()).to_string(),
        3 => {
            let length = byte(client)?;
            String::from_utf8(bytes(client, length.into())?).unwrap()
        }
        4 => std::net::Ipv6Addr::from(<[u8; 16]>::try_from(bytes(client, 16)?).unwrap()).to_string(),
        other => panic!("no such type of address: {other}"),
    };
    let port = bytes(client, 2)?;
    let port = u16::from_be_bytes([port[0], port[1]]);
    log.lock().unwrap().push(format!("socks5 {host}:{port}"));
    let Ok(far) = reach(&format!("{host}:{port}")) else {
        return answer(client, rules, &[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]);
    };
    // The longest possible reply, with a host name.
    answer(client, rules, b"\x05\x00\x00\x03\x09localhost\x00\x50")?;
    relay(client, far)
}

fn http(
    client: &mut dyn ProxyStream,
    first: u8,
    rules: &TestProxyBehavior,
    log: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let mut head = vec![first];
    loop {
        while !head.ends_with(b"\r\n\r\n") {
            head.push(byte(client)?);
        }
        let text = String::from_utf8(std::mem::take(&mut head)).unwrap();
        log.lock().unwrap().push(text.clone());
        let mut words = text.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let given = text.lines().find_map(|line| line.strip_prefix("Proxy-Authorization: "));
        let is_welcome = match (rules.login, given) {
            (None, _) => true,
            (Some((user, password)), Some(given)) if rules.digest => is_digest(given, method, user, password),
            (Some((user, password)), Some(given)) => given == basic(user, password),
            (Some(_), None) => false,
        };
        if !is_welcome {
            let challenge = if rules.digest {
                "Digest realm=\"r\", nonce=\"n1\", qop=\"auth\", algorithm=SHA-256"
            } else {
                "Basic realm=\"r\""
            };
            let refusal =
                format!("HTTP/1.1 407 Who?\r\nProxy-Authenticate: {challenge}\r\nContent-Length: 4\r\n\r\nwho?");
            answer(client, rules, refusal.as_bytes())?;
            continue;
        }
        if method == "CONNECT" {
            let Ok(far) = reach(target) else {
                return answer(client, rules, b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n");
            };
            answer(client, rules, b"HTTP/1.1 103 Wait\r\n\r\nHTTP/1.0 200 Connection established\r\nVia: x\r\n\r\n")?;
            return relay(client, far);
        }
        // Forwards one request after the other, each on a new connection.
        let rest = target.strip_prefix("http://").expect("an absolute form");
        let (authority, path) = rest.split_at(rest.find('/').unwrap());
        let mut far = TcpStream::connect(authority)?;
        let fields: Vec<&str> = text.lines().skip(1).filter(|line| !line.starts_with("Proxy-")).collect();
        let request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n{}\r\n", fields.join("\r\n"));
        far.write_all(request.as_bytes())?;
        let mut response = Vec::new();
        far.read_to_end(&mut response)?;
        let response = String::from_utf8(response).unwrap().replacen("connection: close\r\n", "", 1);
        answer(client, rules, response.as_bytes())?;
    }
}

pub(crate) fn basic(user: &str, password: &str) -> String {
    use base64::Engine;
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}")))
}

/// Returns true if `given`, a Digest answer with SHA-256, is correct for this user and password
/// (RFC 7616 section 3.4).
fn is_digest(given: &str, method: &str, user: &str, password: &str) -> bool {
    let part = |name: &str| {
        let parts = given.strip_prefix("Digest ")?.split(", ");
        parts.filter_map(|part| part.split_once('=')).find(|(key, _)| *key == name).map(|(_, v)| v.trim_matches('"'))
    };
    let hash = |text: String| {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let Some([uri, nc, cnonce, response]) =
        (|| Some([part("uri")?, part("nc")?, part("cnonce")?, part("response")?]))()
    else {
        return false;
    };
    let (a1, a2) = (hash(format!("{user}:r:{password}")), hash(format!("{method}:{uri}")));
    part("username") == Some(user) && response == hash(format!("{a1}:n1:{nc}:{cnonce}:auth:{a2}"))
}

fn relay(client: &mut dyn ProxyStream, mut far: TcpStream) -> io::Result<()> {
    let tick = Some(Duration::from_millis(1));
    far.set_nodelay(true)?;
    far.set_read_timeout(tick)?;
    client.socket().set_read_timeout(tick)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        for to_far in [true, false] {
            let got = if to_far { client.read(&mut buffer) } else { far.read(&mut buffer) };
            match got {
                Ok(0) => return Ok(()),
                Ok(n) if to_far => far.write_all(&buffer[..n])?,
                Ok(n) => {
                    client.write_all(&buffer[..n])?;
                    client.flush()?;
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

pub(crate) fn adjusted(mut options: RequestOptions, adjust: impl FnOnce(&mut ProxyOptions)) -> RequestOptions {
    adjust(options.proxy.as_mut().unwrap());
    options
}

#[track_caller]
pub(crate) fn assert_fails(got: &FetchOutcome, kind: ErrorKind, exit: u8, says: &str) {
    assert_eq!((got.kind, got.exit), (Some(kind), exit), "{}: {}", got.url, got.message);
    assert!(got.message.contains(says), "{}", got.message);
    assert!(!got.message.contains("secret"), "{}", got.message);
}

/// Creates a client that resolves names under `.test` to this machine.
pub(crate) fn client() -> Client {
    Client::with_resolver(Resolver::with_lookup(DnsCacheOptions::default(), |name| {
        if name.ends_with(".test") { Ok(vec!["127.0.0.1".parse().unwrap()]) } else { Ok(Vec::new()) }
    }))
}
