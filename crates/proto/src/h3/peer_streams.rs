//! The unidirectional streams of the server: its control stream, its QPACK streams, and streams of
//! unknown types (RFC 9114 §6.2).

use super::frame::{H3FrameHeader, H3FrameReadState, H3FrameReader, kind, setting, stream_type};
use super::machine::H3Machine;
use super::{
    CloseReason, H3Error, H3ErrorCode, H3Event, H3FloodKind, H3FrameFault, H3IllegalStreamOpenOrClose, H3ResetReason,
    H3StreamAbortToSend, RequestId, varint,
};
use crate::h2::ErrorCode;
use crate::time::MonotonicTimestamp;
use alloc::vec::Vec;

/// The values of the peer's SETTINGS that concern the client.
#[derive(Default, Debug)]
pub(crate) struct H3PeerSettings {
    /// True if the peer's SETTINGS have arrived.
    is_seen: bool,
    /// The largest size of a request head, counted as in RFC 9114 §4.2.2; `None` if unlimited.
    pub(crate) max_head: Option<u64>,
}

/// The state of one unidirectional stream of the server.
#[derive(Debug)]
enum ServerStream {
    /// The type of the stream has not arrived completely. The vector contains the bytes of the type
    /// that have arrived.
    Typeless(Vec<u8>),
    Control(H3FrameReader),
    QpackEncoder,
    QpackDecoder,
    /// The stream has an unknown type. Its bytes are ignored.
    Unwanted,
}

/// The open unidirectional streams of the server. QUIC limits their number.
#[derive(Default, Debug)]
pub(crate) struct ServerStreams {
    streams: Vec<(u64, ServerStream)>,
}

impl ServerStreams {
    fn remove(&mut self, id: u64) -> Option<ServerStream> {
        let place = self.streams.iter().position(|&(other, _)| other == id)?;
        Some(self.streams.swap_remove(place).1)
    }

    fn has_stream(&self, is: impl Fn(&ServerStream) -> bool) -> bool {
        self.streams.iter().any(|(_, stream)| is(stream))
    }
}

impl H3Machine {
    /// Reads from a unidirectional stream of the server until there is an event or `input` is used
    /// up. Returns the number of bytes of `input` consumed. `fin` is true if the stream ends after
    /// `input`.
    pub(crate) fn receive_uni_stream(
        &mut self,
        now: MonotonicTimestamp,
        id: u64,
        input: &[u8],
        fin: bool,
    ) -> Result<usize, H3Error> {
        let mut rest = input;
        let mut stream = match self.peer_streams.remove(id) {
            Some(stream) => stream,
            // RFC 9114 §6.2: a stream may end before its type.
            None if input.is_empty() => return if fin { self.on_uni_stream_end(now, id).map(|()| 0) } else { Ok(0) },
            None => ServerStream::Typeless(Vec::new()),
        };
        if let ServerStream::Typeless(partial) = &mut stream {
            while let Some((&byte, behind)) = rest.split_first() {
                rest = behind;
                partial.push(byte);
                if let Some(of) = varint::decode(&mut &partial[..]) {
                    stream = self.accept_uni_stream(now, id, of)?;
                    break;
                }
            }
        }
        match &mut stream {
            ServerStream::Control(reader) => {
                rest = self.receive_control(now, reader, rest)?;
                if !rest.is_empty() {
                    self.peer_streams.streams.push((id, stream));
                    return Ok(input.len() - rest.len());
                }
            }
            ServerStream::QpackEncoder => self.on_encoder_instructions(now, rest)?,
            ServerStream::QpackDecoder => {
                let cancellations = self.encoder.on_decoder_stream(rest)?;
                self.tally.count_many(now, H3FloodKind::StreamCancellation, cancellations)?;
            }
            ServerStream::Typeless(_) | ServerStream::Unwanted => {}
        }
        self.peer_streams.streams.push((id, stream));
        if fin && self.due.is_empty() {
            self.on_uni_stream_end(now, id)?;
        }
        Ok(input.len())
    }

