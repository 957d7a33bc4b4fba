//! Tests of the HTTP/3 machine with scripted peers. Their field sections are literals written by
//! hand, so that the peers share no code with the machine.

mod hostile;
mod input_cuts;
mod peer;
mod qpack_blocked_streams;
mod requests;
mod responses;
