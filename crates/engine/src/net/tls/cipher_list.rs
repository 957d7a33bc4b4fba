//! Selects cipher suites and key-exchange groups by their OpenSSL names.
//!
//! ```
//! use haul::net::tls::{TlsContexts, TlsOptions};
//!
//! let mut options = TlsOptions::default();
//! options.tls12_ciphers = Some(vec!["ECDHE-RSA-AES128-GCM-SHA256".into()]);
//! options.groups = Some(vec!["X25519".into()]);
//! assert!(TlsContexts::default().context(&options).is_ok());
//! options.groups = Some(vec!["sect163k1".into()]);
//! assert_eq!(TlsContexts::default().context(&options).unwrap_err().exit_code(), 59);
//! ```

use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::{CipherSuite, NamedGroup, SignatureScheme, SupportedCipherSuite};

use super::{TlsOptions, TlsVersion};
use crate::{Error, ErrorKind, Result};

/// OpenSSL's names of the TLS 1.2 cipher suites. (For the suites of TLS 1.3, OpenSSL uses the names
/// of the standard.)
const OPENSSL_SUITE_NAMES: &[(&str, CipherSuite)] = &[
    ("ECDHE-ECDSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
];

/// OpenSSL's keywords for groups of cipher suites. Each keyword has a text: the group consists of
/// the suites whose names contain that text. haul has no suites for keywords such as `RC4`, so
/// `!RC4` has no effect.
const OPENSSL_KEYWORDS: &[(&str, &str)] = &[
    ("ALL", ""),
    ("DEFAULT", ""),
    ("HIGH", ""),
    ("ECDHE", "ECDHE"),
    ("EECDH", "ECDHE"),
    ("kECDHE", "ECDHE"),
    ("kEECDH", "ECDHE"),
    ("AES", "-AES"),
    ("AES128", "AES128"),
    ("AES256", "AES256"),
    ("AESGCM", "-GCM-"),
    ("CHACHA20", "CHACHA20"),
    ("aECDSA", "-ECDSA-"),
    ("ECDSA", "-ECDSA-"),
    ("aRSA", "-RSA-"),
];

/// The names of key-exchange groups, both OpenSSL's names and the standard names.
const GROUP_NAMES: &[(&str, NamedGroup)] = &[
    ("x25519", NamedGroup::X25519),
    ("prime256v1", NamedGroup::secp256r1),
    ("secp256r1", NamedGroup::secp256r1),
    ("p-256", NamedGroup::secp256r1),
    ("secp384r1", NamedGroup::secp384r1),
    ("p-384", NamedGroup::secp384r1),
    ("x25519mlkem768", NamedGroup::X25519MLKEM768),
];

/// The signature algorithms for handshakes. Each entry contains the scheme's name in TLS 1.3, and
/// OpenSSL's name that consists of key type and hash.
const SIGNATURE_NAMES: &[(&str, &str, SignatureScheme)] = &[
    ("ecdsa_secp256r1_sha256", "ECDSA+SHA256", SignatureScheme::ECDSA_NISTP256_SHA256),
    ("ecdsa_secp384r1_sha384", "ECDSA+SHA384", SignatureScheme::ECDSA_NISTP384_SHA384),
    ("ecdsa_secp521r1_sha512", "ECDSA+SHA512", SignatureScheme::ECDSA_NISTP521_SHA512),
    ("ed25519", "ed25519", SignatureScheme::ED25519),
    ("rsa_pss_rsae_sha256", "RSA-PSS+SHA256", SignatureScheme::RSA_PSS_SHA256),
    ("rsa_pss_rsae_sha384", "RSA-PSS+SHA384", SignatureScheme::RSA_PSS_SHA384),
    ("rsa_pss_rsae_sha512", "RSA-PSS+SHA512", SignatureScheme::RSA_PSS_SHA512),
    ("rsa_pkcs1_sha256", "RSA+SHA256", SignatureScheme::RSA_PKCS1_SHA256),
    ("rsa_pkcs1_sha384", "RSA+SHA384", SignatureScheme::RSA_PKCS1_SHA384),
    ("rsa_pkcs1_sha512", "RSA+SHA512", SignatureScheme::RSA_PKCS1_SHA512),
];

/// Returns the signature schemes that the options allow for the handshake; `None` if they allow
/// all. Ignores unknown names if at least one name is known.
pub(super) fn signature_schemes(
    options: &TlsOptions,
    supported: &WebPkiSupportedAlgorithms,
) -> Result<Option<Vec<SignatureScheme>>> {
    let Some(names) = &options.signature_algorithms else { return Ok(None) };
    let known = supported.supported_schemes();
    let scheme = |name: &String| {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        let found =
            SIGNATURE_NAMES.iter().find(|(new, old, _)| is(new) || is(old) || is(&old.replace("RSA-PSS", "PSS")));
        found.map(|(.., scheme)| *scheme).filter(|scheme| known.contains(scheme))
    };
    let schemes: Vec<_> = names.iter().filter_map(scheme).collect();
    if schemes.is_empty() {
        return Err(Error::new(ErrorKind::Cipher, "none of the signature algorithms is known"));
    }
    Ok(Some(schemes))
}

/// Restricts the crypto provider to the cipher suites and key-exchange groups in the options. As in
/// OpenSSL, unknown names and suites of disabled TLS versions are ignored if at least one other
/// name is usable.
pub(super) fn apply_cipher_lists(provider: &mut CryptoProvider, options: &TlsOptions) -> Result<()> {
    let is_13 = |suite: &SupportedCipherSuite| suite.tls13().is_some();
    let (speaks_12, speaks_13) = (options.min_version < TlsVersion::V1_3, options.max_version >= TlsVersion::V1_3);
    for (names, of_13) in [
        (options.tls12_ciphers.as_ref().filter(|_| speaks_12), false),
        (options.tls13_ciphers.as_ref().filter(|_| speaks_13), true),
    ] {
        let Some(names) = names else { continue };
        let listed = |suite: &SupportedCipherSuite| is_listed(names, suite.suite());
        provider.cipher_suites.retain(|suite| is_13(suite) != of_13 || listed(suite));
        if !provider.cipher_suites.iter().any(|suite| is_13(suite) == of_13) {
            return Err(Error::new(ErrorKind::Cipher, "none of the ciphers is known"));
        }
    }
    if let Some(names) = &options.groups {
        let known = provider.kx_groups.clone();
        // The user's order counts: the client sends a key share for the first group.
        provider.kx_groups = names
            .iter()
            .filter_map(|name| {
                let group = GROUP_NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?.1;
                known.iter().copied().find(|known| known.name() == group)
            })
            .collect();
        if provider.kx_groups.is_empty() {
            return Err(Error::new(ErrorKind::Cipher, "none of the curves is known"));
        }
    }
    Ok(())
}

/// Returns true if the OpenSSL cipher list `list` includes a suite. Entries with `!` or `-` remove
/// suites; settings such as `@SECLEVEL=1` have no effect.
fn is_listed(list: &[String], suite: CipherSuite) -> bool {
    let Some(&(name, _)) = OPENSSL_SUITE_NAMES.iter().find(|(_, known)| *known == suite) else { return false };
    let fits = |word: &str| {
        word.eq_ignore_ascii_case(name)
            || word.split('+').all(|kind| {
                OPENSSL_KEYWORDS.iter().any(|(known, part)| known.eq_ignore_ascii_case(kind) && name.contains(part))
            })
    };
    let words = list.iter().map(|word| word.split('@').next().unwrap_or_default());
    words.fold(false, |is_in, word| match word.strip_prefix(['!', '-']) {
        Some(word) => is_in && !fits(word),
        None => is_in || fits(word),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openssl_keywords_select_cipher_suites() {
        let held = |list: &str| {
            let words: Vec<_> = list.split(':').map(str::to_owned).collect();
            OPENSSL_SUITE_NAMES[..6].iter().map(|&(_, suite)| u8::from(is_listed(&words, suite))).collect::<Vec<_>>()
        };
        assert_eq!(held("DEFAULT@SECLEVEL=1"), [1; 6]);
        assert_eq!(held("HIGH:!aNULL:!MD5"), [1; 6]);
        assert_eq!(held("ECDHE+AESGCM:!aECDSA"), [0, 0, 0, 1, 1, 0]);
        assert_eq!(held("EECDH+CHACHA20"), [0, 0, 1, 0, 0, 1]);
        assert_eq!(held("ALL:-AES256:-CHACHA20"), [1, 0, 0, 1, 0, 0]);
        assert_eq!(held("ecdhe-rsa-aes128-gcm-sha256:RC4-SHA"), [0, 0, 0, 1, 0, 0]);
        assert_eq!(held("RC4:@STRENGTH"), [0; 6]);
    }

    #[test]
    fn cipher_lists_of_disabled_tls_versions_are_ignored() {
        let nonsense = Some(vec!["NONSENSE".to_owned()]);
        let of_12 =
            TlsOptions { max_version: TlsVersion::V1_2, tls13_ciphers: nonsense.clone(), ..TlsOptions::default() };
        let of_13 =
            TlsOptions { min_version: TlsVersion::V1_3, tls12_ciphers: nonsense.clone(), ..TlsOptions::default() };
        let both = TlsOptions { tls13_ciphers: nonsense, ..TlsOptions::default() };
        let narrows = |options| apply_cipher_lists(&mut rustls::crypto::aws_lc_rs::default_provider(), options).is_ok();
        assert_eq!([&of_12, &of_13, &both].map(narrows), [true, true, false]);
    }

    #[test]
    fn disabled_versions_and_unlisted_suites_are_left_out() {
        let names = |options: &TlsOptions| {
            let mut provider = rustls::crypto::aws_lc_rs::default_provider();
            apply_cipher_lists(&mut provider, options).unwrap();
            let suites = provider.cipher_suites.iter().map(|suite| suite.suite()).collect::<Vec<_>>();
            (suites, provider.kx_groups.iter().map(|group| group.name()).collect::<Vec<_>>())
        };
        let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let options = TlsOptions {
            tls12_ciphers: list(&["ECDHE-RSA-AES128-GCM-SHA256"]),
            tls13_ciphers: list(&["TLS_CHACHA20_POLY1305_SHA256"]),
            groups: list(&["P-384", "unknown", "X25519"]),
            ..TlsOptions::default()
        };
        let both =
            vec![CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256];
        assert_eq!(names(&options), (both, vec![NamedGroup::secp384r1, NamedGroup::X25519]));
        let only_13 = TlsOptions { min_version: TlsVersion::V1_3, ..options.clone() };
        assert!(names(&only_13).0.len() > 2, "the list for TLS 1.2 has no effect");
        let only_12 = TlsOptions { max_version: TlsVersion::V1_2, ..options };
        assert!(names(&only_12).0.len() > 2, "the list for TLS 1.3 has no effect");
    }

    #[test]
    fn signature_algorithms_have_three_spellings() {
        let supported = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
        let schemes = |names: &[&str]| {
            let signature_algorithms = Some(names.iter().map(|name| (*name).to_owned()).collect());
            signature_schemes(&TlsOptions { signature_algorithms, ..TlsOptions::default() }, &supported)
        };
        for name in ["rsa_pss_rsae_sha256", "RSA-PSS+SHA256", "PSS+SHA256", "pss+sha256"] {
            assert_eq!(schemes(&[name]).unwrap(), Some(vec![SignatureScheme::RSA_PSS_SHA256]), "{name}");
        }
        let two = vec![SignatureScheme::ED25519, SignatureScheme::ECDSA_NISTP256_SHA256];
        assert_eq!(schemes(&["ed25519", "unknown", "ECDSA+SHA256"]).unwrap(), Some(two));
        assert_eq!(schemes(&["unknown"]).unwrap_err().kind(), ErrorKind::Cipher);
        assert_eq!(signature_schemes(&TlsOptions::default(), &supported).unwrap(), None);
    }
}
