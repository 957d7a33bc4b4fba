//! The direct driver: the program's own threads send and receive the only request of a batch.
//!
//! A program may wait for each response in its event loop. With the batch's thread, each request
//! then wakes two threads, the batch's and the loop's; with the direct driver, only the loop's. The
//! thread that submits a request sends it on an idle connection. The descriptor of the batch
//! becomes readable when bytes of the response arrive. The program then looks for results, and
//! [`drive`](DirectDriver::drive) receives these bytes.
//!
//! ```text
//!  submit ─▶ idle connection ─▶ send ─▶ ReadinessSet ◀── the program's event loop
//!  drive  ─▶ receive ─▶ result, connection back to the pool
//!    └─────────┴──▶ the batch's thread: everything unusual
//! ```
//!
//! A program may be busy for long before it looks for results again. This may delay one short
//! response, but no more. So the batch's thread runs a request if another is in progress, if there
//! is no idle connection, if there is much to send, or if the last body was long. It takes a
//! request over if its body is coded or long (the socket's receive buffer may not hold the rest),
//! or if another step follows the response: a retry, a redirect or a challenge.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use haul_policy::queue::HostId;
use rustix::fd::AsFd;

use super::executor::{HandedOverWork, LONG_BODY, MAX_WAITING_REST, OnDone, RequestExecutor};
use super::readiness_set::ReadinessSet;
use crate::Client;
use crate::body::upload::RequestBody;
use crate::buffer_pool::BufferPool;
use crate::drive::connection::{ConnectionWaker, FinishedTransfers, HttpConnection, ReceiveStatus};
use crate::ignore_poison::IgnorePoison;
use crate::request::Request;
use crate::sink::{Sink, TransferWaker};
use crate::transfer::{Transfer, TransferStep};
use crate::{Error, ErrorKind};

/// The maximum length, in bytes, of request content that a thread of the program sends. Content of
/// this length fits, with its head, into the empty send buffer of a socket. The batch's thread
/// sends longer content.
const MAX_CONTENT: usize = 8 << 10;

/// The size in bytes of the buffer into which a thread of the program receives, unless the sink has
/// memory for the body. Of a coded body, that thread decodes only the bytes of one receive. The
/// batch's thread decodes the rest, since decoding may take long.
const MAX_PIECE: usize = 32 << 10;

/// The maximum number of times that the program's own threads receive from the connection for one
/// response. After that, the batch's thread receives the rest of the response.
const MAX_RECEIVES: u32 = 4;

/// The driver by which the program's own threads, not the batch's thread, send a request and
/// receive its response. It drives at most one request at a time; see the [module](self).
pub(super) struct DirectDriver {
    client: Client,
    executor: Arc<RequestExecutor>,
    /// The descriptors that the program's event loop watches. Set when the program asks for the
    /// descriptor of the batch ([`Batch::fd`](super::Batch::fd)). Until then, the batch's thread
    /// runs all requests.
    readiness: OnceLock<ReadinessSet>,
    state: Mutex<DirectState>,
    /// The lock that a thread of the program holds while it starts a request, or searches for a
    /// request to cancel. Without this lock, the search could miss a request that is being handed
    /// over to the batch's thread at its start. A thread takes this lock before any other lock.
    /// While it holds the lock, it calls no method of a sink except [`Sink::partial`].
    starting: Mutex<()>,
    buffers: Arc<BufferPool>,
    waker: Arc<dyn TransferWaker>,
}

/// The request that the program's threads run, and the timer. The lock is held only for short
/// times, and never during a call of a sink, because the program's sinks may call the batch.
#[derive(Default)]
struct DirectState {
    exchange: Option<DirectExchange>,
    /// The id of the request whose response a thread is receiving, or which that thread is handing
    /// over to the batch's thread. Other threads then leave the request to that thread. `None` if
    /// no thread does either.
    receiving: Option<u64>,
    /// True if the request in `receiving` was cancelled meanwhile.
    is_cancelled: bool,
    /// The number of the program's threads that sleep until there is a result. The batch's thread
    /// runs all requests meanwhile.
    waiting_threads: usize,
    /// The time for which the timer is set; `None` if it is stopped. The timer is set again only
    /// for an earlier timeout, or after it has expired. For example, if a thousand requests run
    /// within 5 seconds, each with a time limit of 5 seconds, the timer is set once.
    timer_at: Option<Instant>,
}

