//! The TLS handshake with an origin or a proxy.

use super::{ConnectStageIo, ConnectStepOutcome, ConnectionStage};
use crate::Result;
use crate::net::tls::{SessionKey, TlsConnection, TlsContexts, TlsOptions};

/// The step of opening a connection that runs the TLS handshake with an origin or a proxy.
pub(super) struct TlsStage {
    options: TlsOptions,
    key: SessionKey,
    host: String,
    is_proxy: bool,
    has_begun: bool,
}

impl TlsStage {
    /// Makes a stage for a handshake with the origin `host`.
    pub(super) fn for_origin(options: &TlsOptions, key: SessionKey, host: &str) -> Self {
        Self { options: options.clone(), key, host: host.to_owned(), is_proxy: false, has_begun: false }
    }

    /// Makes a stage for a handshake with the https proxy `host`.
    pub(super) fn for_proxy(options: &TlsOptions, key: SessionKey, host: &str) -> Self {
        Self { is_proxy: true, ..Self::for_origin(options, key, host) }
    }
}

impl ConnectionStage for TlsStage {
    fn step(
        &mut self,
        wire: &mut ConnectStageIo,
        contexts: &TlsContexts,
        buffer: &mut [u8],
    ) -> Result<ConnectStepOutcome> {
        if !self.has_begun {
            let context = contexts.context(&self.options)?.for_server(self.key.clone());
            wire.stream.add_tls(TlsConnection::new(&context, &self.host)?);
            self.has_begun = true;
        }
        match wire.stream.handshake(buffer) {
            Ok(true) => {
                if self.is_proxy {
                    wire.stream.proxy_fault = wire.stream.certificate_fault().map(Box::from);
                }
                Ok(ConnectStepOutcome::Done)
            }
            Ok(false) => Ok(ConnectStepOutcome::Blocked),
            Err(error) => Err(if self.is_proxy { error.about("the proxy") } else { error }),
        }
    }

    fn name(&self) -> String {
        let peer = if self.is_proxy { "the proxy " } else { "" };
        format!("the TLS handshake with {peer}{}", self.host)
    }
}
