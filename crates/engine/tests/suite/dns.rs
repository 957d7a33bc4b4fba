//! Tests of DNS lookups, against a name server whose answers each test defines.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::common::{DRIVERS, following};
use haul::dns_over_https::DnsOverHttps;
use haul::net::dns::{AddressFamily, ChosenDnsServers, DnsCacheOptions, HttpsLookupStatus, LookupStatus, Resolver};
use haul::net::local_address::LocalInterface;
use haul::net::tls::{Pem, TlsOptions};
use haul::{Client, ErrorKind};
use haul_policy::dns::https_record::HttpsRecord;
use testkit::dns_server::{DnsReply, DnsServer, HttpsRecordData, ReceivedQuery};
use testkit::origin::Origin;

const TYPE_A: u16 = 1;

fn local(last: u8) -> IpAddr {
    IpAddr::from([127, 0, 0, last])
}

fn resolver(servers: &[&DnsServer]) -> Resolver {
    let list: Vec<String> = servers.iter().map(|server| server.address().to_string()).collect();
    Resolver::with_servers(DnsCacheOptions::default(), ChosenDnsServers::parse(&list.join(",")).unwrap())
}

fn resolve(resolver: &Resolver, name: &str) -> haul::Result<Vec<IpAddr>> {
    resolver.resolve(name, 80, AddressFamily::Any, None).map(|addresses| addresses.to_vec())
}

/// Returns the result of looking up `name`, and the number of queries that the name server has
/// received.
fn answer(
    name: &str,
    replies: impl Fn(&ReceivedQuery) -> Vec<DnsReply> + Send + Sync + 'static,
) -> (haul::Result<Vec<IpAddr>>, usize) {
    let server = DnsServer::start(replies).unwrap();
    let answer = resolve(&resolver(&[&server]), name);
    (answer, server.queries().len())
}

#[test]
fn name_resolves_to_addresses_of_both_families() {
    let (found, queries) = answer("web.example", |query| vec![query.addresses(&[local(1), "::1".parse().unwrap()])]);
    let mut found = found.unwrap();
    found.sort();
    assert_eq!((found, queries), (vec![local(1), "::1".parse().unwrap()], 2));
}

#[test]
fn repeated_lookups_use_the_cached_answer() {
    let server = DnsServer::start(|query| vec![query.addresses(&[local(1)])]).unwrap();
    let resolver = resolver(&[&server]);
    for _ in 0..3 {
        assert_eq!(resolve(&resolver, "web.example").unwrap(), [local(1)]);
    }
    assert_eq!((server.queries().len(), resolver.lookup_count()), (2, 1));
}

#[test]
fn truncated_udp_response_is_retried_over_tcp() {
    let many: Vec<IpAddr> = (1..200).map(local).collect();
    let expected = many.clone();
    let (found, queries) =
        answer("web.example", move |query| vec![if query.tcp { query.addresses(&many) } else { query.truncated() }]);
    let mut found = found.unwrap();
    found.sort();
    assert_eq!((found, queries), (expected, 4));
}

#[test]
fn forged_dns_responses_are_ignored() {
    let (found, _) = answer("web.example", |query| {
        let mut wrong_id = query.addresses(&[local(66)]);
        wrong_id.message[1] ^= 1;
        let mut wrong_question = query.addresses(&[local(66)]);
        wrong_question.message[13] ^= 1;
        let mut query_itself = query.addresses(&[local(66)]);
        query_itself.message[2] &= 0x7f;
        let noise = DnsReply { message: vec![0xff; 3], delay: Duration::ZERO };
        vec![wrong_id, wrong_question, query_itself, noise, query.addresses(&[local(1)])]
    });
    assert_eq!(found.unwrap(), [local(1)]);
}

#[test]
fn cname_chain_resolves_to_addresses() {
    let (found, _) = answer("web.example", |query| vec![query.aliases(&["a.example", "b.test"], &[local(7)])]);
    assert_eq!(found.unwrap(), [local(7)]);
}

#[test]
fn cname_loop_is_an_error() {
    let (found, _) = answer("web.example", |query| vec![query.aliases(&["a.example", "web.example"], &[])]);
    let error = found.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Resolve);
    assert!(format!("{error:#}").contains("web.example"), "{error:#}");
}

#[test]
fn nonexistent_name_is_queried_once() {
    let (found, queries) = answer("none.example", |query| vec![query.error(3)]);
    let error = found.unwrap_err();
    assert_eq!((error.kind(), queries), (ErrorKind::Resolve, 2));
    assert!(std::error::Error::source(&error).is_some_and(|cause| cause.to_string().contains("NXDOMAIN")));
}

