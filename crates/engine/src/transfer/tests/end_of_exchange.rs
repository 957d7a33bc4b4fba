//! Tests of the end of an exchange: retries, redirects, and the result.

use super::*;
use crate::request::{CurlCompat, RedirectRules, RetryObserver, RetryPause};
use ExchangeFailurePoint::{BeforeResponse, BeforeSending, ByProtocol, InResponse, WhileStale};

fn once() -> RetryRules {
    RetryRules { max: 1, ..RetryRules::default() }
}

fn of_curl() -> CurlCompat {
    CurlCompat { retries_whole: true, ..CurlCompat::default() }
}

fn post(rules: RetryRules) -> RequestOptions {
    RequestOptions { method: "POST".into(), body: Some("x".into()), ..retrying(rules) }
}

fn following() -> RequestOptions {
    RequestOptions {
        redirects: RedirectRules { follow: true, ..RedirectRules::default() },
        include_head: true,
        ..RequestOptions::default()
    }
}

fn broken() -> Error {
    Error::new(ErrorKind::Receive, "broken")
}

fn fail(transfer: &mut Transfer, broke: ExchangeFailurePoint) -> TransferStep {
    transfer.on_failure(broken(), broke, Instant::now())
}

fn receive(transfer: &mut Transfer, bytes: &[u8]) {
    transfer.on_body(OfferedBodyBytes::borrowed(bytes), false, Instant::now()).unwrap();
}

fn is_again(step: &TransferStep) -> bool {
    matches!(step, TransferStep::Again(_))
}

/// A transfer that has received 4 of 10 bytes of a response with these fields.
fn begun(sink: &TestSink, options: RequestOptions, text: &str) -> Box<Transfer> {
    let mut transfer = sink.transfer(options);
    request(&mut transfer);
    respond(&mut transfer, text);
    receive(&mut transfer, b"1234");
    transfer
}

const RESUMABLE: &str = "200 OK\r\nETag: \"a\"\r\nContent-Length: 10";
const PLAIN: &str = "200 OK\r\nContent-Length: 10";

#[test]
fn delivered_response_ends_the_transfer() {
    let sink = TestSink::default();
    let mut transfer = sink.transfer(RequestOptions::default());
    assert!(matches!(exchange(&mut transfer, RESUMABLE, "1234567890"), TransferStep::Done(Ok(()))));
    assert_eq!((sink.finished(), sink.text().as_str(), transfer.facts.retries), (1, "1234567890", 0));
}

#[test]
fn short_response_is_continued_or_fails() {
    let sink = TestSink::default();
    let mut transfer = begun(&sink, retrying(once()), RESUMABLE);
    assert!(is_again(&transfer.on_complete(Instant::now())));
    assert!(request(&mut transfer).contains("Range: bytes=4-\r\nIf-Range: \"a\"\r\n"));
    let mut transfer = begun(&sink, RequestOptions::default(), RESUMABLE);
    let error = error_of(transfer.on_complete(Instant::now()));
    assert_eq!(error.kind(), ErrorKind::PartialBody);
    assert!(error.to_string().contains("sent less than the range it announced"), "{error}");
}

#[test]
fn missing_gap_is_requested_next() {
    let sink = TestSink::default();
    let mut transfer = sink.transfer(following());
    exchange(&mut transfer, "302 X\r\nLocation: /b", "");
    sink.state().gap = Some(20..30);
    assert!(is_again(&exchange(&mut transfer, PLAIN, "1234567890")));
    assert!(transfer.current.skips_redirects && sink.finished() == 0);
    let text = request(&mut transfer);
    assert!(text.starts_with("GET /b ") && text.contains("Range: bytes=20-29\r\n"), "{text}");
    let mut post = sink.transfer(post(once()));
    sink.state().gap = Some(20..30);
    assert!(matches!(exchange(&mut post, PLAIN, "1234567890"), TransferStep::Done(Ok(()))));
    let mut part = sink.transfer(RequestOptions::default());
    part.split = SplitRole::Part { id: 1, ordinal: 2 };
    assert!(matches!(exchange(&mut part, PLAIN, "1234567890"), TransferStep::Done(Ok(()))));
    assert!(sink.state().gap.is_some(), "the coordinator assigns the ranges");
}

