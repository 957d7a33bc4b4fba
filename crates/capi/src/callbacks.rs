//! The types of the functions that haul calls back. All run in the thread that called haul; none may unwind (C++ exceptions,
//! longjmp) through it.

use std::ffi::{c_char, c_int, c_void};

use crate::response::haul_reply;
use crate::text::haul_header;

/// Gives the memory for a body: the start of room for `size` bytes in all, which keeps what earlier calls for this body
/// left in it (as realloc does). It may move. NULL stops the request with HAUL_STATUS_WRITE. It is asked once where the
/// length is known and not above 4 MiB, else each time the body outgrows what there is.
pub type haul_reserve_fn = Option<unsafe extern "C" fn(user: *mut c_void, size: usize) -> *mut c_void>;

/// Takes a piece of a body. Not 0 stops the request with HAUL_STATUS_WRITE.
pub type haul_body_fn = Option<unsafe extern "C" fn(user: *mut c_void, data: *const c_char, len: usize) -> c_int>;

/// Gives the next bytes of a request's body: at most `len` of them into `buffer`. 0 is the end, HAUL_READ_ERROR a failure.
pub type haul_read_fn = Option<unsafe extern "C" fn(user: *mut c_void, buffer: *mut c_char, len: usize) -> usize>;

/// Goes back to the first byte of a request's body, since it has to be sent again. Not 0: it cannot be done.
pub type haul_rewind_fn = Option<unsafe extern "C" fn(user: *mut c_void) -> c_int>;

/// Gives the fields that go behind a request's body, when all of that was read: an array of `count` of them, which stays until
/// the next call or the end of the request. Not 0 stops the request with HAUL_STATUS_READ.
pub type haul_trailers_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, trailers: *mut *const haul_header, count: *mut usize) -> c_int>;

/// Asked while something is waited for. Not 0 ends the wait with HAUL_STATUS_INTERRUPTED.
pub type haul_interrupt_fn = Option<unsafe extern "C" fn(user: *mut c_void) -> c_int>;

/// Is called with the head of the final reply before any of its body (`body` is NULL). The pointers hold during the call.
/// Not 0 stops the request with HAUL_STATUS_WRITE.
pub type haul_head_fn = Option<unsafe extern "C" fn(user: *mut c_void, head: *const haul_reply) -> c_int>;

/// A pointer of the caller's, that haul hands back and never follows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct User(pub(crate) *mut c_void);

// SAFETY: haul only carries it back to the caller's function, in the thread that the header names; what it points to is the
// caller's affair.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}
