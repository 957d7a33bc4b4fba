//! Determines the length of a response's body, and whether the connection can be used afterwards
//! (RFC 9112 §6.3, §9.3).
//!
//! | response | length of its body | connection afterwards |
//! |---|---|---|
//! | to HEAD; 204; 304 | none, whatever the fields say | by the keep-alive rules |
//! | `Transfer-Encoding: chunked` | chunks | by the keep-alive rules; closed in HTTP/1.0 |
//! | `Transfer-Encoding: chunked` and Content-Length | chunks | closed |
//! | `Transfer-Encoding: identity, chunked` | chunks | closed |
//! | `Transfer-Encoding: chunked, chunked` | error; chunks with [`H1Deviations::tolerant`](super::H1Deviations::tolerant) | closed |
//! | `Transfer-Encoding: identity` | as if the field were absent | closed if there is a Content-Length |
//! | any other Transfer-Encoding | error | |
//! | one Content-Length, or equal ones (`42, 42`) | that length | by the keep-alive rules |
//! | any other Content-Length | error | |
//! | neither | until the connection ends | closed |
//!
//! A coding such as `gzip, chunked` is an error unless the request's TE asked for a coding, or
//! [`H1Deviations::codings`](super::H1Deviations::codings) is set: to deliver the coded bytes as
//! the body would be a false success. If the coding is allowed, the last coding determines the end
//! of the body: after the last chunk if it is `chunked`, otherwise at the close, even with a
//! Content-Length.

use super::error::{H1Error, TransferCodingFault};
use super::{CloseReason, ContentLengthFault, H1Config, ResponseBodyFraming};
use crate::request_id_and_body_framing::{ResponseFramingContext, parse_content_length};
use crate::response_error::ResponseError;
use crate::response_head::{ProtocolVersion, ResponseHead};
use crate::syntax::{equals_lower_case, list_elements};

/// Returns the framing of a final response that is not a tunnel. Also returns the reason to close
/// the connection afterwards, or `None` if it may be reused. `asks_coding` is true if the request's
/// TE asked for a transfer coding.
///
/// With [`H1Deviations::ignore_length`](super::H1Deviations::ignore_length), Content-Length is
/// ignored.
pub(crate) fn response_framing(
    head: &ResponseHead,
    response_to: ResponseFramingContext,
    asks_coding: bool,
    config: &H1Config,
) -> Result<(ResponseBodyFraming, Option<CloseReason>), H1Error> {
    let H1Config { deviations, is_proxy, .. } = *config;
    let mut length = None;
    let mut coding = None;
    let mut connection = ConnectionFieldTokens::default();
    let bodiless = response_to == ResponseFramingContext::Head || matches!(head.status(), 204 | 304);
    // The length of a name excludes nearly all others before any letter is compared.
    for (name, value) in head.fields_of_length(|len| matches!(len, 10 | 14 | 16 | 17)) {
        match name.len() {
            10 if equals_lower_case(name, b"connection") => connection.read(value),
            14 if !bodiless && !deviations.ignore_length && equals_lower_case(name, b"content-length") => {
                let one = parse_content_length(value).map_err(ResponseError::ContentLength)?;
                if length.is_some_and(|known| known != one) {
                    return Err(H1Error::Response(ResponseError::ContentLength(ContentLengthFault::Conflicting)));
                }
                length = Some(one);
            }
            16 if is_proxy && equals_lower_case(name, b"proxy-connection") => connection.read(value),
            17 if !bodiless && equals_lower_case(name, b"transfer-encoding") => {
                let accepted = AcceptedTransferCodings {
                    others: asks_coding || deviations.codings || deviations.raw,
                    repeated: deviations.tolerant,
                };
                coding.get_or_insert_with(TransferCodings::default).read(value, accepted)?;
            }
            _ => {}
        }
    }
    let old = head.version() == ProtocolVersion::Http10;
    let kept = match connection {
        ConnectionFieldTokens { close: true, .. } => Some(CloseReason::ServerClose),
        ConnectionFieldTokens { keep_alive: false, .. } if old => Some(CloseReason::Http10),
        _ => None,
    };
    let is_loose = coding.is_some_and(|codings: TransferCodings| codings.is_loose);
    let (framing, faulty) = match (coding.map(|codings| codings.last), length) {
        _ if bodiless => (ResponseBodyFraming::None, None),
        (Some(LastCoding::Unnamed), _) => return Err(H1Error::TransferCoding(TransferCodingFault::Empty)),
        (Some(LastCoding::Chunked), Some(_)) => (ResponseBodyFraming::Chunked, Some(CloseReason::LengthAndCoding)),
        (Some(LastCoding::Chunked), None) if is_loose => {
            (ResponseBodyFraming::Chunked, Some(CloseReason::LooseFraming))
        }
        (Some(LastCoding::Chunked), None) => (ResponseBodyFraming::Chunked, old.then_some(CloseReason::CodingInHttp10)),
        (Some(LastCoding::Identity), Some(length)) => {
            (ResponseBodyFraming::Length(length), Some(CloseReason::LengthAndCoding))
        }
        // The caller wants the bytes as they are, and the codings do not frame them.
        (Some(LastCoding::Other), Some(length)) if deviations.raw && deviations.tolerant => {
            (ResponseBodyFraming::Length(length), Some(CloseReason::LengthAndCoding))
        }
        (Some(LastCoding::Other), _) => (ResponseBodyFraming::UntilClose, Some(CloseReason::UntilClose)),
        (None, Some(length)) => (ResponseBodyFraming::Length(length), None),
        (Some(LastCoding::Identity) | None, None) => (ResponseBodyFraming::UntilClose, Some(CloseReason::UntilClose)),
    };
    Ok((framing, faulty.or(kept)))
}

