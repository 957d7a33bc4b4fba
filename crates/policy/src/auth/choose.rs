//! Which challenge is answered.

use super::{AuthError, AuthScheme, Challenge, DigestChallenge};

/// Which schemes the user allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// `--basic`; the password goes out in the clear.
    pub basic: bool,
    /// `--digest`.
    pub digest: bool,
    /// `--oauth2-bearer`, if there is a token.
    pub bearer: bool,
}

impl Allowed {
    /// `--anyauth` with a user and password.
    pub const ANY: Allowed = Allowed { basic: true, digest: true, bearer: false };
    /// `--basic`.
    pub const BASIC: Allowed = Allowed { basic: true, digest: false, bearer: false };
    /// `--digest`.
    pub const DIGEST: Allowed = Allowed { basic: false, digest: true, bearer: false };
}

/// The challenge to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// With the token.
    Bearer,
    /// With [`Digest::new`](super::Digest::new).
    Digest(DigestChallenge),
    /// With [`Credentials::basic`](super::Credentials::basic).
    Basic,
    /// None: the reply is delivered.
    Nothing,
}

/// The strongest allowed scheme among those offered, in curl's order: Bearer, Digest, Basic. Among several Digest challenges, the first that can be
/// answered (RFC 7616 §3.7: the server puts its preference first).
///
/// An error if none of those offered can be answered: NTLM or Negotiate alone, or a Digest that is unknown or broken and no Basic.
pub fn choose(challenges: &[Challenge], allowed: Allowed) -> Result<Choice, AuthError> {
    let offered = |scheme: AuthScheme| challenges.iter().any(|challenge| challenge.scheme == scheme);
    if allowed.bearer && offered(AuthScheme::Bearer) {
        return Ok(Choice::Bearer);
    }
    let mut trouble = None;
    if allowed.digest {
        for challenge in challenges.iter().filter(|challenge| challenge.scheme == AuthScheme::Digest) {
            match DigestChallenge::new(challenge) {
                Ok(challenge) => return Ok(Choice::Digest(challenge)),
                Err(error) => trouble = trouble.or(Some(error)),
            }
        }
    }
    if allowed.basic && offered(AuthScheme::Basic) {
        return Ok(Choice::Basic);
    }
    if let Some(error) = trouble {
        return Err(error);
    }
    if challenges.is_empty() || !challenges.iter().all(|challenge| challenge.scheme.is_of_connection()) {
        return Ok(Choice::Nothing);
    }
    let mut names: Vec<String> = challenges.iter().map(|challenge| challenge.scheme.to_string()).collect();
    names.sort();
    names.dedup();
    Err(AuthError::Unsupported(names))
}
