//! Digest authentication (RFC 7616), and RFC 2069 for servers that offer no quality of protection.

use core::fmt;

use super::challenge::parse_parameters;
use super::digest_algorithm::hex;
use super::{AuthError, Challenge, Credentials, DigestAlgorithm};
use crate::target::Target;
use crate::target::path::push_byte;

/// The quality of protection: the parts of a request that the digest covers (RFC 7616 §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Qop {
    /// The challenge has no `qop`: the digest is computed as in RFC 2069.
    Legacy,
    /// `auth`: the digest covers the request's method and target.
    Auth,
    /// `auth-int`: the digest covers the request's body too.
    AuthInt,
}

/// A Digest challenge that [`DigestSession`] can answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestChallenge {
    realm: Vec<u8>,
    nonce: Vec<u8>,
    opaque: Option<Vec<u8>>,
    algorithm: DigestAlgorithm,
    /// True if the challenge has the parameter `algorithm`. The answer has this parameter only if
    /// the challenge has it: old servers reject parameters that are not in their challenge.
    names_algorithm: bool,
    session: bool,
    qop: Qop,
    stale: bool,
    userhash: bool,
    utf8: bool,
    domain: Vec<String>,
}

impl DigestChallenge {
    /// Reads a challenge. `auth` is preferred to `auth-int`, as in curl: `auth-int` needs the whole
    /// body before its first byte is sent.
    pub fn new(challenge: &Challenge) -> Result<DigestChallenge, AuthError> {
        let text = |name: &str| challenge.get(name).map(<[u8]>::to_vec);
        let is = |name: &str, word: &str| challenge.get(name).is_some_and(|v| v.eq_ignore_ascii_case(word.as_bytes()));
        let (algorithm, session) = match challenge.get("algorithm") {
            Some(name) => DigestAlgorithm::parse(name).ok_or(AuthError::DigestAlgorithm)?,
            None => (DigestAlgorithm::Md5, false),
        };
        let (Some(realm), Some(nonce)) = (text("realm"), text("nonce")) else { return Err(AuthError::DigestChallenge) };
        // A value that cannot be sent back makes the challenge unanswerable.
        let bad = |value: &Vec<u8>| value.iter().any(|b| *b < b' ' || *b == 0x7f);
        let opaque = text("opaque");
        if bad(&realm) || bad(&nonce) || opaque.as_ref().is_some_and(bad) {
            return Err(AuthError::DigestChallenge);
        }
        let domain = challenge.get("domain").unwrap_or_default();
        Ok(DigestChallenge {
            qop: best_qop(challenge.get("qop"))?,
            realm,
            nonce,
            opaque,
            algorithm,
            names_algorithm: challenge.get("algorithm").is_some(),
            session,
            stale: is("stale", "true"),
            userhash: is("userhash", "true"),
            utf8: is("charset", "utf-8"),
            domain: String::from_utf8_lossy(domain).split_ascii_whitespace().map(str::to_owned).collect(),
        })
    }

    /// Returns `true` if the server accepted the credentials but the nonce had expired (RFC 7616
    /// §3.3). Answer this challenge with the same credentials, without asking the user.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// Returns true if the other challenge has the same nonce.
    pub fn has_same_nonce(&self, other: &DigestChallenge) -> bool {
        self.nonce == other.nonce
    }

    /// Returns true if `authorization`, the value of an Authorization field, contains the nonce of
    /// this challenge.
    pub fn is_answered_by(&self, authorization: &[u8]) -> bool {
        let parameters = authorization.strip_prefix(b"Digest ").map(parse_parameters).unwrap_or_default();
        parameters.iter().any(|(name, value)| name == "nonce" && *value == self.nonce)
    }

    /// Returns the realm, which a prompt for the password should show.
    pub fn realm(&self) -> &[u8] {
        &self.realm
    }

    /// Returns the hash function that the challenge requires.
    pub fn algorithm(&self) -> DigestAlgorithm {
        self.algorithm
    }

    /// Returns the quality of protection that the answer uses.
    pub fn qop(&self) -> Qop {
        self.qop
    }

    /// Returns `true` if credentials may be sent to `target` before `target` sends a challenge (RFC
    /// 7616 §3.3, `domain`). `asked` is the target that sent this challenge. Both must have the
    /// same origin. If the challenge has `domain`, `target` must lie below one of the URIs in it.
    /// URIs on other origins are ignored: a server must not choose who else receives a proof of the
    /// password.
    pub fn is_in_protection_space(&self, asked: &Target, target: &Target) -> bool {
        if asked.origin() != target.origin() {
            return false;
        }
        let below = |base: &Target| base.origin() == target.origin() && target.path().starts_with(base.path());
        let mut domains = self.domain.iter().filter_map(|reference| asked.join(reference).ok()).peekable();
        domains.peek().is_none() || domains.any(|base| below(&base))
    }
}

