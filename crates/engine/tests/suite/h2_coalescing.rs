//! Tests of connection coalescing (RFC 9113 section 9.1.1): several hosts share a connection only
//! if certificate, address and settings match, and the server does not answer 421.

use crate::common;

use std::io;

use common::{DRIVERS, one_thread, run, single_stage, trusting_ca, with_h2_alpn};
use haul::fleet::FleetOptions;
use haul::{Client, RequestOptions};
use testkit::frames::{H2Peer, H2PeerRequest, H2ScriptConnection, data, headers};
use testkit::test_certificates::TestCertificates;

/// Answers a request. The body of the response is the requested host and path.
fn answer(conn: &mut H2ScriptConnection, asked: &H2PeerRequest) -> io::Result<()> {
    let body = format!("{}{} ", host(asked), asked.path());
    conn.send(headers(asked.stream, false, &[(":status", "200"), ("content-length", &body.len().to_string())]))?;
    conn.send(data(asked.stream, true, body.as_bytes()))
}

fn host(asked: &H2PeerRequest) -> String {
    asked.get(":authority").and_then(|authority| authority.split(':').next()).unwrap_or_default().to_owned()
}

fn misdirected(conn: &mut H2ScriptConnection, asked: &H2PeerRequest) -> io::Result<()> {
    conn.send(headers(asked.stream, false, &[(":status", "421"), ("content-length", "5")]))?;
    conn.send(data(asked.stream, true, b"wrong"))
}

fn answering() -> (H2Peer, TestCertificates) {
    let identity = TestCertificates::for_names(&["a.test", "b.test", "*.wild.test"]);
    let peer = H2Peer::start_tls(&identity, |_, conn| {
        conn.greet(&[])?;
        loop {
            let asked = conn.request()?;
            answer(conn, &asked)?;
        }
    });
    (peer, identity)
}

/// Makes a client with a resolver. Each pair in `hosts` is a host and the address to which it
/// resolves.
fn client(peer: &H2Peer, hosts: &[(&str, &str)]) -> Client {
    let client = Client::new();
    for (host, address) in hosts {
        client.resolver().add_override(&format!("{host}:{}:{address}", peer.addr().port())).unwrap();
    }
    client
}

/// Fetches the URLs one after the other, not at the same time.
fn one_by_one(client: &Client, options: &RequestOptions, peer: &H2Peer, urls: &[&str]) -> common::FleetRunResult {
    let port = peer.addr().port();
    let urls: Vec<_> = urls
        .iter()
        .map(|url| {
            let (host, path) = url.split_once('/').expect("host/path");
            format!("https://{host}:{port}/{path}")
        })
        .collect();
    run(client, single_stage(options), FleetOptions { parallel: 1, ..one_thread() }, urls)
}

const HERE: &str = "127.0.0.1";

#[test]
fn hosts_with_same_certificate_and_address_share_connection() {
    let (peer, identity) = answering();
    let client = client(&peer, &[("a.test", HERE), ("b.test", "127.0.0.9,127.0.0.1"), ("x.wild.test", HERE)]);
    let (options, _ca) = trusting_ca(identity.ca_pem());
    let urls = ["a.test/1", "b.test/2", "x.wild.test/3", "b.test/4", "a.test/5"];
    let run = one_by_one(&client, &with_h2_alpn(options), &peer, &urls);
    assert_eq!(String::from_utf8_lossy(&run.output), "a.test/1 b.test/2 x.wild.test/3 b.test/4 a.test/5 ");
    assert_eq!(peer.connections(), 1);
}

#[test]
fn host_missing_from_certificate_gets_no_request() {
    let (peer, identity) = answering();
    let client = client(&peer, &[("a.test", HERE), ("c.test", HERE), ("deep.x.wild.test", HERE)]);
    let (options, _ca) = trusting_ca(identity.ca_pem());
    let run = one_by_one(&client, &with_h2_alpn(options), &peer, &["a.test/1", "c.test/2", "deep.x.wild.test/3"]);
    let mut exits: Vec<_> = run.exits().into_iter().map(|(_, exit)| exit).collect();
    exits.sort_unstable();
    assert_eq!((exits, run.output.as_slice()), (vec![0, 60, 60], &b"a.test/1 "[..]));
    assert!(peer.requests().iter().all(|asked| host(asked) == "a.test"));
}

