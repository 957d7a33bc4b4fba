//! The receiving half of the HTTP/1 machine: heads, bodies, and their ends.

use super::chunked_decoder::{ChunkEvent, ChunkedDecoder};
use super::framing;
use super::machine::H1Machine;
use super::parse_field_section::{self, FieldSectionScan};
use super::{CloseReason, H1Error, H1Event, H1Step, RequestId, ResponseBodyFraming};
use crate::fields::Fields;
use crate::request_id_and_body_framing::ResponseFramingContext;
use crate::response_error::ResponseError;
use crate::response_head::{ProtocolVersion, ResponseHead};

/// The number of empty lines accepted before a status line. RFC 9112 §2.2 asks servers to skip an
/// empty line before a request; clients need that too, since some servers send an extra line end
/// after a body.
const MAX_EMPTY_LINES: usize = 4;

/// The part of a response that the connection expects next in its input.
#[derive(Debug)]
enum ReceiveState {
    Head(FieldSectionScan),
    /// Payload of known length. `left` is the number of bytes that have not arrived; 0 if only the
    /// completion remains to be reported.
    Length {
        total: u64,
        left: u64,
    },
    Chunked(ChunkedDecoder),
    UntilClose {
        got: u64,
    },
    /// The response is complete, but its request has not been sent completely. The completion is
    /// reported later. The value is the trailer section, if the response has one.
    Early(Option<Fields>),
    Closed,
}

/// The state of reading responses on an HTTP/1 connection.
#[derive(Debug)]
pub(crate) struct ResponseReceiver {
    state: ReceiveState,
    /// True if at least one byte of the current response has been received.
    started: bool,
    empty_lines: usize,
    interim: u32,
    /// The number of bytes received so far in the heads of the current response, interim heads
    /// included.
    head_bytes: usize,
    /// True if the response is a success on a connection that stays open. The server then reads the
    /// rest of the request, although it has already answered.
    reads_on: bool,
}

impl Default for ResponseReceiver {
    fn default() -> ResponseReceiver {
        ResponseReceiver {
            state: ReceiveState::Head(FieldSectionScan::default()),
            started: false,
            empty_lines: 0,
            interim: 0,
            head_bytes: 0,
            reads_on: false,
        }
    }
}

impl ResponseReceiver {
    pub(crate) fn close(&mut self) {
        self.state = ReceiveState::Closed;
    }

    /// Returns `true` if the next bytes must belong to a response head.
    pub(crate) fn expects_head(&self) -> bool {
        matches!(self.state, ReceiveState::Head(_))
    }

    pub(crate) fn has_started(&self) -> bool {
        self.started
    }

    pub(crate) fn direct_body_bytes(&self) -> Option<u64> {
        match self.state {
            ReceiveState::Length { left: left @ 1.., .. } => Some(left),
            _ => None,
        }
    }

    pub(crate) fn is_at_body_end(&self) -> bool {
        matches!(self.state, ReceiveState::Length { left: 0, .. })
    }

    /// Records that the caller itself read `n` payload bytes of the response's body from the
    /// transport. Returns `true` if these bytes end the body.
    pub(crate) fn advance_direct_body(&mut self, n: u64) -> bool {
        let ReceiveState::Length { left, .. } = &mut self.state else {
            debug_assert!(n == 0, "no direct body was granted");
            return false;
        };
        debug_assert!(n <= *left, "more was moved than was granted");
        *left -= n.min(*left);
        *left == 0
    }
}

fn step(consumed: usize, event: H1Event) -> Result<H1Step, H1Error> {
    Ok(H1Step { consumed, event })
}

