//! The race of QUIC against TCP: QUIC has a head start, and the first connection that is open wins.
//!
//! ```text
//!  t=0      QUIC handshakes with the addresses of the endpoint
//!  +200 ms  TCP as well (`ConnectOptions::attempt_delay`), or at once when QUIC fails
//!  winner   the other is dropped; if TCP wins, the endpoint counts as broken
//! ```
//!
//! The rules are in [`haul_policy::http3`], and [`Http3Cache`] remembers what failed. If both fail,
//! the error of the TCP attempt is reported.
//!
//! [`Http3Cache`]: crate::state::http3::Http3Cache

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use haul_policy::http3::{Http3Choice, Http3Failure, QuicEndpoint};

use super::resolved_route::{ResolvedRoute, parse_ip_literal};
use super::{ConnectContext, ConnectPhase, ConnectProgress, Connecting, OpenedConnection};
use crate::net::happy_eyeballs::with_port;
use crate::net::pool::ConnectionKey;
use crate::trace::TraceEvent;
use crate::{Error, ErrorKind, Result};

impl Connecting {
    /// Makes the attempt use only QUIC, and report nothing to the trace. Such an attempt tests an
    /// HTTP/3 endpoint while no request waits for the connection.
    #[must_use]
    pub(crate) fn with_quic_only(self) -> Self {
        Self { is_quic_alone: true, trace: None, ..self }
    }

    /// Returns true if the connection must use QUIC.
    fn needs_quic(&self) -> bool {
        self.is_quic_alone || matches!(self.key.http3, Http3Choice::Only(_))
    }

    /// Begins the QUIC handshakes. The attempt over TCP begins later, after the head start of QUIC
    /// (the time in which only QUIC is tried).
    pub(super) fn begin_quic(
        &mut self,
        route: ResolvedRoute,
        context: &mut ConnectContext<'_>,
    ) -> Result<ConnectProgress> {
        let Some(endpoint) = self.key.http3.endpoint().cloned() else {
            return Err(Error::new(ErrorKind::Setup, "there is no endpoint for HTTP/3"));
        };
        let is_only = self.needs_quic();
        let race = self.addresses(&route, &endpoint, context).and_then(|addresses| {
            let Some(addresses) = addresses else { return Ok(None) };
            let (key, tls, spread) = (&self.key, self.tls(), self.first_address);
            route.quic_race(key, tls, addresses, &self.options, spread, context.now).map(Some)
        });
        match race {
            Ok(Some(mut race)) => {
                race.add_addresses(Vec::new(), self.awaits_addresses);
                self.quic = Some(Box::new(race.with_trace(self.trace.clone())));
            }
            Err(error) => {
                self.on_quic_failed(&endpoint, &error);
                if is_only {
                    return Err(error);
                }
            }
            // The name of the endpoint is being looked up. If TCP may be used, the next connection
            // has its addresses.
            Ok(None) if is_only => {
                self.phase = ConnectPhase::Resolving;
                return Ok(ConnectProgress::Waits);
            }
            Ok(None) => {}
        }
        let has_head_start = self.http3.has_head_start(&self.key.http3_origin(), &endpoint);
        let head_start = if has_head_start { self.options.attempt_delay } else { Duration::ZERO };
        let tcp_starts = (!is_only).then(|| crate::time_conversions::add_saturating(context.now, head_start));
        self.phase = ConnectPhase::QuicFirst { route: Box::new(route), tcp_starts };
        Ok(ConnectProgress::Resolved)
    }

    /// Returns the addresses of the HTTP/3 endpoint; `None` while its name is being looked up.
    fn addresses(
        &mut self,
        route: &ResolvedRoute,
        endpoint: &QuicEndpoint,
        context: &mut ConnectContext<'_>,
    ) -> Result<Option<Vec<SocketAddr>>> {
        if endpoint.host == self.key.dial.0 {
            let mut addresses = route.addresses().to_vec();
            addresses.iter_mut().for_each(|address| address.set_port(endpoint.port));
            return Ok(Some(addresses));
        }
        if let Some(address) = parse_ip_literal(&endpoint.host) {
            return Ok(Some(vec![SocketAddr::new(address, endpoint.port)]));
        }
        let found = (context.resolve)(&endpoint.host, endpoint.port, self.key.family)?;
        self.awaits_addresses |= found.as_ref().is_some_and(|found| !found.is_complete);
        Ok(found.map(|found| with_port(&found.addresses, endpoint.port)))
    }

    /// Adds addresses that became known after the QUIC handshakes have begun. `route` is the route
    /// with all addresses known now; `None` if no further addresses are known.
    pub(super) fn add_quic_addresses(&mut self, route: Option<&ResolvedRoute>, context: &mut ConnectContext<'_>) {
        let Some(endpoint) = self.key.http3.endpoint().cloned() else { return };
        if self.quic.is_none() {
            return;
        }
        let addresses = route.and_then(|route| self.addresses(route, &endpoint, context).ok().flatten());
        if let Some(quic) = &mut self.quic {
            if let Some(route) = route {
                quic.replace_binding(&route.bind);
            }
            quic.add_addresses(addresses.unwrap_or_default(), self.awaits_addresses);
        }
    }

