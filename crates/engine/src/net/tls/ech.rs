//! Encrypted Client Hello (RFC 9849): hides the server's name in the handshake.
//!
//! ```text
//!  EchOptions ── keys of the program, or of the HTTPS record ──▶ EchOffer ──▶ rustls
//!                                                                  │
//!  the server has no such key ── EchRequired, with its keys ◀──────┘
//! ```
//!
//! The unencrypted ClientHello contains only the public name of the keys. The ClientHello with the
//! real name is encrypted inside it. rustls makes both, with HPKE (RFC 9180) by aws-lc.
//!
//! Not supported: a public name that differs from the name in the keys, which rustls cannot send.

use std::fmt;

use rustls::client::{EchConfig, EchGreaseConfig, EchMode};
use rustls::crypto::aws_lc_rs::hpke::{ALL_SUPPORTED_SUITES, DH_KEM_X25519_HKDF_SHA256_AES_128};
use rustls::crypto::hpke::Hpke;
use rustls::internal::msgs::codec::{Codec, Reader};
use rustls::internal::msgs::handshake::EchConfigPayload;
use rustls_pki_types::EchConfigListBytes;

use super::hyphen_host_stand_in::HyphenHostName;
use super::negotiated_session::without_dot_and_brackets;
use crate::{Error, ErrorKind, Result};

/// The policy that decides whether connections use Encrypted Client Hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum EchPolicy {
    /// Encrypted Client Hello is not used.
    #[default]
    Off,
    /// The connection sends a fake extension of random bytes (GREASE), so that handshakes with and
    /// without encryption look alike. Connections need TLS 1.3.
    Grease,
    /// The server's name is encrypted if the server's keys are known.
    Try,
    /// The server's name is encrypted. If that is impossible, the connection fails.
    Require,
}

/// The settings for Encrypted Client Hello.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct EchOptions {
    /// The policy that decides whether the extension is sent. Default: [`EchPolicy::Off`].
    pub policy: EchPolicy,
    /// The server's keys: an ECHConfigList. Default: the keys in the origin's HTTPS record, if the
    /// resolver asks name servers and no proxy resolves the name.
    pub config_list: Option<Vec<u8>>,
    /// True to connect once more with the keys that the server sends, if the server does not know
    /// the keys that were used. Default: false.
    pub retries: bool,
}

impl fmt::Debug for EchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.config_list.as_ref().map(Vec::len);
        f.debug_struct("EchOptions").field("policy", &self.policy).field("config_list", &keys).finish_non_exhaustive()
    }
}

impl EchOptions {
    /// Returns true if Encrypted Client Hello is wanted and `config_list` contains no keys, so that
    /// the keys must be looked up.
    pub(crate) fn needs_keys(&self) -> bool {
        matches!(self.policy, EchPolicy::Try | EchPolicy::Require) && self.config_list.is_none()
    }

    /// Returns a copy of these settings with the keys `config_list`, for a connection to `host`.
    pub(crate) fn with_keys(&self, host: &str, config_list: Option<Vec<u8>>) -> Self {
        // The name is encrypted before it can replace its stand-in.
        let config_list = config_list.filter(|_| HyphenHostName::parse(without_dot_and_brackets(host)).is_none());
        Self { config_list, ..self.clone() }
    }
}

/// The form of Encrypted Client Hello that the connections of one TLS context send.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum EchOffer {
    /// The extension for Encrypted Client Hello is not sent.
    #[default]
    Off,
    /// Encrypted Client Hello is wanted, but none of the known keys can be used, so the extension
    /// is not sent.
    NotConfigured,
    /// A fake extension of random bytes (GREASE) is sent.
    Grease,
    /// The server's real name is encrypted. The unencrypted ClientHello contains this public name
    /// instead.
    Encrypted(String),
}

