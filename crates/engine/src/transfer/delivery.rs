//! The delivery of the response's body to the sink. Determines the number of bytes that may be
//! received, and the received bytes that are delivered.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Instant;

use haul_proto::h1::ResponseBodyFraming;
use rustix::fd::BorrowedFd;

use super::resettable_state::BodyDisposition;
use super::{ReceiveCredit, Transfer};
use crate::body::delivery::BodyDelivery;
use crate::buffer_pool::OfferedBodyBytes;
use crate::request::WantedContentRange;
use crate::sink::{ReceivedIntoSink, TransferWaker};
use crate::trace::TraceEvent;
use crate::{Error, ErrorKind, Result};

/// The maximum length, in bytes, of an unwanted body that is received to its end so that the
/// connection can be reused.
const MAX_DRAINED: u64 = 64 << 10;

/// The maximum length, in bytes, of an unwanted body (such as an error page) that is received to
/// its end because the exchange is recorded.
const MAX_RECORDED: u64 = 16 << 20;

impl Transfer {
    /// Returns true if the sink gets the bytes of the body as they were received: they are neither
    /// decoded nor searched.
    pub(crate) fn delivers_body_as_received(&self) -> bool {
        self.body.is_delivered_as_received()
    }

    /// Returns true if the body stays as it was received: neither the engine nor the sink decodes
    /// it, and the engine does not search it.
    pub(crate) fn has_unprocessed_body(&self) -> bool {
        self.delivers_body_as_received() && !self.progress.is_coded
    }

