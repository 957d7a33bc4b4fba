//! Alternative services (RFC 7838): further endpoints of an origin, and curl's `--alt-svc` file.
//!
//! ```
//! use haul_policy::Target;
//! use haul_policy::alt_svc::{AltSvcStore, AlpnProtocol};
//!
//! let now = 1_800_000_000;
//! let site = Target::parse("https://example.com/")?;
//! let mut known = AltSvcStore::new();
//! known.on_field(&site, AlpnProtocol::H1, b"h3=\":443\"; ma=60, h2=\"alt.example:8443\"", now);
//! let h2 = known.find(&site, now, |protocol| protocol == AlpnProtocol::H2).unwrap();
//! assert_eq!((h2.host.as_str(), h2.port), ("alt.example", 8443));
//! assert!(known.to_text(now).contains("h1 example.com 443 h3 example.com 443 \"20270115 08:01:00\" 0 0\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An alternative is another endpoint of the same origin. It must show the origin's certificate,
//! and it gets the origin's Host, cookies and credentials; decisions by [`Origin`](crate::Origin)
//! stay the same. Fields count only over TLS, since without TLS any router on the way could
//! redirect a client. Times are wall-clock seconds since 1970.

#[cfg(test)]
mod tests;

use crate::calendar::CalendarTime;
use crate::cookie::CookieFileConventions;
use crate::target::{Scheme, Target};

/// The maximum number of alternative services read from one Alt-Svc field. Further ones are
/// ignored.
pub const MAX_ALTERNATIVES: usize = 16;
/// The largest number of alternative services in a store. A full store drops the one that expires
/// first.
pub const MAX_ENTRIES: usize = 1000;
/// The lifetime in seconds of an alternative without `ma`: 24 hours (RFC 7838 §3.1).
pub const DEFAULT_MAX_AGE_SECONDS: u64 = 86_400;

/// An application protocol, by the name that curl's Alt-Svc file uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AlpnProtocol {
    /// HTTP/1.1: `h1` in curl's Alt-Svc file, `http/1.1` in Alt-Svc fields.
    H1,
    /// HTTP/2: `h2` in curl's Alt-Svc file and in Alt-Svc fields.
    H2,
    /// HTTP/3: `h3` in curl's Alt-Svc file and in Alt-Svc fields.
    H3,
}

impl AlpnProtocol {
    /// Returns the protocol's name in curl's Alt-Svc file.
    pub fn as_str(self) -> &'static str {
        match self {
            AlpnProtocol::H1 => "h1",
            AlpnProtocol::H2 => "h2",
            AlpnProtocol::H3 => "h3",
        }
    }

    /// Returns the protocol with this ALPN identifier (RFC 7301); `None` if haul does not speak it.
    pub fn from_alpn(id: &[u8]) -> Option<AlpnProtocol> {
        match id {
            b"http/1.1" => Some(AlpnProtocol::H1),
            b"h2" => Some(AlpnProtocol::H2),
            b"h3" => Some(AlpnProtocol::H3),
            _ => None,
        }
    }

    fn parse(id: &str) -> Option<AlpnProtocol> {
        match id {
            "h1" | "http/1.1" => Some(AlpnProtocol::H1),
            "h2" => Some(AlpnProtocol::H2),
            "h3" => Some(AlpnProtocol::H3),
            _ => None,
        }
    }
}

/// An alternative service of an origin: another endpoint that serves the same content (RFC 7838
/// §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlternativeService {
    /// The protocol that the alternative endpoint speaks.
    pub protocol: AlpnProtocol,
    /// The host of the alternative endpoint, without brackets.
    pub host: String,
    /// The port of the alternative endpoint.
    pub port: u16,
    /// The expiry time of the alternative, in seconds since 1970.
    pub expires: u64,
    /// True if the alternative survives a change of network (`persist=1`).
    pub persist: bool,
}

/// A stored alternative service, with the origin that offered it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AltSvcEntry {
    /// The protocol of the response that offered the alternative in its Alt-Svc field. curl's
    /// Alt-Svc file contains this protocol.
    source: AlpnProtocol,
    host: String,
    port: u16,
    alternative: AlternativeService,
}

