//! Requests that wait for the whole reply: [`haul_client_perform`] with objects, and
//! [`haul_client_call`] with plain structs, which costs less.
//!
//! ```
//! use haul_c::blocking_request::{haul_call, haul_client_call};
//! use haul_c::client::haul_client_new;
//! use haul_c::error::haul_status;
//! use haul_c::response::haul_response_new;
//! use haul_c::c_arguments::haul_slice;
//! let (mut client, mut place) = (haul_client_new().unwrap(), haul_response_new().unwrap());
//! let call = haul_call { url: haul_slice::from_bytes(b"http://h.example:x/"), ..haul_call::default() };
//! // SAFETY: all of them live, and the call's memory does.
//! let status = unsafe { haul_client_call(&mut *client, &call, &mut *place, std::ptr::null_mut()) };
//! assert_eq!(status, haul_status::Url);
//! ```

use std::ffi::c_void;

use haul::request::{Request, RequestOverrides};

use crate::c_arguments::{self, haul_header, haul_slice};
use crate::callbacks::{
    UserPointer, haul_body_fn, haul_head_fn, haul_read_fn, haul_reserve_fn, haul_rewind_fn, haul_step_fn,
    haul_trailers_fn,
};
use crate::client::{EngineWithOptions, haul_client};
use crate::client_settings::time_limit;
use crate::error::{CallFailure, catch_panic, haul_status};
use crate::reply_destination::ReplyCallbacks;
use crate::request::{PerRequestSettings, haul_request, parse_method, url_failure};
use crate::request_body::{BorrowedBytes, RequestBodyCallback};
use crate::request_step_callback;
use crate::request_trailers;
use crate::response::{haul_reply, haul_response};
use crate::streaming::{receive_reply, with_new_response};

/// Flag of haul_call: requests gzip and other codings, and decodes them, regardless of the client's
/// setting.
pub const HAUL_CALL_DECODE: u32 = 1;
/// Flag of haul_call: sends the path of the URL as given, with its "." and ".." segments.
pub const HAUL_CALL_RAW_PATH: u32 = 2;
/// Flag of haul_call: neither sends nor stores cookies.
pub const HAUL_CALL_NO_JAR: u32 = 4;
/// Flag of haul_call: closes the connection afterwards. Over HTTP/1, announces this to the server
/// (Connection: close).
pub const HAUL_CALL_CLOSE: u32 = 8;
/// Flag of haul_call: sends an HTTP/1.0 request. A body of unknown length cannot be sent.
pub const HAUL_CALL_HTTP_1_0: u32 = 16;

/// A complete request in plain memory, which haul reads only during the call. Initialise it with
/// HAUL_CALL_INIT.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct haul_call {
    /// sizeof(haul_call): later versions may add members at the end.
    pub size: usize,
    /// The request method; empty means GET.
    pub method: haul_slice,
    /// The URL to request: http or https.
    pub url: haul_slice,
    /// The header fields of this request. Several fields with the same name are all sent. They
    /// replace the fields of that name that the client or haul would send. A field whose value has
    /// `data` NULL is not sent: it only removes the fields of that name that the client or haul
    /// would send.
    pub headers: *const haul_header,
    /// The number of elements in `headers`.
    pub header_count: usize,
    /// The body. If `data` is NULL, there is no body; if only `len` is 0, the body is empty. A body
    /// of up to 64 KiB is sent together with the head.
    pub body: haul_slice,
    /// A function that supplies the request's body. If `read` is not NULL, `body` is ignored.
    pub read: haul_read_fn,
    /// Called if the request's body has to be sent again. If `rewind` is NULL, the body cannot be
    /// sent again.
    pub rewind: haul_rewind_fn,
    /// The user pointer that is passed to `read` and `rewind`.
    pub read_user: *mut c_void,
    /// The number of bytes that `read` supplies. -1 means an unknown number; the body is then sent
    /// in chunks.
    pub read_length: i64,
    /// Called with the head of the reply, before the body; may be NULL.
    pub on_head: haul_head_fn,
    /// Called to get the memory that receives the reply's body; may be NULL.
    pub reserve: haul_reserve_fn,
    /// Called with each piece of the reply's body; may be NULL. If `reserve` is NULL as well, haul
    /// stores the body in memory that belongs to `response`.
    pub on_body: haul_body_fn,
    /// The user pointer that is passed to `on_head`, `reserve` and `on_body`.
    pub user: *mut c_void,
    /// The time limit for the whole request, in milliseconds; 0 for the client's setting.
    pub timeout_ms: u64,
    /// The maximum size of the reply's body in bytes; 0 for the client's setting.
    pub max_size: u64,
    /// The maximum number of redirects to follow; 0 for none, -1 for the client's setting.
    pub max_redirects: i32,
    /// A combination of the HAUL_CALL_... flags; 0 for none.
    pub flags: u32,
    /// Supplies trailer fields that follow the body (RFC 9110 section 6.5). The body is then sent
    /// in chunks, and `read_length` is ignored. May be NULL.
    pub trailers: haul_trailers_fn,
    /// The user pointer that is passed to `trailers`.
    pub trailers_user: *mut c_void,
    /// Called at each step of the request (haul_step); may be NULL.
    pub on_step: haul_step_fn,
    /// The user pointer that is passed to `on_step`.
    pub step_user: *mut c_void,
}

