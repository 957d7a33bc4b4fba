//! The AEAD of QUIC packets (RFC 9001 section 5.3), from the library that is faster on this
//! processor: see [`fastest_aead`](super::fastest_aead). The header protection of rustls is used
//! unchanged.

use rustls::crypto::cipher::{AeadKey, Iv, Nonce};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};
use rustls::{CipherSuite, Error, Tls13CipherSuite};

use super::fastest_aead::{TAG_LENGTH, TlsAeadAlgorithm, TlsRecordAead};

/// The limits of AES-GCM: the maximum number of packets to encrypt with one key, and the maximum
/// number of forged packets to reject (RFC 9001 section 6.6).
const AES_LIMITS: (u64, u64) = (1 << 23, 1 << 52);
/// The limits of ChaCha20-Poly1305: the maximum number of packets to encrypt with one key (none,
/// because packet numbers end earlier), and the maximum number of forged packets to reject.
const CHACHA20_LIMITS: (u64, u64) = (u64::MAX, 1 << 36);

/// The algorithms that protect packets with a QUIC cipher suite.
struct QuicCipher {
    cipher: TlsAeadAlgorithm,
    limits: (u64, u64),
    of_rustls: &'static dyn Algorithm,
}

/// Makes the packet protection for a cipher suite from the AEADs of
/// [`fastest_aead`](super::fastest_aead), and never frees it. For an unknown suite, returns the
/// packet protection of rustls. Returns `None` if the suite does not support QUIC.
pub(super) fn packet_protection(suite: &Tls13CipherSuite) -> Option<&'static dyn Algorithm> {
    let of_rustls = suite.quic?;
    let (cipher, limits) = match suite.common.suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => (TlsAeadAlgorithm::Aes128Gcm, AES_LIMITS),
        CipherSuite::TLS13_AES_256_GCM_SHA384 => (TlsAeadAlgorithm::Aes256Gcm, AES_LIMITS),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => (TlsAeadAlgorithm::ChaCha20Poly1305, CHACHA20_LIMITS),
        _ => return Some(of_rustls),
    };
    Some(Box::leak(Box::new(QuicCipher { cipher, limits, of_rustls })))
}

impl Algorithm for QuicCipher {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        match TlsRecordAead::new(self.cipher, key.as_ref()) {
            Some(aead) => Box::new(PacketAead { aead, iv, limits: self.limits }),
            None => self.of_rustls.packet_key(key, iv),
        }
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        self.of_rustls.header_protection_key(key)
    }

    fn aead_key_len(&self) -> usize {
        self.of_rustls.aead_key_len()
    }
}

/// The key that protects the packets of one direction until the next key update.
struct PacketAead {
    aead: TlsRecordAead,
    iv: Iv,
    limits: (u64, u64),
}

impl PacketKey for PacketAead {
    fn encrypt_in_place(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Result<Tag, Error> {
        let tag = self.aead.seal(Nonce::new(&self.iv, number).0, header, payload);
        tag.map(|tag| Tag::from(&tag[..])).ok_or(Error::EncryptError)
    }

    fn decrypt_in_place<'a>(&self, number: u64, header: &[u8], payload: &'a mut [u8]) -> Result<&'a [u8], Error> {
        let plain = self.aead.open(Nonce::new(&self.iv, number).0, header, payload);
        plain.map(|plain| &*plain).ok_or(Error::DecryptError)
    }

    fn tag_len(&self) -> usize {
        TAG_LENGTH
    }

    fn confidentiality_limit(&self) -> u64 {
        self.limits.0
    }

    fn integrity_limit(&self) -> u64 {
        self.limits.1
    }
}

#[cfg(test)]
mod tests {
    use rustls::Side;
    use rustls::quic::{Keys, Suite, Version};

    use super::*;

    /// Returns two sets of keys for client and server: one with the packet protection of rustls,
    /// and one with the packet protection of this module.
    fn keys(suite: &'static Tls13CipherSuite) -> (Keys, Keys) {
        let keys = |quic, side| Suite { suite, quic }.keys(b"id", side, Version::V1);
        (keys(suite.quic.unwrap(), Side::Client), keys(packet_protection(suite).unwrap(), Side::Server))
    }

    #[test]
    fn protected_packets_are_identical_to_those_of_rustls() {
        let suites = rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES.iter().filter_map(|suite| suite.tls13());
        let mut tested = 0;
        for suite in suites {
            tested += 1;
            let (theirs, ours) = keys(suite);
            assert_eq!(ours.local.packet.confidentiality_limit(), theirs.local.packet.confidentiality_limit());
            assert_eq!(ours.local.packet.integrity_limit(), theirs.local.packet.integrity_limit());
            for (from, to) in [(&theirs, &ours), (&ours, &theirs)] {
                let mut packet = b"payload".to_vec();
                let tag = from.local.packet.encrypt_in_place(7, b"header", &mut packet).unwrap();
                packet.extend_from_slice(tag.as_ref());
                let decrypt = |number, header: &[u8]| {
                    to.remote.packet.decrypt_in_place(number, header, &mut packet.clone()).map(<[u8]>::to_vec)
                };
                assert_eq!(decrypt(7, b"header").unwrap(), b"payload");
                assert!(decrypt(8, b"header").is_err() && decrypt(7, b"leader").is_err());
            }
        }
        assert_eq!(tested, 3);
    }
}
