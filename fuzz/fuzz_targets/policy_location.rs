//! Fuzzes redirects: secrets stay with the first origin whatever a Location says, the user's rules
//! are kept, and the next URL is valid.
//!
//! The first byte selects the rules, the second the request and its status; then follow Locations,
//! one a line.
#![no_main]

use haul_policy::redirect::{RedirectRules, SecretHandling, redirected_request};
use haul_policy::{Scheme, Target};
use libfuzzer_sys::fuzz_target;

const STATUSES: [u16; 8] = [302, 301, 303, 307, 308, 300, 304, 200];
const METHODS: [&str; 4] = ["GET", "POST", "PUT", "HEAD"];
const MAX: u32 = 3;

fuzz_target!(|data: &[u8]| {
    let Some((&[allowed, asked], locations)) = data.split_first_chunk() else { return };
    let is = |bit: u8| allowed >> bit & 1 == 1;
    let rules = RedirectRules {
        location_trusted: is(0),
        keep_method: is(1),
        post301: is(2),
        post302: is(3),
        post303: is(4),
        allow_http: !is(5),
        allow_https: !is(6),
        max: if is(7) { MAX } else { u32::MAX },
        ..RedirectRules::default()
    };
    let (status, mut method) = (STATUSES[usize::from(asked & 7)], METHODS[usize::from(asked >> 3 & 3)].to_owned());
    let first = Target::parse(["https://u:p@a.example/b/c?d", "http://u:p@a.example:81"][usize::from(asked >> 5 & 1)]);
    let first = first.expect("a URL");
    let mut at = first.clone();
    for (hops, location) in (0..).zip(locations.split(|b| *b == b'\n').take(8)) {
        let hop = redirected_request(&rules, hops, status, Some(location), &method, &at, &first.origin());
        let Ok(Some(hop)) = hop else { continue };
        assert!(hops < rules.max && !matches!(status, 200 | 304));
        assert!(if hop.target.scheme() == Scheme::Http { rules.allow_http } else { rules.allow_https });

        let is_first = hop.target.origin() == first.origin();
        let is_private = |target: &Target| target.scheme() == Scheme::Https;
        let is_downgrade = !is_first && (is_private(&at) || is_private(&first)) && !is_private(&hop.target);
        assert_eq!((hop.same_origin, hop.downgraded), (is_first, is_downgrade));
        let may_keep = is_first || rules.location_trusted && !is_downgrade;
        assert_eq!(hop.secrets == SecretHandling::Keep, may_keep);
        assert!(may_keep || hop.target.userinfo().is_none());

        assert!(hop.method == method || hop.method == "GET" && !rules.keep_method && !hop.keep_body);
        assert!(!matches!(status, 307 | 308) || hop.method == method && hop.keep_body);

        assert!(hop.target.path_and_query().bytes().all(|b| b.is_ascii_graphic()));
        let again = Target::parse(&hop.target.to_url()).expect("what can be asked for");
        assert_eq!(
            (again.origin(), again.path_and_query()),
            (hop.target.origin(), hop.target.path_and_query()),
            "of {}",
            location.escape_ascii()
        );
        (at, method) = (hop.target, hop.method);
    }
});
