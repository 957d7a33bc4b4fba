//! Tests of the decisions about the body of a response.

use super::*;
use crate::request::{CurlCompat, ResponseHeadPredicate};
use crate::request::{RedirectRules, Validator};
use crate::state::alt_svc::AltSvcCache;

fn unreliable() -> CurlCompat {
    CurlCompat { accepts_unreliable_responses: true, ..CurlCompat::default() }
}

fn resumed() -> RequestOptions {
    RequestOptions { resume_from: Some(5), ..RequestOptions::default() }
}

fn validator() -> Validator {
    Validator::strong(Some(b"\"a\""), None, None).unwrap()
}

/// Returns the decision about a response to these options, and the kind of its error.
fn decide(options: RequestOptions, text: &str) -> (&'static str, Option<ErrorKind>) {
    let mut transfer = transfer(options);
    respond(&mut transfer, text);
    outcome(&transfer)
}

fn outcome(transfer: &Transfer) -> (&'static str, Option<ErrorKind>) {
    let error = match &transfer.response.disposition {
        BodyDisposition::Fail(error) => Some(error.kind()),
        _ => None,
    };
    (decision(transfer), error)
}

#[test]
fn bad_status_fails_only_with_fail_option() {
    let options = |fail, fail_with_body| RequestOptions { fail, fail_with_body, ..RequestOptions::default() };
    for (fail, fail_with_body, status, expected) in [
        (false, false, 404, ("deliver", None)),
        (true, false, 400, ("fail", Some(ErrorKind::Status))),
        (true, false, 399, ("deliver", None)),
        (true, true, 404, ("deliver", None)),
        (true, false, 200, ("deliver", None)),
    ] {
        assert_eq!(decide(options(fail, fail_with_body), &format!("{status} X")), expected, "{status}");
    }
}

#[test]
fn transient_status_is_retried() {
    let curl = CurlCompat { retries_whole: true, ..CurlCompat::default() };
    let all = RetryRules { max: 1, all_errors: true, ..RetryRules::default() };
    let once = || retrying(RetryRules { max: 1, ..RetryRules::default() });
    for (options, status, expected, after_body) in [
        (once(), 503, "retry", false),
        (once(), 404, "deliver", false),
        (retrying(all.clone()), 404, "deliver", false),
        (RequestOptions { fail: true, ..retrying(all.clone()) }, 404, "retry", false),
        (RequestOptions { fail: true, ..once() }, 404, "fail", false),
        (RequestOptions { curl_compat: curl.clone(), ..once() }, 503, "deliver", true),
        (RequestOptions { curl_compat: curl.clone(), fail: true, ..once() }, 503, "retry", false),
        (RequestOptions { curl_compat: curl, fail: true, fail_with_body: true, ..once() }, 503, "deliver", true),
    ] {
        let mut transfer = transfer(options);
        respond(&mut transfer, &format!("{status} X"));
        assert_eq!(decision(&transfer), expected, "{status}");
        assert_eq!(transfer.response.retry_after_body.is_some(), after_body, "{status} {expected}");
    }
    let post = RequestOptions { method: "POST".into(), body: Some("x".into()), ..once() };
    assert_eq!(decide(post, "503 X").0, "deliver", "it is not idempotent");
}

#[test]
fn head_of_a_refused_response_is_delivered() {
    let sink = TestSink::default();
    let mut transfer = sink.transfer(RequestOptions { fail: true, include_head: true, ..RequestOptions::default() });
    respond(&mut transfer, "404 Not Found");
    assert_eq!(
        (outcome(&transfer), sink.text()),
        (("fail", Some(ErrorKind::Status)), "HTTP/1.1 404 Not Found\r\n\r\n".into())
    );
    let without = TestSink::default();
    let mut transfer = without.transfer(RequestOptions { fail: true, ..RequestOptions::default() });
    respond(&mut transfer, "404 Not Found");
    assert!(without.begun().is_empty());
}

