//! The curl persona prints the messages and progress meter of curl 8.22, and has its exit codes.

use crate::common;

use std::fs;
use std::process::Stdio;

use common::{HAUL, answering, curl, curl_in, list, names, page, program, reply_steps, run};
use testkit::h1_peer::{H1Peer, ScriptStep};

#[test]
fn progress_meter_prints_titles_for_each_connected_transfer() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("hello"));
    let url = peer.url("/");
    let titles = "  % Total    % Received % Xferd  Average Speed  Time    Time    Time   Current\n                                 \
                  Dload  Upload  Total   Spent   Left   Speed\n";
    let ran = curl_in(dir.path(), &["-o", "a", &url, "-o", "b", &url]);
    assert_eq!((ran.code, ran.stderr.matches(titles).count()), (0, 2), "{}", ran.stderr);
    let last = ran.stderr.trim_end().rsplit('\r').next().unwrap();
    assert!(last.starts_with("100      5 100      5   0      0 ") && last.len() == 77, "{last:?}");
    let ran = curl_in(dir.path(), &["-o", "a", "-d", "abc", &url]);
    let last = ran.stderr.trim_end().rsplit('\r').next().unwrap();
    assert!(last.starts_with("100      8 100      5 100      3 "), "{last:?}");

    let rest = "HTTP/1.1 206 Rest\r\nContent-Range: bytes 5-6/7\r\nContent-Length: 2\r\n\r\n67";
    let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send(rest)]]);
    let ran = curl_in(dir.path(), &["-C", "-", "-o", "a", &peer.url("/")]);
    let said = format!("** Resuming transfer from byte position 5\n{titles}\r");
    assert!(ran.stderr.starts_with(&said), "{}", ran.stderr);
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"hello67");

    // The file is already complete.
    let peer = H1Peer::always(reply_steps("416 Range Not Satisfiable\r\nContent-Range: bytes */7", ""));
    let ran = curl_in(dir.path(), &["-C", "-", "-o", "a", &peer.url("/")]);
    assert_eq!(
        (ran.code, ran.stderr.starts_with("** Resuming transfer from byte position 7\n")),
        (0, true),
        "{}",
        ran.stderr
    );

    let ran = curl(&["http://127.0.0.1:1/"]);
    assert!(ran.code == 7 && ran.stderr.starts_with("curl: (7) Failed to connect"), "{}", ran.stderr);
}

#[test]
fn stalled_handshake_is_a_connection_timeout() {
    let silent = H1Peer::always(vec![ScriptStep::ReadToEnd]);
    let (tls, proxy) = (silent.url("/").replacen("http", "https", 1), silent.url(""));
    for args in [
        &["-m", "0.2", &tls][..],
        &["--connect-timeout", "0.2", &tls],
        &["-m", "0.2", "-p", "-x", &proxy, "http://h.test/"],
    ] {
        let ran = curl(&[&["-sS"], args].concat());
        assert!(ran.code == 28 && ran.stderr.starts_with("curl: (28) Connection timed out after "), "{}", ran.stderr);
    }
    let ran = curl(&["-sS", "-m", "0.2", &silent.url("/")]);
    assert!(ran.stderr.starts_with("curl: (28) Operation timed out after "), "{}", ran.stderr);
}

