//! The decoders of single content codings.
//!
//! All decoders implement [`CodingDecoder`], so stacked codings need no special cases. In every
//! coding, a body of zero bytes decodes to an empty body, since a response to HEAD and a 304 name
//! the coding, too, but have no content.

use std::fmt;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder as RawZstdDecoder, InBuffer, Operation, OutBuffer};

use super::DecodeLimits;
use crate::{Error, ErrorKind, Result};

/// The numbers of bytes that one decoding step consumed and produced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DecodeStep {
    pub(super) consumed: usize,
    pub(super) produced: usize,
}

/// A decoder of one content coding, such as gzip.
pub(super) trait CodingDecoder: fmt::Debug + Send + Sync {
    /// Decodes some of `input` into `out`. If this consumes all of `input` and does not fill `out`,
    /// the decoder needs more input before it can produce further bytes.
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<DecodeStep>;

    /// Returns true if the bytes decoded so far form complete coded content, so that the input may
    /// end here.
    fn is_complete(&self) -> bool;

    /// Returns the name of the coding, such as `gzip`, for error messages.
    fn name(&self) -> &'static str;

    /// Returns the size in bytes of the decoder's window, i.e. of the decoded bytes that the
    /// decoder keeps for back references. Returns 0 for gzip and deflate, whose windows are too
    /// small to count (32 KiB), and before the first byte of the body.
    fn window(&self) -> u64 {
        0
    }

    /// Returns the size in bytes of the largest window that content may need if its first bytes are
    /// `_first`. Returns 0 for gzip and deflate, whose windows are too small to count (32 KiB).
    fn expected_window(&self, _first: &[u8]) -> u64 {
        0
    }
}

/// The supported content codings.
enum KnownCoding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
    /// `identity`: the content is not coded, so no decoder is needed.
    Identity,
}

impl KnownCoding {
    /// Returns the coding with this name in `Content-Encoding` (case-insensitive, RFC 9110 section
    /// 8.4.1), or `None` if it is not supported.
    fn from_name(name: &[u8]) -> Option<Self> {
        const NAMES: [(&str, KnownCoding); 7] = [
            ("gzip", KnownCoding::Gzip),
            ("x-gzip", KnownCoding::Gzip),
            ("deflate", KnownCoding::Deflate),
            ("br", KnownCoding::Brotli),
            ("zstd", KnownCoding::Zstd),
            ("identity", KnownCoding::Identity),
            ("none", KnownCoding::Identity),
        ];
        NAMES.into_iter().find_map(|(known, coding)| name.eq_ignore_ascii_case(known.as_bytes()).then_some(coding))
    }
}

/// Returns true if the content coding with this name is supported. `identity` and `none`, which
/// mean that there is no coding, are supported, too.
pub(super) fn is_known(name: &[u8]) -> bool {
    KnownCoding::from_name(name).is_some()
}

/// Returns true if this name in `Content-Encoding` is to be ignored: some servers send it, but it
/// names no content coding. Examples are a charset, a MIME transfer encoding, and `aws-chunked`
/// (the framing of uploads to S3).
pub(super) fn is_ignored_coding_name(name: &[u8]) -> bool {
    const NAMES: [&str; 6] = ["aws-chunked", "utf-8", "utf8", "binary", "7bit", "8bit"];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// Returns the decoder for the coding with this name. Returns `None` for `identity`.
pub(super) fn decoder_by_name(name: &[u8], limits: &DecodeLimits) -> Result<Option<Box<dyn CodingDecoder>>> {
    let unknown = || Error::new(ErrorKind::ContentCoding, format!("unknown content coding: {}", name.escape_ascii()));
    let coding: Box<dyn CodingDecoder> = match KnownCoding::from_name(name).ok_or_else(unknown)? {
        KnownCoding::Gzip => Box::new(GzipDecoder { inflate: Decompress::new_gzip(15), state: DecodeState::Empty }),
        KnownCoding::Deflate => Box::new(DeflateDecoder::Empty),
        KnownCoding::Brotli => return Ok(Some(Box::new(BrotliDecoder::new()))),
        KnownCoding::Zstd => return Ok(Some(Box::new(ZstdDecoder::new(limits)?))),
        KnownCoding::Identity => return Ok(None),
    };
    Ok(Some(if limits.passes_over_rest { Box::new(TrailingDataSkipper { coding, has_begun: false }) } else { coding }))
}

/// A decoder that ignores the bytes after the end of the coded content. The wrapped decoder would
/// report an error for them.
#[derive(Debug)]
struct TrailingDataSkipper {
    coding: Box<dyn CodingDecoder>,
    has_begun: bool,
}

impl CodingDecoder for TrailingDataSkipper {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<DecodeStep> {
        match self.coding.step(input, out) {
            // A truncated stream is not at its end.
            Err(_) if self.has_begun && self.coding.is_complete() => {
                Ok(DecodeStep { consumed: input.len(), produced: 0 })
            }
            step => {
                self.has_begun |= !input.is_empty();
                step
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.coding.is_complete()
    }

    fn name(&self) -> &'static str {
        self.coding.name()
    }
}

fn corrupt_body_error(name: &str, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::with_source(ErrorKind::ContentCoding, format!("broken {name} body"), cause)
}

/// The state of a decoder: before, within or after a gzip member, a brotli stream or a zstd frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecodeState {
    Empty,
    Open,
    Done,
}

/// The decoder of gzip (RFC 1952): one or more members, and nothing else. If other bytes follow a
/// member, decoding fails, as in curl, because the body may be incomplete.
struct GzipDecoder {
    inflate: Decompress,
    state: DecodeState,
}

impl CodingDecoder for GzipDecoder {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<DecodeStep> {
        if input.is_empty() && self.state != DecodeState::Open {
            return Ok(DecodeStep::default());
        }
        if self.state == DecodeState::Done {
            // The header's own check would come only with its second byte.
            if input[0] != 0x1f {
                return Err(corrupt_body_error("gzip", "bytes after the end"));
            }
            self.inflate = Decompress::new_gzip(15);
        }
        self.state = DecodeState::Open;
        let (step, ended) =
            inflate(&mut self.inflate, input, out).map_err(|cause| corrupt_body_error("gzip", cause))?;
        if ended {
            self.state = DecodeState::Done;
        }
        Ok(step)
    }

    fn is_complete(&self) -> bool {
        self.state != DecodeState::Open
    }

    fn name(&self) -> &'static str {
        "gzip"
    }
}