    /// Continues the QUIC handshakes. Returns the connection if one of the handshakes is complete,
    /// otherwise `None`.
    ///
    /// # Errors
    /// The handshakes have failed, and only HTTP/3 may be used.
    pub(super) fn step_quic(&mut self, context: &mut ConnectContext<'_>) -> Result<Option<ConnectProgress>> {
        let Some(quic) = &mut self.quic else { return Ok(None) };
        let endpoint = self.key.http3.endpoint().cloned();
        let stepped = quic.step(context.now, context.tls, context.quic, &mut *context.watch);
        let (won, endpoint) = match (stepped, endpoint) {
            (Ok(Some(won)), Some(endpoint)) => (won, endpoint),
            (Err(error), Some(_)) if self.takes_sent_keys(&error) => {
                self.quic = None;
                return Ok(Some(ConnectProgress::Advanced));
            }
            (Err(error), Some(endpoint)) => {
                self.quic = None;
                self.on_quic_failed(&endpoint, &error);
                return if self.needs_quic() { Err(error) } else { Ok(None) };
            }
            _ => return Ok(None),
        };
        (self.quic, self.phase) = (None, ConnectPhase::Over);
        self.http3.on_connected(&self.key.http3_origin(), &endpoint);
        // A handshake of QUIC is one of TLS, too.
        context.observer.on_connected(won.local);
        context.observer.on_tls_established();
        Ok(Some(ConnectProgress::Open(OpenedConnection::Quic(won))))
    }

    /// Waits until the head start of QUIC (the time in which only QUIC is tried) is over, and then
    /// starts the attempt over TCP. Starts it immediately if QUIC has failed.
    pub(super) fn wait_for_head_start(
        &mut self,
        route: Box<ResolvedRoute>,
        tcp_starts: Option<Instant>,
        context: &ConnectContext<'_>,
    ) -> Result<ConnectProgress> {
        if tcp_starts.is_none_or(|at| at > context.now) && self.quic.is_some() {
            self.phase = ConnectPhase::QuicFirst { route, tcp_starts };
            return Ok(ConnectProgress::Waits);
        }
        self.begin_tcp(&route, context.now)?;
        Ok(ConnectProgress::Advanced)
    }

    /// Handles the progress of the attempt over TCP. An open connection wins the race. A failure is
    /// kept until the attempt over QUIC has ended.
    pub(super) fn after_tcp(&mut self, progress: Result<ConnectProgress>) -> Result<ConnectProgress> {
        match progress {
            Err(error) if self.quic.is_some() => {
                self.phase = ConnectPhase::TcpFailed(error);
                Ok(ConnectProgress::Waits)
            }
            Ok(ConnectProgress::Open(opened)) => {
                if self.end_lost_quic() {
                    self.trace_text("HTTP/3 has not connected in time, using TCP");
                }
                if self.key.http3 != Http3Choice::Off {
                    let key = ConnectionKey { http3: Http3Choice::Off, ..ConnectionKey::clone(&self.key) };
                    self.key = key.into();
                }
                Ok(ConnectProgress::Open(opened))
            }
            progress => progress,
        }
    }

    /// Ends the QUIC handshakes of an attempt that may use only QUIC, and records in the HTTP/3
    /// cache that the endpoint was too slow. Called when the time limit for connecting has passed.
    /// Does nothing for any other attempt.
    pub(super) fn remember_late_quic(&mut self) {
        if self.is_quic_alone {
            self.end_lost_quic();
        }
    }

    /// Ends the QUIC handshakes, because TCP was faster, and records in the HTTP/3 cache that the
    /// endpoint was too slow. Returns false if no handshake was in progress.
    fn end_lost_quic(&mut self) -> bool {
        let (Some(quic), Some(endpoint)) = (self.quic.take(), self.key.http3.endpoint()) else { return false };
        let failure = if quic.was_answered() { Http3Failure::Broken } else { Http3Failure::Silent };
        self.http3.on_failed(&self.key.http3_origin(), endpoint, failure);
        true
    }

    /// Records in the HTTP/3 cache that the endpoint failed. Does nothing if the cause is local,
    /// such as a lack of descriptors.
    fn on_quic_failed(&self, endpoint: &QuicEndpoint, error: &Error) {
        let is_own = error.lacks_descriptors() || matches!(error.kind(), ErrorKind::Setup | ErrorKind::Interface);
        if !is_own {
            self.http3.on_failed(&self.key.http3_origin(), endpoint, Http3Failure::Broken);
        }
        if !matches!(self.key.http3, Http3Choice::Only(_)) {
            self.trace_text(&format!("HTTP/3 failed, using TCP: {}", error.cause()));
        }
    }

    fn trace_text(&self, text: &str) {
        if let Some(trace) = &self.trace {
            trace.event(&TraceEvent::Info(text.to_owned().into()));
        }
    }
}
