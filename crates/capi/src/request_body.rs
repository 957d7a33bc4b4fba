//! The body of a request: bytes, a file, the output of a callback, or a form.
//!
//! ```
//! use haul_c::request_body::haul_request_add_form_field;
//! use haul_c::error::haul_status;
//! use haul_c::request::haul_request_new;
//! // SAFETY: the strings end with NUL or come with their length, and the request lives.
//! unsafe {
//!     let mut request = haul_request_new(c"POST".as_ptr(), c"http://h.example/".as_ptr()).unwrap();
//!     let status = haul_request_add_form_field(&mut *request, c"q".as_ptr(), 1, c"1 2".as_ptr(), 3);
//!     assert_eq!(status, haul_status::Ok);
//! }
//! ```

use std::ffi::{CStr, c_char, c_void};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haul::body::upload::{BodyPiece, OneShotSource, RepeatableSource, RequestBody};
use haul::request::MultipartForm;
use haul_policy::multipart::{self, FormPart};
use haul_policy::urlencode;

use crate::c_arguments;
use crate::callbacks::{UserPointer, haul_read_fn, haul_rewind_fn};
use crate::error::{CallFailure, haul_status};
use crate::jar::file;
use crate::request::{change, haul_request};

/// The largest request body in bytes that is copied, so that one system call can send the head and
/// the body.
const MAX_JOINED_BODY: usize = 64 << 10;

/// The body of a request, as the caller set it.
#[derive(Clone, Default)]
pub(crate) enum BodyContent {
    #[default]
    None,
    Body(RequestBody),
    /// Memory of the caller, which is not copied and must stay valid.
    Borrowed(BorrowedBytes),
    Callback(RequestBodyCallback),
    /// The fields of a URL-encoded form, already encoded as `name=value&name=value`.
    Pairs(String),
    Form(MultipartForm),
}

/// Memory of the caller that haul reads without copying it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BorrowedBytes {
    data: *const u8,
    len: usize,
}

// SAFETY: the bytes are only read, and the caller does not change them while haul may read them.
unsafe impl Send for BorrowedBytes {}
// SAFETY: as above.
unsafe impl Sync for BorrowedBytes {}

impl BorrowedBytes {
    pub(crate) fn from_slice(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), len: bytes.len() }
    }

    /// Returns the memory as a slice.
    ///
    /// # Safety
    /// The memory is still valid.
    unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: the caller guarantees it; `of` had them as a slice.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }

    /// Converts the memory to a request body. A body of at most 64 KiB is copied.
    ///
    /// # Safety
    /// The memory stays valid and unchanged until the body and all clones of it are dropped.
    pub(crate) unsafe fn body(self) -> RequestBody {
        if self.len <= MAX_JOINED_BODY {
            // SAFETY: the caller guarantees it.
            return RequestBody::from(unsafe { self.bytes() });
        }
        RequestBody::pieces([BodyPiece::Source(RepeatableSource::new(Some(self.len as u64), move || {
            Ok(Box::new(BorrowedBytesReader { bytes: self, at: 0 }))
        }))])
    }
}

/// A reader through which the engine reads a body in the caller's memory.
struct BorrowedBytesReader {
    bytes: BorrowedBytes,
    at: usize,
}

impl Read for BorrowedBytesReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the caller of `BorrowedBytes::body` guarantees it.
        let mut rest = unsafe { &self.bytes.bytes()[self.at..] };
        let n = rest.read(buffer)?;
        self.at += n;
        Ok(n)
    }
}

/// A callback of the caller that supplies the body of a request.
#[derive(Clone)]
pub(crate) struct RequestBodyCallback {
    read: unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> usize,
    rewind: haul_rewind_fn,
    user: UserPointer,
    length: Option<u64>,
    /// True after the callback was called for the first time. To read the body again, `rewind` must
    /// be called first.
    was_read: Arc<AtomicBool>,
}