#[test]
fn bad_status_body_is_delivered_before_its_error() {
    for (fail, fail_with_body, status, expected) in [
        (true, true, 404, Some(ErrorKind::Status)),
        (true, true, 400, Some(ErrorKind::Status)),
        (true, true, 399, None),
        (false, true, 404, None),
        (false, false, 404, None),
    ] {
        let sink = TestSink::default();
        let mut transfer = sink.transfer(RequestOptions { fail, fail_with_body, ..RequestOptions::default() });
        let step = exchange(&mut transfer, &format!("{status} X\r\nContent-Length: 4"), "body");
        let kind = match step {
            TransferStep::Done(result) => result.err().map(|error| error.kind()),
            step => panic!("{step:?}"),
        };
        assert_eq!((kind, sink.text().as_str(), sink.finished()), (expected, "body", 1), "{status}");
    }
}

#[test]
fn heads_are_delivered_if_no_body_follows() {
    let heads = "HTTP/1.1 302 X\r\nLocation: /b\r\n\r\n";
    let redirected = |options| {
        let sink = TestSink::default();
        let mut transfer = sink.transfer(options);
        exchange(&mut transfer, "302 X\r\nLocation: /b", "");
        (transfer, sink)
    };
    let (mut transfer, sink) = redirected(following());
    assert_eq!(error_of(fail(&mut transfer, BeforeResponse)).kind(), ErrorKind::Receive);
    assert_eq!((sink.text().as_str(), sink.begun()), (heads, vec![(Some(0), 0)]));
    let (mut transfer, sink) = redirected(RequestOptions { include_head: false, ..following() });
    transfer.history.heads = b"x".to_vec();
    error_of(fail(&mut transfer, BeforeResponse));
    assert!(sink.begun().is_empty());
    let (mut transfer, sink) = redirected(following());
    transfer.split = SplitRole::Part { id: 1, ordinal: 2 };
    error_of(fail(&mut transfer, BeforeResponse));
    assert!(sink.begun().is_empty());
    let (mut transfer, sink) = redirected(following());
    transfer.history.heads.clear();
    error_of(fail(&mut transfer, BeforeResponse));
    assert!(sink.begun().is_empty());
    let (mut transfer, sink) = redirected(following());
    respond(&mut transfer, PLAIN);
    transfer.history.heads = b"x".to_vec();
    error_of(fail(&mut transfer, InResponse));
    assert_eq!(sink.begun().len(), 1, "they were delivered with the body");
}

#[test]
fn interim_head_is_delivered_if_nothing_follows() {
    let sink = TestSink::default();
    let mut transfer = sink.transfer(following());
    transfer.on_interim(&head("103 Early Hints"));
    error_of(fail(&mut transfer, BeforeResponse));
    assert_eq!(sink.text(), "HTTP/1.1 103 Early Hints\r\n\r\n");
}

#[test]
fn received_bytes_of_unwanted_bodies_do_not_count() {
    let ended = |has_begun, is_part| {
        let mut transfer = transfer(RequestOptions::default());
        (transfer.progress.has_begun, transfer.facts.body_bytes) = (has_begun, 7);
        if is_part {
            transfer.split = SplitRole::Part { id: 1, ordinal: 2 };
        }
        transfer.finish_with(Ok(()), Instant::now());
        transfer.facts.body_bytes
    };
    assert_eq!([ended(false, false), ended(true, false), ended(false, true)], [0, 7, 7]);
}

