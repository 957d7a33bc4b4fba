//! The fault origin over HTTP/2 (RFC 9113). One thread for each connection reads frames and sends
//! the bodies of its streams in turn.
//!
//! The server is implemented directly on [`frames`], since an ordinary HTTP/2 library cannot stop
//! at the byte that a plan specifies.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use super::faulty_body_sender::{BodySender, SendStep};
use super::plan::BreakKind;
use super::reply_choice::{FaultyResource, PlannedReply};
use super::request::FaultyOriginRequest;
use super::serve::FaultyOriginState;
use crate::frames::{self, Frame};
use crate::peer_stream::PeerStream;

/// The first line of an HTTP/2 client's preface and the empty line after it. [`PREFACE_END`] is the
/// rest of the preface.
pub(super) const PREFACE: &str = "PRI * HTTP/2.0\r\n\r\n";
const PREFACE_END: &[u8] = b"SM\r\n\r\n";

/// The maximum payload length in bytes of an HTTP/2 frame: the default of SETTINGS_MAX_FRAME_SIZE,
/// which every client accepts.
const MAX_FRAME: usize = 16 << 10;
/// The initial size of HTTP/2 flow-control windows in bytes.
const WINDOW: i64 = 65_535;
/// The interval at which an idle connection checks whether the origin is stopping, while it waits
/// for frames.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_CONCURRENT_STREAMS: u16 = 3;
/// The flag PRIORITY of HEADERS frames.
const PRIORITY: u8 = 32;

/// Serves the HTTP/2 connection with this number until it ends. The caller has already read
/// [`PREFACE`]; `ahead` contains the bytes read after it.
pub(super) fn serve(wire: PeerStream, ahead: Vec<u8>, number: u64, shared: &FaultyOriginState) -> io::Result<()> {
    let mut session = FaultySession {
        wire,
        ahead,
        number,
        shared,
        decoder: loona_hpack::Decoder::new(),
        window: WINDOW,
        initial: WINDOW,
        streams: BTreeMap::new(),
        highest: 0,
        takes_more: true,
    };
    let end = session.run();
    session.streams.values().for_each(|stream| stream.resource.on_body_end());
    // Counted as closed before the client can know.
    shared.on_connection_closed(number);
    match end? {
        FaultyConnectionEnd::InOrder => session.wire.close(),
        FaultyConnectionEnd::Reset => session.wire.reset(),
    }
}

/// The manner in which the fault origin ends a connection.
enum FaultyConnectionEnd {
    InOrder,
    Reset,
}

struct FaultySession<'a> {
    wire: PeerStream,
    /// Bytes received from the client that do not form a complete frame yet.
    ahead: Vec<u8>,
    number: u64,
    shared: &'a FaultyOriginState,
    decoder: loona_hpack::Decoder<'static>,
    window: i64,
    initial: i64,
    streams: BTreeMap<u32, FaultyStream>,
    highest: u32,
    /// True if new streams are accepted; false after a GOAWAY was sent.
    takes_more: bool,
}

/// The HTTP/2 stream of a response whose body is being sent.
struct FaultyStream {
    resource: Arc<FaultyResource>,
    sending: BodySender,
    window: i64,
    /// The next encoded bytes of the body. They must not be sent before the time `from`.
    ready: Vec<u8>,
    from: Instant,
    /// The state of a stall. `None`: the body is not stalled. `Some(None)`: the stall never ends.
    /// `Some(Some(time))`: the stall ends at this time.
    stalled: Option<Option<Instant>>,
    /// True if the bytes in `ready` are the last bytes of the body.
    last: bool,
}

