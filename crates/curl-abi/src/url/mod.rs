//! `curl_url_*`: parses, changes and composes URLs of any scheme that libcurl knows.
//!
//! The rules follow libcurl's documentation. Requests do not use this parser but
//! [`haul_policy::target::Target`], which accepts fewer URLs.

mod parse;
mod parts;

use std::ffi::{c_char, c_int, c_uint};
use std::sync::Mutex;

pub use parts::UrlParts;

use crate::c_strings;
use crate::codes::{
    CURLUE_BAD_HANDLE, CURLUE_BAD_PARTPOINTER, CURLUE_OK, CURLUE_OUT_OF_MEMORY, CURLUE_UNKNOWN_PART, CURLUcode,
};
use crate::handle_table::{HandleTable, OpaqueHandle, catch_panic, lock};

/// The table of live URL handles.
pub(crate) static URLS: HandleTable<Mutex<UrlParts>> = HandleTable::new();

/// Flags of `curl_url_get` and `curl_url_set`, with libcurl's names.
#[allow(missing_docs, reason = "the names are libcurl's")]
pub mod flags {
    pub const DEFAULT_PORT: u32 = 1;
    pub const NO_DEFAULT_PORT: u32 = 1 << 1;
    pub const DEFAULT_SCHEME: u32 = 1 << 2;
    pub const NON_SUPPORT_SCHEME: u32 = 1 << 3;
    pub const PATH_AS_IS: u32 = 1 << 4;
    pub const DISALLOW_USER: u32 = 1 << 5;
    pub const URLDECODE: u32 = 1 << 6;
    pub const URLENCODE: u32 = 1 << 7;
    pub const APPENDQUERY: u32 = 1 << 8;
    pub const GUESS_SCHEME: u32 = 1 << 9;
    pub const NO_AUTHORITY: u32 = 1 << 10;
    pub const ALLOW_SPACE: u32 = 1 << 11;
    pub const PUNYCODE: u32 = 1 << 12;
    pub const PUNY2IDN: u32 = 1 << 13;
    pub const GET_EMPTY: u32 = 1 << 14;
    pub const NO_GUESS_SCHEME: u32 = 1 << 15;
}

/// A part of a URL. The values are libcurl's numbers (`CURLUPART_`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum UrlPart {
    /// The whole URL.
    Url = 0,
    /// The scheme.
    Scheme = 1,
    /// The user name in the URL.
    User = 2,
    /// The password in the URL.
    Password = 3,
    /// The login options in the URL (`;auth=…`), which only URLs of some mail protocols have.
    Options = 4,
    /// The host.
    Host = 5,
    /// The port.
    Port = 6,
    /// The path.
    Path = 7,
    /// The query, without the leading `?`.
    Query = 8,
    /// The fragment, without the leading `#`.
    Fragment = 9,
    /// The zone identifier of an IPv6 address (RFC 6874).
    Zone = 10,
}

impl UrlPart {
    fn from_number(number: c_int) -> Option<Self> {
        const ALL: [UrlPart; 11] = [
            UrlPart::Url,
            UrlPart::Scheme,
            UrlPart::User,
            UrlPart::Password,
            UrlPart::Options,
            UrlPart::Host,
            UrlPart::Port,
            UrlPart::Path,
            UrlPart::Query,
            UrlPart::Fragment,
            UrlPart::Zone,
        ];
        ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// Makes an empty URL handle.
#[unsafe(no_mangle)]
pub extern "C" fn curl_url() -> OpaqueHandle {
    catch_panic(std::ptr::null_mut(), || URLS.insert(|_| Mutex::default()))
}

/// Frees a URL handle.
#[unsafe(no_mangle)]
pub extern "C" fn curl_url_cleanup(url: OpaqueHandle) {
    catch_panic((), || drop(URLS.remove(url)));
}

/// Copies a URL handle. Returns NULL for a handle that is not live.
#[unsafe(no_mangle)]
pub extern "C" fn curl_url_dup(url: OpaqueHandle) -> OpaqueHandle {
    catch_panic(std::ptr::null_mut(), || match URLS.get(url) {
        Some(parts) => {
            let copy = lock(&parts).clone();
            URLS.insert(|_| Mutex::new(copy))
        }
        None => std::ptr::null_mut(),
    })
}

/// Stores a part of a URL as a string in `*place`. The C program frees the string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_url_get(
    url: OpaqueHandle,
    part: c_int,
    place: *mut *mut c_char,
    flags: c_uint,
) -> CURLUcode {
    catch_panic(CURLUE_OUT_OF_MEMORY, || {
        let Some(parts) = URLS.get(url) else { return CURLUE_BAD_HANDLE };
        // SAFETY: libcurl's contract: NULL or writable.
        if !unsafe { c_strings::write_unless_null(place, std::ptr::null_mut()) } {
            return CURLUE_BAD_PARTPOINTER;
        }
        let Some(part) = UrlPart::from_number(part) else { return CURLUE_UNKNOWN_PART };
        match lock(&parts).get(part, flags) {
            Ok(text) => {
                let copy = c_strings::malloc_string(&text);
                // SAFETY: as above.
                unsafe { c_strings::write_unless_null(place, copy) };
                if copy.is_null() { CURLUE_OUT_OF_MEMORY } else { CURLUE_OK }
            }
            Err(code) => code,
        }
    })
}

/// Sets a part of a URL, or removes it if `text` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_url_set(url: OpaqueHandle, part: c_int, text: *const c_char, flags: c_uint) -> CURLUcode {
    catch_panic(CURLUE_OUT_OF_MEMORY, || {
        let Some(parts) = URLS.get(url) else { return CURLUE_BAD_HANDLE };
        let Some(part) = UrlPart::from_number(part) else { return CURLUE_UNKNOWN_PART };
        // SAFETY: libcurl's contract.
        let text = unsafe { c_strings::c_string_bytes(text) };
        lock(&parts).set(part, text, flags).err().unwrap_or(CURLUE_OK)
    })
}
