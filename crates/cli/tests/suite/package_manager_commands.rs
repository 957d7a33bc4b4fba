//! Runs the exact command lines of package managers, and checks what they depend on: exit codes,
//! messages, and the files after a failure (docs/package-managers.md). The command lines of pkg_add
//! are in `openbsd_ftp`. The module `package_managers` runs apt and pacman themselves.

use crate::common;

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::guides::block_with;
use common::{CommandOutput, HAUL, content, installed, program, run};
use tempfile::TempDir;
use testkit::faulty::{BodyBreak, FaultPlan, FaultyOrigin};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

const SIZE: u64 = 300_000;
/// The `Last-Modified` of the content that `testkit::faulty` serves, in seconds since 1970.
const LAST_MODIFIED: i64 = 1_714_550_400;

/// Creates a directory with links to haul named `curl`, `fetch`, `ftp` and `haul`. The tests put
/// the directory into PATH.
fn names() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["curl", "fetch", "ftp", "haul"] {
        symlink(HAUL, dir.path().join(name)).unwrap();
    }
    dir
}

/// Runs a bash script in the directory `at`. The directory `names`, with links to haul, is the
/// first one of PATH.
fn script(text: &str, names: &Path, at: &Path, variables: &[(&str, &str)]) -> CommandOutput {
    let mut command: Command = program("bash");
    command.args(["-c", text]).current_dir(at).envs(variables.iter().copied());
    command.env("PATH", format!("{}:/usr/bin:/bin", names.display()));
    run(&mut command)
}

/// Runs a test in which the command `curl` is haul. If curl is installed, also runs the test with
/// curl itself, to prove that curl behaves as the test expects.
fn with_both(test: impl Fn(&Path)) {
    test(names().path());
    if installed("curl", "the same lines by curl itself").is_some() {
        test(tempfile::tempdir().unwrap().path());
    }
}

/// A bash script that calls curl like nixpkgs' `fetchurl`: with the same options, and in a loop
/// that retries with `-C -` only after exit code 18.
const NIX: &str = r#"
curlVersion=$(curl -V | head -1 | cut -d' ' -f2)
curl=(curl --location --max-redirs 20 --retry 3 --retry-all-errors --continue-at - --disable-epsv
      --cookie-jar cookies --user-agent "curl/$curlVersion Nixpkgs/26.05" --insecure $NIX_CURL_FLAGS)
tries=0 code=18
while [ $code -eq 18 ] && [ $tries -lt 5 ]; do
    tries=$((tries + 1))
    if "${curl[@]}" -C - --fail "$URL" --output out 2> log; then code=0; else code=$?; fi
done
echo $code"#;

#[test]
fn nixpkgs_fetchurl_resumes_interrupted_download() {
    with_both(|names| {
        let origin = FaultyOrigin::builder().start().unwrap();
        let plan =
            FaultPlan { size: SIZE, breaks: vec![BodyBreak::close_at(100_000).times(1)], ..FaultPlan::default() };
        let url = origin.url(&origin.serve("nix", plan));
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(script(NIX, names, dir.path(), &[("URL", &url)]).text(), "0\n");
        assert!(fs::read(dir.path().join("out")).unwrap() == content(SIZE));
        assert!(dir.path().join("cookies").exists(), "the jar is written though nobody gave a cookie");
        // A mirror that has not got it is left for the next one, and leaves nothing behind.
        let dir = tempfile::tempdir().unwrap();
        let missing = [("URL", &*origin.url("/none")), ("NIX_CURL_FLAGS", "--retry 0")];
        assert_eq!(script(NIX, names, dir.path(), &missing).text(), "22\n");
        assert_eq!(fs::read(dir.path().join("out")).unwrap_or_default(), b"");
    });
}

#[test]
fn nixpkgs_probes_hashed_mirrors_with_head() {
    let line = r#"if curl --location --max-redirs 20 --retry 3 --disable-epsv --cookie-jar cookies --retry 0 \
        --connect-timeout 15 --fail --silent --show-error --head "$URL" --write-out "%{http_code}" --output /dev/null \
        > code 2> log; then echo yes; else echo no; fi; cat code"#;
    with_both(|names| {
        let origin = Origin::builder().start().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let ask = |path: &str| script(line, names, dir.path(), &[("URL", &origin.url(path))]).text();
        assert_eq!(ask("/small"), "yes\n200");
        assert_eq!(ask("/status/404"), "no\n404");
        assert!(fs::read_to_string(dir.path().join("log")).unwrap().contains("404"));
    });
}

