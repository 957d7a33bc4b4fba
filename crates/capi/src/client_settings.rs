//! The settings of a client. A setting applies to requests that begin after it was set.
//!
//! ```
//! use haul_c::client::haul_client_new;
//! use haul_c::error::haul_status;
//! use haul_c::client_settings::haul_client_set_header;
//! let mut client = haul_client_new().unwrap();
//! // SAFETY: the client lives, and the strings end with NUL.
//! let status = unsafe { haul_client_set_header(&mut *client, c"X-Key".as_ptr(), c"a\r\nb".as_ptr()) };
//! assert_eq!(status, haul_status::Setup);
//! ```

use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

use haul::RequestOptions;
use haul::interrupt_callback::InterruptCallback;
use haul::net::dns::AddressFamily;

use crate::auth_arguments::auth;
use crate::c_arguments;
use crate::callbacks::{UserPointer, haul_interrupt_fn};
use crate::client::haul_client;
use crate::error::{CallFailure, catch_panic, haul_status};
use crate::jar::haul_jar;

/// The default time limit for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(300);

/// Changes one setting of a client by calling `change` with its options.
///
/// # Safety
/// `client` is NULL or valid.
pub(crate) unsafe fn change_options(
    client: *mut haul_client,
    change: impl FnOnce(&mut RequestOptions) -> Result<(), CallFailure>,
) -> haul_status {
    // SAFETY: the caller guarantees it.
    catch_panic(|| unsafe { c_arguments::required_object(client, "client") }?.change(change))
}

/// Converts a time limit in milliseconds. 0 becomes `None`, no limit.
pub(crate) fn time_limit(ms: u64) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms))
}

/// Sets the cookie jar. The client keeps its own reference to it, so you may free yours. With NULL,
/// the default, cookies are not stored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_jar(client: *mut haul_client, jar: *mut haul_jar) -> haul_status {
    // SAFETY: the header's contract: what is not NULL lives, and strings end with NUL. So in all
    // functions here.
    unsafe {
        change_options(client, |options| {
            options.jar = jar.as_ref().map(|jar| jar.jar.clone());
            Ok(())
        })
    }
}

/// Sets the User-Agent; NULL sends none. Default "haul/VERSION".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_user_agent(
    client: *mut haul_client,
    user_agent: *const c_char,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            let value = c_arguments::optional_bytes(user_agent);
            c_arguments::check_field("User-Agent", value.unwrap_or_default())?;
            options.user_agent = value.map(Into::into);
            Ok(())
        })
    }
}

/// Sets a header for every request, replacing any header of that name. A NULL value removes the
/// header, even if haul sends it by default (Accept).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_header(
    client: *mut haul_client,
    name: *const c_char,
    value: *const c_char,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            let name = c_arguments::required_text(name, "name")?;
            let value = c_arguments::optional_bytes(value);
            c_arguments::check_field(name, value.unwrap_or_default())?;
            options.fields.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
            options.without.retain(|other| !other.eq_ignore_ascii_case(name));
            match value {
                Some(value) => options.fields.push((name.to_owned(), value.to_vec())),
                None => options.without.push(name.to_owned()),
            }
            Ok(())
        })
    }
}

/// Sets the time limit for each request, in milliseconds; a retry starts a new one. 0, the default,
/// means no limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_timeout(client: *mut haul_client, ms: u64) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.max_time = time_limit(ms);
            Ok(())
        })
    }
}

/// Sets the time limit for connecting, in milliseconds. 0 means the default, 300,000.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_connect_timeout(client: *mut haul_client, ms: u64) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.connect.timeout = time_limit(ms).unwrap_or(CONNECT_TIMEOUT);
            Ok(())
        })
    }
}

/// Sets the maximum time without data from the server, before and during a reply, in milliseconds.
/// 0, the default, means no limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_idle_timeout(client: *mut haul_client, ms: u64) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.read_timeout = time_limit(ms);
            Ok(())
        })
    }
}

/// Sets the maximum time in milliseconds that a request of a batch waits before it begins. The
/// request may wait for a free connection, for a rate limit, or for a host that asked for a pause.
/// After that time, the request fails with HAUL_STATUS_TIMEOUT. 0, the default, means no limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_pool_timeout(client: *mut haul_client, ms: u64) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.pool_timeout = time_limit(ms);
            Ok(())
        })
    }
}

/// Sets the maximum number of redirects to follow. With 0, none is followed, and the redirecting
/// reply is returned. Default 20.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_max_redirects(client: *mut haul_client, max: u32) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            set_redirects(options, max);
            Ok(())
        })
    }
}

pub(crate) fn set_redirects(options: &mut RequestOptions, max: u32) {
    options.redirects.follow = max > 0;
    options.redirects.max = max;
}

/// Returns `true` if the maximum number of redirects is already `max`, so that [`set_redirects`]
/// would change nothing.
pub(crate) fn has_redirects(options: &RequestOptions, max: u32) -> bool {
    options.redirects.follow == (max > 0) && options.redirects.max == max
}

