//! Tests of the fields that a transfer sends.

use super::*;
use crate::request::CurlCompat;
use haul_proto::h1::H1Deviations;

fn owned(fields: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
    fields.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect()
}

/// Options that cause all fields of a request with content, except those of a range.
fn full() -> RequestOptions {
    RequestOptions {
        method: "PUT".into(),
        body: Some(vec![0; (1 << 20) + 1].into()),
        content_type: Some("text/plain".into()),
        content_range: Some("0-1/2".into()),
        user_agent: Some(b"agent".to_vec()),
        authorization: Some(b"Scheme secret".to_vec()),
        referer: Some(b"http://before.example/".to_vec()),
        cookie: Some(b"c=1".to_vec()),
        decode: true,
        deviations: H1Deviations { codings: true, ..H1Deviations::default() },
        fields: owned(&[("Connection", "x"), ("X-A", "1"), ("Connection", ""), ("Connection", "y")]),
        ..RequestOptions::default()
    }
}

#[test]
fn fields_have_the_order_of_curl() {
    let coding = crate::body::accept_encoding();
    let expected = format!(
        "PUT / HTTP/1.1\r\nHost: a.example\r\nAuthorization: Scheme secret\r\nContent-Range: bytes 0-1/2\r\n\
         User-Agent: agent\r\nAccept: */*\r\nTE: gzip\r\nAccept-Encoding: {coding}\r\n\
         Referer: http://before.example/\r\nCookie: c=1\r\nX-A: 1\r\nContent-Length: 1048577\r\n\
         Content-Type: text/plain\r\nExpect: 100-continue\r\nConnection: x, TE\r\nConnection: y\r\n\r\n"
    );
    let mut transfer = transfer(full());
    assert_eq!(request(&mut transfer), expected);
    assert_eq!(transfer.facts.request_bytes, expected.len() as u64);
}

#[test]
fn removed_fields_are_not_sent() {
    let without =
        ["Host", "User-Agent", "Accept", "TE", "Referer", "Cookie", "Content-Type", "Accept-Encoding", "Expect"];
    let options = RequestOptions { without: without.map(str::to_owned).to_vec(), fields: Vec::new(), ..full() };
    let expected = "PUT / HTTP/1.1\r\nAuthorization: Scheme secret\r\nContent-Range: bytes 0-1/2\r\n\
                    Content-Length: 1048577\r\n\r\n";
    assert_eq!(request(&mut transfer(options)), expected);
}

#[test]
fn caller_fields_replace_engine_fields() {
    let options = RequestOptions {
        fields: owned(&[("host", "b.example"), ("accept", "text/html"), ("cookie", "d=2"), ("Content-type", "own")]),
        deviations: H1Deviations::default(),
        decode: false,
        ..full()
    };
    let expected = "PUT / HTTP/1.1\r\nHost: b.example\r\nAuthorization: Scheme secret\r\n\
                    Content-Range: bytes 0-1/2\r\nUser-Agent: agent\r\nReferer: http://before.example/\r\n\
                    accept: text/html\r\ncookie: d=2\r\nContent-type: own\r\nContent-Length: 1048577\r\n\
                    Expect: 100-continue\r\n\r\n";
    assert_eq!(request(&mut transfer(options)), expected);
}

#[test]
fn redirected_request_without_content_has_no_content_fields() {
    let mut transfer = transfer(RequestOptions {
        fields: owned(&[
            ("Content-Language", "de"),
            ("Expect", "100-continue"),
            ("Transfer-Encoding", "chunked"),
            ("X-A", "1"),
        ]),
        ..full()
    });
    (transfer.current.method, transfer.current.with_body) = ("GET".into(), false);
    let text = request(&mut transfer);
    assert!(text.contains("X-A: 1\r\n"), "{text}");
    for name in ["Content-", "Expect", "Transfer-Encoding"] {
        assert!(!text.contains(name), "{text}");
    }
}

#[test]
fn content_fields_of_the_caller_need_no_content() {
    let fields = owned(&[("Content-Language", "de"), ("content", "x")]);
    let text = request(&mut transfer(RequestOptions { fields, ..RequestOptions::default() }));
    assert!(text.contains("Content-Language: de\r\ncontent: x\r\n"), "{text}");
}

