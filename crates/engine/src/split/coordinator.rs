//! The coordinator of the connections that fetch one body. It chooses the range of each part,
//! delivers the received bytes in order, and decides whether another connection would help.
//!
//! The transfer that began the download is the first stream. It writes to the sink until it reaches
//! the start of the first part. From then on, the coordinator owns that transfer, and delivers all
//! bytes through it in order. Each part is requested once. Bytes that are missing from its response
//! are fetched as another part. If parts fail too often, the split ends, and the transfer continues
//! alone, with all of its retries.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use haul_policy::queue::HostId;
use haul_policy::range::byte_range_set::ByteRangeSet;
use haul_policy::range::part_assignment::{ClaimedPart, PartFetchOrder, PartTracker};
use haul_policy::range::split_connection_count::{SplitPlanner, SplitSample};

use super::SplitOutcome;
use super::part_sinks::{FilePartSink, PartToCoordinatorSink};
use super::state::{FirstConnectionUse, FirstStream, PartFailures, PartInFlight, ReceivedTotals, SplitState};
use crate::body::delivery::BodyDelivery;
use crate::drive::idle_cores::idle_time;
use crate::drive::worker::{FreeHostSlotUse, Scheduler};
use crate::drive::worker_inbox::WorkerInbox;
use crate::ignore_poison::IgnorePoison;
use crate::interrupt_callback::InterruptCallbackTimer;
use crate::sink::partial::PartialFile;
use crate::sink::{DirectWriteCounter, Sink};
use crate::time_conversions;
use crate::transfer::{FirstStreamEnd, SplittableBody, Transfer};
use crate::{Error, ErrorKind, ProtocolVersion, Result};

/// The time in which one connection should receive a part of the minimum size. Near the end of the
/// body, all parts have this size, so that the connections finish at most about this time apart.
const MIN_PART_TIME: Duration = Duration::from_millis(25);
/// The limits, in bytes, between which [`min_part_size`] chooses the minimum size of a part.
/// Smaller parts would cost too many requests.
const MIN_PART_SIZE: std::ops::RangeInclusive<u64> = (64 << 10)..=(1 << 20);
/// The minimum and maximum size, in bytes, of a part that is written to a file. Between these
/// limits, a part is as large as the number of bytes that a connection receives in about a second.
const FILE_PART_SIZE: std::ops::RangeInclusive<u64> = (1 << 20)..=(16 << 20);
/// The minimum size, in bytes, of a part that waits in memory because the output is sequential,
/// such as a pipe.
const MIN_PIPE_PART_SIZE: u64 = 64 << 10;
/// The number of consecutive failed parts after which the split download ends.
const MAX_FAILURES: u32 = 6;
/// The longest time for which all connections of a split download may receive nothing. After this
/// time, the split ends, and the first transfer, which began the download, fetches the rest of the
/// body alone. This may succeed: the server may delay only the additional requests, while the range
/// of the first transfer is complete.
const MAX_SILENCE: Duration = Duration::from_secs(10);
/// The margin that is added to the estimated time until the first byte of the first part arrives.
/// (A part is a byte range that another connection requests.) The estimate is one and a half times
/// the setup time of the first transfer. For sequential output, the part begins after the bytes
/// that the first transfer receives in the estimated time and the margin.
const ARRIVAL_SLACK: Duration = Duration::from_millis(20);
/// The time that determines the minimum size of a part while the planner measures the rate of a
/// single connection. The part has as many bytes as several connections together received in this
/// time, so that the round trip before each part hardly lowers the measured rate.
const MEASURED_PART_TIME: Duration = Duration::from_millis(100);

/// Coordinates a split download: the first transfer, which began as an ordinary download of the
/// body, and the transfers that fetch parts of the same body at the same time.
pub(super) struct SplitCoordinator {
    body: SplittableBody,
    /// The offset in the body at which the first transfer stops, because parts contain the bytes
    /// from this offset on.
    first_end: Arc<FirstStreamEnd>,
    file: Option<Arc<PartialFile>>,
    counter: Option<Arc<dyn DirectWriteCounter>>,
    /// The maximum number of bytes in parts that wait in memory until they can be delivered in
    /// order.
    memory: u64,
    /// The time from the end of the first transfer's name lookup to the first byte of its response.
    setup_time: Duration,
    /// The timer of the interrupt callback. Only the calling thread, which runs the worker, uses
    /// it.
    interrupt: Mutex<InterruptCallbackTimer>,
    this: Weak<Self>,
    state: Mutex<SplitState>,
}

