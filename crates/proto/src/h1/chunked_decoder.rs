//! The chunked transfer coding of a response (RFC 9112 §7.1).
//!
//! The decoder is strict, since all parsers on the way must agree on the bytes of the payload. It
//! refuses a chunk size without a digit at its start, with more than 16 digits, `0x` or a sign. It
//! also refuses a CR without LF, control bytes in extensions, and payload that is not followed by a
//! line end.
//!
//! Two faults leave no doubt about the payload, and are
//! [tolerated](ChunkedDecoder::has_tolerated_faults): blanks between a size and its line end, and
//! lines that end in LF without CR. After such a body the connection accepts no further request,
//! since a proxy on the way may have read the rest differently. Extensions are skipped, and their
//! bytes are counted. The framing is read byte by byte, so that the result does not depend on how
//! the input was cut.
//!
//! ```text
//!  Size ──digits── ';' ─► Extension ─┐               ┌── size 0 ──► Trailers ── empty line ──► End
//!    ▲  └──── ' ' ─► Padding ─ ';' ──┤               │
//!    │  └──────────── CR ────────────┴─► SizeLf ─ LF ┴── Data ── all of it ─► DataCr ─► DataLf
//!    └───────────────────────────────────────────────────────────────────────────────────┘
//! ```

use super::error::{ChunkFault, H1Error};
use super::parse_field_section::{self, FieldSectionScan};
use crate::ResponseLimits;
use crate::fields::Fields;
use crate::response_error::ResponseError;
use core::ops::Range;
use memchr::memchr_iter;

/// The largest number of hexadecimal digits in a chunk size, leading zeros included: 16 digits are
/// 64 bits.
const MAX_DIGITS: u8 = 16;

/// The result of decoding one piece of a chunked body.
#[derive(Debug)]
pub(crate) enum ChunkEvent {
    NeedInput,
    Data(Range<usize>),
    End(Option<Fields>),
}

/// The part of the chunked framing that the decoder expects next.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
enum ChunkState {
    #[default]
    Size,
    Padding,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailers,
}

/// The decoder of one chunked body.
#[derive(Default, Debug)]
pub(crate) struct ChunkedDecoder {
    state: ChunkState,
    /// While a chunk-size line is read: the size read so far. Afterwards: the number of payload
    /// bytes of the chunk that have not arrived.
    size: u64,
    digits: u8,
    /// The number of bytes of the current chunk-size line that have been read.
    line: usize,
    /// The number of bytes of chunk extensions read so far in this body.
    extensions: usize,
    /// The number of payload bytes decoded so far in this body.
    got: u64,
    trailers: FieldSectionScan,
    is_loose: bool,
}

impl ChunkedDecoder {
    /// Returns the number of payload bytes decoded so far.
    pub(crate) fn decoded_bytes(&self) -> u64 {
        self.got
    }

    /// Returns `true` if the chunked framing so far breaks RFC 9112 but is unambiguous, so that the
    /// body could be decoded.
    pub(crate) fn has_tolerated_faults(&self) -> bool {
        self.is_loose
    }

    /// Decodes the start of `input` up to the next event. Returns the number of bytes consumed, and
    /// the event.
    pub(crate) fn decode(&mut self, limits: &ResponseLimits, input: &[u8]) -> Result<(usize, ChunkEvent), H1Error> {
        let mut at = 0;
        loop {
            match self.state {
                ChunkState::Data => {
                    let take = self.size.min((input.len() - at) as u64);
                    if take == 0 {
                        return Ok((at, ChunkEvent::NeedInput));
                    }
                    self.size -= take;
                    self.got = self.got.saturating_add(take);
                    if self.size == 0 {
                        self.state = ChunkState::DataCr;
                    }
                    let end = at + take as usize;
                    return Ok((end, ChunkEvent::Data(at..end)));
                }
                ChunkState::Trailers => {
                    let (consumed, decoded) = self.decode_trailers(limits, &input[at..])?;
                    return Ok((at + consumed, decoded));
                }
                _ => {
                    let Some(&byte) = input.get(at) else {
                        return Ok((at, ChunkEvent::NeedInput));
                    };
                    self.decode_framing_byte(limits, byte)?;
                    at += 1;
                }
            }
        }
    }

