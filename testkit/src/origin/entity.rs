//! A resource of known length and validator, and the replies that conditions and ranges select from
//! it.

use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};

use super::body::{ReplyBody, Source};
use crate::pattern::Pattern;

/// A resource as a whole.
pub(super) struct Entity {
    pub(super) content: Content,
    /// With its quotes.
    pub(super) etag: String,
    pub(super) media_type: &'static str,
}

pub(super) enum Content {
    Bytes(Bytes),
    Pattern(Pattern, u64),
}

/// The part of an entity that a Range field selects (RFC 9110 section 14.1.2).
#[derive(Debug, PartialEq, Eq)]
enum Selected {
    Whole,
    Part { from: u64, to: u64 },
    Nothing,
}

impl Entity {
    fn len(&self) -> u64 {
        match &self.content {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Pattern(_, len) => *len,
        }
    }

    /// The reply to a GET or HEAD with these fields.
    pub(super) fn reply(self, request: &HeaderMap) -> Response<ReplyBody> {
        let len = self.len();
        let etag = HeaderValue::from_str(&self.etag).expect("a validator of plain ASCII");
        let is_etag = |name| request.get(name).is_some_and(|value| *value == etag);
        let mut reply = Response::builder().header(header::ETAG, &etag).header(header::ACCEPT_RANGES, "bytes");
        if is_etag(header::IF_NONE_MATCH) {
            return finish(reply.status(StatusCode::NOT_MODIFIED), Source::one(Bytes::new()));
        }
        let mut selected = request.get(header::RANGE).map_or(Selected::Whole, |value| select(value, len));
        // Weak validators never match there (RFC 9110 section 13.1.5).
        let may_match = !self.etag.starts_with("W/");
        if request.contains_key(header::IF_RANGE) && !(may_match && is_etag(header::IF_RANGE)) {
            selected = Selected::Whole;
        }
        let (from, to) = match selected {
            Selected::Whole => (0, len),
            Selected::Part { from, to } => {
                let content_range = format!("bytes {from}-{}/{len}", to - 1);
                reply = reply.status(StatusCode::PARTIAL_CONTENT).header(header::CONTENT_RANGE, content_range);
                (from, to)
            }
            Selected::Nothing => {
                let reply = reply.header(header::CONTENT_RANGE, format!("bytes */{len}"));
                return finish(reply.status(StatusCode::RANGE_NOT_SATISFIABLE), Source::one("no such range\n"));
            }
        };
        let source = match self.content {
            Content::Bytes(bytes) => Source::one(bytes.slice(from as usize..to as usize)),
            Content::Pattern(pattern, _) => Source::Pattern { pattern, from, to },
        };
        let reply = reply.header(header::CONTENT_TYPE, self.media_type).header(header::CONTENT_LENGTH, to - from);
        finish(reply, source)
    }
}

fn finish(reply: hyper::http::response::Builder, source: Source) -> Response<ReplyBody> {
    reply.body(ReplyBody::sized(source)).expect("fields that are valid by construction")
}

/// One range only; several, or an unknown unit, select the whole, as a server may (RFC 9110 section
/// 14.2).
fn select(value: &HeaderValue, len: u64) -> Selected {
    let parsed = (|| {
        let (first, last) = value.to_str().ok()?.strip_prefix("bytes=")?.split_once('-')?;
        if first.is_empty() {
            let suffix: u64 = last.parse().ok()?;
            return Some((len - suffix.min(len), len));
        }
        let from: u64 = first.parse().ok()?;
        let to = if last.is_empty() { len } else { last.parse::<u64>().ok()?.checked_add(1)? };
        (from < to || last.is_empty()).then_some((from, to.min(len)))
    })();
    match parsed {
        None => Selected::Whole,
        Some((from, to)) if from < to => Selected::Part { from, to },
        Some(_) => Selected::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let part = |from, to| Selected::Part { from, to };
        for (text, expected) in [
            ("bytes=0-0", part(0, 1)),
            ("bytes=5-", part(5, 10)),
            ("bytes=5-99", part(5, 10)),
            ("bytes=-3", part(7, 10)),
            ("bytes=-99", part(0, 10)),
            ("bytes=-0", Selected::Nothing),
            ("bytes=10-", Selected::Nothing),
            ("bytes=10-11", Selected::Nothing),
            ("bytes=5-4", Selected::Whole),
            ("bytes=0-0,2-2", Selected::Whole),
            ("lines=0-0", Selected::Whole),
            ("bytes=0-18446744073709551615", Selected::Whole),
        ] {
            assert_eq!(select(&HeaderValue::from_static(text), 10), expected, "{text}");
        }
    }
}
