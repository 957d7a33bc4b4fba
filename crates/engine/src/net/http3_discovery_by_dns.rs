//! Looks up the HTTPS records of an origin (RFC 9460) when a connection to it begins, and stores
//! the offered protocols in the [`Http3Cache`]. The connection does not wait for the records: only
//! later connections use them.

use haul_policy::target::{Scheme, Target};

use super::dns::{HttpsLookupStatus, LookupCaller, Resolver};
use super::pool::ConnectionKey;
use super::proxy::ProxyRoute;
use crate::RequestOptions;
use crate::request::Http3Policy;
use crate::state::http3::{Http3Cache, origin};

/// Starts a lookup of the HTTPS records of a request's target, from which the client learns that
/// the server supports HTTP/3. Does nothing unless the URL is an https URL, no proxy is used, and
/// the options allow HTTP/3.
pub(crate) fn begin_lookup(
    resolver: &Resolver,
    waiter: LookupCaller,
    target: &Target,
    options: &RequestOptions,
    key: &ConnectionKey,
) {
    let can_matter = cfg!(feature = "http3")
        && options.http3 != Http3Policy::Off
        && !options.prior_knowledge
        && target.scheme() == Scheme::Https
        && options.tls.verify
        && key.via == ProxyRoute::Direct
        && key.connect.unix_socket.is_none()
        && options.connect_host_and_port(target.host_text(), target.port()) == (target.host_text(), target.port());
    if !can_matter {
        return;
    }
    let (origin, cache) = (origin(target), options.http3_cache.clone());
    let asked = (resolver.clone(), cache.clone(), origin.clone());
    let notify = move || {
        let (resolver, cache, origin) = asked;
        let status = resolver.https_records_for(waiter, &origin.host, origin.port, || ());
        store_records(&cache, &origin, status);
    };
    let status = resolver.https_records_for(waiter, &origin.host, origin.port, notify);
    store_records(&cache, &origin, status);
}

fn store_records(cache: &Http3Cache, origin: &haul_policy::http3::QuicEndpoint, status: HttpsLookupStatus) {
    if let HttpsLookupStatus::Ready { records, until } = status {
        cache.store_https_records(origin, &records, until);
    }
}
