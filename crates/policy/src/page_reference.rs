//! Resolves references in pages, such as the `href` of a link, to URLs.
//!
//! ```
//! use haul_policy::Target;
//! use haul_policy::page_reference::{PageBase, ResolvedPageLink};
//!
//! let mut base = PageBase::new(&Target::parse("http://me:pw@h/a/b?q#top")?);
//! assert_eq!(base.resolve("c d#e").as_deref(), Some("http://h/a/c%20d#e"));
//! assert_eq!(base.resolve("mailto:me@h"), None);
//! assert_eq!(base.link("../x#e"), ResolvedPageLink::Url("http://h/x".to_owned()));
//! assert_eq!(base.link("javascript:void(0)"), ResolvedPageLink::NotFetchable);
//! base.set("//other/dir/");
//! assert_eq!(base.resolve("x").as_deref(), Some("http://other/dir/x"));
//! # Ok::<(), haul_policy::TargetError>(())
//! ```
//!
//! References are read as browsers read them (WHATWG URL). Blanks at both ends, and line breaks,
//! are removed. Backslashes before the query become slashes. Spaces, quotation marks and other
//! bytes that a URL cannot have are percent-encoded. `http:/x` on an http page is a path.

use std::borrow::Cow;

use crate::target::path::push_byte;
use crate::target::{Host, Scheme, Target, TargetError};

/// The URL against which the references of a page are resolved: the page's own URL without userinfo
/// and fragment, or the URL in its `<base>`.
#[derive(Clone, Debug)]
pub struct PageBase {
    page: Target,
    base: Option<Target>,
}

/// The result of resolving a link in a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolvedPageLink {
    /// The URL to fetch, absolute and without a fragment. The URL may still be invalid.
    Url(String),
    /// The link has nothing to fetch: it is empty, points into the page itself, or has a scheme
    /// other than http and https.
    NotFetchable,
}

impl PageBase {
    /// Creates the base of a page. `page` is the page's URL after redirects.
    pub fn new(page: &Target) -> PageBase {
        PageBase { page: without_userinfo_and_fragment(page), base: None }
    }

    /// Sets the base to the `href` of the page's `<base>`. A `href` that gives no http or https URL
    /// is ignored.
    pub fn set(&mut self, href: &str) {
        if let Ok(target) = self.page.join(&normalize_like_browsers(href, self.page.scheme())) {
            self.base = Some(without_userinfo_and_fragment(&target));
        }
    }

    /// Returns the absolute URL of a reference, with its fragment. Returns `None` if it is not an
    /// http or https URL.
    pub fn resolve(&self, reference: &str) -> Option<String> {
        if let Some(url) = self.url_with_plain_path(reference) {
            return Some(url);
        }
        let target = self.join(reference).ok()?;
        if target.userinfo_bytes().is_some() {
            // The page's own data, not to be changed.
            return Some(normalize_like_browsers(reference, self.base().scheme()).into_owned());
        }
        let mut url = target.to_url();
        if let Some(fragment) = target.fragment() {
            url.push('#');
            url.push_str(fragment);
        }
        Some(url)
    }

    /// Returns the URL to fetch for a link. If the link has userinfo or gives no valid URL, returns
    /// the text of the link instead: when this text is later parsed as a
    /// [URL template](crate::url_template), it is refused with the reason.
    pub fn link(&self, reference: &str) -> ResolvedPageLink {
        if let Some(url) = self.url_with_plain_path(reference) {
            return ResolvedPageLink::Url(url);
        }
        let text = normalize_like_browsers(reference, self.base().scheme());
        let (address, fragment) = text.split_once('#').map_or((&*text, None), |(url, fragment)| (url, Some(fragment)));
        if address.is_empty() {
            return ResolvedPageLink::NotFetchable;
        }
        match self.join(address) {
            Err(TargetError::UnsupportedScheme(_)) => ResolvedPageLink::NotFetchable,
            Ok(target) if target.userinfo_bytes().is_none() => {
                let url = target.to_url();
                let is_here = fragment.is_some() && url == self.page.to_url();
                if is_here { ResolvedPageLink::NotFetchable } else { ResolvedPageLink::Url(url) }
            }
            Ok(_) | Err(_) => ResolvedPageLink::Url(text.into_owned()),
        }
    }

