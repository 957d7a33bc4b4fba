//! URLs with placeholders that are filled with untrusted text: text that was matched in a page
//! (`--then TEMPLATE`) or values of a table (`--csv-in`). The text, called a match, is data, never
//! syntax.
//!
//! ```
//! use haul_policy::url_template::UrlTemplate;
//!
//! let pages = UrlTemplate::parse("http://h/as/{}?from={}")?;
//! assert_eq!(pages.expand(b"AS1 &x")?, "http://h/as/AS1%20%26x?from=AS1%20%26x");
//! assert_eq!(pages.literal_origin().unwrap().to_string(), "http://h");
//! assert!(UrlTemplate::parse("http://h/a/{}")?.expand(b"../admin").is_err());
//!
//! let links = UrlTemplate::parse("{}")?;
//! assert_eq!(links.expand(b"https://o/x?a=1&amp;b=2")?, "https://o/x?a=1&amp;b=2");
//! assert!(links.expand(b"file:///etc/passwd").is_err());
//! assert!(links.literal_origin().is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The position of a `{}` decides which matches are allowed:
//!
//! | position of `{}` | allowed matches |
//! |---|---|
//! | the whole template | an absolute http or https URL without userinfo, used unchanged ([`page_reference`](crate::page_reference) resolves the references of a page) |
//! | scheme | letters |
//! | authority | letters, digits and `.-_:` |
//! | path, query, fragment | any bytes; all but unreserved characters and `/` are percent-encoded, `%` too |
//!
//! A match that makes or completes a `..` segment of the path is refused, since a match must not
//! leave its directory. Rejected: encoding the dots, since servers take `%2e%2e` for `..`, and
//! dropping the segment silently, which would fetch a page that nobody named. A single dot is
//! harmless and stays.

use core::fmt;

use crate::target::path::{DotSegmentKind, dot_segment_kind, push_byte};
use crate::target::{Origin, Scheme, Target, TargetError, UrlErrorKind};

/// A parsed URL template: a URL with placeholders `{}` that are filled with untrusted text, the
/// matches.
#[derive(Clone, Debug)]
pub struct UrlTemplate {
    /// The placeholders `{}`, each with the literal text before it and its position in the URL.
    placeholders: Vec<(String, PlaceholderPosition)>,
    tail: String,
    literal_origin: Option<Origin>,
    /// True if the template has no scheme, so that the default scheme was put in front of it.
    has_default_scheme: bool,
}

/// The part of the URL template in which a placeholder `{}` stands. This part decides which
/// untrusted text may replace the `{}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceholderPosition {
    Whole,
    Scheme,
    Authority,
    Path,
    Query,
}

/// The reason why a template was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateError {
    /// The template contains no `{}`, the placeholder for the extracted value.
    NoPlaceholder,
    /// The authority has a `{}` as well as a user or password. The untrusted text that replaces the
    /// `{}` would then choose the host that receives the user and password.
    Userinfo,
    /// The template gives an invalid URL with every extracted value, for the contained reason.
    Target(TargetError),
}

/// The reason why a template gives no URL when an extracted value replaces its `{}`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateExpandError {
    /// The extracted value makes or completes a `..` segment of the path.
    Climbs,
    /// The extracted value is for the scheme or authority, and is empty or has a byte that is not
    /// allowed there.
    NotPlain,
    /// The template is `{}` alone, and the extracted value is not an absolute http or https URL.
    NotHttp,
    /// The template is `{}` alone, and the extracted value is a URL with a user or password.
    Userinfo,
    /// The extracted value makes the URL invalid, for the contained reason.
    Target(TargetError),
}

const PLACEHOLDER: &str = "{}";

impl UrlTemplate {
    /// Parses a template. If it has no scheme, the scheme is http.
    pub fn parse(text: &str) -> Result<UrlTemplate, TemplateError> {
        if !text.contains(PLACEHOLDER) {
            return Err(TemplateError::NoPlaceholder);
        }
        if text == PLACEHOLDER {
            return Ok(UrlTemplate {
                placeholders: vec![(String::new(), PlaceholderPosition::Whole)],
                tail: String::new(),
                literal_origin: None,
                has_default_scheme: false,
            });
        }
        if text.starts_with('/') {
            // With a scheme before it, `/{}` would let the match be the host.
            return Err(TemplateError::Target(UrlErrorKind::NoHost.into()));
        }
        let has_default_scheme = scheme_colon(text).is_none();
        let text = with_default_scheme_if_missing(text);
        let bounds = UrlPartEnds::parse(&text);
        let authority = &text[bounds.scheme_end..bounds.authority_end];
        if authority.contains(PLACEHOLDER) && authority.contains('@') {
            return Err(TemplateError::Userinfo);
        }
        let mut placeholders = Vec::new();
        let mut from = 0;
        for (at, _) in text.match_indices(PLACEHOLDER) {
            placeholders.push((text[from..at].to_owned(), bounds.position_at(at)));
            from = at + PLACEHOLDER.len();
        }
        let tail = text[from..].to_owned();
        let mut template = UrlTemplate { placeholders, tail, literal_origin: None, has_default_scheme };
        template.validate()?;
        Ok(template)
    }