/// The last transfer coding in the Transfer-Encoding fields, as far as it determines the framing.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
enum LastCoding {
    /// The Transfer-Encoding field is present but names no coding.
    #[default]
    Unnamed,
    Identity,
    Chunked,
    /// A transfer coding other than chunked. The reader of the body must decode it.
    Other,
}

/// The transfer codings found so far in the Transfer-Encoding fields. Several such fields form one
/// list (RFC 9110 §5.3).
#[derive(Copy, Clone, Default)]
struct TransferCodings {
    last: LastCoding,
    /// True if the list of transfer codings contains `chunked` twice, or `identity`, which RFC 9112
    /// removed. Such a list is accepted, but the connection is not reused.
    is_loose: bool,
}

/// The transfer codings that are accepted in addition to `identity` and one `chunked`.
#[derive(Copy, Clone)]
struct AcceptedTransferCodings {
    /// True to accept codings other than `chunked` and `identity`.
    others: bool,
    /// True to accept `chunked` more than once; the body is decoded as chunked once.
    repeated: bool,
}

impl TransferCodings {
    fn read(&mut self, value: &[u8], accepted: AcceptedTransferCodings) -> Result<(), H1Error> {
        for element in list_elements(value) {
            let one = if element.eq_ignore_ascii_case(b"chunked") {
                LastCoding::Chunked
            } else if element.eq_ignore_ascii_case(b"identity") {
                LastCoding::Identity
            } else if accepted.others {
                LastCoding::Other
            } else {
                return Err(H1Error::TransferCoding(TransferCodingFault::Unsupported));
            };
            self.is_loose |= one == LastCoding::Identity;
            self.last = match (self.last, one) {
                (LastCoding::Chunked, LastCoding::Chunked) if accepted.repeated => {
                    self.is_loose = true;
                    LastCoding::Chunked
                }
                (LastCoding::Chunked, LastCoding::Chunked) => {
                    return Err(H1Error::TransferCoding(TransferCodingFault::Repeated));
                }
                // What stands behind chunked would be coded chunks, and not the other way round
                // (RFC 9112 §7.1).
                (LastCoding::Chunked, _) => return Err(H1Error::TransferCoding(TransferCodingFault::Unsupported)),
                // It changes nothing.
                (LastCoding::Other, LastCoding::Identity) => LastCoding::Other,
                (_, one) => one,
            };
        }
        Ok(())
    }
}

/// The tokens of a response's Connection fields that decide whether the connection stays open.
#[derive(Copy, Clone, Default)]
pub(crate) struct ConnectionFieldTokens {
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
}

impl ConnectionFieldTokens {
    pub(crate) fn read(&mut self, value: &[u8]) {
        // The most common values.
        if value == b"keep-alive" {
            self.keep_alive = true;
            return;
        }
        for token in list_elements(value) {
            self.close |= token.eq_ignore_ascii_case(b"close");
            self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
        }
    }
}
