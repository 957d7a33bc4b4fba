//! The application error codes of HTTP/3 and QPACK.

use core::fmt;

/// An error code of a QUIC stream or connection that carries HTTP/3 (RFC 9114 §8.1, RFC 9204 §6).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct H3ErrorCode(pub u64);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal $text:literal;)*) => {
        impl H3ErrorCode {
            $($(#[$doc])* pub const $name: H3ErrorCode = H3ErrorCode($code);)*
        }

        /// Prints the name of the code as its RFC spells it.
        impl fmt::Display for H3ErrorCode {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(H3ErrorCode::$name => f.write_str($text),)*
                    H3ErrorCode(code) => write!(f, "error {code:#x}"),
                }
            }
        }
    };
}

codes! {
    /// The connection or the stream ends without an error.
    NO_ERROR = 0x100 "H3_NO_ERROR";
    /// The protocol was violated, and no other code is more specific.
    GENERAL_PROTOCOL_ERROR = 0x101 "H3_GENERAL_PROTOCOL_ERROR";
    /// The sender of the code has an internal error.
    INTERNAL_ERROR = 0x102 "H3_INTERNAL_ERROR";
    /// A stream was created that the recipient of the stream does not accept.
    STREAM_CREATION_ERROR = 0x103 "H3_STREAM_CREATION_ERROR";
    /// A stream that the connection requires was closed or reset.
    CLOSED_CRITICAL_STREAM = 0x104 "H3_CLOSED_CRITICAL_STREAM";
    /// A frame is not allowed in the state or on the stream in which it arrived.
    FRAME_UNEXPECTED = 0x105 "H3_FRAME_UNEXPECTED";
    /// A frame has a wrong layout or length.
    FRAME_ERROR = 0x106 "H3_FRAME_ERROR";
    /// The recipient of the code causes too much load.
    EXCESSIVE_LOAD = 0x107 "H3_EXCESSIVE_LOAD";
    /// A stream identifier or push identifier is invalid or was used incorrectly.
    ID_ERROR = 0x108 "H3_ID_ERROR";
    /// SETTINGS have a wrong value or a reserved identifier.
    SETTINGS_ERROR = 0x109 "H3_SETTINGS_ERROR";
    /// The control stream does not begin with SETTINGS.
    MISSING_SETTINGS = 0x10a "H3_MISSING_SETTINGS";
    /// The server did not process the request, so that it may be sent again.
    REQUEST_REJECTED = 0x10b "H3_REQUEST_REJECTED";
    /// The sender of the code no longer wants the request or its response.
    REQUEST_CANCELLED = 0x10c "H3_REQUEST_CANCELLED";
    /// The request ended before it was complete.
    REQUEST_INCOMPLETE = 0x10d "H3_REQUEST_INCOMPLETE";
    /// A message is malformed.
    MESSAGE_ERROR = 0x10e "H3_MESSAGE_ERROR";
    /// The connection behind a CONNECT tunnel broke.
    CONNECT_ERROR = 0x10f "H3_CONNECT_ERROR";
    /// The server asks the client to send this request over HTTP/1.1.
    VERSION_FALLBACK = 0x110 "H3_VERSION_FALLBACK";
    /// A field section cannot be decoded.
    QPACK_DECOMPRESSION_FAILED = 0x200 "QPACK_DECOMPRESSION_FAILED";
    /// An instruction on the encoder stream is wrong.
    QPACK_ENCODER_STREAM_ERROR = 0x201 "QPACK_ENCODER_STREAM_ERROR";
    /// An instruction on the decoder stream is wrong.
    QPACK_DECODER_STREAM_ERROR = 0x202 "QPACK_DECODER_STREAM_ERROR";
}
