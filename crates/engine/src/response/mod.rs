//! Responses whose bodies the program reads as they arrive, and responses with their complete
//! bodies.
//!
//! ```
//! # let origin = testkit::origin::Origin::builder().start().unwrap();
//! # let url = origin.url("/small");
//! use std::io::BufRead;
//!
//! let response = haul::Client::new().get(&url).send()?.error_for_status()?;
//! println!("{} {}", response.status(), response.header("content-type").unwrap_or("?"));
//! for line in response.lines() {
//!     println!("{}", line?);
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! | type | for |
//! |---|---|
//! | [`Response`] | programs that may block |
//! | [`AsyncResponse`] | programs that must not block |
//! | [`BufferedResponse`] | programs that want the whole body at once |
//! | [`ResponseInfo`] | the metadata that all of them have |

mod async_response;
pub(crate) mod body_handover_buffer;
mod buffered_response;
mod charset;
mod content_decoder;
mod response_info;

use std::io::{self, BufRead, Read, Write};
use std::ops::Deref;
use std::time::Instant;

pub use async_response::{AsyncResponse, ResponseFuture};
pub use buffered_response::BufferedResponse;
pub(crate) use buffered_response::{call, perform};
pub use charset::charset;
pub use response_info::ResponseInfo;

use crate::body::BodyDecoder;
use crate::body::delivery::BodyDelivery;
use crate::drive::blocking::{BlockingTransfer, DriveResult};
use crate::request::{Request, SplitDownloadOptions};
use crate::transfer::{Transfer, TransferOutcome};
use crate::{Client, Error, ErrorKind, Result, fork};
use body_handover_buffer::BodyBufferReader;
use content_decoder::ContentDecoder;

/// A response whose head has arrived. The program reads the body through [`Read`] or [`BufRead`],
/// or as a whole. At most 256 KiB of the body are buffered.
///
/// Reading the body to its end frees the connection for the next request. Dropping the response
/// earlier closes the connection. The time limit of the request
/// ([`max_time`](crate::RequestOptions::max_time)) includes the body.
///
/// An error while the body is read is an [`io::Error`] that contains the [`Error`] (`get_ref`,
/// `into_inner`). The methods that read the whole body return the [`Error`] itself. Further reads
/// return the same error.
pub struct Response {
    client: Client,
    about: ResponseInfo,
    outlet: BodyBufferReader,
    unpacker: ContentDecoder,
    source: RemainingBodySource,
    /// The fork count ([`fork`]) of the process that received the response. In a forked child, the
    /// current fork count differs, and reading the body fails.
    generation: u32,
}

/// The source from which the remaining body of a response is read.
enum RemainingBodySource {
    /// The transfer is still in progress on the program's own thread, which receives the body when
    /// the program reads.
    Here(Box<BlockingTransfer>),
    /// The transfer has ended with this result, which has not been reported to the program yet.
    Over(Result<()>),
    /// The body has ended, and a read has returned 0 bytes to report that to the program.
    EndReported,
    /// The transfer failed with this error. Further reads of the body report the same error.
    Broken(Error),
}

/// Sends a request, and waits for the head of its final response.
pub(crate) fn send(client: &Client, request: Request) -> Result<Response> {
    send_or_outcome(client, request).map_err(|outcome| outcome.result.err().unwrap_or_else(missing_head_error))
}

