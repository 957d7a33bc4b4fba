//! An embedded server that serves a [`GeneratedSite`] and a set of routes for tests: plain and TLS,
//! HTTP/1.1 and, if enabled, HTTP/2 and HTTP/3.
//!
//! The server runs on its own threads and stops when it is dropped. It records connections,
//! requests and their bodies.
//!
//! | route | reply |
//! |---|---|
//! | `/1` `/2` `/3` `/AS<number>` | the site; Range, If-Range, If-None-Match; `?enc=CODING[,CODING…]` encodes it in that order, `?enc=auto` by Accept-Encoding |
//! | `/bytes/N` | N bytes of [`BytePattern`] with Content-Length and the strong ETag `"SEED-N"`; Range (206, 416), If-Range, If-None-Match |
//! | `/weak/N` | like `/bytes/N`, but with the weak ETag `W/"SEED-N"` |
//! | `/chunked/N` | the bytes of `/bytes/N`, chunked; `?trailer=1` adds a trailer `X-Total: N` |
//! | `/close/N` | the bytes of `/bytes/N` up to the end of the connection (an HTTP/1.0 reply) |
//! | `/text/N` | N bytes of [`compressible_text`](crate::byte_pattern::compressible_text), encoded according to Accept-Encoding or `?enc=` |
//! | `/gzip/N` `/deflate/N` `/rawdeflate/N` `/br/N` `/zstd/N` | the text of `/text/N` in that coding, regardless of Accept-Encoding |
//! | `/bomb/MIB` | that many MiB of zeros as gzip, about 1 KiB each |
//! | `/small`, `/small/N` | `small\n`, `small N\n` |
//! | `/status/CODE` | that status with a line of body where the status may have one |
//! | `/early/CODE` | that status, without waiting for the content of the request |
//! | `/redirect/CODE?to=URL` | that status; Location is the percent-decoded URL |
//! | `/chain/N` | N redirects (302), then `end of chain\n` |
//! | `/discard` | `LENGTH CRC32` of the request's content, which is not kept in memory |
//! | `/echo` | JSON: `method`, `target`, `version`, `headers` (pairs, in order), `body`, `body_len`, `connection`, `tls` |
//! | `/dns-query` | the DNS message with which [`OriginBuilder::dns`] answers (RFC 8484) |
//! | `/delay/MS/REST` | waits MS milliseconds, then replies as `/REST` |
//! | `/hints/N/REST` | over HTTP/3, N interim responses 103 (Early Hints), then as `/REST` |
//! | `/flaky/K/REST` | the first K requests for this path get 503, the others `/REST` |
//! | `/api/...`, `/login`, `/private/REST`, `/limited/SECS/REST` | a JSON API with pages (`paged_api`) |
//! | `/retry-after/SECS/REST` | the first request for this path gets 503 with Retry-After, the others `/REST` |
//! | anything else | 404 |
//!
//! ```
//! use std::io::{Read, Write};
//! use testkit::origin::Origin;
//!
//! let origin = Origin::builder().start().unwrap();
//! let mut stream = std::net::TcpStream::connect(origin.http_addr()).unwrap();
//! stream.write_all(b"GET /small/7 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
//! let mut reply = String::new();
//! stream.read_to_string(&mut reply).unwrap();
//! assert!(reply.ends_with("\r\n\r\nsmall 7\n"));
//! assert_eq!(origin.hits("/small/7"), 1);
//! ```
//!
//! Not supported: broken framing (see [`crate::h1_peer`] and [`crate::frames`]), rate limits and
//! delays of the link (see [`crate::relay`]).

mod body;
mod entity;
mod http3;
mod paged_api;
mod request_log;
mod routes;
mod serve;

pub use request_log::LoggedRequest;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;
use socket2::Socket;
use tokio::net::TcpListener;
use tokio::runtime::{self, Runtime};

