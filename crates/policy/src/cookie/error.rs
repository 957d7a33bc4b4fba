//! Reasons to refuse a cookie.

use core::fmt;

/// The reason why a cookie was refused. The error message never repeats the cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CookieRefusal {
    /// The cookie contains a control byte or a misplaced delimiter. Some servers answer 400 to
    /// every request with such a cookie. One host could thereby lock a user out of another host
    /// under the same domain (CVE-2022-35252).
    ControlByte,
    /// The cookie's path, or its name and value together, are longer than allowed.
    TooLong,
    /// The field has no cookie name: `name=` is missing.
    NoName,
    /// The cookie's Domain is not a host name, or ends with a dot (CVE-2022-27779).
    Domain,
    /// The host that sent the cookie does not belong to the cookie's domain.
    ForeignDomain,
    /// The cookie's domain is a public suffix, under which anyone may register names
    /// (CVE-2023-46218).
    PublicSuffix,
    /// The cookie has Secure but was received without TLS, so that any router on the way could have
    /// set it.
    Insecure,
    /// The cookie was received without TLS, and would replace or shadow a Secure cookie.
    HidesSecure,
    /// The cookie's name begins with `__Secure-`, but Secure is missing.
    SecurePrefix,
    /// The cookie's name begins with `__Host-`, but Secure or `Path=/` is missing, or there is a
    /// Domain.
    HostPrefix,
}

impl fmt::Display for CookieRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CookieRefusal::ControlByte => "it has a control byte",
            CookieRefusal::TooLong => "it is too long",
            CookieRefusal::NoName => "it has no name",
            CookieRefusal::Domain => "its domain is not a host name",
            CookieRefusal::ForeignDomain => "its domain is not the server's",
            CookieRefusal::PublicSuffix => "its domain is a public suffix",
            CookieRefusal::Insecure => "it is Secure and came in the clear",
            CookieRefusal::HidesSecure => "it came in the clear and would hide a Secure one",
            CookieRefusal::SecurePrefix => "its name begins with __Secure- but it is not",
            CookieRefusal::HostPrefix => "its name begins with __Host- but it is not bound to the host",
        })
    }
}

impl core::error::Error for CookieRefusal {}
