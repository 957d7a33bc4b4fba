//! Strings from C, and strings for C, which the program frees with `curl_free` or `free`.

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

/// Returns `length` bytes, or those before the NUL if `length` is `None`. Returns `None` for NULL.
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

/// Copies bytes to memory of `malloc`, with a NUL behind them. Returns NULL if there is no memory.
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

/// Writes a value to a place of the program, unless the place is NULL. Returns false for NULL.
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
