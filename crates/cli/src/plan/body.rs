//! Request bodies: their bytes, or where the bytes come from.
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
    /// A text after `--then`, with placeholders for the extracted value.
    ByValue(ValueTemplate),
    /// A regular file, streamed: a large one of `--data-binary @file`, or `-T file`.
    File(PathBuf),
    /// Standard input, of unknown length: `-T -`. It can be read only once, so that the request
    /// cannot be repeated.
    Stdin,
    /// `-F`; its `Content-Type` comes from the form's layout, unless `fields` have one.
    Multipart(FormArg),
}

impl BodyArg {
    /// Returns the bytes if the body is in memory.
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

/// The form that `-F` and `--form-string` make (RFC 7578).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FormArg {
    /// The parts of the form, in order.
    pub parts: Vec<PartArg>,
    /// `--form-escape`: escapes names in a form with backslashes.
    pub escape: NameEscape,
}

impl FormArg {
    /// Returns the sources to read, in the order of the body. A source may occur twice.
    pub fn sources(&self) -> Vec<&PartSource> {
        let mut sources = Vec::new();
        collect(&self.parts, &mut sources);
        sources
    }

    /// Returns the parts for the layout. `lengths` holds the length of each source in the order of
    /// [`FormArg::sources`]; `None` is unknown.
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

/// One part of a form.
#[derive(Clone, PartialEq, Eq)]
pub struct PartArg {
    /// The field's name.
    pub name: Option<Vec<u8>>,
    /// The file name that is sent to the server.
    pub filename: Option<Vec<u8>>,
    /// The media type of the part, given or guessed from the file's name. `None` sends no
    /// Content-Type.
    pub content_type: Option<String>,
    /// Further header lines, without line ends.
    pub headers: Vec<Vec<u8>>,
    /// The encoder that is applied when the body is made. Its name is already in `headers`.
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

/// The content of a part.
#[derive(Clone, PartialEq, Eq)]
pub enum PartContent {
    /// Bytes that are sent as they are.
    Bytes(Vec<u8>),
    /// A source that is read when the body is sent.
    Source(PartSource),
    /// A nested list of parts: `=@a,b` and `=(`.
    Mixed(Vec<PartArg>),
}

/// The file or stdin whose bytes become a multipart part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartSource {
    /// A file. If it is not regular (a pipe), its length is unknown and it can be read only once.
    File(PathBuf),
    /// Standard input. At most one part of a form may use it.
    Stdin,
}
