//! Replies: the response object with all details, and a plain struct whose members C reads
//! directly.
//!
//! ```
//! use haul_c::response::{haul_response_free, haul_response_new, haul_response_status};
//! let place = haul_response_new().unwrap();
//! // SAFETY: the response lives.
//! assert_eq!(unsafe { haul_response_status(&*place) }, 0);
//! haul_response_free(Some(place));
//! ```

use std::ffi::{CString, c_char};
use std::sync::OnceLock;

use haul::transfer::{FollowedRedirect, TransferOutcome};
use haul::transfer_facts::TransferFacts;
use haul::{ProtocolVersion, Target};
use haul_proto::response_head::{Fields, ResponseHead};

use crate::c_arguments::{self, haul_header, haul_slice};
use crate::error::{CallFailure, catch_panic, catch_panic_new, catch_panic_or, haul_error, haul_status};
use crate::malloc_body::MallocBody;
use crate::reply_destination::StoredBody;
use crate::streaming::StreamedReply;

/// A reply. Only one thread may use it at a time.
#[derive(Default)]
pub struct haul_response {
    head: Option<ResponseHead>,
    /// The header fields of `head`, as C reads them.
    headers: Vec<haul_header>,
    url: String,
    version: Option<ProtocolVersion>,
    trailers: Vec<haul_header>,
    trailer_fields: Option<Fields>,
    pub(crate) body: StoredBody,
    is_decoded: bool,
    facts: Option<Box<TransferFacts>>,
    hops: Vec<RedirectReply>,
    error: Option<Box<haul_error>>,
    peer: OnceLock<CString>,
    pub(crate) streaming: Option<StreamedReply>,
}

/// A reply that redirected the request to another URL.
struct RedirectReply {
    head: ResponseHead,
    url: String,
    headers: Vec<haul_header>,
}

/// A reply as a plain struct: status, header fields, body. All pointers point into the
/// haul_response of the same call, and are valid until that haul_response is used for another call
/// or freed. If you supplied memory for the body, `body` points into that memory.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct haul_reply {
    /// The status code; 0 if there was no reply.
    pub status: u16,
    /// The HTTP version: 10, 11, 20 or 30 for HTTP/1.0, 1.1, 2 or 3.
    pub version: u16,
    /// The number of redirects that were followed.
    pub redirects: u32,
    /// The reason phrase; empty in HTTP/2.
    pub reason: haul_slice,
    /// The final URL, after redirects, without credentials and fragment.
    pub url: haul_slice,
    /// Header fields in order, with names as they were sent (lower case in HTTP/2).
    pub headers: *const haul_header,
    /// The number of elements in `headers`.
    pub header_count: usize,
    /// The whole body; NULL if a haul_body_fn received the body, or if the body has not been read
    /// yet (haul_client_open).
    pub body: *const c_char,
    /// The length of the body in bytes, after decoding.
    pub body_len: usize,
    /// True if haul has decoded the body, although Content-Encoding is among the headers.
    pub decoded: bool,
}

/// The times at which the steps of a request were finished, in nanoseconds since the request began;
/// 0 for a step that did not happen, such as connecting on an open connection.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct haul_times {
    /// The time at which the address of the host was found.
    pub resolved: u64,
    /// The time at which the connection (TCP or QUIC) was made.
    pub connected: u64,
    /// The time at which the TLS handshake was complete.
    pub secured: u64,
    /// The time at which the last request was sent. Redirects and retries are further requests.
    pub sent: u64,
    /// The time at which the first byte of the last reply arrived.
    pub first_byte: u64,
    /// The time at which the whole request was complete.
    pub total: u64,
}

impl Default for haul_slice {
    fn default() -> Self {
        Self::NONE
    }
}

impl haul_response {
    /// Returns what the engine recorded about the transfer of the reply; `None` if there was no
    /// transfer.
    pub(crate) fn facts(&self) -> Option<&TransferFacts> {
        self.facts.as_deref()
    }

