//! Compares haul's URL parser with the crate `url`, which implements the URL Standard. If both
//! accept a text, they must find the same scheme, host and port. If the text consists of letters,
//! digits and plain punctuation, they must also find the same path and query. The fuzz target
//! `url_differential` does the same.

mod common;

use haul_policy::Target;
use proptest::prelude::*;
use proptest::string::string_regex;
use url::{Position, Url};

fn compare(ours: &Target, theirs: &Url, text: &str) -> Result<(), TestCaseError> {
    prop_assert_eq!(ours.scheme().as_str(), theirs.scheme());
    prop_assert_eq!(Some(ours.port()), theirs.port_or_known_default());
    prop_assert_eq!(Some(ours.host_text()), theirs.host_str().map(|host| host.trim_matches(['[', ']'])));
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&()*+,;=:@/?".contains(&b);
    if text.bytes().all(plain) {
        prop_assert_eq!(ours.path_and_query(), &theirs[Position::BeforePath..Position::AfterQuery]);
    }
    Ok(())
}

fn url() -> impl Strategy<Value = String> {
    let host = "(([a-zA-Z0-9._~%-]|\u{fc}|\u{3002}|\u{ff0f}|%4[1-9]){1,12}|[0-9x.]{1,12}|\\[(::|[0-9a-f:]{2,9}|::1\\.2\\.3\\.4)\\])";
    string_regex(&format!(
        "https?:/{{1,3}}([a-z:%]{{0,4}}@)?{host}(:[0-9]{{0,5}})?(/[a-z.%2/]{{0,12}})?(\\?[a-z]{{0,3}})?"
    ))
    .unwrap()
}

fn reference() -> impl Strategy<Value = String> {
    string_regex("(https?:(//|///|)|/{0,3})[a-zA-Z0-9.:@%-]{0,8}(/|\\.\\./|\\./|[a-z?#;=&%2eE]){0,10}").unwrap()
}

/// Returns true if a label of the host is `0x`. The URL Standard reads it as the number 0, haul and
/// curl read it as part of a name.
fn has_empty_number(host: &str) -> bool {
    host.split('.').any(|label| label == "0x")
}

/// Returns true if only one slash follows the scheme. haul and curl then read a host, the URL
/// Standard reads a path.
fn has_one_slash(text: &str) -> bool {
    text.split_once(':').is_some_and(|(_, rest)| rest.starts_with('/') && !rest.starts_with("//"))
}

proptest! {
    #![proptest_config(common::config(6000))]

    #[test]
    fn urls_name_the_host_of_the_url_standard(text in url()) {
        if let (Ok(ours), Ok(theirs)) = (Target::parse(&text), Url::parse(&text))
            && !has_empty_number(ours.host_text())
        {
            compare(&ours, &theirs, &text)?;
        }
    }

    #[test]
    fn references_resolve_as_in_the_url_standard(text in reference()) {
        let base = "http://u@host.example:81/a/b/c?d";
        let (ours, theirs) = (Target::parse(base).unwrap(), Url::parse(base).unwrap());
        if let (Ok(ours), Ok(theirs)) = (ours.join(&text), theirs.join(&text))
            && !has_one_slash(&text)
        {
            compare(&ours, &theirs, &text)?;
        }
    }
}
