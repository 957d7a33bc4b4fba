//! Output names with placeholders for parts of the URL: `-o '{host}/{path}'`, `--mirror-paths`.
//!
//! | placeholder | value |
//! |---|---|
//! | `{scheme}` | `http` or `https` |
//! | `{host}` | the host, in lower case |
//! | `{port}` | the port, also if it is the default |
//! | `{path}` | the path without its leading slash; its directories stay directories, and the name of an index page is `index.html` |
//! | `{name}` | the last segment of the path, or `index.html` |
//! | `{query}` | the query, or `_` if there is none |
//!
//! Whoever chose the URL must not choose a file outside of the intended directory. So each value is
//! [made safe](safe_component), and a component of the name that has a placeholder is never empty,
//! `.` or `..`. Text that is no known placeholder stays as it is.
//!
//! ```
//! use haul_policy::Target;
//! use haul_policy::output_name_placeholders::{fill_url_parts, mirrored_path, no_columns};
//! use haul_policy::file_names_by_system::OsFamily::Unix;
//!
//! let target = Target::parse("http://Example.com/a%20b/..%2f.ssh/?q=1").unwrap();
//! let name = fill_url_parts(Unix, b"site/{host}/{path}", &target, &no_columns, &|text| text.to_vec()).unwrap();
//! assert_eq!(name, b"site/example.com/a b/_._.ssh/index.html");
//! assert_eq!(mirrored_path(&target).unwrap(), "example.com/a b/_._.ssh/index.html?q=1");
//! ```

use core::fmt;
use std::borrow::Cow;

use crate::file_names_by_system::OsFamily;
use crate::filename::{MAX_NAME, is_deceptive, is_reserved_device_name};
use crate::target::Target;
use crate::urlencode::percent_decode;

/// The file name for a URL whose path ends in a slash.
pub const INDEX_FILE_NAME: &str = "index.html";

/// The largest number of directories in a URL path that becomes a file name, so that a URL cannot
/// create thousands of directories.
const MAX_DEPTH: usize = 64;
/// The largest length in bytes of a URL path that becomes a file name.
const MAX_PATH: usize = 3072;

/// The largest length in bytes of an ending that is kept when a path component is shortened. The
/// ending is the text after the last placeholder, such as a file extension.
const MAX_ENDING: usize = 32;

/// The largest length in bytes of the name between the braces of a placeholder. Longer text in
/// braces is not a placeholder.
const MAX_PLACEHOLDER: usize = 128;

/// The error for a URL whose path gives no file name, because it has too many directories or is too
/// long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UrlPathTooLong;

impl fmt::Display for UrlPathTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the path of the URL is too long for a file name (more than {MAX_DEPTH} directories or {MAX_PATH} bytes)"
        )
    }
}

impl core::error::Error for UrlPathTooLong {}

/// A function that returns the value of a column of the user's table, given the column's name;
/// `None` if there is no such column.
pub type ColumnLookup<'a> = dyn Fn(&str) -> Option<Cow<'a, [u8]>> + 'a;

/// A [`ColumnLookup`] for requests without a table of values: returns `None` for every column name.
pub fn no_columns(_name: &str) -> Option<Cow<'static, [u8]>> {
    None
}

/// Returns true if an output name has a placeholder for a part of the URL, such as `{host}`.
pub fn has_url_part(template: &[u8]) -> bool {
    pieces(template)
        .any(|piece| matches!(piece, OutputNamePiece::Placeholder(name, _) if UrlPart::from_name(name).is_some()))
}

/// Returns the names of all placeholders in an output name, known or unknown.
pub fn placeholder_names(template: &[u8]) -> impl Iterator<Item = &str> {
    pieces(template).filter_map(|piece| match piece {
        OutputNamePiece::Placeholder(name, _) => Some(name),
        OutputNamePiece::Text(_) => None,
    })
}

