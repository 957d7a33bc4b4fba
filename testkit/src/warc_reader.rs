//! A strict reader of web archives (WARC/1.0 and WARC/1.1), for tests of programs that write them.
//!
//! The reader accepts only unambiguous archives: CR LF at the end of each line, one Content-Length,
//! two empty lines after each block, and one gzip member for each record of a compressed archive.
//! It checks SHA-1 digests.
//!
//! ```
//! use testkit::warc_reader::{WarcRecord, read};
//!
//! let text = "WARC/1.1\r\nWARC-Type: warcinfo\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n";
//! let records = read(text.as_bytes()).unwrap();
//! assert_eq!((records[0].field("warc-type"), &records[0].block[..]), (Some("warcinfo"), &b"hello"[..]));
//! assert!(read(&text.as_bytes()[..60]).is_err());
//! ```

use std::io::Read;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use flate2::bufread::GzDecoder;

/// A record of a WARC file (web archive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarcRecord {
    /// The version of the WARC format, such as `WARC/1.1`.
    pub version: String,
    /// The names and values of the record's header fields, in order.
    pub fields: Vec<(String, String)>,
    /// The block of the record: the bytes after its header fields.
    pub block: Vec<u8>,
    /// The offset of the record in the file.
    pub offset: usize,
}

impl WarcRecord {
    /// Returns the value of the only field with this name, ignoring case. Returns `None` if no
    /// field or several fields have the name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        let first = values.next();
        first.filter(|_| values.next().is_none()).map(|(_, value)| value.as_str())
    }

    /// Returns the values of all fields of this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the head and the payload of the HTTP message that is the record's block (the bytes
    /// after the record's own header fields). The head includes its final empty line.
    #[must_use]
    pub fn message(&self) -> (&[u8], &[u8]) {
        let end = self.block.windows(4).position(|window| window == b"\r\n\r\n");
        self.block.split_at(end.map_or(self.block.len(), |end| end + 4))
    }
}

/// Reads a WARC file. Each record may be a gzip member.
///
/// # Errors
/// A record is malformed or incomplete, or a digest is wrong; the message says where.
pub fn read(archive: &[u8]) -> Result<Vec<WarcRecord>, String> {
    let (records, end, fault) = read_prefix(archive);
    match fault {
        Some(fault) => Err(format!("after {} records, at {end}: {fault}", records.len())),
        None => Ok(records),
    }
}

/// Reads the records before the first malformed one. Returns the records, the offset at which they
/// end, and the error, if there is one.
#[must_use]
pub fn read_prefix(archive: &[u8]) -> (Vec<WarcRecord>, usize, Option<String>) {
    let mut records = Vec::new();
    let mut reader = WarcReader::new(archive);
    let mut end = 0;
    while let Some(read) = reader.next() {
        match read {
            Ok(record) => records.push(record),
            Err(fault) => return (records, end, Some(fault)),
        }
        end = reader.at;
    }
    (records, end, None)
}

/// An iterator over the records of a WARC file. Each record may be a gzip member.
#[derive(Clone, Copy, Debug)]
pub struct WarcReader<'a> {
    archive: &'a [u8],
    at: usize,
}

impl<'a> WarcReader<'a> {
    /// Creates a reader of the WARC file with these bytes.
    #[must_use]
    pub fn new(archive: &'a [u8]) -> WarcReader<'a> {
        WarcReader { archive, at: 0 }
    }
}

impl Iterator for WarcReader<'_> {
    type Item = Result<WarcRecord, String>;

    /// Returns the next record, or an error message if it is malformed. Returns `None` at the end
    /// of the file, and after an error.
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.archive.get(self.at..).filter(|rest| !rest.is_empty())?;
        let is_compressed = self.archive.starts_with(&[0x1f, 0x8b]);
        let read = if is_compressed { read_member(rest) } else { parse_record(rest) };
        let read = read.and_then(|(record, length)| check_digests(&record).map(|()| (record, length)));
        let offset = self.at;
        self.at = read.as_ref().map_or(self.archive.len(), |(_, length)| offset + length);
        Some(read.map(|(record, _)| WarcRecord { offset, ..record }))
    }
}

/// Reads the gzip member at the start of `rest`, which must contain exactly one record. Returns the
/// record, and the length of the compressed member in bytes.
fn read_member(mut rest: &[u8]) -> Result<(WarcRecord, usize), String> {
    let before = rest.len();
    let mut text = Vec::new();
    GzDecoder::new(&mut rest).read_to_end(&mut text).map_err(|error| format!("no gzip member: {error}"))?;
    let (record, length) = parse_record(&text)?;
    match length == text.len() {
        true => Ok((record, before - rest.len())),
        false => Err(format!("a member has {} bytes after its record", text.len() - length)),
    }
}

