//! One line of a `--jsonl-in` list: the request that a JSON object describes.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use haul_policy::auth::Credentials;
use haul_policy::field_validation::{is_token, is_value};
use haul_policy::urlencode;
use serde_json::value::RawValue;

use super::json_object_members::{JsonMembers, is_null, kind_name, scalar_texts, string_text};
use super::parse_output_path;
use crate::base64;
use crate::plan::HeaderArg;

/// The keys that a record (a JSON object on a line of a list) may have.
const KNOWN_KEYS: [&str; 13] = [
    "url",
    "method",
    "headers",
    "query",
    "body",
    "json",
    "form",
    "body_base64",
    "body_file",
    "output",
    "id",
    "auth",
    "timeout",
];

/// The keys for request content. A record may have only one of them.
const BODY_KEYS: [&str; 5] = ["body", "json", "form", "body_base64", "body_file"];

/// A request that a line of a list describes. The command line supplies what the line omits.
#[derive(Default)]
pub struct JsonlRequest {
    /// `url`: an absolute URL, or one that is relative to the URL of the command line. `None` means
    /// the URL of the command line.
    pub url: Option<String>,
    /// `method`: the request method, a token (RFC 9110 section 9.1). `None` without the key.
    pub method: Option<String>,
    /// `headers`: the fields to send, and the fields to omit (`null`).
    pub headers: Vec<HeaderArg>,
    /// `query`: the encoded text to append to the query of the URL. `None` without the key.
    pub query: Option<String>,
    /// The request content, from one of the keys `body`, `json`, `form`, `body_base64` and
    /// `body_file`. `None` without such a key.
    pub body: Option<RecordBody>,
    /// `output`: the file for the response, relative to the output directory and inside it. `None`
    /// without the key.
    pub output: Option<PathBuf>,
    /// `id`: any JSON text, by which the user identifies the record in the output. `None` without
    /// the key.
    pub id: Option<Box<str>>,
    /// `auth`: the credentials for the origin of the record's URL. `None` without the key.
    pub auth: Option<RecordAuth>,
    /// `timeout`: the time limit of the record's transfer. `None` without the key.
    pub timeout: Option<Duration>,
}

/// The request content that a record describes.
#[derive(Clone, PartialEq, Eq)]
pub enum RecordBody {
    /// The content is these bytes from the record itself.
    Bytes {
        /// The bytes of the content, decoded if the key is `body_base64`.
        bytes: Vec<u8>,
        /// The media type of the bytes if the key implies one, such as `json`; otherwise `None`.
        content_type: Option<&'static str>,
    },
    /// `body_file`: the content of a file, which needs `--allow-body-files`.
    File(PathBuf),
}

/// The credentials that a record contains.
#[derive(Clone)]
pub enum RecordAuth {
    /// A user and a password.
    User(Credentials),
    /// A bearer token (RFC 6750).
    Bearer(Vec<u8>),
}

/// The error of a record: the reason, and the key at which the record is wrong. There is no key if
/// the whole line is not a JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    key: Option<String>,
    reason: String,
}

impl RecordError {
    fn at_key(key: &str, reason: impl Into<String>) -> Self {
        Self { key: Some(key.to_owned()), reason: reason.into() }
    }

    /// Returns the key at which the record is wrong; `None` if the whole line is not a JSON object.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "key {key:?}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for RecordError {}

impl JsonlRequest {
    /// Parses a line. A key whose value is `null` counts as absent, except for `id`.
    ///
    /// # Errors
    /// The line is no JSON object, or a key is unknown, occurs twice or has a wrong value.
    pub fn parse(line: &[u8]) -> Result<Self, RecordError> {
        let whole = |reason: String| RecordError { key: None, reason };
        let text = str::from_utf8(line).map_err(|_| whole("the line is not UTF-8".to_owned()))?;
        let members = JsonMembers::parse(text).map_err(whole)?.0;
        let mut record = Self::default();
        let mut body_key = None;
        for (at, (key, value)) in members.iter().enumerate() {
            if members[..at].iter().any(|(earlier, _)| earlier == key) {
                return Err(RecordError::at_key(key, "the key occurs twice"));
            }
            if !KNOWN_KEYS.contains(&&**key) {
                return Err(RecordError::at_key(
                    key,
                    format!("the key is unknown; known are {}", KNOWN_KEYS.join(", ")),
                ));
            }
            if is_null(value) && key != "id" && key != "json" {
                continue;
            }
            if BODY_KEYS.contains(&&**key)
                && let Some(earlier) = body_key.replace(key)
            {
                return Err(RecordError::at_key(key, format!("the record has a body already, by the key {earlier:?}")));
            }
            record.set(key, value).map_err(|reason| RecordError::at_key(key, reason))?;
        }
        Ok(record)
    }

