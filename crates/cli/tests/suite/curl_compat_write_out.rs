//! The curl persona prints with `-w` what curl 8.22 prints.

use crate::common;

use std::fs;

use common::{HAUL, answering, curl, curl_in, curl_quiet, page, program, received, reply_steps, run};
use testkit::h1_peer::H1Peer;

#[test]
fn curl_ignores_failed_write_out_not_failed_body() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let url = peer.url("/");
    let to_full = |first: &[&str], args: &[&str]| {
        let mut command = program("sh");
        command.args(["-c", "exec \"$@\" >/dev/full", "sh", HAUL]).args(first).args(args).current_dir(dir.path());
        run(&mut command)
    };
    let told = ["-s", "-S", "-o", "file", "-w", "%{http_code}", &url];
    let ran = to_full(&["curl", "-q"], &told);
    assert!(ran.code == 0 && ran.stderr.starts_with("Warning: failed to write"), "{ran:?}");
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"x");
    assert_eq!(to_full(&["curl", "-q"], &["-s", "-w", "%{http_code}", &url]).code, 23);
    assert_eq!(to_full(&[], &told).code, 23, "in haul's own name it is what was asked for");
}

#[test]
fn unknown_variable_is_reported_also_when_silent() {
    let peer = page("x");
    let ran = curl(&["-s", "-w", "%{nosuch}|", &peer.url("/")]);
    assert_eq!(ran.stderr.trim_end(), "curl: unknown --write-out variable: 'nosuch'");
    assert_eq!((ran.code, &*ran.stdout), (0, &b"x|"[..]));
}

/// curl counts URLs that it cannot fetch, such as invalid ones, as transfers. Scripts read the exit
/// code of such a transfer from the output of `-w`.
#[test]
fn write_out_reports_transfers_that_never_started() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "content").unwrap();
    let (bad, there) = ("http://127.0.0.1:1/a b", "http://127.0.0.1:1/");
    for (args, code) in [
        (&[bad][..], 3),
        (&[bad, "-O"], 3),
        (&[bad, "-T", "file"], 3),
        (&["http://127.0.0.1:99999/", "-T", "file"], 3),
        (&[there, "-T", "nonesuch"], 26),
        (&[there, "-F", "a=@nonesuch"], 26),
        (&[there, "-F", "a=<nonesuch"], 26),
        (&[there, "-T", "file"], 7),
    ] {
        let ran = curl_in(dir.path(), &[&["-s", "-w", "%{http_code} %{exitcode}"], args].concat());
        assert_eq!(String::from_utf8_lossy(&ran.stdout), format!("000 {code}"), "{args:?}");
        assert_eq!(ran.code, code, "{args:?}");
    }
}

#[test]
fn write_out_reports_unusable_urls() {
    let peer = page("x");
    let format = "%{http_code} %{exitcode} %{urlnum} %{url}\n";
    for (url, code) in [("http://a b/", 3), ("hej://x/", 1)] {
        let ran = curl(&["-s", "-o", "/dev/null", "-o", "/dev/null", "-w", format, url, &peer.url("/")]);
        let said = format!("000 {code} 0 {url}\n200 0 1 {}\n", peer.url("/"));
        assert_eq!((ran.code, String::from_utf8(ran.stdout).unwrap()), (0, said));
    }
    assert_eq!(curl(&["-s", "-w", format, "http://h/[1-"]).stdout, b"");
}

#[test]
fn parallel_write_out_reports_malformed_urls() {
    for urls in [&["http://h:99999/"][..], &["http://h:99999/", "http://h:99999/"]] {
        let printed = curl(&[&["-s", "-Z", "-w", "%{http_code}|"], urls].concat());
        assert_eq!((printed.code, printed.stdout), (3, b"000|".repeat(urls.len())));
    }
}

