//! The grammar of `-F`, and the form that several of them make.
//!
//! ```text
//! NAME=CONTENT   a field           NAME=@FILE[,FILE...]  files      NAME=(   opens a nested list
//! NAME=<FILE     a field's value   @-  <-                stdin      =)       closes it
//! behind each, in any order: ;type=TYPE/SUBTYPE  ;filename=NAME  ;headers=LINE  ;headers=@FILE  ;encoder=NAME
//! ```
//!
//! Words may stand in double quotes, in which `\` makes `"` and `\` literal; else they end at `;`,
//! and file names at `,`.
//!
//! ```
//! use haul_cli::form::{ContentLow, Item, parse};
//!
//! let (item, warnings) = parse(b"doc=@a.txt;type=text/x-log").unwrap();
//! let Item::Part(part) = item else { panic!("a file") };
//! assert_eq!(part.content_type.as_deref(), Some("text/x-log"));
//! assert!(matches!(part.content, ContentLow::File { .. }) && warnings.is_empty());
//! assert!(parse(b"no equals sign").is_err());
//! ```

mod encoder;
mod word;

use std::path::PathBuf;

use crate::flags::field::refuse_controls;
use crate::usage::Reason;
pub use encoder::Encoder;
use word::Words;

/// The greatest depth of nested `=(` lists: more than anyone needs, and far from the end of the
/// stack.
const DEPTH_MAX: usize = 16;

/// A form as given, with files not read yet. `Debug` shows the number of parts.
#[derive(Clone, Default)]
pub struct FormLow {
    /// `--form-escape`.
    pub backslash: bool,
    parts: Vec<PartLow>,
    /// The lists that are open, outermost first.
    open: Vec<PartLow>,
}

impl std::fmt::Debug for FormLow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FormLow({} parts)", self.parts.len() + self.open.len())
    }
}

impl FormLow {
    /// Returns true if there was no `-F` at all.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.open.is_empty()
    }

    /// Adds the item of one `-F`.
    pub fn push(&mut self, item: Item) -> Result<(), Reason> {
        match item {
            Item::Part(part) => self.list().push(part),
            Item::Open(_) if self.open.len() == DEPTH_MAX => {
                return Err(Reason::bad_use("lists are nested too deeply"));
            }
            Item::Open(part) => self.open.push(part),
            Item::Close => match self.open.pop() {
                Some(part) => self.list().push(part),
                None => return Err(Reason::bad_use("\"=)\" without a \"=(\" before it")),
            },
        }
        Ok(())
    }

    /// Returns the parts. Lists that are still open are closed, as in curl.
    pub fn into_parts(mut self) -> Vec<PartLow> {
        while let Some(part) = self.open.pop() {
            self.list().push(part);
        }
        self.parts
    }

    fn list(&mut self) -> &mut Vec<PartLow> {
        match self.open.last_mut() {
            Some(PartLow { content: ContentLow::List(parts), .. }) => parts,
            _ => &mut self.parts,
        }
    }
}

/// The item that one `-F` adds. There is no `Debug`: contents may be secrets.
#[derive(Clone, PartialEq, Eq)]
pub enum Item {
    /// A part.
    Part(PartLow),
    /// `=(`: the next parts go into this list.
    Open(PartLow),
    /// `=)`: the list ends.
    Close,
}

/// One part.
#[derive(Clone, PartialEq, Eq)]
pub struct PartLow {
    /// The field's name.
    pub name: Option<Vec<u8>>,
    /// `;filename=`.
    pub filename: Option<Vec<u8>>,
    /// `;type=`.
    pub content_type: Option<String>,
    /// `;headers=`, in order.
    pub headers: Vec<LineLow>,
    /// `;encoder=`. Of a list it means nothing.
    pub encoder: Option<Encoder>,
    /// The content of the part.
    pub content: ContentLow,
}

impl PartLow {
    /// Makes a field whose value is taken literally: `--form-string`.
    pub fn literal(name: &[u8], value: &[u8]) -> Self {
        PartLow::new(name, ContentLow::Bytes(value.to_vec()))
    }

    fn new(name: &[u8], content: ContentLow) -> Self {
        let name = (!name.is_empty()).then(|| name.to_vec());
        PartLow { name, filename: None, content_type: None, headers: Vec::new(), encoder: None, content }
    }
}

/// `;headers=`.
#[derive(Clone, PartialEq, Eq)]
pub enum LineLow {
    /// A header line.
    Text(Vec<u8>),
    /// `@file`: one header a line. A line that begins with a blank continues the line before; a
    /// line that begins with `#` is a comment.
    File(PathBuf),
}

/// The content of a part, with files not read yet.
#[derive(Clone, PartialEq, Eq)]
pub enum ContentLow {
    /// Bytes that are sent as they are.
    Bytes(Vec<u8>),
    /// A file's.
    File {
        /// The file; `-` is standard input.
        path: PathBuf,
        /// `@` sends the file's name to the server; `<` does not.
        named: bool,
    },
    /// Several parts.
    List(Vec<PartLow>),
}

