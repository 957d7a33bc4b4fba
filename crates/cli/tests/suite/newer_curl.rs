//! What curl has come to do from 8.15 to 8.22, as haul does it in its place.

use crate::common;

use std::fs;

use common::{HAUL, curl, curl_in, list, names, page, program, received, run};
use testkit::raw::{RawPeer, Step};

fn answer(head: &str, body: &str) -> Vec<Step> {
    let length = body.len();
    let text = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    vec![Step::ReadHead, Step::send(text)]
}

#[test]
fn globs_have_names_in_urls_outputs_and_uploads() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let dir = dir.path();
    curl_in(dir, &["-s", &peer.url("/{<a>x,y}/[<n>1-2]"), "-o", "#<n>-#<a>-#1"]).ok();
    assert_eq!(names(dir), ["1-x-x", "1-y-y", "2-x-x", "2-y-y"]);
    fs::write(dir.join("up1"), "1").unwrap();
    fs::write(dir.join("up2"), "2").unwrap();
    curl_in(dir, &["-s", "-T", "up{<which>1,2}", &peer.url("/"), "-o", "got#<which>"]).ok();
    assert!(dir.join("got1").exists() && dir.join("got2").exists());

    let ran = curl(&["-s", "-S", "http://h/{<a>1}{<a>2}"]);
    let said = "curl: (3) Duplicate glob name in position 19:\nhttp://h/{<a>1}{<a>2}\n                  ^\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (3, said));
    let ran = curl(&["-s", "http://h/{<a>1}", "-o", "x/#<b>"]);
    let said = "curl: (43) no glob exists with this name in position 6:\nx/#<b>\n     ^\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (43, said));
    // haul itself says the same on one line.
    let ran = run(program(HAUL).args(["http://h/[1-3:5]"]));
    assert!(ran.failed(3).contains("bad range in position 17"), "{}", ran.stderr);
}

#[test]
fn each_url_of_a_list_has_its_own_output_and_upload() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let dir = dir.path();
    fs::write(dir.join("up"), "sent").unwrap();
    list(dir, "urls", ["# none".into(), peer.url("/[1]"), String::new(), peer.url("/2")]);
    curl_in(dir, &["-s", "-T", "up", "--url", "@urls", "-o", "first"]).ok();
    assert_eq!(names(dir), ["2", "first", "up", "urls"]);
    assert!(received(&peer, 0).starts_with("PUT /[1] HTTP/1.1\r\n"), "{}", received(&peer, 0));
    assert!(received(&peer, 1).starts_with("GET /2 "));
    // To curl an argument is the value of a --url.
    fs::remove_file(dir.join("2")).unwrap();
    curl_in(dir, &["-s", "@urls", "-o", "first"]).ok();
    assert!(dir.join("2").exists());
    assert_eq!(curl_in(dir, &["-s", "@none"]).code, 26);
}

#[test]
fn the_meter_stands_over_each_transfer_that_finds_a_server() {
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
    let peer = RawPeer::start(vec![vec![Step::ReadHead, Step::send(rest)]]);
    let ran = curl_in(dir.path(), &["-C", "-", "-o", "a", &peer.url("/")]);
    let said = format!("** Resuming transfer from byte position 5\n{titles}\r");
    assert!(ran.stderr.starts_with(&said), "{}", ran.stderr);
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"hello67");

    // There is nothing behind what is there.
    let peer = RawPeer::always(answer("416 Range Not Satisfiable\r\nContent-Range: bytes */7", ""));
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
fn what_is_wrong_in_a_config_file_is_2_unless_a_file_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let with = |line: &str| {
        list(dir.path(), "c", [line]);
        curl_in(dir.path(), &["-K", "c", "http://127.0.0.1:1/"])
    };
    let hint = "curl: try 'curl --help' or 'curl --manual' for more information\n";
    for (line, code, said) in [
        (
            "nonsense",
            2,
            "curl: c:1 config file option 'nonsense' is unknown\ncurl: option -K: found an unknown config option\n",
        ),
        ("variable %HAUL_HAS_NONE", 2, "option -K: is badly used here\n"),
        (
            "--config c",
            2,
            "Max config file recursion level reached (5)\ncurl: c:1 config file option '--config' is badly used here\ncurl: option -K: is badly used here\n",
        ),
        ("data @none", 26, "cannot read"),
    ] {
        let ran = with(line);
        assert_eq!(ran.code, code, "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(said) && ran.stderr.ends_with(hint), "{line}: {}", ran.stderr);
    }
    let ran = with("max-time = '1'");
    let odd = "Warning: c:1 Option 'max-time' uses argument with leading single quote. It is probably a mistake. \
               Consider double quotes.";
    assert_eq!(ran.code, 2);
    list(dir.path(), "c", ["user-agent = 'x'"]);
    // A -s behind it comes too late.
    let ran = curl_in(dir.path(), &["-K", "c", "-s", "http://127.0.0.1:1/"]);
    assert_eq!(
        (ran.code, ran.stderr.lines().collect::<Vec<_>>()),
        (7, vec![odd.replace("max-time", "user-agent").as_str()])
    );
    assert_eq!(curl_in(dir.path(), &["-s", "-K", "c", "http://127.0.0.1:1/"]).stderr, "");
}

