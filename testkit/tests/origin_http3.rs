//! Tests of the origin over HTTP/3.

#[path = "common/h3_client.rs"]
mod h3_client;

use std::time::Duration;

use h3_client::{H3Client, read};
use http::{HeaderMap, HeaderValue, Request};
use quinn::ConnectionError;
use testkit::http3::{Http3Fault, Http3Settings};
use testkit::origin::{Origin, OriginBuilder};

fn start(settings: Http3Settings) -> Origin {
    Origin::builder().http3(settings).start().unwrap()
}

fn connect(origin: &Origin) -> Result<H3Client, ConnectionError> {
    H3Client::connect(origin.https_addr(), origin.ca_pem())
}

#[test]
fn routes_answer_over_http3() {
    let origin = start(Http3Settings::new());
    let client = connect(&origin).unwrap();
    let reply = client.get("/bytes/300000").unwrap();
    assert_eq!((reply.head.status().as_u16(), reply.field("content-length")), (200, Some("300000")));
    assert_eq!(reply.body, origin.pattern().slice(0, 300_000));
    let part =
        client.fetch(Request::get("https://localhost/bytes/100").header("range", "bytes=10-19"), b"", None).unwrap();
    assert_eq!((part.head.status().as_u16(), part.body), (206, origin.pattern().slice(10, 10)));
    let head = client.fetch(Request::head("https://localhost/bytes/100"), b"", None).unwrap();
    assert_eq!((head.field("content-length"), head.body.len()), (Some("100"), 0));
    assert_eq!(client.get("/status/204").unwrap().field("content-length"), None);
    assert_eq!(client.get("/redirect/302?to=/small").unwrap().field("location"), Some("/small"));
    assert_eq!((origin.connections(), origin.quic_connections(), origin.requests()), (1, 1, 5));
    assert_eq!(origin.log()[0].version, "HTTP/3.0");
    let (received, sent) = origin.datagrams();
    assert!(received > 3 && sent > 200, "{received} {sent}");
}

#[test]
fn content_and_trailers_arrive_in_both_directions() {
    let origin = start(Http3Settings::new());
    let client = connect(&origin).unwrap();
    let content = origin.pattern().slice(0, 500_000);
    let trailers = HeaderMap::from_iter([("x-sum".parse().unwrap(), HeaderValue::from_static("7"))]);
    let request = Request::post("https://localhost/echo").header("expect", "100-continue");
    let runtime = &client.runtime;
    let reply = runtime.block_on(async {
        let mut stream = client.requests.clone().send_request(request.body(()).unwrap()).await.unwrap();
        assert_eq!(stream.recv_response().await.unwrap().status(), 100);
        stream.send_data(content.clone().into()).await.unwrap();
        stream.send_trailers(trailers).await.unwrap();
        stream.finish().await.unwrap();
        read(stream).await.unwrap()
    });
    let text = reply.text();
    assert!(text.contains("\"body_len\":500000") && text.contains("\"version\":\"HTTP/3.0\""));
    assert_eq!(origin.log()[0].body, content);
    assert_eq!(origin.log()[0].trailers, [("x-sum".to_owned(), "7".to_owned())]);
    let chunked = client.get("/chunked/70000?trailer=1").unwrap();
    assert_eq!(chunked.body, origin.pattern().slice(0, 70_000));
    assert_eq!(chunked.trailers.unwrap()["x-total"], "70000");
}

#[test]
fn interim_and_early_responses_are_sent() {
    let origin = start(Http3Settings::new());
    let client = connect(&origin).unwrap();
    client.runtime.block_on(async {
        let mut requests = client.requests.clone();
        let request = |path: &str| Request::post(format!("https://localhost{path}")).body(()).unwrap();
        let mut stream = requests.send_request(request("/hints/2/small/5")).await.unwrap();
        stream.finish().await.unwrap();
        for _ in 0..2 {
            assert_eq!(stream.recv_response().await.unwrap().status(), 103);
        }
        assert_eq!(read(stream).await.unwrap().text(), "small 5\n");
        let stream = requests.send_request(request("/early/413")).await.unwrap();
        assert_eq!(read(stream).await.unwrap().head.status(), 413);
    });
}

