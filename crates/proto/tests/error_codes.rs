//! Tests of errors: their codes, and the ends of connections that are no faults of the peer.

use haul_proto::h1::{ChunkFault, FieldLineFault, H1Error};
use haul_proto::h2::{ErrorCode, FloodKind, FrameFault, H2Error, ResetReason};
use haul_proto::h3::{H3Error, H3ErrorCode, H3FloodKind, H3FrameFault, H3IllegalStreamOpenOrClose, H3ResetReason};
use haul_proto::hpack::HpackError;
use haul_proto::qpack::{QpackError, QpackFault};
use haul_proto::{CloseReason, ContentLengthFault, ResponseError, SendRequestError};

const LIMITS: [ResponseError; 5] = [
    ResponseError::HeadTooLarge { limit: 1 },
    ResponseError::TooManyFields { limit: 1 },
    ResponseError::TooManyInterim { limit: 1 },
    ResponseError::TrailersTooLarge { limit: 1 },
    ResponseError::TooManyTrailers { limit: 1 },
];
const ENDS: [ResponseError; 3] =
    [ResponseError::EndedIdle, ResponseError::EndedBeforeResponse, ResponseError::Closed(CloseReason::PeerClosed)];

#[test]
fn h2_errors_have_the_codes_of_rfc9113() {
    let cases = [
        (H2Error::FrameSize { kind: 6, length: 9 }, ErrorCode::FRAME_SIZE_ERROR),
        (H2Error::Frame(FrameFault::ClosedStream), ErrorCode::STREAM_CLOSED),
        (H2Error::Hpack(HpackError::Truncated), ErrorCode::COMPRESSION_ERROR),
        (H2Error::FlowControl, ErrorCode::FLOW_CONTROL_ERROR),
        (H2Error::WindowOverflow, ErrorCode::FLOW_CONTROL_ERROR),
        (H2Error::Setting { id: 4, value: 1 << 31 }, ErrorCode::FLOW_CONTROL_ERROR),
        (H2Error::Setting { id: 5, value: 1 }, ErrorCode::PROTOCOL_ERROR),
        (H2Error::Flood { kind: FloodKind::Ping, limit: 1 }, ErrorCode::ENHANCE_YOUR_CALM),
        (H2Error::SettingsTimeout, ErrorCode::SETTINGS_TIMEOUT),
        (H2Error::PingTimeout, ErrorCode::NO_ERROR),
        (H2Error::EndedInRequest, ErrorCode::NO_ERROR),
        (H2Error::EndedInResponse { open: 1 }, ErrorCode::NO_ERROR),
        (H2Error::UnexpectedBody, ErrorCode::PROTOCOL_ERROR),
    ];
    for (error, code) in cases {
        assert_eq!(error.code(), code, "{error}");
    }
    let malformed = ResponseError::ContentLength(ContentLengthFault::Malformed);
    assert_eq!(H2Error::from(malformed).code(), ErrorCode::PROTOCOL_ERROR);
    assert_eq!(H3Error::from(malformed).code(), H3ErrorCode::MESSAGE_ERROR);
    LIMITS.iter().for_each(|error| assert_eq!(H2Error::from(*error).code(), ErrorCode::ENHANCE_YOUR_CALM));
    ENDS.iter().for_each(|error| assert_eq!(H2Error::from(*error).code(), ErrorCode::NO_ERROR));
}

