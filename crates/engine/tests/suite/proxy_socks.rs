//! Tests of SOCKS proxies, and of preproxies (`--preproxy`) in front of other proxies.

use crate::common;
use crate::support::proxy;

use common::{DRIVERS, start_origin, trusting_ca, with_proxy};
use haul::net::proxy::ProxyOptions;
use haul::{Client, ErrorKind, RequestOptions};
use haul_policy::proxy::Proxy;
use proxy::{TestProxy, TestProxyBehavior, adjusted, assert_fails, client};
use testkit::h1_peer::{H1Peer, ScriptStep};

#[test]
fn every_socks_version_connects() {
    let origin = start_origin();
    let port = origin.http_addr().port();
    for driver in DRIVERS {
        for bytewise in [false, true] {
            for (kind, asked) in [
                ("socks4", format!("socks4 127.0.0.1:{port}")),
                ("socks4a", format!("socks4 h.test:{port}")),
                ("socks5", format!("socks5 127.0.0.1:{port}")),
                ("socks5h", format!("socks5 h.test:{port}")),
            ] {
                let login = Some(("me", "secret"));
                let proxy = TestProxy::start(TestProxyBehavior { login, bytewise, ..TestProxyBehavior::default() });
                let options = with_proxy(&format!("{kind}://me:secret@{}", proxy.addr), &RequestOptions::default());
                let client = client();
                let got = driver.get(&client, &format!("http://h.test:{port}/small/9"), &options);
                assert_eq!(got.ok(), b"small 9\n", "{driver:?} {kind}");
                assert_eq!(proxy.received().last(), Some(&asked));
                assert_eq!(proxy.received().contains(&"login me:secret".to_owned()), kind.starts_with("socks5"));
            }
        }
    }
}

#[test]
fn wrong_socks_credentials_and_refusals_exit_97() {
    let origin = start_origin();
    for driver in DRIVERS {
        let proxy =
            TestProxy::start(TestProxyBehavior { login: Some(("me", "right")), ..TestProxyBehavior::default() });
        for (kind, user, says) in [
            ("socks5", "me:secret@", "refused the user name or password"),
            ("socks5", "", "wants a user name"),
            ("socks4", "you@", "identd"),
        ] {
            let options = with_proxy(&format!("{kind}://{user}{}", proxy.addr), &RequestOptions::default());
            assert_fails(&driver.get(&Client::new(), &origin.url("/small"), &options), ErrorKind::Proxy, 97, says);
        }
        let long = format!("http://{}.test/", "a.".repeat(126) + "aa");
        let options = with_proxy(&format!("socks5h://{}", proxy.addr), &RequestOptions::default());
        let before = proxy.connections();
        assert_fails(&driver.get(&client(), &long, &options), ErrorKind::Proxy, 97, "cannot express");
        assert_eq!(proxy.connections(), before, "nothing was connected for what cannot be said");
    }
}

#[test]
fn preproxy_connects_to_the_proxy() {
    let origin = start_origin();
    let (trusting, _file) = trusting_ca(origin.ca_pem());
    for driver in DRIVERS {
        let first =
            TestProxy::start(TestProxyBehavior { login: Some(("first", "secret")), ..TestProxyBehavior::default() });
        for kind in ["http", "socks5", "socks4"] {
            let second = TestProxy::start(TestProxyBehavior {
                login: Some(("second", "secret2")),
                ..TestProxyBehavior::default()
            });
            let options = with_proxy(&format!("{kind}://second:secret2@{}", second.addr), &trusting);
            let options = adjusted(options, |proxy| {
                let url = format!("socks5://first:secret@{}", first.addr);
                proxy.preproxy = Some(Proxy::parse(&url).unwrap());
            });
            for url in [origin.https_url("/small/3"), origin.url("/small/3")] {
                assert_eq!(driver.get(&Client::new(), &url, &options).ok(), b"small 3\n", "{kind}");
            }
            assert!(first.received().contains(&format!("socks5 {}", second.addr)));
            assert!(!first.received().concat().contains("secret2"), "{:?}", first.received());
            assert!(!second.received().is_empty() && !second.received().concat().contains("first"));
        }
        let alone = RequestOptions {
            proxy: Some({
                let mut proxy = ProxyOptions::default();
                proxy.preproxy = Some(Proxy::parse(&format!("socks5://first:secret@{}", first.addr)).unwrap());
                proxy
            }),
            ..RequestOptions::default()
        };
        assert_eq!(driver.get(&Client::new(), &origin.url("/small/3"), &alone).ok(), b"small 3\n");
        let http = adjusted(alone, |proxy| proxy.preproxy = Some(Proxy::parse("http://127.0.0.1").unwrap()));
        assert_fails(&driver.get(&Client::new(), &origin.url("/"), &http), ErrorKind::Setup, 2, "SOCKS");
    }
}

#[test]
fn truncated_and_hostile_socks_replies_are_errors() {
    let reply: &[u8] = b"\x05\x00\x05\x00\x00\x03\x09localhost\x00\x50";
    for driver in DRIVERS {
        for cut in 0..reply.len() {
            let peer = H1Peer::always(vec![
                ScriptStep::ReadBytes(3),
                ScriptStep::send_bytewise(&reply[..cut]),
                ScriptStep::HalfClose,
                ScriptStep::ReadToEnd,
            ]);
            let options = with_proxy(&format!("socks5h://{}", peer.addr()), &RequestOptions::default());
            assert_fails(&driver.get(&client(), "http://example.test/", &options), ErrorKind::Proxy, 97, "SOCKS");
        }
        for bad in [
            &b"HTTP/1.1 400 Bad\r\n\r\n"[..],
            b"\x05\x01",
            b"\x05\xff",
            b"\x04\x00",
            b"\x05\x00\x05\x02",
            b"\x05\x00\x05\x00\x00\x09",
        ] {
            let peer = H1Peer::always(vec![
                ScriptStep::ReadBytes(3),
                ScriptStep::send(bad),
                ScriptStep::HalfClose,
                ScriptStep::ReadToEnd,
            ]);
            let options = with_proxy(&format!("socks5h://{}", peer.addr()), &RequestOptions::default());
            assert_fails(&driver.get(&client(), "http://example.test/", &options), ErrorKind::Proxy, 97, "SOCKS");
        }
    }
}
