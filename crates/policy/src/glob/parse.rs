//! The grammar of globs.

use core::net::Ipv6Addr;

use super::{GlobError, GlobFlaw, Piece};

/// Largest number and step in a range: curl's `curl_off_t`. Also keeps `from + index * step` within a `u64`.
const MAX_NUMBER: u64 = i64::MAX as u64;

pub(super) fn pieces(text: &str) -> Result<Vec<Piece>, GlobError> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let (piece, used) = match c {
            '[' if literal_bracket(rest) > 0 => {
                let len = literal_bracket(rest);
                plain.push_str(&rest[..len]);
                at += len;
                continue;
            }
            '[' => range(rest).map_err(|(flaw, offset)| error(flaw, at + offset))?,
            '{' => set(rest).map_err(|(flaw, offset)| error(flaw, at + offset))?,
            ']' | '}' => return Err(error(GlobFlaw::UnmatchedClose, at)),
            _ => {
                let escaped = rest.strip_prefix('\\').and_then(|r| r.chars().next()).filter(|c| "[]{}".contains(*c));
                plain.push(escaped.unwrap_or(c));
                at += c.len_utf8() + escaped.map_or(0, char::len_utf8);
                continue;
            }
        };
        if !plain.is_empty() {
            pieces.push(Piece::Text(core::mem::take(&mut plain)));
        }
        pieces.push(piece);
        at += used;
    }
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

fn error(flaw: GlobFlaw, offset: usize) -> GlobError {
    GlobError { flaw, position: offset + 1 }
}

/// The length of an IPv6 address in brackets (with or without a zone) or of `[]`; else 0.
fn literal_bracket(text: &str) -> usize {
    let Some(end) = text.find(']') else { return 0 };
    let inner = &text[1..end];
    let address = inner.split_once('%').map_or(inner, |(address, _zone)| address);
    let literal = inner.is_empty() || address.parse::<Ipv6Addr>().is_ok();
    if literal { end + 1 } else { 0 }
}

type Parsed = Result<(Piece, usize), (GlobFlaw, usize)>;

/// `{a,b}` at the start of `text`. A backslash takes any character as it is.
fn set(text: &str) -> Parsed {
    let mut elements = vec![String::new()];
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        let last = elements.last_mut().expect("never empty");
        match c {
            '{' | '[' => return Err((GlobFlaw::NestedBrace, at)),
            ']' => return Err((GlobFlaw::UnexpectedBracket, at)),
            '}' if at == 1 => return Err((GlobFlaw::EmptySet, at)),
            '}' => return Ok((Piece::Set(elements), at + 1)),
            ',' => elements.push(String::new()),
            '\\' => last.push(chars.next().map_or(c, |(_, escaped)| escaped)),
            _ => last.push(c),
        }
    }
    Err((GlobFlaw::UnmatchedBrace, 0))
}

/// `[...]` at the start of `text`.
fn range(text: &str) -> Parsed {
    let inner = &text[1..];
    match inner.bytes().next() {
        Some(b) if b.is_ascii_alphabetic() => chars(inner),
        Some(b) if b.is_ascii_digit() => numbers(inner),
        _ => return Err((GlobFlaw::RangeSpecification, 1)),
    }
    .ok_or((GlobFlaw::Range, 1))
}

fn chars(inner: &str) -> Option<(Piece, usize)> {
    let [from, b'-', to, ..] = inner.as_bytes() else { return None };
    if !to.is_ascii() {
        return None;
    }
    let (step, used) = step(inner, 3)?;
    let last = last_index(u64::from(*from), u64::from(*to), step)?;
    Some((Piece::Chars { from: *from, last, step: step as u8 }, used))
}

fn numbers(inner: &str) -> Option<(Piece, usize)> {
    let (from, end) = number(inner, 0)?;
    let width = if inner.starts_with('0') { end } else { 0 };
    let rest = inner[end..].strip_prefix('-')?;
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let (to, end) = number(inner, end + 1 + blanks)?;
    let (step, used) = step(inner, end)?;
    let last = last_index(from, to, step)?;
    Some((Piece::Numbers { from, last, step, width }, used))
}

/// The step after `at` (1 where there is none), and the length of the whole range with both brackets.
fn step(inner: &str, at: usize) -> Option<(u64, usize)> {
    let (step, end) = match inner.as_bytes().get(at)? {
        b':' => number(inner, at + 1)?,
        _ => (1, at),
    };
    (inner.as_bytes().get(end) == Some(&b']')).then_some((step, end + 2))
}

/// The digits from `at` on, and where they end.
fn number(text: &str, at: usize) -> Option<(u64, usize)> {
    let rest = text.get(at..)?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let value = rest[..digits].parse().ok().filter(|n| *n <= MAX_NUMBER)?;
    Some((value, at + digits))
}

/// The index of the last value; none for a range that runs backwards or a step that never lands in it.
fn last_index(from: u64, to: u64, step: u64) -> Option<u64> {
    let span = to.checked_sub(from)?;
    let fits = if span == 0 { step == 1 } else { (1..=span).contains(&step) };
    fits.then(|| span / step)
}
