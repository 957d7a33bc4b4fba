//! `curl_easy_escape`, `curl_easy_unescape`, and string comparisons.

use std::ffi::{c_char, c_int};

use haul_policy::urlencode::{percent_decode, percent_encode};

use crate::c_strings;
use crate::handle_table::{OpaqueHandle, catch_panic};

/// Returns `length` bytes at `start`, or the bytes before the NUL if `length` is 0. Returns `None`
/// for NULL and for a negative length.
///
/// # Safety
/// The text ends with NUL or has `length` bytes.
unsafe fn text_with_length<'a>(start: *const c_char, length: c_int) -> Option<&'a [u8]> {
    let length = usize::try_from(length).ok()?;
    // SAFETY: the caller guarantees it.
    unsafe { c_strings::bytes_with_length(start, (length > 0).then_some(length)) }
}

/// Percent-encodes a text. The C program frees the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_easy_escape(_easy: OpaqueHandle, start: *const c_char, length: c_int) -> *mut c_char {
    catch_panic(std::ptr::null_mut(), || {
        // SAFETY: libcurl's contract.
        let text = unsafe { text_with_length(start, length) };
        text.map_or(std::ptr::null_mut(), |text| c_strings::malloc_string(percent_encode(text).as_bytes()))
    })
}

/// Percent-decodes a text. The C program frees the result. `out_length` receives the length of the
/// result unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_easy_unescape(
    _easy: OpaqueHandle,
    start: *const c_char,
    length: c_int,
    out_length: *mut c_int,
) -> *mut c_char {
    catch_panic(std::ptr::null_mut(), || {
        // SAFETY: libcurl's contract.
        let Some(text) = (unsafe { text_with_length(start, length) }) else { return std::ptr::null_mut() };
        let plain = percent_decode(text);
        let Ok(plain_length) = c_int::try_from(plain.len()) else { return std::ptr::null_mut() };
        // SAFETY: libcurl's contract: NULL or writable.
        unsafe { c_strings::write_unless_null(out_length, plain_length) };
        c_strings::malloc_string(&plain)
    })
}

/// Percent-encodes a text. An older name of `curl_easy_escape`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_escape(start: *const c_char, length: c_int) -> *mut c_char {
    // SAFETY: the same contract.
    unsafe { curl_easy_escape(std::ptr::null_mut(), start, length) }
}

/// Percent-decodes a text. An older name of `curl_easy_unescape`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_unescape(start: *const c_char, length: c_int) -> *mut c_char {
    // SAFETY: the same contract.
    unsafe { curl_easy_unescape(std::ptr::null_mut(), start, length, std::ptr::null_mut()) }
}

/// Returns 1 if two strings are equal, ignoring the case of ASCII letters; otherwise 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_strequal(first: *const c_char, second: *const c_char) -> c_int {
    // SAFETY: libcurl's contract.
    match unsafe { (c_strings::c_string_bytes(first), c_strings::c_string_bytes(second)) } {
        (Some(first), Some(second)) => first.eq_ignore_ascii_case(second).into(),
        (None, None) => 1,
        _ => 0,
    }
}

/// Compares at most `most` bytes of two strings, like [`curl_strequal`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_strnequal(first: *const c_char, second: *const c_char, most: usize) -> c_int {
    // SAFETY: libcurl's contract.
    match unsafe { (c_strings::c_string_bytes(first), c_strings::c_string_bytes(second)) } {
        (Some(first), Some(second)) => {
            first[..first.len().min(most)].eq_ignore_ascii_case(&second[..second.len().min(most)]).into()
        }
        (None, None) => c_int::from(most > 0),
        _ => 0,
    }
}
