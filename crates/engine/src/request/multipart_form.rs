//! Forms with several parts (`multipart/form-data`, RFC 7578): values, files, bytes and readers.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::Read;
use std::path::Path;

use haul_policy::multipart::{FormNameEscape, FormPart, FormPartContent, MultipartBoundary, MultipartLayout};

use crate::body::upload::{BodyPiece, OneShotSource, RequestBody};
use crate::{Error, ErrorKind, Result};

/// A builder of a multipart form. Only small values are kept in memory: files are opened when they
/// are sent.
///
/// ```
/// use haul::request::MultipartForm;
/// let form = MultipartForm::new().text("who", "me").bytes("what", "a.txt", "the file");
/// # drop(form);
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct MultipartForm {
    pub(super) parts: Vec<FormPart>,
    pub(super) sources: Vec<BodyPiece>,
}

impl MultipartForm {
    /// Makes a form without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a part with a name and a value, like an ordinary form field. The part has no file name
    /// and no content type.
    pub fn text(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.parts.push(FormPart::field(name, value));
        self
    }

    /// Adds a part with these bytes as a file named `filename`. The content type is guessed from
    /// the file name.
    pub fn bytes(self, name: impl AsRef<[u8]>, filename: impl AsRef<[u8]>, bytes: impl Into<Vec<u8>>) -> Self {
        self.push_source(name, filename, BodyPiece::Bytes(bytes.into().into()))
    }

    /// Adds a part with the content of the file at `path`. The file name of the part is the last
    /// segment of the path.
    ///
    /// # Errors
    /// [`ErrorKind::Read`] if the file does not exist or cannot be read.
    pub fn file(self, name: impl AsRef<[u8]>, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let piece = BodyPiece::file(path)
            .map_err(|error| Error::with_source(ErrorKind::Read, format!("cannot read {}", path.display()), error))?;
        let filename = path.file_name().unwrap_or_default().as_encoded_bytes();
        Ok(self.push_source(name, filename, piece))
    }

    /// Adds a part with everything that `reader` returns, as a file named `filename`. The form can
    /// then be sent only once, and is sent in chunks.
    pub fn reader(
        self,
        name: impl AsRef<[u8]>,
        filename: impl AsRef<[u8]>,
        reader: impl Read + Send + 'static,
    ) -> Self {
        self.push_source(name, filename, BodyPiece::Once(OneShotSource::new(reader)))
    }

    /// Adds a part that the caller has made, with any content type and header fields. If the
    /// content of the part is a [`FormPartContent::Source`], its `index` is the number, counted
    /// from 0, of one of the contents that [`bytes`](Self::bytes), [`file`](Self::file),
    /// [`reader`](Self::reader) and [`push_piece_part`](Self::push_piece_part) have added to the
    /// form.
    pub fn part(mut self, part: FormPart) -> Self {
        self.parts.push(part);
        self
    }

    /// Adds a part with a content type and header fields. `piece` becomes its content.
    pub fn push_piece_part(mut self, mut part: FormPart, piece: BodyPiece) -> Self {
        part.content = FormPartContent::Source { index: self.sources.len(), length: piece.length() };
        self.sources.push(piece);
        self.part(part)
    }

    fn push_source(self, name: impl AsRef<[u8]>, filename: impl AsRef<[u8]>, piece: BodyPiece) -> Self {
        self.push_piece_part(FormPart::file(name, filename, FormPartContent::Bytes(Vec::new())), piece)
    }

    /// Returns the value of `Content-Type` and the content of a request that sends the form.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] if a part cannot be represented in a form.
    pub fn finish(&self) -> Result<(String, RequestBody)> {
        let wrong = "the form cannot be written";
        let layout =
            MultipartLayout::new(&self.parts, &MultipartBoundary::new(random_bytes()), FormNameEscape::Percent)
                .map_err(|error| Error::with_source(ErrorKind::Setup, wrong, error))?;
        let body = RequestBody::multipart(&layout, &self.sources)
            .map_err(|error| Error::with_source(ErrorKind::Setup, wrong, error))?;
        Ok((layout.content_type, body))
    }
}

/// Returns random bytes for the boundary between the parts, so that nobody can construct content
/// that contains the boundary.
fn random_bytes() -> [u8; 16] {
    let half = || RandomState::new().build_hasher().finish().to_be_bytes();
    let mut both = [0; 16];
    both[..8].copy_from_slice(&half());
    both[8..].copy_from_slice(&half());
    both
}
