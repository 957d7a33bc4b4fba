//! The content served under a name, and its faults.
//!
//! The faults are fields of one plan, not a list of enum values, because they combine: a hostile
//! peer lies in Content-Range and resets, and most faults of a part occur only after the first
//! stream broke.
//!
//! ```
//! use testkit::faulty::{BodyBreak, FaultPlan};
//!
//! let breaks = vec![BodyBreak::reset_at(300).times(1)];
//! let plan = FaultPlan { size: 1000, breaks, ..FaultPlan::default() };
//! assert_eq!(plan.query(), "size=1000&reset-at=300x1");
//! assert_eq!(FaultPlan::parse("size=1000&reset-at=300x1").unwrap(), plan);
//! ```

use std::time::Duration;

/// A body and its faults; the default is a body of 4 MiB without any.
///
/// Below, *part* means the body of a 206 and *whole* that of a 200. The query syntax is in
/// `docs/design/testing.md` and in [`parse`](FaultPlan::parse).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// The length of the body in bytes. Query: `size`.
    pub size: u64,
    /// The seed of the [`Pattern`](crate::pattern::Pattern). Query: `seed`.
    pub seed: u64,
    /// The kind of ETag. Query: `etag=strong|weak|none`.
    pub etag: EtagKind,
    /// True to answer every request with the whole body. Query: `ignore-range`.
    pub ignore_range: bool,
    /// True to treat every If-Range as matching. Query: `ignore-if-range`.
    pub ignore_if_range: bool,
    /// The fault in a part's Content-Range. Query: `range-start=±K`, `range-end=±K`,
    /// `range-total=±K`, `range-unit`, `range-missing`.
    pub content_range: Option<WrongContentRange>,
    /// The number of bytes that are missing at the end of a part; the connection ends there too.
    /// Query: `short`.
    pub short: u64,
    /// The error of a part's Content-Length: below zero, the body is as short as announced; above
    /// zero, the connection ends before the announced length. Query: `part-length=±K`.
    pub part_length: i64,
    /// The error of a whole body's Content-Length; the body is sent in full, then the connection
    /// ends. Query: `whole-length=±K`.
    pub whole_length: i64,
    /// The offset from which a request without Range gets a 206. Default: it gets a 200. Query:
    /// `unasked-206`.
    pub unasked_206: Option<u64>,
    /// True to send parts chunked. Query: `chunked`.
    pub chunked: bool,
    /// True to send parts gzip-coded and chunked, although the client does not accept gzip. Query:
    /// `gzip`.
    pub gzip: bool,
    /// The number of stray bytes after each body. Query: `garbage`.
    pub garbage: u64,
    /// The time at which ETag, Last-Modified and content change; a body being sent stays as it was.
    /// Query: `change-after-bytes`, `change-after-requests`, `change-after-ms`.
    pub change: Option<ContentChange>,
    /// The size after the change in `change`; default: the same. Query: `new-size`.
    pub new_size: Option<u64>,
    /// The positions at which bodies break. Query: see [`BodyBreak`].
    pub breaks: Vec<BodyBreak>,
    /// The duration of a stall; default: until the client closes. Query: `stall-ms`.
    pub stall: Option<Duration>,
    /// The rate of each body in bytes a second. Query: `rate`.
    pub rate: Option<u64>,
    /// The rate of each part in bytes a second, instead of `rate`. Query: `range-rate`.
    pub range_rate: Option<u64>,
    /// The number of requests with Range, from the first one, that get a 503. Query: `unavailable`.
    pub unavailable: u64,
    /// The Retry-After of those 503s, in seconds. Query: `retry-after`.
    pub retry_after: Option<u64>,
    /// The number of satisfiable requests with Range, from the first one, that get a 416. Query:
    /// `refuse-416`.
    pub refuse_416: u64,
    /// The limit of concurrent requests: a further one has its connection reset; over HTTP/2 it is
    /// refused (REFUSED_STREAM). Query: `connections`.
    pub connections: Option<u64>,
    /// The number of requests, from the first one, whose connection is reset; over HTTP/2 they are
    /// refused. Query: `refuse`.
    pub refuse: u64,
}

