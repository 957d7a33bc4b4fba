//! Tests of Digest authentication with proxies, in tunnels and for forwarded requests.

use crate::common;
use crate::support::proxy;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use common::{DRIVERS, start_origin, trusting_ca, with_proxy};
use haul::net::proxy::ProxyAuthScheme;
use haul::{Client, ErrorKind, RequestOptions};
use haul_policy::auth::Credentials;
use proxy::{TestProxy, TestProxyBehavior, adjusted, assert_fails, client};
use testkit::h1_peer::{H1Peer, ScriptStep};

#[test]
fn digest_proxy_auth_succeeds_in_tunnels_and_forwarding() {
    let origin = start_origin();
    let (trusting, _file) = trusting_ca(origin.ca_pem());
    for driver in DRIVERS {
        for auth in [ProxyAuthScheme::Digest, ProxyAuthScheme::Any] {
            let proxy = TestProxy::start(TestProxyBehavior {
                login: Some(("me", "secret")),
                digest: true,
                ..TestProxyBehavior::default()
            });
            let options = adjusted(with_proxy(&format!("http://{}", proxy.addr), &trusting), |to| {
                to.auth = auth;
                to.credentials = Some(Credentials::new("me", "secret").unwrap());
            });
            let client = Client::new();
            for url in [origin.https_url("/small/4"), origin.url("/small/4"), origin.url("/small/4")] {
                assert_eq!(driver.get(&client, &url, &options).ok(), b"small 4\n", "{driver:?} {auth:?}");
            }
            // The challenge is requested once, then remembered.
            assert_eq!(proxy.received().len(), 4, "{:?}", proxy.received());
            assert!(!proxy.received().concat().contains("Basic"));

            let fresh = TestProxy::start(TestProxyBehavior {
                login: Some(("me", "other")),
                digest: true,
                ..TestProxyBehavior::default()
            });
            let wrong =
                adjusted(with_proxy(&format!("http://me:secret@{}", fresh.addr), &trusting), |to| to.auth = auth);
            let got = driver.get(&client, &origin.https_url("/small"), &wrong);
            assert_fails(&got, ErrorKind::Connect, 7, "CONNECT tunnel failed, response 407");
            assert_eq!(driver.get(&client, &origin.url("/small"), &wrong).status, 407);
        }
    }
}

#[test]
fn digest_answer_uses_new_connection_after_proxy_close() {
    let challenge = "HTTP/1.1 407 Who?\r\nProxy-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n";
    for driver in DRIVERS {
        let closes = "Connection: close\r\nContent-Length: 2\r\n\r\nno";
        for framing in [closes, "\r\nno", "Proxy-Connection: close\r\nContent-Length: 0\r\n\r\n"] {
            let asks = vec![ScriptStep::ReadHead, ScriptStep::send(format!("{challenge}{framing}")), ScriptStep::Close];
            let opens = vec![
                ScriptStep::ReadHead,
                ScriptStep::send("HTTP/1.1 200 OK\r\n\r\n"),
                ScriptStep::ReadHead,
                ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
                ScriptStep::Close,
            ];
            let peer = H1Peer::start(vec![asks.clone(), opens]);
            let options =
                adjusted(with_proxy(&format!("http://me:secret@{}", peer.addr()), &RequestOptions::default()), |to| {
                    (to.auth, to.tunnel) = (ProxyAuthScheme::Any, true)
                });
            assert_eq!(driver.get(&client(), "http://example.test/", &options).ok(), b"ok");
            let (first, second) = (peer.received(0), peer.received(1));
            assert!(!String::from_utf8_lossy(&first).contains("Proxy-Authorization"));
            assert!(String::from_utf8_lossy(&second).contains("Proxy-Authorization: Digest username=\"me\""));
            // A proxy that always challenges is asked a limited number of times.
            let stubborn = H1Peer::always(asks);
            let options = adjusted(
                with_proxy(&format!("http://me:secret@{}", stubborn.addr()), &RequestOptions::default()),
                |to| (to.auth, to.tunnel) = (ProxyAuthScheme::Any, true),
            );
            assert_fails(&driver.get(&client(), "http://example.test/", &options), ErrorKind::Connect, 7, "407");
            assert_eq!(stubborn.connections(), 2);
        }
    }
}

/// Returns a script step with which a proxy answers a CONNECT with a Digest challenge (407).
fn challenge(nonce: usize, fields: &str) -> ScriptStep {
    ScriptStep::send(format!(
        "HTTP/1.1 407 Who?\r\nProxy-Authenticate: Digest realm=\"r\", nonce=\"{nonce}\", qop=\"auth\"{fields}\r\nContent-Length: 0\r\n\r\n"
    ))
}

