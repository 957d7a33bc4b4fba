//! Compresses each record as a separate gzip member, so that a reader can begin at any record
//! (WARC/1.1, annex D).
//!
//! The deflate stream of a member has two parts, which are compressed separately: the beginning
//! with the record's head, which is known last, and the rest with the block, which may be large.
//! Both parts end at a byte boundary, so that they can be joined without compressing them again.
//!
//! ```text
//!  10 bytes │ beginning: record head, HTTP head ─ sync flush │ rest: payload, CR LF CR LF ─ end │ CRC-32, length
//! ```
//!
//! ```
//! use haul_cli::warc::gzip_member::{Deflater, GzipMemberBodyCompressor, member_end, member_start};
//!
//! let mut rest = GzipMemberBodyCompressor::new(Deflater::new());
//! rest.push(b"payload");
//! rest.finish(b"\r\n\r\n");
//! let mut member = member_start(&mut Deflater::new(), b"head\r\n\r\n");
//! member.extend_from_slice(&rest.packed);
//! member.extend_from_slice(&member_end(b"head\r\n\r\n", &rest.crc));
//! # let mut text = Vec::new();
//! # std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&member[..]), &mut text).unwrap();
//! # assert_eq!(text, b"head\r\n\r\npayload\r\n\r\n");
//! ```

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// The first bytes of a member: magic number, deflate, no flags, no time, and an unknown system.
const MEMBER_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// The approximate size, in bytes, of a compressor's state.
pub const DEFLATER_MEMORY: usize = 320 << 10;

/// The maximum length, in bytes, of a stored block of deflate (RFC 1951 section 3.2.4).
const MAX_STORED_BLOCK: usize = u16::MAX as usize;

/// Compresses bytes into deflate streams. A compressor is reused for many records, because its
/// memory is large.
#[derive(Debug)]
pub struct Deflater(Box<Compress>);

impl Default for Deflater {
    fn default() -> Self {
        Deflater(Box::new(Compress::new(Compression::default(), false)))
    }
}

impl Deflater {
    /// Creates a compressor.
    pub fn new() -> Deflater {
        Deflater::default()
    }

    /// Compresses `text`, and appends the compressed bytes to `packed`.
    fn push(&mut self, mut text: &[u8], flush: FlushCompress, packed: &mut Vec<u8>) {
        loop {
            packed.reserve((text.len() / 2).clamp(1 << 10, 32 << 10));
            let before = self.0.total_in();
            // Compression in memory does not fail: the state is valid, and there is room.
            let status = self.0.compress_vec(text, packed, flush).unwrap_or(Status::StreamEnd);
            text = &text[usize::try_from(self.0.total_in() - before).unwrap_or(text.len()).min(text.len())..];
            let has_room = packed.len() < packed.capacity();
            let is_done = match flush {
                FlushCompress::Finish => status == Status::StreamEnd,
                _ => status == Status::StreamEnd || text.is_empty() && has_room,
            };
            if is_done {
                return;
            }
        }
    }
}

/// A compressor for the second part of the deflate stream in a gzip member: the payload of a
/// record. [`member_start`] compresses the first part, with the record's head.
#[derive(Debug)]
pub struct GzipMemberBodyCompressor {
    /// The compressor; `None` if the payload is stored without compression.
    deflater: Option<Deflater>,
    /// The deflate output so far. The caller may remove these bytes at any time.
    pub packed: Vec<u8>,
    /// The checksum and the length of the uncompressed payload.
    pub crc: Crc,
}

impl GzipMemberBodyCompressor {
    /// Creates an empty part that `deflater` will compress.
    pub fn new(mut deflater: Deflater) -> GzipMemberBodyCompressor {
        deflater.0.reset();
        GzipMemberBodyCompressor { deflater: Some(deflater), packed: Vec::new(), crc: Crc::new() }
    }

    /// Creates an empty part that is stored without compression, because there is no memory for a
    /// compressor.
    pub fn stored() -> GzipMemberBodyCompressor {
        GzipMemberBodyCompressor { deflater: None, packed: Vec::new(), crc: Crc::new() }
    }

    /// Adds uncompressed bytes of the payload.
    pub fn push(&mut self, text: &[u8]) {
        self.crc.update(text);
        match &mut self.deflater {
            Some(deflater) => deflater.push(text, FlushCompress::None, &mut self.packed),
            None => text.chunks(MAX_STORED_BLOCK).for_each(|block| append_stored_block(block, false, &mut self.packed)),
        }
    }

