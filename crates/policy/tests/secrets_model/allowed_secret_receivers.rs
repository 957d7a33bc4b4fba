//! The model of the secrets test: it records which receiver may see which secret. It uses no code
//! of the crate.

use proptest::prelude::*;

use super::SecretReceiver;

/// Two spellings of each host. The second host is a subdomain of the first; the last two are names
/// of this machine.
pub(super) const HOSTS: [[&str; 2]; 5] = [
    ["a.example", "A.Example"],
    ["w.a.example", "w.%61.example"],
    ["b.example", "b.EXAMPLE"],
    ["127.0.0.1", "0x7f.1"],
    ["[::1]", "[0:0::1]"],
];

pub(super) const NETRC: &str =
    "machine a.example login neta password neta-pw\nmachine b.example login netb password netb-pw\n";

const PROXY_SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

/// An origin in the model. `host` is an index into [`HOSTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ModelOrigin {
    pub(super) tls: bool,
    pub(super) host: usize,
    pub(super) port: u16,
}

impl ModelOrigin {
    pub(super) fn url(self, userinfo: &str, spelling: usize) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{userinfo}{}:{}/p", HOSTS[self.host][spelling], self.port)
    }

    fn is_private(self) -> bool {
        self.tls || self.host >= 3
    }
}

/// The user's options in the model: the secrets and the proxies.
#[derive(Clone, Debug)]
pub(super) struct ModelUserOptions {
    pub(super) user: bool,
    pub(super) url_user: bool,
    pub(super) bearer: bool,
    pub(super) netrc: bool,
    /// The indexes of the proxies for http and https in `PROXY_SCHEMES`; an index past its end
    /// means no proxy.
    pub(super) proxies: [usize; 2],
    pub(super) no_proxy: Vec<usize>,
    pub(super) tunnel: bool,
}

impl ModelUserOptions {
    pub(super) fn proxy_url(&self, which: usize) -> Option<String> {
        let scheme = PROXY_SCHEMES.get(self.proxies[which])?;
        Some(format!("{scheme}://proxy{which}:proxy{which}-pw@proxy{which}.example"))
    }

    pub(super) fn no_proxy_text(&self) -> String {
        let text = |host: &usize| HOSTS[*host][0].trim_matches(['[', ']']);
        self.no_proxy.iter().map(text).collect::<Vec<_>>().join(",")
    }

    /// Returns the index of the proxy for a peer. The flag is true if the proxy forwards the
    /// request, so that it can read all of it. `None` without a proxy.
    fn proxy(&self, peer: ModelOrigin) -> Option<(usize, bool)> {
        let which = usize::from(peer.tls);
        let scheme = PROXY_SCHEMES.get(self.proxies[which])?;
        let direct = self.no_proxy.iter().any(|host| *host == peer.host || (*host, peer.host) == (0, 1));
        (!direct).then_some((which, scheme.starts_with("http") && !peer.tls && !self.tunnel))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum DomainAttribute {
    None,
    Own,
    /// The Domain attribute is the host's name without its first label.
    Parent,
    Of(usize),
}

/// A Set-Cookie field in the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelSetCookie {
    pub(super) domain: DomainAttribute,
    pub(super) secure: bool,
}

impl ModelSetCookie {
    pub(super) fn field(self, from: ModelOrigin, number: usize) -> String {
        let own = HOSTS[from.host][0];
        let domain = match self.domain {
            DomainAttribute::None => String::new(),
            DomainAttribute::Own => format!("; Domain={own}"),
            DomainAttribute::Parent => format!("; Domain=.{}", own.split_once('.').map_or("x", |(_, parent)| parent)),
            DomainAttribute::Of(host) => format!("; Domain={}", HOSTS[host][0]),
        };
        let secure = if self.secure { "; Secure" } else { "" };
        format!("n{number}=cookie-{number}.; Path=/{domain}{secure}")
    }

    /// Returns the indexes of the hosts that may receive the cookie; `None` if the client must
    /// refuse the cookie.
    fn audience(self, from: ModelOrigin) -> Option<Vec<usize>> {
        let below = |host: usize| if host == 0 { vec![0, 1] } else { vec![host] };
        if self.secure && !from.is_private() {
            return None;
        }
        match (self.domain, from.host) {
            (DomainAttribute::None, host) => Some(vec![host]),
            (DomainAttribute::Own, host) => Some(below(host)),
            (DomainAttribute::Of(0) | DomainAttribute::Parent, 1) => Some(below(0)),
            (DomainAttribute::Of(other), host) if other == host => Some(below(host)),
            _ => None,
        }
    }
}

/// A response in the model: a redirect that sets cookies.
#[derive(Clone, Debug)]
pub(super) struct ModelRedirect {
    pub(super) peer: ModelOrigin,
    pub(super) spelling: usize,
    /// True if the Location is only a path, so that the peer stays the same.
    pub(super) stays: bool,
    /// True if the Location has a user and password that the server chose.
    pub(super) userinfo: bool,
    pub(super) cookies: Vec<ModelSetCookie>,
}

impl ModelRedirect {
    pub(super) fn location(&self, from: ModelOrigin) -> (String, ModelOrigin) {
        if self.stays {
            return ("/q".to_owned(), from);
        }
        let userinfo = if self.userinfo { "mallory:evil@" } else { "" };
        (self.peer.url(userinfo, self.spelling), self.peer)
    }
}

/// The model: it determines which receiver may read which secret after the redirects so far.
pub(super) struct SecretsModel<'w> {
    world: &'w ModelUserOptions,
    first: ModelOrigin,
    from: ModelOrigin,
    peer: ModelOrigin,
    /// True if a server has put its own userinfo into a URL. Requests to the first origin may then
    /// contain that userinfo instead of the one that the user gave.
    foreign_user: bool,
    cookies: Vec<(String, Vec<usize>, bool)>,
}

