//! The engine of haul.
pub mod body;
pub mod buffer;
mod client;
pub mod clock;
pub mod drive;
mod error;
pub mod facts;
pub mod fleet;
pub mod net;
pub mod pipeline;
pub mod request;
pub mod sink;
pub mod stats;
pub mod trace;
pub mod transfer;

pub use client::Client;
pub use error::{Error, ErrorKind, Result};
pub use haul_policy::target::Target;
pub use haul_proto::head::{Head, Version};
pub use request::RequestOptions;
