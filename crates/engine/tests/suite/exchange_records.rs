//! Tests of the records of exchanges (`RequestOptions::recorder`): what a recorder receives, and
//! the effects of its errors.

use crate::common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use common::{DRIVERS, DriverKind, following, one_thread, retrying, run, single_stage, start_origin};
use haul::exchange_record::{ExchangeEnd, ExchangeRecordWriter, ExchangeRecorder, ExchangeStart, TruncationReason};
use haul::fleet::FleetOptions;
use haul::{Client, Error, ErrorKind, RequestOptions, Result};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

/// An exchange as a recorder has received it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SeenExchange {
    url: String,
    request: Vec<u8>,
    response: Vec<u8>,
    end: ExchangeEnd,
}

impl SeenExchange {
    fn summary(&self) -> (&str, &str, ExchangeEnd) {
        let path = self.url.splitn(4, '/').nth(3).unwrap_or_default();
        (path, std::str::from_utf8(&self.response[9..12]).unwrap(), self.end)
    }
}

/// A recorder that keeps all exchanges in memory.
#[derive(Debug, Default)]
struct MemoryRecorder {
    seen: Arc<Mutex<Vec<SeenExchange>>>,
    /// True to return an error for the bytes after the head of a response.
    refuses_bodies: bool,
    /// True to return an error at the end of a record.
    refuses_ends: bool,
    has_failed: Arc<AtomicBool>,
}

impl MemoryRecorder {
    fn seen(&self) -> Vec<SeenExchange> {
        self.seen.lock().unwrap().clone()
    }
}

fn full() -> Error {
    Error::new(ErrorKind::Write, "the archive is full")
}

impl ExchangeRecorder for MemoryRecorder {
    fn begin(&self, start: &ExchangeStart<'_>) -> Box<dyn ExchangeRecordWriter> {
        Box::new(MemoryRecord {
            exchange: SeenExchange {
                url: start.target.to_url(),
                request: start.head.to_vec(),
                response: Vec::new(),
                end: ExchangeEnd::Complete,
            },
            recorder: MemoryRecorder {
                seen: Arc::clone(&self.seen),
                has_failed: Arc::clone(&self.has_failed),
                ..*self
            },
        })
    }

    fn failure(&self) -> Option<Error> {
        self.has_failed.load(Ordering::SeqCst).then(full)
    }
}

struct MemoryRecord {
    exchange: SeenExchange,
    recorder: MemoryRecorder,
}

impl MemoryRecord {
    fn unless(&self, refuses: bool) -> Result<()> {
        self.recorder.has_failed.fetch_or(refuses, Ordering::SeqCst);
        if refuses { Err(full()) } else { Ok(()) }
    }
}

impl ExchangeRecordWriter for MemoryRecord {
    fn request_content(&mut self, bytes: &[u8]) {
        self.exchange.request.extend_from_slice(bytes);
    }

    fn response_head(&mut self, head: &[u8]) {
        self.exchange.response.extend_from_slice(head);
    }

    fn response_body(&mut self, bytes: &[u8]) -> Result<()> {
        self.exchange.response.extend_from_slice(bytes);
        self.unless(self.recorder.refuses_bodies)
    }

    fn end(mut self: Box<Self>, end: ExchangeEnd) -> Result<Option<u64>> {
        self.unless(self.recorder.refuses_ends || self.recorder.has_failed.load(Ordering::SeqCst))?;
        self.exchange.end = end;
        let mut seen = self.recorder.seen.lock().unwrap();
        seen.push(self.exchange);
        Ok(Some(seen.len() as u64))
    }
}

fn recording(options: &RequestOptions) -> (RequestOptions, Arc<MemoryRecorder>) {
    let recorder = Arc::new(MemoryRecorder::default());
    (RequestOptions { recorder: Some(Arc::clone(&recorder) as _), ..options.clone() }, recorder)
}

#[test]
fn recorder_receives_bytes_as_on_the_wire() {
    let reply = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX:y\r\n\r\n\
                 3 ; a\r\nabc\r\n0\r\nT: 1\r\n\r\n";
    let (_, recorded) = reply.split_at(reply.find("HTTP/1.1 200").unwrap());
    for driver in DRIVERS {
        for send in [ScriptStep::send(reply), ScriptStep::send_bytewise(reply)] {
            let server = H1Peer::start(vec![vec![ScriptStep::ReadHead, send]]);
            let (options, recorder) = recording(&RequestOptions::default());
            assert_eq!(driver.get(&Client::new(), &server.url("/p"), &options).ok(), b"abc");
            let seen = recorder.seen();
            assert_eq!(seen.len(), 1);
            assert_eq!(seen[0].request, server.received(0));
            assert_eq!(String::from_utf8_lossy(&seen[0].response), recorded, "{driver:?}");
        }
    }
}