#[test]
fn refused_tunnel_is_bad_status_in_curl_mode() {
    let compat = CurlCompat { refused_tunnel_is_status_error: true, ..CurlCompat::default() };
    let options =
        |curl_compat, fail, fail_with_body| RequestOptions { curl_compat, fail, fail_with_body, ..Default::default() };
    for (options, kind, status, expected) in [
        (options(compat.clone(), true, false), ErrorKind::Connect, 403, ErrorKind::Status),
        (options(compat.clone(), true, false), ErrorKind::Connect, 400, ErrorKind::Status),
        (options(compat.clone(), true, false), ErrorKind::Connect, 399, ErrorKind::Connect),
        (options(compat.clone(), true, false), ErrorKind::TlsHandshake, 403, ErrorKind::TlsHandshake),
        (options(compat.clone(), true, true), ErrorKind::Connect, 403, ErrorKind::Connect),
        (options(compat, false, false), ErrorKind::Connect, 403, ErrorKind::Connect),
        (options(CurlCompat::default(), true, false), ErrorKind::Connect, 403, ErrorKind::Connect),
    ] {
        let refused = Error::new(kind, "refused").with_status(status);
        let step = transfer(options).on_failure(refused, BeforeSending, Instant::now());
        assert_eq!(error_of(step).kind(), expected, "{kind:?} {status}");
    }
}

#[test]
fn failure_says_whether_the_connection_failed() {
    let failed = |broke| {
        error_of(transfer(RequestOptions::default()).on_failure(
            Error::new(ErrorKind::Timeout, "x"),
            broke,
            Instant::now(),
        ))
    };
    assert!(failed(BeforeSending).is_connect() && !failed(BeforeResponse).is_connect());
}

#[test]
fn stale_connection_is_replaced_without_a_retry() {
    for (options, kind, broke, expected) in [
        (RequestOptions::default(), ErrorKind::EmptyReply, WhileStale, true),
        (RequestOptions::default(), ErrorKind::Timeout, WhileStale, false),
        (RequestOptions::default(), ErrorKind::EmptyReply, BeforeResponse, false),
        (post(RetryRules { max: 0, ..RetryRules::default() }), ErrorKind::EmptyReply, WhileStale, false),
    ] {
        let mut transfer = transfer(options);
        request(&mut transfer);
        let step = transfer.on_failure(Error::new(kind, "x"), broke, Instant::now());
        assert_eq!((is_again(&step), transfer.reuse.needs_new_connection), (expected, expected), "{kind:?} {broke:?}");
        assert_eq!(transfer.attempt.counted_attempts, 0);
    }
}

#[test]
fn consumed_content_prevents_a_retry_after_sending() {
    let options = || {
        let body = Some(crate::body::upload::RequestBody::reader(&b"x"[..]));
        RequestOptions {
            method: "PUT".into(),
            body,
            ..retrying(RetryRules { connrefused: true, resets: true, ..once() })
        }
    };
    for (kind, broke, expected) in
        [(ErrorKind::Receive, BeforeResponse, false), (ErrorKind::Connect, BeforeSending, true)]
    {
        let mut transfer = transfer(options());
        let _ = transfer.upload().unwrap().read(&mut [0; 8]).unwrap();
        let step = transfer.on_failure(Error::new(kind, "x"), broke, Instant::now());
        assert_eq!(is_again(&step), expected, "{kind:?}");
    }
}

#[test]
fn part_of_a_split_is_not_retried() {
    let mut part = transfer(retrying(RetryRules { resets: true, ..once() }));
    part.split = SplitRole::Part { id: 1, ordinal: 2 };
    assert!(!is_again(&fail(&mut part, BeforeResponse)));
    let mut whole = transfer(retrying(RetryRules { resets: true, ..once() }));
    assert!(is_again(&fail(&mut whole, BeforeResponse)));
}

#[test]
fn failure_after_the_decision_does_not_matter() {
    let mut transfer = transfer(following());
    request(&mut transfer);
    respond(&mut transfer, "302 X\r\nLocation: /b");
    assert!(is_again(&fail(&mut transfer, InResponse)));
    assert_eq!(transfer.target().to_url(), "http://a.example/b");
}

