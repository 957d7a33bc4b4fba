//! The AEAD of one direction's key, by whichever of two libraries does it faster on this processor.
//!
//! The bulk of a TLS download is AES-GCM. aws-lc-rs, which rustls uses here for the handshake, has fast code for
//! processors with AVX-512; on those that have VAES without it (AMD's before Zen 4, Intel's small cores) it falls back to
//! AES-NI, and there ring's code takes half the time: 0.15 to 0.18 s/GB against 0.31 to 0.38 s/GB for records of 16 KiB on
//! an EPYC (`docs/design/data-path.md`). Everything else stays with aws-lc-rs.

use rustls::ConnectionTrafficSecrets;

/// The tag's length in bytes, the same for all AEADs of TLS (RFC 5116 section 5.1, RFC 8439 section 2.8).
pub(super) const TAG: usize = 16;

/// A key, ready for use.
pub(super) enum Cipher {
    Aws(aws_lc_rs::aead::LessSafeKey),
    Ring(ring::aead::LessSafeKey),
}

/// Nothing more is said about why: a record that does not authenticate must not tell (RFC 8446 section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failed;

/// Which AEAD, by its name in the suites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Aes128Gcm,
    Aes256Gcm,
    ChaCha20Poly1305,
}

impl Cipher {
    /// The cipher of these secrets and their initialisation vector. None for one that is not known here.
    pub(super) fn new(secrets: &ConnectionTrafficSecrets) -> Option<(Self, Kind, [u8; 12])> {
        let (kind, key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Kind::Aes128Gcm, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Kind::Aes256Gcm, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (Kind::ChaCha20Poly1305, key, iv),
            _ => return None,
        };
        let cipher = if is_for_ring(kind) { Self::ring(kind, key.as_ref()) } else { Self::aws(kind, key.as_ref()) };
        Some((cipher?, kind, iv.as_ref().try_into().ok()?))
    }

    fn aws(kind: Kind, key: &[u8]) -> Option<Self> {
        use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305, LessSafeKey, UnboundKey};
        let algorithm = match kind {
            Kind::Aes128Gcm => &AES_128_GCM,
            Kind::Aes256Gcm => &AES_256_GCM,
            Kind::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        Some(Self::Aws(LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?)))
    }

    fn ring(kind: Kind, key: &[u8]) -> Option<Self> {
        use ring::aead::{AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305, LessSafeKey, UnboundKey};
        let algorithm = match kind {
            Kind::Aes128Gcm => &AES_128_GCM,
            Kind::Aes256Gcm => &AES_256_GCM,
            Kind::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        Some(Self::Ring(LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?)))
    }

    /// Opens `sealed`, content and tag, in place; answers the content.
    pub(super) fn open<'a>(&self, nonce: [u8; 12], aad: &[u8], sealed: &'a mut [u8]) -> Result<&'a mut [u8], Failed> {
        match self {
            Self::Aws(key) => {
                use aws_lc_rs::aead::{Aad, Nonce};
                key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(aad), sealed).map_err(|_| Failed)
            }
            Self::Ring(key) => {
                use ring::aead::{Aad, Nonce};
                key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(aad), sealed).map_err(|_| Failed)
            }
        }
    }

    /// Seals `content` in place; answers the tag.
    pub(super) fn seal(&self, nonce: [u8; 12], aad: &[u8], content: &mut [u8]) -> Result<[u8; TAG], Failed> {
        let mut tag = [0; TAG];
        match self {
            Self::Aws(key) => {
                use aws_lc_rs::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                let sealed = key.seal_in_place_separate_tag(nonce, Aad::from(aad), content).map_err(|_| Failed)?;
                tag.copy_from_slice(sealed.as_ref());
            }
            Self::Ring(key) => {
                use ring::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                let sealed = key.seal_in_place_separate_tag(nonce, Aad::from(aad), content).map_err(|_| Failed)?;
                tag.copy_from_slice(sealed.as_ref());
            }
        }
        Ok(tag)
    }
}

/// Whether ring is the faster one here.
fn is_for_ring(kind: Kind) -> bool {
    kind != Kind::ChaCha20Poly1305 && has_vaes_alone()
}

#[cfg(target_arch = "x86_64")]
fn has_vaes_alone() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("vaes") && has!("vpclmulqdq") && has!("avx2") && !has!("avx512f")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_vaes_alone() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one library seals the other opens, and neither opens what was changed.
    #[test]
    fn both_libraries_do_the_same() {
        for (kind, len) in [(Kind::Aes128Gcm, 16), (Kind::Aes256Gcm, 32), (Kind::ChaCha20Poly1305, 32)] {
            let key: Vec<u8> = (0..len).collect();
            let ciphers = [Cipher::aws(kind, &key).unwrap(), Cipher::ring(kind, &key).unwrap()];
            for (sealer, opener) in [(&ciphers[0], &ciphers[1]), (&ciphers[1], &ciphers[0])] {
                for size in [0, 1, 15, 16, 17, 255, 16_384] {
                    let plain: Vec<u8> = (0..size).map(|i| (i * 7) as u8).collect();
                    let (nonce, aad) = ([9; 12], [1, 2, 3, 4, 5]);
                    let mut sealed = plain.clone();
                    let tag = sealer.seal(nonce, &aad, &mut sealed).unwrap();
                    sealed.extend_from_slice(&tag);
                    for place in [0, sealed.len() / 2, sealed.len() - 1] {
                        let mut changed = sealed.clone();
                        changed[place] ^= 1;
                        assert_eq!(opener.open(nonce, &aad, &mut changed), Err(Failed), "{kind:?} {size} {place}");
                    }
                    assert_eq!(opener.open(nonce, &[0; 5], &mut sealed.clone()), Err(Failed));
                    assert_eq!(opener.open(nonce, &aad, &mut sealed).unwrap(), plain, "{kind:?} {size}");
                }
            }
        }
    }
}
