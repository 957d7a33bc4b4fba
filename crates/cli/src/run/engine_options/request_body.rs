//! Converts the request body of the plan to the engine's: bytes, files, standard input and forms.

use std::borrow::Cow;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;

use haul::body::upload::{BodyPiece, RequestBody};
use haul::{Error, ErrorKind, RequestOptions, Result};
use haul_policy::multipart::{MultipartBoundary, MultipartLayout};

use crate::file_and_environment_access::stdin_content;
use crate::plan::{self, ContinueAt, FormArgs, FormPartArg, FormPartArgContent, FormPartSource, RequestArgs};

/// Sets the request body in the request options, with the header field `Content-Range` for `-r`,
/// and the `Content-Type` of a form.
pub(crate) fn set_content(options: &mut RequestOptions, body: &plan::RequestBodyArg) -> Result<()> {
    let content = match body {
        plan::RequestBodyArg::Bytes(bytes) => bytes.as_slice().into(),
        // Its stage fills it in for each page.
        plan::RequestBodyArg::ByValue(text) => text.to_source_text().as_slice().into(),
        plan::RequestBodyArg::File(path) => file(path)?,
        plan::RequestBodyArg::Stdin => RequestBody::pieces([BodyPiece::Once(stdin_content())]),
        plan::RequestBodyArg::Multipart(form) => multipart(options, form)?,
    };
    // A range asks for a part of the content only without a request body (RFC 9110 section 14.2).
    // With one, as in curl, it names the part that is sent.
    let range = options.range.take().filter(|_| !matches!(body, plan::RequestBodyArg::Multipart(_)));
    options.content_range = range.zip(content.length()).map(|(range, length)| format!("{range}/{length}"));
    options.body = Some(content);
    Ok(())
}

/// The content of one upload (`-T`), with its `Content-Range`.
pub(crate) struct UploadContent {
    /// The bytes that are uploaded.
    pub(crate) body: RequestBody,
    /// The value of the header field `Content-Range`; `None` sends no such field.
    pub(crate) range: Option<String>,
}

impl UploadContent {
    /// Returns standard input, up to its end, as the content of an upload.
    ///
    /// # Errors
    /// `-C` is given, which requires content of known length.
    pub(crate) fn from_stdin(request: &RequestArgs) -> Result<Self> {
        Self::with_unknown_length(BodyPiece::Once(stdin_content()), request)
    }

    /// Returns upload content of unknown length. With `-r 0-9`, as in curl, `Content-Range` has
    /// `0-9/*`: the complete length is unknown (RFC 9110 section 14.4). Fails if `-C` gives an
    /// offset.
    fn with_unknown_length(piece: BodyPiece, request: &RequestArgs) -> Result<Self> {
        if let Some(ContinueAt::Offset(_)) = request.continue_at {
            return Err(Error::new(ErrorKind::Setup, "an upload of unknown length cannot be resumed; leave -C out"));
        }
        let range = request.range.as_ref().map(|range| format!("{range}/*"));
        Ok(Self { body: RequestBody::pieces([piece]), range })
    }

    /// Returns the content of a file to upload. With `-C`, the content begins at the offset of that
    /// option. With `-r`, as in curl, `Content-Range` has the range of that option, although the
    /// whole file is sent.
    ///
    /// # Errors
    /// * The file cannot be read.
    /// * The offset of `-C` is not before the end of the file, so that no content remains to be
    ///   sent. The error has the exit code of curl for a file that is already completely uploaded.
    pub(crate) fn from_file(path: &Path, request: &RequestArgs) -> Result<Self> {
        let mut piece = BodyPiece::file(path).map_err(|error| unreadable(path, error))?;
        let BodyPiece::File { offset, length, .. } = &mut piece else {
            return Self::with_unknown_length(piece, request);
        };
        let total = *length;
        let from = match request.continue_at {
            Some(ContinueAt::Offset(from)) => Some(from),
            // Only the server knows what it has: curl says that it begins at 0.
            Some(ContinueAt::OutputSize) => Some(0),
            None => None,
        };
        let range = match (from, &request.range) {
            // Of nothing there is no range.
            (Some(0), _) if total == 0 => None,
            (Some(from), _) if from >= total => {
                return Err(Error::new(ErrorKind::PartialBody, "File already completely uploaded"));
            }
            (Some(from), _) => {
                (*offset, *length) = (from, total - from);
                Some(format!("{from}-{}/{total}", total - 1))
            }
            (None, Some(range)) => Some(format!("{range}/{total}")),
            (None, None) => None,
        };
        Ok(Self { body: RequestBody::pieces([piece]), range })
    }
}