/// A request that a thread of the program has sent, and whose response the program's threads
/// receive, not the batch's thread.
struct DirectExchange {
    connection: HttpConnection,
    id: u64,
    /// The permit for one transfer to the host, which the transfer holds.
    host_slot: Option<HostId>,
    receives: u32,
}

/// The waker of the direct driver, which does nothing. Elsewhere, a sink or a content source wakes
/// a transfer that waits for it. In this driver, no transfer waits for a sink or a source: the
/// driver hands such a transfer over to the batch's thread.
struct NoWaker;

impl TransferWaker for NoWaker {
    fn wake(&self, _token: usize) {}
}

/// The exchange for which a thread sends or receives. If the program's code panics meanwhile, the
/// guard closes the connection and ends the request with an error.
struct ExchangeGuard<'a> {
    driver: &'a DirectDriver,
    readiness: &'a ReadinessSet,
    /// `None` if nothing is to be done on a panic.
    exchange: Option<DirectExchange>,
}

impl ExchangeGuard<'_> {
    fn take(&mut self) -> Option<DirectExchange> {
        self.exchange.take()
    }
}

impl Drop for ExchangeGuard<'_> {
    fn drop(&mut self) {
        let Some(DirectExchange { connection, id, host_slot, .. }) = self.exchange.take() else { return };
        self.driver.close_connection(self.readiness, connection);
        let mut state = self.driver.lock();
        if state.receiving == Some(id) {
            (state.receiving, state.is_cancelled) = (None, false);
        }
        drop(state);
        let error = Error::new(ErrorKind::Panicked, "the request's sink panicked");
        self.driver.executor.fail_started(id, host_slot, &error);
    }
}

/// The guard of a thread of the program that sleeps until the batch has a result. Until the guard
/// is dropped, the batch's thread runs all requests ([`DirectDriver::yield_to_batch_thread`]).
pub(super) struct WaitingThread<'a>(&'a DirectDriver);

impl Drop for WaitingThread<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting_threads -= 1;
    }
}

impl DirectDriver {
    /// Makes a driver that drives no request yet. `executor` owns the batch's thread.
    pub(super) fn new(client: &Client, executor: &Arc<RequestExecutor>) -> Self {
        Self {
            client: client.clone(),
            executor: Arc::clone(executor),
            readiness: OnceLock::new(),
            state: Mutex::default(),
            starting: Mutex::default(),
            buffers: BufferPool::new(MAX_PIECE),
            waker: Arc::new(NoWaker),
        }
    }

