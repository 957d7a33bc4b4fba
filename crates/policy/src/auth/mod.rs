//! HTTP authentication (RFC 9110 §11): challenges, answers, and the choice of credentials.
//!
//! ```
//! use haul_policy::auth::{Allowed, Choice, Credentials, Digest, choose, parse_challenges};
//!
//! let fields: [&[u8]; 2] = [b"Negotiate, Basic realm=\"x\"", b"Digest realm=\"x\", nonce=\"n\", qop=\"auth\""];
//! let challenges = parse_challenges(fields);
//! let Choice::Digest(challenge) = choose(&challenges, Allowed::ANY)? else { panic!("Digest is the strongest offer") };
//! let me = Credentials::new("me", "secret")?;
//! let mut digest = Digest::new(challenge);
//! let value = digest.authorize(&me, "GET", "/", None, "0a4f113b")?;
//! assert!(value.starts_with(b"Digest username=\"me\", realm=\"x\", nonce=\"n\", uri=\"/\""));
//! assert_eq!(me.basic(), b"Basic bWU6c2VjcmV0");
//! # Ok::<(), haul_policy::auth::AuthError>(())
//! ```
//!
//! | module | what |
//! |---|---|
//! | `challenge` | WWW-Authenticate and Proxy-Authenticate, taken apart |
//! | `choose` | `--basic`, `--digest`, `--anyauth`: which challenge is answered |
//! | `credentials` | user and password, Basic (RFC 7617), Bearer (RFC 6750) |
//! | `digest`, `algorithm` | Digest (RFC 7616, and RFC 2069 for old servers) |
//! | `sigv4` | requests that are signed with a key: AWS's Signature Version 4 |
//! | `source` | `-u`, the URL, netrc, a token: which of them a request may use |
//!
//! Left out: NTLM and Negotiate, which are recognised and refused by name. They authenticate
//! connections instead of requests, and neither a shared pool nor HTTP/2 allows that. Also left
//! out: `rspauth` of Authentication-Info. It proves that the server knows the password; over TLS
//! the certificate proves more, and without TLS the proof protects little.

mod algorithm;
mod challenge;
mod choose;
mod credentials;
mod digest;
mod error;
mod sigv4;
mod source;
#[cfg(test)]
mod tests;

pub use algorithm::{Algorithm, Hasher};
pub use challenge::{AuthScheme, Challenge, MAX_CHALLENGES, MAX_PARAMETERS, parse_challenges};
pub use choose::{Allowed, Choice, choose};
pub use credentials::{Credentials, bearer};
pub use digest::{Digest, DigestChallenge, Qop, cnonce};
pub use error::AuthError;
pub use sigv4::{SigV4, Signature, UnsignedRequest};
pub use source::{Identity, IdentityError, Netrc, UserCredentials, identity_for};
