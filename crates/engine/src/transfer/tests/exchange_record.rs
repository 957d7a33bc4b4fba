//! Tests of the record of an exchange and of the trace.

use std::net::IpAddr;

use haul_proto::h1::BodyLength;
use haul_proto::request::RequestHead;
use haul_proto::response_head::ProtocolVersion;

use super::*;
use crate::exchange_record::{ExchangeEnd, ExchangeRecordWriter, ExchangeRecorder, ExchangeStart, TruncationReason};
use crate::trace::Milestone;
use crate::transfer::proxy_or_alt_svc_route::TracedProxy;

/// Stores the calls of all records as lines of text.
#[derive(Debug, Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn push(&self, call: String) {
        self.0.lock().unwrap().push(call);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn transfer(&self, options: RequestOptions) -> Box<Transfer> {
        transfer(RequestOptions { recorder: Some(Arc::new(self.clone())), ..options })
    }
}

impl ExchangeRecorder for Calls {
    fn begin(&self, start: &ExchangeStart<'_>) -> Box<dyn ExchangeRecordWriter> {
        self.push(format!("begin {} {:?} {}", start.version, start.server, String::from_utf8_lossy(start.head)));
        Box::new(self.clone())
    }

    fn failure(&self) -> Option<Error> {
        None
    }
}

impl ExchangeRecordWriter for Calls {
    fn request_content(&mut self, bytes: &[u8]) {
        self.push(format!("sent {}", String::from_utf8_lossy(bytes)));
    }

    fn response_head(&mut self, head: &[u8]) {
        self.push(format!("head {}", String::from_utf8_lossy(head)));
    }

    fn response_body(&mut self, bytes: &[u8]) -> Result<()> {
        self.push(format!("body {}", String::from_utf8_lossy(bytes)));
        Ok(())
    }

    fn end(self: Box<Self>, end: ExchangeEnd) -> Result<Option<u64>> {
        self.push(format!("end {end:?}"));
        Ok(Some(7))
    }
}

fn receive(transfer: &mut Transfer, bytes: &[u8]) {
    transfer.on_body(OfferedBodyBytes::borrowed(bytes), false, Instant::now()).unwrap();
}

/// Begins a record of an exchange over HTTP/2, whose head is not text.
fn begin_stream_record(transfer: &mut Transfer) {
    let fields = [("Host", &b"a.example"[..]), ("X-A", b"1")];
    let request =
        RequestHead { method: "GET", target: "/", fields: &fields, body: BodyLength::None, ..RequestHead::default() };
    transfer.record = transfer.begin_record(&request, None, ProtocolVersion::Http2);
}

#[test]
fn http1_record_has_the_bytes_as_sent() {
    let calls = Calls::default();
    let mut transfer = calls.transfer(RequestOptions { user_agent: None, ..RequestOptions::default() });
    assert!(!transfer.is_recorded() && transfer.traces_content());
    let text = request(&mut transfer);
    assert!(transfer.is_recorded());
    assert_eq!(calls.take(), [format!("begin HTTP/1.1 None {text}")]);
    transfer.record_request_content(b"");
    transfer.record_request_content(b"content");
    transfer.on_sent(b"ignored");
    transfer.record_framing(b"too early").unwrap();
    transfer.record_head(b"\r\n\nHTTP/1.1 200 OK\r\n\r\n");
    respond(&mut transfer, "200 OK");
    transfer.record_framing(b"").unwrap();
    transfer.record_framing(b"4\r\n").unwrap();
    receive(&mut transfer, b"body");
    assert_eq!(calls.take(), ["sent content", "head HTTP/1.1 200 OK\r\n\r\n", "body 4\r\n", "body body"]);
    transfer.on_trailers(None).unwrap();
    transfer.on_complete(Instant::now());
    assert_eq!((calls.take(), &transfer.facts.held_records[..]), (vec!["end Complete".to_owned()], &[7][..]));
}

