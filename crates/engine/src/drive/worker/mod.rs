//! The event loop: one per worker thread, each with its own connections and read buffer.
//!
//! A worker asks its [`Scheduler`] for transfers, assigns the next transfer for a host to a free
//! connection to that host, and sleeps in `epoll_wait` (or `kqueue`) when it has nothing to do.
//! Readiness is edge-triggered, and a descriptor is registered once, so a small page on an open
//! connection takes one send, one receive and a share of one wait.
//!
//! ```text
//!             ┌───────────────────────────────────────────────┐
//!  Scheduler ─┼▶ take ─▶ place ─▶ slots ─▶ flush ─▶ sleep ─▶ events, messages, timers ─┐
//!             └───────────────────────────────────────▲───────────────────────────────┘
//! ```
//!
//! The first worker is the calling thread. It starts further workers while it is busy and transfers
//! wait: one thread is enough for a network-bound run, and a run that decodes or extracts uses all
//! cores.

mod assign_and_serve_connections;
#[cfg(feature = "http3")]
mod background_http3_handshake;
mod cancel;
mod close_after_draining;
mod connection_coalescing;
mod connection_slot_table;
mod descriptor_waits;
mod extra_workers;
mod gathered_output_flush;
mod handed_over_work;
mod idle_slots;
mod overload_retry;
mod peer_properties;
mod retries_that_keep_slots;
mod stream_wait;
#[cfg(test)]
mod tests;
mod transfer_source_trait;
mod unanswered_connection_attempts;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use connection_slot_table::ConnectionSlotTable;
use extra_workers::ExtraWorkers;
use gathered_output_flush::OutputFlushState;
use idle_slots::IdleConnectionSlots;
use peer_properties::PeerRecordCache;
use retries_that_keep_slots::{DelayReason, DelayedTransfers};
pub use transfer_source_trait::{FreeHostSlotUse, HandedOverWork, Scheduler};
pub(crate) use unanswered_connection_attempts::ConnectAnswerState;
use unanswered_connection_attempts::UnansweredConnectAttempts;

use super::connection::{FinishedTransfers, HttpConnection, ReceiveStatus};
use super::connection_slot::{ConnectionSlot, ConnectionState};
use super::worker_inbox::{WorkerInbox, WorkerMessage};
use super::zero_copy_to_sink::ZeroCopyMover;
use crate::buffer_pool::Buffer;
use crate::client::Client;
use crate::sink::TransferWaker;
use crate::stats::TransferTotals;
use crate::transfer::Transfer;
use crate::{Error, ErrorKind, Result};

/// The limits on the workers and connections of a run.
#[derive(Debug, Clone, Copy)]
pub struct WorkerOptions {
    /// Maximum number of threads, the calling one included.
    pub threads: usize,
    /// Maximum number of outstanding requests on an HTTP/1.1 connection; with 1, requests are not
    /// pipelined.
    pub depth: usize,
    /// Maximum number of connections to one host, if requests are pipelined.
    pub per_host: usize,
    /// True to open a connection for each transfer as long as no connection to its host is open. If
    /// false, the transfers wait for the first connection, because they can share it if it uses
    /// HTTP/2.
    pub connects_at_once: bool,
}

const INBOX_TOKEN: Token = Token(usize::MAX);
const OUTPUT_TOKEN: Token = Token(usize::MAX - 1);

/// Runs workers until the [`Scheduler`] has no more transfers.
///
/// # Errors
/// The system provides no event loop, or the output cannot be written any more.
pub fn run(client: &Client, scheduler: &Arc<dyn Scheduler>, options: WorkerOptions) -> Result<()> {
    let mut first = Worker::new(0, client, scheduler, options)?;
    let outcome = first.run();
    first.helpers.join();
    outcome
}

