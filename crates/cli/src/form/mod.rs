//! Parses the values of `-F`, and collects them into a form.
//!
//! ```text
//! NAME=CONTENT   a field           NAME=@FILE[,FILE...]  files      NAME=(   opens a nested list
//! NAME=<FILE     a field's value   @-  <-                stdin      =)       closes it
//! behind each, in any order: ;type=TYPE/SUBTYPE  ;filename=NAME  ;headers=LINE  ;headers=@FILE  ;encoder=NAME
//! ```
//!
//! A word may be in double quotes, in which `\"` is a quote and `\\` a backslash. A word without
//! quotes ends at `;`, and a file name also at `,`.
//!
//! ```
//! use haul_cli::form::{ParsedPartContent, ParsedFormOption, parse};
//!
//! let (item, warnings) = parse(b"doc=@a.txt;type=text/x-log").unwrap();
//! let ParsedFormOption::Part(part) = item else { panic!("a file") };
//! assert_eq!(part.content_type.as_deref(), Some("text/x-log"));
//! assert!(matches!(part.content, ParsedPartContent::File { .. }) && warnings.is_empty());
//! assert!(parse(b"no equals sign").is_err());
//! ```

mod content_transfer_encoding;
mod value_scanner;

use std::path::PathBuf;

use crate::flags::header_value_parser::refuse_controls;
use crate::usage_error::UsageErrorReason;
pub use content_transfer_encoding::FormPartEncoding;
use value_scanner::FormValueScanner;

/// The greatest depth of nested lists (`=(`) in a form, which bounds recursion.
const DEPTH_MAX: usize = 16;

/// The form that the `-F` options describe, whose files have not been read yet. `Debug` shows only
/// the number of parts, because their contents may be secrets.
#[derive(Clone, Default)]
pub struct FormOfAllOptions {
    /// `--form-escape`: escapes quotes in field and file names with backslashes. Without it, quotes
    /// are percent-encoded.
    pub backslash: bool,
    parts: Vec<ParsedFormPart>,
    /// The nested lists that `=(` has opened and `=)` has not closed yet, the outermost first.
    open: Vec<ParsedFormPart>,
}

impl std::fmt::Debug for FormOfAllOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FormOfAllOptions({} parts)", self.parts.len() + self.open.len())
    }
}

impl FormOfAllOptions {
    /// Returns true if no `-F` was given.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.open.is_empty()
    }

    /// Adds the value of one `-F` to the form: a part, or the beginning or end of a nested list.
    pub fn push(&mut self, item: ParsedFormOption) -> Result<(), UsageErrorReason> {
        match item {
            ParsedFormOption::Part(part) => self.current_list().push(part),
            ParsedFormOption::Open(_) if self.open.len() == DEPTH_MAX => {
                return Err(UsageErrorReason::bad_use("lists are nested too deeply"));
            }
            ParsedFormOption::Open(part) => self.open.push(part),
            ParsedFormOption::Close => match self.open.pop() {
                Some(part) => self.current_list().push(part),
                None => return Err(UsageErrorReason::bad_use("\"=)\" without a \"=(\" before it")),
            },
        }
        Ok(())
    }

    /// Returns the parts of the form. Closes the nested lists that are still open, as curl does.
    pub fn into_parts(mut self) -> Vec<ParsedFormPart> {
        while let Some(part) = self.open.pop() {
            self.current_list().push(part);
        }
        self.parts
    }

    fn current_list(&mut self) -> &mut Vec<ParsedFormPart> {
        match self.open.last_mut() {
            Some(ParsedFormPart { content: ParsedPartContent::List(parts), .. }) => parts,
            _ => &mut self.parts,
        }
    }
}

/// The parsed value of one `-F`. It does not implement `Debug`, because contents may be secrets.
#[derive(Clone, PartialEq, Eq)]
pub enum ParsedFormOption {
    /// A part of the form: a field, or files under one field name.
    Part(ParsedFormPart),
    /// `=(`: begins a nested list. The parts of the next `-F` options belong to it.
    Open(ParsedFormPart),
    /// `=)`: ends the innermost open list.
    Close,
}

