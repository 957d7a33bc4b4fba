//! Sends one body: from the pattern, in its framing, at its rate, up to its end or to where it breaks.

use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::plan::How;
use super::reply::{Framing, Resource, Send};
use crate::pattern::Pattern;

/// The most that is made and sent at once.
const PIECE: u64 = 64 << 10;
/// How far a paced body that was held up may catch up.
const CATCH_UP: Duration = Duration::from_millis(50);

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All of it is out.
    Done,
    /// It broke: the connection is to be closed in order.
    Close,
    /// It broke: the connection is to be reset.
    Reset,
}

/// Sends a body into `wire`. `stall` waits as long as the plan says and tells whether the client is still there.
pub(super) fn body<W: Write>(
    wire: &mut W,
    resource: &Resource,
    send: &Send,
    mut stall: impl FnMut(&mut W) -> bool,
) -> io::Result<End> {
    let pattern = Pattern::new(send.seed);
    let mut coder = Coder::new(send.framing);
    let mut pace = send.rate.map(Pace::new);
    let (mut at, end) = (send.start, send.start + send.len);
    // The next break of a body is the first one at or past `from`; a stall that is over is not met again.
    let mut breaks: Vec<_> = resource.plan.breaks.iter().enumerate().collect();
    let piece = send.rate.map_or(PIECE, |rate| (rate / 100).clamp(256, PIECE));
    let mut buffer = vec![0; piece as usize];
    while at < end {
        let next = breaks.iter().filter_map(|(number, one)| Some((one.within(send.start, end)?, *number))).min();
        if let Some((place, number)) = next
            && place <= at
        {
            breaks.retain(|(other, _)| *other != number);
            if resource.meets(number) {
                wire.flush()?;
                match resource.plan.breaks[number].how {
                    How::Reset => return Ok(End::Reset),
                    How::Close => return Ok(End::Close),
                    How::Stall if stall(wire) => {}
                    How::Stall => return Ok(End::Close),
                }
            }
            continue;
        }
        let until = next.map_or(end, |(place, _)| place).min(at + piece);
        let bytes = &mut buffer[..(until - at) as usize];
        pattern.fill(at, bytes);
        if let Some(pace) = &mut pace {
            pace.pass(bytes.len());
        }
        // Before it is written: a client may have it, and a test may ask, before this thread goes on.
        resource.sent(send.number, until - at);
        coder.write(wire, bytes)?;
        at = until;
    }
    coder.finish(wire)?;
    for _ in 0..resource.plan.garbage {
        wire.write_all(b"~")?;
    }
    wire.flush()?;
    Ok(End::Done)
}

/// Puts bytes into the framing.
enum Coder {
    Length,
    Chunked,
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

impl Coder {
    fn new(framing: Framing) -> Coder {
        match framing {
            Framing::Length => Coder::Length,
            Framing::Chunked => Coder::Chunked,
            // Random bytes do not shrink; stored blocks cost nothing.
            Framing::Gzip => Coder::Gzip(Box::new(GzEncoder::new(Vec::new(), Compression::none()))),
        }
    }

    fn write(&mut self, wire: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
        match self {
            Coder::Length => wire.write_all(bytes),
            Coder::Chunked => chunk(wire, bytes),
            Coder::Gzip(encoder) => {
                encoder.write_all(bytes)?;
                chunk(wire, &std::mem::take(encoder.get_mut()))
            }
        }
    }

    fn finish(self, wire: &mut impl Write) -> io::Result<()> {
        match self {
            Coder::Length => Ok(()),
            Coder::Chunked => wire.write_all(b"0\r\n\r\n"),
            Coder::Gzip(encoder) => {
                chunk(wire, &encoder.finish()?)?;
                wire.write_all(b"0\r\n\r\n")
            }
        }
    }
}

/// An empty chunk would be the last one, so none is sent for no bytes.
fn chunk(wire: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    write!(wire, "{:x}\r\n", bytes.len())?;
    wire.write_all(bytes)?;
    wire.write_all(b"\r\n")
}

/// When the next bytes may leave.
struct Pace {
    rate: u64,
    next: Instant,
}

impl Pace {
    fn new(rate: u64) -> Pace {
        Pace { rate: rate.max(1), next: Instant::now() }
    }

    fn pass(&mut self, len: usize) {
        let now = Instant::now();
        let earliest = now.checked_sub(CATCH_UP).unwrap_or(now);
        self.next = self.next.max(earliest) + Duration::from_secs_f64(len as f64 / self.rate as f64);
        thread::sleep(self.next.saturating_duration_since(now));
    }
}
