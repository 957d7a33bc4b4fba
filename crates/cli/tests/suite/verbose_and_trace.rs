//! Tests of the output of `-v`, `--trace-ascii` and `-#`, which programs parse.

use crate::common;

use std::fs;

use common::agent::TestAgentDirectory;
use common::{REFUSED, page, run_haul, short_body};
use testkit::origin::Origin;
use testkit::test_certificates::TestCertificates;

#[test]
fn verbose_header_lines_end_in_crlf() {
    let peer = page("hello\n");
    let ran = run_haul(["-s", "-v", "-o", "/dev/null", &peer.url("/")]);
    let heads: Vec<&str> = ran.stderr.split_inclusive('\n').filter(|line| line.starts_with(['>', '<'])).collect();
    assert!(heads.contains(&"> GET / HTTP/1.1\r\n") && heads.contains(&"< HTTP/1.1 200 OK\r\n"), "{heads:?}");
    assert!(heads.contains(&"> \r\n") && heads.contains(&"< \r\n"), "{heads:?}");
    assert!(heads.iter().all(|line| line.ends_with("\r\n")), "{heads:?}");
    assert!(ran.stderr.lines().any(|line| line.starts_with("* ") && !line.contains('\r')), "{}", ran.stderr);
}

#[test]
fn trace_shows_each_received_header_separately() {
    let peer = page("hello\n");
    let trace = run_haul(["-s", "--trace-ascii", "-", "-o", "/dev/null", &peer.url("/")]).text();
    assert!(trace.contains("<= Recv header, 17 bytes (0x11)\n0000: HTTP/1.1 200 OK\n"), "{trace}");
    assert!(trace.contains("<= Recv header, 19 bytes (0x13)\n0000: Content-Length: 6\n"), "{trace}");
    assert!(trace.contains("<= Recv header, 2 bytes (0x2)\n0000: \n<= Recv data, 6 bytes"), "{trace}");
    assert_eq!(trace.matches("=> Send header").count(), 1, "{trace}");
    assert!(
        trace.starts_with("*   Trying ") && trace.contains("\n* Connected to 127.0.0.1 "),
        "as by curl 8.22: {trace}"
    );
}

#[test]
fn verbose_http2_shows_connection_and_version() {
    let origin = Origin::builder().http2(100).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca");
    fs::write(&ca, origin.ca_pem()).unwrap();
    let ca = ca.to_str().unwrap();
    let url = origin.https_url("/small");
    let said = run_haul(["-s", "-v", "--http2", "--cacert", ca, "-o", "/dev/null", &url]).stderr;
    let lines: Vec<&str> = said.lines().collect();
    let place = |start: &str| lines.iter().position(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{said}"));
    let order = [
        "*   Trying ",
        "* Connected to ",
        "* SSL connection using TLSv1.3 / TLS_AES_256_GCM_SHA384",
        "* ALPN: server accepted h2",
        "* Server certificate:",
        "*  subject: ",
        "*  start date: ",
        "*  expire date: ",
        "*  issuer: ",
        "*  SSL certificate verify ok.",
        "> GET /small HTTP/2",
        "< HTTP/2 200",
        "* Connection #0 to host ",
    ];
    assert!(order.map(place).is_sorted(), "{said}");
    assert!(said.ends_with(" left intact\n"), "{said}");
}

#[test]
fn ssl_verify_result_is_set_even_with_insecure() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let serve = |name: &str, identity: TestCertificates| {
        fs::write(path(name), identity.ca_pem()).unwrap();
        Origin::builder().identity(identity).start().unwrap()
    };
    let (good, misnamed) =
        (serve("good", TestCertificates::generate()), serve("misnamed", TestCertificates::for_names(&["a.example"])));
    let (trusted, other) = (path("good"), path("misnamed"));
    let said = |origin: &Origin, options: &[&str]| {
        let url = origin.https_url("/small");
        run_haul(
            ["curl", "-s", "-o", "/dev/null", "-w", "%{ssl_verify_result} %{exitcode}"]
                .iter()
                .chain(options)
                .chain([&&*url]),
        )
        .stdout
    };
    let said = |origin: &Origin, options: &[&str]| String::from_utf8(said(origin, options)).unwrap();
    assert_eq!(said(&good, &["--cacert", &trusted]), "0 0");
    // As in curl, -k loads no authorities.
    assert_eq!(said(&good, &["-k", "--cacert", &trusted]), "20 0");
    // The two authorities have one name and two keys.
    assert_eq!(said(&good, &["--cacert", &other]), "7 60");
    assert_eq!(said(&good, &["-k", "--cacert", &other]), "20 0");
    assert_eq!(said(&good, &["-k", "--cacert", "/dev/null"]), "20 0");
    assert_eq!(said(&misnamed, &["--cacert", &other]), "1 60");
    // A wrong name does not change the result of the chain's verification.
    let own = |origin: &Origin, authority: &str, format: &str| {
        let url = origin.https_url("/small");
        run_haul(["-s", "-o", "/dev/null", "-k", "--cacert", authority, "-w", format, &url]).text()
    };
    assert_eq!(own(&misnamed, &other, "%{ssl_verify_result}"), "0");
    assert_eq!(own(&good, &other, "%{ssl_verify_result}"), "7");
    let json = own(&good, &other, "%{json}");
    assert!(json.contains("\"ssl_verify_result\":7"), "{json}");
    let told = |authority: &str| {
        run_haul(["-s", "-v", "-k", "--cacert", authority, "-o", "/dev/null", &good.https_url("/small")]).stderr
    };
    assert!(told(&trusted).contains("*  SSL certificate verify ok.\n"), "{}", told(&trusted));
    assert!(told(&other).contains("*  SSL certificate verification failed"), "{}", told(&other));
}

