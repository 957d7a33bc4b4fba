//! The state of a multi handle: its easy handles, and the processing of `curl_multi_perform`.

use std::collections::{HashMap, VecDeque};
use std::ffi::{c_int, c_long, c_void};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haul::fork::fork_count;

use super::engine::MultiEngine;
use super::transfer::MultiTransfer;
use super::wakeup_descriptor::WakeupDescriptor;
use super::{MULTIS, locked};
use crate::client_settings::ClientSettings;
use crate::codes::{
    CURLM_ADDED_ALREADY, CURLM_BAD_EASY_HANDLE, CURLM_OK, CURLM_OUT_OF_MEMORY, CURLM_RECURSIVE_API_CALL, CURLMcode,
    CURLcode,
};
use crate::easy::Easy;
use crate::handle_table::{UserPointer, lock};

/// The socket callback of a program: receives each change of the descriptors to watch
/// (`CURLMOPT_SOCKETFUNCTION`).
pub(crate) type SocketFunction = Option<
    unsafe extern "C" fn(
        easy: *mut c_void,
        socket: c_int,
        what: c_int,
        user: *mut c_void,
        socket_pointer: *mut c_void,
    ) -> c_int,
>;
/// The timer callback of a program: receives the time until the next call of `curl_multi_perform`
/// is due (`CURLMOPT_TIMERFUNCTION`).
pub(crate) type TimerFunction =
    Option<unsafe extern "C" fn(multi: *mut c_void, timeout: c_long, user: *mut c_void) -> c_int>;

/// A message about a transfer, as `curl/multi.h` describes it.
#[repr(C)]
pub struct CURLMsg {
    msg: c_int,
    easy: *mut c_void,
    result: MessageData,
}

/// The union in a [`CURLMsg`]. haul uses only the member for the result of the transfer.
#[repr(C)]
union MessageData {
    whatever: *mut c_void,
    result: CURLcode,
}

/// The value of `msg` in a message about a finished transfer, as in libcurl.
const CURLMSG_DONE: c_int = 1;

// SAFETY: the pointer is the number of a handle, which nobody dereferences.
unsafe impl Send for CURLMsg {}

/// The settings of a multi handle. A limit that is not set is `None`.
#[derive(Clone, Copy, Default)]
pub(crate) struct MultiSettings {
    pub(super) socket: SocketFunction,
    pub(super) socket_data: UserPointer,
    pub(super) timer: TimerFunction,
    pub(super) timer_data: UserPointer,
    pub(super) max_idle: Option<usize>,
    pub(super) max_per_host: Option<usize>,
    pub(super) max_parallel: Option<usize>,
}

/// The phase of the transfer of an easy handle.
pub(super) enum TransferPhase {
    /// The transfer begins in the next call of `curl_multi_perform`.
    New,
    /// The transfer is in progress. It is boxed, since each call of `curl_multi_perform` moves it.
    Running(Box<MultiTransfer>),
    /// The current call of `curl_multi_perform` owns the transfer.
    Taken,
    /// The transfer has ended.
    Over,
}

/// An easy handle that was added to a multi handle, with the phase of its transfer.
pub(super) struct AddedHandle {
    pub(super) easy: Arc<Easy>,
    pub(super) phase: TransferPhase,
    /// The message about the end of the transfer; `None` before the end. It stays readable for the
    /// C program until the handle is removed.
    message: Option<Box<CURLMsg>>,
}

impl AddedHandle {
    fn is_over(&self) -> bool {
        matches!(self.phase, TransferPhase::Over)
    }

    /// Creates the message about the end of the transfer for `curl_multi_info_read`.
    pub(super) fn set_message(&mut self, result: CURLcode) {
        let mut data = MessageData { whatever: std::ptr::null_mut() };
        data.result = result;
        let easy = std::ptr::without_provenance_mut(self.easy.number);
        self.message = Some(Box::new(CURLMsg { msg: CURLMSG_DONE, easy, result: data }));
    }
}

