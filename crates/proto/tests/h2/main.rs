//! Tests of the HTTP/2 machine with scripted peers. Their header blocks are literals written by
//! hand, so that the peers share no code with the machine; `h2_server.rs` tests it with another
//! implementation.

mod flow;
mod hostile;
mod peer;
mod requests;
mod responses;
mod split;
