//! Tests of response heads that are cut off or faulty: the lines before the fault are returned,
//! however the input is cut. Also tests deviations from RFC 9112 that the user allows.

use haul_proto::ResponseHead;
use haul_proto::h1::{H1Config, H1Deviations, H1Event, H1Machine, RequestHead};
use haul_proto::time::MonotonicTimestamp;

/// Passes `wire` to a machine in pieces of `piece` bytes, and then the end of the input. Returns
/// the result of `partial_head` after the failure; `None` if nothing fails or there are no lines.
fn partial(wire: &[u8], piece: usize) -> Option<ResponseHead> {
    let mut machine = H1Machine::new(H1Config::default());
    machine.enqueue(MonotonicTimestamp(0), &RequestHead { target: "/", ..RequestHead::default() }).unwrap();
    machine.advance_output(machine.output().len());
    let mut unused = Vec::new();
    for bytes in wire.chunks(piece) {
        unused.extend_from_slice(bytes);
        loop {
            match machine.step(MonotonicTimestamp(0), &mut unused) {
                Ok(step) => {
                    unused.drain(..step.consumed);
                    match step.event {
                        H1Event::NeedInput => break,
                        H1Event::Complete { .. } => return None,
                        _ => {}
                    }
                }
                Err(_) => return machine.partial_head(&unused),
            }
        }
    }
    assert!(machine.partial_head(&unused).is_none(), "the machine still waits");
    machine.end_of_input(true).err()?;
    machine.partial_head(&unused)
}

/// Checks that the result of [`partial`] is equal for every size of the pieces. Returns this result
/// as text.
fn raw(wire: &[u8]) -> Option<String> {
    let text = |head: ResponseHead| String::from_utf8_lossy(head.raw()).into_owned();
    let whole = partial(wire, wire.len().max(1)).map(text);
    for piece in 1..wire.len() {
        assert_eq!(partial(wire, piece).map(text), whole, "{} in pieces of {piece}", wire.escape_ascii());
    }
    whole
}

#[test]
fn head_lines_before_a_fault_are_returned() {
    let good = "HTTP/1.1 200 OK\r\nA: b\r\nC:\r\n";
    for fault in [
        "Content-Length: -6\r\nD: e\r\n\r\n",
        "Content-Length : 5\r\n\r\n",
        "Transfer-Encoding: chunked, other\r\n\r\n",
        "D: \0\r\n\r\n",
        "D e\r\n\r\n",
        "D: e\rf\r\n\r\n",
        "D: e",
        "",
    ] {
        assert_eq!(raw(format!("{good}{fault}").as_bytes()).as_deref(), Some(good), "{fault:?}");
    }
    let head = partial(format!("{good}D: \0\r\n\r\n").as_bytes(), 7).unwrap();
    assert_eq!((head.status(), head.get("a"), head.get("d")), (200, Some(&b"b"[..]), None));
}

#[test]
fn partial_head_excludes_the_interim_response() {
    let wire = b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nC: d\r\nE\0: f\r\n\r\n";
    assert_eq!(raw(wire).as_deref(), Some("HTTP/1.1 200 OK\r\nC: d\r\n"));
}

#[test]
fn partial_head_is_none_outside_of_a_head() {
    for wire in [
        &b""[..],
        b"\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200 O\0K\r\nA: b\r\n\r\n",
        b"HTTP/2 200\r\nA: b\r\n\r\n",
        // The head is right, and the body is not.
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    ] {
        assert_eq!(raw(wire), None, "{}", wire.escape_ascii());
    }
}

#[test]
fn partial_head_of_many_lines_takes_bounded_time() {
    let many = ["HTTP/1.1 200 OK\r\n".to_owned(), "A: b\r\n".repeat(20_000), "C: \0\r\n\r\n".to_owned()].concat();
    let head = partial(many.as_bytes(), many.len()).expect("the lines within the limits");
    assert!(head.raw().len() < many.len());
}

