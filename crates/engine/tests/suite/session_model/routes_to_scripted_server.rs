//! The routes of a session to a [`ScriptedServer`](super::scripted_server::ScriptedServer): plain
//! or TLS, direct or through proxies that the server plays. The server records requests that arrive
//! at the wrong peer, and wrong credentials.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haul::net::dns::{DnsCacheOptions, Resolver};
use haul::net::proxy::{ProxyAuthScheme, ProxyOptions};
use haul::net::tls::TlsVersion;
use haul::{ClientBuilder, RequestOptions};
use haul_policy::proxy::Proxy;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use socket2::SockRef;
use tempfile::NamedTempFile;
use testkit::rng::Rng;
use testkit::test_certificates::TestCertificates;

use crate::support::seeds::one_of;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirectOrProxyRoute {
    Direct,
    /// The connection uses an HTTP proxy that forwards requests.
    Forward,
    Tunnel,
    Socks,
}

/// The authentication that the scripted proxy requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequiredProxyAuth {
    No,
    Basic,
    Digest,
}

/// A number of uses that no test reaches. It means: no limit.
const FOR_EVER: u64 = 1000;

/// The random properties of a session's connections: TLS, proxy, and failures.
#[derive(Clone, Debug)]
pub(crate) struct SessionRoute {
    /// True if the origins use TLS.
    pub(crate) tls: bool,
    pub(crate) tls12: bool,
    /// True if the server ends each TLS connection with close_notify.
    pub(crate) notifies: bool,
    pub(crate) via: DirectOrProxyRoute,
    /// True if the connection to the proxy uses TLS.
    pub(crate) proxy_tls: bool,
    pub(crate) login: RequiredProxyAuth,
    /// True if the client has a wrong password for the proxy.
    pub(crate) is_stranger: bool,
    /// The number of requests for which one Digest nonce of the proxy is valid.
    pub(crate) uses: u64,
    /// True if the proxy closes the connection after a challenge.
    pub(crate) leaves: bool,
    /// The number of connections that the server breaks, each at a random byte.
    pub(crate) breaks: u64,
    /// The number of correct requests that the proxy still refuses.
    pub(crate) refusals: u64,
    pub(crate) hosts: u64,
    pub(crate) seed: u64,
}

impl SessionRoute {
    pub(crate) fn direct() -> Self {
        Self {
            tls: false,
            tls12: false,
            notifies: true,
            via: DirectOrProxyRoute::Direct,
            proxy_tls: false,
            login: RequiredProxyAuth::No,
            is_stranger: false,
            uses: FOR_EVER,
            leaves: false,
            breaks: 0,
            refusals: 0,
            hosts: 1,
            seed: 0,
        }
    }

    pub(crate) fn any(rng: &mut Rng) -> Self {
        let via = one_of(
            rng,
            &[
                DirectOrProxyRoute::Direct,
                DirectOrProxyRoute::Forward,
                DirectOrProxyRoute::Tunnel,
                DirectOrProxyRoute::Tunnel,
                DirectOrProxyRoute::Socks,
            ],
        );
        let is_http = matches!(via, DirectOrProxyRoute::Forward | DirectOrProxyRoute::Tunnel);
        let login = match via {
            DirectOrProxyRoute::Direct => RequiredProxyAuth::No,
            DirectOrProxyRoute::Socks => one_of(rng, &[RequiredProxyAuth::No, RequiredProxyAuth::Basic]),
            _ => one_of(rng, &[RequiredProxyAuth::No, RequiredProxyAuth::Basic, RequiredProxyAuth::Digest]),
        };
        Self {
            tls: via == DirectOrProxyRoute::Direct || (via != DirectOrProxyRoute::Forward && rng.below(2) == 0),
            tls12: rng.below(4) == 0,
            notifies: rng.below(2) == 0,
            via,
            proxy_tls: is_http && rng.below(3) == 0,
            login,
            is_stranger: login != RequiredProxyAuth::No && rng.below(12) == 0,
            uses: one_of(rng, &[8, 30, FOR_EVER]),
            leaves: rng.below(3) == 0,
            breaks: one_of(rng, &[0, 0, 1, 3]),
            refusals: if is_http { one_of(rng, &[0, 0, 0, 2]) } else { 0 },
            hosts: one_of(rng, &[1, 1, 3]),
            seed: rng.next(),
        }
    }

