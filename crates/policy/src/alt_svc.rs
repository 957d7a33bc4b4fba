//! Alternative services (RFC 7838): where else an origin is served, and curl's `--alt-svc` file.
//!
//! ```
//! use haul_policy::Target;
//! use haul_policy::alt_svc::{AltSvc, Protocol};
//!
//! let now = 1_800_000_000;
//! let site = Target::parse("https://example.com/")?;
//! let mut known = AltSvc::new();
//! known.on_field(&site, Protocol::H1, b"h3=\":443\"; ma=60, h2=\"alt.example:8443\"", now);
//! let h2 = known.find(&site, now, |protocol| protocol == Protocol::H2).unwrap();
//! assert_eq!((h2.host.as_str(), h2.port), ("alt.example", 8443));
//! assert!(known.write(now).contains("h1 example.com 443 h3 example.com 443 \"20270115 08:01:00\" 0 0\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An alternative is the same origin at another door: it must show the origin's certificate, gets the origin's Host, cookies and
//! credentials, and changes nothing of what this crate decides by [`Origin`](crate::Origin). Fields count over TLS only: in the clear anyone on the
//! way could send a client anywhere. Times are wall-clock seconds since 1970.

use crate::civil::Civil;
use crate::target::{Scheme, Target};

/// How many alternatives of one field are read.
pub const MAX_ALTERNATIVES: usize = 16;
/// How many alternatives are kept in all; when full, the one that ends first goes.
pub const MAX_ENTRIES: usize = 1000;
/// How long one lives when its field does not say, in seconds: 24 hours (§3.1).
pub const DEFAULT_AGE: u64 = 86_400;

/// What is spoken: the ALPN names that curl's file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// `h1` in files, `http/1.1` in fields.
    H1,
    /// `h2`.
    H2,
    /// `h3`.
    H3,
}

impl Protocol {
    /// The name in a file.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::H1 => "h1",
            Protocol::H2 => "h2",
            Protocol::H3 => "h3",
        }
    }

    fn parse(id: &str) -> Option<Protocol> {
        match id {
            "h1" | "http/1.1" => Some(Protocol::H1),
            "h2" => Some(Protocol::H2),
            "h3" => Some(Protocol::H3),
            _ => None,
        }
    }
}

/// One alternative of an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// What is spoken there.
    pub protocol: Protocol,
    /// Its host, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// When it ends.
    pub expires: u64,
    /// Whether it outlives a change of network (`persist=1`).
    pub persist: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// What the field came by; the file has it.
    source: Protocol,
    host: String,
    port: u16,
    alternative: Alternative,
}

/// The known alternatives.
#[derive(Clone, Debug, Default)]
pub struct AltSvc {
    entries: Vec<Entry>,
    /// Origins of which this process heard since the file was read.
    heard: Vec<(String, u16)>,
}

/// What an Alt-Svc field says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// `clear`: forget all.
    Clear,
    /// These, the preferred one first; an empty host is the origin's. The third is `ma`, the fourth `persist`.
    Alternatives(Vec<(Protocol, String, u16, u64, bool)>),
}

/// Reads a field's value (§3). `None` if nothing in it is understood: then it changes nothing.
pub fn parse(field: &[u8]) -> Option<Field> {
    let text = core::str::from_utf8(field).ok()?.trim();
    if text.eq_ignore_ascii_case("clear") {
        return Some(Field::Clear);
    }
    let values = split_unquoted(text, ',').take(MAX_ALTERNATIVES);
    let found: Vec<_> = values.filter_map(parse_value).collect();
    (!found.is_empty()).then_some(Field::Alternatives(found))
}

