//! The stages between the TCP connection and the first request, in the order in which they run.
//!
//! ```text
//! [TLS with the proxy] ─▶ [SOCKS or CONNECT] ─▶ … next proxy … ─▶ [PROXY protocol] ─▶ [TLS with the origin]
//! ```
//!
//! Each stage is a file with one [`ConnectionStage`]. To add a stage, write its file and add an
//! entry to [`stages_for`].

mod http_connect_exchange;
mod http_tunnel;
mod proxy_protocol;
mod socks;
mod stage_io;
mod tls;

use std::collections::VecDeque;

use haul_policy::proxy::ProxyKind;
use haul_policy::proxy::socks::SocksDestination;

use self::http_tunnel::HttpTunnelStage;
use self::proxy_protocol::ProxyProtocolStage;
use self::socks::SocksStage;
pub(super) use self::stage_io::ConnectStageIo;
use self::tls::TlsStage;

use super::resolved_route::{ResolvedRoute, proxies};
use crate::Result;
use crate::net::pool::ConnectionKey;
use crate::net::tls::{TlsContexts, TlsOptions};

/// The result of one [`ConnectionStage::step`]: whether the stage is complete.
pub(super) enum ConnectStepOutcome {
    /// The stage is complete, and the next stage can begin.
    Done,
    /// The stage cannot continue before its socket is ready.
    Blocked,
}

/// A stage of opening a connection: an exchange with a proxy or a TLS peer that must be complete
/// before requests can be sent.
pub(super) trait ConnectionStage: Send {
    /// Sends and receives what the stage needs, as far as the socket allows. `buffer` is for
    /// received bytes; its content is not kept.
    ///
    /// # Errors
    /// The peer refused, violated the protocol, or closed the connection.
    fn step(&mut self, wire: &mut ConnectStageIo, tls: &TlsContexts, buffer: &mut [u8]) -> Result<ConnectStepOutcome>;

    /// Returns the name of the stage for messages, such as `the TLS handshake with example.org`.
    fn name(&self) -> String;
}

/// Returns the stages that a connection must complete after the first host on its route has
/// accepted it. `tls` contains the TLS options for the origin. A stage that can never succeed is
/// reported as an error here, before a connection is made.
///
/// # Errors
/// [`ErrorKind::Proxy`](crate::ErrorKind::Proxy) for a name that SOCKS cannot express,
/// [`ErrorKind::Setup`](crate::ErrorKind::Setup) for fields that cannot be sent.
pub(super) fn stages_for(
    key: &ConnectionKey,
    tls: Option<&TlsOptions>,
    route: &ResolvedRoute,
) -> Result<VecDeque<Box<dyn ConnectionStage>>> {
    let mut stages: VecDeque<Box<dyn ConnectionStage>> = VecDeque::new();
    let proxies = proxies(key);
    for (index, proxy) in proxies.iter().enumerate() {
        let Some(hop) = key.via.last_hop() else { break };
        if let Some(options) = hop.tls.as_ref().filter(|_| proxy.kind() == ProxyKind::Https) {
            stages.push_back(Box::new(TlsStage::for_proxy(options, key.proxy_session_key(proxy), proxy.host_text())));
        }
        // A proxy that forwards requests gets no CONNECT.
        let Some(address) = route.proxy_destinations.get(index) else { break };
        let (host, port) = match proxies.get(index + 1) {
            Some(next) => (next.host_text(), next.port()),
            None => (key.dial.0.as_str(), key.dial.1),
        };
        stages.push_back(if proxy.kind().is_socks() {
            let destination = address.map_or(SocksDestination::Name(host), SocksDestination::Address);
            Box::new(SocksStage::new(proxy, hop.socks_gssapi.as_ref(), destination, port)?)
        } else {
            Box::new(HttpTunnelStage::new(hop, host, port)?)
        });
    }
    if key.connect.haproxy_protocol {
        stages.push_back(Box::new(ProxyProtocolStage::new(key.connect.haproxy_client)));
    }
    if let Some(options) = tls {
        stages.push_back(Box::new(TlsStage::for_origin(options, key.session_key(), &key.host)));
    }
    Ok(stages)
}