#[test]
fn write_out_certs_is_equal_with_and_without_agent() {
    let identity = TestCertificates::generate();
    let shown = identity.chain_pem().replace('\r', "");
    let origin = Origin::builder().identity(identity).start().unwrap();
    let url = origin.https_url("/small");
    let agent = TestAgentDirectory::new();
    let format = ["-s", "-k", "-o", "/dev/null", "-w", "%{num_certs}\n%{certs}"];
    for said in [run_haul(format.iter().chain([&&*url])).text(), agent.run(&[&format[..], &[&url]].concat()).text()] {
        assert!(said.starts_with("1\nSubject:") && said.ends_with(&shown), "{said}");
        for name in ["Issuer:", "Version:2", "Serial Number:", "Start date:", "Expire date:"] {
            assert!(said.contains(&format!("\n{name}")), "{name}: {said}");
        }
    }
    let json = run_haul(["-s", "-k", "-o", "/dev/null", "-w", "%{json}", &url]).text();
    assert!(json.contains("\"num_certs\":1,") && json.contains("-----END CERTIFICATE-----\\n\""), "{json}");
    assert_eq!(run_haul(format.iter().chain([&&*origin.url("/small")])).text(), "0\n");
}

#[test]
fn verbose_shows_why_a_connection_was_refused() {
    for (url, more) in [(REFUSED, &[][..]), ("http://two:1", &["--resolve", "two:1:127.0.0.1,127.0.0.2"])] {
        let ran = run_haul([&["-s", "-v", "--retry", "0", url], more].concat());
        assert_eq!(ran.code, 7, "{}", ran.stderr);
        let said = "*   Trying 127.0.0.1:1...\n* connect to 127.0.0.1 port 1 failed: Connection refused\n";
        assert!(ran.stderr.starts_with(said), "{}", ran.stderr);
    }
}

#[test]
fn verbose_shows_the_error_despite_silent() {
    let origin = Origin::builder().start().unwrap();
    let (missing, busy) = (origin.url("/no/such/route"), origin.url("/small"));
    let cases: [(&[&str], &str); 3] = [
        (&["http://nowhere.invalid/"], "* Could not resolve host: nowhere.invalid\n"),
        (&["-f", &missing], "* The requested URL returned error: 404\n"),
        (&["--max-filesize", "1", &busy], "* Maximum file size exceeded\n"),
    ];
    for (words, told) in cases {
        let ran = run_haul(["curl", "-s", "-v", "-o", "/dev/null"].iter().chain(words));
        assert!(
            ran.code != 0 && ran.stderr.contains(told) && !ran.stderr.contains("curl: ("),
            "{words:?} {}",
            ran.stderr
        );
    }
}

#[test]
fn verbose_names_redirects_and_proxies() {
    let origin = Origin::builder().start().unwrap();
    let (there, here) = (origin.url("/chain/1"), origin.url("/small"));
    let said = run_haul(["curl", "-s", "-v", "-L", "-o", "/dev/null", &there]).stderr;
    assert!(said.contains("* Issue another request to this URL: 'http://127.0.0.1:"), "{said}");
    // The connection is to the proxy, not to the server.
    let proxy = here.trim_end_matches("/small");
    let said = run_haul(["curl", "-s", "-v", "-o", "/dev/null", "-x", proxy, "http://server.example/small"]).stderr;
    assert!(said.contains("* Connected to 127.0.0.1 (127.0.0.1) port "), "{said}");
    assert!(said.ends_with("* Connection #0 to host 127.0.0.1 left intact\n"), "{said}");
}

#[test]
fn verbose_reports_only_reusable_connections_as_intact() {
    let origin = Origin::builder().start().unwrap();
    let intact = "* Connection #0 to host 127.0.0.1 left intact\n";
    let kept = run_haul(["-s", "-v", "-o", "/dev/null", &origin.url("/small")]).stderr;
    assert!(kept.ends_with(intact), "{kept}");
    let peer = page("hello\n");
    let closed = run_haul(["-s", "-v", "-o", "/dev/null", &peer.url("/")]).stderr;
    assert!(!closed.contains("left intact"), "{closed}");
}