impl Default for haul_call {
    fn default() -> Self {
        Self {
            size: size_of::<Self>(),
            method: haul_slice::NONE,
            url: haul_slice::NONE,
            headers: std::ptr::null(),
            header_count: 0,
            body: haul_slice::NONE,
            read: None,
            rewind: None,
            read_user: std::ptr::null_mut(),
            read_length: -1,
            on_head: None,
            reserve: None,
            on_body: None,
            user: std::ptr::null_mut(),
            timeout_ms: 0,
            max_size: 0,
            max_redirects: -1,
            flags: 0,
            trailers: None,
            trailers_user: std::ptr::null_mut(),
            on_step: None,
            step_user: std::ptr::null_mut(),
        }
    }
}

const FLAGS: u32 = HAUL_CALL_DECODE | HAUL_CALL_RAW_PATH | HAUL_CALL_NO_JAR | HAUL_CALL_CLOSE | HAUL_CALL_HTTP_1_0;

/// Sends the request and waits for the whole reply. `response` holds the reply afterwards. `reply`
/// (may be NULL) receives the status, the header fields and the body as a plain struct, even if the
/// call fails after the head has arrived. No thread is started; on an open connection, a small
/// request takes three system calls. Callbacks may make other calls with this client, but not with
/// this response.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_call(
    client: *mut haul_client,
    call: *const haul_call,
    response: *mut haul_response,
    reply: *mut haul_reply,
) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract: what is not NULL lives, and nobody else uses the response
        // or the reply.
        let (response, reply) = unsafe { (response.as_mut(), reply.as_mut()) };
        let response = response.ok_or_else(|| CallFailure::setup("response is NULL"))?;
        response.clear();
        // SAFETY: as above.
        let result = unsafe { send_and_receive(client, call, response) };
        if let Some(reply) = reply {
            *reply = response.reply();
        }
        response.store_failure(result)
    })
}

/// Sends the request that `call` describes, and receives the reply into `response`.
///
/// # Safety
/// `client`, `call` and each pointer in `call` are NULL or valid, as haul.h demands.
unsafe fn send_and_receive(
    client: *const haul_client,
    call: *const haul_call,
    response: &mut haul_response,
) -> Result<(), CallFailure> {
    // SAFETY: the caller guarantees it.
    let (client, call) =
        unsafe { (c_arguments::required_object(client, "client")?, c_arguments::required_object(call, "call")?) };
    let shared = client.shared();
    let output = ReplyCallbacks {
        on_head: call.on_head,
        reserve: call.reserve,
        on_body: call.on_body,
        user: UserPointer(call.user),
    };
    output.check()?;
    // SAFETY: the call's memory stays until the call is over, and with it the request.
    let request = unsafe { request(call, &shared) }?;
    receive_reply(&shared.engine, request, output, response)
}

