//! Totals of many transfers: requests, bytes, connections, packets.
//!
//! The numbers of packets and bytes come from the kernel's counters for each connection
//! (`TCP_INFO`), which are read when the connection is closed. This requires no packet capture and
//! no privileges. On systems without such counters, the numbers are zero, and
//! [`WireTraffic::known`] is false. For QUIC, haul itself counts the datagrams.

use std::sync::Mutex;

use rustix::fd::BorrowedFd;

use crate::drive::connection::HttpConnection;
use crate::ignore_poison::IgnorePoison;
use crate::net::tcp_info;
use crate::transfer_facts::{PhaseTimes, TransferFacts};

/// The totals of all transfers of a client, shared by its worker threads.
#[derive(Debug, Default)]
pub struct ClientStats {
    totals: Mutex<TransferTotals>,
}

/// The totals of all transfers so far: those of a client, or those of one worker thread of a
/// client.
#[derive(Debug, Default, Clone)]
pub struct TransferTotals {
    /// The number of finished transfers.
    pub transfers: u64,
    /// The number of finished transfers that failed.
    pub failed: u64,
    /// The number of requests sent.
    pub requests: u64,
    /// The number of retries.
    pub retries: u64,
    /// The number of redirects followed.
    pub redirects: u64,
    /// The number of received body bytes, before decoding.
    pub body_bytes: u64,
    /// The number of connections opened.
    pub connections: u64,
    /// The number of requests sent on a connection that had already carried a request.
    pub reused: u64,
    /// The bytes and packets that the client's connections carried. A connection is counted when it
    /// is closed.
    pub wire: WireTraffic,
    /// The durations of each phase of a transfer, such as name lookup and TLS handshake, summed
    /// over all transfers.
    pub phases: PhaseTimes,
}

/// The numbers of bytes and packets that connections carried. Sent and received traffic is counted
/// separately.
#[derive(Debug, Default, Clone, Copy)]
pub struct WireTraffic {
    /// True if the operating system reports these numbers. If false, the numbers are zero.
    pub known: bool,
    /// The number of bytes sent in TCP segments and UDP datagrams, including retransmissions.
    pub bytes_sent: u64,
    /// The number of bytes received in TCP segments and UDP datagrams.
    pub bytes_received: u64,
    /// The number of TCP segments and UDP datagrams sent.
    pub packets_sent: u64,
    /// The number of TCP segments and UDP datagrams received.
    pub packets_received: u64,
}

impl WireTraffic {
    /// Returns the traffic of the TCP connection of this socket so far. If the system does not
    /// report it, the numbers are zero and `known` is false.
    pub(crate) fn from_tcp_socket(socket: BorrowedFd<'_>) -> Self {
        tcp_info::read(socket).map_or_else(Self::default, |counts| Self {
            known: true,
            bytes_sent: counts.bytes_sent,
            bytes_received: counts.bytes_received,
            packets_sent: counts.segs_out.into(),
            packets_received: counts.segs_in.into(),
        })
    }

    fn add(&mut self, other: &Self) {
        self.known |= other.known;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.packets_sent += other.packets_sent;
        self.packets_received += other.packets_received;
    }
}

impl ClientStats {
    /// Returns a copy of the client's totals so far.
    #[must_use]
    pub fn totals(&self) -> TransferTotals {
        self.totals.lock().ignore_poison().clone()
    }

    /// Adds `other`, the totals of one worker thread, to the totals of the client.
    pub(crate) fn add(&self, other: &TransferTotals) {
        let mut totals = self.totals.lock().ignore_poison();
        totals.add(other);
    }

    /// Adds the numbers of a finished transfer to the client's totals. `failed` is true if the
    /// transfer failed.
    pub(crate) fn transfer_finished(&self, facts: &TransferFacts, failed: bool) {
        self.totals.lock().ignore_poison().transfer_finished(facts, failed);
    }

    pub(crate) fn connection_closed(&self, connection: &HttpConnection) {
        let mut totals = TransferTotals::default();
        totals.connection_closed(connection);
        self.add(&totals);
    }
}

impl TransferTotals {
    fn add(&mut self, other: &Self) {
        self.transfers += other.transfers;
        self.failed += other.failed;
        self.requests += other.requests;
        self.retries += other.retries;
        self.redirects += other.redirects;
        self.body_bytes += other.body_bytes;
        self.connections += other.connections;
        self.reused += other.reused;
        self.wire.add(&other.wire);
        self.phases.add(&other.phases);
    }

    /// Adds the numbers of a finished transfer to these totals. `failed` is true if the transfer
    /// failed.
    pub(crate) fn transfer_finished(&mut self, facts: &TransferFacts, failed: bool) {
        self.transfers += 1;
        self.failed += u64::from(failed);
        self.requests += u64::from(facts.requests);
        self.retries += u64::from(facts.retries);
        let connects = facts.earlier.connects + facts.connects;
        self.redirects += u64::from(facts.earlier.redirects + facts.redirects);
        self.body_bytes += facts.body_bytes;
        self.connections += u64::from(connects);
        self.reused += u64::from(facts.requests.saturating_sub(connects));
        self.phases.add(&facts.phase_times);
    }

    /// Adds the traffic of a connection to these totals. The connection is about to be closed.
    pub(crate) fn connection_closed(&mut self, connection: &HttpConnection) {
        self.wire.add(&connection.wire_traffic());
    }
}
