//! Tests of the request bodies of every option that sends one. A CGI program of Apache echoes them,
//! and they equal those of curl.

use crate::common;
use crate::servers;

use std::fs;
use std::path::Path;

use common::CommandOutput;
use servers::compare_with_curl::{both, both_with, text};
use servers::start_apache::ApacheServer;

fn with<'a>(way: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    way.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

/// Creates two files whose content is sent in requests, and returns their paths. One contains CR
/// LF; the other has quotes in its name and contains a NUL.
fn files(dir: &Path) -> (String, String) {
    let (text, odd) = (dir.join("text"), dir.join("a \"b\";c.png"));
    fs::write(&text, "one\r\ntwo\n").unwrap();
    fs::write(&odd, b"\x00\x01binary\xff").unwrap();
    (text.to_str().unwrap().to_owned(), odd.to_str().unwrap().to_owned())
}

#[test]
fn data_options_send_the_content_of_curl() {
    let Some(apache) = ApacheServer::start("content") else { return };
    let dir = tempfile::tempdir().unwrap();
    let (file, _) = files(dir.path());
    let (at, equals, encoded) = (format!("@{file}"), format!("n@{file}"), format!("n=@{file}"));
    for (port, way) in apache.ways() {
        let url = apache.url(port, "/open/echo");
        for (options, expected) in [
            (&["-d", "a=1"][..], "a=1"),
            (&["-d", "a=1", "-d", "b=2"], "a=1&b=2"),
            (&["-d", &at], "onetwo"),
            (&["--data-ascii", &at], "onetwo"),
            (&["--data-binary", &at], "one\r\ntwo\n"),
            (&["--data-raw", "@x"], "@x"),
            (&["-d", "a", "--data-binary", &at], "a&one\r\ntwo\n"),
            (&["--data-urlencode", "a b&c"], "a+b%26c"),
            (&["--data-urlencode", "=a=b"], "a%3Db"),
            (&["--data-urlencode", "n=\u{e9}/~"], "n=%C3%A9%2F~"),
            (&["--data-urlencode", &at], "one%0D%0Atwo%0A"),
            (&["--data-urlencode", &equals], "n=one%0D%0Atwo%0A"),
            (&["--data-urlencode", &encoded], "n=%40"),
            (&["--json", "{\"a\":1}"], "{\"a\":1}"),
            (&["--json", "{\"a\":", "--json", "1}"], "{\"a\":1}"),
            (&["-d", ""], ""),
            (&["-d", "x", "-X", "PATCH"], "x"),
            (&["-d", "x", "-H", "Content-Type: text/x"], "x"),
        ] {
            let got = text(&both(&with(&way, &[options, &[&*url]].concat())));
            let (head, content) = got.split_once("\n\n").unwrap();
            if options.contains(&encoded.as_str()) {
                assert!(content.starts_with(expected), "{way:?} {options:?} {got}");
            } else {
                assert_eq!(content, expected, "{way:?} {options:?} {got}");
            }
            let kind = match options[0] {
                "--json" => "application/json",
                _ if options.contains(&"Content-Type: text/x") => "text/x",
                _ => "application/x-www-form-urlencoded",
            };
            assert!(head.contains(&format!("CONTENT_TYPE={kind}")), "{way:?} {options:?} {head}");
        }
        for (options, query) in [
            (&["-G", "-d", "a=1", "-d", "b=2"][..], "a=1&b=2"),
            (&["--get", "--data-urlencode", "a=b c"], "a=b+c"),
            (&["--url-query", "a=b c"], "a=b+c"),
            (&["--url-query", "+a=%20"], "a=%20"),
            (&["--url-query", "q=1", "-d", "x"], "q=1"),
        ] {
            let got = text(&both(&with(&way, &[options, &[&*url]].concat())));
            assert!(got.contains(&format!("QUERY_STRING={query}\n")), "{way:?} {options:?} {got}");
        }
    }
}

