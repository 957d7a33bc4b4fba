//! The handshake with a SOCKS proxy (SOCKS 5: RFC 1928 and RFC 1929; SOCKS 4 and 4a). With the
//! GSSAPI method (RFC 1961), haul authenticates by Kerberos tickets.

use haul_policy::proxy::Proxy;
use haul_policy::proxy::socks::{SocksDestination, SocksError, SocksHandshake, SocksStep};

use super::{ConnectStageIo, ConnectStepOutcome, ConnectionStage};
use crate::net::proxy::SocksGssapi;
use crate::net::tls::TlsContexts;
use crate::state::auth::{NegotiateError, SecurityContext};
use crate::{Error, ErrorKind, Result};

/// The stage of connecting that runs the handshake with a SOCKS proxy.
pub(super) struct SocksStage {
    handshake: SocksHandshake,
    has_begun: bool,
    gssapi: Option<SocksGssapi>,
    /// The proxy's host name, from which its Kerberos service name is made.
    host: String,
    /// The GSSAPI security context with the proxy; `None` until the proxy asks for a token.
    context: Option<Box<dyn SecurityContext>>,
}

/// The GSSAPI protection level that haul requests: none, since TLS protects the content.
const NO_PROTECTION: &[u8] = &[0];

impl SocksStage {
    /// Makes a stage that asks `proxy` to connect to `destination`.
    pub(super) fn new(
        proxy: &Proxy,
        gssapi: Option<&SocksGssapi>,
        destination: SocksDestination<'_>,
        port: u16,
    ) -> Result<Self> {
        let handshake = SocksHandshake::new(proxy.kind(), destination, port, proxy.credentials());
        let mut handshake = handshake.map_err(socks_error)?;
        if gssapi.is_some() {
            handshake = handshake.offering_gssapi();
        }
        let host = proxy.host_text().trim_matches(['[', ']']).to_owned();
        Ok(Self { handshake, has_begun: false, gssapi: gssapi.cloned(), host, context: None })
    }

    /// Passes the proxy's GSSAPI token to the security context, and returns the bytes to send to
    /// the proxy.
    fn answer_token(&mut self, token: Option<&[u8]>) -> Result<Vec<u8>> {
        let Some(gssapi) = &self.gssapi else { return Err(socks_error(SocksError::NotAProxy)) };
        let context = match &mut self.context {
            Some(context) => context,
            none => none.insert(gssapi.negotiate.socks_context(&self.host).map_err(gssapi_error)?),
        };
        let answer = context.step(token).map_err(gssapi_error)?;
        let mut output = Vec::new();
        if !answer.is_empty() {
            output = self.handshake.token_message(&answer).map_err(socks_error)?;
        }
        if context.is_established() {
            let level =
                if gssapi.nec { NO_PROTECTION.to_vec() } else { context.wrap(NO_PROTECTION).map_err(gssapi_error)? };
            output.extend(self.handshake.level_message(&level).map_err(socks_error)?);
        } else if answer.is_empty() {
            return Err(socks_error(SocksError::NotAProxy));
        }
        Ok(output)
    }

    /// Handles the proxy's offer of GSSAPI protection levels, and returns the SOCKS request to
    /// send.
    fn answer_level(&mut self, level: Vec<u8>) -> Result<Vec<u8>> {
        let level = match (&mut self.context, &self.gssapi) {
            (Some(context), Some(gssapi)) if !gssapi.nec => context.unwrap(&level).map_err(gssapi_error)?,
            _ => level,
        };
        self.handshake.on_level(&level).map_err(socks_error)
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
                SocksStep::Token(token) => wire.queue(self.answer_token(token.as_deref())?),
                SocksStep::Level(level) => wire.queue(self.answer_level(level)?),
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

fn gssapi_error(error: NegotiateError) -> Error {
    let kind = if matches!(error, NegotiateError::Library(_)) { ErrorKind::Setup } else { ErrorKind::Proxy };
    Error::with_source(kind, "cannot authenticate to the SOCKS proxy", error)
}