/// A bash function that calls curl like Homebrew. It puts Homebrew's general options before the
/// arguments of the call.
const BREW: &str = r#"brew() {
    curl --disable --cookie /dev/null --globoff --show-error --user-agent "Homebrew/4.6 (Linux) curl/8" \
        --header "Accept-Language: en" --fail --progress-bar --silent --retry 3 "$@"
}
"#;

#[test]
fn homebrew_downloads_and_resumes() {
    let download = format!("{BREW}brew --remote-time --output cached --location \"$URL\"; echo $?");
    let goes_on = format!("{BREW}brew --remote-time --output cached --continue-at - --location \"$URL\"; echo $?");
    let heads = format!("{BREW}brew --location --silent --head \"$URL\"; echo $?");
    with_both(|names| {
        let origin = FaultyOrigin::builder().start().unwrap();
        let url = origin.url(&origin.serve("brew", FaultPlan { size: SIZE, ..FaultPlan::default() }));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cached");
        assert_eq!(script(&download, names, dir.path(), &[("URL", &url)]).text(), "0\n");
        assert!(fs::read(&file).unwrap() == content(SIZE));
        assert_eq!(fs::metadata(&file).unwrap().mtime(), LAST_MODIFIED, "the server's date is the file's");
        fs::write(&file, &content(SIZE)[..1234]).unwrap();
        assert_eq!(script(&goes_on, names, dir.path(), &[("URL", &url)]).text(), "0\n");
        assert!(fs::read(&file).unwrap() == content(SIZE));
        let said = script(&heads, names, dir.path(), &[("URL", &url)]).text();
        assert!(
            said.starts_with("HTTP/1.1 200 ") && said.to_lowercase().contains("\naccept-ranges: bytes\r\n"),
            "{said}"
        );
        let ran = script(&heads, names, dir.path(), &[("URL", &origin.url("/none"))]);
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(said.starts_with("HTTP/1.1 404 ") && said.ends_with("\n22\n"), "{said}");
        assert!(ran.stderr.starts_with("curl: (22) "), "{}", ran.stderr);
    });
}

#[test]
fn homebrew_gets_curls_exit_codes() {
    let line = format!("{BREW}brew --retry 0 --max-time 1 --output cached --location \"$URL\" 2> log; echo $?");
    with_both(|names| {
        let faulty = FaultyOrigin::builder().start().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let ask = |url: &str| script(&line, names, dir.path(), &[("URL", url)]).text();
        let cut = faulty
            .serve("cut", FaultPlan { size: SIZE, breaks: vec![BodyBreak::close_at(1000)], ..FaultPlan::default() });
        let reset = faulty
            .serve("reset", FaultPlan { size: SIZE, breaks: vec![BodyBreak::reset_at(1000)], ..FaultPlan::default() });
        let stall = faulty
            .serve("stall", FaultPlan { size: SIZE, breaks: vec![BodyBreak::stall_at(1000)], ..FaultPlan::default() });
        assert_eq!(ask(&faulty.url(&cut)), "18\n");
        assert_eq!(ask(&faulty.url(&reset)), "56\n");
        assert_eq!(ask(&faulty.url(&stall)), "28\n");
        let last = fs::read_to_string(dir.path().join("log")).unwrap();
        assert!(last.lines().last().unwrap_or_default().starts_with("curl: (28) "), "{last}");
    });
    // Homebrew reads curl's features to interpret the codes 16 and 56.
    let said = script("curl -V", names().path(), Path::new("/"), &[]).text();
    assert!(said.contains("HTTP2") && said.starts_with("curl 8."), "{said}");
}

#[test]
fn portage_fetches_and_resumes() {
    // As Portage expands them from make.conf.
    let fetch = r#"haul -s -S -o "${DISTDIR}/${FILE}" "${URI}""#;
    let resume = r#"haul -s -S -C - -o "${DISTDIR}/${FILE}" "${URI}""#;
    let names = names();
    let origin = FaultyOrigin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let uri = origin.url(&origin.serve("portage", FaultPlan { size: SIZE, ..FaultPlan::default() }));
    let distdir = dir.path().to_str().unwrap();
    let variables = [("DISTDIR", distdir), ("FILE", "a b.tar"), ("URI", &uri)];
    let file = dir.path().join("a b.tar");
    assert_eq!(script(fetch, names.path(), dir.path(), &variables).text(), "");
    assert!(fs::read(&file).unwrap() == content(SIZE));
    fs::write(&file, &content(SIZE)[..200_000]).unwrap();
    assert_eq!(script(resume, names.path(), dir.path(), &variables).text(), "");
    assert!(fs::read(&file).unwrap() == content(SIZE));
    let missing = [("DISTDIR", distdir), ("FILE", "none"), ("URI", &origin.url("/none"))];
    assert_eq!(script(fetch, names.path(), dir.path(), &missing).failed(22).lines().count(), 1);
    assert!(!dir.path().join("none").exists(), "the next mirror begins anew");
}

