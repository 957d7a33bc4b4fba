//! Batches: many simultaneous requests, whose complete replies are returned in input order or as
//! they complete.
//!
//! A thread of haul makes the transfers. Callbacks run in the thread that requests replies. The
//! memory for finished bodies is bounded: if the program does not fetch replies, haul stops reading
//! from the servers.
//!
//! ```
//! use haul_c::batch::{haul_batch_free, haul_batch_new, haul_batch_next, haul_batch_pending};
//! use haul_c::client::haul_client_new;
//! use haul_c::error::haul_status;
//! let mut client = haul_client_new().unwrap();
//! let mut response = std::ptr::null_mut();
//! // SAFETY: the client and the batch live, and the place is ours.
//! unsafe {
//!     let mut batch = haul_batch_new(&mut *client).unwrap();
//!     assert_eq!(haul_batch_pending(&mut *batch), 0);
//!     assert_eq!(haul_batch_next(&mut *batch, -1, &mut response, std::ptr::null_mut()), haul_status::Ok);
//!     assert!(response.is_null());
//!     haul_batch_free(Some(batch));
//! }
//! ```

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

use haul::batch::{Batch, BatchOptions, BatchOrder, FinishedRequest};
use haul::fleet::{HostStartRate, StartRate};
use haul::request::{StallLimit, TotalRateLimit};
use haul::system::fd::{AsRawFd, OwnedFd};

use crate::c_arguments;
use crate::callbacks::UserPointer;
use crate::client::{EngineWithOptions, haul_client};
use crate::error::{CallFailure, catch_panic, catch_panic_new, catch_panic_or, haul_status};
use crate::malloc_body::MallocBody;
use crate::reply_destination::StoredBody;
use crate::request::haul_request;
use crate::response::haul_response;

/// The order in which a batch returns its replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum haul_order {
    /// In the order in which the requests were added, the default.
    Input = 0,
    /// In the order in which the replies are complete.
    Completion = 1,
}

/// A set of requests that are sent concurrently. Only one thread may use it at a time.
pub struct haul_batch {
    shared: EngineWithOptions,
    options: RefCell<BatchOptions>,
    /// The engine's batch, created with the first request. Its settings cannot be changed after
    /// that.
    batch: OnceCell<Batch>,
    /// For each request whose response was not returned yet, by its id in the engine's batch: the
    /// pointer given to haul_batch_add, and true if haul decodes the body.
    users: RefCell<HashMap<u64, (UserPointer, bool)>>,
    fd: OnceCell<OwnedFd>,
}

/// Called with each finished request of a batch. `user` is the pointer given to haul_batch_add. You
/// have to free `response`; haul_response_error says whether the request failed. The function may
/// add requests. If it returns a value other than 0, haul_batch_run stops with
/// HAUL_STATUS_INTERRUPTED, and haul_batch_next can return the remaining requests.
pub type haul_done_fn =
    Option<unsafe extern "C" fn(context: *mut c_void, user: *mut c_void, response: *mut haul_response) -> c_int>;

impl haul_batch {
    fn lock_batch(&self) -> &Batch {
        self.batch.get_or_init(|| self.shared.engine.batch(self.options.borrow().clone()))
    }

    fn set(&self, change: impl FnOnce(&mut BatchOptions)) -> Result<(), CallFailure> {
        if self.batch.get().is_some() {
            return Err(CallFailure::setup("the batch has begun already"));
        }
        change(&mut self.options.borrow_mut());
        Ok(())
    }

    fn pending(&self) -> usize {
        self.batch.get().map_or(0, Batch::outstanding)
    }

    fn next(&self, deadline: Option<Instant>) -> Result<Option<(UserPointer, Box<haul_response>)>, CallFailure> {
        let Some(batch) = self.batch.get() else { return Ok(None) };
        Ok(batch.next_by(deadline)?.map(|finished| self.to_response(finished)))
    }

    fn to_response(&self, finished: FinishedRequest) -> (UserPointer, Box<haul_response>) {
        let user = self.users.borrow_mut().remove(&finished.id());
        let (user, decodes) = user.unwrap_or((UserPointer(std::ptr::null_mut()), false));
        let (outcome, body) = finished.into_parts::<MallocBody>();
        let mut response = Box::<haul_response>::default();
        let body = body.unwrap_or_default();
        response.body = StoredBody { len: body.as_bytes().len() as u64, malloc: Some(body), ..StoredBody::default() };
        if let Err(fault) = response.store_outcome(outcome, decodes) {
            response.fail(fault);
        }
        (user, response)
    }
}

