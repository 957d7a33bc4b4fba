//! Fuzzes URLs: an accepted URL is written as one that parses to the same origin and path.
#![no_main]

use haul_policy::{Target, file_url};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Ok(path) = file_url::parse_path(&text) {
        assert!(path.starts_with(b"/") && !path.contains(&0));
    }
    let Ok(target) = Target::parse(&text) else { return };
    let written = target.to_string();
    let again = Target::parse(&written).expect("it was just written");
    assert_eq!(again.to_string(), written);
    assert_eq!((again.origin(), again.path_and_query()), (target.origin(), target.path_and_query()));
    assert!(target.path_and_query().bytes().all(|b| b.is_ascii_graphic()));
    assert!(!target.origin().host_text().bytes().any(|b| b <= b' ' || b == 127 || b"/\\@;".contains(&b)));
});
