//! The curl persona reads options, config files and variables as curl 8.22 does.

use crate::common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use common::{HAUL, curl, curl_in, list, page, program, received, reply_steps, run};
use testkit::h1_peer::{H1Peer, ScriptStep};

#[test]
fn curl_without_arguments_prints_a_help_hint() {
    let hint = "curl: try 'curl --help' or 'curl --manual' for more information\n";
    let home = tempfile::tempdir().unwrap();
    let bare = |args: &[&str]| run(program(HAUL).arg("curl").args(args).env("HOME", home.path()));
    let ran = bare(&[]);
    assert_eq!((ran.code, &*ran.stderr), (2, hint));
    assert_eq!(bare(&["-s"]).stderr, format!("curl: (2) no URL specified\n{hint}"));
    // The URL in .curlrc is fetched.
    let peer = page("x");
    fs::write(home.path().join(".curlrc"), format!("-s\nurl = {}", peer.url("/"))).unwrap();
    assert_eq!(bare(&[]).text(), "x");
}

#[test]
fn help_in_config_file_is_printed_before_transfers() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    fs::write(dir.path().join("c"), format!("-h category\n-V\nsilent\nurl = {}", peer.url("/"))).unwrap();
    let printed = curl_in(dir.path(), &["-K", "c"]).text();
    assert!(
        printed.contains(" verbose ") && printed.ends_with("\nx") && !printed.contains("Release-Date"),
        "{printed}"
    );
    fs::write(dir.path().join("c"), "-h all").unwrap();
    let ran = curl_in(dir.path(), &["-K", "c"]);
    assert!(ran.code == 2 && ran.stdout.starts_with(b"Usage: "), "{}", ran.stderr);
}

