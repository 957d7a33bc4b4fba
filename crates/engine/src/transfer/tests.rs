mod auth;
mod delivery;
mod end_of_exchange;
mod exchange_record;
mod refused_request;
mod request_content;
mod request_fields;
mod response;

use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use haul_policy::concurrency::{CompletionKind, RefusedLoad};
use haul_policy::retry::RetryRules;
use haul_proto::h1::{H1Config, H1Machine, ResponseBodyFraming};
use rustix::fd::BorrowedFd;

use super::host_overload::OverloadRefusal;
use super::resettable_state::BodyDisposition;
use super::*;
use crate::buffer_pool::OfferedBodyBytes;
use crate::net::connection_info::ConnectionInfo;
use crate::request::SpeedLimit;
use crate::sink::memory::MemorySink;
use crate::sink::{ExistingPartialContent, ReceivedIntoSink, ResponseForSink, Sink, TransferWaker};
use crate::trace::{TraceEvent, TransferObserver};
use crate::transfer_facts::TlsFacts;
use crate::{ErrorKind, Result};

const SECOND: Duration = Duration::from_secs(1);

fn transfer_to(url: &str, options: RequestOptions) -> Box<Transfer> {
    let body = BodyDelivery::new(Box::new(MemorySink::default()));
    Transfer::new(Target::parse(url).unwrap(), Arc::new(options), body, Instant::now(), 0)
}

fn transfer(options: RequestOptions) -> Box<Transfer> {
    transfer_to("http://a.example/", options)
}

fn retrying(rules: RetryRules) -> RequestOptions {
    RequestOptions { retry: rules, ..RequestOptions::default() }
}

fn head(text: &str) -> ResponseHead {
    ResponseHead::from_raw(format!("HTTP/1.1 {text}\r\n\r\n").as_bytes()).unwrap()
}

/// The calls that a [`TestSink`] has received, and the results that it returns.
#[derive(Default)]
struct SinkState {
    /// The announced length and the offset of each response that was begun.
    begun: Vec<(Option<u64>, u64)>,
    bytes: Vec<u8>,
    finished: u32,
    restarted: u32,
    can_restart: bool,
    keeps_part: bool,
    credit: Option<u64>,
    gap: Option<Range<u64>>,
    partial: Option<ExistingPartialContent>,
}

/// A sink whose state the test shares.
#[derive(Clone, Default)]
struct TestSink(Arc<Mutex<SinkState>>);

impl TestSink {
    fn state(&self) -> MutexGuard<'_, SinkState> {
        self.0.lock().unwrap()
    }

    /// Makes a sink that can discard the received bytes.
    fn restartable() -> Self {
        let sink = Self::default();
        sink.state().can_restart = true;
        sink
    }

    /// Makes a transfer that delivers to this sink.
    fn transfer(&self, options: RequestOptions) -> Box<Transfer> {
        let body = BodyDelivery::new(Box::new(self.clone()));
        Transfer::new(Target::parse("http://a.example/").unwrap(), Arc::new(options), body, Instant::now(), 0)
    }

    fn begun(&self) -> Vec<(Option<u64>, u64)> {
        self.state().begun.clone()
    }

    fn restarted(&self) -> u32 {
        self.state().restarted
    }

    fn finished(&self) -> u32 {
        self.state().finished
    }

    fn text(&self) -> String {
        String::from_utf8(self.state().bytes.clone()).unwrap()
    }
}

impl Sink for TestSink {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        self.state().begun.push((begin.length, begin.offset));
        Ok(())
    }

    fn credit(&mut self, _: Option<&Arc<dyn TransferWaker>>, _: usize) -> u64 {
        self.state().credit.unwrap_or(u64::MAX)
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        self.state().bytes.extend_from_slice(offered.bytes());
        Ok(())
    }

    fn partial(&mut self, _: &Target) -> Option<ExistingPartialContent> {
        self.state().partial.take()
    }

    fn next_gap(&mut self) -> Option<Range<u64>> {
        self.state().gap.take()
    }

    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        Some(rustix::stdio::stdin())
    }

    fn receive(&mut self, _: BorrowedFd<'_>, most: usize) -> Option<std::io::Result<ReceivedIntoSink>> {
        Some(Ok(ReceivedIntoSink::new(0, most)))
    }

    fn keeps(&mut self) -> bool {
        self.state().keeps_part
    }

    fn restart(&mut self) -> bool {
        let mut state = self.state();
        if state.can_restart {
            state.restarted += 1;
            state.bytes.clear();
        }
        state.can_restart
    }

    fn finish(&mut self) -> Result<()> {
        self.state().finished += 1;
        Ok(())
    }
}