    /// Returns the template with this default scheme instead of http. Has no effect if the template
    /// names a scheme.
    #[must_use]
    pub fn with_default_scheme(mut self, scheme: Scheme) -> UrlTemplate {
        if self.has_default_scheme
            && let Some((first, _)) = self.placeholders.first_mut()
            && let Some(rest) = first.strip_prefix("http://")
        {
            *first = format!("{}://{rest}", scheme.as_str());
            // A template that is valid with one scheme is so with another.
            let _ = self.validate();
        }
        self
    }

    /// Checks that the text outside of the placeholders is valid. Sets `literal_origin` if the
    /// origin contains no placeholder.
    fn validate(&mut self) -> Result<(), TemplateError> {
        if self.has_placeholder_in(PlaceholderPosition::Scheme) {
            return Ok(());
        }
        // A digit is allowed in a host, a port and a path.
        let text = self.fill_placeholders(&|_| b"1").map_err(|_| TemplateError::NoPlaceholder)?;
        let target = Target::parse(&text).map_err(TemplateError::Target)?;
        self.literal_origin = (!self.has_placeholder_in(PlaceholderPosition::Authority)).then(|| target.origin());
        Ok(())
    }

    /// Returns the URL that results when `matched` replaces each `{}`.
    pub fn expand(&self, matched: &[u8]) -> Result<String, TemplateExpandError> {
        self.expand_each(&|_| matched)
    }

    /// Returns the URL that results when each `{}` is replaced by its own text. `value` returns the
    /// text for a placeholder by its index from 0.
    pub fn expand_each<'v>(&self, value: &dyn Fn(usize) -> &'v [u8]) -> Result<String, TemplateExpandError> {
        if self.is_placeholder_only() {
            return expand_whole_url(value(0));
        }
        let text = self.fill_placeholders(value)?;
        if self.literal_origin.is_none() {
            Target::parse(&text).map_err(TemplateExpandError::Target)?;
        }
        Ok(text)
    }

    /// Returns the origin of the template if no `{}` is in its scheme, host or port; otherwise
    /// `None`. Credentials may be sent to such an origin, since the user named it.
    pub fn literal_origin(&self) -> Option<Origin> {
        self.literal_origin.clone()
    }

    /// Returns true if the template is `{}` alone, so that a match is itself the URL.
    pub fn is_placeholder_only(&self) -> bool {
        self.has_placeholder_in(PlaceholderPosition::Whole)
    }

    fn has_placeholder_in(&self, spot: PlaceholderPosition) -> bool {
        self.placeholders.iter().any(|hole| hole.1 == spot)
    }

    fn fill_placeholders<'v>(&self, value: &dyn Fn(usize) -> &'v [u8]) -> Result<String, TemplateExpandError> {
        let literal: usize = self.placeholders.iter().map(|(text, _)| text.len()).sum();
        let values: usize = (0..self.placeholders.len()).map(|number| value(number).len()).sum();
        let mut out = String::with_capacity(literal + self.tail.len() + values);
        let mut in_path = Vec::new();
        for (number, (text, spot)) in self.placeholders.iter().enumerate() {
            let matched = value(number);
            out.push_str(text);
            let start = out.len();
            match spot {
                PlaceholderPosition::Scheme => push_plain(&mut out, matched, |b| b.is_ascii_alphabetic())?,
                PlaceholderPosition::Authority => {
                    push_plain(&mut out, matched, |b| b.is_ascii_alphanumeric() || b".-_:".contains(&b))?
                }
                PlaceholderPosition::Path => {
                    push_data(&mut out, matched);
                    in_path.push(start..out.len());
                }
                PlaceholderPosition::Query | PlaceholderPosition::Whole => push_data(&mut out, matched),
            }
        }
        out.push_str(&self.tail);
        for range in in_path {
            let start = out[..range.start].rfind('/').map_or(0, |slash| slash + 1);
            let end = out[range.end..].find(['/', '?', '#']).map_or(out.len(), |more| range.end + more);
            if out[start..end].split('/').any(|segment| dot_segment_kind(segment) == DotSegmentKind::Two) {
                return Err(TemplateExpandError::Climbs);
            }
        }
        Ok(out)
    }
}

