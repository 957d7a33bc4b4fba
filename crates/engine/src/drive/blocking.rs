//! The blocking driver: one transfer on one socket, with blocking sends and receives. It needs no
//! event loop, no thread and no wake-up. On a warm connection, a small request is three system
//! calls (peek, send, receive).
//!
//! It can stop in the middle of a body and continue later (`BlockingTransfer::drive_until`), for a
//! program that reads the body piece by piece.
//!
//! ```text
//!        ┌───────────── TransferStep::Again ◀────────────────┐
//!  Next ─┴─▶ take from the pool, or open ──▶ ActiveExchange ─┴─▶ TransferStep::Done
//!                                              (`drive_until` may return in between)
//! ```
//!
//! Time limits need no event loop: the connection is made before the deadline, and a receive waits
//! no longer than the time that is left (`SO_RCVTIMEO`).
//!
//! For a large body, the driver waits in `poll`, so that the kernel can move the body to the sink
//! ([`super::zero_copy_to_sink`]) and a slow body is noticed early ([`super::rcvlowat`]). It also
//! waits in `poll` for the response to a large upload, which may begin before the upload has ended.
//!
//! While a pipe at the output is full, a connection of HTTP/2 or HTTP/3 is served on, because its
//! server expects answers to PING frames and acknowledgements. The sink keeps the bytes that the
//! pipe does not accept ([`Sink::keep_unwritten`](crate::sink::Sink::keep_unwritten)), and the
//! driver waits for the pipe and the socket together.

mod full_output;
mod open_connection;

use std::convert::Infallible;
use std::io;
use std::ops::ControlFlow;
use std::time::Instant;

use crate::body::delivery::BodyDelivery;
use crate::buffer_pool::Buffer;
use crate::client::Client;
use crate::drive::connection::{ConnectionWaker, FinishedTransfers, HttpConnection, PipeWriteMode, ReceiveStatus};
use crate::drive::zero_copy_to_sink::{ZeroCopyMover, ZeroCopyWaitResult};
use crate::interrupt_callback::InterruptCallbackTimer;
use crate::request::SplitDownloadOptions;
use crate::split::{self, SplitOutcome, SplitRateMonitor};
use crate::time_conversions;
use crate::transfer::{ExchangeFailurePoint, Transfer, TransferOutcome, TransferStep};
use crate::{Error, ErrorKind, Result};
use open_connection::open_connection_for;

/// A waker that wakes nothing: without an event loop, the sink itself blocks until it has room.
const NO_WAKER: ConnectionWaker<'static> = ConnectionWaker { wake: None, token: 0 };

/// The minimum number of remaining body bytes for which the thread waits in `poll`, instead of
/// waiting in a blocking receive.
const MIN_BYTES_TO_POLL: u64 = 1 << 20;

/// Runs a transfer to its end on the calling thread, and returns its outcome.
pub fn run(client: &Client, transfer: Box<Transfer>) -> TransferOutcome {
    run_transfer(client, transfer).into_outcome().0
}

/// Runs a transfer to its end on the calling thread. Unlike [`run`], also returns the sink of the
/// body.
pub(crate) fn run_transfer(client: &Client, transfer: Box<Transfer>) -> FinishedTransfer {
    let split = transfer.options().split;
    match BlockingTransfer::new(transfer, split).drive_until(client, |_| None::<Infallible>) {
        DriveResult::Finished(end) => end,
        DriveResult::Paused(_, never) => match never {},
    }
}

/// A transfer that runs on the calling thread. Its caller can pause it and continue it later.
pub(crate) struct BlockingTransfer {
    state: BlockingExchangeState,
    split: SplitDownloadOptions,
    timer: InterruptCallbackTimer,
    /// The current time, if the clock has just been read; `None` if it must be read again.
    now: Option<Instant>,
}

