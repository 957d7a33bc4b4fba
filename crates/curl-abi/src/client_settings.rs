//! The options of an easy handle on which the engine's client depends: limits of the connection pool,
//! and name resolution.

use std::borrow::Cow;
use std::time::Duration;

use haul::Client;
use haul::net::dns::{ChosenDnsServers, DnsCacheOptions, Resolver};
use haul::net::pool::PoolLimits;
use haul::net::tls::TlsOptions;

use crate::codes::CURLE_BAD_FUNCTION_ARGUMENT;
use crate::options::{EasyOptions, curlopt_numbers as opt};
use crate::request::TransferFailure;

/// The options on which the engine's client for a handle depends. If they change, a new client is
/// made.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ClientSettings {
    connections: Option<i64>,
    idle: Option<i64>,
    dns_ttl: Option<i64>,
    /// The name servers (`CURLOPT_DNS_SERVERS`); `None` for those of the system.
    dns_servers: Option<String>,
    /// The URL of DNS over HTTPS (`CURLOPT_DOH_URL`), and true if the certificate of its server is
    /// verified; `None` without DNS over HTTPS.
    doh: Option<(String, bool)>,
}

impl ClientSettings {
    pub(crate) fn from_options(options: &EasyOptions) -> Self {
        let text = |option| options.text(option).filter(|text| !text.is_empty()).map(Cow::into_owned);
        let verifies = options.number(opt::DOH_SSL_VERIFYPEER) != Some(0);
        Self {
            connections: options.number(opt::MAXCONNECTS),
            idle: options.number(opt::MAXAGE_CONN),
            dns_ttl: options.number(opt::DNS_CACHE_TIMEOUT),
            dns_servers: text(opt::DNS_SERVERS),
            doh: text(opt::DOH_URL).map(|url| (url, verifies)),
        }
    }

    pub(crate) fn client(&self, resolver: Option<Resolver>) -> Client {
        let resolver = resolver.unwrap_or_else(|| self.resolver());
        Client::builder().pool(self.pool_limits()).resolver(resolver).build()
    }

    /// Returns the limits of the connection pool.
    pub(crate) fn pool_limits(&self) -> PoolLimits {
        let mut limits = PoolLimits::default();
        if let Some(most) = self.connections.and_then(|most| usize::try_from(most).ok()).filter(|most| *most > 0) {
            limits.connections = most;
        }
        if let Some(idle) = self.idle.and_then(|idle| u64::try_from(idle).ok()).filter(|idle| *idle > 0) {
            limits.idle = Duration::from_secs(idle);
        }
        limits
    }

    /// Makes a resolver, which asks the system's name servers.
    pub(crate) fn resolver(&self) -> Resolver {
        let mut dns = DnsCacheOptions::default();
        match self.dns_ttl {
            Some(-1) => dns.ttl = Duration::from_secs(u32::MAX.into()),
            Some(seconds) => dns.ttl = Duration::from_secs(seconds.unsigned_abs()),
            None => {}
        }
        Resolver::new(dns)
    }

    /// Makes a resolver ask the name servers of the options.
    ///
    /// # Errors
    /// The text of the name servers or the URL of DNS over HTTPS is not valid.
    pub(crate) fn set_servers(&self, resolver: &Resolver) -> Result<(), TransferFailure> {
        let failed = |error: haul::Error| TransferFailure::new(CURLE_BAD_FUNCTION_ARGUMENT, error.cause());
        if let Some(servers) = &self.dns_servers {
            resolver.use_servers(&ChosenDnsServers::parse(servers).map_err(failed)?);
        }
        if let Some((url, verifies)) = &self.doh {
            let mut tls = TlsOptions::default();
            tls.verify = *verifies;
            haul::dns_over_https::DnsOverHttps::new(url, tls).map_err(failed)?.use_for(resolver);
        }
        Ok(())
    }

    /// Returns true if both name the same name servers.
    pub(crate) fn has_servers_of(&self, other: &Self) -> bool {
        (&self.dns_servers, &self.doh) == (&other.dns_servers, &other.doh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::OptionValue;

    #[test]
    fn name_servers_of_options_make_a_new_client() {
        let mut options = EasyOptions::default();
        let plain = ClientSettings::from_options(&options);
        for option in [opt::DOH_URL, opt::DNS_SERVERS] {
            options.store(option, Some(OptionValue::Bytes(b"https://127.0.0.1/"[..].into())));
            let with_servers = ClientSettings::from_options(&options);
            assert!(with_servers != plain && !with_servers.has_servers_of(&plain));
            options.store(option, None);
            assert!(ClientSettings::from_options(&options) == plain);
        }
    }
}
