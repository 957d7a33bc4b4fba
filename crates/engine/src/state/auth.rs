//! The credentials of requests, and a cache of the answers to authentication challenges.
//!
//! If only Basic or only a token is allowed, the credentials are sent with the first request. In
//! all other cases, the first request is sent without credentials, and the server's challenge is
//! answered. Further requests to the same protection space contain an answer without another
//! challenge. All transfers with the same [`AuthOptions`] share the Digest nonce and its count,
//! until the server sends another nonce.
//!
//! ```
//! use haul::RequestOptions;
//! use haul::state::auth::{AuthOptions, AllowedAuthSchemes, Credentials};
//!
//! let auth = AuthOptions { allowed: AllowedAuthSchemes::ANY, ..AuthOptions::user(Credentials::new("me", "secret")?) };
//! assert!(!format!("{auth:?}").contains("secret"));
//! let options = RequestOptions { auth, ..RequestOptions::default() };
//! # drop(options);
//! # Ok::<(), haul_policy::auth::AuthError>(())
//! ```
//!
//! The cache is part of the [`AuthOptions`], not of the client, since the answers depend on the
//! credentials.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

pub use super::negotiate::{Delegation, NegotiateError, NegotiateOptions, SecurityContext, SecurityLibrary};
pub(crate) use super::negotiate::{Negotiation, missing_token_error};
pub use haul_policy::auth::{AllowedAuthSchemes, Credentials, MessageSigner, SigV4Parameters};
use haul_policy::auth::{
    AuthError, ChosenAuthScheme, CredentialsError, DigestHasher, DigestSession, GivenCredentials, Qop,
    RequestCredentials, cnonce, credentials_for_target,
};
use haul_policy::auth::{DigestAlgorithm, DigestChallenge};
use haul_policy::redirect::SecretHandling;
use haul_policy::target::{Origin, Target};

use crate::fork::{ForkSafeLock, ForkSafeWriteGuard};

/// The maximum number of protection spaces in an [`AuthCache`]. A further one replaces the oldest.
pub const MAX_PROTECTION_SPACES: usize = 256;
/// The maximum number of earlier nonces in an [`AuthCache`] whose counts are kept. Transfers in
/// parallel may each receive a nonce of their own.
const MAX_OLDER_NONCES: usize = 256;

/// The credentials and authentication settings of requests. `Debug` shows no secret. Clones share
/// the cache of answered challenges.
#[derive(Clone)]
pub struct AuthOptions {
    /// The user and password (`-u`), for the origin of the caller's URL. If they are set, the netrc
    /// file is not used. Default: none.
    pub user: Option<Credentials>,
    /// A bearer token (`--oauth2-bearer`), which is sent only to the origin of the caller's URL.
    /// Default: none.
    pub bearer: Option<Arc<[u8]>>,
    /// The authentication schemes that may be used. Default: Basic. If only one scheme is allowed,
    /// the first request already uses it. Digest is an exception, because it needs a challenge.
    pub allowed: AllowedAuthSchemes,
    /// The settings for AWS signature version 4 (`--aws-sigv4`), with which requests are signed;
    /// the user's password is the key. No other scheme is then used. Requests without credentials
    /// are not signed. Default: requests are not signed.
    pub signature: Option<Arc<SigV4Parameters>>,
    /// The settings for signing requests with HTTP message signatures (RFC 9421, `--httpsig-key`
    /// and related options). Requests to origins that must not receive the caller's secrets are not
    /// signed. Default: none.
    pub message_signature: Option<Arc<MessageSigner>>,
    /// The settings for Negotiate, which is used if [`AuthOptions::allowed`] contains it. No user
    /// name is needed: the Kerberos ticket of the process authenticates requests to the origin of
    /// the caller's URL.
    pub negotiate: NegotiateOptions,
    /// The text of a netrc file, and its precedence over the URL's credentials. Default: none.
    pub netrc: NetrcFileUse,
    /// The cache of answered challenges. [`AuthOptions::default`] contains a new, empty cache.
    pub memory: AuthCache,
}