/// Sends a request as [`send`] does. After a failure, returns the outcome of the transfer, whose
/// result is the error.
pub(crate) fn send_or_outcome(
    client: &Client,
    request: Request,
) -> std::result::Result<Response, Box<TransferOutcome>> {
    let (intake, outlet) = body_handover_buffer::pair();
    let Request { target, options, own } = request;
    let limits = options.decode_limits;
    let path = BodyDelivery::new(Box::new(intake));
    let transfer = Transfer::with_overrides(target, options, own, path, Instant::now(), 0);
    // The body is not split: parts that arrive out of order would have to be buffered until the
    // program reads them, if it ever does.
    let exchanges =
        BlockingTransfer::new(transfer, SplitDownloadOptions { connections: 1, ..SplitDownloadOptions::default() });
    let is_begun = |transfer: &Transfer| outlet.has_begun().then(|| outcome_so_far(transfer));
    let (outcome, source) = match exchanges.drive_until(client, is_begun) {
        DriveResult::Finished(end) => {
            let mut outcome = end.into_outcome().0;
            // The program gets the bytes received before the body broke off, and then the failure.
            let may_show = outlet.has_begun() && !matches!(&outcome.result, Err(error) if error.is_interrupted());
            if outcome.result.is_err() && !may_show {
                return Err(Box::new(outcome));
            }
            let result = std::mem::replace(&mut outcome.result, Ok(()));
            (outcome, RemainingBodySource::Over(result))
        }
        DriveResult::Paused(exchanges, outcome) => (outcome, RemainingBodySource::Here(exchanges)),
    };
    let made = BodyDecoder::new(&outlet.commit_response(), limits);
    let made = made.map_err(|error| error.with_url(outcome.target.to_url()));
    let (decoder, head) = match (made, outcome.head) {
        (Ok(decoder), Some(head)) => (decoder, head),
        (made, head) => {
            let result = Err(made.err().unwrap_or_else(missing_head_error));
            return Err(Box::new(TransferOutcome { result, head, ..outcome }));
        }
    };
    let TransferOutcome { target, facts, history, trailers, .. } = outcome;
    let about = ResponseInfo { head, target, facts, history, trailers };
    let (client, unpacker, generation) = (client.clone(), ContentDecoder::new(decoder), fork::fork_count());
    Ok(Response { client, about, outlet, unpacker, source, generation })
}

/// Returns the outcome of a transfer whose final response has begun.
fn outcome_so_far(transfer: &Transfer) -> TransferOutcome {
    TransferOutcome {
        result: Ok(()),
        target: transfer.target().clone(),
        head: transfer.head().cloned(),
        facts: transfer.facts.clone(),
        tag: 0,
        history: transfer.history().to_vec(),
        trailers: None,
    }
}

fn missing_head_error() -> Error {
    Error::new(ErrorKind::EmptyReply, "the response has no head")
}

fn inherited_response_error() -> Error {
    Error::new(ErrorKind::Receive, "the rest of the body belongs to the parent of this process")
}

impl Response {
    /// Returns this response if its status is below 400, and an error otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::Status`] if the status is 400 or above.
    pub fn error_for_status(self) -> Result<Self> {
        self.check_status().map(|()| self)
    }

    /// Receives the remaining body to its end, and returns it.
    ///
    /// # Errors
    /// The error of the transfer or of the decoding.
    pub fn bytes(mut self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        if self.unpacker.has_no_decoder() && matches!(self.source, RemainingBodySource::Here(_)) {
            self.outlet.collect_rest(self.unpacker.ready());
            self.finish()?;
            return Ok(self.outlet.take_collected());
        }
        while self.fill()? {
            let ready = self.unpacker.ready();
            all.extend_from_slice(ready);
            let n = ready.len();
            self.unpacker.consume(n);
        }
        Ok(all)
    }

    /// Returns the remaining body as text. The byte order mark decides the encoding. Without such a
    /// mark, the charset in `Content-Type` decides; without a charset, the encoding is UTF-8.
    /// Invalid bytes become U+FFFD.
    ///
    /// # Errors
    /// The errors of [`bytes`](Self::bytes).
    pub fn text(self) -> Result<String> {
        let charset = self.head().get("content-type").and_then(charset);
        Ok(charset::decode(self.bytes()?, charset.as_deref()))
    }

    /// Returns the remaining body, parsed as JSON.
    ///
    /// # Errors
    /// The errors of [`bytes`](Self::bytes), or [`ErrorKind::ContentCoding`] if the body is not
    /// valid JSON or does not fit the type `T`.
    #[cfg(feature = "json")]
    pub fn json<T: serde::de::DeserializeOwned>(self) -> Result<T> {
        let url = self.url();
        from_json(&self.bytes()?, url)
    }

    /// Writes the remaining body to `writer` as it arrives. Returns the number of bytes written.
    ///
    /// # Errors
    /// The errors of [`bytes`](Self::bytes), or [`ErrorKind::Write`] if the writer fails.
    pub fn copy_to(&mut self, writer: &mut (impl Write + ?Sized)) -> Result<u64> {
        let mut copied = 0;
        while self.fill()? {
            let ready = self.unpacker.ready();
            writer.write_all(ready).map_err(|error| {
                Error::with_source(ErrorKind::Write, "failed to write the output", error).with_url(self.about.url())
            })?;
            let n = ready.len();
            self.unpacker.consume(n);
            copied += n as u64;
        }
        Ok(copied)
    }

