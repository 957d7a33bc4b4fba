//! The texts of `%{json}` and `%{header_json}`: all variables, or all header fields, as a JSON
//! object in curl's format.

use haul::ResponseHead;
use haul_policy::terminal_text::escape_json;

use super::{WriteOutValues, WriteOutVariable};
use crate::expand_variables::json_escape as escaped;
use crate::program_persona::VERSION;
use crate::program_persona::{CURL_VERSION, ProgramPersona};

/// Appends the value of `%{json}` to `into`: a JSON object with all variables of `-w`. An unknown
/// value is `null`, or an empty string where curl writes an empty string.
pub(super) fn append_all_values(facts: &WriteOutValues<'_>, persona: ProgramPersona, into: &mut Vec<u8>) {
    into.push(b'{');
    for &(name, variable) in WriteOutVariable::NAMES {
        append_json_string(name.as_bytes(), into);
        into.push(b':');
        let mut text = Vec::new();
        facts.append(variable, &mut text);
        match () {
            () if variable.is_number() => into.extend_from_slice(without_leading_zeros(&text)),
            () if text.is_empty() && !matches!(name, "certs" | "local_ip" | "remote_ip") => {
                into.extend_from_slice(b"null");
            }
            () => append_json_string(&text, into),
        }
        into.push(b',');
    }
    into.extend_from_slice(b"\"curl_version\":");
    let version = match persona {
        ProgramPersona::Haul => format!("haul/{VERSION}"),
        ProgramPersona::Curl => format!("libcurl/{CURL_VERSION} haul/{VERSION}"),
    };
    append_json_string(version.as_bytes(), into);
    into.push(b'}');
}

/// Removes leading zeros from a decimal number, because JSON does not allow them.
fn without_leading_zeros(text: &[u8]) -> &[u8] {
    let zeros = text.iter().take_while(|&&byte| byte == b'0').count();
    match text.get(zeros) {
        Some(byte) if byte.is_ascii_digit() => &text[zeros..],
        Some(_) => &text[zeros.saturating_sub(1)..],
        None => b"0",
    }
}

/// Appends the value of `%{header_json}` to `into`: a JSON object with all header fields of a
/// response head. Each name is in lower case and has a list of its values. The names are in the
/// order of their first appearance.
pub(super) fn append_header_fields(head: Option<&ResponseHead>, into: &mut Vec<u8>) {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in head.iter().flat_map(|head| head.fields()) {
        let name = name.to_ascii_lowercase();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    into.push(b'{');
    for (at, name) in names.iter().enumerate() {
        into.extend_from_slice(if at == 0 { b"" } else { b",\n" });
        append_json_string(name.as_bytes(), into);
        into.extend_from_slice(b":[");
        for (at, value) in head.iter().flat_map(|head| head.get_all(name)).enumerate() {
            into.extend_from_slice(if at == 0 { b"" } else { b"," });
            append_json_string(value, into);
        }
        into.push(b']');
    }
    into.extend_from_slice(b"\n}");
}

fn append_json_string(text: &[u8], into: &mut Vec<u8>) {
    into.push(b'"');
    let from = into.len();
    // JSON is UTF-8; a server's bytes need not be.
    into.extend_from_slice(&escaped(String::from_utf8_lossy(text).as_bytes()));
    escape_json(into, from);
    into.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_output_has_every_variable() {
        let given =
            WriteOutValues { url: "http://h/\"q\"", response_code: 7, exit_code: 3, ..WriteOutValues::default() };
        let mut text = Vec::new();
        append_all_values(&given, ProgramPersona::Curl, &mut text);
        let value: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(value.as_object().expect("an object").len(), WriteOutVariable::NAMES.len() + 1);
        assert_eq!(value["url"], "http://h/\"q\"");
        assert_eq!((value["http_code"].as_u64(), value["exitcode"].as_u64()), (Some(7), Some(3)));
        assert_eq!(value["time_total"], 0.0);
        assert!(value["content_type"].is_null());
        assert!(["certs", "local_ip", "remote_ip"].iter().all(|name| value[name] == ""), "{value}");
        let mut none = Vec::new();
        append_header_fields(None, &mut none);
        assert_eq!(none, b"{\n}");
    }

    #[test]
    fn json_numbers_have_no_leading_zeros() {
        for (text, expected) in [("000", "0"), ("0200", "200"), ("0.5", "0.5"), ("12", "12"), ("0", "0")] {
            assert_eq!(without_leading_zeros(text.as_bytes()), expected.as_bytes());
        }
    }
}