#[test]
fn files_that_are_not_there_are_2() {
    for option in ["cacert", "crlfile", "netrc-file", "proxy-cacert", "proxy-crlfile"] {
        let ran = curl(&[&format!("--{option}"), "/none", "http://127.0.0.1:1/"]);
        let said = format!("curl: The file '/none' provided to --{option} does not exist\n");
        assert!(ran.code == 2 && ran.stderr.starts_with(&said), "{}", ran.stderr);
    }
}

#[test]
fn the_last_of_options_that_exclude_each_other_counts() {
    let missing = RawPeer::always(answer("404 Not Found", "gone"));
    let url = missing.url("/");
    let quiet = ["--no-progress-meter", &url];
    let ran = curl(&[&["--fail-with-body", "--fail"][..], &quiet].concat());
    let error = "curl: (22) The requested URL returned error: 404\n";
    let warning = "Warning: --fail deselects --fail-with-body here\n";
    assert_eq!((ran.stdout.as_slice(), ran.stderr), (&b""[..], warning.to_owned() + error));
    let ran = curl(&[&["--fail", "--fail-with-body"][..], &quiet].concat());
    let warning = "Warning: --fail-with-body deselects --fail here\n";
    assert_eq!((ran.stdout.as_slice(), ran.stderr), (&b"gone"[..], warning.to_owned() + error));

    let there = page("x");
    let url = there.url("/");
    let ran = curl(&["-L", "--follow", "--no-progress-meter", &url]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "Warning: --follow overrides --location\n"));
    let ran = curl(&["--follow", "-L", "--no-progress-meter", &url]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "Warning: --location overrides --follow\n"));
}

#[test]
fn follow_takes_content_under_any_method_for_a_post() {
    let script =
        |status: &str| RawPeer::start(vec![answer(&format!("{status}\r\nLocation: /to"), ""), answer("200 OK", "")]);
    for (status, method) in [("302 Found", "GET"), ("303 See Other", "GET"), ("307 Temporary Redirect", "IGLOO")] {
        let peer = script(status);
        curl(&["-s", "--follow", "-X", "IGLOO", "-d", "moo", &peer.url("/")]).ok();
        assert!(received(&peer, 1).starts_with(&format!("{method} /to ")), "{status}: {}", received(&peer, 1));
    }
    // Without content none is one, whatever it is called.
    for (status, method) in [("302 Found", "POST"), ("303 See Other", "GET")] {
        let peer = script(status);
        curl(&["-s", "--follow", "-X", "POST", &peer.url("/")]).ok();
        assert!(received(&peer, 1).starts_with(&format!("{method} /to ")), "{status}: {}", received(&peer, 1));
    }
}

