//! The netrc file: passwords by host, in ftp(1)'s format as curl reads it.
//!
//! ```
//! use haul_policy::netrc::find;
//!
//! let text = br#"
//! # what is what
//! machine a.example login ann password "with \"quotes\" and blanks"
//! machine b.example
//!     login bob
//!     password secret
//! macdef init
//! machine evil.example login x password y
//!
//! default login anonymous password me@
//! "#;
//! let a = find(text, "A.example", None)?.unwrap();
//! assert_eq!(a.password.unwrap(), b"with \"quotes\" and blanks");
//! assert_eq!(find(text, "www.b.example", None)?.unwrap().login.unwrap(), b"anonymous");
//! assert_eq!(find(text, "evil.example", None)?.unwrap().login.unwrap(), b"anonymous");
//! assert!(find(text, "b.example", Some(b"eve"))?.is_none());
//! # Ok::<(), haul_policy::netrc::NetrcError>(())
//! ```
//!
//! Words are separated by white space; line ends matter only to comments and macros. A `#` in the
//! position of a keyword begins a comment. A word that begins with `"` ends at the next `"`;
//! inside, `\n`, `\r`, `\t` are control characters, and `\` makes any other character literal.
//! `macdef` and its macro end at the first blank line. Unknown words are skipped, and so is a last
//! keyword without a value.
//!
//! The host must equal the machine's name exactly, except for case: an entry for `example.com` does
//! not match `www.example.com`, nor `example.com.` with a dot. A value that an entry lacks is not
//! taken from another entry (CVE-2024-11053, CVE-2025-0167).

use crate::byte_order_mark::without_byte_order_mark;
use core::fmt;

/// The largest length of a word of a netrc file in bytes, like curl's limit.
pub const MAX_WORD: usize = 4096;

/// An entry of a netrc file: the credentials for a host. `Debug` prints no secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct NetrcEntry {
    /// The user name of the entry. `None` if the entry has no user name.
    pub login: Option<Vec<u8>>,
    /// The password of the entry. `None` if the entry has no password; use an empty password then.
    pub password: Option<Vec<u8>>,
    /// The account that some FTP servers require; `None` if the entry has no account. Unused in
    /// HTTP.
    pub account: Option<Vec<u8>>,
    /// True if this is the file's `default` entry, which is used for any host.
    pub is_default: bool,
}

impl fmt::Debug for NetrcEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetrcEntry").field("is_default", &self.is_default).finish_non_exhaustive()
    }
}

/// The reason why a text is not a netrc file. Each variant contains a line number, counted from 1.
/// curl's exit code is 26.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetrcError {
    /// A quoted word of the file has no closing quote.
    OpenQuote {
        /// The number of the line with the opening quote, counted from 1.
        line: usize,
    },
    /// A word of the file has more than [`MAX_WORD`] bytes.
    TooLong {
        /// The number of the line with the word that is too long, counted from 1.
        line: usize,
    },
}

impl NetrcError {
    /// Returns the exit code that curl has for this error: 26.
    pub fn exit_code(&self) -> u8 {
        26
    }
}

impl fmt::Display for NetrcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetrcError::OpenQuote { line } => write!(f, "netrc line {line}: a quote without its end"),
            NetrcError::TooLong { line } => write!(f, "netrc line {line}: a word is too long"),
        }
    }
}

impl core::error::Error for NetrcError {}

