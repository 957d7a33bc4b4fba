//! Tests of Alt-Svc: fields, the replacement of alternatives, and a file that several processes
//! write.

use super::*;

const NOW: u64 = 1_800_000_000;

fn target(url: &str) -> Target {
    Target::parse(url).unwrap()
}

fn parsed(field: &str) -> Vec<AltSvcOffer> {
    match parse(field.as_bytes()) {
        Some(AltSvcField::Alternatives(found)) => found,
        _ => Vec::new(),
    }
}

#[test]
fn alt_svc_field_values_are_parsed() {
    let one = |field: &str| parsed(field).pop();
    let is = |protocol, host: &str, port, max_age, persist| {
        Some(AltSvcOffer { protocol, host: host.to_owned(), port, max_age, persist })
    };
    assert_eq!(one("h2=\":443\""), is(AlpnProtocol::H2, "", 443, DEFAULT_MAX_AGE_SECONDS, false));
    assert_eq!(one("h3=\"A.example:1\" ; ma=5; persist=1; x=\"y,z\""), is(AlpnProtocol::H3, "a.example", 1, 5, true));
    assert_eq!(one("http%2F1.1=\"[::1]:80\";MA=\"7\""), is(AlpnProtocol::H1, "::1", 80, 7, false));
    assert_eq!(one("h2=alt:443"), is(AlpnProtocol::H2, "alt", 443, DEFAULT_MAX_AGE_SECONDS, false));
    assert_eq!(one("h3-29=\":443\", h2=\":1\""), is(AlpnProtocol::H2, "", 1, DEFAULT_MAX_AGE_SECONDS, false));
    assert_eq!(parse(b" Clear "), Some(AltSvcField::Clear));
    for field in [
        "",
        "h2",
        "h2=",
        "h2=\"h\"",
        "h2=\":0\"",
        "h2=\":99999\"",
        "h2=\":+1\"",
        "h2=\"u@h:1\"",
        "h2=\"h/x:1\"",
        "h%2=\":1\"",
        "h2=\":1\"; ma=x",
        "h2=\"a\\b:1\"",
        "clear, h",
    ] {
        assert_eq!(parsed(field), [], "{field}");
    }
    assert_eq!(parse(b"h2=\":1\"\xff"), None);
    assert_eq!(parsed(&"h2=\":1\",".repeat(1000)).len(), MAX_ALTERNATIVES);
}

#[test]
fn alternatives_are_replaced_cleared_and_expired() {
    let site = target("https://h/");
    let mut known = AltSvcStore::new();
    known.on_field(&target("http://h:443/"), AlpnProtocol::H1, b"h2=\":1\"", NOW);
    assert!(known.is_empty());
    known.on_field(&site, AlpnProtocol::H1, b"h2=\":1\"; ma=10, h2=\":2\"", NOW);
    known.on_field(&target("https://i/"), AlpnProtocol::H2, b"h3=\":3\"; persist=1", NOW);
    let port = |known: &AltSvcStore, url: &str, now| known.find(&target(url), now, |_| true).map(|found| found.port);
    assert_eq!(port(&known, "https://h/", NOW), Some(1));
    assert_eq!(port(&known, "https://h/", NOW + 10), Some(2));
    assert_eq!(port(&known, "https://h:444/", NOW), None);
    assert_eq!(port(&known, "http://h:443/", NOW), None);
    assert_eq!(known.find(&site, NOW, |protocol| protocol == AlpnProtocol::H3), None);
    known.on_field(&site, AlpnProtocol::H1, b"nonsense", NOW);
    assert_eq!(port(&known, "https://h/", NOW), Some(1));
    known.on_field(&site, AlpnProtocol::H1, b"h2=\":9\"", NOW);
    assert_eq!(port(&known, "https://h/", NOW), Some(9));
    known.network_changed();
    assert_eq!((port(&known, "https://h/", NOW), port(&known, "https://i/", NOW)), (None, Some(3)));
    known.on_field(&target("https://i/"), AlpnProtocol::H1, b"clear", NOW);
    assert!(known.is_empty());
}

