//! Makes the content of a request from the parts of a form.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;

use haul_policy::multipart::{
    FormNameEscape, FormPart, FormPartContent, MultipartBoundary, MultipartLayout, MultipartPiece,
    content_type_by_extension,
};

use super::{CopiedPartContent, MimeCopy, MimePartCopy};
use crate::codes::{
    CURLE_ABORTED_BY_CALLBACK, CURLE_BAD_FUNCTION_ARGUMENT, CURLE_READ_ERROR, CURLE_SEND_FAIL_REWIND, CURLcode,
};
use crate::request::TransferFailure;
use crate::transfer::request_content_segments::{
    ContentRead, ContentSegment, RequestContentCallback, RequestContentReader,
};

/// The media type of a file whose name does not suggest another one.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// Makes the request content of a form. Also returns its media type: the C program's `own_type`, or
/// else `multipart/form-data`, with the boundary.
///
/// # Errors
/// A file cannot be read, or a part cannot be sent.
pub(crate) fn form_content(
    form: &MimeCopy,
    own_type: Option<&str>,
    escapes: bool,
) -> Result<(RequestContentReader, String), CURLcode> {
    let mut sources = Vec::new();
    let parts = form.parts.iter().map(|part| form_part(part, &mut sources)).collect::<Result<Vec<_>, _>>()?;
    let kind = own_type.map(|own| own.split(';').next().unwrap_or_default().trim());
    let is_form = kind.is_none_or(|kind| kind.eq_ignore_ascii_case("multipart/form-data"));
    let lay = if is_form { MultipartLayout::new } else { MultipartLayout::with_attachments };
    let escape = if escapes { FormNameEscape::Backslash } else { FormNameEscape::Percent };
    let layout = lay(&parts, &MultipartBoundary::new(entropy()), escape).map_err(|_| CURLE_BAD_FUNCTION_ARGUMENT)?;
    let boundary = layout.content_type.split_once("; ").map_or("", |(_, boundary)| boundary);
    let content_type = match own_type {
        Some(own) => format!("{own}; {boundary}"),
        None => layout.content_type.clone(),
    };
    let segment = |piece: MultipartPiece| match piece {
        MultipartPiece::Literal(bytes) => Some(ContentSegment::Bytes(bytes.into())),
        MultipartPiece::Source { index, .. } => sources.get(index).cloned(),
    };
    let segments = layout.pieces.into_iter().filter_map(segment).collect();
    Ok((RequestContentReader::new(segments), content_type))
}

fn form_part(part: &MimePartCopy, sources: &mut Vec<ContentSegment>) -> Result<FormPart, CURLcode> {
    let is_type = |line: &[u8]| line.get(..13).is_some_and(|name| name.eq_ignore_ascii_case(b"content-type:"));
    // As in libcurl, a type that the program has set takes precedence over that of a header line.
    let is_kept = |line: &[u8]| part.content_type.is_none() || !is_type(line);
    let mut headers: Vec<Vec<u8>> =
        part.headers.iter().filter(|line| is_kept(line)).map(|line| line.to_vec()).collect();
    if let Some(encoder) = part.encoder {
        headers.push(format!("Content-Transfer-Encoding: {}", encoder.name()).into_bytes());
    }
    let content = match &part.content {
        CopiedPartContent::Empty => FormPartContent::Bytes(Vec::new()),
        CopiedPartContent::Form(form) => {
            FormPartContent::Mixed(form.parts.iter().map(|part| form_part(part, sources)).collect::<Result<_, _>>()?)
        }
        source => {
            let segment = segment_of(source)?;
            sources.push(segment);
            let segment = &sources[sources.len() - 1];
            FormPartContent::Source { index: sources.len() - 1, length: segment.length() }
        }
    };
    Ok(FormPart {
        name: part.name.clone(),
        filename: part.filename.clone(),
        content_type: part
            .content_type
            .clone()
            .or_else(|| part.guessed_type.clone())
            .or_else(|| guessed_type(part.filename.as_deref(), &part.content)),
        headers,
        content,
    })
}