#[test]
fn curl_notes_are_printed_only_with_verbose() {
    let (home, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let rc = list(home.path(), "curlrc", ["no-progress-meter"]);
    let url = peer.url("/");
    let with =
        |args: &[&str]| run(program(HAUL).arg("curl").args(args).env("XDG_CONFIG_HOME", home.path()).arg(&url)).stderr;
    let of_file = format!("Note: Read config file from '{}'\n", rc.display());
    let of_method = "Note: Unnecessary use of -X or --request, POST is already inferred.\n";
    let said = with(&["-v", "-X", "POST", "-d", "x"]);
    assert!(said.starts_with(&(of_file + of_method)), "{said}");
    assert_eq!(with(&["-X", "POST", "-d", "x"]), "");
    assert!(!with(&["-s", "-v", "-X", "POST", "-d", "x"]).contains("Note:"));
    assert!(with(&["-X", "HEAD", "-m", "5"]).starts_with("Warning: Setting custom HTTP method to HEAD"));
}

#[test]
fn connect_error_names_host_and_proxy() {
    let said = |args: &[&str]| {
        let said = curl(&[&["-sS"][..], args].concat()).stderr;
        said.split(" after ").next().unwrap().to_owned()
    };
    let told = |who: &str| format!("curl: (7) Failed to connect to {who}");
    assert_eq!(said(&["http://127.0.0.1:1/"]), told("127.0.0.1:1"));
    assert_eq!(said(&["--connect-to", "::127.0.0.1:1", "http://h.example/"]), told("h.example:80 via 127.0.0.1:1"));
    assert_eq!(said(&["-x", "http://127.0.0.1:1", "http://h.example/"]), told("127.0.0.1:1 over proxy 127.0.0.1"));
    assert_eq!(said(&["-x", "http://127.0.0.1:1", "https://h.example/"]), told("h.example:443 over proxy 127.0.0.1"));
    assert_eq!(said(&["--unix-socket", "/none/s", "http://h.example/"]), told("h.example:80 over unix:///none/s"));
}

#[test]
fn disabled_protocol_error_uses_curls_words() {
    let ran = curl(&["-s", "-S", "--proto", "=https", "http://h/"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "curl: (1) Protocol \"http\" is disabled\n"));
}

#[test]
fn fail_with_body_applies_to_head_requests() {
    let peer = H1Peer::start(vec![reply_steps("404 Gone", "x")]);
    let ran = curl(&["-s", "-I", "-X", "GET", "--fail-with-body", &peer.url("/")]);
    assert!(ran.code == 22 && ran.stdout.starts_with(b"HTTP/1.1 404 Gone\r\n"), "{}", ran.code);
}

#[test]
fn parallel_failure_is_not_hidden_by_next_operation() {
    let (gone, there) = (H1Peer::start(vec![reply_steps("404 Gone", "")]), page("x"));
    let ran = curl(&["-s", "-Z", "-f", &gone.url("/"), "--next", "-s", &there.url("/")]);
    assert_eq!((ran.code, &*ran.stdout), (22, &b"x"[..]));
}

#[test]
fn parallel_exit_code_keeps_the_first_failure() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    fs::write(dir.path().join("up"), "sent").unwrap();
    let (url, none) = (peer.url("/"), format!("file://{}/none", dir.path().display()));
    let code = |args: &[&str]| curl_in(dir.path(), &[&["-s"], args].concat()).code;
    for sent in [&[][..], &["-T", "up", "-T", "up"]] {
        let args = [sent, &["http://127.0.0.1:1/", &url]].concat();
        assert_eq!((code(&[&["-Z"], &args[..]].concat()), code(&args)), (7, 0), "{args:?}");
    }
    assert_eq!((code(&["-Z", &none, &url]), code(&[&none, &url])), (37, 0));
    assert_eq!(code(&["-Z", "-T", "up", "http://h:99999/", &url, "-T", "up"]), 3);
    // In time: the first URL fails only after the second.
    let silent = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::ReadHead]);
    let late = silent.url("/");
    assert_eq!(code(&["-Z", "-m", "1", &late, "http://127.0.0.1:1/"]), 7);
    assert_eq!(code(&["-Z", "-m", "1", &late, "--next", "-s", "http://127.0.0.1:1/"]), 7);
}

#[test]
fn unknown_content_coding_exits_61_after_the_head() {
    let dir = tempfile::tempdir().unwrap();
    let peer = H1Peer::always(reply_steps("200 OK\r\nContent-Encoding: foo", "ok"));
    let url = peer.url("/");
    let ran = curl_in(dir.path(), &["-s", "-i", "--compressed", &url]);
    assert!(
        ran.code == 61
            && ran.stdout.ends_with(b"Content-Encoding: foo\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"),
        "{ran:?}"
    );
    let ran = curl_in(dir.path(), &["-s", "--compressed", "-o", "file", &url]);
    assert_eq!((ran.code, names(dir.path()).len()), (61, 0), "without a head there is nothing to write");
}

#[test]
fn long_warnings_are_wrapped() {
    let ran = run(program(HAUL).args(["curl", "-q", "-T", "a", "-d", "b", "http://127.0.0.1:1/"]).env("COLUMNS", "79"));
    let expected = "Warning: You can only select one HTTP request method! You asked for both PUT \n\
                    Warning: (-T, --upload-file) and POST (-d, --data).\n";
    assert_eq!((ran.code, &*ran.stderr), (2, expected));
    let ran = run(program(HAUL)
        .args(["curl", "-q", "-sS", "-H", "\u{201c}host:", "http://127.0.0.1:1/"])
        .env("COLUMNS", "79"));
    assert!(!ran.stderr.contains("Unicode"), "-s hides it: {}", ran.stderr);
    let ran = run(program(HAUL)
        .args(["curl", "-q", "-H", "\u{201c}host:", "-s", "http://127.0.0.1:1/"])
        .env("COLUMNS", "79"));
    let expected = "Warning: The argument '\u{201c}host:' starts with a Unicode character. Maybe ASCII \n\
                    Warning: was intended?\n";
    assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
}

#[test]
fn netrc_with_unclosed_quote_fails_before_connecting() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("netrc"), "machine other login me password \"sesame\n").unwrap();
    let peer = page("x");
    let ran = curl_in(dir.path(), &["-sS", "--netrc-file", "netrc", &peer.url("/")]);
    assert_eq!((ran.code, peer.connections()), (26, 0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("sesame"), "{}", ran.stderr);
}

#[test]
fn etag_error_names_the_last_option() {
    let url = "http://127.0.0.1:1/";
    for (args, option) in [(["--etag-save", "e", url, url], "--url"), ([url, url, "--etag-save", "e"], "--etag-save")] {
        let ran = curl(&args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(&format!("curl: option {option}: is badly used here\n")), "{}", ran.stderr);
    }
}