/// Returns the first matching entry for `host`; `None` if no entry matches. Spell the host as in
/// [`Target::host_text`](crate::Target::host_text). The `default` entry matches every host that no
/// earlier entry matches.
///
/// With a `login` (from a URL), an entry matches if it has that login. An entry that has a password
/// and no login matches any login.
pub fn find(text: &[u8], host: &str, login: Option<&[u8]>) -> Result<Option<NetrcEntry>, NetrcError> {
    let mut words = NetrcWords { text: without_byte_order_mark(text), at: 0, line: 1 };
    let mut current: Option<NetrcEntry> = None;
    let fits = |entry: &NetrcEntry| {
        login.is_none_or(|login| match &entry.login {
            Some(own) => own == login,
            None => entry.password.is_some(),
        })
    };
    while let Some(word) = words.next(ExpectedNetrcWord::Keyword)? {
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword.as_bytes());
        let begins_entry = is("machine") || is("default");
        if begins_entry && let Some(entry) = current.take().filter(fits) {
            return Ok(Some(entry));
        }
        if is("machine") {
            let name = words.next(ExpectedNetrcWord::Value)?;
            let is_host = name.is_some_and(|name| name.eq_ignore_ascii_case(host.as_bytes()));
            current = is_host.then(NetrcEntry::default);
        } else if is("default") {
            current = Some(NetrcEntry { is_default: true, ..NetrcEntry::default() });
        } else if is("macdef") {
            words.skip_macro();
        } else if is("login") || is("user") {
            let value = words.next(ExpectedNetrcWord::Value)?;
            set_value(&mut current, |entry| &mut entry.login, value);
        } else if is("password") || is("passwd") {
            let value = words.next(ExpectedNetrcWord::Value)?;
            set_value(&mut current, |entry| &mut entry.password, value);
        } else if is("account") {
            let value = words.next(ExpectedNetrcWord::Value)?;
            set_value(&mut current, |entry| &mut entry.account, value);
        }
    }
    Ok(current.filter(fits))
}

/// Checks the syntax of a whole netrc file. [`find`] checks only the entries up to the first match.
pub fn check_syntax(text: &[u8]) -> Result<(), NetrcError> {
    let mut words = NetrcWords { text: without_byte_order_mark(text), at: 0, line: 1 };
    while let Some(word) = words.next(ExpectedNetrcWord::Keyword)? {
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword.as_bytes());
        if is("macdef") {
            words.skip_macro();
        } else if ["machine", "login", "user", "password", "passwd", "account"].iter().any(|keyword| is(keyword)) {
            words.next(ExpectedNetrcWord::Value)?;
        }
    }
    Ok(())
}

/// Sets a value of the current entry, if there is one. If a keyword is repeated in an entry, its
/// last value counts, as in curl; no specification defines repetitions.
fn set_value(
    current: &mut Option<NetrcEntry>,
    field: impl FnOnce(&mut NetrcEntry) -> &mut Option<Vec<u8>>,
    value: Option<Vec<u8>>,
) {
    if let (Some(entry), Some(value)) = (current, value) {
        *field(entry) = Some(value);
    }
}

/// The kind of word that the parser of a netrc file expects next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpectedNetrcWord {
    /// A keyword such as `machine`, or a comment.
    Keyword,
    /// The value of a keyword. A password may begin with `#`.
    Value,
}

struct NetrcWords<'t> {
    text: &'t [u8],
    at: usize,
    line: usize,
}

