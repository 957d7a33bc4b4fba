//! Tests of redirects: method and body, resolution of the target, limits.

use crate::common;

use common::{DRIVERS, OK, assert_fails, following, get, start_origin};
use haul::{ErrorKind, RequestOptions};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

fn post(content: &str) -> RequestOptions {
    RequestOptions { method: "POST".into(), body: Some(content.as_bytes().into()), ..following() }
}

/// Returns the method, the body and the content type of the last request that the origin received.
fn last(origin: &Origin) -> (String, String, Option<String>) {
    let request = origin.log().pop().expect("a request");
    let content = String::from_utf8(request.body.to_vec()).unwrap();
    (request.method.clone(), content, request.header("content-type").map(str::to_owned))
}

#[test]
fn method_and_body_after_redirect_depend_on_status() {
    let origin = start_origin();
    for driver in DRIVERS {
        for (status, method, kept) in
            [(301, "GET", false), (302, "GET", false), (303, "GET", false), (307, "POST", true), (308, "POST", true)]
        {
            let url = origin.url(&format!("/redirect/{status}?to=/echo"));
            let mut options = post("a=1");
            options.fields.push(("Content-Type".into(), b"text/x-form".to_vec()));
            assert_eq!(get(driver, &url, &options).exit, 0);
            let (content, media) = if kept { ("a=1", Some("text/x-form".to_owned())) } else { ("", None) };
            assert_eq!(last(&origin), (method.to_owned(), content.to_owned(), media), "{driver:?} {status}");

            let got = get(driver, &url, &following());
            assert_eq!((got.exit, got.facts.redirects, got.last), (0, 1, origin.url("/echo")), "{driver:?} {status}");
            let unfollowed = get(driver, &url, &RequestOptions::default());
            assert_eq!((unfollowed.ok(), unfollowed.status), (&b"elsewhere\n"[..], status), "{driver:?}");
        }
    }
}

#[test]
fn relative_location_is_resolved_against_the_target() {
    let (origin, other) = (start_origin(), start_origin());
    let elsewhere = other.url("/small/9");
    for driver in DRIVERS {
        for (from, to, expected) in [
            ("/redirect/302?to=../small/1", "", "small 1\n"),
            ("/redirect/302?to=/small/2%23fragment", "", "small 2\n"),
            ("/redirect/302?to=//", "", ""),
            ("/redirect/302?to=", elsewhere.as_str(), "small 9\n"),
        ] {
            if expected.is_empty() {
                assert_fails(&get(driver, &origin.url(from), &following()), ErrorKind::Url, 3);
            } else {
                assert_eq!(get(driver, &origin.url(&format!("{from}{to}")), &following()).ok(), expected.as_bytes());
            }
        }
    }
}

#[test]
fn too_many_redirects_or_other_schemes_fail() {
    let origin = start_origin();
    for driver in DRIVERS {
        let mut options = following();
        options.redirects.max = 3;
        assert_eq!(get(driver, &origin.url("/chain/3"), &options).ok(), b"end of chain\n");
        assert_fails(&get(driver, &origin.url("/chain/4"), &options), ErrorKind::TooManyRedirects, 47);
        for to in ["ftp://h/", "file:///etc/passwd", "javascript:alert(1)"] {
            let url = origin.url(&format!("/redirect/302?to={to}"));
            assert_fails(&get(driver, &url, &following()), ErrorKind::UnsupportedScheme, 1);
        }
    }
}

#[test]
fn long_redirect_body_is_not_read() {
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![
            vec![
                ScriptStep::ReadHead,
                ScriptStep::send("HTTP/1.1 302 Found\r\nLocation: /2\r\nContent-Length: 900000000\r\n\r\n"),
                ScriptStep::ReadToEnd,
            ],
            vec![ScriptStep::ReadHead, ScriptStep::send(OK)],
        ]);
        assert_eq!(get(driver, &peer.url("/1"), &following()).ok(), b"ok", "{driver:?}");
        assert_eq!(peer.connections(), 2);
    }
}
