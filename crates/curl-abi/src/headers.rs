//! `curl_easy_header` and `curl_easy_nextheader`: the header fields of responses.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::sync::MutexGuard;

use crate::c_strings;
use crate::codes::CURLHcode;
use crate::codes::header_codes::{
    CURLHE_BAD_ARGUMENT, CURLHE_BADINDEX, CURLHE_MISSING, CURLHE_NOHEADERS, CURLHE_NOREQUEST, CURLHE_OK,
};
use crate::easy::{EASY, Easy, EasyState};
use crate::handle_table::{OpaqueHandle, catch_panic, lock};

/// The kind of message in which a header field was received. The values are libcurl's bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum HeaderMessageKind {
    /// The field was in a final response (`CURLH_HEADER`).
    Header = 1,
    /// The field was in a trailer section (`CURLH_TRAILER`).
    Trailer = 1 << 1,
    /// The field was in a proxy's response to CONNECT (`CURLH_CONNECT`).
    Connect = 1 << 2,
    /// The field was in an interim response (`CURLH_1XX`).
    Interim = 1 << 3,
}

/// The bits of all origins of header fields (`CURLH_HEADER` and the others).
const ALL_ORIGINS: c_uint = 0x1f;

/// A response head or a trailer section, as received.
#[derive(Debug, Clone)]
pub(crate) struct StoredHead {
    pub(crate) origin: HeaderMessageKind,
    /// The index of the request to which the head is a response, from 0.
    pub(crate) request: c_int,
    pub(crate) raw: Vec<u8>,
}

/// A header field, as `curl/header.h` describes it.
#[repr(C)]
pub struct curl_header {
    name: *mut c_char,
    value: *mut c_char,
    amount: usize,
    index: usize,
    origin: c_uint,
    anchor: *mut c_void,
}

/// A header field of the last transfer. It is kept until the handle's next transfer.
struct FoundField {
    name: CString,
    value: CString,
    origin: HeaderMessageKind,
    request: c_int,
}

/// The header fields of the last transfer of a handle, or of the transfer in progress. They are
/// parsed when the C program asks for one.
#[derive(Default)]
pub(crate) struct HeaderStore {
    heads: Vec<StoredHead>,
    /// The fields of the first `parsed` heads.
    fields: Vec<FoundField>,
    parsed: usize,
    /// The fields that were returned to the C program. They are boxed, so that their addresses stay
    /// valid.
    #[expect(clippy::vec_box, reason = "the program keeps the addresses")]
    returned_headers: Vec<Box<curl_header>>,
}

// SAFETY: the pointers in `returned_headers` lead to the strings in `fields`, which the store owns.
unsafe impl Send for HeaderStore {}

impl HeaderStore {
    /// Returns the number of heads.
    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Adds heads. The fields that were returned to the C program stay valid.
    pub(crate) fn add(&mut self, heads: Vec<StoredHead>) {
        self.heads.extend(heads);
    }

    fn fields(&mut self) -> &[FoundField] {
        self.fields.extend(self.heads[self.parsed..].iter().flat_map(parse_fields));
        self.parsed = self.heads.len();
        &self.fields
    }

    /// Returns the index of the request that `request` selects; -1 selects the last request.
    /// Returns `None` if there is no such request.
    fn request(&self, request: c_int) -> Option<c_int> {
        let last = self.heads.iter().map(|head| head.request).max()?;
        match request {
            -1 => Some(last),
            number => (0..=last).contains(&number).then_some(number),
        }
    }

    /// Converts the header field `fields[position]` to a `curl_header`. `amount` is the number of
    /// fields with the same name, and `index` is the index of this field among them, from 0.
    fn public_header(&mut self, position: usize, amount: usize, index: usize) -> *mut curl_header {
        let Some(field) = self.fields().get(position) else { return std::ptr::null_mut() };
        let header = curl_header {
            name: field.name.as_ptr().cast_mut(),
            value: field.value.as_ptr().cast_mut(),
            amount,
            index,
            origin: field.origin as c_uint,
            anchor: std::ptr::without_provenance_mut(position + 1),
        };
        self.returned_headers.push(Box::new(header));
        self.returned_headers.last_mut().map_or(std::ptr::null_mut(), |header| &raw mut **header)
    }

    /// Returns the positions in `fields` of the fields with this name, origin and request.
    fn positions(&mut self, name: &[u8], origin: c_uint, request: c_int) -> Vec<usize> {
        let matches = |field: &FoundField| {
            field.origin as c_uint & origin != 0
                && field.request == request
                && field.name.as_bytes().eq_ignore_ascii_case(name)
        };
        self.fields().iter().enumerate().filter(|(_, field)| matches(field)).map(|(at, _)| at).collect()
    }
}

