//! Tests of the scripted HTTP/3 peer.

#[path = "common/h3_client.rs"]
mod h3_client;

use h3_client::H3Client;
use testkit::h3_peer::{self, H3Peer};

#[test]
fn scripted_peer_answers_requests() {
    let peer = H3Peer::start(|_, conn| {
        conn.greet(&[(6, 10_000)])?;
        let request = conn.request()?;
        // The crate h3 sends a frame of a reserved type after it.
        assert!(conn.read_to_end(request.stream)?.starts_with(&h3_peer::data(b"content")));
        let interim = h3_peer::headers(&[(":status", "103")]);
        conn.send(request.stream, [interim, h3_peer::headers(&[(":status", "200")])].concat())?;
        conn.send(request.stream, h3_peer::data(b"hello"))?;
        conn.finish(request.stream)?;
        assert_eq!(conn.stop_sending_code(request.stream)?, None);
        conn.update_keys();
        conn.wait_closed()
    });
    let client = H3Client::connect(peer.addr(), peer.ca_pem()).unwrap();
    let reply = client.runtime.block_on(async {
        let request = http::Request::post("https://localhost/").body(()).unwrap();
        let mut stream = client.requests.clone().send_request(request).await.unwrap();
        stream.send_data("content".into()).await.unwrap();
        stream.finish().await.unwrap();
        assert_eq!(stream.recv_response().await.unwrap().status(), 103);
        h3_client::read(stream).await.unwrap()
    });
    assert_eq!((reply.head.status().as_u16(), reply.text()), (200, "hello".to_owned()));
    assert_eq!(peer.requests()[0].stream, 0);
    assert!(peer.saw(|stream| stream.bytes.starts_with(&[0, 4])), "the client's SETTINGS");
    client.connection.close(0x100u32.into(), b"");
    assert_eq!((peer.close_code(0), peer.connections()), (Some(0x100), 1));
}

#[test]
fn client_answers_violations_with_error_code() {
    let peer = H3Peer::start(|number, conn| {
        let control = conn.greet(&[])?;
        match number {
            0 => conn.finish(control)?,
            1 => conn.send(control, h3_peer::settings(&[]))?,
            _ => conn.send(control, h3_peer::data(b""))?,
        }
        conn.wait_closed()
    });
    for (number, code) in [0x104, 0x105, 0x105].into_iter().enumerate() {
        let client = H3Client::connect(peer.addr(), peer.ca_pem()).unwrap();
        assert_eq!(peer.close_code(number), Some(code), "{number}");
        drop(client);
    }
}

#[test]
fn streams_can_be_reset_and_stopped() {
    let peer = H3Peer::start(|_, conn| {
        conn.greet(&[])?;
        let request = conn.request()?;
        conn.stop_sending(request.stream, 0x10c)?;
        conn.reset(request.stream, 0x10b)?;
        conn.wait_closed()
    });
    let client = H3Client::connect(peer.addr(), peer.ca_pem()).unwrap();
    let error = client.get("/").err().expect("a refused request");
    assert!(error.to_string().contains("H3_REQUEST_REJECTED"), "{error}");
}