#[test]
fn broken_body_is_resumed_only_with_a_validator() {
    let all = || RetryRules { all_errors: true, ..once() };
    let sink = TestSink::default();
    let mut resumable = begun(&sink, retrying(all()), RESUMABLE);
    assert!(is_again(&fail(&mut resumable, InResponse)));
    assert_eq!((resumable.position(), sink.restarted()), (4, 0));
    for (options, text) in [
        (retrying(all()), PLAIN),
        (RequestOptions { resume: false, ..retrying(all()) }, RESUMABLE),
        (RequestOptions { method: "PUT".into(), ..retrying(all()) }, RESUMABLE),
    ] {
        let sink = TestSink::default();
        let mut transfer = begun(&sink, options.clone(), text);
        assert!(!is_again(&fail(&mut transfer, InResponse)), "the output cannot be discarded");
        let sink = TestSink::restartable();
        let mut transfer = begun(&sink, options, text);
        assert!(is_again(&fail(&mut transfer, InResponse)));
        assert_eq!((transfer.position(), sink.restarted(), transfer.progress.has_begun), (0, 1, false));
    }
}

#[test]
fn progress_renews_the_retries() {
    for (bytes, is_resumable, expected) in [(262_144, true, 1), (262_143, true, 3), (262_144, false, 3)] {
        let sink = TestSink::restartable();
        let rules = RetryRules { max: 9, all_errors: true, ..RetryRules::default() };
        let mut transfer = sink.transfer(retrying(rules));
        let tag = if is_resumable { "ETag: \"a\"\r\n" } else { "" };
        respond(&mut transfer, &format!("200 OK\r\n{tag}Content-Length: 900000"));
        receive(&mut transfer, &vec![0; bytes]);
        transfer.attempt.counted_attempts = 2;
        assert!(is_again(&fail(&mut transfer, InResponse)));
        assert_eq!(transfer.attempt.counted_attempts, expected, "{bytes} {is_resumable}");
    }
}

#[test]
fn curl_retry_extends_files_only_with_ranges() {
    let rules = || RetryRules { max: 9, all_errors: true, ..RetryRules::default() };
    let curl = || RequestOptions { curl_compat: of_curl(), ..retrying(rules()) };
    let ranges = "200 OK\r\nAccept-Ranges: bytes\r\nContent-Length: 10";
    let resumed = "206 X\r\nContent-Range: bytes 3-12/13\r\nContent-Length: 10";
    for (options, text, expected) in [
        (curl(), ranges, Some("Range: bytes=4-\r\n")),
        (RequestOptions { resume_from: Some(3), ..curl() }, resumed, Some("Range: bytes=7-\r\n")),
        (curl(), "206 X\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 10", None),
        (curl(), PLAIN, None),
        (curl(), "200 OK\r\nAccept-Ranges: none\r\nContent-Length: 10", None),
        (curl(), "404 X\r\nAccept-Ranges: bytes\r\nContent-Length: 10", None),
        (RequestOptions { include_head: true, ..curl() }, ranges, None),
        (RequestOptions { method: "PUT".into(), ..curl() }, ranges, None),
        (retrying(rules()), ranges, None),
    ] {
        let sink = TestSink::restartable();
        sink.state().keeps_part = true;
        let options = RequestOptions { resume: false, ..options };
        let mut transfer = sink.transfer(options);
        request(&mut transfer);
        transfer.on_head(head(text), ResponseBodyFraming::Length(10), Instant::now());
        if decision(&transfer) != "deliver" {
            assert_eq!(expected, None, "{text}");
            continue;
        }
        receive(&mut transfer, b"1234");
        assert!(is_again(&fail(&mut transfer, InResponse)), "{text}");
        assert_eq!(sink.restarted(), u32::from(expected.is_none()), "{text}");
        let text = request(&mut transfer);
        assert!(expected.map_or_else(|| !text.contains("Range"), |field| text.contains(field)), "{text}");
    }
    let sink = TestSink::restartable();
    sink.state().keeps_part = true;
    let mut empty = sink.transfer(RequestOptions { resume: false, ..curl() });
    request(&mut empty);
    respond(&mut empty, ranges);
    assert!(is_again(&fail(&mut empty, InResponse)));
    assert_eq!(sink.restarted(), 1, "there is nothing to extend");
}

