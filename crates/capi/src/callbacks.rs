//! The types of callbacks. haul calls them in the thread that called haul. No callback may unwind
//! (C++ exceptions, longjmp) through haul.

use std::ffi::{c_char, c_int, c_void};

use crate::c_arguments::haul_header;
use crate::request_step_callback::haul_step_info;
use crate::response::haul_reply;

/// Supplies memory for a reply's body. Returns the start of a block of `size` bytes. NULL stops the
/// request with HAUL_STATUS_WRITE. Called once if the length is known and at most 4 MiB, otherwise
/// each time the body outgrows the memory. As with realloc, the memory may move, and the new block
/// must contain the bytes that were written to the old one.
pub type haul_reserve_fn = Option<unsafe extern "C" fn(user: *mut c_void, size: usize) -> *mut c_void>;

/// Called with each piece of a reply's body. A value other than 0 stops the request with
/// HAUL_STATUS_WRITE.
pub type haul_body_fn = Option<unsafe extern "C" fn(user: *mut c_void, data: *const c_char, len: usize) -> c_int>;

/// Supplies the next bytes of a request's body: writes at most `len` bytes to `buffer`. Returns the
/// number of bytes written, 0 at the end, or HAUL_READ_ERROR.
pub type haul_read_fn = Option<unsafe extern "C" fn(user: *mut c_void, buffer: *mut c_char, len: usize) -> usize>;

/// Called when a request's body has to be sent again: the next call of haul_read_fn must supply the
/// first bytes of the body. Returns 0 on success.
pub type haul_rewind_fn = Option<unsafe extern "C" fn(user: *mut c_void) -> c_int>;

/// Supplies the trailer fields of a request after its body has been read: stores an array of
/// `count` fields. The array must stay valid until the next call or the end of the request. A
/// return value other than 0 stops the request with HAUL_STATUS_READ.
pub type haul_trailers_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, trailers: *mut *const haul_header, count: *mut usize) -> c_int>;

/// Called while haul waits. A value other than 0 ends the wait with HAUL_STATUS_INTERRUPTED.
pub type haul_interrupt_fn = Option<unsafe extern "C" fn(user: *mut c_void) -> c_int>;

/// Called with the head of the final reply, before any part of its body (`body` is NULL). The
/// pointers are valid during the call. A value other than 0 stops the request with
/// HAUL_STATUS_WRITE.
pub type haul_head_fn = Option<unsafe extern "C" fn(user: *mut c_void, head: *const haul_reply) -> c_int>;

/// Called when a request reaches a step (haul_step), such as an open connection or the head of a
/// reply. The function must not free the request, the response or the client.
pub type haul_step_fn = Option<unsafe extern "C" fn(user: *mut c_void, info: *const haul_step_info)>;

/// A pointer that the caller supplied for its callbacks. haul passes it to these callbacks and
/// never dereferences it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UserPointer(pub(crate) *mut c_void);

// SAFETY: haul only passes it back to the caller's function, in the thread that the header names;
// the caller answers for its target.
unsafe impl Send for UserPointer {}
// SAFETY: as above.
unsafe impl Sync for UserPointer {}