#[test]
fn stream_record_has_heads_in_http1_syntax() {
    let calls = Calls::default();
    let mut transfer = calls.transfer(RequestOptions::default());
    transfer.facts.peer = Some(([127, 0, 0, 1], 443).into());
    begin_stream_record(&mut transfer);
    transfer.record_request_content(b"ignored");
    transfer.on_sent(b"");
    transfer.on_sent(b"content");
    let head = ResponseHead::from_raw(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    transfer.on_head(head, ResponseBodyFraming::UntilClose, Instant::now());
    receive(&mut transfer, b"body");
    let server = Some(IpAddr::from([127, 0, 0, 1]));
    assert_eq!(
        calls.take(),
        [
            format!("begin HTTP/2 {server:?} GET / HTTP/1.1\r\nhost: a.example\r\nx-a: 1\r\n\r\n"),
            "sent content".to_owned(),
            "head HTTP/1.1 200 OK\r\n\r\n".to_owned(),
            "body body".to_owned(),
        ]
    );
}

#[test]
fn address_of_a_proxy_is_not_recorded() {
    let calls = Calls::default();
    let mut transfer = calls.transfer(RequestOptions::default());
    transfer.facts.peer = Some(([127, 0, 0, 1], 443).into());
    transfer.facts.proxy_used = true;
    begin_stream_record(&mut transfer);
    assert!(calls.take()[0].starts_with("begin HTTP/2 None "));
}

#[test]
fn truncated_record_names_the_reason() {
    for (kind, reason) in [
        (Some(ErrorKind::Timeout), TruncationReason::Time),
        (Some(ErrorKind::TooLarge), TruncationReason::Length),
        (Some(ErrorKind::Receive), TruncationReason::Disconnect),
        (Some(ErrorKind::PartialBody), TruncationReason::Disconnect),
        (Some(ErrorKind::Write), TruncationReason::Unspecified),
        (None, TruncationReason::Length),
    ] {
        let calls = Calls::default();
        let mut transfer = calls.transfer(RequestOptions::default());
        request(&mut transfer);
        transfer.record_head(b"HTTP/1.1 200 OK\r\n\r\n");
        respond(&mut transfer, "200 OK\r\nContent-Length: 10");
        calls.take();
        let now = Instant::now();
        match kind {
            Some(kind) => transfer.on_failure(Error::new(kind, "x"), ExchangeFailurePoint::InResponse, now),
            None => transfer.on_complete(now),
        };
        assert_eq!(calls.take(), [format!("end Truncated({reason:?})")]);
    }
}

#[test]
fn exchange_without_a_response_has_no_record() {
    let calls = Calls::default();
    let mut transfer = calls.transfer(RequestOptions::default());
    request(&mut transfer);
    calls.take();
    transfer.on_failure(Error::new(ErrorKind::EmptyReply, "x"), ExchangeFailurePoint::BeforeResponse, Instant::now());
    assert!(calls.take().is_empty() && !transfer.is_recorded());
}

#[test]
fn recorded_body_passes_through_the_transfer() {
    let calls = Calls::default();
    let mut transfer = calls.transfer(RequestOptions::default());
    request(&mut transfer);
    respond(&mut transfer, "200 OK");
    assert!(transfer.receive_into_sink(rustix::stdio::stdin(), 9).is_none());
}

#[test]
fn unwanted_body_is_received_for_the_record() {
    use ResponseBodyFraming::{Length, UntilClose};
    let calls = Calls::default();
    for (max_size, most) in [(None, 16 << 20), (Some(1 << 20), 1 << 20), (Some(5), 64 << 10)] {
        let mut transfer = calls.transfer(RequestOptions { max_size, ..RequestOptions::default() });
        request(&mut transfer);
        transfer.response.disposition = BodyDisposition::Complete;
        assert!(!transfer.skips_rest(Length(most)) && transfer.skips_rest(Length(most + 1)), "{max_size:?}");
        transfer.facts.body_bytes = most;
        assert!(!transfer.skips_rest(UntilClose));
        transfer.facts.body_bytes = most + 1;
        assert!(transfer.skips_rest(UntilClose));
    }
}

/// Stores the events of a trace as text.
#[derive(Debug, Default)]
struct Events(Mutex<Vec<String>>);

impl Events {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl TransferObserver for Events {
    fn event(&self, event: &TraceEvent<'_>) {
        self.0.lock().unwrap().push(match event {
            TraceEvent::Info(text) => format!("info {text}"),
            TraceEvent::Request { head } => format!("request {}", head.lines().next().unwrap_or_default()),
            TraceEvent::Response { head } => format!("response {}", head.status()),
            TraceEvent::Interim { head } => format!("interim {}", head.status()),
            TraceEvent::NotHttp { line } => format!("not http {}", String::from_utf8_lossy(line)),
            TraceEvent::Trailers { fields } => format!("trailers {}", String::from_utf8_lossy(fields.raw()).trim_end()),
            TraceEvent::Retry { left, failed, .. } => format!("retry {left} {}", failed.is_some()),
            TraceEvent::Sent(bytes) => format!("sent {}", bytes.len()),
            TraceEvent::Milestone { milestone: Milestone::Retry(_), error, .. } => {
                format!("paused {}", error.is_some())
            }
            TraceEvent::Milestone { milestone, .. } => format!("{milestone:?}"),
            _ => "other".to_owned(),
        });
    }

    fn wants_content(&self) -> bool {
        true
    }
}

fn traced(options: RequestOptions) -> (Box<Transfer>, Arc<Events>) {
    let events = Arc::new(Events::default());
    (transfer(RequestOptions { trace: Some(events.clone()), ..options }), events)
}

#[test]
fn trace_gets_exchange_events_in_order() {
    let redirects = crate::request::RedirectRules { follow: true, ..Default::default() };
    let (mut transfer, events) = traced(RequestOptions { redirects, ..RequestOptions::default() });
    request(&mut transfer);
    assert_eq!(events.take(), ["request GET / HTTP/1.1", "Sent"]);
    transfer.on_sent(b"123");
    transfer.on_interim(&head("103 Early Hints"));
    respond(&mut transfer, "302 X\r\nLocation: /b");
    assert_eq!(events.take(), ["sent 3", "interim 103", "Head", "response 302"]);
    transfer.on_complete(Instant::now());
    assert_eq!(events.take(), ["info Issue another request to this URL: 'http://a.example/b'", "Redirected"]);
    transfer.on_partial_head(head("200 OK"));
    transfer.trace_not_http(b" \r\n220 ready \r\nmore");
    transfer.trace_not_http(&[b'x'; 2000]);
    let expected =
        ["response 200".to_owned(), "not http 220 ready".to_owned(), format!("not http {}", "x".repeat(1024))];
    assert_eq!(events.take(), expected);
    let _ = transfer.into_outcome(Ok(()));
    assert_eq!(events.take(), ["Done"]);
}

#[test]
fn trace_reports_the_remaining_retries() {
    let rules = RetryRules { max: 3, resets: true, ..RetryRules::default() };
    let (mut transfer, events) = traced(retrying(rules));
    let broken = Error::new(ErrorKind::Receive, "x");
    transfer.on_failure(broken, ExchangeFailurePoint::BeforeResponse, Instant::now());
    assert_eq!(events.take(), ["retry 3 true", "paused true"]);
    exchange(&mut transfer, "503 X\r\nContent-Length: 0", "");
    assert_eq!(events.take()[5..], ["retry 2 false", "paused false"]);
}

#[test]
fn parts_of_a_split_have_no_milestones() {
    let (mut transfer, events) = traced(RequestOptions::default());
    transfer.split = SplitRole::Part { id: 1, ordinal: 2 };
    respond(&mut transfer, "200 OK");
    assert_eq!(events.take(), ["response 200"]);
}

#[test]
fn messages_name_the_proxy_instead_of_the_server() {
    let (mut transfer, events) = traced(RequestOptions::default());
    transfer.route.proxy = Some(Box::new(TracedProxy { host: "proxy.example".into() }));
    transfer.on_connection_kept();
    assert_eq!(events.take(), ["info Connection #0 to host proxy.example left intact"]);
}

#[test]
fn verified_certificate_is_traced() {
    for (verify, examine, expected) in [(true, false, true), (false, true, true), (false, false, false)] {
        let mut options = RequestOptions::default();
        (options.tls.verify, options.tls.examine) = (verify, examine);
        let (mut transfer, events) = traced(options);
        transfer.on_connection(&TestConnection, false);
        assert_eq!(events.take().iter().any(|text| text.contains("verification failed")), expected);
    }
}

#[test]
fn interim_heads_are_delivered_before_the_body() {
    for (include_head, expected) in [(true, "HTTP/1.1 103 X\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), (false, "")] {
        let sink = TestSink::default();
        let mut transfer = sink.transfer(RequestOptions { include_head, ..RequestOptions::default() });
        transfer.on_interim(&head("103 X"));
        respond(&mut transfer, "200 OK");
        assert_eq!(sink.text(), expected);
        transfer.on_interim(&head("103 X"));
        assert!(transfer.history.heads.len() <= expected.len(), "the body has begun");
    }
}

#[test]
fn heads_are_escaped_for_a_terminal() {
    let sink = TestSink::default();
    let mut transfer =
        sink.transfer(RequestOptions { include_head: true, escape_head: true, ..RequestOptions::default() });
    respond(&mut transfer, "200 OK\r\nX-A: \x1b[1m");
    assert!(!sink.text().contains('\x1b') && sink.text().contains("X-A: "), "{}", sink.text());
}