#[test]
fn what_stands_still_before_the_request_is_a_connection() {
    let silent = RawPeer::always(vec![Step::ReadToEnd]);
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
fn an_empty_user_with_an_empty_password_is_nobody() {
    let home = tempfile::tempdir().unwrap();
    let netrc = list(home.path(), "netrc", ["machine 127.0.0.1 login me password pw"]);
    let netrc = netrc.to_str().unwrap();
    let sent = |args: &[&str], url: &dyn Fn(&RawPeer) -> String| {
        let peer = page("x");
        curl(&[&["-s"], args, &[&url(&peer)]].concat()).ok();
        let said = received(&peer, 0);
        let field = said.lines().find_map(|line| line.split_once("uthorization: "));
        field.map_or(String::new(), |(_, value)| value.to_owned())
    };
    let plain = |peer: &RawPeer| peer.url("/");
    assert_eq!(sent(&["-u", ":"], &plain), "");
    assert_eq!(sent(&["-u", ":x"], &plain), "Basic Ong=");
    assert_eq!(sent(&["-u", ":", "--netrc-file", netrc], &plain), "Basic bWU6cHc=");
    assert_eq!(sent(&["-u", ":"], &|peer| peer.url("/").replacen("://", "://a:b@", 1)), "Basic YTpi");
    // With a user there need be no file.
    let peer = page("x");
    let at_home =
        |args: &[&str]| run(program(HAUL).args(["curl", "-q", "-s", "-n"]).args(args).env("HOME", home.path()));
    assert_eq!(at_home(&[&peer.url("/")]).code, 26);
    at_home(&["-u", "a:b", &peer.url("/")]).ok();
    assert!(received(&peer, 0).contains("\r\nAuthorization: Basic YTpi\r\n"));
    let through = page("x");
    let proxy = through.url("");
    curl(&["-s", "-U", ":", "-x", &proxy, "http://h.test/"]).ok();
    curl(&["-s", "-x", &proxy.replacen("://", "://:@", 1), "http://h.test/"]).ok();
    assert!((0..2).all(|connection| !received(&through, connection).contains("Authorization")));
}

#[test]
fn notes_are_for_those_who_watch() {
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
fn a_list_of_protocols_has_no_unknown_ones() {
    let ran = curl(&["--proto", "+-http", "http://127.0.0.1:1/"]);
    let said = "curl: unrecognized protocol '-http'\ncurl: option --proto: is badly used here\n";
    assert!(ran.code == 2 && ran.stderr.starts_with(said), "{}", ran.stderr);
    assert_eq!(curl(&["-s", "--proto", "-all", "http://127.0.0.1:1/"]).code, 2);
}

#[test]
fn a_password_of_netrc_without_a_login_is_anybodys() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    list(dir.path(), "netrc", ["machine 127.0.0.1 login other password 1", "machine 127.0.0.1 password 2"]);
    curl_in(dir.path(), &["-s", "--netrc-file", "netrc", &peer.url("/").replace("//", "//user@")]).ok();
    // user:2
    assert!(received(&peer, 0).contains("Authorization: Basic dXNlcjoy\r\n"), "{}", received(&peer, 0));
}

#[test]
fn a_redirect_names_the_file_where_nothing_else_does() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let to = |place: &str, last: Vec<Step>| {
        RawPeer::start(vec![answer(&format!("302 Found\r\nLocation: {place}"), ""), last])
    };
    for (place, last, name) in [
        ("/d/two?x#y", answer("200 OK", "x"), "two"),
        ("/d/", answer("200 OK", "x"), "one"),
        ("/d/three", answer("200 OK\r\nContent-Disposition: attachment; filename=own", "x"), "own"),
        ("/d/.four", answer("200 OK", "x"), "_four"),
        // An error's page is not what has the name.
        ("/d/five", answer("404 Not Found\r\nContent-Disposition: attachment; filename=gone", "x"), "five"),
    ] {
        let peer = to(place, last);
        curl_in(dir, &["-s", "-L", "-O", "-J", &peer.url("/one")]).ok();
        assert_eq!(names(dir), [name], "{place}");
        fs::remove_file(dir.join(name)).unwrap();
    }
    fs::write(dir.join("two"), "mine").unwrap();
    let peer = to("/two", answer("200 OK", "x"));
    assert_eq!(curl_in(dir, &["-s", "-L", "-O", "-J", &peer.url("/one")]).code, 23);
    assert_eq!(fs::read_to_string(dir.join("two")).unwrap(), "mine");
}

