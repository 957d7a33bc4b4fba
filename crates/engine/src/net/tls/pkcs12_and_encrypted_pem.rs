//! Keys in formats older than PKCS#8, as written by openssl: PKCS#12 files (RFC 7292), and
//! encrypted PEM keys of RFC 1421 (`Proc-Type: 4,ENCRYPTED`).
//!
//! Not supported: RC2 and single DES in PEM, and PKCS#12 files that are signed with a public key.

use std::result::Result;

use aes::{Aes128, Aes192, Aes256};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockCipherDecrypt, BlockModeDecrypt, InnerIvInit, KeyInit};
use des::TdesEde3;
use md5::{Digest, Md5};
use p12_keystore::{KeyStore, Pkcs12ImportPolicy};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

/// The contents of a PKCS#12 file: the certificates, the client's own first, and the key.
pub(super) type Pkcs12Contents = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Decrypts a PKCS#12 file.
///
/// # Errors
/// The reason why the file cannot be decrypted, as text for an error message.
pub(super) fn open_pkcs12(bytes: &[u8], passphrase: &[u8]) -> Result<Pkcs12Contents, String> {
    let passphrase = std::str::from_utf8(passphrase).map_err(|_| "the passphrase is not UTF-8".to_owned())?;
    let store = KeyStore::from_pkcs12(bytes, passphrase, Pkcs12ImportPolicy::Relaxed)
        .map_err(|error| format!("the passphrase does not open it ({error})"))?;
    let (_, chain) = store.private_key_chain().ok_or("it has no key")?;
    let certificates: Vec<_> =
        chain.certs().iter().map(|certificate| CertificateDer::from(certificate.as_der().to_vec())).collect();
    if certificates.is_empty() {
        return Err("it has no certificate of its key".to_owned());
    }
    Ok((certificates, PrivatePkcs8KeyDer::from(chain.key().as_der().to_vec()).into()))
}

/// Decrypts a PEM key that is encrypted as in RFC 1421. `section` is the text between the boundary
/// lines. Its header fields specify the cipher and the initialization vector.
///
/// # Errors
/// The reason why the key cannot be decrypted, as text for an error message.
pub(super) fn open_pem(label: &str, section: &str, passphrase: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let (fields, content) = section
        .trim_start()
        .split_once("\n\n")
        .or_else(|| section.split_once("\r\n\r\n"))
        .ok_or("its header is broken")?;
    let field = fields.lines().find_map(|line| line.trim().strip_prefix("DEK-Info:")).ok_or("it names no cipher")?;
    let (cipher, vector) = field.split_once(',').ok_or("it has no initialization vector")?;
    let vector = bytes_of_hex(vector.trim()).ok_or("its initialization vector is broken")?;
    let text: String = content.split_ascii_whitespace().collect();
    let sealed = STANDARD.decode(text).map_err(|error| error.to_string())?;
    let open = match cipher.trim() {
        "AES-128-CBC" => decrypt::<Aes128>,
        "AES-192-CBC" => decrypt::<Aes192>,
        "AES-256-CBC" => decrypt::<Aes256>,
        "DES-EDE3-CBC" => decrypt::<TdesEde3>,
        other => return Err(format!("its cipher {} is not supported", other.escape_debug())),
    };
    // Wrong padding means a wrong passphrase; a wrong one may have right padding by chance, and the
    // key is none then.
    let key = open(&sealed, passphrase, &vector).ok_or("the passphrase does not open it")?;
    match label {
        "RSA PRIVATE KEY" => Ok(PrivatePkcs1KeyDer::from(key).into()),
        "EC PRIVATE KEY" => Ok(PrivateSec1KeyDer::from(key).into()),
        "PRIVATE KEY" => Ok(PrivatePkcs8KeyDer::from(key).into()),
        _ => Err(format!("{label} is not supported")),
    }
}

/// Decrypts `sealed` in CBC mode, with the key that openssl derives from the passphrase. Returns
/// `None` if a length or the padding is wrong.
fn decrypt<C: BlockCipherDecrypt + KeyInit>(sealed: &[u8], passphrase: &[u8], vector: &[u8]) -> Option<Vec<u8>> {
    let key = derived_key(passphrase, vector.get(..8)?, C::key_size());
    let cipher = C::new_from_slice(&key).ok()?;
    let mode = cbc::Decryptor::<C>::inner_iv_slice_init(cipher, vector).ok()?;
    mode.decrypt_padded_vec::<Pkcs7>(sealed).ok()
}

