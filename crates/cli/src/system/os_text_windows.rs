//! Bytes as texts of the system, such as names of files. On Windows, texts are UTF-16, in which a
//! surrogate may stand alone. Their bytes are WTF-8: UTF-8, but with such surrogates.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::windows::ffi::OsStringExt as _;

use super::wtf8;

/// Access to the bytes of a text, by the method name that the standard library has on Unix.
pub(crate) trait OsStrExt {
    /// Returns the WTF-8 of the text.
    fn as_bytes(&self) -> &[u8];
}

impl OsStrExt for OsStr {
    fn as_bytes(&self) -> &[u8] {
        self.as_encoded_bytes()
    }
}

/// Conversions of owned texts, under the names that the standard library has on Unix.
pub(crate) trait OsStringExt: Sized {
    /// Returns the text whose WTF-8 is `bytes`. Invalid bytes become U+FFFD.
    fn from_vec(bytes: Vec<u8>) -> Self;
    /// Returns the WTF-8 of the text.
    fn into_vec(self) -> Vec<u8>;
}

impl OsStringExt for OsString {
    fn from_vec(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(error) => OsString::from_wide(&wtf8::to_utf16(error.as_bytes())),
        }
    }

    fn into_vec(self) -> Vec<u8> {
        self.into_encoded_bytes()
    }
}

/// Returns the text whose WTF-8 is `bytes`. Invalid bytes become U+FFFD.
pub(crate) fn os_str(bytes: &[u8]) -> Cow<'_, OsStr> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(OsStr::new(text)),
        Err(_) => Cow::Owned(OsString::from_vec(bytes.to_vec())),
    }
}