impl RequestBodyCallback {
    pub(crate) fn new(
        read: haul_read_fn,
        rewind: haul_rewind_fn,
        user: *mut c_void,
        length: i64,
    ) -> Result<Self, CallFailure> {
        let read = read.ok_or_else(|| CallFailure::setup("read is NULL"))?;
        let length = u64::try_from(length).ok();
        Ok(Self { read, rewind, user: UserPointer(user), length, was_read: Arc::default() })
    }

    /// Converts the callback to a request body for the engine. Without a `rewind` function, the
    /// engine's body has no length; a known length is then added to `fields` as Content-Length.
    pub(crate) fn body(&self, fields: &mut Vec<(String, Vec<u8>)>) -> RequestBody {
        let (read, user) = (self.read, self.user);
        let reader = CallbackReader { read, user };
        let Some(rewind) = self.rewind else {
            if let Some(length) = self.length {
                fields.retain(|(name, _)| !name.eq_ignore_ascii_case("content-length"));
                fields.push(("Content-Length".to_owned(), length.to_string().into_bytes()));
                // As with `rewind`, the callback is not called after the last byte.
                return RequestBody::pieces([BodyPiece::Once(OneShotSource::new(reader.take(length)))]);
            }
            return RequestBody::pieces([BodyPiece::Once(OneShotSource::new(reader))]);
        };
        let was_read = Arc::clone(&self.was_read);
        RequestBody::pieces([BodyPiece::Source(RepeatableSource::new(self.length, move || {
            let user = user;
            // SAFETY: a function of the caller's, with its own pointer.
            if was_read.swap(true, Ordering::Relaxed) && unsafe { rewind(user.0) } != 0 {
                return Err(io::Error::other("the body cannot be rewound"));
            }
            Ok(Box::new(CallbackReader { read, user }))
        }))])
    }
}

struct CallbackReader {
    read: unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> usize,
    user: UserPointer,
}

/// The value that a haul_read_fn returns to report an error.
const READ_ERROR: usize = usize::MAX;

impl Read for CallbackReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: a function of the caller's, with its own pointer, and room for as many bytes as
        // is said.
        match unsafe { (self.read)(self.user.0, buffer.as_mut_ptr().cast(), buffer.len()) } {
            READ_ERROR => Err(io::Error::other("the function that reads the body failed")),
            n if n > buffer.len() => Err(io::Error::other("the function that reads the body gave more than fits")),
            n => Ok(n),
        }
    }
}

impl BodyContent {
    /// Converts the content to the engine's body; `None` if there is no body. Adds the Content-Type
    /// of a form to `fields`.
    pub(crate) fn body(&self, fields: &mut Vec<(String, Vec<u8>)>) -> Result<Option<RequestBody>, CallFailure> {
        Ok(Some(match self {
            Self::None => return Ok(None),
            Self::Body(body) => body.clone(),
            // SAFETY: by haul_request_set_body_borrowed the bytes stay until the request is freed
            // or gets another body, which it does not during a call; and for as long as the
            // response of haul_client_open is read.
            Self::Borrowed(bytes) => unsafe { bytes.body() },
            Self::Callback(callback) => callback.body(fields),
            Self::Pairs(pairs) => {
                set_content_type(fields, "application/x-www-form-urlencoded");
                RequestBody::from(pairs.as_str())
            }
            Self::Form(form) => {
                let (content_type, body) = form.finish()?;
                set_content_type(fields, &content_type);
                body
            }
        }))
    }

    /// Removes the multipart form from the body and returns it. Returns an empty form if the body
    /// is not a multipart form.
    fn take_form(&mut self) -> MultipartForm {
        match std::mem::take(self) {
            Self::Form(form) => form,
            _ => MultipartForm::default(),
        }
    }

    /// Returns a copy that does not refer to memory of the caller, for a request that outlives the
    /// C call.
    pub(crate) fn owned(&self) -> Result<Self, CallFailure> {
        Ok(match self {
            // SAFETY: as in `body`.
            Self::Borrowed(bytes) => Self::Body(RequestBody::from(unsafe { bytes.bytes() })),
            Self::Callback(_) => return Err(CallFailure::setup("a batch takes no body by callback")),
            other => other.clone(),
        })
    }
}

