//! The proxy variables of the environment.

use super::NoProxy;
use crate::target::{Scheme, Target};

/// What the variables say, read once. `Debug` is left out: their values hold passwords.
///
/// `http_proxy` counts in lower case only: CGI sets `HTTP_PROXY` from a request's Proxy field, so a peer could choose it
/// (CVE-2016-5385). All others count in both cases, the lower one first. An empty one counts as unset.
#[derive(Clone, Default)]
pub struct Environment {
    http: Option<String>,
    https: Option<String>,
    no_proxy: NoProxy,
}

impl Environment {
    /// Reads them through `get`.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Environment {
        let first = |names: &[&str]| names.iter().find_map(|name| get(name).filter(|value| !value.is_empty()));
        let no_proxy = first(&["no_proxy", "NO_PROXY"]);
        Environment {
            http: first(&["http_proxy", "all_proxy", "ALL_PROXY"]),
            https: first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            no_proxy: no_proxy.map(|text| NoProxy::parse(&text)).unwrap_or_default(),
        }
    }

    /// The proxy's URL for `target`; `None` goes direct.
    pub fn proxy_for(&self, target: &Target) -> Option<&str> {
        self.proxy_unless(target, &self.no_proxy)
    }

    /// The same with `--noproxy`, which stands in place of the variable, also for a proxy of the environment.
    pub fn proxy_unless(&self, target: &Target, no_proxy: &NoProxy) -> Option<&str> {
        let value = match target.scheme() {
            Scheme::Http => self.http.as_deref(),
            Scheme::Https => self.https.as_deref(),
        };
        value.filter(|_| !no_proxy.matches(target.host()))
    }

    /// Variables that [`Environment::read`] makes the same of: for another process that is to act by them. Their values are
    /// secrets.
    ///
    /// ```
    /// use haul_policy::{Target, proxy::Environment};
    ///
    /// let given = |name: &str| (name == "ALL_PROXY").then(|| "http://u:p@proxy:1".to_owned());
    /// let pairs = Environment::read(given).variables();
    /// let again = Environment::read(|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone()));
    /// assert_eq!(again.proxy_for(&Target::parse("https://h/").unwrap()), Some("http://u:p@proxy:1"));
    /// ```
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let no_proxy = Some(self.no_proxy.to_string()).filter(|list| !list.is_empty());
        let pairs = [("http_proxy", self.http.clone()), ("https_proxy", self.https.clone()), ("no_proxy", no_proxy)];
        pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The same without its proxies: what is left is `no_proxy`.
    #[must_use]
    pub fn without_proxies(self) -> Environment {
        Environment { no_proxy: self.no_proxy, ..Environment::default() }
    }

    /// What `no_proxy` says; it counts for `-x` too, unless there is a `--noproxy`.
    pub fn no_proxy(&self) -> &NoProxy {
        &self.no_proxy
    }
}