/// Sets the maximum number of retries after a transient failure, with growing pauses. Default 0.
/// Such a failure is a broken connection, a time limit, or a status of 408, 429, 500, 502, 503,
/// 504, 522 or 524. Only requests with idempotent methods are retried. Independent of this, an idle
/// connection that turns out to be closed is replaced once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_retries(client: *mut haul_client, max: u32) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.retry.max = max;
            Ok(())
        })
    }
}

/// Sets the maximum size of a reply's body in bytes, as announced, received or decoded; a larger
/// body fails with HAUL_STATUS_TOO_LARGE. 0, the default, means no limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_max_size(client: *mut haul_client, bytes: u64) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            set_max_size(options, bytes);
            Ok(())
        })
    }
}

pub(crate) fn set_max_size(options: &mut RequestOptions, bytes: u64) {
    options.max_size = (bytes > 0).then_some(bytes);
    options.decode_limits.max_output = options.max_size;
}

/// Returns `true` if the maximum body size is already `bytes`, so that [`set_max_size`] would
/// change nothing.
pub(crate) fn has_max_size(options: &RequestOptions, bytes: u64) -> bool {
    let size = (bytes > 0).then_some(bytes);
    options.max_size == size && options.decode_limits.max_output == size
}

/// Requests the content codings gzip, br, zstd and deflate, and decodes them. Default off: bodies
/// are delivered as sent. A request with a Range header does not request a coding. A part of coded
/// content (206), and content in a coding that haul does not know, are delivered as sent (see
/// `decoded` in haul_reply).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_decode(client: *mut haul_client, on: bool) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.decode = on;
            Ok(())
        })
    }
}

/// Sets limits for decoding bodies. A body that exceeds either limit fails with
/// HAUL_STATUS_TOO_LARGE. `max_bytes` is the maximum decoded size of one body in bytes; 0, the
/// default, means no limit. haul_client_set_max_size sets it, too; the later call counts.
/// `max_ratio` is the maximum number of decoded bytes for each received byte, once more than 8 MiB
/// have been decoded; 0 means no limit. Default 750: a log that repeats one line reaches 520,
/// decompression bombs reach 1,000.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_decode_limits(
    client: *mut haul_client,
    max_bytes: u64,
    max_ratio: u64,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.decode_limits.max_output = (max_bytes > 0).then_some(max_bytes);
            options.decode_limits.max_ratio = max_ratio;
            Ok(())
        })
    }
}

/// Sets the maximum time in milliseconds to wait for a 100 response before the request's body is
/// sent (Expect: 100-continue). Default 1,000. haul waits only before a body of more than 1 MiB or
/// of unknown length. With 0, the Expect header is not sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_expect_timeout(client: *mut haul_client, ms: u64) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.expect_timeout = Duration::from_millis(ms);
            Ok(())
        })
    }
}

/// Sets whether the paths in the URLs of haul_call are sent as given: dot segments are then not
/// removed (RFC 3986 section 5.2.4). Default off. For a haul_request use haul_request_new_raw.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_raw_path(client: *mut haul_client, on: bool) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.path_as_is = on;
            Ok(())
        })
    }
}

/// Sets whether a reply that does not begin with `HTTP/` is accepted as a body without a head
/// (HTTP/0.9): status 200, version 10, no headers. Default off, because the reply of a server of
/// any other protocol would be accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_headless(client: *mut haul_client, on: bool) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.deviations.http09 = on;
            Ok(())
        })
    }
}

/// Sets whether connections are kept for later requests. Default on. If off, each request has a
/// connection of its own, which is closed afterwards; over HTTP/1, it sends Connection: close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_keep_alive(client: *mut haul_client, on: bool) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("connection"));
            if !on {
                options.fields.push(("Connection".to_owned(), b"close".to_vec()));
            }
            Ok(())
        })
    }
}

/// Sets the address family to use: 4, 6, or 0 for both, the default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_ip_version(client: *mut haul_client, version: c_int) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.family = match version {
                0 => AddressFamily::Any,
                4 => AddressFamily::V4,
                6 => AddressFamily::V6,
                _ => return Err(CallFailure::setup("the IP version is neither 4 nor 6 nor 0")),
            };
            Ok(())
        })
    }
}

/// Sets the credentials. `kind` is a haul_auth. `secret` is the password, or the token for
/// HAUL_AUTH_BEARER. They are sent only to the origin of the request's URL, not to other origins
/// after a redirect. A user in the URL takes precedence.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_auth(
    client: *mut haul_client,
    kind: c_int,
    user: *const c_char,
    secret: *const c_char,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.auth = auth(kind, user, secret)?;
            Ok(())
        })
    }
}

/// Sets a function that haul calls while it waits, to decide whether to continue: whenever a signal
/// interrupts a system call, and about every 50 ms. To end any wait (alarm, Ctrl-C), let a signal
/// handler set a flag, and let this function return the flag. The function is called in the waiting
/// thread. NULL, the default, means no function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_interrupt(
    client: *mut haul_client,
    ask: haul_interrupt_fn,
    user: *mut c_void,
) -> haul_status {
    let user = UserPointer(user);
    let hook = ask.map(|ask| {
        InterruptCallback::new(move || {
            let user = user;
            // SAFETY: a function of the caller's, with its own pointer.
            unsafe { ask(user.0) != 0 }
        })
    });
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.interrupt = hook;
            Ok(())
        })
    }
}
