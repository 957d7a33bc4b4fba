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

/// A transfer in progress of an easy handle, with its callbacks.
pub(crate) struct RunningTransfer {
    pub(crate) easy: Arc<Easy>,
    pub(crate) callbacks: Callbacks,
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

impl RunningTransfer {
    pub(crate) fn new(easy: Arc<Easy>, callbacks: Callbacks, time_limit: Option<Duration>) -> Self {
        let deadline = time_limit.and_then(|limit| Instant::now().checked_add(limit));
        let state = RunningState { deadline, request: -1, ..RunningState::default() };
        Self { easy, callbacks, state: Mutex::new(state), resumed: Condvar::new() }
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

    /// Removes and returns the heads of all responses.
    pub(crate) fn take_heads(&self) -> Vec<StoredHead> {
        std::mem::take(&mut lock(&self.state).heads)
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
        if self.callbacks.is_verbose {
            let text = format!("{head}\n").replace('\n', "\r\n");
            self.debug(debug_kind::HEADER_OUT, text.as_bytes());
        }
    }

    /// Passes a message to the debug callback.
    pub(crate) fn on_info(&self, text: &str) {
        if self.callbacks.is_verbose {
            self.debug(debug_kind::INFO_TEXT, format!("{text}\n").as_bytes());
        }
    }

    pub(crate) fn debug(&self, kind: c_int, bytes: &[u8]) {
        if self.callbacks.is_verbose {
            self.callbacks.debug(self.easy.number, kind, bytes);
        }
    }

    /// Passes the lines of a response head to the callbacks. If a callback pauses the transfer,
    /// waits for the end of the pause if `waits` is true.
    pub(crate) fn on_head(&self, head: &ResponseHead, origin: HeaderMessageKind, waits: bool) {
        if origin != HeaderMessageKind::Connect {
            lock(&self.easy.state).infos.on_head(head);
        }
        self.on_lines(head.raw(), origin, waits);
    }

    /// Passes the lines of a head or a trailer section to the callbacks. If a callback pauses the
    /// transfer and `waits` is true, waits for the end of the pause.
    pub(crate) fn on_lines(&self, raw: &[u8], origin: HeaderMessageKind, waits: bool) {
        let mut state = lock(&self.state);
        let request = state.request + c_int::from(origin == HeaderMessageKind::Connect);
        let request = request.max(0);
        state.heads.push(StoredHead { origin, request, raw: raw.to_vec() });
        drop(state);
        let is_hidden = origin == HeaderMessageKind::Connect && self.callbacks.hides_connect_heads;
        for line in raw.split_inclusive(|b| *b == b'\n') {
            self.debug(debug_kind::HEADER_IN, line);
            let is_end = origin == HeaderMessageKind::Trailer && line.trim_ascii().is_empty();
            if is_hidden || is_end || self.has_failed() {
                continue;
            }
            if self.callbacks.includes_heads {
                self.call_until_not_paused(line, waits, |callbacks, line| callbacks.write(line));
            }
            self.call_until_not_paused(line, waits, |callbacks, line| callbacks.header(line));
        }
    }

    /// Passes a line to a callback. If the callback pauses the transfer and `waits` is true, waits
    /// for the end of the pause, and passes the line again.
    fn call_until_not_paused(&self, line: &[u8], waits: bool, callback: impl Fn(&Callbacks, &[u8]) -> usize) {
        while !self.has_failed() {
            match callback(&self.callbacks, line) {
                WRITEFUNC_PAUSE => {
                    self.pause(PAUSE_RECV);
                    if !waits || !self.wait_while_paused(PAUSE_RECV) {
                        return;
                    }
                }
                taken if taken == line.len() => return,
                _ => self.fail_write(),
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
        match self.callbacks.write(piece) {
            WRITEFUNC_PAUSE => {
                self.pause(PAUSE_RECV);
                DeliveryResult::Paused
            }
            taken if taken == piece.len() => DeliveryResult::Taken,
            _ => {
                self.fail_write();
                DeliveryResult::Failed
            }
        }
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
                self.fail(CURLE_OPERATION_TIMEDOUT, "Operation timed out while it was paused");
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

    /// Passes a message to the debug callback if the transfer's connection was closed. (If the
    /// connection is kept, the engine reports this itself.)
    pub(crate) fn on_end(&self, outcome: &TransferOutcome) {
        let Some(head) = outcome.head.as_ref().filter(|_| self.callbacks.is_verbose) else { return };
        let number = outcome.facts.connection.unwrap_or(0);
        let asks = |word: &[u8]| head.get_all("connection").any(|value| value.eq_ignore_ascii_case(word));
        let is_old = outcome.facts.version == Some(ProtocolVersion::Http10) && !asks(b"keep-alive");
        if outcome.result.is_err() || asks(b"close") || is_old {
            self.on_info(&format!("closing connection #{number}"));
        }
    }

    /// Reports the progress if the C program has a progress callback. Returns false if the program
    /// aborts the transfer.
    pub(crate) fn report_progress(&self) -> bool {
        if !self.callbacks.has_progress {
            return true;
        }
        let state = lock(&self.state);
        let (TransferProgress { down_total, down, up_total, up }, has_failed) =
            (state.progress, state.failure.is_some());
        drop(state);
        if has_failed {
            return false;
        }
        let goes_on = self.callbacks.progress(down_total, down, up_total, up);
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
