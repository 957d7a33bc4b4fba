//! An origin of long bodies that answers range requests: correctly, or with a fault requested in
//! the URL.
//!
//! The resource `/f/NAME` is a [`BytePattern`](crate::byte_pattern::BytePattern) of any length,
//! generated while it is sent. Its faults are a [`FaultPlan`]. A test sets the plan with
//! [`FaultyOrigin::serve`]. Without that, the query of the first URL with this name is the plan, so
//! that a fault can be requested on a command line.
//!
//! The origin uses plain sockets and a thread for each connection. TLS has a separate port. On both
//! ports a client with prior knowledge may use HTTP/2; [`FaultyOriginBuilder::http2`] also offers
//! HTTP/2 by ALPN. [`FaultyOriginBuilder::http3`] adds HTTP/3.
//!
//! ```
//! use std::io::{Read, Write};
//! use testkit::faulty::{BodyBreak, FaultyOrigin, FaultPlan};
//!
//! let origin = FaultyOrigin::builder().start().unwrap();
//! let breaks = vec![BodyBreak::close_at(10)];
//! let path = origin.serve("big", FaultPlan { size: 1000, breaks, ..FaultPlan::default() });
//! assert_eq!(origin.url(&path), format!("http://{}/f/big", origin.http_addr()));
//!
//! let mut stream = std::net::TcpStream::connect(origin.http_addr()).unwrap();
//! write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
//! let mut reply = Vec::new();
//! stream.read_to_end(&mut reply).unwrap();
//! assert!(reply.windows(20).any(|line| line == b"Content-Length: 1000"));
//! assert_eq!(origin.seen("big").sent(), 10);
//! ```
//!
//! Each name has its own state: how often each break happened, and what was sent. Each run of a
//! test therefore uses a new name. `/seen/NAME` returns the [`FaultyRequestLog`] of a name as JSON.
//!
//! Left out: wrong bytes under the right Content-Range. No client can detect that without a digest.

mod faulty_body_sender;
mod h2;
mod h3;
mod plan;
mod query;
mod reply_choice;
mod request;
mod request_log;
mod serve;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use tokio::runtime::{self, Runtime};

pub use plan::{BodyBreak, BodyBreakOffset, BreakKind, ContentChangeTrigger, EtagKind, FaultPlan, WrongContentRange};
pub use request_log::{AnsweredRequest, FaultyRequestLog, SentBody};

use crate::http3::{self, CLOSE_TIME, Http3Settings, HttpsSockets, QuicListener};
use crate::test_certificates::TestCertificates;
use serve::FaultyOriginState;

/// The settings of an origin; made by [`FaultyOrigin::builder`].
#[derive(Default)]
pub struct FaultyOriginBuilder {
    http_port: u16,
    https_port: u16,
    connection_limit: Option<usize>,
    http2: bool,
    http3: Option<Http3Settings>,
}

impl FaultyOriginBuilder {
    /// Sets the port for plain HTTP. Default: 0, which means any free port.
    pub fn http_port(mut self, port: u16) -> FaultyOriginBuilder {
        self.http_port = port;
        self
    }

    /// Sets the port for TLS. Default: 0, which means any free port.
    pub fn https_port(mut self, port: u16) -> FaultyOriginBuilder {
        self.https_port = port;
        self
    }

    /// Limits the number of open connections. Further connections are reset as soon as they are
    /// accepted. Default: no limit.
    pub fn connection_limit(mut self, most: usize) -> FaultyOriginBuilder {
        self.connection_limit = Some(most);
        self
    }

    /// Offers HTTP/2 by ALPN over TLS. Default: only HTTP/1.1.
    pub fn http2(mut self) -> FaultyOriginBuilder {
        self.http2 = true;
        self
    }

    /// Enables HTTP/3 on the UDP port that has the number of the TLS port. Default: no HTTP/3.
    pub fn http3(mut self, settings: Http3Settings) -> FaultyOriginBuilder {
        self.http3 = Some(settings);
        self
    }

