//! Local file names for `-O` and `-J`. A name never leaves the intended directory.
//!
//! ```
//! use haul_policy::Target;
//! use haul_policy::filename::{CURL_FALLBACK_NAME, from_disposition, from_target};
//!
//! let name = |url: &str| from_target(&Target::parse(url).unwrap()).unwrap_or(CURL_FALLBACK_NAME.to_owned());
//! assert_eq!(name("http://h/dir/page.html?q#f"), "page.html");
//! assert_eq!(name("http://h/"), "curl_response");
//!
//! let header = b"attachment; filename=\"x.txt\"; filename*=UTF-8''%e2%82%ac.txt";
//! assert_eq!(from_disposition(header).as_deref(), Some("\u{20ac}.txt"));
//! assert_eq!(from_disposition(b"attachment; filename=\"../../.bashrc\"").as_deref(), Some("_bashrc"));
//! ```
//!
//! Left out: creating the file (O_EXCL, never through a symlink), which the engine does.

use core::fmt;
use std::borrow::Cow;

use crate::output_name_placeholders::replace_reserved_characters;
use crate::target::Target;
use crate::target::path::hex_value;
use crate::urlencode::percent_encode;

/// The file name that curl 8 uses for `-O` if the URL contains no file name. Callers may use it in
/// place of a [`NoFileName`] error.
pub const CURL_FALLBACK_NAME: &str = "curl_response";

/// The largest length in bytes of a file name from a Content-Disposition. Most file systems allow
/// 255 bytes. The difference leaves room for a suffix.
pub const MAX_NAME: usize = 240;

/// The error for a URL that contains no file name. Versions of curl that do not use the name
/// [`CURL_FALLBACK_NAME`] for such a URL exit with 23.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoFileName;

impl NoFileName {
    /// Returns the exit code that curl has for this error: 23.
    pub fn exit_code(&self) -> u8 {
        23
    }
}

impl fmt::Display for NoFileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Remote file name has no length")
    }
}

impl core::error::Error for NoFileName {}

/// Returns the last segment of the URL's path, as curl does: not decoded, without the query.
/// `/dir/` gives `dir`.
///
/// A leading dot becomes `_`, because a list of URLs from somebody else must not write `.bashrc`.
/// The name is not shortened, since two shortened names could become equal; the file system limits
/// its length.
pub fn from_target(target: &Target) -> Result<String, NoFileName> {
    from_path_like_curl(target).map(|name| name.strip_prefix('.').map(|rest| format!("_{rest}")).unwrap_or(name))
}

/// Returns the last segment of the URL's path, percent-decoded and made safe for any system by
/// [`safe_component`](crate::output_name_placeholders::safe_component). Only colons are kept,
/// because the names of packages contain them. `/dir/` gives `dir`.
///
/// ```
/// use haul_policy::Target;
/// use haul_policy::filename::from_decoded_path;
///
/// let name = |url: &str| from_decoded_path(&Target::parse(url).unwrap());
/// assert_eq!(name("http://h/a%20b.txt").as_deref(), Ok("a b.txt"));
/// assert_eq!(name("http://h/..%2f..%2fetc%2fpasswd").as_deref(), Ok("_._.._etc_passwd"));
/// assert!(name("http://h/").is_err());
/// ```
pub fn from_decoded_path(target: &Target) -> Result<String, NoFileName> {
    from_path_like_curl(target)
        .map(|name| replace_reserved_characters(&crate::urlencode::percent_decode(name.as_bytes()), &['/', '\\']))
}

/// Returns the last segment of the URL's path like [`from_target`], but keeps a leading dot. This
/// is for command lines written for curl: `curl -O https://h/.vimrc`.
pub fn from_path_like_curl(target: &Target) -> Result<String, NoFileName> {
    // Deceptive characters are percent-encoded in a target, and no separator is left.
    let last = target.path().rsplit(['/', '\\']).find(|segment| !segment.is_empty());
    last.filter(|segment| !matches!(*segment, "." | "..")).map(str::to_owned).ok_or(NoFileName)
}

