//! The facts about a transfer: sizes, times, addresses. They feed `--write-out` and `--stats`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_proto::head::{ProtocolVersion, ResponseHead};

/// The facts about one transfer. If each attempt starts over, they are those of the last attempt.
/// Times count from [`Facts::started`].
#[derive(Debug, Clone)]
pub struct Facts {
    /// The method of the last request, if redirects have changed it.
    pub method: Option<Box<str>>,
    /// The Referer of the last request, if it was set from a redirect.
    pub referer: Option<Box<str>>,
    /// The start of the transfer.
    pub started: Instant,
    /// The final response's status; 0 without a response.
    pub status: u16,
    /// The status of a proxy's last response to a CONNECT; 0 without one.
    pub connect_status: u16,
    /// The version of the final response.
    pub version: Option<ProtocolVersion>,
    /// Bytes of all requests sent: heads in the form of HTTP/1.1, and content.
    pub request_bytes: u64,
    /// Bytes of content sent with the last request.
    pub upload_bytes: u64,
    /// The number of fields in the last response's head.
    pub fields: u32,
    /// The transfer used a proxy.
    pub proxy_used: bool,
    /// The time at which the last redirect was followed; zero without one.
    pub redirected: Duration,
    /// Bytes of all heads received.
    pub head_bytes: u64,
    /// Bytes of the body received, before decoding.
    pub body_bytes: u64,
    /// Bytes of the body after decoding; `None` if the body was not coded.
    pub decoded_bytes: Option<u64>,
    /// The number of redirects followed.
    pub redirects: u32,
    /// The number of retries.
    pub retries: u32,
    /// The number of requests sent.
    pub requests: u32,
    /// The number of connections opened for the transfer.
    pub connects: u32,
    /// The number of the connection that carried the last request, counted from 0 over all
    /// connections of this process.
    pub connection: Option<u64>,
    /// The peer's address.
    pub peer: Option<SocketAddr>,
    /// The fault of the last server's certificate, if the certificate was accepted in spite of it
    /// ([`TlsOptions::examine`](crate::net::tls::TlsOptions::examine)).
    pub certificate_fault: Option<Box<str>>,
    /// The certificate chain of the last server, its own certificate first, in DER, if it is kept
    /// ([`TlsOptions::keep_certificates`](crate::net::tls::TlsOptions::keep_certificates)).
    pub certificates: Option<Arc<[Vec<u8>]>>,
    /// The local address.
    pub local: Option<SocketAddr>,
    /// The time at which the name was resolved.
    pub resolved: Duration,
    /// The time at which the connection was established.
    pub connected: Duration,
    /// The time at which the TLS handshake was complete; zero without TLS.
    pub secured: Duration,
    /// The time at which the last request was sent.
    pub sent: Duration,
    /// The time at which the first byte of the last response arrived.
    pub first_byte: Duration,
    /// The time at which the transfer was over.
    pub total: Duration,
    /// The time spent in each phase, over all attempts.
    pub phase_times: PhaseTimes,
    /// Costs of the attempts before the last one that are not in the other facts.
    pub earlier: EarlierAttempts,
    /// The current phase; once the transfer is over, its last one.
    pub phase: TransferPhase,
    /// The start of the current phase.
    pub phase_began: Instant,
}

/// The time that a transfer spent in each phase, summed over its exchanges.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PhaseTimes {
    /// Name lookups.
    pub resolve: Duration,
    /// Connection setup.
    pub connect: Duration,
    /// Handshakes of TLS, and setup of tunnels.
    pub tls: Duration,
    /// Time from requests to the first bytes of their responses.
    pub wait: Duration,
    /// Time from the first bytes of responses to their ends.
    pub receive: Duration,
    /// Pauses before retries.
    pub pause: Duration,
}

impl PhaseTimes {
    pub(crate) fn add(&mut self, other: &Self) {
        self.resolve += other.resolve;
        self.connect += other.connect;
        self.tls += other.tls;
        self.wait += other.wait;
        self.receive += other.receive;
        self.pause += other.pause;
    }
}

