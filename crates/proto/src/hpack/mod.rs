//! HPACK, the compression of field sections in HTTP/2 (RFC 7541): an [`HpackEncoder`] and a
//! [`HpackDecoder`], each with its own dynamic table.
//!
//! ```text
//!  fields ──▶ HpackEncoder ──▶ block ──(HEADERS, CONTINUATION)──▶ block ──▶ HpackDecoder ──▶ lines `name: value CR LF`
//!               │ table                                                  │ table
//!               └─ the same entries, if every block is decoded, in order ┘
//! ```
//!
//! The decoder writes its lines directly into the buffer that becomes a
//! [`ResponseHead`](crate::ResponseHead), so that a field is copied once: from the block, or from a
//! table. The tables of encoder and decoder keep all entries in one buffer; an insertion or an
//! eviction changes two numbers. Rejected: one allocation for each entry, since each new field of
//! each response would cost two allocations.
//!
//! The decoder does not limit the length of a field section: one byte can name a table entry of
//! 4,096 bytes again and again. The caller counts the bytes after each line and applies its own
//! limit. A line is never longer than a table entry or 8/5 of the block.
//!
//! ```
//! use haul_proto::hpack::{HeaderBlock, HpackDecoder, HpackEncoder, FieldIndexing};
//!
//! let mut encoder = HpackEncoder::new(4096);
//! let mut block = Vec::new();
//! encoder.begin_block(&mut block);
//! encoder.encode(b":method", b"GET", FieldIndexing::Add, &mut block);
//! encoder.encode(b"authorization", b"Basic YTpi", FieldIndexing::Never, &mut block);
//! assert_eq!(block[0], 0x82, "the static table has the method");
//!
//! let mut decoder = HpackDecoder::new(4096);
//! let (mut input, mut text) = (HeaderBlock::new(&block), Vec::new());
//! while let Some(line) = decoder.next_line(&mut input, &mut text)? {
//!     assert_eq!(line.sensitive, &text[line.name.clone()] == b"authorization");
//! }
//! assert_eq!(text, b":method: GET\r\nauthorization: Basic YTpi\r\n");
//! # Ok::<(), haul_proto::hpack::HpackError>(())
//! ```

mod decoder;
mod encoder;
mod static_table;

pub use crate::field_coding::{DecodedFieldRanges, FieldIndexing};
pub use decoder::{HeaderBlock, HpackDecoder};
pub use encoder::HpackEncoder;
pub(crate) use encoder::OpenHeaderBlock;

use crate::huffman::MalformedHuffman;
use crate::prefix_integer::PrefixIntegerError;
use core::fmt;

/// The reason why an HPACK header block cannot be decoded. The dynamic tables of client and server
/// may differ afterwards, so the connection ends (`COMPRESSION_ERROR`, RFC 9113 §4.3).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HpackError {
    /// The header block ends within a field.
    Truncated,
    /// An integer in the header block exceeds 2³²−1, or has more than five continuation bytes (RFC
    /// 7541 §5.1).
    Integer,
    /// A field refers to an index that neither the static nor the dynamic table has (RFC 7541
    /// §2.3.3).
    Index {
        /// The index that the field refers to.
        index: u32,
    },
    /// A Huffman-coded string contains EOS, or has padding that is longer than seven bits or not
    /// all ones (RFC 7541 §5.2).
    Huffman,
    /// The header block makes the dynamic table larger than allowed (RFC 7541 §6.3).
    TableSize {
        /// The size in bytes that the header block sets for the dynamic table.
        size: u32,
        /// The largest size of the dynamic table allowed, in bytes.
        limit: u32,
    },
    /// The header block changes the size of the dynamic table after a field, which is too late (RFC
    /// 7541 §4.2).
    LateTableSize,
    /// The allowed size of the dynamic table was lowered, but the header block does not begin with
    /// the required change of size (RFC 7541 §4.2).
    MissingTableSize,
}

impl From<MalformedHuffman> for HpackError {
    fn from(_: MalformedHuffman) -> HpackError {
        HpackError::Huffman
    }
}

impl From<PrefixIntegerError> for HpackError {
    fn from(error: PrefixIntegerError) -> HpackError {
        match error {
            PrefixIntegerError::Truncated => HpackError::Truncated,
            PrefixIntegerError::TooLarge => HpackError::Integer,
        }
    }
}

impl core::error::Error for HpackError {}

impl fmt::Display for HpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            HpackError::Truncated => f.write_str("header block ends within a field"),
            HpackError::Integer => f.write_str("header block holds an integer above 32 bits"),
            HpackError::Index { index } => write!(f, "header block names entry {index}, which no table has"),
            HpackError::Huffman => f.write_str("header block holds a malformed Huffman code"),
            HpackError::TableSize { size, limit } => {
                write!(f, "header block asks for a table of {size} bytes where {limit} are allowed")
            }
            HpackError::LateTableSize => f.write_str("header block changes the table's size behind a field"),
            HpackError::MissingTableSize => f.write_str("header block does not lower the table's size as it has to"),
        }
    }
}
