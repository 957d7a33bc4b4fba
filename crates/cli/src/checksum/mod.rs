//! The checksums of response bodies: the value of `--checksum`, and checksum lists as `sha256sum`
//! writes them.
//!
//! This module only parses: it computes no digest and fetches no list.
//!
//! ```
//! use haul_cli::checksum::{ChecksumAlgorithm, ChecksumArg, ChecksumList};
//!
//! let hex = "ab".repeat(32);
//! let Ok(ChecksumArg::Digest(given)) = format!("sha256:{hex}").parse() else { panic!("a digest") };
//! assert_eq!((given.algorithm(), given.bytes()), (ChecksumAlgorithm::Sha256, &[0xab; 32][..]));
//!
//! let list = format!("{}  other.iso\n{hex} *file.iso\n", "00".repeat(32));
//! assert_eq!(ChecksumList::new(list.into()).find("/pub/file.iso"), Ok(given));
//! ```

mod list;

pub use list::{ChecksumList, DigestLookupError, LIST_MAX};

use std::fmt;
use std::str::FromStr;

use haul_policy::file_names_by_system::OsFamily;

/// The value of `--checksum`: a digest, or the URL or file name of a checksum list (SHA256SUMS).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChecksumArg {
    /// `ALGORITHM:HEX`: the digest that the response body must have.
    Digest(ExpectedDigest),
    /// The URL (http or https) or the file name of a checksum list, which [`ChecksumList`] parses.
    From(String),
}

/// The hash functions that `--checksum` supports, the weakest first.
///
/// MD5 is not supported, because anyone can make two files with the same MD5 sum in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChecksumAlgorithm {
    /// SHA-1 (FIPS 180-4). It detects accidental damage, but can be forged.
    Sha1,
    /// SHA-256 (FIPS 180-4).
    Sha256,
    /// SHA-384 (FIPS 180-4).
    Sha384,
    /// SHA-512 (FIPS 180-4).
    Sha512,
}

impl ChecksumAlgorithm {
    /// Every supported algorithm, the weakest first.
    pub const ALL: [ChecksumAlgorithm; 4] =
        [ChecksumAlgorithm::Sha1, ChecksumAlgorithm::Sha256, ChecksumAlgorithm::Sha384, ChecksumAlgorithm::Sha512];

    /// Returns the name of the algorithm in values of `--checksum`, such as `sha256`.
    pub fn name(self) -> &'static str {
        match self {
            ChecksumAlgorithm::Sha1 => "sha1",
            ChecksumAlgorithm::Sha256 => "sha256",
            ChecksumAlgorithm::Sha384 => "sha384",
            ChecksumAlgorithm::Sha512 => "sha512",
        }
    }

    /// Returns the length of this algorithm's digests in bytes.
    pub fn length(self) -> usize {
        match self {
            ChecksumAlgorithm::Sha1 => 20,
            ChecksumAlgorithm::Sha256 => 32,
            ChecksumAlgorithm::Sha384 => 48,
            ChecksumAlgorithm::Sha512 => 64,
        }
    }

    /// Returns the algorithm with this name, ignoring case: `sha256`, `SHA-256`, `SHA2-256`.
    /// Returns `None` for any other name.
    fn from_name(name: &str) -> Option<ChecksumAlgorithm> {
        let name = name.to_ascii_lowercase();
        let bare = match name.strip_prefix("sha") {
            Some("1" | "-1") => return Some(ChecksumAlgorithm::Sha1),
            Some(rest) => rest.strip_prefix("2-").or(rest.strip_prefix('-')).unwrap_or(rest),
            None => return None,
        };
        match bare {
            "256" => Some(ChecksumAlgorithm::Sha256),
            "384" => Some(ChecksumAlgorithm::Sha384),
            "512" => Some(ChecksumAlgorithm::Sha512),
            _ => None,
        }
    }

    /// Returns the algorithm whose digests have this length in bytes, or `None` if no algorithm has
    /// it.
    fn from_digest_length(length: usize) -> Option<ChecksumAlgorithm> {
        ChecksumAlgorithm::ALL.into_iter().find(|algorithm| algorithm.length() == length)
    }
}

impl fmt::Display for ChecksumAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The digest that a response body must have, with its algorithm. The digest has the length that
/// belongs to the algorithm.
#[derive(Clone, PartialEq, Eq)]
pub struct ExpectedDigest {
    algorithm: ChecksumAlgorithm,
    bytes: Box<[u8]>,
}

impl ExpectedDigest {
    /// Parses the hexadecimal digits of a digest, in upper or lower case. Returns `None` if they
    /// are not a digest of the algorithm.
    pub fn from_hex(algorithm: ChecksumAlgorithm, hex: &[u8]) -> Option<ExpectedDigest> {
        if hex.len() != algorithm.length() * 2 {
            return None;
        }
        let nibble = |byte: u8| char::from(byte).to_digit(16);
        let byte = |pair: &[u8]| u8::try_from(nibble(pair[0])? << 4 | nibble(pair[1])?).ok();
        let bytes = hex.chunks_exact(2).map(byte).collect::<Option<_>>()?;
        Some(ExpectedDigest { algorithm, bytes })
    }

    /// Returns the hash algorithm of this digest.
    pub fn algorithm(&self) -> ChecksumAlgorithm {
        self.algorithm
    }

    /// Returns the bytes of the digest.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Formats a digest as `--checksum` accepts it: `sha256:HEX`.
impl fmt::Display for ExpectedDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.algorithm)?;
        self.bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ExpectedDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExpectedDigest({self})")
    }
}