/// One part of a form. The file that it names has not been read yet.
#[derive(Clone, PartialEq, Eq)]
pub struct ParsedFormPart {
    /// The name of the form field; `None` if the value of `-F` begins with `=`.
    pub name: Option<Vec<u8>>,
    /// `;filename=`: the file name of this part that is sent to the server. `None` if the name is
    /// not given.
    pub filename: Option<Vec<u8>>,
    /// `;type=`: the media type of this part. `None` if the type is not given.
    pub content_type: Option<String>,
    /// `;headers=`: further header lines of this part, in order.
    pub headers: Vec<ParsedPartHeaders>,
    /// `;encoder=`: the transfer encoding of this part. `None` if the encoding is not given. It is
    /// ignored for a nested list.
    pub encoder: Option<FormPartEncoding>,
    /// The content of this part of the form.
    pub content: ParsedPartContent,
}

impl ParsedFormPart {
    /// Returns the form part for `--form-string NAME=VALUE`. Its value is sent unchanged.
    pub fn literal(name: &[u8], value: &[u8]) -> Self {
        ParsedFormPart::new(name, ParsedPartContent::Bytes(value.to_vec()))
    }

    fn new(name: &[u8], content: ParsedPartContent) -> Self {
        let name = (!name.is_empty()).then(|| name.to_vec());
        ParsedFormPart { name, filename: None, content_type: None, headers: Vec::new(), encoder: None, content }
    }
}

/// A value of `;headers=`: header lines that are added to a part of a form.
#[derive(Clone, PartialEq, Eq)]
pub enum ParsedPartHeaders {
    /// One header line, as given.
    Text(Vec<u8>),
    /// `@file`: a file with header lines. A line that begins with a blank continues the previous
    /// line, and a line that begins with `#` is a comment.
    File(PathBuf),
}

/// The content of a part of a form. The files that it names have not been read yet.
#[derive(Clone, PartialEq, Eq)]
pub enum ParsedPartContent {
    /// Bytes that are sent unchanged.
    Bytes(Vec<u8>),
    /// The content of a file, or of standard input.
    File {
        /// The path of the file; `-` is standard input.
        path: PathBuf,
        /// True for `@`, which also sends the file's name; false for `<`, which sends only its
        /// content.
        named: bool,
    },
    /// A nested list of parts, between `=(` and `=)`.
    List(Vec<ParsedFormPart>),
}

/// Splits the value of `-F` at the first `=` into the name of the field and the text after the `=`.
pub(crate) fn split(text: &[u8]) -> Result<(&[u8], &[u8]), UsageErrorReason> {
    match text.iter().position(|&byte| byte == b'=') {
        Some(at) => Ok((&text[..at], &text[at + 1..])),
        None => Err(UsageErrorReason::bad_use("expected NAME=CONTENT")),
    }
}

/// Parses the value of one `-F`. Returns the parsed value, and warnings about ignored text.
pub fn parse(text: &[u8]) -> Result<(ParsedFormOption, Vec<String>), UsageErrorReason> {
    let (name, content) = split(text)?;
    let mut reader = FormOptionParser { words: FormValueScanner::new(content), warnings: Vec::new() };
    let item = match content {
        b")" if name.is_empty() => ParsedFormOption::Close,
        [b'(', rest @ ..] => {
            reader.words = FormValueScanner::new(rest);
            let (_, part) = reader.parse_part(false)?;
            ParsedFormOption::Open(ParsedFormPart {
                content: ParsedPartContent::List(Vec::new()),
                filename: None,
                ..with_name(part, name)
            })
        }
        [b'@', rest @ ..] => {
            reader.words = FormValueScanner::new(rest);
            ParsedFormOption::Part(reader.parse_files(name)?)
        }
        [b'<', rest @ ..] => {
            reader.words = FormValueScanner::new(rest);
            let (path, part) = reader.parse_part(false)?;
            let content = ParsedPartContent::File { path: file_path(&path)?, named: false };
            // As in curl, a value has no file name.
            ParsedFormOption::Part(ParsedFormPart { content, filename: None, ..with_name(part, name) })
        }
        _ => {
            let (bytes, part) = reader.parse_part(false)?;
            ParsedFormOption::Part(ParsedFormPart { content: ParsedPartContent::Bytes(bytes), ..with_name(part, name) })
        }
    };
    Ok((item, reader.warnings))
}

