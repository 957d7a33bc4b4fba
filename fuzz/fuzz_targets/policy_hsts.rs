//! Fuzzes Strict-Transport-Security fields and files: policies survive writing and reading, and an
//! upgraded URL is https on port 443.
#![no_main]

use haul_policy::Target;
use haul_policy::hsts::HstsStore;
use libfuzzer_sys::fuzz_target;

const NOW: u64 = 1_800_000_000;

fuzz_target!(|data: &[u8]| {
    let site = Target::parse("https://a.example./").expect("a URL");
    let mut known = HstsStore::new();
    known.load(&String::from_utf8_lossy(data), NOW);
    let written = known.to_text(NOW);
    let mut again = HstsStore::new();
    again.load(&written, NOW);
    assert_eq!(again.to_text(NOW), written);
    known.on_field(&site, data, NOW);
    for url in ["http://a.example/", "http://A.example.:80/"] {
        let up = known.to_https_target(&Target::parse(url).expect("a URL"), NOW);
        assert!(up.is_none_or(|up| up.port() == 443 && up.scheme().as_str() == "https"));
    }
});