impl<'w> SecretsModel<'w> {
    pub(super) fn new(world: &'w ModelUserOptions, first: ModelOrigin) -> SecretsModel<'w> {
        SecretsModel { world, first, from: first, peer: first, foreign_user: false, cookies: Vec::new() }
    }

    pub(super) fn peer(&self) -> ModelOrigin {
        self.peer
    }

    pub(super) fn moved(&mut self, to: ModelOrigin, userinfo: bool) {
        (self.from, self.peer) = (self.peer, to);
        self.foreign_user |= userinfo;
    }

    /// Records a cookie that the peer sets. Returns `true` if the client must accept it.
    pub(super) fn on_cookie(&mut self, cookie: &ModelSetCookie, number: usize) -> bool {
        let audience = cookie.audience(self.peer);
        let taken = audience.is_some();
        self.cookies.extend(audience.map(|hosts| (format!("=cookie-{number}."), hosts, cookie.secure)));
        taken
    }

    /// Returns all secrets, each with a flag: true if the current origin must receive the secret,
    /// false if it must not, and `None` if both are correct.
    fn of_origin(&self) -> Vec<(String, Option<bool>)> {
        let ModelUserOptions { user, url_user, bearer, netrc, .. } = *self.world;
        let is_first = self.peer == self.first;
        let overheard = !is_first && !self.peer.tls && (self.from.tls || self.first.tls);
        let mut secrets = vec![
            ("cli-pw".to_owned(), Some(user && is_first)),
            ("t0ken".to_owned(), Some(bearer && is_first)),
            ("api-key".to_owned(), Some(is_first)),
            // Left behind with the first hop to elsewhere.
            ("url-pw".to_owned(), if url_user && !user && is_first { None } else { Some(false) }),
        ];
        for (host, password) in [(0, "neta-pw"), (2, "netb-pw")] {
            let may = netrc && !user && self.peer.host == host && !overheard;
            let need_not = is_first && (url_user || self.foreign_user);
            secrets.push((password.to_owned(), if may && need_not { None } else { Some(may) }));
        }
        for (text, hosts, secure) in &self.cookies {
            let may = hosts.contains(&self.peer.host) && (!secure || self.peer.is_private());
            secrets.push((text.clone(), Some(may)));
        }
        secrets
    }

    /// Checks that the text sent to a receiver contains exactly the secrets that it may receive.
    pub(super) fn check(&self, receiver: SecretReceiver, text: &str) -> Result<(), TestCaseError> {
        let proxy = self.world.proxy(self.peer);
        let sees_request = match receiver {
            SecretReceiver::Origin => true,
            SecretReceiver::Proxy(which) => {
                prop_assert_eq!(proxy.map(|(proxy, _)| proxy), Some(which), "the wrong proxy is asked");
                proxy.is_some_and(|(_, forwards)| forwards)
            }
        };
        for (secret, may) in self.of_origin() {
            let seen = text.contains(&secret);
            match may.filter(|_| sees_request) {
                Some(true) => prop_assert!(seen, "{receiver:?} of {:?} goes without {secret}: {text}", self.peer),
                Some(false) => prop_assert!(!seen, "{receiver:?} of {:?} got {secret}: {text}", self.peer),
                None if sees_request => {}
                None => prop_assert!(!seen, "{receiver:?} of {:?} got {secret}: {text}", self.peer),
            }
        }
        for which in 0..2 {
            let own = receiver == SecretReceiver::Proxy(which);
            let scheme = PROXY_SCHEMES.get(self.world.proxies[which]).copied().unwrap_or_default();
            // SOCKS 4 has no password, only the user.
            prop_assert_eq!(
                text.contains(&format!("proxy{which}-pw")),
                own && !scheme.starts_with("socks4"),
                "{}",
                text
            );
            prop_assert!(own || !text.contains(&format!("proxy{which}")), "{receiver:?} got {which}'s user: {text}");
        }
        Ok(())
    }
}
