//! The facts about a transfer: sizes, times and addresses. `--write-out` and `--stats` print them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_proto::response_head::{ProtocolVersion, ResponseHead};

use crate::Error;

/// The facts about one transfer: status, sizes, times, addresses and counts. After a retry, they
/// describe the last attempt, unless a field's description says otherwise.
#[derive(Debug, Clone)]
pub struct TransferFacts {
    /// The method of the last request, if a redirect has changed it; otherwise `None`.
    pub method: Option<Box<str>>,
    /// The `Referer` field of the last request, if a redirect has set it; otherwise `None`.
    pub referer: Option<Box<str>>,
    /// The time when the last attempt of the transfer started. The durations until later events are
    /// measured from this time.
    pub started: Instant,
    /// The status of the final response; 0 without a response.
    pub status: u16,
    /// The status of a proxy's last response to CONNECT; 0 without such a response.
    pub connect_status: u16,
    /// The scheme of the last credentials that haul has sent to a server (`Digest`); `None` if it
    /// has sent none. Credentials in a field of the caller do not count.
    pub auth_scheme: Option<&'static str>,
    /// The scheme of the last credentials that haul has sent to a proxy; `None` if it has sent
    /// none.
    pub proxy_auth_scheme: Option<&'static str>,
    /// The protocol version of the final response; `None` without a response.
    pub version: Option<ProtocolVersion>,
    /// The total number of bytes of all sent requests. A request's head is counted with its size in
    /// HTTP/1.1 syntax.
    pub request_bytes: u64,
    /// The number of content bytes (body bytes) sent with the last request.
    pub upload_bytes: u64,
    /// The number of header fields in the last response.
    pub fields: u32,
    /// True if the transfer used a proxy.
    pub proxy_used: bool,
    /// The time from the start of the last attempt until the last redirect was followed. Zero
    /// without a redirect.
    pub redirected: Duration,
    /// The total number of bytes of all received heads.
    pub head_bytes: u64,
    /// The number of received bytes of the body, before decoding.
    pub body_bytes: u64,
    /// The number of bytes of the body after decoding; `None` if the body had no content coding.
    pub decoded_bytes: Option<u64>,
    /// The number of redirects followed in the last attempt.
    pub redirects: u32,
    /// The number of retries made.
    pub retries: u32,
    /// The number of requests sent for the transfer.
    pub requests: u32,
    /// The number of connections opened for the transfer.
    pub connects: u32,
    /// The sequence number of the connection that carried the last request. The connections of a
    /// process are numbered from 0. `None` without a connection.
    pub connection: Option<u64>,
    /// The address and port of the other end of the connection, i.e. of the server or of the proxy.
    /// `None` without a connection.
    pub peer: Option<SocketAddr>,
    /// The reason why the certificate of the last server is invalid, if the certificate was
    /// accepted nevertheless ([`TlsOptions::examine`](crate::net::tls::TlsOptions::examine)).
    /// `None` if the certificate is valid.
    pub certificate_fault: Option<Box<str>>,
    /// The reason why the certificate of the last https proxy is invalid, if the certificate was
    /// accepted nevertheless. `None` if the certificate is valid.
    pub proxy_certificate_fault: Option<Box<str>>,
    /// The certificate chain of the last server in DER, beginning with the server's own
    /// certificate. `None` without
    /// [`TlsOptions::keep_certificates`](crate::net::tls::TlsOptions::keep_certificates).
    pub certificates: Option<Arc<[Vec<u8>]>>,
    /// The TLS session of the connection that carried the last request; `None` without TLS. Only
    /// present if [`keep_history`](crate::RequestOptions::keep_history) or
    /// [`recorder`](crate::RequestOptions::recorder) is set.
    pub tls: Option<Box<TlsFacts>>,
    /// The last 32 failed attempts before the final one, in order, if
    /// [`keep_history`](crate::RequestOptions::keep_history) is set.
    pub failed_attempts: Vec<FailedAttempt>,
    /// The IDs of the exchange records, from all attempts, that the
    /// [`recorder`](crate::RequestOptions::recorder) keeps back until the whole transfer has ended.
    pub held_records: Vec<u64>,
    /// The local address and port of the connection; `None` without a connection.
    pub local: Option<SocketAddr>,
    /// The time from the start of the last attempt until the host's name was resolved.
    pub resolved: Duration,
    /// The time from the start of the last attempt until the TCP connection was established.
    pub connected: Duration,
    /// The time from the start of the last attempt until the TLS handshake was complete; zero
    /// without TLS.
    pub secured: Duration,
    /// The time from the start of the last attempt until the last request was sent.
    pub sent: Duration,
    /// The time from the start of the last attempt until the last byte of the last request's
    /// content was sent, or was passed to the connection to be sent; zero without content.
    pub content_sent: Duration,
    /// The time from the start of the last attempt until the first byte of the last response
    /// arrived.
    pub first_byte: Duration,
    /// The time from the start of the last attempt until its end.
    pub total: Duration,
    /// The time that the transfer spent in each phase, in all attempts together.
    pub phase_times: PhaseTimes,
    /// The numbers of connections and redirects of all attempts before the current one. The other
    /// counts of this type do not include them.
    pub earlier: EarlierAttemptCounts,
    /// The current phase of the transfer, or the last phase if the transfer has ended.
    pub phase: TransferPhase,
    /// The time when the current phase began.
    pub phase_began: Instant,
    /// The time when the transfer began to wait for a connection for its last exchange.
    pub placed_at: Instant,
}

