//! Received bytes: through TLS and the machine to the transfers.

use std::io::IoSlice;
use std::ops::Range;
use std::time::Instant;

use haul_proto::h2::{BodyFraming, Event, RequestId};
use haul_proto::head::{Fields, Head};

use super::super::Finished;
use super::ends::from_machine;
use super::{Active, Link};
use crate::Result;
use crate::buffer::{Buffer, Lease};
use crate::clock;
use crate::transfer::Broke;

/// Pieces of one body that are handed on together at most.
const GATHERED: usize = 64;

impl Link {
    /// Passes received bytes through TLS and the machine. `false` when the peer has ended the stream.
    pub(super) fn take(
        &mut self,
        buffer: &mut Buffer,
        filled: usize,
        now: Instant,
        finished: &mut Finished,
    ) -> Result<bool> {
        let mut at = 0;
        let outcome = loop {
            match self.stream.open(buffer, &mut at, filled) {
                Ok((Some(range), _)) => {
                    if let Err(error) = self.step(buffer, range, now, finished) {
                        break Err(error);
                    }
                }
                Ok((None, ended)) => break Ok(!ended),
                Err(error) => break Err(error),
            }
        };
        // Bytes received before a violation are still delivered.
        for n in 0..self.touched.len() {
            self.hand_on(self.touched[n], buffer, now, finished);
        }
        outcome
    }

    /// A response begins.
    fn begin(&mut self, id: u64, head: Head, framing: BodyFraming, now: Instant, finished: &mut Finished) {
        let Some(active) = self.active.get_mut(&id) else { return };
        if let BodyFraming::Length(length) = framing {
            active.left = length;
        }
        self.answered += 1;
        active.transfer.on_head(head, framing, now);
        if active.transfer.is_cut_short(framing) {
            self.leave(id, now, finished);
        }
    }

    /// Notes where a piece of a body lies; they are handed on together.
    fn gather(&mut self, id: RequestId, piece: Range<usize>, buffer: &[u8], now: Instant, finished: &mut Finished) {
        let bytes = piece.len() as u64;
        let Some(active) = self.active.get_mut(&id.0) else {
            // The transfer is gone, so the bytes are dropped.
            self.conn.release(clock::time(now), id, bytes);
            return;
        };
        active.unreleased += bytes;
        active.left = active.left.saturating_sub(bytes);
        if !std::mem::replace(&mut active.is_touched, true) {
            self.touched.push(id.0);
        }
        active.pieces.push(piece);
        if active.pieces.len() == GATHERED {
            self.hand_on(id.0, buffer, now, finished);
        }
    }

    /// Passes on the gathered bytes of a body.
    fn hand_on(&mut self, id: u64, buffer: &[u8], now: Instant, finished: &mut Finished) {
        let Some(Active { transfer, pieces, .. }) = self.active.get_mut(&id) else { return };
        let outcome = match pieces.as_slice() {
            [] => return,
            [piece] => transfer.on_body(Lease::borrowed(&buffer[piece.clone()]), now),
            pieces => {
                let mut slices = [IoSlice::new(&[]); GATHERED];
                for (slice, piece) in slices.iter_mut().zip(pieces) {
                    *slice = IoSlice::new(&buffer[piece.clone()]);
                }
                transfer.on_pieces(&mut slices[..pieces.len()], now)
            }
        };
        pieces.clear();
        let is_left = transfer.is_satisfied() || transfer.is_cut_short(BodyFraming::Chunked);
        match outcome {
            Err(error) => self.fail(id, error, Broke::InResponse, now, finished),
            Ok(()) if is_left => self.leave(id, now, finished),
            Ok(()) => {}
        }
    }

    /// Handles a response that has arrived completely and been passed on.
    fn complete(&mut self, id: u64, trailers: Option<Fields>, now: Instant, finished: &mut Finished) {
        self.served += 1;
        let Some(Active { mut transfer, .. }) = self.take_out(id, now) else { return };
        let after = match transfer.on_trailers(trailers) {
            Ok(()) => {
                if !self.closing {
                    transfer.on_kept();
                }
                transfer.on_complete(now)
            }
            Err(error) => transfer.on_failure(error, Broke::InResponse, now),
        };
        finished.push((transfer, after));
    }

    /// Steps the machine over `buffer[input]`. Payload stays where it is until it is handed on.
    pub(super) fn step(
        &mut self,
        buffer: &mut [u8],
        input: Range<usize>,
        now: Instant,
        finished: &mut Finished,
    ) -> Result<()> {
        let time = clock::time(now);
        let mut at = input.start;
        loop {
            let step = self.conn.step(time, &mut buffer[at..input.end]).map_err(from_machine)?;
            let base = at;
            at += step.consumed;
            match step.event {
                Event::NeedInput => return Ok(()),
                Event::Interim { id, head } => {
                    if let Some(active) = self.active.get_mut(&id.0) {
                        active.transfer.on_interim(&head);
                    }
                }
                Event::Head { id, head, framing } => self.begin(id.0, head, framing, now, finished),
                Event::Body { id, range } => {
                    self.gather(id, base + range.start..base + range.end, buffer, now, finished);
                }
                Event::Complete { id, trailers } => {
                    self.hand_on(id.0, buffer, now, finished);
                    self.complete(id.0, trailers, now, finished);
                }
                Event::Reset { id, reason, retryable } => {
                    self.hand_on(id.0, buffer, now, finished);
                    self.was_reset(id.0, reason, retryable, now, finished);
                }
                Event::GoAway { last, .. } => {
                    self.closing = true;
                    self.left_some = self.served > 0 || self.active.keys().any(|&id| id <= last.0);
                    if self.active.keys().any(|&id| id > last.0) {
                        self.allowance.left_some(self.answered + self.unanswered_up_to(last.0));
                    }
                }
                // The driver asks about the number of streams for each one.
                Event::Settings { .. } => self.is_guessing = false,
                _ => {}
            }
        }
    }
}
