//! Locations: secrets stay with the first origin, whatever a redirect says.
#![no_main]

use haul_policy::Target;
use haul_policy::redirect::{RedirectRules, Secrets, decide};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let first = Target::parse("https://u:p@a.example/b/c?d").expect("a URL");
    let mut at = first.clone();
    for (hops, location) in data.split(|b| *b == b'\n').enumerate().take(8) {
        let hop = decide(&RedirectRules::default(), hops as u32, 302, Some(location), "GET", &at, &first.origin());
        let Ok(Some(hop)) = hop else { continue };
        let is_first = hop.target.origin() == first.origin();
        assert_eq!((hop.secrets == Secrets::Keep, hop.same_origin), (is_first, is_first));
        assert!(is_first || hop.target.userinfo().is_none());
        assert!(hop.target.path_and_query().bytes().all(|b| b.is_ascii_graphic()));
        at = hop.target;
    }
});
