//! The options of an easy handle: the table of all options, their values, and `curl_easy_setopt`.
//!
//! ```
//! use haul_curl::options::{EasyOptions, curlopt_numbers};
//! let mut options = EasyOptions::default();
//! options.set_number(curlopt_numbers::TIMEOUT, 3).unwrap();
//! assert_eq!(options.number(curlopt_numbers::TIMEOUT_MS), Some(3000));
//! ```

pub(crate) mod curlauth_constants;
pub mod curlopt_numbers;
mod lookup;
mod set;
mod table;

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

use haul::net::tls::EchOptions;
use rustc_hash::FxBuildHasher;

use crate::handle_table::UserPointer;
use crate::mime::DuplicatedFormCopy;

pub use lookup::{curl_easy_option_by_id, curl_easy_option_by_name, curl_easy_option_next, curl_easyoption};
pub use set::{haul_curl_easy_setopt_number, haul_curl_easy_setopt_pointer};

/// The type of an option's argument, with libcurl's number (`CURLOT_`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum OptionKind {
    /// The value is a `long`.
    Long = 0,
    /// The value is a `long` that is one of a set of values, or a bit mask.
    Values = 1,
    /// The value is a `curl_off_t`.
    OffT = 2,
    /// The value is a pointer to an object, such as a share handle.
    Object = 3,
    /// The value is a string.
    Text = 4,
    /// The value is a list of strings (`struct curl_slist`).
    List = 5,
    /// The value is a pointer that is passed to a callback.
    Data = 6,
    /// The value is a block of binary data (`struct curl_blob`).
    Blob = 7,
    /// The value is a callback.
    Function = 8,
}

/// The support of this library for an option: implemented, ignored or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionSupport {
    /// The option is implemented.
    Applied,
    /// The option is accepted, but has no effect: the library has nothing to which it applies, or
    /// always behaves this way.
    Ignored,
    /// The option is refused as unknown.
    Unknown,
    /// The name is an older name of an option with the same number.
    Alias,
}

/// The value of an option, as this library stores it.
#[derive(Debug, Clone)]
pub enum OptionValue {
    /// A number.
    Number(i64),
    /// The bytes of a string or a blob.
    Bytes(Arc<[u8]>),
    /// The strings of a list.
    List(Arc<[Box<[u8]>]>),
    /// A callback, a pointer that is passed to a callback, or another pointer that is not null.
    Pointer(UserPointer),
}

/// The kind of request that the options select. If several options select a kind, the last one set
/// applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RequestKind {
    /// A GET request.
    #[default]
    Get,
    /// A HEAD request (`CURLOPT_NOBODY`).
    Head,
    /// POST of a string, or of data that the read callback supplies.
    Post,
    /// POST of a form of `curl_formadd`.
    Form,
    /// POST of a `curl_mime`.
    Mime,
    /// A PUT request (`CURLOPT_UPLOAD`).
    Put,
}

/// The values of the options of an easy handle.
#[derive(Clone, Default)]
pub struct EasyOptions {
    pub(crate) values: HashMap<u32, OptionValue, FxBuildHasher>,
    /// The kind of request that an option selected last, such as POST by `CURLOPT_POSTFIELDS`. If
    /// `CURLOPT_NOBODY` is also on, HEAD is sent instead; see [`EasyOptions::request_kind`].
    pub kind: RequestKind,
    /// A copy of the form to send, if the handle duplicates another handle; otherwise `None`.
    pub(crate) form: Option<Arc<DuplicatedFormCopy>>,
    /// The files that `CURLOPT_COOKIEFILE` names, in order.
    pub(crate) cookie_files: Vec<Box<[u8]>>,
    /// True if cookies are used: one of the cookie options was set.
    pub(crate) has_cookies: bool,
    /// The settings of Encrypted Client Hello (`CURLOPT_ECH`).
    pub(crate) ech: EchOptions,
}

impl EasyOptions {
    /// Returns the kind of the next request, such as GET. While `CURLOPT_NOBODY` is on, it is HEAD,
    /// whatever other option was set since, such as `CURLOPT_POSTFIELDS`.
    #[must_use]
    pub fn request_kind(&self) -> RequestKind {
        if self.is_on(curlopt_numbers::NOBODY) { RequestKind::Head } else { self.kind }
    }

    /// Returns the value of an option that is a number; `None` if it is not set.
    #[must_use]
    pub fn number(&self, option: u32) -> Option<i64> {
        match self.values.get(&option) {
            Some(OptionValue::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Returns true if the Boolean option with this number is on.
    #[must_use]
    pub fn is_on(&self, option: u32) -> bool {
        self.number(option).is_some_and(|number| number != 0)
    }

    /// Returns the bytes of an option that is a string or a blob; `None` if it is not set.
    #[must_use]
    pub fn bytes(&self, option: u32) -> Option<&[u8]> {
        match self.values.get(&option) {
            Some(OptionValue::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the text of an option; `None` if it is not set. Bytes that are not UTF-8 are
    /// replaced.
    #[must_use]
    pub fn text(&self, option: u32) -> Option<std::borrow::Cow<'_, str>> {
        self.bytes(option).map(String::from_utf8_lossy)
    }

    /// Returns the strings of an option that is a list; empty if it is not set.
    #[must_use]
    pub fn string_list(&self, option: u32) -> &[Box<[u8]>] {
        match self.values.get(&option) {
            Some(OptionValue::List(list)) => list,
            _ => &[],
        }
    }

    /// Returns the value of an option that is a pointer; NULL if it is not set.
    #[must_use]
    pub fn pointer(&self, option: u32) -> *mut c_void {
        match self.values.get(&option) {
            Some(OptionValue::Pointer(pointer)) => pointer.0,
            _ => std::ptr::null_mut(),
        }
    }

    /// Returns true if the option with this number has a value.
    #[must_use]
    pub fn has(&self, option: u32) -> bool {
        self.values.contains_key(&option)
    }

    /// Sets the value of the option with this number, or removes it if `value` is `None`.
    pub(crate) fn store(&mut self, option: u32, value: Option<OptionValue>) {
        match value {
            Some(value) => self.values.insert(option, value),
            None => self.values.remove(&option),
        };
    }
}

impl std::fmt::Debug for EasyOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EasyOptions").field("kind", &self.kind).field("set", &self.values.len()).finish_non_exhaustive()
    }
}
