//! The progress of one exchange, a request and its response, on a stream of HTTP/2 or HTTP/3.

use crate::request::BodyLength;
use crate::request_id_and_body_framing::{
    ContentLengthFault, ResponseBodyFraming, ResponseFramingContext, parse_content_length,
};
use crate::response_error::ResponseError;
use crate::response_head::ResponseHead;

/// The part of a request's body that the caller has not passed to the state machine yet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum RemainingRequestBody {
    /// The caller has passed all of the body, and the end of the request stream is in the output.
    Finished,
    Known {
        left: u64,
    },
    Open,
    /// The server does not want the rest of the request body. The client has not ended the request
    /// stream yet.
    Abandoned,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum ResponsePhase {
    Head,
    /// The body of the response is being received. `expected` is its Content-Length, if the
    /// response has one. `got` is the number of bytes received. `none` is true if the response
    /// cannot have a body.
    Body {
        expected: Option<u64>,
        got: u64,
        none: bool,
    },
    /// The response is complete, but the request is not: the client continues to send the request.
    Ended,
}

impl RemainingRequestBody {
    /// Returns the initial state for a request with a body of this length.
    pub(crate) fn new(body: BodyLength) -> RemainingRequestBody {
        match body {
            BodyLength::None | BodyLength::Known(0) => RemainingRequestBody::Finished,
            BodyLength::Known(left) => RemainingRequestBody::Known { left },
            BodyLength::Chunked => RemainingRequestBody::Open,
        }
    }
}

/// The body that follows the head of a final response, as far as the head determines it (RFC 9110
/// §6.4, §8.6).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct AnnouncedBody {
    /// The Content-Length of the response; `None` without that field, and for a response without a
    /// body.
    pub(crate) expected: Option<u64>,
    /// True if the response cannot have a body: it answers HEAD, or is a 204 or 304.
    pub(crate) none: bool,
    /// True if the response makes the stream a tunnel, which has no length (RFC 9110 §9.3.6).
    pub(crate) tunnel: bool,
}

impl AnnouncedBody {
    pub(crate) fn new(
        head: &ResponseHead,
        response_to: ResponseFramingContext,
    ) -> Result<AnnouncedBody, ResponseError> {
        let status = head.status();
        let tunnel = response_to == ResponseFramingContext::Connect && status < 300;
        let none = response_to == ResponseFramingContext::Head || matches!(status, 204 | 304);
        let mut expected = None;
        if !none && !tunnel {
            for value in head.get_all("content-length") {
                let one = parse_content_length(value).map_err(ResponseError::ContentLength)?;
                if expected.is_some_and(|known| known != one) {
                    return Err(ResponseError::ContentLength(ContentLengthFault::Conflicting));
                }
                expected = Some(one);
            }
        }
        Ok(AnnouncedBody { expected, none, tunnel })
    }

    /// Returns the framing of the response's body. `ended` is true if the stream ends with the
    /// head.
    pub(crate) fn framing(&self, ended: bool) -> ResponseBodyFraming {
        match self.expected {
            _ if self.none => ResponseBodyFraming::None,
            Some(length) => ResponseBodyFraming::Length(length),
            None if ended => ResponseBodyFraming::Length(0),
            None => ResponseBodyFraming::Chunked,
        }
    }
}
