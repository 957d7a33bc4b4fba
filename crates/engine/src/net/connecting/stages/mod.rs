//! The stages between the TCP connection and the first request, in the order in which they run.
//!
//! ```text
//! [TLS with the proxy] ─▶ [SOCKS or CONNECT] ─▶ … next proxy … ─▶ [PROXY protocol] ─▶ [TLS with the origin]
//! ```
//!
//! Each stage is one file and one [`Stage`]. A new kind of stage needs only its file and a place
//! in [`list`].

mod connect;
mod connect_exchange;
mod proxy_protocol;
mod socks;
mod tls;
mod wire;

use std::collections::VecDeque;

use haul_policy::proxy::ProxyKind;
use haul_policy::proxy::socks::Destination;

use self::connect::ConnectStage;
use self::proxy_protocol::ProxyProtocolStage;
use self::socks::SocksStage;
use self::tls::TlsStage;
pub(super) use self::wire::Wire;

use super::route::{Route, proxies};
use crate::Result;
use crate::net::pool::Key;
use crate::net::tls::TlsContexts;

/// The result of one [`Stage::step`].
pub(super) enum StageOutcome {
    /// The stage is complete.
    Done,
    /// The stage waits for the socket.
    Blocked,
}

/// An exchange that has to end before requests can be sent.
pub(super) trait Stage: Send {
    /// Sends and receives as far as the socket allows. `buffer` is scratch space.
    ///
    /// # Errors
    /// The peer refused, broke the protocol, or closed the connection.
    fn step(&mut self, wire: &mut Wire, tls: &TlsContexts, buffer: &mut [u8]) -> Result<StageOutcome>;

    /// The stage's name in a message, such as `the TLS handshake with example.org`.
    fn name(&self) -> String;
}

/// Lists the stages of a connection. Impossible ones fail here, before anything is connected.
///
/// # Errors
/// [`ErrorKind::Proxy`](crate::ErrorKind::Proxy) for a name that SOCKS cannot express,
/// [`ErrorKind::Setup`](crate::ErrorKind::Setup) for fields that cannot be sent.
pub(super) fn list(key: &Key, route: &Route) -> Result<VecDeque<Box<dyn Stage>>> {
    let mut stages: VecDeque<Box<dyn Stage>> = VecDeque::new();
    let proxies = proxies(key);
    for (index, proxy) in proxies.iter().enumerate() {
        let Some(hop) = key.via.hop() else { break };
        if let Some(options) = hop.tls.as_ref().filter(|_| proxy.kind() == ProxyKind::Https) {
            stages.push_back(Box::new(TlsStage::with_proxy(options, key.proxy_place(proxy), proxy.host_text())));
        }
        // A forwarding proxy gets no request for a tunnel.
        let Some(address) = route.asked.get(index) else { break };
        let (host, port) = match proxies.get(index + 1) {
            Some(next) => (next.host_text(), next.port()),
            None => (key.dial.0.as_str(), key.dial.1),
        };
        stages.push_back(if proxy.kind().is_socks() {
            let destination = address.map_or(Destination::Name(host), Destination::Address);
            Box::new(SocksStage::new(proxy, destination, port)?)
        } else {
            Box::new(ConnectStage::new(hop, host, port)?)
        });
    }
    if key.connect.haproxy_protocol {
        stages.push_back(Box::new(ProxyProtocolStage::new(key.connect.haproxy_client)));
    }
    if let Some(options) = &key.tls {
        stages.push_back(Box::new(TlsStage::with_origin(options, key.place(), &key.host)));
    }
    Ok(stages)
}
