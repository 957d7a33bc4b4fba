//! Authentication of a transfer's requests: credentials, signatures, and answers to challenges.

use std::borrow::Cow;

use aws_lc_rs::signature::Ed25519KeyPair;

use haul_policy::auth::{
    AllowedAuthSchemes, ChosenAuthScheme, Credentials, CredentialsError, DigestChallenge, MessageSignatureError, Qop,
    RequestCredentials, SigV4Fields, SigV4Parameters, SignatureAlgorithm, UnsignedRequest, choose_scheme,
    parse_challenges,
};
use haul_policy::redirect::SecretHandling;
use haul_policy::target::Target;
use haul_proto::response_head::ResponseHead;

use super::Transfer;
use super::negotiate::TransferNegotiateState;
use super::request_fields::{CallerFields, FieldLine, is_hop_by_hop, is_host};
use super::resettable_state::BodyDisposition;
use crate::state::auth::{AuthorizationInputs, NetrcFileUse, SentAuthScheme};
use crate::time_conversions;
use crate::{Error, ErrorKind, Result};

/// The maximum number of challenges that are answered for one target. A further challenge is
/// treated as the final response. Without a limit, a server could reject each nonce as stale.
const MAX_ANSWERS: u8 = 3;
/// The maximum number of challenges which say that the nonce was stale, for all targets of a
/// transfer together, as in curl. With many transfers in parallel, a nonce for few requests is
/// often stale.
const MAX_STALE_ANSWERS: u8 = 50;

/// The state of a transfer's authentication to the servers of its targets.
#[derive(Debug)]
pub(super) struct AuthState {
    /// The caller's target, if its URL contains a user name or password; otherwise `None`. User
    /// names in the URLs of redirects are ignored, because the caller did not provide them.
    first: Option<Box<Target>>,
    /// The credentials for the current target. `None` before they are looked up for the first
    /// request to that target.
    identity: Option<RequestCredentials>,
    pub(super) sent: SentAuthScheme,
    /// The number of challenges to which the transfer has sent credentials for the current target.
    answers: u8,
    /// The number of such challenges to all targets of the transfer which said that the nonce was
    /// stale.
    stale_answers: u8,
    /// The last Digest challenge that the transfer has received from the current target.
    challenge: Option<Box<DigestChallenge>>,
    /// True if the last request answered `challenge`. It is false if the request answered a nonce
    /// that another transfer has received.
    has_answered_challenge: bool,
    /// True if the current request is sent without its content, because its only purpose is to
    /// receive a challenge.
    pub(super) is_probe: bool,
    /// True if a request without its content was sent to receive a challenge, and the server sent
    /// none. The next request then has the content.
    is_unchallenged: bool,
    /// True if haul has chosen Basic to answer a challenge of any server of this transfer.
    has_chosen_basic: bool,
    /// The state of Negotiate authentication with the server and the proxy; `None` until one of
    /// them requests Negotiate.
    pub(super) negotiations: Option<Box<TransferNegotiateState>>,
}

impl AuthState {
    const NONE: Self = Self {
        first: None,
        identity: None,
        sent: SentAuthScheme::Nothing,
        answers: 0,
        stale_answers: 0,
        challenge: None,
        has_answered_challenge: false,
        is_probe: false,
        is_unchallenged: false,
        has_chosen_basic: false,
        negotiations: None,
    };

    /// Makes the authentication state of a transfer that begins with the caller's target `target`.
    pub(super) fn new(target: &Target) -> Self {
        Self { first: target.userinfo_bytes().is_some().then(|| Box::new(target.clone())), ..Self::NONE }
    }

    /// Makes the authentication state for the target of a redirect. All fields are reset, except
    /// three: the caller's target (whose URL may contain credentials), whether haul has chosen
    /// Basic to answer any server of this transfer, and the number of stale nonces.
    pub(super) fn for_redirect(&self) -> Self {
        Self { stale_answers: self.stale_answers, ..self.for_retry() }
    }

    /// Makes the authentication state for another attempt. Unlike
    /// [`for_redirect`](Self::for_redirect), also resets the number of stale nonces.
    pub(super) fn for_retry(&self) -> Self {
        Self { first: self.first.clone(), has_chosen_basic: self.has_chosen_basic, ..Self::NONE }
    }

