//! A transfer in progress, as the program sees it: its callbacks, pauses, progress and failure.

use std::ffi::c_int;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haul::transfer::TransferOutcome;
use haul::{ProtocolVersion, ResponseHead};

use super::callbacks::{Callbacks, WRITEFUNC_PAUSE};
use crate::codes::{CURLE_ABORTED_BY_CALLBACK, CURLE_OPERATION_TIMEDOUT, CURLE_WRITE_ERROR, CURLcode};
use crate::easy::Easy;
use crate::handle_table::lock;
use crate::headers::{HeaderMessageKind, StoredHead};
use crate::request::TransferFailure;

/// The maximum number of body bytes that are passed to a write callback at once
/// (`CURL_MAX_WRITE_SIZE`).
pub(crate) const MAX_WRITE: usize = 16 << 10;

/// The bit of a paused download (`CURLPAUSE_RECV`).
pub(crate) const PAUSE_RECV: c_int = 1;
/// The bit of a paused upload (`CURLPAUSE_SEND`).
pub(crate) const PAUSE_SEND: c_int = 1 << 2;

/// The interval at which a paused transfer reports its progress.
const PAUSE_TICK: Duration = Duration::from_millis(50);

/// The kinds of debug events (`CURLINFO_TEXT` and so on).
pub(crate) mod debug_kind {
    use std::ffi::c_int;

    pub(crate) const INFO_TEXT: c_int = 0;
    pub(crate) const HEADER_IN: c_int = 1;
    pub(crate) const HEADER_OUT: c_int = 2;
    pub(crate) const DATA_IN: c_int = 3;
    pub(crate) const DATA_OUT: c_int = 4;
}

/// The result of passing bytes to the C program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryResult {
    /// The write callback of the C program accepted all bytes.
    Taken,
    /// The C program did not accept the bytes, and paused the transfer.
    Paused,
    /// The C program aborted the transfer.
    Failed,
}

/// The position in the lines of a head up to which the callbacks have received them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LinePosition {
    /// The offset of the line.
    offset: usize,
    /// The callback that receives the line next.
    step: LineStep,
}

/// The callback that receives a line of a head next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LineStep {
    #[default]
    Debug,
    /// The write callback, if response heads are passed to it.
    Write,
    Header,
    /// All callbacks have received the line.
    Done,
}

/// A transfer in progress of an easy handle, with its callbacks.
pub(crate) struct RunningTransfer {
    pub(crate) easy: Arc<Easy>,
    callbacks: Mutex<Callbacks>,
    /// True if the engine reports heads and trailer sections, because a callback wanted them when
    /// the transfer began.
    reports_heads: bool,
    started: Instant,
    state: Mutex<RunningState>,
    /// The condition variable that is notified when a pause ends.
    resumed: Condvar,
}

/// The state of a [`RunningTransfer`] that callbacks and the C program change, protected by its
/// lock.
#[derive(Default)]
struct RunningState {
    /// The directions that are paused, as `CURLPAUSE_` bits.
    paused: c_int,
    failure: Option<TransferFailure>,
    heads: Vec<StoredHead>,
    /// The index of the current request, from 0; -1 before the first request.
    request: c_int,
    progress: TransferProgress,
    deadline: Option<Instant>,
    /// The function that is called when a pause begins or ends. `None` unless the transfer belongs
    /// to a multi handle.
    on_pause: Option<Arc<dyn Fn() + Send + Sync>>,
}

/// The progress of a transfer in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TransferProgress {
    pub(crate) down_total: u64,
    pub(crate) down: u64,
    pub(crate) up_total: u64,
    pub(crate) up: u64,
}

impl TransferProgress {
    /// Returns the progress as the C program gets it. Decoded bytes may be more than the encoded
    /// bytes that were announced; the program gets at most the announced number.
    fn for_program(self) -> Self {
        let limit = if self.down_total > 0 { self.down_total } else { u64::MAX };
        Self { down: self.down.min(limit), ..self }
    }
}