    /// Removes the previous reply from this object. The memory of that reply is reused for the next
    /// one.
    pub(crate) fn clear(&mut self) {
        self.streaming = None;
        self.headers.clear();
        self.head = None;
        self.trailers.clear();
        self.trailer_fields = None;
        self.url.clear();
        self.version = None;
        let mut stored = std::mem::take(&mut self.body.stored);
        stored.clear();
        self.body = StoredBody { stored, ..StoredBody::default() };
        self.is_decoded = false;
        self.facts = None;
        self.hops.clear();
        self.error = None;
        self.peer.take();
    }

    /// Stores the head of a reply and its final URL. `decodes` is true if haul decodes the body's
    /// content coding.
    pub(crate) fn store_head(&mut self, head: Option<ResponseHead>, target: &Target, decodes: bool) {
        self.headers.clear();
        self.url.clear();
        if head.is_some() {
            target.push_url(&mut self.url);
        }
        self.head = head;
        if let Some(head) = &self.head {
            self.version = Some(head.version());
            // The views are into the bytes of the head, which lie where they are until the head
            // goes: `head` is replaced together with them, here and in `clear`.
            self.headers.extend(head.field_bytes().map(header_view));
            self.is_decoded = decodes && head.get("content-encoding").is_some() && haul::body::is_decodable(head);
        }
    }

    /// Returns `true` if the body has a content coding that haul decodes.
    pub(crate) fn is_decoded(&self) -> bool {
        self.is_decoded
    }

    pub(crate) fn store_facts(&mut self, facts: Box<TransferFacts>) {
        self.facts = Some(facts);
    }

    pub(crate) fn store_trailers(&mut self, trailers: Option<Fields>) {
        self.trailers.clear();
        self.trailer_fields = trailers;
        self.trailers.extend(self.trailer_fields.iter().flat_map(Fields::iter_bytes).map(header_view));
    }

    pub(crate) fn store_history(&mut self, history: Vec<FollowedRedirect>) {
        self.hops.clear();
        for FollowedRedirect { target, head } in history {
            let headers = head.field_bytes().map(header_view).collect();
            self.hops.push(RedirectReply { url: target.to_url(), headers, head });
        }
    }

    /// Stores the outcome of a request. Returns an error if the request failed.
    pub(crate) fn store_outcome(&mut self, outcome: TransferOutcome, decodes: bool) -> Result<(), CallFailure> {
        let TransferOutcome { result, target, head, facts, history, trailers, .. } = outcome;
        self.store_head(head, &target, decodes);
        self.store_facts(facts);
        self.store_history(history);
        self.store_trailers(trailers);
        Ok(result?)
    }

    pub(crate) fn fail(&mut self, fault: CallFailure) {
        self.error = Some(fault.into_error());
    }

    /// Returns `result`. If it is a failure, stores a copy of it for `haul_response_error`.
    pub(crate) fn store_failure<T>(&mut self, result: Result<T, CallFailure>) -> Result<T, CallFailure> {
        result.inspect_err(|failure| self.fail(failure.duplicate()))
    }

    /// Returns the reply as a plain struct for C, whose pointers point into this object.
    pub(crate) fn reply(&self) -> haul_reply {
        haul_reply {
            body: self.body.bytes().data,
            body_len: usize::try_from(self.body.len).unwrap_or(usize::MAX),
            decoded: self.is_decoded,
            redirects: self.facts.as_ref().map_or(self.hops.len() as u32, |facts| facts.redirects),
            ..reply_view(self.head.as_ref(), &self.url, &self.headers)
        }
    }
}

fn header_view((name, value): (&[u8], &[u8])) -> haul_header {
    haul_header { name: haul_slice::from_bytes(name), value: haul_slice::from_bytes(value) }
}

fn version_number(version: ProtocolVersion) -> u16 {
    match version {
        ProtocolVersion::Http10 => 10,
        ProtocolVersion::Http2 => 20,
        ProtocolVersion::Http3 => 30,
        _ => 11,
    }
}