#[test]
fn h3_errors_have_the_codes_of_rfc9114() {
    let cases = [
        (H3Error::Frame(H3FrameFault::MissingSettings), H3ErrorCode::MISSING_SETTINGS),
        (H3Error::Frame(H3FrameFault::Layout { kind: 4 }), H3ErrorCode::FRAME_ERROR),
        (H3Error::Frame(H3FrameFault::Truncated), H3ErrorCode::FRAME_ERROR),
        (H3Error::Frame(H3FrameFault::GoAwayId), H3ErrorCode::ID_ERROR),
        (H3Error::Frame(H3FrameFault::DataBeforeHead), H3ErrorCode::FRAME_UNEXPECTED),
        (H3Error::FrameTooLarge { kind: 1, length: 2, limit: 1 }, H3ErrorCode::EXCESSIVE_LOAD),
        (H3Error::PartialHeads { limit: 1 }, H3ErrorCode::EXCESSIVE_LOAD),
        (H3Error::Flood { kind: H3FloodKind::EmptyData, limit: 1 }, H3ErrorCode::EXCESSIVE_LOAD),
        (H3Error::Stream(H3IllegalStreamOpenOrClose::ClosedCritical), H3ErrorCode::CLOSED_CRITICAL_STREAM),
        (H3Error::Stream(H3IllegalStreamOpenOrClose::Duplicate), H3ErrorCode::STREAM_CREATION_ERROR),
        (H3Error::Qpack(QpackError::Section(QpackFault::Truncated)), H3ErrorCode::QPACK_DECOMPRESSION_FAILED),
        (H3Error::Qpack(QpackError::EncoderStream(QpackFault::Truncated)), H3ErrorCode::QPACK_ENCODER_STREAM_ERROR),
        (H3Error::Qpack(QpackError::DecoderStream(QpackFault::Truncated)), H3ErrorCode::QPACK_DECODER_STREAM_ERROR),
        (H3Error::Setting { id: 2 }, H3ErrorCode::SETTINGS_ERROR),
        (H3Error::Push, H3ErrorCode::ID_ERROR),
        (H3Error::EndedInResponse { open: 1 }, H3ErrorCode::NO_ERROR),
        (H3Error::Length { expected: 2, got: 1 }, H3ErrorCode::MESSAGE_ERROR),
        (H3Error::MissingHead, H3ErrorCode::MESSAGE_ERROR),
    ];
    for (error, code) in cases {
        assert_eq!(error.code(), code, "{error}");
    }
    LIMITS.iter().for_each(|error| assert_eq!(H3Error::from(*error).code(), H3ErrorCode::EXCESSIVE_LOAD));
    ENDS.iter().for_each(|error| assert_eq!(H3Error::from(*error).code(), H3ErrorCode::NO_ERROR));
}

#[test]
fn ends_before_a_response_are_early_ends() {
    for error in [ResponseError::EndedIdle, ResponseError::EndedBeforeResponse] {
        assert!(H1Error::from(error).is_early_end());
        assert!(H2Error::from(error).is_early_end() && H2Error::from(error).is_before_response());
        assert!(H3Error::from(error).is_early_end() && H3Error::from(error).is_before_response());
    }
    for error in LIMITS {
        assert!(!H1Error::from(error).is_early_end());
        assert!(!H2Error::from(error).is_early_end() && !H2Error::from(error).is_before_response());
        assert!(!H3Error::from(error).is_early_end() && !H3Error::from(error).is_before_response());
    }
}

#[test]
fn ends_within_a_response_are_early_ends() {
    let early = [
        H1Error::EndedInRequest,
        H1Error::EndedInStatusLine { got: 1 },
        H1Error::EndedInHead { got: 1 },
        H1Error::EndedInBody { expected: 2, got: 1 },
        H1Error::EndedInChunks { got: 1 },
        H1Error::EndedUncleanly { got: 1 },
    ];
    early.iter().for_each(|error| assert!(error.is_early_end(), "{error}"));
    assert!(!H1Error::UnsolicitedBytes.is_early_end());
    for error in [H2Error::EndedInRequest, H2Error::EndedInResponse { open: 1 }, H2Error::PingTimeout] {
        assert!(error.is_early_end() && !error.is_before_response(), "{error}");
    }
    assert!(!H2Error::SettingsTimeout.is_early_end());
    let ended = H3Error::EndedInResponse { open: 1 };
    assert!(ended.is_early_end() && !ended.is_before_response());
    assert!(!H3Error::MissingHead.is_early_end() && !H3Error::MissingHead.is_before_response());
}

/// Checks that no two close reasons have the same text.
#[test]
fn close_reasons_say_who_closed() {
    let reasons = [
        CloseReason::ServerClose,
        CloseReason::ClientClose,
        CloseReason::Http10,
        CloseReason::UntilClose,
        CloseReason::LengthAndCoding,
        CloseReason::CodingInHttp10,
        CloseReason::LooseFraming,
        CloseReason::RequestUnfinished,
        CloseReason::UnsolicitedBytes,
        CloseReason::PeerClosed,
        CloseReason::Broken,
        CloseReason::Tunnel,
        CloseReason::GoAway(ErrorCode::ENHANCE_YOUR_CALM),
        CloseReason::Local,
        CloseReason::StreamsExhausted,
    ];
    let texts: std::collections::BTreeSet<String> = reasons.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), reasons.len(), "{texts:?}");
    assert_eq!(CloseReason::PeerClosed.to_string(), "the server closed it");
    assert_eq!(
        CloseReason::GoAway(ErrorCode::ENHANCE_YOUR_CALM).to_string(),
        "the server went away: ENHANCE_YOUR_CALM"
    );
    assert_eq!(ErrorCode(0x99).to_string(), "error 0x99");
    assert_eq!(H3ErrorCode(0x99).to_string(), "error 0x99");
    assert_ne!(H3ErrorCode::NO_ERROR.to_string(), H3ErrorCode::EXCESSIVE_LOAD.to_string());
}