#[test]
fn pkgsrc_fetches_and_resumes_a_part_file() {
    let names = names();
    let origin = FaultyOrigin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let url = origin.url(&origin.serve("pkgsrc", FaultPlan { size: SIZE, ..FaultPlan::default() }));
    let part = dir.path().join("a.tgz.77.part");
    let fetch = |line: &str| script(line, names.path(), dir.path(), &[("URL", &url)]);
    // FETCH_USING=custom, with the settings of the guide: CMD BEFORE OUTPUT file url AFTER, and
    // with RESUME behind BEFORE a file that is there, be it empty.
    let settings = block_with("docs/package-managers.md", "FETCH_USING=");
    let value = |name: &str| {
        let line = settings.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split('#').next().unwrap().trim().replace("/usr/pkg/bin/", "")
    };
    assert_eq!(value("FETCH_USING="), "custom");
    let [command, before, resume, output, after] =
        ["FETCH_CMD=", "FETCH_BEFORE_ARGS=", "FETCH_RESUME_ARGS=", "FETCH_OUTPUT_ARGS=", "FETCH_AFTER_ARGS="]
            .map(value);
    assert_eq!(fetch(&format!("{command} {before} {output} a.tgz.77.part $URL {after}")).text(), "");
    assert!(fs::read(&part).unwrap() == content(SIZE));
    for there in [0, 77_777] {
        fs::write(&part, &content(SIZE)[..there]).unwrap();
        assert_eq!(fetch(&format!("{command} {before} {resume} {output} a.tgz.77.part $URL {after}")).text(), "");
        assert!(fs::read(&part).unwrap() == content(SIZE), "from {there}");
    }
    // FETCH_USING=curl: one name too many, of which the first is meant.
    with_both(|names| {
        fs::remove_file(&part).unwrap();
        let line = "curl -s --fail --insecure --location --connect-timeout 30 --speed-time 30 -o a.tgz.77.part $URL -O";
        let ran = script(line, names, dir.path(), &[("URL", &url)]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(fs::read(&part).unwrap() == content(SIZE));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    });
}

#[test]
fn freebsd_ports_fetch_checks_the_file_size() {
    let names = names();
    let origin = FaultyOrigin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = origin.serve("ports.tgz", FaultPlan { size: SIZE, ..FaultPlan::default() });
    let url = origin.url(&path);
    let run_at = |line: &str| script(line, names.path(), dir.path(), &[("URL", &url)]);
    let file = dir.path().join("ports.tgz");
    // FETCH_CMD -S SIZE [-o dir/file] URL, with the setting of the guide.
    let setting = block_with("docs/package-managers.md", "FETCH_CMD= /usr/local");
    let command = setting.trim_start_matches("FETCH_CMD= /usr/local/bin/").split('#').next().unwrap().trim();
    assert_eq!(run_at(&format!("{command} -S {SIZE} $URL")).text(), "");
    assert!(fs::read(&file).unwrap() == content(SIZE));
    assert_eq!(fs::metadata(&file).unwrap().mtime(), LAST_MODIFIED);
    // The file exists: nothing is fetched, and that is a success.
    assert_eq!(run_at(&format!("fetch -Fpr -S {SIZE} $URL")).text(), "");
    fs::write(&file, &content(SIZE)[..5000]).unwrap();
    assert_eq!(run_at(&format!("{command} -S {SIZE} -o ports.tgz $URL")).text(), "");
    assert!(fs::read(&file).unwrap() == content(SIZE));
    // Another length is another file: the next site is asked.
    for size in [SIZE - 1, SIZE + 1] {
        let ran = run_at(&format!("fetch -p -S {size} -o other $URL"));
        assert_eq!(ran.failed(1), format!("fetch: {url}: size mismatch: expected {size}, actual {SIZE}"));
        assert!(!dir.path().join("other").exists());
    }
    let missing = origin.url("/none");
    let ran = script("fetch -Fpr -o none $URL", names.path(), dir.path(), &[("URL", &missing)]);
    assert_eq!(ran.failed(1), format!("fetch: {missing}: Not Found"));
    // A server that knows no ranges sends it all.
    let whole =
        origin.url(&origin.serve("whole", FaultPlan { size: SIZE, ignore_range: true, ..FaultPlan::default() }));
    fs::write(dir.path().join("whole"), b"other bytes").unwrap();
    assert_eq!(script("fetch -r $URL", names.path(), dir.path(), &[("URL", &whole)]).text(), "");
    assert!(fs::read(dir.path().join("whole")).unwrap() == content(SIZE));
    // A file as new as the server's is left alone.
    let unchanged = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 304 Not Modified\r\n\r\n"),
        ScriptStep::Close,
    ]);
    let mirror = [("URL", &*unchanged.url("/ports.tgz"))];
    assert_eq!(script("fetch -m $URL", names.path(), dir.path(), &mirror).text(), "");
    assert!(fs::read(&file).unwrap() == content(SIZE));
    assert!(unchanged.saw(0, b"If-Modified-Since: Wed, 01 May 2024 08:00:00 GMT\r\n"));
    fs::create_dir(dir.path().join("sub")).unwrap();
    assert_eq!(run_at("fetch -q -o sub $URL").text(), "");
    assert!(fs::read(dir.path().join("sub/ports.tgz")).unwrap() == content(SIZE), "into the directory");
    assert_eq!(run_at("fetch -q -o - $URL | wc -c").text().trim(), SIZE.to_string());
}