    /// Returns the set of descriptors that the program's event loop watches. The first call makes
    /// the set, which then contains `results`, the descriptor that is readable while the batch has
    /// results. Returns `None` if this build has no such sets.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub(super) fn readiness(&self, results: impl AsFd) -> io::Result<Option<&ReadinessSet>> {
        let _state = self.lock();
        if self.readiness.get().is_none() {
            let made = match ReadinessSet::with(results) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(None),
                made => made?,
            };
            self.executor.pool_last_connection();
            return Ok(Some(self.readiness.get_or_init(|| made)));
        }
        Ok(self.readiness.get())
    }

    /// Accepts a request, and returns its id. Calls `prepare` with the id to get the request's sink
    /// and the callback for its result. Sends a simple request ([`is_simple`]) on this thread if
    /// the batch has no other request and a connection to the server is idle. Otherwise the batch's
    /// thread sends the request.
    pub(super) fn submit(&self, request: Request, prepare: impl FnOnce(u64) -> (Box<dyn Sink>, OnDone)) -> u64 {
        let now = Instant::now();
        let Some((readiness, connection)) = self.connection_for(&request, now) else {
            return self.executor.submit(&self.client, request, prepare);
        };
        let _starting = self.starting.lock().ignore_poison();
        let mut connection = Some(connection);
        // The batch's thread may use the connection.
        let put_back = || {
            if let Some(unused) = connection.take() {
                self.client.put_idle_connection(unused, now);
            }
        };
        let (id, transfer) = self.executor.submit_or_start(&self.client, request, prepare, put_back);
        if let (Some(transfer), Some(connection)) = (transfer, connection) {
            self.start(readiness, connection, transfer, now);
        }
        id
    }

    /// Receives the available bytes of the response to this driver's request. Returns true if this
    /// call has ended the request, or has handed it over to the batch's thread. Waits for nothing
    /// but the sink.
    pub(super) fn drive(&self) -> bool {
        let Some(readiness) = self.readiness.get() else { return false };
        let mut state = self.lock();
        if state.receiving.is_some() || (state.exchange.is_none() && state.timer_at.is_none()) {
            return false;
        }
        let now = Instant::now();
        let Some(exchange) = state.exchange.take() else {
            update_timer(readiness, &mut state, now);
            return false;
        };
        let id = exchange.id;
        state.receiving = Some(id);
        drop(state);
        let rest = self.advance(ExchangeGuard { driver: self, readiness, exchange: Some(exchange) }, now);
        self.store_or_hand_over(readiness, id, rest, now)
    }

    /// Stores `rest`, the exchange of the request `id`, after a thread has received bytes for it.
    /// `rest` is `None` if the request has ended or was handed over. Hands the exchange over to the
    /// batch's thread instead if a thread of the program waits for results. Cancels the request
    /// instead if the program has cancelled it meanwhile. Returns true if no exchange is stored.
    fn store_or_hand_over(
        &self,
        readiness: &ReadinessSet,
        id: u64,
        rest: Option<DirectExchange>,
        now: Instant,
    ) -> bool {
        let mut state = self.lock();
        state.exchange = rest;
        let is_timed = update_timer(readiness, &mut state, now);
        let goes_on = is_timed && !state.is_cancelled && state.waiting_threads == 0;
        let rest = if goes_on { None } else { state.exchange.take() };
        let is_kept = state.exchange.is_some();
        let is_cancelled = state.is_cancelled;
        drop(state);
        match rest {
            Some(exchange) if is_cancelled => self.cancel_connection(readiness, exchange.connection, id),
            Some(exchange) => self.hand_over(readiness, exchange),
            None => {}
        }
        self.end_receiving(id);
        !is_kept
    }

    /// Clears [`DirectState::receiving`]. If the program has called [`cancel`](Self::cancel) for
    /// the request `id` meanwhile, cancels that request now, unless it has ended.
    fn end_receiving(&self, id: u64) {
        let mut state = self.lock();
        state.receiving = None;
        if std::mem::take(&mut state.is_cancelled) {
            drop(state);
            self.cancel(id);
        }
    }

    /// Cancels the request with this id, which the program's threads or the batch's thread may run.
    /// Returns false if the request has already finished.
    pub(super) fn cancel(&self, id: u64) -> bool {
        let Some(readiness) = self.readiness.get() else { return self.executor.cancel(id) };
        let starting = self.starting.lock().ignore_poison();
        let mut state = self.lock();
        if state.receiving == Some(id) {
            // The thread that receives cancels it.
            state.is_cancelled = true;
            return true;
        }
        let exchange = state.exchange.take_if(|exchange| exchange.id == id);
        drop(state);
        let begun = exchange.map(|exchange| HandedOverWork::Connection(exchange.connection));
        // The batch's thread may not have taken it over yet.
        let Some(begun) = begun.or_else(|| self.executor.take_handed_over(id)) else {
            return self.executor.cancel(id);
        };
        drop(starting);
        match begun {
            HandedOverWork::Connection(connection) => self.cancel_connection(readiness, connection, id),
            HandedOverWork::Step(transfer, _) => self.finish_cancelled(transfer),
        }
        true
    }

    fn cancel_connection(&self, readiness: &ReadinessSet, mut connection: HttpConnection, id: u64) {
        let mut finished = FinishedTransfers::new();
        connection.cancel(id, Instant::now(), &mut finished);
        self.close_connection(readiness, connection);
        for (transfer, _) in finished {
            self.finish_cancelled(transfer);
        }
    }

    fn finish_cancelled(&self, transfer: Box<Transfer>) {
        self.client.stats().transfer_finished(&transfer.facts, true);
        self.executor.finish_started(transfer, Err(Error::cancelled()));
        self.executor.notify_results();
    }

    /// Closes the connection of the request in progress, whose result is not wanted any more.
    pub(super) fn close(&self) {
        let exchange = self.lock().exchange.take();
        if let (Some(exchange), Some(readiness)) = (exchange, self.readiness.get()) {
            self.close_connection(readiness, exchange.connection);
        }
    }

    /// Closes a connection, and removes its descriptor from `readiness` before. Without this, the
    /// descriptor would stay in the set while a forked child has a copy of it.
    fn close_connection(&self, readiness: &ReadinessSet, connection: HttpConnection) {
        readiness.remove(&connection);
        self.client.stats().connection_closed(&connection);
    }

    /// Gives the request in progress to the batch's thread, because a thread of the program is
    /// about to sleep until there is a result. Later requests go to the batch's thread, too, until
    /// the returned value is dropped.
    pub(super) fn yield_to_batch_thread(&self) -> WaitingThread<'_> {
        let mut state = self.lock();
        state.waiting_threads += 1;
        let exchange = state.exchange.take();
        if let Some(exchange) = &exchange {
            state.receiving = Some(exchange.id);
        }
        let readiness = self.readiness.get();
        if let Some(readiness) = readiness
            && state.timer_at.is_some()
        {
            // A program that never calls `drive` again would see the descriptor readable for ever.
            update_timer(readiness, &mut state, Instant::now());
        }
        drop(state);
        let waiting = WaitingThread(self);
        if let (Some(exchange), Some(readiness)) = (exchange, readiness) {
            let id = exchange.id;
            self.hand_over(readiness, exchange);
            self.end_receiving(id);
        }
        waiting
    }

    fn lock(&self) -> MutexGuard<'_, DirectState> {
        self.state.lock().ignore_poison()
    }

    fn waker(&self) -> ConnectionWaker<'_> {
        ConnectionWaker { wake: Some(&self.waker), token: 0 }
    }

    /// Takes an idle HTTP/1 connection from the pool, on which the calling thread itself can send
    /// the request. Returns `None` if the batch's thread must send the request: the pool has no
    /// such connection, the request is not simple ([`is_simple`]), the batch has another request,
    /// or the last body was long.
    fn connection_for(&self, request: &Request, now: Instant) -> Option<(&ReadinessSet, HttpConnection)> {
        let readiness = self.readiness.get()?;
        if !is_simple(request) || !self.executor.may_start_on_other_thread() {
            return None;
        }
        let connection = self.client.take_idle_connection_for(&request.target, &request.options, now)?;
        if connection.is_shared() {
            self.client.put_idle_connection(connection, now);
            return None;
        }
        if !connection.can_start() {
            self.client.stats().connection_closed(&connection);
            return None;
        }
        Some((readiness, connection))
    }

    /// Sends the request of a transfer.
    fn start(&self, readiness: &ReadinessSet, connection: HttpConnection, mut transfer: Box<Transfer>, now: Instant) {
        let (id, host_slot) = (transfer.scheduling.tag, transfer.scheduling.host_slot);
        let exchange = Some(DirectExchange { connection, id, host_slot, receives: 0 });
        let mut guard = ExchangeGuard { driver: self, readiness, exchange };
        let Some(exchange) = guard.exchange.as_mut() else { return };
        let connection = &mut exchange.connection;
        let mut finished = FinishedTransfers::new();
        let is_nonblocking = connection.set_nonblocking(true).is_ok();
        transfer.on_connection_search_began(now);
        connection.start(transfer, now, self.waker(), &mut finished);
        let is_sent = finished.is_empty()
            && is_nonblocking
            && matches!(connection.send_pending(), Ok(true))
            && !has_to_send(connection);
        let Some(exchange) = guard.take() else { return };
        if let Some((transfer, step)) = finished.pop() {
            return self.end(readiness, exchange, transfer, step, now);
        }
        let mut state = self.lock();
        let is_free = state.exchange.is_none() && state.receiving.is_none() && state.waiting_threads == 0;
        if is_sent
            && is_free
            && set_timer(readiness, &mut state.timer_at, exchange.connection.next_timeout(), now)
            && readiness.add(&exchange.connection).is_ok()
        {
            state.exchange = Some(exchange);
            return;
        }
        drop(state);
        self.hand_over(readiness, exchange);
    }

    /// Receives the bytes that have arrived. If they do not complete the response and the request's
    /// timeout has expired, ends the request with an error. The program may call this late, so a
    /// response that arrived in time must be received first. Returns the exchange if more bytes
    /// must arrive; `None` if the request has ended or was handed over to the batch's thread.
    fn advance(&self, mut guard: ExchangeGuard<'_>, now: Instant) -> Option<DirectExchange> {
        let readiness = guard.readiness;
        let mut finished = FinishedTransfers::new();
        let exchange = guard.exchange.as_mut()?;
        let connection = &mut exchange.connection;
        let is_late = |connection: &HttpConnection| connection.next_timeout().is_some_and(|at| at <= now);
        let status = loop {
            let mut buffer = self.buffers.take_buffer();
            let status = connection.receive(&mut buffer, now, self.waker(), &mut finished);
            exchange.receives += u32::from(matches!(status, ReceiveStatus::Drained | ReceiveStatus::More));
            let has_more = matches!(status, ReceiveStatus::More | ReceiveStatus::Interrupted);
            let continues = is_late(connection) || is_within_body(connection);
            if !has_more || exchange.receives >= MAX_RECEIVES || !finished.is_empty() || !continues {
                break status;
            }
        };
        let is_drained = matches!(status, ReceiveStatus::WouldBlock | ReceiveStatus::Drained);
        if finished.is_empty() && is_drained && !connection.has_buffered_input() && is_late(connection) {
            connection.end_expired(now, &mut finished);
        }
        let exchange = guard.take()?;
        if let Some((transfer, step)) = finished.pop() {
            self.end(readiness, exchange, transfer, step, now);
            return None;
        }
        let waits_for_input = is_drained || matches!(status, ReceiveStatus::Interrupted | ReceiveStatus::More);
        let connection = &exchange.connection;
        let is_over_soon = connection.remaining() <= MAX_WAITING_REST
            && exchange.receives < MAX_RECEIVES
            && has_plain_body(connection);
        if waits_for_input && is_over_soon && !connection.has_buffered_input() && !has_to_send(connection) {
            return Some(exchange);
        }
        self.hand_over(readiness, exchange);
        None
    }

    /// Ends an exchange: puts its connection back into the pool, or closes it. Ends the transfer if
    /// it has succeeded and nothing follows. Otherwise gives the transfer to the batch's thread for
    /// the next step, such as a retry or a redirect.
    fn end(
        &self,
        readiness: &ReadinessSet,
        exchange: DirectExchange,
        transfer: Box<Transfer>,
        step: TransferStep,
        now: Instant,
    ) {
        let DirectExchange { mut connection, id, .. } = exchange;
        readiness.remove(&connection);
        // In the pool all connections are blocking ones.
        if connection.is_idle() && connection.set_nonblocking(false).is_ok() {
            connection.release_buffers();
            self.client.put_idle_connection(connection, now);
        } else {
            self.close_connection(readiness, connection);
        }
        match step {
            TransferStep::Done(Ok(())) if transfer.refused_job_end(now).is_none() => {
                self.client.stats().transfer_finished(&transfer.facts, false);
                self.executor.finish_started(transfer, Ok(()));
            }
            step => drop(self.executor.hand_over(&self.client, id, HandedOverWork::Step(transfer, step))),
        }
    }

    /// Gives a connection with its transfer to the batch's thread.
    fn hand_over(&self, readiness: &ReadinessSet, exchange: DirectExchange) {
        let DirectExchange { connection, id, .. } = exchange;
        readiness.remove(&connection);
        let refused = self.executor.hand_over(&self.client, id, HandedOverWork::Connection(connection));
        if let Some(HandedOverWork::Connection(connection)) = refused {
            self.close_connection(readiness, connection);
        }
    }
}

