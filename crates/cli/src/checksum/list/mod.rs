//! Parses checksum lists (SHA256SUMS), which sites publish next to files.
//!
//! ```text
//! HEX  name            sha256sum, shasum; `*name` is the same
//! \HEX  na\nme         sha256sum, for names with a line feed or a backslash
//! SHA256 (name) = HEX  BSD, `sha256sum --tag`, openssl
//! HEX                  a list with only one checksum; also `HEX  -`
//! ```
//!
//! Other lines (comments, PGP armour, other algorithms) are ignored. A digest without a file name
//! counts only if it is the only line, so that an error page is not mistaken for a checksum list.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use super::{ChecksumAlgorithm, ExpectedDigest};

/// The length limit of a checksum list (SHA256SUMS), in bytes: 16 MiB. The largest lists that
/// distributions publish have a tenth of this length.
pub const LIST_MAX: usize = 16 << 20;

/// The reason why a checksum list (SHA256SUMS) gives no digest for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestLookupError {
    /// The text contains no line with a checksum, so that it is no checksum list.
    NotAList,
    /// The checksum list contains only MD5 sums for this file, which are not accepted.
    Md5Only,
    /// The checksum list does not contain the file.
    NotListed,
    /// The checksum list contains several digests for the file, and nothing shows which one is
    /// meant.
    Ambiguous,
}

impl fmt::Display for DigestLookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DigestLookupError::NotAList => "it is not a list of checksums",
            DigestLookupError::Md5Only => "it has only an MD5 checksum for the file, which proves nothing",
            DigestLookupError::NotListed => "the file is not in it",
            DigestLookupError::Ambiguous => {
                "it has different checksums for files of this name, and none is in the folder that the URL names"
            }
        })
    }
}

impl std::error::Error for DigestLookupError {}

/// A parsed checksum list (SHA256SUMS), which can be searched for any number of files.
///
/// Parsing sorts the lines of the text, and takes memory proportional to its length. A search needs
/// only a few comparisons.
#[derive(Debug)]
pub struct ChecksumList {
    /// The text of the checksum list. It is followed by the unescaped forms of those file names
    /// that contain escapes.
    text: Vec<u8>,
    /// The entries of the checksum list. They are sorted by the components of their file names,
    /// compared from the last to the first, so that names with the same end are neighbours.
    entries: Vec<ChecksumListEntry>,
    /// The digest of a checksum list that consists of one line without a file name; `None` for any
    /// other list.
    bare: Option<SupportedOrMd5Digest>,
}

