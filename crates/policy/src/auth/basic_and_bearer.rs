//! A user's name and password, and the schemes Basic and Bearer, which send credentials without
//! hashing them.

use core::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::AuthError;

/// User and password as bytes, because the charset is up to user and server. `Debug` shows neither.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Credentials {
    user: Box<[u8]>,
    password: Box<[u8]>,
}

impl Credentials {
    /// Creates credentials; fails on CR, LF and NUL, which neither fields nor SOCKS requests may
    /// contain.
    pub fn new(user: impl AsRef<[u8]>, password: impl AsRef<[u8]>) -> Result<Credentials, AuthError> {
        let (user, password) = (user.as_ref(), password.as_ref());
        if user.iter().chain(password).any(|b| matches!(b, 0 | b'\r' | b'\n')) {
            return Err(AuthError::ControlByte);
        }
        Ok(Credentials { user: user.into(), password: password.into() })
    }

    /// Splits the argument of `-u` at its first colon into user and password. Without a colon the
    /// password is `None`, and curl prompts for it.
    pub fn split_user_and_password(text: &[u8]) -> (&[u8], Option<&[u8]>) {
        match text.iter().position(|b| *b == b':') {
            Some(colon) => (&text[..colon], Some(&text[colon + 1..])),
            None => (text, None),
        }
    }

    /// Returns the user name as bytes.
    pub fn user(&self) -> &[u8] {
        &self.user
    }

    /// Returns the password as bytes.
    pub fn password(&self) -> &[u8] {
        &self.password
    }

    /// Checks that Basic can carry these credentials. Fails if the user name contains a colon (RFC
    /// 7617 §2).
    pub fn check_basic(&self) -> Result<(), AuthError> {
        if self.user.contains(&b':') { Err(AuthError::ColonInUser) } else { Ok(()) }
    }

    /// Returns the value of Authorization or Proxy-Authorization for Basic. A user name with a
    /// colon is sent unchanged, as by curl; [`check_basic`](Self::check_basic) detects it.
    pub fn basic_authorization(&self) -> Vec<u8> {
        let pair = [&self.user[..], b":", &self.password].concat();
        let mut value = b"Basic ".to_vec();
        value.extend_from_slice(STANDARD.encode(pair).as_bytes());
        value
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// Returns the value of Authorization for a bearer token (RFC 6750 §2.1). Any visible ASCII is
/// accepted, since tokens in use are not always a token68.
pub fn bearer_authorization(token: &[u8]) -> Result<Vec<u8>, AuthError> {
    if token.is_empty() || !token.iter().all(u8::is_ascii_graphic) {
        return Err(AuthError::ControlByte);
    }
    Ok([b"Bearer ", token].concat())
}