/// The text of a netrc file, and its precedence. `Debug` does not show the text.
#[derive(Clone, Default)]
pub enum NetrcFileUse {
    /// No netrc file is used.
    #[default]
    Off,
    /// The netrc file with this text is used, but the credentials in the URL take precedence over
    /// it (`--netrc-optional`).
    Optional(Arc<[u8]>),
    /// The netrc file with this text is used. Its credentials take precedence over credentials in
    /// the URL (`--netrc`).
    Required(Arc<[u8]>),
}

/// A cache of answers to authentication challenges, which later requests send without a new
/// challenge. Clones share its contents.
#[derive(Clone, Default)]
pub struct AuthCache {
    spaces: Arc<ForkSafeLock<Vec<ProtectionSpace>>>,
    basic_scope: BasicScope,
}

/// The paths of an origin to which requests contain Basic credentials at once, without a challenge
/// (a response with status 401), after an earlier request to the origin was challenged.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum BasicScope {
    /// The paths at or below the directory of the path that was challenged (RFC 7617 section 2.2).
    #[default]
    Directory,
    /// All paths of the origin.
    Origin,
}

/// A protection space (RFC 9110 section 11.5), with a user's answer to a challenge. The answer is
/// valid for this part of a server.
struct ProtectionSpace {
    origin: Origin,
    credentials: Credentials,
    /// The target of the request to which the server responded with the challenge.
    challenged_target: Target,
    answer: CachedAuthAnswer,
    /// The sessions of earlier Digest nonces of this space. Other transfers may still answer their
    /// challenges, and the nonce counts continue (RFC 7616 section 3.4).
    older: VecDeque<DigestSession>,
}

/// A cached answer to a challenge, by its authentication scheme. The credentials of later requests
/// are made from it.
enum CachedAuthAnswer {
    Basic,
    Digest(DigestSession),
}

/// The scheme of the credentials in a request's Authorization field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentAuthScheme {
    /// The request has no Authorization field, or one that the caller has set.
    Nothing,
    Basic,
    Bearer,
    Digest,
    Negotiate,
}

/// The properties of a request on which its Authorization value depends.
pub(crate) struct AuthorizationInputs<'a> {
    pub(crate) target: &'a Target,
    pub(crate) method: &'a str,
    /// The content of the request; `None` if it is not in memory. Only Digest with `auth-int` needs
    /// it.
    pub(crate) content: Option<&'a [u8]>,
    /// The Digest challenge that the transfer itself has received; `None` before the first one.
    pub(crate) challenge: Option<&'a DigestChallenge>,
}

impl AuthOptions {
    /// Makes settings with this user and password. They are sent with the Basic scheme.
    #[must_use]
    pub fn user(user: Credentials) -> Self {
        Self { user: Some(user), ..Self::default() }
    }

    /// Makes settings with this bearer token (RFC 6750) as the only credentials.
    #[must_use]
    pub fn bearer(token: impl Into<Arc<[u8]>>) -> Self {
        let allowed = AllowedAuthSchemes { bearer: true, ..AllowedAuthSchemes::NONE };
        Self { bearer: Some(token.into()), allowed, ..Self::default() }
    }

    /// Returns a copy without the credentials that are meant only for the origin of the caller's
    /// URL.
    pub(crate) fn without_origin_credentials(&self) -> Self {
        let allowed = AllowedAuthSchemes { negotiate: false, ..self.allowed };
        Self { user: None, bearer: None, message_signature: None, allowed, ..self.clone() }
    }