#[test]
fn files_get_dates_of_before_1970() {
    let (dir, date) = (tempfile::tempdir().unwrap(), "Wed, 09 Oct 1940 16:45:49 +0100");
    let peer = RawPeer::always(answer(&format!("200 OK\r\nLast-Modified: {date}"), "x"));
    curl_in(dir.path(), &["-s", "-R", "-o", "old", &peer.url("/")]).ok();
    let modified = fs::metadata(dir.path().join("old")).unwrap().modified().unwrap();
    let before = std::time::UNIX_EPOCH.duration_since(modified).unwrap();
    assert_eq!(before.as_secs(), 922_349_651);
}

#[test]
fn all_errors_are_those_that_would_be_told() {
    let dir = tempfile::tempdir().unwrap();
    let retrying = ["--retry", "2", "--retry-all-errors", "--retry-delay", "0.001", "--no-progress-meter"];
    let with = |args: &[&str]| curl_in(dir.path(), &[&retrying, args].concat());
    // A 404 without -f is none.
    let missing = RawPeer::always(answer("404 Not Found", "gone"));
    assert_eq!((with(&[&missing.url("/")]).ok(), missing.connections()), (b"gone".to_vec(), 1));
    let ran = with(&["-f", &missing.url("/")]);
    assert_eq!((ran.code, missing.connections()), (22, 4));
    assert!(
        ran.stderr.contains("\nWarning: Problem (retrying all errors). Retrying in 0.001 seconds. 2 retries left.\n")
    );
    // What cannot be written is one, and so is an answer that is no rest of what is there.
    fs::write(dir.path().join("file"), "").unwrap();
    let there = page("x");
    let ran = with(&["--no-clobber", "--output-dir", "file", "-OJ", &there.url("/x")]);
    assert_eq!((ran.code, there.connections()), (23, 3), "{}", ran.stderr);
    fs::write(dir.path().join("part"), "abc").unwrap();
    let part = answer("206 Partial Content\r\nContent-Range: bytes 3-5/6", "def");
    let peer = RawPeer::start(vec![answer("404 Not Found", "none"), answer("200 OK", "other"), part]);
    assert_eq!(with(&["-C", "-", "-o", "part", &peer.url("/")]).code, 0);
    assert_eq!(fs::read_to_string(dir.path().join("part")).unwrap(), "abcdef");
    assert!((0..3).all(|at| received(&peer, at).contains("Range: bytes=3-\r\n")));
}

#[test]
fn the_client_that_the_proxy_protocol_tells_stands_at_both_ends() {
    for (client, family) in [("192.0.2.1", "TCP4"), ("2001:db8::1", "TCP6")] {
        let peer = page("x");
        curl(&["-s", "--haproxy-clientip", client, &peer.url("/")]).ok();
        let line = format!("PROXY {family} {client} {client} ");
        assert!(received(&peer, 0).starts_with(&line), "{}", received(&peer, 0));
    }
}

#[test]
fn parts_of_what_is_no_form_are_attachments() {
    let peer = RawPeer::always(answer("200 OK", ""));
    curl(&["-s", "-F", "n=v", "-H", "Content-Type: multipart/mixed", &peer.url("/")]).ok();
    curl(&["-s", "-F", "n=v", "-H", "Content-Type: Multipart/Form-Data; charset=x", &peer.url("/")]).ok();
    let has =
        |connection, kind: &str| peer.saw(connection, format!("Content-Disposition: {kind}; name=\"n\"").as_bytes());
    assert!(has(0, "attachment") && has(1, "form-data"));
}

#[test]
fn a_path_is_a_url_where_files_are_the_default() {
    let dir = tempfile::tempdir().unwrap();
    let file = list(dir.path(), "f", ["x"]);
    assert_eq!(curl(&["-s", "--proto-default", "file", file.to_str().unwrap()]).ok(), b"x\n");
    assert_eq!(run(program(HAUL).args(["--proto-default", "file", "x"])).code, 1);
}

