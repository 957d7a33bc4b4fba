//! Tests of the content of requests: its framing, Expect, and sending it again.

use haul_proto::h1::BodyLength;

use super::*;
use crate::body::request_trailers::Trailers;
use crate::body::upload::RequestBody;
use crate::request::CurlCompat;
use crate::transfer::content_framing_and_expect::ExpectContinueState;

const MEBIBYTE: usize = 1 << 20;

fn with_body(body: impl Into<RequestBody>) -> RequestOptions {
    RequestOptions { method: "POST".into(), body: Some(body.into()), ..RequestOptions::default() }
}

fn reader() -> RequestBody {
    RequestBody::reader(std::io::empty())
}

fn field(name: &str, value: &str) -> Vec<(String, Vec<u8>)> {
    vec![(name.to_owned(), value.as_bytes().to_vec())]
}

/// Returns the framing fields of the next request.
fn framing_of(options: RequestOptions) -> Vec<String> {
    let text = request(&mut transfer(options));
    let is_framing = |line: &&str| ["Content-Length", "Transfer-Encoding"].iter().any(|name| line.starts_with(name));
    text.lines().filter(is_framing).map(str::to_owned).collect()
}

#[test]
fn framing_depends_on_method_length_and_fields() {
    let of_method = |method: &str| RequestOptions { method: method.into(), ..RequestOptions::default() };
    for method in ["POST", "PUT", "PATCH"] {
        assert_eq!(framing_of(of_method(method)), ["Content-Length: 0"], "{method}");
        let compat = CurlCompat { omits_zero_content_length: true, ..CurlCompat::default() };
        assert!(framing_of(RequestOptions { curl_compat: compat, ..of_method(method) }).is_empty(), "{method}");
    }
    assert!(framing_of(of_method("GET")).is_empty() && framing_of(of_method("DELETE")).is_empty());
    assert_eq!(framing_of(with_body("12345")), ["Content-Length: 5"]);
    assert_eq!(framing_of(with_body(reader())), ["Transfer-Encoding: chunked"]);
    let announced = RequestOptions { fields: field("Content-Length", "7"), ..with_body(reader()) };
    assert_eq!(framing_of(announced), ["Content-Length: 7"]);
    let chunked = RequestOptions { fields: field("Transfer-Encoding", "chunked"), ..with_body("12345") };
    assert_eq!(framing_of(chunked), ["Transfer-Encoding: chunked"]);
}

#[test]
fn content_with_trailers_is_chunked() {
    let overrides = RequestOverrides { trailers: Some(Trailers::new(|| Ok(Vec::new()))), ..Default::default() };
    let body = BodyDelivery::new(Box::new(MemorySink::default()));
    let (target, options) = (Target::parse("http://a.example/").unwrap(), Arc::new(with_body("12345")));
    let mut transfer = Transfer::with_overrides(target, options, overrides, body, Instant::now(), 0);
    assert!(request(&mut transfer).contains("Transfer-Encoding: chunked\r\n"));
    assert_eq!(transfer.upload().map(|upload| upload.length()), Some(None));
    transfer.current.is_http10 = true;
    assert_eq!(transfer.resend_error().map(|error| error.kind()), Some(ErrorKind::Upload));
}

#[test]
fn empty_content_has_an_upload_only_in_chunks() {
    let length = |options| transfer(options).upload().map(|upload| upload.length());
    assert_eq!(length(RequestOptions::default()), None);
    assert_eq!(length(with_body("")), None);
    assert_eq!(length(with_body("12345")), Some(Some(5)));
    assert_eq!(length(with_body(reader())), Some(None));
    let chunked = RequestOptions { fields: field("transfer-encoding", "chunked"), ..with_body("") };
    assert_eq!(length(chunked), Some(Some(0)));
    let mut probe = transfer(with_body("12345"));
    probe.auth.is_probe = true;
    assert!(probe.upload().is_none() && probe.has_content());
}

