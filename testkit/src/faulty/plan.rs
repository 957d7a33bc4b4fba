//! The fault plan: the body served under a name, and its faults.
//!
//! The faults are fields of one plan, not a list of enum values, because they combine: a hostile
//! peer may both send a wrong Content-Range and reset the connection, and most faults of a part
//! occur only after the first stream has broken.
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

/// A body and its faults. The default is a body of 4 MiB without faults.
///
/// Below, *part* means the body of a 206, and *whole* the body of a 200. The query syntax is in
/// `docs/design/testing.md` and in [`parse`](FaultPlan::parse).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// The length of the body in bytes. Query: `size`.
    pub size: u64,
    /// The seed of the [`BytePattern`](crate::byte_pattern::BytePattern). Query: `seed`.
    pub seed: u64,
    /// The kind of ETag. Query: `etag=strong|weak|none`.
    pub etag: EtagKind,
    /// True to ignore Range fields and answer every request with the whole body. Query:
    /// `ignore-range`.
    pub ignore_range: bool,
    /// True to send the part even if the request's If-Range does not match the ETag. Query:
    /// `ignore-if-range`.
    pub ignore_if_range: bool,
    /// The fault in the Content-Range field of parts; `None` for a correct field. Query:
    /// `range-start=±K`, `range-end=±K`, `range-total=±K`, `range-unit`, `range-missing`.
    pub content_range: Option<WrongContentRange>,
    /// The number of bytes missing at the end of each part. The connection is closed after the last
    /// byte sent. Query: `short`.
    pub short: u64,
    /// The difference between the Content-Length of a part and its true length. If negative, the
    /// body is cut to the announced length. If positive, the connection ends before the announced
    /// length. Query: `part-length=±K`.
    pub part_length: i64,
    /// The difference between the Content-Length of a whole body and its true length. The body is
    /// sent in full, then the connection ends. Query: `whole-length=±K`.
    pub whole_length: i64,
    /// The start offset of the part that is sent with status 206 in reply to a request without
    /// Range. `None`: such a request is answered with 200. Query: `unasked-206`.
    pub unasked_206: Option<u64>,
    /// True to send parts chunked. Query: `chunked`.
    pub chunked: bool,
    /// True to send parts gzip-coded and chunked, although the client does not accept gzip. Query:
    /// `gzip`.
    pub gzip: bool,
    /// The number of unrelated bytes sent after each body. Query: `garbage`.
    pub garbage: u64,
    /// The event at which ETag, Last-Modified and content change; `None` if they never change. A
    /// body that is being sent stays unchanged. Query: `change-after-bytes`,
    /// `change-after-requests`, `change-after-ms`.
    pub change: Option<ContentChangeTrigger>,
    /// The size of the body in bytes after the content has changed ([`change`](FaultPlan::change));
    /// `None` if the size does not change. Query: `new-size`.
    pub new_size: Option<u64>,
    /// The breaks. Each has an offset at which a body ends or stalls early, and a kind. Query: see
    /// [`BodyBreak`].
    pub breaks: Vec<BodyBreak>,
    /// The duration of a stall; `None` for a stall that ends when the client closes the connection.
    /// Query: `stall-ms`.
    pub stall: Option<Duration>,
    /// The rate of each body in bytes a second; `None` for no limit. Query: `rate`.
    pub rate: Option<u64>,
    /// The rate of each part in bytes a second; `None` for the limit in `rate`. Query:
    /// `range-rate`.
    pub range_rate: Option<u64>,
    /// The number of requests with Range that are answered with a 503, beginning with the first.
    /// Query: `unavailable`.
    pub unavailable: u64,
    /// The value of Retry-After, in seconds, in the 503 responses that
    /// [`unavailable`](FaultPlan::unavailable) requests; `None` to send no Retry-After. Query:
    /// `retry-after`.
    pub retry_after: Option<u64>,
    /// The number of satisfiable requests with Range that are answered with a 416, beginning with
    /// the first. Query: `refuse-416`.
    pub refuse_416: u64,
    /// The maximum number of requests that are answered at the same time. `None`: no limit. For an
    /// additional request, the connection is reset. Over HTTP/2, the stream is refused
    /// (REFUSED_STREAM). Query: `connections`.
    pub connections: Option<u64>,
    /// The number of requests that are refused, beginning with the first: over HTTP/1 the
    /// connection is reset, over HTTP/2 the stream is refused. Query: `refuse`.
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

/// The kind of entity tag that the fault origin sends (RFC 9110 §8.8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtagKind {
    /// A strong tag, different before and after a change of the content.
    Strong,
    /// A weak tag (`W/"…"`), which a client may not use to combine ranges.
    Weak,
    /// No tag. Last-Modified is still sent.
    None,
}

/// A fault in the Content-Range field of a part (RFC 9110 §14.4). The body of the part is correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongContentRange {
    /// Adds this number to the first position in Content-Range.
    Start(i64),
    /// Adds this number to the last position in Content-Range.
    End(i64),
    /// Adds this number to the complete length in Content-Range.
    Total(i64),
    /// The field has a unit other than `bytes`.
    Unit,
    /// Content-Range is missing.
    Missing,
}

