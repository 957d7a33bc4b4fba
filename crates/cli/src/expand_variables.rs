//! `--variable` and `--expand-…`: values that are defined once and inserted into several options,
//! as in curl 8.
//!
//! ```
//! use haul_cli::expand_variables::OptionVariables;
//!
//! let mut variables = OptionVariables::default();
//! variables.set("who", b" a b ".to_vec());
//! assert_eq!(variables.expand(b"x={{who:trim:url}}").unwrap(), b"x=a%20b");
//! assert_eq!(variables.expand(b"{{nobody}}{{bad name}}").unwrap(), b"{{bad name}}");
//! assert!(variables.expand(b"{{who:shout}}").is_err());
//! ```
//!
//! Not part of this module: reading values from files and the environment, which the parser does.

use haul_policy::urlencode::percent_encode;

use crate::base64;
use crate::usage_error::UsageErrorReason;

/// The length limit of a variable's name, in bytes: a name must be shorter than this, as in curl.
/// The longest valid name thus has 127 bytes.
const NAME_MAX: usize = 128;

/// The variables that `--variable` defines, with their values. If a name is defined twice, the last
/// value applies.
#[derive(Clone, Debug, Default)]
pub struct OptionVariables {
    all: Vec<(String, Vec<u8>)>,
}

/// The parsed value of one `--variable`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableAssignment<'a> {
    /// The name of the variable that is defined.
    pub name: &'a str,
    /// The part of the value to use, as the offsets of its first and last byte, counted from 0.
    /// `None` means the whole value.
    pub range: Option<(usize, usize)>,
    /// True for `%NAME`: the value comes from the environment variable NAME or, if that is not set,
    /// from `source`.
    pub environment: bool,
    /// The source of the value; `None` if the value comes only from the environment.
    pub source: Option<VariableSource<'a>>,
}