/// The settings, the easy handles and the messages of a multi handle, protected by its lock.
#[derive(Default)]
pub(crate) struct MultiState {
    pub(super) settings: MultiSettings,
    pub(super) engine: Option<Arc<MultiEngine>>,
    pub(super) handles: Vec<AddedHandle>,
    /// The number of times that an easy handle was added. It is the id of the next transfer.
    added: i64,
    /// The ids of the easy handles whose messages the C program has not read yet.
    pub(super) messages: VecDeque<usize>,
    /// The descriptors that the socket callback has told the C program to watch.
    pub(super) watched: Vec<RawFd>,
    pub(super) assigned: HashMap<RawFd, UserPointer>,
    /// The timeout that was last passed to the timer callback; `None` before the first call.
    pub(super) last_timeout: Option<c_long>,
}

/// A multi handle (`CURLM *`), which runs the transfers of several easy handles at the same time.
pub(crate) struct Multi {
    number: usize,
    /// The descriptor that becomes readable when the C program's thread has to process events.
    pub(super) notifier: Arc<WakeupDescriptor>,
    /// The descriptor that ends a call of `curl_multi_poll` when it becomes readable.
    pub(super) wakeup: WakeupDescriptor,
    pub(super) state: Mutex<MultiState>,
    /// True while `curl_multi_perform` runs, so that callbacks cannot call it recursively.
    busy: AtomicBool,
    /// The [`fork_count`] of the process whose threads run this handle's transfers. The count is
    /// higher in a forked child, which has none of these threads.
    pub(super) generation: AtomicU32,
}

/// Makes the two descriptors of a multi handle: `notifier`, which is readable while the C program
/// has events to process, and `wakeup`, which ends a call of `curl_multi_poll`. Returns `None` if
/// the process cannot open more descriptors.
pub(super) fn new_notifiers() -> Option<(WakeupDescriptor, WakeupDescriptor)> {
    Some((WakeupDescriptor::new()?, WakeupDescriptor::new()?))
}

/// Removes an easy handle from the multi handle with this id, because the easy handle is being
/// freed.
pub(crate) fn remove(multi: usize, easy: usize) {
    if let Some(multi) = MULTIS.get_by_number(multi) {
        multi.renew_after_fork();
        multi.remove_easy(easy);
        multi.update_after_removal();
    }
}

