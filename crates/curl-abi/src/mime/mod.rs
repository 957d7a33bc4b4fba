//! `curl_mime_*`: multipart forms that the program builds part by part.
//!
//! ```text
//!  curl_mime ──▶ parts ──▶ content: bytes, a file, a callback, or another curl_mime
//!      └── MimeCopy::copy_of_form ──▶ a copy for one transfer ──▶ request_content_segments.rs
//! ```
//!
//! A form owns its parts. A part owns the form that is its content. Freeing the outer form frees
//! the inner forms.

mod encoder;
mod form_content;
mod form_copy_for_transfer;

use std::ffi::{c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) use encoder::MimePartEncoding;
pub(crate) use form_content::form_content;
pub(crate) use form_copy_for_transfer::{CopiedPartContent, DuplicatedFormCopy, MimeCopy, MimePartCopy};

use crate::c_strings;
use crate::codes::{CURLE_BAD_FUNCTION_ARGUMENT, CURLE_OK, CURLE_OUT_OF_MEMORY, CURLE_READ_ERROR, CURLcode};
use crate::handle_table::{HandleTable, OpaqueHandle, UserPointer, catch_panic, lock};
use crate::options::EasyOptions;
use crate::slist::{self, curl_slist};
use crate::transfer::callbacks::{Callbacks, FreeFunction, ReadFunction, SeekFunction};

/// The table of live forms (`curl_mime`).
pub(crate) static MIMES: HandleTable<Mutex<Mime>> = HandleTable::new();
/// The table of live form parts (`curl_mimepart`).
static PARTS: HandleTable<Mutex<MimePart>> = HandleTable::new();

/// A form: its parts, and the part to which it belongs as content.
#[derive(Default)]
pub(crate) struct Mime {
    parts: Vec<UserPointer>,
    /// The id of the part that owns this form; `None` if the C program owns it.
    owner: Option<usize>,
}

/// A part of a form (`curl_mimepart`).
#[derive(Default)]
struct MimePart {
    /// The id of the form to which this part belongs.
    form: usize,
    name: Option<Vec<u8>>,
    filename: Option<Vec<u8>>,
    content_type: Option<String>,
    encoder: Option<MimePartEncoding>,
    headers: Vec<Box<[u8]>>,
    content: PartContent,
}

/// The content of a form part, as the C program has set it.
#[derive(Default)]
enum PartContent {
    #[default]
    Empty,
    Bytes(Arc<[u8]>),
    File(PathBuf),
    Callback(PartCallback),
    Form(UserPointer),
}

/// The callbacks that supply the content of a part.
#[derive(Clone)]
pub(crate) struct PartCallback {
    /// The number of content bytes; `None` if it is unknown.
    pub(crate) length: Option<u64>,
    pub(crate) read: ReadFunction,
    pub(crate) seek: SeekFunction,
    pub(crate) free: FreeFunction,
    pub(crate) data: UserPointer,
    /// True if the read callback was called since the content was last rewound. The copies of a
    /// part for its transfers share it, since they share the position of the content.
    is_begun: Arc<AtomicBool>,
}

impl PartCallback {
    /// Returns the read callback of a handle, for a part of `curl_formadd` (`CURLFORM_STREAM`). The
    /// caller then sets the pointer for the callback and the length.
    pub(crate) fn from_options(options: &EasyOptions) -> Self {
        let read = Callbacks::from_options(options).read_function();
        Self { length: None, read, seek: None, free: None, data: UserPointer::NULL, is_begun: Arc::default() }
    }

    /// Returns the same callbacks for a part with another pointer and length, which was not begun.
    pub(crate) fn for_part(&self, data: UserPointer, length: Option<u64>) -> Self {
        Self { data, length, is_begun: Arc::default(), ..self.clone() }
    }

    /// Calls the read callback, which fills `buffer`, and returns the number that the callback
    /// returns.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> usize {
        let Some(read) = self.read else { return 0 };
        self.is_begun.store(true, Ordering::Relaxed);
        // SAFETY: the program's function with its pointer, and a buffer of that size.
        unsafe { read(buffer.as_mut_ptr().cast(), 1, buffer.len(), self.data.0) }
    }

    /// Moves to the first byte of the content if any was read. Returns false if that is not
    /// possible.
    pub(crate) fn rewind(&self) -> bool {
        if !self.is_begun.load(Ordering::Relaxed) {
            return true;
        }
        let Some(seek) = self.seek else { return false };
        // SAFETY: the program's function with its pointer.
        let is_rewound = unsafe { seek(self.data.0, 0, libc::SEEK_SET) } == 0;
        self.is_begun.store(!is_rewound, Ordering::Relaxed);
        is_rewound
    }
}

impl PartContent {
    /// Frees the memory and handles that the content owns.
    fn release(self) {
        match self {
            Self::Callback(PartCallback { free: Some(free), data, .. }) => {
                // SAFETY: the program's function with its pointer.
                unsafe { free(data.0) };
            }
            Self::Form(form) => free_form(form.0),
            _ => {}
        }
    }
}

