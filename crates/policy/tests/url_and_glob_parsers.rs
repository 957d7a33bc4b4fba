//! Property tests of the parsers of URLs and other text: no input makes them panic, and every
//! accepted input is valid.

mod common;

use haul_policy::filename::{MAX_NAME, from_disposition, from_target};
use haul_policy::glob::{UrlGlob, fill_template};
use haul_policy::redirect::{RedirectRules, redirected_request};
use haul_policy::retry::{self, AttemptOutcome, RetryRules, parse_retry_after};
use haul_policy::url_template::UrlTemplate;
use haul_policy::{Host, Scheme, Target};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::string::string_regex;
use std::time::Duration;

/// Generates texts that look enough like URLs to reach most of the parser.
fn urlish() -> impl Strategy<Value = String> {
    let host = "([a-zA-Z0-9._~%:\\[\\]@-]|\u{fc}|\u{3002}|\u{ff0f}|\\\\){0,12}";
    let tail = "([a-z0-9./?#%&=:;@ {}|\"-]|\\.\\./|%2[eEfF]|\u{e9}|\\\\){0,20}";
    let regex = |pattern: String| string_regex(&pattern).unwrap();
    prop_oneof![
        4 => regex(format!("(https?://|HTTP:/|//|)({host})({tail})")),
        2 => regex(format!("http://(h|a\\.b|127\\.1|0x7f\\.1|\\[::1\\]|\\[fe80::1%25lo\\])(:[0-9]{{0,6}})?/({tail})")),
        1 => regex(".{0,30}".to_owned()),
    ]
}

/// Checks that every text of `target` that a peer can see is well-formed, and parses to the same
/// target again.
fn check_target(target: &Target) -> Result<(), TestCaseError> {
    let line = target.path_and_query();
    prop_assert!(line.starts_with('/') && line.bytes().all(|b| b.is_ascii_graphic()), "{line:?}");
    prop_assert!(!target.path().split('/').any(|s| s == "." || s == ".."), "{line}");
    prop_assert!(!line.contains('#'));
    let host = target.host_text();
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._~:".contains(&b);
    prop_assert!(!host.is_empty() && host.bytes().all(plain), "{host:?}");
    prop_assert_eq!(matches!(target.host(), Host::V6(..)), host.contains(':'));
    prop_assert!(!target.authority().contains(['@', '%', '/', '\\', ' ']));
    let again = Target::parse(&target.to_url()).map_err(|e| TestCaseError::fail(format!("{target}: {e}")))?;
    prop_assert_eq!(again.to_url(), target.to_url());
    prop_assert_eq!(again.origin(), target.origin());
    prop_assert_eq!(again.path_and_query(), line);
    prop_assert_eq!(again.query(), target.query());
    if let Some((user, password)) = target.userinfo_bytes() {
        prop_assert!(!user.iter().chain(&password).any(|b| matches!(b, 0 | b'\r' | b'\n')));
    }
    Ok(())
}

