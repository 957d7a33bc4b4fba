//! Sends one body: takes bytes from the pattern, frames them, limits the rate, and stops at the end
//! or at a break.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::plan::BreakKind;
use super::reply_choice::{FaultyResource, PlannedFraming, PlannedReplyBody};
use crate::byte_pattern::BytePattern;

/// The number of body bytes that the fault origin generates and sends at a time.
const PIECE: u64 = 64 << 10;
/// The maximum delay that a rate-limited body makes up for, by sending above the rate limit for a
/// short time. A longer delay is made up for only in part.
const CATCH_UP: Duration = Duration::from_millis(50);

/// The outcome of sending a body over HTTP/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodySendOutcome {
    /// All of the body was sent, so the caller keeps the connection open for the next request.
    KeepOpen,
    /// The caller must close the connection without a reset, over TLS with close_notify: the fault
    /// plan ended the body early or announced a wrong length, or the client has closed the
    /// connection.
    Close,
    /// The caller must reset the connection, because the fault plan requires a reset here.
    Reset,
}

/// A body that is sent piece by piece, so that one thread can send several bodies at a time.
pub(super) struct BodySender {
    resource: Arc<FaultyResource>,
    send: PlannedReplyBody,
    pattern: BytePattern,
    coder: BodyCoder,
    pace: Option<BodyPace>,
    at: u64,
    end: u64,
    /// The indexes, in the fault plan, of the breaks (offsets at which a body ends or stalls) that
    /// this body has not reached yet. A break is removed when the body reaches it, so that it
    /// happens at most once in a body.
    breaks: Vec<usize>,
    piece: Vec<u8>,
}

/// The next step in sending a body, which [`BodySender::step`] returns.
pub(super) enum SendStep {
    /// Bytes of the body were appended. They may not be sent before this time.
    Piece(Instant),
    /// The body must end or stall here, by a break of this kind.
    Break(BreakKind),
    /// The last bytes were appended. The body is complete after them.
    Last,
}

impl BodySender {
    /// Creates the sender of a body. If `chunks` is true, a body without an announced length gets
    /// HTTP/1 chunked framing. `chunks` must be false for HTTP/2.
    pub(super) fn new(resource: &Arc<FaultyResource>, send: PlannedReplyBody, chunks: bool) -> BodySender {
        let piece = send.rate.map_or(PIECE, |rate| (rate / 100).clamp(256, PIECE));
        BodySender {
            pattern: BytePattern::new(send.seed),
            coder: BodyCoder::new(send.framing, chunks),
            pace: send.rate.map(BodyPace::new),
            at: send.start,
            end: send.start + send.len,
            breaks: (0..resource.plan.breaks.len()).collect(),
            piece: vec![0; piece as usize],
            resource: resource.clone(),
            send,
        }
    }

    /// Appends the next bytes of the body to `out`, at most up to the next break: an offset at
    /// which the fault plan requires that the body ends or stalls. The result says whether bytes
    /// were appended, a break was reached, or the body is complete.
    pub(super) fn step(&mut self, out: &mut Vec<u8>) -> SendStep {
        if self.at >= self.end {
            self.coder.finish(out);
            return SendStep::Last;
        }
        let mut until = self.end.min(self.at + self.piece.len() as u64);
        while let Some((place, number)) = self.next_break() {
            if place > self.at {
                until = until.min(place);
                break;
            }
            self.breaks.retain(|other| *other != number);
            if self.resource.take_break(number) {
                return SendStep::Break(self.resource.plan.breaks[number].how);
            }
        }
        let bytes = &mut self.piece[..(until - self.at) as usize];
        self.pattern.fill(self.at, bytes);
        // Recorded before it is written: the client may receive it, and a test may ask, before this
        // thread goes on.
        self.resource.count_sent(self.send.number, until - self.at);
        self.coder.code(bytes, out);
        self.at = until;
        SendStep::Piece(self.pace.as_mut().map_or_else(Instant::now, |pace| pace.next_send_time(bytes.len())))
    }