/// The ports system takes a temporary redirect as the sign that a mirror does not have the file.
#[test]
fn fetch_with_a_refuses_temporary_redirects() {
    let names = names();
    let dir = tempfile::tempdir().unwrap();
    let origin = Origin::builder().start().unwrap();
    let phrases = [(302, "Moved Temporarily"), (303, "See Other"), (307, "Temporary Redirect")];
    for (status, phrase) in phrases {
        let url = origin.url(&format!("/redirect/{status}?to=/small"));
        let ran = script("fetch -A -o file $URL", names.path(), dir.path(), &[("URL", &url)]);
        assert_eq!(ran.failed(1), format!("fetch: {url}: {phrase}"));
        assert!(!dir.path().join("file").exists(), "{status}");
    }
    for status in [301, 308] {
        let url = origin.url(&format!("/redirect/{status}?to=/small"));
        assert_eq!(script("fetch -A -q -o - $URL", names.path(), dir.path(), &[("URL", &url)]).text(), "small\n");
    }
}

/// The Emacs packages `plz` and `request` write curl's options and then the content to one pipe.
#[test]
fn config_and_data_share_one_stdin_pipe() {
    let content = "{\"a\":1}\nurl = http://127.0.0.1:1/\n";
    let answer = ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    let rest = [ScriptStep::ReadBytes(content.len()), answer, ScriptStep::Close];
    // A form's part has a head of its own.
    for (option, heads) in [("data-binary = \"@-\"", 1), ("form = \"f=@-;filename=a\"", 2)] {
        with_both(|names| {
            let heads = std::iter::repeat_n(ScriptStep::ReadHead, heads);
            let peer = H1Peer::always(heads.chain(rest.clone()).collect());
            let dir = tempfile::tempdir().unwrap();
            let options = format!("silent\nurl = \"{}\"\n{option}\n", peer.url("/"));
            let line = "printf '%s%s' \"$OPTIONS\" \"$CONTENT\" | curl --config -";
            let ran = script(line, names, dir.path(), &[("OPTIONS", &options), ("CONTENT", content)]);
            assert_eq!(ran.text(), "ok", "{option}");
            assert!(peer.saw(0, content.as_bytes()), "{option}");
        });
    }
}

#[test]
fn options_for_other_protocols_are_ignored() {
    with_both(|names| {
        let origin = Origin::builder().start().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let line = "curl -sS --ssl-reqd --ssl --tcp-fastopen -o page -w '%{http_code}' $URL";
        assert_eq!(script(line, names, dir.path(), &[("URL", &origin.url("/small"))]).text(), "200");
    });
}

/// A user may set `CURL_CA_BUNDLE` to an empty text, to disable a value that is meant for another
/// program.
#[test]
fn empty_curl_ca_bundle_counts_as_unset() {
    with_both(|names| {
        let origin = Origin::builder().start().unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("ca.pem"), origin.ca_pem()).unwrap();
        let line = "unset SSL_CERT_DIR; curl -sS -o page -w '%{http_code}' $URL";
        let url = origin.https_url("/small");
        let variables = [("URL", &*url), ("CURL_CA_BUNDLE", ""), ("SSL_CERT_FILE", "ca.pem")];
        assert_eq!(script(line, names, dir.path(), &variables).text(), "200");
    });
}