impl Default for FaultPlan {
    fn default() -> FaultPlan {
        FaultPlan {
            size: 4 << 20,
            seed: 1,
            etag: EtagKind::Strong,
            ignore_range: false,
            ignore_if_range: false,
            content_range: None,
            short: 0,
            part_length: 0,
            whole_length: 0,
            unasked_206: None,
            chunked: false,
            gzip: false,
            garbage: 0,
            change: None,
            new_size: None,
            breaks: Vec::new(),
            stall: None,
            rate: None,
            range_rate: None,
            unavailable: 0,
            retry_after: None,
            refuse_416: 0,
            connections: None,
            refuse: 0,
        }
    }
}

/// The kind of entity tag (RFC 9110 §8.8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtagKind {
    /// Each content has a different tag.
    Strong,
    /// The tag is marked weak: not valid for ranges.
    Weak,
    /// No tag; Last-Modified is still sent.
    None,
}

/// A wrong Content-Range (RFC 9110 §14.4); the body is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongContentRange {
    /// The first position is wrong by this number.
    Start(i64),
    /// The last position is wrong by this number.
    End(i64),
    /// The complete length is wrong by this number.
    Total(i64),
    /// The unit is not `bytes`.
    Unit,
    /// The field is missing.
    Missing,
}

/// The time at which the content changes; checked when a request arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentChange {
    /// After this many body bytes in all replies together.
    Bytes(u64),
    /// After this many answered requests.
    Requests(u64),
    /// A duration after the first request.
    Time(Duration),
}

/// An offset at which bodies break. Affects each body whose range includes it.
///
/// Query: `reset-at=N`, `close-at=N`, `stall-at=N`, `rst-at=N`, `goaway-at=N`, `goaway-cut-at=N`
/// count from the start of the source; `reset-after=N` and so on from the start of each body. An
/// `xN` after the number ([`times`](BodyBreak::times)) limits the number of bodies that break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyBreak {
    /// The kind of break.
    pub how: BreakKind,
    /// The position.
    pub place: BreakOffset,
    /// The number of bodies affected, from the first one; `None` for all.
    pub times: Option<u64>,
}

/// The kinds of breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakKind {
    /// The connection is reset. Bytes that the socket has not sent yet are lost, so the client may
    /// receive less than was sent.
    Reset,
    /// The connection is closed properly, over TLS with close_notify: only the length shows that it
    /// is early.
    Close,
    /// The server sends nothing for [`FaultPlan::stall`], then the rest. Other streams of an HTTP/2
    /// connection continue.
    Stall,
    /// RST_STREAM with INTERNAL_ERROR, after all bytes before the break. Over HTTP/1 this, `GoAway`
    /// and `GoAwayCut` are a proper close.
    Rst,
    /// GOAWAY with NO_ERROR that names the last stream: all streams continue, and no new ones are
    /// accepted.
    GoAway,
    /// GOAWAY with INTERNAL_ERROR that names the last stream, then the end of the connection.
    GoAwayCut,
}

/// The place where a response's body breaks off: an offset in the source, or in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakOffset {
    /// An offset of the source.
    At(u64),
    /// An offset into the body of a reply.
    After(u64),
}

impl BodyBreak {
    /// Creates a reset at an offset of the source.
    pub fn reset_at(offset: u64) -> BodyBreak {
        BodyBreak { how: BreakKind::Reset, place: BreakOffset::At(offset), times: None }
    }

    /// Creates an early end at an offset of the source.
    pub fn close_at(offset: u64) -> BodyBreak {
        BodyBreak { how: BreakKind::Close, place: BreakOffset::At(offset), times: None }
    }

    /// Creates a stall at an offset of the source.
    pub fn stall_at(offset: u64) -> BodyBreak {
        BodyBreak { how: BreakKind::Stall, place: BreakOffset::At(offset), times: None }
    }

    /// Creates an RST_STREAM at an offset of the source.
    pub fn rst_at(offset: u64) -> BodyBreak {
        BodyBreak { how: BreakKind::Rst, place: BreakOffset::At(offset), times: None }
    }

    /// Limits the break to the first `times` bodies.
    pub fn times(mut self, times: u64) -> BodyBreak {
        self.times = Some(times);
        self
    }

    /// Returns the offset of the break within a body that covers `start..end` of the source; `None`
    /// if it is outside.
    pub(super) fn within(&self, start: u64, end: u64) -> Option<u64> {
        let at = match self.place {
            BreakOffset::At(offset) => offset,
            BreakOffset::After(len) => start.checked_add(len)?,
        };
        (start..end).contains(&at).then_some(at)
    }
}
