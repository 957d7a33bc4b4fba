//! Tests of failed transfers: kinds of errors, exit codes and messages.

use crate::common;

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use common::{DRIVERS, assert_fails, get, start_origin, with_connect_timeout};
use haul::net::dns::{DnsCacheOptions, Resolver};
use haul::{Client, ErrorKind, RequestOptions};
use testkit::h1_peer::{H1Peer, ScriptStep};

#[test]
fn connection_failures_have_their_exit_codes() {
    // A listener whose queue is full, so that a SYN gets no answer.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let _queue: Vec<_> = (0..4)
        .map(|_| {
            let socket = haul::net::socket::Socket::open(&address, true).unwrap();
            let _ = socket.connect(&address);
            socket
        })
        .collect();
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    // A server that accepts and sends nothing, so that the TLS handshake stalls.
    let silent = H1Peer::always(vec![ScriptStep::ReadToEnd]);
    let not_tls = H1Peer::always(vec![ScriptStep::ReadBytes(1), ScriptStep::send("HTTP/1.1 400 Bad Request\r\n\r\n")]);
    for driver in DRIVERS {
        let soon = with_connect_timeout(Duration::from_millis(200));
        assert_fails(&get(driver, &format!("http://{address}/"), &soon), ErrorKind::Timeout, 28);
        let options = RequestOptions { max_time: Some(Duration::from_millis(200)), ..RequestOptions::default() };
        assert_fails(&get(driver, &format!("http://{address}/"), &options), ErrorKind::Timeout, 28);
        assert_fails(&get(driver, &format!("http://{closed}/"), &RequestOptions::default()), ErrorKind::Connect, 7);
        assert_fails(&get(driver, &format!("https://{}/", silent.addr()), &soon), ErrorKind::Timeout, 28);
        let got = get(driver, &format!("https://{}/", not_tls.addr()), &RequestOptions::default());
        assert_fails(&got, ErrorKind::TlsHandshake, 35);
        let origin = start_origin();
        assert_fails(&get(driver, &origin.https_url("/"), &RequestOptions::default()), ErrorKind::PeerCertificate, 60);
        let mut options = RequestOptions::default();
        options.tls.ca_file = Some("/nonexistent/ca.pem".into());
        assert_fails(&get(driver, &origin.https_url("/"), &options), ErrorKind::CaFile, 77);
    }
}

#[test]
fn unresolvable_host_is_a_resolve_error() {
    let origin = start_origin();
    for driver in DRIVERS {
        let resolver = Resolver::with_lookup(DnsCacheOptions::default(), |name| match name {
            "known.test" => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
            _ => Err(std::io::Error::other("no such name")),
        });
        let client = Client::with_resolver(resolver);
        let port = origin.http_addr().port();
        let url = format!("http://known.test:{port}/small");
        assert_eq!(driver.get(&client, &url, &RequestOptions::default()).ok(), b"small\n", "{driver:?}");
        let got = driver.get(&client, &format!("http://unknown.test:{port}/"), &RequestOptions::default());
        assert_fails(&got, ErrorKind::Resolve, 6);
    }
}

#[test]
fn fail_option_delivers_no_body_and_keeps_connection() {
    let origin = start_origin();
    for driver in DRIVERS {
        let before = origin.connections();
        let client = Client::new();
        let options = RequestOptions { fail: true, ..RequestOptions::default() };
        for status in [400, 404, 500, 503] {
            let got = driver.get(&client, &origin.url(&format!("/status/{status}")), &options);
            assert_fails(&got, ErrorKind::Status, 22);
            assert_eq!((got.status, &got.body[..]), (status, &b""[..]), "{driver:?}");
            assert!(got.message.contains(&status.to_string()), "{}", got.message);
        }
        assert_eq!(driver.get(&client, &origin.url("/status/304"), &options).ok(), b"");
        assert_eq!(origin.connections() - before, 1, "{driver:?}");
    }
}

#[test]
fn invalid_request_line_or_field_is_not_sent() {
    let origin = start_origin();
    for driver in DRIVERS {
        for (name, value) in [("X", "a\r\nEvil: 1"), ("X\r\nEvil", "1"), ("X Y", "1"), ("", "1"), ("X", "a\0b")] {
            let mut options = RequestOptions::default();
            options.fields.push((name.into(), value.into()));
            assert_eq!(get(driver, &origin.url("/echo"), &options).exit, 2, "{driver:?} {name:?}");
        }
        let options = RequestOptions { method: "GET / HTTP/1.1\r\nX:".into(), ..RequestOptions::default() };
        assert_eq!(get(driver, &origin.url("/echo"), &options).exit, 2, "{driver:?}");
    }
    assert_eq!(origin.requests(), 0);
}

#[test]
fn error_messages_contain_no_password() {
    for driver in DRIVERS {
        let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let got = get(driver, &format!("http://user:hunter2@{closed}/"), &RequestOptions::default());
        assert_eq!(got.exit, 7);
        assert!(!got.message.contains("hunter2"), "{}", got.message);
    }
    for url in [
        "http://user:hunter2@[::1/",
        "http://user:hunter2@h:99999/",
        "http://user:hunter2@a b/",
        "gopher://u:hunter2@h/",
    ] {
        let run =
            common::run(&Client::new(), common::single_stage(&RequestOptions::default()), common::one_thread(), [url]);
        assert!(!run.reports[0].message.contains("hunter2"), "{}", run.reports[0].message);
    }
}
