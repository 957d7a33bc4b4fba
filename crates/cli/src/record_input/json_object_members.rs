//! Parses a JSON object into names and raw values. A value is converted when its type is known.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of a JSON object, in order. A name may occur several times.
pub(super) struct JsonMembers<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'a> JsonMembers<'a> {
    /// Parses a JSON object.
    ///
    /// # Errors
    /// The reason why the text is no JSON object.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| syntax_error(&error, text))
    }
}

/// Returns the reason why a text is no JSON object, with the column of the fault.
fn syntax_error(error: &serde_json::Error, text: &str) -> String {
    if error.is_data() {
        return format!("expected a JSON object, not {}", kind_name(text));
    }
    let whole = error.to_string();
    let reason = whole.rsplit_once(" at line ").map_or(&*whole, |(reason, _)| reason);
    format!("not valid JSON: {reason} at column {}", error.column())
}

impl<'de> Deserialize<'de> for JsonMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = JsonMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(JsonMembers(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

/// Returns the type of a JSON text, with an article, for messages.
pub(super) fn kind_name(text: &str) -> &'static str {
    match text.trim_start().bytes().next() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Returns true if the value is `null`, which counts as absent.
pub(super) fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

/// Returns the text of a JSON string, or a message for the user if the value is not a string.
pub(super) fn string_text(value: &RawValue) -> Result<String, String> {
    let text = value.get();
    serde_json::from_str(text).map_err(|_| match kind_name(text) {
        // It is well-formed, except for a lone surrogate.
        "a string" => "the string is not valid Unicode".to_owned(),
        other => format!("expected a string, not {other}"),
    })
}

/// Returns the text of a JSON string, or the spelling of a number, `true` or `false`. Returns a
/// message for the user if the value is a list, an object or `null`.
pub(super) fn scalar_text(value: &RawValue) -> Result<String, String> {
    match kind_name(value.get()) {
        "a string" => string_text(value),
        "a number" | "true or false" => Ok(value.get().to_owned()),
        other => Err(format!("expected a string or a number, not {other}")),
    }
}

/// Returns the texts of a JSON list of scalars, or of one scalar. Returns an empty list for `null`,
/// and a message for the user for any other value.
pub(super) fn scalar_texts(value: &RawValue) -> Result<Vec<String>, String> {
    match kind_name(value.get()) {
        "null" => Ok(Vec::new()),
        "a list" => {
            let items: Vec<&RawValue> =
                serde_json::from_str(value.get()).map_err(|_| "the list is not valid".to_owned())?;
            items.into_iter().map(scalar_text).collect()
        }
        "an object" => Err("expected a string, a number or a list of these, not an object".to_owned()),
        _ => Ok(vec![scalar_text(value)?]),
    }
}
