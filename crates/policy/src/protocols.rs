//! `--proto` and `--proto-redir`: the allowed schemes.
//!
//! ```
//! use haul_policy::protocols::{ProtocolListError, ProtocolSet};
//!
//! let allowed = ProtocolSet::default().with_list("-all,https,gopher")?;
//! assert_eq!(allowed, ProtocolSet { http: false, https: true, file: false });
//! assert_eq!(ProtocolSet::default().with_list("=http,htps"), Err(ProtocolListError::Unknown("htps")));
//! # Ok::<(), ProtocolListError<'_>>(())
//! ```

use crate::redirect::RedirectRules;
use crate::target::Scheme;

/// The set of allowed schemes. The default allows all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolSet {
    /// True to allow plain HTTP: the scheme `http`.
    pub http: bool,
    /// True to allow HTTP over TLS: the scheme `https`.
    pub https: bool,
    /// True to allow local files, named by a [`file_url`](crate::file_url). This has an effect only
    /// if the caller accepts such URLs.
    pub file: bool,
}

impl Default for ProtocolSet {
    fn default() -> Self {
        ProtocolSet { http: true, https: true, file: true }
    }
}

/// The reason why a list of schemes is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolListError<'l> {
    /// No scheme has this name. The list is refused, because a typing error must not lift a
    /// restriction unnoticed.
    Unknown(&'l str),
    /// The list allows no scheme at all: none that haul supports, and none that only curl supports.
    Nothing,
}

/// The schemes that curl supports and haul does not. A list of schemes may contain them; they have
/// no effect.
const CURL_ONLY_SCHEMES: &[&str] = &[
    "dict", "ftp", "ftps", "gopher", "gophers", "imap", "imaps", "ipfs", "ipns", "ldap", "ldaps", "mqtt", "mqtts",
    "pop3", "pop3s", "rtmp", "rtmpe", "rtmps", "rtmpt", "rtmpte", "rtmpts", "rtsp", "scp", "sftp", "smb", "smbs",
    "smtp", "smtps", "telnet", "tftp", "ws", "wss",
];

impl ProtocolSet {
    /// Returns the set after applying a comma-separated list of words. Each word is a scheme or
    /// `all`, with an optional sign: `+` or no sign allows the scheme, `-` forbids it, `=` allows
    /// only this scheme. Words apply from left to right, as in curl.
    ///
    /// # Errors
    /// Fails for an unknown word, and for a list that allows no scheme at all: none that haul
    /// supports, and none that only curl supports.
    pub fn with_list(self, list: &str) -> Result<ProtocolSet, ProtocolListError<'_>> {
        let mut set = self;
        let mut others = true;
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let name = word.strip_prefix(['+', '-', '=']).unwrap_or(word);
            let sign = &word[..word.len() - name.len()];
            let is = |scheme: &str| name.eq_ignore_ascii_case(scheme);
            let [http, https, file] = ["http", "https", "file"].map(|scheme| is("all") || is(scheme));
            let other = CURL_ONLY_SCHEMES.iter().any(|other| is(other));
            if !http && !https && !file && !other {
                return Err(ProtocolListError::Unknown(name));
            }
            let value = sign != "-";
            if sign == "=" {
                (set, others) = (ProtocolSet { http: false, https: false, file: false }, false);
            }
            // For these it only matters whether any is left.
            others = if is("all") || other && value { value } else { others };
            set.http = if http { value } else { set.http };
            set.https = if https { value } else { set.https };
            set.file = if file { value } else { set.file };
        }
        if others || set.http || set.https || set.file { Ok(set) } else { Err(ProtocolListError::Nothing) }
    }

    /// Returns `true` if the set contains the scheme.
    pub fn allows(self, scheme: Scheme) -> bool {
        match scheme {
            Scheme::Http => self.http,
            Scheme::Https => self.https,
        }
    }

    /// Returns the schemes that are in both sets. For example, a redirect must be allowed by
    /// `--proto` and by `--proto-redir`.
    #[must_use]
    pub fn intersection(self, other: ProtocolSet) -> ProtocolSet {
        ProtocolSet { http: self.http && other.http, https: self.https && other.https, file: self.file && other.file }
    }
}

impl RedirectRules {
    /// Returns these redirect rules, in which redirects may lead to the schemes in `allowed` only.
    #[must_use]
    pub fn with_protocols(self, allowed: ProtocolSet) -> RedirectRules {
        RedirectRules { allow_http: allowed.http, allow_https: allowed.https, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_lists_are_applied_from_left_to_right() {
        for (list, http, https, file) in [
            ("", true, true, true),
            ("=https", false, true, false),
            ("-http", false, true, true),
            ("-file", true, true, false),
            ("-all,+HTTP", true, false, false),
            ("=http,https", true, true, false),
            ("=https,=http", true, false, false),
            ("=File,http", true, false, true),
            ("all,-https", true, false, true),
            ("ftp", true, true, true),
            ("=ftp", false, false, false),
            ("-all,ftp", false, false, false),
            ("-ftp", true, true, true),
            ("-all,file", false, false, true),
            (" -all , https ,,", false, true, false),
        ] {
            assert_eq!(ProtocolSet::default().with_list(list), Ok(ProtocolSet { http, https, file }), "{list}");
        }
        for (list, error) in [
            ("-x", ProtocolListError::Unknown("x")),
            ("https,=y", ProtocolListError::Unknown("y")),
            ("+", ProtocolListError::Unknown("")),
            ("+-http", ProtocolListError::Unknown("-http")),
            ("-all", ProtocolListError::Nothing),
            ("=http,-http", ProtocolListError::Nothing),
        ] {
            assert_eq!(ProtocolSet::default().with_list(list), Err(error), "{list}");
        }
    }

    #[test]
    fn redirects_must_pass_proto_and_proto_redir() {
        let tls = ProtocolSet::default().with_list("=https").unwrap();
        let rules = RedirectRules::default().with_protocols(tls.intersection(ProtocolSet::default()));
        assert_eq!((rules.allow_http, rules.allow_https), (false, true));
        assert!(tls.allows(Scheme::Https) && !tls.allows(Scheme::Http));
    }

    #[test]
    fn intersection_has_schemes_of_both_sets() {
        let all = [false, true];
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))) {
            let one = ProtocolSet { http: a, https: a, file: a };
            let both = one.intersection(ProtocolSet { http: b, https: b, file: b });
            assert_eq!(both, ProtocolSet { http: a && b, https: a && b, file: a && b });
        }
    }
}