#[test]
fn head_only_ends_with_the_head() {
    let head_only = || RequestOptions { head_only: true, max_size: Some(10), ..RequestOptions::default() };
    let failing = || RequestOptions { fail: true, fail_with_body: true, ..head_only() };
    for (options, text, expected) in [
        (head_only(), "200 OK\r\nContent-Length: 10", ("complete", None)),
        (head_only(), "200 OK\r\nContent-Length: 11", ("fail", Some(ErrorKind::TooLarge))),
        (head_only(), "404 X", ("complete", None)),
        (failing(), "404 X", ("fail", Some(ErrorKind::Status))),
        (failing(), "400 X", ("fail", Some(ErrorKind::Status))),
        (failing(), "200 X", ("complete", None)),
    ] {
        assert_eq!(decide(options, text), expected, "{text}");
    }
    let sink = TestSink::default();
    let mut transfer = sink.transfer(head_only());
    transfer.on_head(head("200 OK\r\nContent-Length: 10"), ResponseBodyFraming::None, Instant::now());
    assert_eq!(decision(&transfer), "deliver", "the response has no body");
    let mut transfer = sink.transfer(head_only());
    respond(&mut transfer, "200 OK\r\nContent-Length: 10");
    assert_eq!(sink.begun(), [(Some(0), 0), (Some(0), 0)]);
}

/// Wants responses with an `X-Wanted` field.
struct Wanted;

impl ResponseHeadPredicate for Wanted {
    fn wants(&self, head: &ResponseHead) -> bool {
        head.get("x-wanted").is_some()
    }
}

#[test]
fn unwanted_body_counts_as_not_modified() {
    for (text, framing, expected, status) in [
        ("200 OK", ResponseBodyFraming::Length(3), "complete", 304),
        ("200 OK", ResponseBodyFraming::None, "deliver", 200),
        ("200 OK\r\nX-Wanted: 1", ResponseBodyFraming::Length(3), "deliver", 200),
    ] {
        let mut transfer = transfer(RequestOptions { wants: Some(Arc::new(Wanted)), ..RequestOptions::default() });
        transfer.on_head(head(text), framing, Instant::now());
        assert_eq!((decision(&transfer), transfer.facts.status), (expected, status), "{text} {framing:?}");
    }
}

#[test]
fn misdirected_request_is_repeated_once() {
    let mut transfer = transfer(RequestOptions::default());
    respond(&mut transfer, "421 X");
    assert_eq!(decision(&transfer), "deliver", "the connection was new");
    let mut transfer = self::transfer(RequestOptions::default());
    transfer.reuse.on_connection(true, false);
    assert!(!transfer.reuse.wants_own_host());
    respond(&mut transfer, "421 X");
    assert_eq!((decision(&transfer), transfer.reuse.wants_own_host()), ("again", true));
    respond(&mut transfer, "421 X");
    assert_eq!(decision(&transfer), "deliver");
}

#[test]
fn proxy_challenge_without_proxy_is_delivered() {
    assert_eq!(decide(RequestOptions::default(), "407 X\r\nProxy-Authenticate: Basic realm=\"a\"").0, "deliver");
}

#[test]
fn redirect_that_cannot_be_followed_fails() {
    let rules = RedirectRules { follow: true, max: 1, ..RedirectRules::default() };
    let following = || RequestOptions { redirects: rules.clone(), ..RequestOptions::default() };
    for (text, expected) in [
        ("302 X\r\nLocation: /b", ("follow", None)),
        ("302 X", ("deliver", None)),
        ("302 X\r\nLocation: /b\r\nLocation: /b", ("follow", None)),
        ("302 X\r\nLocation: /b\r\nLocation:", ("follow", None)),
        ("302 X\r\nLocation: /b\r\nLocation: /c", ("fail", Some(ErrorKind::Protocol))),
        ("302 X\r\nLocation: gopher://b.example/", ("fail", Some(ErrorKind::UnsupportedScheme))),
        ("302 X\r\nLocation: http://[/", ("fail", Some(ErrorKind::Url))),
    ] {
        assert_eq!(decide(following(), text), expected, "{text}");
    }
    let mut transfer = transfer(following());
    exchange(&mut transfer, "302 X\r\nLocation: /b", "");
    respond(&mut transfer, "302 X\r\nLocation: /c");
    let BodyDisposition::Fail(error) = &transfer.response.disposition else { panic!("{}", decision(&transfer)) };
    assert_eq!(error.kind(), ErrorKind::TooManyRedirects);
    assert!(error.to_string().contains("http://a.example/ -> http://a.example/b"), "{error}");
}

