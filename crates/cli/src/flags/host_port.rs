//! Parses the `HOST:PORT:` lists of `--resolve` and `--connect-to`.

/// Splits off the part before the next colon. An address in brackets is one part, and is returned
/// without brackets.
pub(super) fn part(text: &str) -> Option<(&str, Option<&str>)> {
    let Some(bracketed) = text.strip_prefix('[') else {
        return Some(match text.split_once(':') {
            Some((part, rest)) => (part, Some(rest)),
            None => (text, None),
        });
    };
    let (part, rest) = bracketed.split_once(']')?;
    match rest.strip_prefix(':') {
        Some(rest) => Some((part, Some(rest))),
        None => rest.is_empty().then_some((part, None)),
    }
}

/// Parses a port. An empty text is `Some(None)`.
pub(super) fn port(text: &str) -> Option<Option<u16>> {
    match text {
        "" => Some(None),
        text if text.bytes().all(|byte| byte.is_ascii_digit()) => Some(Some(text.parse().ok()?)),
        _ => None,
    }
}
