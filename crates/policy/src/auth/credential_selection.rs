//! Selects the credentials of a request: the user's, the URL's or netrc's.
//!
//! ```
//! use haul_policy::Target;
//! use haul_policy::auth::{Credentials, GivenCredentials, NetrcMode, credentials_for_target};
//! use haul_policy::redirect::SecretHandling;
//!
//! let file = b"machine a.example login ann password secret";
//! let given = GivenCredentials { netrc: NetrcMode::Optional(file), ..GivenCredentials::default() };
//! let a = credentials_for_target(&given, &Target::parse("https://a.example/")?, SecretHandling::Keep, false)?;
//! assert_eq!(a.credentials, Some(Credentials::new("ann", "secret")?));
//! let b = credentials_for_target(&given, &Target::parse("https://b.example/")?, SecretHandling::Drop, false)?;
//! assert_eq!(b.credentials, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::fmt;

use super::{AuthError, Credentials};
use crate::netrc::{self, NetrcError};
use crate::redirect::SecretHandling;
use crate::target::Target;

/// The credentials that the user gave. `Debug` shows no secret.
#[derive(Clone, Copy, Default)]
pub struct GivenCredentials<'g> {
    /// The user and password of `-u`, sent only to the first URL's origin; `None` without `-u`.
    /// They replace credentials from netrc, as in curl.
    pub user: Option<&'g Credentials>,
    /// The token of `--oauth2-bearer`, sent only to the first URL's origin; `None` without that
    /// option.
    pub bearer: Option<&'g [u8]>,
    /// True if requests to the first URL's origin may use the user's Kerberos ticket
    /// (`--negotiate`).
    pub negotiate: bool,
    /// The netrc mode (`-n`, `--netrc-optional`) and the text of the netrc file.
    pub netrc: NetrcMode<'g>,
}

/// The netrc mode. `Optional` and `Required` contain the text of the netrc file.
#[derive(Clone, Copy, Default)]
pub enum NetrcMode<'g> {
    /// netrc is not used.
    #[default]
    Off,
    /// `--netrc-optional`: credentials in the URL take precedence over the netrc file. If the URL
    /// has a user without a password, the file supplies the password.
    Optional(&'g [u8]),
    /// `--netrc`: the netrc file takes precedence over a password in the URL. If the URL has a
    /// user, only a netrc entry for that user counts.
    Required(&'g [u8]),
}

/// The credentials that a request may use: to answer a challenge, or to send without a challenge.
/// `Debug` shows no secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RequestCredentials {
    /// The user name and password for Basic and Digest; `None` without credentials that may be sent
    /// to the target.
    pub credentials: Option<Credentials>,
    /// The token for Bearer; `None` without a token that may be sent to the target.
    pub bearer: Option<Vec<u8>>,
    /// True if the user's Kerberos ticket may be used with the target.
    pub negotiate: bool,
}

/// Returns the credentials for a request to `target`. After a redirect, `secrets` and `downgraded`
/// are the fields of the [`RedirectedRequest`](crate::redirect::RedirectedRequest). For the first
/// request they are [`SecretHandling::Keep`] and `false`.
///
/// A netrc entry is bound to its host: each redirect target is looked up anew, and no part of an
/// entry is kept for the next target (CVE-2024-11053). A redirect from https to http gets no
/// credentials.
pub fn credentials_for_target(
    given: &GivenCredentials<'_>,
    target: &Target,
    secrets: SecretHandling,
    downgraded: bool,
) -> Result<RequestCredentials, CredentialsError> {
    let mut identity = RequestCredentials::default();
    if downgraded {
        return Ok(identity);
    }
    if secrets == SecretHandling::Keep {
        identity.bearer = given.bearer.map(<[u8]>::to_vec);
        identity.negotiate = given.negotiate;
    }
    if let Some(user) = given.user {
        identity.credentials = Some(user.clone()).filter(|_| secrets == SecretHandling::Keep);
        return Ok(identity);
    }
    // `@host` and `:@host` name no user, as in curl and browsers.
    let names_one = |(user, password): &(Vec<u8>, Vec<u8>)| !(user.is_empty() && password.is_empty());
    let of_url = target.userinfo_bytes().filter(names_one).filter(|_| secrets == SecretHandling::Keep);
    let (text, goes_first) = match given.netrc {
        NetrcMode::Off => (None, false),
        NetrcMode::Optional(text) => (Some(text), false),
        NetrcMode::Required(text) => (Some(text), true),
    };
    // `user@host` leaves the password to the file, `user:@host` does not. Neither uses another
    // user's (CVE-2026-8926).
    let has_password = of_url.as_ref().is_some_and(|(_, password)| !password.is_empty() || target.has_password());
    let is_whole = has_password && !goes_first;
    if let (Some(text), false) = (text, is_whole) {
        let login = of_url.as_ref().map(|(user, _)| user.as_slice()).filter(|user| !user.is_empty());
        // An entry with neither user nor password does not identify us (CVE-2025-0167).
        let says = |entry: &netrc::NetrcEntry| entry.login.is_some() || entry.password.is_some();
        if let Some(entry) = netrc::find(text, target.host_text(), login)?.filter(says) {
            let user = login.map(<[u8]>::to_vec).or(entry.login).unwrap_or_default();
            identity.credentials = Some(Credentials::new(user, entry.password.unwrap_or_default())?);
            return Ok(identity);
        }
    }
    identity.credentials = of_url.map(|(user, password)| Credentials::new(user, password)).transpose()?;
    Ok(identity)
}

/// The reason why the credentials for a request cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CredentialsError {
    /// The text of the netrc file is malformed.
    Netrc(NetrcError),
    /// The credentials contain a byte that cannot be sent.
    Auth(AuthError),
}

impl From<NetrcError> for CredentialsError {
    fn from(error: NetrcError) -> Self {
        CredentialsError::Netrc(error)
    }
}

impl From<AuthError> for CredentialsError {
    fn from(error: AuthError) -> Self {
        CredentialsError::Auth(error)
    }
}

impl fmt::Display for CredentialsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CredentialsError::Netrc(error) => error.fmt(f),
            CredentialsError::Auth(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for CredentialsError {}

impl fmt::Debug for GivenCredentials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenCredentials")
            .field("user", &self.user.is_some())
            .field("bearer", &self.bearer.is_some())
            .field("negotiate", &self.negotiate)
            .field("netrc", &self.netrc)
            .finish()
    }
}

impl fmt::Debug for NetrcMode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NetrcMode::Off => "Off",
            NetrcMode::Optional(_) => "Optional(..)",
            NetrcMode::Required(_) => "Required(..)",
        })
    }
}

impl fmt::Debug for RequestCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RequestCredentials { credentials, bearer, negotiate } = self;
        write!(f, "Identity {{ credentials: {credentials:?}, bearer: {}, negotiate: {negotiate} }}", bearer.is_some())
    }
}
