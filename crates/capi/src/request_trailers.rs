//! Trailer fields of a request, which a callback of the caller supplies.
//!
//! ```
//! use haul_c::error::haul_status;
//! use haul_c::request::haul_request_new;
//! use haul_c::request_trailers::haul_request_set_trailers;
//! // SAFETY: the strings end with NUL, and the request lives.
//! unsafe {
//!     let mut request = haul_request_new(c"PUT".as_ptr(), c"http://h.example/".as_ptr()).unwrap();
//!     let status = haul_request_set_trailers(&mut *request, None, std::ptr::null_mut());
//!     assert_eq!(status, haul_status::Ok);
//! }
//! ```

use std::ffi::{c_int, c_void};
use std::io;

use haul::body::request_trailers::{Field, Trailers};

use crate::c_arguments::{self, haul_header};
use crate::callbacks::{UserPointer, haul_trailers_fn};
use crate::error::{CallFailure, haul_status};
use crate::request::{change, haul_request};

/// Converts a haul_trailers_fn to the engine's trailers. Returns `None` if `give` is NULL.
pub(crate) fn from_callback(give: haul_trailers_fn, user: *mut c_void) -> Option<Trailers> {
    let (give, user) = (give?, UserPointer(user));
    Some(Trailers::new(move || call_trailers_callback(give, &user)))
}

fn call_trailers_callback(
    give: unsafe extern "C" fn(*mut c_void, *mut *const haul_header, *mut usize) -> c_int,
    user: &UserPointer,
) -> io::Result<Vec<Field>> {
    let (mut start, mut count) = (std::ptr::null(), 0);
    // SAFETY: a function of the caller's, with its own pointer and two places that live during the
    // call.
    if unsafe { give(user.0, &raw mut start, &raw mut count) } != 0 {
        return Err(io::Error::other("the function that makes the trailers failed"));
    }
    if start.is_null() || count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the word of `haul_trailers_fn`: so many lie there, and stay for now.
    let headers = unsafe { std::slice::from_raw_parts(start, count) };
    let field = |header: &haul_header| {
        // SAFETY: as above.
        let (name, value) = unsafe { (header.name.text("a trailer's name")?, header.value.bytes()) };
        c_arguments::check_field(name, value)?;
        Ok((name.to_owned(), value.to_vec()))
    };
    headers.iter().map(field).collect::<Result<_, CallFailure>>().map_err(io::Error::other)
}

/// Sets a callback that supplies trailer fields, which are sent after the body (RFC 9110 section
/// 6.5). The body is then sent in chunks, even if its length is known. If `give` is NULL, no
/// trailers are sent. A batch does not accept a request with trailers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_set_trailers(
    request: *mut haul_request,
    give: haul_trailers_fn,
    user: *mut c_void,
) -> haul_status {
    // SAFETY: the header's contract: what is not NULL lives, and nobody else uses it.
    unsafe {
        change(request, |request| {
            request.trailers = from_callback(give, user);
            Ok(())
        })
    }
}