    /// Receives until there are bytes of the body to read. Returns false at the end of the body.
    fn fill(&mut self) -> Result<bool> {
        match &self.source {
            RemainingBodySource::Broken(error) => Err(error.duplicate()),
            _ => self.fill_once().map_err(|error| self.fail(error)),
        }
    }

    /// Ends the body with this error, and returns the error. Further reads of the body return the
    /// same error.
    fn fail(&mut self, error: Error) -> Error {
        let error = error.with_url(self.url());
        if let RemainingBodySource::Here(exchanges) =
            std::mem::replace(&mut self.source, RemainingBodySource::Broken(error.duplicate()))
        {
            exchanges.abandon(&self.client);
        }
        error
    }

    /// Receives until there are bytes of the body to read. Returns false at the end of the body.
    /// Unlike [`Response::fill`], does not store an error for further reads.
    fn fill_once(&mut self) -> Result<bool> {
        loop {
            if !self.unpacker.ready().is_empty() || self.unpacker.decode_more()? {
                return Ok(true);
            }
            if let Some(piece) = self.outlet.take_piece() {
                self.unpacker.set_piece(piece);
                continue;
            }
            if matches!(self.source, RemainingBodySource::Here(_)) {
                if self.is_inherited() {
                    return Err(inherited_response_error());
                }
                self.receive(BodyBufferReader::has_bytes);
                continue;
            }
            match std::mem::replace(&mut self.source, RemainingBodySource::EndReported) {
                RemainingBodySource::Over(result) => result.and_then(|()| self.unpacker.finish())?,
                RemainingBodySource::Broken(error) => return Err(error),
                RemainingBodySource::Here(_) | RemainingBodySource::EndReported => return Ok(false),
            }
        }
    }

    /// Receives until `is_enough` returns true for the received bytes, or until the transfer is
    /// over. If a callback of the program panics meanwhile, further reads of the body fail.
    fn receive(&mut self, is_enough: impl Fn(&BodyBufferReader) -> bool) {
        let panicked = Error::new(ErrorKind::Panicked, "a callback panicked while the body was received");
        match std::mem::replace(&mut self.source, RemainingBodySource::Broken(panicked)) {
            RemainingBodySource::Here(exchanges) => {
                let outlet = &self.outlet;
                self.source = match exchanges.drive_until(&self.client, |_| is_enough(outlet).then_some(())) {
                    DriveResult::Paused(exchanges, ()) => RemainingBodySource::Here(exchanges),
                    DriveResult::Finished(end) => {
                        RemainingBodySource::Over(self.about.set_outcome(end.into_outcome().0))
                    }
                };
            }
            source => self.source = source,
        }
    }

    /// Receives the whole remaining body into the buffer between the connection and the program.
    fn finish(&mut self) -> Result<()> {
        if self.is_inherited() {
            return Err(self.fail(inherited_response_error()));
        }
        self.receive(|_| false);
        match std::mem::replace(&mut self.source, RemainingBodySource::EndReported) {
            RemainingBodySource::Over(result) => result,
            RemainingBodySource::Broken(error) => Err(error),
            RemainingBodySource::Here(_) | RemainingBodySource::EndReported => Ok(()),
        }
    }

    /// Returns true if this process was forked after the response arrived. Only the parent process
    /// may then read the body, because two readers of one connection would take bytes from each
    /// other.
    fn is_inherited(&self) -> bool {
        self.generation != fork::fork_count()
    }
}

impl Deref for Response {
    type Target = ResponseInfo;

    fn deref(&self) -> &ResponseInfo {
        &self.about
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        if let RemainingBodySource::Here(exchanges) =
            std::mem::replace(&mut self.source, RemainingBodySource::EndReported)
        {
            exchanges.abandon(&self.client);
        }
    }
}

impl BufRead for Response {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.fill()?;
        Ok(self.unpacker.ready())
    }

    fn consume(&mut self, amount: usize) {
        self.unpacker.consume(amount);
    }
}

impl Read for Response {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let n = ready.len().min(buffer.len());
        buffer[..n].copy_from_slice(&ready[..n]);
        self.consume(n);
        Ok(n)
    }
}

#[cfg(feature = "json")]
fn from_json<T: serde::de::DeserializeOwned>(bytes: &[u8], url: String) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        Error::with_source(ErrorKind::ContentCoding, "the body is not the JSON that was expected", error).with_url(url)
    })
}

impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Response").field("url", &self.url()).field("head", self.head()).finish_non_exhaustive()
    }
}