#[test]
fn write_error_on_stdout_has_curls_message() {
    let (short, long) = (page("hello"), page(&"x".repeat(9000)));
    let full = || Stdio::from(fs::File::options().write(true).open("/dev/full").unwrap());
    let closed = || Stdio::from(std::io::pipe().unwrap().1);
    for output in [&full as &dyn Fn() -> Stdio, &closed] {
        let into = |url: &str, options: &[&str]| {
            let mut command = program(HAUL);
            let ran = command.args(["curl", "-q", "-sS"]).args(options).arg(url).stdout(output()).output().unwrap();
            (ran.status.code(), String::from_utf8(ran.stderr).unwrap())
        };
        let passed = "curl: (23) Failure writing output to destination, passed 9000 returned 0\n";
        assert_eq!(into(&long.url("/"), &[]), (Some(23), passed.to_owned()));
        assert_eq!(into(&short.url("/"), &[]), (Some(23), "curl: Failed writing body\n".to_owned()));
        assert_eq!(into(&short.url("/"), &["-Z"]), (Some(23), "curl: Failed writing body\n".to_owned()));
    }
}

#[test]
fn url_argument_error_names_option_or_argument() {
    let hint = "curl: try 'curl --help' or 'curl --manual' for more information\n";
    for (args, code, said) in [
        (&[""][..], 2, "curl: option : blank argument where content is expected\n"),
        (&["--url", ""], 2, "curl: option --url: blank argument where content is expected\n"),
        (&["@/none"], 26, "curl: option @/none: error encountered when reading a file\n"),
        (&["--url", "@/none"], 26, "curl: option --url: error encountered when reading a file\n"),
    ] {
        let ran = curl(args);
        assert_eq!((ran.code, ran.stderr), (code, format!("{said}{hint}")), "{args:?}");
    }
}

#[test]
fn undrawn_progress_bar_prints_an_empty_line() {
    let said = |reply: &str, args: &[&str]| {
        let peer = answering(reply);
        curl(&[&["-#", "-o", "/dev/null"], args, &[&peer.url("/")]].concat()).stderr
    };
    let gone = "HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nnone";
    assert_eq!(said(gone, &["-f"]), "curl: (22) The requested URL returned error: 404\n\n");
    assert_eq!(said("HTTP/1.1 204 None\r\n\r\n", &[]), "\n");
    assert_eq!(said("", &[]), "curl: (52) Empty reply from server\n\n");
    let refused = curl(&["-#", "http://127.0.0.1:1/"]).stderr;
    assert!(refused.ends_with("Could not connect to server\n"), "{refused:?}");
    let drawn = said("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", &[]);
    assert!(drawn.ends_with(" 100.0%\n") && drawn.lines().count() == 1, "{drawn:?}");
}

#[test]
fn usage_errors_are_written_to_stderr_option_file() {
    let dir = tempfile::tempdir().unwrap();
    for (args, said) in [
        (&["--stderr", "err", "--none"][..], "curl: option --none: is unknown\n"),
        (&["--stderr", "err"], "curl: (2) no URL specified\n"),
    ] {
        let ran = curl_in(dir.path(), args);
        assert_eq!((ran.code, &*ran.stderr), (2, ""), "{args:?}");
        let written = fs::read_to_string(dir.path().join("err")).unwrap();
        assert!(written.starts_with(said), "{args:?}: {written}");
    }
    let ran = curl_in(dir.path(), &["--none", "--stderr", "late"]);
    assert!(ran.stderr.starts_with("curl: option --none: is unknown\n"), "{}", ran.stderr);
    assert!(!dir.path().join("late").exists(), "the option comes after the error");
}

#[test]
fn max_filesize_error_differs_for_announced_length() {
    let said = |reply: &str| {
        let peer = answering(reply);
        let ran = curl(&["-sS", "--max-filesize", "3", &peer.url("/")]);
        (ran.code, String::from_utf8(ran.stdout).unwrap() + &ran.stderr)
    };
    let exceeded = "abccurl: (63) Exceeded the maximum allowed file size (3) with 3 bytes\n";
    assert_eq!(said("HTTP/1.1 200 OK\r\n\r\nabcdef"), (63, exceeded.to_owned()));
    let announced = "curl: (63) Maximum file size exceeded\n";
    assert_eq!(said("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcdef"), (63, announced.to_owned()));
}

#[test]
fn slow_transfer_error_has_curls_words() {
    let peer = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
        ScriptStep::ReadHead,
    ]);
    let ran = curl(&["-sS", "-y", "1", "-Y", "1000", "-o", "/dev/null", &peer.url("/")]);
    let line = "curl: (28) Operation too slow. Less than 1000 bytes/sec transferred the last 1 seconds\n";
    assert_eq!((ran.code, &*ran.stderr), (28, line));
}
