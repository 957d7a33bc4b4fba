//! The route of a transfer's connection: through a proxy, or to an alternative service (RFC 7838).
//! If an alternative service fails, the origin is used instead.

use haul_policy::alt_svc::AlpnProtocol;

use std::sync::Arc;

use haul_policy::http3::{Http3Failure, Http3Policy, QuicEndpoint};

use super::Transfer;
use super::end_of_exchange::ExchangeFailurePoint;
#[cfg(feature = "http3")]
use super::resettable_state::BodyDisposition;
use crate::RequestOptions;
use crate::net::pool::ConnectionKey;
use crate::net::proxy::ProxyRoute;
use crate::trace::TraceEvent;
use crate::{Error, ErrorKind};

/// An alternative service of an origin (RFC 7838): protocol, host and port.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AltService {
    protocol: AlpnProtocol,
    host: String,
    port: u16,
}

/// The route of the connection for the current exchange: whether it goes to an alternative service
/// or the origin, and whether through a proxy.
#[derive(Default)]
pub(super) struct ConnectionRoute {
    /// The alternative service (RFC 7838) to which the connection is made; `None` if the connection
    /// is made to the origin itself.
    pub(super) alternative: Option<Box<AltService>>,
    /// The origin and endpoint of an HTTP/3 connection; `None` if the connection does not use
    /// HTTP/3.
    http3: Option<Box<Http3OriginAndEndpoint>>,
    /// The first proxy on the route, for traces; `None` without a proxy or without a trace.
    pub(super) proxy: Option<Box<TracedProxy>>,
}

/// The origin and the endpoint of an HTTP/3 connection. The connection may have been made for
/// another host of the same server (RFC 9114 section 3.3), so the origin can differ from that of
/// the request.
struct Http3OriginAndEndpoint {
    /// The origin for which the HTTP/3 connection was made.
    origin: QuicEndpoint,
    /// The endpoint (host and port) to which the HTTP/3 connection was made.
    endpoint: QuicEndpoint,
}

/// The first proxy on a route, as text for traces. It is boxed, because few transfers use a proxy.
pub(super) struct TracedProxy {
    pub(super) host: Box<str>,
}

impl Transfer {
    /// Records the route of the connection for the next exchange. `key` is the connection's pool
    /// key, which contains the route.
    pub fn set_route(&mut self, key: &ConnectionKey) {
        self.facts.proxy_used = key.via != ProxyRoute::Direct;
        self.route.http3 = None;
        let hop = key.via.last_hop().filter(|_| self.options.trace.is_some());
        let host = hop.map(|hop| hop.preproxy.as_ref().unwrap_or(&hop.proxy).host_text().into());
        self.route.proxy = host.map(|host| Box::new(TracedProxy { host }));
        let service = key
            .alternative
            .map(|protocol| Box::new(AltService { protocol, host: key.dial.0.clone(), port: key.dial.1 }));
        if service == self.route.alternative {
            return;
        }
        if let (Some(trace), Some(AltService { protocol, host, port })) = (&self.options.trace, service.as_deref()) {
            let (from, to) = (self.current.target.host_text(), protocol.as_str());
            let text = format!("Alt-svc connecting from {from}:{} to [{to}]{host}:{port}", self.current.target.port());
            trace.event(&TraceEvent::Info(text.into()));
        }
        self.route.alternative = service;
    }

    /// Records the route of the open connection on which the exchange begins. `key` is the pool key
    /// of the connection, and shows whether the connection uses HTTP/3.
    pub fn set_open_route(&mut self, key: &ConnectionKey) {
        self.set_route(key);
        let endpoint = key.http3.endpoint().cloned();
        self.route.http3 =
            endpoint.map(|endpoint| Box::new(Http3OriginAndEndpoint { origin: key.http3_origin(), endpoint }));
    }