/// Runs one worker on the calling thread. The worker first completes the transfer in progress on
/// `connection`, and then runs all further transfers.
///
/// # Errors
/// The unchanged connection, if the system provides no event loop.
pub(crate) fn run_with(
    client: &Client,
    scheduler: &Arc<dyn Scheduler>,
    options: WorkerOptions,
    connection: HttpConnection,
) -> Result<Result<()>, Box<HttpConnection>> {
    let Ok(mut worker) = Worker::new(0, client, scheduler, WorkerOptions { threads: 1, ..options }) else {
        return Err(Box::new(connection));
    };
    worker.add_active_connection(connection)?;
    Ok(worker.run())
}

/// A guard that ends the run when a worker panics. Without it, the run would wait for the worker's
/// transfers for ever.
struct PanicGuard<'a>(&'a dyn Scheduler);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abort(Error::new(ErrorKind::Panicked, "a worker panicked"));
        }
    }
}

/// A worker: an event loop with its connections, its read buffer and its waiting transfers.
struct Worker {
    /// The index of this worker; 0 for the worker on the calling thread.
    index: usize,
    client: Client,
    scheduler: Arc<dyn Scheduler>,
    options: WorkerOptions,
    poll: Poll,
    inbox: Arc<WorkerInbox>,
    /// The inbox as a [`TransferWaker`], which sinks and content sources call.
    wake: Arc<dyn TransferWaker>,
    slots: ConnectionSlotTable,
    peers: PeerRecordCache,
    idle: IdleConnectionSlots,
    attempts: UnansweredConnectAttempts,
    /// Transfers that need a connection, each with the token of a connection slot to try first. The
    /// queue avoids recursion: a transfer that fails immediately starts the next transfer, and a
    /// million such failures must not become a million nested calls.
    to_place: VecDeque<(Box<Transfer>, Option<usize>)>,
    delayed: DelayedTransfers,
    deferred: DeferredWork,
    scratch: ReceiveScratch,
    output: OutputFlushState,
    helpers: ExtraWorkers,
    /// Threads in which connections are drained and closed.
    draining: Vec<JoinHandle<()>>,
    totals: TransferTotals,
    /// The current time, read from the clock after the last sleep.
    now: Instant,
}

/// Work that is deferred to the end of the current round of the event loop, or to the next round.
#[derive(Default)]
struct DeferredWork {
    /// The tokens of shared connections with unsent requests or acknowledgements. The output of one
    /// round of the event loop is sent in one write.
    unsent: Vec<usize>,
    /// The tokens of connection slots that have reached the maximum number of receives in this
    /// round of the event loop, and may have more to receive. Also contains the tokens of slots
    /// whose QUIC handshake begins in the next round.
    ready_again: Vec<usize>,
    /// True if this round of the event loop has handled messages without polling the sockets.
    has_skipped_poll: bool,
    /// The time when [`Scheduler::on_round_end`] must be called again even without an event.
    end_round_again_at: Option<Instant>,
}

/// The buffers for receives. All connections of the worker use them, one connection at a time.
struct ReceiveScratch {
    buffer: Buffer,
    mover: ZeroCopyMover,
    finished: FinishedTransfers,
}

fn event_loop_error(error: io::Error) -> Error {
    Error::with_source(ErrorKind::Connect, "the event loop cannot be set up", error)
}

impl Worker {
    fn new(index: usize, client: &Client, scheduler: &Arc<dyn Scheduler>, options: WorkerOptions) -> Result<Self> {
        let poll = Poll::new().map_err(event_loop_error)?;
        let inbox = Arc::new(WorkerInbox::new(poll.registry(), INBOX_TOKEN).map_err(event_loop_error)?);
        scheduler.on_worker_started(&inbox);
        client.register_inbox(&inbox);
        client.connection_descriptor_budget().reread_limit();
        let now = Instant::now();
        Ok(Self {
            index,
            client: client.clone(),
            scheduler: Arc::clone(scheduler),
            options,
            poll,
            wake: inbox.clone(),
            inbox,
            slots: ConnectionSlotTable::new(Arc::clone(client.connection_descriptor_budget())),
            peers: PeerRecordCache::default(),
            idle: IdleConnectionSlots::new(client.close_idle_calls()),
            attempts: UnansweredConnectAttempts::default(),
            to_place: VecDeque::new(),
            delayed: DelayedTransfers::default(),
            deferred: DeferredWork::default(),
            scratch: ReceiveScratch {
                buffer: client.buffer_pool().take_buffer(),
                mover: ZeroCopyMover::default(),
                finished: FinishedTransfers::new(),
            },
            output: OutputFlushState::default(),
            helpers: ExtraWorkers::new(now),
            draining: Vec::new(),
            totals: TransferTotals::default(),
            now,
        })
    }

