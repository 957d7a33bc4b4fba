//! The facts about a transfer: sizes, times, addresses. The source of `--write-out` and `--stats`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_proto::head::{Head, Version};

/// The progress of a transfer's last exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Progress {
    /// No request was sent, since there was no connection yet.
    #[default]
    Connecting,
    /// The request was sent, but no final response came.
    Sent,
    /// The head of the response came.
    Answered,
}

/// The facts of one transfer, or of its last try where each is the whole anew; times count from [`Facts::started`].
#[derive(Debug, Clone)]
pub struct Facts {
    /// The method of the last request, if redirects have changed it.
    pub method: Option<Box<str>>,
    /// The Referer of the last request, if it was set from a redirect.
    pub referer: Option<Box<str>>,
    /// Start of the transfer.
    pub started: Instant,
    /// The final response's status; 0 where none came.
    pub status: u16,
    /// The status of a proxy's last answer to a CONNECT; 0 where none came.
    pub connect_status: u16,
    /// The version of the final response.
    pub version: Option<Version>,
    /// Bytes of all requests sent: heads as HTTP/1.1 has them, and content.
    pub request_bytes: u64,
    /// Bytes of content sent with the last request.
    pub upload_bytes: u64,
    /// Fields of the last response's head.
    pub fields: u32,
    /// The transfer used a proxy.
    pub proxy_used: bool,
    /// Time at which the last redirect had been followed; zero without one.
    pub redirected: Duration,
    /// Bytes of all heads received.
    pub head_bytes: u64,
    /// Bytes of the body received, before decoding.
    pub body_bytes: u64,
    /// Bytes of the body delivered after decoding; `None` if there was nothing to decode.
    pub decoded_bytes: Option<u64>,
    /// Redirects followed.
    pub redirects: u32,
    /// Further attempts made.
    pub retries: u32,
    /// Requests sent.
    pub requests: u32,
    /// Progress of the last exchange. A redirect or a further try begins at
    /// [`Progress::Connecting`] again.
    pub progress: Progress,
    /// Connections opened for it.
    pub connects: u32,
    /// Number of the connection that carried the last request, counted from 0 over all connections
    /// of this process.
    pub connection: Option<u64>,
    /// The peer's address.
    pub peer: Option<SocketAddr>,
    /// The fault of the last server's certificate, if it was examined and accepted anyway
    /// ([`TlsOptions::examine`](crate::net::tls::TlsOptions::examine)).
    pub certificate_fault: Option<Box<str>>,
    /// The certificates that the last server showed, its own first, in DER, where they were to be kept
    /// ([`TlsOptions::keep_certificates`](crate::net::tls::TlsOptions::keep_certificates)).
    pub certificates: Option<Arc<[Vec<u8>]>>,
    /// Our address.
    pub local: Option<SocketAddr>,
    /// The name was resolved.
    pub resolved: Duration,
    /// The connection was established.
    pub connected: Duration,
    /// TLS was set up; zero without TLS.
    pub secured: Duration,
    /// The last request was put on its way.
    pub sent: Duration,
    /// The first byte of the last response came.
    pub first_byte: Duration,
    /// The transfer was over.
    pub total: Duration,
    /// The time spent in each phase, over all tries.
    pub phases: Phases,
    /// Costs of the tries before the last that are not in the other facts.
    pub earlier: Earlier,
    /// The present phase, and when it began.
    pub now: (Phase, Instant),
}

/// The time that a transfer spent in each phase: sums where there were several exchanges.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    /// Looking up names.
    pub resolve: Duration,
    /// Connecting.
    pub connect: Duration,
    /// Setting up TLS and tunnels.
    pub tls: Duration,
    /// From requests to the first bytes of their responses.
    pub wait: Duration,
    /// From there to the ends of the responses.
    pub receive: Duration,
    /// Pauses before further tries.
    pub pause: Duration,
}

impl Phases {
    pub(crate) fn add(&mut self, other: &Self) {
        self.resolve += other.resolve;
        self.connect += other.connect;
        self.tls += other.tls;
        self.wait += other.wait;
        self.receive += other.receive;
        self.pause += other.pause;
    }
}

/// Costs of the tries before the last one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Earlier {
    /// Connections that were opened.
    pub connects: u32,
    /// Redirects that were followed.
    pub redirects: u32,
}

/// A phase of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The transfer waits for its turn, or is over.
    Idle,
    /// A name is looked up.
    Resolve,
    /// A connection is made.
    Connect,
    /// TLS or a tunnel is set up.
    Tls,
    /// A request is sent, and its response waited for.
    Wait,
    /// A response is received.
    Receive,
    /// A further try is waited for.
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
            progress: Progress::Connecting,
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
            phases: Phases::default(),
            earlier: Earlier::default(),
            now: (Phase::Idle, now),
        }
    }

    /// Begins another phase.
    pub(crate) fn enter(&mut self, phase: Phase, now: Instant) {
        let (ending, began) = std::mem::replace(&mut self.now, (phase, now));
        let time = now.saturating_duration_since(began);
        match ending {
            Phase::Idle => {}
            Phase::Resolve => self.phases.resolve += time,
            Phase::Connect => self.phases.connect += time,
            Phase::Tls => self.phases.tls += time,
            Phase::Wait => self.phases.wait += time,
            Phase::Receive => self.phases.receive += time,
            Phase::Pause => self.phases.pause += time,
        }
    }

    /// Counts the redirects of this try among those of earlier ones.
    pub(crate) fn forget_redirects(&mut self) {
        self.earlier.redirects += std::mem::take(&mut self.redirects);
    }

    /// Returns the facts of a further try of the whole transfer, which begins at this moment.
    pub(crate) fn of_next_try(&self, at: Instant) -> Self {
        let Self { retries, requests, phases, now, .. } = *self;
        let earlier = Earlier { connects: self.earlier.connects + self.connects, ..self.earlier };
        Self { retries, requests, phases, earlier, now, ..Self::new(at) }
    }

    pub(crate) fn exchange_began(&mut self, now: Instant) {
        self.enter(Phase::Wait, now);
        self.sent = now.saturating_duration_since(self.started);
        self.requests += 1;
        self.progress = Progress::Sent;
        self.upload_bytes = 0;
    }

    /// Records that a head came. `continues`: the response continues a body whose first response
    /// was already reported.
    pub(crate) fn head_came(&mut self, head: &Head, now: Instant, continues: bool) {
        self.enter(Phase::Receive, now);
        self.head_bytes += head.raw().len() as u64;
        self.progress = Progress::Answered;
        if continues {
            return;
        }
        self.first_byte = now.saturating_duration_since(self.started);
        self.status = head.status();
        self.fields = u32::try_from(head.field_bytes().len()).unwrap_or(u32::MAX);
        self.version = Some(head.version());
    }

    pub(crate) fn finished(&mut self, now: Instant) {
        self.enter(Phase::Idle, now);
        self.total = now.saturating_duration_since(self.started);
    }
}
