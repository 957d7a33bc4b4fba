//! The rules of Unix and of Windows, the two families of operating systems, for names of files.
//!
//! A URL, a response or a record must not choose the name of a device, of another directory, or of a
//! hidden part of a file. On Unix, the names that [`filename`](crate::filename) and
//! [`output_name_placeholders`](crate::output_name_placeholders) make are safe. On Windows, more
//! characters and names have a meaning. As curl does there, haul replaces them by `_`.
//!
//! The rules are parameters, so that tests of both families run on every system.
//!
//! ```
//! use haul_policy::file_names_by_system::OsFamily::{Unix, Windows};
//!
//! assert_eq!(Windows.file_name(b"C:\\a?.txt"), &b"C__a_.txt"[..]);
//! assert_eq!(Windows.file_name(b"nul.txt"), &b"_nul.txt"[..]);
//! assert_eq!(Unix.file_name(b"nul.txt"), &b"nul.txt"[..]);
//! ```

use std::borrow::Cow;

use crate::filename::is_reserved_device_name;

/// A family of operating systems with the same rules for file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OsFamily {
    /// Linux, macOS and the BSDs.
    Unix,
    /// Windows.
    Windows,
}

impl Default for OsFamily {
    /// Returns the family of the system for which this code was compiled.
    fn default() -> Self {
        Self::CURRENT
    }
}

impl OsFamily {
    /// The family of the system for which this code was compiled.
    pub const CURRENT: OsFamily = if cfg!(windows) { OsFamily::Windows } else { OsFamily::Unix };

    /// Returns true if this byte separates the components of a path.
    pub fn is_separator(self, byte: u8) -> bool {
        byte == b'/' || (self == OsFamily::Windows && byte == b'\\')
    }

    /// Returns the offset at which the last component of a path begins: after the last separator or, on
    /// Windows, at least after `C:`.
    pub fn last_component_start(self, path: &[u8]) -> usize {
        let separator = path.iter().rposition(|&byte| self.is_separator(byte));
        let drive = match (self, path) {
            (OsFamily::Windows, [letter, b':', ..]) if letter.is_ascii_alphabetic() => 2,
            _ => 0,
        };
        separator.map_or(0, |at| at + 1).max(drive)
    }

    /// Returns a name that a URL or a response chose, as the name of one file.
    ///
    /// On Windows, `_` replaces separators, colons, control characters and `<>"|?*`; dots and spaces
    /// at the end are removed; and `_` precedes the name of a device. `_` also replaces a `~` before a
    /// digit, because `GIT~1` may be the short name of `.git`. On Unix, the name is unchanged.
    pub fn file_name(self, name: &[u8]) -> Cow<'_, [u8]> {
        match self {
            OsFamily::Unix => Cow::Borrowed(name),
            OsFamily::Windows if is_windows_file_name(name) => Cow::Borrowed(name),
            OsFamily::Windows => {
                let mut made = Vec::with_capacity(name.len() + 1);
                push_windows_file_name(&mut made, name);
                Cow::Owned(made)
            }
        }
    }

    /// Makes the part of `path` after its first `written` bytes safe for the system. The user wrote
    /// these first bytes, which do not change; a URL or an extracted value chose the rest, at least
    /// in part. On Windows, each component of the rest becomes a [`file_name`](Self::file_name),
    /// and separators, `.` and `..` stay. On Unix, the rest does not change either.
    pub fn chosen_path(self, path: &[u8], written: usize) -> Cow<'_, [u8]> {
        if self == OsFamily::Unix {
            return Cow::Borrowed(path);
        }
        let (start, rest) = path.split_at(written.min(path.len()));
        let mut made = start.to_vec();
        for part in rest.split_inclusive(|&byte| self.is_separator(byte)) {
            let (name, separator) = match part.split_last() {
                Some((&last, name)) if self.is_separator(last) => (name, &part[name.len()..]),
                _ => (part, &b""[..]),
            };
            match name {
                b"" | b"." | b".." => made.extend_from_slice(name),
                name => push_windows_file_name(&mut made, name),
            }
            made.extend_from_slice(separator);
        }
        Cow::Owned(made)
    }

    /// Returns the text by which two paths are compared. On Windows, letters are in upper case, as in
    /// the comparisons of NTFS: `a` and `A` are the same file.
    pub fn comparison_key(self, path: &[u8]) -> Cow<'_, [u8]> {
        if self == OsFamily::Unix {
            return Cow::Borrowed(path);
        }
        let mut key = Vec::with_capacity(path.len());
        for chunk in path.utf8_chunks() {
            for c in chunk.valid().chars() {
                // NTFS replaces one character by one: the upper case of \u{df} is itself.
                let mut upper = c.to_uppercase();
                let upper = upper.next().filter(|_| upper.next().is_none()).unwrap_or(c);
                key.extend_from_slice(upper.encode_utf8(&mut [0; 4]).as_bytes());
            }
            key.extend_from_slice(chunk.invalid());
        }
        Cow::Owned(key)
    }

    /// Returns true if the name of an output file names a device by itself, in any directory: on
    /// Windows `NUL`, `con.txt` or `\\.\COM10`. Always false on Unix, where a name does not show
    /// that the file is a device.
    pub fn names_device(self, path: &[u8]) -> bool {
        let name = || path.rsplit(|&byte| self.is_separator(byte) || byte == b':').find(|name| !name.is_empty());
        self == OsFamily::Windows && (path.starts_with(b"\\\\.\\") || name().is_some_and(is_device))
    }

    /// Returns the length in bytes of the directories at the start of the file name `template` that
    /// contain no placeholder (`{` or `#`). They end with the last separator before the first
    /// placeholder. On Windows, a drive such as `C:` counts as a directory.
    pub fn literal_directory_length(self, template: &[u8]) -> usize {
        let literal = template.iter().position(|byte| matches!(byte, b'{' | b'#')).unwrap_or(template.len());
        self.last_component_start(&template[..literal])
    }
}

