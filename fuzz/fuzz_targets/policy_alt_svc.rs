//! Fuzzes Alt-Svc fields and files: stored alternatives are valid and survive writing and reading,
//! and each can be marked as failed.
#![no_main]

use haul_policy::Target;
use haul_policy::alt_svc::{AlpnProtocol, AltSvcStore};
use libfuzzer_sys::fuzz_target;

const NOW: u64 = 1_800_000_000;

fuzz_target!(|data: &[u8]| {
    let site = Target::parse("https://a.example/").expect("a URL");
    let mut file = AltSvcStore::new();
    file.load(&String::from_utf8_lossy(data), NOW);
    let mut known = file.clone();
    known.on_field(&site, AlpnProtocol::H1, data, NOW);
    let written = known.to_text(NOW);
    // What was heard is in the file, and nothing else has changed there.
    known.apply_changes_to(&mut file);
    assert_eq!(file.to_text(NOW), written);
    // Each failed alternative makes room for another one.
    for _ in 0..known.len() {
        let Some(found) = known.find(&site, NOW, |_| true).cloned() else { break };
        assert!(!found.host.is_empty() && found.expires > NOW);
        assert!(found.host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~:".contains(&b)));
        known.mark_failed(&site, found.protocol, &found.host, found.port);
    }
    assert_eq!(known.find(&site, NOW, |_| true), None);
    let mut again = AltSvcStore::new();
    again.load(&written, NOW);
    assert_eq!(again.to_text(NOW), written);
});
