//! The AEAD of TLS records, from the library that is faster on this processor.
//!
//! Decryption is most of the cost of a large body over TLS. With plain AES instructions, both
//! libraries are equally fast. They differ on processors with vector AES instructions, which
//! process several blocks at once: aws-lc uses the 512-bit instructions, ring the 256-bit
//! instructions. On a processor that has only the 256-bit instructions (AVX2 and VAES: most of
//! AMD's from 2020 to 2022, many of Intel's since), ring decrypts in half of the time: 0.13 instead
//! of 0.24 s for each GB.

use aws_lc_rs::aead as aws_lc;
use ring::aead as ring_lib;

/// The length of the authentication tag that follows the ciphertext, in bytes.
pub(super) const TAG_LENGTH: usize = 16;

/// The AEAD algorithms of TLS 1.2 and 1.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TlsAeadAlgorithm {
    Aes128Gcm,
    Aes256Gcm,
    ChaCha20Poly1305,
}

/// An AEAD algorithm with its key. The caller must never use a nonce twice with the same key.
pub(super) enum TlsRecordAead {
    AwsLc(aws_lc::LessSafeKey),
    Ring(Box<ring_lib::LessSafeKey>),
}

impl TlsRecordAead {
    /// Makes an AEAD with this key. Returns `None` if the key has the wrong length.
    pub(super) fn new(cipher: TlsAeadAlgorithm, key: &[u8]) -> Option<Self> {
        if should_use_aws_lc() { Self::aws_lc(cipher, key) } else { Self::ring(cipher, key) }
    }

    fn aws_lc(cipher: TlsAeadAlgorithm, key: &[u8]) -> Option<Self> {
        let algorithm = match cipher {
            TlsAeadAlgorithm::Aes128Gcm => &aws_lc::AES_128_GCM,
            TlsAeadAlgorithm::Aes256Gcm => &aws_lc::AES_256_GCM,
            TlsAeadAlgorithm::ChaCha20Poly1305 => &aws_lc::CHACHA20_POLY1305,
        };
        Some(Self::AwsLc(aws_lc::LessSafeKey::new(aws_lc::UnboundKey::new(algorithm, key).ok()?)))
    }

    fn ring(cipher: TlsAeadAlgorithm, key: &[u8]) -> Option<Self> {
        let algorithm = match cipher {
            TlsAeadAlgorithm::Aes128Gcm => &ring_lib::AES_128_GCM,
            TlsAeadAlgorithm::Aes256Gcm => &ring_lib::AES_256_GCM,
            TlsAeadAlgorithm::ChaCha20Poly1305 => &ring_lib::CHACHA20_POLY1305,
        };
        Some(Self::Ring(Box::new(ring_lib::LessSafeKey::new(ring_lib::UnboundKey::new(algorithm, key).ok()?))))
    }

    /// Decrypts `sealed`, a ciphertext followed by its tag, in place, and returns the plaintext.
    /// Returns `None` if the ciphertext is not authentic.
    pub(super) fn open<'a>(&self, nonce: [u8; 12], aad: &[u8], sealed: &'a mut [u8]) -> Option<&'a mut [u8]> {
        match self {
            Self::AwsLc(key) => {
                let nonce = aws_lc::Nonce::assume_unique_for_key(nonce);
                key.open_in_place(nonce, aws_lc::Aad::from(aad), sealed).ok()
            }
            Self::Ring(key) => {
                let nonce = ring_lib::Nonce::assume_unique_for_key(nonce);
                key.open_in_place(nonce, ring_lib::Aad::from(aad), sealed).ok()
            }
        }
    }

    /// Encrypts `plain` in place, and returns the authentication tag. Returns `None` if `plain` is
    /// too long; `plain` may then be unchanged.
    pub(super) fn seal(&self, nonce: [u8; 12], aad: &[u8], plain: &mut [u8]) -> Option<[u8; TAG_LENGTH]> {
        match self {
            Self::AwsLc(key) => {
                let nonce = aws_lc::Nonce::assume_unique_for_key(nonce);
                let tag = key.seal_in_place_separate_tag(nonce, aws_lc::Aad::from(aad), plain).ok()?;
                tag.as_ref().try_into().ok()
            }
            Self::Ring(key) => {
                let nonce = ring_lib::Nonce::assume_unique_for_key(nonce);
                let tag = key.seal_in_place_separate_tag(nonce, ring_lib::Aad::from(aad), plain).ok()?;
                tag.as_ref().try_into().ok()
            }
        }
    }
}

