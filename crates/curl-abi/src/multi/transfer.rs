//! A transfer of a multi handle.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haul::body::request_trailers::Trailers;
use haul::body::upload::{BodyPiece, OneShotSource, RepeatableSource, RequestBody};
use haul::buffer_pool::KeptBodyBytes;
use haul::request::RequestOverrides;
use haul::transfer::TransferOutcome;
use haul::{Request, RequestOptions, Target};

use super::engine::MultiEngine;
use super::transfer_event_queue::{QueueSink, QueueingObserver, TransferEvent, TransferEventQueue};
use super::upload_queue::UploadQueue;
use super::wakeup_descriptor::WakeupDescriptor;
use crate::client_settings::ClientSettings;
use crate::codes::{CURLE_ABORTED_BY_CALLBACK, CURLcode};
use crate::easy::Easy;
use crate::handle_table::lock;
use crate::headers::HeaderMessageKind;
use crate::request::{self, PreparedRequest, RequestContent};
use crate::transfer::callbacks::Callbacks;
use crate::transfer::request_content_segments::RequestContentReader;
use crate::transfer::running::{DeliveryResult, LinePosition, MAX_WRITE, PAUSE_RECV, RunningTransfer, debug_kind};

/// The maximum number of body bytes that one call of `curl_multi_perform` delivers for one
/// transfer.
const MAX_DELIVERED_AT_ONCE: usize = 1 << 20;

/// The interval at which progress is reported when there are no events.
const PROGRESS_TICK: Duration = Duration::from_millis(200);

/// A transfer of an easy handle that has begun in a multi handle.
pub(super) struct MultiTransfer {
    pub(super) id: u64,
    running: Arc<RunningTransfer>,
    events: Arc<TransferEventQueue>,
    url: String,
    /// Bytes of the body, and the offset in them of the first byte that the C program has not
    /// accepted yet. `None` if the program has accepted all bytes.
    rest: Option<(KeptBodyBytes, usize)>,
    /// The lines of a head or a trailer section that the C program has not accepted completely.
    lines: Option<(Vec<u8>, HeaderMessageKind, LinePosition)>,
    content: Option<(RequestContentReader, Arc<UploadQueue>)>,
    outcome: Option<TransferOutcome>,
    is_cancelled: bool,
    last_progress: Instant,
}

impl MultiTransfer {
    /// Begins the transfer of an easy handle.
    ///
    /// # Errors
    /// The transfer cannot begin. The error is the result code of the transfer.
    pub(super) fn begin(
        easy: &Arc<Easy>,
        engine: &MultiEngine,
        notifier: &Arc<WakeupDescriptor>,
    ) -> Result<Self, CURLcode> {
        lock(&easy.state).begin_transfer();
        let form = request::ready_form(easy);
        let mut state = lock(&easy.state);
        let prepared = form.and_then(|form| request::prepare(&mut state, easy.number, form));
        let prepared = prepared.map_err(|failure| state.fail_transfer(&failure))?;
        state.set_resolver(&engine.client).map_err(|failure| state.fail_transfer(&failure))?;
        let settings = ClientSettings::from_options(&state.options);
        engine.set_servers(settings).map_err(|failure| state.fail_transfer(&failure))?;
        state.infos.set_at_start(&prepared);
        let callbacks = Callbacks::from_options(&state.options);
        drop(state);
        let PreparedRequest { target, mut options, content, url, time_limit } = prepared;
        let events = TransferEventQueue::new(Arc::clone(notifier));
        if callbacks.wants_heads() {
            Arc::make_mut(&mut options).trace = Some(Arc::new(QueueingObserver {
                queue: Arc::clone(&events),
                is_verbose: callbacks.is_verbose,
                wants_content: callbacks.wants_content(),
            }));
        }
        let running = Arc::new(RunningTransfer::new(Arc::clone(easy), callbacks, time_limit));
        let paused = Arc::clone(&events);
        running.set_on_pause(Arc::new(move || paused.set_ready()));
        let mut body = None;
        let content = match content {
            RequestContent::None => None,
            RequestContent::Bytes(bytes) => {
                running.change_progress(|progress| progress.up_total = bytes.length().unwrap_or(0));
                body = Some(bytes);
                None
            }
            RequestContent::Source(source) => {
                running.change_progress(|progress| progress.up_total = source.length().unwrap_or(0));
                Some((source, UploadQueue::new(Arc::clone(&events))))
            }
        };
        let mut transfer = Self {
            id: u64::MAX,
            running,
            events,
            url,
            rest: None,
            lines: None,
            content,
            outcome: None,
            is_cancelled: false,
            last_progress: Instant::now(),
        };
        easy.set_running(Some(Arc::clone(&transfer.running)));
        if !transfer.running.report_progress() {
            easy.set_running(None);
            let failure = transfer.running.failure().unwrap_or_else(|| CURLE_ABORTED_BY_CALLBACK.into());
            return Err(lock(&easy.state).fail_transfer(&failure));
        }
        transfer.submit(engine, target, options, body);
        Ok(transfer)
    }

