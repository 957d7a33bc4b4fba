//! Tests of one large download: splitting, resuming, names, checksums, rate limits, and the files
//! that remain after haul was killed.

use crate::common;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{CommandOutput, HAUL, RunningCommand, eventually, names, page, program, run, run_haul};
use rustix::process::{Signal, kill_process};
use testkit::byte_pattern::BytePattern;
use testkit::faulty::{BodyBreak, FaultPlan, FaultyOrigin};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

const MIB: u64 = 1 << 20;

fn origin() -> FaultyOrigin {
    FaultyOrigin::builder().start().unwrap()
}

fn held(size: u64) -> FaultPlan {
    FaultPlan { size, rate: Some(2 * MIB), ..FaultPlan::default() }
}

fn content(size: u64) -> Vec<u8> {
    BytePattern::new(1).slice(0, size as usize)
}

fn haul_in(dir: &Path, args: &[&str]) -> CommandOutput {
    run(program(HAUL).args(args).current_dir(dir))
}

/// Returns the SHA-256 that the program `sha256sum` computes for these bytes; `None` if it is not
/// installed.
fn sum_of(dir: &Path, bytes: &[u8]) -> Option<String> {
    fs::write(dir.join("bytes"), bytes).unwrap();
    let ran =
        common::installed("sha256sum", "checksums of files").map(|sum| run(program(sum).arg(dir.join("bytes"))))?;
    fs::remove_file(dir.join("bytes")).unwrap();
    Some(ran.text().split_whitespace().next()?.to_owned())
}

/// Asserts that two bodies are equal. On failure, prints only the first difference and the lengths,
/// not megabytes of content.
#[track_caller]
fn assert_same(got: &[u8], expected: &[u8]) {
    let differs = got.iter().zip(expected).position(|(a, b)| a != b);
    assert_eq!((differs, got.len()), (None, expected.len()), "the first difference, and the length");
}

#[test]
fn large_body_is_split_unless_turned_off() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let size = 4 * MIB;
    for (name, args, splits) in
        [("default", &[][..], true), ("three", &["--split", "3"][..], true), ("off", &["--split", "1"][..], false)]
    {
        let url = origin.url(&origin.serve(name, held(size)));
        assert_same(&run_haul([&["-s"], args, &[&url]].concat()).ok(), &content(size));
        let seen = origin.seen(name);
        assert_eq!(seen.requests.iter().any(|request| request.range.is_some()), splits, "{name}");
        // Three at a time: the first is closed where it was cut, and another takes its place.
        assert!(name != "three" || seen.connections <= 4, "{}", seen.connections);

        let url = origin.url(&origin.serve(name, held(size)));
        let size_told = haul_in(dir.path(), &[&["-s", "-o", name, "-w", "%{size_download}"], args, &[&url]].concat());
        assert_eq!(size_told.text(), size.to_string());
        assert_same(&fs::read(dir.path().join(name)).unwrap(), &content(size));
        assert_eq!(origin.seen(name).requests.iter().any(|request| request.range.is_some()), splits, "{name}");
    }
    assert_eq!(names(dir.path()), ["default", "off", "three"]);
}