fn parse_value(value: &str) -> Option<(Protocol, String, u16, u64, bool)> {
    let mut pieces = split_unquoted(value, ';').map(str::trim);
    let (id, authority) = pieces.next()?.split_once('=')?;
    let protocol = Protocol::parse(&percent_decoded(id.trim())?)?;
    let (host, port) = unquoted(authority.trim()).rsplit_once(':')?;
    let port = port.parse().ok().filter(|_| port.bytes().all(|b| b.is_ascii_digit())).filter(|port| *port != 0)?;
    let host = if host.is_empty() { String::new() } else { host_text(host)? };
    let (mut age, mut persist) = (DEFAULT_AGE, false);
    for (name, value) in pieces.filter_map(|piece| piece.split_once('=')) {
        let value = unquoted(value.trim());
        match name.trim() {
            name if name.eq_ignore_ascii_case("ma") => {
                let is_number = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
                age = if is_number { value.parse().unwrap_or(u64::MAX) } else { return None };
            }
            name if name.eq_ignore_ascii_case("persist") => persist = value == "1",
            _ => {}
        }
    }
    Some((protocol, host, port, age, persist))
}

/// A host by the rules of a URL's: what is refused there is refused here.
fn host_text(host: &str) -> Option<String> {
    let target = Target::parse(&format!("https://{host}/")).ok()?;
    let is_host =
        target.userinfo_bytes().is_none() && target.explicit_port().is_none() && target.path_and_query() == "/";
    is_host.then(|| target.host_text().to_owned())
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(text)
}

fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |c| {
        quoted ^= c == '"';
        c == separator && !quoted
    })
}

/// `http%2F1.1` is `http/1.1` (§3).
fn percent_decoded(id: &str) -> Option<String> {
    let mut pieces = id.split('%');
    let mut out = pieces.next()?.to_owned();
    for piece in pieces {
        out.push(char::from(u8::from_str_radix(piece.get(..2)?, 16).ok()?));
        out.push_str(piece.get(2..)?);
    }
    Some(out)
}

impl AltSvc {
    /// None.
    pub fn new() -> AltSvc {
        AltSvc::default()
    }

    /// How many alternatives are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes an Alt-Svc field of a reply from `target`, which came by `source`: it replaces all that was known of the origin.
    pub fn on_field(&mut self, target: &Target, source: Protocol, field: &[u8], now: u64) {
        let (Scheme::Https, Some(field)) = (target.scheme(), parse(field)) else { return };
        let origin = (target.host_text().to_owned(), target.port());
        let before = self.entries.len();
        self.entries.retain(|entry| !entry.is_of(&origin));
        let found = match field {
            Field::Clear => Vec::new(),
            Field::Alternatives(found) => found,
        };
        // What was never known needs no note to be forgotten: a server could make the list of notes endless.
        if (before > self.entries.len() || !found.is_empty()) && !self.heard.contains(&origin) {
            self.heard.push(origin.clone());
        }
        for (protocol, host, port, age, persist) in found {
            let host = if host.is_empty() { origin.0.clone() } else { host };
            let alternative = Alternative { protocol, host, port, expires: now.saturating_add(age), persist };
            self.push(Entry { source, host: origin.0.clone(), port: origin.1, alternative });
        }
    }

    /// The preferred live alternative for `target` that speaks what the caller can. None for plain http.
    pub fn find(&self, target: &Target, now: u64, speaks: impl Fn(Protocol) -> bool) -> Option<&Alternative> {
        let of_target = |entry: &&Entry| entry.port == target.port() && entry.host == target.host_text();
        let alternatives = self.entries.iter().filter(of_target).map(|entry| &entry.alternative);
        let mut live = alternatives.filter(|alternative| alternative.expires > now && speaks(alternative.protocol));
        live.next().filter(|_| target.scheme() == Scheme::Https)
    }

    /// Forgets what does not outlive a change of network (§2.2).
    pub fn network_changed(&mut self) {
        self.entries.retain(|entry| entry.alternative.persist);
    }

    /// Adds what a file holds. Lines that are not understood, and what has ended, are left out.
    ///
    /// ```text
    /// h2 example.com 443 h3 alt.example 8443 "20270115 09:00:00" 0 0
    /// by host        port to host       port  ends             persist, priority
    /// ```
    pub fn load(&mut self, text: &str, now: u64) {
        for entry in text.lines().filter_map(parse_line).filter(|entry| entry.alternative.expires > now) {
            self.push(entry);
        }
    }