/// Replaces the placeholders of an output name. The value of a placeholder is what `column` returns
/// for the placeholder's name, or else the part of the URL with that name. `text` converts the text
/// between the placeholders. `family` decides which characters separate the components of the name.
///
/// A path component of more than [`MAX_NAME`] bytes is shortened if it contains a value or
/// converted text. A hash of the whole component then replaces the removed part.
///
/// # Errors
/// The path of the URL is too long for a file name.
pub fn fill_url_parts(
    family: OsFamily,
    template: &[u8],
    target: &Target,
    column: &ColumnLookup<'_>,
    text: &dyn Fn(&[u8]) -> Vec<u8>,
) -> Result<Vec<u8>, UrlPathTooLong> {
    let mut name = OutputNameBuilder::new(family);
    for piece in pieces(template) {
        match piece {
            OutputNamePiece::Text(literal) => name.push_text(literal, &text(literal)),
            OutputNamePiece::Placeholder(placeholder, written) => {
                match (column(placeholder), UrlPart::from_name(placeholder)) {
                    (Some(value), _) => name.push_value(&safe_component(&value)),
                    (None, Some(part)) => name.push_value(&part.value(target)?),
                    (None, None) => name.push_text(written, &text(written)),
                }
            }
        }
    }
    Ok(name.finish())
}

/// Returns the path for `--mirror-paths`: the host, the port unless it is the default, the path,
/// and the query, if there is one.
///
/// # Errors
/// The path of the URL is too long for a file name.
pub fn mirrored_path(target: &Target) -> Result<String, UrlPathTooLong> {
    let mut path = UrlPart::Host.value(target)?;
    if target.port() != target.scheme().default_port() {
        path += &format!("+{}", target.port());
    }
    path.push('/');
    path += &UrlPart::Path.value(target)?;
    if let Some(query) = target.query().filter(|query| !query.is_empty()) {
        let directory = path.rfind('/').map_or(0, |slash| slash + 1);
        let name = safe_component(format!("{}?{query}", &path[directory..]).as_bytes());
        path.replace_range(directory.., &name);
    }
    Ok(path)
}

/// Returns a text as one component of a path that is safe on any system. Separators, colons,
/// control characters and characters that reorder text become `_`, and so does a leading dot. Dots
/// and white space at the end are removed. A reserved device name of Windows gets a leading `_`. A
/// component of more than [`MAX_NAME`] bytes is cut and ends in a hash of the whole, so that two
/// long components stay different. An empty component becomes `_`. Bytes that are not UTF-8 are
/// percent-encoded.
pub fn safe_component(value: &[u8]) -> String {
    replace_reserved_characters(value, &['/', '\\', ':'])
}

/// Returns a text as a safe path component by the rules of [`safe_component`], except one: the
/// characters in `replaced` become `_`, and not separators and colons.
pub(crate) fn replace_reserved_characters(value: &[u8], replaced: &[char]) -> String {
    let mut name = String::with_capacity(value.len());
    for chunk in value.utf8_chunks() {
        let harmless = |c: char| if is_deceptive(c) || replaced.contains(&c) { '_' } else { c };
        name.extend(chunk.valid().chars().map(harmless));
        name += &crate::urlencode::percent_encode(chunk.invalid());
    }
    name.truncate(name.trim_end_matches(|c: char| c == '.' || c.is_whitespace()).len());
    if name.starts_with('.') {
        name.replace_range(..1, "_");
    }
    if is_reserved_device_name(&name) {
        name.insert(0, '_');
    }
    if name.len() > MAX_NAME {
        let hash = hash_suffix(value);
        let mut end = MAX_NAME - hash.len();
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        name.truncate(end);
        name += &hash;
    }
    if name.is_empty() { "_".to_owned() } else { name }
}

/// Returns the ending of a shortened name: a hash of the whole name, so that names with the same
/// beginning stay different.
fn hash_suffix(whole: &[u8]) -> String {
    format!("-{:016x}", fnv1a(whole))
}

/// Returns the FNV-1a hash of the bytes (64 bits).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A part of a URL for which a placeholder such as `{host}` stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UrlPart {
    Scheme,
    Host,
    Port,
    Path,
    Name,
    Query,
}

impl UrlPart {
    fn from_name(name: &str) -> Option<UrlPart> {
        Some(match name {
            "scheme" => UrlPart::Scheme,
            "host" => UrlPart::Host,
            "port" => UrlPart::Port,
            "path" => UrlPart::Path,
            "name" => UrlPart::Name,
            "query" => UrlPart::Query,
            _ => return None,
        })
    }