    /// Submits the request of this transfer to the engine. `body` is the content; `None` if the
    /// request has none, or if the upload queue supplies it.
    fn submit(
        &mut self,
        engine: &MultiEngine,
        target: Target,
        options: Arc<RequestOptions>,
        body: Option<RequestBody>,
    ) {
        let mut own = RequestOverrides { body, ..RequestOverrides::default() };
        if let Some((source, queue)) = &self.content {
            let content = Arc::clone(queue);
            let open = move || OneShotSource::stream(content.open());
            let source = RepeatableSource::of_streams(source.length(), open);
            own.body = Some(RequestBody::pieces([BodyPiece::Source(source)]));
            if self.running.callbacks().trailer.is_some() {
                let queue = Arc::clone(queue);
                own.trailers = Some(Trailers::new(move || Ok(queue.trailers())));
            }
        }
        self.id =
            engine.batch.submit_into(Request::new(target, options, own), Box::new(QueueSink(Arc::clone(&self.events))));
    }

    /// Stores the outcome of the transfer after the engine has ended the transfer. The event queue
    /// may still contain events whose callbacks must be called first.
    pub(super) fn set_outcome(&mut self, outcome: TransferOutcome) {
        if let Some(raw) = self.running.unreported_trailers(&outcome) {
            self.events.push(TransferEvent::Trailers(raw));
        }
        self.outcome = Some(outcome);
    }

