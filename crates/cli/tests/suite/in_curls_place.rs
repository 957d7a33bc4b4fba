//! Where a user of curl, or a script written for it, counts on what curl 8.22 does with an option: each case was found beside it.

use crate::common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use common::{HAUL, curl, curl_in, names, page, program, received, run};
use testkit::raw::{RawPeer, Step};

fn answer(head: &str) -> Vec<Step> {
    vec![Step::ReadHead, Step::send(format!("HTTP/1.1 {head}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"))]
}

#[test]
fn what_w_tells_may_get_lost_in_curls_place_and_content_may_not() {
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
fn remote_name_all_is_about_the_urls_that_follow_it() {
    let peer = page("x");
    let (one, two) = (peer.url("/one"), peer.url("/two"));
    let written = |args: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let printed = curl_in(dir.path(), args).text();
        (names(dir.path()).join(" "), printed)
    };
    for (args, files, printed) in [
        (&["-s", &one, "--remote-name-all", &two][..], "two", "x"),
        (&["-s", "--remote-name-all", &one, "--no-remote-name-all", &two], "one", "x"),
        (&["-s", "--remote-name-all", &one, &two], "one two", ""),
        // The place that an -o opens is a URL's, too.
        (&["-s", "-o", "o", "-o", "-", "--remote-name-all", &one, &two], "o", "x"),
        (&["-s", "--remote-name-all", "--no-remote-name", &one, &two], "two", "x"),
        // There is nothing to undo.
        (&["-s", "--no-remote-name", "-o", "o", &one], "o", ""),
    ] {
        assert_eq!(written(args), (files.to_owned(), printed.to_owned()), "{args:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    run(program(HAUL).args(["-s", &one, "--remote-name-all"]).current_dir(dir.path())).ok();
    assert_eq!(names(dir.path()), ["one"], "in haul's own name all of them");
}

/// The signatures are those of curl's own test cases, made at the beginning of 1970, which is a field here.
#[test]
fn requests_are_signed_with_a_key() {
    let (peer, dir) = (page("x"), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("file"), "content").unwrap();
    let to = format!("::127.0.0.1:{}", peer.addr().port());
    // How it ended, and what was sent if anything was.
    let signed = |args: &[&str]| {
        let before = peer.connections();
        let shared = ["-s", "--connect-to", &to, "-H", "X-Amz-Date: 19700101T000000Z", "--aws-sigv4"];
        let code = curl_in(dir.path(), &[&shared[..], args].concat()).code;
        (code, if peer.connections() > before { received(&peer, before) } else { String::new() })
    };
    let me = ["-u", "user:secret"];
    let (es, s3) = ("aws:amz:us-east-2:es", "aws:amz:us-east-2:s3");
    for (path, signature) in [
        (
            "/439/?name=me&noval&aim=b%aad&&&weirdo=*.//-",
            "9dd8592929306832a6673d10063491391e486e5f50de4647ea7c2c797277e0a6",
        ),
        ("/472/a=%E3%81%82", "b8783c8387a5249b084642126fe1f8e07e12a2847820fd5b6cd64b2047149da4"),
    ] {
        let (code, sent) = signed(&[es, me[0], me[1], &format!("http://fake.fake.fake:8000{path}")]);
        let line = format!(
            "\r\nAuthorization: AWS4-HMAC-SHA256 Credential=user/19700101/us-east-2/es/aws4_request, \
             SignedHeaders=host;x-amz-date, Signature={signature}\r\n"
        );
        assert!(code == 0 && sent.contains(&line), "{path}: {code} {sent}");
    }

    let url = "http://bucket.example/key";
    let (code, sent) = signed(&[s3, me[0], me[1], "-T", "file", url]);
    assert!(code == 0 && sent.contains("\r\nx-amz-content-sha256: UNSIGNED-PAYLOAD\r\n"), "{sent}");
    // Where nobody is named, or a field says who, nothing is signed.
    let odd = "http://bucket.example/dt=1/a+b?x=a+b";
    for more in [&[][..], &["-u", "user:secret", "-H", "Authorization: mine"]] {
        let (code, sent) = signed(&[&[s3, odd], more].concat());
        assert!(code == 0 && !sent.contains("AWS4") && sent.starts_with("GET /dt=1/a+b?x=a+b "), "{more:?} {sent}");
    }
    // A store is asked in the spelling that is signed, by way of a proxy, too.
    for (more, expected) in [
        (&[s3][..], "GET /dt%3D1/a%2Bb?x=a+b HTTP"),
        (&[es], "GET /dt=1/a+b?x=a+b HTTP"),
        (&[s3, "--request-target", "/mine"], "GET /mine HTTP"),
    ] {
        let (code, sent) = signed(&[more, &me, &[odd]].concat());
        assert!(code == 0 && sent.starts_with(expected) && sent.contains("AWS4"), "{more:?} {sent}");
    }
    let before = peer.connections();
    curl(&["-s", "-x", &peer.url(""), "--aws-sigv4", s3, me[0], me[1], odd]).ok();
    let sent = received(&peer, before);
    assert!(sent.starts_with("GET http://bucket.example/dt%3D1/a%2Bb?x=a+b HTTP") && sent.contains("AWS4"), "{sent}");
    assert_eq!(signed(&[s3, me[0], me[1], "--aws-sigv4", ":amz", url]).0, 2);
    // Last: the connection is there by then, and would be counted with what follows.
    let upload = signed(&[es, me[0], me[1], "-T", "file", url]);
    assert_eq!(upload, (94, String::new()), "nothing is sent with a signature that is wrong");
}

/// A signature is for the origin that it was asked for, and each request has its own.
#[test]
fn a_signature_does_not_go_along_a_redirect_to_others() {
    let there = page("x");
    let to = |url: &str| answer(&format!("302 Found\r\nLocation: {url}"));
    let here = RawPeer::start(vec![to("/again"), to(&there.url("/other"))]);
    let args = ["-sL", "--aws-sigv4", "aws:amz:eu:s3", "-u", "user:secret", &here.url("/first")];
    curl(&args).ok();
    let [first, second] = [0, 1].map(|connection| {
        let head = received(&here, connection);
        head.lines().find_map(|line| line.strip_prefix("Authorization: AWS4-").map(str::to_owned)).expect("a signature")
    });
    assert_ne!(first, second, "of another path");
    assert!(!received(&there, 0).contains("AWS4"));
}

#[test]
fn content_in_chunks_that_nobody_gave_is_their_end() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    fs::write(dir.path().join("up"), "sent").unwrap();
    let args = ["-s", "-H", "Transfer-Encoding: chunked", "-T", "up", &peer.url("/1"), &peer.url("/2")];
    curl_in(dir.path(), &args).ok();
    assert!(received(&peer, 0).ends_with("\r\n\r\n4\r\nsent\r\n0\r\n\r\n"), "{}", received(&peer, 0));
    let sent = received(&peer, 1);
    assert!(sent.starts_with("GET /2 ") && sent.ends_with("\r\n\r\n0\r\n\r\n"), "{sent}");
    for method in ["POST", "PUT", "DELETE"] {
        let peer = page("x");
        curl(&["-s", "-X", method, "-H", "Transfer-Encoding: chunked", &peer.url("/")]).ok();
        let sent = received(&peer, 0);
        assert!(sent.starts_with(&format!("{method} / ")) && sent.ends_with("\r\n\r\n0\r\n\r\n"), "{sent}");
        assert!(sent.contains("\r\nTransfer-Encoding: chunked\r\n") && !sent.contains("Content-Type"), "{sent}");
    }
}

#[test]
fn the_jar_is_printed_behind_each_transfer() {
    let peer = RawPeer::start(vec![answer("200 OK\r\nSet-Cookie: a=1"), answer("200 OK\r\nSet-Cookie: b=2")]);
    let (one, two) = (peer.url("/1"), peer.url("/2"));
    let printed = curl(&["-s", "-c", "-", "-w", "W\n", &one, &two]).text();
    let (head, line) =
        ("# Netscape HTTP Cookie File\n", |cookie: &str| format!("127.0.0.1\tFALSE\t/\tFALSE\t0\t{cookie}\n"));
    let jars: Vec<&str> = printed.split(head).collect();
    assert_eq!((jars.len(), jars[0]), (3, "okW\n"), "{printed}");
    assert!(jars[1].ends_with(&format!("{}okW\n", line("a\t1"))), "{printed}");
    assert!(jars[2].contains(&line("a\t1")) && jars[2].contains(&line("b\t2")), "{printed}");

    let peer = RawPeer::start(vec![answer("200 OK\r\nSet-Cookie: a=1"), answer("200 OK")]);
    let printed = curl(&["-s", "-c", "-", &peer.url("/1"), "--next", "-s", &peer.url("/2")]).text();
    assert!(
        printed.starts_with(&format!("ok{head}")) && printed.ends_with(&format!("{}ok", line("a\t1"))),
        "{printed}"
    );
    assert!(!received(&peer, 1).contains("Cookie"));

    let ran = curl(&["-s", "-c", "-", "http://h:99999/"]);
    assert_eq!((ran.code, ran.stdout), (3, Vec::new()), "there was no transfer");
}

#[test]
fn what_one_operation_learned_the_next_one_sends() {
    let next = [["-c", "there", "-b", "jar"], ["-c", "other", "-c", "more"]];
    for (second, persona) in [(next[0], &["curl", "-q"][..]), (next[1], &["curl", "-q"]), (next[0], &[])] {
        let dir = tempfile::tempdir().unwrap();
        let peer = RawPeer::start(vec![answer("200 OK\r\nSet-Cookie: a=1"), answer("200 OK\r\nSet-Cookie: b=2")]);
        let (one, two) = (peer.url("/1"), peer.url("/2"));
        let first = ["-s", "-c", "jar", &one, "--next", "-s"];
        let args = [persona, &first[..], &second[..], &[&two]].concat();
        run(program(HAUL).args(&args).current_dir(dir.path())).ok();
        assert!(received(&peer, 1).contains("\r\nCookie: a=1\r\n"), "{args:?}: {}", received(&peer, 1));
        let jar = fs::read_to_string(dir.path().join("jar")).unwrap();
        assert!(jar.contains("a\t1") && !jar.contains("b\t2"), "as it was behind its operation: {jar}");
    }
}

#[test]
fn a_token_beside_other_schemes_waits_to_be_asked_for() {
    let asks = |scheme: &str| {
        let challenged = answer(&format!("401 Who\r\nWWW-Authenticate: {scheme} realm=\"r\""));
        RawPeer::start(vec![challenged, answer("200 OK")])
    };
    for others in [&["--anyauth"][..], &["--basic"], &["--digest"], &["--basic", "-u", "me:secret"]] {
        let peer = asks("Bearer");
        let url = peer.url("/");
        let args = [&["-s", "-o", "/dev/null", "-w", "%{http_code}", "--oauth2-bearer", "t"], others, &[&url]].concat();
        assert_eq!(curl(&args).text(), "200", "{others:?}");
        assert!(!received(&peer, 0).contains("Authorization"), "{}", received(&peer, 0));
        assert!(received(&peer, 1).contains("\r\nAuthorization: Bearer t\r\n"), "{}", received(&peer, 1));
    }
    let peer = asks("Basic");
    curl(&["-s", "--oauth2-bearer", "t", "--anyauth", "-u", "me:x", &peer.url("/")]).ok();
    assert!(received(&peer, 1).contains("\r\nAuthorization: Basic bWU6eA==\r\n"), "{}", received(&peer, 1));

    let peer = page("x");
    curl(&["-s", "--oauth2-bearer", "t", "-u", "me:x", &peer.url("/")]).ok();
    assert!(received(&peer, 0).contains("\r\nAuthorization: Bearer t\r\n"), "alone it is sent at once");
}

/// To curl it was a transfer, and a script that reads the code from `-w` finds one.
#[test]
fn what_ended_before_it_began_is_written_out() {
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

/// curl opens a form's files when it begins to send them: `-s` says nothing of one that is not there, and what is behind `--next` goes on.
#[test]
fn a_file_of_a_form_that_is_not_there_fails_that_transfer_alone() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let url = peer.url("/");
    for (form, said) in [("a=@none", "none: No such file"), ("a=<none", "none: No such file"), ("a=@.", ".: ")] {
        let ran = curl_in(dir.path(), &["-sS", "-F", form, &url, "--next", "-s", &url]);
        assert_eq!((ran.code, ran.stdout.as_slice()), (0, &b"x"[..]), "{form}");
        assert!(ran.stderr.starts_with(&format!("curl: (26) failed to read {said}")), "{}", ran.stderr);
        let ran = curl_in(dir.path(), &["-s", "-F", form, &url]);
        assert_eq!((ran.code, &*ran.stderr), (26, ""), "{form}");
    }
    assert_eq!(peer.connections(), 3, "nothing was sent of the forms");
}

#[test]
fn the_line_of_a_prompt_ends_without_a_terminal_too() {
    let mut command = program("setsid");
    let ran = run(command.args(["--wait", HAUL, "curl", "-q", "-s", "-u", "me", "http://127.0.0.1:1/"]));
    assert_eq!((ran.code, &*ran.stderr), (7, "Enter host password for user 'me':\n"));
}

#[test]
fn a_host_is_told_as_it_was_asked_for() {
    let peer = page("x");
    let there = format!("::127.0.0.1:{}", peer.addr().port());
    let told = "%{url_effective} %{url.host} %{urle.host}";
    for host in ["BÜcher.Example", "Host.Example"] {
        let url = format!("http://{host}/");
        let printed = curl(&["-s", "-o", "/dev/null", "-w", told, "--connect-to", &there, &url]).text();
        assert_eq!(printed, format!("{url} {host} {host}"));
    }
    assert!(received(&peer, 0).contains("\r\nHost: xn--bcher-kva.example\r\n"), "{}", received(&peer, 0));

    let peer = RawPeer::start(vec![answer("302 Found\r\nLocation: http://Other.example/"), answer("200 OK")]);
    let there = format!("::127.0.0.1:{}", peer.addr().port());
    let args = ["-s", "-L", "-o", "/dev/null", "-w", told, "--connect-to", &there, "http://Host.Example/"];
    assert_eq!(curl(&args).text(), "http://other.example/ Host.Example other.example");
}

#[test]
fn a_user_is_told_as_it_was_written() {
    let peer = page("x");
    let url = peer.url("/").replacen("://", "://us%40er:p%3a@", 1);
    assert_eq!(curl(&["-s", "-o", "/dev/null", "-w", "%{url.user}", &url]).text(), "us%40er");
}

#[test]
fn options_that_need_content_are_refused_without() {
    for option in ["--cookie-jar", "--interface", "--pass"] {
        let ran = curl(&[option, "", "http://127.0.0.1:1/"]);
        let said = format!("curl: option {option}: blank argument where content is expected\n");
        assert!(ran.code == 2 && ran.stderr.starts_with(&said), "{ran:?}");
    }
}

#[test]
fn a_url_that_is_none_ends_all_where_more_is_made_of_it() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    fs::write(dir.path().join("up"), "sent").unwrap();
    let (bad, good) = ("http://h:99999/x", peer.url("/"));
    for args in [
        &["-O", bad][..],
        &["-T", "up", bad],
        &["-G", "-d", "q", bad],
        &["-O", bad, "--next"],
        &["http://h/[1-", "--next"],
    ] {
        let ran = curl_in(dir.path(), &[&["-s"], args, &["-s", &good]].concat());
        assert_eq!((ran.code, ran.stdout), (3, Vec::new()), "{args:?}");
    }
    assert_eq!(peer.connections(), 0);
    assert_eq!(curl(&["-s", bad, &good]).text(), "x", "alone it is one failure among others");
}