/// Splits at the first `=`.
pub(crate) fn split(text: &[u8]) -> Result<(&[u8], &[u8]), Reason> {
    match text.iter().position(|&byte| byte == b'=') {
        Some(at) => Ok((&text[..at], &text[at + 1..])),
        None => Err(Reason::bad_use("expected NAME=CONTENT")),
    }
}

/// Reads the value of one `-F`. Returns the item and warnings about ignored text.
pub fn parse(text: &[u8]) -> Result<(Item, Vec<String>), Reason> {
    let (name, content) = split(text)?;
    let mut reader = Reader { words: Words::new(content), warnings: Vec::new() };
    let item = match content {
        b")" if name.is_empty() => Item::Close,
        [b'(', rest @ ..] => {
            reader.words = Words::new(rest);
            let (_, part) = reader.part(false)?;
            Item::Open(PartLow { content: ContentLow::List(Vec::new()), filename: None, ..named(part, name) })
        }
        [b'@', rest @ ..] => {
            reader.words = Words::new(rest);
            Item::Part(reader.files(name)?)
        }
        [b'<', rest @ ..] => {
            reader.words = Words::new(rest);
            let (path, part) = reader.part(false)?;
            let content = ContentLow::File { path: file(&path)?, named: false };
            // As in curl, a value has no file name.
            Item::Part(PartLow { content, filename: None, ..named(part, name) })
        }
        _ => {
            let (bytes, part) = reader.part(false)?;
            Item::Part(PartLow { content: ContentLow::Bytes(bytes), ..named(part, name) })
        }
    };
    Ok((item, reader.warnings))
}

fn named(part: PartLow, name: &[u8]) -> PartLow {
    PartLow { name: (!name.is_empty()).then(|| name.to_vec()), ..part }
}

fn file(name: &[u8]) -> Result<PathBuf, Reason> {
    match name {
        b"" => Err(Reason::Blank),
        name => crate::value::path(name),
    }
}

struct Reader<'t> {
    words: Words<'t>,
    warnings: Vec<String>,
}

impl Reader<'_> {
    /// The files of `@`; more than one are a list under one name.
    fn files(&mut self, name: &[u8]) -> Result<PartLow, Reason> {
        let mut files = Vec::new();
        loop {
            let (path, part) = self.part(true)?;
            files.push(PartLow { content: ContentLow::File { path: file(&path)?, named: true }, ..part });
            if !self.words.take(b',') {
                break;
            }
        }
        match files.pop() {
            Some(only) if files.is_empty() => Ok(named(only, name)),
            last => {
                files.extend(last);
                Ok(PartLow::new(name, ContentLow::List(files)))
            }
        }
    }

    /// Reads one content and its parameters.
    fn part(&mut self, listed: bool) -> Result<(Vec<u8>, PartLow), Reason> {
        let content = self.words.word(listed, &mut self.warnings);
        let mut part = PartLow::new(b"", ContentLow::Bytes(Vec::new()));
        while self.words.take(b';') {
            if self.words.take_prefix(b"type=") {
                part.content_type = Some(self.content_type(listed)?);
            } else if self.words.take_prefix(b"filename=") {
                part.filename = Some(self.words.word(listed, &mut self.warnings));
            } else if self.words.take_prefix(b"headers=") {
                let is_file = self.words.take(b'@') || self.words.take(b'<');
                let word = self.words.word(listed, &mut self.warnings);
                part.headers.push(match is_file {
                    true => LineLow::File(file(&word)?),
                    false => {
                        refuse_controls(&word)?;
                        LineLow::Text(word)
                    }
                });
            } else if self.words.take_prefix(b"encoder=") {
                let name = self.words.word(listed, &mut self.warnings);
                part.encoder = Some(Encoder::of(&name).ok_or(Reason::Encoder)?);
            } else {
                self.words.word(listed, &mut self.warnings);
                self.warnings.push("an unknown part of a form field is left out".to_owned());
            }
        }
        Ok((content, part))
    }

    /// A type and its parameters, which reach up to the next word that is ours.
    fn content_type(&mut self, listed: bool) -> Result<String, Reason> {
        let text = self.words.media_type(listed);
        refuse_controls(text)?;
        let text = std::str::from_utf8(text).map_err(|_| Reason::NotUtf8)?;
        let essence = text.split(';').next().unwrap_or_default();
        match essence.split_once('/') {
            Some((kind, subtype)) if !kind.is_empty() && !subtype.is_empty() && !kind.contains(' ') => {
                Ok(text.to_owned())
            }
            _ => Err(Reason::bad_use("\";type=\" expects TYPE/SUBTYPE")),
        }
    }
}

#[cfg(test)]
mod tests;