/// Creates a batch, which sends many requests over the connections of `client`. The batch keeps the
/// current settings of the client.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_batch_new(client: *mut haul_client) -> Option<Box<haul_batch>> {
    catch_panic_new(|| {
        // SAFETY: the header's contract: what is not NULL lives, and nobody else uses the batch. So
        // in all functions here.
        let shared = unsafe { c_arguments::required_object(client, "client") }?.shared();
        let options = BatchOptions { interrupt: shared.options.interrupt.clone(), ..BatchOptions::default() };
        Ok(Box::new(haul_batch {
            shared,
            options: RefCell::new(options),
            batch: OnceCell::new(),
            users: RefCell::default(),
            fd: OnceCell::new(),
        }))
    })
}

/// Frees a batch and cancels its requests in progress.
#[unsafe(no_mangle)]
pub extern "C" fn haul_batch_free(batch: Option<Box<haul_batch>>) {
    catch_panic_or((), || drop(batch));
}

/// Sets the maximum number of requests in progress: `all` in the whole batch (default 64),
/// `per_host` to one host. 0 means the default. The default for a host is between 6 and 50,
/// depending on how many the host serves well. Like all settings of a batch, these numbers must be
/// set before the first request is added.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_batch_set_parallel(batch: *mut haul_batch, all: usize, per_host: usize) -> haul_status {
    catch_panic(|| {
        let default = BatchOptions::default();
        // SAFETY: the header's contract.
        unsafe { c_arguments::required_object(batch, "batch") }?.set(|options| {
            options.max_parallel = if all > 0 { all } else { default.max_parallel };
            options.per_host = Some(per_host).filter(|&per_host| per_host > 0);
        })
    })
}

/// Sets the order in which replies are returned; `order` is a haul_order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_batch_set_order(batch: *mut haul_batch, order: c_int) -> haul_status {
    catch_panic(|| {
        let order = match order {
            n if n == haul_order::Input as c_int => BatchOrder::Input,
            n if n == haul_order::Completion as c_int => BatchOrder::Completion,
            _ => return Err(CallFailure::setup("order is no haul_order")),
        };
        // SAFETY: the header's contract.
        unsafe { c_arguments::required_object(batch, "batch") }?.set(|options| options.order = order)
    })
}

/// Sets the maximum number of bytes of bodies in memory. The bodies of requests in progress and of
/// finished requests that were not returned yet count. When the maximum is reached, haul stops
/// reading from the servers. While no reply is ready to be returned, haul keeps receiving one body,
/// even beyond the maximum. Default 64 MiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_batch_set_memory(batch: *mut haul_batch, bytes: usize) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        unsafe { c_arguments::required_object(batch, "batch") }?.set(|options| options.memory = bytes as u64)
    })
}

/// Sets the maximum number of requests that are started per second: `all` in the whole batch,
/// `per_host` to one host. 0, the default, means no limit. A retry counts as a request, a redirect
/// does not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_batch_set_rate(batch: *mut haul_batch, all: f64, per_host: f64) -> haul_status {
    catch_panic(|| {
        let (all, per_host) = (interval(all)?, interval(per_host)?);
        // SAFETY: the header's contract.
        unsafe { c_arguments::required_object(batch, "batch") }?.set(|options| {
            options.start_rate = all.map(StartRate::new);
            options.host_start_rate = per_host.map(HostStartRate::new);
        })
    })
}

/// Returns the interval between two requests at this rate; `None` for a rate of 0. Fails for a
/// negative rate and for NaN.
fn interval(per_second: f64) -> Result<Option<Duration>, CallFailure> {
    if per_second == 0.0 {
        return Ok(None);
    }
    let interval = Some(per_second).filter(|rate| *rate > 0.0).map(|rate| Duration::try_from_secs_f64(1.0 / rate));
    interval.and_then(Result::ok).map(Some).ok_or_else(|| CallFailure::setup("a rate is a positive number"))
}

/// Limits the body bytes per second in each direction, over all requests of the batch. 0, the
/// default, means no limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_batch_set_limit_rate(batch: *mut haul_batch, bytes_per_second: u64) -> haul_status {
    catch_panic(|| {
        let total = (bytes_per_second > 0).then(|| TotalRateLimit::new(bytes_per_second));
        // SAFETY: the header's contract.
        unsafe { c_arguments::required_object(batch, "batch") }?.set(|options| options.limit_rate_total = total)
    })
}

