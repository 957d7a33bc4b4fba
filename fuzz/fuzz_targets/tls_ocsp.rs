//! Fuzzes the parser of stapled OCSP responses: no input may panic.
#![no_main]

use haul::net::tls::parses_ocsp_response;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = parses_ocsp_response(bytes);
});