#[test]
fn large_content_waits_for_continue() {
    let bytes = |length: usize| with_body(vec![0; length]);
    let chunked = |length| RequestOptions { fields: field("Transfer-Encoding", "chunked"), ..bytes(length) };
    let curl = CurlCompat { expect_for_one_shot_content: true, ..CurlCompat::default() };
    let announced = || RequestOptions { fields: field("Content-Length", "5"), ..with_body(reader()) };
    for (options, expected) in [
        (bytes(MEBIBYTE), false),
        (bytes(MEBIBYTE + 1), true),
        (chunked(MEBIBYTE), false),
        (chunked(MEBIBYTE + 1), true),
        (with_body(reader()), true),
        (announced(), false),
        (RequestOptions { curl_compat: curl.clone(), ..announced() }, true),
        (RequestOptions { curl_compat: curl, ..bytes(5) }, false),
        (RequestOptions { method: "POST".into(), ..RequestOptions::default() }, false),
        (RequestOptions { without: vec!["expect".into()], ..bytes(MEBIBYTE + 1) }, false),
        (RequestOptions { expect_timeout: Duration::ZERO, ..bytes(MEBIBYTE + 1) }, false),
        (RequestOptions { fields: field("expect", "100-Continue"), ..bytes(5) }, true),
        (RequestOptions { fields: field("Expect", "other"), ..bytes(MEBIBYTE + 1) }, false),
    ] {
        let (timeout, own) = (options.expect_timeout, options.fields.clone());
        let mut transfer = transfer(options);
        let text = request(&mut transfer);
        assert_eq!(transfer.expect_timeout(), expected.then_some(timeout), "{text}");
        let has_engines = text.contains("Expect: 100-continue\r\n");
        assert_eq!(has_engines, expected && !own.iter().any(|(name, _)| name == "expect"), "{text}");
    }
    let large = transfer(bytes(MEBIBYTE + 1));
    let of_stream = large.expectation(BodyLength::Known(1 << 21), &[], false);
    assert_eq!(of_stream, ExpectContinueState::None, "a stream need not wait");
}

#[test]
fn rejected_expectation_is_not_repeated() {
    let mut transfer = transfer(with_body(vec![0; MEBIBYTE + 1]));
    assert!(request(&mut transfer).contains("Expect: 100-continue"));
    respond(&mut transfer, "417 Expectation Failed\r\nContent-Length: 0");
    assert_eq!(decision(&transfer), "again");
    assert!(!request(&mut transfer).contains("Expect"));
    assert_eq!(transfer.expect_timeout(), None);
    respond(&mut transfer, "417 Expectation Failed\r\nContent-Length: 0");
    assert_eq!(decision(&transfer), "deliver", "it had no Expect");
}

#[test]
fn expected_content_is_kept_after_other_statuses() {
    let mut transfer = transfer(with_body(vec![0; MEBIBYTE + 1]));
    request(&mut transfer);
    respond(&mut transfer, "413 Content Too Large\r\nContent-Length: 0");
    assert_eq!(decision(&transfer), "deliver");
}

#[test]
fn http10_server_needs_content_of_known_length() {
    let announced = RequestOptions { fields: field("content-length", "7"), ..with_body(reader()) };
    let chunked = RequestOptions { fields: field("transfer-encoding", "chunked"), ..with_body(reader()) };
    for (options, is_http10, expected) in [
        (with_body(reader()), true, Some(ErrorKind::Upload)),
        (with_body(reader()), false, None),
        (with_body("12345"), true, None),
        (announced, true, None),
        (chunked, true, None),
        (RequestOptions::default(), true, None),
    ] {
        let mut transfer = transfer(options);
        transfer.current.is_http10 = is_http10;
        assert_eq!(transfer.resend_error().map(|error| error.kind()), expected, "{is_http10}");
    }
}

#[test]
fn consumed_content_cannot_be_sent_again() {
    let transfer = transfer(with_body(reader()));
    assert!(transfer.has_one_shot_content() && transfer.resend_error().is_none());
    let _ = transfer.upload().unwrap().read(&mut [0; 8]).unwrap();
    assert_eq!(transfer.resend_error().map(|error| error.kind()), Some(ErrorKind::Rewind));
    assert!(!self::transfer(with_body("x")).has_one_shot_content());
}

