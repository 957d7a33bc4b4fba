//! Fuzzes challenges and the Digest answers to them: an answer parses as exactly one challenge and
//! contains no control bytes.
#![no_main]

use haul_policy::auth::{
    AllowedAuthSchemes, ChosenAuthScheme, Credentials, DigestSession, choose_scheme, parse_challenges,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut lines = data.split(|b| *b == b'\n');
    let info = lines.next().unwrap_or_default();
    let challenges = parse_challenges(lines);
    if let Ok(ChosenAuthScheme::Digest(challenge)) = choose_scheme(&challenges, AllowedAuthSchemes::ANY) {
        let me = Credentials::new("u\"\u{e9}", "p").expect("no control byte");
        let mut digest = DigestSession::new(challenge);
        for _ in 0..2 {
            let value = digest.authorize(&me, "GET", "/x?y", None, "c").expect("a plain target");
            assert!(value.iter().all(|b| *b >= b' ' && *b != 0x7f));
            assert_eq!(parse_challenges([&value[..]]).len(), 1);
            digest.on_authentication_info(info);
        }
    }
});