    /// Decides what to do with a new unidirectional stream of type `of`. Returns its state.
    fn accept_uni_stream(&mut self, now: MonotonicTimestamp, id: u64, of: u64) -> Result<ServerStream, H3Error> {
        let (stream, is_open) = match of {
            stream_type::CONTROL => (
                ServerStream::Control(H3FrameReader::default()),
                self.peer_streams.has_stream(|stream| matches!(stream, ServerStream::Control(_))),
            ),
            stream_type::QPACK_ENCODER => (
                ServerStream::QpackEncoder,
                self.peer_streams.has_stream(|stream| matches!(stream, ServerStream::QpackEncoder)),
            ),
            stream_type::QPACK_DECODER => (
                ServerStream::QpackDecoder,
                self.peer_streams.has_stream(|stream| matches!(stream, ServerStream::QpackDecoder)),
            ),
            // The client has sent no MAX_PUSH_ID.
            stream_type::PUSH => return Err(H3Error::Push),
            _ => {
                self.tally.count(now, H3FloodKind::UnknownStream)?;
                let code = H3ErrorCode::STREAM_CREATION_ERROR;
                self.commands.push_back(H3StreamAbortToSend::StopSending { stream: id, code });
                (ServerStream::Unwanted, false)
            }
        };
        if is_open { Err(H3Error::Stream(H3IllegalStreamOpenOrClose::Duplicate)) } else { Ok(stream) }
    }

    /// Processes the end of a unidirectional stream of the server, or its reset.
    pub(crate) fn on_uni_stream_end(&mut self, now: MonotonicTimestamp, id: u64) -> Result<(), H3Error> {
        match self.peer_streams.remove(id) {
            // RFC 9114 §6.2: a stream may end before its type.
            Some(ServerStream::Typeless(_)) | None => self.tally.count(now, H3FloodKind::UnknownStream),
            Some(ServerStream::Unwanted) => Ok(()),
            Some(_) => Err(H3Error::Stream(H3IllegalStreamOpenOrClose::ClosedCritical)),
        }
    }

    /// Carries out the instructions of the peer's QPACK encoder.
    fn on_encoder_instructions(&mut self, now: MonotonicTimestamp, input: &[u8]) -> Result<(), H3Error> {
        let count = self.decoder.on_encoder_stream(input)?;
        self.tally.count_many(now, H3FloodKind::TableChange, count)?;
        self.decoder.acknowledge_insertions(self.outputs.decoder.buffer.append_buffer());
        self.check_unsent_instructions()?;
        self.unblock_streams();
        Ok(())
    }