/// The identity of an alternative service within its origin: protocol, host, port.
type AlternativeEndpoint = (AlpnProtocol, String, u16);

/// Stored alternative services, grouped by origin.
#[derive(Clone, Debug, Default)]
pub struct AltSvcStore {
    entries: Vec<AltSvcEntry>,
    /// The origins (host and port) whose alternatives changed since the file was read or last
    /// written.
    changed: Vec<(String, u16)>,
    /// Alternatives that could not be reached, each with its origin. [`AltSvcStore::find`] skips
    /// these alternatives.
    failed: Vec<((String, u16), AlternativeEndpoint)>,
    style: CookieFileConventions,
}

/// The parsed value of an Alt-Svc field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AltSvcField {
    /// The field's value is `clear`: the origin drops all its alternatives.
    Clear,
    /// The offered alternatives, in order of preference.
    Alternatives(Vec<AltSvcOffer>),
}

/// One alternative service as offered in an Alt-Svc field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AltSvcOffer {
    /// The protocol that the offered endpoint speaks.
    pub protocol: AlpnProtocol,
    /// The host of the offered endpoint, without brackets; empty for the origin's own host.
    pub host: String,
    /// The port of the offered endpoint.
    pub port: u16,
    /// The lifetime of the offer in seconds (`ma`).
    pub max_age: u64,
    /// True if `persist=1`: the alternative survives a change of network.
    pub persist: bool,
}

/// Parses the value of an Alt-Svc field (RFC 7838 §3). Returns `None` if no part of the value is
/// understood; such a field has no effect.
pub fn parse(field: &[u8]) -> Option<AltSvcField> {
    let text = core::str::from_utf8(field).ok()?.trim();
    if text.eq_ignore_ascii_case("clear") {
        return Some(AltSvcField::Clear);
    }
    let values = split_unquoted(text, ',').take(MAX_ALTERNATIVES);
    let found: Vec<_> = values.filter_map(parse_value).collect();
    (!found.is_empty()).then_some(AltSvcField::Alternatives(found))
}

fn parse_value(value: &str) -> Option<AltSvcOffer> {
    let mut pieces = split_unquoted(value, ';').map(str::trim);
    let (id, authority) = pieces.next()?.split_once('=')?;
    let protocol = AlpnProtocol::parse(&percent_decoded(id.trim())?)?;
    let (host, port) = remove_quotes(authority.trim()).rsplit_once(':')?;
    let port = port.parse().ok().filter(|_| port.bytes().all(|b| b.is_ascii_digit())).filter(|port| *port != 0)?;
    let host = if host.is_empty() { String::new() } else { host_text(host)? };
    let (mut max_age, mut persist) = (DEFAULT_MAX_AGE_SECONDS, false);
    for (name, value) in pieces.filter_map(|piece| piece.split_once('=')) {
        let value = remove_quotes(value.trim());
        match name.trim() {
            name if name.eq_ignore_ascii_case("ma") => {
                let is_number = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
                max_age = if is_number { value.parse().unwrap_or(u64::MAX) } else { return None };
            }
            name if name.eq_ignore_ascii_case("persist") => persist = value == "1",
            _ => {}
        }
    }
    Some(AltSvcOffer { protocol, host, port, max_age, persist })
}

/// Parses a host by the rules for hosts in URLs; `None` if it is invalid.
fn host_text(host: &str) -> Option<String> {
    let target = Target::parse(&format!("https://{host}/")).ok()?;
    let is_host = target.userinfo_bytes().is_none()
        && target.explicit_port().is_none()
        && target.path_and_query() == "/"
        && target.fragment().is_none();
    is_host.then(|| target.host_text().to_owned())
}

fn remove_quotes(text: &str) -> &str {
    text.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(text)
}

fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |c| {
        quoted ^= c == '"';
        c == separator && !quoted
    })
}

/// Decodes percent-encoding in an ALPN identifier: `http%2F1.1` becomes `http/1.1` (RFC 7838 §3).
/// Returns `None` if the encoding is malformed.
fn percent_decoded(id: &str) -> Option<String> {
    let mut pieces = id.split('%');
    let mut out = pieces.next()?.to_owned();
    for piece in pieces {
        out.push(char::from(u8::from_str_radix(piece.get(..2)?, 16).ok()?));
        out.push_str(piece.get(2..)?);
    }
    Some(out)
}

