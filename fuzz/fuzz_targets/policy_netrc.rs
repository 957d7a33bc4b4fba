//! netrc files: an entry found for a login is that login's, and a case of the host does not matter.
#![no_main]

use haul_policy::netrc::find;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let entry = find(data, "a.example", None);
    assert_eq!(find(data, "A.Example", None), entry);
    if let Ok(Some(entry)) = find(data, "a.example", Some(b"ann")) {
        assert_eq!(entry.login.as_deref(), Some(&b"ann"[..]));
    }
});
