use super::*;

const NOW: MonotonicTime = MonotonicTime(0);
const A: DnsRecordType = DnsRecordType::A;
const AAAA: DnsRecordType = DnsRecordType::Aaaa;

fn lookup(name: &str, config: &str) -> (NameLookup, Vec<OutgoingQuery>) {
    let mut lookup = NameLookup::new(name, &Arc::new(ResolvConf::parse(config)), 0).unwrap();
    let transmits = lookup.start(NOW);
    (lookup, transmits)
}

fn has(addresses: &[&str]) -> DnsResponse {
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    DnsResponse::Addresses { addresses, ttl: Duration::from_secs(60) }
}

fn no_such_name() -> DnsResponse {
    DnsResponse::NoSuchName { ttl: Duration::from_secs(9) }
}

fn to(record_type: DnsRecordType, server: usize, tcp: bool) -> OutgoingQuery {
    OutgoingQuery { record_type, server, tcp }
}

fn found(lookup: &NameLookup) -> Vec<String> {
    match lookup.status() {
        DnsLookupStatus::Found { addresses, .. } => addresses.iter().map(ToString::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_and_aaaa_queries_are_sent_together() {
    let (mut lookup, transmits) = lookup("h", "nameserver 1.1.1.1\n");
    assert_eq!(transmits, [to(A, 0, false), to(AAAA, 0, false)]);
    assert!(lookup.on_response(NOW, to(A, 0, false), has(&["1.2.3.4"])).is_empty());
    assert_eq!(lookup.status(), &DnsLookupStatus::Waiting);
    lookup.on_response(NOW, to(AAAA, 0, false), has(&["::2"]));
    assert_eq!(found(&lookup), ["::2", "1.2.3.4"]);
}

#[test]
fn connecting_begins_early_and_late_family_joins() {
    for (first, first_address, second, second_address) in [(A, "1.2.3.4", AAAA, "::2"), (AAAA, "::2", A, "1.2.3.4")] {
        let (mut lookup, _) = lookup("h", "nameserver 1.1.1.1\n");
        let later = NOW + Duration::from_millis(700);
        lookup.on_response(later, to(first, 0, false), has(&[first_address]));
        let begins = lookup.next_timeout().unwrap();
        assert_eq!(begins, later + RESOLUTION_DELAY);
        assert_eq!(lookup.early_addresses(), None);
        assert!(lookup.on_timeout(begins).is_empty());
        assert_eq!(lookup.early_addresses(), Some(vec![first_address.parse().unwrap()]));
        // The other query stays open, and is sent again at its own time.
        assert_eq!(lookup.status(), &DnsLookupStatus::Waiting);
        assert_eq!(lookup.next_timeout(), Some(NOW + Duration::from_secs(1)));
        lookup.on_response(begins + Duration::from_millis(1), to(second, 0, false), has(&[second_address]));
        assert_eq!(found(&lookup), ["::2", "1.2.3.4"]);
        assert_eq!((lookup.early_addresses(), lookup.next_timeout()), (None, None));
    }
}

#[test]
fn unanswered_family_limits_caching_of_the_other() {
    let (mut lookup, _) = lookup("h", "nameserver 1.1.1.1\n");
    lookup.on_response(NOW, to(A, 0, false), has(&["1.2.3.4"]));
    while let Some(at) = lookup.next_timeout() {
        lookup.on_timeout(at);
    }
    let addresses = vec!["1.2.3.4".parse().unwrap()];
    assert_eq!(lookup.status(), &DnsLookupStatus::Found { addresses, ttl: INCOMPLETE_CACHE_TIME });
}

#[test]
fn lookup_of_one_family_asks_only_for_it() {
    for (subject, record_type) in [(RequestedRecords::Ipv4Addresses, A), (RequestedRecords::Ipv6Addresses, AAAA)] {
        let config = Arc::new(ResolvConf::parse("nameserver 1.1.1.1\n"));
        let mut lookup = NameLookup::for_records(subject, "h", &config, 0).unwrap();
        assert_eq!(lookup.start(NOW), [to(record_type, 0, false)]);
        lookup.on_response(NOW, to(record_type, 0, false), has(&["::2"]));
        assert_eq!(found(&lookup), ["::2"]);
    }
}

#[test]
fn empty_aaaa_answer_does_not_shorten_the_wait() {
    let (mut lookup, _) = lookup("h", "nameserver 1.1.1.1\n");
    lookup.on_response(NOW, to(AAAA, 0, false), has(&[]));
    assert_eq!(lookup.next_timeout(), Some(NOW + Duration::from_secs(1)));
    lookup.on_response(NOW + Duration::from_secs(3), to(A, 0, false), has(&["1.2.3.4"]));
    assert_eq!(found(&lookup), ["1.2.3.4"]);
}

#[test]
fn unanswered_query_is_sent_to_the_next_server() {
    let (mut lookup, _) = lookup("h", "nameserver 1.1.1.1\nnameserver 2.2.2.2\noptions timeout:1 attempts:2\n");
    let mut now = NOW;
    for server in [1, 0, 1] {
        now = lookup.next_timeout().unwrap();
        assert_eq!(lookup.on_timeout(now), [to(A, server, false), to(AAAA, server, false)]);
    }
    // A late response of the first server counts.
    lookup.on_response(now, to(A, 0, false), has(&["1.2.3.4"]));
    lookup.on_response(now, to(AAAA, 1, false), has(&[]));
    assert_eq!(found(&lookup), ["1.2.3.4"]);
}

#[test]
fn lookup_without_answers_is_unavailable() {
    let (mut lookup, _) = lookup("h", "nameserver 1.1.1.1\noptions attempts:1\n");
    let mut sent_at = Vec::new();
    while let Some(now) = lookup.next_timeout() {
        sent_at.extend(lookup.on_timeout(now).iter().map(|_| now));
    }
    let seconds = |n| NOW + Duration::from_secs(n);
    assert_eq!(sent_at, [seconds(1), seconds(1), seconds(3), seconds(3)]);
    assert_eq!(lookup.status(), &DnsLookupStatus::Unavailable("no answer in time".into()));
}

#[test]
fn query_is_sent_to_another_server_after_failure() {
    let (mut lookup, _) = lookup("h", "nameserver 1.1.1.1\nnameserver 2.2.2.2\n");
    assert_eq!(
        lookup.on_response(NOW, to(A, 0, false), DnsResponse::ServerFailure("SERVFAIL".into())),
        [to(A, 1, false)]
    );
    assert_eq!(lookup.on_unreachable(NOW, AAAA, 0, "refused".into()), [to(AAAA, 1, false)]);
    // Another message about the server that was given up changes nothing.
    assert!(lookup.on_unreachable(NOW, AAAA, 0, "refused".into()).is_empty());
}

#[test]
fn truncated_dns_response_is_fetched_over_tcp() {
    let (mut lookup, _) = lookup("h", "nameserver 1.1.1.1\nnameserver 2.2.2.2\n");
    assert_eq!(lookup.on_response(NOW, to(A, 0, false), DnsResponse::Truncated), [to(A, 0, true)]);
    // So was a second query over UDP.
    assert!(lookup.on_response(NOW, to(A, 0, false), DnsResponse::Truncated).is_empty());
    assert_eq!(lookup.on_response(NOW, to(A, 0, true), DnsResponse::Truncated), [to(A, 1, false)]);
}

#[test]
fn server_that_rejects_edns_is_asked_without_it() {
    let (mut lookup, _) = lookup("h", "nameserver 1.1.1.1\noptions edns0\n");
    assert!(lookup.query(A, 1).edns);
    assert_eq!(lookup.on_response(NOW, to(A, 0, false), DnsResponse::NotUnderstood), [to(A, 0, false)]);
    assert!(!lookup.query(A, 1).edns && lookup.query(AAAA, 1).edns);
}

#[test]
fn search_list_ends_at_first_name_with_addresses() {
    let (mut lookup, _) = lookup("h", "nameserver 1.1.1.1\nsearch a b\n");
    for candidate in ["h.a", "h.b"] {
        assert_eq!(lookup.candidate(), candidate);
        lookup.on_response(NOW, to(A, 0, false), no_such_name());
        assert_eq!(lookup.on_response(NOW, to(AAAA, 0, false), no_such_name()).len(), 2);
    }
    assert_eq!(lookup.candidate(), "h");
    lookup.on_response(NOW, to(A, 0, false), has(&["1.2.3.4"]));
    lookup.on_response(NOW, to(AAAA, 0, false), has(&[]));
    assert_eq!(found(&lookup), ["1.2.3.4"]);
}

#[test]
fn lookup_distinguishes_missing_name_from_missing_address() {
    let (mut lookup, _) = lookup("h", "nameserver 1.1.1.1\n");
    lookup.on_response(NOW, to(A, 0, false), no_such_name());
    lookup.on_response(NOW, to(AAAA, 0, false), no_such_name());
    assert_eq!(lookup.status(), &DnsLookupStatus::NotFound { exists: false, ttl: Duration::from_secs(9) });
    let (mut lookup, _) = super::tests::lookup("h", "nameserver 1.1.1.1\n");
    lookup.on_response(NOW, to(A, 0, false), has(&[]));
    lookup.on_response(NOW, to(AAAA, 0, false), has(&[]));
    assert_eq!(lookup.status(), &DnsLookupStatus::NotFound { exists: true, ttl: Duration::from_secs(60) });
}

#[test]
fn server_failure_does_not_mean_not_found() {
    let (mut lookup, _) = lookup("h", "nameserver 1.1.1.1\nsearch a\noptions attempts:1\n");
    lookup.on_response(NOW, to(A, 0, false), DnsResponse::ServerFailure("SERVFAIL".into()));
    lookup.on_response(NOW, to(AAAA, 0, false), DnsResponse::ServerFailure("SERVFAIL".into()));
    lookup.on_response(NOW, to(A, 0, false), no_such_name());
    lookup.on_response(NOW, to(AAAA, 0, false), no_such_name());
    assert_eq!(lookup.status(), &DnsLookupStatus::Unavailable("SERVFAIL".into()));
}

#[test]
fn resolver_options_use_vc_and_no_aaaa_are_obeyed() {
    let (lookup, transmits) = lookup("h", "nameserver 1.1.1.1\noptions use-vc no-aaaa\n");
    assert_eq!(transmits, [to(A, 0, true)]);
    // Nothing is lost over TCP: the next try is a new connection after the whole timeout.
    assert_eq!(lookup.next_timeout(), Some(NOW + Duration::from_secs(5)));
}

#[test]
fn dns_name_with_an_empty_label_is_refused() {
    assert!(NameLookup::new("a..b", &Arc::default(), 0).is_err());
}

proptest::proptest! {
    /// Checks that every lookup ends after at most as many queries as the configuration allows.
    #[test]
    fn every_dns_lookup_ends(events in proptest::collection::vec((0u8..8, 0usize..3, 0u8..2), 0..40), servers in 1usize..4) {
        let lines: String = (0..servers).map(|n| format!("nameserver 10.0.0.{n}\n")).collect();
        let (mut lookup, _) = lookup("h", &format!("{lines}search a\noptions edns0 timeout:1\n"));
        let mut now = NOW;
        let mut sent = 0;
        for (event, server, family) in events {
            let record_type = if family == 0 { A } else { AAAA };
            sent += match event {
                0 => lookup.on_response(now, to(record_type, server, false), has(&[])),
                1 => lookup.on_response(now, to(record_type, server, false), no_such_name()),
                2 => lookup.on_response(now, to(record_type, server, false), DnsResponse::Truncated),
                3 => lookup.on_response(now, to(record_type, server, false), DnsResponse::NotUnderstood),
                4 => lookup.on_response(now, to(record_type, server, false), DnsResponse::ServerFailure("SERVFAIL".into())),
                5 => lookup.on_unreachable(now, record_type, server, "refused".into()),
                6 => lookup.on_response(now, to(record_type, server, false), has(&["1.2.3.4"])),
                _ => {
                    now = lookup.next_timeout().unwrap_or(now);
                    lookup.on_timeout(now)
                }
            }
            .len();
        }
        while let Some(at) = lookup.next_timeout() {
            assert!(at >= now);
            now = at;
            sent += lookup.on_timeout(now).len();
        }
        assert_ne!(lookup.status(), &DnsLookupStatus::Waiting);
        // Two names, two families, each server twice by failures and twice by silence, each again
        // by TCP or without EDNS.
        assert!(sent <= 2 * 2 * servers * 4 * 3, "{sent}");
    }
}

fn https_lookup(config: &str) -> (NameLookup, Vec<OutgoingQuery>) {
    let mut lookup =
        NameLookup::for_records(RequestedRecords::HttpsRecords, "h", &Arc::new(ResolvConf::parse(config)), 0).unwrap();
    let transmits = lookup.start(NOW);
    (lookup, transmits)
}

fn https(records: HttpsRecordSet, seconds: u64) -> DnsResponse {
    DnsResponse::HttpsRecords { records, ttl: Duration::from_secs(seconds) }
}

const HTTPS: DnsRecordType = DnsRecordType::Https;

#[test]
fn https_lookup_ignores_the_search_list() {
    let (mut lookup, transmits) = https_lookup("nameserver 1.1.1.1\nsearch a b\n");
    assert_eq!((transmits, lookup.candidate()), (vec![to(HTTPS, 0, false)], "h"));
    lookup.on_response(NOW, to(HTTPS, 0, false), no_such_name());
    let none = DnsLookupStatus::FoundHttps { records: Vec::new(), ttl: Duration::from_secs(9) };
    assert_eq!(lookup.status(), &none);
}

#[test]
fn https_alias_is_followed_with_shortest_ttl() {
    let (mut lookup, _) = https_lookup("nameserver 1.1.1.1\n");
    let alias = https(HttpsRecordSet::Alias("other.example".into()), 5);
    assert_eq!(lookup.on_response(NOW, to(HTTPS, 0, false), alias), [to(HTTPS, 0, false)]);
    assert_eq!(lookup.candidate(), "other.example");
    lookup.on_response(NOW, to(HTTPS, 0, false), https(HttpsRecordSet::Services(Vec::new()), 60));
    let none = DnsLookupStatus::FoundHttps { records: Vec::new(), ttl: Duration::from_secs(5) };
    assert_eq!(lookup.status(), &none);
}

#[test]
fn https_alias_loop_ends_after_eight_aliases() {
    let (mut lookup, _) = https_lookup("nameserver 1.1.1.1\n");
    let mut queries = 1;
    while lookup.next_timeout().is_some() {
        let alias = https(HttpsRecordSet::Alias("h".into()), 5);
        queries += lookup.on_response(NOW, to(HTTPS, 0, false), alias).len();
    }
    assert_eq!(queries, 9);
    assert!(matches!(lookup.status(), DnsLookupStatus::FoundHttps { records, .. } if records.is_empty()));
}

#[test]
fn https_lookup_without_answers_is_unavailable() {
    let (mut lookup, _) = https_lookup("nameserver 1.1.1.1\n");
    while let Some(at) = lookup.next_timeout() {
        lookup.on_timeout(at);
    }
    assert!(matches!(lookup.status(), DnsLookupStatus::Unavailable(_)));
}

#[test]
fn query_without_edns_goes_to_another_server() {
    let (mut lookup, _) = lookup("h", "nameserver 1.1.1.1\nnameserver 2.2.2.2\n");
    assert!(!lookup.query(A, 1).edns);
    assert_eq!(lookup.on_response(NOW, to(A, 0, false), DnsResponse::NotUnderstood), [to(A, 1, false)]);
}
