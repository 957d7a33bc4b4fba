//! Encodes frames (RFC 9113 §4.1, §6).

/// An HTTP/2 frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The type of the frame, such as [`Frame::DATA`].
    pub kind: u8,
    /// The flags of the frame, such as [`Frame::END_STREAM`].
    pub flags: u8,
    /// The id of the HTTP/2 stream; 0 for a frame about the whole connection.
    pub stream: u32,
    /// The payload: the bytes after the frame header.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The type of DATA frames.
    pub const DATA: u8 = 0;
    /// The type of HEADERS frames.
    pub const HEADERS: u8 = 1;
    /// The type of PRIORITY frames.
    pub const PRIORITY: u8 = 2;
    /// The type of RST_STREAM frames.
    pub const RST_STREAM: u8 = 3;
    /// The type of SETTINGS frames.
    pub const SETTINGS: u8 = 4;
    /// The type of PUSH_PROMISE frames.
    pub const PUSH_PROMISE: u8 = 5;
    /// The type of PING frames.
    pub const PING: u8 = 6;
    /// The type of GOAWAY frames.
    pub const GOAWAY: u8 = 7;
    /// The type of WINDOW_UPDATE frames.
    pub const WINDOW_UPDATE: u8 = 8;
    /// The type of CONTINUATION frames.
    pub const CONTINUATION: u8 = 9;

    /// The flag END_STREAM of DATA and HEADERS. In SETTINGS and PING the same bit is ACK.
    pub const END_STREAM: u8 = 1;
    /// The flag END_HEADERS of HEADERS and CONTINUATION.
    pub const END_HEADERS: u8 = 4;
    /// The flag PADDED of DATA and HEADERS.
    pub const PADDED: u8 = 8;

    /// Returns the error code of a RST_STREAM or GOAWAY frame; `None` for other types.
    pub fn code(&self) -> Option<u32> {
        let at = match self.kind {
            Frame::RST_STREAM => 0,
            Frame::GOAWAY => 4,
            _ => return None,
        };
        Some(u32::from_be_bytes(self.payload.get(at..at + 4)?.try_into().ok()?))
    }
}

/// Encodes a frame of any type.
///
/// # Panics
/// If the payload does not fit a frame (16 MiB).
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).ok().filter(|len| *len < 1 << 24).expect("the payload fits a frame");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Encodes SETTINGS with these identifiers and values.
pub fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> =
        values.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
    frame(Frame::SETTINGS, 0, 0, &payload)
}

/// Encodes the acknowledgement of SETTINGS.
pub fn settings_ack() -> Vec<u8> {
    frame(Frame::SETTINGS, 1, 0, &[])
}

/// Encodes a field section (header block) with HPACK. Each field is a literal without indexing (RFC
/// 7541 §6.2.2). Names and values are not checked, so that a test can send invalid ones.
///
/// # Panics
/// If a name or value is longer than 16 KiB.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            // A number of seven bits, or the rest of it in two more bytes (RFC 7541 §5.1).
            if text.len() < 127 {
                out.push(text.len() as u8);
            } else {
                let rest = text.len() - 127;
                assert!(rest < 1 << 14, "two bytes hold it");
                out.extend([127, (rest & 127) as u8 | 128, (rest >> 7) as u8]);
            }
            out.extend(text.as_bytes());
        }
    }
    out
}

/// Encodes a HEADERS frame with a complete header block. If `ends` is true, the frame has the flag
/// END_STREAM.
///
/// # Panics
/// If a name or value is longer than 16 KiB.
pub fn headers(stream: u32, ends: bool, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(Frame::HEADERS, Frame::END_HEADERS | u8::from(ends), stream, &block(fields))
}

/// Encodes a HEADERS frame without the flag END_HEADERS: CONTINUATION frames continue its header
/// block.
pub fn headers_open(stream: u32, block: &[u8]) -> Vec<u8> {
    frame(Frame::HEADERS, 0, stream, block)
}

/// Encodes a CONTINUATION frame. If `last` is true, the frame ends the header block.
pub fn continuation(stream: u32, last: bool, block: &[u8]) -> Vec<u8> {
    frame(Frame::CONTINUATION, if last { Frame::END_HEADERS } else { 0 }, stream, block)
}

/// Encodes a DATA frame. If `ends` is true, the frame has the flag END_STREAM.
pub fn data(stream: u32, ends: bool, bytes: &[u8]) -> Vec<u8> {
    frame(Frame::DATA, u8::from(ends), stream, bytes)
}

/// Encodes a RST_STREAM frame with this error code.
pub fn rst(stream: u32, code: u32) -> Vec<u8> {
    frame(Frame::RST_STREAM, 0, stream, &code.to_be_bytes())
}

/// Encodes a GOAWAY frame with this error code. `last` is the id of the last stream that the server
/// processes.
pub fn goaway(last: u32, code: u32) -> Vec<u8> {
    frame(Frame::GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

/// Encodes a PING frame.
pub fn ping(payload: [u8; 8]) -> Vec<u8> {
    frame(Frame::PING, 0, 0, &payload)
}

/// Encodes a WINDOW_UPDATE frame that adds `by` bytes to the flow-control window of a stream, or of
/// the connection if `stream` is 0.
pub fn window_update(stream: u32, by: u32) -> Vec<u8> {
    frame(Frame::WINDOW_UPDATE, 0, stream, &by.to_be_bytes())
}