    /// Returns the value of this part of the URL, made safe for a file name. The value is one path
    /// component, or several if the part is `{path}`.
    fn value(self, target: &Target) -> Result<String, UrlPathTooLong> {
        Ok(match self {
            UrlPart::Scheme => target.scheme().as_str().to_owned(),
            UrlPart::Host => safe_component(target.host_text().to_ascii_lowercase().as_bytes()),
            UrlPart::Port => target.port().to_string(),
            UrlPart::Path => path_component(target)?,
            UrlPart::Name => match target.path().rsplit('/').next() {
                None | Some("") => INDEX_FILE_NAME.to_owned(),
                Some(last) => safe_component(&percent_decode(last.as_bytes())),
            },
            UrlPart::Query => safe_component(target.query().unwrap_or_default().as_bytes()),
        })
    }
}

/// Returns the components of the target's path, decoded and made safe, joined by slashes.
fn path_component(target: &Target) -> Result<String, UrlPathTooLong> {
    let text = target.path();
    let segments = || text.split('/').filter(|segment| !segment.is_empty());
    if text.len() > MAX_PATH || segments().count() > MAX_DEPTH {
        return Err(UrlPathTooLong);
    }
    let mut all: Vec<String> = segments().map(|segment| safe_component(&percent_decode(segment.as_bytes()))).collect();
    if text.ends_with('/') {
        all.push(INDEX_FILE_NAME.to_owned());
    }
    Ok(all.join("/"))
}

/// A piece of an output name: literal text or a placeholder.
enum OutputNamePiece<'t> {
    Text(&'t [u8]),
    /// A placeholder: the name in the braces, and the text including the braces.
    Placeholder(&'t str, &'t [u8]),
}

/// Splits an output name into literal texts and placeholders, in order.
fn pieces(template: &[u8]) -> impl Iterator<Item = OutputNamePiece<'_>> {
    let mut rest = template;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some((name, length)) = placeholder(rest) {
            let (written, after) = rest.split_at(length);
            rest = after;
            return Some(OutputNamePiece::Placeholder(name, written));
        }
        let next = (1..rest.len()).find(|&at| rest[at] == b'{' && placeholder(&rest[at..]).is_some());
        let (text, after) = rest.split_at(next.unwrap_or(rest.len()));
        rest = after;
        Some(OutputNamePiece::Text(text))
    })
}

/// Returns the name of the placeholder at the start of `text`, and the placeholder's length in
/// bytes including the braces. Returns `None` if `text` does not begin with a placeholder.
pub fn placeholder(text: &[u8]) -> Option<(&str, usize)> {
    let inner = text.strip_prefix(b"{")?;
    let inner = &inner[..inner.len().min(MAX_PLACEHOLDER + 1)];
    let end = inner.iter().position(|byte| matches!(byte, b'{' | b'}' | b'"' | b'/' | 0..=0x1f))?;
    let name = core::str::from_utf8(&inner[..end]).ok()?;
    (inner[end] == b'}' && !name.is_empty()).then_some((name, end + 2))
}

/// A file name that is being put together from text and values. A path component that contains a
/// placeholder's value is never empty, `.` or `..`.
struct OutputNameBuilder {
    family: OsFamily,
    bytes: Vec<u8>,
    /// The offset in `bytes` at which the last path component begins.
    begin: usize,
    /// True if the last path component contains the value of a placeholder.
    has_value: bool,
    /// True if the last path component differs from what the user wrote in the template: it
    /// contains the value of a placeholder, or text that was converted. Only such a component may
    /// be shortened.
    is_filled: bool,
    /// The offset after the last placeholder's value in the last path component.
    value_end: usize,
}

impl OutputNameBuilder {
    fn new(family: OsFamily) -> Self {
        Self { family, bytes: Vec::new(), begin: 0, has_value: false, is_filled: false, value_end: 0 }
    }

    /// Appends the literal text between two placeholders. `written` is the text in the user's
    /// template, and `text` is the converted text to append. If they differ, the path component is
    /// shortened if it becomes longer than [`MAX_NAME`]; a component as the user wrote it is never
    /// shortened.
    fn push_text(&mut self, written: &[u8], text: &[u8]) {
        let is_filled = written != text;
        let family = self.family;
        for part in text.split_inclusive(|&byte| family.is_separator(byte)) {
            let separator = part.last().copied().filter(|&byte| family.is_separator(byte));
            self.bytes.extend_from_slice(&part[..part.len() - usize::from(separator.is_some())]);
            self.is_filled |= is_filled;
            if let Some(separator) = separator {
                self.begin_component(separator);
            }
        }
    }

