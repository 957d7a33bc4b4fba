//! A copy of a form for one transfer. The program may free or change its form afterwards.

use std::path::PathBuf;
use std::sync::Arc;

use super::{MIMES, MimePartEncoding, PARTS, PartCallback, PartContent};
use crate::handle_table::{OpaqueHandle, lock};

/// The maximum nesting depth of forms that are the content of form parts.
const MAX_DEPTH: usize = 64;

/// A copy of a form's parts for one transfer, so that the C program may free or change the form.
#[derive(Clone, Default)]
pub(crate) struct MimeCopy {
    pub(crate) parts: Vec<MimePartCopy>,
}

/// A copy of a form part for one transfer.
#[derive(Clone, Default)]
pub(crate) struct MimePartCopy {
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) filename: Option<Vec<u8>>,
    pub(crate) content_type: Option<String>,
    pub(crate) encoder: Option<MimePartEncoding>,
    pub(crate) headers: Vec<Box<[u8]>>,
    pub(crate) content: CopiedPartContent,
    /// The media type that the content suggested before it was encoded; `None` before that.
    pub(crate) guessed_type: Option<String>,
}

/// A copy of the content of a form part for one transfer.
#[derive(Clone, Default)]
pub(crate) enum CopiedPartContent {
    #[default]
    Empty,
    Bytes(Arc<[u8]>),
    File(PathBuf),
    Callback(PartCallback),
    Form(MimeCopy),
}

/// A copy of a form that belongs to a duplicated easy handle (`curl_easy_duphandle`), and owns the
/// user pointers of its parts. Dropping it calls the free callbacks of the parts, as libcurl does
/// for its copies.
pub(crate) struct DuplicatedFormCopy(pub(crate) MimeCopy);

impl Drop for DuplicatedFormCopy {
    fn drop(&mut self) {
        self.0.call_free_callbacks();
    }
}

impl MimeCopy {
    /// Calls the free callbacks of the parts with their user pointers.
    fn call_free_callbacks(&self) {
        for part in &self.parts {
            match &part.content {
                CopiedPartContent::Callback(PartCallback { free: Some(free), data, .. }) => {
                    // SAFETY: the program's function with its pointer.
                    unsafe { free(data.0) };
                }
                CopiedPartContent::Form(form) => form.call_free_callbacks(),
                _ => {}
            }
        }
    }

    /// Marks each callback part as unread, independently of the form from which this was copied. As
    /// in libcurl, the first transfer of a duplicated handle does not rewind a part, even if the
    /// original handle has read it.
    pub(crate) fn detach_callbacks(&mut self) {
        for part in &mut self.parts {
            match &mut part.content {
                CopiedPartContent::Callback(callback) => *callback = callback.for_part(callback.data, callback.length),
                CopiedPartContent::Form(form) => form.detach_callbacks(),
                _ => {}
            }
        }
    }

    /// Copies a form. If the handle is not live, returns a form without parts.
    pub(crate) fn copy_of_form(form: OpaqueHandle) -> Self {
        Self::copy_to_depth(form.addr(), 0)
    }

    fn copy_to_depth(form: usize, depth: usize) -> Self {
        let Some(mime) = MIMES.get_by_number(form).filter(|_| depth < MAX_DEPTH) else { return Self::default() };
        let parts = lock(&mime).parts.clone();
        let copy = |part: OpaqueHandle| {
            let part = PARTS.get(part)?;
            let part = lock(&part);
            let (content, inner) = match &part.content {
                PartContent::Empty => (CopiedPartContent::Empty, None),
                PartContent::Bytes(bytes) => (CopiedPartContent::Bytes(Arc::clone(bytes)), None),
                PartContent::File(path) => (CopiedPartContent::File(path.clone()), None),
                PartContent::Callback(callback) => (CopiedPartContent::Callback(callback.clone()), None),
                PartContent::Form(form) => (CopiedPartContent::Empty, Some(form.0.addr())),
            };
            let mut copy = MimePartCopy {
                name: part.name.clone(),
                filename: part.filename.clone(),
                content_type: part.content_type.clone(),
                encoder: part.encoder,
                headers: part.headers.clone(),
                content,
                guessed_type: None,
            };
            drop(part);
            if let Some(inner) = inner {
                copy.content = CopiedPartContent::Form(Self::copy_to_depth(inner, depth + 1));
            }
            Some(copy)
        };
        Self { parts: parts.into_iter().filter_map(|part| copy(part.0)).collect() }
    }
}