#[test]
fn write_out_shows_host_as_written() {
    let peer = page("x");
    let there = format!("::127.0.0.1:{}", peer.addr().port());
    let told = "%{url_effective} %{url.host} %{urle.host}";
    for host in ["BÜcher.Example", "Host.Example"] {
        let url = format!("http://{host}/");
        let printed = curl(&["-s", "-o", "/dev/null", "-w", told, "--connect-to", &there, &url]).text();
        assert_eq!(printed, format!("{url} {host} {host}"));
    }
    assert!(received(&peer, 0).contains("\r\nHost: xn--bcher-kva.example\r\n"), "{}", received(&peer, 0));

    let peer = H1Peer::start(vec![
        reply_steps("302 Found\r\nLocation: http://Other.example/", "ok"),
        reply_steps("200 OK", "ok"),
    ]);
    let there = format!("::127.0.0.1:{}", peer.addr().port());
    let args = ["-s", "-L", "-o", "/dev/null", "-w", told, "--connect-to", &there, "http://Host.Example/"];
    assert_eq!(curl(&args).text(), "http://Other.example/ Host.Example Other.example");
}

#[test]
fn write_out_shows_user_as_written() {
    let peer = page("x");
    let url = peer.url("/").replacen("://", "://us%40er:p%3a@", 1);
    assert_eq!(curl(&["-s", "-o", "/dev/null", "-w", "%{url.user}", &url]).text(), "us%40er");
}

#[test]
fn redirect_url_is_empty_after_following() {
    let location = "302 Found\r\nLocation: http://127.0.0.1:1/";
    let told = |options: &[&str]| {
        let peer = H1Peer::start(vec![reply_steps(location, "ok")]);
        let ran = curl(&[&["-s", "-o", "/dev/null", "-w", "%{redirect_url}"], options, &[&peer.url("/")]].concat());
        (ran.code, String::from_utf8(ran.stdout).unwrap())
    };
    let there = "http://127.0.0.1:1/".to_owned();
    assert_eq!(told(&[]), (0, there.clone()));
    assert_eq!(told(&["-L", "--max-redirs", "0"]), (47, there));
    assert_eq!(told(&["-L"]), (7, String::new()));
}

#[test]
fn write_out_ports_and_url_numbers_match_curls() {
    let peer = page("x");
    let ran = curl(&["-s", "-w", "%{remote_port} %{local_port}", "http://127.0.0.1:1/"]);
    assert_eq!(ran.stdout, b"-1 -1");
    let glob = peer.url("/[1-3]");
    let ran = curl(&[
        "-Z",
        "-s",
        "-o",
        "/dev/null",
        "-o",
        "/dev/null",
        "-o",
        "/dev/null",
        "-w",
        "%{urlnum} ",
        &glob,
        &peer.url("/"),
        &peer.url("/{a,b}"),
    ]);
    let mut numbers: Vec<_> = ran.text().split_whitespace().map(str::to_owned).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, ["0", "0", "0", "1", "2", "2"]);
}

#[test]
fn parallel_write_out_url_contains_get_data_once() {
    let peer = page("");
    let url = peer.url("/a?b");
    let ran = curl(&["-s", "-Z", "-G", "-d", "c=d", "-w", "%{url}", &url]);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), format!("{url}&c=d"));
}

#[test]
fn delivered_size_and_max_filesize_count_decoded_bytes() {
    let deflated: &[u8] =
        b"\x1f\x8b\x08\x08\x79\x9e\xab\x41\x00\x03\x6c\x61\x6c\x61\x6c\x61\x00\xcb\xc9\xcc\x4b\x55\x30\xe4\x52\
        \xc8\x01\xd1\x46\x5c\x0a\x10\x86\x31\x17\x00\x0a\x02\x71\x60\x18\x00\x00\x00";
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", deflated.len());
    let peer = answering([head.as_bytes(), deflated].concat());
    let url = peer.url("/");
    let sizes = ["-o", "/dev/null", "-w", "%{size_download} %{size_delivered}", &url];
    assert_eq!(curl_quiet(&sizes).text(), "44 44");
    assert_eq!(curl_quiet(&[&["--compressed"], &sizes[..]].concat()).text(), "44 24");

    let bomb = b"\x81\xfa\x7f\x0c\xfc\x13\x00\xf1\x58\x20\x90\x7b\x18\x00";
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: {}\r\n\r\n", bomb.len());
    let peer = answering([head.as_bytes(), bomb].concat());
    let url = peer.url("/");
    for name in ["curl", ""] {
        let first: &[&str] = if name.is_empty() { &[] } else { &[name] };
        let args = [first, &["-q", "-sS", "--compressed", "--max-filesize", "1000", &url]].concat();
        let ran = run(program(HAUL).args(args));
        assert_eq!((ran.code, ran.stdout.len()), (63, 0), "{}", ran.stderr);
    }
}