#[test]
fn failing_name_server_is_replaced_by_the_next() {
    let failing = DnsServer::start(|query| vec![query.error(2)]).unwrap();
    let good = DnsServer::start(|query| vec![query.addresses(&[local(3)])]).unwrap();
    assert_eq!(resolve(&resolver(&[&failing, &good]), "web.example").unwrap(), [local(3)]);
    assert_eq!((failing.queries().len(), good.queries().len()), (2, 2));
}

#[test]
fn refusing_name_server_is_replaced_by_the_next() {
    let gone = DnsServer::start(|_| Vec::new()).unwrap().address();
    let good = DnsServer::start(|query| vec![query.addresses(&[local(3)])]).unwrap();
    let servers = ChosenDnsServers::parse(&format!("{gone},{}", good.address())).unwrap();
    let resolver = Resolver::with_servers(DnsCacheOptions::default(), servers);
    assert_eq!(resolve(&resolver, "web.example").unwrap(), [local(3)]);
}

#[test]
fn addresses_of_one_family_suffice_if_other_is_silent() {
    let (found, _) = answer("web.example", |query| match query.record_type {
        TYPE_A => vec![query.addresses(&[local(1)])],
        _ => Vec::new(),
    });
    assert_eq!(found.unwrap(), [local(1)]);
}

/// Returns a name server that answers at once for `::1`, and for 127.0.0.1 only when it is asked
/// for the second time, which is a second later.
fn server_with_late_ipv4() -> DnsServer {
    let asked = AtomicU32::new(0);
    DnsServer::start(move |query| match query.record_type {
        TYPE_A if asked.fetch_add(1, Ordering::Relaxed) == 0 => Vec::new(),
        TYPE_A => vec![query.addresses(&[local(1)])],
        _ => vec![query.addresses(&["::1".parse().unwrap()])],
    })
    .unwrap()
}

/// Returns a client that asks only `server` for addresses.
fn client(server: &DnsServer) -> Client {
    let client = Client::new();
    client.resolver().use_servers(&ChosenDnsServers::parse(&server.address().to_string()).unwrap());
    client
}

#[test]
fn late_address_joins_connecting() {
    for driver in DRIVERS {
        let (origin, server) = (Origin::builder().start().unwrap(), server_with_late_ipv4());
        let url = origin.url("/small").replace("127.0.0.1", "web.example");
        let got = driver.get(&client(&server), &url, &following());
        assert_eq!((got.exit, got.status), (0, 200), "{driver:?} {}", got.message);
    }
}

/// Returns a name server that answers for 127.0.0.1 at once, and never for IPv6 addresses.
fn server_with_silent_ipv6() -> DnsServer {
    DnsServer::start(|query| match query.record_type {
        TYPE_A => vec![query.addresses(&[local(1)])],
        _ => Vec::new(),
    })
    .unwrap()
}

/// Asserts that no transfer waited for the reply to the IPv6 query, which would be sent three times.
fn assert_no_wait_for_ipv6(server: &DnsServer) {
    // The query is repeated after a second, which a busy machine may take.
    assert!(server.queries().iter().filter(|query| query.record_type != TYPE_A).count() <= 2);
}

#[test]
fn silent_family_does_not_delay_connecting() {
    for driver in DRIVERS {
        let (origin, server) = (Origin::builder().start().unwrap(), server_with_silent_ipv6());
        let url = origin.url("/small").replace("127.0.0.1", "web.example");
        let got = driver.get(&client(&server), &url, &following());
        assert_eq!((got.exit, got.status), (0, 200), "{driver:?} {}", got.message);
        assert_no_wait_for_ipv6(&server);
    }
}

#[test]
fn silent_family_of_local_name_delays_nothing() {
    for driver in DRIVERS {
        let (origin, server) = (Origin::builder().start().unwrap(), server_with_silent_ipv6());
        let mut options = following();
        options.connect.interface = Some(LocalInterface::parse("host!local.example").unwrap());
        let got = driver.get(&client(&server), &origin.url("/small"), &options);
        assert_eq!((got.exit, got.status), (0, 200), "{driver:?} {}", got.message);
        assert_no_wait_for_ipv6(&server);
    }
}

#[test]
fn refusal_is_reported_while_addresses_are_awaited() {
    for driver in DRIVERS {
        let server = server_with_silent_ipv6();
        let port = testkit::unused_port::unused_port();
        let mut options = following();
        options.connect.timeout = Duration::from_secs(2);
        let got = driver.get(&client(&server), &format!("http://web.example:{port}/"), &options);
        assert_eq!(got.exit, 7, "{driver:?} {}", got.message);
    }
}

