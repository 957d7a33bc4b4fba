//! Content codings as a server applies them, and a decompression bomb.
//!
//! ```
//! use testkit::content_coding::ContentCoding;
//!
//! let coding: ContentCoding = "gzip".parse().unwrap();
//! assert_eq!(coding.token(), "gzip");
//! assert!(coding.encode(&[b'a'; 1000]).len() < 100);
//! ```

use std::io::Write;
use std::str::FromStr;

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress};

/// A content coding (RFC 9110 section 8.4) that a test server applies to bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentCoding {
    /// `gzip` (RFC 1952).
    Gzip,
    /// `deflate` as RFC 9110 section 8.4.1.2 defines it: zlib (RFC 1950).
    Deflate,
    /// `deflate` as some servers send it: without the zlib wrapper (RFC 1951). [`FromStr`] converts
    /// the name `rawdeflate` to this variant; the name in Content-Encoding is `deflate`.
    RawDeflate,
    /// `br` (RFC 7932).
    Br,
    /// `zstd` (RFC 8878).
    Zstd,
}

/// The error for a text that does not name a coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCoding;

impl FromStr for ContentCoding {
    type Err = UnknownCoding;

    fn from_str(name: &str) -> Result<ContentCoding, UnknownCoding> {
        Ok(match name {
            "gzip" => ContentCoding::Gzip,
            "deflate" => ContentCoding::Deflate,
            "rawdeflate" => ContentCoding::RawDeflate,
            "br" => ContentCoding::Br,
            "zstd" => ContentCoding::Zstd,
            _ => return Err(UnknownCoding),
        })
    }
}

impl ContentCoding {
    /// Returns the name of the coding in Content-Encoding.
    pub fn token(self) -> &'static str {
        match self {
            ContentCoding::Gzip => "gzip",
            ContentCoding::Deflate | ContentCoding::RawDeflate => "deflate",
            ContentCoding::Br => "br",
            ContentCoding::Zstd => "zstd",
        }
    }

    /// Returns `plain`, compressed with this coding at a fast compression level.
    ///
    /// # Panics
    /// Never: writing to memory does not fail.
    pub fn encode(self, plain: &[u8]) -> Vec<u8> {
        const INFALLIBLE: &str = "writing to memory";
        let level = Compression::fast();
        match self {
            ContentCoding::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(plain).and_then(|()| encoder.finish()).expect(INFALLIBLE)
            }
            ContentCoding::Deflate => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(plain).and_then(|()| encoder.finish()).expect(INFALLIBLE)
            }
            ContentCoding::RawDeflate => {
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), level);
                encoder.write_all(plain).and_then(|()| encoder.finish()).expect(INFALLIBLE)
            }
            ContentCoding::Br => {
                let mut out = Vec::new();
                let mut encoder = brotli::CompressorWriter::new(&mut out, 16 << 10, 2, 20);
                encoder.write_all(plain).and_then(|()| encoder.flush()).expect(INFALLIBLE);
                drop(encoder);
                out
            }
            ContentCoding::Zstd => zstd::encode_all(plain, 1).expect(INFALLIBLE),
        }
    }

    /// Returns the coding with which a server answers a request that has this Accept-Encoding
    /// field: the first of zstd, br, gzip, deflate that the field names with a weight above zero
    /// (RFC 9110 section 12.5.3). `None` if it names none of them.
    pub fn negotiate(accept_encoding: &str) -> Option<ContentCoding> {
        let accepts = |token: &str| {
            accept_encoding.split(',').any(|item| {
                let mut parts = item.split(';').map(str::trim);
                let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(token));
                let zero = parts.filter_map(|p| p.strip_prefix("q=")).any(|q| q.parse() == Ok(0.0));
                named && !zero
            })
        };
        [ContentCoding::Zstd, ContentCoding::Br, ContentCoding::Gzip, ContentCoding::Deflate]
            .into_iter()
            .find(|c| accepts(c.token()))
    }
}

/// Returns a gzip stream of `mib` MiB of zeros, in pieces. It has about 1 KiB for each MiB, and
/// takes almost no time to make.
///
/// ```
/// use std::io::Read;
///
/// let bomb = testkit::content_coding::bomb(3).concat();
/// let mut plain = Vec::new();
/// flate2::read::GzDecoder::new(&bomb[..]).read_to_end(&mut plain).unwrap();
/// assert_eq!(plain, vec![0; 3 << 20]);
/// ```
pub fn bomb(mib: u64) -> Vec<Bytes> {
    let zeros = vec![0; 1 << 20];
    // A fully flushed block ends at a byte and refers to nothing before it, so it can be repeated
    // as it is.
    let mut block = Vec::with_capacity(8 << 10);
    let compressed = Compress::new(Compression::best(), false).compress_vec(&zeros, &mut block, FlushCompress::Full);
    debug_assert!(compressed.is_ok() && block.len() < block.capacity());
    let block = Bytes::from(block);

    let mut one = Crc::new();
    one.update(&zeros);
    let mut crc = Crc::new();
    for _ in 0..mib {
        crc.combine(&one);
    }
    let header: &'static [u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255];
    // An empty final block with fixed codes, then the sum and the length.
    let mut trailer = vec![0x03, 0x00];
    trailer.extend_from_slice(&crc.sum().to_le_bytes());
    trailer.extend_from_slice(&((mib << 20) as u32).to_le_bytes());
    let mut pieces = vec![Bytes::from_static(header)];
    pieces.extend(std::iter::repeat_n(block, mib as usize));
    pieces.push(trailer.into());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn every_coding_decodes_to_its_input() {
        let plain = crate::byte_pattern::compressible_text(1, 200_000);
        for coding in [
            ContentCoding::Gzip,
            ContentCoding::Deflate,
            ContentCoding::RawDeflate,
            ContentCoding::Br,
            ContentCoding::Zstd,
        ] {
            let coded = coding.encode(&plain);
            assert!(coded.len() < plain.len() / 2, "{coding:?}");
            let mut back = Vec::new();
            match coding {
                ContentCoding::Gzip => flate2::read::GzDecoder::new(&coded[..]).read_to_end(&mut back),
                ContentCoding::Deflate => flate2::read::ZlibDecoder::new(&coded[..]).read_to_end(&mut back),
                ContentCoding::RawDeflate => flate2::read::DeflateDecoder::new(&coded[..]).read_to_end(&mut back),
                ContentCoding::Br => brotli::Decompressor::new(&coded[..], 4096).read_to_end(&mut back),
                ContentCoding::Zstd => zstd::Decoder::new(&coded[..]).and_then(|mut d| d.read_to_end(&mut back)),
            }
            .unwrap();
            assert_eq!(back, plain, "{coding:?}");
        }
    }

    #[test]
    fn coding_negotiation_respects_names_and_weights() {
        assert_eq!(ContentCoding::negotiate("deflate, gzip, br, zstd"), Some(ContentCoding::Zstd));
        assert_eq!(ContentCoding::negotiate("GZIP;q=0.5, zstd;q=0"), Some(ContentCoding::Gzip));
        assert_eq!(ContentCoding::negotiate("identity"), None);
        assert_eq!(ContentCoding::negotiate(""), None);
        assert_eq!(ContentCoding::negotiate("xgzip"), None);
    }
}
