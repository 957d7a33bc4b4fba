//! Tests of `--dns-servers` and similar options, with a DNS server that the test runs.

use std::net::IpAddr;

use testkit::dns_server::{DnsServer, ReceivedQuery};
use testkit::origin::Origin;

use crate::common::{answering, run_haul};

const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes";

fn server(ip: &str) -> DnsServer {
    let answer = |query: &ReceivedQuery| match query.name.as_str() {
        "web.example" => vec![query.addresses(&[IpAddr::from([127, 0, 0, 1])])],
        _ => vec![query.error(3)],
    };
    DnsServer::start_on(ip.parse().unwrap(), answer).unwrap()
}

/// Runs haul with this DNS server and these options, to fetch a page of web.example. Returns the
/// source addresses of haul's DNS queries.
fn senders(server: &DnsServer, options: &[&str]) -> Vec<IpAddr> {
    let page = answering(PAGE);
    let (url, servers) = (format!("http://web.example:{}/", page.addr().port()), server.address().to_string());
    assert_eq!(run_haul([&["-sS", "--dns-servers", &*servers], options, &[&*url]].concat()).text(), "yes");
    server.queries().iter().map(|query| query.from.ip()).collect()
}

#[test]
fn one_and_many_urls_use_dns_servers() {
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
fn error_for_unknown_host_names_the_cause() {
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
fn invalid_dns_options_are_refused() {
    for (option, value) in [
        ("--dns-servers", "localhost"),
        ("--dns-servers", "127.0.0.1:99999"),
        ("--dns-servers", "127.0.0.1,"),
        ("--dns-ipv4-addr", "::1"),
        ("--dns-ipv6-addr", "127.0.0.1"),
        ("--doh-url", "http://127.0.0.1/dns-query"),
        ("--doh-url", "127.0.0.1"),
    ] {
        let run = run_haul([option, value, "http://web.example/"]);
        assert!(run.code == 49 && run.stderr.contains(option), "{option} {value}: {run:?}");
    }
}

/// Starts a server for DNS over HTTPS that knows the address of web.example. Returns the server,
/// and a file with the certificate of its CA.
fn https_server() -> (Origin, tempfile::NamedTempFile) {
    let origin = Origin::builder().http2(100).dns(|query| match query.name.as_str() {
        "web.example" => vec![query.addresses(&[IpAddr::from([127, 0, 0, 1])])],
        _ => vec![query.error(3)],
    });
    let origin = origin.start().unwrap();
    let ca = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(ca.path(), origin.ca_pem()).unwrap();
    (origin, ca)
}

#[test]
fn one_and_many_urls_use_doh_url() {
    let (server, ca) = https_server();
    let (doh, ca) = (server.https_url("/dns-query"), ca.path().to_str().unwrap());
    let pages = [answering(PAGE), answering(PAGE), answering(PAGE)];
    let urls: Vec<String> = pages.iter().map(|page| format!("http://web.example:{}/", page.addr().port())).collect();
    assert_eq!(run_haul(["-sS", "--cacert", ca, "--doh-url", &doh, &urls[0]]).text(), "yes");
    assert_eq!(run_haul(["-sS", "--cacert", ca, "--doh-url", &doh, &urls[1], &urls[2]]).text(), "yesyes");
    let log = server.log();
    // Each run asks for A and AAAA once, over one connection.
    assert_eq!((log.len(), server.connections()), (4, 2));
    let field = |name: &str| log[0].headers.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str());
    assert_eq!((log[0].method.as_str(), log[0].target.as_str()), ("POST", doh.as_str()));
    assert_eq!((field("accept"), field("user-agent")), (Some("application/dns-message"), None));
    assert_eq!(&log[0].body[..2], [0, 0]);
}

#[test]
fn doh_certificate_is_checked_unless_doh_insecure() {
    let (server, _) = https_server();
    let doh = server.https_url("/dns-query");
    let page = answering(PAGE);
    let url = format!("http://web.example:{}/", page.addr().port());
    // --insecure is for the server of the URL.
    let run = run_haul(["-sSk", "--doh-url", &doh, &url]);
    let message = run.failed(6);
    assert!(message.contains("web.example") && message.contains("certificate") && message.contains(&doh), "{message}");
    assert_eq!(server.requests(), 0);
    assert_eq!(run_haul(["-sS", "--doh-insecure", "--doh-url", &doh, &url]).text(), "yes");
}

#[test]
fn failing_doh_server_has_no_fallback() {
    let (server, ca) = https_server();
    let (wrong, ca) = (server.https_url("/small"), ca.path().to_str().unwrap());
    let run = run_haul(["-sS", "--cacert", ca, "--doh-url", &wrong, "http://web.example/"]);
    let message = run.failed(6);
    assert!(message.contains("text/plain") || message.contains("application/dns-message"), "{message}");
    let missing = run_haul(["-sS", "--cacert", ca, "--doh-url", &server.https_url("/dns-query"), "http://no.example/"]);
    assert!(missing.failed(6).contains("NXDOMAIN"));
}

#[test]
fn resolve_gives_the_address_of_the_doh_server() {
    let (server, _) = https_server();
    let port = server.https_addr().port();
    let doh = format!("https://resolver.example:{port}/dns-query");
    let page = answering(PAGE);
    let url = format!("http://web.example:{}/", page.addr().port());
    let fixed = format!("resolver.example:{port}:127.0.0.1");
    let options = ["-sS", "--doh-insecure", "--resolve", &fixed, "--doh-url", &doh];
    assert_eq!(run_haul([&options[..], &[&*url]].concat()).text(), "yes");
}
