//! The PROXY protocol, version 1: one line that names both ends of the connection.

use std::net::IpAddr;

use super::{ConnectStageIo, ConnectStepOutcome, ConnectionStage};
use crate::Result;
use crate::net::stream::ConnectionStream;
use crate::net::tls::TlsContexts;

/// The stage of connecting that sends the PROXY protocol line, which contains the addresses of both
/// ends of the connection.
pub(super) struct ProxyProtocolStage {
    /// The client address in the line; `None` stands for the local address of the socket.
    client: Option<IpAddr>,
    is_queued: bool,
}

impl ProxyProtocolStage {
    /// Makes a stage that sends `client` as the client address. If it is `None`, the stage sends
    /// the local address of the socket.
    pub(super) fn new(client: Option<IpAddr>) -> Self {
        Self { client, is_queued: false }
    }
}

impl ConnectionStage for ProxyProtocolStage {
    fn step(&mut self, wire: &mut ConnectStageIo, _: &TlsContexts, _: &mut [u8]) -> Result<ConnectStepOutcome> {
        if !std::mem::replace(&mut self.is_queued, true) {
            wire.queue(header_line(&wire.stream, self.client));
        }
        Ok(if wire.flush()? { ConnectStepOutcome::Done } else { ConnectStepOutcome::Blocked })
    }

    fn name(&self) -> String {
        "sending the PROXY protocol's line".to_owned()
    }
}

fn header_line(stream: &ConnectionStream, client: Option<IpAddr>) -> Vec<u8> {
    let Some((local, peer)) = stream.socket().local_addr().ok().zip(stream.peer) else {
        return b"PROXY UNKNOWN\r\n".to_vec();
    };
    // Both addresses of a line must be of one family, and only the client's may be given. Like
    // curl, haul writes it for both ends.
    let (source, destination) = client.map_or((local.ip(), peer.ip()), |client| (client, client));
    let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
    format!("PROXY {family} {source} {destination} {} {}\r\n", local.port(), peer.port()).into_bytes()
}