use crate::byte_pattern::BytePattern;
use crate::dns_server::{DnsAnswerFunction, DnsReply, ReceivedQuery};
use crate::http3::{CLOSE_TIME, Http3Settings, HttpsSockets, QuicListener, listen, listen_on};
use crate::site::GeneratedSite;
use crate::test_certificates::TestCertificates;
use request_log::OriginRequestLog;

/// The initial size in bytes of an HTTP/2 flow-control window (RFC 9113 section 6.9.2).
const RFC_WINDOW: u32 = 65_535;

/// The settings of an origin; made by [`Origin::builder`].
pub struct OriginBuilder {
    site: GeneratedSite,
    ip: IpAddr,
    http_port: u16,
    https_port: u16,
    threads: usize,
    record: bool,
    identity: Option<TestCertificates>,
    http2: Option<u32>,
    http2_window: u32,
    http3: Option<Http3Settings>,
    advertise_http3: bool,
    tls_over_tcp: bool,
    dns: Option<Box<DnsAnswerFunction>>,
}

impl OriginBuilder {
    /// Sets the site to serve. Default: `GeneratedSite::scaled(1, 30)`. The seed of the site is
    /// also the seed of the content of `/bytes` and `/text`.
    pub fn site(mut self, site: GeneratedSite) -> OriginBuilder {
        self.site = site;
        self
    }

    /// Sets the IP address to listen on. Default: 127.0.0.1.
    pub fn ip(mut self, ip: IpAddr) -> OriginBuilder {
        self.ip = ip;
        self
    }

    /// Sets the port for plain HTTP. Default: 0, which means any free port.
    pub fn http_port(mut self, port: u16) -> OriginBuilder {
        self.http_port = port;
        self
    }

    /// Sets the port for TLS. Default: 0, which means any free port.
    pub fn https_port(mut self, port: u16) -> OriginBuilder {
        self.https_port = port;
        self
    }

    /// Sets the number of worker threads. Default: 1.
    pub fn threads(mut self, threads: usize) -> OriginBuilder {
        self.threads = threads;
        self
    }

    /// Sets whether the server counts requests for each path and keeps a log of requests. Default:
    /// yes. Turn it off for millions of requests. The total numbers of connections and requests are
    /// counted anyway.
    pub fn record(mut self, record: bool) -> OriginBuilder {
        self.record = record;
        self
    }

    /// Enables HTTP/2 with this many concurrent streams on a connection. Clients select HTTP/2 by
    /// ALPN over TLS, or by sending the HTTP/2 preface on a plain connection. Default: HTTP/1.1
    /// only.
    pub fn http2(mut self, max_streams: u32) -> OriginBuilder {
        self.http2 = Some(max_streams);
        self
    }

    /// Sets the HTTP/2 flow-control window in bytes, for each stream and for the connection.
    /// Default: 65,535, as in RFC 9113, so that large uploads have to wait for more credit.
    pub fn http2_window(mut self, bytes: u32) -> OriginBuilder {
        self.http2_window = bytes;
        self
    }

    /// Enables HTTP/3 on the UDP port that has the number of the TLS port. Default: no HTTP/3.
    pub fn http3(mut self, settings: Http3Settings) -> OriginBuilder {
        self.http3 = Some(settings);
        self
    }

    /// Announces HTTP/3 on the TLS port by an Alt-Svc field in each reply over TLS and TCP, even if
    /// [`OriginBuilder::http3`] is off. Default: no.
    pub fn advertise_http3(mut self) -> OriginBuilder {
        self.advertise_http3 = true;
        self
    }

    /// Sets whether the TLS port accepts TCP connections or refuses them. Default: it accepts them.
    pub fn tls_over_tcp(mut self, is_on: bool) -> OriginBuilder {
        self.tls_over_tcp = is_on;
        self
    }

    /// Sets the certificate authority and the server certificate. Default: newly generated ones for
    /// localhost, 127.0.0.1 and ::1.
    pub fn identity(mut self, identity: TestCertificates) -> OriginBuilder {
        self.identity = Some(identity);
        self
    }

