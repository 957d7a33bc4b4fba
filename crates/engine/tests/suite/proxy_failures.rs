//! Tests of proxies that refuse connections, stall, or cannot be reached.

use crate::common;
use crate::support::proxy;

use std::time::Duration;

use common::{DRIVERS, start_origin, with_proxy};
use haul::net::proxy::ProxyOptions;
use haul::{Client, ErrorKind, RequestOptions};
use haul_policy::proxy::{NoProxy, ProxyEnvironment};
use proxy::{adjusted, assert_fails, client};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::unused_port::unused_port;

#[test]
fn proxy_that_refuses_connect_is_not_retried() {
    for driver in DRIVERS {
        for (answer, kind, exit, says) in [
            (
                "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
                ErrorKind::Connect,
                7,
                "response 407",
            ),
            ("HTTP/1.1 503 Later\r\n\r\n", ErrorKind::Connect, 7, "response 503"),
            (
                "HTTP/1.1 302 There\r\nLocation: https://evil.test/\r\nContent-Length: 0\r\n\r\n",
                ErrorKind::Connect,
                7,
                "response 302",
            ),
            ("HTTP/1.1 101 Other\r\nUpgrade: x\r\n\r\n", ErrorKind::Receive, 56, "switched protocols"),
            ("HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n", ErrorKind::Protocol, 8, "broken"),
            ("HTTP/1.1 403 No\r\nContent-Length: 1x\r\n\r\n", ErrorKind::Protocol, 8, "broken"),
            ("SSH-2.0-OpenSSH\r\n", ErrorKind::Receive, 56, "broken"),
            ("HTTP/1.1 200 OK\r\nX: y", ErrorKind::Receive, 56, "closed the connection"),
            ("", ErrorKind::Receive, 56, "closed the connection"),
        ] {
            let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(answer), ScriptStep::Close]);
            let options = with_proxy(&format!("http://me:secret@{}", peer.addr()), &RequestOptions::default());
            let got = driver.get(&client(), "https://example.test/", &options);
            assert_fails(&got, kind, exit, says);
            assert_eq!(peer.connections(), 1, "it is not tried again: {answer}");
        }
    }
}

#[test]
fn endless_connect_response_is_refused() {
    for driver in DRIVERS {
        for (start, repeated) in
            [("HTTP/1.1 200 OK\r\n", "X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"), ("", "HTTP/1.1 100 Go\r\n\r\n")]
        {
            let peer = H1Peer::always(vec![
                ScriptStep::ReadHead,
                ScriptStep::send(start),
                ScriptStep::SendRepeatedly(repeated.as_bytes().to_vec(), 1 << 22),
            ]);
            let options = with_proxy(&format!("http://{}", peer.addr()), &RequestOptions::default());
            assert_fails(&driver.get(&client(), "https://example.test/", &options), ErrorKind::Receive, 56, "broken");
        }
    }
}

#[test]
fn silent_proxy_ends_at_connect_timeout() {
    for driver in DRIVERS {
        for url in ["http", "https", "socks5h", "socks4a"] {
            let peer = H1Peer::always(vec![ScriptStep::ReadToEnd]);
            let mut options = with_proxy(
                &format!("{url}://{}", peer.addr()),
                &common::with_connect_timeout(Duration::from_millis(100)),
            );
            options.proxy.as_mut().unwrap().tls.verify = false;
            assert_fails(&driver.get(&client(), "https://example.test/", &options), ErrorKind::Timeout, 28, "time");
        }
    }
}

#[test]
fn unusable_proxy_does_not_fall_back_to_direct() {
    for driver in DRIVERS {
        let origin = start_origin();
        let nowhere = with_proxy("http://nowhere.invalid:1", &RequestOptions::default());
        assert_fails(&driver.get(&Client::new(), &origin.url("/"), &nowhere), ErrorKind::ProxyResolve, 5, "proxy");
        let refused = with_proxy(&format!("socks5://127.0.0.1:{}", unused_port()), &RequestOptions::default());
        assert_eq!(driver.get(&Client::new(), &origin.url("/"), &refused).exit, 7);
        let environment =
            ProxyEnvironment::from_variables(|name| (name == "http_proxy").then_some("ftp://me:secret@x"));
        let mut proxy = ProxyOptions::default();
        proxy.environment = environment;
        let options = RequestOptions { proxy: Some(proxy), ..RequestOptions::default() };
        assert_fails(&driver.get(&Client::new(), &origin.url("/"), &options), ErrorKind::Connect, 7, "scheme");
        assert_eq!(origin.requests(), 0);
        let direct = adjusted(options, |proxy| proxy.no_proxy = Some(NoProxy::parse("127.0.0.0/8")));
        assert_eq!(driver.get(&Client::new(), &origin.url("/small/1"), &direct).exit, 0);
    }
}