    /// Returns true if the Alt-Svc fields of responses are stored, because later requests may use
    /// HTTP/3.
    pub(super) fn stores_http3_offers(&self) -> bool {
        cfg!(feature = "http3")
            && self.options.http3 != Http3Policy::Off
            && !self.facts.proxy_used
            && self.options.connect.unix_socket.is_none()
    }

    /// Stops using HTTP/3 for this transfer, after an exchange over HTTP/3 failed. If more than a
    /// single stream failed, other transfers avoid HTTP/3 for some time, too. Returns false if the
    /// exchange did not use HTTP/3, or if only HTTP/3 may be used.
    pub(super) fn retry_without_http3(&mut self, error: &Error, broke: ExchangeFailurePoint) -> bool {
        let of_http3 = matches!(
            error.kind(),
            ErrorKind::Http3
                | ErrorKind::QuicConnect
                | ErrorKind::EmptyReply
                | ErrorKind::PartialBody
                | ErrorKind::Receive
                | ErrorKind::Send
        );
        if !of_http3 || self.options.http3 == Http3Policy::Only {
            return false;
        }
        let is_stream = error.kind() == ErrorKind::Http3 && broke != ExchangeFailurePoint::ByProtocol;
        if !self.stop_http3(!is_stream) {
            return false;
        }
        if let Some(trace) = &self.options.trace {
            trace.event(&TraceEvent::Info(format!("HTTP/3 failed, using TCP: {}", error.cause()).into()));
        }
        true
    }

    /// Stops using an HTTP/3 alternative service, because its server has responded that it does not
    /// serve this origin. Returns false if no such service is in use, or if TCP must not be used.
    pub(super) fn retry_misdirected_without_http3(&mut self) -> bool {
        self.options.http3 != Http3Policy::Only && self.alt_used().is_some() && self.stop_http3(true)
    }

    /// Makes the transfer use TCP, because the server does not serve this request over HTTP/3 (RFC
    /// 9114 section 8.1, H3_VERSION_FALLBACK). Returns false if the request cannot be sent again.
    #[cfg(feature = "http3")]
    pub(crate) fn fall_back_from_http3(&mut self) -> bool {
        let is_unanswered = matches!(self.response.disposition, BodyDisposition::Unknown);
        let may_leave = self.options.http3 != Http3Policy::Only && is_unanswered && self.resend_error().is_none();
        may_leave && self.stop_http3(false)
    }

    /// Makes the next exchange of this transfer use TCP instead of HTTP/3. If `is_broken` is true,
    /// also records a failure of the HTTP/3 endpoint, so that other transfers avoid it for some
    /// time. Returns false if the last exchange did not use HTTP/3.
    fn stop_http3(&mut self, is_broken: bool) -> bool {
        let Some(route) = self.route.http3.take() else { return false };
        if is_broken {
            let Http3OriginAndEndpoint { origin, endpoint } = *route;
            self.options.http3_cache.on_failed(&origin, &endpoint, Http3Failure::Broken);
        }
        self.options = Arc::new(RequestOptions { http3: Http3Policy::Off, ..RequestOptions::clone(&self.options) });
        true
    }

    /// Returns the value of the Alt-Used field (RFC 7838 section 5). Returns `None` if no
    /// alternative service is used. A connection that was made for another host of the same server
    /// is not an alternative service.
    pub(super) fn alt_used(&self) -> Option<String> {
        let other = match self.route.http3.as_deref() {
            Some(Http3OriginAndEndpoint { origin, endpoint }) => {
                (endpoint != origin).then_some((&endpoint.host, endpoint.port))
            }
            None => self.route.alternative.as_deref().map(|service| (&service.host, service.port)),
        };
        let (host, port) = other?;
        Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
    }

    /// Stops using the alternative service if `error` means that it could not be reached. Returns
    /// false if no alternative service was in use, or if the error has another cause.
    pub(super) fn drop_alternative_after(&mut self, error: &Error) -> bool {
        let is_of_service = matches!(
            error.kind(),
            ErrorKind::Resolve
                | ErrorKind::Connect
                | ErrorKind::Timeout
                | ErrorKind::TlsHandshake
                | ErrorKind::PeerCertificate
                | ErrorKind::PinnedKey
                | ErrorKind::CertificateStatus
                | ErrorKind::EchRequired
        );
        is_of_service && self.drop_alternative()
    }