#[test]
fn followed_redirects_are_kept_for_the_history_only() {
    for keep_history in [true, false] {
        let redirects = RedirectRules { follow: true, ..RedirectRules::default() };
        let mut transfer = transfer(RequestOptions { redirects, keep_history, ..RequestOptions::default() });
        exchange(&mut transfer, "302 X\r\nLocation: /b", "");
        exchange(&mut transfer, "200 OK\r\nContent-Length: 1", "x");
        let statuses: Vec<_> = transfer.history().iter().map(|hop| (hop.target.to_url(), hop.head.status())).collect();
        let expected = [("http://a.example/".to_owned(), 302)];
        assert_eq!(statuses, if keep_history { &expected[..] } else { &[] });
        assert_eq!(transfer.head().map(ResponseHead::status), Some(200));
        assert_eq!((transfer.facts.redirects, transfer.target().to_url().as_str()), (1, "http://a.example/b"));
    }
}

#[test]
fn response_to_other_caller_range_is_refused() {
    let ranged = || RequestOptions { range: Some("0-4".into()), ..RequestOptions::default() };
    let lenient = || RequestOptions { curl_compat: unreliable(), ..ranged() };
    for (options, text, expected) in [
        (ranged(), "206 X\r\nContent-Range: bytes 0-4/9", ("deliver", None)),
        (ranged(), "206 X\r\nContent-Range: bytes 1-4/9", ("fail", Some(ErrorKind::Range))),
        (ranged(), "200 X\r\nContent-Range: bytes 1-4/9", ("deliver", None)),
        (lenient(), "206 X\r\nContent-Range: bytes 1-4/9", ("deliver", None)),
    ] {
        assert_eq!(decide(options, text), expected, "{text}");
    }
}

#[test]
fn unrequested_part_fails_only_with_fail_option() {
    let text = "206 X\r\nContent-Range: bytes 2-3/9\r\nContent-Length: 2";
    let mut transfer = TestSink::restartable().transfer(RequestOptions { fail: true, ..RequestOptions::default() });
    respond(&mut transfer, text);
    let BodyDisposition::Fail(error) = &transfer.response.disposition else { panic!("{}", decision(&transfer)) };
    assert_eq!(error.to_string(), "asked for no range, the server sent another range than the one that was asked for");
    assert_eq!(decide(RequestOptions::default(), text).0, "deliver");
    assert_eq!(decide(RequestOptions { curl_compat: unreliable(), ..Default::default() }, text).0, "deliver");
    assert_eq!(decide(RequestOptions { curl_compat: unreliable(), ..resumed() }, text).0, "fail");
}

#[test]
fn resumed_content_needs_the_requested_range() {
    let lenient = || RequestOptions { curl_compat: unreliable(), ..resumed() };
    for (options, text, expected) in [
        (resumed(), "206 X\r\nContent-Range: bytes 5-8/9\r\nContent-Length: 4", ("deliver", None)),
        (resumed(), "200 X\r\nContent-Length: 9", ("fail", Some(ErrorKind::Range))),
        (resumed(), "200 X\r\nContent-Length: 5", ("fail", Some(ErrorKind::Range))),
        (resumed(), "204 X\r\nContent-Length: 9", ("fail", Some(ErrorKind::Range))),
        (resumed(), "404 X\r\nContent-Length: 5", ("fail", Some(ErrorKind::Range))),
        (resumed(), "304 X\r\nContent-Length: 9", ("deliver", None)),
        (resumed(), "416 X\r\nContent-Range: bytes */5\r\nContent-Length: 0", ("complete", None)),
        (resumed(), "416 X\r\nContent-Length: 0", ("again", None)),
        (lenient(), "416 X\r\nContent-Length: 0", ("complete", None)),
        (lenient(), "416 X\r\nContent-Range: bytes */4\r\nContent-Length: 0", ("fail", Some(ErrorKind::Range))),
        (lenient(), "304 X\r\nContent-Length: 9", ("fail", Some(ErrorKind::Range))),
        (lenient(), "404 X\r\nContent-Length: 5", ("complete", None)),
        (lenient(), "200 X\r\nContent-Length: 5", ("complete", None)),
        (lenient(), "206 X\r\nContent-Length: 5", ("fail", Some(ErrorKind::Range))),
        (lenient(), "200 X\r\nContent-Length: 9", ("fail", Some(ErrorKind::Range))),
        (lenient(), "200 X\r\nContent-Length: 5\r\nContent-Range: bytes 3-7/9", ("fail", Some(ErrorKind::Range))),
    ] {
        assert_eq!(decide(options, text), expected, "{text}");
    }
    let post = RequestOptions { method: "POST".into(), body: Some("x".into()), ..resumed() };
    assert_eq!(decide(post, "204 X"), ("fail", Some(ErrorKind::Range)), "a request with content");
}

