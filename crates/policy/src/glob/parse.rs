//! The parser for globs.

use core::net::Ipv6Addr;

use super::{GlobError, GlobErrorKind, GlobKind, GlobPiece};

/// The largest number, and the largest step, in a range such as `[1-100:2]`: the maximum of curl's
/// `curl_off_t`. With this limit, `from + index * step` fits into a `u64`.
const MAX_NUMBER: u64 = i64::MAX as u64;

/// The largest number of pieces of a URL, as in curl. Each glob is a piece, and so is each text
/// between globs.
const MAX_PIECES: usize = 255;

/// The largest length in bytes of the name of a glob (`{<name>a,b}`, used as `#<name>` in an output
/// name), as in curl.
const MAX_NAME: usize = 64;

pub(super) fn parse_pieces(text: &str) -> Result<Vec<GlobPiece>, GlobError> {
    let mut pieces: Vec<GlobPiece> = Vec::new();
    let mut plain = String::new();
    let mut at = 0;
    // curl's positions do not count these: the end of a set, an address.
    let mut uncounted = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        match c {
            '[' if literal_bracket_length(rest) > 0 => {
                let len = literal_bracket_length(rest);
                plain.push_str(&rest[..len]);
                (at, uncounted) = (at + len, uncounted + len);
                continue;
            }
            '[' | '{' => {}
            ']' | '}' => return Err(error(GlobErrorKind::UnmatchedClose, at - uncounted)),
            _ => {
                let escaped = rest.strip_prefix('\\').and_then(|r| r.chars().next()).filter(|c| "[]{}".contains(*c));
                plain.push(escaped.unwrap_or(c));
                at += c.len_utf8() + escaped.map_or(0, char::len_utf8);
                continue;
            }
        }
        push_literal_piece(&mut pieces, &mut plain, at - uncounted)?;
        at += 1;
        let name = match parse_name(&text[at..]) {
            Some((name, length)) => {
                at += length;
                if pieces.iter().any(|piece| piece.name.as_deref() == Some(name)) {
                    return Err(GlobError { kind: GlobErrorKind::DuplicateName, position: at });
                }
                Some(name.to_owned())
            }
            None => None,
        };
        let parsed = if c == '{' { parse_set(&text[at..]) } else { parse_range(&text[at..]) };
        let (kind, used) = parsed.map_err(|(kind, offset)| error(kind, at - uncounted + offset))?;
        at += used;
        if c == '{' {
            uncounted += 1;
        }
        push(&mut pieces, GlobPiece { kind, name }, at - uncounted)?;
    }
    push_literal_piece(&mut pieces, &mut plain, at - uncounted)?;
    Ok(pieces)
}

/// Moves the literal text `plain` to the end of `pieces`, unless it is empty. `at` is the position
/// in the URL to report if the URL has too many pieces.
fn push_literal_piece(pieces: &mut Vec<GlobPiece>, plain: &mut String, at: usize) -> Result<(), GlobError> {
    if plain.is_empty() {
        return Ok(());
    }
    push(pieces, GlobPiece { kind: GlobKind::Text(core::mem::take(plain)), name: None }, at)
}

fn push(pieces: &mut Vec<GlobPiece>, piece: GlobPiece, at: usize) -> Result<(), GlobError> {
    if pieces.len() == MAX_PIECES {
        return Err(error(GlobErrorKind::TooMany, at));
    }
    pieces.push(piece);
    Ok(())
}

/// Returns the name in angle brackets at the start of `text`, and its length in bytes including the
/// brackets. Returns `None` for text that cannot be a name; the parser then treats it as ordinary
/// text.
pub(super) fn parse_name(text: &str) -> Option<(&str, usize)> {
    let (name, _) = text.strip_prefix('<')?.split_once('>')?;
    (1..=MAX_NAME).contains(&name.len()).then_some((name, name.len() + 2))
}

fn error(kind: GlobErrorKind, offset: usize) -> GlobError {
    GlobError { kind, position: offset + 1 }
}

/// Returns the length in bytes of the literal brackets at the start of `text`: an IPv6 address in
/// brackets (with or without a zone) or `[]`. Returns 0 for any other text.
fn literal_bracket_length(text: &str) -> usize {
    let Some(end) = text.find(']') else { return 0 };
    let inner = &text[1..end];
    let address = inner.split_once('%').map_or(inner, |(address, _zone)| address);
    let literal = inner.is_empty() || address.parse::<Ipv6Addr>().is_ok();
    if literal { end + 1 } else { 0 }
}

