//! Content decoding (RFC 9110 section 8.4): gzip, deflate, brotli and zstd, stacked, streaming,
//! with an expansion guard.
//!
//! ```text
//! received bytes ── coding n ── … ── coding 1 ── guard ── out(&[u8]) piece by piece
//! ```
//!
//! Transfer codings are part of the framing, and are not handled here.
//!
//! ```
//! use haul::body::{DecodeLimits, BodyDecoder};
//!
//! let mut decoder = BodyDecoder::new(b"deflate", DecodeLimits::default())?.expect("a coding");
//! let mut text = Vec::new();
//! let coded = [0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x06, 0x2c, 0x02, 0x15];
//! decoder.push(&coded, &mut |piece| {
//!     text.extend_from_slice(piece);
//!     Ok(())
//! })?;
//! decoder.finish()?;
//! assert_eq!(text, b"hello");
//! assert!(BodyDecoder::new(b"identity", DecodeLimits::default())?.is_none());
//! # Ok::<(), haul::Error>(())
//! ```

mod charset_prescan;
mod coding_decoders;
#[cfg(test)]
mod content_decoding_tests;
pub mod decoded_text;
pub mod decoder_memory_budget;
pub mod delivery;
mod expansion_guard;
pub mod request_trailers;
pub mod upload;
pub(crate) mod utf8_conversion;

pub use expansion_guard::DecodeLimits;

use coding_decoders::CodingDecoder;
use expansion_guard::ExpansionGuard;

use haul_policy::range::content_range;
use haul_proto::response_head::ResponseHead;

use crate::{Error, ErrorKind, Result};

/// Returns the value of `Accept-Encoding` that names the codings that [`BodyDecoder`] can decode.
#[must_use]
pub fn accept_encoding() -> &'static str {
    "deflate, gzip, br, zstd"
}

/// Returns true if the content of this response can be decoded: all its codings are supported, and
/// the content is complete. A 206 response (Partial Content) counts as complete only if its range
/// is the whole content, since a part of coded content cannot be decoded. Ignores names without a
/// meaning beside a supported coding, as in `aws-chunked, gzip`; [`meaningful_codings`] removes
/// them.
#[must_use]
pub fn is_decodable(head: &ResponseHead) -> bool {
    let names = || head.get_all("content-encoding").flat_map(coding_names);
    let is_ignored = |name: &[u8]| coding_decoders::is_ignored_coding_name(name);
    (head.status() != 206 || has_whole_range(head))
        && names().all(|name| coding_decoders::is_known(name) || is_ignored(name))
        && (names().any(coding_decoders::is_known) || names().next().is_none())
}

/// Returns the coding names in a `Content-Encoding` value, joined by commas. Leaves out names that
/// stand for no coding of the content, such as `aws-chunked` and `UTF-8`.
#[must_use]
pub fn meaningful_codings(content_encoding: &[u8]) -> Vec<u8> {
    let names = coding_names(content_encoding).filter(|name| !coding_decoders::is_ignored_coding_name(name));
    names.collect::<Vec<_>>().join(&b", "[..])
}

/// Returns true if the response has exactly one Content-Range field, and its range covers the whole
/// content.
fn has_whole_range(head: &ResponseHead) -> bool {
    let mut fields = head.get_all("content-range");
    let (Some(only), None) = (fields.next(), fields.next()) else { return false };
    content_range::parse(only)
        .is_some_and(|range| range.span.is_some_and(|span| span.start == 0 && range.total == Some(span.end)))
}

/// Returns the names of the codings in a `Content-Encoding` value, in the order in which they were
/// applied.
fn coding_names(value: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|name| !name.is_empty())
}

/// The decoder of one body, for all codings in its `Content-Encoding`.
///
/// For each coding, it needs a buffer of 64 KiB and the coding's window. Windows have 32 KiB for
/// deflate, at most 16 MiB for brotli, and at most 2^[`DecodeLimits::max_window_log`] bytes for
/// zstd. All windows together are at most 32 MiB, or the largest zstd window if that is larger.
/// Many decoders can share a [`DecoderMemoryBudget`](decoder_memory_budget::DecoderMemoryBudget).
#[derive(Debug)]
pub struct BodyDecoder {
    /// The decoders in the order in which they are applied. That order is the reverse of
    /// `Content-Encoding`: the coding that the server applied last is decoded first.
    stages: Vec<DecoderStage>,
    guard: ExpansionGuard,
    handed_out: u64,
}

/// The decoder of one coding, with its output buffer.
#[derive(Debug)]
struct DecoderStage {
    coding: Box<dyn CodingDecoder>,
    buffer: Vec<u8>,
    decoded: u64,
    /// The size of the coding's window in bytes; 0 before the coded content has announced it.
    window: u64,
}