    /// Returns the URL of a reference that needs no parsing: a plain path ([`is_plain_path`]), or
    /// such a path after the origin of the base. Returns `None` for other references. Most links in
    /// pages are such references.
    fn url_with_plain_path(&self, reference: &str) -> Option<String> {
        let origin = self.base().origin();
        // A zone has more than one spelling.
        if matches!(origin.host(), Host::V6(_, Some(_))) {
            return None;
        }
        let path = reference.strip_prefix(origin.url_prefix()).unwrap_or(reference);
        is_plain_path(path).then(|| [origin.url_prefix(), path].concat())
    }

    fn join(&self, reference: &str) -> Result<Target, TargetError> {
        self.base().join(&normalize_like_browsers(reference, self.base().scheme()))
    }

    fn base(&self) -> &Target {
        self.base.as_ref().unwrap_or(&self.page)
    }
}

/// Returns the target without userinfo and fragment. References in a page do not inherit them.
fn without_userinfo_and_fragment(target: &Target) -> Target {
    Target::parse_near(&target.to_url(), Some(&target.origin()), target.scheme(), false).unwrap_or_else(|_| {
        let mut target = target.clone();
        target.drop_userinfo();
        target.drop_fragment();
        target
    })
}

/// Returns a reference in the syntax of RFC 3986 that leads to the same URL as in browsers (WHATWG
/// URL, "basic URL parser"). Removes surrounding blanks and all line breaks, changes backslashes
/// before the query to slashes, and percent-encodes like browsers. `scheme` is the scheme of the
/// base URL.
///
/// `http:/x` and `http:x` are relative references on an http page; on other pages, they name a
/// host. Two or more slashes after the scheme always introduce a host.
fn normalize_like_browsers(reference: &str, scheme: Scheme) -> Cow<'_, str> {
    let text = reference.trim_matches(|c: char| c <= ' ');
    if needs_no_normalization(text) {
        return Cow::Borrowed(text);
    }
    let text: String = text.chars().filter(|c| !matches!(c, '\t' | '\r' | '\n')).collect();
    let mut clean = String::with_capacity(text.len() + 8);
    let own_scheme = self::reference_scheme(&text);
    let rest = match own_scheme {
        None => &text[..],
        Some(own) if !is_http_scheme(own) => {
            push_escaped(&mut clean, &text, &[]);
            return Cow::Owned(clean);
        }
        Some(own) => &text[own.len() + 1..],
    };
    let is_slash = |c: char| matches!(c, '/' | '\\');
    let after_slashes = rest.trim_start_matches(is_slash);
    let slashes = rest.len() - after_slashes.len();
    let is_same_scheme = own_scheme.is_some_and(|own| own.eq_ignore_ascii_case(scheme.as_str()));
    let is_relative = slashes < 2 && (own_scheme.is_none() || is_same_scheme);
    let rest = if is_relative {
        if own_scheme.is_some() && self::reference_scheme(rest).is_some() {
            // What follows `http:` is not another scheme.
            clean.push_str("./");
        }
        rest
    } else {
        if let Some(own) = own_scheme {
            clean.push_str(own);
            clean.push(':');
        }
        clean.push_str("//");
        let end = after_slashes.find(|c| is_slash(c) || matches!(c, '?' | '#')).unwrap_or(after_slashes.len());
        push_escaped(&mut clean, &after_slashes[..end], &[]);
        &after_slashes[end..]
    };
    let (rest, fragment) = rest.split_once('#').map_or((rest, None), |(rest, fragment)| (rest, Some(fragment)));
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    push_escaped(&mut clean, &path.replace('\\', "/"), b"\"<>^`{}");
    if let Some(query) = query {
        clean.push('?');
        push_escaped(&mut clean, query, b"\"<>'");
    }
    if let Some(fragment) = fragment {
        clean.push('#');
        push_escaped(&mut clean, fragment, b"\"<>`");
    }
    Cow::Owned(clean)
}

/// The maximum length in bytes of a plain path ([`is_plain_path`]). A longer path is resolved like
/// any other reference.
const LONGEST_PLAIN_PATH: usize = 4096;

/// True for each byte that a plain path ([`is_plain_path`]) may contain: ASCII letters, digits, and
/// most of the punctuation that URLs contain unchanged, but not `#`, `:` and `%`.
const IS_PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        plain[byte as usize] = byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'/' | b'?' | b'&' | b'=' | b'+' | b',' | b';' | b'@');
        byte += 1;
    }
    plain
};

