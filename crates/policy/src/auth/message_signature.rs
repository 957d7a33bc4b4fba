//! Signatures of whole requests by RFC 9421, as curl's `--httpsig-*` options make them.
//!
//! ```
//! use haul_policy::Target;
//! use haul_policy::auth::{MessageSigner, SignatureAlgorithm, UnsignedRequest};
//!
//! let signature = MessageSigner::new(SignatureAlgorithm::HmacSha256, b"00ff", "my-key", None)?;
//! let target = Target::parse("https://h.example/a?b")?;
//! let request =
//!     UnsignedRequest { method: "GET", target: &target, host: b"h.example", fields: &[], content: None, unix: 1 };
//! let base = signature.signature_base(&request)?;
//! assert_eq!(
//!     base.text(),
//!     b"\"@method\": GET\n\"@authority\": h.example\n\"@path\": /a\n\"@query\": ?b\n\"@signature-params\": \
//!       (\"@method\" \"@authority\" \"@path\" \"@query\");created=1;keyid=\"my-key\";alg=\"hmac-sha256\""
//! );
//! let [(_, input), (_, value)] = base.signature_fields(&signature.hmac(&base));
//! assert!(input.starts_with("sig1=(\"@method\"") && value.starts_with("sig1=:"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Left out: other algorithms, several signatures, `expires` and `nonce`, the signing of responses.

use core::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::sigv4::{UnsignedRequest, hmac};

/// The largest number of components that a signature covers, as in curl.
const MAX_COMPONENTS: usize = 16;

/// The length of the private key of Ed25519 in bytes.
const ED25519_KEY_LENGTH: usize = 32;

/// The label that identifies the signature in the Signature-Input and Signature fields (RFC 9421).
const SIGNATURE_LABEL: &str = "sig1";

/// The algorithm of a message signature (RFC 9421 §3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignatureAlgorithm {
    /// EdDSA with curve 25519. The key is the private seed of 32 bytes.
    #[default]
    Ed25519,
    /// HMAC with SHA-256. The key is the shared secret.
    HmacSha256,
}

impl SignatureAlgorithm {
    /// Returns the algorithm with this name in RFC 9421; `None` if the name is not supported.
    pub fn parse(name: &str) -> Option<SignatureAlgorithm> {
        [SignatureAlgorithm::Ed25519, SignatureAlgorithm::HmacSha256].into_iter().find(|one| one.name() == name)
    }

    /// Returns the name of the algorithm in the registry of RFC 9421: `ed25519` or `hmac-sha256`.
    pub fn name(self) -> &'static str {
        match self {
            SignatureAlgorithm::Ed25519 => "ed25519",
            SignatureAlgorithm::HmacSha256 => "hmac-sha256",
        }
    }
}

/// A part of a request that a signature covers (RFC 9421 §2).
#[derive(Clone, Debug, PartialEq, Eq)]
enum SignatureComponent {
    Method,
    Authority,
    Path,
    Query,
    /// A header field, by its name in lower case.
    Field(Box<str>),
}

impl SignatureComponent {
    fn identifier(&self) -> &str {
        match self {
            SignatureComponent::Method => "@method",
            SignatureComponent::Authority => "@authority",
            SignatureComponent::Path => "@path",
            SignatureComponent::Query => "@query",
            SignatureComponent::Field(name) => name,
        }
    }
}

/// The reason why requests cannot be signed. The error message contains no key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageSignatureError {
    /// The key is not written in pairs of hexadecimal digits.
    Key,
    /// The Ed25519 key is not 32 bytes long; the number is its length in bytes.
    KeyLength(usize),
    /// The key identifier is empty, or contains other bytes than visible ASCII and blanks.
    KeyId,
    /// RFC 9421 defines no signature component of this name.
    Component(String),
    /// The list of components contains this component twice.
    Repeated(String),
    /// The list of components is empty, or contains more than 16.
    Count,
    /// The caller gave the request no header field of this name.
    NoField(String),
}