#[test]
fn names_of_onion_are_not_asked_for() {
    let ran = curl(&["-sS", "http://red.onion/"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (6, "curl: (6) Not resolving .onion address (RFC 7686)\n"));
}

#[test]
fn help_is_found_in_any_case_and_lacking_help_is_told_on_stderr() {
    assert!(curl(&["--help", "fIlE"]).text().starts_with("file: "));
    let ran = curl(&["--help", "--none-of-its"]);
    let said = "Incorrect option name to show help for, see curl -h\n";
    assert_eq!((ran.code, ran.stderr.as_str(), ran.stdout.len()), (0, said, 0));
    let ran = curl(&["-s", "--unix-socket", "-q", "hej://x/"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    let ran = curl(&["--no-progress-meter", "--unix-socket", "-q", "hej://x/"]);
    assert!(ran.stderr.starts_with("Warning: The filename argument '-q' looks like a flag.\n"), "{}", ran.stderr);
}

#[test]
fn times_may_say_that_they_are_seconds() {
    let peer = page("x");
    assert_eq!(curl(&["-s", "-m", "5s", &peer.url("/")]).ok(), b"x");
    assert_eq!(run(program(HAUL).args(["-m", "5m", &peer.url("/")])).code, 2);
}

#[test]
fn each_failed_try_is_told_of() {
    let with = |args: &[&str]| curl(&[&["--retry", "2", "--retry-delay", "0.001"][..], args].concat()).stderr;
    let busy = RawPeer::always(answer("503 Busy", "no"));
    let (url, line) = (busy.url("/"), "curl: (22) The requested URL returned error: 503\n");
    assert_eq!(with(&["-sSf", &url]), line.repeat(3));
    assert_eq!(with(&["-sS", "--fail-with-body", &url]), line.repeat(3));
    assert_eq!(with(&["-sS", &url]) + &with(&["-sf", &url]), "");
    let said = with(&["-f", "--no-progress-meter", &url]);
    assert!(
        said.starts_with(&format!("{line}Warning: Problem : HTTP error. Retrying in 0.001 seconds. 2 retries left.\n"))
    );
    let refused = with(&["-sS", "--retry-connrefused", "http://127.0.0.1:1/"]);
    assert_eq!(refused.matches("curl: (7) Failed to connect to 127.0.0.1:1 after ").count(), 3, "{refused}");
    let short = common::short_body();
    let line = "curl: (18) end of response with 7 bytes missing\n";
    assert_eq!(with(&["-sS", "--retry-all-errors", "-o", "/dev/null", &short.url("/")]), line.repeat(3));
}

#[test]
fn who_did_not_answer_is_told_as_by_curl() {
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
fn facts_are_curls() {
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
fn cookies_of_several_options_are_one_list() {
    let peer = RawPeer::always(answer("200 OK\r\nSet-Cookie: c=1", ""));
    curl(&["-s", "-b", "a=1", "-b", "b=2", &peer.url("/")]).ok();
    assert!(received(&peer, 0).contains("Cookie: a=1; b=2\r\n"), "{}", received(&peer, 0));
}

#[test]
fn a_file_is_named_as_its_url_was_written() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    for (url, name) in [("/ünï?x#y", "ünï"), ("/a%20b", "a%20b"), ("/dä/", "dä")] {
        curl_in(dir.path(), &["-s", "-O", &peer.url(url)]).ok();
        assert_eq!(names(dir.path()), [name]);
        fs::remove_file(dir.path().join(name)).unwrap();
    }
}

#[test]
fn a_url_that_cannot_be_used_is_a_transfer_to_write_out() {
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
fn nothing_is_waited_for_behind_the_last_transfer_of_a_rate() {
    let peer = page("x");
    // A wait would be longer than the test's patience.
    curl(&["-s", "--rate", "1/h", &peer.url("/")]).ok();
}

#[test]
fn options_whose_value_is_a_variable_that_holds_nothing_have_no_effect() {
    let peer = page("x");
    let url = peer.url("/");
    for option in ["--resolve", "--connect-to", "-z", "--proto", "--proto-redir"] {
        assert_eq!(curl(&["-s", option, "", &url]).ok(), b"x", "{option}");
    }
    for many in ["0", "70000"] {
        curl(&["-s", "-Z", "--parallel-max", many, "--parallel-max-host", many, &url]).ok();
    }
}

#[test]
fn an_empty_url_is_a_wrong_line_and_nothing_is_fetched() {
    let peer = page("x");
    for args in [&[""][..], &["--url", ""], &["", &peer.url("/")]] {
        let ran = curl(&[&["-s", "-S"], args].concat());
        assert_eq!((ran.code, ran.stdout.as_slice()), (2, &b""[..]), "{args:?}");
        assert!(ran.stderr.contains("blank argument where content is expected"), "{}", ran.stderr);
    }
}

#[test]
fn an_upload_that_is_not_there_ends_all() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let dir = dir.path();
    fs::write(dir.join("up"), "1").unwrap();
    let url = peer.url("/");
    let lines: [&[&str]; 3] = [
        &["-s", "-T", "{none,up}", &url],
        &["-s", "-T", "none", &url, "-T", "up", &url],
        &["-s", "-T", "none", &url, "--next", "-s", &url],
    ];
    for line in lines {
        let ran = curl_in(dir, line);
        assert_eq!((ran.code, ran.stdout.as_slice()), (26, &b""[..]), "{line:?}");
    }
    // What stands before it has been sent.
    let ran = curl_in(dir, &["-s", "-T", "{up,none}", &url]);
    assert_eq!((ran.code, ran.stdout.as_slice()), (26, &b"x"[..]));
}

#[test]
fn what_is_sent_has_a_content_range_and_no_range() {
    let send = |args: &[&str]| {
        let peer = page("x");
        curl(&[&["-s"], args, &[&peer.url("/")]].concat()).ok();
        String::from_utf8(peer.received(0)).unwrap().to_ascii_lowercase()
    };
    for (args, part) in [
        (&["-r", "1-2", "-d", "abc"][..], Some("content-range: bytes 1-2/3\r\n")),
        (&["-r", "5", "--json", "{}"], Some("content-range: bytes 5-/2\r\n")),
        (&["-r", "1-2", "-F", "a=b"], None),
        // What a .curlrc says of files has nothing to do with what goes to standard output.
        (&["-C", "-", "-d", "abc"], None),
        (&["-C", "-", "-d", "abc", "-o", "/dev/null"], None),
        (&["-C", "0", "-F", "a=b"], None),
    ] {
        let request = send(args);
        assert!(!request.contains("\r\nrange:"), "{args:?}: {request}");
        assert_eq!(request.contains("content-range:"), part.is_some(), "{args:?}: {request}");
        assert!(part.is_none_or(|part| request.contains(part)), "{args:?}: {request}");
    }
    assert!(send(&["-r", "1-2"]).contains("\r\nrange: bytes=1-2\r\n"));
    assert!(
        send(&["-r", "x"]).contains("\r\nrange: bytes=x\r\n"),
        "a range without a dash is only made whole of a number"
    );
    for args in [["-C", "5", "-d", "a"], ["-C", "5", "-F", "a=b"]] {
        assert_eq!(curl(&[&args[..], &["http://127.0.0.1:1/"]].concat()).code, 2, "{args:?}");
    }
}

#[test]
fn json_is_joined_without_a_separator_in_a_query_too() {
    let peer = page("x");
    curl(&["-s", "-G", "-d", "a", "--json", "b", "-d", "c", &peer.url("/")]).ok();
    assert!(peer.received(0).starts_with(b"GET /?ab&c HTTP/1.1\r\n"));
}

#[test]
fn the_last_version_of_http_that_is_named_counts() {
    for (args, version) in [
        (&["-0", "--http1.1"][..], "HTTP/1.1"),
        (&["-0", "--http2"], "HTTP/1.1"),
        (&["--http1.1", "-0"], "HTTP/1.0"),
        (&["--http2", "-0"], "HTTP/1.0"),
    ] {
        let peer = page("x");
        curl(&[&["-s"], args, &[&peer.url("/")]].concat()).ok();
        assert!(peer.received(0).starts_with(format!("GET / {version}\r\n").as_bytes()), "{args:?}");
    }
}

#[test]
fn a_variable_that_the_environment_lacks_is_read_from_a_file() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), RawPeer::start(vec![answer("200 OK", ""), answer("200 OK", "")]));
    fs::write(dir.path().join("default"), "of the file").unwrap();
    for set in [None, Some("of the environment")] {
        let mut haul = program(HAUL);
        haul.args(["curl", "-q", "-s", "--variable", "%GIVEN@default", "--expand-data", "{{GIVEN}}", &peer.url("/")]);
        run(haul.envs(set.map(|value| ("GIVEN", value))).current_dir(dir.path())).ok();
    }
    assert!(received(&peer, 0).ends_with("\r\n\r\nof the file"), "{}", received(&peer, 0));
    assert!(received(&peer, 1).ends_with("\r\n\r\nof the environment"), "{}", received(&peer, 1));
}

#[test]
fn what_is_thrown_away_goes_to_no_file() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("hello"));
    let told = ["-s", "-w", "[%{filename_effective}] %{size_download}\n", "--out-null"];
    for option in ["--skip-existing", "--no-clobber", "-R"] {
        let ran = curl_in(dir.path(), &[&told[..], &[option, &peer.url("/")]].concat());
        assert_eq!((ran.code, &*ran.stdout), (0, &b"[] 5\n"[..]), "{option}: {}", ran.stderr);
    }
    assert!(names(dir.path()).is_empty(), "{:?}", names(dir.path()));
}

