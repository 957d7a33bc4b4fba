//! Request bodies: the bytes, or the files from which they are read when they are sent.
//!
//! ```
//! use haul_cli::plan::{FormArgs, FormPartArg, FormPartArgContent, FormPartSource};
//! use haul_policy::multipart::{MultipartBoundary, MultipartLayout, MultipartPiece};
//!
//! let file = FormPartArgContent::Source(FormPartSource::File("a.txt".into()));
//! let form = FormArgs { parts: vec![FormPartArg { name: Some(b"a".to_vec()), content: file, ..FormPartArg::default() }], ..FormArgs::default() };
//! assert_eq!(form.sources(), [&FormPartSource::File("a.txt".into())]);
//! let layout = MultipartLayout::new(&form.parts_of(&[Some(7)]), &MultipartBoundary::new([0; 16]), form.escape).unwrap();
//! assert!(matches!(layout.pieces[1], MultipartPiece::Source { index: 0, length: Some(7) }));
//! ```

use std::path::PathBuf;

use haul_policy::multipart::{FormNameEscape, FormPart, FormPartContent};

use super::value_template::ValueTemplate;
use crate::form::FormPartEncoding;

/// A request's body. `Debug` does not show its bytes.
#[derive(Clone, PartialEq, Eq)]
pub enum RequestBodyArg {
    /// Bytes that are sent as they are.
    Bytes(Vec<u8>),
    /// A text with placeholders, which are replaced by extracted values (in a stage after `--then`)
    /// or by the columns of a row (`--csv-in`).
    ByValue(ValueTemplate),
    /// A regular file that is read while it is sent: `--data-binary @file` with a large file, or
    /// `-T file`.
    File(PathBuf),
    /// Standard input (`-T -`), whose length is unknown. It can be read only once, so that the
    /// request cannot be sent again.
    Stdin,
    /// The form that `-F` describes. Its layout determines the field `Content-Type`, unless `-H`
    /// sets this field.
    Multipart(FormArgs),
}

impl RequestBodyArg {
    /// Returns the bytes of the body if it is [`RequestBodyArg::Bytes`]; otherwise `None`.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            RequestBodyArg::Bytes(bytes) => Some(bytes),
            RequestBodyArg::ByValue(_)
            | RequestBodyArg::File(_)
            | RequestBodyArg::Stdin
            | RequestBodyArg::Multipart(_) => None,
        }
    }
}

impl std::fmt::Debug for RequestBodyArg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RequestBodyArg::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            RequestBodyArg::ByValue(text) => text.fmt(f),
            RequestBodyArg::File(path) => write!(f, "File({path:?})"),
            RequestBodyArg::Stdin => f.write_str("Stdin"),
            RequestBodyArg::Multipart(form) => write!(f, "Multipart({} parts)", form.parts.len()),
        }
    }
}

/// The form that `-F` and `--form-string` describe (RFC 7578).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FormArgs {
    /// The parts of the form, in order.
    pub parts: Vec<FormPartArg>,
    /// `--form-escape`: the method by which quotes in field and file names are escaped.
    pub escape: FormNameEscape,
}

impl FormArgs {
    /// Returns the files of the form (or standard input), in the order of the body. A file may
    /// occur twice.
    pub fn sources(&self) -> Vec<&FormPartSource> {
        let mut sources = Vec::new();
        collect_sources(&self.parts, &mut sources);
        sources
    }

    /// Converts the parts to the engine's type, for a
    /// [`MultipartLayout`](haul_policy::multipart::MultipartLayout). `lengths` contains the length
    /// of each file, in the order of [`FormArgs::sources`]; `None` is an unknown length.
    pub fn parts_of(&self, lengths: &[Option<u64>]) -> Vec<FormPart> {
        convert_parts(&self.parts, lengths, &mut 0)
    }
}

fn collect_sources<'p>(parts: &'p [FormPartArg], sources: &mut Vec<&'p FormPartSource>) {
    for part in parts {
        match &part.content {
            FormPartArgContent::Bytes(_) => {}
            FormPartArgContent::Source(source) => sources.push(source),
            FormPartArgContent::Mixed(parts) => collect_sources(parts, sources),
        }
    }
}

fn convert_parts(parts: &[FormPartArg], lengths: &[Option<u64>], next: &mut usize) -> Vec<FormPart> {
    let part = |part: &FormPartArg| FormPart {
        name: part.name.clone(),
        filename: part.filename.clone(),
        content_type: part.content_type.clone(),
        headers: part.headers.clone(),
        content: match &part.content {
            FormPartArgContent::Bytes(bytes) => FormPartContent::Bytes(bytes.clone()),
            FormPartArgContent::Source(_) => {
                let index = *next;
                *next += 1;
                FormPartContent::Source { index, length: lengths.get(index).copied().flatten() }
            }
            FormPartArgContent::Mixed(parts) => FormPartContent::Mixed(convert_parts(parts, lengths, next)),
        },
    };
    parts.iter().map(part).collect()
}

/// A part of a form: its header fields and its content.
#[derive(Clone, PartialEq, Eq)]
pub struct FormPartArg {
    /// The name of the form field; `None` sends no name.
    pub name: Option<Vec<u8>>,
    /// The file name that is sent to the server; `None` sends no file name.
    pub filename: Option<Vec<u8>>,
    /// The media type of the part, given or guessed from the file's name. `None` sends no
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// Further header lines of the part, without line ends.
    pub headers: Vec<Vec<u8>>,
    /// The encoding that is applied to the content when the body is made; `None` leaves the content
    /// unchanged. `headers` already contains its `Content-Transfer-Encoding`.
    pub encoder: Option<FormPartEncoding>,
    /// The content of this part of the form.
    pub content: FormPartArgContent,
}

impl Default for FormPartArg {
    fn default() -> Self {
        FormPartArg {
            name: None,
            filename: None,
            content_type: None,
            headers: Vec::new(),
            encoder: None,
            content: FormPartArgContent::Bytes(Vec::new()),
        }
    }
}

/// The content of a part of a form.
#[derive(Clone, PartialEq, Eq)]
pub enum FormPartArgContent {
    /// Bytes that are sent as they are.
    Bytes(Vec<u8>),
    /// A source that is read when the body is sent.
    Source(FormPartSource),
    /// A nested list of parts, which `=@a,b` or `=(` describes.
    Mixed(Vec<FormPartArg>),
}

/// The file or standard input from which the content of a part is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormPartSource {
    /// A file. A file that is not regular, such as a pipe, has no known length and can be read only
    /// once.
    File(PathBuf),
    /// Standard input, which at most one part of a form may use.
    Stdin,
}