/// The reason why a value of `--checksum` is invalid. The message does not quote the value, which
/// may be a URL with a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumArgError {
    /// The value names the algorithm MD5, which anyone can forge.
    Md5,
    /// The text before the colon of the value is neither the name of an algorithm nor the scheme of
    /// a URL.
    UnknownAlgorithm,
    /// The text after the colon of the value is not a digest of this algorithm.
    BadDigest(ChecksumAlgorithm),
    /// The value is a URL whose scheme is neither http nor https.
    Scheme,
    /// The value is empty, or contains bytes that can be neither in a file name nor in a URL.
    NotAName,
}

impl fmt::Display for ChecksumArgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChecksumArgError::Md5 => f.write_str("MD5 proves nothing; sha256, sha384, sha512 or sha1"),
            ChecksumArgError::UnknownAlgorithm => {
                f.write_str("unknown algorithm, use sha256, sha384, sha512 or sha1; a file with a colon is ./FILE")
            }
            ChecksumArgError::BadDigest(algorithm) => {
                write!(f, "{algorithm}: needs {} hexadecimal digits", algorithm.length() * 2)
            }
            ChecksumArgError::Scheme => f.write_str("a list comes by http or https, or is a file"),
            ChecksumArgError::NotAName => f.write_str("neither ALGORITHM:HEX nor the URL or file name of a list"),
        }
    }
}

impl std::error::Error for ChecksumArgError {}

impl FromStr for ChecksumArg {
    type Err = ChecksumArgError;

    fn from_str(text: &str) -> Result<ChecksumArg, ChecksumArgError> {
        if text.is_empty() || text.bytes().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
            return Err(ChecksumArgError::NotAName);
        }
        let list = || Ok(ChecksumArg::From(text.to_owned()));
        let Some((before, behind)) = text.split_once(':') else { return list() };
        // A path, as ./a:b, /srv/a:b or, on Windows, C:\a.
        let is_drive = OsFamily::CURRENT == OsFamily::Windows && before.len() == 1;
        if before.contains('/') || is_drive {
            return list();
        }
        if behind.starts_with("//") {
            let known = ["http", "https"].iter().any(|scheme| scheme.eq_ignore_ascii_case(before));
            return if known { list() } else { Err(ChecksumArgError::Scheme) };
        }
        if before.eq_ignore_ascii_case("md5") {
            return Err(ChecksumArgError::Md5);
        }
        let algorithm = ChecksumAlgorithm::from_name(before).ok_or(ChecksumArgError::UnknownAlgorithm)?;
        let digest = ExpectedDigest::from_hex(algorithm, behind.as_bytes());
        digest.map(ChecksumArg::Digest).ok_or(ChecksumArgError::BadDigest(algorithm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_survives_parsing_and_display() {
        for algorithm in ChecksumAlgorithm::ALL {
            let hex = "0f".repeat(algorithm.length());
            let text = format!("{algorithm}:{hex}");
            let Ok(ChecksumArg::Digest(digest)) = text.parse() else { panic!("{text}") };
            assert_eq!((digest.algorithm(), digest.bytes()), (algorithm, &vec![0x0f; algorithm.length()][..]));
            assert_eq!(digest.to_string(), text);
            for (bad, why) in [(&hex[1..], "short"), (&hex[2..], "short"), ("", "none")] {
                let text = format!("{algorithm}:{bad}");
                assert_eq!(text.parse::<ChecksumArg>(), Err(ChecksumArgError::BadDigest(algorithm)), "{why}");
            }
            let long = format!("{algorithm}:{hex}0f");
            assert_eq!(long.parse::<ChecksumArg>(), Err(ChecksumArgError::BadDigest(algorithm)));
        }
        let mixed = format!("SHA-256:{}", "aF".repeat(32));
        assert!(matches!(mixed.parse(), Ok(ChecksumArg::Digest(digest)) if digest.bytes() == [0xaf; 32]));
        for bad in ["g", "+", " ", "é"] {
            let text = format!("sha1:{}", bad.repeat(40 / bad.len()));
            assert_eq!(
                text.parse::<ChecksumArg>(),
                Err(ChecksumArgError::BadDigest(ChecksumAlgorithm::Sha1)),
                "{text}"
            );
        }
    }

    #[test]
    fn checksum_value_is_digest_or_list_or_refused() {
        for name in ["SHA256SUMS", "-", "./a:b", "/srv/x:y", "http://h/f.sha256", "HTTPS://u:p@h/f", "sha256"] {
            assert_eq!(name.parse(), Ok(ChecksumArg::From(name.to_owned())), "{name}");
        }
        let hex = "00".repeat(32);
        for (text, flaw) in [
            ("md5:d41d8cd98f00b204e9800998ecf8427e", ChecksumArgError::Md5),
            ("sha3-256:00", ChecksumArgError::UnknownAlgorithm),
            ("a:b", ChecksumArgError::UnknownAlgorithm),
            (":", ChecksumArgError::UnknownAlgorithm),
            ("sha:00", ChecksumArgError::UnknownAlgorithm),
            ("sha2-1:00", ChecksumArgError::UnknownAlgorithm),
            ("ftp://h/f", ChecksumArgError::Scheme),
            ("://h", ChecksumArgError::Scheme),
            ("", ChecksumArgError::NotAName),
            ("a\0b", ChecksumArgError::NotAName),
            ("http://h/\r\nX: y", ChecksumArgError::NotAName),
        ] {
            assert_eq!(text.parse::<ChecksumArg>(), Err(flaw), "{text:?}");
        }
        assert!(format!("sha256 :{hex}").parse::<ChecksumArg>().is_err());
    }
}