#[test]
fn continue_at_fetches_only_the_missing_bytes() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let (dir, size) = (dir.path(), 300_000);
    let plan = FaultPlan { size, ..FaultPlan::default() };
    let url = origin.url(&origin.serve("f", plan.clone()));
    let read = || fs::read(dir.join("file")).unwrap();
    for args in [&["-C", "-"][..], &["-C", "100000"]] {
        fs::write(dir.join("file"), &content(size)[..100_000]).unwrap();
        haul_in(dir, &[&["-s", "-o", "file"], args, &[&url]].concat()).ok();
        assert_same(&read(), &content(size));
    }
    let asked: Vec<_> = origin.seen("f").requests.into_iter().map(|request| (request.range, request.status)).collect();
    assert_eq!(asked, [(); 2].map(|()| (Some("bytes=100000-".to_owned()), 206)));

    haul_in(dir, &["-s", "-o", "file", "-C", "-", &url]).ok();
    assert_same(&read(), &content(size));
    assert_eq!(origin.seen("f").requests[2].status, 416, "all of it is there");
    assert_eq!(run_haul(["-s", "-C", "299990", &url]).ok(), content(size)[299_990..]);

    // From nothing; and against a server that only sends wholes.
    haul_in(dir, &["-s", "-o", "new", "-C", "-", &url]).ok();
    assert_same(&fs::read(dir.join("new")).unwrap(), &content(size));
    let url = origin.url(&origin.serve("whole", FaultPlan { ignore_range: true, ..plan }));
    fs::write(dir.join("file"), &content(size)[..10]).unwrap();
    haul_in(dir, &["-s", "-S", "-o", "file", "-C", "-", &url]).failed(33);
    assert_eq!(read(), content(size)[..10], "what was there is untouched");
    assert_eq!(names(dir), ["file", "new"]);
}

/// Starts a server whose `Content-Disposition` suggests a file name for a body of five bytes.
fn suggesting() -> H1Peer {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\
                Content-Disposition: attachment; filename=\"../named.txt\"\r\n\r\nhello";
    H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head)])
}

#[test]
fn remote_header_name_respects_existing_files() {
    let (peer, dir) = (suggesting(), tempfile::tempdir().unwrap());
    let (dir, url) = (dir.path(), peer.url("/download"));
    haul_in(dir, &["-s", "-O", "-J", &url]).ok();
    assert_eq!(names(dir), ["named.txt"]);
    fs::write(dir.join("named.txt"), "mine").unwrap();
    assert!(haul_in(dir, &["-s", "-S", "-O", "-J", &url]).failed(23).contains("named.txt"));
    haul_in(dir, &["-s", "-O", "-J", "--no-clobber", &url]).ok();
    haul_in(dir, &["-s", "-O", "--no-clobber", "-o", "named.txt", &url, &url]).ok();
    assert_eq!(names(dir), ["download", "named.txt", "named.txt.1", "named.txt.2"]);
    assert_eq!(fs::read(dir.join("named.txt")).unwrap(), b"mine");
    haul_in(dir, &["-s", "-S", "-O", "-J", "--skip-existing", &url]).ok();
    assert_eq!(fs::read(dir.join("named.txt")).unwrap(), b"mine");
    haul_in(dir, &["-s", "-O", "-J", "--clobber", &url]).ok();
    assert_eq!(fs::read(dir.join("named.txt")).unwrap(), b"hello");
}

#[test]
fn write_out_and_remote_time_use_final_name() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
                Content-Disposition: attachment; filename=\"named.txt\"\r\n\r\nhello";
    let (peer, dir) =
        (H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head)]), tempfile::tempdir().unwrap());
    let (dir, url) = (dir.path(), peer.url("/download"));
    let of_1994 = |name: &str| {
        let modified = fs::metadata(dir.join(name)).unwrap().modified().unwrap();
        modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() == 784_111_777
    };
    fs::write(dir.join("mine"), "mine").unwrap();
    std::os::unix::fs::symlink("mine", dir.join("link")).unwrap();
    let told = ["-s", "-S", "-R", "-w", "%{filename_effective}\n"];
    let many = |options: &[&str]| haul_in(dir, &[&told, options].concat());

    let ran = many(&["--no-clobber", "-o", "mine", &url, "-o", "new", &url, "-o", "link", &url]).text();
    assert_eq!(ran, "mine.1\nnew\nlink.1\n");
    assert!(of_1994("mine.1") && of_1994("new") && of_1994("link.1") && !of_1994("mine"));
    let ran = many(&["-J", "-O", &url, "-o", "other", &url]).text();
    assert_eq!(ran, "named.txt\nother\n");
    assert!(of_1994("named.txt"));
    fs::write(dir.join("named.txt"), "mine").unwrap();
    let ran = many(&["-J", "--skip-existing", "-O", &url, "-o", "third", &url]).text();
    assert_eq!((ran.as_str(), of_1994("named.txt")), ("third\n", false), "passed over");
    // One alone.
    let ran = many(&["--no-clobber", "-o", "mine", &url]).text();
    assert_eq!(ran, "mine.2\n");
}

