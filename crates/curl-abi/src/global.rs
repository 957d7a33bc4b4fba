//! `curl_global_*`, `curl_free`, and functions without a handle. There is no global state to set
//! up: each module creates its own state when it is first used.

use std::ffi::{c_char, c_int, c_long, c_void};

use crate::c_strings;
use crate::codes::{CURLE_FAILED_INIT, CURLE_OK, CURLcode};

/// An allocation function that a C program passes to `curl_global_init_mem`.
pub type AllocationFunction = Option<unsafe extern "C" fn()>;

/// Does nothing: haul needs no global initialization.
#[unsafe(no_mangle)]
pub extern "C" fn curl_global_init(_flags: c_long) -> CURLcode {
    CURLE_OK
}

/// Accepts the C program's allocation functions, but does not use them: memory that is returned to
/// the program comes from `malloc`.
#[unsafe(no_mangle)]
pub extern "C" fn curl_global_init_mem(
    _flags: c_long,
    allocate: AllocationFunction,
    free: AllocationFunction,
    reallocate: AllocationFunction,
    duplicate: AllocationFunction,
    allocate_zeroed: AllocationFunction,
) -> CURLcode {
    let all = [allocate, free, reallocate, duplicate, allocate_zeroed];
    if all.iter().all(Option::is_some) { CURLE_OK } else { CURLE_FAILED_INIT }
}

/// Does nothing: haul has no global state to free.
#[unsafe(no_mangle)]
pub extern "C" fn curl_global_cleanup() {}

/// Accepts a configuration of tracing, which has no effect.
#[unsafe(no_mangle)]
pub extern "C" fn curl_global_trace(_config: *const c_char) -> CURLcode {
    CURLE_OK
}

/// A TLS library, as `curl/curl.h` describes it.
#[repr(C)]
pub struct curl_ssl_backend {
    id: c_int,
    name: *const c_char,
}

/// The list of TLS libraries, as `curl_global_sslset` returns it.
struct BackendList([*const curl_ssl_backend; 2]);

// SAFETY: constants.
unsafe impl Sync for curl_ssl_backend {}
// SAFETY: constants.
unsafe impl Sync for BackendList {}

const RUSTLS: c_int = 14;
/// The id of OpenSSL. [`curl_global_sslset`] accepts this id although the TLS library is rustls,
/// because programs that were linked with a libcurl that uses OpenSSL may select OpenSSL.
const OPENSSL: c_int = 1;
static BACKEND: curl_ssl_backend = curl_ssl_backend { id: RUSTLS, name: c"rustls".as_ptr() };
static BACKENDS: BackendList = BackendList([&raw const BACKEND, std::ptr::null()]);

/// Selects the TLS library. There is only one. `available` receives the list of TLS libraries
/// unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_global_sslset(
    id: c_int,
    name: *const c_char,
    available: *mut *const *const curl_ssl_backend,
) -> c_int {
    const OK: c_int = 0;
    const UNKNOWN_BACKEND: c_int = 1;
    // SAFETY: libcurl's contract: NULL or writable.
    unsafe { c_strings::write_unless_null(available, BACKENDS.0.as_ptr()) };
    // SAFETY: libcurl's contract: NULL or a string.
    let name = unsafe { c_strings::c_string_bytes(name) }.unwrap_or_default();
    let is_named = |known: &[u8]| name.eq_ignore_ascii_case(known);
    let is_known = id == RUSTLS || id == OPENSSL || is_named(b"rustls") || is_named(b"openssl");
    if is_known { OK } else { UNKNOWN_BACKEND }
}

/// Frees memory that a function of this library returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_free(pointer: *mut c_void) {
    // SAFETY: libcurl's contract: NULL or memory of this library, which is of `malloc`.
    unsafe { libc::free(pointer) };
}

/// Returns a copy of an environment variable, which the C program frees; NULL if it is not set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_getenv(name: *const c_char) -> *mut c_char {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: libcurl's contract.
    let Some(name) = (unsafe { c_strings::c_string_bytes(name) }) else { return std::ptr::null_mut() };
    if name.is_empty() || name.contains(&b'=') {
        return std::ptr::null_mut();
    }
    let value = std::env::var_os(std::ffi::OsStr::from_bytes(name));
    value.map_or(std::ptr::null_mut(), |value| c_strings::malloc_string(value.as_bytes()))
}
