//! Fuzzes an HTTP/3 connection with calls in any order, on any stream. Nothing panics, limits hold,
//! and the machine's list of open requests agrees with the model's.
//!
//! The input is a sequence of operations of one byte each. An operation that needs bytes takes them
//! from the input after it.
#![no_main]

#[path = "support/h3.rs"]
#[allow(dead_code, reason = "each target uses its own part")]
mod support;

use haul_proto::ResponseError;
use haul_proto::h3::{
    BodyLength, H3Config, H3Error, H3ErrorCode, H3Event, H3Machine, H3SendStream, H3StreamAbortToSend, RequestId,
};
use haul_proto::time::MonotonicTimestamp;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;
use support::{config, request};

/// The part of the input that was not used yet: operations and their bytes.
struct H3Operations<'a>(&'a [u8]);

impl<'a> H3Operations<'a> {
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

    /// Returns the id of one of the first few requests, or an id that no request has.
    fn id(&mut self) -> RequestId {
        RequestId(u64::from(self.one().unwrap_or(0) % 8) * 4)
    }

    fn send_stream(&mut self) -> H3SendStream {
        match self.one().unwrap_or(0) % 8 {
            0 => H3SendStream::Control,
            1 => H3SendStream::QpackEncoder,
            2 => H3SendStream::QpackDecoder,
            _ => H3SendStream::Request(self.id()),
        }
    }
}

/// A connection, with the model's list of open requests.
struct H3Session {
    conn: H3Machine,
    now: MonotonicTimestamp,
    open: BTreeSet<RequestId>,
}

fuzz_target!(|data: &[u8]| {
    let mut data = H3Operations(data);
    let conn = H3Machine::new(H3Config { max_streams: 6, ..config() });
    let mut session = H3Session { conn, now: MonotonicTimestamp(0), open: BTreeSet::new() };
    while let Some(operation) = data.one() {
        session.apply(operation, &mut data);
        session.check();
    }
});

impl H3Session {
    fn apply(&mut self, operation: u8, data: &mut H3Operations<'_>) {
        let conn = &mut self.conn;
        match operation % 13 {
            0 => self.enqueue(data.id().0, data.one().unwrap_or(0)),
            1 => {
                let (id, bytes) = (data.id(), data.many());
                let credit = conn.body_credit(id);
                if let Ok(taken) = conn.send_body(id, bytes) {
                    assert!(taken as u64 <= credit.expect("a body was expected"));
                }
            }
            2 => {
                let _ = conn.finish_body(data.id(), &[("X-Trailer", data.many())]);
            }
            3 => {
                let taken = usize::from(data.one().unwrap_or(0));
                if let Some(output) = conn.next_output() {
                    let (stream, taken) = (output.stream, taken.min(output.bytes.len()));
                    conn.advance_output(stream, taken);
                }
            }
            4 => support::drain_output(conn),
            5 => conn.block_output(data.send_stream()),
            6 => conn.unblock_output(data.send_stream()),
            7 => {
                let pick = data.one().unwrap_or(0);
                self.read(u64::from(pick & 0x1f), data.many(), pick & 0xc0 == 0xc0);
            }
            // A frame whose header is well formed.
            8 => {
                let (stream, kind) = (u64::from(data.one().unwrap_or(0) & 0x1f), data.one().unwrap_or(0) % 0x22);
                let payload = data.many();
                let length = payload.len().min(63);
                self.read(stream, &[&[kind, length as u8], &payload[..length]].concat(), false);
            }
            9 => {
                self.now = MonotonicTimestamp(self.now.0 + u64::from(data.one().unwrap_or(0)) * 10_000_000);
                conn.handle_timeout(self.now);
                assert!(conn.poll_timeout().is_none_or(|deadline| deadline > self.now));
            }
            10 => {
                let id = data.id();
                assert_eq!(conn.reset(id, H3ErrorCode::REQUEST_CANCELLED), self.open.remove(&id));
            }
            11 => {
                let code = H3ErrorCode(0x100 + u64::from(data.one().unwrap_or(0) % 17));
                let _ = match data.one().unwrap_or(0) {
                    pick if pick & 0x80 == 0 => conn.on_stream_reset(self.now, u64::from(pick & 0x1f), code),
                    _ => conn.on_stop_sending(data.send_stream(), code),
                };
            }
            _ => match data.one().unwrap_or(0) {
                0 => {
                    conn.on_connection_end();
                    assert!(conn.close_reason().is_some());
                }
                _ => conn.go_away(),
            },
        }
        while let Some(event) = self.conn.next_event() {
            self.note(&event);
        }
        while let Some(command) = self.conn.next_command() {
            if let H3StreamAbortToSend::ResetStream { id, .. } = command {
                assert!(self.conn.body_credit(id).is_none(), "a stream that was reset accepts no body");
            }
        }
    }

    fn enqueue(&mut self, stream: u64, pick: u8) {
        const METHODS: [&str; 4] = ["GET", "HEAD", "POST", "CONNECT"];
        const BODIES: [BodyLength; 4] =
            [BodyLength::None, BodyLength::Known(0), BodyLength::Known(300), BodyLength::Chunked];
        let mut request = request(METHODS[usize::from(pick & 3)], BODIES[usize::from(pick >> 2 & 3)]);
        request.expect_continue = pick & 0x10 != 0;
        let possible = self.conn.can_enqueue();
        let result = self.conn.enqueue(self.now, stream, &request);
        assert!(!(result.is_ok() && !possible), "{result:?}");
        if let Ok(id) = result {
            assert!(id.0 == stream && self.open.insert(id));
        }
    }

    fn note(&mut self, event: &H3Event) {
        match event {
            H3Event::Complete { id, .. } | H3Event::Reset { id, .. } => assert!(self.open.remove(id), "once"),
            H3Event::Head { id, .. } | H3Event::Interim { id, .. } | H3Event::Body { id, .. } => {
                assert!(self.open.contains(id));
            }
            _ => {}
        }
    }

    fn read(&mut self, stream: u64, wire: &[u8], fin: bool) {
        let mut at = 0;
        loop {
            let step = match self.conn.step(self.now, stream, &wire[at..], fin) {
                Ok(step) => step,
                Err(error) => {
                    assert!(self.conn.close_reason().is_some() && !self.conn.can_enqueue());
                    assert!(!self.conn.is_idle() || matches!(error, H3Error::Response(ResponseError::Closed(_))));
                    return;
                }
            };
            assert!(step.consumed <= wire.len() - at);
            at += step.consumed;
            self.note(&step.event);
            match step.event {
                H3Event::NeedInput => {
                    assert_eq!(at, wire.len());
                    return;
                }
                // The rest is lost here, as by a driver that makes a mistake.
                H3Event::Blocked { .. } => return,
                H3Event::Body { range, .. } => assert!(!range.is_empty() && range.end <= step.consumed),
                _ => {}
            }
        }
    }

    fn check(&self) {
        let conn = &self.conn;
        assert!(conn.unanswered().eq(self.open.iter().copied()), "what is open");
        assert!(!(conn.is_idle() && conn.close_reason().is_some()));
        assert!(!(conn.can_enqueue() && conn.close_reason().is_some()));
        assert!(conn.next_output().is_none_or(|output| output.bytes.len() <= 32 * 1024 + 40_000));
    }
}
