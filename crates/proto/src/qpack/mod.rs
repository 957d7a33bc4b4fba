//! QPACK, the compression of field sections in HTTP/3 (RFC 9204): a [`QpackEncoder`] and a
//! [`QpackDecoder`], each with its own dynamic table.
//!
//! ```text
//!  fields ─▶ QpackEncoder ─▶ section ──────(HEADERS on a request's stream)──────▶ section ─▶ QpackDecoder ─▶ lines
//!              │ table ─────────(encoder stream: insertions)─────────────────────────▶ table │
//!              └◀───────────────(decoder stream: acknowledgements, cancellations)─────────────┘
//! ```
//!
//! Data of different QUIC streams arrive in any order, so a section may refer to insertions that
//! have not arrived. The decoder then reports the number of insertions that it needs, and the
//! caller waits for them. The encoder refers only to entries that its peer has acknowledged. Its
//! sections therefore never have to wait, and the peer's limit on blocked streams does not matter.
//!
//! The encoder inserts a field when it is sent for the second time. A connection for one request
//! inserts nothing, and its encoder stream is never opened.
//!
//! The decoder does not limit the length of a field section: one byte can name a table entry of
//! 4,096 bytes again and again. The caller counts the bytes after each line and applies its own
//! limit.
//!
//! ```
//! use haul_proto::qpack::{FieldIndexing, QpackDecoder, QpackEncoder};
//!
//! let mut encoder = QpackEncoder::new(4096);
//! let mut section = Vec::new();
//! encoder.begin_section();
//! encoder.encode(b":method", b"GET", FieldIndexing::Add);
//! encoder.encode(b"authorization", b"Basic YTpi", FieldIndexing::Never);
//! encoder.finish_section(0, &mut section);
//! assert_eq!(section[..3], [0, 0, 0xd1], "no dynamic entry, and the static table has the method");
//!
//! let mut decoder = QpackDecoder::new(4096);
//! let mut input = decoder.begin_section(&section)?;
//! assert!(input.required_insert_count() <= decoder.insert_count(), "it need not wait");
//! let mut text = Vec::new();
//! while let Some(line) = decoder.next_line(&mut input, &mut text)? {
//!     assert_eq!(line.sensitive, &text[line.name.clone()] == b"authorization");
//! }
//! assert_eq!(text, b":method: GET\r\nauthorization: Basic YTpi\r\n");
//! # Ok::<(), haul_proto::qpack::QpackError>(())
//! ```

mod decoder;
mod encoder;
mod huffman_decode_cache;
mod instruction;
mod static_table;

pub use crate::field_coding::{DecodedFieldRanges, FieldIndexing};
pub use decoder::{EncodedFieldSection, QpackDecoder};
pub use encoder::QpackEncoder;

use crate::huffman::MalformedHuffman;
use crate::prefix_integer::{self, PrefixIntegerError};
use core::fmt;

/// The largest number of bytes that follow the first byte of a QPACK integer. They hold 63 bits;
/// QPACK requires 62 (RFC 9204 §4.1.1).
const LONGEST_INTEGER: u32 = 9;

/// An error in the peer's QPACK data. Each variant ends the connection with its own error code (RFC
/// 9204 §6).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum QpackError {
    /// A field section cannot be decoded.
    Section(QpackFault),
    /// An instruction on the peer's encoder stream is invalid.
    EncoderStream(QpackFault),
    /// An instruction on the peer's decoder stream is invalid.
    DecoderStream(QpackFault),
}

/// The reason why a field section or an instruction of QPACK is invalid.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum QpackFault {
    /// The field section ends within a field or within its prefix.
    Truncated,
    /// An integer exceeds 63 bits.
    Integer,
    /// An index refers to an entry that the table does not have, or that the section does not
    /// declare as required.
    Index {
        /// The index as it was sent.
        index: u64,
    },
    /// A Huffman-coded string contains EOS, or has padding that is longer than seven bits or not
    /// all ones.
    Huffman,
    /// The Required Insert Count or the Base of a section has an impossible value (RFC 9204
    /// §4.5.1).
    Prefix,
    /// More streams wait for insertions than the decoder allows.
    BlockedStreams {
        /// The largest number of blocked streams that the decoder allows.
        limit: u32,
    },
    /// The instruction gives the dynamic table a larger capacity than allowed.
    Capacity {
        /// The capacity in the instruction, in bytes.
        size: u64,
        /// The largest capacity allowed, in bytes.
        limit: u32,
    },
    /// The instruction inserts an entry that is larger than the capacity of the dynamic table.
    EntryTooLarge,
    /// The instruction acknowledges a section that was not sent, or that needs no acknowledgement.
    Acknowledgement {
        /// The identifier of the stream in the instruction.
        stream: u64,
    },
    /// The instruction acknowledges no insertion, or more insertions than were made.
    Increment {
        /// The increment in the instruction.
        increment: u64,
    },
}

impl From<PrefixIntegerError> for QpackFault {
    fn from(error: PrefixIntegerError) -> QpackFault {
        match error {
            PrefixIntegerError::Truncated => QpackFault::Truncated,
            PrefixIntegerError::TooLarge => QpackFault::Integer,
        }
    }
}

impl From<MalformedHuffman> for QpackFault {
    fn from(_: MalformedHuffman) -> QpackFault {
        QpackFault::Huffman
    }
}

impl core::error::Error for QpackError {}

impl fmt::Display for QpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QpackError::Section(fault) => write!(f, "a malformed field section: {fault}"),
            QpackError::EncoderStream(fault) => write!(f, "a malformed QPACK insertion: {fault}"),
            QpackError::DecoderStream(fault) => write!(f, "a malformed QPACK acknowledgement: {fault}"),
        }
    }
}

impl fmt::Display for QpackFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            QpackFault::Truncated => f.write_str("it ends within a field"),
            QpackFault::Integer => f.write_str("it holds an integer above 63 bits"),
            QpackFault::Index { index } => write!(f, "it names entry {index}, which no table has"),
            QpackFault::Huffman => f.write_str("it holds a malformed Huffman code"),
            QpackFault::Prefix => f.write_str("it needs an impossible number of insertions"),
            QpackFault::BlockedStreams { limit } => write!(f, "more than {limit} streams wait for insertions"),
            QpackFault::Capacity { size, limit } => {
                write!(f, "it asks for a table of {size} bytes where {limit} are allowed")
            }
            QpackFault::EntryTooLarge => f.write_str("the entry is larger than the table"),
            QpackFault::Acknowledgement { stream } => write!(f, "nothing is unacknowledged on stream {stream}"),
            QpackFault::Increment { increment } => write!(f, "{increment} insertions are not unacknowledged"),
        }
    }
}

/// Removes a QPACK integer from the front of `input` and returns it. Its prefix has `prefix` bits.
fn integer(input: &mut &[u8], prefix: u32) -> Result<u64, QpackFault> {
    Ok(prefix_integer::decode(input, prefix, LONGEST_INTEGER)?)
}
