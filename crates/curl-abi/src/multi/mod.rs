//! `curl_multi_*`: many transfers at once, driven by the program.
//!
//! ```text
//!  the engine's thread                          a thread of the program
//!  sockets ─▶ QueueSink, QueueingObserver ─▶ TransferEventQueue ─▶ curl_multi_perform ─▶ RunningTransfer ─▶ callbacks
//!                                └─▶ WakeupDescriptor (a descriptor) ─▶ curl_multi_poll, select, epoll
//! ```
//!
//! A thread of the engine does the network I/O. It never calls a function of the program and never
//! reads the program's memory. It puts heads, bodies and other events into a queue for each
//! transfer, and notifies the program by a descriptor. The program's thread takes the events out of
//! the queues and calls the callbacks, in libcurl's order. A full queue stops the engine's reads.

mod engine;
mod renewal_after_fork;
mod socket_callbacks;
mod state;
mod transfer;
mod transfer_event_queue;
mod upload_queue;
pub mod wait;
mod wakeup_descriptor;

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};

pub(crate) use state::remove;

use crate::c_strings;
use crate::codes::{
    CURLM_BAD_EASY_HANDLE, CURLM_BAD_FUNCTION_ARGUMENT, CURLM_BAD_HANDLE, CURLM_INTERNAL_ERROR, CURLM_OK,
    CURLM_RECURSIVE_API_CALL, CURLM_UNKNOWN_OPTION, CURLMcode,
};
use crate::easy::EASY;
use crate::handle_table::{HandleTable, OpaqueHandle, UserPointer, catch_panic, lock};
use state::{CURLMsg, Multi};

/// The table of live multi handles.
static MULTIS: HandleTable<Multi> = HandleTable::new();

const OPTION_SOCKETFUNCTION: c_int = 20_001;
const OPTION_SOCKETDATA: c_int = 10_002;
const OPTION_PIPELINING: c_int = 3;
const OPTION_TIMERFUNCTION: c_int = 20_004;
const OPTION_TIMERDATA: c_int = 10_005;
const OPTION_MAXCONNECTS: c_int = 6;
const OPTION_MAX_HOST_CONNECTIONS: c_int = 7;
const OPTION_MAX_PIPELINE_LENGTH: c_int = 8;
const OPTION_CONTENT_LENGTH_PENALTY_SIZE: c_int = 30_009;
const OPTION_CHUNK_LENGTH_PENALTY_SIZE: c_int = 30_010;
const OPTION_PIPELINING_SITE_BL: c_int = 10_011;
const OPTION_PIPELINING_SERVER_BL: c_int = 10_012;
const OPTION_MAX_TOTAL_CONNECTIONS: c_int = 13;
const OPTION_PUSHFUNCTION: c_int = 20_014;
const OPTION_PUSHDATA: c_int = 10_015;
const OPTION_MAX_CONCURRENT_STREAMS: c_int = 16;

/// Calls `body` with the object of a multi handle, and returns its result. Returns an error for a
/// handle that is not live.
fn with_multi(multi: OpaqueHandle, body: impl FnOnce(&Multi) -> CURLMcode) -> CURLMcode {
    catch_panic(CURLM_INTERNAL_ERROR, || match MULTIS.get(multi) {
        Some(multi) => {
            multi.renew_after_fork();
            body(&multi)
        }
        None => CURLM_BAD_HANDLE,
    })
}

/// Makes a multi handle. Returns NULL if there are no descriptors left.
#[unsafe(no_mangle)]
pub extern "C" fn curl_multi_init() -> OpaqueHandle {
    catch_panic(std::ptr::null_mut(), || {
        let Some(parts) = state::new_notifiers() else { return std::ptr::null_mut() };
        MULTIS.insert(|number| Multi::new(number, parts))
    })
}

/// Frees a multi handle, and ends its transfers. Its easy handles are not freed.
#[unsafe(no_mangle)]
pub extern "C" fn curl_multi_cleanup(multi: OpaqueHandle) -> CURLMcode {
    catch_panic(CURLM_INTERNAL_ERROR, || match MULTIS.get(multi) {
        None => CURLM_BAD_HANDLE,
        Some(object) if object.is_busy() => CURLM_RECURSIVE_API_CALL,
        Some(object) => {
            object.renew_after_fork();
            object.clear();
            MULTIS.remove(multi);
            CURLM_OK
        }
    })
}

