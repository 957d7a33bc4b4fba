//! Request bodies: the bytes, or the files from which they are read when they are sent.
//!
//! ```
//! use haul_cli::plan::{FormArg, PartArg, PartContent, PartSource};
//! use haul_policy::multipart::{MultipartBoundary, MultipartLayout, MultipartPiece};
//!
//! let file = PartContent::Source(PartSource::File("a.txt".into()));
//! let form = FormArg { parts: vec![PartArg { name: Some(b"a".to_vec()), content: file, ..PartArg::default() }], ..FormArg::default() };
//! assert_eq!(form.sources(), [&PartSource::File("a.txt".into())]);
//! let layout = MultipartLayout::new(&form.parts_of(&[Some(7)]), &MultipartBoundary::new([0; 16]), form.escape).unwrap();
//! assert!(matches!(layout.pieces[1], MultipartPiece::Source { index: 0, length: Some(7) }));
//! ```

use std::path::PathBuf;

use haul_policy::multipart::{FormPart, FormPartContent, NameEscape};

use super::value_template::ValueTemplate;
use crate::form::PartEncoder;

/// A request's body. `Debug` does not show its bytes.
#[derive(Clone, PartialEq, Eq)]
pub enum BodyArg {
    /// Bytes that are sent as they are.
    Bytes(Vec<u8>),
    /// A text after `--then` that contains placeholders for the extracted value.
    ByValue(ValueTemplate),
    /// A regular file that is read while it is sent: `--data-binary @file` with a large file, or
    /// `-T file`.
    File(PathBuf),
    /// Standard input (`-T -`), whose length is unknown. It can be read only once, so that the
    /// request cannot be sent again.
    Stdin,
    /// The form that `-F` describes. Its layout determines the field `Content-Type`, unless `-H`
    /// sets that.
    Multipart(FormArg),
}

impl BodyArg {
    /// Returns the bytes of the body if they are in memory.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            BodyArg::Bytes(bytes) => Some(bytes),
            BodyArg::ByValue(_) | BodyArg::File(_) | BodyArg::Stdin | BodyArg::Multipart(_) => None,
        }
    }
}

impl std::fmt::Debug for BodyArg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BodyArg::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            BodyArg::ByValue(text) => text.fmt(f),
            BodyArg::File(path) => write!(f, "File({path:?})"),
            BodyArg::Stdin => f.write_str("Stdin"),
            BodyArg::Multipart(form) => write!(f, "Multipart({} parts)", form.parts.len()),
        }
    }
}

/// The form that `-F` and `--form-string` describe (RFC 7578).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FormArg {
    /// The parts of the form, in order.
    pub parts: Vec<PartArg>,
    /// `--form-escape`: the way in which quotes in field and file names are escaped.
    pub escape: NameEscape,
}

impl FormArg {
    /// Returns the files of the form, in the order of the body. A file may occur twice.
    pub fn sources(&self) -> Vec<&PartSource> {
        let mut sources = Vec::new();
        collect(&self.parts, &mut sources);
        sources
    }

    /// Returns the parts in the engine's form, for its
    /// [`MultipartLayout`](haul_policy::multipart::MultipartLayout). `lengths` holds the length of
    /// each source in the order of [`FormArg::sources`]; `None` is an unknown length.
    pub fn parts_of(&self, lengths: &[Option<u64>]) -> Vec<FormPart> {
        convert(&self.parts, lengths, &mut 0)
    }
}

fn collect<'p>(parts: &'p [PartArg], sources: &mut Vec<&'p PartSource>) {
    for part in parts {
        match &part.content {
            PartContent::Bytes(_) => {}
            PartContent::Source(source) => sources.push(source),
            PartContent::Mixed(parts) => collect(parts, sources),
        }
    }
}

fn convert(parts: &[PartArg], lengths: &[Option<u64>], next: &mut usize) -> Vec<FormPart> {
    let part = |part: &PartArg| FormPart {
        name: part.name.clone(),
        filename: part.filename.clone(),
        content_type: part.content_type.clone(),
        headers: part.headers.clone(),
        content: match &part.content {
            PartContent::Bytes(bytes) => FormPartContent::Bytes(bytes.clone()),
            PartContent::Source(_) => {
                let index = *next;
                *next += 1;
                FormPartContent::Source { index, length: lengths.get(index).copied().flatten() }
            }
            PartContent::Mixed(parts) => FormPartContent::Mixed(convert(parts, lengths, next)),
        },
    };
    parts.iter().map(part).collect()
}

/// One part of a form: its header fields and its content.
#[derive(Clone, PartialEq, Eq)]
pub struct PartArg {
    /// The name of the field; `None` sends none.
    pub name: Option<Vec<u8>>,
    /// The file name that is sent to the server.
    pub filename: Option<Vec<u8>>,
    /// The media type of the part, given or guessed from the file's name. `None` sends no
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// Further header lines of the part, without line ends.
    pub headers: Vec<Vec<u8>>,
    /// The encoding that is applied to the content when the body is made. `headers` already
    /// contains its `Content-Transfer-Encoding`.
    pub encoder: Option<PartEncoder>,
    /// The content of the part.
    pub content: PartContent,
}

impl Default for PartArg {
    fn default() -> Self {
        PartArg {
            name: None,
            filename: None,
            content_type: None,
            headers: Vec::new(),
            encoder: None,
            content: PartContent::Bytes(Vec::new()),
        }
    }
}

/// The content of a part of a form.
#[derive(Clone, PartialEq, Eq)]
pub enum PartContent {
    /// Bytes that are sent as they are.
    Bytes(Vec<u8>),
    /// A source that is read when the body is sent.
    Source(PartSource),
    /// A nested list of parts, which `=@a,b` or `=(` describes.
    Mixed(Vec<PartArg>),
}

/// The file or standard input from which the content of a part is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartSource {
    /// A file. A file that is not regular, such as a pipe, has no known length and can be read only
    /// once.
    File(PathBuf),
    /// Standard input, which at most one part of a form may use.
    Stdin,
}