/// Returns true if [`push_windows_file_name`] would not change the name.
fn is_windows_file_name(name: &[u8]) -> bool {
    let is_clean = |byte: &u8| !is_reserved_byte(*byte);
    !name.is_empty()
        && name.iter().all(is_clean)
        && !name.windows(2).any(begins_short_name_number)
        && !ends_in_removed(name)
        && !is_device(name)
}

fn push_windows_file_name(made: &mut Vec<u8>, name: &[u8]) {
    let mut end = name.len();
    while ends_in_removed(&name[..end]) {
        end -= 1;
    }
    let start = made.len();
    let is_replaced = |at: usize| is_reserved_byte(name[at]) || begins_short_name_number(&name[at..end]);
    made.extend((0..end).map(|at| if is_replaced(at) { b'_' } else { name[at] }));
    if end == 0 || is_device(&made[start..]) {
        made.insert(start, b'_');
    }
}

fn is_reserved_byte(byte: u8) -> bool {
    byte.is_ascii_control() || matches!(byte, b'<' | b'>' | b':' | b'"' | b'|' | b'?' | b'*' | b'/' | b'\\')
}

/// Returns true if the text begins with `~` and a digit. NTFS and FAT give a file with a long name
/// a second, short name, such as `SSH~1` for `.ssh`. Through a short name, the content of a URL
/// could reach a hidden directory or the file of another URL.
fn begins_short_name_number(text: &[u8]) -> bool {
    matches!(text, [b'~', b'0'..=b'9', ..])
}

/// Returns true if Windows ignores the last character: `a.` and `a ` are other names of `a`.
fn ends_in_removed(name: &[u8]) -> bool {
    matches!(name.last(), Some(b'.' | b' '))
}

fn is_device(name: &[u8]) -> bool {
    let stem = name.split(|&byte| byte == b'.').next().unwrap_or_default();
    std::str::from_utf8(stem).is_ok_and(|stem| is_reserved_device_name(stem) || is_rare_device_name(stem))
}

/// Returns true for names of devices that [`is_reserved_device_name`] does not know: the console's own
/// names, and ports with a superscript digit, which Windows reads as a digit.
fn is_rare_device_name(stem: &str) -> bool {
    let stem = stem.trim_end();
    let is_port = |prefix: &str| {
        stem.split_at_checked(prefix.len()).is_some_and(|(start, number)| {
            start.eq_ignore_ascii_case(prefix) && matches!(number, "\u{b9}" | "\u{b2}" | "\u{b3}")
        })
    };
    ["CONIN$", "CONOUT$"].iter().any(|device| stem.eq_ignore_ascii_case(device)) || is_port("COM") || is_port("LPT")
}

#[cfg(test)]
mod tests {
    use super::OsFamily::{Unix, Windows};