#[test]
fn a_redirect_that_was_followed_is_no_more_to_be_followed() {
    let location = "302 Found\r\nLocation: http://127.0.0.1:1/";
    let told = |options: &[&str]| {
        let peer = RawPeer::start(vec![answer(location)]);
        let ran = curl(&[&["-s", "-o", "/dev/null", "-w", "%{redirect_url}"], options, &[&peer.url("/")]].concat());
        (ran.code, String::from_utf8(ran.stdout).unwrap())
    };
    let there = "http://127.0.0.1:1/".to_owned();
    assert_eq!(told(&[]), (0, there.clone()));
    assert_eq!(told(&["-L", "--max-redirs", "0"]), (47, there));
    assert_eq!(told(&["-L"]), (7, String::new()));
}

#[test]
fn names_of_outputs_are_below_output_dir_slash_or_not() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    fs::create_dir(dir.path().join("into")).unwrap();
    let elsewhere = dir.path().join("elsewhere");
    let (name, url) = (elsewhere.to_str().unwrap(), peer.url("/"));
    assert_eq!(curl_in(dir.path(), &["-s", "--output-dir", "into", "-o", name, &url]).code, 23);
    let told = ["-s", "--output-dir", "into", "-o", "/file", "-w", "%{filename_effective}", &url];
    assert_eq!(curl_in(dir.path(), &told).text(), "into//file");
    assert_eq!(
        (names(dir.path()).join(" "), names(&dir.path().join("into")).join(" ")),
        ("into".into(), "file".into())
    );
}