/// The event at which the content of the resource with a given name changes. The origin checks for
/// the event when a request arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentChangeTrigger {
    /// The change happens after the origin has sent this many body bytes for the name, over all
    /// replies.
    Bytes(u64),
    /// The change happens after the origin has answered this many requests for the name.
    Requests(u64),
    /// The change happens this long after the first request for the name.
    Time(Duration),
}

/// A break: an offset at which the origin ends or stalls a body. It affects each body whose range
/// includes the offset.
///
/// Query: `reset-at=N`, `close-at=N`, `stall-at=N`, `rst-at=N`, `goaway-at=N` and `goaway-cut-at=N`
/// are breaks at offset N of the whole content, even if a body is only a part of it.
/// `reset-after=N` and so on are breaks after the first N bytes of each body. An `xN` after the
/// number ([`times`](BodyBreak::times)) limits the number of bodies that break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyBreak {
    /// The kind of break.
    pub how: BreakKind,
    /// The offset at which the body breaks.
    pub place: BodyBreakOffset,
    /// The number of bodies that the break affects, beginning with the first; `None` for all.
    pub times: Option<u64>,
}

/// The kind of a break: the event that ends or stalls a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakKind {
    /// The connection is reset. Bytes that the socket has not sent yet are lost, so the client may
    /// receive less than was sent. Over HTTP/3, the server sends CONNECTION_CLOSE with
    /// H3_INTERNAL_ERROR.
    Reset,
    /// The connection is closed without a reset, over TLS with close_notify. Only the length shows
    /// that the body is incomplete. Over HTTP/3, the server sends CONNECTION_CLOSE with
    /// H3_NO_ERROR.
    Close,
    /// The server pauses for [`FaultPlan::stall`], then sends the rest of the body. Other streams
    /// of an HTTP/2 or HTTP/3 connection continue.
    Stall,
    /// Over HTTP/2, the server sends RST_STREAM with INTERNAL_ERROR after all bytes before the
    /// break. Over HTTP/3, it sends RESET_STREAM with H3_INTERNAL_ERROR, and bytes before the break
    /// may be lost. Over HTTP/1, which has no streams, it closes the connection as for
    /// [`BreakKind::Close`].
    Rst,
    /// Over HTTP/2 and HTTP/3, the server sends GOAWAY (over HTTP/2 with NO_ERROR), finishes the
    /// open streams, and accepts no new ones. Over HTTP/1, the server closes the connection as for
    /// [`BreakKind::Close`].
    GoAway,
    /// Over HTTP/2 and HTTP/3, the server sends GOAWAY, then closes the connection. The HTTP/2
    /// frame names the last stream and INTERNAL_ERROR. Over HTTP/1, the server closes the
    /// connection as for [`BreakKind::Close`].
    GoAwayCut,
}

/// The offset at which a body breaks, counted from the start of the source (the whole body), or
/// from the start of the body that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyBreakOffset {
    /// The break is at this offset of the source.
    At(u64),
    /// The break is after this many bytes of each sent body, wherever its range starts.
    After(u64),
}

impl BodyBreak {
    /// Creates a [reset](BreakKind::Reset) at an offset of the source.
    pub fn reset_at(offset: u64) -> BodyBreak {
        BodyBreak { how: BreakKind::Reset, place: BodyBreakOffset::At(offset), times: None }
    }

    /// Creates an early [close](BreakKind::Close) at an offset of the source.
    pub fn close_at(offset: u64) -> BodyBreak {
        BodyBreak { how: BreakKind::Close, place: BodyBreakOffset::At(offset), times: None }
    }

    /// Creates a [stall](BreakKind::Stall) at an offset of the source.
    pub fn stall_at(offset: u64) -> BodyBreak {
        BodyBreak { how: BreakKind::Stall, place: BodyBreakOffset::At(offset), times: None }
    }

    /// Creates a break that resets the stream ([RST_STREAM](BreakKind::Rst)) at an offset of the
    /// source.
    pub fn rst_at(offset: u64) -> BodyBreak {
        BodyBreak { how: BreakKind::Rst, place: BodyBreakOffset::At(offset), times: None }
    }

    /// Limits the break to the first `times` bodies that it affects.
    pub fn times(mut self, times: u64) -> BodyBreak {
        self.times = Some(times);
        self
    }

    /// Returns the offset, from the start of the source, at which the fault origin breaks off a
    /// body that consists of the bytes `start..end` of the source. Returns `None` if the break is
    /// not within these bytes.
    pub(super) fn within(&self, start: u64, end: u64) -> Option<u64> {
        let at = match self.place {
            BodyBreakOffset::At(offset) => offset,
            BodyBreakOffset::After(len) => start.checked_add(len)?,
        };
        (start..end).contains(&at).then_some(at)
    }
}