impl fmt::Debug for GzipDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gzip").field("state", &self.state).finish_non_exhaustive()
    }
}

fn inflate(
    state: &mut Decompress,
    input: &[u8],
    out: &mut [u8],
) -> Result<(DecodeStep, bool), flate2::DecompressError> {
    let before = (state.total_in(), state.total_out());
    let status = state.decompress(input, out, FlushDecompress::None)?;
    let step = DecodeStep {
        consumed: (state.total_in() - before.0) as usize,
        produced: (state.total_out() - before.1) as usize,
    };
    Ok((step, status == Status::StreamEnd))
}

/// The decoder of deflate: the zlib format (RFC 1950), or the raw format (RFC 1951) that some
/// servers send under this name (RFC 9110 section 8.4.1.2). The first two bytes tell them apart: in
/// a zlib header, the method is 8, and both bytes as one number are a multiple of 31.
enum DeflateDecoder {
    Empty,
    /// The first byte of the content has arrived. The second byte, which is needed to tell the
    /// formats apart, has not.
    First(u8),
    Open(Decompress),
    Done,
}

impl CodingDecoder for DeflateDecoder {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<DecodeStep> {
        let Some(&next) = input.first() else {
            return match self {
                Self::Open(state) => {
                    Ok(inflate(state, input, out).map_err(|cause| corrupt_body_error("deflate", cause))?.0)
                }
                _ => Ok(DecodeStep::default()),
            };
        };
        match self {
            Self::Empty => {
                *self = Self::First(next);
                Ok(DecodeStep { consumed: 1, produced: 0 })
            }
            Self::First(first) => {
                let head = [*first, next];
                let zlib = head[0] & 0x0f == 8 && head[0] >> 4 <= 7 && u16::from_be_bytes(head).is_multiple_of(31);
                let mut state = Decompress::new(zlib);
                // Two bytes cannot fill `out`, so both are taken.
                let (step, ended) =
                    inflate(&mut state, &head, out).map_err(|cause| corrupt_body_error("deflate", cause))?;
                *self = if ended { Self::Done } else { Self::Open(state) };
                Ok(DecodeStep { consumed: 1, ..step })
            }
            Self::Open(state) => {
                let (step, ended) = inflate(state, input, out).map_err(|cause| corrupt_body_error("deflate", cause))?;
                if ended {
                    *self = Self::Done;
                }
                Ok(step)
            }
            Self::Done => Err(corrupt_body_error("deflate", "bytes after the end")),
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self, Self::Empty | Self::Done)
    }

    fn name(&self) -> &'static str {
        "deflate"
    }
}

impl fmt::Debug for DeflateDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "Empty",
            Self::First(_) => "First",
            Self::Open(_) => "Open",
            Self::Done => "Done",
        })
    }
}

/// The decoder of brotli (RFC 7932). The large-window extension, with windows of up to 1 GiB, is
/// not supported, since it is not in the RFC.
struct BrotliDecoder {
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    progress: DecodeState,
    window: u64,
}

impl BrotliDecoder {
    fn new() -> Self {
        let alloc = StandardAlloc::default;
        Self {
            state: Box::new(BrotliState::new_strict(alloc(), alloc(), alloc())),
            progress: DecodeState::Empty,
            window: 0,
        }
    }

    /// Returns the window size in bytes that the first byte of a brotli stream announces (RFC 7932
    /// section 9.1).
    fn window_size(first: u8) -> u64 {
        let bits = match (first & 1, first >> 1 & 7, first >> 4 & 7) {
            (0, ..) => 16,
            (_, 0, 0) => 17,
            (_, 0, less) => 8 + less,
            (_, more, _) => 17 + more,
        };
        1 << bits
    }
}