    /// Returns the user name of the current credentials, for messages; empty if there is none.
    pub(super) fn identity_user(&self) -> String {
        let credentials = self.identity.as_ref().and_then(|identity| identity.credentials.as_ref());
        credentials.map(|credentials| String::from_utf8_lossy(credentials.user()).into_owned()).unwrap_or_default()
    }
}

impl Transfer {
    /// Returns the value of the next request's Authorization field. Returns `None` if the caller
    /// sets that field (`has_own` is true), or if no credentials can be sent yet.
    pub(super) fn authorize(&mut self, has_own: bool) -> Result<Option<Vec<u8>>> {
        (self.auth.sent, self.auth.is_probe) = (SentAuthScheme::Nothing, false);
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
        if identity.credentials.is_none() && identity.bearer.is_none() && !identity.negotiate {
            // Most requests have no credentials.
            self.auth.identity = Some(identity);
            return Ok(None);
        }
        let allowed = self.allowed_schemes(&identity);
        if allowed.negotiate {
            self.auth.identity = Some(identity.clone());
            if let Some(value) = self.negotiate_authorization(allowed)? {
                self.auth.sent = SentAuthScheme::Negotiate;
                return Ok(Some(value));
            }
        }
        let content = match self.content() {
            Some(body) => body.bytes(),
            None => Some(&b""[..]),
        };
        let challenge = self.auth.challenge.as_deref();
        let ask =
            AuthorizationInputs { target: &self.current.target, method: &self.current.method, content, challenge };
        let auth = &self.options.auth;
        let answer = auth.preemptive_authorization(&identity, &ask).map_err(credentials_error)?;
        // Bearer credentials are not cached.
        let token = identity.bearer.as_deref().filter(|_| self.auth.answers > 0 && allowed.bearer && answer.is_none());
        let answer = match token {
            Some(token) => Some((
                haul_policy::auth::bearer_authorization(token).map_err(credentials_error)?,
                SentAuthScheme::Bearer,
            )),
            None => answer,
        };
        let answer = match (answer, &identity.credentials) {
            (None, Some(credentials)) if allowed.basic && self.repeats_basic_after_redirect() => {
                Some((credentials.basic_authorization(), SentAuthScheme::Basic))
            }
            (answer, _) => answer,
        };
        // A ticket alone does not delay content: nothing says that the server wants any credentials.
        let has_login = identity.credentials.is_some() || identity.bearer.is_some();
        let may_answer = allowed != AllowedAuthSchemes::NONE && has_login;
        self.auth.identity = Some(identity);
        if answer.is_none() && may_answer {
            self.withhold_content();
        }
        let (value, sent) = answer.unzip();
        self.auth.sent = sent.unwrap_or(SentAuthScheme::Nothing);
        self.auth.has_answered_challenge =
            self.auth.challenge.as_ref().zip(value.as_ref()).is_some_and(|(own, value)| own.is_answered_by(value));
        Ok(value)
    }

    /// Returns true if Basic credentials are sent to the target of a redirect without a challenge.
    /// Three conditions must hold: `curl_compat.redirect_logins` is set, an earlier server of the
    /// transfer has requested Basic, and the target may receive the caller's secrets.
    fn repeats_basic_after_redirect(&self) -> bool {
        self.options.curl_compat.redirect_logins
            && self.auth.has_chosen_basic
            && self.current.secrets == SecretHandling::Keep
    }

    /// Returns the signature parameters and the credentials for the next request. Returns `None` if
    /// the request is not signed, or if there are no credentials for it.
    fn signing_parameters(&self, callers: &CallerFields<'_>) -> Option<(&SigV4Parameters, &Credentials)> {
        let scheme = self.options.auth.signature.as_deref()?;
        let credentials = self.auth.identity.as_ref()?.credentials.as_ref()?;
        callers.engine_sets("Authorization").then_some((scheme, credentials))
    }

    /// Returns the target to sign and send instead of the current target, if the request signature
    /// needs another spelling of the path. Returns `None` if the current target can be used, or if
    /// the request is not signed.
    pub(super) fn signed_target(&self, callers: &CallerFields<'_>) -> Option<Target> {
        self.signing_parameters(callers)?.0.signed_target(&self.current.target)
    }

    /// Returns the signature of the next request; `None` if the request is not signed. `given` are
    /// the caller's fields in the request. The signature covers only the fields that proxies do not
    /// change.
    pub(super) fn signature(
        &self,
        callers: &CallerFields<'_>,
        given: &[FieldLine<'_>],
        target: &Target,
    ) -> Result<Option<SigV4Fields>> {
        let Some((scheme, credentials)) = self.signing_parameters(callers) else { return Ok(None) };
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
            unix: time_conversions::unix_now(),
        };
        scheme.sign(credentials, &request).map(Some).map_err(credentials_error)
    }

