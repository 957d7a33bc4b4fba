//! Reads the text of a config file (`-K`) as curl does, with one option per line.
//!
//! A line is `name = value`, `name: value`, `name value` or `-x value`; `#` begins a comment line.
//! In a value in double quotes, the escapes are `\\ \" \t \n \r \v`. [`ConfigFileReader`] returns
//! one [`ConfigFileEntry`] at a time, which borrows from its buffer: a file of millions of lines
//! needs no allocation per line, and the options of a FIFO are read as they arrive.
//!
//! ```
//! use haul_cli::config_file::ConfigFileReader;
//!
//! let text = b"# pages\nurl = \"http://example.com/a b\"\n-o out.html\n";
//! let mut reader = ConfigFileReader::new(&text[..]);
//! let entry = reader.next_entry().unwrap().unwrap();
//! assert_eq!((entry.option, entry.value), (&b"url"[..], Some(&b"http://example.com/a b"[..])));
//! let entry = reader.next_entry().unwrap().unwrap();
//! assert_eq!((entry.option, entry.value, entry.line), (&b"-o"[..], Some(&b"out.html"[..]), 3));
//! assert!(reader.next_entry().unwrap().is_none());
//! ```
//!
//! The meaning of the options is not part of this module, but of [`crate::parse`].

use std::fmt;
use std::io::{self, Read};

/// The length limit of a config file's line, 10 MiB, as in curl. This limit also bounds the buffer
/// of a reader.
pub const LINE_MAX: usize = 10 * 1024 * 1024;

/// The maximum nesting depth of config files: a config file may name another with `-K`. The limit
/// is that of curl.
pub const DEPTH_MAX: usize = 5;

/// The initial size, in bytes, of the buffer of a config file's reader. The buffer doubles for a
/// longer line.
const BUFFER_SIZE: usize = 64 * 1024;

/// One option of a config file, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigFileEntry<'a> {
    /// The option as it is written in the line, with or without dashes.
    pub option: &'a [u8],
    /// The value of the option, without its quotes and with its escapes decoded; `None` if the line
    /// has no value.
    pub value: Option<&'a [u8]>,
    /// The number of the line in the config file, from 1.
    pub line: u64,
    /// The mistake about which the user is warned. `None` if the line has no mistake.
    pub oddity: Option<ConfigLineWarning>,
}

/// A mistake in a line of a config file. The line is accepted with a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigLineWarning {
    /// An unquoted value contains a blank. The text after the blank is ignored.
    UnquotedBlank,
    /// A value in double quotes has no closing quote. The value ends with the line.
    UnclosedQuote,
    /// The value begins with a single quote. The quote is part of the value, because only double
    /// quotes enclose a value.
    SingleQuote,
}

impl fmt::Display for ConfigLineWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConfigLineWarning::UnquotedBlank => {
                "uses argument with unquoted whitespace. This may cause side-effects. Consider double quotes."
            }
            ConfigLineWarning::UnclosedQuote => "has a quoted value without its closing quote",
            ConfigLineWarning::SingleQuote => {
                "uses argument with leading single quote. It is probably a mistake. Consider double quotes."
            }
        })
    }
}

/// The error that ends the reading of a config file.
#[derive(Debug)]
pub enum ConfigFileError {
    /// The file cannot be read: a system call failed.
    Io(io::Error),
    /// The line with this number is longer than [`LINE_MAX`].
    LineTooLong(u64),
    /// The line with this number holds a NUL byte.
    Nul(u64),
}

/// Reads the options (entries) of one config file (`-K`), one at a time.
#[derive(Debug)]
pub struct ConfigFileReader<R> {
    source: R,
    buffer: Vec<u8>,
    /// The offset in `buffer` of the first byte after the options that were already returned.
    start: usize,
    end: usize,
    at_end: bool,
    line: u64,
    unquoted: Vec<u8>,
}

impl<R: Read> ConfigFileReader<R> {
    /// Creates a reader that parses the bytes of a config file from `source`.
    pub fn new(source: R) -> Self {
        ConfigFileReader { source, buffer: Vec::new(), start: 0, end: 0, at_end: false, line: 0, unquoted: Vec::new() }
    }

