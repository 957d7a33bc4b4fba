//! Chooses the fault origin's reply to a request, based on the fault plan, the earlier requests for
//! the same name, and the request itself.

use std::fmt::Write;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use super::plan::{ContentChangeTrigger, EtagKind, FaultPlan, WrongContentRange};
use super::request::FaultyOriginRequest;
use super::request_log::{AnsweredRequest, FaultyRequestLog, SentBody};
use crate::byte_range::RequestedPart;
use crate::lock_even_if_poisoned::lock;

/// The Last-Modified time of a resource before the fault plan changes its content, in seconds since
/// 1970. The time is long ago, so that it counts as a strong validator (RFC 9110 §8.8.2.2).
const MODIFICATION_TIME: u64 = 1_714_550_400;

/// A resource that the fault origin serves under a name: its fault plan, and the record of its
/// requests and bodies.
pub(super) struct FaultyResource {
    pub(super) plan: FaultPlan,
    account: Mutex<ResourceRequestHistory>,
}

/// The record of the requests for a resource and of the bodies sent for them.
#[derive(Default)]
struct ResourceRequestHistory {
    seen: FaultyRequestLog,
    connections: Vec<u64>,
    /// The number of requests with a Range field received so far for this resource.
    ranged: u64,
    /// The number of bodies that have reached each break of the fault plan, in the order of the
    /// plan.
    met: Vec<u64>,
    under_way: u64,
    first: Option<Instant>,
}

/// The fault origin's reply to one request.
#[derive(Debug)]
pub(super) enum PlannedReply {
    /// No response: the connection is reset. Over HTTP/2, the stream is refused.
    Reset,
    /// A response with this head and no body.
    Empty { head: String },
    /// A response with this head and a body.
    Body { head: String, send: PlannedReplyBody },
}

/// The body of a reply that the fault origin has chosen but not sent yet: its range of the
/// resource's content, its framing, and its rate limit.
#[derive(Clone, Debug)]
pub(super) struct PlannedReplyBody {
    /// The index of this body in [`FaultyRequestLog::bodies`].
    pub(super) number: usize,
    pub(super) start: u64,
    /// The number of bytes of the resource's content to send, before a content coding or chunked
    /// framing is applied. A break of the fault plan may end the body earlier.
    pub(super) len: u64,
    pub(super) seed: u64,
    pub(super) framing: PlannedFraming,
    pub(super) rate: Option<u64>,
    /// True if the head announces a length that differs from the length sent. The connection must
    /// then be closed after the body.
    pub(super) close: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlannedFraming {
    Length,
    /// The body has no announced length. HTTP/1 sends it in chunks.
    Chunked,
    /// The body is gzip-coded and has no announced length.
    Gzip,
}

impl FaultyResource {
    pub(super) fn new(plan: FaultPlan) -> FaultyResource {
        let account = ResourceRequestHistory { met: vec![0; plan.breaks.len()], ..ResourceRequestHistory::default() };
        FaultyResource { plan, account: Mutex::new(account) }
    }

    pub(super) fn seen(&self) -> FaultyRequestLog {
        self.lock_history().seen.clone()
    }

    fn lock_history(&self) -> MutexGuard<'_, ResourceRequestHistory> {
        lock(&self.account)
    }

    /// Chooses the reply to a request that arrived on the connection with this number, and records
    /// the request.
    pub(super) fn answer(&self, request: &FaultyOriginRequest, connection: u64) -> PlannedReply {
        let mut account = self.lock_history();
        let account = &mut *account;
        if !account.connections.contains(&connection) {
            account.connections.push(connection);
            account.seen.connections += 1;
        }
        let version = u8::from(self.has_changed(account));
        account.first.get_or_insert_with(Instant::now);
        let (status, reply) = self.decide(request, account, version);
        account.seen.requests.push(AnsweredRequest {
            connection,
            range: request.range.clone(),
            if_range: request.if_range.clone(),
            status,
        });
        reply
    }

    fn has_changed(&self, account: &ResourceRequestHistory) -> bool {
        match self.plan.change {
            None => false,
            Some(ContentChangeTrigger::Bytes(bytes)) => account.seen.sent() >= bytes,
            Some(ContentChangeTrigger::Requests(count)) => account.seen.requests.len() as u64 >= count,
            Some(ContentChangeTrigger::Time(time)) => account.first.is_some_and(|first| first.elapsed() >= time),
        }
    }

