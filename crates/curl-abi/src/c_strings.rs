//! Strings that C passes, and strings that are returned to C, which the program frees with
//! `curl_free` or `free`.

use std::ffi::{CStr, c_char};

/// Returns the bytes of a string without its NUL; `None` for NULL.
///
/// # Safety
/// `text` is NULL or a string that ends with NUL and does not change during `'a`.
pub(crate) unsafe fn c_string_bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller guarantees it.
    Some(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// Returns `length` bytes at `start`, or the bytes before the NUL if `length` is `None`. Returns
/// `None` for NULL.
///
/// # Safety
/// `start` is NULL or points to that many readable bytes, which do not change during `'a`.
pub(crate) unsafe fn bytes_with_length<'a>(start: *const c_char, length: Option<usize>) -> Option<&'a [u8]> {
    match length {
        _ if start.is_null() => None,
        // SAFETY: the caller guarantees it.
        Some(length) => Some(unsafe { std::slice::from_raw_parts(start.cast(), length) }),
        // SAFETY: the caller guarantees it.
        None => unsafe { c_string_bytes(start) },
    }
}

/// Copies bytes to memory from `malloc`, and appends a NUL. Returns NULL if memory is exhausted.
pub(crate) fn malloc_string(text: &[u8]) -> *mut c_char {
    // SAFETY: plain allocation.
    let start = unsafe { libc::malloc(text.len() + 1) }.cast::<u8>();
    if !start.is_null() {
        // SAFETY: the block has room for the text and the NUL, and is new.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), start, text.len());
            start.add(text.len()).write(0);
        }
    }
    start.cast()
}

/// Returns true if an environment variable sets a proxy (`http_proxy` and so on).
///
/// The function reads the C library's list of variables directly. Looking up each variable would
/// take ten times as long.
#[cfg(target_os = "linux")]
pub(crate) fn environment_has_proxy() -> bool {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: the C library's list of strings, which ends with NULL. As with libcurl, no thread may
    // change it while another begins a transfer.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            // Only names that begin like one of the variables are compared completely.
            let first = *(*entry).cast::<u8>();
            let may_set = matches!(first, b'h' | b'H' | b'a' | b'A' | b'n' | b'N');
            if may_set && c_string_bytes(*entry).is_some_and(sets_proxy) {
                return true;
            }
            entry = entry.add(1);
        }
    }
    false
}

/// Returns true if an environment variable sets a proxy (`http_proxy` and so on).
#[cfg(not(target_os = "linux"))]
pub(crate) fn environment_has_proxy() -> bool {
    std::env::vars_os().any(|(name, _)| sets_proxy(&[name.as_encoded_bytes(), b"="].concat()))
}

/// Returns true if an environment entry `NAME=VALUE` is one of the proxy variables.
fn sets_proxy(entry: &[u8]) -> bool {
    let name = entry.split(|b| *b == b'=').next().unwrap_or_default();
    name.last_chunk::<6>().is_some_and(|end| end.eq_ignore_ascii_case(b"_proxy"))
}

/// Writes a value through a pointer of the program, unless the pointer is NULL. Returns false for
/// NULL.
///
/// # Safety
/// `place` is NULL or writable.
pub(crate) unsafe fn write_unless_null<T>(place: *mut T, value: T) -> bool {
    if place.is_null() {
        return false;
    }
    // SAFETY: the caller guarantees it. C may place a value at any address.
    unsafe { place.write_unaligned(value) };
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_variables_are_recognised_by_name() {
        for (entry, expected) in [
            (&b"http_proxy=http://p:1"[..], true),
            (b"ALL_PROXY=", true),
            (b"no_proxy=*", true),
            (b"PATH=/a_proxy", false),
            (b"_prox=1", false),
            (b"http_proxy_port=1", false),
            (b"", false),
        ] {
            assert_eq!(sets_proxy(entry), expected, "{}", String::from_utf8_lossy(entry));
        }
    }
}