/// Frees a form with its parts and the forms inside them.
fn free_form(form: OpaqueHandle) {
    let Some(mime) = MIMES.remove(form) else { return };
    let parts = std::mem::take(&mut lock(&mime).parts);
    for part in parts {
        if let Some(part) = PARTS.remove(part.0) {
            let content = std::mem::take(&mut lock(&part).content);
            content.release();
        }
    }
}

/// Makes an empty form.
#[unsafe(no_mangle)]
pub extern "C" fn curl_mime_init(_easy: OpaqueHandle) -> OpaqueHandle {
    catch_panic(std::ptr::null_mut(), || MIMES.insert(|_| Mutex::default()))
}

/// Frees a form with its parts and the forms inside them.
#[unsafe(no_mangle)]
pub extern "C" fn curl_mime_free(form: OpaqueHandle) {
    catch_panic((), || {
        let Some(mime) = MIMES.get(form) else { return };
        let owner = lock(&mime).owner;
        // A form that is the content of a part is taken out of it.
        if let Some(part) = owner.and_then(|number| PARTS.get_by_number(number)) {
            lock(&part).content = PartContent::Empty;
        }
        free_form(form);
    });
}

/// Appends an empty part to a form. Returns NULL for a handle that is not live.
#[unsafe(no_mangle)]
pub extern "C" fn curl_mime_addpart(form: OpaqueHandle) -> OpaqueHandle {
    catch_panic(std::ptr::null_mut(), || {
        let Some(mime) = MIMES.get(form) else { return std::ptr::null_mut() };
        let part = PARTS.insert(|_| Mutex::new(MimePart { form: form.addr(), ..MimePart::default() }));
        if !part.is_null() {
            lock(&mime).parts.push(UserPointer(part));
        }
        part
    })
}

/// Calls `change` with the form part of this handle, and returns its result. Returns an error for a
/// handle that is not live.
fn change(part: OpaqueHandle, change: impl FnOnce(&mut MimePart) -> CURLcode) -> CURLcode {
    catch_panic(CURLE_OUT_OF_MEMORY, || match PARTS.get(part) {
        Some(part) => change(&mut lock(&part)),
        None => CURLE_BAD_FUNCTION_ARGUMENT,
    })
}

/// Changes the content of a part, and frees the old content.
fn replace_content(part: OpaqueHandle, content: PartContent) -> CURLcode {
    let mut old = PartContent::Empty;
    let code = change(part, |part| {
        old = std::mem::replace(&mut part.content, content);
        CURLE_OK
    });
    old.release();
    code
}

/// Sets the name of a form part, or removes it if `name` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_mime_name(part: OpaqueHandle, name: *const c_char) -> CURLcode {
    change(part, |part| {
        // SAFETY: libcurl's contract.
        part.name = unsafe { c_strings::c_string_bytes(name) }.map(<[u8]>::to_vec);
        CURLE_OK
    })
}

/// Sets the file name of a form part, or removes it if `filename` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_mime_filename(part: OpaqueHandle, filename: *const c_char) -> CURLcode {
    change(part, |part| {
        // SAFETY: libcurl's contract.
        part.filename = unsafe { c_strings::c_string_bytes(filename) }.map(<[u8]>::to_vec);
        CURLE_OK
    })
}

/// Sets the media type of a form part, or removes it if `mimetype` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_mime_type(part: OpaqueHandle, mimetype: *const c_char) -> CURLcode {
    change(part, |part| {
        // SAFETY: libcurl's contract.
        part.content_type =
            unsafe { c_strings::c_string_bytes(mimetype) }.map(|text| String::from_utf8_lossy(text).into_owned());
        CURLE_OK
    })
}

/// Sets the transfer encoding of a form part, or removes it if `encoding` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_mime_encoder(part: OpaqueHandle, encoding: *const c_char) -> CURLcode {
    change(part, |part| {
        // SAFETY: libcurl's contract.
        let name = unsafe { c_strings::c_string_bytes(encoding) };
        // As in libcurl, an unknown name removes the encoding.
        part.encoder = name.and_then(MimePartEncoding::from_name);
        if name.is_some() && part.encoder.is_none() { CURLE_BAD_FUNCTION_ARGUMENT } else { CURLE_OK }
    })
}

/// Sets the content of a part to a copy of these bytes. If `size` is `SIZE_MAX`, the data end at
/// the first NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_mime_data(part: OpaqueHandle, data: *const c_char, size: usize) -> CURLcode {
    // SAFETY: libcurl's contract.
    let bytes = unsafe { c_strings::bytes_with_length(data, (size != usize::MAX).then_some(size)) };
    replace_content(part, bytes.map_or(PartContent::Empty, |bytes| PartContent::Bytes(bytes.into())))
}