    /// Applies what this process heard to `file`: the file as it is now, which other processes write too. Then [`saved`](Self::saved).
    pub fn apply_to(&self, file: &mut AltSvc) {
        file.entries.retain(|entry| !self.heard.iter().any(|origin| entry.is_of(origin)));
        for entry in self.entries.iter().filter(|entry| self.heard.iter().any(|origin| entry.is_of(origin))) {
            file.push(entry.clone());
        }
    }

    /// Whether there is something to write.
    pub fn is_changed(&self) -> bool {
        !self.heard.is_empty()
    }

    /// The file holds what this process heard.
    pub fn saved(&mut self) {
        self.heard.clear();
    }

    /// The file, in curl's format, without what has ended.
    pub fn write(&self, now: u64) -> String {
        let mut out = "# Alt-Svc cache, as curl has it. Written by haul.\n".to_owned();
        for Entry { source, host, port, alternative } in &self.entries {
            let Alternative { protocol, host: to, port: to_port, expires, persist } = alternative;
            if *expires > now {
                let (source, protocol) = (source.as_str(), protocol.as_str());
                let (host, to) = (bracketed(host), bracketed(to));
                let (expires, persist) = (Civil::from_unix(*expires).compact(), u8::from(*persist));
                out.push_str(&format!("{source} {host} {port} {protocol} {to} {to_port} \"{expires}\" {persist} 0\n"));
            }
        }
        out
    }

    fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        if self.entries.len() > MAX_ENTRIES {
            let first = (0..self.entries.len()).min_by_key(|at| self.entries[*at].alternative.expires);
            if let Some(at) = first {
                let gone = self.entries.remove(at);
                if !self.entries.iter().any(|entry| entry.host == gone.host && entry.port == gone.port) {
                    self.heard.retain(|origin| !gone.is_of(origin));
                }
            }
        }
    }
}