    /// Stops using the alternative service, so that the next exchange goes to the origin. Returns
    /// false if no alternative service was in use.
    pub(super) fn drop_alternative(&mut self) -> bool {
        let (Some(service), Some(known)) = (self.route.alternative.take(), &self.options.alt_svc) else { return false };
        known.mark_failed(&self.current.target, service.protocol, &service.host, service.port);
        true
    }
}

#[cfg(all(test, feature = "http3"))]
mod tests {
    use std::time::Instant;

    use haul_policy::target::Target;

    use super::*;
    use crate::body::delivery::BodyDelivery;
    use crate::body::upload::RequestBody;
    use crate::sink::memory::MemorySink;
    use crate::transfer::TransferStep;

    /// A transfer over HTTP/3 to an endpoint with this host.
    fn over_http3(host: &str, options: RequestOptions) -> Box<Transfer> {
        let body = BodyDelivery::new(Box::new(MemorySink::default()));
        let target = Target::parse("https://a.example/").unwrap();
        let options = Arc::new(RequestOptions { http3: Http3Policy::Learned, ..options });
        let mut transfer = Transfer::new(target, options, body, Instant::now(), 0);
        let endpoint = |host: &str| QuicEndpoint { host: host.into(), port: 443 };
        let route = Http3OriginAndEndpoint { origin: endpoint("a.example"), endpoint: endpoint(host) };
        transfer.route.http3 = Some(Box::new(route));
        transfer
    }

    #[test]
    fn http3_is_left_only_before_a_response() {
        let leaves = |change: fn(&mut Transfer)| {
            let mut transfer = over_http3("a.example", RequestOptions::default());
            change(&mut transfer);
            (transfer.fall_back_from_http3(), transfer.options.http3 == Http3Policy::Off)
        };
        assert_eq!(leaves(|_| ()), (true, true));
        assert_eq!(leaves(|transfer| transfer.response.disposition = BodyDisposition::Deliver), (false, false));
        assert_eq!(leaves(|transfer| transfer.route.http3 = None), (false, false));
        let only = |transfer: &mut Transfer| {
            transfer.options = Arc::new(RequestOptions { http3: Http3Policy::Only, ..RequestOptions::default() });
        };
        assert_eq!(leaves(only), (false, false));
        let body = Some(RequestBody::reader(&b"x"[..]));
        let mut consumed = over_http3("a.example", RequestOptions { body, ..RequestOptions::default() });
        let _ = consumed.upload().unwrap().read(&mut [0; 8]).unwrap();
        assert!(!consumed.fall_back_from_http3());
    }

    #[test]
    fn misdirected_request_leaves_only_an_alternative_service() {
        let mut alternative = over_http3("b.example", RequestOptions::default());
        assert_eq!(alternative.alt_used().as_deref(), Some("b.example:443"));
        assert!(alternative.retry_misdirected_without_http3());
        let mut origin = over_http3("a.example", RequestOptions::default());
        assert!(origin.alt_used().is_none() && !origin.retry_misdirected_without_http3());
    }

    #[test]
    fn failed_http3_is_replaced_by_tcp() {
        let error = || Error::new(ErrorKind::Http3, "x");
        let mut transfer = over_http3("a.example", RequestOptions::default());
        let step = transfer.on_failure(error(), ExchangeFailurePoint::BeforeResponse, Instant::now());
        assert!(matches!(step, TransferStep::Again(_)) && transfer.options.http3 == Http3Policy::Off);
        let mut unsent = over_http3("a.example", RequestOptions::default());
        let step = unsent.on_failure(error(), ExchangeFailurePoint::BeforeSending, Instant::now());
        assert!(matches!(step, TransferStep::Done(Err(_))) && unsent.options.http3 == Http3Policy::Learned);
    }
}
