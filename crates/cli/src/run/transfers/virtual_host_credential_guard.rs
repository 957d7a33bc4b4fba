//! Withholds credentials from requests with header fields by which a list can select another
//! virtual host of the server.
//!
//! Credentials are bound to an origin. A server with several virtual hosts selects one by the
//! `Host` field, and some servers by a field that a proxy sets. So a list that sets such a field
//! decides which virtual host receives the request.

use haul::state::auth::{AuthCache, AuthOptions, NetrcFileUse};
use haul::{RequestOptions, Target};
use haul_policy::target::Scheme;

use crate::plan::HeaderArg;

/// The names of the header fields by which servers select a virtual host (RFC 9110 section 7.2, RFC
/// 7239), in lower case.
const HOST_FIELDS: [&str; 7] = [
    "host",
    "forwarded",
    "x-forwarded-host",
    "x-forwarded-server",
    "x-host",
    "x-http-host-override",
    "x-original-host",
];

/// Returns true if servers select a virtual host by the field with this name.
pub(crate) fn is_host_field(name: &str) -> bool {
    HOST_FIELDS.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Returns true if a `Host` field names a host that is not the host of the URL. `target` returns
/// the target of the URL. If `target` returns `None`, returns true for every `Host` field.
pub(crate) fn names_other_host(fields: &[HeaderArg], target: impl Fn() -> Option<Target>) -> bool {
    fields.iter().filter(|field| is_host_field(field.name())).any(|field| match field {
        HeaderArg::Set { value, .. } => !target().is_some_and(|target| is_host_of(value, &target)),
        HeaderArg::Remove { .. } | HeaderArg::Empty { .. } => true,
    })
}

/// Returns true if the value of a `Host` field equals the host and the port of `target`.
pub(crate) fn is_host_of(value: &[u8], target: &Target) -> bool {
    let Ok(text) = str::from_utf8(value) else { return false };
    let is_authority = !text.is_empty() && !text.contains(['/', '?', '#', '@', '\\', ' ', '\t', ',', ';', '=']);
    let named = || Target::parse(&format!("{}://{text}/", target.scheme().as_str()));
    is_authority && named().is_ok_and(|named| named.origin() == target.origin())
}

/// Returns `options`, changed for a request whose `Host` field was set by a list or a web page, not
/// by the user. The result contains neither the credentials of the command line nor credentials
/// that are stored for the URL's host.
pub(crate) fn for_other_host(options: &RequestOptions) -> RequestOptions {
    let options = options.without_secrets();
    let auth = AuthOptions { netrc: NetrcFileUse::Off, memory: AuthCache::default(), ..options.auth.clone() };
    RequestOptions { jar: None, auth, ..options }
}

/// Returns a URL without its user and password. A URL that cannot be parsed is not changed.
pub(crate) fn url_without_login(url: String, default_scheme: Scheme) -> String {
    match Target::parse_with(&url, default_scheme, false) {
        Ok(target) if target.userinfo_bytes().is_some() => target.to_url(),
        _ => url,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_field_differing_from_url_names_other_host() {
        let target = Target::parse("https://H.example/x").unwrap();
        for (value, expected) in [
            ("h.example", true),
            ("H.EXAMPLE:443", true),
            ("h.example:80", false),
            ("evil.example", false),
            ("h.example@evil.example", false),
            ("evil.example/h.example", false),
            ("h.example, evil.example", false),
            ("", false),
            ("host=h.example", false),
        ] {
            assert_eq!(is_host_of(value.as_bytes(), &target), expected, "{value}");
        }
        let field = |name: &str, value: &str| HeaderArg::Set { name: name.into(), value: value.into() };
        let own = || Some(target.clone());
        assert!(!names_other_host(&[field("X-Plain", "evil"), field("hOst", "h.example")], own));
        assert!(names_other_host(&[field("Host", "h.example")], || None));
        for fields in [
            [field("HOST", "evil")],
            [field("X-Forwarded-Host", "evil")],
            [field("Forwarded", "host=h.example")],
            [HeaderArg::Remove { name: "host".into() }],
            [HeaderArg::Empty { name: "Host".into() }],
        ] {
            assert!(names_other_host(&fields, own), "{fields:?}");
        }
    }
}