#[test]
fn retry_and_key_updates_do_not_disturb_requests() {
    let origin = start(Http3Settings::new().retry().key_updates());
    let client = connect(&origin).unwrap();
    for number in 0..20 {
        assert_eq!(client.get(&format!("/small/{number}")).unwrap().text(), format!("small {number}\n"));
    }
    assert_eq!((origin.quic_retries(), origin.connections()), (1, 1));
}

#[test]
fn connection_faults_end_or_block_the_handshake() {
    let fails = |fault| connect(&start(Http3Settings::new().fault(fault))).err().expect("no connection").to_string();
    assert!(fails(Http3Fault::Refused).contains("refused"), "{}", fails(Http3Fault::Refused));
    assert_eq!(fails(Http3Fault::VersionNegotiation), ConnectionError::VersionMismatch.to_string());
    assert!(fails(Http3Fault::WrongAlpn).contains("120"), "{}", fails(Http3Fault::WrongAlpn));

    let closing = start(Http3Settings::new().fault(Http3Fault::Closed(0x102)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let reason = runtime.block_on(async {
        let endpoint = h3_client::endpoint(closing.ca_pem());
        endpoint.connect(closing.https_addr(), "localhost").unwrap().await.unwrap().closed().await
    });
    assert!(matches!(reason, ConnectionError::ApplicationClosed(close) if close.error_code.into_inner() == 0x102));
    let mute = start(Http3Settings::new().fault(Http3Fault::NoHttp3));
    assert!(connect(&mute).unwrap().connection.close_reason().is_none());
}

#[test]
fn silent_http3_server_answers_no_datagram() {
    let origin = start(Http3Settings::new().fault(Http3Fault::Silent));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let endpoint = h3_client::endpoint(origin.ca_pem());
        let connecting = endpoint.connect(origin.https_addr(), "localhost").unwrap();
        tokio::time::timeout(Duration::from_millis(50), connecting).await.expect_err("no answer");
    });
    assert_eq!(origin.datagrams(), (0, 0));
}

#[test]
fn restarted_server_resets_old_connections() {
    let key = [7; 64];
    let first = start(Http3Settings::new().reset_key(key));
    let addr = first.https_addr();
    let client = connect(&first).unwrap();
    client.get("/small").unwrap();
    drop(first);
    let _second = Origin::builder().https_port(addr.port()).http3(Http3Settings::new().reset_key(key)).start().unwrap();
    let _ = client.get("/small").err().expect("the connection is gone");
    assert_eq!(client.connection.close_reason(), Some(ConnectionError::Reset));
}

#[test]
fn resumed_sessions_are_not_full_handshakes() {
    let origin = start(Http3Settings::new());
    let client = connect(&origin).unwrap();
    client.get("/small").unwrap();
    client.runtime.block_on(async {
        let again = client.endpoint.connect(origin.https_addr(), "localhost").unwrap().await.unwrap();
        // The server's control stream arrives after the server has completed the handshake.
        again.accept_uni().await.unwrap();
    });
    assert_eq!((origin.quic_connections(), origin.full_handshakes()), (2, 1));
}

#[test]
fn tls_port_can_refuse_tcp() {
    let origin = |builder: OriginBuilder| builder.http3(Http3Settings::new()).start().unwrap();
    let refusing = origin(Origin::builder().tls_over_tcp(false));
    std::net::TcpStream::connect(refusing.https_addr()).unwrap_err();
    assert_eq!(connect(&refusing).unwrap().get("/small").unwrap().text(), "small\n");
    std::net::TcpStream::connect(origin(Origin::builder()).https_addr()).unwrap();
}