    /// Returns true if the proxy's Digest nonces become stale during the session.
    pub(crate) fn is_forgetful(&self) -> bool {
        self.login == RequiredProxyAuth::Digest && self.uses < FOR_EVER
    }

    /// Returns true if the route uses TLS. TLS reveals whether a body that is delimited by the end
    /// of the connection was truncated.
    pub(crate) fn is_secure(&self) -> bool {
        self.tls || self.proxy_tls
    }

    pub(crate) fn host(&self, number: u64) -> String {
        format!("h{}.test", number % self.hosts)
    }

    /// Adds the proxy, TLS and resolver settings of this route to a client. `port` is the port of
    /// the scripted server.
    pub(crate) fn client(&self, builder: ClientBuilder, port: u16, rng: &mut Rng) -> ClientBuilder {
        let resolver = Resolver::with_lookup(DnsCacheOptions::default(), |name| {
            Ok(if name.ends_with(".test") { vec![Ipv4Addr::LOCALHOST.into()] } else { Vec::new() })
        });
        let password = if self.is_stranger { "wrong" } else { "password" };
        let user = if self.login == RequiredProxyAuth::No { String::new() } else { format!("proxy-user:{password}@") };
        let mut options = RequestOptions::default();
        options.tls.ca_file = Some(identity().1.path().to_owned());
        if self.tls12 {
            options.tls.max_version = TlsVersion::V1_2;
        }
        options.tls.resume = rng.below(4) > 0;
        let scheme = match (self.via, self.proxy_tls) {
            (DirectOrProxyRoute::Socks, _) => one_of(rng, &["socks5", "socks5h"]),
            (_, true) => "https",
            (_, false) => "http",
        };
        let proxy = (self.via != DirectOrProxyRoute::Direct).then(|| {
            let mut proxy = ProxyOptions::default();
            proxy.proxy = Some(Proxy::parse(&format!("{scheme}://{user}127.0.0.1:{port}")).unwrap());
            proxy.tls = options.tls.clone();
            proxy.tunnel = self.via == DirectOrProxyRoute::Tunnel;
            proxy.auth = match self.login {
                RequiredProxyAuth::Digest => one_of(rng, &[ProxyAuthScheme::Digest, ProxyAuthScheme::Any]),
                _ => one_of(rng, &[ProxyAuthScheme::Basic, ProxyAuthScheme::Any]),
            };
            proxy
        });
        builder.resolver(resolver).options(|own| {
            own.tls = options.tls;
            own.proxy = proxy;
        })
    }
}

/// Returns the scripted server's certificates, the file with its CA certificate, and its TLS
/// configuration.
fn identity() -> &'static (TestCertificates, NamedTempFile, Arc<ServerConfig>) {
    static IDENTITY: OnceLock<(TestCertificates, NamedTempFile, Arc<ServerConfig>)> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let identity = TestCertificates::for_names(&["127.0.0.1", "h0.test", "h1.test", "h2.test"]);
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), identity.ca_pem()).unwrap();
        let config = identity.server_config(&[b"http/1.1"]);
        (identity, file, config)
    })
}

/// A connection made of layers: a socket, and any number of TLS and buffer layers above it.
pub(crate) trait LayeredStream: Read + Write + Send {
    /// Ends all TLS layers of the connection. Each sends close_notify if `notifies` is true.
    fn end(&mut self, notifies: bool);
    /// Updates the TLS keys of the outermost TLS layer, if there is one.
    fn renew(&mut self);
}

/// A socket whose connection breaks after a given number of written bytes.
struct BreakingSocket {
    stream: TcpStream,
    left: usize,
    resets: bool,
}