#[test]
fn retry_must_begin_within_the_total_time() {
    let fixed = RetryRules { delay: Some(SECOND * 10), resets: true, ..once() };
    for (total, expected) in [(5, false), (500, true)] {
        let options = RequestOptions { total_time: Some(SECOND * total), ..retrying(fixed.clone()) };
        assert_eq!(is_again(&fail(&mut transfer(options), BeforeResponse)), expected, "{total}");
    }
}

#[test]
fn mirror_gets_a_quarter_of_the_remaining_time() {
    let now = Instant::now();
    let redirected = |options: RequestOptions, location: &str| {
        let rules = RedirectRules { follow: true, ..RedirectRules::default() };
        let mut transfer = transfer(RequestOptions { redirects: rules, ..options });
        transfer.attempt.first_started = now;
        request(&mut transfer);
        respond(&mut transfer, &format!("302 X\r\nLocation: {location}"));
        transfer.on_complete(now);
        transfer
    };
    let timed = |options: RequestOptions| RequestOptions { total_time: Some(SECOND * 400), ..options };
    let mirror = "http://b.example/";
    let mut limited = redirected(timed(retrying(once())), mirror);
    assert_eq!(limited.deadline(), Some(now + SECOND * 100));
    respond(&mut limited, PLAIN);
    assert_eq!(limited.deadline(), Some(now + SECOND * 400), "it has answered");
    for (options, location, seconds) in [
        (timed(retrying(once())), "/b", 400),
        (timed(RequestOptions::default()), mirror, 400),
        (timed(post(RetryRules { any_method: true, ..once() })), mirror, 400),
        (timed(RequestOptions { max_time: Some(SECOND * 300), ..retrying(once()) }), mirror, 300),
    ] {
        let deadline = redirected(options, location).deadline().unwrap();
        assert!(deadline > now + SECOND * (seconds - 50) && deadline <= now + SECOND * (seconds + 50), "{location}");
    }
    let untimed = redirected(retrying(once()), mirror);
    assert_eq!(untimed.deadline(), None);
}

/// Stores the reported pauses.
#[derive(Default)]
struct Pauses(Mutex<Vec<(String, u32, u32)>>);

impl RetryObserver for Pauses {
    fn begins(&self, pause: &RetryPause<'_>) {
        self.0.lock().unwrap().push((pause.cause.to_owned(), pause.retry, pause.most));
    }
}

#[test]
fn retries_are_counted_and_reported() {
    let pauses = Arc::new(Pauses::default());
    let rules = RetryRules { resets: true, max: 3, ..RetryRules::default() };
    let options = RequestOptions { pauses: Some(pauses.clone()), keep_history: true, ..retrying(rules) };
    let mut transfer = transfer(options);
    assert!(is_again(&fail(&mut transfer, BeforeResponse)));
    assert!(is_again(&exchange(&mut transfer, "503 X\r\nContent-Length: 0", "")));
    let reported = std::mem::take(&mut *pauses.0.lock().unwrap());
    assert_eq!(reported, [("broken".to_owned(), 1, 3), ("the server answered 503".to_owned(), 2, 3)]);
    assert_eq!((transfer.attempt.counted_attempts, transfer.facts.retries), (2, 2));
    let failed: Vec<_> = transfer.facts.failed_attempts.iter().map(|failed| failed.error.kind()).collect();
    assert_eq!(failed, [ErrorKind::Receive, ErrorKind::Status]);
}

#[test]
fn last_failed_attempts_are_kept() {
    let rules = RetryRules { max: 99, resets: true, delay: Some(Duration::ZERO), ..RetryRules::default() };
    let mut transfer = transfer(RequestOptions { keep_history: true, ..retrying(rules) });
    for number in 0..40 {
        let error = Error::new(ErrorKind::Receive, format!("number {number}"));
        assert!(is_again(&transfer.on_failure(error, BeforeResponse, Instant::now())));
    }
    let failed = &transfer.facts.failed_attempts;
    assert_eq!((failed.len(), failed[0].error.cause().as_str()), (32, "number 8"));
}

