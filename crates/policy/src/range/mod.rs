//! The assembly of one body from several ranges and over several runs: checks the range that each
//! response claims, tracks the received bytes, and records them.
//!
//! | module | subject |
//! |---|---|
//! | [`content_range`] | the bytes that a 206 or 416 claims |
//! | [`validator`] | the check that two responses have the same representation, byte for byte |
//! | [`byte_range_set`] | sets of present and missing bytes |
//! | [`split_connection_count`] | the number of connections that makes the download fastest |
//! | [`part_assignment`] | the part that each connection fetches |
//! | [`checkpoint`] | the checkpoint for a later run |
//!
//! A part counts only if all checks agree:
//!
//! ```
//! use haul_policy::range::{ValidatorMatch, ByteRangeSet, Validator, content_range};
//!
//! let first = Validator::strong(Some(b"\"v1\""), None, None).expect("a strong entity-tag");
//! // Range: bytes=500-999 and If-Range: "v1" were sent; this came back, with 206:
//! let (field, etag) = (&b"bytes 500-999/2000"[..], &b"\"v1\""[..]);
//!
//! let part = content_range::parse(field).expect("a valid Content-Range");
//! assert!(part.is_exactly(500, 1000, 2000));
//! assert_eq!(first.compare(Some(etag), None), ValidatorMatch::Same);
//! let mut there = ByteRangeSet::new();
//! there.insert(500..1000);
//! assert_eq!(there.gaps(2000).collect::<Vec<_>>(), [0..500, 1000..2000]);
//! ```
//!
//! Left out: `multipart/byteranges`, since one range is requested at a time.

pub mod byte_range_set;
pub mod checkpoint;
pub mod content_range;
mod imf_fixdate;
pub mod part_assignment;
pub mod split_connection_count;
pub mod validator;

pub use byte_range_set::ByteRangeSet;
pub use checkpoint::Checkpoint;
pub use content_range::ContentRange;
pub use validator::{Validator, ValidatorMatch};
