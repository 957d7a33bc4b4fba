//! Authentication of a transfer's requests: credentials, signatures, and answers to challenges.

use std::borrow::Cow;

use haul_policy::auth::{
    ChosenScheme, Credentials, CredentialsError, Qop, RequestCredentials, SigV4, SigV4Signature, UnsignedRequest,
    choose, parse_challenges,
};
use haul_policy::redirect::SecretHandling;
use haul_policy::target::Target;
use haul_proto::head::ResponseHead;

use super::Transfer;
use super::request_fields::{CallerFields, FieldLine, is_hop_by_hop, is_host};
use super::state::Disposition;
use crate::clock;
use crate::state::auth::{AuthRequest, NetrcText, SentScheme};
use crate::{Error, ErrorKind, Result};

/// The number of answered challenges after which a response is final. Without a limit, a server
/// could call each nonce stale.
const MAX_ANSWERS: u8 = 3;

/// The state of a transfer's authentication.
#[derive(Debug)]
pub(super) struct AuthState {
    /// The first target, if its URL names a user. User information in a redirect does not come from
    /// the caller.
    first: Option<Box<Target>>,
    /// The identity to use at the present target; `None` until it is looked up.
    identity: Option<RequestCredentials>,
    sent: SentScheme,
    /// The number of answered challenges of this target.
    answers: u8,
    /// The current request has no content because its only purpose is to provoke a challenge.
    pub(super) is_probe: bool,
    /// The server sent no challenge although one was expected.
    is_unchallenged: bool,
}

impl AuthState {
    const NONE: Self = Self {
        first: None,
        identity: None,
        sent: SentScheme::Nothing,
        answers: 0,
        is_probe: false,
        is_unchallenged: false,
    };

    /// The state for the caller's target.
    pub(super) fn new(target: &Target) -> Self {
        Self { first: target.userinfo_bytes().is_some().then(|| Box::new(target.clone())), ..Self::NONE }
    }

    /// The state for another target: keeps nothing of the present target's.
    pub(super) fn for_redirect(&self) -> Self {
        Self { first: self.first.clone(), ..Self::NONE }
    }
}

impl Transfer {
    /// Returns the value of the next request's Authorization field, unless the caller sets one.
    pub(super) fn authorize(&mut self, has_own: bool) -> Result<Option<Vec<u8>>> {
        (self.auth.sent, self.auth.is_probe) = (SentScheme::Nothing, false);
        if has_own {
            self.auth.identity = Some(RequestCredentials::default());
            return Ok(None);
        }
        if let (Some(literal), SecretHandling::Keep) = (&self.options.authorization, self.current.secrets) {
            self.auth.identity = Some(RequestCredentials::default());
            return Ok(Some(literal.clone()));
        }
        let identity = match self.auth.identity.take() {
            Some(identity) => identity,
            None => self.identity_for_target()?,
        };
        let content = match self.content() {
            Some(body) => body.bytes(),
            None => Some(&b""[..]),
        };
        let ask = AuthRequest { target: &self.current.target, method: &self.current.method, content };
        let auth = &self.options.auth;
        let answer = auth.preemptive_authorization(&identity, &ask).map_err(refused)?;
        let allowed = auth.allowed_for(&identity);
        // Bearer credentials are not remembered.
        let token = identity.bearer.as_deref().filter(|_| self.auth.answers > 0 && allowed.bearer && answer.is_none());
        let answer = match token {
            Some(token) => Some((haul_policy::auth::bearer(token).map_err(refused)?, SentScheme::Bearer)),
            None => answer,
        };
        let may_answer = allowed.basic || allowed.digest || allowed.bearer;
        self.auth.identity = Some(identity);
        if answer.is_none() && may_answer {
            self.withhold_content();
        }
        let (value, sent) = answer.unzip();
        self.auth.sent = sent.unwrap_or(SentScheme::Nothing);
        Ok(value)
    }

    /// Returns the signature scheme and the credentials for the next request, if signing is
    /// requested and credentials exist.
    fn signing(&self, callers: &CallerFields<'_>) -> Option<(&SigV4, &Credentials)> {
        let scheme = self.options.auth.signature.as_deref()?;
        let credentials = self.auth.identity.as_ref()?.credentials.as_ref()?;
        callers.engine_sets("Authorization").then_some((scheme, credentials))
    }

    /// Returns the target in the spelling that is signed, if it differs from the caller's.
    pub(super) fn signed_target(&self, callers: &CallerFields<'_>) -> Option<Target> {
        self.signing(callers)?.0.signed_target(&self.current.target)
    }