/// Returns the media type that libcurl guesses from the file name of a part; `None` if it guesses
/// none.
fn guessed_type(name: Option<&[u8]>, content: &CopiedPartContent) -> Option<String> {
    let known = |name: &[u8]| Some(content_type_by_extension(name)).filter(|kind| *kind != UNKNOWN_TYPE);
    let guess = match content {
        CopiedPartContent::Form(_) => return None,
        CopiedPartContent::File(path) => name
            .and_then(known)
            .or_else(|| known(path.as_os_str().as_encoded_bytes()))
            .or_else(|| name.map(|_| UNKNOWN_TYPE)),
        _ => name.and_then(known),
    };
    // A part without a type is plain text by default.
    guess.filter(|kind| *kind != "text/plain" || name.is_some()).map(str::to_owned)
}

fn segment_of(content: &CopiedPartContent) -> Result<ContentSegment, CURLcode> {
    Ok(match content {
        CopiedPartContent::Bytes(bytes) => ContentSegment::Bytes(Arc::clone(bytes)),
        CopiedPartContent::File(path) => file_segment(path)?,
        CopiedPartContent::Callback(callback) => {
            ContentSegment::Callback(RequestContentCallback::from_part(callback.clone()))
        }
        CopiedPartContent::Empty | CopiedPartContent::Form(_) => ContentSegment::Bytes(Arc::from([])),
    })
}

impl MimeCopy {
    /// Rewinds the callbacks of the form's parts whose content was read before, then reads and
    /// encodes the content of parts with an encoding: encoded content has another length, which
    /// must be known. Calls callbacks of the C program.
    ///
    /// # Errors
    /// A callback cannot be rewound, or content cannot be read or encoded.
    pub(crate) fn make_ready(&mut self) -> Result<(), TransferFailure> {
        self.rewind()?;
        self.encode().map_err(TransferFailure::from)
    }

    fn rewind(&self) -> Result<(), TransferFailure> {
        for part in &self.parts {
            match &part.content {
                CopiedPartContent::Callback(callback) if !callback.rewind() => {
                    return Err(TransferFailure::new(CURLE_SEND_FAIL_REWIND, "Cannot rewind mime/post data"));
                }
                CopiedPartContent::Form(form) => form.rewind()?,
                _ => {}
            }
        }
        Ok(())
    }

    fn encode(&mut self) -> Result<(), CURLcode> {
        for part in &mut self.parts {
            let encoder = part.encoder.filter(|encoder| !encoder.is_identity());
            match (&mut part.content, encoder) {
                (CopiedPartContent::Form(form), _) => form.encode()?,
                (CopiedPartContent::Empty, _) | (_, None) => {}
                (content, Some(encoder)) => {
                    let encoded = encoder.encode(read_all(content)?).ok_or(CURLE_READ_ERROR)?;
                    part.guessed_type = guessed_type(part.filename.as_deref(), &part.content);
                    part.content = CopiedPartContent::Bytes(encoded.into());
                }
            }
        }
        Ok(())
    }
}

/// Reads the whole content of a part.
fn read_all(content: &CopiedPartContent) -> Result<Vec<u8>, CURLcode> {
    let mut source = RequestContentReader::new(vec![segment_of(content)?]);
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match source.read(&mut buffer) {
            ContentRead::Bytes(n) => bytes.extend_from_slice(&buffer[..n]),
            ContentRead::End => return Ok(bytes),
            ContentRead::Abort => return Err(CURLE_ABORTED_BY_CALLBACK),
            ContentRead::Pause | ContentRead::Failed => return Err(CURLE_READ_ERROR),
        }
    }
}

fn file_segment(path: &Path) -> Result<ContentSegment, CURLcode> {
    let about = fs::metadata(path).map_err(|_| CURLE_READ_ERROR)?;
    Ok(ContentSegment::File { path: path.to_owned(), length: about.is_file().then_some(about.len()) })
}

/// Returns random bytes for the boundary between the parts.
fn entropy() -> [u8; 16] {
    let half = |number: u64| RandomState::new().hash_one(number).to_be_bytes();
    let mut both = [0; 16];
    both[..8].copy_from_slice(&half(1));
    both[8..].copy_from_slice(&half(2));
    both
}