impl SplitCoordinator {
    /// Makes the coordinator for `first`, a transfer that is receiving its body. `memory` is the
    /// maximum number of bytes in parts that wait to be delivered in order.
    pub(super) fn new(first: &mut Transfer, splitter: SplitPlanner, body: SplittableBody, memory: u64) -> Arc<Self> {
        let file = first.partial_file();
        let (order, done) = match &file {
            Some(file) => (PartFetchOrder::Anywhere, file.present_ranges()),
            None => (PartFetchOrder::InOrder { ahead: memory }, ByteRangeSet::new()),
        };
        let counter = first.counter();
        let first_end = FirstStreamEnd::unlimited();
        let speed = first.begin_split(&first_end, Instant::now());
        let mut window = PartTracker::new(body.total, done, order);
        let first_id = window.claim_for_first_stream(first.position());
        let template = first.new_part(&body, 0..0, BodyDelivery::new(Box::new(UnusedSink)), 0, 0, Instant::now());
        let connection = match first.facts.version != Some(ProtocolVersion::Http3) && template.offers_http2() {
            true => FirstConnectionUse::Separate { user: None },
            false => FirstConnectionUse::Shared,
        };
        let interrupt = first.options().interrupt.clone();
        let setup_time = first.facts.first_byte.saturating_sub(first.facts.resolved);
        let state = SplitState {
            window,
            splitter,
            speed,
            first: FirstStream { transfer: None, id: first_id, position: first.position(), connection },
            template,
            parts: HashMap::new(),
            buffered: Vec::new(),
            received: ReceivedTotals::new(Instant::now()),
            failures: PartFailures::default(),
            is_proved: false,
            is_stopped: false,
            max_connections: 1,
            requested_parts: 0,
            outcome: None,
        };
        Arc::new_cyclic(|this| Self {
            body,
            first_end,
            file,
            counter,
            memory,
            setup_time,
            interrupt: Mutex::new(InterruptCallbackTimer::new(interrupt.as_ref())),
            this: this.clone(),
            state: Mutex::new(state),
        })
    }