impl AltSvcStore {
    /// Creates an empty store of alternative services.
    pub fn new() -> AltSvcStore {
        AltSvcStore::default()
    }

    /// Creates an empty store. `style` decides whether its file begins with haul's heading or with
    /// curl's.
    pub fn with_style(style: CookieFileConventions) -> AltSvcStore {
        AltSvcStore { style, ..AltSvcStore::default() }
    }

    /// Returns the number of stored alternative services.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if no alternative service is stored.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Processes the Alt-Svc field of a response from `target` that was received over the protocol
    /// `source`. The new alternatives replace all stored alternatives of that origin. `generated`
    /// is the time at which the response was generated, in seconds since 1970: the present time
    /// minus the response's age. The lifetimes begin at that time (RFC 7838 §3.1).
    pub fn on_field(&mut self, target: &Target, source: AlpnProtocol, field: &[u8], generated: u64) {
        let (Scheme::Https, Some(field)) = (target.scheme(), parse(field)) else { return };
        let origin = (target.host_text().to_owned(), target.port());
        let before = self.entries.len();
        self.entries.retain(|entry| !entry.is_for_origin(&origin));
        let found = match field {
            AltSvcField::Clear => Vec::new(),
            AltSvcField::Alternatives(found) => found,
        };
        // Forgetting what was never known is not recorded: a server could make the records grow
        // without bound.
        if (before > self.entries.len() || !found.is_empty()) && !self.changed.contains(&origin) {
            self.changed.push(origin.clone());
        }
        for AltSvcOffer { protocol, host, port, max_age, persist } in found {
            let host = if host.is_empty() { origin.0.clone() } else { host };
            let alternative =
                AlternativeService { protocol, host, port, expires: generated.saturating_add(max_age), persist };
            self.push(AltSvcEntry { source, host: origin.0.clone(), port: origin.1, alternative });
        }
    }

    /// Returns the preferred alternative for `target`, or `None`. The alternative has not expired
    /// and has not [failed](Self::mark_failed), and `speaks` returns true for its protocol. Plain
    /// http has no alternatives.
    pub fn find(
        &self,
        target: &Target,
        now: u64,
        speaks: impl Fn(AlpnProtocol) -> bool,
    ) -> Option<&AlternativeService> {
        self.alternatives(target, now).find(|alternative| speaks(alternative.protocol))
    }