/// A failed attempt of a transfer, after which another attempt was made.
#[derive(Debug)]
pub struct FailedAttempt {
    /// The cause of the failure, without the URL.
    pub error: Error,
    /// The delay between this attempt and the next attempt.
    pub pause: Duration,
}

impl Clone for FailedAttempt {
    fn clone(&self) -> Self {
        Self { error: self.error.duplicate(), pause: self.pause }
    }
}

/// The parameters of a TLS session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFacts {
    /// The protocol version, such as `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite by its name in the IANA registry, such as `TLS_AES_128_GCM_SHA256`.
    pub cipher: String,
    /// The protocol that ALPN selected; `None` if ALPN selected no protocol.
    pub alpn: Option<String>,
    /// True if the handshake resumed an earlier session.
    pub resumed: bool,
}

/// The durations of the phases of a transfer. If the transfer has several exchanges or attempts,
/// each duration is the sum over all of them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PhaseTimes {
    /// The time spent on name lookups.
    pub resolve: Duration,
    /// The time spent on connection setup.
    pub connect: Duration,
    /// The time spent on TLS handshakes and on the setup of tunnels.
    pub tls: Duration,
    /// The time spent waiting for responses, from a request to the first byte of its response.
    pub wait: Duration,
    /// The time spent receiving responses, from their first bytes to their ends.
    pub receive: Duration,
    /// The time spent on pauses before retries.
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

/// The numbers of connections and redirects of all attempts of a transfer before the last attempt.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct EarlierAttemptCounts {
    /// The number of connections that the earlier attempts opened.
    pub connects: u32,
    /// The number of redirects that the earlier attempts followed.
    pub redirects: u32,
}

/// A phase of a transfer, whose duration is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferPhase {
    /// The transfer waits for a connection, or for the next exchange to begin.
    Idle,
    /// The host name is being resolved.
    Resolve,
    /// A connection to an address is being made.
    Connect,
    /// TLS or a tunnel is being set up.
    Tls,
    /// The request is being sent, or its response is awaited.
    Wait,
    /// The response is being received.
    Receive,
    /// The transfer waits for the end of the pause before a retry.
    Pause,
}

/// Returns the name of the authentication scheme of credentials, the value of an Authorization or
/// Proxy-Authorization field.
pub(crate) fn auth_scheme_of(credentials: &[u8]) -> Option<&'static str> {
    let scheme = credentials.split(|byte| *byte == b' ').next()?;
    if scheme.ends_with(b"4-HMAC-SHA256") {
        // The name begins with that of the provider (`--aws-sigv4`).
        return Some("AWS4-HMAC-SHA256");
    }
    ["Basic", "Digest", "Bearer", "Negotiate"].into_iter().find(|name| name.as_bytes() == scheme)
}

