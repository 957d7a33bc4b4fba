//! HTTP authentication (RFC 9110 §11): challenges, answers, and the choice of credentials.
//!
//! ```
//! use haul_policy::auth::{AllowedAuthSchemes, ChosenAuthScheme, Credentials, DigestSession, choose_scheme, parse_challenges};
//!
//! let fields: [&[u8]; 2] = [b"Negotiate, Basic realm=\"x\"", b"Digest realm=\"x\", nonce=\"n\", qop=\"auth\""];
//! let challenges = parse_challenges(fields);
//! let ChosenAuthScheme::Digest(challenge) = choose_scheme(&challenges, AllowedAuthSchemes::ANY)? else { panic!("Digest is the strongest offer") };
//! let me = Credentials::new("me", "secret")?;
//! let mut digest = DigestSession::new(challenge);
//! let value = digest.authorize(&me, "GET", "/", None, "0a4f113b")?;
//! assert!(value.starts_with(b"Digest username=\"me\", realm=\"x\", nonce=\"n\", uri=\"/\""));
//! assert_eq!(me.basic_authorization(), b"Basic bWU6c2VjcmV0");
//! # Ok::<(), haul_policy::auth::AuthError>(())
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `challenge` | WWW-Authenticate and Proxy-Authenticate, parsed |
//! | `scheme_choice` | `--basic`, `--digest`, `--anyauth`: which challenge is answered |
//! | `basic_and_bearer` | user and password, Basic (RFC 7617), Bearer (RFC 6750) |
//! | `digest`, `digest_algorithm` | Digest (RFC 7616, and RFC 2069 for old servers) |
//! | `message_signature` | requests that are signed with a key: RFC 9421 |
//! | `sigv4` | requests that are signed with a key: AWS's Signature Version 4 |
//! | `credential_selection` | `-u`, the URL, netrc, a token: which of them a request may use |
//!
//! This module only selects Negotiate: the caller makes its tokens, since they need a Kerberos
//! library.
//!
//! Left out: NTLM, which is recognised and refused by name. NTLM authenticates connections instead
//! of requests, and the password can be recovered from the bytes that it sends. Also left out:
//! `rspauth` of Authentication-Info, by which a server proves that it knows the password. Over TLS
//! the certificate proves more, and without TLS this proof protects little.

mod basic_and_bearer;
mod challenge;
mod credential_selection;
mod digest;
mod digest_algorithm;
mod error;
mod message_signature;
mod scheme_choice;
mod sigv4;
#[cfg(test)]
mod tests;

pub use basic_and_bearer::{Credentials, bearer_authorization};
pub use challenge::{AuthScheme, Challenge, MAX_CHALLENGES, MAX_PARAMETERS, parse_challenges};
pub use credential_selection::{
    CredentialsError, GivenCredentials, NetrcMode, RequestCredentials, credentials_for_target,
};
pub use digest::{DigestChallenge, DigestSession, Qop, cnonce};
pub use digest_algorithm::{DigestAlgorithm, DigestHasher};
pub use error::AuthError;
pub use message_signature::{MessageSignatureError, MessageSigner, SignatureAlgorithm, SignatureBase};
pub use scheme_choice::{AllowedAuthSchemes, ChosenAuthScheme, choose_scheme};
pub use sigv4::{SigV4Fields, SigV4Parameters, UnsignedRequest};