#[test]
fn invalid_content_range_is_accepted_as_in_curl() {
    let lenient = || RequestOptions { curl_compat: unreliable(), ..resumed() };
    for (options, text, expected) in [
        (lenient(), "206 X\r\nContent-Range: bytes 5-", true),
        (lenient(), "206 X\r\nContent-Range: bytes 6-", false),
        (lenient(), "206 X\r\nContent-Range: bytes 5-x", false),
        (lenient(), "200 X\r\nContent-Range: bytes 5-8/9", true),
        (lenient(), "200 X\r\nContent-Range: bytes 4-8/9", false),
        (lenient(), "200 X", false),
        (lenient(), "404 X\r\nContent-Range: bytes 5-", false),
        (resumed(), "206 X\r\nContent-Range: bytes 5-", false),
    ] {
        let sink = TestSink::default();
        let mut transfer = sink.transfer(options);
        respond(&mut transfer, text);
        assert_eq!(decision(&transfer), if expected { "deliver" } else { "fail" }, "{text}");
        assert_eq!(sink.begun().last(), expected.then_some(&(None, 5)), "{text}");
        transfer.progress.has_begun = true;
        respond(&mut transfer, text);
        assert_eq!(decision(&transfer), "fail", "the body has begun: {text}");
    }
}

#[test]
fn expired_target_leads_back_to_the_caller() {
    for (skips_redirects, status, expected) in
        [(true, 401, "restart"), (true, 410, "restart"), (true, 402, "deliver"), (false, 404, "deliver")]
    {
        let mut transfer = transfer(RequestOptions::default());
        transfer.current.skips_redirects = skips_redirects;
        respond(&mut transfer, &format!("{status} X"));
        assert_eq!(decision(&transfer), expected, "{status}");
    }
}

#[test]
fn rest_of_a_begun_body_needs_success() {
    let get = RequestOptions::default;
    let failing = || RequestOptions { fail: true, ..get() };
    for (options, has_begun, is_part, status, expected) in [
        (get(), true, false, 204, ("fail", Some(ErrorKind::PartialBody))),
        (get(), true, false, 404, ("fail", Some(ErrorKind::PartialBody))),
        (failing(), true, false, 399, ("fail", Some(ErrorKind::PartialBody))),
        (failing(), true, false, 400, ("fail", Some(ErrorKind::Status))),
        (get(), false, true, 204, ("fail", Some(ErrorKind::PartialBody))),
        (get(), false, false, 204, ("deliver", None)),
        (retrying(RetryRules { max: 1, ..RetryRules::default() }), true, false, 503, ("retry", None)),
    ] {
        let mut transfer = transfer(options);
        transfer.progress.has_begun = has_begun;
        if is_part {
            transfer.split = SplitRole::Part { id: 1, ordinal: 2 };
        }
        respond(&mut transfer, &format!("{status} X"));
        assert_eq!(outcome(&transfer), expected, "{status} {has_begun} {is_part}");
    }
}

/// A transfer that has delivered 5 of 9 bytes, and requests the rest.
fn begun(sink: &TestSink, options: RequestOptions) -> Box<Transfer> {
    let mut transfer = sink.transfer(options);
    respond(&mut transfer, "200 OK\r\nETag: \"a\"\r\nContent-Length: 9");
    transfer.on_body(OfferedBodyBytes::borrowed(b"12345"), false, Instant::now()).unwrap();
    transfer
}

#[test]
fn repeated_body_is_skipped_to_missing_bytes() {
    let sink = TestSink::default();
    let mut transfer = begun(&sink, RequestOptions::default());
    respond(&mut transfer, "200 OK\r\nETag: \"a\"\r\nContent-Length: 9");
    assert_eq!((transfer.response.skip, transfer.response.exceeds_range), (5, false));
    transfer.on_body(OfferedBodyBytes::borrowed(b"123456789"), false, Instant::now()).unwrap();
    assert_eq!((sink.text().as_str(), sink.begun().len()), ("123456789", 1));
    let mut ended = begun(&sink, RequestOptions::default());
    ended.progress.range.end = Some(7);
    respond(&mut ended, "200 OK\r\nETag: \"a\"\r\nContent-Length: 9");
    assert!(ended.response.exceeds_range);
    let mut part = begun(&sink, RequestOptions::default());
    part.split = SplitRole::Part { id: 1, ordinal: 2 };
    respond(&mut part, "200 OK\r\nETag: \"a\"\r\nContent-Length: 9");
    assert_eq!(outcome(&part), ("fail", Some(ErrorKind::Range)));
}

