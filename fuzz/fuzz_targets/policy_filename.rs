//! Content-Disposition: the name that comes of it stays in its directory, and is not hidden.
#![no_main]

use haul_policy::filename::{MAX_NAME, from_disposition, sanitise};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(name) = from_disposition(data) else { return };
    assert!(!name.is_empty() && name.len() <= MAX_NAME);
    assert!(!name.contains(['/', '\\']) && !name.starts_with('.') && !name.chars().any(char::is_control));
    assert_eq!(sanitise(&name).as_deref(), Some(&*name), "it is harmless already");
});