impl H1Machine {
    pub(crate) fn receive(&mut self, input: &[u8]) -> Result<H1Step, H1Error> {
        if matches!(self.receiver.state, ReceiveState::Early(_)) {
            // Empty lines may precede the next response (RFC 9112 section 2.2).
            let empty = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            if empty > 0 {
                return step(empty, H1Event::NeedInput);
            }
        }
        let Some(id) = self.current_request() else {
            return match (self.closing, input) {
                (Some(reason), _) => Err(H1Error::Response(ResponseError::Closed(reason))),
                (None, []) => step(0, H1Event::NeedInput),
                (None, _) => Err(H1Error::UnsolicitedBytes),
            };
        };
        match &mut self.receiver.state {
            ReceiveState::Head(_) => self.receive_head(id, input),
            ReceiveState::Length { left: 0, .. } => {
                let event = self.complete_response(None, !input.is_empty());
                step(0, event)
            }
            ReceiveState::Early(trailers) => {
                let trailers = trailers.take();
                let event = self.complete_response(trailers, !input.is_empty());
                step(0, event)
            }
            ReceiveState::Closed => Err(self.closed_error()),
            _ if input.is_empty() => step(0, H1Event::NeedInput),
            ReceiveState::Length { left, .. } => {
                let take = (*left).min(input.len() as u64);
                *left -= take;
                step(take as usize, H1Event::Body { id, range: 0..take as usize })
            }
            ReceiveState::UntilClose { got } => {
                *got = got.saturating_add(input.len() as u64);
                step(input.len(), H1Event::Body { id, range: 0..input.len() })
            }
            ReceiveState::Chunked(decoder) => {
                let (consumed, decoded) = decoder.decode(&self.config.limits, input)?;
                if decoder.has_tolerated_faults() {
                    self.closing.get_or_insert(CloseReason::LooseFraming);
                }
                let event = if self.config.deviations.raw {
                    self.raw_chunk_event(id, consumed, &decoded)
                } else {
                    match decoded {
                        ChunkEvent::NeedInput => H1Event::NeedInput,
                        ChunkEvent::Data(range) => H1Event::Body { id, range },
                        ChunkEvent::End(trailers) => self.complete_response(trailers, consumed < input.len()),
                    }
                };
                step(consumed, event)
            }
        }
    }

    /// Returns the body event for a decoded piece of a chunked body whose framing is delivered as
    /// part of the body ([`H1Deviations::raw`](super::H1Deviations::raw)). `consumed` is the length
    /// of the piece in bytes, with its framing.
    fn raw_chunk_event(&mut self, id: RequestId, consumed: usize, decoded: &ChunkEvent) -> H1Event {
        if let ChunkEvent::End(_) = decoded {
            self.receiver.state = ReceiveState::Length { total: 0, left: 0 };
        }
        match consumed {
            0 => H1Event::NeedInput,
            _ => H1Event::Body { id, range: 0..consumed },
        }
    }

    fn closed_error(&self) -> H1Error {
        H1Error::Response(ResponseError::Closed(self.closing.unwrap_or(CloseReason::Broken)))
    }

