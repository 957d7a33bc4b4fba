//! Passes received bytes through TLS and the protocol machine to the transfers.

use std::io::IoSlice;
use std::ops::Range;
use std::time::Instant;

use haul_proto::h1::{ContentLengthFault, H1Error, H1Event, ResponseBodyFraming, ResponseError, TransferCodingFault};
use haul_proto::list_elements;
use haul_proto::time::MonotonicTimestamp;
use smallvec::SmallVec;

use super::super::FinishedTransfers;
use super::H1Connection;
use super::close::{is_violation, protocol_error};
use crate::buffer_pool::{Buffer, OfferedBodyBytes};
use crate::time_conversions;
use crate::{Error, ErrorKind, Result};

impl H1Connection {
    /// Processes the first `filled` bytes of the buffer, which were just received: decrypts them if
    /// they are TLS records, parses them, and passes the result to the transfers.
    pub(super) fn process(
        &mut self,
        buffer: &mut Buffer,
        filled: usize,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> Result<()> {
        let mut at = 0;
        let mut gathered = DecryptedBodyRanges::default();
        loop {
            let opened = self.stream.decrypt_next(buffer, &mut at, filled);
            if let Ok((Some(range), _)) = &opened
                && self.stream.is_secure()
                && self.tail.is_empty()
                && gathered.add(range, self.remaining())
            {
                continue;
            }
            self.deliver(buffer, &mut gathered, now, finished)?;
            if self.closing {
                return Ok(());
            }
            let (range, ended) = opened?;
            if let Some(range) = range {
                let last = at == filled;
                if self.tail.is_empty() {
                    let left = self.process_step(
                        UnparsedH1Bytes::Buffer(buffer, last),
                        range.start,
                        range.end,
                        now,
                        finished,
                    )?;
                    if left < range.end && !self.closing {
                        self.tail.extend_from_slice(&buffer[left..range.end]);
                    }
                } else {
                    self.tail.extend_from_slice(&buffer[range]);
                    self.process_chunk_tail(now, finished)?;
                }
            } else if ended {
                self.on_peer_close(true, now, finished);
                return Ok(());
            } else {
                return Ok(());
            }
            if self.closing {
                return Ok(());
            }
        }
    }

    /// Returns true if a response without a head (HTTP/0.9) arrived after other responses on the
    /// connection, and the transfer accepts such responses. The request is then sent on a new
    /// connection, which shows whether the server really sends them. Returns false for a transfer
    /// that behaves like curl, since curl reports an error in this case.
    fn is_headless_after_first(&self, error: H1Error) -> bool {
        let Some(transfer) = self.queue.front() else { return false };
        let is_late = matches!(error, H1Error::NotHttp { first: false });
        is_late && transfer.accepts_headless_response() && !transfer.wants_partial_heads()
    }

    /// Passes the complete lines of an invalid response head to the transfer, if the transfer
    /// accepts partial heads. `input` is the unparsed input that caused `error`. Returns the error
    /// to report.
    fn on_violation(&mut self, error: H1Error, input: &[u8]) -> Error {
        if let (H1Error::NotHttp { .. }, Some(transfer)) = (error, self.queue.front()) {
            transfer.trace_not_http(input);
        }
        let Some(transfer) = self.queue.front_mut().filter(|transfer| transfer.wants_partial_heads()) else {
            return protocol_error(error);
        };
        let Some(head) = self.conn.partial_head(input) else { return protocol_error(error) };
        transfer.on_partial_head(head);
        match error {
            H1Error::TransferCoding(TransferCodingFault::Unsupported) => match find_transfer_coding(input) {
                Some(coding) => {
                    let message = format!("Unsolicited Transfer-Encoding ({coding}) found");
                    Error::new(ErrorKind::ContentCoding, message)
                }
                None => protocol_error(error),
            },
            H1Error::Response(ResponseError::ContentLength(ContentLengthFault::TooLarge))
                if transfer.has_size_limit() =>
            {
                Error::new(ErrorKind::TooLarge, error.to_string())
            }
            _ => protocol_error(error),
        }
    }

    /// Continues to parse the received bytes in `tail`: an incomplete head or chunk line, which the
    /// protocol machine could not parse before.
    pub(super) fn process_chunk_tail(&mut self, now: Instant, finished: &mut FinishedTransfers) -> Result<()> {
        let mut tail = std::mem::take(&mut self.tail);
        let end = tail.len();
        let left = self.process_step(UnparsedH1Bytes::Memory(&mut tail), 0, end, now, finished)?;
        if !self.closing {
            tail.drain(..left);
            self.tail = tail;
        }
        Ok(())
    }

    /// Passes the ranges of the body that were received and decrypted to the transfer in progress.
    /// The ranges were gathered in [`DecryptedBodyRanges`].
    fn deliver(
        &mut self,
        buffer: &[u8],
        gathered: &mut DecryptedBodyRanges,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> Result<()> {
        if gathered.ranges.is_empty() {
            return Ok(());
        }
        let DecryptedBodyRanges { ranges, bytes } = std::mem::take(gathered);
        if let Some(transfer) = self.queue.front_mut() {
            let mut pieces = [IoSlice::new(&[]); MAX_RECORDS_PER_DELIVERY];
            for (piece, &(start, end)) in pieces.iter_mut().zip(&ranges) {
                *piece = IoSlice::new(&buffer[start..end]);
            }
            transfer.on_pieces(&mut pieces[..ranges.len()], now)?;
            self.advance_direct_body(bytes, now, finished);
        }
        Ok(())
    }

    /// Records that `bytes` bytes of the current body were delivered without passing through the
    /// protocol machine, for example from the socket directly to the sink. Returns true if the body
    /// is complete.
    pub(super) fn advance_direct_body(&mut self, bytes: u64, now: Instant, finished: &mut FinishedTransfers) -> bool {
        let Some(H1Event::Complete { reuse, .. }) = self.conn.advance_body(bytes) else { return false };
        if let Some(transfer) = self.queue.front_mut() {
            transfer.mark_record_complete();
        }
        self.closing |= reuse.is_err();
        self.served += 1;
        self.finish_front(now, finished);
        true
    }

    /// Parses the bytes `input[at..end]`, and passes the resulting events to the transfers. Returns
    /// the position of the first byte that was not parsed.
    fn process_step(
        &mut self,
        mut input: UnparsedH1Bytes<'_>,
        mut at: usize,
        end: usize,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> Result<usize> {
        // The machine needs the time only for its own timeout.
        let time =
            self.conn.poll_timeout().map_or(MonotonicTimestamp(0), |_| time_conversions::to_monotonic_timestamp(now));
        loop {
            let step = match self.conn.step(time, &mut input.bytes()[at..end]) {
                Ok(step) => step,
                Err(error) => {
                    self.is_headless = self.is_headless_after_first(error);
                    self.peer_violated_protocol |= is_violation(error) && !self.is_headless;
                    return Err(self.on_violation(error, &input.bytes()[at..end]));
                }
            };
            let base = at;
            at += step.consumed;
            let Some(transfer) = self.queue.front_mut() else {
                // Without a transfer, there is no one to pass the event to.
                return Ok(at);
            };
            match step.event {
                H1Event::NeedInput => {
                    if transfer.is_recorded() {
                        transfer.record_framing(&input.bytes()[base..at])?;
                    }
                    return Ok(at);
                }
                H1Event::Interim { head, .. } => {
                    transfer.on_interim(&head);
                    // It may have released the request's content (100 Continue). A failed send is
                    // found by the next receive.
                    let _ = self.send_pending();
                }
                H1Event::Head { head, framing, .. } => {
                    if transfer.is_recorded() {
                        transfer.record_head(&input.bytes()[base..at]);
                    }
                    transfer.on_head(head, framing, now);
                    if transfer.skips_rest(framing) {
                        self.closing = true;
                        self.finish_front(now, finished);
                        return Ok(at);
                    }
                    // A success before the content was sent releases it, too.
                    if self.content.is_accepted_now(&self.conn) {
                        let _ = self.send_pending();
                    }
                }
                H1Event::Body { range, .. } => {
                    let range = base + range.start..base + range.end;
                    if transfer.is_recorded() {
                        transfer.record_framing(&input.bytes()[base..range.start])?;
                    }
                    // With a part of the request unsent, the transfer still waits for the server.
                    let is_sent = self.content.is_finished() && self.conn.output().is_empty();
                    let is_last = is_sent && self.conn.is_at_body_end();
                    transfer.on_body(input.offer(range, at == end), is_last, now)?;
                    if transfer.skips_rest(ResponseBodyFraming::Chunked) {
                        self.closing = true;
                        self.finish_front(now, finished);
                        return Ok(at);
                    }
                }
                H1Event::Complete { reuse, trailers, .. } => {
                    if transfer.is_recorded() {
                        transfer.record_framing(&input.bytes()[base..at])?;
                    }
                    transfer.on_trailers(trailers)?;
                    self.closing |= reuse.is_err();
                    self.served += 1;
                    self.finish_front(now, finished);
                    if self.closing || at == end {
                        return Ok(at);
                    }
                }
                H1Event::Tunnel { .. } => {
                    return Err(Error::new(ErrorKind::Protocol, "the server switched protocols"));
                }
            }
        }
    }
}

/// Returns the first transfer coding other than `chunked` and `identity` that a response head in
/// `input` names; `None` if there is none.
fn find_transfer_coding(input: &[u8]) -> Option<String> {
    const FIELD_PREFIX: &[u8] = b"transfer-encoding:";
    let values = input.split(|&byte| byte == b'\n').filter_map(|line| {
        let (name, value) = line.split_at_checked(FIELD_PREFIX.len())?;
        name.eq_ignore_ascii_case(FIELD_PREFIX).then_some(value)
    });
    let is_known =
        |coding: &[u8]| [&b"chunked"[..], b"identity"].iter().any(|known| coding.eq_ignore_ascii_case(known));
    let mut codings = values.flat_map(|value| list_elements(value.trim_ascii_end()));
    codings.find(|coding| !is_known(coding)).map(|coding| String::from_utf8_lossy(coding).into())
}

/// The maximum number of TLS records whose contents one call passes to the transfer. A read buffer
/// has no room for more records of full size.
const MAX_RECORDS_PER_DELIVERY: usize = 16;

/// Ranges of a read buffer that contain consecutive bytes of one body: the contents of TLS records.
/// The ranges are not adjacent, since each record was decrypted in place, but one call can write
/// all of them.
#[derive(Default)]
struct DecryptedBodyRanges {
    ranges: SmallVec<[(usize, usize); MAX_RECORDS_PER_DELIVERY]>,
    bytes: u64,
}

impl DecryptedBodyRanges {
    /// Adds a range. Returns false if the list is full, or if all ranges together would be longer
    /// than `remaining`, the number of body bytes still to come.
    fn add(&mut self, range: &Range<usize>, remaining: u64) -> bool {
        let bytes = self.bytes + range.len() as u64;
        let fits = self.ranges.len() < MAX_RECORDS_PER_DELIVERY && bytes <= remaining;
        if fits {
            self.ranges.push((range.start, range.end));
            self.bytes = bytes;
        }
        fits
    }
}

/// The received bytes that the HTTP/1 machine parses next, and where they are stored.
enum UnparsedH1Bytes<'a> {
    /// Bytes in a read buffer. The flag is true if nothing else in the buffer is needed any more,
    /// so that a sink may keep the buffer.
    Buffer(&'a mut Buffer, bool),
    /// Bytes in the connection's own memory: a head or chunk line that was incomplete at the last
    /// attempt to parse it, and the bytes that have arrived since.
    Memory(&'a mut Vec<u8>),
}

impl UnparsedH1Bytes<'_> {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Buffer(buffer, _) => buffer,
            Self::Memory(bytes) => bytes,
        }
    }

    fn offer(&mut self, range: Range<usize>, last: bool) -> OfferedBodyBytes<'_> {
        match self {
            Self::Buffer(buffer, whole) => {
                if *whole && last {
                    OfferedBodyBytes::new(buffer, range)
                } else {
                    OfferedBodyBytes::borrowed(&buffer[range])
                }
            }
            Self::Memory(bytes) => OfferedBodyBytes::borrowed(&bytes[range]),
        }
    }
}
