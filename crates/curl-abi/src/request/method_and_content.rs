//! The method of a request and its content.

use haul::RequestOptions;
use haul::body::upload::RequestBody;

use super::TransferFailure;
use crate::c_strings;
use crate::codes::CURLE_BAD_FUNCTION_ARGUMENT;
use crate::easy::Easy;
use crate::form::FORMS;
use crate::handle_table::lock;
use crate::mime::{CopiedPartContent, MimeCopy, PartCallback, form_content};
use crate::options::{EasyOptions, RequestKind, curlopt_numbers as opt};
use crate::transfer::callbacks::Callbacks;
use crate::transfer::request_content_segments::{ContentSegment, RequestContentCallback, RequestContentReader};

/// The default media type of a POST request.
const FORM_TYPE: &str = "application/x-www-form-urlencoded";

/// The maximum size in bytes of a form that is sent from one buffer.
const MAX_JOINED: u64 = 1 << 20;

/// The content of a request.
pub(crate) enum RequestContent {
    /// The request has no content.
    None,
    /// Bytes in memory, which the engine sends.
    Bytes(RequestBody),
    /// Content that the C program supplies while it is sent.
    Source(RequestContentReader),
}

impl RequestContent {
    /// Returns the length of the content in bytes; `None` if it is unknown.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::None => Some(0),
            Self::Bytes(bytes) => bytes.length(),
            Self::Source(source) => source.length(),
        }
    }
}

/// Sets the method and the content's header fields in a request, and returns the content.
pub(super) fn set_content(
    options: &EasyOptions,
    request: &mut RequestOptions,
    easy: usize,
    form: Option<MimeCopy>,
) -> Result<RequestContent, TransferFailure> {
    let (method, content) = match options.request_kind() {
        RequestKind::Get => ("GET", RequestContent::None),
        RequestKind::Head => ("HEAD", RequestContent::None),
        RequestKind::Put => ("PUT", upload(options, request, easy)),
        RequestKind::Post => {
            request.content_type = Some(FORM_TYPE.to_owned());
            let content = post(options, easy)?;
            request.content_range = content_range(options, content.length());
            ("POST", content)
        }
        RequestKind::Form | RequestKind::Mime => ("POST", multipart(options, request, &form.unwrap_or_default())?),
    };
    request.method = match options.text(opt::CUSTOMREQUEST).filter(|name| !name.is_empty()) {
        Some(name) => name.into_owned(),
        None => method.to_owned(),
    };
    Ok(content)
}

/// Returns the content of a request that uses the engine's options of the handle's previous request
/// again. The options do not contain the content, because each request can have different content.
/// Only GET, HEAD and POST requests use the options again, and of these only POST has content.
pub(super) fn content_for_reused_options(
    options: &EasyOptions,
    easy: usize,
) -> Result<RequestContent, TransferFailure> {
    if options.request_kind() == RequestKind::Post { post(options, easy) } else { Ok(RequestContent::None) }
}

/// Returns the content of `CURLOPT_UPLOAD`, which the read callback supplies.
fn upload(options: &EasyOptions, request: &mut RequestOptions, easy: usize) -> RequestContent {
    let total = options.number(opt::INFILESIZE_LARGE).and_then(|size| u64::try_from(size).ok());
    let from = resume_from(options);
    let length = total.map(|total| total.saturating_sub(from));
    request.content_range = content_range(options, length);
    if length == Some(0) {
        return RequestContent::Bytes(RequestBody::from(&[][..]));
    }
    RequestContent::Source(read_source(options, easy, length, from))
}

/// Returns the offset in the content at which the transfer begins (`CURLOPT_RESUME_FROM`).
fn resume_from(options: &EasyOptions) -> u64 {
    options.number(opt::RESUME_FROM_LARGE).and_then(|from| u64::try_from(from).ok()).unwrap_or(0)
}

/// Returns the range of the content for the field Content-Range. `length` is the number of bytes
/// that are sent. Returns `None` without a range, or if the length is unknown.
fn content_range(options: &EasyOptions, length: Option<u64>) -> Option<String> {
    let (length, from) = (length?, resume_from(options));
    if from > 0 && length > 0 {
        let total = from + length;
        return Some(format!("{from}-{}/{total}", total - 1));
    }
    let range = options.text(opt::RANGE).filter(|range| !range.is_empty())?;
    Some(format!("{range}/{}", from + length))
}

fn read_source(options: &EasyOptions, easy: usize, length: Option<u64>, from: u64) -> RequestContentReader {
    let callback = RequestContentCallback::from_callbacks(Callbacks::from_options(options), easy, length, from);
    RequestContentReader::new(vec![ContentSegment::Callback(callback)])
}