    /// Returns the credentials for the authentication of a request to `target`. They come from the
    /// options, the netrc file and `user`, the user in the URL. `secrets` says whether the target
    /// may receive the caller's secrets. `downgraded` is true if a redirect has led from https to
    /// http.
    pub(crate) fn credentials_for(
        &self,
        user: Option<&Credentials>,
        target: &Target,
        secrets: SecretHandling,
        downgraded: bool,
    ) -> Result<RequestCredentials, CredentialsError> {
        let netrc = match &self.netrc {
            NetrcFileUse::Off => haul_policy::auth::NetrcMode::Off,
            NetrcFileUse::Optional(text) => haul_policy::auth::NetrcMode::Optional(text),
            NetrcFileUse::Required(text) => haul_policy::auth::NetrcMode::Required(text),
        };
        let given = GivenCredentials { user, bearer: self.bearer.as_deref(), negotiate: self.allowed.negotiate, netrc };
        credentials_for_target(&given, target, secrets, downgraded)
    }

    /// Returns the settings for Negotiate if a request may send a Negotiate token, and `None`
    /// otherwise. A request may send a token in two cases: Negotiate is the only allowed scheme, or
    /// the server has chosen it among the allowed schemes. The request's connection then carries
    /// only requests with equal settings, i.e. of the same user.
    pub(crate) fn negotiate_on_connection(&self) -> Option<&NegotiateOptions> {
        let is_used = self.allowed.negotiate && self.negotiate.is_chosen;
        (is_used || self.allowed == AllowedAuthSchemes::NEGOTIATE).then_some(&self.negotiate)
    }

    /// Returns the allowed authentication schemes for which `identity` contains the necessary
    /// credentials.
    pub(crate) fn allowed_for(&self, identity: &RequestCredentials) -> AllowedAuthSchemes {
        let known = identity.credentials.is_some();
        if self.signature.is_some() {
            return AllowedAuthSchemes::NONE;
        }
        AllowedAuthSchemes {
            basic: self.allowed.basic && known,
            digest: self.allowed.digest && known,
            bearer: self.allowed.bearer && identity.bearer.is_some(),
            negotiate: self.allowed.negotiate && identity.negotiate,
        }
    }

    /// Returns the Authorization value for a request that is sent before any challenge. Returns
    /// `None` if the credentials can be sent only after a challenge.
    pub(crate) fn preemptive_authorization(
        &self,
        identity: &RequestCredentials,
        ask: &AuthorizationInputs<'_>,
    ) -> Result<Option<(Vec<u8>, SentAuthScheme)>, AuthError> {
        if self.signature.is_some() {
            // A signature covers the whole request, which is not complete yet.
            return Ok(None);
        }
        let AllowedAuthSchemes { basic, digest, bearer, negotiate } = self.allowed_for(identity);
        // If other schemes than the token are allowed, too, the server chooses, even without a
        // password.
        let only_bearer = !self.allowed.basic && !self.allowed.digest && !negotiate;
        match (basic, digest, bearer, &identity.credentials, &identity.bearer) {
            (_, _, true, _, Some(token)) if only_bearer => {
                Ok(Some((haul_policy::auth::bearer_authorization(token)?, SentAuthScheme::Bearer)))
            }
            (true, false, false, Some(credentials), _) if !negotiate => {
                Ok(Some((credentials.basic_authorization(), SentAuthScheme::Basic)))
            }
            (_, _, _, Some(credentials), _) => self.memory.answer(credentials, ask),
            _ => Ok(None),
        }
    }
}

impl AuthCache {
    /// Makes a cache in which a Basic answer applies to the whole origin. This is how libcurl
    /// treats the credentials of a handle.
    #[must_use]
    pub fn with_basic_for_origins() -> Self {
        Self { basic_scope: BasicScope::Origin, ..Self::default() }
    }