/// Parses the fields of a head. A folded line is joined to the line before it.
fn parse_fields(head: &StoredHead) -> Vec<FoundField> {
    let mut fields: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for line in head.raw.split(|b| *b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let (Some((_, value)), true) = (fields.last_mut(), line.starts_with(b" ") || line.starts_with(b"\t")) {
            value.push(b' ');
            value.extend_from_slice(line.trim_ascii());
            continue;
        }
        let colon = line.iter().position(|b| *b == b':').filter(|_| !line.starts_with(b"HTTP/"));
        if let Some(colon) = colon {
            fields.push((line[..colon].trim_ascii_end().to_vec(), line[colon + 1..].trim_ascii().to_vec()));
        }
    }
    let field = |(name, value): (Vec<u8>, Vec<u8>)| {
        let (name, value) = (CString::new(name).ok()?, CString::new(value).ok()?);
        Some(FoundField { name, value, origin: head.origin, request: head.request })
    };
    fields.into_iter().filter_map(field).collect()
}

/// Locks a handle. If a transfer is in progress, adds the heads that it has received so far.
fn lock_with_heads(easy: &Easy) -> MutexGuard<'_, EasyState> {
    let running = easy.running();
    let mut state = lock(&easy.state);
    if let Some(running) = running {
        let heads = running.heads_from(state.headers.len());
        state.headers.add(heads);
    }
    state
}

/// Finds a header field of the last transfer by its name, and stores a pointer to it in `*place`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_easy_header(
    easy: OpaqueHandle,
    name: *const c_char,
    index: usize,
    origin: c_uint,
    request: c_int,
    place: *mut *mut curl_header,
) -> CURLHcode {
    catch_panic(CURLHE_BAD_ARGUMENT, || {
        // SAFETY: libcurl's contract.
        let (Some(easy), Some(name)) = (EASY.get(easy), unsafe { c_strings::c_string_bytes(name) }) else {
            return CURLHE_BAD_ARGUMENT;
        };
        if origin == 0 || origin > ALL_ORIGINS || place.is_null() || request < -1 {
            return CURLHE_BAD_ARGUMENT;
        }
        let mut state = lock_with_heads(&easy);
        let headers = &mut state.headers;
        if headers.fields().is_empty() {
            return CURLHE_NOHEADERS;
        }
        let Some(request) = headers.request(request) else { return CURLHE_NOREQUEST };
        let found = headers.positions(name, origin, request);
        if found.is_empty() {
            return CURLHE_MISSING;
        }
        let Some(position) = found.get(index) else { return CURLHE_BADINDEX };
        let header = headers.public_header(*position, found.len(), index);
        // SAFETY: libcurl's contract: the place is writable.
        unsafe { c_strings::write_unless_null(place, header) };
        CURLHE_OK
    })
}

/// Returns the field after `previous`, or the first one for NULL; NULL after the last one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_easy_nextheader(
    easy: OpaqueHandle,
    origin: c_uint,
    request: c_int,
    previous: *mut curl_header,
) -> *mut curl_header {
    catch_panic(std::ptr::null_mut(), || {
        let Some(easy) = EASY.get(easy) else { return std::ptr::null_mut() };
        let mut state = lock_with_heads(&easy);
        let headers = &mut state.headers;
        let Some(request) = headers.request(request) else { return std::ptr::null_mut() };
        let start = if previous.is_null() {
            0
        } else {
            // `previous` is accepted only if this handle returned it.
            match headers.returned_headers.iter().find(|given| std::ptr::eq(&***given, previous.cast_const())) {
                Some(given) => given.anchor.addr(),
                None => return std::ptr::null_mut(),
            }
        };
        let matches = |field: &FoundField| field.origin as c_uint & origin != 0 && field.request == request;
        let next = headers.fields().iter().enumerate().skip(start).find(|(_, field)| matches(field));
        let Some((position, name)) = next.map(|(at, field)| (at, field.name.as_bytes().to_vec())) else {
            return std::ptr::null_mut();
        };
        let found = headers.positions(&name, origin, request);
        let index = found.iter().position(|at| *at == position).unwrap_or(0);
        headers.public_header(position, found.len(), index)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_lines_and_repeated_fields_are_found() {
        let raw = b"HTTP/1.1 200 OK: yes\r\nA: 1\r\nB: x\r\n  y\r\na: 2\r\n\r\n".to_vec();
        let mut store = HeaderStore::default();
        store.add(vec![StoredHead { origin: HeaderMessageKind::Header, request: 0, raw }]);
        let texts: Vec<_> =
            store.fields().iter().map(|field| (field.name.to_str().unwrap(), field.value.to_str().unwrap())).collect();
        assert_eq!(texts, [("A", "1"), ("B", "x y"), ("a", "2")]);
        assert_eq!(store.positions(b"A", 1, 0), [0, 2]);
        assert_eq!((store.request(-1), store.request(1), store.positions(b"A", 2, 0).len()), (Some(0), None, 0));
    }
}
