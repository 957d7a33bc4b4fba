//! `-T`: the files to upload, and the URLs to which they are uploaded.
//!
//! ```
//! use haul_cli::plan::{append_query, name_upload};
//!
//! assert_eq!(name_upload("http://h/dir/", "a/b c".as_ref()), "http://h/dir/b%20c");
//! assert_eq!(name_upload("http://h/dir/?q", "f".as_ref()), "http://h/dir/?q");
//! assert_eq!(name_upload("h", "f".as_ref()), "h/f");
//! assert_eq!(name_upload("http://h/x", "f".as_ref()), "http://h/x");
//! assert_eq!(append_query("http://h/#top", "a=1"), "http://h/?a=1#top");
//! ```

use std::ffi::{OsStr, OsString};

use haul_policy::urlencode::percent_encode;

use crate::system::os_text::OsStrExt;

/// The value of one `-T`. The first one belongs to the first URL, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UploadArg {
    /// `-T ''`: no upload. The URL is fetched instead.
    Nothing,
    /// Standard input, whose length is unknown.
    Stdin {
        /// True for `.`: the response is read while the input, which may arrive slowly, is still
        /// being sent. False for `-`: the response is read after the input was sent.
        interleave: bool,
    },
    /// A file name. Without `-g`, a name in UTF-8 may be a glob, which stands for several files.
    /// Each of these files is uploaded to each URL that belongs to this `-T`. [`name_upload`]
    /// returns the URL of an upload.
    File(OsString),
}

/// Returns the URL to which a file is uploaded. This is `url` itself if the path of `url` ends in a
/// name, or if `url` has a query. Otherwise, the file's name is appended.
///
/// As in curl, the directories of `file` are removed, and its name is percent-encoded.
pub fn name_upload(url: &str, file: &OsStr) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (place, rest) = url.split_at(end);
    let start = place.find("://").map_or(0, |at| at + 3);
    // As in curl 8, a URL with a query gets no name.
    if rest.starts_with('?') {
        return url.to_owned();
    }
    let slash = match place[start..].rsplit_once('/') {
        Some((_, "")) => "",
        // Dot segments are no names: what is behind them is (RFC 3986 section 5.2.4).
        None | Some((_, "." | "..")) => "/",
        Some(_) => return url.to_owned(),
    };
    let name = file.as_bytes().rsplit(|byte| matches!(byte, b'/' | b'\\')).next().unwrap_or_default();
    format!("{place}{slash}{}{rest}", percent_encode(name))
}

/// Appends a text to the query of a URL, for `-G` and `--url-query`.
pub fn append_query(url: &str, query: &str) -> String {
    let end = url.find('#').unwrap_or(url.len());
    let (place, fragment) = url.split_at(end);
    let joint = match place.find('?') {
        None => "?",
        Some(at) if at + 1 == place.len() || place.ends_with('&') => "",
        Some(_) => "&",
    };
    format!("{place}{joint}{query}{fragment}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upload_url_without_name_gets_the_file_name() {
        for (url, expected) in [
            ("http://h", "http://h/f"),
            ("http://h/", "http://h/f"),
            ("http://h?a/b", "http://h?a/b"),
            ("http://h/d/.", "http://h/d/./f"),
            ("http://h/d/..#x", "http://h/d/../f#x"),
            ("http://h/d..", "http://h/d.."),
            ("http://h/d/#x/y", "http://h/d/f#x/y"),
            ("http://h/d", "http://h/d"),
            ("h/d/", "h/d/f"),
        ] {
            assert_eq!(name_upload(url, "../x/f".as_ref()), expected);
        }
        assert_eq!(name_upload("http://h/", "a?b#c\u{e4}".as_ref()), "http://h/a%3Fb%23c%C3%A4");
    }

    #[test]
    fn append_query_joins_with_question_mark_or_ampersand() {
        for (url, expected) in [
            ("http://h", "http://h?a=1"),
            ("http://h/?", "http://h/?a=1"),
            ("http://h/?x", "http://h/?x&a=1"),
            ("http://h/?x&", "http://h/?x&a=1"),
            ("http://h/#?", "http://h/?a=1#?"),
        ] {
            assert_eq!(append_query(url, "a=1"), expected);
        }
    }
}
