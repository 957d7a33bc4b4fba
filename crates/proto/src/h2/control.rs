//! Processes frames about the connection as a whole, and timeouts.

use super::error::FrameFault;
use super::frame::{self, FRAME_SIZES, FrameHeader, MAX_WINDOW, flag, setting};
use super::machine::H2Machine;
use super::{CloseReason, ErrorCode, FloodKind, H2Error, H2Event, RequestId, ResetReason};
use crate::stream_exchange_progress::ResponsePhase;
use crate::time::MonotonicTimestamp;
use alloc::vec::Vec;
use core::time::Duration;

/// The payload of the client's PINGs. At most one is unanswered at a time, so that all PINGs can
/// have one payload.
const PING_PAYLOAD: &[u8; 8] = b"haulping";

/// The time for which the machine still accepts the acknowledgement of the client's SETTINGS after
/// it has noticed the timeout. If the process was stopped, the acknowledgement may have arrived in
/// time, but be still unread in the transport.
const SETTINGS_GRACE: Duration = Duration::from_secs(1);

fn read_u32(payload: &[u8], at: usize) -> u32 {
    payload.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
}

impl H2Machine {
    pub(crate) fn on_settings(
        &mut self,
        now: MonotonicTimestamp,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<(), H2Error> {
        self.tally.count(now, FloodKind::Settings)?;
        if header.has(flag::ACK) {
            if let Some(sent) = self.clocks.settings.take() {
                self.intake.add_rtt_sample(now - sent);
                self.clocks.settings_done = true;
                self.decoder.set_limit(self.config.header_table_size);
            }
            return Ok(());
        }
        for entry in payload.chunks_exact(6) {
            let id = u16::from_be_bytes([entry[0], entry[1]]);
            let value = read_u32(entry, 2);
            let impossible = Err(H2Error::Setting { id, value });
            match id {
                setting::HEADER_TABLE_SIZE => self.encoder.set_peer_limit(value),
                // A server has nothing to switch on (RFC 9113 §6.5.2).
                setting::ENABLE_PUSH if value != 0 => return impossible,
                setting::MAX_CONCURRENT_STREAMS => self.peer.max_streams = value,
                setting::INITIAL_WINDOW_SIZE if i64::from(value) > MAX_WINDOW => return impossible,
                setting::INITIAL_WINDOW_SIZE => self.shift_send_windows(value)?,
                setting::MAX_FRAME_SIZE if !FRAME_SIZES.contains(&value) => return impossible,
                setting::MAX_FRAME_SIZE => self.peer.max_frame = value,
                setting::MAX_HEADER_LIST_SIZE => self.peer.max_head = Some(value),
                _ => {}
            }
        }
        self.peer.seen = true;
        frame::settings_ack(self.output.append_buffer());
        self.due.push_back(H2Event::Settings { max_concurrent: self.max_concurrent() });
        self.count_unsent_ack()
    }

    /// Applies a new `SETTINGS_INITIAL_WINDOW_SIZE` of the peer to open streams. Each send window
    /// changes by the difference from the old value and may become negative (RFC 9113 §6.9.2).
    fn shift_send_windows(&mut self, value: u32) -> Result<(), H2Error> {
        let difference = i64::from(value) - i64::from(self.peer.window);
        self.peer.window = value;
        for stream in self.streams.iter_mut() {
            stream.send_window += difference;
            if stream.send_window > MAX_WINDOW {
                return Err(H2Error::WindowOverflow);
            }
        }
        Ok(())
    }

    /// Counts an acknowledgement of PING or SETTINGS that was appended to the output. Fails if too
    /// many acknowledgements are unsent because the peer does not read.
    fn count_unsent_ack(&mut self) -> Result<(), H2Error> {
        self.unsent_acks.push_back(self.output.end_position());
        self.tally.check_absolute(FloodKind::Unread, u32::try_from(self.unsent_acks.len()).unwrap_or(u32::MAX))
    }

    pub(crate) fn on_ping(
        &mut self,
        now: MonotonicTimestamp,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<(), H2Error> {
        if header.has(flag::ACK) {
            if payload == PING_PAYLOAD
                && let Some(sent) = self.clocks.ping.take()
            {
                self.intake.add_rtt_sample(now - sent);
                return Ok(());
            }
            return self.tally.count(now, FloodKind::Ping);
        }
        self.tally.count(now, FloodKind::Ping)?;
        frame::ping(flag::ACK, payload, self.output.append_buffer());
        self.count_unsent_ack()
    }

    pub(crate) fn on_window_update(
        &mut self,
        now: MonotonicTimestamp,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<(), H2Error> {
        self.tally.count(now, FloodKind::WindowUpdate)?;
        let increment = i64::from(read_u32(payload, 0) & 0x7fff_ffff);
        let window = match header.stream {
            0 => &mut self.send_window,
            // It may cross the end of the stream on the wire.
            id => match self.streams.get_mut(id) {
                Some(stream) => &mut stream.send_window,
                None => return Ok(()),
            },
        };
        let fault = if increment == 0 {
            H2Error::ZeroIncrement
        } else if *window + increment > MAX_WINDOW {
            H2Error::WindowOverflow
        } else {
            *window += increment;
            return Ok(());
        };
        if header.stream == 0 {
            return Err(fault);
        }
        self.reset_for_violation(header.stream, fault);
        Ok(())
    }

    pub(crate) fn on_rst_stream(
        &mut self,
        now: MonotonicTimestamp,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<(), H2Error> {
        let code = ErrorCode(read_u32(payload, 0));
        let Some(stream) = self.drop_stream(header.stream, None) else {
            return self.tally.count(now, FloodKind::Reset);
        };
        let id = RequestId(u64::from(header.stream));
        // The peer has answered, and wants no more of the request (RFC 9113 §8.1).
        let is_answered = stream.phase == ResponsePhase::Ended;
        self.due.push_back(if is_answered && code == ErrorCode::NO_ERROR {
            H2Event::Complete { id, trailers: stream.trailers }
        } else {
            // A request with the beginning of a response was processed, whatever the code says.
            let retryable = code == ErrorCode::REFUSED_STREAM && !stream.started;
            let reason = if is_answered { ResetReason::InRequest(code) } else { ResetReason::Peer(code) };
            H2Event::Reset { id, reason, retryable }
        });
        Ok(())
    }

    pub(crate) fn on_go_away(&mut self, now: MonotonicTimestamp, payload: &[u8]) -> Result<(), H2Error> {
        self.tally.count(now, FloodKind::GoAway)?;
        let (last, code) = (read_u32(payload, 0) & 0x7fff_ffff, ErrorCode(read_u32(payload, 4)));
        // A later one may lower the number and must not raise it (RFC 9113 §6.8).
        self.last_allowed = self.last_allowed.min(last);
        self.closing = Some(CloseReason::GoAway(code));
        self.due.push_back(H2Event::GoAway { last: RequestId(u64::from(self.last_allowed)), code });
        let last = self.last_allowed;
        let left_out: Vec<u32> = self.streams.ids().filter(|&id| id > last).collect();
        for id in left_out {
            let retryable = self.drop_stream(id, None).is_some_and(|stream| !stream.started);
            let reason = ResetReason::GoAway(code);
            self.due.push_back(H2Event::Reset { id: RequestId(u64::from(id)), reason, retryable });
        }
        Ok(())
    }

    /// Starts the timers for the acknowledgement of the client's SETTINGS and for keep-alive. Only
    /// the first call has an effect.
    pub(crate) fn start_clocks(&mut self, now: MonotonicTimestamp) {
        if self.clocks.settings.is_none() && !self.clocks.settings_done {
            self.clocks.settings = Some(now);
            self.clocks.heard = now;
        }
    }

    /// Returns the time at which to call [`H2Machine::handle_timeout`]; `None` if no timeout is
    /// running. Timeouts exist for the acknowledgement of the client's SETTINGS, for a keep-alive
    /// PING, and for a body that waits for `100 Continue`.
    pub fn poll_timeout(&self) -> Option<MonotonicTimestamp> {
        if self.is_over() {
            return None;
        }
        let settings = self
            .clocks
            .settings
            .map(|sent| self.clocks.settings_grace_end.unwrap_or_else(|| sent + self.config.settings_timeout));
        let keepalive = self.config.keepalive.filter(|_| !self.streams.is_empty());
        let ping = keepalive.map(|interval| self.clocks.silent_since() + interval);
        let hold = match self.clocks.holding {
            0 => None,
            _ => self.streams.iter().filter_map(|stream| stream.hold_until).min(),
        };
        [settings, ping, hold].into_iter().flatten().min()
    }

    /// Handles the timeouts that have passed at `now`. An error ends the connection: no more input
    /// can be read, and the output ends with a GOAWAY.
    pub fn handle_timeout(&mut self, now: MonotonicTimestamp) -> Result<(), H2Error> {
        if self.is_over() {
            return Ok(());
        }
        let result = self.check_deadlines(now);
        if let Err(error) = result {
            self.fail(error);
        }
        result
    }

    fn check_deadlines(&mut self, now: MonotonicTimestamp) -> Result<(), H2Error> {
        if self.clocks.settings.is_some_and(|sent| sent + self.config.settings_timeout <= now)
            && *self.clocks.settings_grace_end.get_or_insert_with(|| now + SETTINGS_GRACE) <= now
        {
            return Err(H2Error::SettingsTimeout);
        }
        if let Some(interval) = self.config.keepalive.filter(|_| !self.streams.is_empty()) {
            match self.clocks.ping {
                _ if self.clocks.silent_since() + interval > now => {}
                Some(_) => return Err(H2Error::PingTimeout),
                None => {
                    self.clocks.ping = Some(now);
                    frame::ping(0, PING_PAYLOAD, self.output.append_buffer());
                }
            }
        }
        if self.clocks.holding > 0 {
            let mut released = 0;
            for stream in self.streams.iter_mut() {
                if stream.hold_until.is_some_and(|until| until <= now) {
                    stream.hold_until = None;
                    released += 1;
                }
            }
            self.clocks.holding -= released;
        }
        Ok(())
    }

    /// Checks that the length and the stream of a frame are allowed for its type.
    pub(crate) fn check_header(&self, header: FrameHeader) -> Result<(), H2Error> {
        use frame::kind;
        let length = header.length;
        let fits = match header.kind {
            kind::PRIORITY => length == 5,
            kind::RST_STREAM | kind::WINDOW_UPDATE => length == 4,
            kind::SETTINGS => length.is_multiple_of(6) && (length == 0 || !header.has(flag::ACK)),
            kind::PING => length == 8,
            kind::GOAWAY => length >= 8,
            _ => true,
        };
        if !fits || length > self.config.max_frame_size {
            return Err(H2Error::FrameSize { kind: header.kind, length });
        }
        let fault = match header.kind {
            kind::PUSH_PROMISE => return Err(H2Error::Push),
            kind::DATA | kind::HEADERS | kind::RST_STREAM | kind::CONTINUATION | kind::PRIORITY
                if header.stream == 0 =>
            {
                FrameFault::StreamZero
            }
            kind::SETTINGS | kind::PING | kind::GOAWAY if header.stream != 0 => FrameFault::NotStreamZero,
            kind::DATA | kind::HEADERS | kind::RST_STREAM | kind::WINDOW_UPDATE
                if header.stream != 0 && (header.stream.is_multiple_of(2) || header.stream >= self.next_id) =>
            {
                FrameFault::IdleStream
            }
            _ => return Ok(()),
        };
        Err(H2Error::Frame(fault))
    }
}