#[test]
fn changed_content_restarts_only_a_few_times() {
    let part = "206 X\r\nContent-Range: bytes 5-8/9\r\nETag: \"b\"\r\nContent-Length: 4";
    let sink = TestSink::restartable();
    let mut transfer = begun(&sink, RequestOptions::default());
    for number in 1..=2 {
        respond(&mut transfer, part);
        assert_eq!((decision(&transfer), transfer.attempt.restarts), ("again", number));
        assert_eq!((transfer.progress.range.at, transfer.progress.has_begun), (0, false));
        respond(&mut transfer, "200 OK\r\nETag: \"a\"\r\nContent-Length: 9");
        transfer.on_body(OfferedBodyBytes::borrowed(b"12345"), false, Instant::now()).unwrap();
    }
    respond(&mut transfer, part);
    assert_eq!((outcome(&transfer), sink.restarted()), (("fail", Some(ErrorKind::Changed)), 2));
}

#[test]
fn whole_changed_content_is_delivered_without_another_request() {
    let sink = TestSink::restartable();
    let mut transfer = begun(&sink, retrying(RetryRules { max: 3, ..RetryRules::default() }));
    for number in 1..=3 {
        respond(&mut transfer, &format!("200 OK\r\nETag: \"{number}\"\r\nContent-Length: 8"));
        assert_eq!((decision(&transfer), transfer.attempt.restarts), ("deliver", number));
        assert_eq!(sink.begun().last(), Some(&(Some(8), 0)));
        transfer.on_body(OfferedBodyBytes::borrowed(b"123"), false, Instant::now()).unwrap();
        assert_eq!(sink.text(), "123");
    }
    respond(&mut transfer, "200 OK\r\nETag: \"4\"\r\nContent-Length: 8");
    assert_eq!(outcome(&transfer), ("fail", Some(ErrorKind::Changed)));
}

#[test]
fn output_that_cannot_be_discarded_fails() {
    let sink = TestSink::default();
    let mut changed = begun(&sink, RequestOptions::default());
    respond(&mut changed, "200 OK\r\nETag: \"b\"\r\nContent-Length: 9");
    assert_eq!(outcome(&changed), ("fail", Some(ErrorKind::Changed)));
    let mut refused = begun(&sink, RequestOptions::default());
    respond(&mut refused, "200 OK\r\nContent-Length: 9");
    let BodyDisposition::Fail(error) = &refused.response.disposition else { panic!("{}", decision(&refused)) };
    assert_eq!(error.kind(), ErrorKind::PartialBody);
    assert!(error.to_string().starts_with("the body broke off and cannot be resumed: asked for a range"), "{error}");
    let restartable = TestSink::restartable();
    let mut fixed = begun(&restartable, RequestOptions::default());
    fixed.ranges.must_continue = true;
    respond(&mut fixed, "200 OK\r\nContent-Length: 9");
    assert_eq!((outcome(&fixed), restartable.restarted()), (("fail", Some(ErrorKind::Range)), 0));
}

#[test]
fn retry_of_curl_skips_the_existing_part() {
    for (retries_whole, expected) in [(true, "deliver"), (false, "fail")] {
        let span = WantedContentRange::Rest { from: 5, to: None, total: 9, validator: validator() };
        let curl_compat = CurlCompat { retries_whole, ..CurlCompat::default() };
        let sink = TestSink::default();
        let mut transfer = sink.transfer(RequestOptions { span: Some(span), curl_compat, ..RequestOptions::default() });
        respond(&mut transfer, "200 OK\r\nETag: \"a\"\r\nContent-Length: 9");
        assert_eq!(decision(&transfer), expected);
        if retries_whole {
            transfer.on_body(OfferedBodyBytes::borrowed(b"123456789"), false, Instant::now()).unwrap();
            assert_eq!((sink.text().as_str(), sink.begun()), ("6789", vec![(Some(4), 5)]));
        }
    }
}