impl ChecksumList {
    /// Parses the text of a checksum list, which has at most [`LIST_MAX`] bytes.
    #[must_use]
    pub fn new(mut text: Vec<u8>) -> ChecksumList {
        let begins = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let (mut entries, mut unescaped) = (Vec::new(), Vec::new());
        let mut lines = 0usize;
        let mut bare = None;
        for line in text[begins..].split(|byte| matches!(byte, b'\n' | b'\r')) {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") || line.starts_with(b";") {
                continue;
            }
            lines += 1;
            match parse_line(line) {
                Some(ChecksumLine { name: None, sum }) => bare = Some(sum),
                Some(ChecksumLine { name: Some(name), sum }) => {
                    let name = match name {
                        Cow::Borrowed(name) => {
                            let at = name.as_ptr().addr() - text.as_ptr().addr();
                            at..at + name.len()
                        }
                        Cow::Owned(name) => {
                            let at = text.len() + unescaped.len();
                            unescaped.extend_from_slice(&name);
                            at..at + name.len()
                        }
                    };
                    entries.push(ChecksumListEntry { name, sum });
                }
                None => {}
            }
        }
        text.append(&mut unescaped);
        entries.sort_by(|a: &ChecksumListEntry, b: &ChecksumListEntry| {
            components_from_last(&text[a.name.clone()]).cmp(components_from_last(&text[b.name.clone()]))
        });
        ChecksumList { text, entries, bare: bare.filter(|_| lines == 1) }
    }

    /// Returns the digest that the checksum list has for the file at this path, which may be a
    /// local path or the path of a URL.
    ///
    /// Names are compared component by component from the end, because the list may have been made
    /// in another directory. The entry with the most components in common with the path is used. If
    /// several entries have equally many, an entry whose name has no further components is
    /// preferred. If several are left, the strongest algorithm is preferred.
    ///
    /// # Errors
    /// [`DigestLookupError`] if the list has no digest for the file, or several digests that
    /// contradict each other.
    pub fn find(&self, path: &str) -> Result<ExpectedDigest, DigestLookupError> {
        match &self.bare {
            Some(SupportedOrMd5Digest::Known(digest)) => return Ok(digest.clone()),
            Some(SupportedOrMd5Digest::Md5) => return Err(DigestLookupError::Md5Only),
            None => {}
        }
        if self.entries.is_empty() {
            return Err(DigestLookupError::NotAList);
        }
        let mut common = self.common_components(path);
        let mut found = DigestLookupError::NotListed;
        let mut named = self.entries_ending_in(path, common);
        while common > 0 {
            // The shortest names come first.
            let whole = named.partition_point(|entry| components_from_last(self.entry_name(entry)).count() == common);
            match single_digest(&named[..whole]).or_else(|| single_digest(named)) {
                Some(Err(DigestLookupError::Md5Only)) => found = DigestLookupError::Md5Only,
                Some(said) => return said,
                None => {}
            }
            // Of names with fewer parts in common, those with further parts contradict the path.
            common -= 1;
            named = self.entries_ending_in(path, common);
            let whole = named.partition_point(|entry| components_from_last(self.entry_name(entry)).count() == common);
            named = &named[..whole];
        }
        Err(found)
    }

    /// Returns the greatest number of final path components that the file name of an entry has in
    /// common with `path`.
    fn common_components(&self, path: &str) -> usize {
        let place = self.entries.partition_point(|entry| {
            components_from_last(self.entry_name(entry)).lt(components_from_last(path.as_bytes()))
        });
        let neighbours = [place.checked_sub(1), Some(place)];
        let entries = neighbours.into_iter().flatten().filter_map(|at| self.entries.get(at));
        let common = |entry| {
            components_from_last(self.entry_name(entry))
                .zip(components_from_last(path.as_bytes()))
                .take_while(|(a, b)| a == b)
                .count()
        };
        entries.map(common).max().unwrap_or(0)
    }

    /// Returns the entries of the checksum list whose file names end in the last `common`
    /// components of `path`.
    fn entries_ending_in(&self, path: &str, common: usize) -> &[ChecksumListEntry] {
        let end = || components_from_last(path.as_bytes()).take(common);
        let from =
            self.entries.partition_point(|entry| components_from_last(self.entry_name(entry)).take(common).lt(end()));
        let rest = &self.entries[from..];
        &rest[..rest.partition_point(|entry| components_from_last(self.entry_name(entry)).take(common).eq(end()))]
    }

    fn entry_name(&self, entry: &ChecksumListEntry) -> &[u8] {
        &self.text[entry.name.clone()]
    }
}

/// Returns the components of a path (the names between slashes) from the last to the first.
fn components_from_last(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.rsplit(|&byte| byte == b'/').filter(|part| !matches!(*part, b"" | b"."))
}

/// A checksum, and the range of its file name in the field `text` of [`ChecksumList`].
#[derive(Debug)]
struct ChecksumListEntry {
    name: Range<usize>,
    sum: SupportedOrMd5Digest,
}

/// Returns the strongest digest of these entries, which all name one file. Returns an error if two
/// digests of one algorithm differ, or if all are MD5 sums. Returns `None` if there are no entries.
fn single_digest(entries: &[ChecksumListEntry]) -> Option<Result<ExpectedDigest, DigestLookupError>> {
    let mut digests = [None; ChecksumAlgorithm::ALL.len()];
    let mut has_md5 = false;
    for entry in entries {
        let SupportedOrMd5Digest::Known(digest) = &entry.sum else {
            has_md5 = true;
            continue;
        };
        match digests[digest.algorithm() as usize].replace(digest) {
            Some(other) if other != digest => return Some(Err(DigestLookupError::Ambiguous)),
            _ => {}
        }
    }
    let strongest = digests.into_iter().rev().flatten().next();
    strongest.map(|digest| Ok(digest.clone())).or(has_md5.then_some(Err(DigestLookupError::Md5Only)))
}

