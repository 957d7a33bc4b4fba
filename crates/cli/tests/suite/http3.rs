//! Tests of `--http3` and `--http3-only`, and of HTTP/3 that a server has offered with Alt-Svc.

use testkit::http3::Http3Settings;
use testkit::origin::{Origin, OriginBuilder};

use crate::common::{HAUL, bash, run_haul};

/// The options that delay TCP connections so long that HTTP/3 connects first even on the slowest
/// machine.
const LATE_TCP: [&str; 2] = ["--happy-eyeballs-timeout-ms", "60000"];

/// Starts an origin with HTTP/3. Returns its URL, and a file with the certificate of its CA.
fn start(builder: OriginBuilder) -> (Origin, String, tempfile::NamedTempFile) {
    let origin = builder.http2(100).http3(Http3Settings::new()).start().unwrap();
    let ca = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(ca.path(), origin.ca_pem()).unwrap();
    let url = origin.https_url("/small");
    (origin, url, ca)
}

#[test]
fn http3_options_show_http3_in_write_out() {
    let (origin, url, ca) = start(Origin::builder());
    let ca = ca.path().to_str().unwrap();
    for option in ["--http3", "--http3-only"] {
        let args = ["-sS", "--cacert", ca, "-w", "%{http_version}", option, &*url];
        assert_eq!(run_haul([&LATE_TCP[..], &args].concat()).text(), "small\n3", "{option}");
    }
    assert_eq!(origin.quic_connections(), 2);
}

#[test]
fn offered_http3_is_used_later_in_the_run() {
    let (_origin, url, ca) = start(Origin::builder().advertise_http3());
    let one = ["-sS", "--cacert", ca.path().to_str().unwrap(), "-w", "%{http_version} ", &*url];
    assert_eq!(run_haul([&LATE_TCP[..], &one, &["--next"], &LATE_TCP, &one].concat()).text(), "small\n2 small\n3 ");
    let only_http2 = [&["--http2"][..], &one, &["--next", "--http2"], &one].concat();
    assert_eq!(run_haul(only_http2).text(), "small\n2 small\n2 ");
}

#[test]
fn verbose_hides_transfer_encoding_of_http2_and_http3() {
    let (origin, _, ca) = start(Origin::builder());
    let (ca, url) = (ca.path().display(), origin.https_url("/echo"));
    for option in ["--http3-only", "--http2"] {
        let run = bash(HAUL, &format!("printf content | $GET -sSv --cacert {ca} {option} -T - {url}"));
        assert!(run.stderr.contains("> PUT /echo") && run.code == 0, "{option}: {run:?}");
        assert!(!run.stderr.to_ascii_lowercase().contains("transfer-encoding"), "{option}: {}", run.stderr);
    }
}

#[test]
fn http3_only_with_a_proxy_is_refused() {
    let run = run_haul(["--http3-only", "-x", "http://127.0.0.1:9", "https://127.0.0.1:9/"]);
    assert!(run.code != 0 && run.stderr.contains("--http3-only") && run.stderr.contains("proxy"), "{run:?}");
    for option in ["-x", "--socks4", "--socks5"] {
        let run = run_haul(["curl", "-q", "-sS", "--http3-only", option, "127.0.0.1:9", "https://127.0.0.1:9/"]);
        assert!(run.failed(3).contains("proxy"), "{option}: {run:?}");
    }
}

#[test]
fn http3_only_needs_an_https_url() {
    let run = run_haul(["-sS", "--http3-only", "http://127.0.0.1:9/"]);
    assert!(run.failed(3).contains("https"));
}

#[test]
fn version_lists_http3() {
    assert!(run_haul(["-V"]).text().contains(" HTTP3 "));
}