enum BlockingExchangeState {
    /// No exchange (request and response) is in progress. The fields describe the next exchange:
    /// its transfer, the source of its connection, and the time at which it begins (`None`: at
    /// once).
    Next(Box<Transfer>, ConnectionSource, Option<Instant>),
    /// An exchange is in progress on a connection.
    Live(ActiveExchange),
}

/// The result of [`BlockingTransfer::drive_until`].
pub(crate) enum DriveResult<T> {
    /// The transfer is over.
    Finished(FinishedTransfer),
    /// The caller's function `is_enough` returned this value. The transfer can be continued.
    Paused(Box<BlockingTransfer>, T),
}

/// The source of the connection for the next exchange.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectionSource {
    /// An idle connection from the client's pool, or a new connection if the pool has no such
    /// connection.
    Pool,
    /// A new connection, because the last connection was closed. The server may have closed the
    /// idle connections in the pool, too, so none of them is used.
    Fresh,
}

/// The call in which an exchange waits for the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitSyscall {
    /// The exchange waits inside the blocking receive call. The wait costs no further system call.
    InReceive,
    /// The exchange waits in `poll`, and then receives without blocking, or has the kernel move the
    /// bytes.
    InPoll,
}

/// An exchange in progress: its connection, and the state of waiting for the server.
struct ActiveExchange {
    connection: HttpConnection,
    /// The time when the exchange began, until the first call of [`ActiveExchange::drive`] takes
    /// it; `None` from then on. This call uses it as the current time, without a read of the clock.
    began: Option<Instant>,
    /// The connection's next timeout, as it was when the exchange began; `None` if no timeout was
    /// set.
    first_timeout: Option<Instant>,
    split_monitor: SplitRateMonitor,
    mover: ZeroCopyMover,
    waits: WaitSyscall,
    is_drained: bool,
    /// True if the sink keeps bytes that its output has not accepted.
    is_output_full: bool,
    send_error: Option<io::Error>,
}

/// The reason why sending and receiving for an exchange stopped, as [`ActiveExchange::drive`]
/// returns it.
enum ExchangeStop<T> {
    /// The connection has finished the transfer and added it to the list of finished transfers.
    Finished,
    /// The caller's function `is_enough` returned this value.
    Enough(T),
    /// The body should be split into ranges, which several connections fetch in parallel.
    WorthSplitting,
    /// The interrupt callback asked to stop. The field is the error with which the transfer ends.
    Interrupted(Error),
}

/// A finished transfer with its result. The transfer stays in its box, so that moving this value is
/// cheap.
pub(crate) struct FinishedTransfer {
    transfer: Box<Transfer>,
    result: Result<()>,
}

impl FinishedTransfer {
    /// Returns the outcome of the transfer, and the [`BodyDelivery`] with the sink of its body.
    #[inline]
    pub(crate) fn into_outcome(self) -> (TransferOutcome, BodyDelivery) {
        self.transfer.into_outcome(self.result)
    }
}

impl BlockingTransfer {
    /// Makes the state for running a new transfer on the calling thread. `split` limits the number
    /// of connections over which the body may be fetched.
    pub(crate) fn new(transfer: Box<Transfer>, split: SplitDownloadOptions) -> Box<Self> {
        let timer = InterruptCallbackTimer::new(transfer.options().interrupt.as_ref());
        let now = Some(transfer.facts.started);
        let state = BlockingExchangeState::Next(transfer, ConnectionSource::Pool, None);
        Box::new(Self { state, split, timer, now })
    }

    /// Abandons the response and closes its connection.
    pub(crate) fn abandon(self, client: &Client) {
        if let BlockingExchangeState::Live(live) = self.state {
            client.stats().connection_closed(&live.connection);
        }
    }