impl Entry {
    fn is_of(&self, origin: &(String, u16)) -> bool {
        self.host == origin.0 && self.port == origin.1
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

fn parse_line(line: &str) -> Option<Entry> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let (head, rest) = line.split_once('"')?;
    let (date, tail) = rest.split_once('"')?;
    let head: [&str; 6] = head.split_ascii_whitespace().collect::<Vec<_>>().try_into().ok()?;
    let mut tail = tail.split_ascii_whitespace();
    let (persist, _priority) = (tail.next()?, tail.next()?);
    let alternative = Alternative {
        protocol: Protocol::parse(head[3])?,
        host: host_text(head[4])?,
        port: head[5].parse().ok()?,
        expires: Civil::parse(date)?.to_unix()?,
        persist: persist != "0",
    };
    Some(Entry {
        source: Protocol::parse(head[0])?,
        host: host_text(head[1])?,
        port: head[2].parse().ok()?,
        alternative,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn target(url: &str) -> Target {
        Target::parse(url).unwrap()
    }

    fn parsed(field: &str) -> Vec<(Protocol, String, u16, u64, bool)> {
        match parse(field.as_bytes()) {
            Some(Field::Alternatives(found)) => found,
            _ => Vec::new(),
        }
    }

    #[test]
    fn fields() {
        let one = |field: &str| parsed(field).pop();
        let is = |protocol, host: &str, port, age, persist| Some((protocol, host.to_owned(), port, age, persist));
        assert_eq!(one("h2=\":443\""), is(Protocol::H2, "", 443, DEFAULT_AGE, false));
        assert_eq!(one("h3=\"A.example:1\" ; ma=5; persist=1; x=\"y,z\""), is(Protocol::H3, "a.example", 1, 5, true));
        assert_eq!(one("http%2F1.1=\"[::1]:80\";MA=\"7\""), is(Protocol::H1, "::1", 80, 7, false));
        assert_eq!(one("h2=alt:443"), is(Protocol::H2, "alt", 443, DEFAULT_AGE, false));
        assert_eq!(one("h3-29=\":443\", h2=\":1\""), is(Protocol::H2, "", 1, DEFAULT_AGE, false));
        assert_eq!(parse(b" Clear "), Some(Field::Clear));
        for field in [
            "",
            "h2",
            "h2=",
            "h2=\"h\"",
            "h2=\":0\"",
            "h2=\":99999\"",
            "h2=\":+1\"",
            "h2=\"u@h:1\"",
            "h2=\"h/x:1\"",
            "h%2=\":1\"",
            "h2=\":1\"; ma=x",
            "h2=\"a\\b:1\"",
            "clear, h",
        ] {
            assert_eq!(parsed(field), [], "{field}");
        }
        assert_eq!(parse(b"h2=\":1\"\xff"), None);
        assert_eq!(parsed(&"h2=\":1\",".repeat(1000)).len(), MAX_ALTERNATIVES);
    }

    #[test]
    fn replaced_cleared_ended() {
        let site = target("https://h/");
        let mut known = AltSvc::new();
        known.on_field(&target("http://h:443/"), Protocol::H1, b"h2=\":1\"", NOW);
        assert!(known.is_empty());
        known.on_field(&site, Protocol::H1, b"h2=\":1\"; ma=10, h2=\":2\"", NOW);
        known.on_field(&target("https://i/"), Protocol::H2, b"h3=\":3\"; persist=1", NOW);
        let port = |known: &AltSvc, url: &str, now| known.find(&target(url), now, |_| true).map(|found| found.port);
        assert_eq!(port(&known, "https://h/", NOW), Some(1));
        assert_eq!(port(&known, "https://h/", NOW + 10), Some(2));
        assert_eq!(port(&known, "https://h:444/", NOW), None);
        assert_eq!(port(&known, "http://h:443/", NOW), None);
        assert_eq!(known.find(&site, NOW, |protocol| protocol == Protocol::H3), None);
        known.on_field(&site, Protocol::H1, b"nonsense", NOW);
        assert_eq!(port(&known, "https://h/", NOW), Some(1));
        known.on_field(&site, Protocol::H1, b"h2=\":9\"", NOW);
        assert_eq!(port(&known, "https://h/", NOW), Some(9));
        known.network_changed();
        assert_eq!((port(&known, "https://h/", NOW), port(&known, "https://i/", NOW)), (None, Some(3)));
        known.on_field(&target("https://i/"), Protocol::H1, b"clear", NOW);
        assert!(known.is_empty());
    }

    #[test]
    fn files_of_many_processes() {
        let text = "# x\nh2 a 443 h3 [::1] 8443 \"20270115 09:00:00\" 1 0\nh1 b 443 h2 b 1 \"20200101 00:00:00\" 0 0\n\
            h1 c 443 h2 c 1 \"20300101 00:00:00\" 0 0\nbad\nh9 c 443 h2 c 1 \"20300101 00:00:00\" 0 0\n";
        let mut ours = AltSvc::new();
        ours.load(text, NOW);
        assert_eq!(ours.len(), 2);
        assert!(ours.write(NOW).contains("h2 a 443 h3 [::1] 8443 \"20270115 09:00:00\" 1 0\n"));
        ours.on_field(&target("https://a/"), Protocol::H1, b"clear", NOW);
        ours.on_field(&target("https://d/"), Protocol::H1, b"h2=\":2\"", NOW);
        let mut file = AltSvc::new();
        file.load(&format!("{text}h1 e 443 h2 e 1 \"20300101 00:00:00\" 0 0\n"), NOW);
        ours.apply_to(&mut file);
        ours.saved();
        let hosts: Vec<&str> = file.entries.iter().map(|entry| entry.host.as_str()).collect();
        assert_eq!(hosts, ["c", "e", "d"]);
        assert!(!ours.is_changed());
    }

    #[test]
    fn bounded() {
        let mut known = AltSvc::new();
        for i in 0..2 * MAX_ENTRIES {
            known.on_field(
                &target(&format!("https://h{i}/")),
                Protocol::H1,
                format!("h2=\":1\"; ma={i}").as_bytes(),
                NOW,
            );
        }
        assert_eq!((known.len(), known.heard.len()), (MAX_ENTRIES, MAX_ENTRIES));
    }
}
