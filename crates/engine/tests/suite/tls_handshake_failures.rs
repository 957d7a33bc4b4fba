//! Tests of TLS over sockets with both drivers: key updates, broken and stalled handshakes.

use crate::common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use common::{DRIVERS, trusting_ca};
use haul::{Client, ErrorKind, RequestOptions};
use rustls::ServerConnection;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::test_certificates::TestCertificates;

/// Checks that the client answers a key update that the server requests in the middle of a body
/// (RFC 8446 section 4.6.3). The server continues only after the client has answered.
#[test]
fn key_update_is_answered_while_awaiting_response() {
    let identity = TestCertificates::for_names(&["localhost"]);
    for driver in DRIVERS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let config = identity.server_config(&[]);
        thread::spawn(move || {
            let mut socket = listener.accept().unwrap().0;
            let mut tls = ServerConnection::new(config).unwrap();
            let mut request = [0; 4096];
            let count = rustls::Stream::new(&mut tls, &mut socket).read(&mut request).unwrap();
            assert!(count > 0);
            let mut say = |tls: &mut ServerConnection, text: &[u8]| {
                tls.writer().write_all(text).unwrap();
                while tls.wants_write() {
                    tls.write_tls(&mut socket).unwrap();
                }
                socket.try_clone().unwrap()
            };
            say(&mut tls, b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbef");
            tls.refresh_traffic_keys().unwrap();
            let mut answers = say(&mut tls, b"");
            assert!(answers.read(&mut request).unwrap() > 0, "an answer, which is a record");
            say(&mut tls, b"ore");
        });
        let (options, _ca) = trusting_ca(identity.ca_pem());
        assert_eq!(driver.get(&Client::new(), &format!("https://localhost:{port}/"), &options).ok(), b"before");
    }
}

#[test]
fn broken_handshake_is_retried_for_any_method() {
    for driver in DRIVERS {
        for method in ["GET", "POST"] {
            let peer = H1Peer::always(vec![ScriptStep::Close]);
            let mut options = common::retrying(2);
            options.method = method.into();
            let url = format!("https://127.0.0.1:{}/", peer.addr().port());
            let got = driver.get(&Client::new(), &url, &options);
            assert_eq!(
                (got.kind, got.facts.retries),
                (Some(ErrorKind::TlsHandshake), 2),
                "{driver:?}: {}",
                got.message
            );
            assert_eq!(peer.connections(), 3);
        }
    }
}

#[test]
fn stalled_handshake_error_is_equal_in_both_drivers() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let mut direct = RequestOptions::default();
    direct.connect.timeout = Duration::from_millis(100);
    let by_proxy = common::with_proxy(&format!("http://127.0.0.1:{port}"), &direct);
    for driver in DRIVERS {
        for (options, phase) in [
            (&direct, "the TLS handshake with 127.0.0.1 timed out"),
            (&by_proxy, "the CONNECT request to the proxy timed out"),
        ] {
            let got = driver.get(&Client::new(), &format!("https://127.0.0.1:{port}/"), options);
            assert_eq!(got.kind, Some(ErrorKind::Timeout), "{driver:?}: {}", got.message);
            assert!(got.message.contains(phase), "{driver:?}: {}", got.message);
        }
    }
}