/// The offsets at which the parts of a URL template end, in bytes.
struct UrlPartEnds {
    scheme_end: usize,
    authority_end: usize,
    path_end: usize,
}

impl UrlPartEnds {
    fn parse(text: &str) -> UrlPartEnds {
        let end = |from: usize, delimiters: &[char]| text[from..].find(delimiters).map_or(text.len(), |at| from + at);
        let colon = scheme_colon(text).unwrap_or(0);
        let host = text.len() - text[colon..].trim_start_matches([':', '/']).len();
        let authority_end = end(host, &['/', '?', '#']);
        UrlPartEnds { scheme_end: colon, authority_end, path_end: end(authority_end, &['?', '#']) }
    }

    fn position_at(&self, at: usize) -> PlaceholderPosition {
        if at < self.scheme_end {
            PlaceholderPosition::Scheme
        } else if at < self.authority_end {
            PlaceholderPosition::Authority
        } else if at < self.path_end {
            PlaceholderPosition::Path
        } else {
            PlaceholderPosition::Query
        }
    }
}

/// Returns the offset of the colon after the scheme; `None` if the template has no scheme. The
/// scheme may contain a `{}`.
fn scheme_colon(text: &str) -> Option<usize> {
    let colon = text.find(':').filter(|at| text[at + 1..].starts_with('/'))?;
    let scheme = text[..colon].replace(PLACEHOLDER, "");
    scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)).then_some(colon)
}

/// Returns the template with the default scheme `http` if it has no scheme. Without a scheme in the
/// template, a match such as `http:` for `{}/path` would become the scheme.
fn with_default_scheme_if_missing(text: &str) -> String {
    match scheme_colon(text) {
        Some(_) => text.to_owned(),
        None => format!("http://{text}"),
    }
}

fn expand_whole_url(matched: &[u8]) -> Result<String, TemplateExpandError> {
    let text = core::str::from_utf8(matched).map_err(|_| TemplateExpandError::NotHttp)?;
    let scheme = text.split_once("://").map(|(scheme, _)| scheme).ok_or(TemplateExpandError::NotHttp)?;
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err(TemplateExpandError::NotHttp);
    }
    let target = Target::parse(text).map_err(TemplateExpandError::Target)?;
    if target.userinfo_bytes().is_some() {
        return Err(TemplateExpandError::Userinfo);
    }
    Ok(text.to_owned())
}

fn push_plain(out: &mut String, matched: &[u8], plain: impl Fn(u8) -> bool) -> Result<(), TemplateExpandError> {
    if matched.is_empty() || !matched.iter().all(|b| plain(*b)) {
        return Err(TemplateExpandError::NotPlain);
    }
    out.extend(matched.iter().map(|b| char::from(*b)));
    Ok(())
}

/// Appends a match. All bytes are percent-encoded except unreserved characters (RFC 3986 §2.3) and
/// the slash.
fn push_data(out: &mut String, matched: &[u8]) {
    for b in matched {
        if b.is_ascii_alphanumeric() || b"-._~/".contains(b) {
            out.push(char::from(*b));
        } else {
            push_byte(out, *b);
        }
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::NoPlaceholder => f.write_str("the template has no {}"),
            TemplateError::Userinfo => f.write_str("the template gives a user or password to a host that {} names"),
            TemplateError::Target(error) => write!(f, "the template is a {error}"),
        }
    }
}

impl fmt::Display for TemplateExpandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateExpandError::Climbs => f.write_str("the match climbs out of the template's path with .."),
            TemplateExpandError::NotPlain => f.write_str("in the host, only letters, digits and .-_: are allowed"),
            TemplateExpandError::NotHttp => f.write_str("the match is not an absolute http or https URL"),
            TemplateExpandError::Userinfo => f.write_str("the match is a URL with a user or password"),
            TemplateExpandError::Target(error) => write!(f, "the match makes a {error}"),
        }
    }
}