/// Derives a key from a passphrase as openssl does for PEM: repeated MD5, with the first eight
/// bytes of the initialization vector as the salt.
fn derived_key(passphrase: &[u8], salt: &[u8], length: usize) -> Vec<u8> {
    let mut key = Vec::with_capacity(length + 16);
    let mut last: Vec<u8> = Vec::new();
    while key.len() < length {
        last = Md5::new().chain_update(&last).chain_update(passphrase).chain_update(salt).finalize().to_vec();
        key.extend_from_slice(&last);
    }
    key.truncate(length);
    key
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect();
    digits
        .filter(|digits| digits.len().is_multiple_of(2))
        .map(|digits| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_old_key_files_are_refused() {
        let section = "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\nAAAA\n";
        for end in 0..section.len() {
            assert!(open_pem("RSA PRIVATE KEY", &section[..end], b"x").is_err(), "{end}");
        }
        let other = section.replace("AES-128", "RC2");
        assert!(open_pem("RSA PRIVATE KEY", &other, b"x").unwrap_err().contains("RC2-CBC"));
        for bytes in [&[0x30, 0x05, 0x02, 0x01, 0x03, 0, 0][..], &[], &[0xff; 40]] {
            assert!(open_pkcs12(bytes, b"x").is_err(), "{bytes:x?}");
        }
    }

    /// Five bytes, `a key`, that openssl encrypted with the passphrase `secret`: the cipher, the
    /// initialization vector and the PEM text.
    const SEALED: [(&str, &str, &str); 4] = [
        ("AES-128-CBC", "A0A1A2A3A4A5A6A7A8A9AAABACADAEAF", "aoexYO8Ho0yTEsIaj2JaWg=="),
        ("AES-192-CBC", "A0A1A2A3A4A5A6A7A8A9AAABACADAEAF", "xm1Q2AFKyNYv1L3NXrfB6A=="),
        ("AES-256-CBC", "A0A1A2A3A4A5A6A7A8A9AAABACADAEAF", "OkO21fnQ9v51/ortJuujig=="),
        ("DES-EDE3-CBC", "A0A1A2A3A4A5A6A7", "Yfavk88X/FY="),
    ];

    #[test]
    fn key_encrypted_by_openssl_is_decrypted() {
        for (cipher, vector, text) in SEALED {
            for line_end in ["\n", "\r\n"] {
                let lines = ["", "Proc-Type: 4,ENCRYPTED", &format!("DEK-Info: {cipher},{vector}"), "", text, ""];
                let section = lines.join(line_end);
                let key = open_pem("EC PRIVATE KEY", &section, b"secret").unwrap();
                assert_eq!(key.secret_der(), b"a key", "{cipher}");
            }
        }
    }

    #[test]
    fn label_determines_the_format_of_the_key() {
        let (cipher, vector, text) = SEALED[0];
        let section = format!("Proc-Type: 4,ENCRYPTED\nDEK-Info: {cipher},{vector}\n\n{text}\n");
        let open = |label| open_pem(label, &section, b"secret");
        assert!(matches!(open("RSA PRIVATE KEY"), Ok(PrivateKeyDer::Pkcs1(_))));
        assert!(matches!(open("EC PRIVATE KEY"), Ok(PrivateKeyDer::Sec1(_))));
        assert!(matches!(open("PRIVATE KEY"), Ok(PrivateKeyDer::Pkcs8(_))));
        assert_eq!(open("DSA PRIVATE KEY").unwrap_err(), "DSA PRIVATE KEY is not supported");
        let other = open_pem("EC PRIVATE KEY", &section, b"wrong").unwrap_err();
        assert_eq!(other, "the passphrase does not open it");
    }

    #[test]
    fn hexadecimal_digits_come_in_pairs() {
        assert_eq!(bytes_of_hex("00fFa1"), Some(vec![0x00, 0xff, 0xa1]));
        assert_eq!(bytes_of_hex(""), Some(Vec::new()));
        assert_eq!((bytes_of_hex("0"), bytes_of_hex("0g")), (None, None));
    }

    #[test]
    fn pkcs12_file_yields_chain_and_key() {
        use p12_keystore::{Certificate, KeyStoreEntry, PrivateKey, PrivateKeyChain};

        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new([]).unwrap().self_signed(&key).unwrap();
        let file = |certificates: Vec<Certificate>| {
            let mut store = KeyStore::new();
            let private = PrivateKey::from_der(&key.serialize_der()).unwrap();
            let chain = PrivateKeyChain::new(&[1_u8][..], private, certificates);
            store.add_entry("me", KeyStoreEntry::PrivateKeyChain(chain));
            store.writer("secret").write().unwrap()
        };
        let whole = file(vec![Certificate::from_der(certificate.der()).unwrap()]);
        let (chain, private) = open_pkcs12(&whole, b"secret").unwrap();
        assert_eq!(chain, [certificate.der().clone()]);
        assert_eq!(private.secret_der(), key.serialize_der());
        assert!(open_pkcs12(&whole, b"wrong").unwrap_err().contains("the passphrase does not open it"));
        assert_eq!(open_pkcs12(&whole, b"\xff").unwrap_err(), "the passphrase is not UTF-8");
        assert_eq!(open_pkcs12(&file(Vec::new()), b"secret").unwrap_err(), "it has no certificate of its key");
    }
}