impl TransferFacts {
    /// Returns the facts of a transfer that starts now.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            method: None,
            referer: None,
            started: now,
            status: 0,
            connect_status: 0,
            auth_scheme: None,
            proxy_auth_scheme: None,
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
            proxy_certificate_fault: None,
            certificates: None,
            tls: None,
            failed_attempts: Vec::new(),
            held_records: Vec::new(),
            local: None,
            resolved: Duration::ZERO,
            connected: Duration::ZERO,
            secured: Duration::ZERO,
            sent: Duration::ZERO,
            content_sent: Duration::ZERO,
            first_byte: Duration::ZERO,
            total: Duration::ZERO,
            phase_times: PhaseTimes::default(),
            earlier: EarlierAttemptCounts::default(),
            phase: TransferPhase::Idle,
            phase_began: now,
            placed_at: now,
        }
    }

    /// Ends the current phase of the transfer, adds its duration to [`PhaseTimes`], and begins the
    /// phase `phase`. Returns the duration of the ended phase, zero for [`TransferPhase::Idle`].
    pub(crate) fn enter_phase(&mut self, phase: TransferPhase, now: Instant) -> Duration {
        let duration = self.end_phase(now);
        self.phase = phase;
        duration
    }

    /// Adds the duration of the current phase to [`PhaseTimes`], and returns it.
    fn end_phase(&mut self, now: Instant) -> Duration {
        let began = std::mem::replace(&mut self.phase_began, now);
        let sum = match self.phase {
            // A small response begins and ends in the same receive. Comparing two times costs a
            // tenth of subtracting them.
            _ if began == now => return Duration::ZERO,
            TransferPhase::Idle => return Duration::ZERO,
            TransferPhase::Resolve => &mut self.phase_times.resolve,
            TransferPhase::Connect => &mut self.phase_times.connect,
            TransferPhase::Tls => &mut self.phase_times.tls,
            TransferPhase::Wait => &mut self.phase_times.wait,
            TransferPhase::Receive => &mut self.phase_times.receive,
            TransferPhase::Pause => &mut self.phase_times.pause,
        };
        let duration = now.saturating_duration_since(began);
        *sum += duration;
        duration
    }

    /// Moves the number of redirects of this attempt to [`EarlierAttemptCounts`], because the next
    /// attempt counts its redirects from zero.
    pub(crate) fn forget_redirects(&mut self) {
        self.earlier.redirects += std::mem::take(&mut self.redirects);
    }

    /// Returns the facts with which the next attempt of the transfer begins, at the time `at`. The
    /// counts and times of the whole transfer are kept, such as the number of retries. The facts
    /// about a single attempt are reset.
    pub(crate) fn for_next_attempt(&self, at: Instant) -> Self {
        let Self { retries, requests, phase_times, phase, phase_began, .. } = *self;
        let earlier = EarlierAttemptCounts { connects: self.earlier.connects + self.connects, ..self.earlier };
        let failed_attempts = self.failed_attempts.clone();
        let held_records = self.held_records.clone();
        Self {
            retries,
            requests,
            phase_times,
            earlier,
            phase,
            phase_began,
            failed_attempts,
            held_records,
            ..Self::new(at)
        }
    }

    /// Records that a request was sent at the time `now`.
    pub(crate) fn on_request(&mut self, now: Instant) {
        self.enter_phase(TransferPhase::Wait, now);
        // On a warm connection, the request is sent as soon as the transfer starts.
        self.sent = if now == self.started { Duration::ZERO } else { now.saturating_duration_since(self.started) };
        self.requests += 1;
        (self.upload_bytes, self.content_sent) = (0, Duration::ZERO);
    }

    /// Records that `n` bytes of the request's content were sent, or were passed to the connection
    /// to be sent.
    pub(crate) fn on_content(&mut self, n: u64) {
        if n == 0 {
            return;
        }
        self.upload_bytes += n;
        self.request_bytes += n;
        self.content_sent = self.started.elapsed();
    }

    /// Records the head of a response. If `continues` is true, the response continues a body after
    /// an interruption. Then only the size of the head is added, and the facts about the first
    /// response remain.
    pub(crate) fn on_head(&mut self, head: &ResponseHead, now: Instant, continues: bool) {
        let waited = self.enter_phase(TransferPhase::Receive, now);
        self.head_bytes += head.raw().len() as u64;
        if continues {
            return;
        }
        // The wait began when the request was sent.
        self.first_byte = self.sent + waited;
        self.status = head.status();
        self.fields = u32::try_from(head.field_bytes().len()).unwrap_or(u32::MAX);
        self.version = Some(head.version());
    }

    /// Records the end of the transfer. The current phase does not change, since it shows how far
    /// the last exchange got.
    pub(crate) fn on_finished(&mut self, now: Instant) {
        self.end_phase(now);
        self.total = now.saturating_duration_since(self.started);
    }
}
