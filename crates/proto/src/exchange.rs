//! The progress of one exchange, a request and its response, on a stream of HTTP/2 or HTTP/3.

use crate::request::BodyLength;
use crate::request_id_and_body_framing::{
    BodyFraming, ContentLengthFault, ResponseFramingContext, parse_content_length,
};
use crate::response_error::ResponseError;
use crate::response_head::ResponseHead;

/// The part of a request's body that the caller has not given to the machine yet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum RemainingRequestBody {
    /// The caller gave all of the body, and the end of the stream is in the output.
    Finished,
    Known {
        left: u64,
    },
    Open,
    /// The server does not want the rest of the request body, and the client has not ended the
    /// request stream.
    Abandoned,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum ResponsePhase {
    Head,
    /// The body of the response. `expected` is its Content-Length, if the response has one. `none`
    /// is true if the response cannot have a body.
    Body {
        expected: Option<u64>,
        got: u64,
        none: bool,
    },
    /// The response is complete, but its request is not: the server continues to read the request.
    Ended,
}

impl RemainingRequestBody {
    /// Returns the initial state of a request with this body.
    pub(crate) fn new(body: BodyLength) -> RemainingRequestBody {
        match body {
            BodyLength::None | BodyLength::Known(0) => RemainingRequestBody::Finished,
            BodyLength::Known(left) => RemainingRequestBody::Known { left },
            BodyLength::Chunked => RemainingRequestBody::Open,
        }
    }
}

/// The body that the head of a final response announces (RFC 9110 §6.4, §8.6).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct AnnouncedBody {
    /// The Content-Length of the response, if it has a body and the field.
    pub(crate) expected: Option<u64>,
    /// True if the response cannot have a body.
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

    /// Returns the framing of the body. `ended` is true if the stream ends with the head.
    pub(crate) fn framing(&self, ended: bool) -> BodyFraming {
        match self.expected {
            _ if self.none => BodyFraming::None,
            Some(length) => BodyFraming::Length(length),
            None if ended => BodyFraming::Length(0),
            None => BodyFraming::Chunked,
        }
    }
}
