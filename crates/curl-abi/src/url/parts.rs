//! The parts of a URL: reading, changing and joining them.

use std::borrow::Cow;

use haul_policy::urlencode::percent_decode;

use super::parse::{
    MAX_LEN, default_port, encode_loose, parse, parse_port, parse_tail, set_host, split_scheme, without_dots,
};
use super::{UrlPart, flags};
use crate::codes::{
    CURLUE_BAD_HOSTNAME, CURLUE_BAD_PORT_NUMBER, CURLUE_BAD_SCHEME, CURLUE_MALFORMED_INPUT, CURLUE_NO_FRAGMENT,
    CURLUE_NO_HOST, CURLUE_NO_OPTIONS, CURLUE_NO_PASSWORD, CURLUE_NO_PORT, CURLUE_NO_QUERY, CURLUE_NO_SCHEME,
    CURLUE_NO_USER, CURLUE_NO_ZONEID, CURLUE_UNSUPPORTED_SCHEME, CURLUE_URLDECODE, CURLUcode,
};

/// A URL, split into its parts. A missing part is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UrlParts {
    pub(super) scheme: Option<Vec<u8>>,
    pub(super) user: Option<Vec<u8>>,
    pub(super) password: Option<Vec<u8>>,
    pub(super) options: Option<Vec<u8>>,
    pub(super) host: Option<Vec<u8>>,
    pub(super) zone: Option<Vec<u8>>,
    pub(super) port: Option<u16>,
    pub(super) path: Option<Vec<u8>>,
    pub(super) query: Option<Vec<u8>>,
    pub(super) fragment: Option<Vec<u8>>,
    /// True if the URL was set without a scheme, so that the scheme is guessed.
    pub(super) is_guessed: bool,
}

