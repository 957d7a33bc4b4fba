//! Tests of `haul doctor URL`, the report about what happens when a URL is fetched.

use crate::common;

use serde_json::Value;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

use common::{CommandOutput, HAUL, REFUSED, program, run};

fn doctor(args: &[&str]) -> CommandOutput {
    run(program(HAUL).arg("doctor").args(args))
}

fn json(args: &[&str]) -> (i32, Value) {
    let output = doctor(&[&["--format", "json"], args].concat());
    assert_eq!(output.stderr, "");
    (output.code, serde_json::from_slice(&output.stdout).unwrap())
}

fn problems(page: &Value) -> String {
    page["problems"].as_array().unwrap().iter().map(|problem| format!("{}\n", problem.as_str().unwrap())).collect()
}

/// Returns the keys of the sections in a JSON report.
fn sections(page: &Value) -> Vec<&str> {
    page.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn doctor_output_to_full_disk_exits_23() {
    let origin = Origin::builder().start().unwrap();
    for format in ["text", "json"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = program(HAUL);
        let child = command.args(["doctor", "--format", format, &origin.url("/small")]).stdout(full);
        let ran = child.stderr(std::process::Stdio::piped()).output().unwrap();
        let message = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(23), "{format}: {message}");
        assert!(message.contains("failed to write the output: No space left"), "{format}: {message}");
    }
}

#[test]
fn doctor_report_of_http_url_has_all_sections() {
    let origin = Origin::builder().start().unwrap();
    let (code, page) = json(&[&origin.url("/bytes/4000000")]);
    assert_eq!(code, 0, "{page:#}");
    let expected = [
        "compression",
        "connections",
        "dns",
        "environment",
        "exit_code",
        "http_versions",
        "problems",
        "ranges",
        "rate",
        "response",
        "validators",
    ];
    let mut names = sections(&page);
    names.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(page["connections"]["addresses"][0]["address"], "127.0.0.1");
    assert_eq!(page["connections"]["addresses"][0]["status"], 200);
    assert_eq!(page["http_versions"]["versions"][0], serde_json::json!({"version": "HTTP/1.1", "offered": true}));
    assert_eq!((&page["response"]["status"], &page["rate"]["received"]), (&200.into(), &4_000_000.into()));
    assert!(page["rate"]["rate"].as_u64().unwrap() > 0);
    assert_eq!(page["environment"]["proxy"], Value::Null);
}

#[test]
fn doctor_report_shows_tls_session_and_certificates() {
    let origin = Origin::builder().http2(100).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let authority = dir.path().join("ca.pem");
    std::fs::write(&authority, origin.ca_pem()).unwrap();
    let (url, ca) = (origin.https_url("/bytes/10"), authority.to_str().unwrap());
    let (code, page) = json(&["--cacert", ca, &url]);
    assert_eq!(code, 0, "{page:#}");
    assert_eq!(page["tls"]["verification"], "valid");
    assert_eq!((&page["tls"]["version"], &page["tls"]["alpn"]), (&"TLSv1.3".into(), &"h2".into()));
    assert!(page["tls"]["certificates"][0]["days_left"].as_i64().is_some(), "{page:#}");
    let versions = page["http_versions"]["versions"].as_array().unwrap();
    assert_eq!(versions[1], serde_json::json!({"version": "HTTP/2", "offered": true}));

    let (code, page) = json(&[&url]);
    assert_eq!((code, &page["exit_code"]), (60, &60.into()));
    assert!(page["tls"]["verification"].as_str().unwrap().starts_with("failed: "), "{page:#}");
    assert!(page["tls"]["certificates"][0]["subject"].is_string(), "the certificate is shown nevertheless");
    assert!(problems(&page).contains("trust it with --cacert FILE"), "{page:#}");
}