impl core::error::Error for TemplateError {}
impl core::error::Error for TemplateExpandError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(text: &str) -> UrlTemplate {
        UrlTemplate::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn each_template_placeholder_has_its_own_value() {
        let template = t("https://{}.h/{}/x?q={}");
        let values: [&[u8]; 3] = [b"eu", b"a b", b"1&2"];
        assert_eq!(template.expand_each(&|at| values[at]).unwrap(), "https://eu.h/a%20b/x?q=1%262");
        let climbing: [&[u8]; 2] = [b".", b"."];
        assert_eq!(t("http://h/{}{}/x").expand_each(&|at| climbing[at]), Err(TemplateExpandError::Climbs));
    }

    #[test]
    fn template_match_is_data_never_syntax() {
        let table: &[(&str, &[u8], &str)] = &[
            ("http://h/{}", b"a/b-._~", "http://h/a/b-._~"),
            ("http://h/{}", b"?#@:\\%&=+ ;", "http://h/%3F%23%40%3A%5C%25%26%3D%2B%20%3B"),
            ("http://h/{}", b"\r\nX: y\0\xff\xc3\xa9", "http://h/%0D%0AX%3A%20y%00%FF%C3%A9"),
            ("http://h/{}", b"/evil.example/x", "http://h//evil.example/x"),
            ("http://h/{}", b"", "http://h/"),
            ("http://h/{}", b"{}", "http://h/%7B%7D"),
            ("http://h/{}/{}?{}#{}", b"a&b", "http://h/a%26b/a%26b?a%26b#a%26b"),
            ("http://h/?q={}", b"../..", "http://h/?q=../.."),
            ("http://h/x?{}", b"#/", "http://h/x?%23/"),
            ("h/{}", b"x", "http://h/x"),
            ("http://h/a/{}", b"./b", "http://h/a/./b"),
            ("http://h/{}", b"%2e%2e/x", "http://h/%252e%252e/x"),
            ("http://h/../a/{}", b"b", "http://h/../a/b"),
            ("http://h:80{{}}", b"", ""),
        ];
        for (template, matched, expected) in table {
            let made = UrlTemplate::parse(template).ok().and_then(|t| t.expand(matched).ok()).unwrap_or_default();
            assert_eq!(made, *expected, "{template} {:?}", String::from_utf8_lossy(matched));
        }
    }

    #[test]
    fn template_match_cannot_climb_directories() {
        let table: &[(&str, &[u8])] = &[
            ("http://h/a/{}", b".."),
            ("http://h/a/{}", b"../x"),
            ("http://h/a/{}", b"x/../../y"),
            ("http://h/a/{}", b"x/.."),
            ("http://h/a/.{}", b"."),
            ("http://h/a/{}.", b"."),
            ("http://h/a/{}{}", b"."),
            ("http://h/a/.%2{}", b"e"),
            ("http://h/a/.%2{}", b"E/x"),
            ("http://h/a{}x", b"/../"),
            ("http://h/a/{}/x", b".."),
            ("http://h/a/{}?q", b".."),
            ("http://h/a/{}#q", b".."),
        ];
        for (template, matched) in table {
            assert_eq!(t(template).expand(matched), Err(TemplateExpandError::Climbs), "{template}");
        }
        assert!(t("http://h/a/{}").expand(b"...").is_ok());
        assert!(t("http://h/a/{}").expand(b"..a/b..").is_ok());
    }

    #[test]
    fn template_of_one_placeholder_accepts_http_urls_only() {
        let t = t("{}");
        for good in ["http://h/x?y&amp;z#f", "HTTPS://H:1/", "http://h/../\u{e9}"] {
            assert_eq!(t.expand(good.as_bytes()).as_deref(), Ok(good));
        }
        for bad in
            ["", "h/x", "/x", "//h/x", "ftp://h/", "file:///x", "javascript:alert(1)//://", "http:/h/x", "x http://h/"]
        {
            assert_eq!(t.expand(bad.as_bytes()), Err(TemplateExpandError::NotHttp), "{bad}");
        }
        for bad in ["http://h/a b", "http://", "http://a@b@c/", "http://h/\r\nX:y", "http://h\\@o/"] {
            assert!(matches!(t.expand(bad.as_bytes()), Err(TemplateExpandError::Target(_))), "{bad:?}");
        }
        assert_eq!(t.expand(b"http://u:p@h/"), Err(TemplateExpandError::Userinfo));
        assert_eq!(t.expand(b"http://\xff/"), Err(TemplateExpandError::NotHttp));
    }

