//! One body from several ranges, and over several runs: what a part may claim, what has been received, and how that is recorded.
//!
//! | module | question |
//! |---|---|
//! | [`content_range`] | which bytes does this 206 or 416 speak of? |
//! | [`validator`] | is it still the same representation, byte for byte? |
//! | [`spans`] | which bytes are there, which are missing? |
//! | [`split`] | how many connections help? |
//! | [`window`] | which part does each of them fetch? |
//! | [`note`] | how does a later run know? |
//!
//! A part counts when all of them agree:
//!
//! ```
//! use haul_policy::range::{Agreement, Spans, Validator, content_range};
//!
//! let first = Validator::strong(Some(b"\"v1\""), None, None).expect("a strong entity-tag");
//! // Range: bytes=500-999 and If-Range: "v1" were sent; this came back, with 206:
//! let (field, etag) = (&b"bytes 500-999/2000"[..], &b"\"v1\""[..]);
//!
//! let part = content_range::parse(field).expect("a valid Content-Range");
//! assert!(part.is_exactly(500, 1000, 2000));
//! assert_eq!(first.agrees(Some(etag), None), Agreement::Same);
//! let mut there = Spans::new();
//! there.insert(500..1000);
//! assert_eq!(there.gaps(2000).collect::<Vec<_>>(), [0..500, 1000..2000]);
//! ```
//!
//! Left out: `multipart/byteranges`, since one range is requested at a time.

pub mod content_range;
pub mod note;
pub mod spans;
pub mod split;
pub mod validator;
pub mod window;

pub use content_range::ContentRange;
pub use note::Note;
pub use spans::Spans;
pub use validator::{Agreement, Validator};