    /// Adds the last uncompressed bytes, `text`, and ends the deflate stream. Returns the
    /// compressor, so that it can be reused; `None` if the payload is stored without compression.
    pub fn finish(&mut self, text: &[u8]) -> Option<Deflater> {
        self.crc.update(text);
        match self.deflater.take() {
            Some(mut deflater) => {
                deflater.push(text, FlushCompress::Finish, &mut self.packed);
                Some(deflater)
            }
            None => {
                text.chunks(MAX_STORED_BLOCK).for_each(|block| append_stored_block(block, false, &mut self.packed));
                append_stored_block(&[], true, &mut self.packed);
                None
            }
        }
    }
}

/// Appends a stored (uncompressed) block of deflate. `is_last` is true for the last block of the
/// deflate stream.
fn append_stored_block(block: &[u8], is_last: bool, packed: &mut Vec<u8>) {
    let length = block.len() as u16;
    packed.push(u8::from(is_last));
    packed.extend_from_slice(&length.to_le_bytes());
    packed.extend_from_slice(&(!length).to_le_bytes());
    packed.extend_from_slice(block);
}

/// Returns the first bytes of a gzip member, which come before the [`GzipMemberBodyCompressor`]:
/// the gzip header, and `text` in compressed form.
pub fn member_start(deflater: &mut Deflater, text: &[u8]) -> Vec<u8> {
    let mut start = MEMBER_HEADER.to_vec();
    deflater.0.reset();
    deflater.push(text, FlushCompress::Sync, &mut start);
    start
}

/// Returns the last bytes of a gzip member, which come after the [`GzipMemberBodyCompressor`]: the
/// checksum and the length of the uncompressed content. `start` is the text that was passed to
/// [`member_start`], and `rest` is the checksum of the [`GzipMemberBodyCompressor`].
pub fn member_end(start: &[u8], rest: &Crc) -> [u8; 8] {
    let mut crc = Crc::new();
    crc.update(start);
    crc.combine(rest);
    member_trailer(&crc)
}

/// Returns a complete gzip member that contains the concatenation of these pieces.
pub fn encode_member(deflater: &mut Deflater, pieces: &[&[u8]]) -> Vec<u8> {
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    let mut member = Vec::with_capacity(length / 3 + 256);
    member.extend_from_slice(&MEMBER_HEADER);
    deflater.0.reset();
    let mut crc = Crc::new();
    for piece in pieces {
        crc.update(piece);
        deflater.push(piece, FlushCompress::None, &mut member);
    }
    deflater.push(&[], FlushCompress::Finish, &mut member);
    member.extend_from_slice(&member_trailer(&crc));
    member
}

fn member_trailer(crc: &Crc) -> [u8; 8] {
    let mut end = [0; 8];
    end[..4].copy_from_slice(&crc.sum().to_le_bytes());
    end[4..].copy_from_slice(&crc.amount().to_le_bytes());
    end
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    fn unpacked(member: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        GzDecoder::new(member).read_to_end(&mut text).unwrap();
        text
    }

    fn joined(start: &[u8], pieces: &[&[u8]], deflater: Option<Deflater>) -> Vec<u8> {
        let mut rest = deflater.map_or_else(GzipMemberBodyCompressor::stored, GzipMemberBodyCompressor::new);
        pieces.iter().for_each(|piece| rest.push(piece));
        rest.finish(b"\r\n\r\n");
        [&member_start(&mut Deflater::new(), start)[..], &rest.packed, &member_end(start, &rest.crc)].concat()
    }

    #[test]
    fn separately_compressed_parts_form_one_gzip_member() {
        let text: Vec<u8> = (0..300_000_u64).map(|n| ((n * n) >> 11) as u8).collect();
        let cases: [&[&[u8]]; 5] = [&[], &[b""], &[b"a"], &[&text[..70_000], &text[70_000..], b"end"], &[&text]];
        for pieces in cases {
            for deflater in [Some(Deflater::new()), None] {
                let expected = [b"start", &pieces.concat()[..], b"\r\n\r\n"].concat();
                assert!(unpacked(&joined(b"start", pieces, deflater)) == expected, "{} pieces", pieces.len());
            }
        }
    }

    #[test]
    fn one_compressor_compresses_many_gzip_members() {
        let mut deflater = Deflater::new();
        let text = vec![b'x'; 100_000];
        for length in [100_000, 0, 1, 65_536] {
            let member = encode_member(&mut deflater, &[b"head", &text[..length], b"\r\n"]);
            assert_eq!(unpacked(&member), [b"head", &text[..length], b"\r\n"].concat());
            assert!(member.len() < 400);
            let mut rest = GzipMemberBodyCompressor::new(deflater);
            rest.push(&text[..length]);
            deflater = rest.finish(b"").unwrap();
        }
    }
}
