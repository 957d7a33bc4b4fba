//! The values of `-d` and similar options: a text, or the name of a file that contains it.

use std::path::PathBuf;

use haul_policy::urlencode::{DataUrlencodeArg, DataUrlencodeSource};

use crate::usage_error::UsageErrorReason;

/// The value of one `-d`, of a similar option such as `--json`, or of `--url-query`. `Debug` shows
/// only the kind, because the value may be a secret.
#[derive(Clone)]
pub struct ParsedDataOption {
    /// The option to which the value belongs.
    pub kind: DataOptionKind,
    /// The part of the value before `=` or `@`, which is sent without encoding. `None` if the value
    /// has no such part, and for options other than `--data-urlencode`.
    pub name: Option<Vec<u8>>,
    /// The value of this option, or the name of the file that contains the value.
    pub text: TextOrFile,
}

impl ParsedDataOption {
    /// Parses a value of `--data-urlencode`: `content`, `=content`, `name=content`, `@file` or
    /// `name@file`.
    pub(crate) fn url_encode(argument: &[u8]) -> Result<Self, UsageErrorReason> {
        let field = DataUrlencodeArg::parse(argument);
        let text = match field.source {
            DataUrlencodeSource::Text(text) => TextOrFile::Text(text.into()),
            DataUrlencodeSource::File(b"") => return Err(UsageErrorReason::Blank),
            DataUrlencodeSource::File(name) => TextOrFile::File(crate::flag_value::to_path(name)),
        };
        Ok(ParsedDataOption { kind: DataOptionKind::UrlEncode, name: field.name.map(<[u8]>::to_vec), text })
    }
}

impl std::fmt::Debug for ParsedDataOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ParsedDataOption({:?})", self.kind)
    }
}

/// The options that set request content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataOptionKind {
    /// `-d`: sends a text, or a file without its CR, LF and NUL characters.
    Data,
    /// `--data-binary`: sends a text, or a file, unchanged.
    Binary,
    /// `--data-raw`: sends a text unchanged, even if it begins with `@`.
    Raw,
    /// `--data-urlencode` and `--url-query`: the value is percent-encoded, and a blank becomes `+`.
    UrlEncode,
    /// `--json`: sends a text, or a file, unchanged. Several values are joined without `&`, and the
    /// media type is `application/json`.
    Json,
}

impl DataOptionKind {
    /// Returns the name of the option for messages, such as `--data`.
    pub fn option(self) -> &'static str {
        match self {
            DataOptionKind::Data => "--data",
            DataOptionKind::Binary => "--data-binary",
            DataOptionKind::Raw => "--data-raw",
            DataOptionKind::UrlEncode => "--data-urlencode",
            DataOptionKind::Json => "--json",
        }
    }
}

/// The value of an option: a text, or the name of a file that contains the text (`@file`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextOrFile {
    /// The value is this text.
    Text(Vec<u8>),
    /// The file that contains the text; `-` is standard input.
    File(PathBuf),
}

impl TextOrFile {
    /// Parses the value of an option. `@file` names a file, and any other value is the text itself.
    pub(crate) fn new(bytes: &[u8]) -> Result<Self, UsageErrorReason> {
        Ok(match bytes.strip_prefix(b"@") {
            Some(b"") => return Err(UsageErrorReason::Blank),
            Some(name) => TextOrFile::File(crate::flag_value::to_path(name)),
            None => TextOrFile::Text(bytes.to_vec()),
        })
    }
}