#[test]
fn error_page_replaces_the_existing_part() {
    let partial = |options| {
        let sink = TestSink::default();
        let known = Some((9, validator()));
        sink.state().partial = Some(ExistingPartialContent { gap: 5..9, known });
        let mut transfer = sink.transfer(options);
        request(&mut transfer);
        (transfer, sink)
    };
    let (mut transfer, sink) = partial(RequestOptions::default());
    respond(&mut transfer, "404 X\r\nContent-Length: 3");
    assert_eq!((decision(&transfer), sink.begun()), ("deliver", vec![(Some(3), 0)]));
    let (mut transfer, sink) = partial(RequestOptions::default());
    respond(&mut transfer, "206 X\r\nContent-Range: bytes 5-8/9\r\nETag: \"a\"\r\nContent-Length: 4");
    assert_eq!((decision(&transfer), sink.begun()), ("deliver", vec![(Some(4), 5)]));
    let sink = TestSink::default();
    let mut resumed = sink.transfer(RequestOptions { fail: true, include_head: true, ..resumed() });
    respond(&mut resumed, "404 X\r\nContent-Length: 3");
    assert_eq!((decision(&resumed), sink.begun()), ("fail", vec![(Some(0), 5)]));
}

#[test]
fn announced_size_is_limited() {
    let limited = |max_size| RequestOptions { max_size: Some(max_size), ..RequestOptions::default() };
    for (options, text, expected) in [
        (limited(9), "200 X\r\nContent-Length: 9", "deliver"),
        (limited(8), "200 X\r\nContent-Length: 9", "fail"),
        (limited(8), "200 X", "deliver"),
        (
            RequestOptions { resume_from: Some(5), ..limited(4) },
            "206 X\r\nContent-Range: bytes 5-8/9\r\nContent-Length: 4",
            "deliver",
        ),
        (
            RequestOptions { resume_from: Some(5), ..limited(3) },
            "206 X\r\nContent-Range: bytes 5-8/9\r\nContent-Length: 4",
            "fail",
        ),
    ] {
        assert_eq!(decide(options, text).0, expected, "{text}");
    }
    assert!(transfer(limited(1)).has_size_limit() && !transfer(RequestOptions::default()).has_size_limit());
}

#[test]
fn only_wanted_codings_are_decoded() {
    let decoding = || RequestOptions { decode: true, ..RequestOptions::default() };
    let mut raw = decoding();
    raw.deviations.raw = true;
    for (options, text, expected) in [
        (decoding(), "200 X\r\nContent-Encoding: gzip\r\nContent-Length: 30", true),
        (decoding(), "200 X\r\nContent-Encoding: gzip\r\nContent-Length: 0", false),
        (decoding(), "200 X\r\nContent-Length: 30", false),
        (RequestOptions::default(), "200 X\r\nContent-Encoding: gzip\r\nContent-Length: 30", false),
        (raw.clone(), "200 X\r\nContent-Encoding: gzip\r\nContent-Length: 30", false),
        (raw, "200 X\r\nTransfer-Encoding: gzip", false),
        (RequestOptions::default(), "200 X\r\nTransfer-Encoding: gzip, Chunked", true),
        (RequestOptions::default(), "200 X\r\nTransfer-Encoding: identity, chunked,", false),
        (RequestOptions::default(), "200 X\r\nTransfer-Encoding: gzip\r\nContent-Length: 30", false),
    ] {
        let mut transfer = transfer(options);
        respond(&mut transfer, text);
        assert_eq!((decision(&transfer), transfer.progress.is_coded), ("deliver", expected), "{text}");
        assert_eq!(transfer.has_unprocessed_body(), !expected);
    }
}

#[test]
fn line_above_the_limit_of_curl_fails() {
    let decide_line = |length: usize, head_limits| {
        let curl_compat = CurlCompat { head_limits, ..CurlCompat::default() };
        // The carriage return counts.
        let text = format!("200 OK\r\nX: {}\r\nY: {}", "x".repeat(length - 4), "y".repeat(50));
        decide(RequestOptions { curl_compat, ..RequestOptions::default() }, &text)
    };
    assert_eq!(decide_line(102_400, true), ("deliver", None));
    assert_eq!(decide_line(102_401, true), ("fail", Some(ErrorKind::HeadTooLarge)));
    assert_eq!(decide_line(102_401, false), ("deliver", None));
}

