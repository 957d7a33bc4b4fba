//! The heads of WARC records: their type, identifiers and named fields.
//!
//! ```
//! use haul_cli::warc::record_head::{RecordHead, RecordId, RecordType};
//! use std::time::UNIX_EPOCH;
//!
//! let id = RecordId([0; 16]);
//! let head = RecordHead::new(RecordType::Warcinfo, id, UNIX_EPOCH).with_field("WARC-Filename", "a.warc");
//! let text = String::from_utf8(head.finish("application/warc-fields", 12)).unwrap();
//! assert_eq!(
//!     text,
//!     "WARC/1.1\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000000>\r\n\
//!      WARC-Date: 1970-01-01T00:00:00.000000Z\r\nWARC-Filename: a.warc\r\n\
//!      Content-Type: application/warc-fields\r\nContent-Length: 12\r\n\r\n"
//! );
//! ```

use std::fmt::{self, Display, Write};
use std::time::SystemTime;

use haul::ProtocolVersion;
use haul::exchange_record::TruncationReason;
use haul::transfer_facts::TlsFacts;

use crate::date::iso_text;

/// The bytes that end each WARC record, after its block.
pub const RECORD_END: &[u8] = b"\r\n\r\n";

/// The profile of a revisit record whose payload equals the payload of an earlier record.
const IDENTICAL_PAYLOAD_PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

/// The types of WARC records that haul writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordType {
    /// The first record of an archive file, which describes the file.
    Warcinfo,
    /// An HTTP request, with its head and content.
    Request,
    /// An HTTP response, with its head and content.
    Response,
    /// The head of a response whose payload is already in an earlier record.
    Revisit,
}

impl RecordType {
    fn name(self) -> &'static str {
        match self {
            RecordType::Warcinfo => "warcinfo",
            RecordType::Request => "request",
            RecordType::Response => "response",
            RecordType::Revisit => "revisit",
        }
    }

    /// Returns the media type of the record's block.
    pub fn content_type(self) -> &'static str {
        match self {
            RecordType::Warcinfo => "application/warc-fields",
            RecordType::Request => "application/http; msgtype=request",
            RecordType::Response | RecordType::Revisit => "application/http; msgtype=response",
        }
    }
}

/// The identifier of a record: 16 random bytes, which are printed as a UUID of version 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordId(pub [u8; 16]);

impl Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<urn:uuid:")?;
        for (at, byte) in self.0.iter().enumerate() {
            let byte = match at {
                6 => byte & 0x0f | 0x40,
                8 => byte & 0x3f | 0x80,
                _ => *byte,
            };
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_char('-')?;
            }
            write!(f, "{byte:02x}")?;
        }
        f.write_char('>')
    }
}

/// The earlier record to which a revisit record refers, because both have the same payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierRecord {
    /// The identifier of the record.
    pub id: RecordId,
    /// The URL of the record, without userinfo.
    pub url: Box<str>,
    /// The date of the record: the time at which its request began.
    pub date: SystemTime,
}

/// The head of a WARC record under construction, with the fields added so far.
#[derive(Clone, Debug)]
pub struct RecordHead(String);

impl RecordHead {
    /// Begins the head of a record.
    pub fn new(record_type: RecordType, id: RecordId, date: SystemTime) -> RecordHead {
        let mut text = String::with_capacity(640);
        text.push_str("WARC/1.1\r\n");
        RecordHead(text)
            .with_field("WARC-Type", record_type.name())
            .with_field("WARC-Record-ID", id)
            .with_field("WARC-Date", iso_text(date))
    }

    /// Adds a field. Control characters in the value become `?`, because a line end would begin
    /// another field.
    #[must_use]
    pub fn with_field(mut self, name: &str, value: impl Display) -> RecordHead {
        self.0.push_str(name);
        self.0.push_str(": ");
        let start = self.0.len();
        let _ = write!(self.0, "{value}");
        if self.0[start..].contains(|c: char| c.is_control()) {
            let value = self.0.split_off(start);
            self.0.extend(value.chars().map(|c| if c.is_control() { '?' } else { c }));
        }
        self.0.push_str("\r\n");
        self
    }

    /// Adds a field, if it has a value.
    #[must_use]
    pub fn with_optional_field(self, name: &str, value: Option<impl Display>) -> RecordHead {
        match value {
            Some(value) => self.with_field(name, value),
            None => self,
        }
    }