    fn file_name(name: &str) -> String {
        String::from_utf8(Windows.file_name(name.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn windows_names_have_no_reserved_characters() {
        for (name, expected) in [
            ("plain name.txt", "plain name.txt"),
            ("a<b>c:d\"e|f?g*h", "a_b_c_d_e_f_g_h"),
            ("..\\..\\x", ".._.._x"),
            ("C:\\Windows\\x.dll", "C__Windows_x.dll"),
            ("C:x", "C_x"),
            ("file.txt:stream", "file.txt_stream"),
            ("file::$DATA", "file__$DATA"),
            ("\\\\?\\C:\\x", "____C__x"),
            ("a\u{1}b\u{7f}", "a_b_"),
            ("\u{e9}.txt", "\u{e9}.txt"),
        ] {
            assert_eq!(file_name(name), expected, "{name}");
            assert_eq!(Unix.file_name(name.as_bytes()), name.as_bytes());
        }
    }

    #[test]
    fn windows_names_are_never_short_names() {
        for (name, expected) in [
            ("GIT~1", "GIT_1"),
            ("ssh~2", "ssh_2"),
            ("GI7EBA~1", "GI7EBA_1"),
            ("LONGNA~1.TXT", "LONGNA_1.TXT"),
            ("a~~1~22", "a~_1_22"),
            ("~1. ", "_1"),
            ("~", "~"),
            ("~user", "~user"),
            ("a~", "a~"),
            ("a~.1", "a~.1"),
        ] {
            assert_eq!(file_name(name), expected, "{name}");
            assert_eq!(file_name(expected), expected);
            assert_eq!(Unix.file_name(name.as_bytes()), name.as_bytes());
        }
        let path = |path: &str, written| Windows.chosen_path(path.as_bytes(), written).into_owned();
        assert_eq!(path("PROGRA~1\\GIT~1/hooks\\pre-commit", 9), b"PROGRA~1\\GIT_1/hooks\\pre-commit");
    }

    #[test]
    fn windows_names_end_in_no_dot_or_space() {
        for (name, expected) in [("a.", "a"), ("a. . ", "a"), ("...", "_"), (" ", "_"), ("", "_"), ("a.b", "a.b")] {
            assert_eq!(file_name(name), expected, "{name:?}");
        }
    }

    #[test]
    fn windows_names_are_never_devices() {
        for device in [
            "con",
            "PRN",
            "Aux",
            "NUL",
            "nul.txt",
            "nul.tar.gz",
            "COM1",
            "com0",
            "LPT9.log",
            "com\u{b9}",
            "LPT\u{b3}",
            "CONIN$",
            "conout$",
            "nul .txt",
        ] {
            assert_eq!(file_name(device), format!("_{device}"));
        }
        assert_eq!(file_name("NUL. ."), "_NUL");
        assert_eq!(file_name("NUL:"), "NUL_");
        for other in ["console", "com", "com10", "lpt", "nulls", "auxiliary.txt", "com\u{b4}"] {
            assert_eq!(file_name(other), other);
        }
    }

    #[test]
    fn device_names_are_found_in_any_directory() {
        for device in ["NUL", "nul", "C:\\dir\\nul", "d/con.txt", "NUL:", "\\\\.\\COM10", "C:aux"] {
            assert!(Windows.names_device(device.as_bytes()), "{device}");
            assert!(!Unix.names_device(device.as_bytes()), "{device}");
        }
        for file in ["", "a", "nul/a", "C:\\null", "/dev/null"] {
            assert!(!Windows.names_device(file.as_bytes()), "{file}");
        }
    }

    #[test]
    fn windows_paths_are_compared_in_upper_case() {
        let is_same = |a: &str, b: &str| Windows.comparison_key(a.as_bytes()) == Windows.comparison_key(b.as_bytes());
        for (a, b) in [("Docs/a", "docs/A"), ("\u{e9}", "\u{c9}"), ("\u{3bf}\u{3c3}", "\u{39f}\u{3c2}")] {
            assert!(is_same(a, b), "{a} {b}");
            assert_ne!(Unix.comparison_key(a.as_bytes()), Unix.comparison_key(b.as_bytes()));
        }
        for (a, b) in [("\u{df}", "ss"), ("\u{df}", "SS"), ("a", "\u{e4}"), ("a/b", "ab")] {
            assert!(!is_same(a, b), "{a} {b}");
        }
        assert_eq!(Windows.comparison_key(b"a\xffb"), &b"A\xffB"[..]);
    }

    #[test]
    fn chosen_path_keeps_what_the_user_wrote() {
        let path = |path: &str, written| String::from_utf8(Windows.chosen_path(path.as_bytes(), written).into_owned());
        assert_eq!(path("C:\\out\\nul?.\\a:b/con/..", 7).unwrap(), "C:\\out\\nul_\\a_b/_con/..");
        assert_eq!(path("h/list.php?id=1", 0).unwrap(), "h/list.php_id=1");
        assert_eq!(path("nul/x", 4).unwrap(), "nul/x");
        assert_eq!(path("a", 9).unwrap(), "a");
        assert_eq!(Unix.chosen_path(b"h/list.php?id=1", 0), &b"h/list.php?id=1"[..]);
    }

    #[test]
    fn literal_directory_ends_before_the_first_placeholder() {
        for (template, unix, windows) in [
            ("a/b{host}/c", 2, 2),
            ("#1.txt", 0, 0),
            ("C:#1.txt", 0, 2),
            ("1:#1.txt", 0, 0),
            ("C:\\out\\#1", 0, 7),
            ("C:/out/x{name}", 7, 7),
            ("plain", 0, 0),
        ] {
            assert_eq!(Unix.literal_directory_length(template.as_bytes()), unix, "{template}");
            assert_eq!(Windows.literal_directory_length(template.as_bytes()), windows, "{template}");
        }
    }
}