#[test]
fn unusable_response_is_retried_as_in_curl() {
    let all = || RetryRules { all_errors: true, ..once() };
    let curl = || RequestOptions { curl_compat: of_curl(), ..retrying(all()) };
    let refuse = |options: RequestOptions, kind, has_begun, can_restart, is_part| {
        let sink = TestSink::default();
        sink.state().can_restart = can_restart;
        let mut transfer = sink.transfer(options);
        transfer.progress.has_begun = has_begun;
        if is_part {
            transfer.split = SplitRole::Part { id: 1, ordinal: 2 };
        }
        transfer.response.disposition = BodyDisposition::Fail(Error::new(kind, "x"));
        is_again(&transfer.on_complete(Instant::now()))
    };
    assert!(refuse(curl(), ErrorKind::Range, false, false, false));
    assert!(refuse(curl(), ErrorKind::Range, true, true, false));
    assert!(!refuse(curl(), ErrorKind::Range, true, false, false));
    assert!(!refuse(curl(), ErrorKind::Changed, false, false, false));
    assert!(!refuse(curl(), ErrorKind::Range, false, false, true));
    assert!(!refuse(retrying(all()), ErrorKind::Range, false, false, false));
    assert!(!refuse(
        RequestOptions { curl_compat: of_curl(), ..retrying(once()) },
        ErrorKind::Range,
        false,
        false,
        false
    ));
}