/// Reads the record at the start of `text`. Returns the record and its length in bytes.
fn parse_record(text: &[u8]) -> Result<(WarcRecord, usize), String> {
    let end = text.windows(4).position(|window| window == b"\r\n\r\n").ok_or("a head does not end")?;
    let head = std::str::from_utf8(&text[..end]).map_err(|_| "a head is not UTF-8")?;
    let mut lines = head.split("\r\n");
    let version = lines.next().filter(|version| ["WARC/1.0", "WARC/1.1"].contains(version));
    let version = version.ok_or("a record does not begin with its version")?.to_owned();
    let field = |line: &str| match line.split_once(": ") {
        Some((name, value)) if !name.is_empty() && !line.contains(|c: char| c.is_control()) => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(format!("a field is malformed: {line:?}")),
    };
    let fields = lines.map(field).collect::<Result<Vec<_>, _>>()?;
    let mut record = WarcRecord { version, fields, block: Vec::new(), offset: 0 };
    let length: usize =
        record.field("Content-Length").and_then(|length| length.parse().ok()).ok_or("there is no Content-Length")?;
    let start = end + 4;
    let after = start.checked_add(length).ok_or("a block is too long")?;
    record.block = text.get(start..after).ok_or("a block is incomplete")?.to_vec();
    match text.get(after..after + 4) {
        Some(b"\r\n\r\n") => Ok((record, after + 4)),
        _ => Err("a block is not followed by two empty lines".to_owned()),
    }
}

/// Compares the digest fields of a record with the digests of its block and payload. The payload
/// digest of a revisit record is not checked, since its payload is in another record.
fn check_digests(record: &WarcRecord) -> Result<(), String> {
    let is_revisit = record.field("WARC-Type") == Some("revisit");
    for (name, bytes) in
        [("WARC-Block-Digest", Some(&record.block[..])), ("WARC-Payload-Digest", Some(record.message().1))]
    {
        let bytes = bytes.filter(|_| !(is_revisit && name == "WARC-Payload-Digest"));
        if let (Some(said), Some(bytes)) = (record.field(name), bytes)
            && said != sha1(bytes)
        {
            return Err(format!("{name} is {said}, and not {}", sha1(bytes)));
        }
    }
    Ok(())
}

/// Returns the SHA-1 digest of bytes in the format of WARC digest fields.
#[must_use]
pub fn sha1(bytes: &[u8]) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
    let bit = |at: usize| usize::from(digest.as_ref()[at / 8] >> (7 - at % 8) & 1);
    let letter = |five: usize| char::from(letters[(0..5).fold(0, |sum, at| sum * 2 + bit(five * 5 + at))]);
    "sha1:".chars().chain((0..32).map(letter)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const RECORD: &str = "WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 7\r\n\
                          WARC-Block-Digest: sha1:MFWV2RTPLLB7LN6C6F2NBF5KQSLC7OQ4\r\n\r\na\r\n\r\nbc\r\n\r\n";

    fn valid() -> String {
        RECORD.replace("sha1:MFWV2RTPLLB7LN6C6F2NBF5KQSLC7OQ4", &sha1(b"a\r\n\r\nbc"))
    }

    fn packed(texts: &[&str]) -> Vec<u8> {
        let mut archive = Vec::new();
        for text in texts {
            let mut encoder = GzEncoder::new(archive, Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            archive = encoder.finish().unwrap();
        }
        archive
    }

    #[test]
    fn archive_records_have_their_file_offsets() {
        let text = valid().repeat(2);
        let records = read(text.as_bytes()).unwrap();
        assert_eq!(records[1].offset, text.len() / 2);
        assert_eq!(records[1].message(), (&b"a\r\n\r\n"[..], &b"bc"[..]));
        let archive = packed(&[&valid(), &valid()]);
        let records = read(&archive).unwrap();
        assert_eq!(read(&archive[records[1].offset..]).unwrap()[0].block, records[1].block);
        assert_eq!(sha1(b""), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
    }

    #[test]
    fn truncated_archive_is_an_error_except_between_records() {
        for archive in [valid().repeat(2).into_bytes(), packed(&[&valid(), &valid()])] {
            let second = read(&archive).unwrap()[1].offset;
            for end in 1..archive.len() {
                let (records, at, fault) = read_prefix(&archive[..end]);
                assert_eq!(fault.is_some(), end != second, "{end}");
                assert_eq!((records.len(), at), if end < second { (0, 0) } else { (1, second) });
            }
        }
    }

    #[test]
    fn malformed_records_are_refused() {
        for (from, to) in [
            ("WARC/1.1", "WARC/1.2"),
            ("\r\nContent", "\nContent"),
            ("Length: 7", "Length: 8"),
            ("Length: 7", "Length: 6"),
            ("Length: 7", "Length: 18446744073709551615"),
            ("Length: 7", "Length: 7\r\nContent-Length: 7"),
            ("bc", "bd"),
        ] {
            assert!(read(valid().replacen(from, to, 1).as_bytes()).is_err(), "{from} {to}");
        }
        assert!(read(&packed(&[&valid().repeat(2)])).is_err());
    }
}