/// Returns the head of the transfer's next request as text of HTTP/1.1.
fn try_request(transfer: &mut Transfer) -> Result<String> {
    let mut machine = H1Machine::new(H1Config::default());
    transfer.enqueue(&mut machine, Instant::now())?;
    Ok(String::from_utf8(machine.output().to_vec()).unwrap())
}

fn request(transfer: &mut Transfer) -> String {
    try_request(transfer).unwrap()
}

/// Reports a response head to the transfer, whose framing its `Content-Length` decides.
fn respond(transfer: &mut Transfer, text: &str) {
    let head = head(text);
    let length = head.get("content-length").map(|length| std::str::from_utf8(length).unwrap().parse().unwrap());
    let framing = length.map_or(ResponseBodyFraming::UntilClose, ResponseBodyFraming::Length);
    transfer.on_head(head, framing, Instant::now());
}

/// Reports a whole response to the transfer, and returns the next step.
fn exchange(transfer: &mut Transfer, text: &str, body: &str) -> TransferStep {
    request(transfer);
    respond(transfer, text);
    transfer.on_body(OfferedBodyBytes::borrowed(body.as_bytes()), false, Instant::now()).unwrap();
    transfer.on_complete(Instant::now())
}

/// Returns the error of a finished transfer.
fn error_of(step: TransferStep) -> Error {
    match step {
        TransferStep::Done(Err(error)) => error,
        step => panic!("{step:?}"),
    }
}

/// Returns the name of the decision about the body of the current response.
fn decision(transfer: &Transfer) -> &'static str {
    match transfer.response.disposition {
        BodyDisposition::Unknown => "unknown",
        BodyDisposition::Deliver => "deliver",
        BodyDisposition::Follow(_) => "follow",
        BodyDisposition::Retry(_) => "retry",
        BodyDisposition::Again => "again",
        BodyDisposition::RestartAtCallerUrl => "restart",
        BodyDisposition::Complete => "complete",
        BodyDisposition::Fail(_) => "fail",
    }
}

/// A trace that stores the texts of its informational events.
#[derive(Debug, Default)]
struct InfoTexts(Mutex<Vec<String>>);

impl TransferObserver for InfoTexts {
    fn event(&self, event: &TraceEvent<'_>) {
        if let TraceEvent::Info(text) = event {
            self.0.lock().unwrap().push(text.to_string());
        }
    }
}

#[test]
fn transfer_struct_stays_below_malloc_cache_limit() {
    assert!(size_of::<Transfer>() <= 1032, "{}", size_of::<Transfer>());
}

#[test]
fn postponed_deadline_stays_within_the_total_time() {
    let mut transfer = transfer(RequestOptions {
        max_time: Some(SECOND * 10),
        total_time: Some(SECOND * 15),
        ..RequestOptions::default()
    });
    let begin = transfer.attempt.first_started;
    assert_eq!(transfer.deadline(), Some(begin + SECOND * 10));
    transfer.postpone_deadline(SECOND * 3);
    assert_eq!(transfer.deadline(), Some(begin + SECOND * 13));
    transfer.postpone_deadline(SECOND * 3);
    assert_eq!(
        (transfer.deadline(), transfer.total_deadline()),
        (Some(begin + SECOND * 15), Some(begin + SECOND * 15))
    );
}

#[test]
fn each_kind_of_time_limit_is_known() {
    let speed = SpeedLimit { bytes_per_second: 1, time: SECOND };
    for (options, is_timed, is_silence_limited) in [
        (RequestOptions::default(), false, false),
        (RequestOptions { max_time: Some(SECOND), ..RequestOptions::default() }, true, false),
        (RequestOptions { speed_limit: Some(speed), ..RequestOptions::default() }, true, false),
        (RequestOptions { read_timeout: Some(SECOND), ..RequestOptions::default() }, true, true),
    ] {
        let (mut transfer, now) = (transfer(options.clone()), Instant::now());
        transfer.speed.begin_exchange(&options, now);
        assert_eq!((transfer.has_time_limit(), transfer.has_silence_limit()), (is_timed, is_silence_limited));
        assert_eq!(transfer.next_speed_check(), transfer.speed.next_check());
        assert_eq!(transfer.silence_deadline(), is_silence_limited.then_some(now + SECOND));
        transfer.on_slot_granted(now + SECOND);
        assert_eq!(transfer.silence_deadline(), is_silence_limited.then_some(now + SECOND * 2));
        assert!(!transfer.has_rate_limit());
    }
    let mut transfer = transfer(RequestOptions::default());
    transfer.add_run_limits(Some(&TotalRateLimit::new(9)), None);
    assert!(transfer.has_rate_limit());
}

