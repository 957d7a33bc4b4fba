//! Why a cookie was refused.

use core::fmt;

/// Why a cookie was not taken. Its message never repeats the cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// A control byte, or a misplaced delimiter. Some servers answer 400 to every request that carries such a cookie,
    /// so that one sibling host could lock a user out of another (CVE-2022-35252).
    ControlByte,
    /// Name and value, or the path, longer than allowed.
    TooLong,
    /// No `name=`.
    NoName,
    /// A domain that is not a host name, or ends with a dot (CVE-2022-27779).
    Domain,
    /// A domain that is not the host's own.
    ForeignDomain,
    /// A domain under which anyone may register (CVE-2023-46218).
    PublicSuffix,
    /// Secure, but received without TLS, where anyone on the way could have set it.
    Insecure,
    /// Would replace or shadow a Secure cookie, but was received without TLS.
    HidesSecure,
    /// `__Secure-` without Secure.
    SecurePrefix,
    /// `__Host-` without Secure and `Path=/`, or with a Domain.
    HostPrefix,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::ControlByte => "it has a control byte",
            Refusal::TooLong => "it is too long",
            Refusal::NoName => "it has no name",
            Refusal::Domain => "its domain is not a host name",
            Refusal::ForeignDomain => "its domain is not the server's",
            Refusal::PublicSuffix => "its domain is a public suffix",
            Refusal::Insecure => "it is Secure and came in the clear",
            Refusal::HidesSecure => "it came in the clear and would hide a Secure one",
            Refusal::SecurePrefix => "its name begins with __Secure- but it is not",
            Refusal::HostPrefix => "its name begins with __Host- but it is not bound to the host",
        })
    }
}

impl core::error::Error for Refusal {}