    /// Processes one byte of the chunked framing, which is not part of the payload.
    fn decode_framing_byte(&mut self, limits: &ResponseLimits, byte: u8) -> Result<(), H1Error> {
        let fault = |fault| Err(H1Error::Chunk(fault));
        if matches!(self.state, ChunkState::Size | ChunkState::Padding | ChunkState::Extension | ChunkState::SizeLf) {
            self.line += 1;
            if self.line > limits.chunk_line {
                return Err(H1Error::ChunkLineTooLong { limit: limits.chunk_line });
            }
        }
        self.is_loose |= match (self.state, byte) {
            (ChunkState::Size, b'\n') => self.digits > 0,
            (ChunkState::Padding | ChunkState::Extension | ChunkState::DataCr, b'\n')
            | (ChunkState::Padding, b'\r') => true,
            _ => false,
        };
        self.state = match (self.state, byte) {
            (ChunkState::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if self.digits == MAX_DIGITS {
                    return fault(ChunkFault::SizeOverflow);
                }
                self.digits += 1;
                self.size = (self.size << 4) | u64::from(hex_digit_value(byte));
                ChunkState::Size
            }
            (ChunkState::Size, _) if self.digits == 0 => return fault(ChunkFault::Size),
            (ChunkState::Size | ChunkState::Padding | ChunkState::Extension, b'\r') => ChunkState::SizeLf,
            (ChunkState::Size | ChunkState::Padding | ChunkState::Extension | ChunkState::SizeLf, b'\n') => {
                (self.line, self.digits) = (0, 0);
                if self.size == 0 { ChunkState::Trailers } else { ChunkState::Data }
            }
            (ChunkState::Size | ChunkState::Padding, b';') => ChunkState::Extension,
            (ChunkState::Size | ChunkState::Padding, b' ' | b'\t') => ChunkState::Padding,
            (ChunkState::Size, _) => return fault(ChunkFault::SizeEnd),
            (ChunkState::Padding, _) => return fault(ChunkFault::SizeSpaced),
            (ChunkState::Extension, b'\t' | b' '..=b'~' | 0x80..) => {
                self.extensions += 1;
                if self.extensions > limits.chunk_extensions_total {
                    return Err(H1Error::ChunkExtensionsTooLarge { limit: limits.chunk_extensions_total });
                }
                ChunkState::Extension
            }
            (ChunkState::Extension, _) => return fault(ChunkFault::Extension),
            (ChunkState::SizeLf | ChunkState::DataLf, _) if byte != b'\n' => return fault(ChunkFault::BareCr),
            (ChunkState::DataCr | ChunkState::DataLf, b'\n') => ChunkState::Size,
            (ChunkState::DataCr, b'\r') => ChunkState::DataLf,
            (ChunkState::DataCr, _) => return fault(ChunkFault::DataEnd),
            (state, _) => state,
        };
        Ok(())
    }

    fn decode_trailers(&mut self, limits: &ResponseLimits, input: &[u8]) -> Result<(usize, ChunkEvent), H1Error> {
        match input {
            [] | [b'\r'] => return Ok((0, ChunkEvent::NeedInput)),
            [b'\r', b'\n', ..] => return Ok((2, ChunkEvent::End(None))),
            [b'\n', ..] => {
                self.is_loose = true;
                return Ok((1, ChunkEvent::End(None)));
            }
            [b'\r', ..] => return Err(H1Error::Chunk(ChunkFault::BareCr)),
            _ => {}
        }
        let limit = limits.trailer_bytes;
        match self.trailers.find_end(&input[..input.len().min(limit)]) {
            Some(end) => {
                let section = &input[..end];
                let fields = parse_field_section::parse_trailers(section, &self.trailers, limits.trailer_fields)?;
                self.is_loose |= memchr_iter(b'\n', section).any(|at| !section[..at].ends_with(b"\r"));
                Ok((end, ChunkEvent::End(Some(fields))))
            }
            None if input.len() >= limit => Err(H1Error::Response(ResponseError::TrailersTooLarge { limit })),
            None => Ok((0, ChunkEvent::NeedInput)),
        }
    }
}

fn hex_digit_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