/// Adds a Content-Type to `fields`, unless the caller has set one.
fn set_content_type(fields: &mut Vec<(String, Vec<u8>)>, content_type: &str) {
    if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        fields.push(("Content-Type".to_owned(), content_type.as_bytes().to_vec()));
    }
}

/// Sets the body to a copy of these bytes. With `data` NULL and `len` 0, the body is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_set_body(
    request: *mut haul_request,
    data: *const c_void,
    len: usize,
) -> haul_status {
    // SAFETY: the header's contract: what is not NULL lives, strings end with NUL, and bytes are as
    // many as is said. So in all functions here.
    unsafe {
        change(request, |request| {
            request.content =
                BodyContent::Body(RequestBody::from(c_arguments::bytes_with_length(data.cast(), len, "data")?));
            Ok(())
        })
    }
}

/// Sets the body to these bytes, without copying them. The bytes must stay unchanged until the
/// request is freed or gets another body. After haul_client_open they must also stay unchanged
/// until the response is read to the end or freed, because a server may answer before it has
/// received the whole body. A batch copies the bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_set_body_borrowed(
    request: *mut haul_request,
    data: *const c_void,
    len: usize,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change(request, |request| {
            request.content = BodyContent::Borrowed(BorrowedBytes::from_slice(c_arguments::bytes_with_length(
                data.cast(),
                len,
                "data",
            )?));
            Ok(())
        })
    }
}

/// Sets the body to the content of a file. The length of the file is determined now; the file is
/// opened when the body is sent. Returns HAUL_STATUS_READ if the file cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_set_body_file(request: *mut haul_request, path: *const c_char) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change(request, |request| {
            request.content = BodyContent::Body(RequestBody::pieces([file_piece(path)?]));
            Ok(())
        })
    }
}

/// Sets the body to `length` bytes that `read` supplies. If `length` is -1, the length is unknown,
/// and the body is sent in chunks. `rewind` is called if the body has to be sent again (a redirect,
/// a retry, an answer to a challenge, or a second use of the request). If `rewind` is NULL, the
/// request then fails with HAUL_STATUS_REWIND. After haul_client_open both functions may be called,
/// with `user`, until the response is read to the end or freed. A batch does not accept such a
/// body.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_set_body_callback(
    request: *mut haul_request,
    read: haul_read_fn,
    rewind: haul_rewind_fn,
    user: *mut c_void,
    length: i64,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change(request, |request| {
            request.content = BodyContent::Callback(RequestBodyCallback::new(read, rewind, user, length)?);
            Ok(())
        })
    }
}

/// Adds a name and a value to a form (application/x-www-form-urlencoded), which replaces any other
/// body. haul encodes both.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_add_form_field(
    request: *mut haul_request,
    name: *const c_char,
    name_len: usize,
    value: *const c_char,
    value_len: usize,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change(request, |request| {
            let (name, value) = (
                c_arguments::bytes_with_length(name, name_len, "name")?,
                c_arguments::bytes_with_length(value, value_len, "value")?,
            );
            let mut pairs = match std::mem::take(&mut request.content) {
                BodyContent::Pairs(pairs) => pairs + "&",
                _ => String::new(),
            };
            pairs.push_str(&urlencode::form_encode(name));
            pairs.push('=');
            pairs.push_str(&urlencode::form_encode(value));
            request.content = BodyContent::Pairs(pairs);
            Ok(())
        })
    }
}

/// Adds a part to a multipart/form-data form, which replaces any other body. The bytes are copied.
/// `filename` and `content_type` may be NULL; with a file name and no type, the type is guessed
/// from the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_add_part(
    request: *mut haul_request,
    name: *const c_char,
    data: *const c_void,
    len: usize,
    filename: *const c_char,
    content_type: *const c_char,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change(request, |request| {
            let (name, data) =
                (c_arguments::required_bytes(name, "name")?, c_arguments::bytes_with_length(data.cast(), len, "data")?);
            let mut part = FormPart::field(name, data);
            if !filename.is_null() {
                part = FormPart::file(name, c_arguments::required_bytes(filename, "filename")?, part.content);
            }
            set_part_content_type(&mut part, content_type)?;
            request.content = BodyContent::Form(request.content.take_form().part(part));
            Ok(())
        })
    }
}

