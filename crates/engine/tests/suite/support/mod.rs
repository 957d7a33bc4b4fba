//! Servers, sinks and seeds that several modules of tests share.

pub(crate) mod http2;
pub(crate) mod proxy;
pub(crate) mod ranges;
pub(crate) mod seeds;
pub(crate) mod splice;
