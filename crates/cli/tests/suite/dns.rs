//! Tests of `--dns-servers` and similar options, with a DNS server that the test runs.

use std::net::IpAddr;

use testkit::dns_server::{DnsServer, ReceivedQuery};

use crate::common::{answering, run_haul};

const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes";

fn server(ip: &str) -> DnsServer {
    let answer = |query: &ReceivedQuery| match query.name.as_str() {
        "web.example" => vec![query.addresses(&[IpAddr::from([127, 0, 0, 1])])],
        _ => vec![query.error(3)],
    };
    DnsServer::start_on(ip.parse().unwrap(), answer).unwrap()
}

/// Fetches a page of web.example with this DNS server. Returns the source addresses of its DNS
/// queries.
fn senders(server: &DnsServer, options: &[&str]) -> Vec<IpAddr> {
    let page = answering(PAGE);
    let (url, servers) = (format!("http://web.example:{}/", page.addr().port()), server.address().to_string());
    assert_eq!(run_haul([&["-sS", "--dns-servers", &*servers], options, &[&*url]].concat()).text(), "yes");
    server.queries().iter().map(|query| query.from.ip()).collect()
}

#[test]
fn dns_servers_are_asked_for_one_url_and_for_many() {
    let server = server("127.0.0.1");
    assert_eq!(senders(&server, &[]).len(), 2);
    let pages = [answering(PAGE), answering(PAGE)];
    let urls: Vec<String> = pages.iter().map(|page| format!("http://web.example:{}/", page.addr().port())).collect();
    let servers = server.address().to_string();
    let run = run_haul(["-sS", "--dns-servers", &servers, &urls[0], &urls[1]]);
    assert_eq!(run.text(), "yesyes");
    assert_eq!(server.queries().len(), 4);
}

#[test]
fn missing_name_is_named_with_its_cause() {
    let server = server("127.0.0.1");
    let servers = server.address().to_string();
    let run = run_haul(["-sS", "--dns-servers", &servers, "http://none.example/"]);
    let message = run.failed(6);
    assert!(message.contains("none.example") && message.contains("NXDOMAIN"), "{message}");
}

#[test]
fn dns_queries_leave_from_the_chosen_ipv4_address() {
    let from: IpAddr = "127.0.0.9".parse().unwrap();
    assert_eq!(senders(&server("127.0.0.1"), &["--dns-ipv4-addr", "127.0.0.9"]), [from, from]);
}

#[test]
fn dns_queries_leave_from_the_chosen_ipv6_address() {
    let from: IpAddr = "::1".parse().unwrap();
    assert_eq!(senders(&server("::1"), &["--dns-ipv6-addr", "::1"]), [from, from]);
}

#[test]
fn dns_queries_leave_by_the_chosen_interface() {
    assert_eq!(senders(&server("127.0.0.1"), &["--dns-interface", "lo"]).len(), 2);
    let server = server("127.0.0.1");
    let servers = server.address().to_string();
    let options = ["-sS", "-m", "5", "--dns-servers", &servers, "--dns-interface", "nonesuch0"];
    run_haul([&options[..], &["http://web.example/"]].concat()).failed(6);
    assert!(server.queries().is_empty());
}

#[test]
fn wrong_dns_options_are_refused() {
    for (option, value) in [
        ("--dns-servers", "localhost"),
        ("--dns-servers", "127.0.0.1:99999"),
        ("--dns-servers", "127.0.0.1,"),
        ("--dns-ipv4-addr", "::1"),
        ("--dns-ipv6-addr", "127.0.0.1"),
    ] {
        let run = run_haul([option, value, "http://web.example/"]);
        assert!(run.code == 49 && run.stderr.contains(option), "{option} {value}: {run:?}");
    }
}