/// Sets the time in milliseconds after which a request fails with HAUL_STATUS_TIMEOUT because no
/// byte was sent or received. 0, the default, means no limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_batch_set_stall_time(batch: *mut haul_batch, ms: u64) -> haul_status {
    catch_panic(|| {
        let stall = (ms > 0).then(|| StallLimit { time: Duration::from_millis(ms), awaits_head: true });
        // SAFETY: the header's contract.
        unsafe { c_arguments::required_object(batch, "batch") }?.set(|options| options.stall = stall)
    })
}

/// Adds a request to the batch, and starts it at once if the limits allow this. Never waits. The
/// request is copied, so it may be changed or freed afterwards. haul_batch_next returns `user` with
/// the response.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_batch_add(
    batch: *mut haul_batch,
    request: *const haul_request,
    user: *mut c_void,
) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let (batch, request) = unsafe {
            (c_arguments::required_object(batch, "batch")?, c_arguments::required_object(request, "request")?)
        };
        let request = request.prepare_owned(&batch.shared)?;
        let decodes = request.options().decode;
        let id = batch.lock_batch().submit_into(request, Box::new(MallocBody::default()));
        batch.users.borrow_mut().insert(id, (UserPointer(user), decodes));
        Ok(())
    })
}

/// Takes the next finished request, waiting at most `timeout_ms` milliseconds for it: -1 waits
/// without a limit, 0 does not wait. `response` receives a new response, which the caller frees;
/// haul_response_error says whether the request failed. `response` is NULL if no request finished
/// in time, or if all were returned before. `user` (may be NULL) receives the pointer given to
/// haul_batch_add.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_batch_next(
    batch: *mut haul_batch,
    timeout_ms: i64,
    response: *mut *mut haul_response,
    user: *mut *mut c_void,
) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let (batch, place, user) =
            unsafe { (c_arguments::required_object(batch, "batch")?, response.as_mut(), user.as_mut()) };
        let place = place.ok_or_else(|| CallFailure::setup("response is NULL"))?;
        *place = std::ptr::null_mut();
        let deadline = u64::try_from(timeout_ms).ok();
        let deadline = deadline.and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
        if let Some((given, made)) = batch.next(deadline)? {
            if let Some(user) = user {
                *user = given.0;
            }
            *place = Box::into_raw(made);
        }
        Ok(())
    })
}

/// Waits for all requests of the batch and calls `done` for each, in the calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_batch_run(
    batch: *mut haul_batch,
    done: haul_done_fn,
    context: *mut c_void,
) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let batch = unsafe { c_arguments::required_object(batch, "batch") }?;
        let done = done.ok_or_else(|| CallFailure::setup("done is NULL"))?;
        while let Some((user, response)) = batch.next(None)? {
            // SAFETY: a function of the caller's, with its own pointers; the response is its own
            // from now on.
            if unsafe { done(context, user.0, Box::into_raw(response)) } != 0 {
                return Err(CallFailure::new(haul_status::Interrupted, "the callback for replies ended the batch"));
            }
        }
        Ok(())
    })
}

/// Returns the number of requests that were added and not returned yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_batch_pending(batch: *const haul_batch) -> usize {
    // SAFETY: the header's contract.
    catch_panic_or(0, || unsafe { batch.as_ref() }.map_or(0, haul_batch::pending))
}

/// Returns a descriptor for poll, epoll and event loops; -1 if the system has no descriptors left.
/// It is readable while haul_batch_next has something to return. Do not read from it or close it:
/// it belongs to the batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_batch_fd(batch: *const haul_batch) -> c_int {
    let mut fd = -1;
    catch_panic(|| {
        // SAFETY: the header's contract.
        let batch = unsafe { c_arguments::required_object(batch, "batch") }?;
        fd = match batch.fd.get() {
            Some(made) => number(made),
            None => {
                let made =
                    batch.lock_batch().fd().map_err(|error| CallFailure::setup(format!("no descriptor: {error}")))?;
                number(batch.fd.get_or_init(|| made))
            }
        };
        Ok(())
    });
    fd
}

/// Returns the number of a descriptor.
#[cfg(unix)]
fn number(descriptor: &OwnedFd) -> c_int {
    descriptor.as_raw_fd()
}

/// Converts a socket to a C `int`. Windows uses only 32 bits of a socket handle.
#[cfg(windows)]
fn number(socket: &OwnedFd) -> c_int {
    socket.as_raw_fd() as c_int
}
