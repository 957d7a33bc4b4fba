//! Records the milestones (resolved, connected, secured) of the connection that is made for a
//! transfer, in its [`TransferFacts`](crate::transfer_facts::TransferFacts).

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::Transfer;
use crate::net::connecting::{ConnectObserver, ConnectRequestOrReplyHead};
use crate::trace::{Milestone, TraceEvent};
use crate::transfer_facts::TransferPhase;

impl ConnectObserver for Transfer {
    fn on_resolved(&mut self) {
        self.facts.resolved = self.enter_phase(TransferPhase::Connect);
        self.trace_milestone(Milestone::Resolved, None);
    }

    fn on_connected(&mut self, local: Option<SocketAddr>) {
        self.facts.connects += 1;
        self.facts.connected = self.enter_phase(TransferPhase::Tls);
        self.facts.local = local;
        self.trace_milestone(Milestone::Connected, None);
    }

    fn on_connect_response(
        &mut self,
        status: u16,
        auth_scheme: Option<&'static str>,
        heads: &[ConnectRequestOrReplyHead],
    ) {
        self.facts.connect_status = status;
        self.facts.proxy_auth_scheme = auth_scheme.or(self.facts.proxy_auth_scheme);
        for head in heads {
            let head = match head {
                ConnectRequestOrReplyHead::Response(head) => head,
                ConnectRequestOrReplyHead::Request(event) => {
                    self.options.trace.iter().for_each(|trace| trace.event(event));
                    continue;
                }
            };
            self.facts.head_bytes += head.raw().len() as u64;
            if let Some(trace) = &self.options.trace {
                trace.event(&TraceEvent::Connect { head });
            }
            if self.options.include_head && self.options.curl_compat.connect_heads {
                self.store_head(head);
            }
        }
    }

    fn on_tls_established(&mut self) {
        self.facts.secured = self.enter_phase(TransferPhase::Idle);
        self.trace_milestone(Milestone::Secured, None);
    }
}

impl Transfer {
    /// Records that the transfer enters `phase`. Returns the time since the current attempt of the
    /// transfer began.
    fn enter_phase(&mut self, phase: TransferPhase) -> Duration {
        let now = Instant::now();
        self.facts.enter_phase(phase, now);
        now.saturating_duration_since(self.facts.started)
    }
}

/// Reports the milestones of a new connection to the transfer that waits for it. `None` means that
/// no transfer waits any more; the milestones are then ignored.
impl ConnectObserver for Option<&mut Box<Transfer>> {
    fn on_resolved(&mut self) {
        self.iter_mut().for_each(|transfer| transfer.on_resolved());
    }

    fn on_connected(&mut self, local: Option<SocketAddr>) {
        self.iter_mut().for_each(|transfer| transfer.on_connected(local));
    }

    fn on_connect_response(
        &mut self,
        status: u16,
        auth_scheme: Option<&'static str>,
        heads: &[ConnectRequestOrReplyHead],
    ) {
        self.iter_mut().for_each(|transfer| transfer.on_connect_response(status, auth_scheme, heads));
    }

    fn on_tls_established(&mut self) {
        self.iter_mut().for_each(|transfer| transfer.on_tls_established());
    }
}