#[test]
fn delivered_heads_are_those_of_the_decisions() {
    let redirects = RedirectRules { follow: true, ..RedirectRules::default() };
    let options = || RequestOptions { include_head: true, redirects: redirects.clone(), ..RequestOptions::default() };
    for (text, expected) in [("302 X\r\nLocation: /b", true), ("200 OK\r\nContent-Length: 1", false)] {
        let mut transfer = transfer(options());
        respond(&mut transfer, text);
        assert_eq!(!transfer.history.heads.is_empty(), expected, "{text}");
        let mut without = self::transfer(RequestOptions { include_head: false, ..options() });
        respond(&mut without, text);
        assert!(without.history.heads.is_empty());
    }
    let sink = TestSink::default();
    let mut transfer = sink.transfer(options());
    exchange(&mut transfer, "302 X\r\nLocation: /b", "");
    exchange(&mut transfer, "200 OK\r\nContent-Length: 1", "x");
    let heads = "HTTP/1.1 302 X\r\nLocation: /b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(sink.text(), heads);
}

#[test]
fn head_of_a_continued_body_stays() {
    let sink = TestSink::default();
    let mut transfer = begun(&sink, RequestOptions::default());
    respond(&mut transfer, "206 X\r\nContent-Range: bytes 5-8/9\r\nETag: \"a\"\r\nContent-Length: 4");
    assert_eq!((decision(&transfer), transfer.head().map(ResponseHead::status)), ("deliver", Some(200)));
}

#[test]
fn partial_head_is_delivered_with_the_heads() {
    for include_head in [true, false] {
        let sink = TestSink::default();
        let curl_compat = CurlCompat { partial_heads: true, ..CurlCompat::default() };
        let mut transfer = sink.transfer(RequestOptions { include_head, curl_compat, ..RequestOptions::default() });
        assert!(transfer.wants_partial_heads());
        transfer.on_partial_head(head("200 OK"));
        assert_eq!((transfer.facts.status, transfer.head().map(ResponseHead::status)), (200, Some(200)));
        assert_eq!(sink.text(), if include_head { "HTTP/1.1 200 OK\r\n\r\n" } else { "" });
        assert_eq!(transfer.wants_partial_heads(), !include_head);
    }
    assert!(!transfer(RequestOptions::default()).wants_partial_heads());
}

#[test]
fn headless_response_needs_an_option() {
    let mut options = RequestOptions::default();
    assert!(!transfer(options.clone()).accepts_headless_response());
    options.deviations.http09 = true;
    assert!(transfer(options).accepts_headless_response());
}

#[test]
fn version_of_the_server_is_remembered() {
    for (version, expected) in [("1.0", true), ("1.1", false)] {
        let mut transfer = transfer(RequestOptions::default());
        let head = ResponseHead::from_raw(format!("HTTP/{version} 200 OK\r\n\r\n").as_bytes()).unwrap();
        transfer.on_head(head, ResponseBodyFraming::UntilClose, Instant::now());
        assert_eq!(transfer.current.is_http10, expected);
    }
}

#[test]
fn error_of_a_bad_status_names_its_reason() {
    let error = bad_status(&head("404 Not\tFound"));
    assert_eq!((error.to_string().as_str(), error.status()), ("the server answered 404 Not\\tFound", Some(404)));
    assert_eq!(bad_status(&head("500 ")).to_string(), "the server answered 500");
}

#[test]
fn requested_pause_is_kept_for_the_host() {
    let mut transfer = transfer(retrying(RetryRules { max: 1, ..RetryRules::default() }));
    respond(&mut transfer, "429 X\r\nRetry-After: 7");
    assert_eq!(transfer.host_pause(), Some(SECOND * 7));
    assert_eq!(transfer.attempt.refusal, Some(OverloadRefusal::WantsPause));
    respond(&mut transfer, "503 X");
    assert_eq!((transfer.host_pause(), transfer.attempt.refusal), (None, Some(OverloadRefusal::Overload)));
}

#[test]
fn age_reduces_lifetime_of_alternative_services() {
    for (age, is_fresh) in [
        ("X: 1", true),
        ("Age: 30", true),
        ("Age: 91", false),
        ("Age: 99999999999999999999", false),
        ("Age: 91, 1", false),
        ("Age: long", true),
    ] {
        let known = AltSvcCache::new();
        let options = RequestOptions { alt_svc: Some(known.clone()), ..RequestOptions::default() };
        let transfer = transfer_to("https://h/", options);
        transfer.store_response_state(&head(&format!("200 OK\r\n{age}\r\nAlt-Svc: h2=\":8443\"; ma=90")));
        assert_eq!(known.find(transfer.target(), &[b"h2".to_vec()]).is_some(), is_fresh, "{age}");
    }
}