#[test]
fn a_proxy_before_the_proxy_is_a_way_by_itself() {
    // SOCKS 4: version, CONNECT, port, address, no user.
    let peer = RawPeer::start(vec![vec![Step::ReadBytes(9)]; 2]);
    let preproxy = peer.addr().to_string();
    for options in [&[][..], &["-x", ""]] {
        let mut haul = program(HAUL);
        haul.args(["curl", "-q", "-s", "--preproxy", &preproxy]).args(options).arg("http://127.0.0.1:80/");
        assert_eq!(run(haul.env("http_proxy", "http://127.0.0.1:9/")).code, 97, "{options:?}");
    }
    for connection in 0..2 {
        assert_eq!(peer.received(connection), b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00");
    }
}

#[test]
fn fields_that_are_made_for_a_proxy_can_be_left_out() {
    let peer = RawPeer::start(vec![answer("200 OK", ""), answer("403 No", "")]);
    let proxy = peer.url("");
    let fields = ["-x", &proxy, "--proxy-header", "Proxy-Connection:", "--proxy-header", "Host: proxy.test"];
    curl(&[&["-s"], &fields[..], &["http://origin.test/"]].concat()).ok();
    let expected =
        "GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\nUser-Agent: curl/8.22.0\r\nAccept: */*\r\n\r\n";
    assert_eq!(received(&peer, 0), expected);
    curl(&[&["-s", "-p", "--proxy-header", "User-Agent:"], &fields[..], &["http://origin.test/"]].concat());
    assert_eq!(received(&peer, 1), "CONNECT origin.test:80 HTTP/1.1\r\nHost: proxy.test\r\n\r\n");
}

#[test]
fn a_failure_in_parallel_is_not_hidden_by_what_follows() {
    let (gone, there) = (RawPeer::start(vec![answer("404 Gone", "")]), page("x"));
    let ran = curl(&["-s", "-Z", "-f", &gone.url("/"), "--next", "-s", &there.url("/")]);
    assert_eq!((ran.code, &*ran.stdout), (22, &b"x"[..]));
}

#[test]
fn the_query_that_is_added_is_told_of_once_in_parallel_too() {
    let peer = page("");
    let url = peer.url("/a?b");
    let ran = curl(&["-s", "-Z", "-G", "-d", "c=d", "-w", "%{url}", &url]);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), format!("{url}&c=d"));
}

#[test]
fn a_protocol_that_is_not_allowed_is_told_of_in_its_words() {
    let ran = curl(&["-s", "-S", "--proto", "=https", "http://h/"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "curl: (1) Protocol \"http\" is disabled\n"));
}

#[test]
fn a_head_alone_fails_with_its_body_too() {
    let peer = RawPeer::start(vec![answer("404 Gone", "x")]);
    let ran = curl(&["-s", "-I", "-X", "GET", "--fail-with-body", &peer.url("/")]);
    assert!(ran.code == 22 && ran.stdout.starts_with(b"HTTP/1.1 404 Gone\r\n"), "{}", ran.code);
}
