//! Digests of blocks and payloads: SHA-1 in Base32, as wget and other archivers write them.
//!
//! ```
//! use haul_cli::warc::digest::Sha1Digest;
//!
//! assert_eq!(Sha1Digest::of(&[b""]).to_string(), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
//! ```

use std::fmt;

use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

/// The characters of Base32 (RFC 4648 section 6), each of which encodes five bits.
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The SHA-1 digest of a block or a payload. It detects damage and equal payloads, but does not
/// protect against an attacker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sha1Digest(pub [u8; 20]);

impl Sha1Digest {
    /// Computes the digest of the concatenation of these pieces.
    pub fn of(pieces: &[&[u8]]) -> Sha1Digest {
        let mut hasher = Sha1Hasher::default();
        pieces.iter().for_each(|piece| hasher.update(piece));
        hasher.finish()
    }
}

/// Prints the digest as the value of a header field of a record.
impl fmt::Display for Sha1Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha1:{}", base32(&self.0))
    }
}

/// Computes the SHA-1 digest of content that arrives in pieces.
#[derive(Clone)]
pub struct Sha1Hasher(Context);

impl Default for Sha1Hasher {
    fn default() -> Self {
        Sha1Hasher(Context::new(&SHA1_FOR_LEGACY_USE_ONLY))
    }
}

impl Sha1Hasher {
    /// Adds the next piece of the bytes to hash.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of all pieces.
    pub fn finish(self) -> Sha1Digest {
        let mut digest = [0; 20];
        digest.copy_from_slice(self.0.finish().as_ref());
        Sha1Digest(digest)
    }
}

/// Encodes bytes in Base32 without padding.
///
/// ```
/// assert_eq!(haul_cli::warc::digest::base32(b"fooba"), "MZXW6YTB");
/// ```
pub fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for group in bytes.chunks(5) {
        let mut padded = [0; 8];
        padded[3..3 + group.len()].copy_from_slice(group);
        let bits = u64::from_be_bytes(padded);
        let letters = (group.len() * 8).div_ceil(5);
        text.extend((0..letters).map(|at| char::from(ALPHABET[(bits >> (35 - 5 * at)) as usize & 31])));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base32_agrees_with_the_rfc() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "MY"),
            (b"fo", "MZXQ"),
            (b"foo", "MZXW6"),
            (b"foob", "MZXW6YQ"),
            (b"fooba", "MZXW6YTB"),
            (b"foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(base32(bytes), text);
        }
    }

    #[test]
    fn sha1_digest_does_not_depend_on_pieces() {
        assert_eq!(Sha1Digest::of(&[b"ab", b"", b"c"]), Sha1Digest::of(&[b"abc"]));
        assert_eq!(Sha1Digest::of(&[b"abc"]).to_string(), "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5");
    }
}