    /// Returns the alternatives for `target` that have not expired and have not
    /// [failed](Self::mark_failed), the preferred one first. Plain http has no alternatives.
    pub fn alternatives<'s, 't>(
        &'s self,
        target: &'t Target,
        now: u64,
    ) -> impl Iterator<Item = &'s AlternativeService> + use<'s, 't> {
        let is_targets = |host: &str, port: u16| port == target.port() && host == target.host_text();
        let has_failed = move |known: &AlternativeService| {
            let has_key = |door: &AlternativeEndpoint| {
                (door.0, door.1.as_str(), door.2) == (known.protocol, &*known.host, known.port)
            };
            self.failed.iter().any(|((host, port), door)| is_targets(host, *port) && has_key(door))
        };
        let alternatives = self.entries.iter().filter(move |entry| is_targets(&entry.host, entry.port));
        let live = alternatives
            .map(|entry| &entry.alternative)
            .filter(move |alternative| alternative.expires > now && !has_failed(alternative));
        live.filter(|_| target.scheme() == Scheme::Https)
    }

    /// Records that an alternative of `target` could not be reached or does not serve the origin
    /// (RFC 7838 §2.4). From then on, [`find`](Self::find) skips the alternative. The file still
    /// contains it, because other processes may be able to reach it.
    pub fn mark_failed(&mut self, target: &Target, protocol: AlpnProtocol, host: &str, port: u16) {
        let failed = ((target.host_text().to_owned(), target.port()), (protocol, host.to_owned(), port));
        if !self.failed.contains(&failed) {
            self.failed.truncate(MAX_ENTRIES - 1);
            self.failed.insert(0, failed);
        }
    }

    /// Drops the alternatives without `persist=1`, as a change of network requires (RFC 7838 §2.2).
    pub fn network_changed(&mut self) {
        self.entries.retain(|entry| entry.alternative.persist);
    }

    /// Adds the alternatives of a file. Malformed lines and expired alternatives are skipped.
    ///
    /// A line has the protocol, host and port of the origin, the protocol, host and port of the
    /// alternative, the expiry, the `persist` flag, and a priority that is ignored:
    ///
    /// ```text
    /// h2 example.com 443 h3 alt.example 8443 "20270115 09:00:00" 0 0
    /// ```
    pub fn load(&mut self, text: &str, now: u64) {
        for entry in text.lines().filter_map(parse_line).filter(|entry| entry.alternative.expires > now) {
            self.push(entry);
        }
    }

    /// Applies to `file` the changes made to this store since its file was read. `file` is another
    /// store, read from the disk just before the call: other processes write the file, too. Call
    /// [`mark_saved`](Self::mark_saved) afterwards.
    pub fn apply_changes_to(&self, file: &mut AltSvcStore) {
        file.style = self.style;
        file.entries.retain(|entry| !self.changed.iter().any(|origin| entry.is_for_origin(origin)));
        for entry in self.entries.iter().filter(|entry| self.changed.iter().any(|origin| entry.is_for_origin(origin))) {
            file.push(entry.clone());
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

    /// Returns the text of an Alt-Svc file in curl's format, without alternatives that have expired
    /// at `now`, in seconds since 1970.
    pub fn to_text(&self, now: u64) -> String {
        let heading = match self.style {
            CookieFileConventions::Standard => "# Alt-Svc cache, as curl has it. Written by haul.\n",
            CookieFileConventions::Curl => {
                "# Your alt-svc cache. https://curl.se/docs/alt-svc.html\n\
                 # This file was generated by libcurl! Edit at your own risk.\n"
            }
        };
        let mut out = heading.to_owned();
        for AltSvcEntry { source, host, port, alternative } in &self.entries {
            let AlternativeService { protocol, host: to, port: to_port, expires, persist } = alternative;
            if *expires > now {
                let (source, protocol) = (source.as_str(), protocol.as_str());
                let (host, to) = (bracketed(host), bracketed(to));
                let (expires, persist) = (CalendarTime::from_unix(*expires).to_compact_digits(), u8::from(*persist));
                out.push_str(&format!("{source} {host} {port} {protocol} {to} {to_port} \"{expires}\" {persist} 0\n"));
            }
        }
        out
    }

    fn push(&mut self, entry: AltSvcEntry) {
        self.entries.push(entry);
        if self.entries.len() > MAX_ENTRIES {
            let first = (0..self.entries.len()).min_by_key(|at| self.entries[*at].alternative.expires);
            if let Some(at) = first {
                let gone = self.entries.remove(at);
                if !self.entries.iter().any(|entry| entry.host == gone.host && entry.port == gone.port) {
                    self.changed.retain(|origin| !gone.is_for_origin(origin));
                }
            }
        }
    }
}

impl AltSvcEntry {
    fn is_for_origin(&self, origin: &(String, u16)) -> bool {
        self.host == origin.0 && self.port == origin.1
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

fn parse_line(line: &str) -> Option<AltSvcEntry> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let (head, rest) = line.split_once('"')?;
    let (date, tail) = rest.split_once('"')?;
    let head: [&str; 6] = head.split_ascii_whitespace().collect::<Vec<_>>().try_into().ok()?;
    let mut tail = tail.split_ascii_whitespace();
    let (persist, _priority) = (tail.next()?, tail.next()?);
    let alternative = AlternativeService {
        protocol: AlpnProtocol::parse(head[3])?,
        host: host_text(head[4])?,
        port: head[5].parse().ok()?,
        expires: CalendarTime::parse(date)?.to_unix()?,
        persist: persist != "0",
    };
    Some(AltSvcEntry {
        source: AlpnProtocol::parse(head[0])?,
        host: host_text(head[1])?,
        port: head[2].parse().ok()?,
        alternative,
    })
}