impl Multi {
    pub(super) fn new(number: usize, (notifier, wakeup): (WakeupDescriptor, WakeupDescriptor)) -> Self {
        let notifier = Arc::new(notifier);
        let generation = AtomicU32::new(fork_count());
        Self { number, notifier, wakeup, state: Mutex::default(), busy: AtomicBool::new(false), generation }
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::SeqCst)
    }

    pub(super) fn change_settings(&self, change: impl FnOnce(&mut MultiSettings)) {
        change(&mut locked(self).settings);
    }

    /// Returns the ids of the easy handles that were added to the multi handle.
    pub(super) fn handles(&self) -> Vec<usize> {
        locked(self).handles.iter().map(|added| added.easy.number).collect()
    }

    /// Returns the descriptors that the C program must watch, in the order of their creation.
    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        let state = locked(self);
        let engine = state.engine.as_ref().map(|engine| engine.fd());
        [Some(self.notifier.fd()), engine].into_iter().flatten().collect()
    }

    /// Returns the descriptors that the C program must watch; none if no transfer is in progress.
    pub(super) fn active_descriptors(&self) -> Vec<RawFd> {
        let is_active = |added: &AddedHandle| matches!(added.phase, TransferPhase::Running(_) | TransferPhase::Taken);
        let is_active = locked(self).handles.iter().any(is_active);
        if is_active { self.descriptors() } else { Vec::new() }
    }

    /// Returns the number of transfers that have not ended.
    pub(super) fn unfinished(&self) -> usize {
        locked(self).handles.iter().filter(|added| !added.is_over()).count()
    }

    /// Returns the id of an easy handle whose transfer has not ended, to pass it to callbacks that
    /// need an easy handle. If all transfers have ended, returns the id of any easy handle, or
    /// `None` if there is none.
    pub(super) fn any_easy(&self) -> Option<usize> {
        let state = locked(self);
        let unfinished = state.handles.iter().find(|added| !added.is_over());
        unfinished.or(state.handles.last()).map(|added| added.easy.number)
    }

    /// Returns the time in milliseconds after which `curl_multi_perform` must be called even
    /// without an event; -1 if no call is needed.
    pub(super) fn timeout(&self) -> c_long {
        let state = locked(self);
        let now = Instant::now();
        let mut timeout = None;
        for added in &state.handles {
            match &added.phase {
                TransferPhase::New => return 0,
                TransferPhase::Running(transfer) => {
                    timeout = timeout.into_iter().chain(transfer.timeout(now)).min();
                }
                TransferPhase::Taken | TransferPhase::Over => {}
            }
        }
        // Rounded up: a call before the time would have nothing to do.
        let milliseconds =
            |time: Duration| c_long::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(c_long::MAX);
        timeout.map_or(-1, milliseconds)
    }

    pub(super) fn add(&self, easy: Arc<Easy>) -> CURLMcode {
        if self.is_busy() {
            return CURLM_RECURSIVE_API_CALL;
        }
        let mut easy_state = lock(&easy.state);
        if easy_state.multi.is_some() {
            return CURLM_ADDED_ALREADY;
        }
        if easy_state.is_performing() {
            return CURLM_BAD_EASY_HANDLE;
        }
        let mut state = locked(self);
        if state.engine.is_none() {
            let settings = ClientSettings::from_options(&easy_state.options);
            let Some(engine) = MultiEngine::new(&state.settings, &settings, easy_state.shared_resolver()) else {
                return CURLM_OUT_OF_MEMORY;
            };
            state.engine = Some(Arc::new(engine));
        }
        easy_state.multi = Some(self.number);
        easy_state.transfer_id = Some(state.added);
        drop(easy_state);
        state.added += 1;
        state.handles.push(AddedHandle { easy, phase: TransferPhase::New, message: None });
        drop(state);
        self.notifier.notify();
        self.update()
    }

    pub(super) fn remove(&self, easy: &Arc<Easy>) -> CURLMcode {
        if self.is_busy() {
            return CURLM_RECURSIVE_API_CALL;
        }
        let owner = lock(&easy.state).multi;
        match owner {
            // As in libcurl, removing a handle that is already removed is no error.
            None => CURLM_OK,
            Some(number) if number != self.number => CURLM_BAD_EASY_HANDLE,
            Some(_) => {
                self.remove_easy(easy.number);
                self.update_after_removal()
            }
        }
    }

    /// Removes an easy handle from the multi handle, and ends its transfer.
    fn remove_easy(&self, easy: usize) {
        let mut state = locked(self);
        let Some(at) = state.handles.iter().position(|added| added.easy.number == easy) else { return };
        let added = state.handles.remove(at);
        state.messages.retain(|number| *number != easy);
        let engine = state.engine.clone();
        drop(state);
        lock(&added.easy.state).multi = None;
        if let (TransferPhase::Running(transfer), Some(engine)) = (added.phase, engine) {
            transfer.cancel(&engine);
        }
    }

    /// Removes all easy handles from the multi handle.
    pub(super) fn clear(&self) {
        for easy in self.handles() {
            self.remove_easy(easy);
        }
        self.update();
        locked(self).engine = None;
    }

    /// Does the work of one `curl_multi_perform`: begins transfers, and calls the callbacks for the
    /// data that have arrived. Returns the result code, and the number of transfers that have not
    /// ended.
    pub(super) fn perform(&self) -> (CURLMcode, c_int) {
        let count = || c_int::try_from(self.unfinished()).unwrap_or(c_int::MAX);
        if self.busy.swap(true, Ordering::SeqCst) {
            return (CURLM_RECURSIVE_API_CALL, count());
        }
        let turn = PerformGuard(self);
        self.notifier.clear();
        let engine = locked(self).engine.clone();
        if let Some(engine) = engine {
            self.take_outcomes(&engine);
            self.advance_all(&engine);
        }
        drop(turn);
        (self.update(), count())
    }

    /// Stores the outcomes of the engine's finished transfers in the transfers of this handle.
    fn take_outcomes(&self, engine: &MultiEngine) {
        loop {
            let finished = engine.batch.try_bunch(64);
            if finished.is_empty() {
                return;
            }
            let mut state = locked(self);
            for finished in finished {
                let id = finished.id();
                let transfer = state.handles.iter_mut().find_map(|added| match &mut added.phase {
                    TransferPhase::Running(transfer) if transfer.id == id => Some(transfer),
                    _ => None,
                });
                // The outcome of a removed handle is dropped.
                if let Some(transfer) = transfer {
                    transfer.set_outcome(finished.into_parts::<super::transfer_event_queue::QueueSink>().0);
                }
            }
        }
    }

    /// Begins the new transfers, and advances all transfers that can continue.
    fn advance_all(&self, engine: &MultiEngine) {
        let now = Instant::now();
        let mut due = Vec::new();
        for added in &locked(self).handles {
            let is_due = match &added.phase {
                TransferPhase::New => true,
                TransferPhase::Running(transfer) => transfer.is_due(now),
                TransferPhase::Taken | TransferPhase::Over => false,
            };
            if is_due {
                due.push(added.easy.number);
            }
        }
        for easy in due {
            // The lock is not held while callbacks run.
            let Some((object, phase)) = self.take_phase(easy) else { continue };
            let mut result = None;
            let phase = match phase {
                TransferPhase::New => match MultiTransfer::begin(&object, engine, &self.notifier) {
                    Ok(transfer) => TransferPhase::Running(Box::new(transfer)),
                    Err(code) => {
                        result = Some(code);
                        TransferPhase::Over
                    }
                },
                TransferPhase::Running(mut transfer) => match transfer.call_callbacks(engine) {
                    None => TransferPhase::Running(transfer),
                    Some(code) => {
                        result = Some(code);
                        TransferPhase::Over
                    }
                },
                other => other,
            };
            self.put_phase(easy, phase, result, engine);
        }
    }

    fn take_phase(&self, easy: usize) -> Option<(Arc<Easy>, TransferPhase)> {
        let mut state = locked(self);
        let added = state.handles.iter_mut().find(|added| added.easy.number == easy)?;
        Some((Arc::clone(&added.easy), std::mem::replace(&mut added.phase, TransferPhase::Taken)))
    }

    /// Stores the phase of a transfer after `curl_multi_perform` has begun or continued the
    /// transfer. `result` is the result of a transfer that has ended; the message for
    /// `curl_multi_info_read` is then created. Cancels the transfer if a callback has freed the
    /// easy handle.
    fn put_phase(&self, easy: usize, phase: TransferPhase, result: Option<CURLcode>, engine: &MultiEngine) {
        let mut state = locked(self);
        let Some(added) = state.handles.iter_mut().find(|added| added.easy.number == easy) else {
            drop(state);
            if let TransferPhase::Running(transfer) = phase {
                transfer.cancel(engine);
            }
            return;
        };
        added.phase = phase;
        if let Some(result) = result {
            added.set_message(result);
            state.messages.push_back(easy);
        }
    }

    /// Returns the next message about a finished transfer, and the number of messages that follow
    /// it. The message is NULL if there is none.
    pub(super) fn next_message(&self) -> (*mut CURLMsg, c_int) {
        let mut state = locked(self);
        let state = &mut *state;
        while let Some(easy) = state.messages.pop_front() {
            let added = state.handles.iter_mut().find(|added| added.easy.number == easy);
            if let Some(message) = added.and_then(|added| added.message.as_mut()) {
                return (&raw mut **message, c_int::try_from(state.messages.len()).unwrap_or(c_int::MAX));
            }
        }
        (std::ptr::null_mut(), 0)
    }
}

/// A running call of `curl_multi_perform`. Dropping this value ends it, even during a panic.
struct PerformGuard<'a>(&'a Multi);

impl Drop for PerformGuard<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::SeqCst);
    }
}
