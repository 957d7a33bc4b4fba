//! Fuzzes Set-Cookie fields: an accepted cookie is sent to its own site only, without control
//! bytes, and survives both kinds of files.
#![no_main]

use haul_policy::Target;
use haul_policy::cookie::{CookieStore, lwp, netscape};
use libfuzzer_sys::fuzz_target;

const NOW: u64 = 1_800_000_000;

fuzz_target!(|data: &[u8]| {
    let target = |url| Target::parse(url).expect("a URL");
    let (own, plain) = (target("https://w.a.example/p/q"), target("http://w.a.example/p/q"));
    let (foreign, above) = (target("https://w.a.example.evil.test/p/q"), target("https://example/p/q"));
    let mut jar = CookieStore::new();
    for field in data.split(|b| *b == b'\n') {
        let _ = jar.set(&own, field, NOW);
        let _ = jar.set(&plain, field, NOW);
    }
    assert_eq!(jar.cookie_for(&foreign, NOW), None);
    assert_eq!(jar.cookie_for(&above, NOW), None);
    let sent = jar.cookie_for(&own, NOW);
    assert!(sent.iter().flatten().all(|b| *b >= b' ' && *b != 0x7f));
    assert!(!jar.cookies_to_send(&plain, NOW).iter().any(|cookie| cookie.parts().secure));
    for read in
        [netscape::read(&netscape::write(&jar, NOW), NOW), lwp::read(&lwp::write(&jar, NOW), NOW).expect("its magic")]
    {
        assert_eq!(read.refused, 0);
        let mut again = CookieStore::new();
        again.load(read.cookies);
        assert_eq!(again.cookie_for(&own, NOW), sent);
    }
});
