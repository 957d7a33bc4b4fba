//! Fuzzes `Link` fields and listings that follow them: the parser reads any bytes to an end, and a
//! listing never leaves its origins, asks twice for a URL, or sends userinfo to another origin.
//!
//! The first byte selects the rules; then follow the `Link` fields of the pages, one a line.
#![no_main]

use std::collections::HashSet;

use haul_policy::Target;
use haul_policy::pagination::{FinishedPage, ListingHistory, NextLink, NextPageSource, PageStep, PaginationRules};
use haul_proto::link_header::parse_links;
use libfuzzer_sys::fuzz_target;

const MAX: u64 = 6;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, fields)) = data.split_first() else { return };
    let first = Target::parse("https://u:p@a.example/b/c?d").expect("a URL");
    let rules = PaginationRules {
        any_origin: choice & 1 == 1,
        max_pages: Some(MAX),
        ..PaginationRules::new(NextPageSource::LinkHeader)
    };
    let mut chain = ListingHistory::new(&rules, &first).expect("nothing is counted");
    let (mut at, mut known) = (first.clone(), HashSet::from([first.to_url()]));
    for (number, field) in (1..).zip(fields.split(|byte| *byte == b'\n')) {
        let all: Vec<_> = parse_links(field).collect();
        for link in &all {
            let size =
                link.target().len() + link.parameters().map(|(name, value)| name.len() + value.len()).sum::<usize>();
            assert!(size <= field.len());
        }
        let anchors: Vec<_> = all.iter().map(|link| link.anchor()).collect();
        let next: Vec<_> = all
            .iter()
            .zip(&anchors)
            .filter(|(link, _)| link.has_relation("next"))
            .map(|(link, anchor)| NextLink { target: link.target(), anchor: anchor.as_deref() })
            .collect();
        let step = chain.next(&rules, &FinishedPage { links: &next, ..FinishedPage::new(&at, 200) });
        let Ok(PageStep::Next(target)) = step else { return };
        assert!(number < MAX && !next.is_empty() && known.insert(target.to_url()));
        let is_first = target.origin() == first.origin();
        assert!(is_first || rules.any_origin);
        assert_eq!(target.userinfo(), first.userinfo().filter(|_| is_first));
        at = target;
    }
});
