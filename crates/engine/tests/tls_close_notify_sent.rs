//! Tests of close_notify (RFC 8446 section 6.1): it is sent to the proxy and to the origin when a
//! connection is closed, but not by a forked child.
#![cfg(unix)]

mod common;

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use common::{DRIVERS, TEST_TIMEOUT, start_origin, trusting_ca};
use haul::{Client, RequestOptions};
use haul_policy::proxy::Proxy;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use testkit::test_certificates::TestCertificates;

fn secured<S: Read + Write>(inner: S, config: &Arc<ServerConfig>) -> StreamOwned<ServerConnection, S> {
    StreamOwned::new(ServerConnection::new(Arc::clone(config)).unwrap(), inner)
}

fn head(from: &mut impl Read) {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(b"\r\n\r\n") {
        from.read_exact(&mut byte).unwrap();
        text.push(byte[0]);
    }
}

/// Reads the connection to its end. Returns an error if it ends without close_notify.
fn end(of: &mut impl Read) -> io::Result<usize> {
    of.read_to_end(&mut Vec::new())
}

/// Starts a server for one request. For each TLS layer of the connection, the returned receiver
/// gets whether the layer ended with close_notify. The outer layer belongs to a proxy.
fn serve(
    identity: &TestCertificates,
    is_proxied: bool,
    reply: &'static str,
) -> (u16, Receiver<Vec<io::Result<usize>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = identity.server_config(&[b"http/1.1"]);
    let (said, ends) = channel();
    thread::spawn(move || {
        let mut outer = secured(listener.accept().unwrap().0, &config);
        head(&mut outer);
        let told = if is_proxied {
            outer.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let mut inner = secured(&mut outer, &config);
            head(&mut inner);
            inner.write_all(reply.as_bytes()).unwrap();
            vec![end(&mut inner), end(&mut outer)]
        } else {
            outer.write_all(reply.as_bytes()).unwrap();
            vec![end(&mut outer)]
        };
        said.send(told).unwrap();
    });
    (port, ends)
}

#[test]
fn closing_a_connection_sends_close_notify_per_layer() {
    let identity = TestCertificates::generate();
    let (trusting, _ca) = trusting_ca(identity.ca_pem());
    for reply in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
    ] {
        for (driver, is_proxied) in DRIVERS.into_iter().flat_map(|driver| [(driver, false), (driver, true)]) {
            let (port, ends) = serve(&identity, is_proxied, reply);
            let mut options = trusting.clone();
            if is_proxied {
                let proxy = options.proxy.insert(Default::default());
                proxy.proxy = Some(Proxy::parse(&format!("https://localhost:{port}")).unwrap());
                proxy.tls = options.tls.clone();
            }
            let client = Client::new();
            assert_eq!(driver.get(&client, &format!("https://localhost:{port}/"), &options).ok(), b"ok");
            drop(client);
            for told in ends.recv_timeout(TEST_TIMEOUT).unwrap() {
                assert_eq!(told.unwrap(), 0, "{driver:?} proxied: {is_proxied} {reply:?}");
            }
        }
    }
}

#[test]
fn forked_child_does_not_close_the_parents_tls() {
    let origin = start_origin();
    let (options, _ca) = trusting_ca(origin.ca_pem());
    let client = Client::new();
    let get = |client: &Client, options: &RequestOptions| {
        common::DriverKind::Blocking.get(client, &origin.https_url("/small"), options).ok().to_vec()
    };
    let first = get(&client, &options);
    // SAFETY: the child drops what it inherited, takes no lock that another thread of this test
    // could hold but those of the allocator, which the C library takes care of, and leaves by
    // `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            drop(client);
            // SAFETY: ends this process without running code of the test harness.
            unsafe { libc::_exit(0) }
        }
        child => {
            let mut status = -1;
            // SAFETY: waits for the child that was just made; `status` is a valid place for its
            // state.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!((waited, status), (child, 0));
        }
    }
    assert_eq!(get(&client, &options), first);
    assert_eq!(origin.connections(), 1);
}
