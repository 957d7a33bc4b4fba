//! Handles the events of QUIC: reads streams, and passes their bytes through the protocol machine
//! to the transfers.
//!
//! The chunks of a stream are the payloads of its datagrams, in the memory into which they were
//! received. Their body bytes are gathered and delivered by one call.

use std::io::IoSlice;
use std::ops::Range;
use std::time::Instant;

use bytes::Bytes;
use haul_proto::h3::{H3ErrorCode, H3Event, RequestId, ResponseBodyFraming};
use haul_proto::response_head::{Fields, ResponseHead};
use quinn_proto::{Dir, Event, ReadError, StreamEvent};

use super::super::{ConnectionWaker, FinishedTransfers};
use super::send::stream_id;
use super::{H3Connection, StreamChunk};
use crate::buffer_pool::OfferedBodyBytes;
use crate::net::quic::connection_lost;
use crate::transfer::ExchangeFailurePoint;
use crate::{Result, time_conversions};

/// The maximum number of pieces of one body that are delivered to its sink in one call.
const MAX_PIECES_PER_DELIVERY: usize = 64;

/// Input of a stream that cannot be parsed before further entries of the QPACK dynamic table
/// arrive.
#[derive(Debug)]
pub(super) struct QpackBlockedInput {
    chunk: StreamChunk,
    fin: bool,
}

/// Received chunks of one stream, and the pieces of body bytes in them that were not delivered yet.
#[derive(Default)]
pub(super) struct PendingDelivery {
    chunks: Vec<StreamChunk>,
    pieces: Vec<(usize, Range<usize>)>,
}

/// The reason why reading a stream stopped.
enum StreamReadStop {
    /// No more bytes are available now, but the stream is open.
    Open,
    /// All bytes of the stream were read.
    Finished,
    /// The peer has reset the stream with this error code.
    Reset(H3ErrorCode),
    /// The stream no longer exists for reading.
    Closed,
}

impl H3Connection {
    /// Handles the QUIC events that the last datagrams or timeouts have caused, and reads the
    /// streams that have bytes.
    ///
    /// # Errors
    /// The connection is lost, or the peer violated the protocol.
    pub(super) fn handle_events(
        &mut self,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) -> Result<()> {
        self.poll_events()?;
        self.read_peer_streams(now, finished)?;
        self.resume_stalled();
        let mut readable = std::mem::take(&mut self.readable);
        for id in readable.drain(..) {
            if let Some(active) = self.active.get_mut(&id) {
                active.is_readable = false;
            }
            self.read_stream(id, now, waker, finished)?;
        }
        self.readable.append(&mut readable);
        self.stalled.update_window(&self.active, &mut self.quic);
        // What arrived before the end was delivered.
        self.check_connection_lost()
    }