/// Returns true if the processor has the vector AES instructions (VAES) that aws-lc's fastest code
/// needs. Without them, another implementation is used.
#[cfg(target_arch = "x86_64")]
fn should_use_aws_lc() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") && has!("vaes") && has!("vpclmulqdq")
}

/// Always returns true, so that aws-lc is used: on processors other than x86-64, it is as fast as
/// ring.
#[cfg(not(target_arch = "x86_64"))]
fn should_use_aws_lc() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const CIPHERS: [(TlsAeadAlgorithm, usize); 3] = [
        (TlsAeadAlgorithm::Aes128Gcm, 16),
        (TlsAeadAlgorithm::Aes256Gcm, 32),
        (TlsAeadAlgorithm::ChaCha20Poly1305, 32),
    ];

    #[test]
    fn aws_lc_and_ring_decrypt_each_others_records() {
        let plain: Vec<u8> = (0..20_000_u32).map(|n| (n % 251) as u8).collect();
        for (cipher, len) in CIPHERS {
            let key = &plain[7..7 + len];
            let both = [TlsRecordAead::aws_lc(cipher, key).unwrap(), TlsRecordAead::ring(cipher, key).unwrap()];
            for length in [0, 1, 15, 16, 17, 255, 256, 4_095, 16_384, 16_385] {
                let mut sealed = both.each_ref().map(|aead| {
                    let mut text = plain[..length].to_vec();
                    let tag = aead.seal([3; 12], b"header", &mut text).unwrap();
                    [&text[..], &tag].concat()
                });
                assert!(sealed[0] == sealed[1], "{cipher:?}, {length}");
                for (aead, sealed) in both.iter().rev().zip(&mut sealed) {
                    assert!(aead.open([3; 12], b"header", sealed).unwrap() == &plain[..length], "{cipher:?}, {length}");
                }
            }
        }
    }

    #[test]
    fn record_with_a_changed_bit_is_not_decrypted() {
        for (cipher, len) in CIPHERS {
            for make in [TlsRecordAead::aws_lc, TlsRecordAead::ring] {
                let aead = make(cipher, &vec![9; len]).unwrap();
                let mut text = vec![5; 100];
                let tag = aead.seal([1; 12], b"aad", &mut text).unwrap();
                let sealed = [&text[..], &tag].concat();
                for index in 0..sealed.len() {
                    let mut changed = sealed.clone();
                    changed[index] ^= 1 << (index % 8);
                    assert!(aead.open([1; 12], b"aad", &mut changed).is_none(), "{cipher:?}, {index}");
                }
                assert!(aead.open([1; 12], b"aae", &mut sealed.clone()).is_none());
                assert!(aead.open([2; 12], b"aad", &mut sealed.clone()).is_none());
                assert!(aead.open([1; 12], b"aad", &mut [0; TAG_LENGTH - 1]).is_none());
                assert!(aead.open([1; 12], b"aad", &mut sealed.clone()).is_some());
            }
        }
    }

    #[test]
    fn record_key_of_wrong_length_is_refused() {
        for make in [TlsRecordAead::aws_lc, TlsRecordAead::ring] {
            assert!(
                make(TlsAeadAlgorithm::Aes128Gcm, &[0; 32]).is_none()
                    && make(TlsAeadAlgorithm::Aes256Gcm, &[0; 16]).is_none()
            );
        }
    }
}
