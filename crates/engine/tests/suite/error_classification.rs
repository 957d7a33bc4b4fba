//! Tests of the classification of errors: whether a request was sent, whether a connection existed,
//! and for which URL the transfer failed.

use crate::common;

use std::io::{self, Read};
use std::net::TcpListener;
use std::time::Duration;

use common::{http2_origin, start_origin, with_prior_knowledge, with_time_limit};
use haul::{Client, Error, ErrorKind, RequestOptions};
use testkit::h1_peer::{H1Peer, ScriptStep};

fn answering(reply: &str) -> H1Peer {
    H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)])
}

fn ok(fields: &str, body: &[u8]) -> H1Peer {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n", body.len());
    H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::Send([head.as_bytes(), body].concat())])
}

fn failed(client: &Client, url: &str) -> Error {
    client.post(url).body("x").send().unwrap_err()
}

#[test]
fn errors_after_sending_are_not_setup_errors() {
    with_time_limit("sent", || {
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

        struct FailingReader(u32);
        impl Read for FailingReader {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                if self.0 > 3 { Err(io::Error::other("it broke")) } else { Ok(buffer.len().min(40_000)) }
            }
        }
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::ReadToEnd]);
        let error = client.post(&peer.url("/")).body_reader(FailingReader(0), None).send().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Read, "{error}");
        assert!(!error.is_setup(), "{error}");

        for url in ["ftp://h/", "http://a b/"] {
            let error = failed(&client, url);
            assert!(error.is_setup() && !error.is_redirect() && !error.is_connect(), "{error}");
            assert!(error.url().is_some(), "{error}");
        }
    });
}

#[test]
fn errors_before_connection_are_connect_errors() {
    with_time_limit("connecting", || {
        // The server accepts connections and sends nothing, so neither TLS nor CONNECT proceeds.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let hasty = Client::builder().connect_timeout(Duration::from_millis(200));
        let proxied = |proxy: &H1Peer| Client::builder().proxy(&proxy.url("")).unwrap().build();
        let error = failed(&hasty.build(), &format!("https://127.0.0.1:{port}/"));
        assert!(error.is_connect() && error.is_timeout() && !error.is_setup(), "{error}");

        let refuses = answering("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
        let error = failed(&proxied(&refuses), "https://h.test/");
        assert_eq!((error.kind(), error.status()), (ErrorKind::Connect, Some(403)), "{error}");
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

        // Another host received the request before.
        let led = answering("HTTP/1.1 307 Away\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
        let error = failed(&Client::new(), &led.url("/"));
        assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
        assert!(!error.is_connect() && error.is_connection(), "{error}");
        let error = Client::builder().timeout(Duration::from_millis(200)).build();
        let error = failed(&error, &format!("http://127.0.0.1:{port}/"));
        assert!(error.is_timeout() && !error.is_connect(), "the request was sent: {error}");
    });
}

#[test]
fn broken_body_error_repeats_and_names_the_url() {
    with_time_limit("bodies", || {
        let client = Client::new();
        let broken = ok("Content-Encoding: gzip\r\n", b"no gzip at all");
        let short = answering("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nxxxx");
        for (peer, kind, of_io) in [
            (&broken, ErrorKind::ContentCoding, io::ErrorKind::InvalidData),
            (&short, ErrorKind::PartialBody, io::ErrorKind::UnexpectedEof),
        ] {
            let url = peer.url("/a");
            let mut response = client.get(&url).send().unwrap();
            let mut rest = Vec::new();
            let first = response.read_to_end(&mut rest).unwrap_err();
            assert!(first.to_string().starts_with(&format!("{url}: ")), "{first}");
            for _ in 0..2 {
                let again = response.read(&mut [0; 10]).unwrap_err();
                assert_eq!((again.kind(), again.to_string()), (of_io, first.to_string()));
                assert_eq!(again.downcast::<Error>().unwrap().kind(), kind);
            }
            assert_eq!(response.bytes().unwrap_err().to_string(), first.to_string());

            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let mut response = client.get(&url).send_async().await.unwrap();
                let error = loop {
                    if let Err(error) = response.chunk().await {
                        break error;
                    }
                };
                assert_eq!(error.to_string(), first.to_string());
                assert_eq!(response.chunk().await.unwrap_err().to_string(), first.to_string());
            });
        }

        struct FullWriter;
        impl io::Write for FullWriter {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let peer = ok("", b"content");
        let mut response = client.get(&peer.url("/")).send().unwrap();
        let error = response.copy_to(&mut FullWriter).unwrap_err();
        assert_eq!((error.kind(), error.url()), (ErrorKind::Write, Some(peer.url("/").as_str())));
        assert_eq!(response.bytes().unwrap(), b"content", "what failed was the writer");
    });
}

#[test]
fn invalid_header_error_names_the_header() {
    let both = [
        (start_origin(), RequestOptions::default()),
        (http2_origin(100), with_prior_knowledge(RequestOptions::default())),
    ];
    for (origin, options) in both {
        let url = origin.url("/small");
        let client = Client::builder().options(|of_client| *of_client = options.clone()).build();
        let of_all = |name: &str, value: &str| {
            let client =
                Client::builder().options(|of_client| *of_client = options.clone()).header(name, value).build();
            client.get(&url).header("X-Good", "1").send()
        };
        for (name, value) in [("bad name", "x"), ("X-Line", "a\r\nb: c")] {
            let before = origin.connections();
            let alone = client.get(&url).header("X-Good", "1").header(name, value).send();
            assert_eq!(origin.connections(), before, "what is given to one request is looked at before");
            for error in [alone.unwrap_err(), of_all(name, value).unwrap_err()] {
                assert!(error.is_setup() && error.to_string().contains(&format!("{name:?}")), "{error}");
                assert_eq!(error.url(), Some(url.as_str()));
                assert!(!error.to_string().contains("b: c"), "a value may be a secret: {error}");
            }
        }
    }
}

#[test]
fn duplicated_error_keeps_the_programs_text() {
    let cause = std::io::Error::other("disk of user");
    let error = haul::Error::with_source(haul::ErrorKind::Write, "no bytes", cause);
    assert_eq!(error.duplicate().to_string(), error.to_string());
}
