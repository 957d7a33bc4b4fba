//! Parses the values of `-H`, and refuses characters that must not be part of a request.

use haul_policy::auth::AllowedAuthSchemes;
use haul_policy::field_validation::{is_token, is_value};

use crate::plan::HeaderArg;
use crate::program_persona::ProgramPersona;
use crate::usage_error::UsageErrorReason;

/// The empty set of authentication schemes, with which a request begins. Each of `--basic`,
/// `--digest` and similar options adds a scheme to the set of the request.
pub(super) const NONE: AllowedAuthSchemes = AllowedAuthSchemes::NONE;

/// Returns an error if the bytes contain CR, LF or NUL, with which a value could inject another
/// field or request (RFC 9110 section 5.5).
pub(crate) fn refuse_controls(bytes: &[u8]) -> Result<(), UsageErrorReason> {
    match is_value(bytes) {
        true => Ok(()),
        false => Err(UsageErrorReason::bad_use("the value holds CR, LF or NUL")),
    }
}

/// Parses `Name: value`, `Name:` or `Name;`. Returns `None` for a text of any other form.
///
/// If haul acts as curl, names that are not tokens, and blanks at the end of values, are accepted
/// and sent as they are.
pub(crate) fn parse(text: &[u8], persona: ProgramPersona) -> Result<Option<HeaderArg>, UsageErrorReason> {
    refuse_controls(text)?;
    if persona.is_curl() {
        return Ok(parse_verbatim(text));
    }
    let text = text.trim_ascii();
    let Some(at) = text.iter().position(|byte| matches!(byte, b':' | b';')) else {
        return Ok(None);
    };
    // As of an unset variable in a script: curl leaves it out.
    if at == 0 {
        return Ok(None);
    }
    let (name, value) = (&text[..at], text[at + 1..].trim_ascii());
    if !is_token(name) {
        return Err(UsageErrorReason::bad_use("a header's name is a token, RFC 9110 section 5.1"));
    }
    let name = String::from_utf8_lossy(name).into_owned();
    Ok(match (text[at], value.is_empty()) {
        (b':', true) => Some(HeaderArg::Remove { name }),
        (b':', false) => Some(HeaderArg::Set { name, value: value.to_vec() }),
        (_, true) => Some(HeaderArg::Empty { name }),
        (_, false) => None,
    })
}

/// Parses a header field as curl does: only the blanks after the colon are removed. Returns `None`
/// if the text is not a header field.
fn parse_verbatim(text: &[u8]) -> Option<HeaderArg> {
    let name = |name: &[u8]| String::from_utf8(name.to_vec()).ok().filter(|name| !name.is_empty());
    match text.iter().position(|&byte| byte == b':') {
        Some(at) if text[at + 1..].trim_ascii().is_empty() => {
            Some(HeaderArg::Remove { name: name(text[..at].trim_ascii())? })
        }
        Some(at) => {
            Some(HeaderArg::Set { name: name(&text[..at])?, value: text[at + 1..].trim_ascii_start().to_vec() })
        }
        None => Some(HeaderArg::Empty { name: name(text.strip_suffix(b";").filter(|name| !name.contains(&b';'))?)? }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[u8]) -> Result<Option<HeaderArg>, UsageErrorReason> {
        super::parse(text, ProgramPersona::Haul)
    }

    #[test]
    fn curl_persona_keeps_header_names_and_values_unchanged() {
        let parse = |text: &[u8]| super::parse(text, ProgramPersona::Curl).unwrap();
        let set = |name: &str, value: &[u8]| Some(HeaderArg::Set { name: name.to_owned(), value: value.to_vec() });
        assert_eq!(parse(b"X-A: b; "), set("X-A", b"b; "));
        assert_eq!(parse(b" An odd one :\tc"), set(" An odd one ", b"c"));
        assert_eq!(parse(b"X-A; b: c"), set("X-A; b", b"c"));
        assert_eq!(parse(b"X-A:  "), Some(HeaderArg::Remove { name: "X-A".to_owned() }));
        assert_eq!(parse(b"X-A;"), Some(HeaderArg::Empty { name: "X-A".to_owned() }));
        for none in [&b""[..], b":", b": c", b";", b"X-A;  ", b"X-A; b", b"X-A"] {
            assert_eq!(parse(none), None, "{none:?}");
        }
        assert!(super::parse(b"X-A: b\r\nEvil: 1", ProgramPersona::Curl).is_err());
    }

    #[test]
    fn header_sets_removes_or_empties_a_field() {
        let name = || "X-A".to_owned();
        let set = HeaderArg::Set { name: name(), value: b"b: c;".to_vec() };
        assert_eq!(parse(b"X-A:  b: c; "), Ok(Some(set)));
        assert_eq!(parse(b"X-A: \t"), Ok(Some(HeaderArg::Remove { name: name() })));
        assert_eq!(parse(b"X-A;"), Ok(Some(HeaderArg::Empty { name: name() })));
        assert_eq!(parse(b"X-A; b"), Ok(None));
        assert_eq!(parse(b"X-A"), Ok(None));
        for none in [&b""[..], b":", b": c", b";", b" : c"] {
            assert_eq!(parse(none), Ok(None), "{none:?}");
        }
    }

    #[test]
    fn header_with_line_breaks_is_refused() {
        for bad in [&b"A: b\r\nEvil: 1"[..], b"A: b\n", b"A: b\rc", b"A: b\0"] {
            assert!(matches!(parse(bad), Err(UsageErrorReason::BadUse(_))), "{bad:?}");
        }
        for bad in [&b"A b: c"[..], b"A\x7f: c", b"\xc3\xa4: c"] {
            assert!(matches!(parse(bad), Err(UsageErrorReason::BadUse(_))), "{bad:?}");
        }
    }
}
