//! The authentication of a request: converts the settings of C programs to those of the engine.

use std::ffi::{c_char, c_int};

use haul::state::auth::{AllowedAuthSchemes, AuthOptions, Credentials};

use crate::c_arguments;
use crate::error::CallFailure;

/// The method of authentication (RFC 9110 section 11), for haul_client_set_auth and
/// haul_request_set_auth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum haul_auth {
    /// No authentication.
    None = 0,
    /// User and password, sent without waiting for a challenge (RFC 7617).
    Basic = 1,
    /// User and password, sent in answer to a Digest challenge of the server (RFC 7616).
    Digest = 2,
    /// User and password, with the strongest scheme that the server offers.
    Any = 3,
    /// A token, sent without waiting for a challenge (RFC 6750).
    Bearer = 4,
}

/// Converts a haul_auth, a user and a secret (password or token) to the engine's authentication
/// options.
///
/// # Safety
/// The strings are NULL or end with NUL.
pub(crate) unsafe fn auth(kind: c_int, user: *const c_char, secret: *const c_char) -> Result<AuthOptions, CallFailure> {
    // SAFETY: the caller guarantees it.
    let text = |text, what| unsafe { c_arguments::required_bytes(text, what) };
    let allowed = match kind {
        n if n == haul_auth::None as c_int => return Ok(AuthOptions::default()),
        n if n == haul_auth::Bearer as c_int => {
            let token = text(secret, "secret")?;
            if token.is_empty() || !token.iter().all(u8::is_ascii_graphic) {
                return Err(CallFailure::setup("the token is empty, or has spaces or control bytes in it"));
            }
            return Ok(AuthOptions::bearer(token));
        }
        n if n == haul_auth::Basic as c_int => AllowedAuthSchemes::BASIC,
        n if n == haul_auth::Digest as c_int => AllowedAuthSchemes::DIGEST,
        n if n == haul_auth::Any as c_int => AllowedAuthSchemes::ANY,
        _ => return Err(CallFailure::setup("kind is no haul_auth")),
    };
    let user = Credentials::new(text(user, "user")?, text(secret, "secret")?)
        .map_err(|error| CallFailure::setup(format!("user or password cannot be sent: {error}")))?;
    Ok(AuthOptions { user: Some(user), allowed, ..AuthOptions::default() })
}