impl fmt::Display for MessageSignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageSignatureError::Key => f.write_str("the key of the signature is not hexadecimal"),
            MessageSignatureError::KeyLength(length) => {
                write!(f, "ed25519 needs a key of {ED25519_KEY_LENGTH} bytes, not of {length}")
            }
            MessageSignatureError::KeyId => f.write_str("the identifier of the key is empty or not ASCII"),
            MessageSignatureError::Component(name) => {
                write!(f, "there is no component {}; a header field ends in a colon", name.escape_debug())
            }
            MessageSignatureError::Repeated(name) => {
                write!(f, "the component {} is named twice", name.escape_debug())
            }
            MessageSignatureError::Count => write!(f, "a signature covers 1 to {MAX_COMPONENTS} components"),
            MessageSignatureError::NoField(name) => {
                write!(f, "the signature covers the header {}, which the request does not have", name.escape_debug())
            }
        }
    }
}

impl core::error::Error for MessageSignatureError {}

/// The settings for signing requests by HTTP Message Signatures (RFC 9421): key, algorithm and
/// components. `Debug` shows no key.
#[derive(Clone, PartialEq, Eq)]
pub struct MessageSigner {
    algorithm: SignatureAlgorithm,
    key: Box<[u8]>,
    key_id: Box<str>,
    /// The components to sign. `None` stands for the method, the authority, the path, and the query
    /// if the URL has one.
    components: Option<Box<[SignatureComponent]>>,
}

impl fmt::Debug for MessageSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageSigner")
            .field("algorithm", &self.algorithm)
            .field("components", &self.components)
            .finish_non_exhaustive()
    }
}

impl MessageSigner {
    /// Creates the settings from a key in hexadecimal digits and a list of components, separated by
    /// blanks. In this list, the name of a header field ends in a colon: `method path
    /// content-type:`.
    pub fn new(
        algorithm: SignatureAlgorithm,
        hex_key: &[u8],
        key_id: &str,
        components: Option<&str>,
    ) -> Result<MessageSigner, MessageSignatureError> {
        let key = parse_hex_key(hex_key.trim_ascii_end()).ok_or(MessageSignatureError::Key)?;
        if algorithm == SignatureAlgorithm::Ed25519 && key.len() != ED25519_KEY_LENGTH {
            return Err(MessageSignatureError::KeyLength(key.len()));
        }
        if key_id.is_empty() || !key_id.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Err(MessageSignatureError::KeyId);
        }
        let components = components.map(parse_components).transpose()?;
        Ok(MessageSigner { algorithm, key, key_id: key_id.into(), components })
    }

    /// Returns the algorithm of the signature.
    pub fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }

    /// Returns the key as bytes: the private seed of Ed25519, or the shared secret of HMAC.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the text to sign (RFC 9421 §2.5) for a request. The signature states the time
    /// `request.unix` as its creation time.
    pub fn signature_base(&self, request: &UnsignedRequest<'_>) -> Result<SignatureBase, MessageSignatureError> {
        let usual = [SignatureComponent::Method, SignatureComponent::Authority, SignatureComponent::Path];
        let components: Vec<SignatureComponent> = match &self.components {
            Some(named) => named.to_vec(),
            None => usual.into_iter().chain(request.target.query().map(|_| SignatureComponent::Query)).collect(),
        };
        let mut text = Vec::new();
        for component in &components {
            text.extend_from_slice(format!("\"{}\": ", component.identifier()).as_bytes());
            text.extend_from_slice(&component_value(component, request)?);
            text.push(b'\n');
        }
        let names: Vec<String> = components.iter().map(|one| format!("\"{}\"", one.identifier())).collect();
        let params = format!(
            "({});created={};keyid={};alg=\"{}\"",
            names.join(" "),
            request.unix,
            quoted(&self.key_id),
            self.algorithm.name()
        );
        text.extend_from_slice(format!("\"@signature-params\": {params}").as_bytes());
        Ok(SignatureBase { text, params })
    }

    /// Returns the HMAC-SHA-256 of the text to sign; for [`SignatureAlgorithm::HmacSha256`] only.
    pub fn hmac(&self, base: &SignatureBase) -> Vec<u8> {
        hmac(&self.key, &base.text)
    }
}

/// The text to sign (the signature base of RFC 9421), and its last part, the signature parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureBase {
    text: Vec<u8>,
    params: String,
}

impl SignatureBase {
    /// Returns the text to sign (the signature base).
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the Signature-Input and Signature fields to add to the request, as names and values.
    /// `signature` is the signature of [`text`](Self::text).
    pub fn signature_fields(&self, signature: &[u8]) -> [(String, String); 2] {
        [
            ("Signature-Input".to_owned(), format!("{SIGNATURE_LABEL}={}", self.params)),
            ("Signature".to_owned(), format!("{SIGNATURE_LABEL}=:{}:", STANDARD.encode(signature))),
        ]
    }
}