/// Returns true if `path` is a plain path: an absolute path, possibly with a query, that resolves
/// to itself. It contains only bytes in [`IS_PLAIN`], has no dot segments, and does not begin with
/// `//` (which would introduce a host).
fn is_plain_path(path: &str) -> bool {
    let bytes = path.as_bytes();
    let is_changed = |pair: &[u8]| pair == b"/.";
    matches!(bytes, [b'/'] | [b'/', b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z', ..])
        && bytes.len() <= LONGEST_PLAIN_PATH
        && bytes.iter().all(|byte| IS_PLAIN[usize::from(*byte)])
        && !bytes.windows(2).any(is_changed)
}

/// Returns true if browsers read the reference exactly as RFC 3986 does, so that it needs no
/// change.
fn needs_no_normalization(text: &str) -> bool {
    let is_plain = |byte: u8| {
        byte > b' ' && !matches!(byte, 0x7f | b'\\' | b'"' | b'<' | b'>' | b'^' | b'`' | b'{' | b'}' | b'\'')
    };
    let has_host = |rest: &str| rest.starts_with("//") && !rest.starts_with("///");
    text.bytes().all(is_plain)
        && match reference_scheme(text) {
            None => !text.starts_with("///"),
            Some(own) => !is_http_scheme(own) || has_host(&text[own.len() + 1..]),
        }
}

/// Appends `text`, in which control characters, spaces and the bytes in `others` are
/// percent-encoded.
fn push_escaped(out: &mut String, text: &str, others: &[u8]) {
    for c in text.chars() {
        match u8::try_from(c) {
            Ok(byte) if byte <= b' ' || byte == 0x7f || others.contains(&byte) => push_byte(out, byte),
            _ => out.push(c),
        }
    }
}

fn is_http_scheme(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// Returns the scheme of a reference; `None` if it has none.
fn reference_scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some(scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(url: &str) -> PageBase {
        PageBase::new(&Target::parse(url).unwrap())
    }

    #[test]
    fn page_references_resolve_as_in_browsers() {
        let base = base("https://me:pw@h.example:8443/a/b/c?d=1#e");
        let table = [
            ("g", "https://h.example:8443/a/b/g"),
            ("1x:y", "https://h.example:8443/a/b/1x:y"),
            ("a/b:c", "https://h.example:8443/a/b/a/b:c"),
            ("./g/../x", "https://h.example:8443/a/b/x"),
            ("../../../g", "https://h.example:8443/g"),
            ("/g?y", "https://h.example:8443/g?y"),
            ("/g?y#z", "https://h.example:8443/g?y#z"),
            ("g\x7f", "https://h.example:8443/a/b/g%7F"),
            ("?y", "https://h.example:8443/a/b/c?y"),
            ("#s", "https://h.example:8443/a/b/c?d=1#s"),
            ("//o/x", "https://o/x"),
            ("\\\\o\\x?a\\b", "https://o/x?a\\b"),
            ("HTTP://O/\u{e9}", "http://o/%C3%A9"),
            (" \t/a b\n c?d e ", "https://h.example:8443/a%20b%20c?d%20e"),
            ("http://u:p@o/", "http://u:p@o/"),
        ];
        for (reference, expected) in table {
            assert_eq!(base.resolve(reference).as_deref(), Some(expected), "{reference:?}");
        }
        for reference in ["mailto:a@b", "javascript:x()", "data:,x", "ftp://h/x", "tel:1", "http://", "http://[x/"] {
            assert_eq!(base.resolve(reference), None, "{reference:?}");
        }
    }

    #[test]
    fn plain_paths_resolve_like_other_references() {
        const PIECES: [&str; 15] =
            ["/", "a", "Z9", ".", "..", "?", "=", "@", ":", "%2e", "\\", "#", "\u{e9}", "http://h", "https://h:84"];
        let bases = ["http://h/x/y?z", "https://me:pw@h:84/x#y", "http://[::1]:8080/", "http://[fe80::1%25lo]/"];
        let mut plain = 0;
        for base in bases.map(base) {
            for number in 0..PIECES.len().pow(4) {
                let piece = |place: u32| PIECES[number / PIECES.len().pow(place) % PIECES.len()];
                let reference = [piece(0), piece(1), piece(2), piece(3)].concat();
                let Some(url) = base.url_with_plain_path(&reference) else { continue };
                let target = base.join(&reference).unwrap();
                assert_eq!((url, None), (target.to_url(), target.fragment()), "{reference:?}");
                assert_eq!(target.userinfo_bytes(), None, "{reference:?}");
                plain += 1;
            }
        }
        assert!(plain > 300, "{plain}");
    }

    #[test]
    fn page_references_find_their_host_as_in_browsers() {
        let table = [
            ("http:/images/x.png", "http://h/images/x.png", "http://images/x.png"),
            ("http:foo.html", "http://h/a/foo.html", "http://foo.html/"),
            ("HTTP:?q", "http://h/a/b?q", "http://?q"),
            ("http:x:y", "http://h/a/x:y", "http://x:y"),
            ("http:\\\\o\\x", "http://o/x", "http://o/x"),
            ("////o/x", "http://o/x", "https://o/x"),
            ("\\/\\o/x", "http://o/x", "https://o/x"),
            ("http://///o/x", "http://o/x", "http://o/x"),
            ("https:/o/x", "https://o/x", "https://h/o/x"),
            ("https:o", "https://o/", "https://h/a/o"),
        ];
        for (reference, on_http, on_https) in table {
            assert_eq!(base("http://h/a/b").resolve(reference).as_deref(), Some(on_http), "{reference:?}");
            let on_https = Some(on_https).filter(|url| Target::parse(url).is_ok());
            assert_eq!(base("https://h/a/b").resolve(reference).as_deref(), on_https, "{reference:?}");
        }
        assert_eq!(base("http://h/a/b").link("http:"), ResolvedPageLink::NotFetchable);
        assert_eq!(base("http://h/a/b").link("http:#x"), ResolvedPageLink::NotFetchable);
    }

    #[test]
    fn page_reference_bytes_are_encoded_as_in_browsers() {
        let base = base("http://h/");
        let table = [
            ("a\"b<c>d'e`f{g}h|i^j", "http://h/a%22b%3Cc%3Ed'e%60f%7Bg%7Dh|i%5Ej"),
            ("?a\"b<c>d'e`f{g}h|i^j", "http://h/?a%22b%3Cc%3Ed%27e`f{g}h|i^j"),
            ("x?a?\"#b\"#'`{", "http://h/x?a?%22#b%22#'%60{"),
            ("%22?%3c", "http://h/%22?%3c"),
            ("\"<>", "http://h/%22%3C%3E"),
            ("data:'\"<", "data:'\"<"),
        ];
        for (reference, expected) in table {
            let resolved = base.resolve(reference);
            let expected = Some(expected).filter(|url| url.starts_with("http"));
            assert_eq!(resolved.as_deref(), expected, "{reference:?}");
        }
    }

    #[test]
    fn page_links_lose_their_fragment() {
        let base = base("http://h/a?b");
        let url = |text: &str| ResolvedPageLink::Url(text.to_owned());
        assert_eq!(base.link("x#y"), url("http://h/x"));
        assert_eq!(base.link("?c#"), url("http://h/a?c"));
        assert_eq!(base.link("http://h/a?b"), url("http://h/a?b"));
        for reference in ["", " ", "#", "#top", "?b#top", "http://h/a?b#x", "mailto:a#b", "data:text/html,#x"] {
            assert_eq!(base.link(reference), ResolvedPageLink::NotFetchable, "{reference:?}");
        }
        assert_eq!(base.link("http://u:p@o/#x"), url("http://u:p@o/#x"));
        assert_eq!(base.link("http://[x/"), url("http://[x/"));
    }

    #[test]
    fn base_element_replaces_the_page_url() {
        let mut base = base("http://h/a/b");
        base.set("mailto:x");
        assert_eq!(base.resolve("c").as_deref(), Some("http://h/a/c"));
        base.set("/dir/sub/?x#y");
        assert_eq!(base.resolve("c").as_deref(), Some("http://h/dir/sub/c"));
        assert_eq!(base.resolve("#c").as_deref(), Some("http://h/dir/sub/?x#c"));
        assert_eq!(base.link("/a/b#top"), ResolvedPageLink::NotFetchable);
    }

    #[test]
    fn long_plain_path_gives_the_same_url() {
        for length in [LONGEST_PLAIN_PATH, LONGEST_PLAIN_PATH + 1] {
            let path = format!("/{}", "p".repeat(length - 1));
            assert_eq!(base("http://h/a").resolve(&path), Some(format!("http://h{path}")));
            assert_eq!(base("http://h/a").url_with_plain_path(&path).is_some(), length == LONGEST_PLAIN_PATH);
        }
    }

    #[test]
    fn page_link_without_fragment_leads_to_its_page() {
        let url = |text: &str| ResolvedPageLink::Url(text.to_owned());
        let page = base("http://h/a:b");
        assert_eq!([page.link("./a:b"), page.link("./a:b#x")], [url("http://h/a:b"), ResolvedPageLink::NotFetchable]);
    }
}
