//! Records the requests for a name and the bytes sent, so that a test can check which bytes a
//! client fetched twice.

use std::ops::Range;

use serde_json::{Value, json};

/// The requests for one resource of the fault origin (`/f/NAME`), and the bodies sent for them;
/// returned by [`FaultyOrigin::seen`](super::FaultyOrigin::seen).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultyRequestLog {
    /// The number of connections on which a client requested this resource.
    pub connections: u64,
    /// The requests, in the order of their arrival.
    pub requests: Vec<AnsweredRequest>,
    /// The bodies, in the order of their requests. Refused requests have no body.
    pub bodies: Vec<SentBody>,
}

/// A request and the status of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweredRequest {
    /// The number of the connection. The origin counts connections from 0.
    pub connection: u64,
    /// The value of the Range field; `None` without that field.
    pub range: Option<String>,
    /// The value of the If-Range field; `None` without that field.
    pub if_range: Option<String>,
    /// The status code of the response; 0 if the origin reset the connection or refused the stream.
    pub status: u16,
}

/// The log entry of a response body: the offset in the resource's content at which the body begins,
/// the number of bytes sent so far, and the version of the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentBody {
    /// The offset of the response body's first byte in the source (the whole body).
    pub start: u64,
    /// The number of bytes of the source that were written to the socket. A client that closed
    /// early has received fewer.
    pub sent: u64,
    /// The version of the content: 0 before the planned change of the content, 1 after it.
    pub version: u8,
    /// True for the body of a 206.
    pub part: bool,
}

impl FaultyRequestLog {
    /// Returns the total number of bytes of the resource's content that were sent in all bodies. A
    /// byte sent twice counts twice.
    pub fn sent(&self) -> u64 {
        self.bodies.iter().map(|body| body.sent).sum()
    }

    /// Returns the number of repeated bytes: a byte that was sent three times counts as two. If the
    /// fault plan changes the resource's content, a byte before the change and a byte after it are
    /// different bytes, even at the same offset.
    pub fn twice(&self) -> u64 {
        let mut spans: Vec<_> =
            self.bodies.iter().map(|body| (body.version, body.start, body.start + body.sent)).collect();
        spans.sort_unstable();
        let (mut distinct, mut covered) = (0, (0, 0));
        for (version, start, end) in spans {
            let from = if covered.0 == version { start.max(covered.1) } else { start };
            distinct += end.saturating_sub(from);
            covered = (version, if covered.0 == version { covered.1.max(end) } else { end });
        }
        self.sent() - distinct
    }

    /// Returns the number of bytes that were sent from this range of offsets. A byte sent twice
    /// counts twice.
    pub fn sent_within(&self, offsets: Range<u64>) -> u64 {
        let within =
            |body: &SentBody| (body.start + body.sent).min(offsets.end).saturating_sub(body.start.max(offsets.start));
        self.bodies.iter().map(within).sum()
    }

    /// Returns the JSON that the fault origin sends for `/seen/NAME`.
    pub(super) fn to_json(&self) -> Value {
        let request = |asking: &AnsweredRequest| {
            json!({
                "connection": asking.connection,
                "range": asking.range,
                "if_range": asking.if_range,
                "status": asking.status,
            })
        };
        let body = |body: &SentBody| json!({ "start": body.start, "sent": body.sent, "version": body.version, "part": body.part });
        json!({
            "connections": self.connections,
            "sent": self.sent(),
            "twice": self.twice(),
            "requests": self.requests.iter().map(request).collect::<Vec<_>>(),
            "bodies": self.bodies.iter().map(body).collect::<Vec<_>>(),
        })
    }

    /// Returns the length in bytes of the longest range with both ends (`bytes=A-B`) that a client
    /// requested; `None` if there was no such range.
    pub fn longest_part(&self) -> Option<u64> {
        let len = |asking: &AnsweredRequest| {
            let (first, last) = asking.range.as_deref()?.strip_prefix("bytes=")?.split_once('-')?;
            Some(last.parse::<u64>().ok()?.checked_sub(first.parse().ok()?)? + 1)
        };
        self.requests.iter().filter_map(len).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(bodies: &[(u64, u64, u8)]) -> FaultyRequestLog {
        let bodies =
            bodies.iter().map(|&(start, sent, version)| SentBody { start, sent, version, part: start > 0 }).collect();
        FaultyRequestLog { bodies, ..FaultyRequestLog::default() }
    }

    #[test]
    fn bytes_sent_twice_are_counted() {
        assert_eq!(seen(&[(0, 10, 0), (10, 10, 0)]).twice(), 0);
        assert_eq!(seen(&[(10, 10, 0), (0, 12, 0)]).twice(), 2);
        assert_eq!(seen(&[(0, 10, 0), (0, 10, 0), (2, 3, 0)]).twice(), 13);
        assert_eq!(seen(&[(0, 10, 0), (0, 10, 1)]).twice(), 0);
        assert_eq!(seen(&[(0, 100, 0), (10, 5, 0), (50, 70, 0)]).sent(), 175);
        assert_eq!(seen(&[(0, 100, 0), (10, 5, 0), (50, 70, 0)]).twice(), 55);
        assert_eq!(seen(&[(0, 100, 0), (10, 5, 0)]).sent_within(12..20), 11);
    }

    #[test]
    fn longest_part_counts_only_closed_ranges() {
        let asking =
            |range: &str| AnsweredRequest { connection: 0, range: Some(range.into()), if_range: None, status: 206 };
        let mut seen = FaultyRequestLog { requests: vec![asking("bytes=5-")], ..FaultyRequestLog::default() };
        assert_eq!(seen.longest_part(), None);
        seen.requests.extend([asking("bytes=0-9"), asking("bytes=100-104"), asking("bytes=9-0")]);
        assert_eq!(seen.longest_part(), Some(10));
    }
}