/// Adds a part with the content of a file to a multipart/form-data form. The file is opened when
/// the body is sent. If `filename` is NULL, the file's own name is sent. Returns HAUL_STATUS_READ
/// if the file cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_add_part_file(
    request: *mut haul_request,
    name: *const c_char,
    path: *const c_char,
    filename: *const c_char,
    content_type: *const c_char,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change(request, |request| {
            let name = c_arguments::required_bytes(name, "name")?;
            let own = file(path)?.file_name().unwrap_or_default().as_encoded_bytes();
            let filename = if filename.is_null() { own } else { CStr::from_ptr(filename).to_bytes() };
            let piece = file_piece(path)?;
            let mut part = FormPart::file(name, filename, multipart::FormPartContent::Bytes(Vec::new()));
            set_part_content_type(&mut part, content_type)?;
            request.content = BodyContent::Form(request.content.take_form().push_piece_part(part, piece));
            Ok(())
        })
    }
}

/// Sets the Content-Type of a part of a form; NULL leaves it out.
///
/// # Safety
/// `content_type` is NULL or ends with NUL.
unsafe fn set_part_content_type(part: &mut FormPart, content_type: *const c_char) -> Result<(), CallFailure> {
    // SAFETY: the caller guarantees it.
    if let Some(content_type) = unsafe { c_arguments::optional_text(content_type, "content_type") }? {
        c_arguments::check_field("Content-Type", content_type.as_bytes())?;
        part.content_type = Some(content_type.to_owned());
    }
    Ok(())
}

/// Returns the content of a file as a part of a body. The file is opened when the body is sent.
///
/// # Safety
/// `path` is NULL or ends with NUL.
unsafe fn file_piece(path: *const c_char) -> Result<BodyPiece, CallFailure> {
    // SAFETY: the caller guarantees it.
    let path = unsafe { file(path) }?;
    BodyPiece::file(path).map_err(|error| {
        haul::Error::with_source(haul::ErrorKind::Read, format!("cannot read {}", path.display()), error).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body callback that copies the text behind `user`, two bytes at a time. At the end it
    /// returns more than the size of the buffer, which is an error.
    unsafe extern "C" fn two_by_two(user: *mut c_void, buffer: *mut c_char, len: usize) -> usize {
        // SAFETY: the test's own bytes, and `buffer` has room for `len`.
        unsafe {
            let rest = &mut *user.cast::<&[u8]>();
            let Some((two, after)) = rest.split_at_checked(2) else { return len + 1 };
            std::ptr::copy_nonoverlapping(two.as_ptr().cast(), buffer, two.len());
            *rest = after;
            two.len()
        }
    }

    #[test]
    fn callback_count_above_buffer_size_is_an_error() {
        let mut rest = &b"abcd"[..];
        let mut reader = CallbackReader { read: two_by_two, user: UserPointer((&raw mut rest).cast()) };
        let mut read = Vec::new();
        assert!(reader.read_to_end(&mut read).is_err());
        assert_eq!(read, b"abcd");
    }

    #[test]
    fn borrowed_bytes_are_read_to_their_end() {
        let (bytes, mut read) = (vec![7; MAX_JOINED_BODY + 1], Vec::new());
        BorrowedBytesReader { bytes: BorrowedBytes::from_slice(&bytes), at: 0 }.read_to_end(&mut read).unwrap();
        assert!(read == bytes);
        let nothing = BorrowedBytes::from_slice(&[]);
        assert_eq!(BorrowedBytesReader { bytes: nothing, at: 0 }.read(&mut read).unwrap(), 0);
    }
}