/// Returns the last segment of the URL's path like [`from_path_like_curl`], but spelled as in
/// `url`, the text from which `target` was parsed. Characters that [`Target`] percent-encodes stay
/// as the user wrote them.
pub fn from_path_as_written(target: &Target, url: &str) -> Result<String, NoFileName> {
    let encoded = from_path_like_curl(target)?;
    let place = url.split(['?', '#']).next().unwrap_or_default();
    let written = place.rsplit(['/', '\\']).find(|segment| !segment.is_empty()).unwrap_or_default();
    let is_same = || {
        let mut out = String::new();
        for c in written.chars() {
            if c.is_ascii() { out.push(c) } else { out += &percent_encode(c.encode_utf8(&mut [0; 4]).as_bytes()) }
        }
        out == encoded
    };
    Ok(if !written.is_ascii() && is_same() { written.to_owned() } else { encoded })
}

/// Returns the name that a Content-Disposition value suggests (RFC 6266 §4.3), made safe for any
/// system by [`sanitise`]. Returns `None` if the value contains no usable name.
///
/// `filename*` (RFC 8187, UTF-8 or ISO-8859-1) takes precedence over `filename`; the first of
/// repeated parameters counts. A path is reduced to its last segment, as by curl. The disposition
/// type (`attachment` or `inline`) does not matter.
pub fn from_disposition(value: &[u8]) -> Option<String> {
    let mut plain = None;
    let mut extended = None;
    for (name, value) in (DispositionParameters { rest: value }) {
        if name.eq_ignore_ascii_case(b"filename*") {
            extended = extended.or_else(|| decode_extended(&value));
        } else if name.eq_ignore_ascii_case(b"filename") {
            plain = plain.or_else(|| Some(remove_quotes(decode_text(&value))));
        }
    }
    [extended, plain].into_iter().flatten().find_map(|name| sanitise(&name))
}

/// Returns the file name at the end of a `Location` value, without query and fragment and not
/// decoded. curl uses it if the redirect is not followed. Returns `None` if the value contains no
/// file name.
pub fn from_location(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    let place = text.split(['?', '#']).next()?;
    sanitise(place)
}

/// Removes the single quotes around a file name. Some servers send them instead of the double
/// quotes of RFC 6266.
fn remove_quotes(name: String) -> String {
    match name.strip_prefix('\'') {
        Some(rest) => rest.strip_suffix('\'').unwrap_or(rest).to_owned(),
        None => name,
    }
}

/// Returns the last segment of a suggested path, changed to a name that is safe on any system.
/// Returns `None` if nothing is left. The name has:
///
/// * no separators, control characters or characters that reorder text
/// * no leading dot, and no trailing dot or space
/// * no reserved device name of Windows
/// * at most [`MAX_NAME`] bytes
pub fn sanitise(suggested: &str) -> Option<String> {
    let last = suggested.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut name = replace_unsafe_characters(last.trim())?;
    shorten(&mut name);
    if is_reserved_device_name(&name) {
        name.insert(0, '_');
        shorten(&mut name);
    }
    Some(name).filter(|name| !name.is_empty())
}

/// Shortens a name to at most [`MAX_NAME`] bytes, without a dot or white space at the end.
fn shorten(name: &mut String) {
    let mut end = name.len().min(MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name.truncate(name.trim_end_matches(|c: char| c == '.' || c.is_whitespace()).len());
}

/// Returns a path segment in which `_` replaces the characters that could leave the directory, hide
/// the file or deceive a reader. Returns `None` if nothing is left.
fn replace_unsafe_characters(segment: &str) -> Option<String> {
    if matches!(segment, "" | "." | "..") {
        return None;
    }
    let harmless = |c: char| if is_deceptive(c) || matches!(c, '/' | '\\' | ':') { '_' } else { c };
    let mut name: String = segment.chars().map(harmless).collect();
    if name.starts_with('.') {
        name.replace_range(..1, "_");
    }
    Some(name)
}

/// Appends text to the path `out`, as a part of one file name, with unsafe characters replaced. The
/// text comes from a page and is not trusted. `begins` is true if the text begins the file name; a
/// dot at its start is then replaced, too.
pub(crate) fn push_with_safe_characters(out: &mut Vec<u8>, text: &[u8], begins: bool) {
    let from = out.len();
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            let c = if is_deceptive(c) || matches!(c, '/' | '\\') { '_' } else { c };
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        out.extend_from_slice(chunk.invalid());
    }
    if let Some(first) = out.get_mut(from).filter(|byte| begins && **byte == b'.') {
        *first = b'_';
    }
}