impl UrlParts {
    /// Returns a part as text.
    ///
    /// # Errors
    /// The part is missing, or cannot be decoded.
    pub fn get(&self, part: UrlPart, flag: u32) -> Result<Vec<u8>, CURLUcode> {
        let has_empty = |part: &&Vec<u8>| !part.is_empty() || flag & flags::GET_EMPTY != 0;
        let found: Cow<'_, [u8]> = match part {
            UrlPart::Url => return self.to_url(flag),
            UrlPart::Scheme => match &self.scheme {
                Some(_) if self.is_guessed && flag & flags::NO_GUESS_SCHEME != 0 => return Err(CURLUE_NO_SCHEME),
                Some(scheme) => scheme.as_slice().into(),
                None => return Err(CURLUE_NO_SCHEME),
            },
            UrlPart::User => self.user.as_deref().ok_or(CURLUE_NO_USER)?.into(),
            UrlPart::Password => self.password.as_deref().ok_or(CURLUE_NO_PASSWORD)?.into(),
            UrlPart::Options => self.options.as_deref().ok_or(CURLUE_NO_OPTIONS)?.into(),
            UrlPart::Host => converted_host(self.host.as_deref().ok_or(CURLUE_NO_HOST)?, flag)?,
            UrlPart::Port => self.port_text(flag).ok_or(CURLUE_NO_PORT)?.into(),
            UrlPart::Path => self.path.as_deref().unwrap_or(b"/").into(),
            UrlPart::Query => self.query.as_ref().filter(has_empty).ok_or(CURLUE_NO_QUERY)?.as_slice().into(),
            UrlPart::Fragment => self.fragment.as_ref().filter(has_empty).ok_or(CURLUE_NO_FRAGMENT)?.as_slice().into(),
            UrlPart::Zone => self.zone.as_deref().ok_or(CURLUE_NO_ZONEID)?.into(),
        };
        let encoded = |text: &[u8]| match flag & flags::URLENCODE {
            0 => text.to_vec(),
            _ => encode_loose(text, part == UrlPart::Query),
        };
        if matches!(part, UrlPart::Scheme | UrlPart::Port) {
            return Ok(found.into_owned());
        }
        if flag & flags::URLDECODE == 0 {
            return Ok(encoded(&found));
        }
        let plain = match part {
            UrlPart::Query => percent_decode(&replace_byte(&found, b'+', b' ')).into_owned(),
            _ => percent_decode(&found).into_owned(),
        };
        // A byte below space may end a string of the program early.
        if plain.iter().any(|b| *b < 0x20) { Err(CURLUE_URLDECODE) } else { Ok(encoded(&plain)) }
    }

    /// Returns the port as text: the port of the URL, or the default port if `flag` requests it.
    /// Returns `None` if there is none, or if `flag` omits a default port.
    fn port_text(&self, flag: u32) -> Option<Vec<u8>> {
        let default = self.scheme.as_deref().and_then(default_port);
        let port = match self.port {
            Some(port) if flag & flags::NO_DEFAULT_PORT != 0 && Some(port) == default => return None,
            Some(port) => Some(port),
            None if flag & flags::DEFAULT_PORT != 0 => default,
            None => None,
        };
        port.map(|port| port.to_string().into_bytes())
    }

    /// Returns the whole URL, made from its parts.
    fn to_url(&self, flag: u32) -> Result<Vec<u8>, CURLUcode> {
        let mut url = Vec::new();
        let mut push = |pieces: &[&[u8]]| pieces.iter().for_each(|piece| url.extend_from_slice(piece));
        let encodes = flag & flags::URLENCODE != 0;
        let tail_empty = flag & flags::GET_EMPTY != 0;
        if self.scheme.as_deref() == Some(b"file") {
            push(&[b"file://"]);
        } else {
            let scheme = match &self.scheme {
                Some(scheme) => scheme.as_slice(),
                None if flag & flags::DEFAULT_SCHEME != 0 => b"https",
                None => return Err(CURLUE_NO_SCHEME),
            };
            let host = converted_host(self.host.as_deref().ok_or(CURLUE_NO_HOST)?, flag)?;
            if !(self.is_guessed && flag & flags::NO_GUESS_SCHEME != 0) {
                push(&[scheme, b"://"]);
            }
            if self.user.is_some() || self.password.is_some() || self.options.is_some() {
                push(&[self.user.as_deref().unwrap_or_default()]);
                if let Some(password) = &self.password {
                    push(&[b":", password]);
                }
                if let Some(options) = &self.options {
                    push(&[b";", options]);
                }
                push(&[b"@"]);
            }
            match (&self.zone, host.strip_suffix(b"]")) {
                (Some(zone), Some(start)) => push(&[start, b"%25", zone, b"]"]),
                _ if encodes && !host.starts_with(b"[") => push(&[&encode_loose(&host, false)]),
                _ => push(&[&host]),
            }
            if let Some(port) = self.port_text(flag) {
                push(&[b":", &port]);
            }
        }
        let text = |part: &[u8], in_query| if encodes { encode_loose(part, in_query) } else { part.to_vec() };
        let path = text(self.path.as_deref().unwrap_or(b"/"), false);
        if !path.starts_with(b"/") {
            push(&[b"/"]);
        }
        push(&[&path]);
        if let Some(query) = self.query.as_ref().filter(|query| !query.is_empty() || tail_empty) {
            push(&[b"?", &text(query, true)]);
        }
        if let Some(fragment) = self.fragment.as_ref().filter(|fragment| !fragment.is_empty() || tail_empty) {
            push(&[b"#", &text(fragment, false)]);
        }
        Ok(url)
    }

    /// Sets a part of the URL to `text`; `None` removes the part.
    ///
    /// # Errors
    /// The text is not valid for this part. The URL is unchanged then.
    pub fn set(&mut self, part: UrlPart, text: Option<&[u8]>, flag: u32) -> Result<(), CURLUcode> {
        let Some(text) = text else {
            self.remove(part);
            return Ok(());
        };
        if text.len() > MAX_LEN {
            return Err(CURLUE_MALFORMED_INPUT);
        }
        let encoded = || if flag & flags::URLENCODE != 0 { encode(text, b"") } else { text.to_vec() };
        match part {
            UrlPart::Url => return self.set_url(text, flag),
            UrlPart::Scheme => {
                let is_name = text.first().is_some_and(u8::is_ascii_alphabetic)
                    && text.iter().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b))
                    && text.len() <= 40;
                if !is_name {
                    return Err(CURLUE_BAD_SCHEME);
                }
                let scheme = text.to_ascii_lowercase();
                if default_port(&scheme).is_none() && flag & flags::NON_SUPPORT_SCHEME == 0 {
                    return Err(CURLUE_UNSUPPORTED_SCHEME);
                }
                self.scheme = Some(scheme);
                self.is_guessed = false;
            }
            UrlPart::User => self.user = Some(encoded()),
            UrlPart::Password => self.password = Some(encoded()),
            UrlPart::Options => self.options = Some(encoded()),
            UrlPart::Host if text.is_empty() && flag & flags::NO_AUTHORITY != 0 => self.host = Some(Vec::new()),
            UrlPart::Host if text.is_empty() => return Err(CURLUE_BAD_HOSTNAME),
            UrlPart::Host => {
                let is_bare = text.contains(&b':') && !text.starts_with(b"[");
                let bracketed = if is_bare { [b"[", text, b"]"].concat() } else { text.to_vec() };
                set_host(self, &bracketed)?;
            }
            UrlPart::Port => match parse_port(text) {
                Ok(port) if !text.is_empty() => self.port = Some(port),
                _ => return Err(CURLUE_BAD_PORT_NUMBER),
            },
            UrlPart::Path => {
                let path = if flag & flags::URLENCODE != 0 { encode(text, b"/") } else { text.to_vec() };
                self.path = Some(if path.starts_with(b"/") { path } else { [b"/", path.as_slice()].concat() });
            }
            UrlPart::Query => self.set_query(text, flag),
            UrlPart::Fragment => self.fragment = Some(encoded()),
            UrlPart::Zone => self.zone = Some(text.to_vec()),
        }
        Ok(())
    }

    fn set_query(&mut self, text: &[u8], flag: u32) {
        let appends = flag & flags::APPENDQUERY != 0;
        let new = match (flag & flags::URLENCODE != 0, appends) {
            // The first `=` separates the name from the value.
            (true, true) => match text.iter().position(|b| *b == b'=') {
                Some(at) => [encode_form(&text[..at]), b"=".to_vec(), encode_form(&text[at + 1..])].concat(),
                None => encode_form(text),
            },
            (true, false) => encode_form(text),
            (false, _) => text.to_vec(),
        };
        self.query = Some(match self.query.take().filter(|old| appends && !old.is_empty()) {
            Some(old) if old.ends_with(b"&") => [old, new].concat(),
            Some(old) => [old, b"&".to_vec(), new].concat(),
            None => new,
        });
    }

    /// Replaces this URL by `text`. If `text` is a relative reference, it is resolved against this
    /// URL.
    fn set_url(&mut self, text: &[u8], flag: u32) -> Result<(), CURLUcode> {
        if text.is_empty() {
            self.fragment = None;
            return if self.is_base() { Ok(()) } else { Err(CURLUE_MALFORMED_INPUT) };
        }
        let guesses = flag & (flags::GUESS_SCHEME | flags::DEFAULT_SCHEME) != 0;
        let is_relative = split_scheme(text, guesses).is_none() && self.is_base();
        *self = if is_relative { self.resolve_reference(text, flag)? } else { parse(text, flag)? };
        Ok(())
    }

    /// Returns true if a relative reference can be resolved against this URL.
    fn is_base(&self) -> bool {
        let is_file = self.scheme.as_deref() == Some(b"file");
        self.scheme.is_some() && (self.host.is_some() || is_file)
    }

    /// Returns the URL to which a relative reference leads (RFC 3986 section 5.2.2). A reference
    /// often comes from a server, so bytes that a URL cannot have are encoded, as in libcurl.
    fn resolve_reference(&self, reference: &[u8], flag: u32) -> Result<Self, CURLUcode> {
        let reference = &encode_reference(reference);
        let mut joined = self.clone();
        if let Some(authority) = reference.strip_prefix(b"//") {
            let scheme = self.scheme.as_deref().unwrap_or(b"https");
            return parse(&[scheme, b"://", authority].concat(), flag);
        }
        let mut new = Self::default();
        parse_tail(&mut new, reference, flag | flags::PATH_AS_IS);
        joined.fragment = new.fragment;
        let base = self.path.as_deref().unwrap_or(b"/");
        match new.path {
            None if new.query.is_none() => {}
            None => joined.query = new.query,
            Some(path) => {
                let directory = base.iter().rposition(|b| *b == b'/').map_or(&b"/"[..], |at| &base[..=at]);
                let path = if path.starts_with(b"/") { path } else { [directory, path.as_slice()].concat() };
                joined.path = Some(if flag & flags::PATH_AS_IS != 0 { path } else { without_dots(&path) });
                joined.query = new.query;
            }
        }
        Ok(joined)
    }

    fn remove(&mut self, part: UrlPart) {
        match part {
            UrlPart::Url => *self = Self::default(),
            UrlPart::Scheme => self.scheme = None,
            UrlPart::User => self.user = None,
            UrlPart::Password => self.password = None,
            UrlPart::Options => self.options = None,
            UrlPart::Host => (self.host, self.zone) = (None, None),
            UrlPart::Port => self.port = None,
            UrlPart::Path => self.path = None,
            UrlPart::Query => self.query = None,
            UrlPart::Fragment => self.fragment = None,
            UrlPart::Zone => self.zone = None,
        }
    }
}