fn with_name(part: ParsedFormPart, name: &[u8]) -> ParsedFormPart {
    ParsedFormPart { name: (!name.is_empty()).then(|| name.to_vec()), ..part }
}

fn file_path(name: &[u8]) -> Result<PathBuf, UsageErrorReason> {
    match name {
        b"" => Err(UsageErrorReason::Blank),
        name => Ok(crate::flag_value::to_path(name)),
    }
}

struct FormOptionParser<'t> {
    words: FormValueScanner<'t>,
    warnings: Vec<String>,
}

impl FormOptionParser<'_> {
    /// Parses the file names after `@` in the value of `-F`, with their parameters such as
    /// `;type=`. Several files become a nested list under one field name.
    fn parse_files(&mut self, name: &[u8]) -> Result<ParsedFormPart, UsageErrorReason> {
        let mut files = Vec::new();
        loop {
            let (path, part) = self.parse_part(true)?;
            files.push(ParsedFormPart {
                content: ParsedPartContent::File { path: file_path(&path)?, named: true },
                ..part
            });
            if !self.words.skip_byte(b',') {
                break;
            }
        }
        match files.pop() {
            Some(only) if files.is_empty() => Ok(with_name(only, name)),
            last => {
                files.extend(last);
                Ok(ParsedFormPart::new(name, ParsedPartContent::List(files)))
            }
        }
    }

    /// Parses one file name or content of `-F`, and the parameters after it, such as
    /// `;type=text/html`. `listed` is true in a list of files, where an unquoted comma ends a name
    /// or parameter. Returns the name or content, and a part with the parameters but no content.
    fn parse_part(&mut self, listed: bool) -> Result<(Vec<u8>, ParsedFormPart), UsageErrorReason> {
        let content = self.words.read_word(listed, &mut self.warnings);
        let mut part = ParsedFormPart::new(b"", ParsedPartContent::Bytes(Vec::new()));
        while self.words.skip_byte(b';') {
            if self.words.skip_blanks_and_prefix(b"type=") {
                part.content_type = Some(self.parse_content_type(listed)?);
            } else if self.words.skip_blanks_and_prefix(b"filename=") {
                part.filename = Some(self.words.read_word(listed, &mut self.warnings));
            } else if self.words.skip_blanks_and_prefix(b"headers=") {
                let is_file = self.words.skip_byte(b'@') || self.words.skip_byte(b'<');
                let word = self.words.read_word(listed, &mut self.warnings);
                part.headers.push(match is_file {
                    true => ParsedPartHeaders::File(file_path(&word)?),
                    false => {
                        refuse_controls(&word)?;
                        ParsedPartHeaders::Text(word)
                    }
                });
            } else if self.words.skip_blanks_and_prefix(b"encoder=") {
                let name = self.words.read_word(listed, &mut self.warnings);
                part.encoder = Some(FormPartEncoding::from_name(&name).ok_or(UsageErrorReason::Encoder)?);
            } else {
                self.words.read_word(listed, &mut self.warnings);
                self.warnings.push("an unknown part of a form field is left out".to_owned());
            }
        }
        Ok((content, part))
    }

    /// Parses the media type after `;type=`, with its own parameters such as `;charset=`. It ends
    /// at the next parameter of `-F`, such as `;filename=`.
    fn parse_content_type(&mut self, listed: bool) -> Result<String, UsageErrorReason> {
        let text = self.words.read_media_type(listed);
        refuse_controls(text)?;
        let text = std::str::from_utf8(text).map_err(|_| UsageErrorReason::NotUtf8)?;
        let essence = text.split(';').next().unwrap_or_default();
        match essence.split_once('/') {
            Some((kind, subtype)) if !kind.is_empty() && !subtype.is_empty() && !kind.contains(' ') => {
                Ok(text.to_owned())
            }
            _ => Err(UsageErrorReason::bad_use("\";type=\" expects TYPE/SUBTYPE")),
        }
    }
}

#[cfg(test)]
mod tests;