    fn decide(
        &self,
        request: &FaultyOriginRequest,
        account: &mut ResourceRequestHistory,
        version: u8,
    ) -> (u16, PlannedReply) {
        let plan = &self.plan;
        let is_refused = (account.seen.requests.len() as u64) < plan.refuse;
        if is_refused || plan.connections.is_some_and(|most| account.under_way >= most) {
            return (0, PlannedReply::Reset);
        }
        let size = if version == 0 { plan.size } else { plan.new_size.unwrap_or(plan.size) };
        if request.range.is_some() {
            account.ranged += 1;
            if account.ranged <= plan.unavailable {
                let retry = plan.retry_after.map_or_else(String::new, |s| format!("Retry-After: {s}\r\n"));
                return (503, empty("503 Service Unavailable", &retry));
            }
        }
        let asked = match RequestedPart::from_range_field(request.range.as_deref(), size) {
            _ if plan.ignore_range => RequestedPart::Whole,
            _ if !self.matches_validator(request, version) => RequestedPart::Whole,
            RequestedPart::Part(..) if account.ranged <= plan.unavailable + plan.refuse_416 => {
                RequestedPart::Unsatisfiable
            }
            asked => asked,
        };
        let (start, end, part) = match (asked, plan.unasked_206) {
            (RequestedPart::Unsatisfiable, _) => {
                return (416, empty("416 Range Not Satisfiable", &format!("Content-Range: bytes */{size}\r\n")));
            }
            (RequestedPart::Part(start, end), _) => (start, end, true),
            (RequestedPart::Whole, Some(start)) if request.range.is_none() => (start.min(size), size, true),
            (RequestedPart::Whole, _) => (0, size, false),
        };
        let lie = if part { plan.part_length } else { plan.whole_length };
        let announced = (end - start).saturating_add_signed(lie);
        let framing = match part {
            true if plan.gzip => PlannedFraming::Gzip,
            true if plan.chunked => PlannedFraming::Chunked,
            _ => PlannedFraming::Length,
        };
        let len = match part {
            false => end - start,
            true if framing == PlannedFraming::Length => (end - start).saturating_sub(plan.short).min(announced),
            true => (end - start).saturating_sub(plan.short),
        };
        let mut head = String::from(if part { "HTTP/1.1 206 Partial Content\r\n" } else { "HTTP/1.1 200 OK\r\n" });
        self.append_validators(&mut head, version);
        if part {
            head.push_str(&content_range(start, end, size, plan.content_range));
        }
        head.push_str(match framing {
            PlannedFraming::Length => "",
            PlannedFraming::Chunked => "Transfer-Encoding: chunked\r\n",
            PlannedFraming::Gzip => "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        });
        if framing == PlannedFraming::Length {
            // Writing to a string does not fail.
            let _ = write!(head, "Content-Length: {announced}\r\n");
        }
        head.push_str("\r\n");
        let status = if part { 206 } else { 200 };
        if request.head_only {
            return (status, PlannedReply::Empty { head });
        }
        account.under_way += 1;
        account.seen.bodies.push(SentBody { start, sent: 0, version, part });
        let send = PlannedReplyBody {
            number: account.seen.bodies.len() - 1,
            start,
            len,
            seed: plan.seed.wrapping_add(u64::from(version)),
            framing,
            rate: plan.range_rate.filter(|_| request.range.is_some()).or(plan.rate),
            close: framing == PlannedFraming::Length && announced != len,
        };
        (status, PlannedReply::Body { head, send })
    }

    /// Returns `true` if the request's If-Range matches the version `version` of the content. ETags
    /// are compared strongly, dates exactly (RFC 9110 §13.1.5).
    fn matches_validator(&self, request: &FaultyOriginRequest, version: u8) -> bool {
        match &request.if_range {
            None => true,
            Some(_) if self.plan.ignore_if_range => true,
            Some(tag) if tag.starts_with('"') => self.plan.etag == EtagKind::Strong && *tag == self.entity_tag(version),
            Some(date) => *date == modified(version),
        }
    }

    fn entity_tag(&self, version: u8) -> String {
        format!("\"{:x}-{version}\"", self.plan.seed)
    }

    fn append_validators(&self, head: &mut String, version: u8) {
        let tag = match self.plan.etag {
            EtagKind::Strong => format!("ETag: {}\r\n", self.entity_tag(version)),
            EtagKind::Weak => format!("ETag: W/{}\r\n", self.entity_tag(version)),
            EtagKind::None => String::new(),
        };
        let date = httpdate::fmt_http_date(SystemTime::now());
        // Writing to a string does not fail.
        let _ = write!(
            head,
            "Date: {date}\r\nLast-Modified: {}\r\n{tag}Accept-Ranges: bytes\r\nContent-Type: application/octet-stream\r\n",
            modified(version),
        );
    }

    /// Records that `len` more bytes of the body with this index in [`FaultyRequestLog::bodies`]
    /// were sent.
    pub(super) fn count_sent(&self, number: usize, len: u64) {
        if let Some(body) = self.lock_history().seen.bodies.get_mut(number) {
            body.sent += len;
        }
    }

    /// Records that a body has reached the break with this index in the fault plan: an offset at
    /// which the origin ends or stalls a body. Returns `true` if the origin must do so now, or
    /// `false` if the break has already affected as many bodies as the plan allows
    /// ([`BodyBreak::times`](super::plan::BodyBreak::times)).
    pub(super) fn take_break(&self, number: usize) -> bool {
        let Some(met) = self.plan.breaks.get(number) else { return false };
        let mut account = self.lock_history();
        let count = &mut account.met[number];
        *count += 1;
        met.times.is_none_or(|times| *count <= times)
    }

    /// Records that a body has ended, complete or not. The number of requests in progress falls by
    /// one.
    pub(super) fn on_body_end(&self) {
        self.lock_history().under_way -= 1;
    }
}

fn empty(status: &str, fields: &str) -> PlannedReply {
    PlannedReply::Empty { head: format!("HTTP/1.1 {status}\r\n{fields}Content-Length: 0\r\n\r\n") }
}

fn modified(version: u8) -> String {
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(MODIFICATION_TIME + 3600 * u64::from(version)))
}

fn content_range(start: u64, end: u64, size: u64, lie: Option<WrongContentRange>) -> String {
    let (mut first, mut last, mut total, mut unit) = (start, end.saturating_sub(1), size, "bytes");
    match lie {
        None => {}
        Some(WrongContentRange::Start(by)) => first = first.saturating_add_signed(by),
        Some(WrongContentRange::End(by)) => last = last.saturating_add_signed(by),
        Some(WrongContentRange::Total(by)) => total = total.saturating_add_signed(by),
        Some(WrongContentRange::Unit) => unit = "octets",
        Some(WrongContentRange::Missing) => return String::new(),
    }
    format!("Content-Range: {unit} {first}-{last}/{total}\r\n")
}