    /// Binds the ports and starts serving.
    ///
    /// # Errors
    /// If a port cannot be bound.
    pub fn start(self) -> io::Result<FaultyOrigin> {
        let identity = TestCertificates::generate();
        let shared = Arc::new(FaultyOriginState { limit: self.connection_limit, ..FaultyOriginState::default() });
        let http = TcpListener::bind((Ipv4Addr::LOCALHOST, self.http_port))?;
        let https = HttpsSockets::bind((Ipv4Addr::LOCALHOST, self.https_port).into(), self.http3.is_some())?;
        let (udp, https) = (https.udp, http3::listen_on(https.tcp)?);
        https.set_nonblocking(false)?;
        let (http_addr, https_addr) = (http.local_addr()?, https.local_addr()?);
        let protocols: [&[u8]; 2] = [b"h2", b"http/1.1"];
        let tls = identity.server_config(&protocols[usize::from(!self.http2)..]);
        for (listener, tls) in [(http, None), (https, Some(tls))] {
            let shared = shared.clone();
            thread::spawn(move || serve::accept(&listener, tls.as_ref(), &shared));
        }
        let quic = match udp {
            Some(socket) => Some(FaultyQuic::start(socket, &identity, self.http3.unwrap_or_default(), &shared)?),
            None => None,
        };
        Ok(FaultyOrigin { http_addr, https_addr, identity, shared, quic })
    }
}

/// A running faulty origin. Dropping it closes its connections.
pub struct FaultyOrigin {
    http_addr: SocketAddr,
    https_addr: SocketAddr,
    identity: TestCertificates,
    shared: Arc<FaultyOriginState>,
    quic: Option<FaultyQuic>,
}

/// The listener for HTTP/3 and the threads that serve it.
struct FaultyQuic {
    listener: Arc<QuicListener>,
    runtime: Runtime,
}

impl FaultyQuic {
    fn start(
        socket: UdpSocket,
        identity: &TestCertificates,
        settings: Http3Settings,
        shared: &Arc<FaultyOriginState>,
    ) -> io::Result<FaultyQuic> {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .thread_name("testkit-faulty")
            .build()?;
        let context = runtime.enter();
        let listener = Arc::new(QuicListener::start(socket, identity, settings)?);
        drop(context);
        runtime.spawn(h3::accept(listener.clone(), shared.clone()));
        Ok(FaultyQuic { listener, runtime })
    }
}

impl FaultyOrigin {
    /// Returns the default settings: any two free ports of 127.0.0.1.
    pub fn builder() -> FaultyOriginBuilder {
        FaultyOriginBuilder::default()
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

    /// Returns `https://localhost:PORT` with `path`; the certificate is valid for `localhost`.
    pub fn https_url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.https_addr.port())
    }

    /// Returns the certificate of the CA that signed the origin's certificate, in PEM, for
    /// `--cacert`.
    pub fn ca_pem(&self) -> &str {
        self.identity.ca_pem()
    }

    /// Stores a fault plan under a name, resets the state of that name, and returns its path,
    /// `/f/NAME`. From then on the origin ignores the query in URLs with this name.
    pub fn serve(&self, name: &str, plan: FaultPlan) -> String {
        self.shared.set_plan(name, plan);
        format!("/f/{name}")
    }

    /// Returns a copy of the requests and bodies that the origin has recorded for a name so far;
    /// empty if the name was never requested.
    pub fn seen(&self, name: &str) -> FaultyRequestLog {
        self.shared.seen(name)
    }

    /// Removes the fault plan and the recorded state of a name. Bodies that are being sent
    /// continue.
    pub fn remove_plan(&self, name: &str) {
        self.shared.remove_plan(name);
    }

    /// Returns the number of connections accepted so far, including the connections that were
    /// reset.
    pub fn connections(&self) -> u64 {
        self.shared.accepted.load(SeqCst)
    }
}

impl Drop for FaultyOrigin {
    fn drop(&mut self) {
        self.shared.stop.store(true, SeqCst);
        self.shared.end_connections();
        if let Some(FaultyQuic { listener, runtime }) = self.quic.take() {
            listener.close();
            runtime.block_on(async { tokio::time::sleep(CLOSE_TIME).await });
            runtime.shutdown_timeout(Duration::from_secs(2));
        }
        for addr in [self.http_addr, self.https_addr] {
            // Wakes the accept call; if it fails there is nobody to wake.
            let _ = TcpStream::connect(addr);
        }
    }
}
