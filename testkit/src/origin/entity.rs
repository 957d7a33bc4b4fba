//! A resource of known length with an entity-tag, and the replies to conditional requests and range
//! requests for it.

use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};

use super::body::{ReplyBody, RouteBodySource};
use crate::byte_pattern::BytePattern;
use crate::byte_range::RequestedPart;

/// A resource with its whole content.
pub(super) struct Entity {
    pub(super) content: EntityContent,
    /// The entity-tag, quotes included.
    pub(super) etag: String,
    pub(super) media_type: &'static str,
}

pub(super) enum EntityContent {
    Bytes(Bytes),
    Pattern(BytePattern, u64),
}

impl Entity {
    fn len(&self) -> u64 {
        match &self.content {
            EntityContent::Bytes(bytes) => bytes.len() as u64,
            EntityContent::Pattern(_, len) => *len,
        }
    }

    /// Returns the reply to a GET or HEAD for this resource. `request` contains the header fields
    /// of the request.
    pub(super) fn reply(self, request: &HeaderMap) -> Response<ReplyBody> {
        let len = self.len();
        let etag = HeaderValue::from_str(&self.etag).expect("a validator of plain ASCII");
        let is_etag = |name| request.get(name).is_some_and(|value| *value == etag);
        let mut reply = Response::builder().header(header::ETAG, &etag).header(header::ACCEPT_RANGES, "bytes");
        if is_etag(header::IF_NONE_MATCH) {
            return finish(reply.status(StatusCode::NOT_MODIFIED), RouteBodySource::single_piece(Bytes::new()));
        }
        let range = request.get(header::RANGE).and_then(|value| value.to_str().ok());
        let mut selected = RequestedPart::from_range_field(range, len);
        // Weak validators never match there (RFC 9110 section 13.1.5).
        let may_match = !self.etag.starts_with("W/");
        if request.contains_key(header::IF_RANGE) && !(may_match && is_etag(header::IF_RANGE)) {
            selected = RequestedPart::Whole;
        }
        let (from, to) = match selected {
            RequestedPart::Whole => (0, len),
            RequestedPart::Part(from, to) => {
                let content_range = format!("bytes {from}-{}/{len}", to - 1);
                reply = reply.status(StatusCode::PARTIAL_CONTENT).header(header::CONTENT_RANGE, content_range);
                (from, to)
            }
            RequestedPart::Unsatisfiable => {
                let reply = reply.header(header::CONTENT_RANGE, format!("bytes */{len}"));
                return finish(
                    reply.status(StatusCode::RANGE_NOT_SATISFIABLE),
                    RouteBodySource::single_piece("no such range\n"),
                );
            }
        };
        let source = match self.content {
            EntityContent::Bytes(bytes) => RouteBodySource::single_piece(bytes.slice(from as usize..to as usize)),
            EntityContent::Pattern(pattern, _) => RouteBodySource::Pattern { pattern, from, to },
        };
        let reply = reply.header(header::CONTENT_TYPE, self.media_type).header(header::CONTENT_LENGTH, to - from);
        finish(reply, source)
    }
}

fn finish(reply: hyper::http::response::Builder, source: RouteBodySource) -> Response<ReplyBody> {
    reply.body(ReplyBody::with_length(source)).expect("fields that are valid by construction")
}