    /// Returns the next option of the config file, or `None` at the end of the file.
    pub fn next_entry(&mut self) -> Result<Option<ConfigFileEntry<'_>>, ConfigFileError> {
        // Empty lines are skipped on ranges, not slices: a slice would be borrowed over the loop.
        let (from, to) = loop {
            let Some((from, to)) = self.next_line()? else {
                return Ok(None);
            };
            let line = &self.buffer[from..to];
            if line.contains(&0) {
                return Err(ConfigFileError::Nul(self.line));
            }
            // Some editors write a byte order mark, which would belong to the first option's name.
            let mark = if self.line == 1 && line.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
            let blank = mark + leading_blanks(&line[mark..]);
            // curl skips `/` and `*` as well, for comments in the manner of C.
            if !matches!(line.get(blank), None | Some(b'#' | b'/' | b'*')) {
                break (from + blank, to);
            }
        };
        Ok(Some(split(&self.buffer[from..to], self.line, &mut self.unquoted)))
    }

    /// Returns the range in the buffer of the next line, without its newline. Returns `None` at the
    /// end of the config file.
    fn next_line(&mut self) -> Result<Option<(usize, usize)>, ConfigFileError> {
        let mut searched = 0;
        loop {
            let unread = &self.buffer[self.start..self.end];
            if let Some(at) = memchr::memchr(b'\n', &unread[searched..]) {
                let to = self.start + searched + at;
                return self.finish_line(to, to + 1).map(Some);
            }
            searched = unread.len();
            if searched > LINE_MAX {
                return Err(ConfigFileError::LineTooLong(self.line + 1));
            }
            if self.at_end {
                return match searched {
                    0 => Ok(None),
                    _ => self.finish_line(self.end, self.end).map(Some),
                };
            }
            self.fill_buffer().map_err(ConfigFileError::Io)?;
        }
    }

    fn finish_line(&mut self, to: usize, next: usize) -> Result<(usize, usize), ConfigFileError> {
        let from = std::mem::replace(&mut self.start, next);
        self.line += 1;
        match to - from {
            0..=LINE_MAX => Ok((from, to)),
            _ => Err(ConfigFileError::LineTooLong(self.line)),
        }
    }

    /// Reads more bytes of the config file into the buffer. First moves the bytes that are not
    /// parsed yet to the front of the buffer.
    fn fill_buffer(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize((self.end * 2).max(BUFFER_SIZE), 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    self.at_end = count == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Splits a line of a config file into its option and value, as curl does. If the value stands in
/// double quotes, `unquoted` receives it without quotes and escapes.
fn split<'a>(line: &'a [u8], number: u64, unquoted: &'a mut Vec<u8>) -> ConfigFileEntry<'a> {
    let dashed = line.first() == Some(&b'-');
    let separates = |byte: &u8| is_blank(byte) || (!dashed && matches!(byte, b'=' | b':'));
    let name = line.iter().position(separates).unwrap_or(line.len());
    let (option, rest) = line.split_at(name);
    let rest = &rest[rest.iter().take_while(|&byte| separates(byte)).count()..];
    let entry = |value, oddity| ConfigFileEntry { option, value, line: number, oddity };
    if let Some(quoted) = rest.strip_prefix(b"\"") {
        let closed = unquote(quoted, unquoted);
        return entry(Some(&unquoted[..]), (!closed).then_some(ConfigLineWarning::UnclosedQuote));
    }
    let length = rest.iter().position(is_blank).unwrap_or(rest.len());
    let (value, rest) = rest.split_at(length);
    let oddity = match rest.get(leading_blanks(rest)) {
        _ if value.starts_with(b"'") => Some(ConfigLineWarning::SingleQuote),
        None | Some(b'#') => None,
        Some(_) => Some(ConfigLineWarning::UnquotedBlank),
    };
    entry((!value.is_empty()).then_some(value), oddity)
}

/// Decodes a value of a config file, up to its closing quote, into `into`. Returns `false` if that
/// quote is missing. Text after the quote is ignored, as in curl.
fn unquote(quoted: &[u8], into: &mut Vec<u8>) -> bool {
    into.clear();
    let mut rest = quoted;
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        into.extend_from_slice(&rest[..at]);
        if rest[at] == b'"' {
            return true;
        }
        let Some(&escaped) = rest.get(at + 1) else {
            return false;
        };
        into.push(match escaped {
            b't' => b'\t',
            b'n' => b'\n',
            b'r' => b'\r',
            b'v' => 0x0b,
            other => other,
        });
        rest = &rest[at + 2..];
    }
    into.extend_from_slice(rest);
    false
}

fn leading_blanks(line: &[u8]) -> usize {
    line.iter().take_while(|&byte| is_blank(byte)).count()
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

#[cfg(test)]
mod tests {
    use super::*;

    type OwnedConfigEntry = (Vec<u8>, Option<Vec<u8>>, u64, Option<ConfigLineWarning>);

    fn entries(source: impl Read) -> Result<Vec<OwnedConfigEntry>, ConfigFileError> {
        let mut reader = ConfigFileReader::new(source);
        let mut all = Vec::new();
        while let Some(entry) = reader.next_entry()? {
            let value = entry.value.map(<[u8]>::to_vec);
            all.push((entry.option.to_vec(), value, entry.line, entry.oddity));
        }
        Ok(all)
    }

    fn pairs(text: &[u8]) -> Vec<(String, Option<String>)> {
        let text_of = |bytes: Vec<u8>| String::from_utf8(bytes).expect("test text is UTF-8");
        let all = entries(text).expect("test text is readable");
        all.into_iter().map(|(o, v, ..)| (text_of(o), v.map(text_of))).collect()
    }

    fn pair(option: &str, value: &str) -> (String, Option<String>) {
        (option.to_owned(), Some(value.to_owned()))
    }

    #[test]
    fn config_accepts_every_separator_of_curl() {
        let text = b"url = a\nurl=a\nurl: a\nurl a\n  url\t:= a \nurl a # note\nurl a\r\n";
        assert_eq!(pairs(text), vec![pair("url", "a"); 7]);
    }

    #[test]
    fn dashed_config_options_keep_their_equals_sign() {
        assert_eq!(
            pairs(b"-o =x\n--max-time 5\n--stats=json\n-sS\n-H \"A: b\"\n"),
            [
                pair("-o", "=x"),
                pair("--max-time", "5"),
                ("--stats=json".to_owned(), None),
                ("-sS".to_owned(), None),
                pair("-H", "A: b"),
            ],
        );
    }

    #[test]
    fn config_values_are_unquoted_and_unescaped() {
        let text = br#"data = "a\\b\"c\td\ne\rf\vg\qh" ignored"#;
        assert_eq!(pairs(text), [pair("data", "a\\b\"c\td\ne\rf\x0bgqh")]);
        assert_eq!(pairs(b"data = \"\""), [pair("data", "")]);
        assert_eq!(pairs(b"data = a\"b"), [pair("data", "a\"b")]);
    }

    #[test]
    fn suspicious_config_lines_have_a_warning() {
        let all = entries(&b"url = a b\nurl = \"a b\nurl = \"a\\"[..]).expect("readable");
        assert_eq!(all[0].3, Some(ConfigLineWarning::UnquotedBlank));
        assert_eq!(all[1].3, Some(ConfigLineWarning::UnclosedQuote));
        assert_eq!(all[1].1.as_deref(), Some(&b"a b"[..]));
        assert_eq!(all[2].3, Some(ConfigLineWarning::UnclosedQuote));
        assert_eq!(all[2].1.as_deref(), Some(&b"a"[..]));
    }

    #[test]
    fn line_numbers_count_comments_and_empty_lines() {
        let all = entries(&b"\n# x\n   # y\n/* c */\n\r\nsilent\n\n"[..]).expect("readable");
        assert_eq!(all, [(b"silent".to_vec(), None, 6, None)]);
    }

    #[test]
    fn config_byte_order_mark_is_skipped_at_the_start_only() {
        assert_eq!(pairs("\u{feff}url = a\n".as_bytes()), [pair("url", "a")]);
        assert_eq!(pairs("\u{feff}# x\n\u{feff}url = a\n".as_bytes()), [pair("\u{feff}url", "a")]);
    }

    #[test]
    fn config_without_final_newline_is_complete() {
        assert_eq!(pairs(b"url = a\nurl = b"), [pair("url", "a"), pair("url", "b")]);
        assert_eq!(pairs(b""), []);
        assert_eq!(pairs(b"\n"), []);
    }

    /// A reader for tests that returns at most `step` bytes of `text` for each read, and fails with
    /// `EINTR` before each of these reads.
    struct ShortReader<'a> {
        text: &'a [u8],
        step: usize,
        interrupted: bool,
    }

    impl Read for ShortReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.interrupted = !self.interrupted;
            if self.interrupted {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let count = self.step.min(buffer.len());
            (&mut self.text).take(count as u64).read(buffer)
        }
    }

    #[test]
    fn config_entries_do_not_depend_on_read_sizes() {
        let text = b"# c\nurl = \"http://h/\\\"a\\\\\"\r\n-o out put\n\n--next\nurl: \"unclosed\nlast = x";
        let whole = entries(&text[..]).expect("readable");
        assert_eq!(whole.len(), 5);
        for step in 1..text.len() {
            let source = ShortReader { text, step, interrupted: false };
            assert_eq!(entries(source).expect("readable"), whole, "step {step}");
        }
    }

    #[test]
    fn config_lines_are_limited_in_length() {
        let mut text = b"url = ".to_vec();
        text.resize(LINE_MAX, b'x');
        text.extend_from_slice(b"\nurl = y");
        assert_eq!(entries(&text[..]).expect("within the limit").len(), 2);
        for end in [&b""[..], b"\n"] {
            let mut text = b"silent\n".to_vec();
            text.resize(text.len() + LINE_MAX + 1, b'x');
            text.extend_from_slice(end);
            assert!(matches!(entries(&text[..]), Err(ConfigFileError::LineTooLong(2))));
        }
        assert!(matches!(entries(io::repeat(b'x')), Err(ConfigFileError::LineTooLong(1))));
    }

    #[test]
    fn config_line_with_nul_is_refused() {
        assert!(matches!(entries(&b"silent\nurl = a\0b\n"[..]), Err(ConfigFileError::Nul(2))));
        assert!(matches!(entries(&b"# \0"[..]), Err(ConfigFileError::Nul(1))));
    }

    #[test]
    fn config_reader_survives_arbitrary_bytes() {
        // A xorshift over the bytes that mean something here.
        let alphabet = b"ab-=:\"\\ \t\r\n#/\xff";
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..2_000 {
            let mut text = Vec::new();
            for _ in 0..40 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                text.push(alphabet[(state % alphabet.len() as u64) as usize]);
            }
            for (option, ..) in entries(&text[..]).expect("no NUL and short") {
                assert!(!option.iter().any(is_blank));
            }
        }
    }
}