#[test]
fn late_address_is_cached_with_the_others() {
    let server = server_with_late_ipv4();
    let resolver = resolver(&[&server]);
    assert_eq!(resolve(&resolver, "web.example").unwrap(), ["::1".parse::<IpAddr>().unwrap()]);
    let v4 = resolver.resolve("web.example", 80, AddressFamily::V4, None).unwrap();
    assert_eq!(&*v4, [local(1)]);
    assert_eq!(resolve(&resolver, "web.example").unwrap().len(), 2);
    assert_eq!(resolver.lookup_count(), 1);
}

#[test]
fn lookup_of_one_family_waits_for_it() {
    let server = server_with_late_ipv4();
    let resolver = resolver(&[&server]);
    let v4 = resolver.resolve("web.example", 80, AddressFamily::V4, None).unwrap();
    assert_eq!(&*v4, [local(1)]);
    assert!(server.queries().iter().all(|query| query.record_type == TYPE_A));
}

#[test]
fn unanswered_lookups_do_not_delay_other_lookups() {
    let server = DnsServer::start(|query| match query.name.starts_with("silent") {
        true => Vec::new(),
        false => vec![query.addresses(&[local(1)])],
    })
    .unwrap();
    let resolver = resolver(&[&server]);
    for number in 0..500 {
        resolver.lookup(&format!("silent{number}.example"), 80, AddressFamily::Any, || ());
    }
    let (sender, receiver) = mpsc::channel();
    for number in 0..300 {
        let sender = sender.clone();
        let name = format!("good{number}.example");
        let lookup = resolver.lookup(&name, 80, AddressFamily::Any, move || sender.send(()).unwrap());
        assert!(matches!(lookup, LookupStatus::Pending));
    }
    drop(sender);
    assert_eq!(receiver.iter().count(), 300);
    for number in 0..300 {
        let lookup = resolver.lookup(&format!("good{number}.example"), 80, AddressFamily::Any, || ());
        assert!(matches!(lookup, LookupStatus::Ready(Ok(_))), "{number}");
    }
}

#[test]
fn dns_queries_vary_source_ports_and_ids() {
    let server = DnsServer::start(|query| vec![query.addresses(&[local(1)])]).unwrap();
    let resolver = resolver(&[&server]);
    for number in 0..200 {
        resolve(&resolver, &format!("h{number}.example")).unwrap();
    }
    let queries = server.queries();
    let distinct =
        |of: fn(&ReceivedQuery) -> u16| queries.iter().map(of).collect::<std::collections::HashSet<_>>().len();
    assert!(distinct(|query| query.from.port()) >= 6, "64 queries a port");
    assert!(distinct(|query| query.id) > 350);
}

#[test]
fn use_servers_default_restores_the_system_lookup() {
    let server = DnsServer::start(|query| vec![query.addresses(&[local(3)])]).unwrap();
    let resolver = Resolver::with_lookup(DnsCacheOptions::default(), |_| Ok(vec![local(9)]));
    resolver.use_servers(&ChosenDnsServers::parse(&server.address().to_string()).unwrap());
    assert_eq!(resolve(&resolver, "a.example").unwrap(), [local(3)]);
    resolver.use_servers(&ChosenDnsServers::default());
    assert_eq!(resolve(&resolver, "b.example").unwrap(), [local(9)]);
    assert_eq!(server.queries().len(), 2);
}

/// Returns a resolver that looks up names over HTTPS. The DNS server is at this path of the origin.
fn by_https(origin: &Origin, path: &str) -> Resolver {
    let mut tls = TlsOptions::default();
    tls.ca_pem = Some(Pem::new(origin.ca_pem().as_bytes()));
    let resolver = Resolver::with_lookup(DnsCacheOptions::default(), |_| panic!("nobody else is asked"));
    DnsOverHttps::new(&origin.https_url(path), tls).unwrap().use_for(&resolver);
    resolver
}

#[test]
fn many_lookups_share_one_https_connection() {
    let origin = Origin::builder().http2(100).dns(|query| vec![query.addresses(&[local(5)])]).start().unwrap();
    let resolver = by_https(&origin, "/dns-query");
    let (sender, receiver) = mpsc::channel();
    for n in 0..200 {
        let sender = sender.clone();
        let notify = move || sender.send(()).unwrap();
        let status = resolver.lookup(&format!("h{n}.example"), 80, AddressFamily::Any, notify);
        assert!(matches!(status, LookupStatus::Pending));
    }
    (0..200).for_each(|_| receiver.recv_timeout(Duration::from_secs(60)).unwrap());
    assert_eq!(resolve(&resolver, "h7.example").unwrap(), [local(5)]);
    assert_eq!((origin.requests(), origin.connections()), (400, 1));
}

