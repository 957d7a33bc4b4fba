//! `curl_easy_perform`: a transfer on the program's thread. The engine calls the sink, the observer
//! and the reader of this module there, and they call the program's callbacks directly.

use std::fmt;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use haul::body::request_trailers::Trailers;
use haul::body::upload::{BodyPiece, RepeatableSource, RequestBody};
use haul::buffer_pool::OfferedBodyBytes;
use haul::interrupt_callback::InterruptCallback;
use haul::request::RequestOverrides;
use haul::sink::{ResponseForSink, Sink};
use haul::trace::{Milestone, TraceEvent, TransferObserver};
use haul::transfer::TransferOutcome;
use haul::{Client, Error, ErrorKind, Request, ResponseHead, Result};

use super::request_content_segments::{ContentRead, RequestContentReader};
use super::running::{PAUSE_SEND, RunningTransfer, debug_kind};
use crate::codes::{CURLE_ABORTED_BY_CALLBACK, CURLE_READ_ERROR, CURLE_SEND_FAIL_REWIND};
use crate::handle_table::lock;
use crate::headers::HeaderMessageKind;
use crate::request::{PreparedRequest, RequestContent, TransferFailure};
use crate::slist;

/// Runs a transfer to its end on the calling thread.
///
/// # Errors
/// The progress callback has aborted the transfer before the request was sent.
pub(crate) fn run(
    client: &Client,
    prepared: PreparedRequest,
    running: &Arc<RunningTransfer>,
) -> std::result::Result<TransferOutcome, TransferFailure> {
    let PreparedRequest { target, mut options, content, .. } = prepared;
    let callbacks = running.callbacks();
    if callbacks.wants_heads() {
        Arc::make_mut(&mut options).trace = Some(Arc::new(EasyObserver(Arc::clone(running))));
    }
    if callbacks.has_progress {
        let running = Arc::clone(running);
        Arc::make_mut(&mut options).interrupt = Some(InterruptCallback::new(move || !running.report_progress()));
    }
    let body = match content {
        RequestContent::None => None,
        RequestContent::Bytes(body) => {
            running.change_progress(|progress| progress.up_total = body.length().unwrap_or(0));
            Some(body)
        }
        RequestContent::Source(source) => Some(source_body(source, running)),
    };
    let mut own = RequestOverrides { body, ..RequestOverrides::default() };
    if callbacks.trailer.is_some() && own.body.is_some() {
        let running = Arc::clone(running);
        own.trailers = Some(Trailers::new(move || trailers(&running)));
    }
    if !running.report_progress() {
        return Err(running.failure().unwrap_or_else(|| CURLE_ABORTED_BY_CALLBACK.into()));
    }
    let request = Request::new(target, options, own);
    let (outcome, _) = client.perform(request, EasySink { running: Arc::clone(running), has_written: false });
    if let Some(raw) = running.unreported_trailers(&outcome) {
        running.store_lines(&raw, HeaderMessageKind::Trailer);
        running.pass_lines_and_wait(&raw, HeaderMessageKind::Trailer);
    }
    if outcome.result.is_ok() {
        running.finish_upload();
        // A failure is recorded in `running`.
        let _ = running.report_progress();
    }
    Ok(outcome)
}

/// Converts a content source to a request body of the engine.
fn source_body(source: RequestContentReader, running: &Arc<RunningTransfer>) -> RequestBody {
    let length = source.length();
    running.change_progress(|progress| progress.up_total = length.unwrap_or(0));
    let (source, running, is_begun) = (Arc::new(Mutex::new(source)), Arc::clone(running), AtomicBool::new(false));
    RequestBody::pieces([BodyPiece::Source(RepeatableSource::new(length, move || {
        if is_begun.swap(true, Ordering::SeqCst) {
            if !lock(&source).rewind() {
                running.fail(CURLE_SEND_FAIL_REWIND, "necessary data rewind was not possible");
                return Err(io::Error::other("the content cannot be rewound"));
            }
            running.change_progress(|progress| progress.up = 0);
        }
        Ok(Box::new(EasyRequestContentReader { source: Arc::clone(&source), running: Arc::clone(&running) }))
    }))])
}

/// Calls the C program's callback that supplies trailer fields.
pub(crate) fn trailers(running: &RunningTransfer) -> io::Result<Vec<(String, Vec<u8>)>> {
    let Some(trailer) = running.callbacks().trailer else { return Ok(Vec::new()) };
    let mut list = std::ptr::null_mut();
    // SAFETY: the program's function with its pointer, and a place for the list.
    let result = unsafe { trailer(&raw mut list, running.callbacks().trailer_data.0) };
    // SAFETY: the list that the program made by `curl_slist_append`.
    let lines = unsafe { slist::copy_strings(list) };
    // SAFETY: as above. libcurl frees it, too.
    unsafe { slist::curl_slist_free_all(list) };
    if result != 0 {
        running.fail(CURLE_ABORTED_BY_CALLBACK, "operation aborted by trailing headers callback");
        return Err(io::Error::other("the trailers were refused"));
    }
    let field = |line: &[u8]| {
        let colon = line.iter().position(|b| *b == b':')?;
        let name = std::str::from_utf8(&line[..colon]).ok()?.to_owned();
        Some((name, line[colon + 1..].trim_ascii().to_vec()))
    };
    Ok(lines.iter().filter_map(|line| field(line)).collect())
}

