//! The handshake with a SOCKS proxy (RFC 1928, RFC 1929, SOCKS 4 and 4a).

use haul_policy::proxy::Proxy;
use haul_policy::proxy::socks::{SocksDestination, SocksError, SocksHandshake, SocksStep};

use super::{ConnectStageIo, ConnectStepOutcome, ConnectionStage};
use crate::net::tls::TlsContexts;
use crate::{Error, ErrorKind, Result};

/// The stage that runs the handshake with a SOCKS proxy.
pub(super) struct SocksStage {
    handshake: SocksHandshake,
    has_begun: bool,
}

impl SocksStage {
    /// Makes a stage that asks `proxy` to connect to `destination`.
    pub(super) fn new(proxy: &Proxy, destination: SocksDestination<'_>, port: u16) -> Result<Self> {
        let handshake = SocksHandshake::new(proxy.kind(), destination, port, proxy.credentials());
        Ok(Self { handshake: handshake.map_err(socks_error)?, has_begun: false })
    }
}

impl ConnectionStage for SocksStage {
    fn step(&mut self, wire: &mut ConnectStageIo, _: &TlsContexts, buffer: &mut [u8]) -> Result<ConnectStepOutcome> {
        if !std::mem::replace(&mut self.has_begun, true) {
            wire.queue(self.handshake.start().to_vec());
        }
        loop {
            if !wire.flush()? {
                return Ok(ConnectStepOutcome::Blocked);
            }
            // Bytes after the proxy's answer belong to the next stage and must stay in the socket.
            let wants = self.handshake.missing_bytes().min(buffer.len());
            let Some(filled) = wire.receive(&mut buffer[..wants])? else { return Ok(ConnectStepOutcome::Blocked) };
            if filled == 0 {
                return Err(Error::new(ErrorKind::Proxy, "the SOCKS proxy closed the connection in the handshake"));
            }
            match self.handshake.receive(&buffer[..filled]).map_err(socks_error)?.1 {
                SocksStep::NeedMore => {}
                SocksStep::Done => return Ok(ConnectStepOutcome::Done),
                SocksStep::Send(bytes) => wire.queue(bytes),
            }
        }
    }

    fn name(&self) -> String {
        "the handshake with the SOCKS proxy".to_owned()
    }
}

fn socks_error(error: SocksError) -> Error {
    Error::with_source(ErrorKind::Proxy, "cannot go through the SOCKS proxy", error)
}
