//! `curl_formadd`: multipart forms, built by argument lists of options. `variadic.c` collects the
//! options.
//!
//! libcurl exposes the struct of a form to programs. Here a form is an opaque handle: the program
//! passes it on and does not access its members.

use std::ffi::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::c_strings;
use crate::codes::CURLFORMcode;
use crate::handle_table::{HandleTable, OpaqueHandle, UserPointer, catch_panic, lock};
use crate::mime::{CopiedPartContent, MimeCopy, MimePartCopy, form_content};
use crate::slist::{self, curl_slist};
use crate::transfer::request_content_segments::ContentRead;

/// The table of live forms of `curl_formadd`.
pub(crate) static FORMS: HandleTable<Mutex<PostForm>> = HandleTable::new();

const FORMADD_OK: CURLFORMcode = 0;
const FORMADD_MEMORY: CURLFORMcode = 1;
const FORMADD_OPTION_TWICE: CURLFORMcode = 2;
const FORMADD_NULL: CURLFORMcode = 3;
const FORMADD_UNKNOWN_OPTION: CURLFORMcode = 4;
const FORMADD_INCOMPLETE: CURLFORMcode = 5;

const COPYNAME: c_int = 1;
const PTRNAME: c_int = 2;
const NAMELENGTH: c_int = 3;
const COPYCONTENTS: c_int = 4;
const PTRCONTENTS: c_int = 5;
const CONTENTSLENGTH: c_int = 6;
const FILECONTENT: c_int = 7;
const FILE: c_int = 10;
const BUFFER: c_int = 11;
const BUFFERPTR: c_int = 12;
const BUFFERLENGTH: c_int = 13;
const CONTENTTYPE: c_int = 14;
const CONTENTHEADER: c_int = 15;
const FILENAME: c_int = 16;
const STREAM: c_int = 19;
const CONTENTLEN: c_int = 20;

/// An option of `curl_formadd`, with the value that the C program passes for it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct form_word {
    option: c_int,
    number: i64,
    pointer: *mut c_void,
}

/// A form that the C program builds by calls of `curl_formadd`.
#[derive(Default)]
pub(crate) struct PostForm {
    parts: Vec<PostPart>,
}

/// The content of one part of a form of `curl_formadd`.
enum PostContent {
    Bytes(Vec<u8>),
    /// Memory of the C program (pointer and length), which is read when the form is sent.
    Borrowed(UserPointer, usize),
    /// The path of a file whose content is the value of the form field.
    Value(PathBuf),
    /// Files to upload: their paths, names and media types.
    Files(Vec<PostFile>),
    /// Data that the read callback supplies. The variant has the pointer for the callback and the
    /// length in bytes; the length is `None` if it is unknown.
    Stream(UserPointer, Option<u64>),
}

/// A file to upload in a form: its path, the name to send, and its media type.
struct PostFile {
    path: PathBuf,
    filename: Option<Vec<u8>>,
    content_type: Option<String>,
}

struct PostPart {
    name: Vec<u8>,
    filename: Option<Vec<u8>>,
    content_type: Option<String>,
    headers: Vec<Box<[u8]>>,
    content: PostContent,
}

/// The options of one call of `curl_formadd`.
#[derive(Default)]
struct FormAddOptions {
    name: Option<*const c_char>,
    name_length: Option<usize>,
    copied: Option<*const c_char>,
    borrowed: Option<UserPointer>,
    length: Option<usize>,
    value_file: Option<PathBuf>,
    files: Vec<PostFile>,
    buffer: Option<Vec<u8>>,
    buffer_start: Option<UserPointer>,
    buffer_length: Option<usize>,
    filename: Option<Vec<u8>>,
    content_type: Option<String>,
    headers: Option<Vec<Box<[u8]>>>,
    stream: Option<UserPointer>,
}

/// Stores the value of an option in `place`. Returns an error if the option was given before.
fn set_once<T>(place: &mut Option<T>, value: T) -> Result<(), CURLFORMcode> {
    if place.replace(value).is_some() { Err(FORMADD_OPTION_TWICE) } else { Ok(()) }
}