    /// Runs the event loop until the run is over. An error of this worker ends the run for all
    /// workers, since its transfers are lost.
    fn run(&mut self) -> Result<()> {
        let scheduler = Arc::clone(&self.scheduler);
        let _guard = PanicGuard(&*scheduler);
        let outcome = self.run_loop();
        self.shut_down();
        if let Err(error) = &outcome {
            scheduler.abort(error.duplicate());
        }
        outcome
    }

    fn run_loop(&mut self) -> Result<()> {
        let mut events = Events::with_capacity(256);
        let mut messages = Vec::new();
        loop {
            while self.attempts.has_room()
                && let Some(transfer) = self.scheduler.next(self.index, self.now)
            {
                self.to_place.push_back((transfer, None));
                self.assign_all_startable();
            }
            for slot in std::mem::take(&mut self.deferred.unsent) {
                self.send_pending(slot);
            }
            self.flush()?;
            self.deferred.end_round_again_at = self.scheduler.on_round_end(self.now);
            if self.scheduler.is_run_over() {
                return Ok(());
            }
            self.mark_idle_slots();
            self.wait_for_events(&mut events)?;
            self.output.on_wake_up();
            self.close_idle_timeouts();
            self.inbox.take_all(&mut messages);
            for message in messages.drain(..) {
                self.handle_message(message);
            }
            for event in &events {
                match event.token() {
                    INBOX_TOKEN => {}
                    OUTPUT_TOKEN => self.output.on_output_writable(),
                    Token(slot) => self.on_socket_event(slot, event.is_read_closed() || event.is_error()),
                }
                self.assign_all_startable();
            }
            for slot in std::mem::take(&mut self.deferred.ready_again) {
                self.on_socket_event(slot, false);
            }
            // An idle connection may get a transfer now.
            self.assign_all_startable();
            self.handle_timers();
            self.assign_all_startable();
            self.start_helper();
        }
    }

    fn wait_for_events(&mut self, events: &mut Events) -> Result<()> {
        let before = Instant::now();
        let may_poll_later = self.deferred.ready_again.is_empty() && !self.deferred.has_skipped_poll;
        let may_sleep = self.deferred.ready_again.is_empty() && self.inbox.try_sleep();
        self.deferred.has_skipped_poll = may_poll_later && !may_sleep;
        if self.deferred.has_skipped_poll {
            // The messages may start a transfer. The sockets have their turn in the next round.
            self.slots.set_timers();
            events.clear();
            self.now = before;
            return Ok(());
        }
        let timeout = if may_sleep {
            self.next_wakeup(before).map(|at| at.saturating_duration_since(before))
        } else {
            self.slots.set_timers();
            Some(Duration::ZERO)
        };
        match self.poll.poll(events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(event_loop_error(error)),
        }
        self.now = Instant::now();
        self.helpers.add_sleep(self.now - before);
        Ok(())
    }

