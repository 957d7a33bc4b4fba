//! Strict Transport Security (RFC 6797): hosts that must be reached over TLS, and curl's `--hsts`
//! file.
//!
//! ```
//! use haul_policy::Target;
//! use haul_policy::hsts::HstsStore;
//!
//! let mut hsts = HstsStore::new();
//! let site = Target::parse("https://Example.com/")?;
//! hsts.on_field(&site, b"max-age=3600; includeSubDomains", 1_800_000_000);
//! let plain = Target::parse("http://www.example.com.:80/x")?;
//! assert_eq!(hsts.to_https_target(&plain, 1_800_000_000).unwrap().to_url(), "https://www.example.com./x");
//! assert_eq!(hsts.to_https_target(&plain, 1_800_003_600), None);
//! assert!(hsts.to_text(1_800_000_000).ends_with(".example.com \"20270115 09:00:00\"\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Hosts are compared as [`Target`] stores them (lower case, IDNA, so that an ideographic full stop
//! is a dot, CVE-2022-42916) and without a trailing dot (CVE-2022-30115). Addresses have no policy
//! (§8.3). Times are wall-clock seconds since 1970.
//!
//! Left out: the preload list.

use std::collections::BTreeMap;

use crate::calendar::{CalendarTime, LAST_UNIX_SECOND};
use crate::cookie::CookieFileConventions;
use crate::target::{Host, Scheme, Target};

/// The largest number of stored hosts, as in curl. A full store drops the host that expires first.
pub const MAX_HOSTS: usize = 1000;

/// The expiry time of an HSTS policy that never expires.
const NEVER_EXPIRES: u64 = u64::MAX;

/// The parsed value of a Strict-Transport-Security field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedHstsField {
    /// The lifetime of the HSTS policy in seconds; 0 removes the policy.
    pub max_age: u64,
    /// True if the HSTS policy covers subdomains of the host.
    pub include_subdomains: bool,
}

/// Parses the value of a Strict-Transport-Security field (RFC 6797 §6.1). Returns `None` if it has
/// no `max-age`, repeats a directive, or is malformed; such a field is ignored (§8.1).
pub fn parse(field: &[u8]) -> Option<ParsedHstsField> {
    let text = core::str::from_utf8(field).ok()?;
    let mut seen: Vec<&str> = Vec::new();
    let (mut max_age, mut include_subdomains) = (None, false);
    for directive in text.split(';').map(str::trim).filter(|directive| !directive.is_empty()) {
        let (name, value) = directive.split_once('=').map_or((directive, None), |(n, v)| (n.trim(), Some(v.trim())));
        if seen.iter().any(|other| other.eq_ignore_ascii_case(name)) {
            return None;
        }
        seen.push(name);
        if name.eq_ignore_ascii_case("max-age") {
            max_age = Some(parse_seconds(value?)?);
        } else if name.eq_ignore_ascii_case("includeSubDomains") {
            if value.is_some() {
                return None;
            }
            include_subdomains = true;
        }
    }
    Some(ParsedHstsField { max_age: max_age?, include_subdomains })
}

fn parse_seconds(value: &str) -> Option<u64> {
    let digits = value.strip_prefix('"').map_or(Some(value), |rest| rest.strip_suffix('"'))?;
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(NEVER_EXPIRES))
}

/// The stored HSTS policy of a host. `expires` is in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HstsEntry {
    expires: u64,
    include_subdomains: bool,
}

/// A store of HSTS policies: the hosts that must be reached over TLS.
#[derive(Clone, Debug, Default)]
pub struct HstsStore {
    hosts: BTreeMap<String, HstsEntry>,
    /// The policies that changed since the file was read or last written, by host name. `None`
    /// stands for a removed policy.
    changed: BTreeMap<String, Option<HstsEntry>>,
    style: CookieFileConventions,
}

impl HstsStore {
    /// Creates an empty store of HSTS policies.
    pub fn new() -> HstsStore {
        HstsStore::default()
    }

    /// Creates an empty store. `style` decides whether its file begins with haul's heading or with
    /// curl's.
    pub fn with_style(style: CookieFileConventions) -> HstsStore {
        HstsStore { style, ..HstsStore::default() }
    }