fn reply_view(head: Option<&ResponseHead>, url: &str, headers: &[haul_header]) -> haul_reply {
    haul_reply {
        status: head.map_or(0, ResponseHead::status),
        version: head.map_or(0, |head| version_number(head.version())),
        redirects: 0,
        reason: haul_slice::from_bytes(head.map_or(&[], ResponseHead::reason)),
        url: haul_slice::from_bytes(url.as_bytes()),
        headers: headers.as_ptr(),
        header_count: headers.len(),
        body: std::ptr::null(),
        body_len: 0,
        decoded: false,
    }
}

/// Creates a response for haul_client_call. It can be used for any number of calls, which saves
/// allocations.
#[unsafe(no_mangle)]
pub extern "C" fn haul_response_new() -> Option<Box<haul_response>> {
    catch_panic_new(|| Ok(Box::default()))
}

/// Frees a response. If its body was not read to its end, its connection is closed.
#[unsafe(no_mangle)]
pub extern "C" fn haul_response_free(response: Option<Box<haul_response>>) {
    catch_panic_or((), || drop(response));
}

/// Copies the status, the header fields and the body of a response into `reply`, as pointers into
/// the response. Members without a value are empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_reply(response: *const haul_response, reply: *mut haul_reply) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract: what is not NULL lives, and no other thread uses it. So in
        // all functions here.
        let (response, place) = unsafe { (c_arguments::required_object(response, "response")?, reply.as_mut()) };
        *place.ok_or_else(|| CallFailure::setup("reply is NULL"))? = response.reply();
        Ok(())
    })
}

/// Returns the status code of the reply; 0 if there was no reply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_status(response: *const haul_response) -> u16 {
    // SAFETY: the header's contract.
    unsafe { with_response(response, 0, |response| response.head.as_ref().map_or(0, ResponseHead::status)) }
}

/// Returns the HTTP version of the reply as text, such as "HTTP/1.1"; "" if there was no reply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_version(response: *const haul_response) -> *const c_char {
    let text = |response: &haul_response| match response.version {
        None => c"",
        Some(ProtocolVersion::Http10) => c"HTTP/1.0",
        Some(ProtocolVersion::Http2) => c"HTTP/2",
        Some(ProtocolVersion::Http3) => c"HTTP/3",
        Some(_) => c"HTTP/1.1",
    };
    // SAFETY: the header's contract.
    unsafe { with_response(response, c"", text) }.as_ptr()
}

/// Returns the reason phrase, which is free text from the server; empty in HTTP/2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_reason(response: *const haul_response) -> haul_slice {
    // SAFETY: the header's contract.
    unsafe { with_response(response, haul_slice::NONE, |response| response.reply().reason) }
}

/// Returns the final URL of the reply, after redirects, without credentials and fragment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_url(response: *const haul_response) -> haul_slice {
    // SAFETY: the header's contract.
    unsafe { with_response(response, haul_slice::NONE, |response| haul_slice::from_bytes(response.url.as_bytes())) }
}

/// Returns the number of header fields of the reply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_header_count(response: *const haul_response) -> usize {
    // SAFETY: the header's contract.
    unsafe { with_response(response, 0, |response| response.headers.len()) }
}

/// Returns the name of the header field with this index; `data` is NULL if there is no such field.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_header_name(response: *const haul_response, index: usize) -> haul_slice {
    let name = |response: &haul_response| response.headers.get(index).map_or(haul_slice::NONE, |field| field.name);
    // SAFETY: the header's contract.
    unsafe { with_response(response, haul_slice::NONE, name) }
}

/// Returns the value of the header field with this index; `data` is NULL if there is no such field.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_header_value(response: *const haul_response, index: usize) -> haul_slice {
    let value = |response: &haul_response| response.headers.get(index).map_or(haul_slice::NONE, |field| field.value);
    // SAFETY: the header's contract.
    unsafe { with_response(response, haul_slice::NONE, value) }
}