#[test]
fn skip_existing_sends_no_request() {
    let (origin, dir) = (Origin::builder().start().unwrap(), tempfile::tempdir().unwrap());
    let (dir, url) = (dir.path(), origin.url("/small/1"));
    fs::write(dir.join("1"), "mine").unwrap();
    haul_in(dir, &["-s", "--skip-existing", "-O", &url]).ok();
    assert_eq!(origin.requests(), 0);
    haul_in(dir, &["-s", "--skip-existing", "--remote-name-all", &url, &origin.url("/small/2")]).ok();
    assert_eq!((origin.requests(), names(dir)), (1, vec!["1".to_owned(), "2".to_owned()]));
    assert_eq!(fs::read(dir.join("1")).unwrap(), b"mine");
}

#[test]
fn checksum_from_argument_file_or_url_is_verified() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let (dir, size) = (dir.path(), 2 * MIB);
    let Some(sum) = sum_of(dir, &content(size)) else { return };
    let url = origin.url(&origin.serve("thing", FaultPlan { size, ..FaultPlan::default() }));
    let list = format!("{}  other\n{sum}  thing\n", "0".repeat(64));
    fs::write(dir.join("SUMS"), &list).unwrap();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{list}", list.len());
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head)]);
    let (right, wrong) = (format!("sha256:{sum}"), format!("sha256:{}", "0".repeat(64)));
    for from in [&right, "SUMS", &peer.url("/SUMS")] {
        let ran = haul_in(dir, &["-s", "-S", "-u", "me:secret", "-H", "X-Key: secret", "--checksum", from, "-O", &url]);
        ran.ok();
        assert_same(&fs::read(dir.join("thing")).unwrap(), &content(size));
        fs::remove_file(dir.join("thing")).unwrap();
    }
    let asked = String::from_utf8(peer.received(0)).unwrap();
    assert!(asked.starts_with("GET /SUMS ") && !asked.contains("secret") && !asked.contains("Basic"), "{asked}");

    let ran = haul_in(dir, &["-s", "-S", "--checksum", &wrong, "-O", &url]);
    assert!(ran.failed(56).contains("checksum"), "{}", ran.stderr);
    assert_eq!(names(dir), [".thing.haul-part", "SUMS"]);
    haul_in(dir, &["-s", "-S", "--checksum", &wrong, "--remove-on-error", "-O", &url]).failed(56);
    assert_eq!(names(dir), ["SUMS"]);
    haul_in(dir, &["-s", "-S", "--checksum", &wrong, &url]).failed(56);
    assert_same(&haul_in(dir, &["-s", "--checksum", &right, &url]).ok(), &content(size));
    // A list without the file is an error before the body is asked for.
    let before = origin.seen("thing").requests.len();
    fs::write(dir.join("SUMS"), format!("{sum}  another\n")).unwrap();
    haul_in(dir, &["-s", "-S", "--checksum", "SUMS", "-O", &url]).failed(56);
    assert_eq!(origin.seen("thing").requests.len(), before);
}

#[test]
fn checksum_list_is_fetched_once_for_all_urls() {
    let (files, dir) = (page("x"), tempfile::tempdir().unwrap());
    let Some(sum) = sum_of(dir.path(), b"x") else { return };
    let sums = page(&format!("{sum}  1\n{sum}  2\n{sum}  3\n"));
    for (number, mode) in ["--parallel", "curl"].into_iter().enumerate() {
        let urls = [1, 2, 3].map(|file| files.url(&format!("/{file}")));
        let args = [mode, "-sS", "--checksum", &sums.url("/SUMS"), "--clobber", "--remote-name-all"].map(str::to_owned);
        haul_in(dir.path(), &args.iter().chain(&urls).map(String::as_str).collect::<Vec<_>>()).ok();
        assert_eq!(sums.connections(), number + 1, "{mode}");
    }
}

