//! A CONNECT request to an HTTP proxy, over HTTP/1.1 or HTTP/2.

use std::sync::Arc;

use super::http_connect_exchange::{HttpConnectExchange, HttpConnectExchangeStep};
use super::{ConnectStageIo, ConnectStepOutcome, ConnectionStage};
use crate::Result;
use crate::net::proxy::ProxyHop;
use crate::net::tls::TlsContexts;

/// The stage of connecting that opens a tunnel through an HTTP proxy by a [`HttpConnectExchange`].
pub(super) struct HttpTunnelStage {
    exchange: Box<HttpConnectExchange>,
    has_begun: bool,
}

impl HttpTunnelStage {
    /// Makes a stage that opens a tunnel to `host` and `port` through the proxy of `hop`.
    pub(super) fn new(hop: &Arc<ProxyHop>, host: &str, port: u16) -> Result<Self> {
        Ok(Self { exchange: Box::new(HttpConnectExchange::new(Arc::clone(hop), host, port)?), has_begun: false })
    }

    fn exchange_messages(&mut self, wire: &mut ConnectStageIo, buffer: &mut [u8]) -> Result<ConnectStepOutcome> {
        if !std::mem::replace(&mut self.has_begun, true) {
            wire.queue(self.exchange.begin_on_connection(wire.stream.alpn())?);
        }
        loop {
            if !wire.flush()? {
                return Ok(ConnectStepOutcome::Blocked);
            }
            let Some(filled) = wire.receive(buffer)? else { return Ok(ConnectStepOutcome::Blocked) };
            if filled == 0 {
                return Err(self.exchange.early_end_error());
            }
            let mut plain = Vec::new();
            let mut at = 0;
            let is_over = loop {
                match wire.stream.decrypt_next(buffer, &mut at, filled)? {
                    (Some(range), _) => plain.extend_from_slice(&buffer[range]),
                    (None, is_over) => break is_over,
                }
            };
            match self.exchange.receive(&plain)? {
                HttpConnectExchangeStep::More if is_over => return Err(self.exchange.early_end_error()),
                HttpConnectExchangeStep::More => {}
                HttpConnectExchangeStep::Again => wire.queue(self.exchange.take_output()),
                HttpConnectExchangeStep::Open(ahead, tunnel) => {
                    wire.stream.add_tunnel(ahead, tunnel);
                    return Ok(ConnectStepOutcome::Done);
                }
            }
        }
    }
}

impl ConnectionStage for HttpTunnelStage {
    fn step(&mut self, wire: &mut ConnectStageIo, _: &TlsContexts, buffer: &mut [u8]) -> Result<ConnectStepOutcome> {
        let outcome = self.exchange_messages(wire, buffer);
        wire.connect_status = self.exchange.status;
        wire.auth_scheme = self.exchange.auth_scheme.or(wire.auth_scheme);
        wire.connect_heads.append(&mut self.exchange.heads);
        wire.needs_new_connection = outcome.is_err() && self.exchange.needs_new_connection();
        outcome
    }

    fn name(&self) -> String {
        "the CONNECT request to the proxy".to_owned()
    }
}