    /// Locks the state of the split download.
    fn state(&self) -> MutexGuard<'_, SplitState> {
        self.state.lock().ignore_poison()
    }

    /// Records that the response for part `id` has begun, and that it contains the requested range.
    pub(super) fn on_part_begun(&self, id: usize) {
        let mut state = self.state();
        if let Some(part) = state.parts.get_mut(&id) {
            part.has_begun = true;
        }
        if !state.is_proved {
            state.is_proved = true;
            state.splitter.on_first_part(time_conversions::to_monotonic_time(Instant::now()));
            self.first_end.make_final();
        }
    }

    /// Delivers received bytes of part `id` to the sink of the first transfer. Buffers the bytes if
    /// earlier bytes of the body are still missing.
    pub(super) fn on_part_bytes(&self, id: usize, bytes: &[u8]) -> Result<()> {
        let mut state = self.state();
        let state = &mut *state;
        let Some(part) = state.parts.get_mut(&id) else { return Ok(()) };
        let at = part.at;
        part.at += bytes.len() as u64;
        match &mut state.first.transfer {
            // The first stream may have received some of these bytes before the part began.
            Some(first) if part.buffer.is_empty() && first.position() >= at => {
                let present = bytes.len().min((first.position() - at) as usize);
                first.push(&bytes[present..])?;
            }
            _ => {
                if part.buffer.capacity() == 0 {
                    part.buffer.reserve_exact((part.end - at) as usize);
                }
                part.buffer.extend_from_slice(bytes);
            }
        }
        state.on_part_bytes(id, bytes.len() as u64);
        Ok(())
    }

    /// Records that `bytes` further bytes of part `id` were written to the file.
    pub(super) fn on_written(&self, id: usize, bytes: u64) {
        let mut state = self.state();
        if let Some(part) = state.parts.get_mut(&id) {
            part.at += bytes;
        }
        state.on_part_bytes(id, bytes);
        if let Some(counter) = &self.counter {
            counter.count(bytes);
        }
    }

    /// Ends the split download with this result. Returns the first transfer, which began the
    /// download, and the outcome: the download is over, or the first transfer fetches the rest
    /// alone.
    ///
    /// # Panics
    /// A worker still runs the first transfer.
    pub(super) fn finish(&self, result: Result<()>) -> (Box<Transfer>, SplitOutcome) {
        let mut state = self.state();
        let outcome = match (state.outcome.take(), result) {
            (Some(outcome), _) => outcome,
            (None, Err(error)) => SplitOutcome::Done(Err(error)),
            (None, Ok(())) => SplitOutcome::ContinueAlone,
        };
        let mut first = state.first.transfer.take().expect("a worker gives back the parts that it has");
        // Parts write to a file by themselves; all other bytes have passed the first transfer.
        let bytes = if self.file.is_some() { state.received.by_parts } else { 0 };
        first.add_part(&state.template.facts, bytes);
        self.report_connections(1);
        if matches!(outcome, SplitOutcome::ContinueAlone) {
            first.end_split();
        }
        (first, outcome)
    }

    /// Returns a transfer that fetches another part. Returns `None` if no further request is wanted
    /// now: enough requests are in progress, requests are paused, or nothing is left to fetch.
    fn next_part(&self, state: &mut SplitState, now: Instant) -> Option<Box<Transfer>> {
        self.update_first_stream(state);
        let has_pause_ended = state.failures.end_pause(now);
        if state.outcome.is_some() || state.is_stopped || state.failures.paused_until.is_some() {
            return None;
        }
        let first_count = usize::from(state.first.transfer.is_none());
        let sample = SplitSample {
            now: time_conversions::to_monotonic_time(now),
            received: state.received.total,
            delivering: first_count + state.delivering_parts(),
            requests: first_count + state.parts.len(),
        };
        if has_pause_ended {
            state.splitter.restart_measurement(sample, idle_time);
        }
        let wanted = state.splitter.wanted_connections(sample, idle_time);
        if wanted < 2 && state.is_proved && state.splitter.has_finished_measuring() {
            // A single stream is as fast, and it delivers without the coordinator.
            if state.first.transfer.is_some() && state.parts.is_empty() {
                state.outcome = Some(SplitOutcome::ContinueAlone);
            }
            return None;
        }
        // Once all connections are open, one more request for each is sent before its last response
        // is complete. No request follows the first stream, and its connection, if separate, has
        // one request at a time.
        let pipelining = wanted - first_count.max(state.first.connection.extra_connections());
        let ahead =
            if state.splitter.has_finished_measuring() && wanted >= state.max_connections { pipelining } else { 0 };
        if first_count + state.parts.len() >= wanted + ahead {
            return None;
        }
        let size = self.part_size(state);
        if !state.is_proved && self.file.is_none() {
            // The first part begins after the bytes that the first stream will receive until that
            // part arrives.
            let lead = bytes_in(state.splitter.rate(), self.setup_time * 3 / 2 + ARRIVAL_SLACK);
            let lead = lead.min(self.memory / 2).max(MIN_PIPE_PART_SIZE);
            state.window.shorten_first_claim(state.first.id, state.window.first_missing_offset().saturating_add(lead));
        }
        let part = state.window.claim_part(size, min_part_size(state).min(size))?;
        let sink = self.sink_for(state, &part)?;
        if state.first.transfer.is_none()
            && let Some(end) = state.window.claim_end(state.first.id)
        {
            self.first_end.set(end);
        }
        let connections = (first_count + state.parts.len() + 1).min(wanted);
        if connections > state.max_connections {
            state.max_connections = connections;
            self.report_connections(connections);
        }
        state.requested_parts += 1;
        let transfer = state.template.new_part(
            &self.body,
            part.span.clone(),
            BodyDelivery::new(sink),
            part.id,
            state.requested_parts,
            now,
        );
        let transfer = match &mut state.first.connection {
            FirstConnectionUse::Separate { user: user @ None } if state.first.transfer.is_some() => {
                *user = Some(part.id);
                transfer
            }
            FirstConnectionUse::Shared => transfer,
            FirstConnectionUse::Separate { .. } | FirstConnectionUse::Closed => transfer.without_http2(),
        };
        let in_flight = PartInFlight { at: part.span.start, end: part.span.end, has_begun: false, buffer: Vec::new() };
        state.parts.insert(part.id, in_flight);
        Some(transfer)
    }

    fn report_connections(&self, connections: usize) {
        self.counter.iter().for_each(|counter| counter.set_connections(connections));
    }

    /// Updates the state with the offset that the first transfer has reached in the body.
    fn update_first_stream(&self, state: &mut SplitState) {
        let position = self.first_end.position();
        if state.on_first_position(position) && self.file.is_none() {
            state.window.on_output(position);
        }
    }

    /// Returns the size of the next part in bytes. It is small enough for all connections to finish
    /// at about the same time, and large enough for the cost of a request to be low.
    fn part_size(&self, state: &SplitState) -> u64 {
        let most = state.template.options().split.connections as u64;
        let share = (state.window.bytes_left_to_claim() / (2 * most)).max(min_part_size(state));
        match &self.file {
            Some(_) => state.splitter.rate().clamp(*FILE_PART_SIZE.start(), *FILE_PART_SIZE.end()).min(share),
            None => {
                let size = (self.memory / (2 * most + 2)).max(MIN_PIPE_PART_SIZE);
                // Each part of the connection that is measured again waits a round trip.
                let measured =
                    state.splitter.rate_to_compare_with().map_or(0, |rate| bytes_in(rate, MEASURED_PART_TIME));
                size.max(measured.min(self.memory / 2)).min(share)
            }
        }
    }

    /// Makes the sink of a part. Returns `None` if the output file cannot be opened for another
    /// writer.
    fn sink_for(&self, state: &mut SplitState, part: &ClaimedPart) -> Option<Box<dyn Sink>> {
        let coordinator = self.this.upgrade()?;
        let Some(file) = &self.file else { return Some(Box::new(PartToCoordinatorSink { coordinator, id: part.id })) };
        match file.writer(part.span.clone()) {
            Ok(writer) => Some(Box::new(FilePartSink { coordinator, id: part.id, writer })),
            Err(_) => {
                // The range may be the end of the first stream's, which continues to it. Otherwise
                // another part can fetch it later.
                state.window.release_claim(part.id);
                state.window.extend_claim(state.first.id);
                state.failures.record_failure(Instant::now());
                None
            }
        }
    }

    /// Handles the end of the first transfer: it has failed, has received the rest of the body, or
    /// has reached the offset where the range of another part begins.
    fn on_first_finished(&self, state: &mut SplitState, first: Box<Transfer>, result: Result<()>) {
        self.update_first_stream(state);
        state.window.release_claim(state.first.id);
        // A response over HTTP/1.1 that is not read to its end closes its connection.
        let is_open = result.is_ok() && first.facts.version == Some(ProtocolVersion::Http2);
        if state.first.connection != FirstConnectionUse::Shared && !is_open {
            state.first.connection = FirstConnectionUse::Closed;
        }
        state.first.transfer = Some(first);
        if let Err(error) = result {
            self.on_stream_failure(state, error);
        }
    }

    /// Decides how the split download continues after a transfer for a part, or the first transfer,
    /// has failed.
    fn on_stream_failure(&self, state: &mut SplitState, error: Error) {
        if state.outcome.is_some() {
            return;
        }
        let now = Instant::now();
        let is_late = error.is_timeout() && state.template.deadline().is_some_and(|at| at <= now);
        match error.kind() {
            ErrorKind::Write | ErrorKind::TooLarge | ErrorKind::Interrupted | ErrorKind::Setup => {
                state.outcome = Some(SplitOutcome::Done(Err(error)));
            }
            _ if is_late => state.outcome = Some(SplitOutcome::Done(Err(error))),
            _ if !state.is_proved => {
                // No part has arrived yet: the first stream continues as if none had been
                // requested.
                state.is_stopped = true;
                state.window.extend_claim(state.first.id);
                self.first_end.set(u64::MAX);
            }
            // A single stream finds out whether the content can still be completed.
            ErrorKind::Changed => state.outcome = Some(SplitOutcome::ContinueAlone),
            kind => {
                let is_refusal = matches!(
                    kind,
                    ErrorKind::Status
                        | ErrorKind::Connect
                        | ErrorKind::QuicConnect
                        | ErrorKind::EmptyReply
                        | ErrorKind::TlsHandshake
                );
                let delivering = state.delivering_parts();
                if is_refusal && delivering > 0 {
                    state.splitter.on_connection_refused(delivering + 1);
                }
                state.failures.record_failure(now);
                // The URL may allow only a few requests: a single stream requests a new one from
                // the caller's URL.
                let is_stale = delivering == 0 && matches!(error.status(), Some(401 | 403 | 404 | 410));
                if is_stale || state.failures.count >= MAX_FAILURES {
                    state.outcome = Some(SplitOutcome::ContinueAlone);
                }
            }
        }
    }

    /// Delivers the buffered bytes that come next in the body. Ends the split download if the body
    /// is complete.
    fn output_ready_bytes(&self, state: &mut SplitState) {
        if self.file.is_none()
            && state.outcome.is_none()
            && let Err(error) = state.output_contiguous_bytes()
        {
            state.outcome = Some(SplitOutcome::Done(Err(error)));
        }
        let Some(first) = state.first.transfer.as_mut().filter(|_| state.outcome.is_none()) else { return };
        if state.window.missing_bytes() == 0 {
            state.outcome = Some(SplitOutcome::Done(first.finish()));
        } else if state.is_stopped && state.parts.is_empty() {
            state.outcome = Some(SplitOutcome::ContinueAlone);
        }
    }
}