    /// Returns the Authorization value for a request, from the cached answer for its protection
    /// space. Returns `None` if the cache has no such answer.
    fn answer(
        &self,
        credentials: &Credentials,
        ask: &AuthorizationInputs<'_>,
    ) -> Result<Option<(Vec<u8>, SentAuthScheme)>, AuthError> {
        let origin = ask.target.origin();
        let mut spaces = self.lock();
        // A challenge of the transfer itself names its space. Several spaces may include the
        // target.
        let is_own = |space: &ProtectionSpace| {
            ask.challenge.is_some_and(|own| space.belongs_to(&origin, credentials) && space.has_challenge(own))
        };
        let includes =
            |space: &ProtectionSpace| space.includes_target(&origin, credentials, ask.target, self.basic_scope);
        let Some(at) = spaces.iter().rposition(is_own).or_else(|| spaces.iter().rposition(includes)) else {
            return Ok(None);
        };
        let ProtectionSpace { answer, older, .. } = &mut spaces[at];
        match answer {
            CachedAuthAnswer::Basic => Ok(Some((credentials.basic_authorization(), SentAuthScheme::Basic))),
            CachedAuthAnswer::Digest(latest) => {
                // A transfer answers its own challenge, even if another transfer has received a
                // later one.
                let is_own =
                    |digest: &&mut DigestSession| ask.challenge.is_some_and(|own| digest.has_same_challenge(own));
                let digest = match older.iter_mut().find(is_own) {
                    Some(own) => own,
                    None => latest,
                };
                let (qop, algorithm) = (digest.challenge().qop(), digest.challenge().algorithm());
                let hash = match (qop, ask.content) {
                    (Qop::AuthInt, Some(content)) => Some(hash(algorithm, content)),
                    (Qop::AuthInt, None) => return Ok(None),
                    _ => None,
                };
                let mut entropy = [0; 16];
                aws_lc_rs::rand::fill(&mut entropy).map_err(|_| AuthError::DigestChallenge)?;
                let uri = ask.target.path_and_query();
                let value = digest.authorize(credentials, ask.method, uri, hash.as_deref(), &cnonce(entropy))?;
                Ok(Some((value, SentAuthScheme::Digest)))
            }
        }
    }

    /// Stores `choice`, the answer to a challenge in the response to a request for `target`.
    /// Further requests to the same protection space then need no challenge.
    pub(crate) fn store_choice(&self, credentials: &Credentials, target: &Target, choice: &ChosenAuthScheme) {
        let origin = target.origin();
        let mut spaces = self.lock();
        let (realm, answer) = match choice {
            ChosenAuthScheme::Digest(challenge) => {
                (Some(challenge.realm()), CachedAuthAnswer::Digest(DigestSession::new(challenge.clone())))
            }
            _ => (None, CachedAuthAnswer::Basic),
        };
        let mut older = VecDeque::new();
        let is_same = |space: &ProtectionSpace| space.belongs_to(&origin, credentials) && space.realm() == realm;
        if let Some(at) = spaces.iter().position(is_same) {
            // Later entries are searched first, and this challenge is the server's latest.
            let mut known = spaces.remove(at);
            if let ChosenAuthScheme::Digest(challenge) = choice
                && known.continue_session(challenge)
            {
                spaces.push(known);
                return;
            }
            older = known.into_older_sessions();
        }
        if spaces.len() >= MAX_PROTECTION_SPACES {
            spaces.remove(0);
        }
        spaces.push(ProtectionSpace {
            origin,
            credentials: credentials.clone(),
            challenged_target: target.clone(),
            answer,
            older,
        });
        drop_oldest_nonces(&mut spaces);
    }

    /// Handles the Authentication-Info field (RFC 7615) of a response, which may contain the next
    /// nonce.
    pub(crate) fn on_authentication_info(&self, credentials: &Credentials, target: &Target, field: &[u8]) {
        let origin = target.origin();
        let mut spaces = self.lock();
        if let Some(ProtectionSpace { answer: CachedAuthAnswer::Digest(digest), .. }) =
            spaces.iter_mut().rev().find(|space| space.includes_target(&origin, credentials, target, self.basic_scope))
        {
            digest.on_authentication_info(field);
        }
    }

    fn lock(&self) -> ForkSafeWriteGuard<'_, Vec<ProtectionSpace>> {
        self.spaces.write()
    }
}