const DECODER_BUFFER: usize = 64 * 1024;

impl BodyDecoder {
    /// Makes the decoder for a `Content-Encoding` value (the values of repeated fields joined by
    /// commas). Returns `None` if the content has no coding.
    ///
    /// # Errors
    /// [`ErrorKind::ContentCoding`] if the content has an unknown coding, which the message names,
    /// or too many codings.
    pub fn new(content_encoding: &[u8], limits: DecodeLimits) -> Result<Option<Self>> {
        let mut stages = Vec::new();
        for name in coding_names(content_encoding).rev() {
            let Some(coding) = coding_decoders::decoder_by_name(name, &limits)? else { continue };
            if stages.len() == limits.max_codings {
                return Err(Error::new(
                    ErrorKind::ContentCoding,
                    format!("more than {} content codings", limits.max_codings),
                ));
            }
            stages.push(DecoderStage { coding, buffer: vec![0; DECODER_BUFFER], decoded: 0, window: 0 });
        }
        Ok((!stages.is_empty()).then(|| Self { stages, guard: ExpansionGuard::new(limits), handed_out: 0 }))
    }

    /// Decodes received bytes, and passes each decoded piece (at most 64 KiB) to `out`.
    ///
    /// # Errors
    /// [`ErrorKind::ContentCoding`] if the body is malformed, [`ErrorKind::TooLarge`] if it exceeds
    /// the limits, and any error of `out`. The decoder cannot be used after an error.
    pub fn push(&mut self, input: &[u8], out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let handed_out = &mut self.handed_out;
        run(&mut self.stages, input, &mut self.guard, true, &mut |piece| {
            out(piece)?;
            *handed_out += piece.len() as u64;
            Ok(())
        })
    }

    /// Returns the number of decoded bytes that were passed to the `out` of [`push`](Self::push) so
    /// far.
    #[must_use]
    pub fn output_bytes(&self) -> u64 {
        self.handed_out
    }

    /// Returns the total size in bytes that the decoders' windows may reach for a body whose first
    /// received bytes are `first`.
    pub(crate) fn expected_window(&self, first: &[u8]) -> u64 {
        let first_of = |at: usize| if at == 0 { first } else { &[][..] };
        self.stages.iter().enumerate().map(|(at, stage)| stage.coding.expected_window(first_of(at))).sum()
    }

    /// Returns true if the decoder has received any bytes.
    pub(crate) fn has_begun(&self) -> bool {
        self.guard.received_bytes() > 0
    }

    /// Returns the total size in bytes of the windows that the decoders use so far.
    pub(crate) fn window_memory(&self) -> u64 {
        self.stages.iter().map(|stage| stage.window.min(stage.decoded)).sum()
    }

    /// Returns the number of decoded bytes per received byte so far, rounded down, and at least 1.
    pub(crate) fn expansion(&self) -> u64 {
        (self.handed_out / self.guard.received_bytes().max(1)).max(1)
    }

    /// Ends the body. All decoded bytes were already passed to the `out` of [`push`](Self::push).
    ///
    /// # Errors
    /// [`ErrorKind::ContentCoding`] if the coded content is truncated.
    pub fn finish(&mut self) -> Result<()> {
        match self.stages.iter().find(|stage| !stage.coding.is_complete()) {
            Some(stage) => Err(Error::new(
                ErrorKind::ContentCoding,
                format!("{} body is cut short after {} decoded bytes", stage.coding.name(), stage.decoded),
            )),
            None => Ok(()),
        }
    }
}

/// Decodes `input` by all `stages`, one after the other, and passes the decoded bytes to the
/// caller. `is_received` is true if `input` came from the network, and false if it is the output of
/// an earlier stage.
fn run(
    stages: &mut [DecoderStage],
    mut input: &[u8],
    guard: &mut ExpansionGuard,
    is_received: bool,
    out: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let Some((stage, rest)) = stages.split_first_mut() else { return out(input) };
    loop {
        let step = stage.coding.step(input, &mut stage.buffer)?;
        input = &input[step.consumed..];
        if is_received {
            guard.count_received(step.consumed);
        }
        stage.decoded += step.produced as u64;
        let window = stage.coding.window();
        if window > stage.window {
            guard.count_window(window - stage.window)?;
            stage.window = window;
        }
        if step.produced > 0 {
            guard.check(stage.decoded, rest.is_empty())?;
            run(rest, &stage.buffer[..step.produced], guard, false, out)?;
        }
        if input.is_empty() && step.produced < stage.buffer.len() {
            return Ok(());
        }
        if step == coding_decoders::DecodeStep::default() {
            return Err(Error::new(ErrorKind::ContentCoding, format!("{} body stands still", stage.coding.name())));
        }
    }
}