#[test]
fn failed_dns_over_https_error_names_the_server() {
    let origin = Origin::builder().start().unwrap();
    for (path, cause) in
        [("/status/503", "503"), ("/small", "instead of application/dns-message"), ("/dns-query", "404")]
    {
        let error = resolve(&by_https(&origin, path), "web.example").unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains(cause) && text.contains(&origin.https_url(path)), "{text}");
        assert_eq!(error.kind(), ErrorKind::Resolve);
    }
}

const TYPE_HTTPS: u16 = 65;

/// Looks up the HTTPS records of an origin, and waits for the result.
fn https_records(resolver: &Resolver, host: &str, port: u16) -> Vec<HttpsRecord> {
    let (sender, receiver) = mpsc::channel();
    loop {
        let sender = sender.clone();
        match resolver.https_records(host, port, move || sender.send(()).unwrap()) {
            HttpsLookupStatus::Ready { records, .. } => return records.to_vec(),
            HttpsLookupStatus::Pending => receiver.recv().unwrap(),
        }
    }
}

#[test]
fn https_records_are_cached_by_host_and_port() {
    let server = DnsServer::start(|query| vec![query.https(&[HttpsRecordData::with_alpn("h3")])]).unwrap();
    let resolver = resolver(&[&server]);
    for _ in 0..2 {
        let found = https_records(&resolver, "Web.example", 443);
        assert!(found[0].speaks_http3() && found[0].target == "web.example", "{found:?}");
        assert_eq!(https_records(&resolver, "web.example", 8443)[0].target, "_8443._https.web.example");
    }
    let queries: Vec<_> = server.queries().into_iter().map(|query| (query.name, query.record_type)).collect();
    let name = |name: &str| (name.to_owned(), TYPE_HTTPS);
    assert_eq!(queries, [name("web.example"), name("_8443._https.web.example")]);
}

#[test]
fn https_alias_record_leads_to_the_target_name() {
    let server = DnsServer::start(|query| {
        let alias = HttpsRecordData { target: "cdn.example".into(), ..HttpsRecordData::default() };
        let service = HttpsRecordData { port: Some(8443), ..HttpsRecordData::with_alpn("h3") };
        vec![query.https(&[if query.name == "cdn.example" { service } else { alias }])]
    })
    .unwrap();
    let found = https_records(&resolver(&[&server]), "web.example", 443);
    assert_eq!((&*found[0].target, found[0].port), ("cdn.example", Some(8443)));
}

#[test]
fn https_record_alias_loop_yields_no_records() {
    let server = DnsServer::start(|query| {
        vec![query.https(&[HttpsRecordData { target: "web.example".into(), ..HttpsRecordData::default() }])]
    })
    .unwrap();
    assert!(https_records(&resolver(&[&server]), "web.example", 443).is_empty());
    assert_eq!(server.queries().len(), 9);
}

#[test]
fn large_https_record_response_is_fetched_over_tcp() {
    let server = DnsServer::start(|query| {
        let record =
            HttpsRecordData { ipv4_hints: vec![[192, 0, 2, 1].into(); 600], ..HttpsRecordData::with_alpn("h3") };
        vec![if query.tcp { query.https(&[record]) } else { query.truncated() }]
    })
    .unwrap();
    let found = https_records(&resolver(&[&server]), "web.example", 443);
    assert_eq!((found[0].hints.len(), server.queries().len()), (8, 2));
}

#[test]
fn failed_https_record_lookup_is_not_repeated_soon() {
    let server = DnsServer::start(|query| vec![query.error(2)]).unwrap();
    let resolver = resolver(&[&server]);
    assert!(https_records(&resolver, "web.example", 443).is_empty());
    let queries = server.queries().len();
    assert!(https_records(&resolver, "web.example", 443).is_empty());
    assert_eq!(server.queries().len(), queries);
}

#[test]
fn names_with_fixed_addresses_have_no_https_records() {
    let server = DnsServer::start(|query| vec![query.https(&[HttpsRecordData::with_alpn("h3")])]).unwrap();
    let resolver = resolver(&[&server]);
    resolver.add_override("fixed.example:443:127.0.0.1").unwrap();
    for host in ["fixed.example", "192.0.2.1", "[::1]", "localhost", "a.invalid", "a.onion", "intranet"] {
        assert!(https_records(&resolver, host, 443).is_empty(), "{host}");
    }
    assert!(server.queries().is_empty());
    let system = Resolver::with_lookup(DnsCacheOptions::default(), |_| panic!("no address is looked up"));
    assert!(https_records(&system, "web.example", 443).is_empty());
}