    /// Returns the number of body bytes that may be received now. If the sink accepts no bytes, it
    /// later wakes `waker` with `token`, and the driver (the code that receives the response) then
    /// calls this function again.
    pub fn credit(&mut self, now: Instant, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> ReceiveCredit {
        match self.response.disposition {
            BodyDisposition::Deliver => {}
            // A head is always received, and the body bytes that arrive with it are delivered even
            // without credit.
            BodyDisposition::Unknown => {
                let credit = self.body.credit(None, token);
                return self.speed.allow_with_head(credit, now);
            }
            _ => return ReceiveCredit::Bytes(u64::MAX),
        }
        let mut credit = self.body.credit(waker, token);
        if let Some(end) = self.split.end_offset() {
            credit = credit.min(end.bytes_until_end(self.progress.range.at, waker, token));
        }
        self.speed.allow(credit.saturating_add(if credit == 0 { 0 } else { self.response.skip }), now)
    }

    /// Returns true if the sink could accept the first bytes of the response. The driver calls this
    /// before the response begins. If the result is false, the sink later wakes `waker` with
    /// `token`, when it accepts bytes.
    pub fn is_ready(&mut self, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> bool {
        match self.response.disposition {
            BodyDisposition::Unknown | BodyDisposition::Deliver => self.body.credit(waker, token) > 0,
            _ => true,
        }
    }

    /// Returns true if the rest of the response is not needed, because the wanted bytes have
    /// arrived. There are two cases:
    /// * The transfer is the first one of a split download, and has reached the offset at which
    ///   another part begins.
    /// * The response contains the whole content, and the transfer has reached the end of the range
    ///   that it had requested.
    #[must_use]
    pub fn has_all_wanted_bytes(&self) -> bool {
        let at = self.progress.range.at;
        matches!(self.response.disposition, BodyDisposition::Deliver)
            && (self.split.end_offset().is_some_and(|end| end.is_reached(at)) || self.surplus_begins_at() == Some(at))
    }

    /// Returns the offset in the content after the last wanted byte, if the response contains the
    /// whole content although a range was requested; otherwise `None`.
    fn surplus_begins_at(&self) -> Option<u64> {
        self.progress.range.end.filter(|_| self.response.exceeds_range)
    }

    /// Returns true if the sink gets all further bytes of the response. Returns false if some are
    /// dropped: bytes that an earlier response delivered, or bytes after the requested range.
    fn delivers_all_bytes(&self) -> bool {
        self.response.skip == 0 && !self.response.exceeds_range
    }

    /// Returns true if the rest of an unwanted body is too long to be received. The driver then
    /// closes the connection.
    #[must_use]
    pub fn skips_rest(&self, framing: ResponseBodyFraming) -> bool {
        let unwanted = !matches!(self.response.disposition, BodyDisposition::Unknown | BodyDisposition::Deliver);
        let max_drained = match (&self.response.disposition, &self.options.span) {
            // The server has only weak validators, so its first range cannot be used. This happens
            // in each transfer. With HTTP/2, the stream would be reset each time, and Tomcat closes
            // the connection after a few resets.
            (BodyDisposition::Again, Some(WantedContentRange::Opening(bytes))) => MAX_DRAINED.max(*bytes),
            _ if self.record.is_some() => self.options.max_size.unwrap_or(u64::MAX).clamp(MAX_DRAINED, MAX_RECORDED),
            _ => MAX_DRAINED,
        };
        unwanted
            && match framing {
                ResponseBodyFraming::None => false,
                _ if self.options.head_only => true,
                ResponseBodyFraming::Length(length) => length > max_drained,
                ResponseBodyFraming::Chunked => self.facts.body_bytes > max_drained,
                ResponseBodyFraming::UntilClose => self.record.is_none() || self.facts.body_bytes > max_drained,
            }
    }

    /// Delivers received bytes of the response's body to the sink. `is_last` is true if the
    /// exchange is known to end with these bytes.
    ///
    /// # Errors
    /// The error of the decoder, the extractor or the sink. The transfer must end.
    pub fn on_body(&mut self, offered: OfferedBodyBytes<'_>, is_last: bool, now: Instant) -> Result<()> {
        let content = offered.bytes();
        let bytes = content.len() as u64;
        self.report_content(content)?;
        self.speed.on_received(bytes, now);
        if !matches!(self.response.disposition, BodyDisposition::Deliver) {
            self.facts.body_bytes += bytes;
            return Ok(());
        }
        let start = self.response.skip.min(bytes);
        if let Some(limit) = self.size_limit_offset()
            && self.wanted_until(bytes - start) > limit
        {
            return self.deliver_up_to(limit, &offered.bytes()[start as usize..]);
        }
        let wanted = self.range_to_deliver(bytes)?;
        if wanted.end - wanted.start == bytes {
            // After the last bytes, neither speed nor silence is measured.
            return if is_last { self.body.push(offered) } else { self.deliver_with(now, |body| body.push(offered)) };
        }
        let wanted = wanted.start as usize..wanted.end as usize;
        if wanted.is_empty() {
            return Ok(());
        }
        self.deliver_with(now, |body| body.push(OfferedBodyBytes::borrowed(&offered.bytes()[wanted])))
    }

    /// Delivers bytes by calling `push`. The time of this call does not count in the measurement of
    /// the server's speed and silence.
    fn deliver_with(&mut self, now: Instant, push: impl FnOnce(&mut BodyDelivery) -> Result<()>) -> Result<()> {
        if !self.speed.is_measured() {
            return push(&mut self.body);
        }
        self.speed.set_paused(true, now);
        let pushed = push(&mut self.body);
        self.speed.set_paused(false, Instant::now());
        pushed
    }

    /// Returns the offset in the content at which [`RequestOptions::max_size`] is reached. The
    /// bytes before the offset of `-C` do not count.
    fn size_limit_offset(&self) -> Option<u64> {
        Some(self.options.max_size?.saturating_add(self.ranges.start))
    }

    /// Delivers those of `bytes` that are before the offset `limit`. Returns an error if
    /// `bytes` contains more.
    fn deliver_up_to(&mut self, limit: u64, bytes: &[u8]) -> Result<()> {
        let allowed = limit.saturating_sub(self.progress.range.at).min(bytes.len() as u64);
        let end = self.progress.range.at + allowed;
        self.set_position(end);
        self.facts.body_bytes += allowed;
        self.body.push(OfferedBodyBytes::borrowed(&bytes[..allowed as usize]))?;
        self.check_position(end.saturating_add(1))
    }

    /// Returns the offset in the body at which the wanted ones of the next `bytes` bytes end.
    fn wanted_until(&self, bytes: u64) -> u64 {
        let to = self.progress.range.at.saturating_add(bytes);
        self.surplus_begins_at().map_or(to, |end| to.min(end))
    }

    /// Returns the part of the next `bytes` received bytes that must be delivered, as a range of
    /// indices. Excludes bytes that an earlier response delivered, and bytes after the end of the
    /// transfer's range.
    fn range_to_deliver(&mut self, bytes: u64) -> Result<std::ops::Range<u64>> {
        let start = self.response.skip.min(bytes);
        self.response.skip -= start;
        let at = self.progress.range.at;
        let received_to = self.wanted_until(bytes - start);
        if self.ranges.may_request_ranges()
            && self.progress.range.known_end().is_some_and(|known_end| received_to > known_end)
        {
            return Err(Error::new(ErrorKind::Receive, "the server sent more than the range it announced"));
        }
        let end = self.split.end_offset().map_or(received_to, |end| end.deliverable_end(at, received_to));
        self.set_position(end);
        self.facts.body_bytes += end - at;
        self.check_position(end)?;
        Ok(start..start + (end - at))
    }

    /// Sets the offset, from the start of the content, of the byte to deliver next. The first
    /// transfer of a split download also passes the offset to the coordinator (which assigns the
    /// ranges of the body to connections).
    fn set_position(&mut self, at: u64) {
        self.progress.range.at = at;
        if let Some(end) = self.split.end_offset() {
            end.set_position(at);
        }
    }

    /// Delivers received body bytes that are in several buffers, such as the records of a TLS
    /// stream.
    ///
    /// # Errors
    /// The errors of [`Transfer::on_body`].
    pub fn on_pieces(&mut self, pieces: &mut [IoSlice<'_>], now: Instant) -> Result<()> {
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        let (at, to) = (self.progress.range.at, self.progress.range.at + bytes);
        let is_whole = self.delivers_all_bytes()
            && self.split.end_offset().is_none_or(|end| end.deliverable_end(at, to) == to)
            && self.size_limit_offset().is_none_or(|limit| to <= limit);
        if !is_whole || !matches!(self.response.disposition, BodyDisposition::Deliver) {
            return pieces.iter().try_for_each(|piece| self.on_body(OfferedBodyBytes::borrowed(piece), false, now));
        }
        pieces.iter().try_for_each(|piece| self.report_content(piece))?;
        self.speed.on_received(bytes, now);
        self.range_to_deliver(bytes)?;
        self.deliver_with(now, |body| body.push_pieces(pieces))
    }

    /// Reports received content to the trace, if the trace observes content. Also adds it to the
    /// record of the exchange, if there is a recorder (such as the WARC archive).
    fn report_content(&mut self, content: &[u8]) -> Result<()> {
        if let Some(trace) = self.options.trace.as_ref().filter(|trace| trace.wants_content()) {
            trace.event(&TraceEvent::Received(content));
        }
        self.record_body(content)
    }

    /// Returns true if the received content must also be passed to a trace or to a recorder of the
    /// exchange (such as the WARC archive).
    fn is_traced(&self) -> bool {
        self.record.is_some() || self.options.trace.as_ref().is_some_and(|trace| trace.wants_content())
    }

    /// Returns the descriptor of the sink to which the driver may move body bytes directly. Returns
    /// `None` if the bytes must be decoded, searched, skipped, traced or recorded, or if the sink
    /// has no descriptor.
    pub fn direct_descriptor(&mut self) -> Option<BorrowedFd<'_>> {
        match self.response.disposition {
            BodyDisposition::Deliver if self.delivers_all_bytes() && !self.is_traced() => self.body.direct_descriptor(),
            _ => None,
        }
    }

    /// Receives at most `most` body bytes from the socket into the sink's own memory
    /// ([`Sink::receive`](crate::sink::Sink::receive)). Returns `None` if the sink does not support
    /// this, or if the bytes must be processed before the sink gets them, for example decoded or
    /// skipped. The caller must report the number of received bytes to [`Transfer::on_moved`].
    pub fn receive_into_sink(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<ReceivedIntoSink>> {
        match self.response.disposition {
            BodyDisposition::Deliver
                if self.delivers_all_bytes() && self.split.end_offset().is_none() && !self.is_traced() =>
            {
                self.body.receive_into_sink(socket, most)
            }
            _ => None,
        }
    }

    /// Records that `bytes` bytes were moved to the descriptor that [`Transfer::direct_descriptor`]
    /// returned, or received by [`Transfer::receive_into_sink`].
    ///
    /// # Errors
    /// The body is larger than allowed. The transfer must end.
    pub fn on_moved(&mut self, bytes: u64, now: Instant) -> Result<()> {
        self.speed.on_received(bytes, now);
        self.set_position(self.progress.range.at + bytes);
        self.facts.body_bytes += bytes;
        self.body.on_moved_bytes(bytes);
        self.check_position(self.progress.range.at)
    }

    /// Sets whether the sink keeps the bytes that its output does not accept, so that the driver
    /// can serve the connection while the output is full
    /// ([`Sink::keep_unwritten`](crate::sink::Sink::keep_unwritten)).
    pub(crate) fn keep_unwritten(&mut self, keeps: bool) {
        self.body.keep_unwritten(keeps);
    }

    /// Returns the descriptor of the sink's output if the sink keeps bytes for it. The driver must
    /// wait until the descriptor is writable, and then call [`Transfer::write_kept`].
    pub(crate) fn full_output(&mut self) -> Option<BorrowedFd<'_>> {
        self.body.full_output()
    }

    /// Writes the bytes that the sink keeps, as far as its output accepts them now.
    ///
    /// # Errors
    /// The error of the output. The transfer must end.
    pub(crate) fn write_kept(&mut self) -> Result<()> {
        self.body.write_kept()
    }

    /// Returns the error to report when a write to the descriptor of
    /// [`Transfer::direct_descriptor`] has failed with `error`.
    #[must_use]
    pub fn write_error(&self, error: io::Error) -> Error {
        self.body.sink().write_error(error)
    }
}
