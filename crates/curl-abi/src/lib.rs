//! libcurl's easy and multi interface over haul, for programs that were written for libcurl.
//!
//! `scripts/libcurl.sh` links this crate to `libcurl.so.4`. A program finds it before the system's
//! libcurl by `LD_LIBRARY_PATH`. The scope is HTTP: options of other protocols are unknown
//! (`CURLE_UNKNOWN_OPTION`). `docs/design/curl-abi.md` describes the design.
//!
//! | module | contents |
//! |---|---|
//! | [`handle_table`] | the tables of live handles, by which each call checks its handle |
//! | [`codes`] | `CURLcode` and the other result codes, with their texts |
//! | [`c_strings`] | strings from C and for C |
//! | [`global`], [`version`] | `curl_global_*`, `curl_free`; the version and the features |
//! | [`easy`] | easy handles: `curl_easy_init`, `curl_easy_perform` and the others |
//! | [`client_settings`] | the options that the engine's client for a handle depends on |
//! | [`options`] | the table of options, `curl_easy_setopt` |
//! | [`request`] | the engine's request, made of the options |
//! | [`transfer`] | a transfer in progress: its callbacks, its sink, its content |
//! | [`info`], [`headers`] | `curl_easy_getinfo`; `curl_easy_header` |
//! | [`escape`], [`slist`], [`date`] | percent-encoding, lists of strings, dates |
//! | [`mime`], [`form`] | multipart forms: `curl_mime_*`, `curl_formadd` |
//! | [`url`] | `curl_url_*` |
//! | [`share`] | state that easy handles share |
//! | [`multi`] | `curl_multi_*` |
//!
//! # The contract of all functions
//!
//! A handle is never dereferenced: it is looked up in a table, and a handle that is not there is an
//! error code. libcurl's documentation is the safety condition for everything else: strings end
//! with NUL or have a length, pointers for results are writable, callbacks have the documented
//! types and do not unwind, and the data of a pointer option stays valid as long as libcurl
//! requires. No panic unwinds into C.

// The names are C's.
#![allow(non_camel_case_types)]
// The contract of all functions is above.
#![allow(clippy::missing_safety_doc)]

pub mod c_strings;
pub mod client_settings;
pub mod codes;
pub mod date;
pub mod easy;
pub mod escape;
pub mod form;
pub mod global;
pub mod handle_table;
pub mod headers;
pub mod info;
pub mod mime;
pub mod multi;
pub mod options;
pub mod request;
pub mod share;
pub mod slist;
pub mod transfer;
pub mod url;
pub mod version;