#[test]
fn curl_retry_writes_earlier_heads_again() {
    for (curl_compat, can_restart, expected) in [
        (
            of_curl(),
            true,
            "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n1234567890",
        ),
        (CurlCompat::default(), true, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n1234567890"),
    ] {
        let sink = TestSink::default();
        sink.state().can_restart = can_restart;
        let options = RequestOptions { include_head: true, fail: true, curl_compat, ..retrying(once()) };
        let mut transfer = sink.transfer(options);
        assert!(is_again(&exchange(&mut transfer, "503 X\r\nContent-Length: 0", "")));
        assert!(matches!(exchange(&mut transfer, PLAIN, "1234567890"), TransferStep::Done(Ok(()))));
        assert_eq!(sink.text(), expected);
    }
}

#[test]
fn delivered_body_of_a_retried_status_is_discarded() {
    for (body, expected) in [("", 1), ("body", 1)] {
        let sink = TestSink::restartable();
        let options = RequestOptions { curl_compat: of_curl(), ..retrying(once()) };
        let mut transfer = sink.transfer(options);
        assert!(is_again(&exchange(&mut transfer, &format!("503 X\r\nContent-Length: {}", body.len()), body)));
        assert_eq!((sink.restarted(), sink.finished(), transfer.facts.retries), (expected, 0, 1));
        assert!(transfer.response.retry_after_body.is_none());
    }
}

#[test]
fn error_names_the_requested_and_the_redirected_url() {
    let mut transfer = transfer(following());
    let direct = transfer.annotate(broken());
    assert_eq!((direct.url(), direct.asked_url()), (Some("http://a.example/"), None));
    exchange(&mut transfer, "302 X\r\nLocation: /b", "");
    let redirected = transfer.annotate(broken());
    assert_eq!((redirected.url(), redirected.asked_url()), (Some("http://a.example/b"), Some("http://a.example/")));
}

#[test]
fn redirect_target_is_left_after_a_failure() {
    let options = |rules| RequestOptions { include_head: false, ..RequestOptions { retry: rules, ..following() } };
    let rules = RetryRules { resets: true, ..once() };
    let mut transfer = transfer(options(rules.clone()));
    exchange(&mut transfer, "302 X\r\nLocation: /b", "");
    assert!(is_again(&fail(&mut transfer, BeforeResponse)));
    assert_eq!((transfer.target().to_url().as_str(), transfer.facts.redirects), ("http://a.example/", 0));
    let mut changed = self::transfer(RequestOptions { method: "PUT".into(), body: Some("x".into()), ..options(rules) });
    exchange(&mut changed, "303 X\r\nLocation: /b", "");
    assert!(is_again(&fail(&mut changed, BeforeResponse)));
    assert_eq!(changed.target().to_url(), "http://a.example/b", "the redirect has changed the method");
}

#[test]
fn idempotent_requests_are_sent_again() {
    let one_shot = || Some(crate::body::upload::RequestBody::reader(std::io::empty()));
    for (options, expected) in [
        (RequestOptions::default(), true),
        (post(RetryRules::default()), false),
        (post(RetryRules { any_method: true, ..RetryRules::default() }), true),
        (RequestOptions { method: "PUT".into(), body: one_shot(), ..RequestOptions::default() }, false),
    ] {
        assert_eq!(transfer(options).may_resend(), expected);
    }
}

#[test]
fn reset_for_another_attempt_needs_an_unwritten_body() {
    for (options, can_restart, expected) in [
        (RequestOptions::default(), true, true),
        (RequestOptions::default(), false, false),
        (post(once()), true, false),
    ] {
        let sink = TestSink::default();
        sink.state().can_restart = can_restart;
        let mut transfer = begun(&sink, options, PLAIN);
        assert_eq!(transfer.reset_for_retry(), expected);
        let progress = (transfer.position(), transfer.facts.body_bytes, transfer.progress.has_begun);
        assert_eq!(progress, if expected { (0, 0, false) } else { (4, 4, true) });
    }
}

#[test]
fn misattributed_response_is_retracted() {
    for can_restart in [true, false] {
        let sink = TestSink::default();
        let mut transfer = sink.transfer(RequestOptions::default());
        sink.state().can_restart = can_restart;
        assert!(transfer.awaits_head());
        request(&mut transfer);
        respond(&mut transfer, PLAIN);
        assert!(!transfer.awaits_head());
        receive(&mut transfer, b"1234");
        let step = transfer.retract_response(Instant::now());
        assert_eq!((is_again(&step), transfer.awaits_head()), (can_restart, can_restart));
        assert_eq!((transfer.head().is_some(), transfer.position() > 0), (!can_restart, !can_restart));
    }
}

#[test]
fn attempt_clock_may_begin_with_its_slot() {
    let caps = haul_policy::queue::QueueCaps { total: 1, per_host: 1 };
    let slot = haul_policy::queue::JobQueue::<(), u8>::new(caps).push(&0, 0, ());
    let mut transfer = transfer(RequestOptions { max_time: Some(SECOND), ..RequestOptions::default() });
    let now = Instant::now() + SECOND * 9;
    transfer.resume_with_slot(slot, false, now);
    assert!(transfer.deadline() < Some(now) && transfer.scheduling.host_slot.is_some());
    transfer.resume_with_slot(slot, true, now);
    assert_eq!(transfer.deadline(), Some(now + SECOND));
}

#[test]
fn protocol_violation_is_not_retried() {
    let rules = RetryRules { resets: true, ..once() };
    assert!(!is_again(&fail(&mut transfer(retrying(rules)), ByProtocol)));
}

#[test]
fn only_early_failures_are_refusals() {
    for (broke, expected) in [(BeforeResponse, true), (InResponse, false), (ByProtocol, false)] {
        let mut transfer = transfer(RequestOptions::default());
        fail(&mut transfer, broke);
        assert_eq!(transfer.attempt.refusal.is_some(), expected, "{broke:?}");
    }
}

#[test]
fn attempt_after_overload_begins_after_its_pause() {
    let now = Instant::now();
    let mut transfer = transfer(RequestOptions { max_time: Some(SECOND), ..retrying(once()) });
    transfer.attempt.refusal = Some(OverloadRefusal::Overload);
    let again = TransferStep::Again(Duration::ZERO);
    let pause = transfer.retry_for_load(RefusedLoad::Initial, &again, now).unwrap();
    assert_eq!(transfer.deadline(), Some(now + pause + SECOND));
}
