//! Fuzzes the charset parameter of a Content-Type: it is found after any other parameters.
#![no_main]

use haul::response::charset;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let found = charset(data);
    assert!(found.as_ref().is_none_or(|found| found.len() <= data.len() * 3));
    let Some(found) = found.filter(|found| !found.contains(['"', '\\'])) else { return };
    assert_eq!(charset(format!("text/html; a=b; x=\";\\\";charset=n\"; charset=\"{found}\"").as_bytes()), Some(found));
});