    fn push_value(&mut self, value: &str) {
        for (index, part) in value.split('/').enumerate() {
            if index > 0 {
                self.begin_component(b'/');
            }
            self.bytes.extend_from_slice(part.as_bytes());
            (self.has_value, self.is_filled, self.value_end) = (true, true, self.bytes.len());
        }
    }

    fn begin_component(&mut self, separator: u8) {
        self.end_component();
        self.bytes.push(separator);
        (self.begin, self.value_end) = (self.bytes.len(), self.bytes.len());
    }

    fn end_component(&mut self) {
        if self.is_filled && self.bytes.len() - self.begin > MAX_NAME {
            self.shorten_component();
        }
        if self.has_value && matches!(&self.bytes[self.begin..], b"" | b"." | b"..") {
            self.bytes.truncate(self.begin);
            self.bytes.push(b'_');
        }
        (self.has_value, self.is_filled) = (false, false);
    }

    /// Shortens the last path component to [`MAX_NAME`] bytes. A hash of the whole component
    /// replaces the removed bytes. The text after the last placeholder's value, such as a file
    /// extension, is kept if it has at most [`MAX_ENDING`] bytes.
    fn shorten_component(&mut self) {
        let hash = hash_suffix(&self.bytes[self.begin..]);
        let ending = self.bytes.split_off(if self.bytes.len() - self.value_end > MAX_ENDING {
            self.bytes.len()
        } else {
            self.value_end
        });
        let mut end = self.begin + MAX_NAME - hash.len() - ending.len();
        while end > self.begin && self.bytes.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
            end -= 1;
        }
        self.bytes.truncate(end);
        self.bytes.extend_from_slice(hash.as_bytes());
        self.bytes.extend_from_slice(&ending);
    }

    fn finish(mut self) -> Vec<u8> {
        self.end_component();
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_names_by_system::OsFamily::{Unix, Windows};

    fn filled(template: &str, url: &str) -> String {
        let target = Target::parse(url).unwrap();
        let name = fill_url_parts(Unix, template.as_bytes(), &target, &no_columns, &|text| text.to_vec()).unwrap();
        String::from_utf8(name).unwrap()
    }

    #[test]
    fn output_name_placeholders_stand_for_url_parts() {
        for (template, url, expected) in [
            ("{host}/{path}", "http://h/a/b.html?q", "h/a/b.html"),
            ("{host}/{path}", "http://h", "h/index.html"),
            ("{host}/{path}", "http://h/a/", "h/a/index.html"),
            ("{host}/{path}", "http://h//a//b", "h/a/b"),
            ("{scheme}-{host}-{port}", "https://H.Example:8443/x", "https-h.example-8443"),
            ("{port}", "http://h/", "80"),
            ("{name}", "http://h/a/b%20c.txt", "b c.txt"),
            ("{name}", "http://h/a/", "index.html"),
            ("{query}.json", "http://h/?a=1&b=%2F/x", "a=1&b=%2F_x.json"),
            ("{name}-{query}", "http://h/x", "x-_"),
            ("{host}", "http://[::1]:8/", "__1"),
            ("{other}-{}-{", "http://h/", "{other}-{}-{"),
            ("{{host}}", "http://h/", "{h}"),
            ("/abs/{host}", "http://h/", "/abs/h"),
        ] {
            assert_eq!(filled(template, url), expected, "{template} {url}");
        }
    }

    #[test]
    fn filled_url_parts_never_leave_their_directory() {
        for (template, url, expected) in [
            ("{path}", "http://h/%2e%2e%2fx", "_._x"),
            ("{path}", "http://h/a%2f..%2f..%2fb", "a_.._.._b"),
            ("{path}", "http://h/%2fetc%2fpasswd", "_etc_passwd"),
            ("{path}", "http://h/.git/config", "_git/config"),
            ("{path}", "http://h/con/aux.txt/lpt1", "_con/_aux.txt/_lpt1"),
            ("{path}", "http://h/a%00b%1b[31m%0a", "a_b_[31m_"),
            ("{path}", "http://h/a./b%20", "a/b"),
            ("{path}", "http://h/C:%5Cx", "C__x"),
            ("{path}", "http://h/%e2%80%aegpj.exe", "_gpj.exe"),
            ("{path}", "http://h/a%ffb", "a%FFb"),
            ("{query}/x", "http://h/", "_/x"),
            ("{query}", "http://h/?..", "_"),
            ("..{query}", "http://h/?..", ".._"),
        ] {
            assert_eq!(filled(template, url), expected, "{template} {url}");
        }
        let as_is = Target::parse_with("http://h/../../x/./y", crate::Scheme::Http, true).unwrap();
        assert_eq!(mirrored_path(&as_is).unwrap(), "h/_/_/x/_/y");
    }

    #[test]
    fn table_columns_take_precedence_over_url_parts() {
        let target = Target::parse("http://h/x").unwrap();
        let column = |name: &str| -> Option<Cow<'static, [u8]>> {
            match name {
                "name" => Some(Cow::Borrowed(b"../Ann")),
                "none" => Some(Cow::Borrowed(b"")),
                _ => None,
            }
        };
        let name = fill_url_parts(Unix, b"{none}/{name}.{host}", &target, &column, &|text| text.to_vec()).unwrap();
        assert_eq!(name, b"_/_._Ann.h");
    }

    #[test]
    fn mirrored_path_has_port_and_query() {
        for (url, expected) in [
            ("http://h/list.php?id=1", "h/list.php?id=1"),
            ("http://h/?a/../b", "h/index.html?a_.._b"),
            ("http://h:8080/", "h+8080/index.html"),
            ("https://h:443/a?", "h/a"),
        ] {
            assert_eq!(mirrored_path(&Target::parse(url).unwrap()).unwrap(), expected, "{url}");
        }
    }

    #[test]
    fn file_name_of_two_long_values_is_shortened() {
        let made = |template: &str, last: char| {
            filled(template, &format!("http://h/{}?{}{last}", "n".repeat(150), "q".repeat(150)))
        };
        for template in ["{name}-{query}", "{name}-{query}.html", "{host}-{path}/{name}{query}", "{query}{query}x"] {
            let (one, two) = (made(template, 'a'), made(template, 'b'));
            assert_ne!(one, two, "{template}");
            assert!(one.split('/').all(|component| component.len() <= MAX_NAME), "{template}: {one}");
        }
        assert!(made("{name}-{query}.html", 'a').ends_with(".html"));
        assert!(made("{path}/{query}{name}", 'a').starts_with(&"n".repeat(150)));
        // What the user writes stays as it is.
        let long = "x".repeat(250);
        assert_eq!(filled(&format!("{long}/{{name}}"), "http://h/a"), format!("{long}/a"));
        let target = Target::parse("http://h/a").unwrap();
        let value = |text: &[u8]| -> Vec<u8> { text.iter().flat_map(|byte| [*byte; 200]).collect() };
        let name = fill_url_parts(Unix, "\u{e9}{}".as_bytes(), &target, &no_columns, &value).unwrap();
        assert!(name.len() <= MAX_NAME, "{}", name.len());
    }

    #[test]
    fn long_path_components_stay_different_and_bounded() {
        let name = |last: char| filled("{name}", &format!("http://h/{}{last}", "x".repeat(1000)));
        assert_eq!((name('a').len(), name('b').len()), (MAX_NAME, MAX_NAME));
        assert_ne!(name('a'), name('b'));
        assert!(safe_component("\u{20ac}".repeat(300).as_bytes()).len() <= MAX_NAME);
        let target = |path: String| Target::parse(&format!("http://h/{path}")).unwrap();
        assert_eq!(mirrored_path(&target("a/".repeat(65))), Err(UrlPathTooLong));
        assert_eq!(mirrored_path(&target("a".repeat(4000))), Err(UrlPathTooLong));
        assert!(mirrored_path(&target("a/".repeat(64))).is_ok());
    }

    #[test]
    fn component_of_the_largest_length_is_kept() {
        let name = "n".repeat(MAX_NAME);
        assert_eq!(safe_component(name.as_bytes()), name);
        let shortened = safe_component(format!("{name}n").as_bytes());
        assert_eq!(shortened.len(), MAX_NAME);
        assert!(shortened.starts_with(&name[..200]), "{shortened}");
    }

    #[test]
    fn url_parts_are_told_from_columns() {
        assert!(has_url_part(b"a-{name}.html") && has_url_part(b"{x}{host}"));
        assert!(!has_url_part(b"a-{x}.html") && !has_url_part(b"name"));
    }

    #[test]
    fn shortened_component_keeps_whole_characters() {
        let target = Target::parse("http://h/a").unwrap();
        for value in ["\u{20ac}", "a\u{20ac}", "ab\u{20ac}"] {
            let long = value.repeat(160 / value.len());
            let column = move |_: &str| -> Option<Cow<'static, [u8]>> {
                Some(Cow::Owned(value.repeat(160 / value.len()).into_bytes()))
            };
            for (ending, is_kept) in [("e".repeat(MAX_ENDING), true), ("e".repeat(MAX_ENDING + 1), false)] {
                let template = format!("{{x}}{{x}}{ending}");
                let name = fill_url_parts(Unix, template.as_bytes(), &target, &column, &|text| text.to_vec()).unwrap();
                let name = String::from_utf8(name).expect("whole characters");
                assert!((MAX_NAME - 2..=MAX_NAME).contains(&name.len()), "{name}");
                assert!(name.starts_with(&long), "{name}");
                assert_eq!(name.ends_with(&ending), is_kept, "{name}");
            }
        }
    }

    #[test]
    fn placeholder_has_at_most_128_bytes() {
        let long = "n".repeat(MAX_PLACEHOLDER);
        assert_eq!(placeholder(format!("{{{long}}}x").as_bytes()), Some((&*long, MAX_PLACEHOLDER + 2)));
        assert_eq!(placeholder(format!("{{{long}n}}").as_bytes()), None);
        assert_eq!(placeholder(b"{}"), None);
    }

    #[test]
    fn filled_component_of_the_largest_length_is_kept() {
        let target = Target::parse("http://h/a").unwrap();
        for (length, is_kept) in [(MAX_NAME - 2, true), (MAX_NAME - 1, false)] {
            let column = move |_: &str| -> Option<Cow<'static, [u8]>> { Some(Cow::Owned(vec![b'v'; length])) };
            let name = fill_url_parts(Unix, b"dir/{x}-{x}/-{x}-", &target, &column, &|text| text.to_vec()).unwrap();
            let last = format!("-{}-", "v".repeat(length));
            assert_eq!(name.ends_with(last.as_bytes()), is_kept, "{length}");
            assert!(name.split(|byte| *byte == b'/').all(|part| part.len() <= MAX_NAME), "{length}");
        }
    }

    #[test]
    fn windows_component_begins_after_a_backslash() {
        let target = Target::parse(&format!("http://h/{}", "n".repeat(200))).unwrap();
        let made = |family, template: &str| {
            let name = fill_url_parts(family, template.as_bytes(), &target, &no_columns, &|text| text.to_vec());
            String::from_utf8(name.unwrap()).unwrap()
        };
        let directory = format!("C:\\{}\\", "d".repeat(150));
        let template = format!("{directory}{{name}}.txt");
        assert_eq!(made(Windows, &template), format!("{directory}{}.txt", "n".repeat(200)));
        assert!(made(Unix, &template).len() <= MAX_NAME, "one component on Unix");
        let both = made(Windows, &format!("{directory}{{name}}{{name}}\\x/{{port}}"));
        assert!(both.starts_with(&format!("{directory}nnn")) && both.ends_with("\\x/80"), "{both}");
        assert!(both.split(['\\', '/']).all(|component| component.len() <= MAX_NAME), "{both}");
    }

    #[test]
    fn path_of_the_largest_length_is_a_name() {
        let path = |length: usize| Target::parse(&format!("http://h/{}", "a".repeat(length - 1))).unwrap();
        assert!(mirrored_path(&path(MAX_PATH)).is_ok());
        let error = mirrored_path(&path(MAX_PATH + 1)).unwrap_err();
        assert!(error.to_string().contains("64 directories or 3072 bytes"), "{error}");
    }
}