    /// Returns the fields that contain the message signature (RFC 9421) of the next request.
    /// `given` are the caller's fields in the request. Returns no fields in three cases:
    /// * The options request no message signature.
    /// * The caller's secrets must not be sent to the target.
    /// * The caller sets these fields.
    pub(super) fn message_signature(
        &self,
        callers: &CallerFields<'_>,
        given: &[FieldLine<'_>],
        target: &Target,
    ) -> Result<Vec<(String, String)>> {
        let is_ours = || callers.engine_sets("Signature") && callers.engine_sets("Signature-Input");
        let signature = match self.options.auth.message_signature.as_deref() {
            Some(signature) if self.current.secrets == SecretHandling::Keep && is_ours() => signature,
            _ => return Ok(Vec::new()),
        };
        let authority = target.authority();
        let own_host = given.iter().find(|(name, _)| is_host(name)).map(|&(_, value)| value);
        let request = UnsignedRequest {
            method: &self.current.method,
            target,
            host: own_host.unwrap_or(authority.as_bytes()),
            fields: given,
            content: None,
            unix: time_conversions::unix_now(),
        };
        let unsigned =
            |error: MessageSignatureError| Error::with_source(ErrorKind::Setup, "the request cannot be signed", error);
        let base = signature.signature_base(&request).map_err(unsigned)?;
        let signed = match signature.algorithm() {
            SignatureAlgorithm::HmacSha256 => signature.hmac(&base),
            SignatureAlgorithm::Ed25519 => {
                let key = Ed25519KeyPair::from_seed_unchecked(signature.key())
                    .map_err(|error| Error::with_source(ErrorKind::Setup, "the request cannot be signed", error))?;
                key.sign(base.text()).as_ref().to_vec()
            }
        };
        Ok(base.signature_fields(&signed).into())
    }

    /// Makes the next request omit its content, so that the content is sent only after the server's
    /// challenge. Applies to content that can be sent only once. If
    /// `curl_compat.withholds_content_before_challenge` is set, applies to all content.
    pub(super) fn withhold_content(&mut self) {
        let waits = self.has_one_shot_content()
            || self.options.curl_compat.withholds_content_before_challenge && self.has_content();
        self.auth.is_probe |= waits && !self.auth.is_unchallenged;
    }

    /// Returns the credentials for the current target, from the options, the URL or the netrc file.
    fn identity_for_target(&self) -> Result<RequestCredentials> {
        let auth = &self.options.auth;
        let first = self.auth.first.as_deref().filter(|_| self.current.secrets == SecretHandling::Keep);
        // User and password in a URL apply to its origin, even if secrets may be sent to others.
        // Those in a redirect to that origin do not replace them.
        let names_login = self.options.curl_compat.redirect_logins
            && self.current.is_redirected()
            && self.current.target.userinfo_bytes().is_some();
        let target = match (first.filter(|_| self.current.same_origin && !names_login), &auth.netrc) {
            (Some(first), _) => Cow::Borrowed(first),
            // Nor do they replace those of the netrc file.
            (None, NetrcFileUse::Required(_)) => {
                let mut target = self.current.target.clone();
                target.drop_userinfo();
                Cow::Owned(target)
            }
            (None, _) => Cow::Borrowed(&self.current.target),
        };
        auth.credentials_for(auth.user.as_ref(), &target, self.current.secrets, self.current.is_downgraded).map_err(
            |error| match error {
                CredentialsError::Netrc(error) => {
                    Error::with_source(ErrorKind::Read, "the netrc file is malformed", error)
                }
                CredentialsError::Auth(error) => credentials_error(error),
                error => Error::with_source(ErrorKind::Setup, "there are no credentials", error),
            },
        )
    }

    /// Handles a response with status 401. Returns the decision to send another request if its
    /// challenge can be answered, and `None` if the response is final.
    pub(super) fn on_challenge(&mut self, head: &ResponseHead) -> Option<BodyDisposition> {
        let identity = self.auth.identity.as_ref()?;
        let (auth, login) = (&self.options.auth, &self.auth);
        if head.status() != 401 {
            if let (Some(credentials), SentAuthScheme::Digest) = (&identity.credentials, login.sent) {
                for field in head.get_all("authentication-info") {
                    auth.memory.on_authentication_info(credentials, &self.current.target, field);
                }
            }
            // The server requires no authentication, so the request is repeated with its content.
            if login.is_probe && head.status() < 300 {
                self.auth.is_unchallenged = true;
                return Some(BodyDisposition::Again);
            }
            return None;
        }
        let allowed = self.allowed_schemes(identity);
        if allowed == AllowedAuthSchemes::NONE {
            return None;
        }
        let choice = match self.choose_scheme(head, allowed)? {
            Ok(choice) => choice,
            Err(_) if self.options.curl_compat.accepts_unreliable_responses => return None,
            Err(error) => return Some(BodyDisposition::Fail(credentials_error(error))),
        };
        let identity = self.auth.identity.as_ref()?;
        let (auth, login) = (&self.options.auth, &self.auth);
        // The nonce that was just answered cannot replace itself (RFC 7616 section 3.3).
        let is_answered = |new: &DigestChallenge| {
            login.has_answered_challenge && login.challenge.as_ref().is_some_and(|own| own.has_same_nonce(new))
        };
        let is_stale = matches!(&choice, ChosenAuthScheme::Digest(new) if new.is_stale() && !is_answered(new));
        let is_last = if is_stale { login.stale_answers >= MAX_STALE_ANSWERS } else { login.answers >= MAX_ANSWERS };
        if is_last {
            return None;
        }
        let is_new = match (&choice, &identity.credentials) {
            (ChosenAuthScheme::Nothing, _) => false,
            (ChosenAuthScheme::Negotiate(_), _) => true,
            (ChosenAuthScheme::Bearer, _) => login.sent != SentAuthScheme::Bearer,
            (ChosenAuthScheme::Basic, _) => login.sent != SentAuthScheme::Basic,
            // An answer with a nonce that another transfer has received says nothing about the
            // password, because that nonce may be old.
            (ChosenAuthScheme::Digest(_), Some(_)) => {
                login.sent != SentAuthScheme::Digest || !login.has_answered_challenge || is_stale
            }
            (ChosenAuthScheme::Digest(_), None) => false,
        };
        if !is_new {
            return None;
        }
        let is_unseen = self.content().is_some_and(|body| body.bytes().is_none());
        if is_unseen && matches!(&choice, ChosenAuthScheme::Digest(new) if new.qop() == Qop::AuthInt) {
            let message = "the server wants a digest of the content, which is not in memory";
            return Some(BodyDisposition::Fail(Error::new(ErrorKind::Auth, message)));
        }
        if let (Some(credentials), ChosenAuthScheme::Digest(_) | ChosenAuthScheme::Basic) =
            (&identity.credentials, &choice)
        {
            auth.memory.store_choice(credentials, &self.current.target, &choice);
        }
        let has_chosen_basic = matches!(choice, ChosenAuthScheme::Basic);
        if let Some(error) = self.resend_error() {
            return Some(BodyDisposition::Fail(error));
        }
        self.auth.answers = self.auth.answers.saturating_add(1);
        self.auth.stale_answers += u8::from(is_stale);
        self.auth.challenge = match choice {
            ChosenAuthScheme::Digest(challenge) => Some(Box::new(challenge)),
            _ => None,
        };
        self.auth.has_chosen_basic |= has_chosen_basic;
        Some(BodyDisposition::Again)
    }
}

impl Transfer {
    /// Selects the challenge of a 401 response to answer. If Negotiate has failed, selects one of
    /// the other schemes. Returns `None` if no usable scheme is left.
    fn choose_scheme(
        &mut self,
        head: &ResponseHead,
        allowed: AllowedAuthSchemes,
    ) -> Option<std::result::Result<ChosenAuthScheme, haul_policy::auth::AuthError>> {
        let challenges = parse_challenges(head.get_all("www-authenticate"));
        match choose_scheme(&challenges, allowed) {
            Ok(ChosenAuthScheme::Negotiate(token)) if !self.answers_negotiate(&token) => {
                let others = AllowedAuthSchemes { negotiate: false, ..allowed };
                (others != AllowedAuthSchemes::NONE).then(|| choose_scheme(&challenges, others))
            }
            choice => Some(choice),
        }
    }
}

/// Returns the error to report for credentials that cannot be used.
fn credentials_error(error: haul_policy::auth::AuthError) -> Error {
    Error::with_source(ErrorKind::Auth, "cannot authenticate", error)
}