impl Read for BreakingSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl Write for BreakingSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.stream.write(&bytes[..bytes.len().min(self.left)])?;
        self.left -= n;
        if self.left == 0 {
            if self.resets {
                let _ = SockRef::from(&self.stream).set_linger(Some(std::time::Duration::ZERO));
            }
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LayeredStream for BreakingSocket {
    fn end(&mut self, _: bool) {}
    fn renew(&mut self) {}
}

/// A layer of a connection that buffers reads, so that lines can be read.
pub(crate) struct BufferedLayer(BufReader<Box<dyn LayeredStream>>);

impl BufferedLayer {
    fn new(inner: impl LayeredStream + 'static) -> Self {
        Self(BufReader::new(Box::new(inner)))
    }
}

impl Read for BufferedLayer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl BufRead for BufferedLayer {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.0.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.0.consume(amount);
    }
}

impl Write for BufferedLayer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.get_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.get_mut().flush()
    }
}

impl LayeredStream for BufferedLayer {
    fn end(&mut self, notifies: bool) {
        self.0.get_mut().end(notifies);
    }

    fn renew(&mut self) {
        self.0.get_mut().renew();
    }
}

impl LayeredStream for StreamOwned<ServerConnection, BufferedLayer> {
    fn end(&mut self, notifies: bool) {
        if notifies {
            self.conn.send_close_notify();
            let _ = self.flush();
        }
        self.sock.end(notifies);
    }

    fn renew(&mut self) {
        // TLS 1.2 has no key update.
        let _ = self.conn.refresh_traffic_keys();
    }
}

fn secured(inner: BufferedLayer) -> io::Result<BufferedLayer> {
    let conn = ServerConnection::new(Arc::clone(&identity().2)).expect("a configuration");
    let mut stream = StreamOwned::new(conn, inner);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(BufferedLayer::new(stream))
}

/// The proxy that the scripted server plays in front of its origins.
pub(crate) struct ScriptedProxy {
    pub(crate) route: SessionRoute,
    state: Mutex<ScriptedProxyState>,
}

/// The failures that a scripted proxy must still cause, and the received Digest answers.
struct ScriptedProxyState {
    rng: Rng,
    breaks: u64,
    refusals: u64,
    /// The Digest answers that the proxy has received, as nonce and nonce count. The same pair must
    /// not occur twice.
    counted: HashSet<(u64, String)>,
    answers: u64,
}

/// A connection that the scripted server has accepted and for which all proxy and TLS layers are
/// set up.
pub(crate) struct IncomingConnection {
    pub(crate) far: BufferedLayer,
    /// The host name for which the client opened the tunnel. `None` without a tunnel.
    pub(crate) host: Option<String>,
}

/// The scripted proxy's decision on a request.
pub(crate) enum ProxyDecision {
    Yes,
    /// The request is refused with this response. The `bool` is true if the proxy then closes the
    /// connection.
    No(Vec<u8>, bool),
}

impl ScriptedProxy {
    pub(crate) fn new(route: SessionRoute) -> Self {
        let state = ScriptedProxyState {
            rng: Rng::new(route.seed),
            breaks: route.breaks,
            refusals: route.refusals,
            counted: HashSet::new(),
            answers: 0,
        };
        Self { route, state: Mutex::new(state) }
    }

    /// Accepts a connection of a client, and sets up all proxy and TLS layers up to the origin.
    /// Calls `note` with an error that the client has made.
    pub(crate) fn open(&self, stream: TcpStream, note: &dyn Fn(String) -> io::Error) -> io::Result<IncomingConnection> {
        let route = &self.route;
        let mut far = BufferedLayer::new(self.breaking(stream));
        if route.proxy_tls {
            far = secured(far)?;
        }
        let host = match route.via {
            DirectOrProxyRoute::Direct | DirectOrProxyRoute::Forward => None,
            DirectOrProxyRoute::Tunnel => Some(self.tunnel(&mut far, note)?),
            DirectOrProxyRoute::Socks => self.socks(&mut far, note)?,
        };
        if route.tls {
            far = secured(far)?;
        }
        Ok(IncomingConnection { far, host })
    }

