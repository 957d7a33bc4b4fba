//! Fuzzes an HTTP/2 connection with calls in any order, on any request. Nothing panics, windows and
//! limits hold, and the machine's lists of open requests agree with the model's.
//!
//! The input is a sequence of operations of one byte each. An operation that needs bytes takes them
//! from the input after it.
#![no_main]

#[path = "support/h2.rs"]
#[allow(dead_code, reason = "each target uses its own part")]
mod support;

use haul_proto::ResponseError;
use haul_proto::h2::{BodyLength, ErrorCode, H2Config, H2Error, H2Event, H2Machine, RequestId};
use haul_proto::time::MonotonicTimestamp;
use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use support::{SETTINGS, config, request};

/// The part of the input that was not used yet: operations and their bytes.
struct H2Operations<'a>(&'a [u8]);

impl<'a> H2Operations<'a> {
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
        RequestId(u64::from(self.one().unwrap_or(0) % 16))
    }
}

/// A connection, with the model's list of open requests and its counts of unreleased bytes.
struct H2Session {
    conn: H2Machine,
    now: MonotonicTimestamp,
    open: BTreeSet<RequestId>,
    held: BTreeMap<RequestId, u64>,
}

fuzz_target!(|data: &[u8]| {
    let mut data = H2Operations(data);
    let conn = H2Machine::new(H2Config {
        connection_window: 1,
        stream_window: 30_000,
        keepalive: Some(Duration::from_millis(500)),
        max_streams: 6,
        ..config()
    });
    let mut session = H2Session { conn, now: MonotonicTimestamp(0), open: BTreeSet::new(), held: BTreeMap::new() };
    while let Some(operation) = data.one() {
        session.apply(operation, &mut data);
        session.check();
    }
});

impl H2Session {
    fn apply(&mut self, operation: u8, data: &mut H2Operations<'_>) {
        let conn = &mut self.conn;
        match operation % 12 {
            0 => self.enqueue(data.one().unwrap_or(0)),
            1 => {
                let (id, bytes) = (data.id(), data.many());
                let credit = conn.body_credit(id);
                let taken = match bytes.first() {
                    Some(first) if first & 1 == 1 => conn.fill_body(id, bytes.len() + 1, |room| {
                        let n = bytes.len().min(room.len());
                        room[..n].copy_from_slice(&bytes[..n]);
                        n
                    }),
                    _ => conn.send_body(id, bytes),
                };
                if let Ok(taken) = taken {
                    assert!(taken as u64 <= credit.expect("a body was expected"));
                }
            }
            2 => {
                let _ = conn.finish_body(data.id(), &[("X-Trailer", data.many())]);
            }
            3 => conn.advance_output(usize::from(data.one().unwrap_or(0)).min(conn.output().len())),
            4 => conn.advance_output(conn.output().len()),
            5 => self.read(data.many().to_vec()),
            6 => self.read(SETTINGS.to_vec()),
            // A frame whose header is well formed.
            7 => {
                let (kind, flags, id) = (data.one().unwrap_or(0) % 11, data.one().unwrap_or(0), data.id().0 as u8);
                let payload = data.many();
                self.read([&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, id][..], payload].concat());
            }
            8 => {
                self.now = MonotonicTimestamp(self.now.0 + u64::from(data.one().unwrap_or(0)) * 10_000_000);
                let ended = conn.handle_timeout(self.now);
                assert!(ended.is_err() || conn.poll_timeout().is_none_or(|deadline| deadline > self.now));
            }
            9 => {
                let id = data.id();
                assert_eq!(conn.reset(id, ErrorCode::CANCEL), self.open.remove(&id));
            }
            10 => {
                let id = data.id();
                let held = self.held.remove(&id).unwrap_or(0);
                let part = held * u64::from(data.one().unwrap_or(0)) / 255;
                conn.release(self.now, id, part);
                self.held.insert(id, held - part);
            }
            _ => match data.one().unwrap_or(0) {
                0 => {
                    conn.end_of_input();
                    assert!(conn.close_reason().is_some());
                }
                _ => conn.go_away(),
            },
        }
        // The last of a request may be what its response waited for to be complete.
        if self.conn.has_pending_event() {
            self.read(Vec::new());
        }
    }

    fn enqueue(&mut self, pick: u8) {
        const METHODS: [&str; 4] = ["GET", "HEAD", "POST", "CONNECT"];
        const BODIES: [BodyLength; 4] =
            [BodyLength::None, BodyLength::Known(0), BodyLength::Known(300), BodyLength::Chunked];
        let mut request = request(METHODS[usize::from(pick & 3)], BODIES[usize::from(pick >> 2 & 3)]);
        request.expect_continue = pick & 0x10 != 0;
        let possible = self.conn.can_enqueue();
        let result = self.conn.enqueue(self.now, &request);
        // A peer may take very small heads only.
        assert!(!(result.is_ok() && !possible), "{result:?}");
        if let Ok(id) = result {
            assert!(self.open.insert(id));
        }
    }

    fn read(&mut self, mut wire: Vec<u8>) {
        let mut at = 0;
        loop {
            let length = wire.len() - at;
            let step = match self.conn.step(self.now, &mut wire[at..]) {
                Ok(step) => step,
                Err(error) => {
                    assert!(self.conn.close_reason().is_some() && !self.conn.can_enqueue());
                    assert!(!self.conn.is_idle() || matches!(error, H2Error::Response(ResponseError::Closed(_))));
                    return;
                }
            };
            assert!(step.consumed <= length);
            at += step.consumed;
            match step.event {
                H2Event::NeedInput => {
                    assert_eq!(at, wire.len());
                    return;
                }
                H2Event::Body { id, range } => {
                    assert!(!range.is_empty() && range.end <= step.consumed);
                    *self.held.entry(id).or_default() += range.len() as u64;
                }
                H2Event::Complete { id, .. } | H2Event::Reset { id, .. } => assert!(self.open.remove(&id), "once"),
                H2Event::Head { id, .. } | H2Event::Interim { id, .. } => assert!(self.open.contains(&id)),
                _ => {}
            }
        }
    }

    fn check(&self) {
        let conn = &self.conn;
        assert!(conn.unanswered().eq(self.open.iter().copied()), "what is open");
        assert!(!(conn.is_idle() && conn.close_reason().is_some()));
        assert!(!(conn.can_enqueue() && conn.close_reason().is_some()));
        assert!(conn.output().len() <= 64 * 1024 + 40_000);
        assert!(self.held.values().sum::<u64>() <= 65_535, "more than the budget is held");
    }
}
