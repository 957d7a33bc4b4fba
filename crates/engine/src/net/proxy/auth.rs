//! Authentication to an HTTP proxy (RFC 9110 §11.7). Basic credentials are sent with the first
//! request, Digest credentials (RFC 7616) after a challenge.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};

use haul_policy::auth::{AllowedAuthSchemes, ChosenAuthScheme, DigestSession, choose_scheme, cnonce, parse_challenges};
use haul_policy::proxy::Proxy;
use haul_proto::response_head::ResponseHead;

use crate::ignore_poison::IgnorePoison;
use crate::{Error, ErrorKind, Result};

/// The HTTP authentication scheme that is used with a proxy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ProxyAuthScheme {
    /// Basic authentication. The credentials are sent with the first request.
    #[default]
    Basic,
    /// Digest authentication. The credentials are sent after a challenge.
    Digest,
    /// The stronger one of Digest and Basic that the proxy offers. The credentials are sent after a
    /// challenge.
    Any,
    /// Negotiate authentication. The first request already contains the token, which comes from a
    /// Kerberos ticket and not from the proxy credentials.
    Negotiate,
    /// The strongest of Negotiate, Digest and Basic that the proxy offers. The credentials are sent
    /// after a challenge. Without a Kerberos ticket, Negotiate is not used.
    AnyOrNegotiate,
}

impl ProxyAuthScheme {
    /// Returns true if Negotiate may be used with the proxy.
    #[must_use]
    pub fn may_negotiate(self) -> bool {
        matches!(self, Self::Negotiate | Self::AnyOrNegotiate)
    }

    fn allowed_schemes(self) -> AllowedAuthSchemes {
        match self {
            Self::Basic => AllowedAuthSchemes::BASIC,
            Self::Digest => AllowedAuthSchemes::DIGEST,
            Self::Any | Self::AnyOrNegotiate => AllowedAuthSchemes::ANY,
            Self::Negotiate => AllowedAuthSchemes::NEGOTIATE,
        }
    }
}

/// The maximum number of proxies in the cache. If there are more, the cache is emptied. Each proxy
/// then needs one more challenge.
const MAX_PROXIES: usize = 64;

/// A cache of the authentication schemes that proxies require, by proxy and credentials. Clones
/// share the cache. All caches compare equal, so that the cache does not affect the comparison of
/// connection keys.
#[derive(Clone, Default)]
pub struct ProxyAuthCache(Arc<Mutex<HashMap<Proxy, CachedProxyAuth>>>);

/// The authentication that a proxy requires, according to its challenges so far.
enum CachedProxyAuth {
    Basic,
    Digest(Box<DigestSession>),
}

impl ProxyAuthCache {
    /// Returns the value of Proxy-Authorization for a request. Returns `None` if the scheme that
    /// the proxy requires is not known yet.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] if the value cannot be made.
    pub(in crate::net) fn authorization(
        &self,
        proxy: &Proxy,
        auth: ProxyAuthScheme,
        method: &str,
        uri: &str,
    ) -> Result<Option<Vec<u8>>> {
        let Some(credentials) = proxy.credentials() else { return Ok(None) };
        if auth == ProxyAuthScheme::Basic {
            return Ok(Some(credentials.basic_authorization()));
        }
        if auth == ProxyAuthScheme::Negotiate {
            return Ok(None);
        }
        match self.lock().get_mut(proxy) {
            None => Ok(None),
            Some(CachedProxyAuth::Basic) => Ok(Some(credentials.basic_authorization())),
            Some(CachedProxyAuth::Digest(digest)) => {
                let mut entropy = [0; 16];
                aws_lc_rs::rand::fill(&mut entropy)
                    .map_err(|error| Error::with_source(ErrorKind::Setup, "the system has no entropy", error))?;
                digest
                    .authorize(credentials, method, uri, None, &cnonce(entropy))
                    .map(Some)
                    .map_err(|error| Error::with_source(ErrorKind::Setup, "the proxy cannot be answered", error))
            }
        }
    }

    /// Handles a 407 response of a proxy. `answered` is true if the request contained
    /// Proxy-Authorization. Returns true if the request should be repeated with a new value of that
    /// field.
    ///
    /// # Errors
    /// [`ErrorKind::Receive`] if the proxy requires credentials and there are none.
    pub(in crate::net) fn on_challenge(
        &self,
        proxy: &Proxy,
        auth: ProxyAuthScheme,
        head: &ResponseHead,
        answered: bool,
    ) -> Result<bool> {
        if proxy.credentials().is_none() || matches!(auth, ProxyAuthScheme::Basic | ProxyAuthScheme::Negotiate) {
            return Ok(false);
        }
        let challenges = parse_challenges(head.get_all("proxy-authenticate"));
        let choice = choose_scheme(&challenges, auth.allowed_schemes())
            .map_err(|error| Error::with_source(ErrorKind::Receive, "the proxy cannot be answered", error))?;
        let mut known = self.lock();
        let answer = match choice {
            ChosenAuthScheme::Digest(new) => match known.get(proxy) {
                // Another connection may already have answered this challenge, or one with the new
                // nonce: its nonce count continues.
                Some(CachedProxyAuth::Digest(old)) if old.has_same_challenge(&new) => {
                    return Ok(!answered || new.is_stale());
                }
                // Another connection's newer nonce may have replaced the one that was answered.
                // `stale` means that the password was right.
                Some(CachedProxyAuth::Digest(old)) if answered && !old.may_answer_again(&new) => return Ok(false),
                _ => CachedProxyAuth::Digest(Box::new(DigestSession::new(new))),
            },
            ChosenAuthScheme::Basic if !answered => CachedProxyAuth::Basic,
            _ => return Ok(false),
        };
        if known.len() >= MAX_PROXIES && !known.contains_key(proxy) {
            known.clear();
        }
        known.insert(proxy.clone(), answer);
        Ok(true)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Proxy, CachedProxyAuth>> {
        self.0.lock().ignore_poison()
    }
}

impl PartialEq for ProxyAuthCache {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for ProxyAuthCache {}

impl Hash for ProxyAuthCache {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

impl std::fmt::Debug for ProxyAuthCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyAuthCache").field("proxies", &self.lock().len()).finish_non_exhaustive()
    }
}
