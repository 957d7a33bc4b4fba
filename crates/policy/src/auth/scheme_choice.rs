//! Selects the challenge to answer.

use super::{AuthError, AuthScheme, Challenge, DigestChallenge};

/// The authentication schemes that the user allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowedAuthSchemes {
    /// True to allow Basic (`--basic`), which sends the password unprotected.
    pub basic: bool,
    /// True to allow Digest (`--digest`).
    pub digest: bool,
    /// True to allow Bearer, because `--oauth2-bearer` gave a token.
    pub bearer: bool,
    /// True to allow Negotiate (`--negotiate`), which sends a proof of the user's Kerberos ticket.
    pub negotiate: bool,
}

impl AllowedAuthSchemes {
    /// The value that allows no authentication scheme.
    pub const NONE: AllowedAuthSchemes =
        AllowedAuthSchemes { basic: false, digest: false, bearer: false, negotiate: false };
    /// The schemes that `--anyauth` allows for authentication by user name and password: Basic and
    /// Digest.
    pub const ANY: AllowedAuthSchemes = AllowedAuthSchemes { basic: true, digest: true, ..Self::NONE };
    /// The scheme that `--basic` allows for authentication by user name and password: Basic.
    pub const BASIC: AllowedAuthSchemes = AllowedAuthSchemes { basic: true, ..Self::NONE };
    /// The scheme that `--digest` allows for authentication by user name and password: Digest.
    pub const DIGEST: AllowedAuthSchemes = AllowedAuthSchemes { digest: true, ..Self::NONE };
    /// The scheme that `--negotiate` allows: Negotiate, with a Kerberos ticket.
    pub const NEGOTIATE: AllowedAuthSchemes = AllowedAuthSchemes { negotiate: true, ..Self::NONE };
}

/// The authentication scheme with which to answer, and the data for the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChosenAuthScheme {
    /// Answer with Negotiate: pass this token of the challenge to the security context (GSS-API),
    /// and send the token that it returns. The token is base64; it is empty in the first challenge.
    Negotiate(Vec<u8>),
    /// Answer with Bearer: send the token.
    Bearer,
    /// Answer with a [`DigestSession`](super::DigestSession) for this challenge.
    Digest(DigestChallenge),
    /// Answer with Basic: send
    /// [`Credentials::basic_authorization`](super::Credentials::basic_authorization).
    Basic,
    /// Do not answer: the response has no challenge that can be answered. The caller delivers the
    /// response.
    Nothing,
}

/// Selects the strongest allowed scheme among the challenges, in curl's order: Negotiate, Bearer,
/// Digest, Basic. Of several Digest challenges, the first supported one is chosen, since the server
/// lists them by preference (RFC 7616 §3.7).
///
/// # Errors
/// Fails if no challenge can be answered:
///
/// * Only NTLM is offered.
/// * Only Negotiate is offered, and it is not allowed.
/// * Digest has an unknown algorithm or is malformed, and Basic is not offered.
pub fn choose_scheme(challenges: &[Challenge], allowed: AllowedAuthSchemes) -> Result<ChosenAuthScheme, AuthError> {
    let offered = |scheme: AuthScheme| challenges.iter().any(|challenge| challenge.scheme == scheme);
    if allowed.negotiate
        && let Some(challenge) = challenges.iter().find(|challenge| challenge.scheme == AuthScheme::Negotiate)
    {
        return Ok(ChosenAuthScheme::Negotiate(challenge.token68.clone().unwrap_or_default()));
    }
    if allowed.bearer && offered(AuthScheme::Bearer) {
        return Ok(ChosenAuthScheme::Bearer);
    }
    let mut trouble = None;
    if allowed.digest {
        for challenge in challenges.iter().filter(|challenge| challenge.scheme == AuthScheme::Digest) {
            match DigestChallenge::new(challenge) {
                Ok(challenge) => return Ok(ChosenAuthScheme::Digest(challenge)),
                Err(error) => trouble = trouble.or(Some(error)),
            }
        }
    }
    if allowed.basic && offered(AuthScheme::Basic) {
        return Ok(ChosenAuthScheme::Basic);
    }
    if let Some(error) = trouble {
        return Err(error);
    }
    if challenges.is_empty() || !challenges.iter().all(|challenge| challenge.scheme.authenticates_connection()) {
        return Ok(ChosenAuthScheme::Nothing);
    }
    let mut names: Vec<String> = challenges.iter().map(|challenge| challenge.scheme.to_string()).collect();
    names.sort();
    names.dedup();
    Err(AuthError::Unsupported(names))
}