/// Percent-encodes control bytes, spaces and bytes outside ASCII in a relative reference. In the
/// query, a space becomes `+`. An authority stays as it is.
fn encode_reference(reference: &[u8]) -> Vec<u8> {
    let is_end = |b: &u8| b"/?#".contains(b);
    let start = match reference.strip_prefix(b"//") {
        Some(rest) => 2 + rest.iter().position(is_end).unwrap_or(rest.len()),
        None => 0,
    };
    let (authority, tail) = reference.split_at(start);
    let query = tail.iter().position(|b| b"?#".contains(b)).filter(|at| tail[*at] == b'?').unwrap_or(tail.len());
    let fragment = tail.iter().position(|b| *b == b'#').unwrap_or(tail.len());
    let (path, rest) = tail.split_at(query.min(fragment));
    let (query, fragment) = rest.split_at(fragment - path.len());
    [authority, &encode_loose(path, false), &encode_loose(query, true), &encode_loose(fragment, false)].concat()
}

/// Converts the host to its ASCII form, or from its ASCII form to Unicode (IDNA), if `flag`
/// requests one of these.
fn converted_host(host: &[u8], flag: u32) -> Result<Cow<'_, [u8]>, CURLUcode> {
    let text = std::str::from_utf8(host);
    if flag & flags::PUNYCODE != 0 && !host.is_ascii() {
        let ascii = text.ok().and_then(|text| idna::domain_to_ascii(text).ok());
        return ascii.map(|ascii| ascii.into_bytes().into()).ok_or(CURLUE_BAD_HOSTNAME);
    }
    if flag & flags::PUNY2IDN != 0 && host.windows(4).any(|start| start.eq_ignore_ascii_case(b"xn--")) {
        let (unicode, outcome) = idna::domain_to_unicode(text.unwrap_or_default());
        return outcome.map(|()| unicode.into_bytes().into()).map_err(|_| CURLUE_BAD_HOSTNAME);
    }
    Ok(host.into())
}