#[test]
fn processes_merge_alt_svc_changes_into_the_file() {
    let text = "# x\nh2 a 443 h3 [::1] 8443 \"20270115 09:00:00\" 1 0\nh1 b 443 h2 b 1 \"20200101 00:00:00\" 0 0\n\
        h1 c 443 h2 c 1 \"20300101 00:00:00\" 0 0\nbad\nh9 c 443 h2 c 1 \"20300101 00:00:00\" 0 0\n";
    let mut ours = AltSvcStore::new();
    ours.load(text, NOW);
    assert_eq!(ours.len(), 2);
    assert!(ours.to_text(NOW).contains("h2 a 443 h3 [::1] 8443 \"20270115 09:00:00\" 1 0\n"));
    ours.on_field(&target("https://a/"), AlpnProtocol::H1, b"clear", NOW);
    ours.on_field(&target("https://d/"), AlpnProtocol::H1, b"h2=\":2\"", NOW);
    let mut file = AltSvcStore::new();
    file.load(&format!("{text}h1 e 443 h2 e 1 \"20300101 00:00:00\" 0 0\n"), NOW);
    ours.apply_changes_to(&mut file);
    ours.mark_saved();
    let hosts: Vec<&str> = file.entries.iter().map(|entry| entry.host.as_str()).collect();
    assert_eq!(hosts, ["c", "e", "d"]);
    assert!(!ours.is_changed());
}

#[test]
fn alt_svc_store_drops_alternatives_over_its_limit() {
    let mut known = AltSvcStore::new();
    for i in 0..2 * MAX_ENTRIES {
        known.on_field(
            &target(&format!("https://h{i}/")),
            AlpnProtocol::H1,
            format!("h2=\":1\"; ma={i}").as_bytes(),
            NOW,
        );
    }
    assert_eq!((known.len(), known.changed.len()), (MAX_ENTRIES, MAX_ENTRIES));
}

#[test]
fn protocols_have_alpn_names() {
    let names = [&b"http/1.1"[..], b"h2", b"h3", b"h1", b""].map(AlpnProtocol::from_alpn);
    assert_eq!(names, [Some(AlpnProtocol::H1), Some(AlpnProtocol::H2), Some(AlpnProtocol::H3), None, None]);
}

#[test]
fn failure_belongs_to_one_origin_and_endpoint() {
    let mut known = AltSvcStore::new();
    for url in ["https://h/", "https://h:444/", "https://i/"] {
        known.on_field(&target(url), AlpnProtocol::H1, b"h2=\"alt:1\", h2=\"alt:2\", h3=\"alt:1\"", NOW);
    }
    known.mark_failed(&target("https://h/"), AlpnProtocol::H2, "alt", 1);
    let found = |url: &str| {
        let target = target(url);
        known.alternatives(&target, NOW).map(|found| (found.protocol, found.port)).collect::<Vec<_>>()
    };
    let all = [(AlpnProtocol::H2, 1), (AlpnProtocol::H2, 2), (AlpnProtocol::H3, 1)];
    assert_eq!(found("https://h/"), all[1..]);
    assert_eq!(found("https://h:444/"), all);
    assert_eq!(found("https://i/"), all);
}

#[test]
fn store_is_changed_until_it_is_saved() {
    let mut known = AltSvcStore::new();
    assert!(!known.is_changed());
    known.on_field(&target("https://h/"), AlpnProtocol::H1, b"h2=\":1\"", NOW);
    assert!(known.is_changed());
    known.mark_saved();
    assert!(!known.is_changed());
}

#[test]
fn style_decides_the_heading_of_the_file() {
    let text = AltSvcStore::with_style(CookieFileConventions::Curl).to_text(NOW);
    assert!(text.starts_with("# Your alt-svc cache."), "{text}");
    assert!(!AltSvcStore::new().to_text(NOW).starts_with("# Your alt-svc cache."));
}