    /// Returns the number of hosts that have a stored policy.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Returns `true` if no host has a stored policy.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Processes the first Strict-Transport-Security field of a response from `target`. A field
    /// that was received without TLS or from an IP address is ignored (RFC 6797 §8.1). `now` is in
    /// seconds since 1970.
    pub fn on_field(&mut self, target: &Target, field: &[u8], now: u64) {
        let (Scheme::Https, Host::Name(name)) = (target.scheme(), target.host()) else { return };
        let Some(policy) = parse(field) else { return };
        let entry = HstsEntry {
            expires: now.checked_add(policy.max_age).unwrap_or(NEVER_EXPIRES),
            include_subdomains: policy.include_subdomains,
        };
        let entry = Some(entry).filter(|_| policy.max_age > 0);
        let key = without_dot(name).to_owned();
        // The end of a policy that does not exist is not recorded: servers could make the records
        // grow without bound.
        if entry.is_some() || self.hosts.contains_key(&key) {
            self.changed.insert(key.clone(), entry);
        }
        self.set_entry(key, entry);
    }

    /// Returns `target` with the scheme `https` if its scheme is `http` and its host has a policy
    /// (RFC 6797 §8.3). Port 80 becomes 443; other ports stay. Otherwise returns `None`. `now` is
    /// in seconds since 1970.
    pub fn to_https_target(&self, target: &Target, now: u64) -> Option<Target> {
        (target.scheme() == Scheme::Http && self.has_policy_for(target.host(), now)).then(|| target.to_https())
    }

    /// Returns `true` if `host` has a policy, or a parent domain has one that covers subdomains
    /// (RFC 6797 §8.2). `now` is in seconds since 1970.
    pub fn has_policy_for(&self, host: &Host, now: u64) -> bool {
        let Host::Name(name) = host else { return false };
        if self.hosts.is_empty() {
            return false;
        }
        let name = without_dot(name);
        let live = |name: &str| self.hosts.get(name).filter(|entry| entry.expires > now);
        live(name).is_some()
            || name
                .match_indices('.')
                .any(|(dot, _)| live(&name[dot + 1..]).is_some_and(|entry| entry.include_subdomains))
    }

    /// Adds the policies in the text of a file. Malformed lines and policies that have expired at
    /// `now` (in seconds since 1970) are skipped. If a host is listed twice, its policy gets the
    /// later expiry and the wider scope.
    ///
    /// ```text
    /// # comment
    /// .example.com "20270115 09:00:00"      with subdomains
    /// other.example "unlimited"
    /// ```
    pub fn load(&mut self, text: &str, now: u64) {
        for (name, mut entry) in text.lines().filter_map(parse_line).filter(|(_, entry)| entry.expires > now) {
            if let Some(known) = self.hosts.get(&name) {
                entry.expires = entry.expires.max(known.expires);
                entry.include_subdomains |= known.include_subdomains;
            }
            self.set_entry(name, Some(entry));
        }
    }

    /// Repeats in `file` all changes that were made to this store since it was read. `file` is the
    /// newest content of the file on disk, which other processes may have changed. After `file` is
    /// written, call [`mark_saved`](Self::mark_saved).
    pub fn apply_changes_to(&self, file: &mut HstsStore) {
        file.style = self.style;
        for (name, entry) in &self.changed {
            file.set_entry(name.clone(), *entry);
        }
    }

    /// Returns `true` if the store has changes that are not written to its file yet.
    pub fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Marks all changes as written to the file. To write without holding the store's lock, clone
    /// the store, call `mark_saved`, then write from the clone.
    pub fn mark_saved(&mut self) {
        self.changed.clear();
    }

    /// Returns the text of an HSTS file in curl's format, without policies that have expired at
    /// `now`, in seconds since 1970.
    pub fn to_text(&self, now: u64) -> String {
        let heading = match self.style {
            CookieFileConventions::Standard => "# HSTS cache, as curl has it. Written by haul.\n",
            CookieFileConventions::Curl => {
                "# Your HSTS cache. https://curl.se/docs/hsts.html\n\
                 # This file was generated by libcurl! Edit at your own risk.\n"
            }
        };
        let mut out = heading.to_owned();
        for (name, entry) in self.hosts.iter().filter(|(_, entry)| entry.expires > now) {
            let dot = if entry.include_subdomains { "." } else { "" };
            let expires = match entry.expires {
                0..=LAST_UNIX_SECOND => CalendarTime::from_unix(entry.expires).to_compact_digits(),
                _ => "unlimited".to_owned(),
            };
            out.push_str(&format!("{dot}{name} \"{expires}\"\n"));
        }
        out
    }

    fn set_entry(&mut self, name: String, entry: Option<HstsEntry>) {
        match entry {
            Some(entry) => self.hosts.insert(name, entry),
            None => self.hosts.remove(&name),
        };
        if self.hosts.len() > MAX_HOSTS {
            let first = self.hosts.iter().min_by_key(|(_, entry)| entry.expires).map(|(name, _)| name.clone());
            if let Some(name) = first {
                self.hosts.remove(&name);
                self.changed.remove(&name);
            }
        }
    }
}