impl RunningTransfer {
    pub(crate) fn new(easy: Arc<Easy>, callbacks: Callbacks, time_limit: Option<Duration>) -> Self {
        let started = Instant::now();
        let deadline = time_limit.and_then(|limit| started.checked_add(limit));
        let state = RunningState { deadline, request: -1, ..RunningState::default() };
        let reports_heads = callbacks.wants_heads();
        let (callbacks, state) = (Mutex::new(callbacks), Mutex::new(state));
        Self { easy, callbacks, reports_heads, started, state, resumed: Condvar::new() }
    }

    /// Returns the callbacks as they are set now.
    pub(crate) fn callbacks(&self) -> Callbacks {
        *lock(&self.callbacks)
    }

    /// Takes over the callbacks that the C program has changed during the transfer. As in libcurl,
    /// the callbacks for request content stay as they were at the start.
    pub(crate) fn set_callbacks(&self, callbacks: Callbacks) {
        *lock(&self.callbacks) = callbacks;
    }

    /// Sets the function that is called when a pause begins or ends.
    pub(crate) fn set_on_pause(&self, on_pause: Arc<dyn Fn() + Send + Sync>) {
        lock(&self.state).on_pause = Some(on_pause);
    }

    /// Pauses the directions whose bits are set, and continues the directions whose bits are not
    /// set.
    pub(crate) fn set_paused(&self, bits: c_int) {
        let mut state = lock(&self.state);
        let before = std::mem::replace(&mut state.paused, bits & (PAUSE_RECV | PAUSE_SEND));
        let on_pause = state.on_pause.clone().filter(|_| state.paused != before);
        drop(state);
        self.resumed.notify_all();
        if let Some(on_pause) = on_pause {
            on_pause();
        }
    }

    /// Returns the time from `now` to the time limit of the transfer; `None` without a limit.
    pub(crate) fn time_left(&self, now: Instant) -> Option<Duration> {
        lock(&self.state).deadline.map(|at| at.saturating_duration_since(now))
    }