    /// Returns the next break of this body: an offset at which the fault plan requires that the
    /// body ends or stalls. The first number is the offset, counted from the start of the
    /// resource's whole content. The second number is the index of the break in the fault plan.
    /// `None` if no break is left.
    fn next_break(&self) -> Option<(u64, usize)> {
        let place = |number: usize| self.resource.plan.breaks[number].within(self.send.start, self.end);
        self.breaks.iter().filter_map(|&number| Some((place(number)?, number))).min()
    }
}

/// Sends a body over HTTP/1 to `wire`. `stall` waits for the duration of a stall, and returns
/// whether the client is still connected.
pub(super) fn body<W: Write>(
    wire: &mut W,
    resource: &Arc<FaultyResource>,
    send: PlannedReplyBody,
    mut stall: impl FnMut(&mut W) -> bool,
) -> io::Result<BodySendOutcome> {
    let mut sending = BodySender::new(resource, send, true);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match sending.step(&mut bytes) {
            SendStep::Piece(from) => thread::sleep(from.saturating_duration_since(Instant::now())),
            SendStep::Break(BreakKind::Stall) => {
                wire.flush()?;
                if !stall(wire) {
                    return Ok(BodySendOutcome::Close);
                }
            }
            SendStep::Break(BreakKind::Reset) => return wire.flush().map(|()| BodySendOutcome::Reset),
            // Breaks that only HTTP/2 can express are a proper close here.
            SendStep::Break(_) => return wire.flush().map(|()| BodySendOutcome::Close),
            SendStep::Last => {
                bytes.resize(bytes.len() + resource.plan.garbage as usize, b'~');
                wire.write_all(&bytes)?;
                return wire.flush().map(|()| BodySendOutcome::KeepOpen);
            }
        }
        wire.write_all(&bytes)?;
    }
}

/// Applies the content coding and the framing to a body.
struct BodyCoder {
    gzip: Option<Box<GzEncoder<Vec<u8>>>>,
    chunks: bool,
}

impl BodyCoder {
    fn new(framing: PlannedFraming, chunks: bool) -> BodyCoder {
        // Random bytes do not shrink; stored blocks cost nothing.
        let gzip = || Box::new(GzEncoder::new(Vec::new(), Compression::none()));
        BodyCoder {
            gzip: (framing == PlannedFraming::Gzip).then(gzip),
            chunks: chunks && framing != PlannedFraming::Length,
        }
    }

    fn code(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(encoder) = &mut self.gzip else { return self.append_framed(bytes, out) };
        // Writing to memory does not fail.
        let _ = encoder.write_all(bytes);
        let coded = std::mem::take(encoder.get_mut());
        self.append_framed(&coded, out);
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(encoder) = self.gzip.take() {
            self.append_framed(&encoder.finish().unwrap_or_default(), out);
        }
        if self.chunks {
            out.extend(b"0\r\n\r\n");
        }
    }

    /// Appends `bytes` to `out` in the body's framing. Empty `bytes` add nothing, since an empty
    /// chunk would end the body.
    fn append_framed(&self, bytes: &[u8], out: &mut Vec<u8>) {
        if !self.chunks {
            out.extend(bytes);
        } else if !bytes.is_empty() {
            out.extend(format!("{:x}\r\n", bytes.len()).as_bytes());
            out.extend(bytes);
            out.extend(b"\r\n");
        }
    }
}

/// The pace of a rate-limited body: the earliest time at which the next bytes of the body may be
/// sent.
struct BodyPace {
    rate: u64,
    next: Instant,
}

impl BodyPace {
    fn new(rate: u64) -> BodyPace {
        BodyPace { rate: rate.max(1), next: Instant::now() }
    }

    /// Returns the earliest time at which the next `len` bytes may be sent, and counts these bytes
    /// as sent.
    fn next_send_time(&mut self, len: usize) -> Instant {
        let now = Instant::now();
        let earliest = now.checked_sub(CATCH_UP).unwrap_or(now);
        self.next = self.next.max(earliest) + Duration::from_secs_f64(len as f64 / self.rate as f64);
        self.next
    }
}
