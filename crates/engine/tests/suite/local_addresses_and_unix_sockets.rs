//! Tests of the local end of connections: Unix sockets, interfaces, local addresses and ports.

use crate::common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread;

use common::{DRIVERS, start_origin};
use haul::net::local_address::{LocalInterface, PortRange, UnixSocketAddress};
use haul::net::proxy::ProxyOptions;
use haul::net::socket::TcpKeepalive;
use haul::{Client, ErrorKind, RequestOptions};
use haul_policy::proxy::Proxy;

/// Answers every request that arrives at the Unix socket. The body of each response is the
/// request's path.
fn serve(listener: UnixListener) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while stream.read(&mut byte).is_ok_and(|n| n == 1) {
                    head.push(byte[0]);
                    if head.ends_with(b"\r\n\r\n") {
                        let text = String::from_utf8(std::mem::take(&mut head)).unwrap();
                        let path = text.split(' ').nth(1).unwrap();
                        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{path}", path.len());
                        if stream.write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn unix_socket_serves_any_host_without_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    serve(UnixListener::bind(&path).unwrap());
    for driver in DRIVERS {
        let mut options = RequestOptions::default();
        options.connect.unix_socket = Some(UnixSocketAddress::Path(path.clone()));
        let mut proxy = ProxyOptions::default();
        proxy.proxy = Some(Proxy::parse("http://nowhere.invalid").unwrap());
        options.proxy = Some(proxy);
        let client = Client::new();
        for _ in 0..3 {
            let got = driver.get(&client, "http://nowhere.invalid/a?b", &options);
            assert_eq!((got.ok(), got.facts.peer), (&b"/a?b"[..], None), "{driver:?}");
        }
        options.connect.unix_socket = Some(UnixSocketAddress::Path(folder.path().join("none")));
        let got = driver.get(&client, "http://nowhere.invalid/", &options);
        assert_eq!((got.kind, got.exit), (Some(ErrorKind::Connect), 7), "{}", got.message);
        let long = "x".repeat(300);
        options.connect.unix_socket = Some(UnixSocketAddress::Path(long.into()));
        assert_eq!(driver.get(&client, "http://nowhere.invalid/", &options).exit, 7);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn abstract_unix_socket_serves_requests() {
    use std::os::linux::net::SocketAddrExt;
    let name = format!("haul-test-{}", std::process::id()).into_bytes();
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    serve(UnixListener::bind_addr(&address).unwrap());
    for driver in DRIVERS {
        let mut options = RequestOptions::default();
        options.connect.unix_socket = Some(UnixSocketAddress::Abstract(name.clone()));
        assert_eq!(driver.get(&Client::new(), "http://h.invalid/x", &options).ok(), b"/x");
    }
}

#[test]
fn connection_uses_requested_local_address_and_port() {
    let origin = start_origin();
    for driver in DRIVERS {
        for text in ["127.0.0.7", "host!127.0.0.7", "host!localhost"] {
            let mut options = RequestOptions::default();
            options.connect.interface = Some(LocalInterface::parse(text).unwrap());
            let got = driver.get(&Client::new(), &origin.url("/small/1"), &options);
            assert_eq!(got.ok(), b"small 1\n", "{text}");
            let from = got.facts.local.unwrap().ip().to_string();
            assert_eq!(from, if text.ends_with('7') { "127.0.0.7" } else { "127.0.0.1" });
        }
        let mut options = RequestOptions::default();
        // A port in use is skipped; this listener has the first of the range.
        let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
        let first = taken.local_addr().unwrap().port();
        options.connect.local_ports = Some(PortRange { first, last: first.saturating_add(200) });
        let got = driver.get(&Client::new(), &origin.url("/small/1"), &options);
        assert_eq!(got.ok(), b"small 1\n");
        let port = got.facts.local.unwrap().port();
        assert!(port > first && port <= first.saturating_add(200), "{port}");

        options.connect.local_ports = Some(PortRange { first, last: first });
        let got = driver.get(&Client::new(), &origin.url("/small/1"), &options);
        assert_eq!((got.kind, got.exit), (Some(ErrorKind::Interface), 45), "{}", got.message);
        let mut options = RequestOptions::default();
        options.connect.interface = Some(LocalInterface::parse("host!192.0.2.1").unwrap());
        let got = driver.get(&Client::new(), &origin.url("/small/1"), &options);
        assert_eq!((got.kind, got.exit), (Some(ErrorKind::Interface), 45), "{}", got.message);
        options.connect.interface = Some(LocalInterface::parse("host!nowhere.invalid").unwrap());
        assert_eq!(driver.get(&Client::new(), &origin.url("/small/1"), &options).exit, 45);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn connection_binds_to_a_named_interface() {
    let origin = start_origin();
    for driver in DRIVERS {
        for text in ["lo", "if!lo", "ifhost!lo!127.0.0.1"] {
            let mut options = RequestOptions::default();
            options.connect.interface = Some(LocalInterface::parse(text).unwrap());
            assert_eq!(driver.get(&Client::new(), &origin.url("/small/1"), &options).ok(), b"small 1\n", "{text}");
        }
        let mut options = RequestOptions::default();
        options.connect.interface = Some(LocalInterface::parse("if!nosuch0").unwrap());
        assert_eq!(driver.get(&Client::new(), &origin.url("/small/1"), &options).exit, 45);
    }
}

#[test]
fn local_address_and_keepalive_separate_pooled_connections() {
    let origin = start_origin();
    let client = Client::new();
    let with = |adjust: fn(&mut haul::net::happy_eyeballs::ConnectOptions)| {
        let mut options = RequestOptions::default();
        adjust(&mut options.connect);
        options
    };
    let ways = [
        with(|_| ()),
        with(|connect| connect.interface = Some(LocalInterface::parse("127.0.0.1").unwrap())),
        with(|connect| connect.interface = Some(LocalInterface::parse("127.0.0.2").unwrap())),
        with(|connect| connect.local_ports = Some(PortRange { first: 20_000, last: 60_000 })),
        with(|connect| connect.keepalive = None),
        with(|connect| connect.keepalive = Some(TcpKeepalive { count: Some(3), ..TcpKeepalive::default() })),
    ];
    for expected in [1, 0] {
        for options in &ways {
            let got = DRIVERS[0].get(&client, &origin.url("/small/2"), options);
            assert_eq!((got.ok(), got.facts.connects), (&b"small 2\n"[..], expected));
        }
    }
}

#[test]
fn malformed_interface_and_ports_are_refused() {
    for text in ["", "if!", "host!", "ifhost!lo", "ifhost!!x", "ifhost!lo!"] {
        assert!(LocalInterface::parse(text).is_err(), "{text}");
    }
    for text in ["", "0", "x", "5-4", "1-70000", "0-5", "-", "1-", "-5"] {
        assert!(PortRange::parse(text).is_err(), "{text}");
    }
    assert_eq!(PortRange::parse("7").unwrap(), PortRange { first: 7, last: 7 });
}

#[test]
fn proxy_protocol_line_has_both_addresses() {
    for driver in DRIVERS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, peer) = listener.accept().unwrap();
            let mut got = Vec::new();
            while !got.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                got.push(byte[0]);
            }
            stream.write_all(b"HTTP/1.1 204 No\r\n\r\n").unwrap();
            (String::from_utf8(got).unwrap(), peer)
        });
        let mut options = RequestOptions::default();
        options.connect.haproxy_protocol = true;
        assert_eq!(driver.get(&Client::new(), &format!("http://{addr}/"), &options).exit, 0);
        let (got, peer) = server.join().unwrap();
        let line = format!("PROXY TCP4 127.0.0.1 127.0.0.1 {} {}\r\nGET / HTTP/1.1\r\n", peer.port(), addr.port());
        assert!(got.starts_with(&line), "{got}");
    }
}
