//! Resolves references in pages, such as the `href` of a link, to URLs.
//!
//! ```
//! use haul_policy::Target;
//! use haul_policy::page_reference::{PageBase, PageLink};
//!
//! let mut base = PageBase::new(&Target::parse("http://me:pw@h/a/b?q#top")?);
//! assert_eq!(base.resolve("c d#e").as_deref(), Some("http://h/a/c%20d#e"));
//! assert_eq!(base.resolve("mailto:me@h"), None);
//! assert_eq!(base.link("../x#e"), PageLink::Url("http://h/x".to_owned()));
//! assert_eq!(base.link("javascript:void(0)"), PageLink::NotFetchable);
//! base.set("//other/dir/");
//! assert_eq!(base.resolve("x").as_deref(), Some("http://other/dir/x"));
//! # Ok::<(), haul_policy::TargetError>(())
//! ```
//!
//! References are read as browsers read them: blanks at both ends and line breaks within are left
//! out, backslashes before the query are slashes, spaces become `%20`.

use std::borrow::Cow;

use crate::target::path::push_byte;
use crate::target::{Target, TargetError};

/// The URL against which the references of a page are resolved: the page's own, without userinfo
/// and fragment, or that of its `<base>`.
#[derive(Clone, Debug)]
pub struct PageBase {
    page: Target,
    base: Option<Target>,
}

/// The URL that a reference in a page gives for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageLink {
    /// The URL to fetch, absolute and without a fragment. It may still be invalid.
    Url(String),
    /// A reference with nothing to fetch: it is empty, names a place in the page itself, or has a scheme
    /// other than http and https.
    NotFetchable,
}

impl PageBase {
    /// Makes the base of a page with this final URL.
    pub fn new(page: &Target) -> PageBase {
        PageBase { page: bare(page), base: None }
    }

    /// Sets the base to the `href` of the page's `<base>`. A reference that gives no http or https
    /// URL is ignored.
    pub fn set(&mut self, href: &str) {
        if let Ok(target) = self.page.join(&cleaned(href)) {
            self.base = Some(bare(&target));
        }
    }

    /// Returns the absolute URL of a reference, with its fragment. Returns `None` if it is not an
    /// http or https URL.
    pub fn resolve(&self, reference: &str) -> Option<String> {
        let target = self.join(reference).ok()?;
        if target.userinfo_bytes().is_some() {
            // The page's own data, not to be changed.
            return Some(cleaned(reference).into_owned());
        }
        let mut url = target.to_url();
        if let Some(fragment) = target.fragment() {
            url.push('#');
            url.push_str(fragment);
        }
        Some(url)
    }

    /// Returns the URL to fetch for a reference.
    ///
    /// A reference with userinfo or without a valid URL is returned unchanged: the
    /// [template](crate::url_template) refuses it and says why.
    pub fn link(&self, reference: &str) -> PageLink {
        let text = cleaned(reference);
        let (address, fragment) = text.split_once('#').map_or((&*text, None), |(url, fragment)| (url, Some(fragment)));
        if address.is_empty() {
            return PageLink::NotFetchable;
        }
        match self.join(address) {
            Err(TargetError::UnsupportedScheme(_)) => PageLink::NotFetchable,
            Ok(target) if target.userinfo_bytes().is_none() => {
                let url = target.to_url();
                let is_here = fragment.is_some() && url == self.page.to_url();
                if is_here { PageLink::NotFetchable } else { PageLink::Url(url) }
            }
            Ok(_) | Err(_) => PageLink::Url(text.into_owned()),
        }
    }

    fn join(&self, reference: &str) -> Result<Target, TargetError> {
        self.base.as_ref().unwrap_or(&self.page).join(&cleaned(reference))
    }
}

/// Returns the target without userinfo and fragment, which references do not inherit here.
fn bare(target: &Target) -> Target {
    Target::parse(&target.to_url()).unwrap_or_else(|_| {
        let mut target = target.clone();
        target.drop_userinfo();
        target
    })
}

/// Returns a reference without what browsers leave out, with the other control characters and
/// spaces percent-encoded.
fn cleaned(reference: &str) -> Cow<'_, str> {
    let text = reference.trim_matches(|c: char| c <= ' ');
    let is_plain = |byte: u8| byte > b' ' && byte != 0x7f && byte != b'\\';
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 8);
    let is_web = scheme(text).is_none_or(|scheme| matches!(&*scheme.to_ascii_lowercase(), "http" | "https"));
    let mut is_address = is_web;
    for c in text.chars() {
        match c {
            '\t' | '\r' | '\n' => {}
            '\\' if is_address => clean.push('/'),
            c if c.is_ascii_control() || c == ' ' => push_byte(&mut clean, c as u8),
            c => {
                is_address &= !matches!(c, '?' | '#');
                clean.push(c);
            }
        }
    }
    Cow::Owned(clean)
}

/// Returns the scheme of a reference that has one.
fn scheme(text: &str) -> Option<&str> {
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
    fn references_resolve_as_in_browsers() {
        let base = base("https://me:pw@h.example:8443/a/b/c?d=1#e");
        let table = [
            ("g", "https://h.example:8443/a/b/g"),
            ("./g/../x", "https://h.example:8443/a/b/x"),
            ("../../../g", "https://h.example:8443/g"),
            ("/g?y#z", "https://h.example:8443/g?y#z"),
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
    fn links_lose_their_fragment() {
        let base = base("http://h/a?b");
        let url = |text: &str| PageLink::Url(text.to_owned());
        assert_eq!(base.link("x#y"), url("http://h/x"));
        assert_eq!(base.link("?c#"), url("http://h/a?c"));
        assert_eq!(base.link("http://h/a?b"), url("http://h/a?b"));
        for reference in ["", " ", "#", "#top", "?b#top", "http://h/a?b#x", "mailto:a#b", "data:text/html,#x"] {
            assert_eq!(base.link(reference), PageLink::NotFetchable, "{reference:?}");
        }
        assert_eq!(base.link("http://u:p@o/#x"), url("http://u:p@o/#x"));
        assert_eq!(base.link("http://[x/"), url("http://[x/"));
    }

    #[test]
    fn base_element_replaces_the_page_for_references() {
        let mut base = base("http://h/a/b");
        base.set("mailto:x");
        assert_eq!(base.resolve("c").as_deref(), Some("http://h/a/c"));
        base.set("/dir/sub/?x#y");
        assert_eq!(base.resolve("c").as_deref(), Some("http://h/dir/sub/c"));
        assert_eq!(base.resolve("#c").as_deref(), Some("http://h/dir/sub/?x#c"));
        assert_eq!(base.link("/a/b#top"), PageLink::NotFetchable);
    }
}
