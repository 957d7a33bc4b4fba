//! The proxy variables of the environment.

use super::{NoProxy, Proxy, ProxyKind};
use crate::target::{Scheme, Target};

/// The values of the environment variables for proxies, read once. There is no `Debug`, since the
/// values contain passwords.
///
/// `http_proxy` is read in lower case only: CGI sets `HTTP_PROXY` from a request's Proxy field, so
/// a peer could choose the proxy (CVE-2016-5385). All other variables are read in lower and upper
/// case; lower case takes precedence. An empty variable counts as unset.
#[derive(Clone, Default)]
pub struct ProxyEnvironment {
    http: Option<String>,
    https: Option<String>,
    no_proxy: NoProxy,
}

impl ProxyEnvironment {
    /// Reads the variables by calling `get` with their names. The values are text or the system's
    /// bytes. Bytes that are not UTF-8 are percent-encoded. In a proxy's user and password, the
    /// encoded bytes keep their meaning. In any other part, the URL of the proxy fails to parse, so
    /// that the variable is not silently ignored.
    pub fn from_variables<V: Into<Vec<u8>>>(get: impl Fn(&str) -> Option<V>) -> ProxyEnvironment {
        Self::from_variables_with(get, NoProxy::parse)
    }

    /// Reads the variables as [`from_variables`](Self::from_variables) does, but the list of hosts
    /// with `parse_list`.
    pub fn from_variables_with<V: Into<Vec<u8>>>(
        get: impl Fn(&str) -> Option<V>,
        parse_list: impl Fn(&str) -> NoProxy,
    ) -> ProxyEnvironment {
        let value = |name: &&str| get(name).map(|value| decode_text(value.into())).filter(|value| !value.is_empty());
        let first = |names: &[&str]| names.iter().find_map(value);
        let no_proxy = first(&["no_proxy", "NO_PROXY"]);
        let all = first(&["all_proxy", "ALL_PROXY"]);
        ProxyEnvironment {
            http: first(&["http_proxy"]).or_else(|| all.clone()),
            https: first(&["https_proxy", "HTTPS_PROXY"]).or(all),
            no_proxy: no_proxy.map(|text| parse_list(&text)).unwrap_or_default(),
        }
    }

    /// Returns the URL of the proxy for `target`; `None` means a direct connection.
    pub fn proxy_for(&self, target: &Target) -> Option<&str> {
        self.proxy_unless(target, &self.no_proxy)
    }

    /// Returns the URL of the proxy for `target`, with `--noproxy` in place of the variable
    /// `no_proxy`. `None` means a direct connection.
    pub fn proxy_unless(&self, target: &Target, no_proxy: &NoProxy) -> Option<&str> {
        let value = match target.scheme() {
            Scheme::Http => self.http.as_deref(),
            Scheme::Https => self.https.as_deref(),
        };
        value.filter(|_| !no_proxy.matches(target))
    }

    /// Returns `true` if a proxy is set for URLs with this scheme. Hosts that `no_proxy` names are
    /// reached without the proxy.
    pub fn has_proxy_for(&self, scheme: Scheme) -> bool {
        match scheme {
            Scheme::Http => self.http.is_some(),
            Scheme::Https => self.https.is_some(),
        }
    }

    /// Returns `true` if one of the proxies is reached over TLS.
    pub fn has_https_proxy(&self) -> bool {
        let is_https = |url: &String| Proxy::parse(url).is_ok_and(|proxy| proxy.kind() == ProxyKind::Https);
        [&self.http, &self.https].into_iter().flatten().any(is_https)
    }

    /// Returns the variables as names and values, to be passed to another process.
    /// [`ProxyEnvironment::from_variables`] creates an equal `ProxyEnvironment` from them. The
    /// values are secrets.
    ///
    /// ```
    /// use haul_policy::{Target, proxy::ProxyEnvironment};
    ///
    /// let given = |name: &str| (name == "ALL_PROXY").then(|| "http://u:p@proxy:1".to_owned());
    /// let pairs = ProxyEnvironment::from_variables(given).variables();
    /// let again = ProxyEnvironment::from_variables(|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone()));
    /// assert_eq!(again.proxy_for(&Target::parse("https://h/").unwrap()), Some("http://u:p@proxy:1"));
    /// ```
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let no_proxy = Some(self.no_proxy.to_string()).filter(|list| !list.is_empty());
        let pairs = [("http_proxy", self.http.clone()), ("https_proxy", self.https.clone()), ("no_proxy", no_proxy)];
        pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Returns a copy that has no proxies and keeps `no_proxy`.
    #[must_use]
    pub fn without_proxies(self) -> ProxyEnvironment {
        ProxyEnvironment { no_proxy: self.no_proxy, ..ProxyEnvironment::default() }
    }

    /// Returns the hosts in the variable `no_proxy`. They are reached without a proxy, even if `-x`
    /// gives one; `--noproxy` replaces this list.
    pub fn no_proxy(&self) -> &NoProxy {
        &self.no_proxy
    }
}

fn decode_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let mut text = String::new();
        for chunk in error.as_bytes().utf8_chunks() {
            text.push_str(chunk.valid());
            chunk.invalid().iter().for_each(|byte| text.push_str(&format!("%{byte:02X}")));
        }
        text
    })
}