    /// Answers each DNS query at `/dns-query` with the first reply that `answer` returns. The delay
    /// of that reply is ignored.
    pub fn dns(mut self, answer: impl Fn(&ReceivedQuery) -> Vec<DnsReply> + Send + Sync + 'static) -> OriginBuilder {
        self.dns = Some(Box::new(answer));
        self
    }

    /// Binds the ports for plain HTTP and for TLS, and starts serving.
    ///
    /// # Errors
    /// If the port cannot be bound or a thread cannot be started.
    pub fn start(self) -> io::Result<Origin> {
        let http = listen(SocketAddr::new(self.ip, self.http_port))?;
        let https = HttpsSockets::bind(SocketAddr::new(self.ip, self.https_port), self.http3.is_some())?;
        let http_addr = http.local_addr()?;
        let https_addr = https.tcp.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
        let identity = self.identity.unwrap_or_else(TestCertificates::generate);
        let alt_svc = format!("h3=\":{}\"; ma=3600", https_addr.port());
        let state = Arc::new(OriginState {
            pattern: BytePattern::new(self.site.seed()),
            site: self.site,
            record: OriginRequestLog::new(self.record),
            http2: self.http2,
            http2_window: self.http2_window,
            alt_svc: self.advertise_http3.then(|| HeaderValue::from_str(&alt_svc).expect("plain ASCII")),
            dns: self.dns,
        });
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(self.threads.max(1))
            .enable_all()
            .thread_name("testkit-origin")
            .build()?;
        let alpn: &[&[u8]] = if self.http2.is_some() { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
        let tls = identity.server_config(alpn);
        let context = runtime.enter();
        runtime.spawn(serve::accept(TcpListener::from_std(http)?, None, state.clone()));
        let unused = if self.tls_over_tcp {
            let https = TcpListener::from_std(listen_on(https.tcp)?)?;
            runtime.spawn(serve::accept(https, Some(tls), state.clone()));
            None
        } else {
            Some(https.tcp)
        };
        let quic = match https.udp {
            Some(socket) => Some(Arc::new(QuicListener::start(socket, &identity, self.http3.unwrap_or_default())?)),
            None => None,
        };
        if let Some(listener) = &quic {
            runtime.spawn(http3::accept(listener.clone(), state.clone()));
        }
        drop(context);
        let ca_pem = identity.ca_pem().to_owned();
        Ok(Origin { http_addr, https_addr, ca_pem, state, quic, _unused: unused, runtime: Some(runtime) })
    }
}

/// A running origin. Dropping it stops it and closes its connections. Do not drop it inside an
/// async runtime.
pub struct Origin {
    http_addr: SocketAddr,
    https_addr: SocketAddr,
    ca_pem: String,
    state: Arc<OriginState>,
    quic: Option<Arc<QuicListener>>,
    /// The TLS port if it refuses TCP connections. Holding it prevents other programs from binding
    /// it.
    _unused: Option<Socket>,
    runtime: Option<Runtime>,
}

struct OriginState {
    site: GeneratedSite,
    pattern: BytePattern,
    record: OriginRequestLog,
    /// The largest number of concurrent streams on an HTTP/2 connection; `None` if HTTP/2 is
    /// disabled.
    http2: Option<u32>,
    /// The flow-control window of HTTP/2 streams and connections in bytes.
    http2_window: u32,
    /// The value of Alt-Svc in replies over TLS and TCP.
    alt_svc: Option<HeaderValue>,
    dns: Option<Box<DnsAnswerFunction>>,
}

impl Origin {
    /// Starts an origin with one thread, and returns its URL without the final slash.
    ///
    /// # Panics
    /// If the origin cannot be started.
    #[must_use]
    pub fn start_with_base_url() -> (Self, String) {
        let origin = Self::builder().threads(1).start().expect("the origin starts");
        let base = origin.url("").trim_end_matches('/').to_owned();
        (origin, base)
    }

