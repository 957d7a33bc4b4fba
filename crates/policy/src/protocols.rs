//! `--proto` and `--proto-redir`: which schemes may be used.
//!
//! ```
//! use haul_policy::protocols::Protocols;
//!
//! let list = Protocols::default().with("-all,https,gopherr");
//! assert_eq!(list.allowed, Protocols { http: false, https: true, file: false });
//! assert_eq!(list.unknown, ["gopherr"]);
//! assert_eq!(Protocols::default().with("=http").allowed, Protocols { http: true, https: false, file: false });
//! ```

use crate::redirect::RedirectRules;
use crate::target::Scheme;

/// Which of haul's schemes are allowed; default all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    /// Plain HTTP.
    pub http: bool,
    /// HTTP over TLS.
    pub https: bool,
    /// Local files, by [`file_url`](crate::file_url), where the caller takes such URLs at all.
    pub file: bool,
}

impl Default for Protocols {
    fn default() -> Self {
        Protocols { http: true, https: true, file: true }
    }
}

/// What a list says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<'l> {
    /// The set that it leaves.
    pub allowed: Protocols,
    /// Whether it leaves nothing at all, not even a scheme that curl has and haul has not.
    pub is_empty: bool,
    /// Words that name no scheme, and change nothing.
    pub unknown: Vec<&'l str>,
}

/// The other schemes that curl knows: allowed or not, haul has none of them, so they are no mistake in a list.
const OTHERS: &[&str] = &[
    "dict", "ftp", "ftps", "gopher", "gophers", "imap", "imaps", "ipfs", "ipns", "ldap", "ldaps", "mqtt", "mqtts",
    "pop3", "pop3s", "rtmp", "rtmpe", "rtmps", "rtmpt", "rtmpte", "rtmpts", "rtsp", "scp", "sftp", "smb", "smbs",
    "smtp", "smtps", "telnet", "tftp", "ws", "wss",
];

impl Protocols {
    /// This set, changed by a list: words between commas, each a scheme or `all`, after `+` (allow; also without a sign), `-` (forbid) or
    /// `=` (allow only this). From left to right, as by curl.
    ///
    /// `=unknown` allows nothing: whoever restricts and mistypes is not to get everything.
    #[must_use]
    pub fn with(self, list: &str) -> Listed<'_> {
        let mut set = self;
        let mut others = true;
        let mut unknown = Vec::new();
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let name = word.trim_start_matches(['+', '-', '=']);
            let signs = &word[..word.len() - name.len()];
            let is = |scheme: &str| name.eq_ignore_ascii_case(scheme);
            let [http, https, file] = ["http", "https", "file"].map(|scheme| is("all") || is(scheme));
            let is_other = OTHERS.iter().any(|other| is(other));
            if !http && !https && !file && !is_other {
                unknown.push(word);
            }
            // Several signs at once: the last one counts.
            let value = !signs.ends_with('-');
            if signs.ends_with('=') {
                set = Protocols { http: false, https: false, file: false };
                others = false;
            }
            // Forbidding one of them leaves others.
            others = if is("all") { value } else { others || is_other && value };
            set.http = if http { value } else { set.http };
            set.https = if https { value } else { set.https };
            set.file = if file { value } else { set.file };
        }
        Listed { allowed: set, is_empty: !(set.http || set.https || set.file || others), unknown }
    }

    /// Whether a scheme is in it.
    pub fn allows(self, scheme: Scheme) -> bool {
        match scheme {
            Scheme::Http => self.http,
            Scheme::Https => self.https,
        }
    }

    /// What both allow: a redirect must pass `--proto` and `--proto-redir`.
    #[must_use]
    pub fn and(self, other: Protocols) -> Protocols {
        Protocols { http: self.http && other.http, https: self.https && other.https, file: self.file && other.file }
    }
}

impl RedirectRules {
    /// These rules, with hops to what is allowed only.
    #[must_use]
    pub fn with_protocols(self, allowed: Protocols) -> RedirectRules {
        RedirectRules { allow_http: allowed.http, allow_https: allowed.https, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        for (list, http, https, file) in [
            ("", true, true, true),
            ("=https", false, true, false),
            ("-http", false, true, true),
            ("-file", true, true, false),
            ("-all", false, false, false),
            ("-all,+HTTP", true, false, false),
            ("=http,https", true, true, false),
            ("=https,=http", true, false, false),
            ("=File,http", true, false, true),
            ("all,-https", true, false, true),
            ("ftp", true, true, true),
            ("=ftp", false, false, false),
            ("=htps", false, false, false),
            ("-htps", true, true, true),
            (" -all , https ,,", false, true, false),
            ("+-http", false, true, true),
        ] {
            assert_eq!(Protocols::default().with(list).allowed, Protocols { http, https, file }, "{list}");
        }
        assert_eq!(Protocols::default().with("-x,=y,ftp,+").unknown, ["-x", "=y", "+"]);
    }

    #[test]
    fn a_list_that_leaves_nothing_is_told_from_one_that_leaves_what_haul_has_not() {
        for (list, is_empty) in [
            ("", false),
            ("-all", true),
            ("=http,-http", true),
            ("=htps", true),
            ("=ftp", false),
            ("-all,+ftp", false),
            ("-http,-https,-file,-ftp", false),
            ("-all,file", false),
        ] {
            assert_eq!(Protocols::default().with(list).is_empty, is_empty, "{list}");
        }
    }

    #[test]
    fn a_hop_must_pass_both() {
        let tls = Protocols::default().with("=https").allowed;
        let rules = RedirectRules::default().with_protocols(tls.and(Protocols::default()));
        assert_eq!((rules.allow_http, rules.allow_https), (false, true));
        assert!(tls.allows(Scheme::Https) && !tls.allows(Scheme::Http));
    }
}