#[test]
fn checksum_list_request_carries_no_post_data() {
    let peer = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
    ]);
    let ran = run_haul(["-s", "-S", "-d", "secret", "--checksum", &peer.url("/SUMS"), common::REFUSED]);
    ran.failed(22);
    let asked = String::from_utf8(peer.received(0)).unwrap();
    assert!(asked.starts_with("GET /SUMS ") && !asked.contains("Content-"), "{asked}");
}

#[test]
fn fsync_leaves_the_file_content_unchanged() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    for size in [10, 2 * MIB] {
        let url = origin.url(&origin.serve(&size.to_string(), FaultPlan { size, ..FaultPlan::default() }));
        haul_in(dir.path(), &["-s", "--fsync", "-o", "file", &url]).ok();
        assert_same(&fs::read(dir.path().join("file")).unwrap(), &content(size));
    }
    assert_eq!(names(dir.path()), ["file"]);
    run_haul(["-s", "--fsync", "-o", "/dev/null", &origin.url("/f/10")]).ok();
}

#[test]
fn limit_rate_bounds_the_speed() {
    let origin = origin();
    let url = origin.url(&origin.serve("limited", FaultPlan { size: 3 * MIB, ..FaultPlan::default() }));
    let began = Instant::now();
    assert_same(&run_haul(["-s", "--limit-rate", "1M", &url]).ok(), &content(3 * MIB));
    // A slow machine can only take longer.
    assert!(began.elapsed() >= Duration::from_millis(1500), "{:?}", began.elapsed());
}

#[test]
fn too_slow_download_exits_28() {
    let origin = origin();
    for (name, size) in [("small", 100_000), ("large", 4 * MIB)] {
        let plan = FaultPlan { size, breaks: vec![BodyBreak::stall_at(50_000)], ..FaultPlan::default() };
        let url = origin.url(&origin.serve(name, plan));
        let ran = run_haul(["-s", "-S", "--retry", "0", "--speed-limit", "1000", "--speed-time", "1", &url]);
        assert!(ran.failed(28).contains("slower than 1000 bytes a second for 1 seconds"), "{}", ran.stderr);
        assert_same(&ran.stdout, &content(50_000));
    }
}

#[test]
fn killed_download_is_resumed_by_next_run() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let size = 40 * MIB;
    for (name, killed_at, split) in [("one", 20 * MIB, "1"), ("parts", 16 * MIB, "6")] {
        let origin = origin();
        let url = origin.url(&origin.serve(name, FaultPlan { size, rate: Some(16 * MIB), ..FaultPlan::default() }));
        let args = ["-s", "-S", "--split", split, "-o", name, &url];
        let running = RunningCommand::start(program(HAUL).args(args).current_dir(dir));
        eventually("it has fetched a part", || origin.seen(name).sent() >= killed_at);
        kill_process(running.pid(), Signal::KILL).unwrap();
        assert_eq!(running.wait().code, 128 + 9);
        assert_eq!(names(dir), [format!(".{name}.haul-part")]);
        haul_in(dir, &args).ok();
        assert_same(&fs::read(dir.join(name)).unwrap(), &content(size));
        assert_eq!(names(dir), [name]);
        let seen = origin.seen(name);
        // The bytes since the last checkpoint, and those in each connection's socket.
        assert!(seen.twice() <= 10 * MIB, "{name}: {} bytes were sent twice", seen.twice());
        let again = seen.requests.iter().filter(|request| request.range.is_none()).count();
        assert_eq!(again, 1, "{name}: the second run begins with a range");
        fs::remove_file(dir.join(name)).unwrap();
    }
}