    /// Runs the transfer until it is over. Calls `is_enough` each time that input has arrived. As
    /// soon as `is_enough` returns a value, pauses the transfer and returns the value with it.
    ///
    /// If a callback of the program panics, the transfer is lost, and its connection is closed.
    pub(crate) fn drive_until<T>(
        mut self: Box<Self>,
        client: &Client,
        mut is_enough: impl FnMut(&Transfer) -> Option<T>,
    ) -> DriveResult<T> {
        loop {
            let step = match self.state {
                BlockingExchangeState::Next(transfer, from, at) => {
                    if let Some(Err(error)) = at.map(|at| self.timer.sleep(at)) {
                        return DriveResult::Finished(finish_transfer(client, transfer, Err(error)));
                    }
                    let now = self.now.take().unwrap_or_else(Instant::now);
                    match begin_exchange(client, transfer, from, self.split, &mut self.timer, now) {
                        Ok(live) => ControlFlow::Continue(BlockingExchangeState::Live(live)),
                        Err(over) => next_state(client, over, ConnectionSource::Pool),
                    }
                }
                BlockingExchangeState::Live(mut live) => {
                    let mut finished = FinishedTransfers::new();
                    match live.drive(client, &mut self.timer, &mut finished, &mut is_enough) {
                        ExchangeStop::Finished => {
                            let from = live.release_connection(client);
                            let over = full_output::write_rest(take_finished(finished), &mut self.timer);
                            next_state(client, over, from)
                        }
                        ExchangeStop::Enough(value) => {
                            self.state = BlockingExchangeState::Live(live);
                            return DriveResult::Paused(self, value);
                        }
                        ExchangeStop::WorthSplitting => {
                            live.keep_unwritten(false);
                            split_transfer(client, live, &mut self.split)
                        }
                        ExchangeStop::Interrupted(error) => {
                            live.connection.abort(error.duplicate(), Instant::now(), &mut finished);
                            client.stats().connection_closed(&live.connection);
                            let (transfer, _) = take_finished(finished);
                            ControlFlow::Break(finish_transfer(client, transfer, Err(error)))
                        }
                    }
                }
            };
            match step {
                ControlFlow::Continue(state) => self.state = state,
                ControlFlow::Break(end) => return DriveResult::Finished(end),
            }
        }
    }
}

/// Takes the only transfer of a connection from the list of finished transfers.
fn take_finished(mut finished: FinishedTransfers) -> (Box<Transfer>, TransferStep) {
    finished.pop().expect("a connection gives back every transfer that was started on it")
}

/// Returns the state of a transfer after an exchange: its next exchange, or its end. `from` is the
/// source of the next connection.
fn next_state(
    client: &Client,
    (transfer, after): (Box<Transfer>, TransferStep),
    from: ConnectionSource,
) -> ControlFlow<FinishedTransfer, BlockingExchangeState> {
    match after {
        TransferStep::Done(result) => ControlFlow::Break(finish_transfer(client, transfer, result)),
        TransferStep::Again(wait) => {
            let at = (!wait.is_zero()).then(|| time_conversions::add_saturating(Instant::now(), wait));
            ControlFlow::Continue(BlockingExchangeState::Next(transfer, from, at))
        }
    }
}

/// Fetches the rest of the body over several connections. Returns the state of the transfer if it
/// must continue on a single connection:
/// * The split was refused or not faster. `split` is then limited to one connection.
/// * The system could not provide an event loop. `split` is then unchanged.
fn split_transfer(
    client: &Client,
    live: ActiveExchange,
    split: &mut SplitDownloadOptions,
) -> ControlFlow<FinishedTransfer, BlockingExchangeState> {
    let ActiveExchange { connection, split_monitor, .. } = live;
    match split::run(client, connection, split_monitor) {
        Ok((mut transfer, SplitOutcome::Done(result))) => {
            transfer.facts.on_finished(Instant::now());
            ControlFlow::Break(finish_transfer(client, transfer, result))
        }
        Ok((transfer, SplitOutcome::ContinueAlone)) => {
            // No second attempt: splitting was refused, or was not faster.
            split.connections = 1;
            ControlFlow::Continue(BlockingExchangeState::Next(transfer, ConnectionSource::Pool, None))
        }
        Err(connection) => {
            let mut live = ActiveExchange::new(*connection, SplitRateMonitor::Disabled);
            live.keep_unwritten(live.connection.is_shared());
            ControlFlow::Continue(BlockingExchangeState::Live(live))
        }
    }
}