#[test]
fn field_errors_have_the_index_of_the_field() {
    let faults = [
        SendRequestError::FieldName { index: 1 },
        SendRequestError::FieldValue { index: 1 },
        SendRequestError::FramingField { index: 1 },
    ];
    assert_eq!(faults.map(|error| error.field_index()), [Some(1); 3]);
    assert_eq!(SendRequestError::BodyPending.field_index(), None);
}

#[test]
fn h1_faults_differ_in_their_texts() {
    let field = [FieldLineFault::Name, FieldLineFault::Value, FieldLineFault::LineEnd, FieldLineFault::Folded];
    let chunk = [
        ChunkFault::Size,
        ChunkFault::SizeEnd,
        ChunkFault::SizeOverflow,
        ChunkFault::SizeSpaced,
        ChunkFault::BareCr,
        ChunkFault::Extension,
        ChunkFault::DataEnd,
    ];
    check_texts(&field.map(|fault| (fault, "")));
    check_texts(&chunk.map(|fault| (fault, "")));
    check_texts(&[
        (H1Error::UnexpectedUpgrade, "switched protocols"),
        (H1Error::ChunkLineTooLong { limit: 7 }, "chunk-size line above the limit of 7 bytes"),
        (H1Error::ChunkExtensionsTooLarge { limit: 7 }, "extensions above the limit of 7 bytes"),
        (H1Error::UnsolicitedBytes, "no request"),
        (H1Error::EndedInRequest, "all of the request"),
        (H1Error::EndedInStatusLine { got: 7 }, "status line, after 7 bytes"),
        (H1Error::EndedInHead { got: 7 }, "head, after 7 bytes"),
        (H1Error::EndedInBody { expected: 9, got: 7 }, "7 of 9 bytes"),
        (H1Error::EndedInChunks { got: 7 }, "last chunk, after 7 bytes"),
        (H1Error::EndedUncleanly { got: 7 }, "end mark after 7 bytes"),
    ]);
    check_texts(&[(ENDS[0], "idle connection"), (ENDS[1], "without a response"), (ENDS[2], "the server closed it")]);
}

/// Checks that each text contains the detail beside it, and that no two texts are equal.
fn check_texts<E: ToString>(errors: &[(E, &str)]) {
    let texts: Vec<String> = errors.iter().map(|(error, _)| error.to_string()).collect();
    for (number, (text, (_, detail))) in texts.iter().zip(errors).enumerate() {
        assert!(!text.is_empty() && text.contains(detail) && !texts[..number].contains(text), "{text}: {detail}");
    }
}

#[test]
fn h2_faults_differ_in_their_texts() {
    check_texts(&[
        (FrameFault::StreamZero, "stream 0"),
        (FrameFault::NotStreamZero, "on a stream"),
        (FrameFault::IdleStream, "never opened"),
        (FrameFault::ClosedStream, "ended"),
        (FrameFault::Interleaved, "header block"),
        (FrameFault::StrayContinuation, "continuation"),
        (FrameFault::Padding, "padding"),
        (FrameFault::DataBeforeHead, "before its head"),
        (FrameFault::HeadInBody, "second head"),
        (FrameFault::HeadersInTunnel, "tunnel"),
        (FrameFault::InterimEnd, "interim"),
    ]);
    check_texts(&[
        (FloodKind::Ping, "PING"),
        (FloodKind::Settings, "SETTINGS"),
        (FloodKind::EmptyData, "DATA"),
        (FloodKind::WindowUpdate, "WINDOW_UPDATE"),
        (FloodKind::Priority, "PRIORITY"),
        (FloodKind::Reset, "RST_STREAM"),
        (FloodKind::GoAway, "GOAWAY"),
        (FloodKind::Continuation, "CONTINUATION"),
        (FloodKind::Unknown, "unknown"),
        (FloodKind::Unread, "unread"),
    ]);
    check_texts(&[
        (ResetReason::Peer(ErrorCode::CANCEL), "reset the stream: CANCEL"),
        (ResetReason::InRequest(ErrorCode::CANCEL), "before it had all of the request: CANCEL"),
        (ResetReason::GoAway(ErrorCode::CANCEL), "went away before this request: CANCEL"),
        (ResetReason::Violation(H2Error::FlowControl), "more than the window"),
    ]);
}