    fn breaking(&self, stream: TcpStream) -> BreakingSocket {
        let mut state = self.state.lock().unwrap();
        let breaks = state.breaks > 0 && state.rng.below(3) == 0;
        state.breaks -= u64::from(breaks);
        let most = one_of(&mut state.rng, &[2, 20, 100, 1_200, 3_000, 20_000, 300_000]);
        let left = if breaks { 1 + state.rng.below(most) as usize } else { usize::MAX };
        BreakingSocket { stream, left, resets: state.rng.below(2) == 0 }
    }

    fn tunnel(&self, far: &mut BufferedLayer, note: &dyn Fn(String) -> io::Error) -> io::Result<String> {
        loop {
            let mut line = String::new();
            if far.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let words: Vec<_> = line.trim_end().split(' ').collect();
            let &["CONNECT", authority, "HTTP/1.1"] = &words[..] else {
                return Err(note(format!("to a proxy: {line:?}")));
            };
            let mut given = None;
            loop {
                let mut field = String::new();
                far.read_line(&mut field)?;
                let Some((name, value)) = field.trim_end().split_once(": ") else { break };
                match name.to_ascii_lowercase().as_str() {
                    "host" if value != authority => return Err(note(format!("{line:?} {field:?}"))),
                    "proxy-authorization" => given = Some(value.to_owned()),
                    "host" | "user-agent" | "proxy-connection" => {}
                    _ => return Err(note(format!("in a CONNECT: {field:?}"))),
                }
            }
            match self.decide("CONNECT", authority, given.as_deref(), note)? {
                ProxyDecision::Yes => {
                    far.write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?;
                    return Ok(authority.split(':').next().unwrap().to_owned());
                }
                ProxyDecision::No(answer, closes) => {
                    far.write_all(&answer)?;
                    if closes {
                        far.end(self.route.notifies);
                        return Err(io::ErrorKind::PermissionDenied.into());
                    }
                }
            }
        }
    }