fn best_qop(offered: Option<&[u8]>) -> Result<Qop, AuthError> {
    let Some(offered) = offered else { return Ok(Qop::Legacy) };
    let words = || offered.split(|b| matches!(b, b',' | b' ' | b'\t')).filter(|word| !word.is_empty());
    let has = |name: &str| words().any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    if has("auth") {
        Ok(Qop::Auth)
    } else if has("auth-int") {
        Ok(Qop::AuthInt)
    } else if words().next().is_none() {
        Ok(Qop::Legacy)
    } else {
        Err(AuthError::DigestChallenge)
    }
}

/// The state for answers to one challenge. Keep one `DigestSession` for the lifetime of the
/// server's nonce, because the session counts the requests made with the nonce. `Debug` shows no
/// secret.
#[derive(Clone)]
pub struct DigestSession {
    challenge: DigestChallenge,
    count: u32,
    /// The session key of a `-sess` algorithm, and the client nonce from which it was made (RFC
    /// 7616 §3.4.2). `None` before the first answer.
    session: Option<(String, String)>,
}

impl DigestSession {
    /// Creates the state for answering `challenge`. The first answer has the nonce count 1.
    pub fn new(challenge: DigestChallenge) -> DigestSession {
        DigestSession { challenge, count: 0, session: None }
    }

    /// Returns the challenge that this session answers.
    pub fn challenge(&self) -> &DigestChallenge {
        &self.challenge
    }

    /// Returns the value of Authorization or Proxy-Authorization for one request. `uri` is the
    /// request target exactly as it is sent (for CONNECT `host:port`). `body_hash` is the hex
    /// digest of the body by [`DigestAlgorithm::hasher`], which [`Qop::AuthInt`] needs; `None`
    /// means an empty body. `cnonce` must be fresh for each request: see [`cnonce`].
    pub fn authorize(
        &mut self,
        credentials: &Credentials,
        method: &str,
        uri: &str,
        body_hash: Option<&str>,
        cnonce: &str,
    ) -> Result<Vec<u8>, AuthError> {
        if uri.bytes().chain(cnonce.bytes()).any(|b| !b.is_ascii_graphic()) {
            return Err(AuthError::ControlByte);
        }
        self.count = self.count.saturating_add(1);
        let count = format!("{:08x}", self.count);
        let (a1, cnonce) = self.user_hash_and_cnonce(credentials, cnonce);
        let challenge = &self.challenge;
        let algorithm = challenge.algorithm;
        let (a2, qop) = match challenge.qop {
            Qop::Legacy => (algorithm.hash_joined(&[method.as_bytes(), uri.as_bytes()]), None),
            Qop::Auth => (algorithm.hash_joined(&[method.as_bytes(), uri.as_bytes()]), Some("auth")),
            Qop::AuthInt => {
                let empty = algorithm.hash_joined(&[b""]);
                let body = body_hash.unwrap_or(&empty);
                (algorithm.hash_joined(&[method.as_bytes(), uri.as_bytes(), body.as_bytes()]), Some("auth-int"))
            }
        };
        let nonce = &challenge.nonce[..];
        let response = match qop {
            None => algorithm.hash_joined(&[a1.as_bytes(), nonce, a2.as_bytes()]),
            Some(qop) => {
                let parts = [a1.as_bytes(), nonce, count.as_bytes(), cnonce.as_bytes(), qop.as_bytes(), a2.as_bytes()];
                algorithm.hash_joined(&parts)
            }
        };
        let mut value = AuthorizationWriter(b"Digest ".to_vec());
        value.push_user_name(credentials.user(), challenge);
        value.push_quoted("realm", &challenge.realm);
        value.push_quoted("nonce", &challenge.nonce);
        value.push_quoted("uri", uri.as_bytes());
        // The order is curl's: some servers accept no other.
        if qop.is_some() || challenge.session {
            value.push_quoted("cnonce", cnonce.as_bytes());
        }
        if let Some(qop) = qop {
            value.push_unquoted("nc", &count);
            value.push_unquoted("qop", qop);
        }
        value.push_quoted("response", response.as_bytes());
        if let Some(opaque) = &challenge.opaque {
            value.push_quoted("opaque", opaque);
        }
        if challenge.names_algorithm {
            let suffix = if challenge.session { "-sess" } else { "" };
            value.push_unquoted("algorithm", &format!("{}{suffix}", algorithm.as_str()));
        }
        if challenge.userhash {
            value.push_unquoted("userhash", "true");
        }
        Ok(value.0)
    }