impl Scheduler for SplitCoordinator {
    fn next(&self, _worker: usize, now: Instant) -> Option<Box<Transfer>> {
        let mut state = self.state();
        self.output_ready_bytes(&mut state);
        self.next_part(&mut state, now)
    }

    fn next_for_slot(&self, _worker: usize, _slot: HostId, _now: Instant) -> FreeHostSlotUse {
        FreeHostSlotUse::Nothing
    }

    fn on_finished(&self, _worker: usize, transfer: Box<Transfer>, result: Result<()>) {
        let mut guard = self.state();
        let state = &mut *guard;
        match transfer.part_id() {
            None => self.on_first_finished(state, transfer, result),
            Some(id) => {
                state.template.add_part(&transfer.facts, 0);
                state.window.release_claim(id);
                if state.first.connection == (FirstConnectionUse::Separate { user: Some(id) }) {
                    state.first.connection = match result {
                        Ok(()) => FirstConnectionUse::Separate { user: None },
                        Err(_) => FirstConnectionUse::Closed,
                    };
                }
                if let Some(part) = state.parts.remove(&id)
                    && !part.buffer.is_empty()
                {
                    state.buffered.push((part.buffered_from(), part.buffer));
                }
                if let Err(error) = result {
                    self.on_stream_failure(state, error);
                }
            }
        }
        self.output_ready_bytes(state);
    }