/// Ends a transfer with this result. Adds details of the transfer to an error, and adds the
/// transfer to the client's totals.
fn finish_transfer(client: &Client, mut transfer: Box<Transfer>, result: Result<()>) -> FinishedTransfer {
    let result = result.map_err(|error| transfer.annotate(error));
    if transfer.facts.total.is_zero() {
        transfer.facts.on_finished(Instant::now());
    }
    client.stats().transfer_finished(&transfer.facts, result.is_err());
    FinishedTransfer { transfer, result }
}

/// Begins an exchange (request and response): takes an idle connection from the pool or opens a new
/// one, and queues the request on it. If there is no connection, returns the transfer and its next
/// step: a retry, or the end with an error.
fn begin_exchange(
    client: &Client,
    mut transfer: Box<Transfer>,
    from: ConnectionSource,
    split: SplitDownloadOptions,
    timer: &mut InterruptCallbackTimer,
    now: Instant,
) -> Result<ActiveExchange, (Box<Transfer>, TransferStep)> {
    let warm = match from {
        ConnectionSource::Pool if !transfer.reuse.needs_new_connection => client
            .take_idle_connection_for(transfer.target(), transfer.options(), now)
            .filter(HttpConnection::can_start),
        ConnectionSource::Pool | ConnectionSource::Fresh => None,
    };
    let (mut connection, now) = match warm {
        Some(connection) => (connection, now),
        None => match open_connection_for(client, &mut transfer, timer) {
            Ok(connection) => (connection, Instant::now()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                return Err((transfer, TransferStep::Done(Err(error))));
            }
            Err(error) => {
                let after = transfer.on_failure(error, ExchangeFailurePoint::BeforeSending, Instant::now());
                return Err((transfer, after));
            }
        },
    };
    let mut finished = FinishedTransfers::new();
    transfer.keep_unwritten(connection.is_shared());
    connection.start(transfer, now, NO_WAKER, &mut finished);
    match finished.pop() {
        Some(over) => {
            // The request could not be put into the machine, so the connection is unchanged.
            client.put_idle_connection(connection, now);
            Err(over)
        }
        None => {
            Ok(ActiveExchange { began: Some(now), ..ActiveExchange::new(connection, SplitRateMonitor::new(split)) })
        }
    }
}

impl ActiveExchange {
    fn new(connection: HttpConnection, split_monitor: SplitRateMonitor) -> Self {
        let (deadline, silent) =
            connection.front_transfer().map_or((None, None), |front| (front.deadline(), front.silence_deadline()));
        let plain = time_conversions::earliest(deadline, silent);
        // A server may respond during the request and read no more until its response is received:
        // waiting for room alone would stop both sides. A transfer with further timeouts cannot
        // wait in a receive either.
        let first_timeout = connection.next_timeout();
        let is_watched = connection.is_uploading() || first_timeout != plain;
        let waits = if !connection.can_block() || is_watched && connection.set_nonblocking(true).is_ok() {
            WaitSyscall::InPoll
        } else {
            WaitSyscall::InReceive
        };
        Self {
            connection,
            began: None,
            first_timeout,
            split_monitor,
            mover: ZeroCopyMover::default(),
            waits,
            is_drained: false,
            is_output_full: false,
            send_error: None,
        }
    }

    /// Returns true if the deadline of the transfer in progress has passed.
    fn is_past_deadline(&self) -> bool {
        self.connection.front_transfer().and_then(Transfer::deadline).is_some_and(|at| at <= Instant::now())
    }