/// Returns the value of the first header field with this name (case-insensitive); `data` is NULL if
/// there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_header(response: *const haul_response, name: *const c_char) -> haul_slice {
    catch_panic_or(haul_slice::NONE, || {
        // SAFETY: the header's contract.
        let (response, name) = unsafe { (response.as_ref(), c_arguments::optional_text(name, "name")) };
        let found = match (response.and_then(|response| response.head.as_ref()), name) {
            (Some(head), Ok(Some(name))) => head.get(name),
            _ => None,
        };
        found.map_or(haul_slice::NONE, haul_slice::from_bytes)
    })
}

/// Returns the number of trailer fields (RFC 9110 section 6.5); 0 before the body has been read to
/// its end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_trailer_count(response: *const haul_response) -> usize {
    // SAFETY: the header's contract.
    unsafe { with_response(response, 0, |response| response.trailers.len()) }
}

/// Copies the trailer field with this index (from 0) into `trailer`. Returns HAUL_STATUS_SETUP if
/// there is no such field.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_trailer(
    response: *const haul_response,
    index: usize,
    trailer: *mut haul_header,
) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let (response, place) = unsafe { (c_arguments::required_object(response, "response")?, trailer.as_mut()) };
        let field = response.trailers.get(index).ok_or_else(|| CallFailure::setup("there is no such trailer"))?;
        *place.ok_or_else(|| CallFailure::setup("trailer is NULL"))? = *field;
        Ok(())
    })
}

/// Returns the whole body of the reply; `len` is 0 if it is empty. `data` is NULL if the response
/// does not store the body: because a haul_body_fn received it, or because it has not been read yet
/// (haul_client_open).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_body(response: *const haul_response) -> haul_slice {
    let body = |response: &haul_response| {
        let reply = response.reply();
        haul_slice { data: reply.body, len: if reply.body.is_null() { 0 } else { reply.body_len } }
    };
    // SAFETY: the header's contract.
    unsafe { with_response(response, haul_slice::NONE, body) }
}

/// Takes the whole body out of a response, and returns it in memory from malloc, which you free
/// with free(). A NUL byte follows the body. `len` (may be NULL) receives the length of the body.
/// Returns NULL if a haul_body_fn received the body, if the body has not been read yet, or if there
/// is no memory for it. The body of a batch's response is handed over without a copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_take_body(response: *mut haul_response, len: *mut usize) -> *mut c_char {
    catch_panic_or(std::ptr::null_mut(), || {
        // SAFETY: the header's contract.
        let (response, len) = unsafe { (response.as_mut(), len.as_mut()) };
        let taken = response.and_then(|response| response.body.take());
        if let (Some(len), Some(body)) = (len, &taken) {
            *len = body.as_bytes().len();
        }
        taken.and_then(MallocBody::into_raw).unwrap_or(std::ptr::null_mut())
    })
}

/// Returns the address from which the reply came, such as "127.0.0.1"; NULL if unknown. `port` (may
/// be NULL) receives its port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_peer(response: *const haul_response, port: *mut u16) -> *const c_char {
    catch_panic_or(std::ptr::null(), || {
        // SAFETY: the header's contract.
        let (response, port) = unsafe { (response.as_ref(), port.as_mut()) };
        let Some((response, peer)) = response.and_then(|one| Some((one, one.facts.as_ref()?.peer?))) else {
            return std::ptr::null();
        };
        if let Some(port) = port {
            *port = peer.port();
        }
        let text = || CString::new(peer.ip().to_string()).unwrap_or_default();
        response.peer.get_or_init(text).as_ptr()
    })
}

