//! Passes received bytes through TLS and the protocol machine to the transfers.

use std::io::IoSlice;
use std::ops::Range;
use std::time::Instant;

use haul_proto::h2::{H2Event, RequestId, ResponseBodyFraming};
use haul_proto::response_head::{Fields, ResponseHead};

use super::super::FinishedTransfers;
use super::close::protocol_error;
use super::{H2ActiveStream, H2Connection};
use crate::Result;
use crate::buffer_pool::{Buffer, OfferedBodyBytes};
use crate::time_conversions;
use crate::transfer::ExchangeFailurePoint;

/// The maximum number of pieces of one body that are delivered to its sink in one call.
const MAX_PIECES_PER_DELIVERY: usize = 64;

impl H2Connection {
    /// Decrypts the received bytes, parses them, and passes the result to the transfers. Returns
    /// false if the peer has closed the connection.
    pub(super) fn process(
        &mut self,
        buffer: &mut Buffer,
        filled: usize,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> Result<bool> {
        let mut at = 0;
        let outcome = loop {
            match self.stream.decrypt_next(buffer, &mut at, filled) {
                Ok((Some(range), _)) => {
                    if let Err(error) = self.process_step(buffer, range, now, finished) {
                        break Err(error);
                    }
                }
                Ok((None, ended)) => break Ok(!ended),
                Err(error) => break Err(error),
            }
        };
        // Bytes received before a violation are still delivered.
        for n in 0..self.touched.len() {
            self.deliver(self.touched[n], buffer, now, finished);
        }
        outcome
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

    /// Adds a piece of a body, a range of the receive buffer, to the pieces of its stream that will
    /// be delivered in one call.
    fn gather(
        &mut self,
        id: RequestId,
        piece: Range<usize>,
        buffer: &[u8],
        now: Instant,
        finished: &mut FinishedTransfers,
    ) {
        let bytes = piece.len() as u64;
        let Some(active) = self.active.get_mut(&id.0) else {
            // The transfer is gone, so the bytes are dropped.
            self.conn.release(time_conversions::to_monotonic_timestamp(now), id, bytes);
            return;
        };
        active.unreleased += bytes;
        active.left = active.left.saturating_sub(bytes);
        if !std::mem::replace(&mut active.is_touched, true) {
            self.touched.push(id.0);
        }
        active.pieces.push(piece);
        if active.pieces.len() == MAX_PIECES_PER_DELIVERY {
            self.deliver(id.0, buffer, now, finished);
        }
    }

    /// Passes the gathered pieces of a body to its transfer.
    fn deliver(&mut self, id: u64, buffer: &[u8], now: Instant, finished: &mut FinishedTransfers) {
        let Some(H2ActiveStream { transfer, pieces, .. }) = self.active.get_mut(&id) else { return };
        let outcome = match pieces.as_slice() {
            [] => return,
            [piece] => transfer.on_body(OfferedBodyBytes::borrowed(&buffer[piece.clone()]), false, now),
            pieces => {
                let mut slices = [IoSlice::new(&[]); MAX_PIECES_PER_DELIVERY];
                for (slice, piece) in slices.iter_mut().zip(pieces) {
                    *slice = IoSlice::new(&buffer[piece.clone()]);
                }
                transfer.on_pieces(&mut slices[..pieces.len()], now)
            }
        };
        pieces.clear();
        let is_left = transfer.has_all_wanted_bytes() || transfer.skips_rest(ResponseBodyFraming::Chunked);
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
        let Some(H2ActiveStream { mut transfer, .. }) = self.remove_stream(id, now) else { return };
        let after = match transfer.on_trailers(trailers) {
            Ok(()) => {
                if !self.closing {
                    transfer.on_connection_kept();
                }
                transfer.on_complete(now)
            }
            Err(error) => transfer.on_failure(error, ExchangeFailurePoint::InResponse, now),
        };
        finished.push((transfer, after));
    }

    /// Parses the bytes `buffer[input]`, and passes the resulting events to the transfers. The
    /// bytes of bodies stay in the buffer until they are delivered.
    pub(super) fn process_step(
        &mut self,
        buffer: &mut [u8],
        input: Range<usize>,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> Result<()> {
        let time = time_conversions::to_monotonic_timestamp(now);
        let mut at = input.start;
        loop {
            let step = self.conn.step(time, &mut buffer[at..input.end]).map_err(protocol_error)?;
            let base = at;
            at += step.consumed;
            match step.event {
                H2Event::NeedInput => return Ok(()),
                H2Event::Interim { id, head } => {
                    if let Some(active) = self.active.get_mut(&id.0) {
                        active.transfer.on_interim(&head);
                    }
                }
                H2Event::Head { id, head, framing } => self.begin(id.0, head, framing, now, finished),
                H2Event::Body { id, range } => {
                    self.gather(id, base + range.start..base + range.end, buffer, now, finished);
                }
                H2Event::Complete { id, trailers } => {
                    self.deliver(id.0, buffer, now, finished);
                    self.complete(id.0, trailers, now, finished);
                }
                H2Event::Reset { id, reason, retryable } => {
                    self.deliver(id.0, buffer, now, finished);
                    self.on_reset(id.0, reason, retryable, now, finished);
                }
                H2Event::GoAway { last, .. } => {
                    self.closing = true;
                    self.closes_with_progress = self.served > 0 || self.active.keys().any(|&id| id <= last.0);
                    if self.active.keys().any(|&id| id > last.0) {
                        self.pipeline_limit.on_unanswered(self.answered + self.unanswered_up_to(last.0));
                    }
                }
                // The driver checks the number of streams for each request.
                H2Event::Settings { .. } => self.awaits_settings = false,
                _ => {}
            }
        }
    }
}