    /// Returns true if the C program's thread has work to do for this transfer.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.events.take_ready() || self.outcome.is_some() || self.is_progress_due(now) || self.running.is_expired(now)
    }

    fn is_progress_due(&self, now: Instant) -> bool {
        self.has_progress() && now.saturating_duration_since(self.last_progress) >= PROGRESS_TICK
    }

    fn has_progress(&self) -> bool {
        self.running.callbacks().has_progress
    }

    /// Returns the time after which callbacks must be called even without an event: a callback
    /// reports the progress, or a paused transfer reaches its time limit. Returns `None` if no call
    /// is needed.
    pub(super) fn timeout(&self, now: Instant) -> Option<Duration> {
        let progress = self.has_progress().then_some(PROGRESS_TICK);
        // The engine's thread ends a transfer that is not paused.
        let limit = self.running.time_left(now).filter(|_| !self.is_cancelled && self.running.is_paused(PAUSE_RECV));
        progress.into_iter().chain(limit).min()
    }

    /// Returns true if the C program has not accepted all that was received.
    fn has_undelivered(&self) -> bool {
        self.rest.is_some() || self.lines.is_some() || !self.events.is_empty()
    }

    /// Calls the callbacks for all queued events. Returns the result of the transfer if it has
    /// ended; otherwise `None`.
    pub(super) fn call_callbacks(&mut self, engine: &MultiEngine) -> Option<CURLcode> {
        self.deliver_body();
        self.events.set_paused(self.running.is_paused(PAUSE_RECV));
        if let Some((source, queue)) = &mut self.content {
            queue.fill_from_program(source, &self.running);
        }
        self.last_progress = Instant::now();
        if self.outcome.as_ref().is_some_and(|outcome| outcome.result.is_ok()) {
            self.running.finish_upload();
        }
        // A failure is recorded in `running`.
        let _ = self.running.report_progress();
        // What the engine has received already waits here, beyond the engine's own time limit.
        if self.has_undelivered() && self.running.is_expired(self.last_progress) {
            self.running.fail_at_deadline();
        }
        if self.running.has_failed() && !self.is_cancelled {
            self.is_cancelled = true;
            (self.rest, self.lines) = (None, None);
            self.events.close();
            engine.batch.cancel(self.id);
        }
        if self.has_undelivered() {
            return None;
        }
        let outcome = self.outcome.take()?;
        let easy = &self.running.easy;
        easy.set_running(None);
        self.running.on_end(&outcome);
        Some(lock(&easy.state).end_transfer(&self.running, &outcome, &self.url))
    }

    fn deliver_body(&mut self) {
        let running = Arc::clone(&self.running);
        let mut delivered = 0;
        while !running.is_paused(PAUSE_RECV) && !running.has_failed() {
            if delivered >= MAX_DELIVERED_AT_ONCE {
                // Other transfers are processed before this one continues.
                self.events.set_ready();
                return;
            }
            if let Some((raw, origin, position)) = &mut self.lines {
                if running.pass_lines(raw, *origin, position) != DeliveryResult::Taken {
                    return;
                }
                self.lines = None;
                continue;
            }
            if let Some((chunk, at)) = &mut self.rest {
                let bytes = chunk.bytes();
                let piece = &bytes[*at..bytes.len().min(*at + MAX_WRITE)];
                if running.write_piece(piece) != DeliveryResult::Taken {
                    return;
                }
                *at += piece.len();
                delivered += piece.len();
                if *at == bytes.len() {
                    self.rest = None;
                }
                continue;
            }
            let Some(event) = self.events.next() else { return };
            match event {
                TransferEvent::Info(text) => running.on_info(&text),
                TransferEvent::Request(head) => running.on_request(&head),
                TransferEvent::Exchange(exchange) => {
                    lock(&running.easy.state).infos.set_exchange(&exchange.0, &exchange.1);
                }
                TransferEvent::Head(head, origin) => {
                    running.store_head(&head, origin);
                    self.lines = Some((head.raw().to_vec(), origin, LinePosition::default()));
                }
                TransferEvent::Trailers(raw) => {
                    running.store_lines(&raw, HeaderMessageKind::Trailer);
                    self.lines = Some((raw, HeaderMessageKind::Trailer, LinePosition::default()));
                }
                TransferEvent::Sent(bytes) => running.debug(debug_kind::DATA_OUT, &bytes),
                TransferEvent::Received(bytes) => running.debug(debug_kind::DATA_IN, &bytes),
                TransferEvent::Begin(begin) => {
                    running.change_progress(|progress| progress.down_total = begin.length.unwrap_or(0));
                    if running.store_only_head(&begin.head) {
                        let raw = begin.head.raw().to_vec();
                        self.lines = Some((raw, HeaderMessageKind::Header, LinePosition::default()));
                    }
                    lock(&running.easy.state).infos.set_at_body_start(&begin.facts, &begin.head, &begin.target);
                }
                TransferEvent::Body(chunk) => {
                    let length = chunk.bytes().len() as u64;
                    running.change_progress(|progress| progress.down += length);
                    self.rest = Some((chunk, 0));
                }
            }
        }
    }

    /// Cancels the engine's transfer, and reports the progress once more, as libcurl does.
    pub(super) fn cancel(self, engine: &MultiEngine) {
        self.events.close();
        engine.batch.cancel(self.id);
        self.running.easy.set_running(None);
        // As in libcurl, the progress is reported once more at the end.
        let _ = self.running.report_progress();
    }
}