/// Converts a haul_call to the engine's request.
///
/// # Safety
/// Each pointer in `call` is NULL or valid, as haul.h demands, for as long as the request lives.
unsafe fn request(call: &haul_call, shared: &EngineWithOptions) -> Result<Request, CallFailure> {
    if call.size != size_of::<haul_call>() || call.flags & !FLAGS != 0 {
        return Err(CallFailure::setup("the haul_call is not of this version: begin with HAUL_CALL_INIT"));
    }
    // SAFETY: the caller guarantees it, here and below.
    let (method, url) = unsafe { (call.method.text("method")?, call.url.text("url")?) };
    let mut own = PerRequestSettings {
        max_redirects: u32::try_from(call.max_redirects).ok(),
        max_size: (call.max_size > 0).then_some(call.max_size),
        decode: call.flags & HAUL_CALL_DECODE != 0,
        raw_path: call.flags & HAUL_CALL_RAW_PATH != 0,
        no_jar: call.flags & HAUL_CALL_NO_JAR != 0,
        http10: call.flags & HAUL_CALL_HTTP_1_0 != 0,
        steps: request_step_callback::observer(call.on_step, call.step_user),
        ..PerRequestSettings::default()
    };
    // SAFETY: the caller guarantees it.
    let mut fields = unsafe { fields(call, &mut own.without) }?;
    if call.flags & HAUL_CALL_CLOSE != 0 {
        fields.retain(|(name, _)| !name.eq_ignore_ascii_case("connection"));
        fields.push(("Connection".to_owned(), b"close".to_vec()));
    }
    let body = if call.read.is_some() {
        let length = if call.trailers.is_some() { -1 } else { call.read_length };
        let callback = RequestBodyCallback::new(call.read, call.rewind, call.read_user, length)?;
        Some(callback.body(&mut fields))
    } else if call.body.data.is_null() {
        None
    } else {
        // SAFETY: the caller guarantees it.
        Some(unsafe { BorrowedBytes::from_slice(call.body.bytes()).body() })
    };
    let particulars = RequestOverrides {
        method: (!method.is_empty()).then(|| parse_method(method)).transpose()?,
        fields,
        body,
        trailers: request_trailers::from_callback(call.trailers, call.trailers_user),
        max_time: time_limit(call.timeout_ms),
    };
    let is_raw = own.raw_path || shared.options.path_as_is;
    let target = shared.engine.target(url, is_raw).map_err(|error| url_failure(&error))?;
    Ok(Request::new(target, own.options(shared), particulars))
}

/// Returns the header fields to send. Appends to `without` the names of default fields that are not
/// to be sent.
///
/// # Safety
/// Each pointer in `call` is NULL or valid, as haul.h demands, for as long as the request lives.
unsafe fn fields(call: &haul_call, without: &mut Vec<String>) -> Result<Vec<(String, Vec<u8>)>, CallFailure> {
    if call.header_count == 0 {
        return Ok(Vec::new());
    }
    if call.headers.is_null() {
        return Err(CallFailure::setup("headers is NULL"));
    }
    // SAFETY: the caller guarantees it.
    let headers: &[haul_header] = unsafe { std::slice::from_raw_parts(call.headers, call.header_count) };
    let mut fields = Vec::with_capacity(headers.len());
    for header in headers {
        // SAFETY: the caller guarantees it.
        let (name, value) = unsafe { (header.name.text("a header's name")?, header.value.bytes()) };
        c_arguments::check_field(name, value)?;
        if header.value.data.is_null() {
            without.push(name.to_owned());
        } else {
            fields.push((name.to_owned(), value.to_vec()));
        }
    }
    Ok(fields)
}

/// Sends a request and waits for the whole reply. `response` receives a new response, which the
/// caller frees, or NULL if the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_perform(
    client: *mut haul_client,
    request: *const haul_request,
    response: *mut *mut haul_response,
) -> haul_status {
    // SAFETY: the header's contract, as above.
    unsafe { with_new_response(client, request, response, receive_reply) }
}
