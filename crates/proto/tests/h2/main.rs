//! Tests of the HTTP/2 machine with scripted peers. Their header blocks are literals written by
//! hand, so that the peers share no code with the machine; `h2_crate_interop.rs` tests it with
//! another implementation.

mod flow_control;
mod hostile;
mod input_cuts;
mod peer;
mod requests;
mod responses;
