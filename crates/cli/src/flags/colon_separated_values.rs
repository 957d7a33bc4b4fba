//! Parses the colon-separated values of `--resolve` and `--connect-to`, such as
//! `HOST:PORT:ADDRESS`.

/// Returns the text before the first colon and the text after it. The second text is `None` if
/// there is no colon. An address in brackets counts as one text, and is returned without the
/// brackets. Returns `None` if a bracket is missing, or if the text after the brackets does not
/// begin with a colon.
pub(super) fn split_at_colon(text: &str) -> Option<(&str, Option<&str>)> {
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

/// Parses a port number. Returns `Some(None)` for an empty text, and `None` for an invalid one.
pub(super) fn parse_port(text: &str) -> Option<Option<u16>> {
    match text {
        "" => Some(None),
        text if text.bytes().all(|byte| byte.is_ascii_digit()) => Some(Some(text.parse().ok()?)),
        _ => None,
    }
}
