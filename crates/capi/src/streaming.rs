//! Replies whose body the program reads piece by piece.

use std::ffi::c_void;
use std::io::BufRead;

use haul::request::Request;
use haul::{Client, Response};

use crate::c_arguments;
use crate::client::haul_client;
use crate::error::{CallFailure, catch_panic, haul_status};
use crate::reply_destination::{ReplyBodyWriter, ReplyCallbacks};
use crate::request::haul_request;
use crate::response::haul_response;

/// A response whose head has arrived and whose body has not been read completely.
pub(crate) struct StreamedReply {
    reply: Response,
}

/// Sends a request and waits for the head of its reply.
pub(crate) fn open_reply(
    engine: &Client,
    request: Request,
    response: &mut haul_response,
) -> Result<StreamedReply, CallFailure> {
    let decodes = request.options().decode;
    let reply = match engine.send_or_outcome(request) {
        Ok(reply) => reply,
        Err(outcome) => {
            response.store_outcome(*outcome, decodes)?;
            return Err(CallFailure::new(haul_status::Internal, "a failed request has no error"));
        }
    };
    response.store_head(Some(reply.head().clone()), reply.target(), decodes);
    response.store_facts(Box::new(reply.facts().clone()));
    response.store_history(reply.history().to_vec());
    Ok(StreamedReply { reply })
}

/// Sends a request and receives the whole reply. The callbacks in `output` receive the body.
pub(crate) fn receive_reply(
    engine: &Client,
    request: Request,
    output: ReplyCallbacks,
    response: &mut haul_response,
) -> Result<(), CallFailure> {
    let filler = ReplyBodyWriter::new(output, std::mem::take(&mut response.body.stored));
    if output.on_head.is_some() {
        return receive_reply_after_head(engine, request, output, filler, response);
    }
    let decodes = request.options().decode;
    let (outcome, filler) = engine.perform(request, filler);
    response.body = filler.finish();
    response.store_outcome(outcome, decodes)
}

/// Sends a request, calls `on_head` with the head of the reply, and then receives the body. During
/// that call, `response` contains the redirects so far.
fn receive_reply_after_head(
    engine: &Client,
    request: Request,
    output: ReplyCallbacks,
    mut filler: ReplyBodyWriter,
    response: &mut haul_response,
) -> Result<(), CallFailure> {
    let mut reply = open_reply(engine, request, response)?.reply;
    output.call_on_head(&response.reply()).map_err(|error| error.with_url(reply.url()))?;
    let announced = reply.content_length().filter(|_| !response.is_decoded());
    let mut result = filler.set_expected_length(announced).map_err(|error| error.with_url(reply.url()).into());
    while result.is_ok() {
        result = match reply.fill_buf() {
            Ok([]) => break,
            Ok(bytes) => {
                let len = bytes.len();
                let put = filler.write_bytes(bytes);
                reply.consume(len);
                put.map_err(|error| error.with_url(reply.url()).into())
            }
            Err(error) => Err(read_failure(error)),
        };
    }
    response.body = filler.finish();
    response.store_facts(Box::new(reply.facts().clone()));
    response.store_trailers(reply.trailers().cloned());
    result
}

/// Calls `send` with the client's state and the request. `response` receives the response that
/// `send` returns, or NULL if `send` fails.
///
/// # Safety
/// Pointers are NULL or valid, and `response` belongs to the caller.
pub(crate) unsafe fn with_new_response(
    client: *mut haul_client,
    request: *const haul_request,
    response: *mut *mut haul_response,
    send: impl FnOnce(&Client, Request, ReplyCallbacks, &mut haul_response) -> Result<(), CallFailure>,
) -> haul_status {
    catch_panic(|| {
        // SAFETY: the caller guarantees it.
        let (client, request, place) = unsafe {
            (
                c_arguments::required_object(client, "client")?,
                c_arguments::required_object(request, "request")?,
                response.as_mut(),
            )
        };
        let place = place.ok_or_else(|| CallFailure::setup("response is NULL"))?;
        *place = std::ptr::null_mut();
        let shared = client.shared();
        let mut made = Box::<haul_response>::default();
        send(&shared.engine, request.prepare(&shared)?, request.output, &mut made)?;
        *place = Box::into_raw(made);
        Ok(())
    })
}

/// Returns the failure behind an I/O error that occurred while a reply's body was read.
fn read_failure(error: std::io::Error) -> CallFailure {
    match error.downcast::<haul::Error>() {
        Ok(error) => error.into(),
        Err(error) => CallFailure::new(haul_status::Receive, error.to_string()),
    }
}

/// Sends a request and waits only for the head of the reply; read the body with haul_response_read.
/// `response` receives a new response, which the caller frees, or NULL if the call fails.
/// haul_request_set_output has no effect here. The request's body may still be sent while the reply
/// is read: borrowed bytes and the `user` pointer of a callback must remain valid until the reply
/// is read to the end or freed. The request itself may be freed earlier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_open(
    client: *mut haul_client,
    request: *const haul_request,
    response: *mut *mut haul_response,
) -> haul_status {
    // SAFETY: the header's contract: what is not NULL lives, and the place is the caller's.
    unsafe {
        with_new_response(client, request, response, |engine, prepared, _, made| {
            made.streaming = Some(open_reply(engine, prepared, made)?);
            Ok(())
        })
    }
}

/// Reads up to `len` bytes of the body of a response of haul_client_open into `buffer`. `got`
/// receives the number of bytes; 0 at the end of the body. Reading to the end makes the connection
/// available to other requests. If the response is freed earlier, the connection is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_read(
    response: *mut haul_response,
    buffer: *mut c_void,
    len: usize,
    got: *mut usize,
) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract: what is not NULL lives, and nobody else uses it.
        let (response, got) = unsafe { (response.as_mut(), got.as_mut()) };
        let response = response.ok_or_else(|| CallFailure::setup("response is NULL"))?;
        let got = got.ok_or_else(|| CallFailure::setup("got is NULL"))?;
        *got = 0;
        if len == 0 {
            return Ok(());
        }
        if buffer.is_null() {
            return Err(CallFailure::setup("buffer is NULL"));
        }
        let Some(streaming) = &mut response.streaming else {
            return Err(CallFailure::setup("the response is not one of haul_client_open"));
        };
        let bytes = match streaming.reply.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) => return response.store_failure(Err(read_failure(error))),
        };
        let n = bytes.len().min(len);
        // SAFETY: the caller's buffer has room for `len` bytes, and is not where haul keeps its
        // own.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast::<u8>(), n) };
        streaming.reply.consume(n);
        *got = n;
        response.body.len += n as u64;
        if n == 0 {
            let (facts, trailers) = (Box::new(streaming.reply.facts().clone()), streaming.reply.trailers().cloned());
            response.store_facts(facts);
            response.store_trailers(trailers);
        }
        Ok(())
    })
}