    fn on_out_of_descriptors(&self) {
        let mut state = self.state();
        let connections = state.parts.len() + 1;
        state.splitter.on_connection_refused(connections);
    }

    fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        let bytes = state.received.total;
        if let Some(error) = state.speed.check(bytes, now) {
            state.outcome.get_or_insert(SplitOutcome::Done(Err(error)));
            return Some(now);
        }
        let silent_at = time_conversions::add_saturating(state.received.last_at, MAX_SILENCE);
        if silent_at <= now {
            state.outcome.get_or_insert(SplitOutcome::ContinueAlone);
            return Some(now);
        }
        // Once the split has stopped, no further part is requested.
        let request = if state.is_stopped { None } else { state.failures.next_request(&state.splitter) };
        let next_timeout = [request, state.speed.next_check(), Some(silent_at)].into_iter().flatten().min();
        self.interrupt.lock().ignore_poison().limit_wait(next_timeout, now)
    }

    fn is_run_over(&self) -> bool {
        if self.state().outcome.is_some() {
            return true;
        }
        // The state is not locked while the callback runs.
        let Err(error) = self.interrupt.lock().ignore_poison().call_if_due(Instant::now()) else { return false };
        self.abort(error);
        true
    }

    fn abort(&self, error: Error) {
        self.state().outcome.get_or_insert(SplitOutcome::Done(Err(error)));
    }

    fn on_worker_started(&self, _inbox: &Arc<WorkerInbox>) {}

    fn connections(&self) -> Option<usize> {
        let state = self.state();
        Some(state.max_connections.saturating_sub(state.first.connection.extra_connections()).max(1))
    }
}

/// Returns the minimum size in bytes of a part at the current receive rate.
fn min_part_size(state: &SplitState) -> u64 {
    bytes_in(state.splitter.rate(), MIN_PART_TIME).clamp(*MIN_PART_SIZE.start(), *MIN_PART_SIZE.end())
}

/// Returns the number of bytes that arrive in the time `time` at `rate` bytes per second.
fn bytes_in(rate: u64, time: Duration) -> u64 {
    u64::try_from(u128::from(rate) * time.as_micros() / 1_000_000).unwrap_or(u64::MAX)
}

/// A sink that never receives bytes. It belongs to the transfer [`SplitState::template`], from
/// which the transfers of the parts are copied, and whose own request is never sent.
struct UnusedSink;

impl Sink for UnusedSink {
    fn bytes(&mut self, _offered: crate::buffer_pool::OfferedBodyBytes<'_>) -> Result<()> {
        Ok(())
    }

    fn restart(&mut self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
