//! `haul._haul`: the compiled part of the Python module. Users see `haul`, in `python/haul`, with requests' names,
//! which is built on this.
//!
//! ```text
//!   haul.Session.get ──▶ Client.send(Plan, method, url, ..) ──▶ haul::Client ──▶ Reply ──▶ haul.Response
//! ```
//!
//! One crossing for each request: everything that may differ between requests is an argument of one call, and
//! everything that stays the same is a `plan::Plan`, made once. The interpreter is released while the call waits, and
//! the body is written directly into the `bytes` object that the program gets (`sink`). Rarely used parts of a reply
//! (fields, cookies, addresses) are parsed on demand (`reply`).
//!
//! Left out: policy. Which redirects are followed, and which credentials go where, is decided in `python/haul`, as in
//! requests, with one call for each hop.
//!
//! `unsafe` is used in `sink` alone, to write into a `bytes` object before anyone else has it.

mod batch;
mod client;
mod error;
mod form;
mod jar;
mod plan;
mod reply;
mod sink;
mod stop;
mod stream;
mod text;
mod upload;
mod url;

/// The compiled basis of `haul`.
#[pyo3::pymodule(gil_used = false)]
mod _haul {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::error::Failure;
    #[pymodule_export]
    use crate::form::{multipart, urlencode};
    #[pymodule_export]
    use crate::jar::Jar;
    #[pymodule_export]
    use crate::plan::{Plan, bypasses_proxy, netrc_login};
    #[pymodule_export]
    use crate::reply::Reply;
    #[pymodule_export]
    use crate::stop::Stop;
    #[pymodule_export]
    use crate::stream::Stream;
    #[pymodule_export]
    use crate::url::{is_secret_field, join, location_text, prepare_url, requote, split_url};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("ACCEPT_ENCODING", haul::body::accept_encoding())
    }
}