#[test]
fn kept_response_heads_are_bounded() {
    let mut transfer = transfer(RequestOptions { include_head: true, ..RequestOptions::default() });
    transfer.history.heads = vec![0; MAX_KEPT_HEAD_BYTES];
    let refusal = "404 Not Found\r\nContent-Length: 0";
    transfer.options = Arc::new(RequestOptions { fail: true, ..RequestOptions::clone(&transfer.options) });
    transfer.on_head(head(refusal), ResponseBodyFraming::None, Instant::now());
    let with_one = transfer.history.heads.len();
    assert!(with_one > MAX_KEPT_HEAD_BYTES, "there was room for one more");
    transfer.on_head(head(refusal), ResponseBodyFraming::None, Instant::now());
    assert_eq!(transfer.history.heads.len(), with_one);
}

#[test]
fn only_overloaded_hosts_may_request_a_pause() {
    let rules = RetryRules { max: 3, cap: SECOND * 60, ..RetryRules::default() };
    let mut transfer = transfer(retrying(rules.clone()));
    for (text, expected) in [
        ("429 X\r\nRetry-After: 7", Some(SECOND * 7)),
        ("503 X\r\nRetry-After: 7", Some(SECOND * 7)),
        ("503 X\r\nRetry-After: 700", Some(SECOND * 60)),
        ("503 X", None),
        ("500 X\r\nRetry-After: 7", None),
    ] {
        assert_eq!(transfer.requested_pause(&head(text)), expected, "{text}");
    }
    transfer.current.same_origin = false;
    assert_eq!(transfer.requested_pause(&head("429 X\r\nRetry-After: 7")), None);
    let without = self::transfer(retrying(RetryRules { max: 0, ..rules }));
    assert_eq!(without.requested_pause(&head("429 X\r\nRetry-After: 7")), None);
}

#[test]
fn requested_pause_stays_within_time_limits() {
    for (max_time, total_time, expected) in
        [(None, None, 7), (Some(SECOND * 2), None, 2), (None, Some(SECOND * 3), 3), (Some(SECOND * 9), None, 7)]
    {
        let rules = RetryRules { max_time, ..RetryRules::default() };
        let transfer = transfer(RequestOptions { total_time, ..retrying(rules) });
        assert_eq!(transfer.requested_pause(&head("503 X\r\nRetry-After: 7")), Some(SECOND * expected));
    }
}

#[test]
fn duration_of_a_served_request_begins_when_it_was_sent() {
    let mut transfer = transfer(RequestOptions::default());
    assert!(transfer.served_job_end(&Ok(())).is_none(), "there was no response");
    (transfer.facts.sent, transfer.facts.first_byte, transfer.facts.total) = (SECOND, SECOND * 3, SECOND * 7);
    let end = transfer.served_job_end(&Ok(())).unwrap();
    let started = time_conversions::to_monotonic_time(transfer.facts.started + SECOND * 7);
    assert_eq!((end.first_byte, end.total, end.now), (SECOND * 2, SECOND * 6, started));
    assert_eq!((end.on_new_connection, end.kind), (false, CompletionKind::Served));
    transfer.facts.connects = 1;
    assert!(transfer.served_job_end(&Ok(())).unwrap().on_new_connection);
    assert!(transfer.served_job_end(&Err(Error::new(ErrorKind::Status, "x"))).is_some());
    assert!(transfer.served_job_end(&Err(Error::new(ErrorKind::Timeout, "x"))).is_none());
    transfer.facts.redirects = 1;
    assert!(transfer.served_job_end(&Ok(())).is_none());
    transfer.facts.redirects = 0;
    assert!(transfer.refused_job_end(Instant::now()).is_none());
    transfer.attempt.refusal = Some(OverloadRefusal::Overload);
    assert!(transfer.served_job_end(&Ok(())).is_none());
    let end = transfer.refused_job_end(transfer.facts.placed_at + SECOND).unwrap();
    assert_eq!((end.total, end.kind, end.on_new_connection), (SECOND, CompletionKind::Refused, true));
}