    /// Returns a builder with the default settings.
    pub fn builder() -> OriginBuilder {
        OriginBuilder {
            site: GeneratedSite::scaled(1, 30),
            ip: Ipv4Addr::LOCALHOST.into(),
            http_port: 0,
            https_port: 0,
            threads: 1,
            record: true,
            identity: None,
            http2: None,
            http2_window: RFC_WINDOW,
            http3: None,
            advertise_http3: false,
            tls_over_tcp: true,
            dns: None,
        }
    }

    /// Returns the address and port for plain HTTP.
    pub fn http_addr(&self) -> SocketAddr {
        self.http_addr
    }

    /// Returns the address and port for HTTP over TLS.
    pub fn https_addr(&self) -> SocketAddr {
        self.https_addr
    }

    /// Returns `http://ADDRESS` with `path`, which starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.http_addr)
    }

    /// Returns `https://localhost:PORT` with `path`, which starts with a slash.
    pub fn https_url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.https_addr.port())
    }

    /// Returns the certificate of the CA that signed the origin's certificate, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Returns the site that the origin serves at `/1`, `/2`, `/3` and `/AS<number>`.
    pub fn site(&self) -> &GeneratedSite {
        &self.state.site
    }

    /// Returns the pattern whose first N bytes are the body of `/bytes/N`.
    pub fn pattern(&self) -> BytePattern {
        self.state.pattern
    }

    /// Returns the number of connections accepted so far: plain, TLS and QUIC. It includes
    /// connections whose handshake failed.
    pub fn connections(&self) -> u64 {
        self.state.record.connections()
    }

    /// Returns the number of TLS handshakes so far that resumed no earlier session.
    pub fn full_handshakes(&self) -> u64 {
        self.state.record.full_handshakes() + self.quic.as_ref().map_or(0, |quic| quic.full_handshakes())
    }

    /// Returns the number of QUIC connections whose handshake has succeeded.
    pub fn quic_connections(&self) -> u64 {
        self.quic.as_ref().map_or(0, |quic| quic.handshakes())
    }

    /// Returns the number of QUIC Retry packets sent so far.
    pub fn quic_retries(&self) -> u64 {
        self.quic.as_ref().map_or(0, |quic| quic.retries())
    }

    /// Returns the numbers of UDP datagrams that the origin has received and sent so far.
    pub fn datagrams(&self) -> (u64, u64) {
        self.quic.as_ref().map_or((0, 0), |quic| quic.datagrams())
    }

    /// Returns the largest number of concurrent HTTP/3 requests. A request counts from its arrival
    /// to the end of its reply.
    pub fn peak_streams(&self) -> u64 {
        self.state.record.peak_streams()
    }

    /// Returns the number of open connections.
    pub fn open_connections(&self) -> u64 {
        self.state.record.open_connections()
    }

    /// Returns the largest number of connections that were open at the same time.
    pub fn peak_connections(&self) -> u64 {
        self.state.record.peak_connections()
    }

    /// Returns the number of requests whose head has been read.
    pub fn requests(&self) -> u64 {
        self.state.record.requests()
    }

    /// Returns the largest number of requests that were being answered at the same time. A request
    /// counts from the arrival of its head until the head of the reply is ready.
    pub fn peak_requests(&self) -> u64 {
        self.state.record.peak_requests()
    }

    /// Returns the number of requests for this path so far, with any query.
    pub fn hits(&self, path: &str) -> u64 {
        self.state.record.hits(path)
    }

    /// Returns all requests in the order of their arrival. Empty if [`OriginBuilder::record`] is
    /// off.
    pub fn log(&self) -> Vec<LoggedRequest> {
        self.state.record.log()
    }

    /// Clears the log, the counts for each path, and the state of `/flaky` and `/retry-after`. The
    /// total numbers of connections and requests are kept.
    pub fn forget(&self) {
        self.state.record.forget();
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            if let Some(quic) = self.quic.take().filter(|quic| quic.settings().closes_on_drop()) {
                quic.close();
                // The endpoint's task sends CONNECTION_CLOSE; nothing reports when it has.
                runtime.block_on(async { tokio::time::sleep(CLOSE_TIME).await });
            }
            runtime.shutdown_timeout(Duration::from_secs(2));
        }
    }
}