#[test]
fn url_parts_of_other_schemes_are_printed() {
    let format = "%{url.scheme} %{url.host} %{url.port} %{url.path} %{url.query} %{url.fragment}";
    let ran = curl(&["-s", "-w", format, "X-Y://Host:5/a?b#c"]);
    assert_eq!((ran.code, ran.stdout.as_slice()), (1, &b"x-y Host 5 /a b c"[..]));
    let ran = curl(&["-s", "-w", "%{url.port}|", "x-y://host/"]);
    assert_eq!((ran.code, ran.stdout.as_slice()), (1, &b"|"[..]));
}

#[test]
fn write_out_reports_unopenable_header_file_once() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let url = peer.url("/");
    let format = "%{exitcode} %{url} %{url_effective}|";
    let ran = curl_in(dir.path(), &["-sS", "-D", "none/head", "-w", format, &url, &url, "-:", "-s", &url]);
    assert_eq!((ran.code, String::from_utf8(ran.stdout).unwrap()), (23, format!("23 {url} |")));
    assert_eq!((ran.stderr.lines().count(), peer.connections()), (1, 0), "{}", ran.stderr);
}

#[test]
fn write_out_of_http09_has_no_status() {
    let peer = answering("no head\n");
    let ran = curl_quiet(&["--http0.9", "-w", "%{http_code} %{http_version}", &peer.url("/")]);
    assert_eq!(ran.text(), "no head\n000 0");
}

#[test]
fn effective_url_keeps_characters_that_are_not_ascii() {
    let peer = page("");
    let url = peer.url("/");
    for (written, shown) in [("ü?ä", "ü?ä"), ("a/../ü#ö", "ü#ö"), ("%C3%BC", "%C3%BC")] {
        let ran = curl_quiet(&["-w", "%{url_effective}", &format!("{url}{written}")]);
        assert_eq!(ran.text(), format!("{url}{shown}"), "{written}");
    }
    let ran = curl_quiet(&["-w", "%{url.path}?%{url.query}", &format!("{url}%7Eü?ä")]);
    assert_eq!(ran.text(), "/%7Eü?ä");
}

#[test]
fn skip_existing_writes_out_skipped_files() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("new"));
    fs::write(dir.path().join("old"), "old").unwrap();
    let url = peer.url("/");
    let format = "%{http_code} %{urlnum} %{xfer_id} %{filename_effective} [%{scheme}] %{exitcode} %{url_effective}\n";
    let skipped = |number| format!("000 {number} -1 old [] 0 {url}\n");
    let args = ["-s", "--skip-existing", "-w", format];
    let with = |more: &[&str]| curl_in(dir.path(), &[&args, more].concat()).text();
    assert_eq!(with(&["-o", "old", &url]), skipped(0));
    assert_eq!(with(&["-o", "old", &url, "-o", "old", &url]), skipped(0) + &skipped(1));
    assert_eq!(with(&["-Z", "-o", "old", &url, "-o", "old", &url]), skipped(0) + &skipped(1));
    let next = [&["-Z", "-o", "old", &url, "--next"], &args[..], &["-o", "old", &url]].concat();
    assert_eq!(with(&next), skipped(0) + &skipped(1));
    assert_eq!(with(&["-o", "old", &url, "-o", "new", &url]), format!("{}200 1 0 new [http] 0 {url}\n", skipped(0)));
    assert_eq!((peer.connections(), fs::read_to_string(dir.path().join("old")).unwrap()), (1, "old".to_owned()));
}