#[test]
fn each_exchange_of_a_transfer_has_a_record() {
    let origin = start_origin();
    for driver in DRIVERS {
        origin.forget();
        let base = RequestOptions { retry: retrying(2).retry, ..following() };
        let (options, recorder) = recording(&base);
        let url = origin.url("/redirect/302?to=/flaky/1/small");
        assert_eq!(driver.get(&Client::new(), &url, &options).ok(), b"small\n");
        let seen = recorder.seen();
        let summaries: Vec<_> = seen.iter().map(SeenExchange::summary).collect();
        let whole = ExchangeEnd::Complete;
        let target = "redirect/302?to=/flaky/1/small";
        assert_eq!(summaries[..2], [(target, "302", whole), ("flaky/1/small", "503", whole)], "{driver:?}");
        assert_eq!(summaries.last(), Some(&("flaky/1/small", "200", whole)));
    }
}

#[test]
fn broken_response_is_recorded_as_truncated() {
    let partial = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
    for driver in DRIVERS {
        let server = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send(partial)]]);
        let (options, recorder) = recording(&RequestOptions::default());
        assert_eq!(driver.get(&Client::new(), &server.url("/"), &options).exit, 18);
        let seen = recorder.seen();
        assert_eq!((seen.len(), seen[0].end), (1, ExchangeEnd::Truncated(TruncationReason::Disconnect)));
        assert_eq!(seen[0].response, partial.as_bytes());
        let silent = H1Peer::start(vec![vec![ScriptStep::ReadHead]]);
        assert_eq!(driver.get(&Client::new(), &silent.url("/"), &options).exit, 52);
        assert_eq!(recorder.seen().len(), 1, "an exchange without a response has no record");
    }
}

#[test]
fn http2_records_have_http1_heads() {
    let origin = Origin::builder().http2(10).start().unwrap();
    for driver in DRIVERS {
        let (options, recorder) = recording(&RequestOptions { prior_knowledge: true, ..RequestOptions::default() });
        let url = origin.url("/bytes/100000");
        let body = driver.get(&Client::new(), &url, &options).ok().to_vec();
        let seen = recorder.seen();
        let (request, response) = (&seen[0].request, &seen[0].response);
        assert!(request.starts_with(b"GET /bytes/100000 HTTP/1.1\r\nhost: 127.0.0.1:"), "{driver:?}");
        assert!(response.starts_with(b"HTTP/1.1 200 \r\n") && response.ends_with(&body));
        assert!(request.ends_with(b"\r\n\r\n") && !request.windows(3).any(|window| window == b"\n:a"));
    }
}

#[test]
fn recorder_error_fails_transfers() {
    for (refuses_bodies, refuses_ends) in [(true, false), (false, true)] {
        let origin = start_origin();
        let recorder = Arc::new(MemoryRecorder { refuses_bodies, refuses_ends, ..MemoryRecorder::default() });
        let options = RequestOptions { recorder: Some(Arc::clone(&recorder) as _), ..retrying(3) };
        let client = Client::new();
        let got = DriverKind::Blocking.get(&client, &origin.url("/bytes/5"), &options);
        assert_eq!((got.exit, origin.requests()), (23, 1));
        assert_eq!(DriverKind::Blocking.get(&client, &origin.url("/bytes/6"), &options).exit, 23);
        assert_eq!((origin.requests(), recorder.seen().len()), (1, 0), "nothing more is requested");
    }
}

#[test]
fn recorder_error_stops_a_fleet() {
    let origin = start_origin();
    let recorder = Arc::new(MemoryRecorder { refuses_ends: true, ..MemoryRecorder::default() });
    let options = RequestOptions { recorder: Some(Arc::clone(&recorder) as _), ..RequestOptions::default() };
    let urls = (0..500).map(|n| origin.url(&format!("/small/{n}")));
    let run = run(&Client::new(), single_stage(&options), FleetOptions { parallel: 4, ..one_thread() }, urls);
    assert!(run.result.is_err_and(|error| error.exit_code() == 23));
    assert!(origin.requests() < 50);
}