impl EchOffer {
    /// Decides which form of Encrypted Client Hello the connections with these settings send. Also
    /// returns the mode to set in rustls; `None` if the extension is not sent.
    ///
    /// # Errors
    /// [`ErrorKind::TlsHandshake`] if the server's name must be encrypted and there is no usable
    /// key.
    pub(super) fn new(options: &EchOptions) -> Result<(Self, Option<EchMode>)> {
        match options.policy {
            EchPolicy::Off => Ok((Self::Off, None)),
            EchPolicy::Grease => {
                let suite = DH_KEM_X25519_HKDF_SHA256_AES_128;
                let (key, _) = suite.generate_key_pair().map_err(super::handshake_failure::handshake_error)?;
                Ok((Self::Grease, Some(EchGreaseConfig::new(suite, key).into())))
            }
            EchPolicy::Try | EchPolicy::Require => match options.config_list.as_deref().and_then(usable) {
                Some((config, name)) => Ok((Self::Encrypted(name), Some(config.into()))),
                None if options.policy == EchPolicy::Try => Ok((Self::NotConfigured, None)),
                None => Err(Error::new(ErrorKind::TlsHandshake, unusable(options))),
            },
        }
    }

    /// Returns the trace line that reports the use of Encrypted Client Hello in a completed
    /// handshake with the server `host`; `None` if Encrypted Client Hello is off.
    pub(super) fn result_line(&self, host: &str) -> Option<String> {
        let (status, inner, outer) = match self {
            Self::Off => return None,
            Self::NotConfigured => ("not configured", "NULL", "NULL"),
            Self::Grease => ("sent GREASE", "NULL", "NULL"),
            // rustls ends a handshake in which the server has not accepted it.
            Self::Encrypted(outer) => ("succeeded", host, outer.as_str()),
        };
        Some(format!("ECH: result: status is {status}, inner is {inner}, outer is {outer}"))
    }
}

/// Returns the first entry of an ECHConfigList that rustls can use, and the public name in this
/// entry. Returns `None` if rustls can use no entry.
fn usable(list: &[u8]) -> Option<(EchConfig, String)> {
    let configs = Vec::<EchConfigPayload>::read(&mut Reader::init(list)).ok()?;
    configs.into_iter().find_map(|config| {
        let EchConfigPayload::V18(contents) = &config else { return None };
        let name = contents.public_name.as_ref().to_owned();
        let usable = EchConfig::new(EchConfigListBytes::from(encoded(vec![config])), ALL_SUPPORTED_SUITES).ok()?;
        Some((usable, name))
    })
}

fn unusable(options: &EchOptions) -> &'static str {
    match options.config_list {
        Some(_) => "the server's name cannot be encrypted: no key of the ECHConfigList can be used",
        None => "the server's name cannot be encrypted: no ECHConfigList is known for the server",
    }
}

fn encoded(configs: Vec<EchConfigPayload>) -> Vec<u8> {
    let mut bytes = Vec::new();
    configs.encode(&mut bytes);
    bytes
}

/// The error of a handshake in which the server rejected Encrypted Client Hello. It contains the
/// keys that the server sent instead.
#[derive(Debug)]
pub(super) struct EchRejection {
    /// An ECHConfigList with the server's new keys; `None` if the server sent no keys.
    keys: Option<Vec<u8>>,
}

impl EchRejection {
    pub(super) fn new(keys: Option<&Vec<EchConfigPayload>>) -> Self {
        Self { keys: keys.filter(|keys| !keys.is_empty()).map(|keys| encoded(keys.clone())) }
    }
}

impl fmt::Display for EchRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.keys {
            Some(_) => "it sent other keys",
            None => "it sent no keys",
        })
    }
}

impl std::error::Error for EchRejection {}