/// Returns `true` for control characters, line separators, and characters that reverse the display
/// of text, so that `gpj.exe` is shown as `exe.jpg`.
pub(crate) fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Returns `true` if Windows reserves the file name for a device, with or without an extension.
/// Such a name is changed on every system, because files are copied between systems. Rarer names of
/// devices are changed on Windows only ([`file_names_by_system`](crate::file_names_by_system)), so
/// that names on Unix stay as they are.
pub(crate) fn is_reserved_device_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end();
    let port = |prefix: &str| {
        let parts = stem.split_at_checked(prefix.len());
        parts.is_some_and(|(start, number)| {
            start.eq_ignore_ascii_case(prefix) && matches!(number.as_bytes(), [b'0'..=b'9'])
        })
    };
    ["CON", "PRN", "AUX", "NUL"].iter().any(|device| stem.eq_ignore_ascii_case(device)) || port("COM") || port("LPT")
}

/// An iterator over the `name=value` parameters of a Content-Disposition. Other text between
/// semicolons is skipped.
struct DispositionParameters<'v> {
    rest: &'v [u8],
}

impl<'v> Iterator for DispositionParameters<'v> {
    type Item = (&'v [u8], Cow<'v, [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let stop = self.rest.iter().position(|b| matches!(b, b';' | b'=' | b'"')).unwrap_or(self.rest.len());
            let name = self.rest[..stop].trim_ascii();
            match self.rest.get(stop) {
                Some(b'=') => {
                    let (value, rest) = parameter_value(&self.rest[stop + 1..]);
                    self.rest = rest;
                    return Some((name, value));
                }
                Some(b'"') => self.rest = parse_quoted_string(&self.rest[stop + 1..]).1,
                _ => self.rest = self.rest.get(stop + 1..).unwrap_or_default(),
            }
        }
        None
    }
}

/// Parses a parameter value, and returns it with the text after it. The value is a quoted string,
/// or all text up to the semicolon, since many servers forget the quotes around a name with spaces.
fn parameter_value(text: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let text = text.trim_ascii_start();
    if let Some(inner) = text.strip_prefix(b"\"") {
        let (value, rest) = parse_quoted_string(inner);
        let next = rest.iter().position(|b| *b == b';').map_or(rest.len(), |at| at + 1);
        return (Cow::Owned(value), &rest[next..]);
    }
    let end = text.iter().position(|b| *b == b';').unwrap_or(text.len());
    (Cow::Borrowed(text[..end].trim_ascii()), text.get(end + 1..).unwrap_or_default())
}

/// Returns the unescaped text of a quoted string, and the text after its closing quote (RFC 9110
/// §5.6.4). `text` begins after the opening quote.
///
/// A backslash escapes a quote or a backslash. Before any other character it separates the parts of
/// a path: servers on Windows send `"C:\dir\win.txt"` unescaped, and no sender has a reason to
/// escape a letter.
fn parse_quoted_string(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut value = Vec::new();
    let mut at = 0;
    while let Some(b) = text.get(at) {
        match (b, text.get(at + 1)) {
            (b'"', _) => return (value, &text[at + 1..]),
            (b'\\', Some(escaped @ (b'"' | b'\\'))) => {
                value.push(*escaped);
                at += 1;
            }
            _ => value.push(*b),
        }
        at += 1;
    }
    (value, &[])
}

/// Decodes an extended parameter value, `charset'language'percent-encoded` (RFC 8187 §3.2). Returns
/// `None` if it is malformed, or if the charset is neither UTF-8 nor ISO-8859-1.
fn decode_extended(value: &[u8]) -> Option<String> {
    let mut parts = value.splitn(3, |b| *b == b'\'');
    let (charset, _language, encoded) = (parts.next()?, parts.next()?, parts.next()?);
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let [b, after @ ..] = rest {
        rest = after;
        if *b == b'%' {
            let [high, low, after @ ..] = rest else { return None };
            bytes.push(hex_value(*high)? << 4 | hex_value(*low)?);
            rest = after;
        } else {
            bytes.push(*b);
        }
    }
    if charset.eq_ignore_ascii_case(b"utf-8") {
        String::from_utf8(bytes).ok()
    } else if charset.eq_ignore_ascii_case(b"iso-8859-1") {
        Some(bytes.into_iter().map(char::from).collect())
    } else {
        None
    }
}

