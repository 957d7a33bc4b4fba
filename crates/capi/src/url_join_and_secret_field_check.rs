//! Functions for bindings that follow redirects themselves: one resolves a URL reference, and one
//! says whether a request field is a secret.
//!
//! ```
//! use haul_c::error::haul_status;
//! use haul_c::url_join_and_secret_field_check::haul_url_join;
//! use haul_c::version::haul_free;
//! let mut joined = std::ptr::null_mut();
//! // SAFETY: the strings end with NUL; what comes is freed once.
//! unsafe {
//!     assert_eq!(haul_url_join(c"http://h/a/b".as_ptr(), c"../c".as_ptr(), &mut joined), haul_status::Ok);
//!     assert_eq!(std::ffi::CStr::from_ptr(joined), c"http://h/c");
//!     haul_free(joined.cast());
//! }
//! ```

use std::ffi::{c_char, c_int};

use haul_policy::redirect::location_text;
use haul_policy::secret_fields::is_secret_field;

use crate::c_arguments;
use crate::error::{CallFailure, catch_panic, haul_status};
use crate::request::{parse_url, url_failure};
use crate::version::allocate_copy;

/// Resolves `reference`, such as a Location header, relative to the URL `base` (RFC 3986 section
/// 5). Bytes of `reference` beyond ASCII that are not UTF-8 are percent-encoded. `url` receives the
/// result without credentials and fragment; free it with haul_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_url_join(
    base: *const c_char,
    reference: *const c_char,
    url: *mut *mut c_char,
) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract: strings are NULL or end with NUL, and the place is the
        // caller's.
        let (base, reference, place) = unsafe {
            (
                c_arguments::required_text(base, "base")?,
                c_arguments::required_bytes(reference, "reference")?,
                url.as_mut(),
            )
        };
        let place = place.ok_or_else(|| CallFailure::setup("url is NULL"))?;
        *place = std::ptr::null_mut();
        let joined = parse_url(base, false)?.join(&location_text(reference)).map_err(|error| url_failure(&error))?;
        *place = allocate_copy(joined.to_url().as_bytes());
        Ok(())
    })
}

/// Returns 1 if a request field of this name carries a secret (Authorization, Cookie, X-Api-Key and
/// the like, case-insensitive), otherwise 0. When haul itself follows redirects, it sends such a
/// field only to the origin for which it was set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_field_is_secret(name: *const c_char) -> c_int {
    // SAFETY: the header's contract: it is NULL or ends with NUL.
    unsafe { c_arguments::required_text(name, "name") }.is_ok_and(is_secret_field).into()
}