#[test]
fn doctor_reports_redirects_compression_ranges_and_validators() {
    let reply = |head: &str| vec![ScriptStep::ReadHead, ScriptStep::send(head)];
    let found = "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab";
    let moved = "HTTP/1.1 302 Found\r\nLocation: /new?token=hidden\r\nContent-Length: 0\r\n\r\n";
    let peer = H1Peer::start(vec![
        reply(moved),
        [reply(moved), reply(found)].concat(),
        reply(found),
        reply(&found.replace("ETag", "Content-Encoding: gzip\r\nETag")),
        reply(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-0/2\r\nContent-Length: 1\r\nConnection: close\r\n\r\na",
        ),
        reply("HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n"),
    ]);
    let (code, page) = json(&[&peer.url("/old?token=hidden")]);
    assert_eq!(code, 0, "{page:#}");
    let (from, to) = (peer.url("/old?..."), peer.url("/new?..."));
    assert_eq!(page["redirects"]["hops"][0], serde_json::json!({"status": 302, "from": from, "to": to}));
    assert_eq!(page["compression"]["coding"], "gzip");
    assert_eq!(page["ranges"]["supported"], true);
    assert_eq!((&page["validators"]["etag"], &page["validators"]["unchanged"]), (&"\"v1\"".into(), &true.into()));
    assert!(!page.to_string().contains("hidden"), "{page:#}");
    assert!(peer.saw(4, b"Range: bytes=0-0") && peer.saw(5, b"If-None-Match: \"v1\""));
}

#[test]
fn doctor_report_contains_no_secrets() {
    let origin = Origin::builder().start().unwrap();
    let url = origin.url("/bytes/10?key=s3cret").replace("http://", "http://me:s3cret@");
    let secrets = ["-b", "c=s3cret", "-H", "Authorization: Bearer s3cret", "--oauth2-bearer", "s3cret", &url];
    let mut command = program(HAUL);
    command.arg("doctor").args(secrets).env("no_proxy", "*").env("https_proxy", "http://u:s3cret@127.0.0.1:1");
    let output = run(&mut command);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("s3cret") && text.contains("https_proxy       http://127.0.0.1:1"), "{text}");
}

#[test]
fn doctor_sends_no_credentials_to_redirected_origin() {
    let found = "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab";
    let other = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(found)]);
    let moved = format!("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", other.url("/"));
    let first = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(moved)]);
    let output = doctor(&["-u", "me:s3cret", "-H", "X-Key: s3cret", "-b", "c=s3cret", &first.url("/")]);
    assert_eq!(output.code, 0, "{}", String::from_utf8_lossy(&output.stdout));
    assert!(first.saw(0, b"Authorization: Basic ") && other.connections() >= 5);
    for connection in 0..other.connections() {
        let text = String::from_utf8_lossy(&other.received(connection)).into_owned();
        assert!(!text.contains("Authorization") && !text.contains("c=s3cret"), "{text}");
    }
}

#[test]
fn doctor_failures_have_remedy_and_exit_code() {
    let output = doctor(&[&format!("{REFUSED}/")]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.code, 7, "{text}");
    assert!(text.contains("; nothing listens on that port: check port and server\n"), "{text}");
    assert!(text.contains("  * 127.0.0.1: failed to connect to 127.0.0.1 port 1: Connection refused"), "{text}");
    assert!(text.starts_with("Environment\n  haul "), "{text}");

    let origin = Origin::builder().start().unwrap();
    let (code, page) = json(&[&origin.url("/status/404")]);
    assert_eq!((code, &page["response"]["status"]), (22, &404.into()), "{page:#}");
}

#[test]
fn doctor_requires_exactly_one_url() {
    for args in [&["http://h/1", "http://h/2"][..], &["--input-file", "/dev/null"]] {
        let output = doctor(args);
        assert!(output.code == 2 && output.stderr.contains("it looks at one URL"), "{}", output.stderr);
    }
    let output = doctor(&["--format", "xml", "http://h/"]);
    assert!(output.code == 2 && output.stderr.contains("expected text or json"), "{}", output.stderr);
    assert!(doctor(&["--help"]).text().starts_with("Usage: haul doctor"));
}