    fn receive_head(&mut self, id: RequestId, input: &[u8]) -> Result<H1Step, H1Error> {
        if input.is_empty() {
            return step(0, H1Event::NeedInput);
        }
        // A response that precedes the first byte of its request is not meant for it.
        if self.exchanges.front().is_some_and(|exchange| !self.has_sent_any_of(exchange)) {
            return Err(H1Error::UnsolicitedBytes);
        }
        let limits = self.config.limits;
        let receiver = &mut self.receiver;
        let ReceiveState::Head(scan) = &mut receiver.state else { return Err(H1Error::StatusLine) };
        receiver.started = true;
        let mut skipped = 0;
        loop {
            skipped += match &input[skipped..] {
                [b'\r', b'\n', ..] => 2,
                [b'\n', ..] => 1,
                [] | [b'\r'] => return step(skipped, H1Event::NeedInput),
                _ => break,
            };
            receiver.empty_lines += 1;
            if receiver.empty_lines > MAX_EMPTY_LINES {
                return Err(H1Error::EmptyLines { limit: MAX_EMPTY_LINES });
            }
        }
        let input = &input[skipped..];
        let first = receiver.head_bytes == 0 && !self.has_answered;
        match parse_field_section::check_start(input) {
            // Only for the first response of a connection: after another one it would be garbage
            // that nobody asked for.
            Err(H1Error::NotHttp { .. }) if self.config.deviations.http09 && first => {
                if self
                    .exchanges
                    .front()
                    .is_some_and(|exchange| exchange.facts.response_to == ResponseFramingContext::Head)
                {
                    return Err(H1Error::NotHttp { first: false });
                }
                self.closing.get_or_insert(CloseReason::UntilClose);
                receiver.state = ReceiveState::UntilClose { got: 0 };
                let (head, framing) = (ResponseHead::without_text(), ResponseBodyFraming::UntilClose);
                return step(skipped, H1Event::Head { id, head, framing });
            }
            Err(H1Error::NotHttp { .. }) => return Err(H1Error::NotHttp { first }),
            checked => checked?,
        }
        let room = limits.head_bytes.saturating_sub(receiver.head_bytes);
        let Some(end) = scan.find_end(&input[..input.len().min(room)]) else {
            return if input.len() >= room {
                Err(H1Error::Response(ResponseError::HeadTooLarge { limit: limits.head_bytes }))
            } else {
                step(skipped, H1Event::NeedInput)
            };
        };
        let head = parse_field_section::parse_head(&input[..end], scan, limits.head_fields)?;
        *scan = FieldSectionScan::default();
        receiver.head_bytes += end;
        receiver.empty_lines = 0;
        self.has_answered = true;
        self.saw_http10 = head.version() == ProtocolVersion::Http10;
        let event = self.begin_response(id, head)?;
        step(skipped + end, event)
    }

    /// Decides what follows a response head in the input: another head after an interim response,
    /// the data of the tunnel after a tunnel response, and the body after any other final response
    /// (RFC 9110 §15.2, §9.3.6; RFC 9112 §6.3).
    fn begin_response(&mut self, id: RequestId, head: ResponseHead) -> Result<H1Event, H1Error> {
        let Some(facts) = self.exchanges.front().map(|exchange| exchange.facts) else {
            return Err(H1Error::UnsolicitedBytes);
        };
        let only_one = self.exchanges.len() == 1;
        match head.status() {
            101 if facts.upgrade && self.config.deviations.upgraded => {
                self.closing.get_or_insert(CloseReason::UntilClose);
                self.receiver.state = ReceiveState::UntilClose { got: 0 };
                Ok(H1Event::Head { id, head, framing: ResponseBodyFraming::UntilClose })
            }
            101 if facts.upgrade => Ok(self.begin_tunnel(id, head)),
            101 => Err(H1Error::UnexpectedUpgrade),
            status @ 100..=199 => {
                self.receiver.interim += 1;
                if self.receiver.interim > self.config.limits.interim {
                    return Err(H1Error::Response(ResponseError::TooManyInterim { limit: self.config.limits.interim }));
                }
                // The body that is held back is that of the last request.
                if status == 100 && only_one {
                    self.sender.end_continue_wait();
                }
                Ok(H1Event::Interim { id, head })
            }
            200..=299 if facts.response_to == ResponseFramingContext::Connect => Ok(self.begin_tunnel(id, head)),
            _ => {
                let (framing, closing) =
                    framing::response_framing(&head, facts.response_to, facts.asks_coding, &self.config)?;
                self.closing = self.closing.or(closing);
                let is_success = (200..300).contains(&head.status());
                self.receiver.reads_on = is_success && self.closing.is_none() && !facts.close;
                if only_one && self.sender.continue_deadline().is_some() {
                    // A response while the body is held back: the body is not wanted, unless the
                    // server keeps the connection open to read it (RFC 9110 §10.1.1). A success
                    // that closes says neither, since servers that respond while they read end the
                    // response after the body. So the body is sent when the wait is over, unless
                    // the response is complete before.
                    if self.receiver.reads_on {
                        self.sender.end_continue_wait();
                    } else if !is_success {
                        self.sender.abandon_body();
                    }
                }
                self.receiver.state = match framing {
                    ResponseBodyFraming::None => ReceiveState::Length { total: 0, left: 0 },
                    ResponseBodyFraming::Length(total) => ReceiveState::Length { total, left: total },
                    ResponseBodyFraming::Chunked => ReceiveState::Chunked(ChunkedDecoder::default()),
                    ResponseBodyFraming::UntilClose => ReceiveState::UntilClose { got: 0 },
                };
                Ok(H1Event::Head { id, head, framing })
            }
        }
    }