#[test]
fn tolerant_machine_decodes_repeated_chunked_once() {
    let wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    for tolerant in [false, true] {
        let deviations = H1Deviations { tolerant, ..H1Deviations::default() };
        let mut machine = H1Machine::new(H1Config { deviations, ..H1Config::default() });
        machine.enqueue(MonotonicTimestamp(0), &RequestHead { target: "/", ..RequestHead::default() }).unwrap();
        machine.advance_output(machine.output().len());
        let mut unused = wire.to_vec();
        let mut body = Vec::new();
        let outcome = loop {
            match machine.step(MonotonicTimestamp(0), &mut unused) {
                Ok(step) => {
                    if let H1Event::Body { range, .. } = &step.event {
                        body.extend_from_slice(&unused[range.clone()]);
                    }
                    unused.drain(..step.consumed);
                    if let H1Event::Complete { reuse, .. } = step.event {
                        break Ok(reuse.is_ok());
                    }
                }
                Err(error) => break Err(error.to_string()),
            }
        };
        match tolerant {
            true => assert_eq!((outcome, &*body), (Ok(false), &b"ok"[..]), "the connection is not used again"),
            false => assert!(outcome.is_err(), "{outcome:?}"),
        }
    }
}

#[test]
fn verbatim_fields_cannot_inject_lines_or_framing() {
    let deviations = H1Deviations { verbatim_fields: true, ..H1Deviations::default() };
    let machine = || H1Machine::new(H1Config { deviations, ..H1Config::default() });
    let send = |fields: &[(&str, &[u8])]| {
        let mut machine = machine();
        let request = RequestHead { target: "/", fields, ..RequestHead::default() };
        machine.enqueue(MonotonicTimestamp(0), &request).map(|_| String::from_utf8_lossy(machine.output()).into_owned())
    };
    assert_eq!(send(&[("Odd name ", b" b ")]).unwrap(), "GET / HTTP/1.1\r\nOdd name :  b \r\n\r\n");
    for (name, value) in [
        ("", &b"a"[..]),
        ("A\r\nB", b"a"),
        ("A\nB", b"a"),
        ("A\0", b"a"),
        ("A:B", b"a"),
        ("A", b"a\r\nB: c"),
        ("A", b"a\0"),
        ("Content-Length ", b"5"),
        (" transfer_encoding", b"chunked"),
        ("X Content Length", b"5"),
    ] {
        assert!(send(&[(name, value)]).is_err(), "{name:?}");
    }
}

#[test]
fn requests_follow_the_peers_http_version() {
    for (follows_http10, expected) in [(false, "HTTP/1.1"), (true, "HTTP/1.0")] {
        let deviations = H1Deviations { follows_http10, ..H1Deviations::default() };
        let mut machine = H1Machine::new(H1Config { deviations, ..H1Config::default() });
        let request = RequestHead { target: "/", ..RequestHead::default() };
        machine.enqueue(MonotonicTimestamp(0), &request).unwrap();
        machine.advance_output(machine.output().len());
        let mut wire = b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n".to_vec();
        loop {
            let step = machine.step(MonotonicTimestamp(0), &mut wire).unwrap();
            wire.drain(..step.consumed);
            if matches!(step.event, H1Event::Complete { .. }) {
                break;
            }
        }
        machine.enqueue(MonotonicTimestamp(0), &request).unwrap();
        assert!(machine.output().starts_with(format!("GET / {expected}\r\n").as_bytes()));
    }
}

#[test]
fn lines_stay_available_after_further_steps() {
    let mut machine = H1Machine::new(H1Config::default());
    machine.enqueue(MonotonicTimestamp(0), &RequestHead { target: "/", ..RequestHead::default() }).unwrap();
    machine.advance_output(machine.output().len());
    let mut wire = b"HTTP/1.1 200 OK\r\nA: b\r\nD e\r\n\r\n".to_vec();
    assert!(machine.step(MonotonicTimestamp(0), &mut wire).is_err());
    let reason = machine.close_reason();
    let lines = |machine: &H1Machine| machine.partial_head(&wire.clone()).map(|head| head.raw().to_vec());
    let first = lines(&machine);
    assert_eq!(first.as_deref(), Some(&b"HTTP/1.1 200 OK\r\nA: b\r\n"[..]));
    assert!(machine.step(MonotonicTimestamp(0), &mut wire.clone()).is_err(), "the connection is closed");
    assert_eq!((lines(&machine), machine.close_reason()), (first, reason));
}

/// Content-Length has no meaning in an interim head. In a final head, this one would be a fault.
#[test]
fn interim_head_lines_before_a_fault_are_returned() {
    let lines = "Content-Length: x\r\nA: b\r\n";
    let early = format!("HTTP/1.1 103 Early Hints\r\n{lines}");
    assert_eq!(raw(format!("{early}D\0: e\r\n\r\n").as_bytes()), Some(early));
    let wire = format!("HTTP/1.1 200 OK\r\n{lines}D\0: e\r\n\r\n");
    assert_eq!(raw(wire.as_bytes()).as_deref(), Some("HTTP/1.1 200 OK\r\n"));
}