impl NetrcWords<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next_byte(&mut self) -> Option<u8> {
        let b = self.peek()?;
        self.at += 1;
        self.line += usize::from(b == b'\n');
        Some(b)
    }

    fn skip_while(&mut self, mut skip: impl FnMut(u8) -> bool) {
        while self.peek().is_some_and(&mut skip) {
            self.next_byte();
        }
    }

    fn next(&mut self, place: ExpectedNetrcWord) -> Result<Option<Vec<u8>>, NetrcError> {
        loop {
            self.skip_while(|b| b.is_ascii_whitespace());
            match self.peek() {
                None => return Ok(None),
                Some(b'#') if place == ExpectedNetrcWord::Keyword => self.skip_while(|b| b != b'\n'),
                Some(b'"') => return self.parse_quoted().map(Some),
                Some(_) => break,
            }
        }
        let (start, line) = (self.at, self.line);
        self.skip_while(|b| !b.is_ascii_whitespace());
        let word = &self.text[start..self.at];
        if word.len() > MAX_WORD { Err(NetrcError::TooLong { line }) } else { Ok(Some(word.to_vec())) }
    }

    fn parse_quoted(&mut self) -> Result<Vec<u8>, NetrcError> {
        let line = self.line;
        self.next_byte();
        let mut word = Vec::new();
        loop {
            let b = match self.next_byte().ok_or(NetrcError::OpenQuote { line })? {
                b'"' => return Ok(word),
                b'\\' => match self.next_byte().ok_or(NetrcError::OpenQuote { line })? {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => other,
                },
                // A quote that spans lines was left open by mistake.
                b'\n' => return Err(NetrcError::OpenQuote { line }),
                b => b,
            };
            if word.len() == MAX_WORD {
                return Err(NetrcError::TooLong { line });
            }
            word.push(b);
        }
    }

    /// Skips the body of a macro: up to the first blank line after the line of `macdef`.
    fn skip_macro(&mut self) {
        self.skip_while(|b| b != b'\n');
        self.next_byte();
        while self.peek().is_some() {
            let start = self.at;
            self.skip_while(|b| b != b'\n');
            let is_blank = self.text[start..self.at].trim_ascii().is_empty();
            self.next_byte();
            if is_blank {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(text: &str, host: &str, login: Option<&str>) -> Option<(String, String)> {
        let entry = find(text.as_bytes(), host, login.map(str::as_bytes)).unwrap()?;
        let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes.unwrap_or_default()).unwrap();
        Some((text(entry.login), text(entry.password)))
    }

    fn some(login: &str, password: &str) -> Option<(String, String)> {
        Some((login.to_owned(), password.to_owned()))
    }

    #[test]
    fn netrc_syntax_is_parsed() {
        for text in [
            "machine h login l password p",
            "machine h\nlogin l\npassword p\n",
            "MACHINE h\r\n\tLogin l\r\n\tPASSWORD p\r\n",
            "machine h password p login l",
            "machine h account a login l password p",
            "machine h user l passwd p",
            "machine x login h password machine\nmachine h login l password p",
            "nonsense machine h login l foo password p",
            "# machine h login x password y\nmachine h # login z\nlogin l password p",
            "machine \"h\" login \"l\" password \"p\"",
            "macdef m\nmachine h login x password y\n\nmachine h login l password p",
            "macdef m\n  \t\nmachine h login l password p",
            "machine h login l macdef m\npassword x\n\npassword p",
            "machine h login l password p\nmachine h login l2 password p2",
            "machine h login l2 password p2 login l password p",
            "machine i login x password y\ndefault login l password p",
        ] {
            assert_eq!(pair(text, "h", None), some("l", "p"), "{text:?}");
            assert_eq!(pair(text, "H", Some("l")), some("l", "p"), "{text:?}");
        }
        assert_eq!(pair(r#"machine h login "a b" password "\"\\\n\r\t\x""#, "h", None), some("a b", "\"\\\n\r\tx"));
        assert_eq!(pair("machine h login # password #p", "h", None), some("#", "#p"));
        assert_eq!(pair("machine h login a\"b password c\"", "h", None), some("a\"b", "c\""));
    }

    #[test]
    fn netrc_byte_order_mark_hides_no_entry() {
        assert_eq!(pair("\u{feff}machine h login l password p\n", "h", None), some("l", "p"));
    }

    #[test]
    fn netrc_entries_match_exact_hosts_only() {
        let text = "machine example.com login l password p\n";
        for host in ["www.example.com", "example.com.", "example.co", "xample.com", "com", ""] {
            assert_eq!(pair(text, host, None), None, "{host}");
        }
        assert_eq!(pair("machine ::1 login l password p", "::1", None), some("l", "p"));
    }

    #[test]
    fn missing_netrc_value_is_not_taken_from_others() {
        // CVE-2024-11053 and CVE-2025-0167.
        let text = "machine a login l password p\nmachine b login m\nmachine c\ndefault login d\n";
        assert_eq!(pair(text, "b", None), some("m", ""));
        assert_eq!(pair(text, "c", None), some("", ""));
        assert_eq!(pair(text, "d", None), some("d", ""));
        assert_eq!(pair("machine a login l password p\ndefault\n", "b", None), some("", ""));
        assert_eq!(pair("", "a", None), None);
    }

    #[test]
    fn login_selects_a_netrc_entry() {
        let text = "machine h login a password 1\nmachine h login b password 2\nmachine h password 3\ndefault login c password 4";
        assert_eq!(pair(text, "h", Some("a")), some("a", "1"));
        assert_eq!(pair(text, "h", Some("b")), some("b", "2"));
        assert_eq!(pair(text, "h", Some("A")), some("", "3"));
        assert_eq!(pair("machine h login a password 1\ndefault login c password 4", "h", Some("c")), some("c", "4"));
        assert_eq!(pair("machine h login a password 1", "h", Some("A")), None);
        // A password without a login is for any login.
        assert_eq!(pair(text, "h", Some("d")), some("", "3"));
        assert_eq!(pair("machine h password 0 login x\nmachine h password 3", "h", Some("a")), some("", "3"));
        assert_eq!(pair("machine h account x", "h", Some("a")), None);
    }

    #[test]
    fn netrc_keyword_without_value_is_ignored() {
        assert_eq!(pair("machine h login l password", "h", None), some("l", ""));
        assert_eq!(pair("machine h login", "h", None), some("", ""));
        assert_eq!(pair("machine h login l password p\nmachine", "h", None), some("l", "p"));
        assert_eq!(pair("machine", "h", None), None);
    }

    #[test]
    fn netrc_errors_name_the_line_and_no_secret() {
        let long = format!("machine h\npassword {}", "x".repeat(MAX_WORD + 1));
        let long_quoted = format!("machine h\npassword \"{}\"", "x".repeat(MAX_WORD + 1));
        for (text, error) in [
            ("machine h\npassword \"hunter2", NetrcError::OpenQuote { line: 2 }),
            ("machine h\npassword \"hunter2\n\"", NetrcError::OpenQuote { line: 2 }),
            ("machine h\npassword \"hunter2\\", NetrcError::OpenQuote { line: 2 }),
            (&long, NetrcError::TooLong { line: 2 }),
            (&long_quoted, NetrcError::TooLong { line: 2 }),
        ] {
            assert_eq!(find(text.as_bytes(), "h", None), Err(error));
        }
        let entry = find(b"machine h login ann password hunter2", "h", None);
        assert!(!format!("{entry:?}").contains("hunter2"));
    }

    #[test]
    fn truncated_netrc_never_panics() {
        let text =
            b"machine a login l password \"p\\\"q\"\nmacdef m\nx\n\nmachine h login m password n # c\ndefault login d";
        for end in 0..=text.len() {
            for host in ["a", "h", "z"] {
                let _ = find(&text[..end], host, Some(b"m"));
                if let Ok(Some(entry)) = find(&text[..end], host, None) {
                    // A value that is cut off belongs to the host it follows, never to another.
                    let login = entry.login.unwrap_or_default();
                    let own = match (host, entry.is_default) {
                        (_, true) => "d",
                        ("a", _) => "l",
                        _ => "m",
                    };
                    assert!(login.is_empty() || login == own.as_bytes(), "{end} {host}");
                }
            }
        }
    }

    #[test]
    fn macro_body_ends_at_a_blank_line() {
        let text = "macdef m machine a login x\nmachine b login x password y\n \nmachine c login x password y\n";
        assert_eq!(pair(text, "a", None), None);
        assert_eq!(pair(text, "b", None), None);
        assert_eq!(pair(text, "c", None), some("x", "y"));
    }

    #[test]
    fn word_of_the_largest_length_is_accepted() {
        let word = "w".repeat(MAX_WORD);
        assert_eq!(pair(&format!("machine h login l password {word}"), "h", None), some("l", &word));
        assert_eq!(pair(&format!("machine h login l password \"{word}\""), "h", None), some("l", &word));
        for text in [format!("machine h password {word}w"), format!("machine h password \"{word}w\"")] {
            assert_eq!(find(text.as_bytes(), "h", None), Err(NetrcError::TooLong { line: 1 }));
        }
    }

    #[test]
    fn syntax_check_reads_the_whole_file() {
        assert_eq!(check_syntax(b"machine h login \"l\" macdef m\n\"\n\nmachine i password \"#\""), Ok(()));
        assert_eq!(check_syntax(b"default macdef m\n\"\n\n"), Ok(()), "`default` has no value");
        assert_eq!(check_syntax(b"machine h login l\nmachine i password \"p"), Err(NetrcError::OpenQuote { line: 2 }));
        let long = format!("machine h password {}", "w".repeat(MAX_WORD + 1));
        assert_eq!(check_syntax(long.as_bytes()), Err(NetrcError::TooLong { line: 1 }));
    }

    #[test]
    fn debug_of_an_entry_shows_no_secret() {
        let entry = find(b"default login me password word", "h", None).unwrap().unwrap();
        let text = format!("{entry:?}");
        assert!(text.contains("is_default: true") && !text.contains("word") && !text.contains("me\""), "{text}");
    }
}