#[test]
fn probe_keeps_content_type_of_plain_form() {
    for (kind, is_sent) in [("application/x-www-form-urlencoded", true), ("multipart/form-data", false)] {
        let mut options = full();
        options.content_type = Some(kind.into());
        options.fields = owned(&[("Content-Language", "de"), ("Content-Length", "9"), ("Expect", "100-continue")]);
        options.auth.user = haul_policy::auth::Credentials::new("user", "password").ok();
        options.authorization = None;
        options.auth.allowed = haul_policy::auth::AllowedAuthSchemes::DIGEST;
        options.curl_compat = CurlCompat { withholds_content_before_challenge: true, ..CurlCompat::default() };
        let mut transfer = transfer(options);
        let text = request(&mut transfer);
        assert!(text.contains("Content-Length: 0\r\n") && text.contains("Content-Language: de\r\n"), "{text}");
        assert_eq!((text.contains("Content-Type"), text.contains("Expect")), (is_sent, false), "{text}");
        assert!(!text.contains("Content-Length: 9"), "{text}");
        assert!(transfer.upload().is_none());
    }
}

#[test]
fn range_fields_name_missing_bytes_and_validator() {
    let validator = crate::request::Validator::strong(Some(b"\"a\""), None, None).unwrap();
    let span = Some(WantedContentRange::Rest { from: 5, to: None, total: 9, validator: validator.clone() });
    let mut rest = transfer(RequestOptions { span, decode: true, ..RequestOptions::default() });
    let text = request(&mut rest);
    assert!(text.contains("Range: bytes=5-\r\nIf-Range: \"a\"\r\n"), "{text}");
    assert!(text.contains("Accept-Encoding"), "the coding of the existing bytes is unknown: {text}");
    let mut whole = transfer(RequestOptions::default());
    whole.progress.range.validator = Some(validator.clone());
    assert!(!request(&mut whole).contains("Range"));
    let mut own = transfer(RequestOptions { range: Some("3-4".into()), ..RequestOptions::default() });
    own.progress.range.validator = Some(validator);
    own.progress.range.at = 3;
    let text = request(&mut own);
    assert!(text.contains("Range: bytes=3-4\r\n") && !text.contains("If-Range"), "{text}");
}

#[test]
fn compressed_content_is_not_requested_in_parts() {
    let decoding = || RequestOptions { decode: true, ..RequestOptions::default() };
    let strict = CurlCompat { strict_content_coding: true, ..CurlCompat::default() };
    for (options, expected) in [
        (RequestOptions::default(), false),
        (decoding(), true),
        (RequestOptions { range: Some("0-4".into()), ..decoding() }, false),
        (RequestOptions { range: Some("0-4".into()), curl_compat: strict.clone(), ..decoding() }, true),
        (RequestOptions { curl_compat: strict, ..RequestOptions::default() }, false),
    ] {
        let mut transfer = transfer(options);
        assert_eq!(transfer.requests_content_coding(), expected);
        let validator = crate::request::Validator::strong(Some(b"\"a\""), None, None).unwrap();
        transfer.progress.range = DeliveryRange::for_part(1..2, 9, validator);
        assert!(!transfer.requests_content_coding(), "the bytes so far have no coding");
    }
}

#[test]
fn head_above_the_limit_of_curl_is_refused() {
    let head = |length: usize, head_limits| {
        let compat = CurlCompat { head_limits, ..CurlCompat::default() };
        let value = "x".repeat(length);
        let fields = owned(&[("X-A", &value)]);
        try_request(&mut transfer(RequestOptions { fields, curl_compat: compat, ..RequestOptions::default() }))
    };
    let most = (1 << 20) - head(1, false).unwrap().len() + 1;
    assert_eq!(head(most, true).unwrap().len(), 1 << 20);
    assert_eq!(head(most + 1, true).unwrap_err().kind(), ErrorKind::HeadTooLarge);
    assert!(head(most + 1, false).is_ok());
}

