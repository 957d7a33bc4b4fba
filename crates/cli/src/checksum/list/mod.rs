//! Lists of checksums, as sites publish them beside files.
//!
//! ```text
//! HEX  name            sha256sum, shasum; `*name` is the same
//! \HEX  na\nme         sha256sum, for names with a line feed or a backslash
//! SHA256 (name) = HEX  BSD, `sha256sum --tag`, openssl
//! HEX                  a file of its own for one checksum; so is `HEX  -`
//! ```
//!
//! Other lines (comments, PGP armour, other algorithms) are passed over; but a bare digest counts only where nothing else
//! stands, so that an error page is no list.

use std::borrow::Cow;
use std::fmt;

use super::{Algorithm, Digest};

/// The longest list worth reading, in bytes. The largest that distributions publish have a tenth of it.
pub const LIST_MAX: usize = 16 << 20;

/// Why a list has no digest for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDigest {
    /// There is no checksum in it that haul knows.
    NotAList,
    /// It holds only MD5 sums for this file.
    Md5Only,
    /// The file is not in it.
    NotListed,
    /// It has two digests for the file and no way to tell which is meant.
    Ambiguous,
}

impl fmt::Display for NoDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoDigest::NotAList => "it is not a list of checksums",
            NoDigest::Md5Only => "it has only an MD5 checksum for the file, which proves nothing",
            NoDigest::NotListed => "the file is not in it",
            NoDigest::Ambiguous => "it has different checksums for files of the same name",
        })
    }
}

impl std::error::Error for NoDigest {}

/// The digest of a file in the text of a list.
///
/// Names are compared by their last part, as lists are made in other directories than files are fetched to; an entry whose
/// whole name is the same goes before. Of several algorithms the strongest counts. Takes time and memory linear in the text.
///
/// # Errors
/// [`NoDigest`]: nothing is guessed where the list does not say one thing.
pub fn pick(text: &[u8], file_name: &str) -> Result<Digest, NoDigest> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut found = Found::default();
    let mut lines = 0usize;
    let mut bare = None;
    for line in text.split(|byte| matches!(byte, b'\n' | b'\r')) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") || line.starts_with(b";") {
            continue;
        }
        lines += 1;
        match entry(line) {
            Some(Entry { name: None, sum }) => bare = Some(sum),
            Some(Entry { name: Some(name), sum }) => found.add(&name, sum, file_name.as_bytes()),
            None => {}
        }
    }
    match bare {
        Some(Sum::Known(digest)) if lines == 1 => return Ok(digest),
        Some(Sum::Md5) if lines == 1 => return Err(NoDigest::Md5Only),
        _ => {}
    }
    found.best()
}

/// A line that holds a checksum.
struct Entry<'a> {
    /// `None` if there is none, or if it is standard input.
    name: Option<Cow<'a, [u8]>>,
    sum: Sum,
}

enum Sum {
    Known(Digest),
    Md5,
}

impl Sum {
    /// Digits without an algorithm: their number tells.
    fn from_hex(hex: &[u8]) -> Option<Sum> {
        if hex.len() == 32 && hex.iter().all(u8::is_ascii_hexdigit) {
            return Some(Sum::Md5);
        }
        let algorithm = Algorithm::of_length(hex.len() / 2)?;
        Digest::from_hex(algorithm, hex).map(Sum::Known)
    }
}

fn entry(line: &[u8]) -> Option<Entry<'_>> {
    tagged(line).or_else(|| plain(line))
}

/// `SHA256 (name) = HEX`.
fn tagged(line: &[u8]) -> Option<Entry<'_>> {
    let (is_escaped, line) = escaped(line);
    let open = line.iter().position(|&byte| byte == b'(')?;
    // From the end: a name may hold parentheses.
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let tag = std::str::from_utf8(line[..open].trim_ascii()).ok()?;
    let name = line.get(open + 1..close)?;
    let hex = line[close + 1..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let sum = match Algorithm::named(tag) {
        Some(algorithm) => Sum::Known(Digest::from_hex(algorithm, hex)?),
        None if tag.eq_ignore_ascii_case("md5") => match Sum::from_hex(hex)? {
            Sum::Md5 => Sum::Md5,
            Sum::Known(_) => return None,
        },
        None => return None,
    };
    let name = if is_escaped { unescape(name) } else { Cow::Borrowed(name) };
    Some(Entry { name: Some(name), sum })
}

/// `HEX  name`, `HEX *name`, `HEX`.
fn plain(line: &[u8]) -> Option<Entry<'_>> {
    let (is_escaped, line) = escaped(line);
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let sum = Sum::from_hex(&line[..end])?;
    let name = line[end..].trim_ascii_start();
    // The mark of a file read as binary; a name that does begin with an asterisk has a second one.
    let name = name.strip_prefix(b"*").unwrap_or(name);
    let name = match name {
        b"" | b"-" => None,
        name if is_escaped => Some(unescape(name)),
        name => Some(Cow::Borrowed(name)),
    };
    Some(Entry { name, sum })
}

/// A backslash in front of a line says that its name is escaped.
fn escaped(line: &[u8]) -> (bool, &[u8]) {
    match line.strip_prefix(b"\\") {
        Some(rest) => (true, rest),
        None => (false, line),
    }
}

fn unescape(name: &[u8]) -> Cow<'_, [u8]> {
    let mut bytes = name.iter().copied();
    let mut plain = Vec::with_capacity(name.len());
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(other) => other,
                None => b'\\',
            },
            byte => byte,
        });
    }
    Cow::Owned(plain)
}

/// A list's entries for one file.
#[derive(Default)]
struct Found {
    /// Under exactly the name asked for, by algorithm.
    exact: Said,
    /// Under a name whose last part is that of the name asked for.
    last_part: Said,
    entries: bool,
}

/// One digest an algorithm, or that they differ.
#[derive(Default)]
struct Said {
    digests: [Option<Result<Digest, NoDigest>>; Algorithm::ALL.len()],
    md5: bool,
}

impl Found {
    fn add(&mut self, name: &[u8], sum: Sum, wanted: &[u8]) {
        self.entries = true;
        let name = name.strip_prefix(b"./").unwrap_or(name);
        if name == wanted {
            self.exact.add(sum);
        } else if last_part(name) == last_part(wanted) {
            self.last_part.add(sum);
        }
    }

    fn best(self) -> Result<Digest, NoDigest> {
        let none = if self.entries { NoDigest::NotListed } else { NoDigest::NotAList };
        self.exact.best().or_else(|| self.last_part.best()).unwrap_or(Err(none))
    }
}

impl Said {
    fn add(&mut self, sum: Sum) {
        let Sum::Known(digest) = sum else {
            self.md5 = true;
            return;
        };
        let place = &mut self.digests[digest.algorithm() as usize];
        *place = Some(match place.take() {
            None => Ok(digest),
            Some(Ok(other)) if other == digest => Ok(other),
            Some(_) => Err(NoDigest::Ambiguous),
        });
    }

    fn best(self) -> Option<Result<Digest, NoDigest>> {
        let md5 = self.md5.then_some(Err(NoDigest::Md5Only));
        self.digests.into_iter().rev().flatten().next().or(md5)
    }
}

fn last_part(name: &[u8]) -> &[u8] {
    name.rsplit(|&byte| byte == b'/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests;