/// Returns the script of a proxy that accepts a CONNECT, and answers the request in the tunnel.
fn tunnels() -> Vec<ScriptStep> {
    let ok = ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    vec![ScriptStep::ReadHead, ScriptStep::send("HTTP/1.1 200 OK\r\n\r\n"), ScriptStep::ReadHead, ok, ScriptStep::Close]
}

fn tunnelled_with_digest(peer: &H1Peer) -> RequestOptions {
    adjusted(with_proxy(&format!("http://me:secret@{}", peer.addr()), &RequestOptions::default()), |to| {
        (to.auth, to.tunnel) = (ProxyAuthScheme::Digest, true);
    })
}

#[test]
fn stale_proxy_nonce_is_answered_on_new_connection() {
    let leaves = |nonce: usize| {
        let fields = if nonce == 0 { "" } else { ", stale=true" };
        vec![ScriptStep::ReadHead, challenge(nonce, &format!("{fields}\r\nConnection: close")), ScriptStep::Close]
    };
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![leaves(0), leaves(1), tunnels()]);
        let options = tunnelled_with_digest(&peer);
        assert_eq!(driver.get(&client(), "http://example.test/", &options).ok(), b"ok", "{driver:?}");
        assert!(String::from_utf8_lossy(&peer.received(2)).contains("nonce=\"1\""));
        // A proxy to which every nonce is stale is asked a limited number of times.
        let peer = H1Peer::start((0..20).map(leaves).collect());
        let options = tunnelled_with_digest(&peer);
        assert_fails(&driver.get(&client(), "http://example.test/", &options), ErrorKind::Connect, 7, "407");
        assert_eq!(peer.connections(), 4, "{driver:?}");
    }
}

#[test]
fn proxy_closing_after_challenge_is_retried_once() {
    for driver in DRIVERS {
        // The proxy closes after its 407, closes after it has read the answer, or resets.
        let closes = vec![ScriptStep::ReadHead, challenge(0, ""), ScriptStep::Close];
        let reads = vec![ScriptStep::ReadHead, challenge(0, ""), ScriptStep::ReadHead, ScriptStep::Close];
        let resets = vec![ScriptStep::ReadHead, challenge(0, ""), ScriptStep::ReadHead, ScriptStep::Reset];
        for asks in [closes, reads, resets] {
            let peer = H1Peer::start(vec![asks.clone(), tunnels()]);
            let options = tunnelled_with_digest(&peer);
            assert_eq!(driver.get(&client(), "http://example.test/", &options).ok(), b"ok", "{driver:?} {asks:?}");
            let peer = H1Peer::start(vec![asks, vec![ScriptStep::ReadHead]]);
            let options = tunnelled_with_digest(&peer);
            let says = "the proxy closed the connection before it answered CONNECT";
            assert_fails(&driver.get(&client(), "http://example.test/", &options), ErrorKind::Receive, 56, says);
            assert_eq!(peer.connections(), 2, "{driver:?}");
        }
    }
}

#[test]
fn concurrent_digest_answers_share_one_nonce_count() {
    let nonces = ["", "nonce=\"n\"", "nonce=\"m\", stale=true"];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://me:secret@{}", listener.local_addr().unwrap());
    let client = client();
    let options = adjusted(with_proxy(&url, &RequestOptions::default()), |to| to.auth = ProxyAuthScheme::Digest);
    let clients: Vec<_> = (0..2)
        .map(|_| {
            let (client, options) = (client.clone(), options.clone());
            thread::spawn(move || DRIVERS[0].get(&client, "http://example.test/", &options))
        })
        .collect();
    let mut both = [listener.accept().unwrap().0, listener.accept().unwrap().0];
    for (round, nonce) in nonces.iter().enumerate() {
        let mut counts: Vec<_> = both
            .iter_mut()
            .map(|stream| {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap();
                head.split("nc=").nth(1).map(|count| count[..8].to_owned())
            })
            .collect();
        counts.sort();
        let expected = ["00000001", "00000002"].map(|count| (!nonce.is_empty()).then(|| count.to_owned()));
        assert_eq!(counts, expected, "{nonce}");
        let answer = match nonces.get(round + 1) {
            Some(next) => format!(
                "HTTP/1.1 407 Who?\r\nProxy-Authenticate: Digest realm=\"r\", {next}, qop=\"auth\"\r\nContent-Length: 0\r\n\r\n"
            ),
            None => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".into(),
        };
        both.iter_mut().for_each(|stream| stream.write_all(answer.as_bytes()).unwrap());
    }
    for client in clients {
        assert_eq!(client.join().unwrap().ok(), b"ok");
    }
}
