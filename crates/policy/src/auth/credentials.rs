//! A user's name and password, and the two schemes that send credentials as they are.

use core::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::AuthError;

/// User and password, as bytes: the charset is between user and server. `Debug` shows neither.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Credentials {
    user: Box<[u8]>,
    password: Box<[u8]>,
}

impl Credentials {
    /// Refuses CR, LF and NUL, which no field and no SOCKS request may carry.
    pub fn new(user: impl AsRef<[u8]>, password: impl AsRef<[u8]>) -> Result<Credentials, AuthError> {
        let (user, password) = (user.as_ref(), password.as_ref());
        if user.iter().chain(password).any(|b| matches!(b, 0 | b'\r' | b'\n')) {
            return Err(AuthError::ControlByte);
        }
        Ok(Credentials { user: user.into(), password: password.into() })
    }

    /// The argument of `-u`: up to the first colon the user, after it the password. `None` for the password where there is no colon: curl
    /// asks for it.
    pub fn split(text: &[u8]) -> (&[u8], Option<&[u8]>) {
        match text.iter().position(|b| *b == b':') {
            Some(colon) => (&text[..colon], Some(&text[colon + 1..])),
            None => (text, None),
        }
    }

    /// The user.
    pub fn user(&self) -> &[u8] {
        &self.user
    }

    /// The password.
    pub fn password(&self) -> &[u8] {
        &self.password
    }

    /// Whether Basic can carry them (RFC 7617 §2).
    pub fn check_basic(&self) -> Result<(), AuthError> {
        if self.user.contains(&b':') { Err(AuthError::ColonInUser) } else { Ok(()) }
    }

    /// The value of Authorization or Proxy-Authorization, by Basic. A user with a colon is sent unchanged, as by curl;
    /// [`check_basic`](Self::check_basic) detects it.
    pub fn basic(&self) -> Vec<u8> {
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

/// The value of Authorization with a token (RFC 6750 §2.1). Any visible ASCII is taken: tokens in the wild are not all
/// token68.
pub fn bearer(token: &[u8]) -> Result<Vec<u8>, AuthError> {
    if token.is_empty() || !token.iter().all(u8::is_ascii_graphic) {
        return Err(AuthError::ControlByte);
    }
    Ok([b"Bearer ", token].concat())
}
