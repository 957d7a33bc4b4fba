//! The steps of a request, which are reported to a function of the caller when they happen.
//!
//! ```
//! use haul_c::error::haul_status;
//! use haul_c::request::haul_request_new;
//! use haul_c::request_step_callback::haul_request_set_on_step;
//! // SAFETY: the strings end with NUL, and the request lives.
//! unsafe {
//!     let mut request = haul_request_new(c"GET".as_ptr(), c"http://h.example/".as_ptr()).unwrap();
//!     let status = haul_request_set_on_step(&mut *request, None, std::ptr::null_mut());
//!     assert_eq!(status, haul_status::Ok);
//! }
//! ```

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use haul::trace::{Milestone, TraceEvent, TransferObserver};

use crate::c_arguments::haul_slice;
use crate::callbacks::{UserPointer, haul_step_fn};
use crate::error::{CallFailure, haul_error, haul_status};
use crate::request::{change, haul_request};

/// A step of a request. The steps are reported in this order for each exchange (a request and its
/// reply). A redirect or a retry begins another exchange. The first three steps are left out on a
/// connection that was already open. Later versions may add steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum haul_step {
    /// The address of the host was found.
    Resolved = 1,
    /// The connection (TCP or QUIC) was made.
    Connected = 2,
    /// The TLS handshake is complete.
    Secured = 3,
    /// The request is being sent.
    Sent = 4,
    /// The head of a reply has arrived. Redirecting replies are reported, too.
    Head = 5,
    /// A redirect is followed.
    Redirected = 6,
    /// The request will be sent again.
    Retry = 7,
    /// The request is over: the body has arrived, or the request failed.
    Done = 8,
}

/// The facts about a step of a request (haul_step), for a haul_step_fn. They are valid during the
/// call. Later versions may add members at the end.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct haul_step_info {
    /// The step that the request has reached.
    pub step: haul_step,
    /// The time of the step, in nanoseconds since the request began.
    pub time: u64,
    /// The URL of the exchange, without user and password. After a redirect it is the new URL.
    pub url: haul_slice,
    /// The status of the last reply; 0 if there was none.
    pub status: u16,
    /// For HAUL_STEP_RETRY: the pause before the retry, in milliseconds.
    pub wait_ms: u64,
    /// For HAUL_STEP_RETRY and HAUL_STEP_DONE: the failure; NULL if there was none.
    pub error: *const haul_error,
}

/// Calls the caller's haul_step_fn for each step of a transfer.
#[derive(Debug)]
struct StepObserver {
    take: unsafe extern "C" fn(user: *mut c_void, info: *const haul_step_info),
    user: UserPointer,
}

/// Makes the observer that calls `take` for each step of a request. Returns `None` if `take` is
/// NULL.
pub(crate) fn observer(take: haul_step_fn, user: *mut c_void) -> Option<Arc<dyn TransferObserver>> {
    let user = UserPointer(user);
    take.map(|take| Arc::new(StepObserver { take, user }) as Arc<dyn TransferObserver>)
}

impl TransferObserver for StepObserver {
    fn event(&self, event: &TraceEvent<'_>) {
        let TraceEvent::Milestone { milestone, at, target, facts, error } = event else { return };
        let mut wait = Duration::ZERO;
        let step = match milestone {
            Milestone::Resolved => haul_step::Resolved,
            Milestone::Connected => haul_step::Connected,
            Milestone::Secured => haul_step::Secured,
            Milestone::Sent => haul_step::Sent,
            Milestone::Head => haul_step::Head,
            Milestone::Redirected => haul_step::Redirected,
            Milestone::Retry(pause) => {
                wait = *pause;
                haul_step::Retry
            }
            Milestone::Done => haul_step::Done,
            _ => return,
        };
        let url = target.to_url();
        let failure = error.map(|error| CallFailure::from(error.duplicate()).into_error());
        let info = haul_step_info {
            step,
            time: u64::try_from(at.as_nanos()).unwrap_or(u64::MAX),
            url: haul_slice::from_bytes(url.as_bytes()),
            status: facts.status,
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            error: failure.as_deref().map_or(std::ptr::null(), std::ptr::from_ref),
        };
        // SAFETY: a function of the caller's, with its own pointer and a struct that lives during
        // the call.
        unsafe { (self.take)(self.user.0, &raw const info) };
    }
}

/// Sets a function that is called when the request reaches a step (haul_step). The call is in the
/// thread that sends the request; for a request of a batch, in the batch's own thread. NULL, the
/// default, means no function. For haul_call, set its member `on_step` instead.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_set_on_step(
    request: *mut haul_request,
    on_step: haul_step_fn,
    user: *mut c_void,
) -> haul_status {
    // SAFETY: the header's contract: what is not NULL lives, and nobody else uses it.
    unsafe {
        change(request, |request| {
            request.own.steps = observer(on_step, user);
            Ok(())
        })
    }
}