#[test]
fn uploads_are_named_where_the_path_names_nothing_and_nothing_is_asked() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page(""));
    fs::write(dir.path().join("up"), "sent").unwrap();
    for (connection, (path, line)) in
        [("?q", "/?q"), ("/a/?q", "/a/?q"), ("/a/.", "/a/up"), ("/a/..#f", "/up"), ("/a", "/a")].into_iter().enumerate()
    {
        let url = format!("{}{path}", peer.url("/").trim_end_matches('/'));
        curl_in(dir.path(), &["-s", "-T", "up", &url]).ok();
        let sent = received(&peer, connection);
        assert!(sent.starts_with(&format!("PUT {line} HTTP/1.1\r\n")), "{path}: {sent}");
    }
}

#[test]
fn what_has_no_length_is_not_sent_in_part() {
    let dir = tempfile::tempdir().unwrap();
    let peer = page("");
    let url = peer.url("/");
    let piped = |args: &[&str]| {
        let mut command = program("sh");
        command.args(["-c", "printf abcdef | exec \"$@\"", "sh", HAUL, "curl", "-q", "-s", "-T", "-"]).args(args);
        run(command.arg(&url).current_dir(dir.path()))
    };
    let ran = piped(&["-C", "3"]);
    assert_eq!((ran.code, peer.connections()), (2, 0), "all of it was sent as if it were the rest: {ran:?}");
    piped(&["-r", "2-7"]).ok();
    assert!(received(&peer, 0).contains("\r\nContent-Range: bytes 2-7/*\r\n"), "{}", received(&peer, 0));
}