/// Returns the content of `CURLOPT_POST`: the bytes that the C program set, or the output of the
/// read callback.
///
/// # Errors
/// `CURLOPT_RESUME_FROM` is set, and the content comes from memory.
fn post(options: &EasyOptions, easy: usize) -> Result<RequestContent, TransferFailure> {
    let chunks = |line: &[u8]| line.to_ascii_lowercase().starts_with(b"transfer-encoding:");
    let size = options.number(opt::POSTFIELDSIZE_LARGE).and_then(|size| u64::try_from(size).ok());
    let fields = options.pointer(opt::POSTFIELDS);
    let from = resume_from(options);
    if from > 0 && (!fields.is_null() || options.has(opt::COPYPOSTFIELDS)) {
        return Err(TransferFailure::new(CURLE_BAD_FUNCTION_ARGUMENT, "cannot mix POSTFIELDS with RESUME_FROM"));
    }
    if let Some(copy) = options.bytes(opt::COPYPOSTFIELDS) {
        let length = size.and_then(|size| usize::try_from(size).ok()).unwrap_or(copy.len()).min(copy.len());
        return Ok(RequestContent::Bytes(RequestBody::from(&copy[..length])));
    }
    if !fields.is_null() {
        let length = size.and_then(|size| usize::try_from(size).ok());
        // SAFETY: libcurl's contract: the memory of CURLOPT_POSTFIELDS lives until the transfer is
        // over, and has the length of CURLOPT_POSTFIELDSIZE or ends with NUL.
        let bytes = unsafe { c_strings::bytes_with_length(fields.cast_const().cast(), length) }.unwrap_or_default();
        // The bytes are copied, because the engine's thread must not read memory of the program.
        return Ok(RequestContent::Bytes(RequestBody::from(bytes)));
    }
    if size == Some(0) || !options.has(opt::READFUNCTION) && options.pointer(opt::READDATA).is_null() && size.is_none()
    {
        return Ok(RequestContent::Bytes(RequestBody::from(&[][..])));
    }
    // The length of content in chunks is that of its chunks.
    let size = size.filter(|_| !options.string_list(opt::HTTPHEADER).iter().any(|line| chunks(line)));
    let size = size.map(|size| size.saturating_sub(from));
    Ok(RequestContent::Source(read_source(options, easy, size, from)))
}

/// Returns the content of a form of `curl_mime` or `curl_formadd`.
fn multipart(
    options: &EasyOptions,
    request: &mut RequestOptions,
    tree: &MimeCopy,
) -> Result<RequestContent, TransferFailure> {
    const FORM_ESCAPE: i64 = 1;
    // As in libcurl, a form without parts is sent as its end, but the request has no content if the
    // program has removed its form.
    let has_form = options.request_kind() == RequestKind::Mime && !options.pointer(opt::MIMEPOST).is_null();
    if tree.parts.is_empty() && !has_form {
        return Ok(RequestContent::Bytes(RequestBody::from(&[][..])));
    }
    let at = request.fields.iter().position(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let own = at.map(|at| String::from_utf8_lossy(&request.fields.remove(at).1).into_owned());
    let escapes = options.number(opt::MIME_OPTIONS).unwrap_or(0) & FORM_ESCAPE != 0;
    let (source, content_type) = form_content(tree, own.as_deref(), escapes)?;
    request.content_type = Some(content_type);
    let small = source.length().is_some_and(|length| length <= MAX_JOINED);
    Ok(match source.in_memory().filter(|_| small) {
        Some(bytes) => RequestContent::Bytes(RequestBody::from(bytes)),
        None => RequestContent::Source(source),
    })
}

/// Returns the form of the handle's next request, ready to be sent: callbacks whose content was
/// read before are rewound, and content with an encoding is read and encoded. `None` if the request
/// has no form. The handle must not be locked, because this calls callbacks of the C program.
///
/// # Errors
/// A callback cannot be rewound, or content cannot be read.
pub(crate) fn ready_form(easy: &Easy) -> Result<Option<MimeCopy>, TransferFailure> {
    let state = lock(&easy.state);
    if !matches!(state.options.request_kind(), RequestKind::Form | RequestKind::Mime) {
        return Ok(None);
    }
    let mut form = form_tree(&state.options);
    drop(state);
    form.make_ready()?;
    Ok(Some(form))
}

/// Returns a copy of the form that `CURLOPT_MIMEPOST` or `CURLOPT_HTTPPOST` sets.
pub(crate) fn form_tree(options: &EasyOptions) -> MimeCopy {
    if let Some(copy) = &options.form {
        return copy.0.clone();
    }
    match options.kind {
        RequestKind::Mime => MimeCopy::copy_of_form(options.pointer(opt::MIMEPOST)),
        RequestKind::Form => {
            let Some(form) = FORMS.get(options.pointer(opt::HTTPPOST)) else { return MimeCopy::default() };
            let callback = PartCallback::from_options(options);
            // SAFETY: libcurl's contract: memory that the form names lives until the transfer is
            // over.
            unsafe {
                lock(&form).to_mime_tree(|data, length| CopiedPartContent::Callback(callback.for_part(data, length)))
            }
        }
        _ => MimeCopy::default(),
    }
}