#[test]
fn pause_after_overload_doubles_up_to_a_limit() {
    for (load, most) in [(RefusedLoad::Grown, 5), (RefusedLoad::Initial, 2)] {
        let mut transfer = transfer(retrying(RetryRules { max: 3, ..RetryRules::default() }));
        let retry = |transfer: &mut Transfer| {
            transfer.attempt.counted_attempts = 1;
            let step = TransferStep::Again(Duration::ZERO);
            transfer.retry_for_load(load, &step, Instant::now())
        };
        assert_eq!(retry(&mut transfer), None, "it was not refused");
        transfer.attempt.refusal = Some(OverloadRefusal::WantsPause);
        assert_eq!(retry(&mut transfer), None, "the host requests a pause");
        transfer.attempt.refusal = Some(OverloadRefusal::Overload);
        for number in 0..most {
            assert_eq!(retry(&mut transfer), Some(Duration::from_millis(25 << number)));
            assert_eq!(transfer.attempt.counted_attempts, 0, "it does not count");
        }
        assert_eq!(retry(&mut transfer), None);
    }
}

#[test]
fn finished_transfer_is_retried_for_load_by_the_retry_rules() {
    let rules = RetryRules { max: 3, ..RetryRules::default() };
    let only_resets = RetryRules { only_resets: true, ..rules.clone() };
    let fixed = RetryRules { delay: Some(SECOND), ..rules.clone() };
    let none = RetryRules { max: 0, ..rules.clone() };
    for (rules, load, retries) in [
        (&rules, RefusedLoad::Initial, true),
        (&only_resets, RefusedLoad::Initial, false),
        (&fixed, RefusedLoad::Initial, false),
        (&none, RefusedLoad::Initial, false),
        (&only_resets, RefusedLoad::Grown, true),
        (&fixed, RefusedLoad::Grown, true),
        (&none, RefusedLoad::Grown, true),
    ] {
        let mut transfer = transfer(retrying(rules.clone()));
        transfer.attempt.refusal = Some(OverloadRefusal::Overload);
        let done = TransferStep::Done(Err(Error::new(ErrorKind::Status, "x")));
        assert_eq!(transfer.retry_for_load(load, &done, Instant::now()).is_some(), retries, "{rules:?} {load:?}");
    }
    let mut transfer = transfer(retrying(fixed));
    transfer.attempt.refusal = Some(OverloadRefusal::Overload);
    let again = TransferStep::Again(SECOND);
    assert_eq!(transfer.retry_for_load(RefusedLoad::Grown, &again, Instant::now()), None, "the user has decided");
    transfer.current.method = "POST".into();
    let done = TransferStep::Done(Ok(()));
    assert_eq!(transfer.retry_for_load(RefusedLoad::Grown, &done, Instant::now()), None, "not idempotent");
}

#[test]
fn only_plain_requests_of_later_rank_are_pipelined() {
    let plain = || transfer(RequestOptions::default());
    assert!(plain().may_pipeline_after(&plain()));
    let mut later = plain();
    later.scheduling.rank = 1;
    assert!(later.may_pipeline_after(&plain()) && !plain().may_pipeline_after(&later));
    let mut post = plain();
    post.current.method = "POST".into();
    assert!(!post.may_pipeline_after(&plain()) && !plain().may_pipeline_after(&post));
}

#[test]
fn rest_of_an_unwanted_body_is_skipped_if_it_is_long() {
    use ResponseBodyFraming::{Chunked, Length, None, UntilClose};
    let mut transfer = transfer(RequestOptions::default());
    assert!(!transfer.skips_rest(Length(u64::MAX)), "nothing is decided yet");
    transfer.response.disposition = BodyDisposition::Deliver;
    assert!(!transfer.skips_rest(Length(u64::MAX)));
    transfer.response.disposition = BodyDisposition::Complete;
    for (framing, received, expected) in [
        (None, 0, false),
        (Length(65_536), 0, false),
        (Length(65_537), 0, true),
        (Chunked, 65_536, false),
        (Chunked, 65_537, true),
        (UntilClose, 0, true),
    ] {
        transfer.facts.body_bytes = received;
        assert_eq!(transfer.skips_rest(framing), expected, "{framing:?} {received}");
    }
    transfer.options =
        Arc::new(RequestOptions { span: Some(WantedContentRange::Opening(70_000)), ..RequestOptions::default() });
    assert!(transfer.skips_rest(Length(65_537)));
    transfer.response.disposition = BodyDisposition::Again;
    assert!(!transfer.skips_rest(Length(70_000)) && transfer.skips_rest(Length(70_001)));
    transfer.options = Arc::new(RequestOptions { head_only: true, ..RequestOptions::default() });
    assert!(transfer.skips_rest(Length(1)) && !transfer.skips_rest(None));
}

