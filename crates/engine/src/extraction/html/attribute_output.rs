//! The values of attributes as they are output.

use std::borrow::Cow;

use encoding_rs::Encoding;
use haul_policy::page_reference::PageBase;

use super::tag_parser::is_space;
use crate::extraction::query_encoding_by_charset::with_encoded_query;

/// Returns true if this attribute of this element contains a URL. Both names are in lower case.
fn is_url(element: &[u8], attribute: &str) -> bool {
    match attribute {
        "action" | "background" | "cite" | "formaction" | "href" | "longdesc" | "manifest" | "poster" | "src"
        | "xlink:href" => true,
        "data" => element.eq_ignore_ascii_case(b"object"),
        _ => false,
    }
}

/// Passes the values of an attribute to `on_value`: each URL of an attribute with a list of URLs
/// (such as `srcset`), otherwise one value. If there is a base URL, URLs are made absolute.
/// `encoding` is the encoding of the page, in which the queries of URLs are encoded.
pub(super) fn attribute_values<E>(
    element: &[u8],
    attribute: &str,
    value: &[u8],
    base: Option<&PageBase>,
    encoding: &'static Encoding,
    on_value: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut url = |text: &[u8]| {
        let text = trimmed(text);
        if text.is_empty() {
            return Ok(());
        }
        let resolve = |base: &PageBase| base.resolve(&with_encoded_query(&String::from_utf8_lossy(text), encoding));
        let resolved = base.and_then(resolve);
        on_value(resolved.as_ref().map_or(&*one_line(text), String::as_bytes))
    };
    match attribute {
        "srcset" | "imagesrcset" => srcset_urls(value).try_for_each(url),
        "ping" => value.split(|byte| is_space(*byte)).try_for_each(url),
        _ if is_url(element, attribute) => url(value),
        _ => {
            let text = trimmed(value);
            if text.is_empty() { Ok(()) } else { on_value(&one_line(text)) }
        }
    }
}

/// Returns the URLs in a `srcset` attribute (HTML, "Parse a srcset attribute"). A URL may contain
/// commas, but does not end with one.
fn srcset_urls(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = value;
    std::iter::from_fn(move || {
        let skipped = rest.iter().position(|byte| !is_space(*byte) && *byte != b',')?;
        rest = &rest[skipped..];
        let end = rest.iter().position(|byte| is_space(*byte)).unwrap_or(rest.len());
        let url = &rest[..end];
        rest = &rest[end..];
        if url.ends_with(b",") {
            let length = url.iter().rposition(|byte| *byte != b',').map_or(0, |last| last + 1);
            return Some(&url[..length]);
        }
        // The descriptors after the URL, up to a comma that is not in parentheses.
        let mut depth = 0_usize;
        let end = rest.iter().position(|byte| {
            match byte {
                b'(' => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            *byte == b',' && depth == 0
        });
        rest = end.map_or(&[], |end| &rest[end + 1..]);
        Some(url)
    })
}

/// Returns the text without the HTML white space at its ends.
pub(super) fn trimmed(text: &[u8]) -> &[u8] {
    let Some(start) = text.iter().position(|byte| !is_space(*byte)) else { return &[] };
    let end = text.iter().rposition(|byte| !is_space(*byte)).map_or(start, |last| last + 1);
    &text[start..end]
}

/// Returns the text with a space instead of each line break, so that it is one line of output.
fn one_line(text: &[u8]) -> Cow<'_, [u8]> {
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r' | 0x0c);
    if !text.iter().any(is_break) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.iter().map(|byte| if is_break(byte) { b' ' } else { *byte }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(element: &str, attribute: &str, value: &str) -> Vec<String> {
        let page = haul_policy::Target::parse("http://h/dir/page").unwrap();
        let mut found = Vec::new();
        let done: Result<(), ()> = attribute_values(
            element.as_bytes(),
            attribute,
            value.as_bytes(),
            Some(&PageBase::new(&page)),
            encoding_rs::UTF_8,
            &mut |value| {
                found.push(String::from_utf8(value.to_vec()).unwrap());
                Ok(())
            },
        );
        done.unwrap();
        found
    }

    #[test]
    fn url_attributes_are_resolved() {
        assert_eq!(values("a", "href", " x y "), ["http://h/dir/x%20y"]);
        assert_eq!(values("a", "href", "mailto:a@b"), ["mailto:a@b"]);
        assert_eq!(values("object", "data", "x"), ["http://h/dir/x"]);
        assert_eq!(values("x", "data", "x"), ["x"]);
        assert_eq!(values("meta", "content", " a\r\n b "), ["a   b"]);
        assert_eq!(values("a", "href", ""), [""; 0]);
        assert_eq!(values("a", "ping", "/a  /b"), ["http://h/a", "http://h/b"]);
    }

    #[test]
    fn srcset_value_gives_each_url() {
        let urls = |value| values("img", "srcset", value);
        assert_eq!(urls("a.png 1x, b.png 2x"), ["http://h/dir/a.png", "http://h/dir/b.png"]);
        assert_eq!(urls("a, b"), ["http://h/dir/a", "http://h/dir/b"]);
        assert_eq!(urls("a,b 1x,,c"), ["http://h/dir/a,b", "http://h/dir/c"]);
        assert_eq!(urls(" , data:,x (a,b) , d"), ["data:,x", "http://h/dir/d"]);
        assert_eq!(urls(""), [""; 0]);
    }
}