/// Costs of the attempts before the last one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct EarlierAttempts {
    /// The number of connections opened.
    pub connects: u32,
    /// The number of redirects followed.
    pub redirects: u32,
}

/// A phase of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferPhase {
    /// Waiting for a connection slot, or for the next exchange to begin.
    Idle,
    /// Looking up a name.
    Resolve,
    /// Connecting.
    Connect,
    /// Setting up TLS or a tunnel.
    Tls,
    /// Sending a request, and waiting for its response.
    Wait,
    /// Receiving a response.
    Receive,
    /// Pausing before a retry.
    Pause,
}

impl Facts {
    /// Returns the facts at the start of a transfer, when nothing else is known.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            method: None,
            referer: None,
            started: now,
            status: 0,
            connect_status: 0,
            version: None,
            request_bytes: 0,
            upload_bytes: 0,
            fields: 0,
            proxy_used: false,
            redirected: Duration::ZERO,
            head_bytes: 0,
            body_bytes: 0,
            decoded_bytes: None,
            redirects: 0,
            retries: 0,
            requests: 0,
            connects: 0,
            connection: None,
            peer: None,
            certificate_fault: None,
            certificates: None,
            local: None,
            resolved: Duration::ZERO,
            connected: Duration::ZERO,
            secured: Duration::ZERO,
            sent: Duration::ZERO,
            first_byte: Duration::ZERO,
            total: Duration::ZERO,
            phase_times: PhaseTimes::default(),
            earlier: EarlierAttempts::default(),
            phase: TransferPhase::Idle,
            phase_began: now,
        }
    }

    /// Begins another phase.
    pub(crate) fn enter(&mut self, phase: TransferPhase, now: Instant) {
        self.end_phase(now);
        self.phase = phase;
    }

    /// Adds the time of the current phase to the sums.
    fn end_phase(&mut self, now: Instant) {
        let began = std::mem::replace(&mut self.phase_began, now);
        let sum = match self.phase {
            TransferPhase::Idle => return,
            TransferPhase::Resolve => &mut self.phase_times.resolve,
            TransferPhase::Connect => &mut self.phase_times.connect,
            TransferPhase::Tls => &mut self.phase_times.tls,
            TransferPhase::Wait => &mut self.phase_times.wait,
            TransferPhase::Receive => &mut self.phase_times.receive,
            TransferPhase::Pause => &mut self.phase_times.pause,
        };
        *sum += now.saturating_duration_since(began);
    }

    /// Counts the redirects of this attempt among those of earlier ones.
    pub(crate) fn forget_redirects(&mut self) {
        self.earlier.redirects += std::mem::take(&mut self.redirects);
    }

    /// Returns the facts of another attempt at the whole transfer, which begins at this time.
    pub(crate) fn of_next_attempt(&self, at: Instant) -> Self {
        let Self { retries, requests, phase_times, phase, phase_began, .. } = *self;
        let earlier = EarlierAttempts { connects: self.earlier.connects + self.connects, ..self.earlier };
        Self { retries, requests, phase_times, earlier, phase, phase_began, ..Self::new(at) }
    }

    /// Records that a request was sent.
    pub(crate) fn on_request(&mut self, now: Instant) {
        self.enter(TransferPhase::Wait, now);
        self.sent = now.saturating_duration_since(self.started);
        self.requests += 1;
        self.upload_bytes = 0;
    }

    /// Records the head of a response. With `continues`, the response continues a body whose first
    /// response was already recorded.
    pub(crate) fn on_head(&mut self, head: &ResponseHead, now: Instant, continues: bool) {
        self.enter(TransferPhase::Receive, now);
        self.head_bytes += head.raw().len() as u64;
        if continues {
            return;
        }
        self.first_byte = now.saturating_duration_since(self.started);
        self.status = head.status();
        self.fields = u32::try_from(head.field_bytes().len()).unwrap_or(u32::MAX);
        self.version = Some(head.version());
    }

    /// Records the end of the transfer. The phase stays: it tells how far the last exchange got.
    pub(crate) fn on_finished(&mut self, now: Instant) {
        self.end_phase(now);
        self.total = now.saturating_duration_since(self.started);
    }
}
