//! What errors say of how far it had come: whether anything was sent, whether there was a connection.

mod common;

use std::io::{self, Read};
use std::net::TcpListener;
use std::time::Duration;

use common::bounded;
use haul::{Client, Error, ErrorKind};
use testkit::raw::{RawPeer, Step};

fn answering(reply: &str) -> RawPeer {
    RawPeer::always(vec![Step::ReadHead, Step::send(reply)])
}

fn failed(client: &Client, url: &str) -> Error {
    client.post(url).body("x").send().unwrap_err()
}

#[test]
fn what_was_sent_was_no_mistake_of_the_setup() {
    bounded("sent", || {
        let client = Client::new();
        for (location, kind) in [("ftp://h/", ErrorKind::UnsupportedScheme), ("http://a b/", ErrorKind::Url)] {
            let peer = answering(&format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"));
            let error = failed(&client, &peer.url("/"));
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.is_redirect() && !error.is_setup() && !error.is_connect(), "{error}");
        }
        let error = failed(&client, &answering("SSH-2.0-x\r\n\r\n").url("/"));
        assert_eq!(error.kind(), ErrorKind::UnsupportedScheme, "{error}");
        assert!(!error.is_setup() && !error.is_redirect(), "{error}");

        struct Breaks(u32);
        impl Read for Breaks {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                if self.0 > 3 { Err(io::Error::other("it broke")) } else { Ok(buffer.len().min(40_000)) }
            }
        }
        let peer = RawPeer::always(vec![Step::ReadHead, Step::ReadToEnd]);
        let error = client.post(&peer.url("/")).body_reader(Breaks(0), None).send().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Read, "{error}");
        assert!(!error.is_setup(), "{error}");

        for url in ["ftp://h/", "http://a b/"] {
            let error = failed(&client, url);
            assert!(error.is_setup() && !error.is_redirect() && !error.is_connect(), "{error}");
        }
    });
}

#[test]
fn without_a_connection_nothing_was_sent() {
    bounded("connecting", || {
        // It takes connections and says nothing: neither TLS nor CONNECT gets on.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let hasty = Client::builder().connect_timeout(Duration::from_millis(200));
        let proxied = |proxy: &RawPeer| Client::builder().proxy(&proxy.url("")).unwrap().build();
        let error = failed(&hasty.build(), &format!("https://127.0.0.1:{port}/"));
        assert!(error.is_connect() && error.is_timeout() && !error.is_setup(), "{error}");

        let refuses = answering("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
        let error = failed(&proxied(&refuses), "https://h.test/");
        assert_eq!(error.kind(), ErrorKind::Receive, "{error}");
        assert!(error.is_connect(), "{error}");

        let clients = [
            (ErrorKind::CaFile, Client::builder().options(|o| o.tls.ca_file = Some("/nonexistent".into()))),
            (ErrorKind::CrlFile, Client::builder().options(|o| o.tls.crl_file = Some("/nonexistent".into()))),
        ];
        for (kind, client) in clients {
            let error = failed(&client.build(), &format!("https://127.0.0.1:{port}/"));
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.is_connect() && error.is_tls(), "{error}");
        }

        // Another host took the request before.
        let led = answering("HTTP/1.1 307 Away\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
        let error = failed(&Client::new(), &led.url("/"));
        assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
        assert!(!error.is_connect() && error.is_connection(), "{error}");
        let error = Client::builder().timeout(Duration::from_millis(200)).build();
        let error = failed(&error, &format!("http://127.0.0.1:{port}/"));
        assert!(error.is_timeout() && !error.is_connect(), "the request was sent: {error}");
    });
}