#[test]
fn consumed_content_prevents_another_attempt() {
    let mut transfer = transfer(RequestOptions { method: "PUT".into(), ..with_body(reader()) });
    assert!(transfer.reset_for_retry());
    let _ = transfer.upload().unwrap().read(&mut [0; 8]).unwrap();
    assert!(!transfer.reset_for_retry());
}

#[test]
fn large_refused_content_may_be_unread() {
    for (status, length, expected) in
        [(413, 65_537, true), (300, 65_537, true), (299, 65_537, false), (413, 65_536, false)]
    {
        let mut transfer = transfer(with_body(vec![0; length]));
        transfer.facts.status = status;
        assert_eq!(transfer.content_may_be_unread(), expected, "{status} {length}");
        transfer.auth.is_probe = true;
        assert!(!transfer.content_may_be_unread(), "the content was not sent");
    }
    let mut streamed = transfer(with_body(reader()));
    (streamed.facts.status, streamed.facts.upload_bytes) = (413, 65_537);
    assert!(streamed.content_may_be_unread());
    streamed.facts.upload_bytes = 65_536;
    assert!(!streamed.content_may_be_unread());
    let options = RequestOptions { fields: field("Authorization", "NTLM abc"), ..with_body(vec![0; 65_537]) };
    let basic = RequestOptions { fields: field("Authorization", "Basic abc"), ..options.clone() };
    let mut without = transfer(basic);
    without.facts.status = 401;
    assert!(without.content_may_be_unread());
    let mut login = transfer(options);
    login.facts.status = 401;
    assert!(!login.content_may_be_unread(), "the next request needs the connection");
}

#[test]
fn range_settings_depend_on_method_and_options() {
    use RangeFieldOwner::{Caller, Engine, EngineFromOffset, None as Nobody};
    let validator = crate::request::Validator::strong(Some(b"\"a\""), None, None).unwrap();
    let rest = WantedContentRange::Rest { from: 5, to: None, total: 9, validator };
    let get = RequestOptions::default;
    for (options, mode, must_continue, sink_was_asked) in [
        (get(), Engine, false, false),
        (RequestOptions { resume_from: Some(5), ..get() }, EngineFromOffset, true, true),
        (RequestOptions { span: Some(rest), ..get() }, Engine, true, true),
        (RequestOptions { span: Some(WantedContentRange::Opening(9)), ..get() }, Engine, false, true),
        (RequestOptions { range: Some("0-4".into()), ..get() }, Caller, false, false),
        (RequestOptions { fields: field("RANGE", "bytes=0-4"), ..get() }, Caller, false, false),
        (RequestOptions { head_only: true, ..get() }, Nobody, false, false),
        (RequestOptions { method: "POST".into(), ..get() }, Nobody, false, false),
        (RequestOptions { body: Some("x".into()), ..get() }, Nobody, false, false),
        (RequestOptions { resume_from: Some(5), ..with_body("x") }, EngineFromOffset, true, true),
    ] {
        let transfer = transfer(options);
        let settings = &transfer.ranges;
        assert_eq!(
            (settings.mode, settings.must_continue, settings.sink_was_asked),
            (mode, must_continue, sink_was_asked)
        );
        assert_eq!(settings.start, transfer.options.resume_from.unwrap_or(0));
        assert_eq!(settings.may_request_ranges(), matches!(mode, Engine | EngineFromOffset), "{mode:?}");
        assert_eq!(settings.should_request_ranges(), matches!(mode, Caller | EngineFromOffset), "{mode:?}");
    }
}

#[test]
fn restart_keeps_the_wanted_rest() {
    use crate::transfer::resettable_state::DeliveryProgress;
    let validator = crate::request::Validator::strong(Some(b"\"a\""), None, None).unwrap();
    let rest = WantedContentRange::Rest { from: 5, to: None, total: 9, validator };
    for (span, field) in [(Some(rest), "bytes=5-"), (Some(WantedContentRange::Opening(2)), "bytes=7-")] {
        let options = RequestOptions { span, ..RequestOptions::default() };
        let progress = DeliveryProgress::without_progress(&options, 7);
        assert_eq!(progress.range.range_field().as_deref(), Some(field));
    }
}