/// A parsed glob and its length in bytes; or, if parsing fails, an error and its position in the
/// parsed text.
type ParsedGlob = Result<(GlobKind, usize), (GlobErrorKind, usize)>;

/// Parses the text after `{` up to the closing brace. In this text, a backslash makes the next
/// character literal.
fn parse_set(text: &str) -> ParsedGlob {
    let mut elements = vec![String::new()];
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        let last = elements.last_mut().expect("never empty");
        match c {
            '{' | '[' => return Err((GlobErrorKind::NestedBrace, at)),
            ']' => return Err((GlobErrorKind::UnexpectedBracket, at)),
            '}' if at == 0 => return Err((GlobErrorKind::EmptySet, at)),
            '}' => return Ok((GlobKind::Set(elements), at + 1)),
            ',' => elements.push(String::new()),
            '\\' => last.push(chars.next().map_or(c, |(_, escaped)| escaped)),
            _ => last.push(c),
        }
    }
    Err((GlobErrorKind::UnmatchedBrace, text.len()))
}

/// Parses the text after `[`, up to the closing bracket. An error has the position at which parsing
/// stopped, as in curl.
fn parse_range(text: &str) -> ParsedGlob {
    match text.bytes().next() {
        Some(b) if b.is_ascii_alphabetic() => parse_character_range(text),
        Some(b) if b.is_ascii_digit() => parse_number_range(text),
        _ => Err((GlobErrorKind::RangeSpecification, 0)),
    }
}

fn parse_character_range(text: &str) -> ParsedGlob {
    let mut reader = GlobRangeParser { text, at: 0 };
    let bad = |at| Err((GlobErrorKind::Range, at));
    let (from, to, step) = match *text.as_bytes() {
        [from, b'-', to, b']', ..] => {
            reader.at = 4;
            (from, to, 1)
        }
        [from, b'-', to, b':', ..] => {
            reader.at = 4;
            let Some(step) = reader.parse_number().filter(|_| reader.consume_byte(b']')) else { return bad(reader.at) };
            (from, to, step)
        }
        _ => return bad(0),
    };
    // No further than from a to z.
    let is_near = to.abs_diff(from) <= b'z' - b'a';
    match last_index(from.into(), to.into(), step).filter(|_| is_near) {
        Some(last) => Ok((GlobKind::Chars { from, last, step: step as u8 }, reader.at)),
        None => bad(reader.at),
    }
}

fn parse_number_range(text: &str) -> ParsedGlob {
    let mut reader = GlobRangeParser { text, at: 0 };
    let zeros = text.bytes().take_while(u8::is_ascii_digit).count();
    let width = if text.starts_with('0') { zeros } else { 0 };
    let Some((from, to, step)) = reader.parse_span() else { return Err((GlobErrorKind::Range, reader.at)) };
    let Some(last) = last_index(from, to, step) else { return Err((GlobErrorKind::Range, reader.at)) };
    if MAX_NUMBER - step < to {
        return Err((GlobErrorKind::RangeEnd, reader.at));
    }
    Ok((GlobKind::Numbers { from, last, step, width }, reader.at))
}

struct GlobRangeParser<'a> {
    text: &'a str,
    at: usize,
}

impl GlobRangeParser<'_> {
    /// Parses the numbers of a range, written as `from-to]` or `from-to:step]`. Returns from, to
    /// and step; the step is 1 by default. Returns `None` for other text.
    fn parse_span(&mut self) -> Option<(u64, u64, u64)> {
        let from = self.parse_number()?;
        if !self.consume_byte(b'-') {
            return None;
        }
        while self.consume_byte(b' ') || self.consume_byte(b'\t') {}
        let to = self.parse_number()?;
        if self.consume_byte(b']') {
            return Some((from, to, 1));
        }
        let step = if self.consume_byte(b':') { self.parse_number()? } else { return None };
        self.consume_byte(b']').then_some((from, to, step))
    }

    fn consume_byte(&mut self, byte: u8) -> bool {
        let is_there = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn parse_number(&mut self) -> Option<u64> {
        let rest = &self.text[self.at..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let value = rest[..digits].parse().ok().filter(|n| *n <= MAX_NUMBER)?;
        self.at += digits;
        Some(value)
    }
}

/// Returns the index of the last value of the range that goes from `from` to `to` in steps of
/// `step`. Returns `None` if the range is descending, the step is 0, or the step is longer than the
/// range.
fn last_index(from: u64, to: u64, step: u64) -> Option<u64> {
    let span = to.checked_sub(from)?;
    let fits = if span == 0 { step == 1 } else { (1..=span).contains(&step) };
    fits.then(|| span / step)
}