    fn next_wakeup(&mut self, before: Instant) -> Option<Instant> {
        let slots = self.slots.next_wakeup(before);
        // The time passed on is the time of the last `Scheduler::next`. A pause that has ended
        // since then must still wake the worker. While there are too many attempts, it is not
        // asked: the next timeout of an attempt comes soon.
        let asked = self.attempts.has_room().then(|| self.scheduler.next_timeout(self.now)).flatten();
        let old = self.idle_timeout();
        // Those of ended attempts must not wake an idle worker.
        let attempts = if self.slots.has_transfers() { self.attempts.next_timeout() } else { None };
        [
            slots,
            self.delayed.next_timeout(),
            self.output.next_timeout(),
            self.deferred.end_round_again_at,
            old,
            asked,
            attempts,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn handle_message(&mut self, message: WorkerMessage) {
        match message {
            WorkerMessage::Resume(slot) => {
                if let Some(slot) = self.slots.get_mut(slot) {
                    slot.resume();
                }
                self.on_socket_event(slot, false);
            }
            // A late answer about a name may come after the connection is open.
            WorkerMessage::Resolved(token) => {
                if self.slots.get_mut(token).is_some_and(|slot| !matches!(slot.state, ConnectionState::Open(_))) {
                    self.continue_opening(token);
                }
            }
            WorkerMessage::Cancel(tag) => self.cancel(tag),
            WorkerMessage::TakeHandedOverWork => self.take_handed_over_work(),
            WorkerMessage::FreeDescriptor => drop(self.free_descriptor()),
            // The next round of the event loop flushes the output and asks the scheduler anyway.
            WorkerMessage::WatchOutput | WorkerMessage::CheckWork => {}
        }
    }

    fn handle_timers(&mut self) {
        let now = self.now;
        while let Some((reason, transfer)) = self.delayed.pop_due(now) {
            let is_retry = reason == DelayReason::Retry;
            match is_retry.then(|| self.scheduler.retry_wait(&transfer, now)).flatten() {
                Some(at) => self.delayed.push(at, reason, transfer),
                None => self.to_place.push_back((transfer, None)),
            }
        }
        while let Some(mut transfer) = self.scheduler.overdue_retry(self.index, now) {
            let error = Error::new(ErrorKind::Timeout, "the operation timed out before it was tried again");
            let step = transfer.finish_with(Err(error), now);
            self.handle_next_step(transfer, step, None);
        }
        self.add_extra_slots_for_unanswered();
        for token in self.slots.take_due(now) {
            self.end_overdue(token);
            self.end_stream_wait(token);
            match self.slots.get_mut(token) {
                Some(ConnectionSlot { state: ConnectionState::Open(connection), .. }) => {
                    let mut finished = std::mem::take(&mut self.scratch.finished);
                    let progress = connection.end_expired(now, &mut finished);
                    let is_over = progress == ReceiveStatus::Closed;
                    if is_over {
                        self.remove(token);
                    }
                    self.handle_finished(token, &mut finished);
                    self.scratch.finished = finished;
                    let Some(ConnectionSlot { state: ConnectionState::Open(connection), paused, .. }) =
                        self.slots.get_mut(token)
                    else {
                        continue;
                    };
                    if connection.resumes_at().is_some_and(|at| at <= now) {
                        connection.resume();
                        *paused = false;
                    }
                    if connection.low_water_timeout().is_some_and(|at| at <= now) {
                        connection.reset_low_water_mark();
                    }
                    self.on_socket_event(token, false);
                }
                Some(_) => self.continue_opening(token),
                None => {}
            }
        }
    }

    /// Puts idle connections into the client's pool when the worker ends. Returns the unfinished
    /// parts of split downloads to their coordinators.
    fn shut_down(&mut self) {
        self.close_idle_if_requested();
        for token in self.slots.tokens() {
            if let Some(ConnectionSlot { state: ConnectionState::Open(connection), .. }) = self.slots.get_mut(token)
                && connection.front_transfer().is_some_and(Transfer::is_part)
            {
                let mut finished = FinishedTransfers::new();
                connection.abort(Error::new(ErrorKind::Receive, "it was no longer needed"), self.now, &mut finished);
                for (transfer, _) in finished {
                    self.scheduler.on_finished(self.index, transfer, Ok(()));
                }
            }
            self.move_to_pool(token);
            self.remove(token);
        }
        self.join_draining();
        self.client.stats().add(&std::mem::take(&mut self.totals));
    }
}