/// Adds an easy handle. Its transfer begins at the next `curl_multi_perform`.
#[unsafe(no_mangle)]
pub extern "C" fn curl_multi_add_handle(multi: OpaqueHandle, easy: OpaqueHandle) -> CURLMcode {
    with_multi(multi, |multi| match EASY.get(easy) {
        Some(easy) => multi.add(easy),
        None => CURLM_BAD_EASY_HANDLE,
    })
}

/// Removes an easy handle from a multi handle, and ends its transfer.
#[unsafe(no_mangle)]
pub extern "C" fn curl_multi_remove_handle(multi: OpaqueHandle, easy: OpaqueHandle) -> CURLMcode {
    with_multi(multi, |multi| match EASY.get(easy) {
        Some(easy) => multi.remove(&easy),
        None => CURLM_BAD_EASY_HANDLE,
    })
}

/// Begins transfers, and calls the callbacks for the data that have arrived. `*running` receives
/// the number of unfinished transfers unless `running` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_multi_perform(multi: OpaqueHandle, running: *mut c_int) -> CURLMcode {
    with_multi(multi, |multi| {
        let (code, count) = multi.perform();
        // SAFETY: libcurl's contract: NULL or writable.
        unsafe { c_strings::write_unless_null(running, count) };
        code
    })
}

/// Does the work of `curl_multi_perform`, for a program that watches the descriptors itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_multi_socket_action(
    multi: OpaqueHandle,
    _socket: c_int,
    _events: c_int,
    running: *mut c_int,
) -> CURLMcode {
    // SAFETY: the same contract. What has arrived is in the queues, whatever descriptor told so.
    unsafe { curl_multi_perform(multi, running) }
}

/// Does the work of `curl_multi_perform`. An older function for the same purpose.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_multi_socket(multi: OpaqueHandle, _socket: c_int, running: *mut c_int) -> CURLMcode {
    // SAFETY: the same contract.
    unsafe { curl_multi_perform(multi, running) }
}

/// Does the work of `curl_multi_perform`. An older function for the same purpose.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_multi_socket_all(multi: OpaqueHandle, running: *mut c_int) -> CURLMcode {
    // SAFETY: the same contract.
    unsafe { curl_multi_perform(multi, running) }
}

/// Returns the next message about a finished transfer; NULL if there is none. `*left` receives the
/// number of remaining messages unless `left` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_multi_info_read(multi: OpaqueHandle, left: *mut c_int) -> *mut CURLMsg {
    catch_panic(std::ptr::null_mut(), || {
        // SAFETY: libcurl's contract: NULL or writable.
        unsafe { c_strings::write_unless_null(left, 0) };
        let Some(multi) = MULTIS.get(multi) else { return std::ptr::null_mut() };
        let (message, count) = multi.next_message();
        // SAFETY: as above.
        unsafe { c_strings::write_unless_null(left, count) };
        message
    })
}

/// Stores the time in milliseconds after which `curl_multi_perform` should be called even without
/// an event; -1 if no call is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_multi_timeout(multi: OpaqueHandle, place: *mut c_long) -> CURLMcode {
    with_multi(multi, |multi| {
        // SAFETY: libcurl's contract: NULL or writable.
        if unsafe { c_strings::write_unless_null(place, multi.timeout()) } {
            CURLM_OK
        } else {
            CURLM_BAD_FUNCTION_ARGUMENT
        }
    })
}

/// Associates a pointer of the C program with a descriptor. The socket callback receives the
/// pointer.
#[unsafe(no_mangle)]
pub extern "C" fn curl_multi_assign(multi: OpaqueHandle, socket: c_int, pointer: *mut c_void) -> CURLMcode {
    with_multi(multi, |multi| multi.assign(socket, UserPointer(pointer)))
}