    #[test]
    fn template_match_in_a_host_is_restricted() {
        let host = t("https://{}.example:{}/{}");
        assert!(host.literal_origin().is_none());
        assert_eq!(t("https://{}/x").expand(b"h:8443").as_deref(), Ok("https://h:8443/x"));
        assert_eq!(t("https://h:{}/x").expand(b"81").as_deref(), Ok("https://h:81/x"));
        assert_eq!(t("{}://h/").expand(b"https").as_deref(), Ok("https://h/"));
        assert_eq!(t("{}/x").expand(b"http:").as_deref(), Ok("http://http:/x"));
        for bad in ["", "a/b", "a@b", "a b", "a%2f", "a?", "a#", "a\\b", "[::1]", "\u{e9}", "a\r\n", "a;b"] {
            assert_eq!(t("https://{}/x").expand(bad.as_bytes()), Err(TemplateExpandError::NotPlain), "{bad:?}");
        }
        for bad in ["a:b", "a:1:2", "..", "a..b", ":80", "a:65536"] {
            assert!(matches!(t("https://{}/x").expand(bad.as_bytes()), Err(TemplateExpandError::Target(_))), "{bad:?}");
        }
        for bad in ["ftp", "javascript"] {
            assert!(matches!(t("{}://h/").expand(bad.as_bytes()), Err(TemplateExpandError::Target(_))), "{bad:?}");
        }
        assert_eq!(t("{}://h/").expand(b"evil:80"), Err(TemplateExpandError::NotPlain));
    }

    #[test]
    fn literal_origin_of_a_template_is_returned() {
        let origin = |text: &str| t(text).literal_origin().map(|o| o.to_string());
        assert_eq!(origin("HTTP://u:p@H:80/{}").as_deref(), Some("http://h"));
        assert_eq!(origin("https://h?{}").as_deref(), Some("https://h"));
        assert_eq!(origin("h:8080#{}").as_deref(), Some("http://h:8080"));
        for text in ["{}", "{}/", "http://{}/", "http://h{}", "http://h:{}", "http{}://h/", "{}.example/{}"] {
            assert_eq!(origin(text), None, "{text}");
        }
    }

    #[test]
    fn default_scheme_never_replaces_a_template_scheme() {
        let https = |text: &str| t(text).with_default_scheme(Scheme::Https);
        assert_eq!(https("h/{}").expand(b"x").as_deref(), Ok("https://h/x"));
        assert_eq!(https("h/{}").literal_origin().map(|origin| origin.to_string()).as_deref(), Some("https://h"));
        assert_eq!(https("{}.h/").expand(b"x").as_deref(), Ok("https://x.h/"));
        assert_eq!(https("http://h/{}").expand(b"x").as_deref(), Ok("http://h/x"));
        assert_eq!(https("{}").expand(b"http://h/").as_deref(), Ok("http://h/"));
    }

    #[test]
    fn malformed_url_templates_are_refused() {
        assert_eq!(UrlTemplate::parse("http://h/").unwrap_err(), TemplateError::NoPlaceholder);
        for text in ["http://u:p@{}/", "http://{}@h/", "http://u:{}@h/", "u:p@{}"] {
            assert_eq!(UrlTemplate::parse(text).unwrap_err(), TemplateError::Userinfo, "{text}");
        }
        for text in ["ftp://h/{}", "http://h/a b{}", "http://[{}]/", "/{}", "//{}/x", "http://h:x/{}"] {
            let made = UrlTemplate::parse(text);
            assert!(matches!(made, Err(TemplateError::Target(_))), "{text}: {made:?}");
        }
    }

    #[test]
    fn match_beside_literal_dots_does_not_climb() {
        let template = UrlTemplate::parse("http://h/a/{}./b").unwrap();
        assert_eq!(template.fill_placeholders(&|_| b"."), Err(TemplateExpandError::Climbs));
        assert_eq!(template.fill_placeholders(&|_| b"x").as_deref(), Ok("http://h/a/x./b"));
    }

    #[test]
    fn expansion_errors_have_texts() {
        let malformed = Target::parse("http://a b/").unwrap_err();
        for (error, text) in [
            (TemplateExpandError::Climbs, "climbs out"),
            (TemplateExpandError::NotPlain, "only letters, digits"),
            (TemplateExpandError::NotHttp, "not an absolute http or https URL"),
            (TemplateExpandError::Userinfo, "user or password"),
            (TemplateExpandError::Target(malformed), "the match makes a "),
        ] {
            assert!(error.to_string().contains(text), "{error}");
        }
        let refused = UrlTemplate::parse("http://h/").unwrap_err();
        assert_eq!(refused.to_string(), "the template has no {}");
    }
}