    /// Returns the `id` of a line, even if other keys of the line are wrong. Returns `None` if the
    /// line is not a JSON object or has no id.
    pub fn parse_id(line: &[u8]) -> Option<Box<str>> {
        let members = JsonMembers::parse(str::from_utf8(line).ok()?).ok()?.0;
        members.into_iter().find(|(key, _)| key == "id").map(|(_, value)| value.get().into())
    }

    fn set(&mut self, key: &str, value: &RawValue) -> Result<(), String> {
        let bytes = |bytes: Vec<u8>, content_type| Some(RecordBody::Bytes { bytes, content_type });
        match key {
            "url" => self.url = Some(string_text(value)?),
            "method" => {
                let method = string_text(value)?;
                if !is_token(method.as_bytes()) {
                    return Err("a method is a token, RFC 9110 section 9.1".to_owned());
                }
                self.method = Some(method);
            }
            "headers" => self.headers = parse_headers(value)?,
            "query" => self.query = Some(parse_form_pairs(value)?).filter(|query| !query.is_empty()),
            "body" => self.body = bytes(string_text(value)?.into_bytes(), None),
            "json" => self.body = bytes(value.get().as_bytes().to_vec(), Some("application/json")),
            "form" => {
                self.body = bytes(parse_form_pairs(value)?.into_bytes(), Some("application/x-www-form-urlencoded"))
            }
            "body_base64" => {
                let decoded = base64::decode(&string_text(value)?);
                self.body = bytes(decoded.ok_or("the string is not valid base64")?, None);
            }
            "body_file" => self.body = Some(RecordBody::File(parse_body_file(string_text(value)?)?)),
            "output" => self.output = Some(parse_output_path(&string_text(value)?).map_err(|fault| fault.to_string())?),
            "id" => self.id = Some(value.get().into()),
            "auth" => self.auth = Some(parse_auth(value)?),
            _ => self.timeout = Some(parse_timeout(value)?),
        }
        Ok(())
    }
}

fn parse_body_file(path: String) -> Result<PathBuf, String> {
    match path.is_empty() || path.contains('\0') {
        true => Err("the name of the file is empty or has a NUL".to_owned()),
        false => Ok(path.into()),
    }
}

/// Reads an object of header fields. A value is a text, a list of texts for several fields, or
/// `null` for a field that is not sent.
fn parse_headers(value: &RawValue) -> Result<Vec<HeaderArg>, String> {
    let mut fields = Vec::new();
    for (name, value) in parse_object(value)? {
        if !is_token(name.as_bytes()) {
            return Err(format!("the header name {name:?} is no token, RFC 9110 section 5.1"));
        }
        if is_null(value) {
            fields.push(HeaderArg::Remove { name });
            continue;
        }
        for text in scalar_texts(value).map_err(|reason| format!("header {name:?}: {reason}"))? {
            if !is_value(text.as_bytes()) {
                return Err(format!("the value of header {name:?} has CR, LF or NUL"));
            }
            let value = text.trim_ascii().as_bytes().to_vec();
            fields.push(HeaderArg::Set { name: name.clone(), value });
        }
    }
    Ok(fields)
}

/// Reads an object as the fields of a URL-encoded form. A list gives several fields with the same
/// name.
fn parse_form_pairs(value: &RawValue) -> Result<String, String> {
    let mut form = String::new();
    for (name, value) in parse_object(value)? {
        for text in scalar_texts(value).map_err(|reason| format!("field {name:?}: {reason}"))? {
            if !form.is_empty() {
                form.push('&');
            }
            urlencode::push_form_encoded(&mut form, name.as_bytes());
            form.push('=');
            urlencode::push_form_encoded(&mut form, text.as_bytes());
        }
    }
    Ok(form)
}

/// Reads credentials: `"user:password"`, `{"user": …, "password": …}` or `{"bearer": …}`.
fn parse_auth(value: &RawValue) -> Result<RecordAuth, String> {
    let user = |user: &str, password: &str| {
        Credentials::new(user, password).map(RecordAuth::User).map_err(|error| error.to_string())
    };
    if kind_name(value.get()) == "a string" {
        let text = string_text(value)?;
        let (name, password) = text.split_once(':').ok_or("expected \"user:password\"")?;
        return user(name, password);
    }
    let (mut name, mut password, mut token) = (None, None, None);
    for (key, value) in parse_object(value)? {
        let place = match &*key {
            "user" => &mut name,
            "password" => &mut password,
            "bearer" => &mut token,
            _ => return Err(format!("the key {key:?} is unknown; known are user, password and bearer")),
        };
        *place = Some(string_text(value).map_err(|reason| format!("{key}: {reason}"))?);
    }
    match (name, password, token) {
        (Some(name), password, None) => user(&name, &password.unwrap_or_default()),
        (None, None, Some(token)) if is_value(token.as_bytes()) => Ok(RecordAuth::Bearer(token.into_bytes())),
        (None, None, Some(_)) => Err("the token has CR, LF or NUL".to_owned()),
        _ => Err("expected user and password, or bearer".to_owned()),
    }
}

fn parse_timeout(value: &RawValue) -> Result<Duration, String> {
    let what = || "expected a number of seconds above 0";
    if kind_name(value.get()) != "a number" {
        return Err(format!("{}, not {}", what(), kind_name(value.get())));
    }
    let seconds: f64 = serde_json::from_str(value.get()).map_err(|_| what())?;
    let limit = Duration::try_from_secs_f64(seconds).map_err(|_| what())?;
    if limit.is_zero() { Err(what().to_owned()) } else { Ok(limit) }
}

fn parse_object(value: &RawValue) -> Result<Vec<(String, &RawValue)>, String> {
    match kind_name(value.get()) {
        "an object" => Ok(JsonMembers::parse(value.get())?.0),
        other => Err(format!("expected an object, not {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> JsonlRequest {
        JsonlRequest::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn body(text: &str) -> (String, Option<&'static str>) {
        match parsed(text).body {
            Some(RecordBody::Bytes { bytes, content_type }) => (String::from_utf8(bytes).unwrap(), content_type),
            _ => panic!("{text}"),
        }
    }

    #[test]
    fn record_sets_every_part_of_a_request() {
        let record = parsed(
            r#"{"url":"http://h/\u00e9","method":"PATCH","headers":{"X-A":"1","X-B":["2",3],"Accept":null},
            "query":{"q":"a b","n":[1,2],"no":null},"output":"a/b.json","id":{"n": 1.10},"auth":"me:a:b","timeout":1.5}"#,
        );
        assert_eq!(record.url.as_deref(), Some("http://h/\u{e9}"));
        assert_eq!(record.method.as_deref(), Some("PATCH"));
        let set = |name: &str, value: &str| HeaderArg::Set { name: name.into(), value: value.into() };
        let expected = [set("X-A", "1"), set("X-B", "2"), set("X-B", "3"), HeaderArg::Remove { name: "Accept".into() }];
        assert!(record.headers == expected);
        assert_eq!(record.query.as_deref(), Some("q=a+b&n=1&n=2"));
        assert_eq!(record.output.as_deref(), Some("a/b.json".as_ref()));
        assert_eq!(record.id.as_deref(), Some(r#"{"n": 1.10}"#));
        assert_eq!(record.timeout, Some(Duration::from_millis(1500)));
        assert!(matches!(record.auth, Some(RecordAuth::User(_))));
        assert!(record.body.is_none());
    }

    #[test]
    fn each_body_key_sets_content_and_type() {
        let form = "application/x-www-form-urlencoded";
        assert_eq!(body(r#"{"body":"a\nb"}"#), ("a\nb".into(), None));
        assert_eq!(body(r#"{"json":{"a": [1, "x"]}}"#), (r#"{"a": [1, "x"]}"#.into(), Some("application/json")));
        assert_eq!(body(r#"{"json":null}"#), ("null".into(), Some("application/json")));
        assert_eq!(body(r#"{"form":{"a":"x&y","b":[1,true]}}"#), ("a=x%26y&b=1&b=true".into(), Some(form)));
        assert_eq!(body(r#"{"body_base64":"aGk="}"#), ("hi".into(), None));
        assert!(matches!(parsed(r#"{"body_file":"../x"}"#).body, Some(RecordBody::File(path)) if path.ends_with("x")));
        assert!(parsed(r#"{"body":null,"form":null,"url":null}"#).body.is_none());
    }

    #[test]
    fn error_of_a_record_names_key_and_reason() {
        for (text, expected) in [
            ("", "not valid JSON: EOF while parsing a value at column 0"),
            ("[1]", "expected a JSON object, not a list"),
            ("\"x\"", "expected a JSON object, not a string"),
            (r#"{"url":1,}"#, "not valid JSON: trailing comma at column 10"),
            (r#"{"url":1} x"#, "not valid JSON: trailing characters at column 11"),
            (r#"{"url":1}"#, "key \"url\": expected a string, not a number"),
            (r#"{"url":"a","url":"b"}"#, "key \"url\": the key occurs twice"),
            (r#"{"metod":"GET"}"#, "key \"metod\": the key is unknown; known are url, method, headers, query, body, "),
            (r#"{"method":"A B"}"#, "key \"method\": a method is a token, RFC 9110 section 9.1"),
            (r#"{"headers":["A: b"]}"#, "key \"headers\": expected an object, not a list"),
            (r#"{"headers":{"A b":"c"}}"#, "key \"headers\": the header name \"A b\" is no token"),
            (r#"{"headers":{"A":"b\r\nc"}}"#, "key \"headers\": the value of header \"A\" has CR, LF or NUL"),
            (r#"{"headers":{"A":{}}}"#, "key \"headers\": header \"A\": expected a string, a number or a list"),
            (r#"{"body":"a","json":1}"#, "key \"json\": the record has a body already, by the key \"body\""),
            (r#"{"body_base64":"a b!"}"#, "key \"body_base64\": the string is not valid base64"),
            (r#"{"output":"../x"}"#, "key \"output\": \"..\" is refused"),
            (r#"{"auth":"me"}"#, "key \"auth\": expected \"user:password\""),
            (r#"{"auth":{"token":"x"}}"#, "key \"auth\": the key \"token\" is unknown"),
            (r#"{"auth":{"user":"a","bearer":"b"}}"#, "key \"auth\": expected user and password, or bearer"),
            (r#"{"auth":{"bearer":"a\nb"}}"#, "key \"auth\": the token has CR, LF or NUL"),
            (r#"{"timeout":-1}"#, "key \"timeout\": expected a number of seconds above 0"),
            (r#"{"timeout":0}"#, "key \"timeout\": expected a number of seconds above 0"),
            (r#"{"timeout":1e999}"#, "key \"timeout\": expected a number of seconds above 0"),
            (r#"{"url":"\ud800"}"#, "key \"url\": the string is not valid Unicode"),
        ] {
            let error = JsonlRequest::parse(text.as_bytes()).err().unwrap_or_else(|| panic!("{text}")).to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        assert_eq!(JsonlRequest::parse(b"{\"url\":\"\xff\"}").err().unwrap().to_string(), "the line is not UTF-8");
    }

    #[test]
    fn id_of_an_invalid_record_is_found() {
        assert_eq!(JsonlRequest::parse_id(br#"{"id":7,"nope":1}"#).as_deref(), Some("7"));
        assert_eq!(JsonlRequest::parse_id(b"{\"id\":7"), None);
    }

    #[test]
    fn deeply_nested_or_truncated_records_are_refused() {
        let deep = format!("{{\"json\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let _ = JsonlRequest::parse(deep.as_bytes());
        let whole = br#"{"url":"http://h/","headers":{"A":["b"]},"form":{"a":1},"id":"x","auth":{"user":"u"}}"#;
        for end in 0..whole.len() {
            assert!(JsonlRequest::parse(&whole[..end]).is_err(), "{end}");
        }
        assert!(JsonlRequest::parse(whole).is_ok());
    }
}