/// The source of a variable's value: a text on the command line, or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableSource<'a> {
    /// The text on the command line is the value itself.
    Text(&'a [u8]),
    /// The value is the content of this file; `-` is standard input.
    File(&'a str),
}

impl<'a> VariableAssignment<'a> {
    /// Parses the value of `--variable`: `name=text`, `name@file`, `%NAME`, `%NAME=default` or
    /// `%NAME@file`. `[first-last]`, a range of bytes, may follow the name. Returns `None` for a
    /// text of any other form.
    pub fn parse(text: &'a [u8]) -> Result<Option<Self>, UsageErrorReason> {
        let (text, environment) = match text.strip_prefix(b"%") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let length = text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        if length == 0 || length >= NAME_MAX {
            return Ok(None);
        }
        let (name, mut rest) = text.split_at(length);
        let mut range = None;
        if let [b'[', inner @ ..] = rest
            && inner.first().is_some_and(u8::is_ascii_digit)
        {
            let bad = || UsageErrorReason::bad_use("expected [first-last] behind the name");
            let end = inner.iter().position(|&byte| byte == b']').ok_or_else(bad)?;
            range = Some(parse_range(&inner[..end]).ok_or_else(bad)?);
            rest = &inner[end + 1..];
        }
        let source = match rest.split_first() {
            None if environment => None,
            Some((b'=', text)) => Some(VariableSource::Text(text)),
            Some((b'@', file)) => {
                Some(VariableSource::File(std::str::from_utf8(file).map_err(|_| UsageErrorReason::NotUtf8)?))
            }
            _ => return Ok(None),
        };
        let name = std::str::from_utf8(name).map_err(|_| UsageErrorReason::NotUtf8)?;
        Ok(Some(VariableAssignment { name, range, environment, source }))
    }
}

fn parse_range(text: &[u8]) -> Option<(usize, usize)> {
    let (first, last) = std::str::from_utf8(text).ok()?.split_once('-')?;
    let first = first.parse().ok()?;
    let last = if last.is_empty() { usize::MAX } else { last.parse().ok()? };
    (first <= last).then_some((first, last))
}

impl OptionVariables {
    /// Sets the value of the variable `name`. A value that was set before is replaced.
    pub fn set(&mut self, name: &str, value: Vec<u8>) {
        self.all.retain(|(other, _)| other != name);
        self.all.push((name.to_owned(), value));
    }

    /// Returns the text with each `{{name}}` replaced by the value of the variable `name`, or by
    /// nothing if the variable is not set. `\{{` becomes `{{`. Braces around a text that cannot be
    /// a name stay unchanged.
    pub fn expand(&self, text: &[u8]) -> Result<Vec<u8>, UsageErrorReason> {
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = memchr::memmem::find(rest, b"{{") {
            let before = &rest[..at];
            if let Some(before) = before.strip_suffix(b"\\") {
                out.extend_from_slice(before);
                out.extend_from_slice(b"{{");
                rest = &rest[at + 2..];
                continue;
            }
            out.extend_from_slice(before);
            let inner = &rest[at + 2..];
            let Some(end) = memchr::memmem::find(inner, b"}}") else {
                rest = &rest[at..];
                break;
            };
            match self.value(&inner[..end])? {
                Some(value) => out.extend_from_slice(&value),
                None => out.extend_from_slice(&rest[at..at + end + 4]),
            }
            rest = &inner[end + 2..];
        }
        out.extend_from_slice(rest);
        if out.contains(&0) {
            return Err(UsageErrorReason::bad_use("a variable with a NUL byte cannot be put there"));
        }
        Ok(out)
    }

    fn value(&self, reference: &[u8]) -> Result<Option<Vec<u8>>, UsageErrorReason> {
        let mut parts = reference.split(|&byte| byte == b':');
        let name = parts.next().unwrap_or_default();
        let is_name = !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        if !is_name || name.len() >= NAME_MAX {
            return Ok(None);
        }
        let found = self.all.iter().find(|(known, _)| known.as_bytes() == name);
        let mut value = found.map(|(_, value)| value.clone()).unwrap_or_default();
        for function in parts {
            value = match function {
                b"trim" => value.trim_ascii().to_vec(),
                b"json" => json_escape(&value),
                b"url" => percent_encode(&value).into_bytes(),
                b"b64" => base64::encode(&value).into_bytes(),
                b"64dec" => std::str::from_utf8(&value)
                    .ok()
                    .and_then(base64::decode)
                    .unwrap_or_else(|| b"[64dec-fail]".to_vec()),
                _ => {
                    return Err(UsageErrorReason::bad_use(
                        "a variable has the functions trim, json, url, b64 and 64dec",
                    ));
                }
            };
        }
        Ok(Some(value))
    }
}

/// Escapes a text for a JSON string, without the quotes around it.
pub(crate) fn json_escape(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for &byte in value {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out
}

/// Returns the bytes of `value` in the range `range`, which gives the offsets of the first and the
/// last byte, counted from 0. If `range` is `None`, returns the whole value.
pub(crate) fn bytes_in_range(value: Vec<u8>, range: Option<(usize, usize)>) -> Vec<u8> {
    match range {
        None => value,
        Some((first, _)) if first >= value.len() => Vec::new(),
        Some((first, last)) => value[first..value.len().min(last.saturating_add(1))].to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_assignments_are_parsed() {
        let parsed =
            |text: &'static str| VariableAssignment::parse(text.as_bytes()).expect("no error").expect("an assignment");
        let source = |text| (parsed(text).environment, parsed(text).source);
        assert_eq!(source("a=b=c"), (false, Some(VariableSource::Text(b"b=c"))));
        assert_eq!(source("a@f"), (false, Some(VariableSource::File("f"))));
        assert_eq!(source("%HOME"), (true, None));
        assert_eq!(source("%HOME=/x"), (true, Some(VariableSource::Text(b"/x"))));
        assert_eq!(source("%HOME@f"), (true, Some(VariableSource::File("f"))));
        assert_eq!(parsed("a[2-5]@f").range, Some((2, 5)));
        assert_eq!(parsed("a[2-]@f").range, Some((2, usize::MAX)));
        for none in ["", "=x", "a", "a b=c", "%", "a[x]=b", "ä=b"] {
            assert_eq!(VariableAssignment::parse(none.as_bytes()), Ok(None), "{none}");
        }
        for bad in ["a[5-2]=b", "a[1-2"] {
            assert!(VariableAssignment::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn variable_functions_apply_in_order() {
        let mut variables = OptionVariables::default();
        variables.set("v", b"old".to_vec());
        variables.set("v", b" \"x\ny\" ".to_vec());
        let expanded =
            |text: &str| String::from_utf8(variables.expand(text.as_bytes()).expect("it expands")).expect("text");
        assert_eq!(expanded("{{v:trim:json}}"), "\\\"x\\ny\\\"");
        assert_eq!(expanded("{{v:b64:64dec:trim:url}}"), "%22x%0Ay%22");
        assert_eq!(expanded("{{v:64dec}}"), "[64dec-fail]");
        assert_eq!(expanded("a\\{{v}} {{none}}. {{v"), "a{{v}} . {{v");
        assert_eq!(expanded("{ {}} {{}}"), "{ {}} {{}}");
        variables.set("nul", vec![0]);
        assert!(variables.expand(b"{{nul}}").is_err());
        assert_eq!(variables.expand(b"{{nul:json}}"), Ok(b"\\u0000".to_vec()));
    }

    #[test]
    fn variable_byte_range_selects_part_of_value() {
        let of = |range| bytes_in_range(b"hello".to_vec(), Some(range));
        assert_eq!((of((1, 2)), of((3, 99)), of((9, 10))), (b"el".to_vec(), b"lo".to_vec(), Vec::new()));
        assert_eq!(of((0, usize::MAX)), b"hello");
    }
}