/// Returns the multipart form that the server echoes, with `BOUNDARY` in place of each boundary.
fn form(ran: &CommandOutput) -> String {
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let boundaries: Vec<String> =
        text.split("boundary=").skip(1).filter_map(|rest| Some(rest.lines().next()?.trim_end().to_owned())).collect();
    let one = boundaries.iter().fold(text.clone(), |text, boundary| text.replace(boundary, "BOUNDARY"));
    let length = text.lines().find(|line| line.starts_with("CONTENT_LENGTH=")).unwrap_or_default().to_owned();
    // Boundaries of other lengths make for another length of all.
    if length.is_empty() { one } else { one.replace(&length, "CONTENT_LENGTH=known") }
}

#[test]
fn forms_match_those_of_curl() {
    let Some(apache) = ApacheServer::start("forms") else { return };
    let dir = tempfile::tempdir().unwrap();
    let (file, odd) = files(dir.path());
    let (upload, inside, strange) =
        (format!("f=@{file}"), format!("f=<{file}"), format!("f=@\"{}\"", odd.replace('"', "\\\"")));
    let several = format!("f=@{file},{file}");
    let named = format!("f=@{file};filename=\"n\\\"x\";type=text/x");
    for (port, way) in apache.ways() {
        let url = apache.url(port, "/open/echo");
        for options in [
            &["-F", "a=1", "-F", "b=2;type=text/html"][..],
            &["-F", &upload],
            &["-F", &inside],
            &["-F", &strange],
            &["-F", &several],
            &["-F", &named],
            &["-F", &strange, "--form-escape"],
            &["--form-string", "a=@1;type=x"],
            &["-F", "=plain;type=text/plain", "-F", "x=y"],
            &["-F", "m=(;type=multipart/mixed", "-F", "a=1", "-F", "b=2", "-F", "=)"],
            &["-F", "a=1;headers=\"X-Own: 1\""],
        ] {
            let got = both_with(&with(&way, &[options, &[&*url]].concat()), form);
            assert_eq!(got.code, 0, "{way:?} {options:?} {}", got.stderr);
            assert!(form(&got).contains("CONTENT_LENGTH=known\n"), "{way:?} {options:?}: the length is known");
            assert!(form(&got).ends_with("--BOUNDARY--\r\n"), "{way:?} {options:?}");
        }
    }
}

#[test]
fn files_and_pipes_are_uploaded_whole() {
    let Some(apache) = ApacheServer::start("uploads") else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("big");
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    fs::write(&file, &content).unwrap();
    let file = file.to_str().unwrap();
    let discarding = ["-o", "/dev/null", "-w", "%{num_redirects}"];
    for (port, way) in apache.ways() {
        let all: [(&[&str], &str, &str); 4] = [
            // Of known length; named by the file where the URL ends in a slash; with a wait for the
            // server's word; chunked.
            (&["-T", file], "/dav/open/name", "name"),
            (&["-T", file], "/dav/open/", "big"),
            (&["-T", file, "-H", "Expect: 100-continue"], "/dav/open/expected", "expected"),
            (&["-T", file, "-H", "Expect:"], "/dav/open/at-once", "at-once"),
        ];
        for (options, path, name) in all {
            let place = apache.path("root/dav/open").join(name);
            let got = both(&with(&way, &[&discarding, options, &[&*apache.url(port, path)]].concat()));
            assert_eq!(got.code, 0, "{way:?} {options:?} {}", got.stderr);
            assert!(fs::read(&place).unwrap() == content, "{way:?} {options:?}");
            fs::remove_file(place).unwrap();
        }
        let place = apache.path("root/dav/open/piped");
        for option in ["-T -", "-T ."] {
            let url = apache.url(port, "/dav/open/piped");
            let got = common::bash(
                common::HAUL,
                &format!("\"$GET\" -sS -o /dev/null {option} {} {url} < {file}", way.join(" ")),
            );
            assert_eq!((got.code, got.stderr.as_str()), (0, ""), "{way:?} {option}");
            assert!(fs::read(&place).unwrap() == content, "{way:?} {option}");
            fs::remove_file(&place).unwrap();
        }
        // Piped content has no known length; HTTP/1.1 sends it in chunks.
        let url = apache.url(port, "/open/echo");
        let got = common::bash(common::HAUL, &format!("printf abc | \"$GET\" -sS -T - {} {url}", way.join(" "))).text();
        assert!(got.ends_with("\n\nabc") && !got.contains("CONTENT_LENGTH"), "{way:?} {got}");
    }
}
