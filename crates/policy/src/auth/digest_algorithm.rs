//! The hash functions of Digest (RFC 7616 §3.2, §6.1).

use md5::Md5;
use sha2::digest::Digest as _;
use sha2::{Sha256, Sha512_256};

/// A hash function of Digest. SHA-512-256 is the SHA-512/256 of FIPS 180 with its own initial
/// values, not a truncated SHA-512; the example in RFC 7616 is wrong (erratum 4897).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DigestAlgorithm {
    /// MD5, for old servers. An eavesdropper can guess the password offline.
    Md5,
    /// SHA-256, the algorithm that RFC 7616 recommends.
    Sha256,
    /// SHA-512/256, the alternative in RFC 7616.
    Sha512_256,
}

impl DigestAlgorithm {
    /// Returns the name used in challenges, without `-sess`.
    pub fn as_str(self) -> &'static str {
        match self {
            DigestAlgorithm::Md5 => "MD5",
            DigestAlgorithm::Sha256 => "SHA-256",
            DigestAlgorithm::Sha512_256 => "SHA-512-256",
        }
    }

    /// Returns the algorithm with this name, and true if the name has the suffix `-sess`. Returns
    /// `None` for an unknown name.
    pub(super) fn parse(name: &[u8]) -> Option<(DigestAlgorithm, bool)> {
        let is_session = name.len() > 5 && name[name.len() - 5..].eq_ignore_ascii_case(b"-sess");
        let base = if is_session { &name[..name.len() - 5] } else { name };
        [DigestAlgorithm::Md5, DigestAlgorithm::Sha256, DigestAlgorithm::Sha512_256]
            .into_iter()
            .find(|algorithm| base.eq_ignore_ascii_case(algorithm.as_str().as_bytes()))
            .map(|algorithm| (algorithm, is_session))
    }

    /// Creates a hasher for a body too large for memory. Its digest is the `body_hash` of
    /// [`DigestSession::authorize`](super::DigestSession::authorize).
    pub fn hasher(self) -> DigestHasher {
        DigestHasher(match self {
            DigestAlgorithm::Md5 => HasherState::Md5(Box::default()),
            DigestAlgorithm::Sha256 => HasherState::Sha256(Box::default()),
            DigestAlgorithm::Sha512_256 => HasherState::Sha512_256(Box::default()),
        })
    }

    /// Joins `parts` with colons and returns the digest of the result in lower-case hex.
    pub(super) fn hash_joined(self, parts: &[&[u8]]) -> String {
        let mut hasher = self.hasher();
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                hasher.update(b":");
            }
            hasher.update(part);
        }
        hasher.finish()
    }
}

/// A hash computation that receives its input in pieces.
#[derive(Clone, Debug)]
pub struct DigestHasher(HasherState);

/// The running hash computation of a [`DigestHasher`].
#[derive(Clone, Debug)]
enum HasherState {
    Md5(Box<Md5>),
    Sha256(Box<Sha256>),
    Sha512_256(Box<Sha512_256>),
}

impl DigestHasher {
    /// Adds bytes to the input of the hash function.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            HasherState::Md5(state) => state.update(bytes),
            HasherState::Sha256(state) => state.update(bytes),
            HasherState::Sha512_256(state) => state.update(bytes),
        }
    }

    /// Returns the digest of all bytes added, in lower-case hex.
    pub fn finish(self) -> String {
        match self.0 {
            HasherState::Md5(state) => hex(&state.finalize()),
            HasherState::Sha256(state) => hex(&state.finalize()),
            HasherState::Sha512_256(state) => hex(&state.finalize()),
        }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(HEX_DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect()
}