#[test]
fn rejected_field_is_named() {
    let fields = owned(&[("X-Good", "1"), ("X-Bad", "a\nb")]);
    let error = try_request(&mut transfer(RequestOptions { fields, ..RequestOptions::default() })).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Setup);
    assert!(error.to_string().contains("\"X-Bad\""), "{error}");
}

#[test]
fn http10_is_sent_only_to_http10_servers() {
    for (follows_http10, is_http10, version) in [(true, true, "1.0"), (true, false, "1.1"), (false, true, "1.1")] {
        let deviations = H1Deviations { follows_http10, ..H1Deviations::default() };
        let mut transfer = transfer(RequestOptions { deviations, ..RequestOptions::default() });
        transfer.current.is_http10 = is_http10;
        let text = request(&mut transfer);
        assert!(text.starts_with(&format!("GET / HTTP/{version}\r\n")), "{text}");
    }
}

#[test]
fn request_target_of_the_options_replaces_the_path() {
    let options = RequestOptions { request_target: Some("*".into()), method: "OPTIONS".into(), ..Default::default() };
    assert!(request(&mut transfer(options)).starts_with("OPTIONS * HTTP/1.1\r\n"));
}

#[test]
fn cookies_of_the_options_are_secrets() {
    let mut transfer = transfer(RequestOptions { cookie: Some(b"c=1".to_vec()), ..RequestOptions::default() });
    assert!(request(&mut transfer).contains("Cookie: c=1\r\n"));
    transfer.current.secrets = haul_policy::redirect::SecretHandling::Drop;
    assert!(!request(&mut transfer).contains("Cookie"));
}

#[test]
fn only_a_close_option_asks_to_close() {
    for (fields, expected) in [
        (&[("Connection", "close")][..], true),
        (&[("connection", "TE , Close")], true),
        (&[("Connection", "keep-alive")], false),
        (&[("X-A", "close")], false),
        (&[], false),
    ] {
        let transfer = transfer(RequestOptions { fields: owned(fields), ..RequestOptions::default() });
        assert_eq!(transfer.asks_to_close(), expected, "{fields:?}");
    }
}

#[test]
fn repeated_request_resets_the_last_decisions() {
    let mut transfer = transfer(RequestOptions::default());
    transfer.response.skip = 5;
    transfer.attempt.refusal = Some(OverloadRefusal::Overload);
    transfer.reuse.needs_new_connection = true;
    transfer.facts.body_bytes = 7;
    request(&mut transfer);
    assert!(transfer.response.skip == 0 && transfer.attempt.refusal.is_none() && !transfer.reuse.needs_new_connection);
    assert!(transfer.attempt.has_sent && transfer.facts.body_bytes == 0);
    (transfer.facts.body_bytes, transfer.progress.has_begun) = (7, true);
    request(&mut transfer);
    assert_eq!((transfer.facts.body_bytes, transfer.facts.requests), (7, 2));
}

#[test]
fn sink_is_asked_once_for_existing_content() {
    let partial = |known| Some(ExistingPartialContent { gap: 5..u64::MAX, known });
    let sink = TestSink::default();
    sink.state().partial = partial(None);
    let mut transfer = sink.transfer(RequestOptions::default());
    assert!(request(&mut transfer).contains("Range: bytes=5-\r\n"));
    assert_eq!((transfer.ranges.must_continue, transfer.ranges.start), (true, 5));
    sink.state().partial = partial(None);
    request(&mut transfer);
    assert!(sink.state().partial.is_some(), "only once");
    for options in [
        RequestOptions { method: "POST".into(), ..RequestOptions::default() },
        RequestOptions { decode: true, ..RequestOptions::default() },
    ] {
        request(&mut sink.transfer(options));
        assert!(sink.state().partial.is_some());
    }
}

#[test]
fn chunked_coding_precedes_the_fields_of_the_caller() {
    let body = Some(crate::body::upload::RequestBody::reader(std::io::empty()));
    let text = request(&mut transfer(RequestOptions { body, fields: owned(&[("X-A", "1")]), ..full() }));
    assert!(text.contains("Transfer-Encoding: chunked\r\nCookie: c=1\r\nX-A: 1\r\n"), "{text}");
}