#[test]
fn h3_faults_differ_in_their_texts() {
    check_texts(&[
        (H3FrameFault::WrongStream { kind: 0x21 }, "0x21"),
        (H3FrameFault::Layout { kind: 0x21 }, "0x21"),
        (H3FrameFault::MissingSettings, "before its settings"),
        (H3FrameFault::SecondSettings, "twice"),
        (H3FrameFault::Truncated, "ends early"),
        (H3FrameFault::DataBeforeHead, "before its head"),
        (H3FrameFault::AfterTrailers, "trailers"),
        (H3FrameFault::GoAwayId, "GOAWAY"),
    ]);
    check_texts(&[
        (H3IllegalStreamOpenOrClose::Duplicate, "second"),
        (H3IllegalStreamOpenOrClose::ServerBidirectional, "bidirectional"),
        (H3IllegalStreamOpenOrClose::ClosedCritical, "closed"),
    ]);
    check_texts(&[
        (H3FloodKind::UnknownFrame, "unknown frames"),
        (H3FloodKind::UnknownStream, "unknown streams"),
        (H3FloodKind::EmptyData, "DATA"),
        (H3FloodKind::GoAway, "GOAWAY"),
        (H3FloodKind::CancelPush, "CANCEL_PUSH"),
        (H3FloodKind::TableChange, "table changes"),
        (H3FloodKind::StreamCancellation, "cancellations"),
        (H3FloodKind::Unread, "acknowledgements"),
    ]);
    check_texts(&[
        (H3ResetReason::Peer(H3ErrorCode::NO_ERROR), "reset the stream"),
        (H3ResetReason::GoAway, "went away"),
        (H3ResetReason::Violation(H3Error::MissingHead), "without a response"),
    ]);
}

#[test]
fn compression_faults_differ_in_their_texts() {
    check_texts(&[
        (HpackError::Truncated, "ends within"),
        (HpackError::Integer, "32 bits"),
        (HpackError::Index { index: 70 }, "entry 70"),
        (HpackError::Huffman, "Huffman"),
        (HpackError::TableSize { size: 5, limit: 4 }, "5 bytes where 4"),
        (HpackError::LateTableSize, "behind a field"),
        (HpackError::MissingTableSize, "does not lower"),
    ]);
    check_texts(&[
        (QpackFault::Truncated, "ends within"),
        (QpackFault::Integer, "63 bits"),
        (QpackFault::Index { index: 70 }, "entry 70"),
        (QpackFault::Huffman, "Huffman"),
        (QpackFault::Prefix, "impossible number"),
        (QpackFault::BlockedStreams { limit: 3 }, "more than 3 streams"),
        (QpackFault::Capacity { size: 5, limit: 4 }, "5 bytes where 4"),
        (QpackFault::EntryTooLarge, "larger than the table"),
        (QpackFault::Acknowledgement { stream: 8 }, "stream 8"),
        (QpackFault::Increment { increment: 9 }, "9 insertions"),
    ]);
    check_texts(&[
        (QpackError::Section(QpackFault::Prefix), "field section: it needs"),
        (QpackError::EncoderStream(QpackFault::Prefix), "insertion: it needs"),
        (QpackError::DecoderStream(QpackFault::Prefix), "acknowledgement: it needs"),
    ]);
}

#[test]
fn request_errors_count_headers_from_one() {
    check_texts(&[
        (SendRequestError::FieldName { index: 1 }, "name of header 2"),
        (SendRequestError::FieldValue { index: 1 }, "value of header 2"),
        (SendRequestError::FramingField { index: 1 }, "header 2"),
        (SendRequestError::PipelineFull { limit: 7 }, "limit of 7"),
        (SendRequestError::HeadTooLarge { limit: 7 }, "7 bytes"),
        (SendRequestError::BodyTooLong { expected: 7 }, "7 bytes"),
        (SendRequestError::BodyTooShort { missing: 7 }, "7 bytes"),
        (SendRequestError::NoWindow, "window"),
        (SendRequestError::Method, "method"),
        (SendRequestError::Closed(CloseReason::Local), "connection is closed"),
        (SendRequestError::BodyPending, "body of the one before"),
        (SendRequestError::TunnelPending, "tunnel"),
        (SendRequestError::TooManyStreams { limit: 8 }, "limit of 8"),
        (SendRequestError::StreamIdentifier, "QUIC stream"),
        (SendRequestError::UnknownRequest, "no such request"),
        (SendRequestError::NoBodyExpected, "none is expected"),
        (SendRequestError::TrailersWithoutChunks, "trailers"),
        (SendRequestError::ChunksInHttp10, "HTTP/1.0"),
    ]);
    check_texts(&LIMITS.map(|error| (error, "limit of 1")));
}
