use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use proptest::prelude::*;

use super::*;

/// Returns the links of a field in the notation `target name=value ...`, for comparison.
fn shown(value: &str) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    parse_links(value.as_bytes())
        .map(|link| {
            link.parameters()
                .fold(text(link.target()), |all, (name, value)| format!("{all} {}={}", text(name), text(&value)))
        })
        .collect()
}

fn next_of(value: &str) -> Option<String> {
    let link = parse_links(value.as_bytes()).find(|link| link.has_relation("next"))?;
    Some(String::from_utf8_lossy(link.target()).into_owned())
}

#[test]
fn link_examples_of_rfc_8288_are_parsed() {
    let previous = "<http://example.com/TheBook/chapter2>; rel=\"previous\"; title=\"previous chapter\"";
    assert_eq!(shown(previous), ["http://example.com/TheBook/chapter2 rel=previous title=previous chapter"]);
    assert_eq!(shown("</>; rel=\"http://example.net/foo\""), ["/ rel=http://example.net/foo"]);
    let terms = "</terms>; rel=\"copyright\"; anchor=\"#foo\"";
    assert_eq!(parse_links(terms.as_bytes()).next().unwrap().anchor().as_deref(), Some(&b"#foo"[..]));
    let german = "</TheBook/chapter2>; rel=\"previous\"; title*=UTF-8'de'letztes%20Kapitel, \
                  </TheBook/chapter4>; rel=\"next\"; title*=UTF-8'de'n%c3%a4chstes%20Kapitel";
    assert_eq!(next_of(german).as_deref(), Some("/TheBook/chapter4"));
    let several = "<http://example.org/>; rel=\"start http://example.net/relation/other\"";
    let link = parse_links(several.as_bytes()).next().unwrap();
    assert!(link.has_relation("start") && link.has_relation("http://example.net/relation/other"));
    let two = "<https://example.org/>; rel=\"start\", <https://example.org/index>; rel=\"index\"";
    assert_eq!(shown(two).len(), 2);
}

#[test]
fn link_relation_is_found_in_all_spellings() {
    for field in [
        "<n>; rel=next",
        "<n>;rel=\"next\"",
        "<n>;REL=NEXT",
        "<n> \t;\trel \t=\t next ",
        "<n>; rel=\"prev next\"",
        "<n>; rel=\"\tnext\"",
        "<n>; rel=\"n\\ext\"",
        "<n>; title=\"a, <b>; rel=prev\"; rel=next",
        "<n>; title=a; ; rel=next",
        "<n>; flag; rel=next; flag",
        "<p>; rel=prev, , <n>; rel=next",
        ",<n>; rel=next",
        "<n>; rel=next junk, <m>; rel=prev",
        "<n>; rel=\"next\"junk",
        "<n>; rel=\"next",
    ] {
        assert_eq!(next_of(field).as_deref(), Some("n"), "{field}");
    }
}

#[test]
fn links_with_other_relations_are_not_next() {
    for field in [
        "",
        "n; rel=next",
        "<n; rel=next",
        "<n>",
        "<n>, rel=next",
        "<n> rel=next",
        "<n>; rel=nextpage",
        "<n>; rel=\"x-next\"",
        "<n>; rev=next",
        "<n>; rel*=UTF-8''next",
        "<n>; rel=prev; rel=next",
        "<n>; rel; rel=next",
        "<n>; title=\"rel=next\"",
        "<n>; title=\"; rel=next",
        "<n>; rel=\"next\\\"\"",
    ] {
        assert_eq!(next_of(field), None, "{field}");
    }
}

#[test]
fn malformed_link_ends_the_list() {
    assert_eq!(shown("<a>; rel=x, b>; rel=next, <c>"), ["a rel=x"]);
    assert_eq!(shown("<a> <b>"), ["a", "b"]);
    assert_eq!(shown("<a>; t=\"x\" y, <b>"), ["a t=x"]);
    assert_eq!(shown("<>;rel=next"), [" rel=next"]);
    assert_eq!(shown("<a>;=next;;="), ["a =next = ="]);
    assert_eq!(shown("<a,b;c>;d=<e>,<f>"), ["a,b;c d=<e>", "f"]);
}

#[test]
fn quoted_pairs_in_link_parameters_are_unescaped() {
    assert_eq!(shown(r#"<a>; t="\"\\x\,""#), [r#"a t="\x,"#]);
    assert_eq!(shown(r#"<a>; t="x\"#), ["a t=x"]);
    assert_eq!(shown(r#"<a>; t="\"#), ["a t="]);
}

#[test]
fn large_link_fields_take_linear_time() {
    // A quadratic parser would take minutes.
    for piece in ["<a>;rel=x,", "<", ";", "<a>;", "\"", "<a>;a=\"", "<a>;a=\"\\", ",", "<a>;a=b;"] {
        let field = piece.repeat(2_000_000 / piece.len());
        let found = parse_links(field.as_bytes()).map(|link| link.parameters().count()).sum::<usize>();
        assert!(found <= field.len(), "{piece}");
    }
}

/// Returns a Link field value with these links. Parameter values are written as quoted strings.
fn written(links: &[(String, Vec<(String, String)>)]) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let parameter = |(name, value): &(String, String)| format!(" ;\t{name}=\"{}\"", quoted(value));
    let link = |(target, parameters): &(String, Vec<(String, String)>)| {
        format!("<{target}>{}", parameters.iter().map(parameter).collect::<String>())
    };
    links.iter().map(link).collect::<Vec<_>>().join(" , ")
}

proptest! {
    #[test]
    fn written_links_are_parsed_back(
        given in prop::collection::vec(
            ("[!-=?-~]{0,8}", prop::collection::vec(("[a-z*]{1,4}", "[ -~\u{e4}]{0,8}"), 0..4)), 0..4
        )
    ) {
        let field = written(&given);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let read: Vec<_> = parse_links(field.as_bytes())
            .map(|link| {
                let parameters = link.parameters().map(|(name, value)| (text(name), text(&value))).collect::<Vec<_>>();
                (text(link.target()), parameters)
            })
            .collect();
        prop_assert_eq!(read, given);
    }

    #[test]
    fn link_iteration_over_any_bytes_ends(field in prop::collection::vec(any::<u8>(), 0..64)) {
        for link in parse_links(&field) {
            prop_assert!(!link.target().contains(&b'>'));
            let _ = (link.has_relation("next"), link.anchor(), link.parameters().count());
        }
    }
}

#[test]
fn every_prefix_of_a_link_field_is_parsed() {
    let field = r#"<a>; rel="x \" y"; anchor="b" , <c>;rel=next"#;
    let all = shown(field);
    for end in 0..field.len() {
        // A prefix ends inside a link, and the links before that one stay the same.
        let found = shown(&field[..end]);
        let whole = found.len().saturating_sub(1);
        assert_eq!(found[..whole], all[..whole], "{end}");
    }
    assert_eq!(all, vec![String::from(r#"a rel=x " y anchor=b"#), String::from("c rel=next")]);
}