#[test]
fn help_topic_ignores_case_and_reports_unknown_names() {
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
fn config_file_errors_exit_2_or_26() {
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
    let unwrapped = ran.stderr.replace("\nWarning: ", "");
    assert_eq!((ran.code, unwrapped.trim_end()), (7, &*odd.replace("max-time", "user-agent")));
    assert_eq!(curl_in(dir.path(), &["-s", "-K", "c", "http://127.0.0.1:1/"]).stderr, "");
}

#[test]
fn missing_ca_or_netrc_file_exits_2() {
    for option in ["cacert", "crlfile", "netrc-file", "proxy-cacert", "proxy-crlfile"] {
        let ran = curl(&[&format!("--{option}"), "/none", "http://127.0.0.1:1/"]);
        let said = format!("curl: The file '/none' provided to --{option} does not exist\n");
        assert!(ran.code == 2 && ran.stderr.starts_with(&said), "{}", ran.stderr);
    }
}

#[test]
fn last_of_exclusive_options_wins_with_a_warning() {
    let missing = H1Peer::always(reply_steps("404 Not Found", "gone"));
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
fn last_http_version_option_wins() {
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
fn unknown_protocol_in_proto_is_refused() {
    let ran = curl(&["--proto", "+-http", "http://127.0.0.1:1/"]);
    let said = "curl: unrecognized protocol '-http'\ncurl: option --proto: is badly used here\n";
    assert!(ran.code == 2 && ran.stderr.starts_with(said), "{}", ran.stderr);
    assert_eq!(curl(&["-s", "--proto", "-all", "http://127.0.0.1:1/"]).code, 2);
}

#[test]
fn empty_option_argument_is_refused() {
    for option in ["--cookie-jar", "--interface", "--pass"] {
        let ran = curl(&[option, "", "http://127.0.0.1:1/"]);
        let said = format!("curl: option {option}: blank argument where content is expected\n");
        assert!(ran.code == 2 && ran.stderr.starts_with(&said), "{ran:?}");
    }
}

#[test]
fn empty_option_values_have_no_effect() {
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
fn value_given_to_a_switch_is_ignored() {
    let peer = page("x");
    let ran = curl(&["--silent=0", "--location=", "--no-fail=1", &peer.url("/")]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let own = run(program(HAUL).args(["--silent=0", &peer.url("/")]));
    assert!(own.code == 2 && own.stderr.contains("option --silent: takes no value"), "{}", own.stderr);
}

#[test]
fn text_after_seconds_is_ignored() {
    let peer = page("x");
    for limit in ["5m", "5s", "5 s", "5.5.5", "5,5", "0x", "2.5 seconds"] {
        curl(&["-sS", "-m", limit, "--connect-timeout", limit, "--retry-delay", limit, &peer.url("/")]).ok();
    }
    for limit in ["", "x5", " 5", "-5"] {
        assert_eq!(curl(&["-sS", "-m", limit, &peer.url("/")]).code, 2, "{limit:?}");
    }
    assert_eq!(run(program(HAUL).args(["-m", "5m", &peer.url("/")])).code, 2);
    let silent = H1Peer::always(vec![ScriptStep::ReadToEnd]);
    assert_eq!(curl(&["-sS", "-m", "0.2m", &silent.url("/")]).code, 28);
}

#[test]
fn rate_adds_no_wait_after_the_last_transfer() {
    let peer = page("x");
    // A wait would be longer than the test's patience.
    curl(&["-s", "--rate", "1/h", &peer.url("/")]).ok();
}

#[test]
fn malformed_variable_is_skipped_with_a_warning() {
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
fn environment_values_need_not_be_utf8() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join(OsStr::from_bytes(b"\xe9"));
    fs::create_dir(&home).unwrap();
    fs::write(home.join(".netrc"), "default login me password pw\n").unwrap();
    fs::write(home.join(".curlrc"), "user-agent = theirs\n").unwrap();
    let peer = H1Peer::always(reply_steps("200 OK", "ok"));
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
fn variable_missing_in_environment_comes_from_file() {
    let (dir, peer) =
        (tempfile::tempdir().unwrap(), H1Peer::start(vec![reply_steps("200 OK", ""), reply_steps("200 OK", "")]));
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
fn negated_unsupported_options_are_ignored() {
    let peer = page("x");
    let url = peer.url("/");
    for name in ["ntlm", "ftp-pret", "mail-rcpt-allowfails", "tftp-no-options", "tls-earlydata", "compressed-ssh"] {
        curl(&["-s", &format!("--no-{name}"), &url]).ok();
        let ran = curl(&["-s", &format!("--{name}"), &url]);
        assert!(ran.code == 2 && ran.stderr.contains("is not supported by haul"), "{name}: {}", ran.stderr);
        run(program(HAUL).args(["-s", &format!("--no-{name}"), &url])).ok();
    }
    assert_eq!(curl(&["-s", "--no-quote", &url]).code, 2, "an option with a value has no such form");
}

#[test]
fn out_null_and_its_negation_discard_the_body() {
    let peer = page("x");
    let url = peer.url("/");
    for option in ["--out-null", "--no-out-null"] {
        assert_eq!(curl(&["-s", option, &url]).ok(), b"", "{option}");
    }
    assert_eq!(run(program(HAUL).args(["--no-out-null", &url])).code, 2, "under haul's own name");
}

#[test]
fn parallel_run_with_an_empty_group_fetches_nothing() {
    let peer = page("x");
    let ran = curl(&["-sZ", &peer.url("/"), "-:"]);
    assert!(ran.code == 2 && ran.stderr.starts_with("curl: (2) no URL specified\n"), "{}", ran.stderr);
    assert_eq!((ran.stdout.len(), peer.connections()), (0, 0));
    let ran = curl(&["-s", &peer.url("/"), "-:"]);
    assert_eq!((ran.code, ran.stdout.as_slice()), (2, &b"x"[..]), "without -Z the group is noticed in its turn");
    let ran = curl(&["-sS", "--fail-early", "http://127.0.0.1:1/", "-:"]);
    assert!(ran.failed(7).starts_with("curl: (7) "), "after a failure no turn comes");
}

#[test]
fn tls_versions_that_exclude_each_other_are_refused() {
    let peer = page("x");
    let url = peer.url("/");
    for (options, option, reason) in [
        (["--tls-max", "1.2", "--tlsv1.3"], "--tlsv1.3", "Minimum TLS version set higher than max"),
        (["--tlsv1.3", "--tls-max", "1.2"], "--tls-max", "--tls-max set lower than minimum accepted version"),
    ] {
        let ran = curl(&[&options[..], &[&url]].concat());
        let said = format!("curl: {reason}\ncurl: option {option}: is badly used here\n");
        assert!(ran.code == 2 && ran.stderr.starts_with(&said), "{options:?}: {}", ran.stderr);
    }
    for options in [["--tls-max", "1.2", "--tlsv1.2"], ["--tlsv1.3", "--tls-max", "1.3"]] {
        assert_eq!(curl(&[&["-s"], &options[..], &[&url]].concat()).text(), "x");
    }
}

#[test]
fn buffer_option_is_accepted_in_both_forms() {
    let peer = page("x");
    for option in ["--buffer", "--no-buffer", "-N"] {
        assert_eq!(curl(&["-s", option, &peer.url("/")]).text(), "x", "{option}");
    }
}
