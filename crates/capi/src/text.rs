//! Checks of values from C: pointers that may be NULL, and strings with any bytes.
//!
//! One place for all of it, so that every function refuses the same things in the same words: NULL where something must be,
//! strings that are no UTF-8, header lines that would end early.
//!
//! ```
//! use haul_c::text;
//! // SAFETY: the text ends with NUL.
//! assert_eq!(unsafe { text::required(c"a".as_ptr(), "url") }.unwrap(), "a");
//! // SAFETY: NULL is looked at by nobody.
//! assert!(unsafe { text::required(std::ptr::null(), "url") }.is_err());
//! assert!(text::check_field("X-Name", b"a\r\nHost: evil").is_err());
//! ```

use std::ffi::{CStr, c_char};

use haul_policy::field::{is_token, is_value};

use crate::error::{Fault, haul_status};

/// Bytes owned by someone else; not terminated by NUL.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct haul_slice {
    /// The first byte; NULL if there is no value.
    pub data: *const c_char,
    /// Number of bytes.
    pub len: usize,
}

impl haul_slice {
    /// The slice without data: its pointer is NULL.
    pub const NONE: Self = Self { data: std::ptr::null(), len: 0 };

    /// A view of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr().cast(), len: bytes.len() }
    }

    /// The bytes; NULL is none of them.
    ///
    /// # Safety
    /// `data` is NULL or points to `len` bytes that nobody changes during `'a`.
    #[must_use]
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.data.is_null() || self.len == 0 {
            return &[];
        }
        // SAFETY: not NULL, and the rest is the caller's word.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.len) }
    }

    /// As UTF-8.
    ///
    /// # Safety
    /// As [`haul_slice::bytes`].
    ///
    /// # Errors
    /// It is not UTF-8.
    pub unsafe fn text<'a>(self, what: &str) -> Result<&'a str, Fault> {
        // SAFETY: the caller's word.
        utf8(unsafe { self.bytes() }, what)
    }
}

/// A header field.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct haul_header {
    /// Name of the field.
    pub name: haul_slice,
    /// Value of the field: any bytes except CR, LF and NUL.
    pub value: haul_slice,
}

/// An object that must be there.
///
/// # Safety
/// `pointer` is NULL or one of an object that lives and is not changed by others during `'a`.
///
/// # Errors
/// It is NULL.
pub unsafe fn object<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Fault> {
    // SAFETY: the caller's word.
    unsafe { pointer.as_ref() }.ok_or_else(|| missing(what))
}

/// A string that must be there.
///
/// # Safety
/// `pointer` is NULL or points to bytes that end with NUL and stay during `'a`.
///
/// # Errors
/// It is NULL, or not UTF-8.
pub unsafe fn required<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Fault> {
    // SAFETY: the caller's word.
    unsafe { optional(pointer, what) }?.ok_or_else(|| missing(what))
}

/// A string that may be NULL.
///
/// # Safety
/// As [`required`].
///
/// # Errors
/// It is not UTF-8.
pub unsafe fn optional<'a>(pointer: *const c_char, what: &str) -> Result<Option<&'a str>, Fault> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL, and the rest is the caller's word.
    let bytes = unsafe { CStr::from_ptr(pointer) }.to_bytes();
    utf8(bytes, what).map(Some)
}

/// The bytes of a string that must be there: header values and file names need not be UTF-8.
///
/// # Safety
/// As [`required`].
///
/// # Errors
/// It is NULL.
pub unsafe fn bytes<'a>(pointer: *const c_char, what: &str) -> Result<&'a [u8], Fault> {
    if pointer.is_null() {
        return Err(missing(what));
    }
    // SAFETY: not NULL, and the rest is the caller's word.
    Ok(unsafe { CStr::from_ptr(pointer) }.to_bytes())
}

/// Bytes with their length; NULL only where there are none.
///
/// # Safety
/// `data` is NULL or points to `len` bytes that stay during `'a`.
///
/// # Errors
/// It is NULL, and not empty.
pub unsafe fn counted<'a>(data: *const c_char, len: usize, what: &str) -> Result<&'a [u8], Fault> {
    if data.is_null() && len > 0 {
        return Err(missing(what));
    }
    // SAFETY: the caller's word.
    Ok(unsafe { haul_slice { data, len }.bytes() })
}

/// Checks that a header field can be sent: its name is a token (RFC 9110 section 5.1), and no byte
/// of its value would end the line (section 5.5).
///
/// # Errors
/// It cannot.
pub fn check_field(name: &str, value: &[u8]) -> Result<(), Fault> {
    if !is_token(name.as_bytes()) {
        return Err(Fault::setup(format!("the header name \"{}\" is no token", name.escape_debug())));
    }
    if !is_value(value) {
        return Err(Fault::setup(format!("the value of the header {name} has CR, LF or NUL in it")));
    }
    Ok(())
}

fn utf8<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str, Fault> {
    std::str::from_utf8(bytes).map_err(|_| Fault::new(haul_status::Setup, format!("{what} is not UTF-8")))
}

fn missing(what: &str) -> Fault {
    Fault::setup(format!("{what} is NULL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_refused_in_words() {
        // SAFETY: the text ends with NUL.
        let fault = unsafe { required(c"\xff".as_ptr(), "url") }.unwrap_err();
        assert_eq!(fault.status(), haul_status::Setup);
        // SAFETY: NULL with a length is refused before it is looked at.
        assert!(unsafe { counted(std::ptr::null(), 3, "value") }.is_err());
        // SAFETY: NULL and no length is nothing.
        assert_eq!(unsafe { counted(std::ptr::null(), 0, "value") }.unwrap(), b"");
    }

    #[test]
    fn a_field_that_would_be_two_is_refused() {
        for (name, value) in [("", &b"x"[..]), ("a b", b"x"), ("a:", b"x"), ("a", b"x\ny"), ("a", b"x\0"), ("ä", b"x")]
        {
            assert!(check_field(name, value).is_err(), "{name:?} {value:?}");
        }
        check_field("X-Any", b"\xff\t ").unwrap();
    }
}