/// Percent-encodes all bytes except unreserved bytes and the bytes in `kept`.
fn encode(text: &[u8], kept: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for b in text {
        if b.is_ascii_alphanumeric() || b"-._~".contains(b) || kept.contains(b) {
            out.push(*b);
        } else {
            out.extend_from_slice(format!("%{b:02X}").as_bytes());
        }
    }
    out
}

/// Percent-encodes like [`encode`], but encodes a space as `+`.
fn encode_form(text: &[u8]) -> Vec<u8> {
    text.split(|b| *b == b' ').map(|word| encode(word, b"")).collect::<Vec<_>>().join(&b'+')
}

fn replace_byte(text: &[u8], from: u8, to: u8) -> Vec<u8> {
    text.iter().map(|b| if *b == from { to } else { *b }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::{CURLUE_BAD_FILE_URL, CURLUE_BAD_IPV6, CURLUE_BAD_SLASHES};

    fn url(text: &str, flag: u32) -> Result<UrlParts, CURLUcode> {
        let mut parts = UrlParts::default();
        parts.set(UrlPart::Url, Some(text.as_bytes()), flag).map(|()| parts)
    }

    fn whole(parts: &UrlParts, flag: u32) -> String {
        String::from_utf8(parts.get(UrlPart::Url, flag).unwrap()).unwrap()
    }

    #[test]
    fn complete_urls_are_normalised() {
        for (text, flag, expected) in [
            ("http://example.com", 0, "http://example.com/"),
            ("HTTP://Me:pw@Example.com:80/a/../b?q#f", 0, "http://Me:pw@Example.com:80/b?q#f"),
            ("https://h/a/./b/..", 0, "https://h/a/"),
            ("http://h/a/../b", flags::PATH_AS_IS, "http://h/a/../b"),
            ("http://[fe80::1%25eth0]:8080/", 0, "http://[fe80::1%25eth0]:8080/"),
            ("http://0x7f.1/x", 0, "http://127.0.0.1/x"),
            ("example.com/x", flags::GUESS_SCHEME, "http://example.com/x"),
            ("ftp.example.com", flags::GUESS_SCHEME, "ftp://ftp.example.com/"),
            ("example.com:90", flags::DEFAULT_SCHEME, "https://example.com:90/"),
            ("http://h/?", 0, "http://h/"),
            ("file:///etc/passwd", 0, "file:///etc/passwd"),
            ("http://h/a b?c d", flags::ALLOW_SPACE | flags::URLENCODE, "http://h/a%20b?c+d"),
        ] {
            assert_eq!(whole(&url(text, flag).unwrap(), 0), expected, "{text}");
        }
    }

    #[test]
    fn malformed_urls_return_matching_error_codes() {
        for (text, flag, code) in [
            ("example.com", 0, CURLUE_BAD_SCHEME),
            ("x-y://h/", 0, CURLUE_UNSUPPORTED_SCHEME),
            ("http:h/", 0, CURLUE_BAD_SLASHES),
            ("http://", 0, CURLUE_NO_HOST),
            ("http://h:70000/", 0, CURLUE_BAD_PORT_NUMBER),
            ("http://h:1a/", 0, CURLUE_BAD_PORT_NUMBER),
            ("http://[::1", 0, CURLUE_BAD_IPV6),
            ("http://a b/", 0, CURLUE_MALFORMED_INPUT),
            ("http://a\nb/", flags::ALLOW_SPACE, CURLUE_MALFORMED_INPUT),
            ("http://a{b/", 0, CURLUE_BAD_HOSTNAME),
            ("", 0, CURLUE_MALFORMED_INPUT),
        ] {
            assert_eq!(url(text, flag), Err(code), "{text}");
        }
    }

    #[test]
    fn relative_references_are_joined() {
        for (reference, expected) in [
            ("d", "http://h/b/d"),
            ("../d?x", "http://h/d?x"),
            ("/d", "http://h/d"),
            ("?x", "http://h/b/c?x"),
            ("#f", "http://h/b/c?q#f"),
            ("//other/e", "http://other/e"),
            ("https://x/", "https://x/"),
        ] {
            let mut parts = url("http://h/b/c?q#old", 0).unwrap();
            parts.set(UrlPart::Url, Some(reference.as_bytes()), 0).unwrap();
            assert_eq!(whole(&parts, 0), expected, "{reference}");
        }
    }

    #[test]
    fn bytes_of_references_are_encoded() {
        for (base, reference, expected) in [
            ("http://h/b", "g h", Ok("http://h/g%20h")),
            ("http://h/b", "?a b", Ok("http://h/b?a+b")),
            ("http://h/b", "ä?ä#ä b", Ok("http://h/%C3%A4?%C3%A4#%C3%A4%20b")),
            ("http://h/b", "#a?b c", Ok("http://h/b#a?b%20c")),
            ("http://h/b", "a\nb", Ok("http://h/a%0Ab")),
            ("http://h/b", "//x/y z", Ok("http://x/y%20z")),
            ("http://h/b", "//x y/", Err(CURLUE_MALFORMED_INPUT)),
            ("http://h/b", "http://x/a b", Err(CURLUE_MALFORMED_INPUT)),
            ("http://h/b?q#f", "", Ok("http://h/b?q")),
            ("file:///a/b", "g", Ok("file:///a/g")),
            ("file:///a/b", "?q", Ok("file:///a/b?q")),
            ("file:///a/b", "/z", Ok("file:///z")),
            ("file:///a/b", "//x", Err(CURLUE_BAD_FILE_URL)),
        ] {
            let mut parts = url(base, 0).unwrap();
            let result = parts.set(UrlPart::Url, Some(reference.as_bytes()), 0).map(|()| whole(&parts, 0));
            assert_eq!(result.as_deref().map_err(|code| *code), expected, "{base} {reference}");
        }
    }

    #[test]
    fn single_parts_are_encoded_on_request() {
        let parts = url("http://ü:ü@ä/ä b?ä c#ä d", flags::ALLOW_SPACE).unwrap();
        for (part, expected) in [
            (UrlPart::User, "%C3%BC"),
            (UrlPart::Host, "%C3%A4"),
            (UrlPart::Path, "/%C3%A4%20b"),
            (UrlPart::Query, "%C3%A4+c"),
            (UrlPart::Fragment, "%C3%A4%20d"),
        ] {
            assert_eq!(parts.get(part, flags::URLENCODE).unwrap(), expected.as_bytes());
        }
        assert_eq!(UrlParts::default().get(UrlPart::Scheme, flags::DEFAULT_SCHEME), Err(CURLUE_NO_SCHEME));
    }

    #[test]
    fn url_parts_are_set_encoded_and_decoded() {
        let mut parts = url("http://h/", 0).unwrap();
        parts.set(UrlPart::Query, Some(b"a=1 2"), flags::URLENCODE | flags::APPENDQUERY).unwrap();
        parts.set(UrlPart::Query, Some(b"b&=c"), flags::URLENCODE | flags::APPENDQUERY).unwrap();
        parts.set(UrlPart::Port, Some(b"80"), 0).unwrap();
        assert_eq!(whole(&parts, 0), "http://h:80/?a=1+2&b%26=c");
        assert_eq!(parts.get(UrlPart::Query, flags::URLDECODE).unwrap(), b"a=1 2&b&=c");
        assert_eq!(parts.get(UrlPart::Port, flags::NO_DEFAULT_PORT), Err(CURLUE_NO_PORT));
        parts.set(UrlPart::Host, Some("bücher.example".as_bytes()), 0).unwrap();
        assert_eq!(parts.get(UrlPart::Host, flags::PUNYCODE).unwrap(), b"xn--bcher-kva.example");
        parts.set(UrlPart::Path, Some(b"a%00b"), 0).unwrap();
        assert_eq!(parts.get(UrlPart::Path, flags::URLDECODE), Err(CURLUE_URLDECODE));
        for part in [UrlPart::Port, UrlPart::Query, UrlPart::Path] {
            parts.set(part, None, 0).unwrap();
        }
        assert_eq!(whole(&parts, flags::PUNYCODE), "http://xn--bcher-kva.example/");
    }
}