    /// Puts the connection into the client's pool if it can be used again, and closes it if not.
    /// Returns [`ConnectionSource::Pool`] in the first case and [`ConnectionSource::Fresh`] in the
    /// second, for the transfer's next exchange.
    fn release_connection(self, client: &Client) -> ConnectionSource {
        // In the pool all connections are blocking ones.
        let blocks = self.waits == WaitSyscall::InReceive || self.connection.set_nonblocking(false).is_ok();
        if self.connection.is_idle() && blocks {
            client.put_idle_connection(self.connection, Instant::now());
            return ConnectionSource::Pool;
        }
        client.stats().connection_closed(&self.connection);
        if self.connection.needs_drain() {
            self.connection.drain();
        }
        ConnectionSource::Fresh
    }

    /// Sends and receives until the exchange stops, and returns the reason.
    fn drive<T>(
        &mut self,
        client: &Client,
        timer: &mut InterruptCallbackTimer,
        finished: &mut FinishedTransfers,
        is_enough: &mut impl FnMut(&Transfer) -> Option<T>,
    ) -> ExchangeStop<T> {
        let mut buffer = client.buffer_pool().take_buffer();
        let mut start = self.began.take().map(|began| (began, Some(self.first_timeout)));
        if start.is_none()
            && let Some(transfer) = self.connection.front_transfer_mut()
        {
            // The program may have spent time on the bytes that it received.
            let now = Instant::now();
            transfer.set_paused(false, now);
            start = Some((now, None));
        }
        loop {
            let (now, known_timeout) = start.take().unwrap_or_else(|| (Instant::now(), None));
            if let Err(error) = timer.call_if_due(now) {
                return ExchangeStop::Interrupted(error);
            }
            if !self.is_output_full && self.split_monitor.is_worth_trying(&self.connection, now) {
                return ExchangeStop::WorthSplitting;
            }
            let next_timeout = known_timeout.unwrap_or_else(|| self.connection.next_timeout());
            if next_timeout.is_some_and(|at| at <= now) {
                self.connection.end_expired(now, finished);
                if !finished.is_empty() {
                    return ExchangeStop::Finished;
                }
            }
            let mut until = timer.limit_wait(next_timeout, now);
            let reads_content = self.connection.is_uploading();
            self.send(until, now);
            if reads_content {
                // The content's source may have failed or ended, or may have set a time at which
                // it has more.
                until = timer.limit_wait(self.connection.next_timeout(), now);
            }
            self.choose_wait();
            if self.has_to_wait() && !self.wait(until, finished) {
                if finished.is_empty() {
                    continue;
                }
                return ExchangeStop::Finished;
            }
            if !self.write_kept(now, finished) {
                return ExchangeStop::Finished;
            }
            let progress = self.receive(&mut buffer, now, finished);
            if let Err(error) = self.handle_status(progress, timer, finished) {
                return ExchangeStop::Interrupted(error);
            }
            if !finished.is_empty() {
                return ExchangeStop::Finished;
            }
            self.notice_full_output();
            if let Some(transfer) = self.connection.front_transfer_mut()
                && let Some(value) = is_enough(transfer)
            {
                transfer.set_paused(true, Instant::now());
                return ExchangeStop::Enough(value);
            }
        }
    }

    /// Sends pending output. If the exchange uses blocking calls, first sets their timeout, so that
    /// they fail at the time `until`.
    fn send(&mut self, until: Option<Instant>, now: Instant) {
        if self.send_error.is_some() {
            return;
        }
        let limited = match self.waits {
            WaitSyscall::InPoll => Ok(()),
            WaitSyscall::InReceive => self.connection.set_timeouts(until.map(|at| at.saturating_duration_since(now))),
        };
        // The server may have answered before it closed: look before giving up.
        self.send_error = limited.and_then(|()| self.connection.send_pending()).err();
    }