    /// Returns the hash H of `user:realm:password`, and the client nonce to send. With a `-sess`
    /// algorithm, the session key replaces H: the hash of `H:nonce:cnonce` (RFC 7616 §3.4.2). Later
    /// calls then return the same key and client nonce, and ignore `cnonce`.
    fn user_hash_and_cnonce(&mut self, credentials: &Credentials, cnonce: &str) -> (String, String) {
        let challenge = &self.challenge;
        let algorithm = challenge.algorithm;
        let key = || algorithm.hash_joined(&[credentials.user(), &challenge.realm, credentials.password()]);
        if !challenge.session {
            return (key(), cnonce.to_owned());
        }
        // One client nonce for the life of the key: then servers that compute the key each time
        // agree with those that keep it.
        let session = self.session.get_or_insert_with(|| {
            let key = algorithm.hash_joined(&[key().as_bytes(), &challenge.nonce, cnonce.as_bytes()]);
            (key, cnonce.to_owned())
        });
        session.clone()
    }

    /// Processes an Authentication-Info or Proxy-Authentication-Info field (RFC 7616 §3.5): a
    /// `nextnonce` replaces the nonce and restarts the count.
    pub fn on_authentication_info(&mut self, field: &[u8]) {
        let next = parse_parameters(field).into_iter().find(|(name, _)| name == "nextnonce").map(|(_, value)| value);
        if let Some(nonce) = next.filter(|nonce| !nonce.is_empty() && nonce.iter().all(|b| (b' '..0x7f).contains(b))) {
            self.challenge.nonce = nonce;
            self.count = 0;
        }
    }

    /// Returns `true` if the client should answer `new`, the challenge with which the server
    /// rejected an answer of this session. The challenge must say that the session's nonce was
    /// stale, and contain another nonce; otherwise, the password is wrong. Always returns `true` if
    /// no answer with the session's nonce was sent. The caller must limit the number of
    /// repetitions.
    pub fn may_answer_again(&self, new: &DigestChallenge) -> bool {
        self.count == 0 || new.stale && new.nonce != self.challenge.nonce
    }

    /// Returns `true` if `challenge` is equal to the challenge of this session, regardless of
    /// `stale`. The caller then keeps the session, so that its nonce count continues (RFC 7616
    /// §3.4).
    pub fn has_same_challenge(&self, challenge: &DigestChallenge) -> bool {
        self.challenge == DigestChallenge { stale: self.challenge.stale, ..challenge.clone() }
    }
}

impl fmt::Debug for DigestSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DigestSession")
            .field("challenge", &self.challenge)
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

/// Returns a client nonce made from 128 random bits.
pub fn cnonce(entropy: [u8; 16]) -> String {
    hex(&entropy)
}

/// The value of an Authorization field that is being written.
struct AuthorizationWriter(Vec<u8>);

impl AuthorizationWriter {
    fn push_name(&mut self, name: &str) {
        if !self.0.ends_with(b" ") {
            self.0.extend_from_slice(b", ");
        }
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(b'=');
    }

    fn push_unquoted(&mut self, name: &str, value: &str) {
        self.push_name(name);
        self.0.extend_from_slice(value.as_bytes());
    }

    fn push_quoted(&mut self, name: &str, value: &[u8]) {
        self.push_name(name);
        self.0.push(b'"');
        for b in value {
            if matches!(b, b'"' | b'\\') {
                self.0.push(b'\\');
            }
            self.0.push(*b);
        }
        self.0.push(b'"');
    }

    /// Writes the user name (RFC 7616 §3.4): its hash if the server asks for that, `username*` if a
    /// quoted string cannot contain the name, and `username` otherwise.
    fn push_user_name(&mut self, user: &[u8], challenge: &DigestChallenge) {
        if challenge.userhash {
            let hash = challenge.algorithm.hash_joined(&[user, &challenge.realm]);
            return self.push_quoted("username", hash.as_bytes());
        }
        let is_plain = user.iter().all(|b| (b' '..0x7f).contains(b));
        if is_plain || !challenge.utf8 || core::str::from_utf8(user).is_err() {
            return self.push_quoted("username", user);
        }
        let mut encoded = String::from("UTF-8''");
        for b in user {
            // attr-char, RFC 8187 §3.2.1.
            if b.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(b) {
                encoded.push(char::from(*b));
            } else {
                push_byte(&mut encoded, *b);
            }
        }
        self.push_unquoted("username*", &encoded);
    }
}