impl FaultySession<'_> {
    fn run(&mut self) -> io::Result<FaultyConnectionEnd> {
        while self.ahead.len() < PREFACE_END.len() {
            if !self.read(None)? {
                return Ok(FaultyConnectionEnd::InOrder);
            }
        }
        self.ahead.drain(..PREFACE_END.len());
        self.wire.write_all(&frames::settings(&[(MAX_CONCURRENT_STREAMS, 100)]))?;
        loop {
            while let Some(frame) = self.take_frame() {
                self.on_frame(frame)?;
            }
            if let Some(end) = self.send()? {
                self.wire.flush()?;
                return Ok(end);
            }
            self.wire.flush()?;
            let is_done = !self.takes_more && self.streams.is_empty();
            if is_done || self.shared.stop.load(SeqCst) || !self.read(Some(self.time_to_next_send()))? {
                return Ok(FaultyConnectionEnd::InOrder);
            }
        }
    }

    /// Reads the bytes that have arrived. If no byte has arrived, waits at most `wait` for the next
    /// bytes. Returns `false` if the client has closed.
    fn read(&mut self, wait: Option<Duration>) -> io::Result<bool> {
        // A time-out of zero would mean none.
        let at_once = wait == Some(Duration::ZERO);
        self.wire.socket().set_nonblocking(at_once)?;
        self.wire.socket().set_read_timeout(wait.filter(|_| !at_once))?;
        let mut buffer = [0; 16 << 10];
        let outcome = self.wire.read(&mut buffer);
        self.wire.socket().set_nonblocking(false)?;
        match outcome {
            Ok(len) => {
                self.ahead.extend_from_slice(&buffer[..len]);
                Ok(len > 0)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Returns the time until the next body can be sent, at most [`POLL_INTERVAL`]. Bodies whose
    /// flow-control window is used up are ignored.
    fn time_to_next_send(&self) -> Duration {
        let now = Instant::now();
        let next = self.streams.values().filter_map(|stream| match stream.stalled {
            Some(until) => until,
            None if stream.window.min(self.window) <= 0 && !stream.ready.is_empty() => None,
            None => Some(stream.from),
        });
        next.min().map_or(POLL_INTERVAL, |next| next.saturating_duration_since(now).min(POLL_INTERVAL))
    }

    /// Removes the first complete frame from the received bytes and returns it; `None` if no frame
    /// is complete.
    fn take_frame(&mut self) -> Option<Frame> {
        let head = self.ahead.first_chunk::<9>()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
        let (kind, flags) = (head[3], head[4]);
        let payload = self.ahead.get(9..9 + length)?.to_vec();
        self.ahead.drain(..9 + length);
        Some(Frame { kind, flags, stream, payload })
    }

    fn on_frame(&mut self, frame: Frame) -> io::Result<()> {
        let word = |at: usize| {
            let bytes = frame.payload.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u32::from_be_bytes)
        };
        match frame.kind {
            Frame::SETTINGS if frame.flags & 1 == 0 => {
                for entry in frame.payload.chunks_exact(6) {
                    if u16::from_be_bytes([entry[0], entry[1]]) == INITIAL_WINDOW_SIZE {
                        let value = i64::from(u32::from_be_bytes([entry[2], entry[3], entry[4], entry[5]]));
                        let by = value - self.initial;
                        self.streams.values_mut().for_each(|stream| stream.window += by);
                        self.initial = value;
                    }
                }
                self.wire.write_all(&frames::settings_ack())
            }
            Frame::PING if frame.flags & 1 == 0 => {
                self.wire.write_all(&frames::frame(Frame::PING, 1, 0, &frame.payload))
            }
            Frame::WINDOW_UPDATE => {
                let by = i64::from(word(0));
                if frame.stream == 0 {
                    self.window += by;
                } else if let Some(stream) = self.streams.get_mut(&frame.stream) {
                    stream.window += by;
                }
                Ok(())
            }
            Frame::RST_STREAM => {
                self.remove_stream(frame.stream);
                Ok(())
            }
            Frame::HEADERS => self.request(&frame),
            // Its other contents do not matter here.
            _ => Ok(()),
        }
    }

    fn remove_stream(&mut self, id: u32) {
        if let Some(stream) = self.streams.remove(&id) {
            stream.resource.on_body_end();
        }
    }

    fn request(&mut self, frame: &Frame) -> io::Result<()> {
        if frame.flags & Frame::END_HEADERS == 0 {
            return Err(io::Error::other("a request in several frames"));
        }
        let mut block = &frame.payload[..];
        if frame.flags & Frame::PADDED != 0 {
            let padding = usize::from(*block.first().unwrap_or(&0));
            block = block.get(1..block.len().saturating_sub(padding)).unwrap_or_default();
        }
        if frame.flags & PRIORITY != 0 {
            block = block.get(5..).unwrap_or_default();
        }
        let fields = self.decoder.decode(block).map_err(|error| io::Error::other(format!("{error:?}")))?;
        self.highest = self.highest.max(frame.stream);
        if !self.takes_more {
            return Ok(());
        }
        let field = |name: &str| {
            let found = fields.iter().find(|(known, _)| known == name.as_bytes());
            found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
        };
        let request = FaultyOriginRequest {
            head_only: field(":method").is_some_and(|method| method == "HEAD"),
            target: field(":path").unwrap_or_default(),
            range: field("range"),
            if_range: field("if-range"),
            close: false,
        };
        self.answer(frame.stream, &request)
    }

    fn answer(&mut self, id: u32, request: &FaultyOriginRequest) -> io::Result<()> {
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let resource = match path.strip_prefix("/f/").map(|name| self.shared.resource(name, query)) {
            Some(Ok(resource)) => resource,
            Some(Err(_)) => return self.wire.write_all(&frames::headers(id, true, &[(":status", "400")])),
            None => return self.wire.write_all(&frames::headers(id, true, &[(":status", "404")])),
        };
        match resource.answer(request, self.number) {
            PlannedReply::Reset => self.wire.write_all(&frames::rst(id, REFUSED_STREAM)),
            PlannedReply::Empty { head } => self.wire.write_all(&head_frame(id, true, &head)),
            PlannedReply::Body { head, send } => {
                let stream = FaultyStream {
                    sending: BodySender::new(&resource, send, false),
                    resource,
                    window: self.initial,
                    ready: Vec::new(),
                    from: Instant::now(),
                    stalled: None,
                    last: false,
                };
                self.streams.insert(id, stream);
                self.wire.write_all(&head_frame(id, false, &head))
            }
        }
    }

    /// Sends one piece of each body for which the client has granted flow-control credit. If a
    /// planned break ends the connection, returns the kind of end; otherwise `None`.
    fn send(&mut self) -> io::Result<Option<FaultyConnectionEnd>> {
        let now = Instant::now();
        let ids: Vec<u32> = self.streams.keys().copied().collect();
        for id in ids {
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            if let Some(until) = stream.stalled {
                if until.is_none_or(|until| until > now) {
                    continue;
                }
                stream.stalled = None;
            }
            if stream.ready.is_empty() && !stream.last {
                match stream.sending.step(&mut stream.ready) {
                    SendStep::Piece(from) => stream.from = from,
                    SendStep::Last => stream.last = true,
                    SendStep::Break(how) => {
                        if let Some(end) = self.break_stream(id, how, now)? {
                            return Ok(Some(end));
                        }
                        continue;
                    }
                }
            }
            self.send_ready(id, now)?;
        }
        Ok(None)
    }

    fn send_ready(&mut self, id: u32, now: Instant) -> io::Result<()> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        if stream.from > now {
            return Ok(());
        }
        loop {
            let may = stream.window.min(self.window).clamp(0, MAX_FRAME as i64) as usize;
            let len = stream.ready.len().min(may);
            let ends = stream.last && len == stream.ready.len();
            if len == 0 && !ends {
                return Ok(());
            }
            let bytes: Vec<u8> = stream.ready.drain(..len).collect();
            stream.window -= len as i64;
            self.window -= len as i64;
            self.wire.write_all(&frames::data(id, ends, &bytes))?;
            if ends {
                self.remove_stream(id);
                return Ok(());
            }
        }
    }

    fn break_stream(&mut self, id: u32, how: BreakKind, now: Instant) -> io::Result<Option<FaultyConnectionEnd>> {
        match how {
            BreakKind::Reset => return Ok(Some(FaultyConnectionEnd::Reset)),
            BreakKind::Close => return Ok(Some(FaultyConnectionEnd::InOrder)),
            BreakKind::Stall => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.stalled = Some(stream.resource.plan.stall.map(|time| now + time));
                }
            }
            BreakKind::Rst => {
                self.remove_stream(id);
                self.wire.write_all(&frames::rst(id, INTERNAL_ERROR))?;
            }
            BreakKind::GoAway => {
                self.takes_more = false;
                self.wire.write_all(&frames::goaway(self.highest, NO_ERROR))?;
            }
            BreakKind::GoAwayCut => {
                self.wire.write_all(&frames::goaway(self.highest, INTERNAL_ERROR))?;
                return Ok(Some(FaultyConnectionEnd::InOrder));
            }
        }
        Ok(None)
    }
}

/// Converts an HTTP/1 response head to a HEADERS frame of stream `id`. If `ends` is true, the frame
/// ends the stream. Transfer-Encoding is left out, since HTTP/2 has its own framing.
fn head_frame(id: u32, ends: bool, head: &str) -> Vec<u8> {
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or("500").to_owned();
    let mut fields = vec![(":status".to_owned(), status)];
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        if name != "Transfer-Encoding" {
            fields.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }
    let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    frames::headers(id, ends, &fields)
}