    /// Returns true if the transfer has reached its time limit.
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        self.time_left(now).is_some_and(|left| left.is_zero())
    }

    /// Records that the transfer has reached its time limit while it was paused.
    pub(crate) fn fail_at_deadline(&self) {
        self.fail(CURLE_OPERATION_TIMEDOUT, "Operation timed out while it was paused");
    }

    pub(crate) fn is_paused(&self, bit: c_int) -> bool {
        lock(&self.state).paused & bit != 0
    }

    fn pause(&self, bit: c_int) {
        lock(&self.state).paused |= bit;
    }

    /// Records the reason why the transfer fails, unless a reason was recorded before.
    pub(crate) fn fail(&self, code: CURLcode, text: &str) {
        lock(&self.state).failure.get_or_insert_with(|| TransferFailure::new(code, text));
    }

    pub(crate) fn has_failed(&self) -> bool {
        lock(&self.state).failure.is_some()
    }

    pub(crate) fn failure(&self) -> Option<TransferFailure> {
        lock(&self.state).failure.clone()
    }

    /// Returns the stored heads from the one with the index `first` on.
    pub(crate) fn heads_from(&self, first: usize) -> Vec<StoredHead> {
        lock(&self.state).heads.get(first..).unwrap_or_default().to_vec()
    }

    /// Removes and returns the stored heads from the one with the index `first` on.
    pub(crate) fn take_heads_from(&self, first: usize) -> Vec<StoredHead> {
        let heads = &mut lock(&self.state).heads;
        heads.split_off(first.min(heads.len()))
    }

    /// Stores the head of the response, and returns true, if no head is stored yet. The engine has
    /// then reported no heads, because no callback wanted them when the transfer began. A callback
    /// may have been set since, so a caller at the start of the body passes the head's lines to the
    /// callbacks.
    pub(crate) fn store_only_head(&self, head: &ResponseHead) -> bool {
        let heads = &mut lock(&self.state).heads;
        let is_first = heads.is_empty();
        if is_first {
            heads.push(StoredHead { origin: HeaderMessageKind::Header, request: 0, raw: head.raw().to_vec() });
        }
        is_first
    }

    /// Returns the trailer section of a transfer that has ended, if the engine has not reported it
    /// because no callback wanted heads when the transfer began.
    pub(crate) fn unreported_trailers(&self, outcome: &TransferOutcome) -> Option<Vec<u8>> {
        let trailers = outcome.trailers.as_ref().filter(|_| !self.reports_heads)?;
        Some(trailers.raw().to_vec())
    }

    /// Returns the progress so far.
    pub(crate) fn progress(&self) -> TransferProgress {
        lock(&self.state).progress.for_program()
    }

    /// Returns the time since the transfer began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn change_progress(&self, change: impl FnOnce(&mut TransferProgress)) {
        change(&mut lock(&self.state).progress);
    }

    /// Records that all content was sent. The engine reports the end of content that is read in
    /// pieces, but not of content in memory.
    pub(crate) fn finish_upload(&self) {
        self.change_progress(|progress| progress.up = progress.up.max(progress.up_total));
    }

    /// Records that a request is being sent, and passes its head to the debug callback. A CONNECT
    /// belongs to the request after it, and is not counted.
    pub(crate) fn on_request(&self, head: &str) {
        if !is_connect(head) {
            lock(&self.state).request += 1;
        }
        if self.callbacks().is_verbose {
            let text = format!("{head}\n").replace('\n', "\r\n");
            self.debug(debug_kind::HEADER_OUT, text.as_bytes());
        }
    }

    /// Passes a message to the debug callback.
    pub(crate) fn on_info(&self, text: &str) {
        if self.callbacks().is_verbose {
            self.debug(debug_kind::INFO_TEXT, format!("{text}\n").as_bytes());
        }
    }

    pub(crate) fn debug(&self, kind: c_int, bytes: &[u8]) {
        if self.callbacks().is_verbose {
            self.callbacks().debug(self.easy.number, kind, bytes);
        }
    }

    /// Stores a response head for `curl_easy_getinfo` and `curl_easy_header`. The caller then
    /// passes its lines to the callbacks.
    pub(crate) fn store_head(&self, head: &ResponseHead, origin: HeaderMessageKind) {
        let infos = &mut lock(&self.easy.state).infos;
        match origin {
            HeaderMessageKind::Connect => infos.on_challenges(head),
            _ => infos.on_head(head),
        }
        self.store_lines(head.raw(), origin);
    }

    /// Stores the lines of a head or a trailer section for `curl_easy_header`.
    pub(crate) fn store_lines(&self, raw: &[u8], origin: HeaderMessageKind) {
        let mut state = lock(&self.state);
        let request = state.request + c_int::from(origin == HeaderMessageKind::Connect);
        let request = request.max(0);
        state.heads.push(StoredHead { origin, request, raw: raw.to_vec() });
    }

    /// Passes the lines of a head or a trailer section to the callbacks. If a callback pauses the
    /// transfer, waits for the end of the pause.
    pub(crate) fn pass_lines_and_wait(&self, raw: &[u8], origin: HeaderMessageKind) {
        let mut position = LinePosition::default();
        while self.pass_lines(raw, origin, &mut position) == DeliveryResult::Paused
            && self.wait_while_paused(PAUSE_RECV)
        {}
    }

    /// Passes the lines of a head or a trailer section to the callbacks, from `position` on. If a
    /// callback pauses the transfer, `position` is that of the line that this callback gets again.
    pub(crate) fn pass_lines(
        &self,
        raw: &[u8],
        origin: HeaderMessageKind,
        position: &mut LinePosition,
    ) -> DeliveryResult {
        let is_hidden = origin == HeaderMessageKind::Connect && self.callbacks().hides_connect_heads;
        while let Some(line) = raw[position.offset..].split_inclusive(|b| *b == b'\n').next() {
            if self.has_failed() {
                return DeliveryResult::Failed;
            }
            let is_end = origin == HeaderMessageKind::Trailer && line.trim_ascii().is_empty();
            let result = match position.step {
                LineStep::Debug => {
                    self.debug(debug_kind::HEADER_IN, line);
                    position.step = if is_hidden || is_end { LineStep::Done } else { LineStep::Write };
                    continue;
                }
                LineStep::Write if self.callbacks().includes_heads => {
                    self.result_of(self.callbacks().write(line), line)
                }
                LineStep::Write => DeliveryResult::Taken,
                LineStep::Header => self.result_of(self.callbacks().header(line), line),
                LineStep::Done => {
                    *position = LinePosition { offset: position.offset + line.len(), step: LineStep::Debug };
                    continue;
                }
            };
            if result != DeliveryResult::Taken {
                return result;
            }
            position.step = if position.step == LineStep::Write { LineStep::Header } else { LineStep::Done };
        }
        DeliveryResult::Taken
    }

    /// Converts the number that a callback has returned for `bytes`.
    fn result_of(&self, returned: usize, bytes: &[u8]) -> DeliveryResult {
        match returned {
            WRITEFUNC_PAUSE => {
                self.pause(PAUSE_RECV);
                DeliveryResult::Paused
            }
            taken if taken == bytes.len() => DeliveryResult::Taken,
            _ => {
                self.fail_write();
                DeliveryResult::Failed
            }
        }
    }

    fn fail_write(&self) {
        self.fail(CURLE_WRITE_ERROR, "Failure writing output to destination");
    }

    /// Passes one piece of the body, of at most [`MAX_WRITE`] bytes, to the write callback.
    pub(crate) fn write_piece(&self, piece: &[u8]) -> DeliveryResult {
        if self.has_failed() {
            return DeliveryResult::Failed;
        }
        self.result_of(self.callbacks().write(piece), piece)
    }

    /// Passes bytes of the body to the write callback, and waits while the transfer is paused.
    /// Returns false if the transfer ends.
    pub(crate) fn write_all(&self, bytes: &[u8]) -> bool {
        for piece in bytes.chunks(MAX_WRITE) {
            loop {
                if !self.wait_while_paused(PAUSE_RECV) {
                    return false;
                }
                match self.write_piece(piece) {
                    DeliveryResult::Taken => break,
                    DeliveryResult::Paused => {}
                    DeliveryResult::Failed => return false,
                }
            }
        }
        true
    }

    /// Waits until the direction with this bit ([`PAUSE_RECV`] or [`PAUSE_SEND`]) is not paused.
    /// Reports the progress meanwhile, since a progress callback may end the pause. Returns false
    /// if the transfer is aborted.
    pub(crate) fn wait_while_paused(&self, bit: c_int) -> bool {
        let mut state = lock(&self.state);
        while state.paused & bit != 0 {
            if state.deadline.is_some_and(|at| at <= Instant::now()) {
                drop(state);
                self.fail_at_deadline();
                return false;
            }
            drop(state);
            if !self.report_progress() {
                return false;
            }
            state = lock(&self.state);
            if state.paused & bit != 0 {
                state = self.resumed.wait_timeout(state, PAUSE_TICK).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        state.failure.is_none()
    }

    /// Records that the upload is paused, because the read callback requested this.
    pub(crate) fn pause_sending(&self) {
        self.pause(PAUSE_SEND);
    }

    /// Passes `closing connection #N` to the debug callback if the connection of the response is
    /// not kept: after an error, `Connection: close`, or HTTP/1.0 without keep-alive. (The engine
    /// reports a connection that is kept.)
    pub(crate) fn on_end(&self, outcome: &TransferOutcome) {
        let Some(head) = outcome.head.as_ref().filter(|_| self.callbacks().is_verbose) else { return };
        let number = outcome.facts.connection.unwrap_or(0);
        let asks = |word: &[u8]| head.get_all("connection").any(|value| value.eq_ignore_ascii_case(word));
        let is_old = outcome.facts.version == Some(ProtocolVersion::Http10) && !asks(b"keep-alive");
        if outcome.result.is_err() || asks(b"close") || is_old {
            self.on_info(&format!("closing connection #{number}"));
        }
    }

    /// Reports the progress if the C program has a progress callback. Returns false if the program
    /// aborts the transfer, or if the transfer has failed before.
    #[must_use]
    pub(crate) fn report_progress(&self) -> bool {
        if !self.callbacks().has_progress {
            return true;
        }
        let state = lock(&self.state);
        let (TransferProgress { down_total, down, up_total, up }, has_failed) =
            (state.progress.for_program(), state.failure.is_some());
        drop(state);
        if has_failed {
            return false;
        }
        let goes_on = self.callbacks().progress(down_total, down, up_total, up);
        if !goes_on {
            self.fail(CURLE_ABORTED_BY_CALLBACK, "Callback aborted");
        }
        goes_on
    }
}

/// Returns true if this is the head of a request to a proxy for a tunnel.
pub(crate) fn is_connect(head: &str) -> bool {
    head.starts_with("CONNECT ")
}