#[test]
fn evicted_origin_is_unchanged_in_the_file() {
    let mut known = AltSvcStore::new();
    known.on_field(&target("https://h:1/"), AlpnProtocol::H1, b"h2=\":1\"; ma=10", NOW);
    known.on_field(&target("https://h:2/"), AlpnProtocol::H1, b"h2=\":2\"; ma=20", NOW);
    known.on_field(&target("https://g:1/"), AlpnProtocol::H1, b"h2=\":2\"; ma=20", NOW);
    for number in 3..=MAX_ENTRIES {
        known.on_field(&target(&format!("https://n{number}/")), AlpnProtocol::H1, b"h2=\":3\"", NOW);
    }
    assert_eq!(known.len(), MAX_ENTRIES, "the entry that expires first is gone");
    let mut file = AltSvcStore::new();
    file.on_field(&target("https://h:1/"), AlpnProtocol::H1, b"h2=\":9\"", NOW);
    known.apply_changes_to(&mut file);
    assert_eq!(file.find(&target("https://h:1/"), NOW, |_| true).map(|found| found.port), Some(9));
}

#[test]
fn remembered_failures_are_bounded() {
    let mut known = AltSvcStore::new();
    for port in 1..=MAX_ENTRIES as u16 + 2 {
        known.mark_failed(&target("https://h/"), AlpnProtocol::H2, "alt", port);
    }
    assert_eq!(known.failed.len(), MAX_ENTRIES);
}

#[test]
fn quoted_separators_belong_to_the_value() {
    let found = parsed("h2=\":1\"; x=\"a;ma=5;b\"; persist=1, h3=\":3\"; y=\"a, h2=c:2\"");
    assert_eq!(found.iter().map(|offer| offer.port).collect::<Vec<_>>(), [1, 3]);
    assert_eq!((found[0].max_age, found[0].persist), (DEFAULT_MAX_AGE_SECONDS, true));
}

#[test]
fn changed_origin_is_recorded_once() {
    let mut known = AltSvcStore::new();
    for _ in 0..3 {
        known.on_field(&target("https://h/"), AlpnProtocol::H1, b"h2=\":1\"", NOW);
    }
    assert_eq!(known.changed.len(), 1);
}

#[test]
fn alternatives_expire_at_their_time() {
    let line = "h2 a.example 443 h3 b.example 1 \"20270115 09:00:00\" 0 0\n";
    let mut known = AltSvcStore::new();
    known.load(line, NOW);
    let expires = known.entries[0].alternative.expires;
    assert!(known.to_text(expires - 1).ends_with(line) && !known.to_text(expires).contains("b.example"));
    let loaded = |now| {
        let mut known = AltSvcStore::new();
        known.load(line, now);
        known.len()
    };
    assert_eq!([loaded(expires - 1), loaded(expires)], [1, 0]);
}

#[test]
fn clearing_an_unknown_origin_changes_nothing() {
    let mut known = AltSvcStore::new();
    known.on_field(&target("https://h/"), AlpnProtocol::H1, b"clear", NOW);
    assert!(!known.is_changed());
    known.on_field(&target("https://h/"), AlpnProtocol::H1, b"h2=\":1\"", NOW);
    known.mark_saved();
    known.on_field(&target("https://h/"), AlpnProtocol::H1, b"clear", NOW);
    assert!(known.is_changed());
}

#[test]
fn repeated_failure_is_remembered_once() {
    let mut known = AltSvcStore::new();
    (0..3).for_each(|_| known.mark_failed(&target("https://h/"), AlpnProtocol::H2, "alt", 1));
    assert_eq!(known.failed.len(), 1);
}

#[test]
fn alternative_host_has_no_other_parts() {
    for field in ["h2=\"h:2:1\"", "h2=\"h?q:1\"", "h2=\"h#f/:1\"", "h2=\"u:p@h:1\"", "h2=\":1x\"", "h2=\":\""] {
        assert_eq!(parsed(field), [], "{field}");
    }
    assert_eq!(parsed("h2=\":1\"; ma=").len() + parsed("h2=\":1\"; ma=1x").len(), 0);
    assert_eq!(parsed("h2=\":1\"; ma=99999999999999999999")[0].max_age, u64::MAX);
}
