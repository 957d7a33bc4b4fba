//! `haul._haul`: the compiled part of the Python module. Users import the package `haul` in
//! `python/haul`, which has the API of requests and calls this module.
//!
//! ```text
//!   haul.Session.get ──▶ Client.send(options, method, url, ..) ──▶ haul::Client
//!                              │
//!                              └──▶ ReceivedResponse ──▶ haul.Response
//! ```
//!
//! Each request needs only one call from Python to Rust. Everything that may differ between
//! requests is an argument of this call, and everything that stays the same is a `SharedOptions`,
//! which is created once. The interpreter lock is released while the call waits. The body is
//! written directly into the `bytes` object that the program gets (`bytes_sink`). Rarely used parts
//! of a response (fields, cookies, addresses) are parsed on demand (`received_response`).
//!
//! This module contains no policy. `python/haul` decides which redirects are followed and where
//! credentials are sent, as requests does, with one call for each request of a redirect chain.
//!
//! `unsafe` is used in `bytes_sink` alone, to write into a `bytes` object before any other code can
//! see it.

#[cfg(feature = "arrow")]
mod arrow;
mod async_exchange;
mod batch;
mod bytes_sink;
mod client;
mod cookie_jar;
mod error;
mod fetch_many_json_record;
mod form_and_multipart_encoding;
mod normalized_url;
mod options_shared_by_requests;
mod paginated_listing;
mod python_str_and_http_bytes;
mod received_response;
mod request_body;
mod signals_and_stop_flag;
mod streamed_body;
mod value_extraction;

/// The compiled module `haul._haul`.
#[pyo3::pymodule(gil_used = false)]
mod _haul {
    use pyo3::prelude::*;

    #[cfg(feature = "arrow")]
    #[pymodule_export]
    use crate::arrow::ArrowTableBuilder;
    #[pymodule_export]
    use crate::async_exchange::{PendingAsyncRequest, Upload};
    #[pymodule_export]
    use crate::batch::PyBatch;
    #[pymodule_export]
    use crate::client::PyClient;
    #[pymodule_export]
    use crate::cookie_jar::PyJar;
    #[pymodule_export]
    use crate::error::EngineError;
    #[pymodule_export]
    use crate::fetch_many_json_record::{FailedTransfer, body_text};
    #[pymodule_export]
    use crate::form_and_multipart_encoding::{multipart, urlencode};
    #[pymodule_export]
    use crate::normalized_url::{is_secret_field, join, location_text, prepare_url, requote, shard, split_url};
    #[pymodule_export]
    use crate::options_shared_by_requests::{SharedOptions, bypasses_proxy, netrc_login};
    #[pymodule_export]
    use crate::paginated_listing::PyListing;
    #[pymodule_export]
    use crate::received_response::ReceivedResponse;
    #[pymodule_export]
    use crate::signals_and_stop_flag::StopFlag;
    #[pymodule_export]
    use crate::streamed_body::StreamedBody;
    #[pymodule_export]
    use crate::value_extraction::PyPageQuery;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("ACCEPT_ENCODING", haul::body::accept_encoding())
    }
}
