//! Fuzzes netrc files: an entry found for a login has that login or none, and the letter case of
//! the host does not matter.
#![no_main]

use haul_policy::netrc::find;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let entry = find(data, "a.example", None);
    assert_eq!(find(data, "A.Example", None), entry);
    if let Ok(Some(entry)) = find(data, "a.example", Some(b"ann")) {
        // A password without a login is anybody's.
        assert!(entry.login.as_deref().map_or(entry.password.is_some(), |login| login == b"ann"));
    }
});