/// Sets the content of a part to the content of a file, whose name becomes the file name of the
/// part.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_mime_filedata(part: OpaqueHandle, filename: *const c_char) -> CURLcode {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: libcurl's contract.
    let Some(path) = (unsafe { c_strings::c_string_bytes(filename) }) else {
        return replace_content(part, PartContent::Empty);
    };
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
    let base = path.file_name().map(|name| name.as_bytes().to_vec());
    // As in libcurl, the content is set although the file cannot be read yet.
    let is_readable = std::fs::File::open(&path).is_ok();
    let code = replace_content(part, PartContent::File(path));
    let code = if code == CURLE_OK { change(part, |part| set_filename(part, base)) } else { code };
    if code == CURLE_OK && !is_readable { CURLE_READ_ERROR } else { code }
}

fn set_filename(part: &mut MimePart, filename: Option<Vec<u8>>) -> CURLcode {
    part.filename = filename;
    CURLE_OK
}

/// Sets the content of a part to the output of a callback.
#[unsafe(no_mangle)]
pub extern "C" fn curl_mime_data_cb(
    part: OpaqueHandle,
    size: i64,
    read: ReadFunction,
    seek: SeekFunction,
    free: FreeFunction,
    data: *mut c_void,
) -> CURLcode {
    let content = match read {
        Some(_) => PartContent::Callback(PartCallback {
            length: u64::try_from(size).ok(),
            read,
            seek,
            free,
            data: UserPointer(data),
            is_begun: Arc::default(),
        }),
        None => PartContent::Empty,
    };
    replace_content(part, content)
}

/// Sets the content of a part to another form, which then belongs to the part.
#[unsafe(no_mangle)]
pub extern "C" fn curl_mime_subparts(part: OpaqueHandle, form: OpaqueHandle) -> CURLcode {
    let code = catch_panic(CURLE_OUT_OF_MEMORY, || {
        if form.is_null() {
            return CURLE_OK;
        }
        let (Some(object), Some(mime)) = (PARTS.get(part), MIMES.get(form)) else { return CURLE_BAD_FUNCTION_ARGUMENT };
        // Refuses a form that another part owns, and the form to which this part belongs.
        let mut root = Some(lock(&object).form);
        while let Some(number) = root {
            if number == form.addr() {
                return CURLE_BAD_FUNCTION_ARGUMENT;
            }
            let owner = MIMES.get_by_number(number).and_then(|mime| lock(&mime).owner);
            root = owner.and_then(|part| PARTS.get_by_number(part)).map(|part| lock(&part).form);
        }
        let mut mime = lock(&mime);
        if mime.owner.is_some() {
            return CURLE_BAD_FUNCTION_ARGUMENT;
        }
        mime.owner = Some(part.addr());
        CURLE_OK
    });
    if code != CURLE_OK {
        return code;
    }
    replace_content(part, if form.is_null() { PartContent::Empty } else { PartContent::Form(UserPointer(form)) })
}

/// Sets additional header lines of a part. With `take_ownership`, the part frees the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_mime_headers(
    part: OpaqueHandle,
    headers: *mut curl_slist,
    take_ownership: c_int,
) -> CURLcode {
    // SAFETY: libcurl's contract.
    let lines = unsafe { slist::copy_strings(headers) };
    let code = change(part, |part| {
        part.headers = lines;
        CURLE_OK
    });
    if code == CURLE_OK && take_ownership != 0 {
        // SAFETY: the program gave the list away.
        unsafe { slist::curl_slist_free_all(headers) };
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    static FREED: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C" fn count_free(_data: *mut c_void) {
        FREED.fetch_add(1, Ordering::SeqCst);
    }

    unsafe extern "C" fn read_nothing(_: *mut c_char, _: usize, _: usize, _: *mut c_void) -> usize {
        0
    }

    #[test]
    fn freeing_a_form_frees_its_parts_and_inner_forms() {
        let (outer, inner) = (curl_mime_init(std::ptr::null_mut()), curl_mime_init(std::ptr::null_mut()));
        let (part, leaf) = (curl_mime_addpart(outer), curl_mime_addpart(inner));
        let null = std::ptr::null_mut();
        assert_eq!(curl_mime_data_cb(leaf, 3, Some(read_nothing), None, Some(count_free), null), CURLE_OK);
        assert_eq!(curl_mime_subparts(leaf, inner), CURLE_BAD_FUNCTION_ARGUMENT, "it would contain itself");
        assert_eq!(curl_mime_subparts(part, inner), CURLE_OK);
        assert_eq!(curl_mime_subparts(part, inner), CURLE_BAD_FUNCTION_ARGUMENT, "it has an owner");
        curl_mime_free(outer);
        assert_eq!(FREED.load(Ordering::SeqCst), 1);
        // SAFETY: strings, and handles that are not live.
        unsafe {
            assert_eq!(curl_mime_name(leaf, c"a".as_ptr()), CURLE_BAD_FUNCTION_ARGUMENT);
            assert_eq!(curl_mime_type(part, c"a".as_ptr()), CURLE_BAD_FUNCTION_ARGUMENT);
        }
        assert!(curl_mime_addpart(outer).is_null());
    }
}
