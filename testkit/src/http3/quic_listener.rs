//! Listens for QUIC connections, and applies faults that affect whole connections.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use aws_lc_rs::hmac;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{
    Connection, Endpoint, EndpointConfig, Incoming, Runtime, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};

use super::connection_id_generator::UnmarkedConnectionIdGenerator;
use super::counting_socket::{CountingSocket, DatagramCounts};
use super::session_counter::ResumptionCountingStore;
use super::{Http3Fault, Http3Settings};
use crate::test_certificates::TestCertificates;

/// The flow-control window of a request's body in bytes. It is small, so that uploads have to wait
/// for flow-control credit.
const STREAM_WINDOW: u32 = 64 << 10;
/// The time for which a dropped server waits so that CONNECTION_CLOSE is sent.
pub(crate) const CLOSE_TIME: Duration = Duration::from_millis(10);
/// A version of QUIC that no client knows.
const UNKNOWN_VERSION: u32 = 0x1a2a_3a4a;
/// The HTTP/3 error code for a connection that ends without an error (RFC 9114 section 8.1).
const H3_NO_ERROR: u32 = 0x100;

/// A QUIC listener that negotiates `h3`, counts handshakes and datagrams, and simulates the fault
/// that its settings request ([`Http3Fault`]), if any.
pub(crate) struct QuicListener {
    socket: QuicOrSilentSocket,
    settings: Http3Settings,
    sessions: Arc<ResumptionCountingStore>,
    datagrams: Arc<DatagramCounts>,
    handshakes: AtomicU64,
    retries: AtomicU64,
}

enum QuicOrSilentSocket {
    Quic(Endpoint),
    /// A bound socket from which nothing is read.
    Silent {
        _unread: UdpSocket,
    },
}

impl QuicListener {
    /// Listens on `socket`. Must be called inside a tokio runtime.
    pub(crate) fn start(
        socket: UdpSocket,
        identity: &TestCertificates,
        settings: Http3Settings,
    ) -> io::Result<QuicListener> {
        let (sessions, datagrams) = (ResumptionCountingStore::new(), Arc::<DatagramCounts>::default());
        let socket = match settings.fault {
            Some(Http3Fault::Silent) => QuicOrSilentSocket::Silent { _unread: socket },
            _ => QuicOrSilentSocket::Quic(endpoint(socket, identity, &settings, sessions.clone(), datagrams.clone())?),
        };
        let (handshakes, retries) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(QuicListener { socket, settings, sessions, datagrams, handshakes, retries })
    }

    /// Waits for a client's connection attempt, and returns it for the handshake. Refuses attempts
    /// or answers them with Retry packets if the settings say so. Returns `None` if the listener
    /// has been closed.
    pub(crate) async fn accept(&self) -> Option<Incoming> {
        let QuicOrSilentSocket::Quic(endpoint) = &self.socket else { return std::future::pending().await };
        loop {
            let incoming = endpoint.accept().await?;
            if self.settings.fault == Some(Http3Fault::Refused) {
                incoming.refuse();
            } else if self.settings.retry && !incoming.remote_address_validated() {
                self.retries.fetch_add(1, SeqCst);
                // This fails only if the address is already validated.
                let _ = incoming.retry();
            } else {
                return Some(incoming);
            }
        }
    }

    /// Completes the handshake. Returns `None` if it fails. If a fault prevents HTTP/3 on the
    /// connection, returns `None` after the connection has ended.
    pub(crate) async fn handshake(&self, incoming: Incoming) -> Option<Connection> {
        let connection = incoming.await.ok()?;
        self.handshakes.fetch_add(1, SeqCst);
        match self.settings.fault {
            Some(Http3Fault::NoHttp3) => {}
            Some(Http3Fault::Closed(code)) => {
                connection.close(VarInt::from_u64(code).unwrap_or(VarInt::MAX), b"closed by the test");
            }
            _ => return Some(connection),
        }
        connection.closed().await;
        None
    }

    pub(crate) fn settings(&self) -> &Http3Settings {
        &self.settings
    }

    /// Returns the number of handshakes that resumed no earlier session.
    pub(crate) fn full_handshakes(&self) -> u64 {
        self.handshakes.load(SeqCst).saturating_sub(self.sessions.resumed_sessions())
    }

    /// Returns the number of handshakes that succeeded.
    pub(crate) fn handshakes(&self) -> u64 {
        self.handshakes.load(SeqCst)
    }

    /// Returns the number of Retry packets sent.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(SeqCst)
    }

    /// Returns the numbers of datagrams received and sent.
    pub(crate) fn datagrams(&self) -> (u64, u64) {
        (self.datagrams.received.load(SeqCst), self.datagrams.sent.load(SeqCst))
    }

    /// Closes all connections and accepts no more.
    pub(crate) fn close(&self) {
        if let QuicOrSilentSocket::Quic(endpoint) = &self.socket {
            endpoint.close(VarInt::from_u32(H3_NO_ERROR), b"");
        }
    }
}

fn endpoint(
    socket: UdpSocket,
    identity: &TestCertificates,
    settings: &Http3Settings,
    sessions: Arc<ResumptionCountingStore>,
    datagrams: Arc<DatagramCounts>,
) -> io::Result<Endpoint> {
    let alpn: &[u8] = if settings.fault == Some(Http3Fault::WrongAlpn) { b"hq-interop" } else { b"h3" };
    let mut tls = Arc::unwrap_or_clone(identity.server_config(&[alpn]));
    tls.session_storage = sessions;
    let tls = QuicServerConfig::try_from(tls).map_err(io::Error::other)?;
    let mut transport = TransportConfig::default();
    transport.max_concurrent_bidi_streams(settings.streams.into()).stream_receive_window(STREAM_WINDOW.into());
    let mut config = EndpointConfig::default();
    if let Some(timeout) = settings.idle_timeout {
        transport.max_idle_timeout(Some(timeout.try_into().map_err(io::Error::other)?));
        config.max_udp_payload_size(1200).map_err(io::Error::other)?;
    }
    let mut server = ServerConfig::with_crypto(Arc::new(tls));
    server.transport_config(Arc::new(transport));
    if settings.fault == Some(Http3Fault::VersionNegotiation) {
        config.supported_versions(vec![UNKNOWN_VERSION]);
    }
    if let Some(key) = &settings.reset_key {
        config.reset_key(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, key)));
        config.cid_generator(|| Box::new(UnmarkedConnectionIdGenerator));
    }
    let runtime = Arc::new(TokioRuntime);
    let socket = Arc::new(CountingSocket { socket: runtime.wrap_udp_socket(socket)?, counts: datagrams });
    Endpoint::new_with_abstract_socket(config, Some(server), socket, runtime)
}
