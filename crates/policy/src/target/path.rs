//! Path and query: removes dot segments, encodes non-ASCII bytes, and leaves the rest unchanged.

/// The kinds of path segments that dot-segment removal distinguishes (RFC 3986 §5.2.4).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DotSegmentKind {
    None,
    One,
    Two,
}

/// Returns the kind of a path segment: `.`, `..` or another. `%2e` counts as a dot, because servers
/// and newer clients decode it: a path with `%2e%2e` would lead to the parent directory there.
pub(crate) fn dot_segment_kind(segment: &str) -> DotSegmentKind {
    let mut rest = segment.as_bytes();
    let mut count = 0;
    while count < 3 && !rest.is_empty() {
        rest = match rest {
            [b'.', tail @ ..] | [b'%', b'2', b'e' | b'E', tail @ ..] => tail,
            _ => return DotSegmentKind::None,
        };
        count += 1;
    }
    match (count, rest.is_empty()) {
        (1, true) => DotSegmentKind::One,
        (2, true) => DotSegmentKind::Two,
        _ => DotSegmentKind::None,
    }
}

/// Writes the path of a request target into `line`, an empty buffer. `path` is empty or begins
/// with a slash. Dot segments are removed unless `as_is` is true.
pub(super) fn push_path(line: &mut String, path: &str, as_is: bool) {
    if path.is_empty() {
        line.push('/');
    } else if as_is || !may_have_dots(path) {
        push_encoded(line, path);
    } else {
        push_without_dots(line, path);
    }
}

/// Appends a path without its dot segments (RFC 3986 §5.2.4). Uses no buffer other than `line`.
fn push_without_dots(line: &mut String, path: &str) {
    let mut segments = path[1..].split('/').peekable();
    while let Some(segment) = segments.next() {
        let kind = dot_segment_kind(segment);
        if kind == DotSegmentKind::Two {
            line.truncate(line.rfind('/').unwrap_or(0));
        }
        if kind == DotSegmentKind::None {
            line.push('/');
            push_encoded(line, segment);
        } else if segments.peek().is_none() {
            line.push('/');
        }
    }
}

fn may_have_dots(path: &str) -> bool {
    path.as_bytes().windows(2).any(|pair| matches!(pair, b"/." | b"/%"))
}

/// Appends ASCII characters unchanged, and other characters percent-encoded with upper-case digits
/// (RFC 3986 §2.1).
pub(super) fn push_encoded(out: &mut String, text: &str) {
    if text.is_ascii() {
        out.push_str(text);
        return;
    }
    for b in text.bytes() {
        if b.is_ascii() { out.push(char::from(b)) } else { push_byte(out, b) }
    }
}

/// Appends a byte percent-encoded, as `%XX`.
pub(crate) fn push_byte(out: &mut String, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(HEX[usize::from(byte >> 4)]));
    out.push(char::from(HEX[usize::from(byte & 15)]));
}

pub(crate) fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}