/// Sets an option of a multi handle whose value is a number.
#[unsafe(no_mangle)]
pub extern "C" fn haul_curl_multi_setopt_number(multi: OpaqueHandle, option: c_int, value: i64) -> CURLMcode {
    with_multi(multi, |multi| {
        let most = usize::try_from(value).ok().filter(|most| *most > 0);
        multi.change_settings(|settings| match option {
            OPTION_MAXCONNECTS => settings.max_idle = most,
            OPTION_MAX_HOST_CONNECTIONS => settings.max_per_host = most,
            OPTION_MAX_TOTAL_CONNECTIONS => settings.max_parallel = most,
            _ => {}
        });
        match option {
            OPTION_MAXCONNECTS
            | OPTION_MAX_HOST_CONNECTIONS
            | OPTION_MAX_TOTAL_CONNECTIONS
            | OPTION_PIPELINING
            | OPTION_MAX_PIPELINE_LENGTH
            | OPTION_CONTENT_LENGTH_PENALTY_SIZE
            | OPTION_CHUNK_LENGTH_PENALTY_SIZE
            | OPTION_MAX_CONCURRENT_STREAMS => CURLM_OK,
            _ => CURLM_UNKNOWN_OPTION,
        }
    })
}

/// Sets an option of a multi handle whose value is a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_curl_multi_setopt_pointer(
    multi: OpaqueHandle,
    option: c_int,
    value: *mut c_void,
) -> CURLMcode {
    with_multi(multi, |multi| {
        let mut code = CURLM_OK;
        multi.change_settings(|settings| match option {
            OPTION_SOCKETFUNCTION => {
                // SAFETY: libcurl's contract: NULL or a function of this type.
                settings.socket = unsafe { std::mem::transmute::<*mut c_void, state::SocketFunction>(value) };
            }
            OPTION_TIMERFUNCTION => {
                // SAFETY: as above.
                settings.timer = unsafe { std::mem::transmute::<*mut c_void, state::TimerFunction>(value) };
            }
            OPTION_SOCKETDATA => settings.socket_data = UserPointer(value),
            OPTION_TIMERDATA => settings.timer_data = UserPointer(value),
            // Servers do not push, and HTTP/1 requests are not pipelined.
            OPTION_PIPELINING_SITE_BL | OPTION_PIPELINING_SERVER_BL | OPTION_PUSHFUNCTION | OPTION_PUSHDATA => {}
            _ => code = CURLM_UNKNOWN_OPTION,
        });
        code
    })
}

/// Returns the easy handles in an array that ends with NULL. The C program frees the array.
#[unsafe(no_mangle)]
pub extern "C" fn curl_multi_get_handles(multi: OpaqueHandle) -> *mut OpaqueHandle {
    catch_panic(std::ptr::null_mut(), || {
        let Some(multi) = MULTIS.get(multi) else { return std::ptr::null_mut() };
        let numbers = multi.handles();
        // SAFETY: plain allocation.
        let array = unsafe { libc::malloc((numbers.len() + 1) * size_of::<OpaqueHandle>()) }.cast::<OpaqueHandle>();
        if !array.is_null() {
            for (at, number) in numbers.iter().copied().chain([0]).enumerate() {
                // SAFETY: the array has room for all numbers and NULL.
                unsafe { array.add(at).write(std::ptr::without_provenance_mut(number)) };
            }
        }
        array
    })
}

/// Returns NULL: HTTP/2 server push is not supported, so there are no pushed fields.
#[unsafe(no_mangle)]
pub extern "C" fn curl_pushheader_byname(_headers: *mut c_void, _name: *const c_char) -> *mut c_char {
    std::ptr::null_mut()
}

/// Returns NULL: HTTP/2 server push is not supported, so there are no pushed fields.
#[unsafe(no_mangle)]
pub extern "C" fn curl_pushheader_bynum(_headers: *mut c_void, _number: usize) -> *mut c_char {
    std::ptr::null_mut()
}

/// The integer type for the number of a program's own descriptors.
pub(crate) type DescriptorCount = c_uint;

/// Locks the state of a multi handle for the submodules.
pub(crate) fn locked(multi: &Multi) -> std::sync::MutexGuard<'_, state::MultiState> {
    lock(&multi.state)
}