/// Sets the timer for the next timeout of the request in progress. If the timer has expired and the
/// request has no timeout, stops the timer, so that its descriptor is no longer readable. Returns
/// false if the timer cannot be set.
fn update_timer(readiness: &ReadinessSet, state: &mut DirectState, now: Instant) -> bool {
    let has_fired = state.timer_at.is_some_and(|at| at <= now);
    if has_fired {
        state.timer_at = None;
    }
    let next = state.exchange.as_ref().and_then(|exchange| exchange.connection.next_timeout());
    let is_set = set_timer(readiness, &mut state.timer_at, next, now);
    if has_fired && state.timer_at.is_none() {
        let _ = readiness.set_timer(None);
    }
    is_set
}

/// Sets the timer for the time `at`, unless it is set for that time or an earlier one. `timer_at`
/// contains the time for which the timer is set (`None` if it is stopped), and receives the new
/// time. Does nothing if `at` is `None`. Returns false if the timer cannot be set.
fn set_timer(readiness: &ReadinessSet, timer_at: &mut Option<Instant>, at: Option<Instant>, now: Instant) -> bool {
    let Some(at) = at.filter(|at| timer_at.is_none_or(|set| *at < set)) else { return true };
    let is_set = readiness.set_timer(Some(at.saturating_duration_since(now))).is_ok();
    if is_set {
        *timer_at = Some(at);
    }
    is_set
}

