//! The `CURLAUTH_` constants, which number the authentication schemes, with libcurl's values.

/// Basic (RFC 7617).
pub(crate) const AUTH_BASIC: i64 = 1;
/// Digest (RFC 7616).
pub(crate) const AUTH_DIGEST: i64 = 1 << 1;
/// Negotiate (RFC 4559).
pub(crate) const AUTH_NEGOTIATE: i64 = 1 << 2;
/// Bearer tokens (RFC 6750).
pub(crate) const AUTH_BEARER: i64 = 1 << 6;
/// AWS Signature Version 4.
pub(crate) const AUTH_AWS: i64 = 1 << 7;