#[test]
fn host_at_another_address_gets_own_connection() {
    let (peer, identity) = answering();
    let client = client(&peer, &[("a.test", HERE), ("b.test", "127.0.0.9")]);
    let (options, _ca) = trusting_ca(identity.ca_pem());
    let run = one_by_one(&client, &with_h2_alpn(options), &peer, &["a.test/1", "b.test/2"]);
    let exits: Vec<_> = run.exits().into_iter().map(|(_, exit)| exit).collect();
    assert!(exits.contains(&7) && exits.contains(&0), "nobody is there: {exits:?}");
    assert_eq!(peer.requests().len(), 1);
}

#[test]
fn unverified_connections_are_not_shared() {
    let (peer, _identity) = answering();
    let client = client(&peer, &[("a.test", HERE), ("b.test", HERE)]);
    let mut options = with_h2_alpn(RequestOptions::default());
    options.tls.verify = false;
    let run = one_by_one(&client, &options, &peer, &["a.test/1", "b.test/2", "a.test/3", "b.test/4"]);
    assert_eq!(String::from_utf8_lossy(&run.output), "a.test/1 b.test/2 a.test/3 b.test/4 ");
    assert_eq!(peer.connections(), 2);
}

#[test]
fn status_421_moves_host_to_its_own_connection() {
    // The first connection serves only its first host.
    let identity = TestCertificates::for_names(&["a.test", "b.test"]);
    let peer = H2Peer::start_tls(&identity, |_, conn| {
        conn.greet(&[])?;
        let first = conn.request()?;
        answer(conn, &first)?;
        loop {
            let asked = conn.request()?;
            if host(&asked) == host(&first) { answer(conn, &asked)? } else { misdirected(conn, &asked)? }
        }
    });
    let client = client(&peer, &[("a.test", HERE), ("b.test", HERE)]);
    let (options, _ca) = trusting_ca(identity.ca_pem());
    let mut options = with_h2_alpn(options);
    // A request answered with 421 may be sent again, whatever its method.
    options.method = "POST".into();
    options.body = Some(b"content"[..].into());
    let urls = ["a.test/1", "b.test/2", "b.test/3", "a.test/4", "b.test/5"];
    let run = one_by_one(&client, &options, &peer, &urls);
    assert_eq!(String::from_utf8_lossy(&run.output), "a.test/1 b.test/2 b.test/3 a.test/4 b.test/5 ");
    assert_eq!((peer.connections(), peer.requests().len()), (2, 6), "one request was sent twice");
}

#[test]
fn second_421_for_a_request_is_delivered() {
    for driver in DRIVERS {
        let identity = TestCertificates::for_names(&["a.test"]);
        let peer = H2Peer::start_tls(&identity, |_, conn| {
            conn.greet(&[])?;
            loop {
                let asked = conn.request()?;
                if asked.path() == "/good" { answer(conn, &asked)? } else { misdirected(conn, &asked)? }
            }
        });
        let client = client(&peer, &[("a.test", HERE)]);
        let (options, _ca) = trusting_ca(identity.ca_pem());
        let options = with_h2_alpn(options);
        let url = |path: &str| format!("https://a.test:{}{path}", peer.addr().port());
        // On a new connection there is no alternative.
        assert_eq!(driver.get(&client, &url("/bad"), &options).status, 421, "{driver:?}");
        assert_eq!((peer.connections(), peer.requests().len()), (1, 1), "{driver:?}");
        // On a reused connection there is one more try.
        assert_eq!(driver.get(&client, &url("/good"), &options).ok(), b"a.test/good ");
        let got = driver.get(&client, &url("/bad"), &options);
        assert_eq!((got.status, got.ok()), (421, &b"wrong"[..]), "{driver:?}");
        assert_eq!((peer.connections(), peer.requests().len()), (2, 4), "{driver:?}");
    }
}