    /// Reads frames of the peer's control stream until there is an event. Returns the input that is
    /// not consumed.
    fn receive_control<'a>(
        &mut self,
        now: MonotonicTimestamp,
        reader: &mut H3FrameReader,
        mut input: &'a [u8],
    ) -> Result<&'a [u8], H3Error> {
        while !input.is_empty() && self.due.is_empty() {
            let consumed = match reader.state {
                H3FrameReadState::Header => {
                    let (consumed, header) = reader.read_header(input);
                    if let Some(header) = header {
                        self.begin_control_frame(now, reader, header)?;
                    }
                    consumed
                }
                H3FrameReadState::Payload(header) => {
                    let (consumed, payload) = reader.buffer_payload(header.length, input);
                    if let Some(payload) = payload {
                        self.on_control_frame(now, header.kind, &payload)?;
                    }
                    consumed
                }
                H3FrameReadState::Skip(left) | H3FrameReadState::Data(left) => reader.skip_payload(left, input),
            };
            input = &input[consumed..];
        }
        Ok(input)
    }

    fn begin_control_frame(
        &mut self,
        now: MonotonicTimestamp,
        reader: &mut H3FrameReader,
        header: H3FrameHeader,
    ) -> Result<(), H3Error> {
        let H3FrameHeader { kind, length } = header;
        if !self.peer.is_seen && kind != kind::SETTINGS {
            return Err(H3Error::Frame(H3FrameFault::MissingSettings));
        }
        match kind {
            kind::SETTINGS if self.peer.is_seen => Err(H3Error::Frame(H3FrameFault::SecondSettings)),
            kind::DATA | kind::HEADERS | kind::PUSH_PROMISE | kind::MAX_PUSH_ID => {
                Err(H3Error::Frame(H3FrameFault::WrongStream { kind }))
            }
            kind::SETTINGS | kind::GOAWAY | kind::CANCEL_PUSH if length == 0 => self.on_control_frame(now, kind, &[]),
            kind::SETTINGS | kind::GOAWAY | kind::CANCEL_PUSH => {
                self.check_frame_size(header)?;
                reader.state = H3FrameReadState::Payload(header);
                Ok(())
            }
            _ => {
                self.check_unknown_frame(now, header)?;
                if length > 0 {
                    reader.state = H3FrameReadState::Skip(length);
                }
                Ok(())
            }
        }
    }

    /// Processes a complete frame of the peer's control stream.
    fn on_control_frame(&mut self, now: MonotonicTimestamp, kind: u64, payload: &[u8]) -> Result<(), H3Error> {
        match kind {
            kind::SETTINGS => self.on_settings(payload),
            kind::GOAWAY => {
                self.tally.count(now, H3FloodKind::GoAway)?;
                self.on_go_away(decode_single_integer(kind, payload)?)
            }
            _ => {
                self.tally.count(now, H3FloodKind::CancelPush)?;
                // No push identifier is allowed.
                decode_single_integer(kind, payload)?;
                Err(H3Error::Push)
            }
        }
    }

    fn on_settings(&mut self, mut payload: &[u8]) -> Result<(), H3Error> {
        let layout = H3Error::Frame(H3FrameFault::Layout { kind: kind::SETTINGS });
        let mut seen = Vec::new();
        while !payload.is_empty() {
            let id = varint::decode(&mut payload).ok_or(layout)?;
            let value = varint::decode(&mut payload).ok_or(layout)?;
            if setting::is_of_http2(id) {
                return Err(H3Error::Setting { id });
            }
            match id {
                setting::QPACK_MAX_TABLE_CAPACITY => self.encoder.set_peer_limit(value),
                setting::MAX_FIELD_SECTION_SIZE => self.peer.max_head = Some(value),
                // The client's sections never wait.
                setting::QPACK_BLOCKED_STREAMS => {}
                _ => continue,
            }
            if seen.contains(&id) {
                return Err(H3Error::Setting { id });
            }
            seen.push(id);
        }
        self.peer.is_seen = true;
        self.due.push_back(H3Event::Settings);
        Ok(())
    }

    fn on_go_away(&mut self, first: u64) -> Result<(), H3Error> {
        // A later one may lower the number and must not raise it (RFC 9114 §5.2).
        if first & 3 != 0 || first > self.first_refused {
            return Err(H3Error::Frame(H3FrameFault::GoAwayId));
        }
        self.first_refused = first;
        self.closing = Some(CloseReason::GoAway(ErrorCode::NO_ERROR));
        self.due.push_back(H3Event::GoAway { first_refused: RequestId(first) });
        let refused: Vec<u64> = self.requests.ids().filter(|&id| id >= first).collect();
        for id in refused {
            // A request with the beginning of a response was processed, whatever the frame says.
            let retryable = self.abandon(id, H3ErrorCode::REQUEST_CANCELLED).is_some_and(|stream| !stream.started);
            self.due.push_back(H3Event::Reset { id: RequestId(id), reason: H3ResetReason::GoAway, retryable });
        }
        Ok(())
    }
}

/// Returns the integer in a frame of the type `kind`, whose payload is a single integer.
fn decode_single_integer(kind: u64, mut payload: &[u8]) -> Result<u64, H3Error> {
    let value = varint::decode(&mut payload).filter(|_| payload.is_empty());
    value.ok_or(H3Error::Frame(H3FrameFault::Layout { kind }))
}
