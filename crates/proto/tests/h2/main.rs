//! The HTTP/2 machine against scripted peers. Their header blocks are literals written by hand, so
//! that no code is shared with what is tested; `h2_server.rs` has another implementation at the
//! other end.

mod flow;
mod hostile;
mod peer;
mod requests;
mod responses;
mod split;