#[test]
fn progress_bar_is_drawn_into_a_pipe() {
    let peer = page("hello\n");
    let bar = format!("\r{} 100.0%\n", "#".repeat(72));
    for way in [&["curl"][..], &[]] {
        let said = |more: &[&str]| run_haul([way, &["-#", "-o", "/dev/null", &peer.url("/")], more].concat()).stderr;
        assert_eq!(said(&[]), bar, "{way:?}");
        assert_eq!(said(&["-s"]), "", "{way:?}");
    }
    assert_eq!(run_haul(["-o", "/dev/null", &peer.url("/")]).stderr, "");
    let broken = short_body();
    let said = run_haul(["curl", "-#", "-o", "/dev/null", &broken.url("/")]).stderr;
    assert!(said.contains("  30.0%\ncurl: (18) "), "{said}");
}

#[test]
fn retry_warnings_match_curl() {
    let origin = Origin::builder().start().unwrap();
    let url = origin.url("/flaky/2/small");
    let options = ["--no-progress-meter", "--retry", "3", "--retry-delay", "1", &url];
    let ran = run_haul(["curl"].iter().chain(&options));
    let warning = |left| format!("Warning: Problem : HTTP error. Retrying in 1 second. {left} retries left.\n");
    assert_eq!((ran.code, ran.stderr), (0, warning(3) + &warning(2)));
    for extra in ["-s", "--retry=0"] {
        let ran =
            run_haul(["curl", extra, "--retry-connrefused", "--retry-delay", "1", "--no-progress-meter", REFUSED]);
        assert_eq!((ran.code, ran.stderr.contains("Warning")), (7, false), "{}", ran.stderr);
    }
    let ran = run_haul(["curl", "-S", "--no-progress-meter", "--retry", "1", "--retry-connrefused", REFUSED]);
    assert!(ran.stderr.contains("\nWarning: Problem : connection refused. Retrying in 1 second. 1 retry left.\n"));
    // In haul's own name, -v reports it.
    let ran = run_haul(["-s", "-v", "-o", "/dev/null", "--retry-delay", "0.01", &origin.url("/flaky/1/small/1")]);
    assert!(
        ran.stderr.contains("\n* Problem : HTTP error. Retrying in 0.010 seconds. 3 retries left.\n"),
        "{}",
        ran.stderr
    );
    let ran = run_haul(["-s", "-o", "/dev/null", "--retry-delay", "0.01", &origin.url("/flaky/1/small/2")]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[test]
fn proxy_ssl_verify_result_is_set_even_with_insecure() {
    let dir = tempfile::tempdir().unwrap();
    let proxy = Origin::builder().start().unwrap();
    let ca = dir.path().join("ca").to_str().unwrap().to_owned();
    fs::write(&ca, proxy.ca_pem()).unwrap();
    let address = proxy.https_url("");
    let said = |first: &[&str], options: &[&str]| {
        let format = "%{proxy_ssl_verify_result} %{ssl_verify_result} %{exitcode}";
        let args = ["-s", "-o", "/dev/null", "-w", format, "-x", &address, "http://h.test/small"];
        String::from_utf8(run_haul([first, &args, options].concat()).stdout).unwrap()
    };
    for first in [&["curl", "-q"][..], &["--retry", "0"]] {
        assert_eq!(said(first, &["--proxy-cacert", &ca]), "0 0 0", "{first:?}");
        assert_eq!(said(first, &["--proxy-insecure"]), "20 0 0", "{first:?}");
        assert_eq!(said(first, &["--proxy-insecure", "-k"]), "20 0 0", "{first:?}");
    }
    assert_eq!(said(&["curl", "-q"], &[]), "20 0 60");
}

#[test]
fn repeated_verbose_adds_ids_times_and_contents() {
    let peer = page("hello\n");
    for first in [&["curl", "-q"][..], &[]] {
        let said = |verbose: &[&str]| {
            let args = ["-s", "-o", "/dev/null", &peer.url("/")];
            run_haul([first, verbose, &args].concat()).stderr
        };
        for (verbose, ids, contents) in [
            (&["-v"][..], false, false),
            (&["-v", "-v"], false, false),
            (&["-vv"], true, false),
            (&["-vvv"], true, true),
        ] {
            let text = said(verbose);
            assert_eq!(text.contains(" [0-"), ids, "{verbose:?}: {text}");
            assert_eq!(text.contains("<= Recv data, 6 bytes"), contents, "{verbose:?}: {text}");
        }
    }
}

#[test]
fn curl_prints_trace_without_file_on_stderr() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("hello\n"));
    let file = dir.path().join("none/trace").to_str().unwrap().to_owned();
    for option in ["--trace", "--trace-ascii"] {
        let args = ["-sS", option, &file, &peer.url("/")];
        let ran = run_haul([&["curl", "-q"][..], &args].concat());
        assert_eq!((ran.code, &*ran.stdout), (0, &b"hello\n"[..]));
        assert!(ran.stderr.contains("<= Recv data, 6 bytes"), "{option}: {}", ran.stderr);
        assert_eq!(run_haul(args).code, 23, "{option}: what the user named cannot be written");
    }
}
