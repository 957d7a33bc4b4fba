//! Milestones of a connection that is made for a transfer, recorded in its [`Facts`](crate::Facts).

use std::net::SocketAddr;

use haul_proto::head::Head;

use super::Transfer;
use crate::net::connecting::ConnectObserver;
use crate::trace::Event;

impl ConnectObserver for Transfer {
    fn resolved(&mut self) {
        self.facts.resolved = self.facts.started.elapsed();
    }

    fn connected(&mut self, local: Option<SocketAddr>) {
        self.facts.connects += 1;
        self.facts.connected = self.facts.started.elapsed();
        self.facts.local = local;
    }

    fn connect_answered(&mut self, status: u16, heads: &[Head]) {
        self.facts.connect_status = status;
        for head in heads {
            self.facts.head_bytes += head.raw().len() as u64;
            if let Some(trace) = &self.options.trace {
                trace.event(&Event::Connect { head });
            }
            if self.options.include_head && self.options.as_curl.connect_heads {
                self.keep_aside(head);
            }
        }
    }

    fn secured(&mut self) {
        self.facts.secured = self.facts.started.elapsed();
    }
}

/// Reports to the transfer that a connection is made for, if one still waits for it.
impl ConnectObserver for Option<&mut Box<Transfer>> {
    fn resolved(&mut self) {
        self.iter_mut().for_each(|transfer| transfer.resolved());
    }

    fn connected(&mut self, local: Option<SocketAddr>) {
        self.iter_mut().for_each(|transfer| transfer.connected(local));
    }

    fn connect_answered(&mut self, status: u16, heads: &[Head]) {
        self.iter_mut().for_each(|transfer| transfer.connect_answered(status, heads));
    }

    fn secured(&mut self) {
        self.iter_mut().for_each(|transfer| transfer.secured());
    }
}