impl FormAddOptions {
    /// Applies one option of `curl_formadd` to the part under construction.
    ///
    /// # Safety
    /// The value of the option is valid as libcurl's documentation of the option demands.
    unsafe fn apply_option(&mut self, word: form_word) -> Result<(), CURLFORMcode> {
        let length = || usize::try_from(word.number).map_err(|_| FORMADD_INCOMPLETE);
        let pointer = || if word.pointer.is_null() { Err(FORMADD_NULL) } else { Ok(word.pointer) };
        // SAFETY: the caller guarantees it.
        let text = || unsafe { c_strings::c_string_bytes(word.pointer.cast()) }.ok_or(FORMADD_NULL);
        let path = || text().map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path)));
        match word.option {
            COPYNAME | PTRNAME => set_once(&mut self.name, pointer()?.cast_const().cast()),
            NAMELENGTH => set_once(&mut self.name_length, length()?),
            COPYCONTENTS => set_once(&mut self.copied, pointer()?.cast_const().cast()),
            PTRCONTENTS => set_once(&mut self.borrowed, UserPointer(pointer()?)),
            CONTENTSLENGTH | CONTENTLEN => {
                self.length = Some(length()?);
                Ok(())
            }
            FILECONTENT => set_once(&mut self.value_file, path()?),
            FILE => {
                self.files.push(PostFile { path: path()?, filename: None, content_type: None });
                Ok(())
            }
            BUFFER => set_once(&mut self.buffer, text()?.to_vec()),
            BUFFERPTR => set_once(&mut self.buffer_start, UserPointer(pointer()?)),
            BUFFERLENGTH => set_once(&mut self.buffer_length, length()?),
            CONTENTTYPE => {
                let kind = String::from_utf8_lossy(text()?).into_owned();
                match self.files.last_mut() {
                    Some(file) => set_once(&mut file.content_type, kind),
                    None => set_once(&mut self.content_type, kind),
                }
            }
            CONTENTHEADER => {
                // SAFETY: the caller guarantees it.
                let lines = unsafe { slist::copy_strings(word.pointer.cast::<curl_slist>()) };
                set_once(&mut self.headers, lines)
            }
            FILENAME => {
                let name = text()?.to_vec();
                match self.files.last_mut() {
                    Some(file) => set_once(&mut file.filename, name),
                    None => set_once(&mut self.filename, name),
                }
            }
            STREAM => set_once(&mut self.stream, UserPointer(pointer()?)),
            _ => Err(FORMADD_UNKNOWN_OPTION),
        }
    }

    /// Makes the form part that the options describe.
    ///
    /// # Safety
    /// The pointers that the options contain are valid as libcurl's documentation of the options
    /// demands.
    unsafe fn into_part(self) -> Result<PostPart, CURLFORMcode> {
        let name = self.name.ok_or(FORMADD_INCOMPLETE)?;
        // SAFETY: the caller guarantees it.
        let name = unsafe { c_strings::bytes_with_length(name, self.name_length) }.ok_or(FORMADD_NULL)?.to_vec();
        let mut filename = self.filename;
        let given = usize::from(self.copied.is_some())
            + usize::from(self.borrowed.is_some())
            + usize::from(self.value_file.is_some())
            + usize::from(!self.files.is_empty())
            + usize::from(self.buffer.is_some())
            + usize::from(self.stream.is_some());
        if given != 1 || self.buffer.is_some() != self.buffer_start.is_some() {
            return Err(FORMADD_INCOMPLETE);
        }
        // A length of 0 stands for the length up to the NUL.
        let length = self.length.filter(|length| *length > 0);
        let content = if let Some(start) = self.copied {
            // SAFETY: the caller guarantees it.
            PostContent::Bytes(unsafe { c_strings::bytes_with_length(start, length) }.unwrap_or_default().to_vec())
        } else if let Some(start) = self.borrowed {
            // SAFETY: the caller guarantees it.
            let measured = || unsafe { c_strings::c_string_bytes(start.0.cast_const().cast()) }.map_or(0, <[u8]>::len);
            PostContent::Borrowed(start, length.unwrap_or_else(measured))
        } else if let Some(path) = self.value_file {
            PostContent::Value(path)
        } else if let (Some(buffer), Some(start)) = (self.buffer, self.buffer_start) {
            filename = filename.or(Some(buffer));
            PostContent::Borrowed(start, self.buffer_length.unwrap_or(0))
        } else if let Some(stream) = self.stream {
            PostContent::Stream(stream, length.map(|length| length as u64))
        } else {
            PostContent::Files(self.files)
        };
        let (content_type, headers) = (self.content_type, self.headers.unwrap_or_default());
        Ok(PostPart { name, filename, content_type, headers, content })
    }
}