impl ProtectionSpace {
    /// Makes the session of this challenge the latest one, with its nonce count, and returns true.
    /// Returns false if the challenge was not answered before.
    fn continue_session(&mut self, challenge: &DigestChallenge) -> bool {
        let CachedAuthAnswer::Digest(latest) = &mut self.answer else { return false };
        if latest.has_same_challenge(challenge) {
            return true;
        }
        let Some(at) = self.older.iter().position(|older| older.has_same_challenge(challenge)) else { return false };
        let Some(mut session) = self.older.remove(at) else { return false };
        std::mem::swap(latest, &mut session);
        self.older.push_back(session);
        true
    }

    /// Returns true if the latest or an earlier session of this space answers the challenge.
    fn has_challenge(&self, challenge: &DigestChallenge) -> bool {
        let is_latest =
            matches!(&self.answer, CachedAuthAnswer::Digest(latest) if latest.has_same_challenge(challenge));
        is_latest || self.older.iter().any(|older| older.has_same_challenge(challenge))
    }

    /// Returns all Digest sessions of this space, for a space with a newer nonce.
    fn into_older_sessions(mut self) -> VecDeque<DigestSession> {
        if let CachedAuthAnswer::Digest(latest) = self.answer {
            self.older.push_back(latest);
        }
        self.older
    }

    fn belongs_to(&self, origin: &Origin, credentials: &Credentials) -> bool {
        self.origin == *origin && self.credentials == *credentials
    }

    fn realm(&self) -> Option<&[u8]> {
        match &self.answer {
            CachedAuthAnswer::Basic => None,
            CachedAuthAnswer::Digest(digest) => Some(digest.challenge().realm()),
        }
    }

    /// Returns true if a request to `target` belongs to this protection space, so that the stored
    /// answer can be sent without a challenge. `origin` is the origin of `target`.
    fn includes_target(&self, origin: &Origin, credentials: &Credentials, target: &Target, basic: BasicScope) -> bool {
        self.belongs_to(origin, credentials)
            && match &self.answer {
                // The path that was challenged belongs to it, whatever URIs `domain` lists.
                CachedAuthAnswer::Digest(digest) => {
                    self.challenged_target.path() == target.path()
                        || digest.challenge().is_in_protection_space(&self.challenged_target, target)
                }
                CachedAuthAnswer::Basic => {
                    let path = self.challenged_target.path();
                    basic == BasicScope::Origin || target.path().starts_with(&path[..=path.rfind('/').unwrap_or(0)])
                }
            }
    }
}

/// Drops earlier nonces if all spaces together have more than [`MAX_OLDER_NONCES`]. Drops those of
/// the oldest spaces first, and among them the oldest.
fn drop_oldest_nonces(spaces: &mut [ProtectionSpace]) {
    let total: usize = spaces.iter().map(|space| space.older.len()).sum();
    let mut surplus = total.saturating_sub(MAX_OLDER_NONCES);
    for space in spaces {
        let dropped = surplus.min(space.older.len());
        space.older.drain(..dropped);
        surplus -= dropped;
    }
}

fn hash(algorithm: DigestAlgorithm, content: &[u8]) -> String {
    let mut hasher: DigestHasher = algorithm.hasher();
    hasher.update(content);
    hasher.finish()
}

impl Default for AuthOptions {
    fn default() -> Self {
        Self {
            user: None,
            bearer: None,
            allowed: AllowedAuthSchemes::BASIC,
            signature: None,
            message_signature: None,
            negotiate: NegotiateOptions::default(),
            netrc: NetrcFileUse::Off,
            memory: AuthCache::default(),
        }
    }
}

impl fmt::Debug for AuthOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthOptions")
            .field("user", &self.user.is_some())
            .field("bearer", &self.bearer.is_some())
            .field("allowed", &self.allowed)
            .field("signature", &self.signature)
            .field("message_signature", &self.message_signature)
            .field("negotiate", &self.negotiate)
            .field("netrc", &self.netrc)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for NetrcFileUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "Off",
            Self::Optional(_) => "Optional(..)",
            Self::Required(_) => "Required(..)",
        })
    }
}

impl fmt::Debug for AuthCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthCache").field("spaces", &self.lock().len()).finish()
    }
}

#[cfg(test)]
mod tests;