/// Returns the keys (an ECHConfigList) that the server sent when it rejected Encrypted Client
/// Hello. Returns `None` for other errors.
pub(crate) fn keys_of_rejection(error: &Error) -> Option<&[u8]> {
    let source = std::error::Error::source(error)?;
    source.downcast_ref::<EchRejection>()?.keys.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an ECHConfigList with one X25519 key.
    fn list(version: u16, public_name: &str) -> Vec<u8> {
        let mut contents = vec![7, 0, 0x20, 0, 32];
        contents.extend([9; 32]);
        contents.extend([0, 4, 0, 1, 0, 1, 0, public_name.len() as u8]);
        contents.extend(public_name.as_bytes());
        contents.extend([0, 0]);
        let mut config = version.to_be_bytes().to_vec();
        config.extend((contents.len() as u16).to_be_bytes());
        config.extend(contents);
        [&(config.len() as u16).to_be_bytes()[..], &config].concat()
    }

    fn options(policy: EchPolicy, config_list: Option<Vec<u8>>) -> EchOptions {
        EchOptions { policy, config_list, retries: false }
    }

    #[test]
    fn first_usable_ech_key_determines_public_name() {
        let both = {
            let (unknown, known) = (list(0xfe0a, "old.example"), list(0xfe0d, "public.example"));
            let body = [&unknown[2..], &known[2..]].concat();
            [&(body.len() as u16).to_be_bytes()[..], &body].concat()
        };
        let (offer, mode) = EchOffer::new(&options(EchPolicy::Require, Some(both))).unwrap();
        assert_eq!(offer, EchOffer::Encrypted("public.example".into()));
        assert!(matches!(mode, Some(EchMode::Enable(_))));
        let line = offer.result_line("secret.example").unwrap();
        assert_eq!(line, "ECH: result: status is succeeded, inner is secret.example, outer is public.example");
    }

    #[test]
    fn unusable_ech_keys_fail_only_if_required() {
        let truncated = |len| list(0xfe0d, "public.example")[..len].to_vec();
        let whole = list(0xfe0d, "public.example").len();
        let broken = (0..whole).map(truncated).chain([list(0xfe0a, "old.example"), vec![0, 0]]);
        for config_list in broken.map(Some).chain([None]) {
            let (offer, mode) = EchOffer::new(&options(EchPolicy::Try, config_list.clone())).unwrap();
            assert_eq!(offer, EchOffer::NotConfigured, "{config_list:?}");
            assert!(mode.is_none());
            let error = EchOffer::new(&options(EchPolicy::Require, config_list)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TlsHandshake);
        }
    }

    #[test]
    fn host_with_outer_hyphen_gets_no_ech_keys() {
        let wanted = options(EchPolicy::Try, None);
        assert!(wanted.needs_keys());
        assert_eq!(wanted.with_keys("-odd-.example", Some(vec![1])).config_list, None);
        assert_eq!(wanted.with_keys("plain.example", Some(vec![1])).config_list, Some(vec![1]));
    }

    #[test]
    fn only_a_rejection_has_new_keys() {
        let rejection =
            |keys: Option<Vec<u8>>| Error::with_source(ErrorKind::EchRequired, "rejected", EchRejection { keys });
        assert_eq!(keys_of_rejection(&rejection(Some(vec![1, 2]))), Some(&[1, 2][..]));
        assert_eq!(keys_of_rejection(&rejection(None)), None);
        assert_eq!(keys_of_rejection(&Error::new(ErrorKind::EchRequired, "x")), None);
        assert_eq!(EchRejection { keys: Some(vec![1]) }.to_string(), "it sent other keys");
        assert!(EchRejection::new(Some(&Vec::new())).keys.is_none());
    }

    #[test]
    fn ech_status_is_traced_unless_it_is_off() {
        for (offer, expected) in [
            (EchOffer::Off, None),
            (EchOffer::NotConfigured, Some("not configured, inner is NULL")),
            (EchOffer::Grease, Some("sent GREASE, inner is NULL")),
        ] {
            let line = offer.result_line("h.example");
            assert_eq!(line.is_some(), expected.is_some());
            assert!(expected.is_none_or(|text| line.unwrap().contains(text)));
        }
        assert!(unusable(&options(EchPolicy::Require, None)).contains("no ECHConfigList is known"));
        assert!(unusable(&options(EchPolicy::Require, Some(vec![1]))).contains("no key of the ECHConfigList"));
        let (offer, mode) = EchOffer::new(&options(EchPolicy::Grease, None)).unwrap();
        assert!(offer == EchOffer::Grease && matches!(mode, Some(EchMode::Grease(_))));
        assert!(format!("{:?}", options(EchPolicy::Try, Some(vec![1, 2, 3]))).contains("Some(3)"));
        for (policy, keys, expected) in [
            (EchPolicy::Try, None, true),
            (EchPolicy::Require, None, true),
            (EchPolicy::Grease, None, false),
            (EchPolicy::Off, None, false),
            (EchPolicy::Try, Some(vec![1]), false),
        ] {
            assert_eq!(options(policy, keys).needs_keys(), expected, "{policy:?}");
        }
    }
}
