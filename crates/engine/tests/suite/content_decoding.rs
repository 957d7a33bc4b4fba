//! Tests of content codings: complete bodies, damaged bodies and decompression bombs.

use crate::common;

use common::{DRIVERS, assert_fails, get, start_origin};
use haul::request::CurlCompat;
use haul::{Client, ErrorKind, RequestOptions};
use testkit::h1_peer::{H1Peer, ScriptStep};

#[test]
fn content_codings_are_decoded() {
    let origin = start_origin();
    let text = testkit::byte_pattern::compressible_text(origin.site().seed(), 300_000);
    for driver in DRIVERS {
        let client = Client::new();
        let decoding = RequestOptions { decode: true, ..RequestOptions::default() };
        for path in ["/gzip/300000", "/deflate/300000", "/rawdeflate/300000", "/br/300000", "/zstd/300000"] {
            assert!(driver.get(&client, &origin.url(path), &decoding).ok() == text, "{driver:?} {path}");
            assert!(driver.get(&client, &origin.url(path), &RequestOptions::default()).ok() != text, "{path}");
        }
        for stack in ["gzip,br", "zstd,gzip,deflate", "auto"] {
            let got = driver.get(&client, &origin.url(&format!("/text/300000?enc={stack}")), &decoding);
            assert!(got.ok() == text, "{driver:?} {stack}");
            assert!(got.facts.body_bytes < 300_000, "it came coded");
        }
        let head = RequestOptions { method: "HEAD".into(), ..decoding.clone() };
        assert_eq!(driver.get(&client, &origin.url("/gzip/300000"), &head).ok(), b"");
    }
}

#[test]
fn full_range_is_decoded_but_partial_range_is_not() {
    let coded = testkit::content_coding::ContentCoding::Gzip.encode(b"hello");
    let last = coded.len() - 1;
    for (range, is_whole) in [
        (format!("bytes 0-{last}/{}", coded.len()), true),
        (format!("bytes 0-{last}/{}", coded.len() + 1), false),
        (format!("bytes 1-{}/{}", last + 1, coded.len() + 1), false),
        (format!("bytes 0-{last}/*"), false),
    ] {
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nContent-Encoding: gzip\r\nContent-Range: {range}\r\n\r\n",
            coded.len(),
        );
        let reply = [head.as_bytes(), &coded[..]].concat();
        let options = RequestOptions {
            decode: true,
            fields: vec![("Range".into(), b"bytes=0-".to_vec())],
            ..RequestOptions::default()
        };
        for driver in DRIVERS {
            let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send(&reply)]]);
            let want = if is_whole { b"hello".as_slice() } else { coded.as_slice() };
            assert_eq!(get(driver, &peer.url("/"), &options).ok(), want, "{driver:?} {range}");
        }
    }
}

#[test]
fn broken_content_coding_is_an_error() {
    let coded =
        testkit::content_coding::ContentCoding::Gzip.encode(&testkit::byte_pattern::compressible_text(1, 100_000));
    let head = |length: usize, coding: &str| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nContent-Encoding: {coding}\r\n\r\n").into_bytes()
    };
    let decoding = RequestOptions {
        decode: true,
        curl_compat: CurlCompat { strict_content_coding: true, ..CurlCompat::default() },
        ..RequestOptions::default()
    };
    let half = coded.len() / 2;
    let mut flipped = coded.clone();
    flipped[half] ^= 0x55;
    for (reply, exit) in [
        ([head(half, "gzip"), coded[..half].to_vec()].concat(), 61),
        ([head(flipped.len(), "gzip"), flipped].concat(), 61),
        ([head(coded.len(), "br"), coded.clone()].concat(), 61),
        ([head(5, "x-unknown"), b"hello".to_vec()].concat(), 61),
        ([head(coded.len(), "gzip,gzip,gzip,gzip,gzip,gzip"), coded.clone()].concat(), 61),
        ([head(0, "gzip")].concat(), 0),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n0\r\n\r\n".to_vec(), 0),
    ] {
        for driver in DRIVERS {
            let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send(&reply)]]);
            let got = get(driver, &peer.url("/"), &decoding);
            assert_eq!(
                got.exit,
                exit,
                "{driver:?} {:?}: {}",
                String::from_utf8_lossy(&reply[..90.min(reply.len())]),
                got.message
            );
        }
    }
    let origin = start_origin();
    for driver in DRIVERS {
        let got = get(driver, &origin.url("/bomb/500"), &decoding);
        assert_fails(&got, ErrorKind::TooLarge, 63);
        assert!(got.body.len() <= 8 << 20, "{}", got.body.len());
    }
}
