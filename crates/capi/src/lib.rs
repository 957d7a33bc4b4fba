//! libhaul: haul for C, and for all languages that can call C functions.
//!
//! cbindgen generates `include/haul.h` from this crate, comments included. The header documents
//! everything that a C program has to know. In C:
//!
//! ```c
//! haul_client *client = haul_client_new();
//! haul_request *request = haul_request_new("GET", "http://127.0.0.1:8080/");
//! haul_response *response;
//! if (haul_client_perform(client, request, &response) != HAUL_STATUS_OK)
//!     fprintf(stderr, "%s\n", haul_error_text(haul_last_error()));
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`client`], [`client_settings`], [`connection_settings`], [`tls_settings`], [`auth_arguments`] | a client and its settings |
//! | [`request`], [`request_body`], [`request_trailers`] | a request, and what it sends |
//! | [`blocking_request`], [`streaming`] | sending it: all of the reply at once, or its body piece by piece |
//! | [`response`], [`response_tls_details`] | a reply, and the TLS session that carried it |
//! | [`request_step_callback`] | the steps of a request, while they happen |
//! | [`batch`] | many requests at once |
//! | [`jar`], [`url_join_and_secret_field_check`] | cookies; URLs |
//! | [`error`], [`version`] | reasons of failures; the version of haul |
//! | [`c_arguments`], [`callbacks`] | strings and functions that C passes |
//!
//! # The contract of all functions
//!
//! The header's rules for pointers are the safety condition of all functions: a pointer is NULL or
//! came from haul and was not freed; strings end with NUL or have a length; a request, a response
//! and a batch are used by one thread at a time; callbacks return and do not unwind. Everything
//! else is checked: NULL, encodings, numbers, line ends. No panic unwinds into C.

// The names are C's.
#![allow(non_camel_case_types)]
// The contract of all functions is above and in the header. A section in each function would appear
// in the C header, too.
#![allow(clippy::missing_safety_doc)]

pub mod auth_arguments;
pub mod batch;
pub mod blocking_request;
pub mod c_arguments;
pub mod callbacks;
pub mod client;
pub mod client_settings;
pub mod connection_settings;
pub mod error;
pub mod jar;
mod malloc_body;
mod reply_destination;
pub mod request;
pub mod request_body;
pub mod request_step_callback;
pub mod request_trailers;
pub mod response;
pub mod response_tls_details;
pub mod streaming;
pub mod tls_settings;
pub mod url_join_and_secret_field_check;
pub mod version;