impl PostForm {
    /// Returns a copy of the form for a transfer. `read` makes the content of a part whose bytes
    /// the C program's read callback supplies. The arguments of `read` are the user pointer for
    /// that callback and the length of the content in bytes; the length is `None` if it is unknown.
    ///
    /// # Safety
    /// The memory to which the C program's options point is still valid.
    pub(crate) unsafe fn to_mime_tree(&self, read: impl Fn(UserPointer, Option<u64>) -> CopiedPartContent) -> MimeCopy {
        let part = |part: &PostPart| {
            let base = |content| MimePartCopy {
                name: Some(part.name.clone()),
                filename: part.filename.clone(),
                content_type: part.content_type.clone(),
                headers: part.headers.clone(),
                content,
                ..MimePartCopy::default()
            };
            match &part.content {
                PostContent::Bytes(bytes) => base(CopiedPartContent::Bytes(bytes.as_slice().into())),
                PostContent::Borrowed(start, length) => {
                    // SAFETY: the caller guarantees it.
                    let bytes = unsafe { c_strings::bytes_with_length(start.0.cast_const().cast(), Some(*length)) };
                    let copy = base(CopiedPartContent::Bytes(bytes.unwrap_or_default().into()));
                    let has_type = copy.content_type.is_some() || copy.filename.is_none();
                    MimePartCopy {
                        content_type: if has_type { copy.content_type.clone() } else { Some(type_of(&copy)) },
                        ..copy
                    }
                }
                PostContent::Value(path) => base(CopiedPartContent::File(path.clone())),
                PostContent::Stream(data, length) => base(read(*data, *length)),
                PostContent::Files(files) => match files.as_slice() {
                    [file] => file_part(file, base(CopiedPartContent::Empty)),
                    files => {
                        let parts = files.iter().map(|file| file_part(file, MimePartCopy::default())).collect();
                        base(CopiedPartContent::Form(MimeCopy { parts }))
                    }
                },
            }
        };
        MimeCopy { parts: self.parts.iter().map(part).collect() }
    }
}

/// Returns the media type that matches the file name of a part.
fn type_of(part: &MimePartCopy) -> String {
    haul_policy::multipart::content_type_by_extension(part.filename.as_deref().unwrap_or_default()).to_owned()
}

/// Returns `part` with the content, name and media type of a file.
fn file_part(file: &PostFile, part: MimePartCopy) -> MimePartCopy {
    let base = file.path.file_name().map(|name| name.as_bytes().to_vec());
    MimePartCopy {
        filename: file.filename.clone().or(part.filename).or(base),
        content_type: file.content_type.clone().or(part.content_type),
        content: CopiedPartContent::File(named_file(&file.path)),
        ..part
    }
}

/// Adds a part to the form `*first`. If `*first` is NULL, creates the form.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_curl_formadd(
    first: *mut OpaqueHandle,
    last: *mut OpaqueHandle,
    words: *const form_word,
    count: usize,
) -> CURLFORMcode {
    catch_panic(FORMADD_MEMORY, || {
        // SAFETY: libcurl's contract; `words` are of `variadic.c`.
        let Some(form) = (unsafe { first.as_mut() }) else { return FORMADD_NULL };
        // SAFETY: as above.
        let words: &[form_word] = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(words, count) } };
        let mut collected = FormAddOptions::default();
        for word in words {
            // SAFETY: as above.
            if let Err(code) = unsafe { collected.apply_option(*word) } {
                return code;
            }
        }
        // SAFETY: as above.
        let part = match unsafe { collected.into_part() } {
            Ok(part) => part,
            Err(code) => return code,
        };
        if form.is_null() {
            *form = FORMS.insert(|_| Mutex::default());
        }
        let Some(object) = FORMS.get(*form) else { return FORMADD_MEMORY };
        lock(&object).parts.push(part);
        // SAFETY: libcurl's contract: NULL or writable.
        unsafe { c_strings::write_unless_null(last, *form) };
        FORMADD_OK
    })
}

/// Frees a form.
#[unsafe(no_mangle)]
pub extern "C" fn curl_formfree(form: OpaqueHandle) {
    catch_panic((), || drop(FORMS.remove(form)));
}

/// Passes the encoded content of a form to a function piece by piece. Returns 0 if the function
/// accepted all pieces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_formget(
    form: OpaqueHandle,
    argument: *mut c_void,
    append: Option<unsafe extern "C" fn(argument: *mut c_void, start: *const c_char, length: usize) -> usize>,
) -> c_int {
    catch_panic(-1, || {
        let (Some(form), Some(append)) = (FORMS.get(form), append) else { return -1 };
        // SAFETY: libcurl's contract.
        let tree = unsafe { lock(&form).to_mime_tree(|_, _| CopiedPartContent::Empty) };
        let Ok((mut source, content_type)) = form_content(&tree, None, false) else { return -1 };
        let head = format!("Content-Type: {content_type}\r\n\r\n");
        // SAFETY: the program's function with its argument.
        let give = |bytes: &[u8]| unsafe { append(argument, bytes.as_ptr().cast(), bytes.len()) } == bytes.len();
        if !give(head.as_bytes()) {
            return -1;
        }
        let mut buffer = vec![0; 8192];
        loop {
            match source.read(&mut buffer) {
                ContentRead::Bytes(n) if give(&buffer[..n]) => {}
                ContentRead::End => return 0,
                _ => return -1,
            }
        }
    })
}
/// Returns the path of a file that `CURLFORM_FILE` names. For `-`, this is the path of standard
/// input.
fn named_file(path: &std::path::Path) -> PathBuf {
    if path.as_os_str() == "-" { PathBuf::from("/dev/stdin") } else { path.to_owned() }
}
