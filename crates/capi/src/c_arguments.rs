//! Checks values that C passes: pointers that may be NULL, and strings with arbitrary bytes.
//!
//! All functions use these checks, so that they refuse the same values with the same messages: a
//! NULL for a required argument, strings that are not UTF-8, header fields with line breaks.
//!
//! ```
//! use haul_c::c_arguments;
//! // SAFETY: the text ends with NUL.
//! assert_eq!(unsafe { c_arguments::required_text(c"a".as_ptr(), "url") }.unwrap(), "a");
//! // SAFETY: NULL is looked at by nobody.
//! assert!(unsafe { c_arguments::required_text(std::ptr::null(), "url") }.is_err());
//! assert!(c_arguments::check_field("X-Name", b"a\r\nHost: evil").is_err());
//! ```

use std::ffi::{CStr, c_char};

use haul_policy::field_validation::{is_token, is_value};

use crate::error::{CallFailure, haul_status};

/// Bytes in memory that belongs to someone else. They are not terminated by NUL.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct haul_slice {
    /// The first byte; NULL means that there is no value.
    pub data: *const c_char,
    /// The number of bytes at `data`.
    pub len: usize,
}

impl haul_slice {
    /// The slice that stands for no value: its pointer is NULL.
    pub const NONE: Self = Self { data: std::ptr::null(), len: 0 };

    /// Returns a slice with the address and the length of `bytes`.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr().cast(), len: bytes.len() }
    }

    /// Returns the bytes; an empty slice if `data` is NULL.
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

    /// Returns the bytes as UTF-8. `what` names the argument in the error message.
    ///
    /// # Safety
    /// `data` is NULL or points to `len` bytes that nobody changes during `'a`.
    ///
    /// # Errors
    /// The bytes are not UTF-8.
    pub unsafe fn text<'a>(self, what: &str) -> Result<&'a str, CallFailure> {
        // SAFETY: the caller guarantees it.
        utf8(unsafe { self.bytes() }, what)
    }
}

/// A header field or trailer field.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct haul_header {
    /// The name of the field.
    pub name: haul_slice,
    /// The value of the field: any bytes except CR, LF and NUL.
    pub value: haul_slice,
}

/// Converts a pointer that must not be NULL to a reference. `what` names the argument in the error
/// message.
///
/// # Safety
/// `pointer` is NULL or points to an object that is valid and not changed by others during `'a`.
///
/// # Errors
/// The argument is NULL.
pub unsafe fn required_object<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, CallFailure> {
    // SAFETY: the caller guarantees it.
    unsafe { pointer.as_ref() }.ok_or_else(|| null_argument_failure(what))
}

/// Converts a C string that must not be NULL to a `str`. `what` names the argument in the error
/// message.
///
/// # Safety
/// `pointer` is NULL or points to bytes that end with NUL and stay unchanged during `'a`.
///
/// # Errors
/// The string is NULL or not UTF-8.
pub unsafe fn required_text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, CallFailure> {
    // SAFETY: the caller guarantees it.
    unsafe { optional_text(pointer, what) }?.ok_or_else(|| null_argument_failure(what))
}

/// Converts an optional C string to a `str`. NULL becomes `None`. `what` names the argument in the
/// error message.
///
/// # Safety
/// `pointer` is NULL or points to bytes that end with NUL and stay unchanged during `'a`.
///
/// # Errors
/// The string is not UTF-8.
pub unsafe fn optional_text<'a>(pointer: *const c_char, what: &str) -> Result<Option<&'a str>, CallFailure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL, and the rest is the caller's word.
    let bytes = unsafe { CStr::from_ptr(pointer) }.to_bytes();
    utf8(bytes, what).map(Some)
}

/// Returns the bytes of an optional C string. NULL becomes `None`.
///
/// # Safety
/// `pointer` is NULL or points to bytes that end with NUL and stay unchanged during `'a`.
#[must_use]
pub unsafe fn optional_bytes<'a>(pointer: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: not NULL, and the rest is the caller's word.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_bytes())
}

/// Returns the bytes of a string that must not be NULL. Header values and file names need this,
/// since they may not be UTF-8.
///
/// # Safety
/// `pointer` is NULL or points to bytes that end with NUL and stay unchanged during `'a`.
///
/// # Errors
/// The argument is NULL.
pub unsafe fn required_bytes<'a>(pointer: *const c_char, what: &str) -> Result<&'a [u8], CallFailure> {
    if pointer.is_null() {
        return Err(null_argument_failure(what));
    }
    // SAFETY: not NULL, and the rest is the caller's word.
    Ok(unsafe { CStr::from_ptr(pointer) }.to_bytes())
}

/// Returns bytes that the caller passes with their length. `data` may be NULL if `len` is 0.
///
/// # Safety
/// `data` is NULL or points to `len` bytes that stay unchanged during `'a`.
///
/// # Errors
/// `data` is NULL, but `len` is not 0.
pub unsafe fn bytes_with_length<'a>(data: *const c_char, len: usize, what: &str) -> Result<&'a [u8], CallFailure> {
    if data.is_null() && len > 0 {
        return Err(null_argument_failure(what));
    }
    // SAFETY: the caller guarantees it.
    Ok(unsafe { haul_slice { data, len }.bytes() })
}

/// Checks that a header field can be sent: its name is a token (RFC 9110 section 5.1), and its
/// value contains no byte that would end the line (section 5.5).
///
/// # Errors
/// The field cannot be sent.
pub fn check_field(name: &str, value: &[u8]) -> Result<(), CallFailure> {
    if !is_token(name.as_bytes()) {
        return Err(CallFailure::setup(format!("the header name \"{}\" is no token", name.escape_debug())));
    }
    if !is_value(value) {
        return Err(CallFailure::setup(format!("the value of the header {name} has CR, LF or NUL in it")));
    }
    Ok(())
}

fn utf8<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str, CallFailure> {
    std::str::from_utf8(bytes).map_err(|_| CallFailure::new(haul_status::Setup, format!("{what} is not UTF-8")))
}

fn null_argument_failure(what: &str) -> CallFailure {
    CallFailure::setup(format!("{what} is NULL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_c_strings_are_refused_with_reason() {
        // SAFETY: the text ends with NUL.
        let fault = unsafe { required_text(c"\xff".as_ptr(), "url") }.unwrap_err();
        assert_eq!(fault.status(), haul_status::Setup);
        // SAFETY: NULL with a length is refused before it is looked at.
        assert!(unsafe { bytes_with_length(std::ptr::null(), 3, "value") }.is_err());
        // SAFETY: NULL and no length is nothing.
        assert_eq!(unsafe { bytes_with_length(std::ptr::null(), 0, "value") }.unwrap(), b"");
    }

    #[test]
    fn field_with_line_breaks_is_refused() {
        for (name, value) in [("", &b"x"[..]), ("a b", b"x"), ("a:", b"x"), ("a", b"x\ny"), ("a", b"x\0"), ("ä", b"x")]
        {
            assert!(check_field(name, value).is_err(), "{name:?} {value:?}");
        }
        check_field("X-Any", b"\xff\t ").unwrap();
    }
}