    /// Switches from blocking receives to waits in `poll`, if the output is full, or if the request
    /// is sent and the body is large (or the kernel can move it to the sink). Otherwise, resets the
    /// socket's low-water mark.
    fn choose_wait(&mut self) {
        if self.waits == WaitSyscall::InPoll {
            return;
        }
        let connection = &mut self.connection;
        let is_large = connection.remaining() >= MIN_BYTES_TO_POLL
            || connection.low_water_timeout().is_some()
            || connection.is_direct(PipeWriteMode::Awaited);
        let is_polled = is_large && !connection.has_output() || self.is_output_full;
        if is_polled && connection.set_nonblocking(true).is_ok() {
            self.waits = WaitSyscall::InPoll;
            self.is_drained = true;
        } else if connection.low_water_timeout().is_some() {
            // A blocking receive waits until the low-water mark is reached, however long that
            // takes. Only `poll` has a time limit.
            connection.reset_low_water_mark();
        }
    }

    /// Returns true if the thread must wait in `poll` before it can receive anything.
    fn has_to_wait(&self) -> bool {
        self.waits == WaitSyscall::InPoll
            && self.is_drained
            && !self.connection.has_buffered_input()
            && !self.connection.has_pending_results()
    }

    /// Waits in `poll` until the time `until`. Returns true if something may be received. Returns
    /// false if the time has passed, or if the wait has ended the transfer.
    fn wait(&mut self, until: Option<Instant>, finished: &mut FinishedTransfers) -> bool {
        let error = match self.connection.wait(until) {
            Ok(ZeroCopyWaitResult::Ready) => return true,
            Ok(ZeroCopyWaitResult::Quiet) => {
                self.connection.reset_low_water_mark();
                return true;
            }
            Ok(ZeroCopyWaitResult::Late) if !self.is_past_deadline() => return false,
            Ok(ZeroCopyWaitResult::Late) => early_response_error(self.send_error.take()),
            Err(error) => Error::with_source(ErrorKind::Receive, "the connection cannot be waited for", error),
        };
        self.connection.abort(error, Instant::now(), finished);
        false
    }

    /// Receives once, or has the kernel move available bytes to the sink.
    fn receive(&mut self, buffer: &mut Buffer, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        if self.waits == WaitSyscall::InPoll && self.connection.is_direct(PipeWriteMode::Awaited) {
            self.is_drained = true;
            return self.connection.move_body(&mut self.mover, Instant::now(), NO_WAKER, finished);
        }
        let progress = self.connection.receive(buffer, now, NO_WAKER, finished);
        self.is_drained = progress != ReceiveStatus::More;
        progress
    }

    /// Continues the exchange after a receive with the result `progress`. Sleeps if the transfer
    /// has reached its rate limit, calls the interrupt callback if a signal interrupted the
    /// receive, and ends the transfer if its deadline has passed. Any other result needs no action.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] if the interrupt callback asks to stop.
    fn handle_status(
        &mut self,
        progress: ReceiveStatus,
        timer: &mut InterruptCallbackTimer,
        finished: &mut FinishedTransfers,
    ) -> Result<()> {
        match progress {
            ReceiveStatus::Throttled => {
                let until = [self.connection.resumes_at(), self.connection.next_timeout()].into_iter().flatten().min();
                until.map_or(Ok(()), |until| timer.sleep(until))?;
                self.connection.resume();
                self.is_drained = false;
            }
            ReceiveStatus::Interrupted => timer.on_signal(Instant::now())?,
            // The receive has used up its time, which may have been shortened for the hook.
            ReceiveStatus::WouldBlock
                if self.waits == WaitSyscall::InReceive && (self.is_past_deadline() || self.send_error.is_some()) =>
            {
                self.connection.abort(early_response_error(self.send_error.take()), Instant::now(), finished);
            }
            _ => {}
        }
        Ok(())
    }
}

fn early_response_error(send_error: Option<io::Error>) -> Error {
    match send_error {
        Some(error) => Error::with_source(ErrorKind::Send, "the request could not be sent", error),
        None => Error::timed_out(),
    }
}
