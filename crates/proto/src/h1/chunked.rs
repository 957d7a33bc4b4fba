//! The chunked transfer coding of a response (RFC 9112 §7.1).
//!
//! Framing is read byte by byte: which bytes are payload must not depend on whose parser reads
//! them. Refused: no digit at the start, more than 16 digits, `0x`, signs, a CR without LF, control
//! bytes in extensions, payload that is not followed by a line end.
//!
//! Two breaches leave no doubt about the payload, and are delivered: blanks between a size and its
//! line end, and lines that end in LF without CR. The decoder is [loose](Decoder::is_loose) then,
//! and its connection takes no further request: a proxy on the way may have read the rest
//! differently. Extensions are skipped and counted. Since each byte is decided on by itself, the
//! result does not depend on how the input was cut.
//!
//! ```text
//!  Size ──digits── ';' ─► Extension ─┐               ┌── size 0 ──► Trailers ── empty line ──► End
//!    ▲  └──── ' ' ─► Padding ─ ';' ──┤               │
//!    │  └──────────── CR ────────────┴─► SizeLf ─ LF ┴── Data ── all of it ─► DataCr ─► DataLf
//!    └───────────────────────────────────────────────────────────────────────────────────┘
//! ```

use super::error::{ChunkFault, Error};
use super::parse::{self, Scan};
use crate::Limits;
use crate::fields::Fields;
use core::ops::Range;
use memchr::memchr_iter;

/// The most digits of a size, with leading zeros.
const MAX_DIGITS: u8 = 16;

/// A piece of decoded input.
#[derive(Debug)]
pub(crate) enum Decoded {
    NeedInput,
    Data(Range<usize>),
    End(Option<Fields>),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
enum State {
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
pub(crate) struct Decoder {
    state: State,
    /// The size being read; then the rest of the chunk.
    size: u64,
    digits: u8,
    /// The number of bytes of the size line so far.
    line: usize,
    /// The number of bytes of extensions in the body so far.
    extensions: usize,
    /// The number of payload bytes so far.
    got: u64,
    trailers: Scan,
    is_loose: bool,
}

impl Decoder {
    /// Returns the number of payload bytes so far.
    pub(crate) fn got(&self) -> u64 {
        self.got
    }

    /// Returns `true` if the framing so far breaks RFC 9112, though it has only one reading.
    pub(crate) fn is_loose(&self) -> bool {
        self.is_loose
    }

    /// Decodes the next piece; also returns the number of bytes consumed.
    pub(crate) fn decode(&mut self, limits: &Limits, input: &[u8]) -> Result<(usize, Decoded), Error> {
        let mut at = 0;
        loop {
            match self.state {
                State::Data => {
                    let take = self.size.min((input.len() - at) as u64);
                    if take == 0 {
                        return Ok((at, Decoded::NeedInput));
                    }
                    self.size -= take;
                    self.got = self.got.saturating_add(take);
                    if self.size == 0 {
                        self.state = State::DataCr;
                    }
                    let end = at + take as usize;
                    return Ok((end, Decoded::Data(at..end)));
                }
                State::Trailers => {
                    let (consumed, decoded) = self.trailers(limits, &input[at..])?;
                    return Ok((at + consumed, decoded));
                }
                _ => {
                    let Some(&byte) = input.get(at) else {
                        return Ok((at, Decoded::NeedInput));
                    };
                    self.frame(limits, byte)?;
                    at += 1;
                }
            }
        }
    }

    /// Processes one byte of framing.
    fn frame(&mut self, limits: &Limits, byte: u8) -> Result<(), Error> {
        let fault = |fault| Err(Error::Chunk(fault));
        if matches!(self.state, State::Size | State::Padding | State::Extension | State::SizeLf) {
            self.line += 1;
            if self.line > limits.chunk_line {
                return Err(Error::ChunkLineTooLong { limit: limits.chunk_line });
            }
        }
        self.is_loose |= match (self.state, byte) {
            (State::Size, b'\n') => self.digits > 0,
            (State::Padding | State::Extension | State::DataCr, b'\n') | (State::Padding, b'\r') => true,
            _ => false,
        };
        self.state = match (self.state, byte) {
            (State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if self.digits == MAX_DIGITS {
                    return fault(ChunkFault::SizeOverflow);
                }
                self.digits += 1;
                self.size = (self.size << 4) | u64::from(hex(byte));
                State::Size
            }
            (State::Size, _) if self.digits == 0 => return fault(ChunkFault::Size),
            (State::Size | State::Padding | State::Extension, b'\r') => State::SizeLf,
            (State::Size | State::Padding | State::Extension | State::SizeLf, b'\n') => {
                (self.line, self.digits) = (0, 0);
                if self.size == 0 { State::Trailers } else { State::Data }
            }
            (State::Size | State::Padding, b';') => State::Extension,
            (State::Size | State::Padding, b' ' | b'\t') => State::Padding,
            (State::Size, _) => return fault(ChunkFault::SizeEnd),
            (State::Padding, _) => return fault(ChunkFault::SizeSpaced),
            (State::Extension, b'\t' | b' '..=b'~' | 0x80..) => {
                self.extensions += 1;
                if self.extensions > limits.chunk_extensions_total {
                    return Err(Error::ChunkExtensionsTooLarge { limit: limits.chunk_extensions_total });
                }
                State::Extension
            }
            (State::Extension, _) => return fault(ChunkFault::Extension),
            (State::SizeLf | State::DataLf, _) if byte != b'\n' => return fault(ChunkFault::BareCr),
            (State::DataCr | State::DataLf, b'\n') => State::Size,
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataCr, _) => return fault(ChunkFault::DataEnd),
            (state, _) => state,
        };
        Ok(())
    }

    fn trailers(&mut self, limits: &Limits, input: &[u8]) -> Result<(usize, Decoded), Error> {
        match input {
            [] | [b'\r'] => return Ok((0, Decoded::NeedInput)),
            [b'\r', b'\n', ..] => return Ok((2, Decoded::End(None))),
            [b'\n', ..] => {
                self.is_loose = true;
                return Ok((1, Decoded::End(None)));
            }
            [b'\r', ..] => return Err(Error::Chunk(ChunkFault::BareCr)),
            _ => {}
        }
        let limit = limits.trailer_bytes;
        match self.trailers.find_end(&input[..input.len().min(limit)]) {
            Some(end) => {
                let section = &input[..end];
                let fields = parse::trailers(section, &self.trailers, limits.trailer_fields)?;
                self.is_loose |= memchr_iter(b'\n', section).any(|at| at == 0 || section[at - 1] != b'\r');
                Ok((end, Decoded::End(Some(fields))))
            }
            None if input.len() >= limit => Err(Error::TrailersTooLarge { limit }),
            None => Ok((0, Decoded::NeedInput)),
        }
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