/// Returns true if the sink gets the bytes of the body as they were received.
fn has_plain_body(connection: &HttpConnection) -> bool {
    connection.front_transfer().is_some_and(Transfer::has_unprocessed_body)
}

/// Returns true if a thread of the program may receive the rest of the body: its length is known
/// and at most [`LONG_BODY`], and the bytes are neither decoded nor searched.
fn is_within_body(connection: &HttpConnection) -> bool {
    (1..=LONG_BODY).contains(&connection.remaining()) && has_plain_body(connection)
}

/// Returns true if a part of the request is not sent, or if TLS has something to send.
fn has_to_send(connection: &HttpConnection) -> bool {
    connection.has_output() || connection.is_uploading() || connection.has_encrypted_output()
}

/// Returns true if a thread of the program may send the request: sending waits for nothing but the
/// socket, calls none of the program's functions but [`Sink::partial`], and needs no rate limit. A
/// request with an HSTS store is not simple, because the store may change the target to https after
/// the connection was chosen.
fn is_simple(request: &Request) -> bool {
    let options = &*request.options;
    let has_little_content = match request.own.content(options) {
        None => true,
        Some(RequestBody::Bytes(bytes)) => bytes.len() <= MAX_CONTENT,
        Some(RequestBody::Pieces(_)) => false,
    };
    let calls_program = options.trace.is_some()
        || options.wants.is_some()
        || options.pauses.is_some()
        || options.recorder.is_some()
        || request.own.trailers.is_some();
    let is_limited = options.limit_rate.is_some() || options.limit_rate_total.is_some();
    let is_pooled = !options.fresh_connection && !options.closes_connection;
    has_little_content
        && is_pooled
        && !calls_program
        && !is_limited
        && options.hsts.is_none()
        && !options.auth.allowed.negotiate
}