    fn begin_tunnel(&mut self, id: RequestId, head: ResponseHead) -> H1Event {
        self.exchanges.pop_front();
        self.close(CloseReason::Tunnel);
        H1Event::Tunnel { id, head }
    }

    /// Returns `true` if the next call of [`H1Machine::step`] reports a completed exchange without
    /// any input. This happens after a successful response that ended before its request was sent
    /// completely: the exchange is complete when the rest of the request has been sent. Without
    /// that rest, the server would read the next request as a part of this one (RFC 9112 §9.3).
    pub fn has_completion_to_report(&self) -> bool {
        matches!(self.receiver.state, ReceiveState::Early(_)) && self.has_sent_front_request()
    }

    /// Returns `true` if the first unanswered request has been sent completely, or if no request is
    /// unanswered.
    fn has_sent_front_request(&self) -> bool {
        self.exchanges.front().is_none_or(|exchange| self.has_sent_all_of(exchange))
    }

    /// Ends the current response and returns [`H1Event::Complete`], or [`H1Event::NeedInput`] if
    /// the rest of the request must be sent first. `more` is true if bytes follow the response in
    /// the input. The connection is then closed if the request is unfinished, or if no other
    /// request waits for a response.
    pub(crate) fn complete_response(&mut self, trailers: Option<Fields>, more: bool) -> H1Event {
        let has_left = self.has_sent_front_request();
        // Bytes after the response are not part of any response. They would have to be kept until
        // the request is sent, so the rest of the request is given up.
        if self.receiver.reads_on && !has_left && !more {
            self.receiver.state = ReceiveState::Early(trailers);
            return H1Event::NeedInput;
        }
        let Some(exchange) = self.exchanges.pop_front() else { return H1Event::NeedInput };
        self.receiver = ResponseReceiver::default();
        let close = if !has_left {
            Some(CloseReason::RequestUnfinished)
        } else if exchange.facts.close {
            Some(CloseReason::ClientClose)
        } else if more && self.exchanges.is_empty() {
            Some(CloseReason::UnsolicitedBytes)
        } else {
            None
        };
        if let Some(reason) = self.closing.or(close) {
            self.close(reason);
        }
        H1Event::Complete { id: exchange.id, trailers, reuse: self.closing.map_or(Ok(()), Err) }
    }

    pub(crate) fn receive_end(&mut self, clean: bool) -> Result<H1Event, H1Error> {
        let receiver = &self.receiver;
        let early = match &receiver.state {
            ReceiveState::Closed => return Err(self.closed_error()),
            ReceiveState::Head(_) if self.exchanges.is_empty() => H1Error::Response(ResponseError::EndedIdle),
            ReceiveState::Head(scan) if scan.seen_bytes() == 0 => H1Error::Response(ResponseError::EndedBeforeResponse),
            ReceiveState::Head(scan) => {
                let got = (receiver.head_bytes + scan.seen_bytes()) as u64;
                if scan.has_complete_line() { H1Error::EndedInHead { got } } else { H1Error::EndedInStatusLine { got } }
            }
            ReceiveState::Length { left: 0, .. } | ReceiveState::Early(_) => {
                self.closing.get_or_insert(CloseReason::PeerClosed);
                return match self.complete_response(None, false) {
                    H1Event::NeedInput => Err(H1Error::EndedInRequest),
                    event => Ok(event),
                };
            }
            ReceiveState::Length { total, left } => H1Error::EndedInBody { expected: *total, got: total - left },
            ReceiveState::Chunked(decoder) => H1Error::EndedInChunks { got: decoder.decoded_bytes() },
            ReceiveState::UntilClose { .. } if clean => return Ok(self.complete_response(None, false)),
            ReceiveState::UntilClose { got } => H1Error::EndedUncleanly { got: *got },
        };
        Err(early)
    }
}