    /// Signs the next request. `given` are the caller's fields in the request; those that proxies
    /// leave unchanged are signed, too.
    pub(super) fn signature(
        &self,
        callers: &CallerFields<'_>,
        given: &[FieldLine<'_>],
        target: &Target,
    ) -> Result<Option<SigV4Signature>> {
        let Some((scheme, credentials)) = self.signing(callers) else { return Ok(None) };
        let authority = target.authority();
        let own_host = given.iter().find(|(name, _)| is_host(name)).map(|&(_, value)| value);
        let fields: Vec<_> = given.iter().copied().filter(|(name, _)| !is_host(name) && !is_hop_by_hop(name)).collect();
        let request = UnsignedRequest {
            method: &self.current.method,
            target,
            host: own_host.unwrap_or(authority.as_bytes()),
            fields: &fields,
            content: match self.content() {
                Some(body) if body.length() != Some(0) => body.bytes(),
                _ => Some(&b""[..]),
            },
            unix: clock::unix_now(),
        };
        scheme.sign(credentials, &request).map(Some).map_err(refused)
    }

    /// Withholds content from the next request if it must not be sent before the credentials are
    /// known.
    pub(super) fn withhold_content(&mut self) {
        let waits = self.has_single_use_content() || self.options.curl_compat.probes && self.has_content();
        self.auth.is_probe |= waits && !self.auth.is_unchallenged;
    }

    /// Returns the identity for the current target.
    fn identity_for_target(&self) -> Result<RequestCredentials> {
        let auth = &self.options.auth;
        let first = self.auth.first.as_deref().filter(|_| self.current.secrets == SecretHandling::Keep);
        // User and password of a URL belong to its origin, even if the user trusts others. Those of
        // a redirect to that origin do not replace them.
        let target = match (first.filter(|_| self.current.same_origin), &auth.netrc) {
            (Some(first), _) => Cow::Borrowed(first),
            // They do not replace those of the netrc file, either.
            (None, NetrcText::Required(_)) => {
                let mut target = self.current.target.clone();
                target.drop_userinfo();
                Cow::Owned(target)
            }
            (None, _) => Cow::Borrowed(&self.current.target),
        };
        auth.identity(auth.user.as_ref(), &target, self.current.secrets, self.current.is_downgraded).map_err(|error| {
            match error {
                CredentialsError::Netrc(error) => {
                    Error::with_source(ErrorKind::Read, "the netrc file is malformed", error)
                }
                CredentialsError::Auth(error) => refused(error),
                error => Error::with_source(ErrorKind::Setup, "there are no credentials", error),
            }
        })
    }

    /// Returns the disposition of a response that contains a challenge. `None`: the response is
    /// final.
    pub(super) fn on_challenge(&mut self, head: &ResponseHead) -> Option<Disposition> {
        let identity = self.auth.identity.as_ref()?;
        let (auth, login) = (&self.options.auth, &self.auth);
        if head.status() != 401 {
            if let (Some(credentials), SentScheme::Digest) = (&identity.credentials, login.sent) {
                for field in head.get_all("authentication-info") {
                    auth.memory.on_info(credentials, &self.current.target, field);
                }
            }
            // The server asked for no authentication: the content is sent without it.
            if login.is_probe && head.status() < 300 {
                self.auth.is_unchallenged = true;
                return Some(Disposition::Again);
            }
            return None;
        }
        let allowed = auth.allowed_for(identity);
        if login.answers >= MAX_ANSWERS || !(allowed.basic || allowed.digest || allowed.bearer) {
            return None;
        }
        let choice = match choose(&parse_challenges(head.get_all("www-authenticate")), allowed) {
            Ok(choice) => choice,
            Err(_) if self.options.curl_compat.trusts_end => return None,
            Err(error) => return Some(Disposition::Fail(refused(error))),
        };
        let is_new = match (&choice, &identity.credentials) {
            (ChosenScheme::Nothing, _) => false,
            (ChosenScheme::Bearer, _) => login.sent != SentScheme::Bearer,
            (ChosenScheme::Basic, _) => login.sent != SentScheme::Basic,
            // An answer sent in advance may belong to an old challenge. The password is not wrong
            // yet.
            (ChosenScheme::Digest(new), Some(credentials)) => {
                login.sent != SentScheme::Digest
                    || login.answers == 0
                    || auth.memory.may_answer_again(credentials, &self.current.target, new)
            }
            (ChosenScheme::Digest(_), None) => false,
        };
        if !is_new {
            return None;
        }
        let is_unseen = self.content().is_some_and(|body| body.bytes().is_none());
        if is_unseen && matches!(&choice, ChosenScheme::Digest(new) if new.qop() == Qop::AuthInt) {
            let message = "the server wants a digest of the content, which is not in memory";
            return Some(Disposition::Fail(Error::new(ErrorKind::Auth, message)));
        }
        if let (Some(credentials), ChosenScheme::Digest(_) | ChosenScheme::Basic) = (&identity.credentials, &choice) {
            auth.memory.learn(credentials, &self.current.target, &choice);
        }
        if let Some(error) = self.resend_error() {
            return Some(Disposition::Fail(error));
        }
        self.auth.answers += 1;
        Some(Disposition::Again)
    }
}

/// Returns the error for credentials that cannot be used.
fn refused(error: haul_policy::auth::AuthError) -> Error {
    Error::with_source(ErrorKind::Auth, "cannot authenticate", error)
}