fn without_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

/// Parses a date of a file. A date without a time of day means its first second, as in curl.
fn parse_date(date: &str) -> Option<CalendarTime> {
    CalendarTime::parse(date).or_else(|| CalendarTime::parse(&format!("{date} 00:00:00")))
}

fn parse_line(line: &str) -> Option<(String, HstsEntry)> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let (host, date) = line.split_once(char::is_whitespace)?;
    let date = date.trim().strip_prefix('"')?.strip_suffix('"')?;
    let include_subdomains = host.starts_with('.');
    // A host in a file is parsed like that of a URL.
    let target = Target::parse(&format!("https://{}/", host.trim_start_matches('.'))).ok()?;
    let Host::Name(name) = target.host() else { return None };
    // The file lists hosts, not URLs.
    if target.userinfo_bytes().is_some() || target.explicit_port().is_some() || target.path_and_query() != "/" {
        return None;
    }
    let expires = if date.eq_ignore_ascii_case("unlimited") { NEVER_EXPIRES } else { parse_date(date)?.to_unix()? };
    Some((without_dot(name).to_owned(), HstsEntry { expires, include_subdomains }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn target(url: &str) -> Target {
        Target::parse(url).unwrap()
    }

    fn with(url: &str, field: &str) -> HstsStore {
        let mut hsts = HstsStore::new();
        hsts.on_field(&target(url), field.as_bytes(), NOW);
        hsts
    }

    fn upgraded(hsts: &HstsStore, url: &str) -> bool {
        hsts.to_https_target(&target(url), NOW).is_some()
    }

    #[test]
    fn hsts_field_values_are_parsed() {
        let policy = |max_age, include_subdomains| Some(ParsedHstsField { max_age, include_subdomains });
        for (field, expected) in [
            ("max-age=1", policy(1, false)),
            ("MAX-AGE = \"31536000\" ; ; includesubdomains; preload", policy(31_536_000, true)),
            ("includeSubDomains;max-age=0;x=y", policy(0, true)),
            ("max-age=99999999999999999999", policy(NEVER_EXPIRES, false)),
            ("", None),
            ("includeSubDomains", None),
            ("max-age", None),
            ("max-age=", None),
            ("max-age=-1", None),
            ("max-age=1x", None),
            ("max-age=\"1", None),
            ("max-age=1; max-age=2", None),
            ("max-age=1; Preload; preload", None),
            ("max-age=1; includeSubDomains=1", None),
            ("max-age=1, max-age=2", None),
        ] {
            assert_eq!(parse(field.as_bytes()), expected, "{field}");
        }
        assert_eq!(parse(b"max-age=1;\xff"), None);
    }

    #[test]
    fn dots_and_spellings_do_not_escape_hsts() {
        let hsts = with("https://example.com", "max-age=9");
        for url in
            ["http://example.com", "http://EXAMPLE.com.", "http://example\u{3002}com", "http://example%2ecom:8080/"]
        {
            assert!(upgraded(&hsts, url), "{url}");
        }
        for url in ["https://example.com", "http://www.example.com", "http://xample.com", "http://com"] {
            assert!(!upgraded(&hsts, url), "{url}");
        }
        let all = with("https://example.com.", "max-age=9; includeSubDomains");
        assert!(upgraded(&all, "http://a.b.example.com.") && !upgraded(&all, "http://aexample.com"));
        let idn = with("https://b\u{fc}cher.example", "max-age=9; includeSubDomains");
        assert!(upgraded(&idn, "http://a\u{ff0e}xn--bcher-kva.example"));
    }

    #[test]
    fn hsts_field_over_http_or_from_address_is_ignored() {
        for url in ["http://example.com", "https://127.0.0.1", "https://[::1]"] {
            assert!(with(url, "max-age=9; includeSubDomains").is_empty(), "{url}");
        }
        let mut hsts = with("https://h", "max-age=9");
        hsts.on_field(&target("https://h"), b"max-age=0", NOW);
        assert!(hsts.is_empty() && !upgraded(&hsts, "http://h"));
    }

    #[test]
    fn hsts_upgrade_changes_port_80_only() {
        let hsts = with("https://h", "max-age=9");
        let url = |url: &str| hsts.to_https_target(&target(url), NOW).unwrap();
        assert_eq!(url("http://u:p@h:80/a?b#c").to_url(), "https://h/a?b");
        assert_eq!(url("http://h:8080/").authority(), "h:8080");
        assert_eq!(url("http://u:p@h/").userinfo(), Some(("u".to_owned(), "p".to_owned())));
        assert_eq!(url("http://h/").origin(), target("https://h").origin());
        assert_eq!(url("http://h/"), target("https://h/"));
    }

    #[test]
    fn hsts_files_are_read_and_written() {
        let text = "# x\n.Example.com \"20270115 09:00:00\"\nother.example. \"unlimited\"\nold.example \"20200101 00:00:00\"\n\
            127.0.0.1 \"unlimited\"\nu@h \"unlimited\"\nh/x \"unlimited\"\nh:8443 \"unlimited\"\nbad \"2027\"\nbad unlimited\nbad\n\n\"\"\n";
        let mut hsts = HstsStore::new();
        hsts.load(text, NOW);
        assert_eq!(hsts.len(), 2);
        assert!(upgraded(&hsts, "http://other.example/") && !upgraded(&hsts, "http://127.0.0.1/"));
        assert!(!hsts.is_changed());
        let file = hsts.to_text(NOW);
        let body: Vec<&str> = file.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(body, [".example.com \"20270115 09:00:00\"", "other.example \"unlimited\""]);
        let mut again = HstsStore::new();
        again.load(&file, NOW);
        assert_eq!(again.hosts, hsts.hosts);
    }

    #[test]
    fn host_listed_twice_gets_the_wider_hsts_policy() {
        let lines = ["h.example. \"20391001 04:47:41\"\n", ".h.example \"20291001 04:47:41\"\n"];
        for text in [lines.concat(), lines.into_iter().rev().collect()] {
            let mut hsts = HstsStore::with_style(CookieFileConventions::Curl);
            hsts.load(&text, NOW);
            let file = hsts.to_text(NOW);
            assert!(file.starts_with("# Your HSTS cache. ") && file.lines().count() == 3, "{file}");
            assert!(file.ends_with("\n.h.example \"20391001 04:47:41\"\n"), "{file}");
        }
        // The host's own word is final.
        let mut hsts = HstsStore::new();
        hsts.load("h.example \"unlimited\"\n", NOW);
        hsts.on_field(&target("https://h.example"), b"max-age=1", NOW);
        assert!(
            upgraded(&hsts, "http://h.example") && hsts.to_https_target(&target("http://h.example"), NOW + 1).is_none()
        );
    }

    #[test]
    fn processes_merge_hsts_changes_into_the_file() {
        let mut ours = HstsStore::new();
        ours.load("a \"unlimited\"\nb \"unlimited\"\n", NOW);
        ours.on_field(&target("https://a"), b"max-age=0", NOW);
        ours.on_field(&target("https://c"), b"max-age=9", NOW);
        let mut file = HstsStore::new();
        file.load("a \"unlimited\"\nb \"unlimited\"\nd \"unlimited\"\n", NOW);
        ours.apply_changes_to(&mut file);
        ours.mark_saved();
        assert_eq!(file.hosts.keys().collect::<Vec<_>>(), ["b", "c", "d"]);
        assert!(!ours.is_changed());
    }

    #[test]
    fn hsts_date_without_time_is_read() {
        for (line, is_read) in [("h.example \"20991231\"", true), ("h.example \"nonsense\"", false)] {
            assert_eq!(parse_line(line).is_some(), is_read, "{line}");
        }
    }

    #[test]
    fn full_hsts_store_drops_the_first_to_expire() {
        let mut hsts = HstsStore::new();
        for i in 0..3 * MAX_HOSTS {
            hsts.on_field(&target(&format!("https://h{i}.example")), format!("max-age={}", i + 1).as_bytes(), NOW);
            hsts.on_field(&target(&format!("https://never{i}.example")), b"max-age=0", NOW);
        }
        assert_eq!((hsts.len(), hsts.changed.len()), (MAX_HOSTS, MAX_HOSTS));
        assert!(upgraded(&hsts, &format!("http://h{}.example", 3 * MAX_HOSTS - 1)));
    }

    #[test]
    fn store_is_changed_until_it_is_saved() {
        let mut known = HstsStore::new();
        assert!(known.is_empty() && !known.is_changed());
        known.on_field(&Target::parse("https://h.example/").unwrap(), b"max-age=10", 100);
        assert!(!known.is_empty() && known.is_changed());
        known.mark_saved();
        assert!(!known.is_empty() && !known.is_changed());
    }

    #[test]
    fn policy_ends_with_its_last_second() {
        let mut known = HstsStore::new();
        known.on_field(&Target::parse("https://h.example/").unwrap(), b"max-age=10", 100);
        assert!(known.to_text(109).contains("h.example"));
        assert!(!known.to_text(110).contains("h.example"));
        let mut file = HstsStore::new();
        file.load(&known.to_text(109), 110);
        assert!(file.is_empty());
    }
}
