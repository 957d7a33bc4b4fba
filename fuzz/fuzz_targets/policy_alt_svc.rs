//! Alt-Svc fields and files.
#![no_main]

use haul_policy::Target;
use haul_policy::alt_svc::{AltSvc, Protocol};
use libfuzzer_sys::fuzz_target;

const NOW: u64 = 1_800_000_000;

fuzz_target!(|data: &[u8]| {
    let site = Target::parse("https://a.example/").expect("a URL");
    let mut known = AltSvc::new();
    known.load(&String::from_utf8_lossy(data), NOW);
    known.on_field(&site, Protocol::H1, data, NOW);
    if let Some(found) = known.find(&site, NOW, |_| true) {
        assert!(!found.host.is_empty() && found.expires > NOW);
        assert!(found.host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~:".contains(&b)));
    }
    let written = known.write(NOW);
    let mut again = AltSvc::new();
    again.load(&written, NOW);
    assert_eq!(again.write(NOW), written);
});