/// The sink that passes a body to the write callback.
struct EasySink {
    running: Arc<RunningTransfer>,
    has_written: bool,
}

impl Sink for EasySink {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        self.running.change_progress(|progress| {
            progress.down_total = begin.length.or(begin.total).unwrap_or(0);
        });
        lock(&self.running.easy.state).infos.set_at_body_start(begin.facts, begin.head, begin.place);
        if self.running.store_only_head(begin.head) {
            self.running.pass_lines_and_wait(begin.head.raw(), HeaderMessageKind::Header);
        }
        if self.running.has_failed() {
            return Err(Error::new(ErrorKind::Write, "the program ended the transfer"));
        }
        Ok(())
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        let bytes = offered.bytes();
        self.has_written |= !bytes.is_empty();
        let length = bytes.len() as u64;
        self.running.change_progress(|progress| progress.down += length);
        if self.running.write_all(bytes) && self.running.report_progress() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Write, "the program ended the transfer"))
    }

    fn restart(&mut self) -> bool {
        !self.has_written
    }
}

/// The observer that passes response heads and debug events to the callbacks.
struct EasyObserver(Arc<RunningTransfer>);

impl fmt::Debug for EasyObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EasyObserver")
    }
}

impl TransferObserver for EasyObserver {
    fn event(&self, event: &TraceEvent<'_>) {
        let running = &self.0;
        match event {
            TraceEvent::Info(text) => running.on_info(text),
            TraceEvent::Request { head } => running.on_request(head),
            TraceEvent::Response { head } => on_head(running, head, HeaderMessageKind::Header),
            TraceEvent::Interim { head } => on_head(running, head, HeaderMessageKind::Interim),
            TraceEvent::Connect { head } => on_head(running, head, HeaderMessageKind::Connect),
            TraceEvent::Trailers { fields } => {
                running.store_lines(fields.raw(), HeaderMessageKind::Trailer);
                running.pass_lines_and_wait(fields.raw(), HeaderMessageKind::Trailer);
            }
            TraceEvent::Sent(bytes) => running.debug(debug_kind::DATA_OUT, bytes),
            TraceEvent::Received(bytes) => running.debug(debug_kind::DATA_IN, bytes),
            TraceEvent::Milestone { milestone: Milestone::Head, facts, target, .. } => {
                lock(&running.easy.state).infos.set_exchange(facts, target);
            }
            TraceEvent::NotHttp { .. } | TraceEvent::Retry { .. } | TraceEvent::Milestone { .. } => {}
        }
    }

    fn wants_content(&self) -> bool {
        self.0.callbacks().wants_content()
    }

    fn failure(&self) -> Option<Error> {
        self.0.has_failed().then(|| Error::new(ErrorKind::Write, "the program ended the transfer"))
    }
}

fn on_head(running: &RunningTransfer, head: &ResponseHead, origin: HeaderMessageKind) {
    running.store_head(head, origin);
    running.pass_lines_and_wait(head.raw(), origin);
}

/// The reader that supplies the engine with content from the C program.
struct EasyRequestContentReader {
    source: Arc<Mutex<RequestContentReader>>,
    running: Arc<RunningTransfer>,
}

impl Read for EasyRequestContentReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let running = &self.running;
        loop {
            if !running.wait_while_paused(PAUSE_SEND) {
                return Err(io::Error::other("the program ended the transfer"));
            }
            let read = lock(&self.source).read(buffer);
            match read {
                ContentRead::Bytes(n) => {
                    running.change_progress(|progress| progress.up += n as u64);
                    if !running.report_progress() {
                        return Err(io::Error::other("the program ended the transfer"));
                    }
                    return Ok(n);
                }
                ContentRead::End => return Ok(0),
                ContentRead::Pause => running.pause_sending(),
                ContentRead::Abort => {
                    running.fail(CURLE_ABORTED_BY_CALLBACK, "operation aborted by callback");
                    return Err(io::Error::other("the program ended the transfer"));
                }
                ContentRead::Failed => {
                    running.fail(CURLE_READ_ERROR, "read function returned funny value");
                    return Err(io::Error::other("the content cannot be read"));
                }
            }
        }
    }
}