/// A parsed line of a checksum list: a checksum, and the name of the file that it is for.
struct ChecksumLine<'a> {
    /// The name of the file; `None` if the line has no name, or if the checksum is that of standard
    /// input.
    name: Option<Cow<'a, [u8]>>,
    sum: SupportedOrMd5Digest,
}

/// A digest of a line of a checksum list. MD5 sums are recognised, but not accepted.
#[derive(Debug)]
enum SupportedOrMd5Digest {
    Known(ExpectedDigest),
    Md5,
}

impl SupportedOrMd5Digest {
    /// Parses a digest in hexadecimal digits. Their number determines the algorithm. Returns `None`
    /// if no algorithm has digests of this length, or if a byte is not a hexadecimal digit.
    fn from_hex(hex: &[u8]) -> Option<SupportedOrMd5Digest> {
        if hex.len() == 32 && hex.iter().all(u8::is_ascii_hexdigit) {
            return Some(SupportedOrMd5Digest::Md5);
        }
        let algorithm = ChecksumAlgorithm::from_digest_length(hex.len() / 2)?;
        ExpectedDigest::from_hex(algorithm, hex).map(SupportedOrMd5Digest::Known)
    }
}

fn parse_line(line: &[u8]) -> Option<ChecksumLine<'_>> {
    parse_tagged_line(line).or_else(|| parse_plain_line(line))
}

/// Parses a line of a checksum list in the form `SHA256 (name) = HEX`. Returns `None` for any other
/// form.
fn parse_tagged_line(line: &[u8]) -> Option<ChecksumLine<'_>> {
    let (is_escaped, line) = strip_escape_mark(line);
    let open = line.iter().position(|&byte| byte == b'(')?;
    // From the end: a name may hold parentheses.
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let tag = std::str::from_utf8(line[..open].trim_ascii()).ok()?;
    let name = line.get(open + 1..close)?;
    let hex = line[close + 1..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let sum = match ChecksumAlgorithm::from_name(tag) {
        Some(algorithm) => SupportedOrMd5Digest::Known(ExpectedDigest::from_hex(algorithm, hex)?),
        None if tag.eq_ignore_ascii_case("md5") => match SupportedOrMd5Digest::from_hex(hex)? {
            SupportedOrMd5Digest::Md5 => SupportedOrMd5Digest::Md5,
            SupportedOrMd5Digest::Known(_) => return None,
        },
        None => return None,
    };
    let name = if is_escaped { unescape(name) } else { Cow::Borrowed(name) };
    Some(ChecksumLine { name: Some(name), sum })
}

/// Parses a line of a checksum list in the form `HEX  name`, `HEX *name` or `HEX`. Returns `None`
/// for any other form.
fn parse_plain_line(line: &[u8]) -> Option<ChecksumLine<'_>> {
    let (is_escaped, line) = strip_escape_mark(line);
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let sum = SupportedOrMd5Digest::from_hex(&line[..end])?;
    let name = line[end..].trim_ascii_start();
    // The mark of a file read as binary; a name that does begin with an asterisk has a second one.
    let name = name.strip_prefix(b"*").unwrap_or(name);
    let name = match name {
        b"" | b"-" => None,
        name if is_escaped => Some(unescape(name)),
        name => Some(Cow::Borrowed(name)),
    };
    Some(ChecksumLine { name, sum })
}

/// Removes the backslash at the beginning of a line, with which sha256sum marks an escaped file
/// name. Returns whether there was a backslash, and the line without it.
fn strip_escape_mark(line: &[u8]) -> (bool, &[u8]) {
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

#[cfg(test)]
mod tests;