#[test]
fn body_is_delivered_up_to_the_size_limit() {
    let deliver = |max_size, length: usize| {
        let mut transfer = transfer(RequestOptions { max_size, ..RequestOptions::default() });
        transfer.on_head(head("200 OK"), ResponseBodyFraming::Chunked, Instant::now());
        let outcome = transfer.on_body(OfferedBodyBytes::borrowed(&vec![7; length]), true, Instant::now());
        (outcome.map_err(|error| error.kind()), transfer.facts.body_bytes, transfer.progress.range.at)
    };
    assert_eq!(deliver(None, 10), (Ok(()), 10, 10));
    assert_eq!(deliver(Some(10), 10), (Ok(()), 10, 10));
    let (outcome, received, at) = deliver(Some(10), 11);
    assert!(outcome.is_err());
    assert_eq!((received, at), (10, 10));
}

#[test]
fn sent_and_received_bytes_are_counted() {
    let mut transfer = transfer(RequestOptions::default());
    transfer.facts.started -= SECOND;
    transfer.on_sent(b"12345");
    assert!(transfer.facts.content_sent >= SECOND);
    transfer.facts.started -= SECOND;
    transfer.on_moved_content(7);
    assert!(transfer.facts.content_sent >= SECOND * 2);
    assert_eq!((transfer.facts.upload_bytes, transfer.facts.request_bytes), (12, 12));
    let interim = head("103 Early Hints");
    transfer.on_interim(&interim);
    transfer.on_interim(&interim);
    assert_eq!(transfer.facts.head_bytes, 2 * interim.raw().len() as u64);
    let mut part = TransferFacts::new(Instant::now());
    (part.requests, part.connects, part.head_bytes) = (2, 3, 5);
    transfer.add_part(&part, 11);
    transfer.add_part(&part, 11);
    assert_eq!((transfer.facts.body_bytes, transfer.facts.requests, transfer.facts.connects), (22, 4, 6));
    assert_eq!(transfer.facts.head_bytes, 2 * interim.raw().len() as u64 + 10);
    transfer.push(b"abc").unwrap();
    assert_eq!((transfer.facts.body_bytes, transfer.progress.range.at), (25, 3));
}

#[test]
fn http2_is_withdrawn_only_before_a_response() {
    let options = |alpn: &[&str]| {
        let mut options = RequestOptions::default();
        options.tls.alpn = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        options
    };
    for (url, alpn, offers, falls_back) in [
        ("https://a.example/", &["h2", "http/1.1"][..], true, true),
        ("https://a.example/", &["h2"], true, false),
        ("https://a.example/", &["http/1.1"], false, false),
        ("http://a.example/", &["h2", "http/1.1"], false, false),
    ] {
        let mut transfer = transfer_to(url, options(alpn));
        assert_eq!((transfer.offers_http2(), transfer.fall_back_to_http1()), (offers, falls_back), "{url} {alpn:?}");
        assert_eq!(transfer.offers_http2(), offers && !falls_back);
        let kept = transfer_to(url, options(alpn)).without_http2().options.tls.alpn.len();
        assert_eq!(kept, alpn.len() - usize::from(offers));
    }
    let mut answered = transfer_to("https://a.example/", options(&["h2", "http/1.1"]));
    answered.response.disposition = BodyDisposition::Deliver;
    assert!(!answered.fall_back_to_http1() && answered.offers_http2());
}

#[test]
fn released_slot_is_taken_again_after_the_pause() {
    let mut transfer = transfer(RequestOptions { max_time: Some(SECOND), ..RequestOptions::default() });
    transfer.scheduling.has_given_slot = true;
    assert!(transfer.may_give_up_slot());
    transfer.give_up_slot();
    assert!(!transfer.scheduling.has_given_slot && transfer.scheduling.host_slot.is_none());
}

