//! Sending on a connection, for both protocols: content goes from its source into the machine, and the machine's output to the stream.
//!
//! ```text
//!  Upload ──feed──▶ Machine ──pump──▶ Stream
//! ```

use std::io;
use std::time::{Duration, Instant};

use haul_proto::RequestId;
use haul_proto::request::{Request, RequestError};
use haul_proto::time::Time;

use crate::ErrorKind;
use crate::body::upload::{Panicked, Upload};
use crate::net::stream::Stream;

/// The size of one read of content from its source.
const PIECE: usize = 16 << 10;

/// The number of bytes that fit into the memory of a socket with nothing to send, whatever its peer
/// does (`tcp_wmem` begins with it).
pub(super) const LEAVES_AT_ONCE: usize = 16 << 10;

/// The time for which content is read and sent before the driver looks whether the server has answered already.
const LOOK_AFTER: Duration = Duration::from_millis(10);

/// The result of [`pump`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pumped {
    /// All is sent for now.
    All,
    /// The socket has no room for the rest.
    Full,
    /// More is left to read and to send, but the server may have answered meanwhile.
    Looks,
}

/// A protocol machine that takes requests and their content, and gives the bytes to send.
pub trait Machine {
    /// Returns true if large content waits for the server's consent by default (`Expect`, RFC 9110
    /// section 10.1.1). On a connection where requests follow each other, refused content costs the
    /// connection; a stream can be reset at any time.
    fn asks_first(&self) -> bool;

    /// Returns true if content may be in chunks. Streams have frames, and know no transfer codings
    /// (RFC 9113 section 8.2.2).
    fn has_chunks(&self) -> bool;

    /// The version of its requests, for people; `http10` where the older one is wished for.
    fn version(&self, http10: bool) -> &'static str;

    /// Takes a request.
    ///
    /// # Errors
    /// A request that cannot be sent.
    fn take(&mut self, now: Time, request: &Request<'_>) -> Result<RequestId, RequestError>;

    /// Returns the number of bytes of a request's content that the machine takes now. `None` if it
    /// expects no more content, because the content is complete or the response came first.
    fn content_credit(&self, id: RequestId) -> Option<u64>;

    /// Takes a piece of content within the credit. If the length of the content is known, the
    /// machine itself reports an early end.
    ///
    /// # Errors
    /// Content that is not what was announced.
    fn give_content(&mut self, id: RequestId, piece: &[u8]) -> io::Result<()>;

    /// The content is complete; these fields follow it.
    ///
    /// # Errors
    /// As [`Machine::give_content`], and for fields that may not be there.
    fn end_content(&mut self, id: RequestId, trailers: &[(&str, &[u8])]) -> io::Result<()>;

    /// Bytes to be sent.
    fn output(&self) -> &[u8];

    /// Removes `n` bytes from the front of the output.
    fn advance_output(&mut self, n: usize);
}

/// The result of [`feed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fed {
    /// The content is complete: no more of it is to be sent.
    All,
    /// The machine takes no more now, or the source would have to wait, which it must not before its earlier bytes were sent.
    Waits,
    /// The source has nothing now. It wakes the sender, or may have more at this time.
    Starved(Option<Instant>),
}

/// Puts content into the machine until one of them stops, so that a head and a small body leave in
/// one write. `given` receives each piece.
///
/// # Errors
/// The source's, or content that is not what was announced.
pub(super) fn feed(
    machine: &mut impl Machine,
    id: RequestId,
    upload: &mut dyn Upload,
    mut given: impl FnMut(&[u8]),
) -> io::Result<Fed> {
    // Content in memory is not copied on its way, and needs no buffer.
    while !upload.ready().is_empty()
        && let Some(credit) = machine.content_credit(id)
    {
        let n = upload.ready().len().min(usize::try_from(credit).unwrap_or(usize::MAX));
        if n == 0 {
            return Ok(Fed::Waits);
        }
        let ready = &upload.ready()[..n];
        machine.give_content(id, ready)?;
        given(ready);
        upload.consume(n);
    }
    if machine.content_credit(id).is_none() {
        return Ok(Fed::All);
    }
    let mut piece = [0; PIECE];
    while let Some(credit) = machine.content_credit(id) {
        let room = piece.len().min(usize::try_from(credit).unwrap_or(usize::MAX));
        if room == 0 {
            return Ok(Fed::Waits);
        }
        let n = match upload.read(&mut piece[..room]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Fed::Starved(upload.resumes_at())),
            read => read?,
        };
        if n == 0 {
            let trailers = upload.trailers()?;
            let fields: Vec<_> = trailers.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
            machine.end_content(id, &fields)?;
            given(&[]);
            continue;
        }
        machine.give_content(id, &piece[..n])?;
        given(&piece[..n]);
        if n < room && machine.content_credit(id).is_some() {
            return Ok(Fed::Waits);
        }
    }
    Ok(Fed::All)
}

/// The error for content that cannot be read, or whose time ran out.
pub(super) fn unreadable(error: io::Error) -> crate::Error {
    match error.kind() {
        io::ErrorKind::TimedOut => crate::Error::new(ErrorKind::Timeout, "the operation timed out"),
        _ if error.get_ref().is_some_and(|cause| cause.is::<Panicked>()) => {
            crate::Error::new(ErrorKind::Panicked, Panicked.to_string())
        }
        _ => crate::Error::with_source(ErrorKind::Read, "the content to send cannot be read", error),
    }
}

/// Sends the machine's output, and the content that `feed` adds to it as room appears; `sent` is
/// called for each write. If a read of the content `may_block` this thread, the driver looks for an
/// early answer in between: a slow source must not hide it.
///
/// # Errors
/// The socket's. A response may have arrived anyway: receive before giving up.
pub(super) fn pump<M: Machine>(
    stream: &mut Stream,
    machine: &mut M,
    may_block: bool,
    mut feed: impl FnMut(&mut M),
    mut sent: impl FnMut(),
) -> io::Result<Pumped> {
    let look_at = may_block.then(|| Instant::now() + LOOK_AFTER);
    loop {
        feed(machine);
        let output = machine.output();
        if output.is_empty() {
            return Ok(if stream.flush()? { Pumped::All } else { Pumped::Full });
        }
        match stream.send(output) {
            Ok(n) => {
                machine.advance_output(n);
                sent();
                if look_at.is_some_and(|at| at <= Instant::now()) {
                    return Ok(if stream.flush()? { Pumped::Looks } else { Pumped::Full });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Pumped::Full),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
