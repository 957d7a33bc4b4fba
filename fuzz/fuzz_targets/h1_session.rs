//! Fuzzes an HTTP/1 connection with calls in any order: nothing panics, and the machine's answers
//! about its state are consistent.
//! The input is a sequence of operations of one byte each. An operation that needs bytes takes them
//! from the input after it.
#![no_main]

#[path = "support/h1.rs"]
#[allow(dead_code, reason = "only the limits are used")]
mod support;

use haul_proto::h1::{BodyLength, H1Config, H1Deviations, H1Event, H1Machine, RequestHead};
use haul_proto::time::MonotonicTimestamp;
use libfuzzer_sys::fuzz_target;

/// The part of the input that was not used yet: operations and their bytes.
struct H1Operations<'a>(&'a [u8]);

impl<'a> H1Operations<'a> {
    fn one(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn many(&mut self) -> &'a [u8] {
        let count = usize::from(self.one().unwrap_or(0)).min(self.0.len());
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }
}

fuzz_target!(|data: &[u8]| {
    let mut data = H1Operations(data);
    // As for curl's persona, for half of the inputs.
    let is_curl = data.0.last().is_some_and(|last| last & 1 == 1);
    let deviations = H1Deviations {
        tolerant: is_curl,
        follows_http10: is_curl,
        verbatim_fields: is_curl,
        ..H1Deviations::default()
    };
    let config = H1Config { limits: support::limits(), max_pipeline: 3, deviations, ..H1Config::default() };
    let mut conn = H1Machine::new(config);
    let mut now = MonotonicTimestamp(0);
    let mut wire = Vec::new();
    while let Some(operation) = data.one() {
        match operation % 11 {
            0 => {
                let pick = data.one().unwrap_or(0);
                enqueue(&mut conn, now, pick);
            }
            1 => {
                let bytes = data.many();
                let credit = conn.body_credit();
                if let Ok(taken) = conn.send_body(bytes) {
                    assert!(taken <= bytes.len());
                    assert!(taken == 0 || taken as u64 <= credit.expect("a body was expected"));
                }
            }
            2 => {
                let _ = conn.finish_body(&[("X-Trailer", data.many())]);
            }
            3 => conn.advance_output(usize::from(data.one().unwrap_or(0)).min(conn.output().len())),
            4 => conn.advance_output(conn.output().len()),
            5 => {
                wire.extend_from_slice(data.many());
                read(&mut conn, now, &mut wire);
            }
            6 => {
                now = MonotonicTimestamp(now.0 + u64::from(data.one().unwrap_or(0)) * 10_000_000);
                conn.handle_timeout(now);
                assert!(conn.poll_timeout().is_none_or(|deadline| deadline > now));
            }
            7 => {
                if let Some(left) = conn.direct_body() {
                    let done = conn.advance_body(left.min(u64::from(data.one().unwrap_or(0))));
                    assert!(matches!(done, None | Some(H1Event::Complete { .. })));
                }
            }
            8 => {
                let bytes = data.many();
                let filled = conn.fill_body(usize::from(data.one().unwrap_or(0)), |room| {
                    let n = bytes.len().min(room.len());
                    room[..n].copy_from_slice(&bytes[..n]);
                    n
                });
                assert!(filled.is_ok_and(|n| n <= bytes.len()) || filled.is_err());
            }
            9 => {
                if conn.may_begin_chunk() {
                    conn.begin_chunk(u64::from(data.one().unwrap_or(0)) + 1);
                    assert!(conn.is_in_chunk() && !conn.may_begin_chunk());
                }
                conn.advance_direct_body(conn.direct_body_credit().min(u64::from(data.one().unwrap_or(0))));
            }
            _ => {
                let clean = data.one().unwrap_or(0) & 1 == 0;
                let ended = conn.end_of_input(clean);
                assert!(matches!(ended, Err(_) | Ok(H1Event::Complete { reuse: Err(_), .. })));
                assert!(conn.close_reason().is_some());
            }
        }
        check(&conn);
    }
});

fn enqueue(conn: &mut H1Machine, now: MonotonicTimestamp, pick: u8) {
    const METHODS: [&str; 4] = ["GET", "HEAD", "POST", "CONNECT"];
    const FIELDS: [&[(&str, &[u8])]; 4] =
        [&[], &[("Host", b"h")], &[("Connection", b"close")], &[("Connection", b"upgrade"), ("Upgrade", b"x")]];
    const BODIES: [BodyLength; 4] =
        [BodyLength::None, BodyLength::Known(0), BodyLength::Known(300), BodyLength::Chunked];
    let part = |shift: u8| usize::from(pick >> shift & 3);
    let request = RequestHead {
        method: METHODS[part(0)],
        target: "/",
        fields: FIELDS[part(2)],
        body: BODIES[part(4)],
        expect_continue: part(6) > 1,
        ..RequestHead::default()
    };
    let lacks_chunks = conn.sends_http10() && request.body == BodyLength::Chunked;
    let possible = conn.can_enqueue() && !lacks_chunks;
    let before = conn.output().len();
    let result = conn.enqueue(now, &request);
    assert_eq!(result.is_ok(), possible, "{request:?}: {result:?}");
    assert_eq!(conn.output().len() > before, possible);
}

fn read(conn: &mut H1Machine, now: MonotonicTimestamp, wire: &mut Vec<u8>) {
    loop {
        let unanswered = conn.unanswered().count();
        let Ok(step) = conn.step(now, wire) else {
            assert!(conn.close_reason().is_some() && !conn.can_enqueue());
            if let Some(head) = conn.partial_head(wire) {
                let lines = head.raw();
                assert!(lines.ends_with(b"\n") && lines.len() <= wire.len());
            }
            wire.clear();
            return;
        };
        assert!(step.consumed <= wire.len());
        if let H1Event::Body { range, .. } = &step.event {
            assert!(!range.is_empty() && range.end <= step.consumed);
        }
        wire.drain(..step.consumed);
        match step.event {
            H1Event::NeedInput => return,
            H1Event::Complete { reuse, .. } => {
                assert_eq!(conn.unanswered().count(), unanswered - 1);
                assert_eq!(reuse.err(), conn.close_reason());
            }
            H1Event::Tunnel { .. } => {
                wire.clear();
                return;
            }
            _ => {}
        }
    }
}

fn check(conn: &H1Machine) {
    assert_eq!(conn.current_request(), conn.unanswered().next());
    assert!(!(conn.is_idle() && conn.close_reason().is_some()));
    assert!(!(conn.can_enqueue() && conn.close_reason().is_some()));
    assert!(conn.output().len() <= 64 * 1024 + 3 * 256);
    assert!(conn.body_credit().is_none() || conn.current_request().is_some(), "a body without a request");
}
