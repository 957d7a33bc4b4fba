//! The sources of a URL group's URLs (arguments and files of URLs), in a compact form.
//!
//! A config file may name millions of URLs. They are stored in one buffer, with a table of their
//! end offsets. This costs 8 bytes per URL in addition to its text. A `String` for each would cost
//! 24 bytes and an allocation.
//!
//! ```
//! use haul_cli::url_sources::{UrlSources, UrlSource};
//!
//! let mut urls = UrlSources::default();
//! urls.push_url("http://example.com/[1-3]");
//! urls.push_input_file("-");
//! let all: Vec<_> = urls.iter().collect();
//! assert_eq!(all[0], UrlSource::Argument("http://example.com/[1-3]"));
//! assert_eq!(all[1], UrlSource::InputFile("-"));
//! ```

use std::borrow::Cow;

use haul_policy::urlencode::percent_encode;

/// The bit in an entry of `UrlSources::ends` that marks the entry as the name of a file of URLs.
/// The bits that are not flags are the offset in `UrlSources::text` at which the entry's text ends.
const FILE_BIT: u64 = 1 << 63;

/// The bit in an entry of `UrlSources::ends` that marks the entry as a URL that the parser has read
/// from a file (`--url @FILE`). Such a URL is not a glob, and its output file is named after its
/// path unless `-o` is given.
const LISTED_BIT: u64 = 1 << 62;

const SOURCE_BITS: u64 = FILE_BIT | LISTED_BIT;

/// Returns the URL in a line of a file of URLs, without surrounding blanks. Returns `None` if the
/// line is empty or a comment.
pub fn url_in_line(line: &[u8]) -> Option<&[u8]> {
    Some(line.trim_ascii()).filter(|url| !url.is_empty() && !url.starts_with(b"#"))
}

/// Returns a line of a list without the UTF-8 byte order mark with which some editors begin a file.
/// `number` is the number of the line, from 1; only the first line may begin with a mark.
pub fn without_byte_order_mark(line: &[u8], number: u64) -> &[u8] {
    match line.strip_prefix(b"\xef\xbb\xbf") {
        Some(text) if number == 1 => text,
        _ => line,
    }
}

/// Converts a URL to text. Bytes that are not UTF-8 are percent-encoded.
pub fn to_text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return text.into();
    }
    let mut text = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.push_str(&percent_encode(chunk.invalid()));
    }
    text.into()
}

/// A source of URLs: an argument, or a file of URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlSource<'a> {
    /// A URL as the user wrote it, which may be a glob that stands for several URLs.
    Argument(&'a str),
    /// The name of a file with one URL per line; `-` is standard input.
    InputFile(&'a str),
}

/// The sources of the URLs of a URL group (`--next` separates groups), in the order of the
/// command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UrlSources {
    text: String,
    ends: Vec<u64>,
}

impl UrlSources {
    /// Adds a URL of the command line, which may be a glob.
    pub fn push_url(&mut self, url: &str) {
        self.text.push_str(url);
        self.ends.push(self.text.len() as u64);
    }

    /// Adds a URL that the parser has read from a file (`--url @FILE`), and that is not a glob.
    pub fn push_listed(&mut self, url: &str) {
        self.text.push_str(url);
        self.ends.push(self.text.len() as u64 | LISTED_BIT);
    }

    /// Returns true if the source at this index is a URL that was read from a file (`--url @FILE`).
    pub fn is_listed(&self, index: usize) -> bool {
        self.ends.get(index).is_some_and(|end| end & LISTED_BIT != 0)
    }

    /// Adds the name of a file of URLs; `-` is standard input.
    pub fn push_input_file(&mut self, path: &str) {
        self.text.push_str(path);
        self.ends.push(self.text.len() as u64 | FILE_BIT);
    }

    /// Returns the number of sources of URLs. A glob or a file of URLs counts as one source.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are no sources of URLs.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the source of URLs at this index; `None` beyond the last one.
    pub fn get(&self, index: usize) -> Option<UrlSource<'_>> {
        let end = *self.ends.get(index)?;
        let start = match index {
            0 => 0,
            _ => self.ends[index - 1] & !SOURCE_BITS,
        };
        let text = &self.text[start as usize..(end & !SOURCE_BITS) as usize];
        Some(if end & FILE_BIT == 0 { UrlSource::Argument(text) } else { UrlSource::InputFile(text) })
    }

    /// Returns all sources of URLs in order.
    pub fn iter(&self) -> impl Iterator<Item = UrlSource<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_list_keeps_order_and_kind() {
        let mut urls = UrlSources::default();
        assert!(urls.is_empty());
        urls.push_input_file("list");
        urls.push_url("http://ä.example/");
        urls.push_url("");
        urls.push_input_file("-");
        urls.push_listed("http://h/");
        let all: Vec<_> = urls.iter().collect();
        assert_eq!(
            all,
            [
                UrlSource::InputFile("list"),
                UrlSource::Argument("http://ä.example/"),
                UrlSource::Argument(""),
                UrlSource::InputFile("-"),
                UrlSource::Argument("http://h/"),
            ],
        );
        assert_eq!(urls.get(5), None);
        assert!(urls.is_listed(4) && !urls.is_listed(1) && !urls.is_listed(3) && !urls.is_listed(5));
    }
}