#[test]
fn a_further_try_writes_the_file_of_the_first() {
    for option in ["--skip-existing", "--no-clobber"] {
        let dir = tempfile::tempdir().unwrap();
        let peer = RawPeer::start(vec![answer("503 Later"), answer("200 OK\r\nX: second")]);
        let args = ["-s", option, "--retry", "1", "--retry-delay", "0.01", "-i", "-o", "file", &peer.url("/")];
        curl_in(dir.path(), &args).ok();
        let written = fs::read_to_string(dir.path().join("file")).unwrap();
        assert!(written.contains("X: second"), "{option}: {written}");
    }
    // What it is called by is not there yet, or is another's.
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("named"), "old").unwrap();
    let named = answer("200 OK\r\nContent-Disposition: attachment; filename=named");
    let peer = RawPeer::start(vec![answer("503 Later"), named]);
    let args = ["-s", "-OJ", "--retry", "1", "--retry-delay", "0.01", &peer.url("/page")];
    assert_eq!(curl_in(dir.path(), &args).code, 23);
    assert_eq!(fs::read_to_string(dir.path().join("named")).unwrap(), "old");
}

#[test]
fn the_head_tells_which_coding_is_not_known() {
    let dir = tempfile::tempdir().unwrap();
    let peer = RawPeer::always(answer("200 OK\r\nContent-Encoding: foo"));
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
fn variables_that_are_none_are_passed_over() {
    let peer = page("x");
    let url = peer.url("/");
    for none in ["v", "no-name=x", "=x", "v[a]=x", &format!("{}=x", "v".repeat(128))] {
        let ran = curl(&["--variable", none, "-s", &url]);
        let said = format!("Warning: Bad --variable syntax, skipping: {none}\n");
        assert!(ran.code == 0 && ran.stderr.replace("\nWarning: ", "").contains(&said[..30]), "{ran:?}");
        assert_eq!(run(program(HAUL).args(["--variable", none, &url])).code, 2, "under haul's own name");
    }
    assert_eq!(curl(&["-s", "--variable", "v[3-1]=abc", &url]).code, 2);
}

#[test]
fn what_the_environment_says_need_not_be_text() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join(OsStr::from_bytes(b"\xe9"));
    fs::create_dir(&home).unwrap();
    fs::write(home.join(".netrc"), "default login me password pw\n").unwrap();
    fs::write(home.join(".curlrc"), "user-agent = theirs\n").unwrap();
    let peer = RawPeer::always(answer("200 OK"));
    let mut command = program(HAUL);
    command.env("HOME", &home).env("WORD", OsStr::from_bytes(b"\xff")).args(["curl", "-s", "-n"]);
    command.args(["--variable", "%WORD", "--expand-data", "{{WORD}}", &peer.url("/")]);
    run(&mut command).ok();
    let sent = peer.received(0);
    assert!(sent.ends_with(b"\r\n\r\n\xff"), "{sent:?}");
    let sent = String::from_utf8_lossy(&sent).into_owned();
    assert!(sent.contains("User-Agent: theirs\r\n") && sent.contains("Authorization: Basic bWU6cHc=\r\n"), "{sent}");
}