    fn socks(&self, far: &mut BufferedLayer, note: &dyn Fn(String) -> io::Error) -> io::Result<Option<String>> {
        fn part(far: &mut BufferedLayer) -> io::Result<String> {
            let mut length = [0];
            far.read_exact(&mut length)?;
            let mut text = vec![0; length[0].into()];
            far.read_exact(&mut text)?;
            Ok(String::from_utf8(text).unwrap())
        }
        let mut head = [0; 1];
        far.read_exact(&mut head)?;
        let methods = part(far)?;
        if self.route.login == RequiredProxyAuth::Basic {
            if !methods.contains('\x02') {
                return Err(note("no user for SOCKS".into()));
            }
            far.write_all(&[5, 2])?;
            far.read_exact(&mut head)?;
            let login = (part(far)?, part(far)?);
            if login.0 != "proxy-user" || (login.1 != "password") != self.route.is_stranger {
                return Err(note(format!("{login:?} for SOCKS")));
            }
            far.write_all(&[1, u8::from(self.route.is_stranger)])?;
            if self.route.is_stranger {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
        } else {
            far.write_all(&[5, 0])?;
        }
        let mut head = [0; 4];
        far.read_exact(&mut head)?;
        let host = match head[3] {
            1 => {
                far.read_exact(&mut [0; 4])?;
                None
            }
            3 => Some(part(far)?),
            _ => return Err(note(format!("to SOCKS: {head:?}"))),
        };
        far.read_exact(&mut [0; 2])?;
        far.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
        Ok(host)
    }

    /// Decides whether the proxy accepts a request.
    pub(crate) fn decide(
        &self,
        method: &str,
        uri: &str,
        given: Option<&str>,
        note: &dyn Fn(String) -> io::Error,
    ) -> io::Result<ProxyDecision> {
        let route = &self.route;
        let mut state = self.state.lock().unwrap();
        let closes = route.leaves;
        let connection = if closes { "Connection: close\r\n" } else { "" };
        let refusal = |status: u16, field: String| {
            let text = format!("HTTP/1.1 {status} So\r\n{field}{connection}Content-Length: 6\r\n\r\nproxy\n");
            ProxyDecision::No(text.into_bytes(), closes)
        };
        let answer = match (route.login, given) {
            (RequiredProxyAuth::No, Some(given)) => {
                return Err(note(format!("{given:?} for a proxy that asks nothing")));
            }
            (RequiredProxyAuth::No, None) => ProxyDecision::Yes,
            (RequiredProxyAuth::Basic, given) => {
                let right = format!("Basic {}", STANDARD.encode("proxy-user:password"));
                let wrong = format!("Basic {}", STANDARD.encode("proxy-user:wrong"));
                match given {
                    Some(given) if given == right && !route.is_stranger => ProxyDecision::Yes,
                    Some(given) if given != wrong => return Err(note(format!("{given:?} for a proxy"))),
                    _ => refusal(407, "Proxy-Authenticate: Basic realm=\"p\"\r\n".into()),
                }
            }
            (RequiredProxyAuth::Digest, given) => {
                // Two nonces are valid at any time, each for a number of answers.
                let current = state.answers / route.uses;
                let (mut stale, mut right) = (false, false);
                if let Some(given) = given {
                    let digest = DigestAnswer::of(given).ok_or_else(|| note(format!("{given:?} for a proxy")))?;
                    right = digest.is_right(method, uri);
                    if right == route.is_stranger {
                        return Err(note(format!("{method} {uri}: {given}")));
                    }
                    // After an older challenge arrived late, a newer nonce counts from the start.
                    if right && !state.counted.insert((digest.nonce, digest.nc.clone())) && !route.is_forgetful() {
                        return Err(note(format!("again: {given}")));
                    }
                    stale = right && digest.nonce + 1 < current;
                    state.answers += u64::from(right && !stale);
                }
                if right && !stale {
                    ProxyDecision::Yes
                } else {
                    let challenge = "Digest realm=\"p\", qop=\"auth\", algorithm=SHA-256";
                    let stale = if stale { ", stale=true" } else { "" };
                    refusal(407, format!("Proxy-Authenticate: {challenge}, nonce=\"n{current}\"{stale}\r\n"))
                }
            }
        };
        if matches!(answer, ProxyDecision::Yes) && state.refusals > 0 && state.rng.below(4) == 0 {
            state.refusals -= 1;
            let status = if method == "CONNECT" { one_of(&mut state.rng, &[403, 502, 503]) } else { 502 };
            return Ok(refusal(status, String::new()));
        }
        Ok(answer)
    }
}

/// A Digest answer in a request's Proxy-Authorization field.
struct DigestAnswer {
    parts: Vec<(String, String)>,
    nonce: u64,
    nc: String,
}

impl DigestAnswer {
    fn of(given: &str) -> Option<Self> {
        let parts = given.strip_prefix("Digest ")?.split(", ");
        let parts: Option<Vec<_>> = parts
            .map(|part| part.split_once('=').map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned())))
            .collect();
        let mut digest = Self { parts: parts?, nonce: 0, nc: String::new() };
        digest.nonce = digest.part("nonce")?.strip_prefix('n')?.parse().ok()?;
        digest.nc = digest.part("nc")?.to_owned();
        Some(digest)
    }

    fn part(&self, name: &str) -> Option<&str> {
        self.parts.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns true if the Digest answer is correct for this request (RFC 7616 section 3.4).
    fn is_right(&self, method: &str, uri: &str) -> bool {
        let hash = |text: String| {
            let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
            digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let (a1, a2) = (hash("proxy-user:p:password".into()), hash(format!("{method}:{uri}")));
        let Some(cnonce) = self.part("cnonce") else { return false };
        let expected = hash(format!("{a1}:n{}:{}:{cnonce}:auth:{a2}", self.nonce, self.nc));
        self.part("uri") == Some(uri) && self.part("response") == Some(expected.as_str())
    }
}