/// Returns the times at which the steps of the request were finished.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_times(response: *const haul_response) -> haul_times {
    let times = |response: &haul_response| {
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        response.facts.as_ref().map_or_else(haul_times::default, |facts| haul_times {
            resolved: nanos(facts.resolved),
            connected: nanos(facts.connected),
            secured: nanos(facts.secured),
            sent: nanos(facts.sent),
            first_byte: nanos(facts.first_byte),
            total: nanos(facts.total),
        })
    };
    // SAFETY: the header's contract.
    unsafe { with_response(response, haul_times::default(), times) }
}

/// Returns the number of redirects that were followed to get this reply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_redirect_count(response: *const haul_response) -> usize {
    // SAFETY: the header's contract.
    unsafe { with_response(response, 0, |response| response.hops.len()) }
}

/// Copies the redirecting reply with this index (0 for the first) into `reply`: status, version,
/// reason, URL and headers, without a body. Returns HAUL_STATUS_SETUP if there is no such reply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_redirect(
    response: *const haul_response,
    index: usize,
    reply: *mut haul_reply,
) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let (response, place) = unsafe { (c_arguments::required_object(response, "response")?, reply.as_mut()) };
        let hop = response.hops.get(index).ok_or_else(|| CallFailure::setup("there is no such redirect"))?;
        let found = reply_view(Some(&hop.head), &hop.url, &hop.headers);
        *place.ok_or_else(|| CallFailure::setup("reply is NULL"))? = found;
        Ok(())
    })
}

/// Returns the reason why the request of this response failed, or why its body could not be read;
/// NULL if neither happened. The error belongs to the response.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_error(response: *const haul_response) -> *const haul_error {
    let error = |response: &haul_response| response.error.as_deref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the header's contract.
    unsafe { with_response(response, std::ptr::null(), error) }
}

/// Calls `look` with the response and returns its result. Returns `or` if the pointer is NULL.
///
/// # Safety
/// `response` is NULL or valid, and does not change during the call.
pub(crate) unsafe fn with_response<T>(
    response: *const haul_response,
    or: T,
    look: impl FnOnce(&haul_response) -> T,
) -> T
where
    T: Copy,
{
    // SAFETY: the caller guarantees it.
    catch_panic_or(or, || unsafe { response.as_ref() }.map_or(or, look))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the value of the field with this index, by reading memory as a C program does.
    ///
    /// # Safety
    /// The response to which `reply` belongs is still valid.
    unsafe fn value<'a>(reply: &haul_reply, index: usize) -> &'a [u8] {
        assert!(index < reply.header_count);
        // SAFETY: the caller's word, and so many fields are there.
        unsafe { (*reply.headers.add(index)).value.bytes() }
    }

    #[test]
    fn reply_pointers_stay_valid_while_response_lives() {
        let head = |raw: &str| ResponseHead::from_raw(raw.as_bytes()).unwrap();
        let target = Target::parse("http://h.example/a").unwrap();
        let hop = |to: &str| {
            let head = head(&format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\n\r\n"));
            FollowedRedirect { target: target.clone(), head }
        };
        let mut made = haul_response_new().unwrap();
        made.store_history(["/b", "/c", "/d"].map(hop).into());
        made.store_head(Some(head("HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\n\r\n")), &target, false);
        let response = Box::into_raw(made);
        let mut reply = reply_view(None, "", &[]);
        // SAFETY: the response is freed once, after all that looks at it.
        unsafe {
            for (index, to) in ["/b", "/c", "/d"].into_iter().enumerate() {
                assert_eq!(haul_response_redirect(response, index, &raw mut reply), haul_status::Ok);
                assert_eq!((reply.status, value(&reply, 0)), (302, to.as_bytes()));
            }
            assert_eq!(haul_response_redirect(response, 3, &raw mut reply), haul_status::Setup);
            assert_eq!(haul_response_reply(response, &raw mut reply), haul_status::Ok);
            assert_eq!((reply.url.bytes(), value(&reply, 1)), (&b"http://h.example/a"[..], &b"2"[..]));
            assert_eq!(haul_response_header(response, c"b".as_ptr()).bytes(), b"2");
            haul_response_free(Some(Box::from_raw(response)));
        }
    }
}