#[test]
fn a_value_of_a_form_may_end_in_a_line_end() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page(""));
    fs::write(dir.path().join("fields"), "X-Long: a\n  b\n").unwrap();
    curl_in(dir.path(), &["-s", "-F", "a= line\r\n", "-F", "b=c\t;headers=@fields", &peer.url("/")]).ok();
    let sent = received(&peer, 0);
    assert!(sent.contains("name=\"a\"\r\n\r\nline\r\n\r\n--"), "{sent}");
    assert!(sent.contains("name=\"b\"\r\nX-Long: a  b\r\n\r\nc\r\n--"), "{sent}");
}

#[test]
fn names_that_are_no_text_are_sent_as_they_are() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let peer = page("");
    let latin = OsStr::from_bytes(b"J\xfcrgen");
    let mut command = program(HAUL);
    command.args(["curl", "-q", "-s", "-A"]).arg(latin).arg("-e").arg(latin).arg(peer.url("/"));
    run(&mut command).ok();
    let sent = peer.received(0);
    for field in [&b"User-Agent: J\xfcrgen\r\n"[..], b"Referer: J\xfcrgen\r\n"] {
        assert!(sent.windows(field.len()).any(|window| window == field), "{}", String::from_utf8_lossy(&sent));
    }
}

#[test]
fn what_has_not_changed_keeps_its_date() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, "mine").unwrap();
    fs::write(dir.path().join("tag"), "\"v\"\n").unwrap();
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    let peer = RawPeer::always(answer("304 Not Modified\r\nLast-Modified: Tue, 05 Mar 2024 10:20:30 GMT"));
    let url = peer.url("/");
    curl_in(dir.path(), &["-s", "-R", "--etag-compare", "tag", "-o", "file", &url]).ok();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written);
    let ran = curl_in(dir.path(), &["-sS", "-R", "--etag-compare", "tag", "-o", "other", &url]);
    assert_eq!((ran.code, ran.stderr), (0, String::new()), "there is no file to stamp");
}