    /// Handles the events of QUIC, without reading streams.
    ///
    /// # Errors
    /// The peer violated the protocol.
    pub(super) fn poll_events(&mut self) -> Result<()> {
        while let Some(event) = self.quic.poll() {
            match event {
                Event::Stream(event) => self.handle_stream_event(event)?,
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns an error if the QUIC connection is lost.
    pub(super) fn check_connection_lost(&mut self) -> Result<()> {
        let Some(reason) = self.lost.take() else { return Ok(()) };
        self.closing = true;
        self.machine.on_connection_end();
        Err(connection_lost(&reason))
    }

    fn handle_stream_event(&mut self, event: StreamEvent) -> Result<()> {
        match event {
            StreamEvent::Opened { dir } => {
                while let Some(id) = self.quic.machine().streams().accept(dir) {
                    self.peer_streams.push(id.into());
                }
            }
            StreamEvent::Readable { id } => self.mark_readable(id.into()),
            StreamEvent::Writable { id } => self.machine.unblock_output(self.own_streams.to_send_stream(id)),
            StreamEvent::Stopped { id, error_code } => {
                let name = self.own_streams.to_send_stream(id);
                let stopped = self.machine.on_stop_sending(name, H3ErrorCode(error_code.into()));
                stopped.map_err(|error| self.on_violation(error))?;
            }
            StreamEvent::Available { dir: Dir::Bi } if self.next_stream.is_none() => {
                self.next_stream = self.quic.machine().streams().open(Dir::Bi).map(u64::from);
            }
            StreamEvent::Available { dir: Dir::Uni } => {
                use haul_proto::h3::H3SendStream::{Control, QpackDecoder, QpackEncoder};
                [Control, QpackEncoder, QpackDecoder].into_iter().for_each(|name| self.machine.unblock_output(name));
            }
            StreamEvent::Available { .. } | StreamEvent::Finished { .. } => {}
        }
        Ok(())
    }

    /// Records that a request's stream may have bytes to read. Does not record the unidirectional
    /// streams of the peer, because they are read after each receive anyway.
    pub(super) fn mark_readable(&mut self, id: u64) {
        if let Some(active) = self.active.get_mut(&id)
            && !std::mem::replace(&mut active.is_readable, true)
        {
            self.readable.push(id);
        }
    }

    /// Reads the unidirectional streams of the peer. They carry its settings and its updates of the
    /// QPACK table.
    fn read_peer_streams(&mut self, now: Instant, finished: &mut FinishedTransfers) -> Result<()> {
        let mut streams = std::mem::take(&mut self.peer_streams);
        let mut outcome = Ok(());
        streams.retain(|&id| {
            // Until nothing is left: no event announces the rest again.
            loop {
                let end = self.read_chunks(id, u64::MAX);
                let may_have_more = self.gathered.chunks.len() == MAX_PIECES_PER_DELIVERY;
                if outcome.is_ok() {
                    outcome = self.parse_chunks(id, &end, now, finished);
                }
                if !(may_have_more && outcome.is_ok() && matches!(end, StreamReadStop::Open)) {
                    return matches!(end, StreamReadStop::Open);
                }
            }
        });
        streams.append(&mut self.peer_streams);
        self.peer_streams = streams;
        outcome
    }

    /// Reads the stream of a request, until no bytes are available or its sink has no room. Passes
    /// the bytes to the transfer.
    fn read_stream(
        &mut self,
        id: u64,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) -> Result<()> {
        loop {
            let Some(active) = self.active.get(&id) else { return Ok(()) };
            if active.kept.is_some() {
                // A stream that waits for the QPACK table is not read, but may be reset.
                let reset = self.quic.machine().recv_stream(stream_id(id)).received_reset();
                return match reset {
                    Ok(Some(code)) => self.on_peer_reset(id, H3ErrorCode(code.into()), now, finished),
                    Ok(None) | Err(_) => Ok(()),
                };
            }
            let Some(credit) = self.credit(id, now, waker, finished) else { return Ok(()) };
            let end = self.read_chunks(id, credit);
            if self.gathered.chunks.is_empty() && matches!(end, StreamReadStop::Open | StreamReadStop::Closed) {
                return Ok(());
            }
            self.parse_chunks(id, &end, now, finished)?;
            if !matches!(end, StreamReadStop::Open) {
                return Ok(());
            }
        }
    }

    /// Reads at most [`MAX_PIECES_PER_DELIVERY`] chunks and at most `most` bytes of a stream.
    /// Returns the reason why reading stopped.
    fn read_chunks(&mut self, id: u64, most: u64) -> StreamReadStop {
        let chunks = &mut self.gathered.chunks;
        chunks.clear();
        let mut stream = self.quic.machine().recv_stream(stream_id(id));
        let Ok(mut reader) = stream.read(true) else { return StreamReadStop::Closed };
        let mut left = usize::try_from(most).unwrap_or(usize::MAX);
        let mut end = StreamReadStop::Open;
        while chunks.len() < MAX_PIECES_PER_DELIVERY && left > 0 {
            match reader.next(left) {
                Ok(Some(chunk)) => {
                    left -= chunk.bytes.len();
                    chunks.push(chunk.bytes);
                }
                Ok(None) => {
                    end = StreamReadStop::Finished;
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(code)) => {
                    end = StreamReadStop::Reset(H3ErrorCode(code.into()));
                    break;
                }
            }
        }
        // The update of the window is sent after all streams were read.
        let _ = reader.finalize();
        end
    }

    /// Passes the chunks that were read to the protocol machine, and delivers the body bytes in
    /// them to the transfer.
    fn parse_chunks(
        &mut self,
        id: u64,
        end: &StreamReadStop,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> Result<()> {
        let chunks = std::mem::take(&mut self.gathered.chunks);
        let mut outcome = Ok(());
        for (index, chunk) in chunks.iter().enumerate() {
            if let Some(active) = self.active.get_mut(&id) {
                active.received += chunk.len() as u64;
            }
            // The end comes with the last chunk: a response to HEAD is complete then, and need not
            // be stopped.
            let fin = index + 1 == chunks.len() && matches!(end, StreamReadStop::Finished);
            outcome = self.parse(id, (&chunks, index), 0, fin, now, finished);
            if outcome.is_err() {
                break;
            }
        }
        self.deliver(id, &chunks, now, finished);
        if outcome.is_ok() {
            outcome = match end {
                StreamReadStop::Finished if chunks.is_empty() => {
                    self.parse(id, (&[Bytes::new()], 0), 0, true, now, finished)
                }
                StreamReadStop::Reset(code) => self.on_peer_reset(id, *code, now, finished),
                // The machine can forget a stream of the peer that haul has stopped.
                StreamReadStop::Closed if id & 3 == 3 => self.on_peer_reset(id, H3ErrorCode::NO_ERROR, now, finished),
                StreamReadStop::Finished | StreamReadStop::Open | StreamReadStop::Closed => Ok(()),
            };
        }
        self.gathered.chunks = chunks;
        self.gathered.chunks.clear();
        outcome
    }

    /// Reports to the protocol machine that the peer has reset a stream.
    fn on_peer_reset(
        &mut self,
        id: u64,
        code: H3ErrorCode,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> Result<()> {
        let reset = self.machine.on_stream_reset(time_conversions::to_monotonic_timestamp(now), id, code);
        reset.map_err(|error| self.on_violation(error)).and_then(|()| self.handle_pending_events(now, finished))
    }

    /// Passes a received chunk of a stream, `chunks[index]`, to the protocol machine, from the
    /// offset `at` in the chunk on.
    fn parse(
        &mut self,
        stream: u64,
        (chunks, index): (&[StreamChunk], usize),
        mut at: usize,
        fin: bool,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> Result<()> {
        let chunk = &chunks[index];
        if let Some(kept) = self.active.get_mut(&stream).and_then(|active| active.kept.as_mut()) {
            // The machine waits for an earlier chunk.
            kept.append(chunk.slice(at..), fin);
            return Ok(());
        }
        loop {
            let step = self.machine.step(time_conversions::to_monotonic_timestamp(now), stream, &chunk[at..], fin);
            let step = step.map_err(|error| self.on_violation(error))?;
            let base = at;
            at += step.consumed;
            match step.event {
                H3Event::NeedInput => return Ok(()),
                H3Event::Blocked { id } => {
                    if let Some(active) = self.active.get_mut(&id.0) {
                        active.kept = Some(QpackBlockedInput { chunk: chunk.slice(at..), fin });
                    }
                    return Ok(());
                }
                H3Event::Body { id, range } => {
                    self.gather(id.0, (chunks, index), base + range.start..base + range.end, now, finished);
                    // Most chunks are payload to their ends, so another step would find nothing.
                    if at == chunk.len() && !fin && !self.machine.has_pending_event() {
                        return Ok(());
                    }
                }
                event => {
                    // Bytes before the event are delivered before it.
                    if !self.gathered.pieces.is_empty() {
                        self.deliver(stream, chunks, now, finished);
                    }
                    self.handle_event(event, now, finished)?;
                }
            }
        }
    }

    /// Handles the events of the protocol machine that need no further input.
    ///
    /// # Errors
    /// The peer violated the protocol.
    pub(super) fn handle_pending_events(&mut self, now: Instant, finished: &mut FinishedTransfers) -> Result<()> {
        while let Some(event) = self.machine.next_event() {
            self.handle_event(event, now, finished)?;
        }
        Ok(())
    }

    fn handle_event(&mut self, event: H3Event, now: Instant, finished: &mut FinishedTransfers) -> Result<()> {
        match event {
            H3Event::Unblocked { id } => {
                let kept = self.active.get_mut(&id.0).and_then(|active| active.kept.take());
                if let Some(QpackBlockedInput { chunk, fin }) = kept {
                    let chunks = [chunk];
                    self.parse(id.0, (&chunks, 0), 0, fin, now, finished)?;
                    self.deliver(id.0, &chunks, now, finished);
                    self.mark_readable(id.0);
                }
            }
            H3Event::Interim { id, head } => {
                if let Some(active) = self.active.get_mut(&id.0) {
                    active.transfer.on_interim(&head);
                }
            }
            H3Event::Head { id, head, framing } => self.begin(id.0, head, framing, now, finished),
            H3Event::Complete { id, trailers } => self.complete(id.0, trailers, now, finished),
            H3Event::Reset { id, reason, retryable } => self.on_reset(id.0, reason, retryable, now, finished),
            H3Event::GoAway { first_refused: RequestId(end) } => {
                self.closing = true;
                self.closes_with_progress = self.served > 0 || self.active.keys().any(|&id| id < end);
                if self.active.keys().any(|&id| id >= end) {
                    self.pipeline_limit.on_unanswered(self.answered + self.unanswered_before(end));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Passes the head of a response to its transfer.
    fn begin(
        &mut self,
        id: u64,
        head: ResponseHead,
        framing: ResponseBodyFraming,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) {
        let Some(active) = self.active.get_mut(&id) else { return };
        if let ResponseBodyFraming::Length(length) = framing {
            active.left = length;
        }
        self.answered += 1;
        active.transfer.on_head(head, framing, now);
        if active.transfer.skips_rest(framing) {
            self.cancel_rest(id, now, finished);
        }
    }

    /// Adds a piece of a body to the pieces of its stream that will be delivered in one call.
    fn gather(
        &mut self,
        id: u64,
        (chunks, index): (&[StreamChunk], usize),
        piece: Range<usize>,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) {
        let Some(active) = self.active.get_mut(&id) else { return };
        active.left = active.left.saturating_sub(piece.len() as u64);
        self.gathered.pieces.push((index, piece));
        if self.gathered.pieces.len() == MAX_PIECES_PER_DELIVERY {
            self.deliver(id, chunks, now, finished);
        }
    }

    /// Passes the gathered pieces of a body to its transfer.
    fn deliver(&mut self, id: u64, chunks: &[StreamChunk], now: Instant, finished: &mut FinishedTransfers) {
        let pieces = std::mem::take(&mut self.gathered.pieces);
        let outcome = match (self.active.get_mut(&id), pieces.as_slice()) {
            (None, _) | (_, []) => None,
            (Some(active), [(index, piece)]) => {
                Some(active.transfer.on_body(OfferedBodyBytes::borrowed(&chunks[*index][piece.clone()]), false, now))
            }
            (Some(active), pieces) => {
                let mut slices = [IoSlice::new(&[]); MAX_PIECES_PER_DELIVERY];
                for (slice, (index, piece)) in slices.iter_mut().zip(pieces) {
                    *slice = IoSlice::new(&chunks[*index][piece.clone()]);
                }
                Some(active.transfer.on_pieces(&mut slices[..pieces.len()], now))
            }
        };
        self.gathered.pieces = pieces;
        self.gathered.pieces.clear();
        let Some((outcome, active)) = outcome.zip(self.active.get(&id)) else { return };
        let is_left =
            active.transfer.has_all_wanted_bytes() || active.transfer.skips_rest(ResponseBodyFraming::Chunked);
        match outcome {
            Err(error) => self.fail(id, error, ExchangeFailurePoint::InResponse, now, finished),
            Ok(()) if is_left => self.cancel_rest(id, now, finished),
            Ok(()) => {}
        }
    }

    /// Ends the transfer of a response that is complete. `trailers` is the trailer section; `None`
    /// if the response has none.
    fn complete(&mut self, id: u64, trailers: Option<Fields>, now: Instant, finished: &mut FinishedTransfers) {
        self.served += 1;
        let Some(mut active) = self.remove_stream(id) else { return };
        let after = match active.transfer.on_trailers(trailers) {
            Ok(()) => {
                if !self.closing {
                    active.transfer.on_connection_kept();
                }
                active.transfer.on_complete(now)
            }
            Err(error) => active.transfer.on_failure(error, ExchangeFailurePoint::InResponse, now),
        };
        finished.push((active.transfer, after));
    }
}

impl QpackBlockedInput {
    /// Adds another chunk of the stream to the blocked input. The chunk was read together with the
    /// blocked one: reading from the stream has stopped, so there are few such chunks. `fin` is
    /// true if the stream ends after `chunk`.
    fn append(&mut self, chunk: StreamChunk, fin: bool) {
        if !chunk.is_empty() {
            self.chunk = [&self.chunk[..], &chunk].concat().into();
        }
        self.fin |= fin;
    }
}
