//! The `CURLAUTH_` constants, which number the authentication schemes, with libcurl's values.

/// The bit of Basic authentication (RFC 7617) in `CURLOPT_HTTPAUTH`.
pub(crate) const AUTH_BASIC: i64 = 1;
/// The bit of Digest authentication (RFC 7616) in `CURLOPT_HTTPAUTH`.
pub(crate) const AUTH_DIGEST: i64 = 1 << 1;
/// The bit of Negotiate authentication (RFC 4559) in `CURLOPT_HTTPAUTH`.
pub(crate) const AUTH_NEGOTIATE: i64 = 1 << 2;
/// The bit of bearer tokens (RFC 6750) in `CURLOPT_HTTPAUTH`.
pub(crate) const AUTH_BEARER: i64 = 1 << 6;
/// The bit of AWS Signature Version 4 in `CURLOPT_HTTPAUTH`.
pub(crate) const AUTH_AWS: i64 = 1 << 7;
