//! The version of the linked library.
//!
//! ```
//! assert_eq!(haul_c::version::haul_version_number() / 1_000_000, 0);
//! ```

use std::ffi::{CStr, c_char, c_void};

const TEXT: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(text) => text,
    Err(_) => panic!("a version has no NUL"),
};

/// Returns the version of the linked library, such as "0.1.0". HAUL_VERSION is the version of the
/// header with which the program was compiled.
#[unsafe(no_mangle)]
pub extern "C" fn haul_version() -> *const c_char {
    TEXT.as_ptr()
}

/// Returns the version of the linked library as a number: major * 1,000,000 + minor * 1,000 +
/// patch.
#[unsafe(no_mangle)]
pub extern "C" fn haul_version_number() -> u32 {
    let number = |text: &str| text.parse().unwrap_or(0);
    let (major, minor) = (number(env!("CARGO_PKG_VERSION_MAJOR")), number(env!("CARGO_PKG_VERSION_MINOR")));
    major * 1_000_000 + minor * 1_000 + number(env!("CARGO_PKG_VERSION_PATCH"))
}

/// Returns a copy of the bytes that C frees with [`haul_free`]. The length is stored in front of
/// the copy.
pub(crate) fn allocate_copy(bytes: &[u8]) -> *mut c_char {
    let mut held = Vec::with_capacity(LENGTH_PREFIX + bytes.len() + 1);
    held.extend_from_slice(&(bytes.len() as u64).to_ne_bytes());
    held.extend_from_slice(bytes);
    held.push(0);
    let start = Box::into_raw(held.into_boxed_slice()).cast::<u8>();
    // SAFETY: the prefix lies inside the allocation.
    unsafe { start.add(LENGTH_PREFIX) }.cast()
}

const LENGTH_PREFIX: usize = size_of::<u64>();

/// Frees memory that a haul function returned and that its documentation says to free with
/// haul_free. NULL is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_free(memory: *mut c_void) {
    if memory.is_null() {
        return;
    }
    // SAFETY: it is what `give` gave, by the header's contract: its length stands in the prefix,
    // and the allocation begins there.
    unsafe {
        let start = memory.cast::<u8>().sub(LENGTH_PREFIX);
        let len = u64::from_ne_bytes(*start.cast::<[u8; LENGTH_PREFIX]>());
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, LENGTH_PREFIX + len as usize + 1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_string_ends_with_nul_and_is_freed() {
        let text = allocate_copy(b"sid=31");
        // SAFETY: it was given by `give`, and is freed once.
        unsafe {
            assert_eq!(CStr::from_ptr(text).to_bytes(), b"sid=31");
            haul_free(text.cast());
            haul_free(std::ptr::null_mut());
        }
    }
}
