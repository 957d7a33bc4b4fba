//! Sends request bodies: DATA frames within the flow-control windows, and the end of the stream.

use super::frame::{self, flag, kind};
use super::machine::{H2Machine, stream_id};
use super::stream_state::RequestStreamState;
use super::{CloseReason, RequestId, SendRequestError};
use crate::hpack::OpenHeaderBlock;
use crate::request_section_writer;
use crate::stream_exchange_progress::RemainingRequestBody;

impl H2Machine {
    /// Returns the number of bytes that [`H2Machine::send_body`] accepts now of this request's
    /// body; `None` if no more body bytes are expected. At most 64 KiB of unsent output are
    /// buffered for all bodies; after the first 4 MiB sent on a connection, 256 KiB.
    pub fn body_credit(&self, id: RequestId) -> Option<u64> {
        self.stream_body_credit(self.streams.get(stream_id(id))?)
    }

    fn stream_body_credit(&self, stream: &RequestStreamState) -> Option<u64> {
        let room = self.output.body_room() as u64;
        let window = self.send_window.min(stream.send_window).max(0) as u64;
        match stream.upload {
            RemainingRequestBody::Finished | RemainingRequestBody::Abandoned => None,
            _ if stream.hold_until.is_some() || self.is_over() => Some(0),
            RemainingRequestBody::Known { left } => Some(left.min(room).min(window)),
            RemainingRequestBody::Open => Some(room.min(window)),
        }
    }

    /// Appends body bytes to the output, in DATA frames. Returns the number of bytes accepted: all
    /// of `data`, or as much as [`H2Machine::body_credit`] allowed. The last byte of a body of
    /// known length ends the stream.
    ///
    /// Bytes given right after [`H2Machine::enqueue`] follow the head in one output slice, so that
    /// one write sends both. With several uploads, the caller decides which of them sends next.
    /// Uploads that alternate share the connection's window.
    pub fn send_body(&mut self, id: RequestId, data: &[u8]) -> Result<usize, SendRequestError> {
        let number = stream_id(id);
        let stream = self.streams.get(number).ok_or_else(|| self.unknown_request_error())?;
        let credit = self.stream_body_credit(stream).ok_or(SendRequestError::NoBodyExpected)?;
        if let RemainingRequestBody::Known { left } = stream.upload
            && data.len() as u64 > left
        {
            return Err(SendRequestError::BodyTooLong { expected: left });
        }
        let data = &data[..data.len().min(credit as usize)];
        for payload in data.chunks(self.peer.max_frame as usize) {
            self.append_data(number, payload.len(), |room| {
                room.copy_from_slice(payload);
                payload.len()
            });
        }
        Ok(data.len())
    }

    /// Appends one DATA frame with at most `room` bytes of the request's body. `fill` writes the
    /// bytes directly into the output, which saves a copy, and returns their number. Its buffer is
    /// shorter than `room` if [`H2Machine::body_credit`] or the peer's largest frame size is
    /// smaller. Returns the number of appended bytes; 0 if `fill` wrote none, or if none can be
    /// sent now. The last byte of a body of known length ends the stream.
    pub fn fill_body(
        &mut self,
        id: RequestId,
        room: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<usize, SendRequestError> {
        let stream = self.streams.get(stream_id(id)).ok_or_else(|| self.unknown_request_error())?;
        let credit = self.stream_body_credit(stream).ok_or(SendRequestError::NoBodyExpected)?;
        let room = room.min(credit as usize).min(self.peer.max_frame as usize);
        Ok(if room == 0 { 0 } else { self.append_data(stream_id(id), room, fill) })
    }

    /// Appends a DATA frame with at most `room` bytes that `fill` writes, and returns their number.
    /// The caller has checked that the windows and the body allow `room` bytes.
    fn append_data(&mut self, number: u32, room: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> usize {
        let Some(stream) = self.streams.get_mut(number) else { return 0 };
        let out = self.output.append_buffer();
        let at = out.len();
        let payload = at + frame::HEADER_LENGTH;
        out.resize(payload + room, 0);
        let n = fill(&mut out[payload..]).min(room);
        if n == 0 {
            out.truncate(at);
            return 0;
        }
        out.truncate(payload + n);
        if let RemainingRequestBody::Known { left } = &mut stream.upload {
            *left -= n as u64;
            if *left == 0 {
                stream.upload = RemainingRequestBody::Finished;
            }
        }
        let finished = stream.upload == RemainingRequestBody::Finished;
        let flags = if finished { flag::END_STREAM } else { 0 };
        out[at..payload].copy_from_slice(&frame::header(n, kind::DATA, flags, number));
        stream.send_window -= n as i64;
        self.send_window -= n as i64;
        self.output.keep_capacity(!finished);
        // The peer may answer each with updates of two windows, in two halves.
        self.tally.count_useful(4);
        if finished {
            self.complete_before_request(number);
        }
        n
    }

    /// Ends the request's body. After a body of unknown length, sends the given trailers. For a
    /// body of known length, checks that the caller gave all bytes.
    pub fn finish_body(&mut self, id: RequestId, trailers: &[(&str, &[u8])]) -> Result<(), SendRequestError> {
        let number = stream_id(id);
        let Some(stream) = self.streams.get_mut(number) else { return Err(self.unknown_request_error()) };
        match stream.upload {
            RemainingRequestBody::Known { left } => Err(SendRequestError::BodyTooShort { missing: left }),
            RemainingRequestBody::Finished if !trailers.is_empty() => Err(SendRequestError::TrailersWithoutChunks),
            RemainingRequestBody::Finished | RemainingRequestBody::Abandoned => Ok(()),
            RemainingRequestBody::Open => {
                request_section_writer::check_trailers(trailers)?;
                stream.upload = RemainingRequestBody::Finished;
                let held = stream.hold_until.take().is_some();
                self.clocks.holding -= u32::from(held);
                let out = self.output.append_buffer();
                if trailers.is_empty() {
                    out.extend_from_slice(&frame::header(0, kind::DATA, flag::END_STREAM, number));
                } else {
                    let start = out.len();
                    out.resize(start + frame::HEADER_LENGTH, 0);
                    let mut block = OpenHeaderBlock::begin(&mut self.encoder, out);
                    request_section_writer::write_trailers(trailers, &mut block, &mut self.name);
                    frame::split_into_frames(start, number, true, self.peer.max_frame, out);
                }
                self.complete_before_request(number);
                Ok(())
            }
        }
    }

    /// Returns the error for a request that is not open. A closing connection may have dropped the
    /// request, so that the caller made no mistake.
    fn unknown_request_error(&self) -> SendRequestError {
        self.closing.map_or(SendRequestError::UnknownRequest, SendRequestError::Closed)
    }

    /// Returns `true` if nothing more can be read, because the peer closed the connection or broke
    /// the protocol.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.closing, Some(CloseReason::Broken | CloseReason::PeerClosed))
    }
}