#[cfg(all(test, linux_calls))]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::batch::BatchOptions;
    use crate::sink::memory::MemorySink;

    #[test]
    fn request_beside_a_waiting_thread_is_handed_over() {
        let origin = testkit::origin::Origin::builder().start().expect("there is a port");
        let client = Client::new();
        let executor = RequestExecutor::for_client(BatchOptions::default().max_parallel);
        let driver = DirectDriver::new(&client, &executor);
        let (results, _writer) = std::io::pipe().expect("there are descriptors");
        assert!(driver.readiness(&results).expect("there are descriptors").is_some());
        client.get(&origin.url("/small")).send().and_then(|reply| reply.bytes()).expect("a response");
        let (sender, receiver) = channel();
        let submit = || {
            let sender = sender.clone();
            let done = move |_, _| sender.send(()).expect("the test waits");
            let request = client.get(&origin.url("/small")).build().expect("a URL");
            driver.submit(request, |_| (Box::new(MemorySink::default()), Box::new(done)))
        };
        submit();
        assert!(driver.lock().exchange.is_some());
        while !driver.drive() {}
        receiver.recv().expect("this thread has run it");
        let waiting = driver.yield_to_batch_thread();
        submit();
        assert!(driver.lock().exchange.is_none());
        receiver.recv().expect("the executor's thread runs it");
        drop(waiting);
        assert_eq!(driver.lock().waiting_threads, 0);
        assert!(executor.close().expect("there is a thread").join().is_ok());
    }
}