impl CodingDecoder for BrotliDecoder {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<DecodeStep> {
        if input.is_empty() && self.progress != DecodeState::Open {
            return Ok(DecodeStep::default());
        }
        if self.progress == DecodeState::Done {
            return Err(corrupt_body_error("brotli", "bytes after the end"));
        }
        if self.progress == DecodeState::Empty {
            self.window = Self::window_size(input[0]);
        }
        self.progress = DecodeState::Open;
        let (mut left, mut consumed) = (input.len(), 0);
        let (mut room, mut produced, mut total) = (out.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut left,
            &mut consumed,
            input,
            &mut room,
            &mut produced,
            out,
            &mut total,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultSuccess => self.progress = DecodeState::Done,
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
            BrotliResult::ResultFailure => return Err(corrupt_body_error("brotli", "corrupt stream")),
        }
        Ok(DecodeStep { consumed, produced })
    }

    fn is_complete(&self) -> bool {
        self.progress != DecodeState::Open
    }

    fn name(&self) -> &'static str {
        "brotli"
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn expected_window(&self, first: &[u8]) -> u64 {
        first.first().map_or(1 << 24, |&first| Self::window_size(first))
    }
}

impl fmt::Debug for BrotliDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Brotli").field("progress", &self.progress).finish_non_exhaustive()
    }
}

/// The decoder of zstd (RFC 8878): a sequence of frames and skippable frames.
struct ZstdDecoder {
    state: RawZstdDecoder<'static>,
    progress: DecodeState,
    /// The size in bytes of the largest zstd window that is accepted. A body that needs a larger
    /// window is an error.
    most: u64,
    /// The size in bytes of the largest window that a frame of the body has announced so far.
    window: u64,
    /// The first bytes of the current frame, collected until its header is complete.
    header: Vec<u8>,
}

/// The maximum length in bytes of the header of a zstd frame, including the magic number.
const MAX_ZSTD_HEADER: usize = 18;

impl ZstdDecoder {
    fn new(limits: &DecodeLimits) -> Result<Self> {
        let setup = || {
            let mut state = RawZstdDecoder::new()?;
            state.set_parameter(DParameter::WindowLogMax(limits.max_window_log))?;
            Ok(state)
        };
        let state = setup().map_err(|cause: std::io::Error| {
            Error::with_source(ErrorKind::ContentCoding, "no zstd decoder could be made", cause)
        })?;
        Ok(Self {
            state,
            progress: DecodeState::Empty,
            most: 1 << limits.max_window_log.min(31),
            window: 0,
            header: Vec::new(),
        })
    }

    /// Returns the window size in bytes that the header at the beginning of `frame`, a zstd frame,
    /// announces (RFC 8878 section 3.1.1.1). Returns `None` if the header is incomplete.
    fn window_size(frame: &[u8]) -> Option<u64> {
        let rest = frame.strip_prefix(&[0x28, 0xb5, 0x2f, 0xfd])?;
        let (&descriptor, rest) = rest.split_first()?;
        if descriptor & 0x20 == 0 {
            let &window = rest.first()?;
            let base = 1_u64 << (10 + (window >> 3));
            return Some(base + base / 8 * u64::from(window & 7));
        }
        // With a single segment, the window is the content. Its length follows the dictionary ID.
        let at = [0, 1, 2, 4][usize::from(descriptor & 3)];
        let size = [1, 2, 4, 8][usize::from(descriptor >> 6)];
        let mut length = [0; 8];
        length[..size].copy_from_slice(rest.get(at..at + size)?);
        Some(u64::from_le_bytes(length) + if size == 2 { 256 } else { 0 })
    }
}

impl CodingDecoder for ZstdDecoder {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<DecodeStep> {
        if input.is_empty() && self.progress != DecodeState::Open {
            return Ok(DecodeStep::default());
        }
        if self.progress != DecodeState::Open {
            self.header.clear();
        }
        if self.header.len() < MAX_ZSTD_HEADER {
            self.header.extend(&input[..input.len().min(MAX_ZSTD_HEADER - self.header.len())]);
            // The decoder refuses a larger one.
            self.window = self.window.max(Self::window_size(&self.header).map_or(0, |window| window.min(self.most)));
        }
        let mut source = InBuffer::around(input);
        let mut target = OutBuffer::around(out);
        // 0 means that a frame has ended and all of it was output; anything else is a hint about
        // the rest.
        let hint = self.state.run(&mut source, &mut target).map_err(|cause| corrupt_body_error("zstd", cause))?;
        let step = DecodeStep { consumed: source.pos(), produced: target.pos() };
        self.progress = if hint == 0 { DecodeState::Done } else { DecodeState::Open };
        Ok(step)
    }

    fn is_complete(&self) -> bool {
        self.progress != DecodeState::Open
    }

    fn name(&self) -> &'static str {
        "zstd"
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn expected_window(&self, first: &[u8]) -> u64 {
        Self::window_size(first).map_or(self.most, |window| window.min(self.most))
    }
}

impl fmt::Debug for ZstdDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zstd").field("progress", &self.progress).finish_non_exhaustive()
    }
}