/// A TLS connection without a socket.
struct TestConnection;

impl ConnectionInfo for TestConnection {
    fn number(&self) -> u64 {
        3
    }

    fn peer(&self) -> Option<std::net::SocketAddr> {
        Some(([127, 0, 0, 1], 443).into())
    }

    fn local(&self) -> Option<std::net::SocketAddr> {
        None
    }

    fn certificate_fault(&self) -> Option<&str> {
        Some("a fault")
    }

    fn certificates(&self) -> Option<&Arc<[Vec<u8>]>> {
        None
    }

    fn tls(&self) -> Option<TlsFacts> {
        Some(TlsFacts { version: "TLSv1.3", cipher: "TLS_X".into(), alpn: None, resumed: false })
    }

    fn lines(&self) -> Vec<String> {
        vec!["a line".to_owned()]
    }
}

#[test]
fn tls_facts_are_kept_only_for_history_or_recorder() {
    for keep_history in [false, true] {
        let options = || RequestOptions { keep_history, ..RequestOptions::default() };
        let mut transfer = transfer_to("https://a.example/", options());
        transfer.on_connection(&TestConnection, false);
        assert_eq!(transfer.facts.tls.is_some(), keep_history);
        assert_eq!(transfer.facts.connection, Some(3));
        assert_eq!(transfer.facts.certificate_fault.as_deref(), Some("a fault"));
        let mut plain = self::transfer(options());
        plain.on_connection(&TestConnection, false);
        assert_eq!(plain.facts.certificate_fault, None, "it is the proxy's");
    }
}

#[test]
fn trace_tells_new_connections_from_reused_ones() {
    for (again, verify, expected) in [
        (true, true, &["Reusing existing connection with host a.example"][..]),
        (
            false,
            true,
            &[
                "Connected to a.example (127.0.0.1) port 443",
                "a line",
                " SSL certificate verification failed (a fault), continuing anyway!",
            ],
        ),
        (false, false, &["Connected to a.example (127.0.0.1) port 443", "a line"]),
    ] {
        let texts = Arc::new(InfoTexts::default());
        let trace: Arc<dyn TransferObserver> = texts.clone();
        let mut options = RequestOptions { trace: Some(trace), ..RequestOptions::default() };
        options.tls.verify = verify;
        let mut transfer = transfer(options);
        transfer.on_connection(&TestConnection, again);
        transfer.on_connection_kept();
        let mut texts = std::mem::take(&mut *texts.0.lock().unwrap());
        assert_eq!(texts.pop().as_deref(), Some("Connection #3 to host a.example left intact"));
        assert_eq!(texts, expected);
    }
}

#[test]
fn failed_part_of_a_range_is_requested_again_from_its_byte() -> Result<()> {
    let mut transfer = transfer(retrying(RetryRules { max: 2, ..RetryRules::default() }));
    transfer.options = Arc::new(RequestOptions { resume: true, ..RequestOptions::clone(&transfer.options) });
    let now = Instant::now();
    transfer.on_head(head("200 OK\r\nETag: \"a\"\r\nContent-Length: 10"), ResponseBodyFraming::Length(10), now);
    transfer.on_body(OfferedBodyBytes::borrowed(b"1234"), false, now)?;
    let broken = || Error::new(ErrorKind::Receive, "broken");
    let step = transfer.on_failure(broken(), ExchangeFailurePoint::InResponse, now);
    assert!(matches!(step, TransferStep::Again(_)), "{step:?}");
    assert_eq!((transfer.progress.range.at, transfer.progress.failed_at, transfer.facts.retries), (4, 4, 1));
    assert_eq!(transfer.progress.range.range_field().as_deref(), Some("bytes=4-"));
    Ok(())
}

/// A trace that wants the content of requests and responses.
#[derive(Debug)]
struct ContentTrace;

impl TransferObserver for ContentTrace {
    fn event(&self, _: &TraceEvent<'_>) {}

    fn wants_content(&self) -> bool {
        true
    }
}

#[test]
fn content_is_traced_only_if_the_trace_wants_it() {
    let traces = |trace: Option<Arc<dyn TransferObserver>>| {
        transfer(RequestOptions { trace, ..RequestOptions::default() }).traces_content()
    };
    assert!(traces(Some(Arc::new(ContentTrace))));
    assert!(!traces(Some(Arc::new(InfoTexts::default()))) && !traces(None));
}