fn parse_hex_key(text: &[u8]) -> Option<Box<[u8]>> {
    if text.is_empty() || !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    text.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

fn parse_components(text: &str) -> Result<Box<[SignatureComponent]>, MessageSignatureError> {
    let mut components: Vec<SignatureComponent> = Vec::new();
    for word in text.split([' ', '\t']).filter(|word| !word.is_empty()) {
        let lower = word.to_ascii_lowercase();
        let component = match (lower.strip_suffix(':'), &*lower) {
            (Some(name), _) if crate::field_validation::is_token(name.as_bytes()) => {
                SignatureComponent::Field(name.into())
            }
            (None, "method") => SignatureComponent::Method,
            (None, "authority") => SignatureComponent::Authority,
            (None, "path") => SignatureComponent::Path,
            (None, "query") => SignatureComponent::Query,
            _ => return Err(MessageSignatureError::Component(word.to_owned())),
        };
        if components.contains(&component) {
            return Err(MessageSignatureError::Repeated(word.to_owned()));
        }
        components.push(component);
    }
    match components.len() {
        1..=MAX_COMPONENTS => Ok(components.into()),
        _ => Err(MessageSignatureError::Count),
    }
}

/// Returns the value of a component (RFC 9421 §2.1 and §2.2). The values of several fields with one
/// name are joined by commas.
fn component_value(
    component: &SignatureComponent,
    request: &UnsignedRequest<'_>,
) -> Result<Vec<u8>, MessageSignatureError> {
    Ok(match component {
        SignatureComponent::Method => request.method.as_bytes().to_vec(),
        SignatureComponent::Authority => authority(request),
        SignatureComponent::Path => request.target.path().as_bytes().to_vec(),
        SignatureComponent::Query => format!("?{}", request.target.query().unwrap_or_default()).into_bytes(),
        SignatureComponent::Field(name) => {
            let same = request.fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
            let values: Vec<&[u8]> = same.map(|(_, value)| value.trim_ascii()).collect();
            if values.is_empty() {
                return Err(MessageSignatureError::NoField(name.to_string()));
            }
            values.join(&b", "[..])
        }
    })
}

/// Returns the host and port of the request, in lower case and without the default port (RFC 9421
/// §2.2.3).
fn authority(request: &UnsignedRequest<'_>) -> Vec<u8> {
    let host = request.host.trim_ascii().to_ascii_lowercase();
    let default = format!(":{}", request.target.scheme().default_port());
    host.strip_suffix(default.as_bytes()).unwrap_or(&host).to_vec()
}

/// Returns `text` as a quoted string (RFC 9651).
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    fn base(components: Option<&str>, url: &str, fields: &[(&str, &[u8])]) -> Result<String, MessageSignatureError> {
        let signature = MessageSigner::new(SignatureAlgorithm::HmacSha256, b"0A0b\r\n", "k\"1", components)?;
        let target = Target::parse(url).unwrap();
        let host = target.authority();
        let request = UnsignedRequest {
            method: "POST",
            target: &target,
            host: host.as_bytes(),
            fields,
            content: None,
            unix: 1618884473,
        };
        signature.signature_base(&request).map(|base| String::from_utf8(base.text).unwrap())
    }

    #[test]
    fn signature_base_lists_components_and_parameters() {
        let text = base(
            Some("query path Content-Type: x:  method authority"),
            "https://h:8443/?",
            &[("content-type", b" text/plain"), ("X", b"1"), ("x", b"2 ")],
        );
        let expected = "\"@query\": ?\n\"@path\": /\n\"content-type\": text/plain\n\"x\": 1, 2\n\"@method\": POST\n\
                        \"@authority\": h:8443\n\"@signature-params\": (\"@query\" \"@path\" \"content-type\" \"x\" \
                        \"@method\" \"@authority\");created=1618884473;keyid=\"k\\\"1\";alg=\"hmac-sha256\"";
        assert_eq!(text.as_deref(), Ok(expected));
        let usual = base(None, "http://h/a", &[]).unwrap();
        assert!(usual.ends_with(
            "(\"@method\" \"@authority\" \"@path\");created=1618884473;keyid=\"k\\\"1\";alg=\"hmac-sha256\""
        ));
    }

    #[test]
    fn signed_authority_is_lowercase_without_default_port() {
        let signature = MessageSigner::new(SignatureAlgorithm::HmacSha256, b"00", "k", Some("authority")).unwrap();
        for (url, host, expected) in [
            ("https://h/", "H.Example:443", "h.example"),
            ("https://h/", "h.example:80", "h.example:80"),
            ("http://h/", "[::1]:80", "[::1]"),
        ] {
            let target = Target::parse(url).unwrap();
            let host = host.as_bytes();
            let request = UnsignedRequest { method: "GET", target: &target, host, fields: &[], content: None, unix: 1 };
            let base = signature.signature_base(&request).unwrap();
            let text = String::from_utf8_lossy(base.text()).into_owned();
            assert!(text.starts_with(&format!("\"@authority\": {expected}\n")), "{text}");
        }
    }

    #[test]
    fn unusable_signature_settings_are_refused() {
        let new = |algorithm, key: &str, id: &str, components| {
            MessageSigner::new(algorithm, key.as_bytes(), id, components).err()
        };
        let hmac = SignatureAlgorithm::HmacSha256;
        for key in ["", "0", "0g", "00 11", "@file"] {
            assert_eq!(new(hmac, key, "k", None), Some(MessageSignatureError::Key), "{key:?}");
        }
        let short = new(SignatureAlgorithm::Ed25519, "00", "k", None);
        assert_eq!(short, Some(MessageSignatureError::KeyLength(1)));
        assert_eq!(new(SignatureAlgorithm::Ed25519, &"5a".repeat(32), "k", None), None);
        for id in ["", "a\nb", "\u{e4}"] {
            assert_eq!(new(hmac, "00", id, None), Some(MessageSignatureError::KeyId), "{id:?}");
        }
        let many = "a: b: c: d: e: f: g: h: i: j: k: l: m: n: o: p: q:";
        for (components, error) in [
            ("", MessageSignatureError::Count),
            (many, MessageSignatureError::Count),
            ("host", MessageSignatureError::Component("host".into())),
            ("@method", MessageSignatureError::Component("@method".into())),
            (":", MessageSignatureError::Component(":".into())),
            ("a\": b", MessageSignatureError::Component("a\":".into())),
            ("path PATH", MessageSignatureError::Repeated("PATH".into())),
            ("x: X:", MessageSignatureError::Repeated("X:".into())),
        ] {
            assert_eq!(new(hmac, "00", "k", Some(components)), Some(error), "{components:?}");
        }
        assert_eq!(base(Some("x:"), "http://h/", &[]), Err(MessageSignatureError::NoField("x".into())));
        assert_eq!(SignatureAlgorithm::parse("rsa-pss-sha512"), None);
    }

    #[test]
    fn debug_output_hides_the_signature_key() {
        let signature = MessageSigner::new(SignatureAlgorithm::HmacSha256, b"c0ffee", "k", None).unwrap();
        let shown = format!("{signature:?}");
        assert!(shown.starts_with("MessageSigner { algorithm: HmacSha256"), "{shown}");
        assert!(!shown.contains("192") && !shown.contains("c0ffee"), "{shown}");
    }

    #[test]
    fn algorithms_have_their_registered_names() {
        for name in ["ed25519", "hmac-sha256"] {
            assert_eq!(SignatureAlgorithm::parse(name).map(SignatureAlgorithm::name), Some(name));
        }
        assert_eq!(SignatureAlgorithm::parse("rsa-pss-sha512"), None);
    }

    /// Checks the HMAC against the result of Python's `hmac` module.
    #[test]
    fn hmac_is_of_the_signature_base() {
        let signature = MessageSigner::new(SignatureAlgorithm::HmacSha256, b"00ff", "k", Some("method")).unwrap();
        assert_eq!((signature.algorithm(), signature.key()), (SignatureAlgorithm::HmacSha256, &[0, 0xff][..]));
        let target = Target::parse("http://h/").unwrap();
        let request =
            UnsignedRequest { method: "GET", target: &target, host: b"h", fields: &[], content: None, unix: 1 };
        let hmac = signature.hmac(&signature.signature_base(&request).unwrap());
        let hex: String = hmac.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "73ab0751628f0ac32502246f4be0f6054e6336fed6061950ebd235199307d2a6");
    }
}