proptest! {
    #![proptest_config(common::config(4000))]

    #[test]
    fn displayed_url_parses_to_the_same_target(text in urlish()) {
        if let Ok(target) = Target::parse(&text) {
            check_target(&target)?;
        }
    }

    #[test]
    fn url_with_path_as_is_never_panics(text in urlish(), reference in urlish()) {
        if let Ok(target) = Target::parse_with(&text, Scheme::Https, true) {
            prop_assert!(target.path_and_query().bytes().all(|b| b.is_ascii_graphic()));
            let _ = target.join(&reference);
            let _ = from_target(&target);
        }
    }

    #[test]
    fn joining_any_reference_never_panics(base in urlish(), reference in prop_oneof![urlish(), any::<String>()]) {
        let base = Target::parse(&base).unwrap_or_else(|_| Target::parse("http://u:p@h/a/b?c").unwrap());
        if let Ok(joined) = base.join(&reference) {
            check_target(&joined)?;
            // A reference that is a full URL means the same wherever it is found.
            if reference.starts_with("http://") && let Ok(direct) = Target::parse(&reference) {
                prop_assert_eq!(direct.to_url(), joined.to_url());
            }
        }
    }

    #[test]
    fn any_location_gives_a_valid_target(location in vec(any::<u8>(), 0..40), status in 290u16..320) {
        let from = Target::parse("https://h/a").unwrap();
        if let Ok(Some(hop)) = redirected_request(&RedirectRules::default(), 0, status, Some(&location), "GET", &from, &from.origin()) {
            check_target(&hop.target)?;
        }
    }

    #[test]
    fn any_glob_expands_lazily(text in prop_oneof![any::<String>(), "[\\[\\]{},:0-9a-e\\\\-]{0,16}", "http://h/(\\[[0-9]{1,3}-[0-9]{1,3}(:[0-9])?\\]|\\{[a-c,]{1,6}\\}){1,3}"]) {
        if let Ok(glob) = UrlGlob::parse(&text) {
            let seen = glob.iter().take(2000).count() as u64;
            match glob.count() {
                Some(count) if count <= 2000 => prop_assert_eq!(seen, count),
                _ => prop_assert_eq!(seen, 2000),
            }
            for expansion in glob.iter().take(3) {
                let filled = fill_template(&text, &expansion.parts);
                prop_assert!(expansion.parts.by_number().iter().map(String::len).sum::<usize>() <= expansion.url.len());
                prop_assert_eq!(fill_template("", &expansion.parts), "");
                drop(filled);
            }
        }
    }

    #[test]
    fn template_match_stays_in_its_url_component(matched in vec(prop_oneof![any::<u8>(), Just(b'.'), Just(b'/'), Just(b'%')], 0..12)) {
        let path = UrlTemplate::parse("https://u:p@h:1/dir/{}").unwrap();
        if let Ok(url) = path.expand(&matched) {
            let target = Target::parse(&url).unwrap();
            prop_assert_eq!(Some(target.origin()), path.literal_origin());
            prop_assert!(target.path().starts_with("/dir/"), "{}", target);
            prop_assert_eq!((target.query(), target.fragment()), (None, None));
        }
        let query = UrlTemplate::parse("http://h/?a={}&b=1").unwrap();
        let target = Target::parse(&query.expand(&matched).unwrap()).unwrap();
        prop_assert_eq!(target.query().unwrap().matches(['&', '=']).count(), 3);
        prop_assert_eq!(target.fragment(), None);
    }

    #[test]
    fn template_match_cannot_change_port_and_path(matched in "([a-z0-9.:_-]|[/@?#\\\\%; ]){0,10}") {
        if let Ok(url) = UrlTemplate::parse("https://{}.example/x").unwrap().expand(matched.as_bytes()) {
            let target = Target::parse(&url).unwrap();
            prop_assert!(target.host_text().ends_with(".example"), "{}", target);
            prop_assert_eq!((target.scheme(), target.port(), target.path()), (Scheme::Https, 443, "/x"));
        }
    }

    #[test]
    fn template_of_one_placeholder_keeps_http_urls(matched in urlish()) {
        if let Ok(url) = UrlTemplate::parse("{}").unwrap().expand(matched.as_bytes()) {
            prop_assert_eq!(&url, &matched);
            prop_assert!(Target::parse(&url).unwrap().userinfo().is_none());
        }
    }

    #[test]
    fn url_templates_never_panic(template in "([a-z:/?#@.\\[\\]%-]|\\{\\}){0,16}", matched in vec(any::<u8>(), 0..8)) {
        if let Ok(parsed) = UrlTemplate::parse(&template) && let Ok(url) = parsed.expand(&matched) {
            let target = Target::parse(&url).unwrap();
            if let Some(origin) = parsed.literal_origin() {
                prop_assert_eq!(target.origin(), origin, "{} {:?}", template, matched);
            }
        }
    }

    #[test]
    fn suggested_file_names_have_no_separators_or_controls(value in prop_oneof![
        vec(any::<u8>(), 0..60),
        "(attachment|); *filename\\*?=(\"|utf-8''|)([a-z./\\\\\"; %]|%2[eEfF]|%00|\u{202e}){0,20}".prop_map(String::into_bytes),
        ".{0,300}".prop_map(|name| [b"a;filename=", name.as_bytes()].concat()),
    ]) {
        if let Some(name) = from_disposition(&value) {
            prop_assert!(!name.is_empty() && name.len() <= MAX_NAME, "{name:?}");
            prop_assert!(!name.contains(['/', '\\', ':']) && !name.starts_with('.') && !name.chars().any(char::is_control), "{name:?}");
        }
    }

    #[test]
    fn delays_for_any_retry_after_are_bounded(value in prop_oneof![vec(any::<u8>(), 0..40), "[0-9]{1,25}".prop_map(String::into_bytes)], now: u64, attempt: u32, entropy: u64) {
        let asked = parse_retry_after(&value, now);
        let rules = RetryRules { max: u32::MAX, ..RetryRules::default() };
        if let Some(wait) = retry::retry_delay(&rules, AttemptOutcome::Status(503), attempt, true, asked, Duration::ZERO, entropy) {
            prop_assert!(wait >= Duration::from_millis(500) && wait <= rules.cap);
        }
    }
}
