//! Servers, sinks and seeds that several test modules share.

pub(crate) mod http2_replies;
pub(crate) mod proxy;
pub(crate) mod ranges;
pub(crate) mod seeds;
pub(crate) mod spliced_byte_counts;