/// Returns the whole content of a file as a request body.
fn file(path: &Path) -> Result<RequestBody> {
    RequestBody::file(path).map_err(|error| unreadable(path, error))
}

fn multipart(options: &mut RequestOptions, form: &FormArgs) -> Result<RequestBody> {
    let mut form = Cow::Borrowed(form);
    if form.parts.iter().any(is_encoded) {
        encode(&mut form.to_mut().parts)?;
    }
    let piece = |source: &&FormPartSource| match source {
        FormPartSource::Stdin => Ok(BodyPiece::Once(stdin_content())),
        FormPartSource::File(path) => BodyPiece::file(path).map_err(|error| unreadable(path, error)),
    };
    let pieces = form.sources().iter().map(piece).collect::<Result<Vec<_>>>()?;
    let lengths: Vec<_> = pieces.iter().map(|piece| RequestBody::pieces([piece.clone()]).length()).collect();
    let random = RandomState::new();
    let mut entropy = [0; 16];
    for (half, number) in entropy.chunks_exact_mut(8).zip([1_u64, 2]) {
        let mut hasher = random.build_hasher();
        hasher.write_u64(number);
        half.copy_from_slice(&hasher.finish().to_be_bytes());
    }
    let refused = |error| Error::with_source(ErrorKind::Setup, "the form cannot be sent", error);
    let own = options.fields.iter().position(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let own = own.map(|at| String::from_utf8_lossy(&options.fields.remove(at).1).into_owned());
    let kind = own.as_deref().map(|own| own.split(';').next().unwrap_or_default().trim());
    let is_form = kind.is_none_or(|kind| kind.eq_ignore_ascii_case("multipart/form-data"));
    let lay = if is_form { MultipartLayout::new } else { MultipartLayout::with_attachments };
    let layout = lay(&form.parts_of(&lengths), &MultipartBoundary::new(entropy), form.escape)
        .map_err(|error| Error::with_source(ErrorKind::Setup, "the form cannot be sent", error))?;
    // A type of the user's own still needs the boundary.
    let boundary = layout.content_type.split_once("; ").map_or("", |(_, boundary)| boundary);
    options.content_type = Some(match own {
        Some(own) => format!("{own}; {boundary}"),
        None => layout.content_type.clone(),
    });
    RequestBody::multipart(&layout, &pieces).map_err(refused)
}

/// Returns true if the form part, or a part of its nested list, has an encoder that changes the
/// content.
fn is_encoded(part: &FormPartArg) -> bool {
    match &part.content {
        FormPartArgContent::Mixed(parts) => parts.iter().any(is_encoded),
        _ => part.encoder.is_some_and(|encoder| !encoder.is_identity()),
    }
}

/// Encodes, in memory, the content of all form parts that have an encoder. The length of the form
/// is then known, so that the form is sent without chunked coding and can be sent again.
fn encode(parts: &mut [FormPartArg]) -> Result<()> {
    for part in parts {
        if let FormPartArgContent::Mixed(parts) = &mut part.content {
            encode(parts)?;
        }
        let Some(encoder) = part.encoder.filter(|encoder| !encoder.is_identity()) else { continue };
        let bytes = match &mut part.content {
            FormPartArgContent::Bytes(bytes) => std::mem::take(bytes),
            FormPartArgContent::Source(FormPartSource::File(path)) => {
                fs::read(&path).map_err(|error| unreadable(path, error))?
            }
            FormPartArgContent::Source(FormPartSource::Stdin) | FormPartArgContent::Mixed(_) => continue,
        };
        let encoded = encoder.encode(bytes);
        let encoded = encoded.ok_or_else(|| Error::new(ErrorKind::Read, "read error getting mime data"))?;
        part.content = FormPartArgContent::Bytes(encoded);
    }
    Ok(())
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    Error::with_source(ErrorKind::Read, format!("failed to read {}", path.display()), error)
}