/// Decodes a file name as UTF-8 if it is valid UTF-8, else as ISO-8859-1.
fn decode_text(bytes: &[u8]) -> String {
    match core::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|b| char::from(*b)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_come_from_urls() {
        let table = [
            ("http://h/a/b.html?x=/y#z", Some("b.html")),
            ("http://h/dir/", Some("dir")),
            ("http://h", None),
            ("http://h/?x", None),
            ("http://h//", None),
            ("http://h/a%2fb%00", Some("a%2fb%00")),
            ("http://h/a\\b\\c", Some("c")),
            ("http://h/.bashrc", Some("_bashrc")),
            ("http://h/...", Some("_..")),
            ("http://h/x-1:2.3.pkg", Some("x-1:2.3.pkg")),
            ("http://h/a/..", None),
            ("http://h/aux", Some("aux")),
            ("http://h/\u{e9}", Some("%C3%A9")),
        ];
        for (url, expected) in table {
            let name = from_target(&Target::parse(url).unwrap());
            assert_eq!(name.as_deref().ok(), expected, "{url}");
        }
        let as_is = Target::parse_with("http://h/a/..", crate::Scheme::Http, true).unwrap();
        assert_eq!(from_target(&as_is), Err(NoFileName));
        assert_eq!(from_path_like_curl(&as_is), Err(NoFileName));
        assert_eq!(from_path_like_curl(&Target::parse("http://h/.vimrc").unwrap()).as_deref(), Ok(".vimrc"));
    }

    #[test]
    fn decoded_file_names_stay_in_their_directory() {
        for (url, expected) in [
            ("http://h/a%20b%C3%A9.txt", Some("a b\u{e9}.txt")),
            ("http://h/x-1:2.3.pkg", Some("x-1:2.3.pkg")),
            ("http://h/d/..%2f..%2fetc%2Fpasswd", Some("_._.._etc_passwd")),
            ("http://h/%2e%2e%5Cx", Some("_._x")),
            ("http://h/a%00%0a%1b%7f", Some("a____")),
            ("http://h/%2ebashrc", Some("_bashrc")),
            ("http://h/a%ff%41", Some("a%FFA")),
            ("http://h/aux", Some("_aux")),
            ("http://h/%252e%252e", Some("%2e%2e")),
            ("http://h/dir/", Some("dir")),
            ("http://h/", None),
        ] {
            assert_eq!(from_decoded_path(&Target::parse(url).unwrap()).as_deref().ok(), expected, "{url}");
        }
        let long = from_decoded_path(&Target::parse(&format!("http://h/{}", "%20x".repeat(500))).unwrap()).unwrap();
        assert_eq!(long.len(), MAX_NAME);
    }

    #[test]
    fn file_names_come_from_content_disposition() {
        let table: &[(&[u8], Option<&str>)] = &[
            (b"attachment; filename=a.txt", Some("a.txt")),
            (b"inline; filename='a.txt", Some("a.txt")),
            (b"inline; filename='a b.txt'", Some("a b.txt")),
            (b"attachment;FILENAME = \"a b.txt\"", Some("a b.txt")),
            (b"attachment; filename=a b.txt; x=y", Some("a b.txt")),
            (b"filename=x", Some("x")),
            (b"inline; filename=\"a\\\"b\\\\c\"", Some("c")),
            (b"attachment; filename=\"a;b=c\"; filename=z", Some("a;b=c")),
            (b"attachment; filename=\"C:\\dir\\win.txt\"", Some("win.txt")),
            (b"attachment; filename=\"C:\\\\dir\\\\win.txt\"; x=y", Some("win.txt")),
            (b"attachment; filename=C:\\dir\\win.txt", Some("win.txt")),
            (b"attachment; filename=\"\\\\server\\share\\win.txt\"", Some("win.txt")),
            (b"attachment; filename*=UTF-8''C%3A%5Cdir%5Cwin.txt", Some("win.txt")),
            (b"attachment; filename=\"C:win.txt\"", Some("C_win.txt")),
            (b"attachment; x=\"filename=evil\"; filename=good", Some("good")),
            (b"\"filename=evil;\"; filename=good", Some("good")),
            (b"attachment; filename*=utf-8'en'%C3%A9%20x", Some("\u{e9} x")),
            (b"attachment; filename*=iso-8859-1''%E9; filename=b", Some("\u{e9}")),
            (b"attachment; filename*=utf-8''%ff; filename=b", Some("b")),
            (b"attachment; filename*=koi8-r''x; filename=b", Some("b")),
            (b"attachment; filename*=utf-8''%c; filename=b", Some("b")),
            (b"attachment; filename*=x; filename=b", Some("b")),
            (b"attachment; filename*=utf-8''..; filename=b", Some("b")),
            (b"attachment; filename=\"\xe9.txt\"", Some("\u{e9}.txt")),
            (b"attachment; filename=\"open", Some("open")),
            (b"attachment", None),
            (b"", None),
            (b"attachment; filename=", None),
            (b"attachment; filename=\"\"", None),
            (b"=;=;;\"", None),
        ];
        for (value, expected) in table {
            assert_eq!(from_disposition(value).as_deref(), *expected, "{}", String::from_utf8_lossy(value));
        }
    }

    #[test]
    fn hostile_file_names_are_made_safe() {
        let table = [
            ("../../etc/passwd", Some("passwd")),
            ("..\\..\\x.exe", Some("x.exe")),
            ("/", None),
            ("..", None),
            (".", None),
            ("a/..", None),
            (" .. ", None),
            (".ssh", Some("_ssh")),
            ("...", Some("_")),
            ("a\0b\r\nc\u{1b}[31m", Some("a_b__c_[31m")),
            ("\u{202e}gpj.exe", Some("_gpj.exe")),
            ("C:evil", Some("C_evil")),
            ("x:stream", Some("x_stream")),
            ("con", Some("_con")),
            ("NUL.txt", Some("_NUL.txt")),
            ("Com1", Some("_Com1")),
            ("lpt9.x", Some("_lpt9.x")),
            ("com", Some("com")),
            ("com10", Some("com10")),
            ("com\u{b9}", Some("com\u{b9}")),
            ("CONIN$", Some("CONIN$")),
            ("conout$.txt", Some("conout$.txt")),
            ("console", Some("console")),
            ("a. . .", Some("a")),
            ("   ", None),
            ("-rf", Some("-rf")),
            ("\u{e9}\u{e9}", Some("\u{e9}\u{e9}")),
        ];
        for (given, expected) in table {
            assert_eq!(sanitise(given).as_deref(), expected, "{given:?}");
        }
        let long = sanitise(&"\u{20ac}".repeat(300)).unwrap();
        assert_eq!(long.len(), MAX_NAME);
    }

    #[test]
    fn shortened_file_name_has_no_trailing_space() {
        assert_eq!(sanitise(&format!(".{}{}x", ".".repeat(37), "\u{a0}".repeat(200))).as_deref(), Some("_"));
        let device = sanitise(&format!("con.{}", "x".repeat(300))).unwrap();
        assert!(device.len() == MAX_NAME && device.starts_with("_con.x"), "{device}");
        assert_eq!(sanitise(&device).as_deref(), Some(&*device));
    }

    #[test]
    fn written_spelling_is_kept_for_the_same_name() {
        let name = |target: &str, url: &str| from_path_as_written(&Target::parse(target).unwrap(), url);
        assert_eq!(name("http://h/d/\u{e4}.txt?x", "http://h/d/\u{e4}.txt?x").as_deref(), Ok("\u{e4}.txt"));
        assert_eq!(name("http://h/d/\u{e4}.txt", "http://h/d/%C3%A4.txt").as_deref(), Ok("%C3%A4.txt"));
        assert_eq!(name("http://h/moved", "http://h/\u{e4}").as_deref(), Ok("moved"), "a redirect led elsewhere");
        assert_eq!(name("http://h/", "http://h/"), Err(NoFileName));
    }

    #[test]
    fn name_from_location_is_the_last_path_segment() {
        assert_eq!(from_location(b"/dir/new.txt?x=/y#z").as_deref(), Some("new.txt"));
        assert_eq!(from_location(b"http://h/.bashrc").as_deref(), Some("_bashrc"));
        assert_eq!(from_location(b"/dir/"), None);
        assert_eq!(from_location(b"\xff"), None);
    }

    #[test]
    fn missing_name_has_the_exit_code_of_curl() {
        assert_eq!(NoFileName.exit_code(), 23);
    }
}