#[test]
fn a_reply_does_not_write_over_what_was_sent() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("reply"));
    fs::write(dir.path().join("up"), "sent").unwrap();
    for (url, name) in [(peer.url("/dir/"), "dir"), (peer.url("/"), "curl_response"), (peer.url("/place"), "place")] {
        curl_in(dir.path(), &["-s", "-T", "up", "-O", &url]).ok();
        assert_eq!(fs::read_to_string(dir.path().join("up")).unwrap(), "sent", "{url}");
        assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), "reply", "{url}");
    }
    run(program(HAUL).args(["-s", "-T", "up", "-O", &peer.url("/dir/")]).current_dir(dir.path())).ok();
    assert_eq!(fs::read_to_string(dir.path().join("up")).unwrap(), "sent", "under haul's own name");
}

#[test]
fn an_upload_that_cannot_be_says_why_before_anything_is_sent() {
    let peer = RawPeer::start(vec![answer("")]);
    let ran = curl(&["-0", "-T", "-", &peer.url("/")]);
    assert_eq!((ran.code, peer.received(0).len()), (25, 0), "{}", ran.stderr);
    assert!(ran.stderr.contains("HTTP/1.0 cannot send a body of unknown length"), "{}", ran.stderr);
    let ran = curl(&["-T", "there-is-none", "http://127.0.0.1:1/a b"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let ran = curl(&["-T", "there-is-none", "http://127.0.0.1:1/ab"]);
    assert_eq!(ran.code, 26, "{}", ran.stderr);
}

#[test]
fn where_nothing_is_there_content_may_be_sent_with_what_goes_on() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let url = peer.url("/page");
    fs::write(dir.path().join("empty"), "").unwrap();
    fs::write(dir.path().join("part"), "old").unwrap();
    for args in [&["-d", "a", "-o", "new"][..], &["-F", "a=b", "-O"], &["--json", "1", "-o", "empty"]] {
        curl_in(dir.path(), &[&["-s", "-C", "-"], args, &[&url]].concat()).ok();
    }
    assert_eq!(["new", "page", "empty"].map(|name| fs::read_to_string(dir.path().join(name)).unwrap()), ["x"; 3]);
    let there = peer.connections();
    let args = ["-s", "-C", "-", "-d", "a", "-o", "part", &url];
    assert_eq!(curl_in(dir.path(), &[&args[..], &["-Z"]].concat()).code, 2);
    assert_eq!(curl_in(dir.path(), &[&args[..], &["-o", "never", &url]].concat()).code, 2, "it ends all");
    assert_eq!((peer.connections(), fs::read_to_string(dir.path().join("part")).unwrap()), (there, "old".into()));
}

#[test]
fn what_w_tells_of_a_url_that_is_none_it_tells_with_z_too() {
    for urls in [&["http://h:99999/"][..], &["http://h:99999/", "http://h:99999/"]] {
        let printed = curl(&[&["-s", "-Z", "-w", "%{http_code}|"], urls].concat());
        assert_eq!((printed.code, printed.stdout), (3, b"000|".repeat(urls.len())));
    }
}

#[test]
fn with_z_no_upload_and_no_file_hides_a_failure() {
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
}

#[test]
fn an_upload_has_the_method_it_was_given_with_follow_too() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("up"), "sent").unwrap();
    for (follow, status, lines) in [
        ("--follow", "302 Found", ["POST /1 ", "POST /2 "]),
        ("--follow", "303 See Other", ["POST /1 ", "GET /2 "]),
        ("-L", "303 See Other", ["POST /1 ", "POST /2 "]),
    ] {
        let peer = RawPeer::start(vec![answer(&format!("{status}\r\nLocation: /2")), answer("200 OK")]);
        curl_in(dir.path(), &["-s", follow, "-X", "POST", "-T", "up", &peer.url("/1")]).ok();
        for (connection, line) in lines.into_iter().enumerate() {
            let sent = received(&peer, connection);
            assert!(sent.starts_with(line), "{follow} {status}: {sent}");
        }
    }
}

#[test]
fn heads_come_behind_the_content_of_the_same_file() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let (one, two) = (peer.url("/1"), peer.url("/2"));
    assert_eq!(curl_in(dir.path(), &["-s", "-D", "file", "-o", "file", &one, &two]).text(), "x");
    let written = fs::read_to_string(dir.path().join("file")).unwrap();
    assert!(written.starts_with("xHTTP/1.1 200 OK\r\n") && !written.contains('\0'), "{written:?}");
}