    /// Adds one field for each protocol layer of the connection, such as HTTP and TLS. The
    /// protocols have the identifiers that the IIPC, the web archives' consortium, has proposed.
    #[must_use]
    pub fn with_protocols(self, version: ProtocolVersion, tls: Option<&TlsFacts>) -> RecordHead {
        let head = self.with_field("WARC-Protocol", http_name(version, tls.is_some()));
        let head = if version == ProtocolVersion::Http3 { head.with_field("WARC-Protocol", "quic/1") } else { head };
        let Some(tls) = tls else { return head };
        let layer = tls.version.strip_prefix("TLSv").map(|version| format!("tls/{version}"));
        head.with_optional_field("WARC-Protocol", layer).with_field("WARC-Cipher-Suite", &tls.cipher)
    }

    /// Adds the profile of a revisit record, and the record to which it refers.
    #[must_use]
    pub fn with_revisit(self, earlier: &EarlierRecord) -> RecordHead {
        self.with_field("WARC-Profile", IDENTICAL_PAYLOAD_PROFILE)
            .with_field("WARC-Refers-To", earlier.id)
            .with_field("WARC-Refers-To-Target-URI", &earlier.url)
            .with_field("WARC-Refers-To-Date", iso_text(earlier.date))
    }

    /// Ends the head with the media type and the length of the block.
    pub fn finish(self, content_type: &str, length: u64) -> Vec<u8> {
        let mut text = self.with_field("Content-Type", content_type).with_field("Content-Length", length).0;
        text.push_str("\r\n");
        text.into_bytes()
    }
}

/// Returns the value of `WARC-Truncated` for a reason.
pub fn truncation(reason: TruncationReason) -> &'static str {
    match reason {
        TruncationReason::Length => "length",
        TruncationReason::Time => "time",
        TruncationReason::Disconnect => "disconnect",
        TruncationReason::Unspecified => "unspecified",
    }
}

fn http_name(version: ProtocolVersion, is_secure: bool) -> &'static str {
    match version {
        ProtocolVersion::Http10 => "http/1.0",
        ProtocolVersion::Http2 if is_secure => "h2",
        ProtocolVersion::Http2 => "h2c",
        ProtocolVersion::Http3 => "h3",
        _ => "http/1.1",
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn text(head: RecordHead) -> String {
        head.0
    }

    fn begun() -> RecordHead {
        RecordHead::new(RecordType::Revisit, RecordId([0xff; 16]), UNIX_EPOCH + Duration::from_micros(1_500_000))
    }

    #[test]
    fn warc_record_ids_are_random_uuids() {
        assert_eq!(RecordId([0xff; 16]).to_string(), "<urn:uuid:ffffffff-ffff-4fff-bfff-ffffffffffff>");
    }

    #[test]
    fn warc_field_value_cannot_add_a_field() {
        let text = text(begun().with_field("WARC-Target-URI", "http://h/\r\nContent-Length: 0"));
        assert!(text.ends_with("WARC-Target-URI: http://h/??Content-Length: 0\r\n"), "{text}");
    }

    #[test]
    fn warc_record_names_each_protocol_layer() {
        let tls = TlsFacts { version: "TLSv1.3", cipher: "TLS_AES_128_GCM_SHA256".into(), alpn: None, resumed: false };
        for (version, tls, fields) in [
            (ProtocolVersion::Http10, None, "WARC-Protocol: http/1.0\r\n"),
            (ProtocolVersion::Http2, None, "WARC-Protocol: h2c\r\n"),
            (
                ProtocolVersion::Http3,
                Some(&tls),
                "WARC-Protocol: h3\r\nWARC-Protocol: quic/1\r\nWARC-Protocol: tls/1.3\r\n\
                 WARC-Cipher-Suite: TLS_AES_128_GCM_SHA256\r\n",
            ),
        ] {
            let (begun, head) = (text(begun()), text(begun().with_protocols(version, tls)));
            assert_eq!(head.strip_prefix(&begun), Some(fields));
        }
    }

    #[test]
    fn revisit_record_names_the_earlier_record() {
        let earlier = EarlierRecord { id: RecordId([0; 16]), url: "http://h/a".into(), date: UNIX_EPOCH };
        let text =
            String::from_utf8(begun().with_revisit(&earlier).finish(RecordType::Revisit.content_type(), 5)).unwrap();
        let expected = "WARC/1.1\r\nWARC-Type: revisit\r\n\
             WARC-Record-ID: <urn:uuid:ffffffff-ffff-4fff-bfff-ffffffffffff>\r\n\
             WARC-Date: 1970-01-01T00:00:01.500000Z\r\n\
             WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n\
             WARC-Refers-To: <urn:uuid:00000000-0000-4000-8000-000000000000>\r\n\
             WARC-Refers-To-Target-URI: http://h/a\r\nWARC-Refers-To-Date: 1970-01-01T00:00:00.000000Z\r\n\
             Content-Type: application/http; msgtype=response\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(text, expected);
    }
}
