//! Tests of the accessors of a field section, on the trailers of a chunked response.

use haul_proto::h1::{H1Config, H1Event, H1Machine, RequestHead};
use haul_proto::response_head::ProtocolVersion;
use haul_proto::time::MonotonicTimestamp;
use haul_proto::{Fields, ResponseHead};

/// Returns the trailers of a response whose trailer section is `section`.
fn trailers(section: &str) -> Option<Fields> {
    let mut machine = H1Machine::new(H1Config::default());
    machine.enqueue(MonotonicTimestamp(0), &RequestHead { target: "/", ..RequestHead::default() }).unwrap();
    machine.advance_output(machine.output().len());
    let mut wire = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{section}\r\n").into_bytes();
    loop {
        let step = machine.step(MonotonicTimestamp(0), &mut wire).expect("a valid response");
        if let H1Event::Complete { trailers, .. } = step.event {
            return trailers;
        }
        wire.drain(..step.consumed);
    }
}

#[test]
fn trailers_are_found_by_name_and_in_order() {
    let fields = trailers("X-A: 1\r\nx-b: 2\r\nx-a: 3\r\n").expect("there are trailers");
    assert_eq!((fields.len(), fields.is_empty()), (3, false));
    assert_eq!(fields.iter().collect::<Vec<_>>(), [("X-A", &b"1"[..]), ("x-b", b"2"), ("x-a", b"3")]);
    let bytes: Vec<_> = fields.iter_bytes().collect();
    assert_eq!(bytes, [(&b"X-A"[..], &b"1"[..]), (b"x-b", b"2"), (b"x-a", b"3")]);
    assert_eq!(fields.get("x-A"), Some(&b"1"[..]));
    assert_eq!(fields.get("x-c"), None);
    assert_eq!(fields.get_all("x-a").collect::<Vec<_>>(), [b"1", b"3"]);
    assert_eq!(fields.raw(), b"X-A: 1\r\nx-b: 2\r\nx-a: 3\r\n\r\n");
    assert_eq!(format!("{fields:?}"), r#"{"X-A": 1 bytes, "x-b": 1 bytes, "x-a": 1 bytes}"#);
    assert!(trailers("").is_none());
    assert!(Fields::default().is_empty());
}

#[test]
fn raw_http2_head_is_parsed_without_a_reason() {
    let head = ResponseHead::from_raw(b"HTTP/2 200 \r\n\r\n").expect("a head");
    assert_eq!((head.version(), head.status(), head.reason()), (ProtocolVersion::Http2, 200, &b""[..]));
    assert_eq!(head.fields().count(), 0);
    let head = ResponseHead::from_raw(b"HTTP/3 404 \r\nx: y\r\n\r\n").expect("a head");
    assert_eq!((head.version(), head.status(), head.reason()), (ProtocolVersion::Http3, 404, &b""[..]));
    assert_eq!(head.get("X"), Some(&b"y"[..]));
    for raw in ["HTTP/2 20", "HTTP/2 99 \r\n\r\n", "HTTP/2 099 \r\n\r\n", "HTTP/2 200\r\n\r\n", "HTTP/2 200 \r\n\r\nx"]
    {
        assert!(ResponseHead::from_raw(raw.as_bytes()).is_none(), "{raw:?}");
    }
}
