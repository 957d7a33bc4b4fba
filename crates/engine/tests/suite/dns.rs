//! Tests of lookups by DNS, against a name server whose answers each test writes.

use std::net::IpAddr;
use std::sync::mpsc;
use std::time::Duration;

use haul::ErrorKind;
use haul::dns_over_https::DnsOverHttps;
use haul::net::dns::{AddressFamily, DnsCacheOptions, DnsServers, LookupStatus, Resolver};
use haul::net::tls::{Pem, TlsOptions};
use testkit::dns_server::{DnsReply, DnsServer, ReceivedQuery};
use testkit::origin::Origin;

const TYPE_A: u16 = 1;

fn local(last: u8) -> IpAddr {
    IpAddr::from([127, 0, 0, last])
}

fn resolver(servers: &[&DnsServer]) -> Resolver {
    let list: Vec<String> = servers.iter().map(|server| server.address().to_string()).collect();
    Resolver::with_servers(DnsCacheOptions::default(), DnsServers::parse(&list.join(",")).unwrap())
}

fn resolve(resolver: &Resolver, name: &str) -> haul::Result<Vec<IpAddr>> {
    resolver.resolve(name, 80, AddressFamily::Any, None).map(|addresses| addresses.to_vec())
}

/// Returns the resolver's answer for `name`, and the number of queries that the name server has
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
fn name_has_addresses_of_both_families() {
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
    assert_eq!((server.queries().len(), resolver.lookups()), (2, 1));
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
fn forged_responses_are_ignored() {
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
    let servers = DnsServers::parse(&format!("{gone},{}", good.address())).unwrap();
    let resolver = Resolver::with_servers(DnsCacheOptions::default(), servers);
    assert_eq!(resolve(&resolver, "web.example").unwrap(), [local(3)]);
}

#[test]
fn one_address_family_suffices_if_other_is_silent() {
    let (found, _) = answer("web.example", |query| match query.record_type {
        TYPE_A => vec![query.addresses(&[local(1)])],
        _ => Vec::new(),
    });
    assert_eq!(found.unwrap(), [local(1)]);
}

#[test]
fn unanswered_lookups_do_not_delay_others() {
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
fn queries_have_changing_ports_and_identifiers() {
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
fn chosen_servers_can_be_taken_back() {
    let server = DnsServer::start(|query| vec![query.addresses(&[local(3)])]).unwrap();
    let resolver = Resolver::with_lookup(DnsCacheOptions::default(), |_| Ok(vec![local(9)]));
    resolver.use_servers(&DnsServers::parse(&server.address().to_string()).unwrap());
    assert_eq!(resolve(&resolver, "a.example").unwrap(), [local(3)]);
    resolver.use_servers(&DnsServers::default());
    assert_eq!(resolve(&resolver, "b.example").unwrap(), [local(9)]);
    assert_eq!(server.queries().len(), 2);
}

/// Returns a resolver that looks up names over HTTPS, by the DNS server at this path of the origin.
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
fn failure_of_https_server_is_named() {
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
