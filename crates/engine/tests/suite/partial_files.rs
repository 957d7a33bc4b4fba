//! Tests of partial files: the next run completes them if the content is certainly the same. Also
//! tests the names of files, and the files that remain after failures.
#![expect(clippy::single_range_in_vec_init, reason = "one span is meant")]

use crate::common;
use crate::support::ranges;

use std::fs;
use std::io::IoSlice;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use common::assert_same;
use haul::batch::BatchOptions;
use haul::sink::checksum::{ChecksumSink, ExpectedChecksum, HashAlgorithm};
use haul::sink::file::{AppendPosition, FileOptions, FileSink};
use haul::sink::partial::PartialFile;
use haul::sink::temporary_and_final_names::ClobberMode;
use haul::{Client, RequestOptions, Target};
use haul_policy::range::checkpoint::{self, SLOT_SIZE};
use haul_policy::range::validator::Validator;
use ranges::{MIB, NonRestartableSink, SIZE, assert_success, content, exit_code, fetch, origin, ranges};
use tempfile::TempDir;
use testkit::byte_pattern::BytePattern;
use testkit::faulty::{BodyBreak, ContentChangeTrigger, FaultPlan, FaultyOrigin};
use testkit::h1_peer::{H1Peer, ScriptStep};

fn options() -> RequestOptions {
    RequestOptions::default()
}

fn all() -> Vec<u8> {
    content(&FaultPlan::default(), 0)
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns a directory, the path of the downloaded file, and the path of its partial file.
fn download_paths() -> (TempDir, PathBuf, PathBuf) {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    let beside = PartialFile::partial_path(&file).unwrap();
    (dir, file, beside)
}

/// Creates the partial file that a killed process would have left for this URL. It contains the
/// ranges `spans` of the content.
fn leave_partial_file(beside: &Path, url: &str, etag: &str, spans: &[std::ops::Range<u64>]) {
    let target = Target::parse(url).unwrap();
    let validator = Validator::strong(Some(etag.as_bytes()), None, None).unwrap();
    let partial = Arc::new(PartialFile::create(beside, 0o666, &target, SIZE, &validator, false).unwrap());
    for span in spans {
        let mut writer = partial.writer(span.clone()).unwrap();
        let bytes = BytePattern::new(1).slice(span.start, (span.end - span.start) as usize);
        let (one, two) = bytes.split_at(bytes.len() / 2);
        writer.write(one).unwrap();
        writer.write_pieces(&mut [IoSlice::new(two)]).unwrap();
    }
}

/// Modifies the newest checkpoint in a partial file by calling `change`.
fn rewrite_checkpoint(beside: &Path, change: impl FnOnce(&mut checkpoint::Checkpoint)) {
    use std::os::unix::fs::FileExt;
    let bytes = fs::read(beside).unwrap();
    let (sequence, mut note) = checkpoint::latest(&bytes[SIZE as usize..]).unwrap();
    change(&mut note);
    let file = fs::File::options().write(true).open(beside).unwrap();
    file.write_all_at(&note.encode(sequence + 2), SIZE + (sequence % 2) * SLOT_SIZE).unwrap();
}

/// Fetches a URL of the origin into `file`, asserts that the file is complete, and returns the
/// ranges that were requested.
#[track_caller]
fn assert_completes(origin: &FaultyOrigin, name: &str, file: &Path) -> Vec<String> {
    assert_success(&fetch(&Client::new(), &origin.url(&format!("/f/{name}")), &options(), FileSink::new(file)));
    assert_same(&fs::read(file).unwrap(), &all());
    ranges(&origin.seen(name))
}

#[test]
fn broken_download_is_completed_by_next_run() {
    let origin = origin();
    let (dir, file, _) = download_paths();
    let breaks = vec![BodyBreak::close_at(MIB + 300).times(1)];
    let path = origin.serve("broken", FaultPlan { breaks, ..FaultPlan::default() });
    let outcome = fetch(&Client::new(), &origin.url(&path), &options(), FileSink::new(&file));
    assert_eq!(exit_code(&outcome), 18);
    assert_eq!(names(dir.path()), [".file.haul-part"], "a file has its name only when it is whole");
    assert_eq!(assert_completes(&origin, "broken", &file), [format!("bytes={}-", MIB + 300)]);
    assert_eq!(origin.seen("broken").requests[1].if_range.as_deref(), Some("\"1-0\""));
    assert_eq!((origin.seen("broken").twice(), names(dir.path())), (0, vec!["file".to_owned()]));
}

#[test]
fn only_missing_ranges_are_requested() {
    let origin = origin();
    let (dir, file, beside) = download_paths();
    let path = origin.serve("holes", FaultPlan::default());
    let spans = [1..1000, MIB..2 * MIB, 3 * MIB..3 * MIB + 7];
    leave_partial_file(&beside, &origin.url(&path), "\"1-0\"", &spans);
    let asked = assert_completes(&origin, "holes", &file);
    assert_eq!(asked, ["bytes=0-0", "bytes=1000-1048575", "bytes=2097152-3145727", "bytes=3145735-"]);
    let there: u64 = spans.iter().map(|span| span.end - span.start).sum();
    assert_eq!(origin.seen("holes").sent(), SIZE - there);
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn complete_partial_file_is_only_renamed() {
    let origin = origin();
    let (dir, file, beside) = download_paths();
    let path = origin.serve("there", FaultPlan::default());
    leave_partial_file(&beside, &origin.url(&path), "\"1-0\"", &[0..SIZE]);
    assert_eq!(assert_completes(&origin, "there", &file), [format!("bytes={SIZE}-")]);
    assert_eq!((origin.seen("there").requests[0].status, origin.seen("there").sent()), (416, 0));
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn redirected_download_resumes_its_partial_file() {
    let origin = origin();
    let (dir, file, _) = download_paths();
    let breaks = vec![BodyBreak::close_at(MIB + 300).times(1)];
    let path = origin.serve("moved", FaultPlan { breaks, ..FaultPlan::default() });
    let head = format!("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", origin.url(&path));
    let entry = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head)]);
    let follow = common::following();
    assert_eq!(exit_code(&fetch(&Client::new(), &entry.url("/x"), &follow, FileSink::new(&file))), 18);
    assert_success(&fetch(&Client::new(), &entry.url("/x"), &follow, FileSink::new(&file)));
    assert_same(&fs::read(&file).unwrap(), &all());
    assert_eq!((origin.seen("moved").twice(), names(dir.path())), (0, vec!["file".to_owned()]));
}

#[test]
fn partial_file_of_uncertain_content_is_discarded() {
    let origin = origin();
    let elsewhere = origin.url("/f/elsewhere");
    type MakePartialFile<'a> = &'a dyn Fn(&Path, &str);
    let cases: [(&str, MakePartialFile<'_>); 6] = [
        ("another-url", &|beside, _| leave_partial_file(beside, &elsewhere, "\"1-0\"", &[0..MIB])),
        ("another-boot", &|beside, url| {
            leave_partial_file(beside, url, "\"1-0\"", &[0..MIB]);
            rewrite_checkpoint(beside, |note| note.boot = b"another".to_vec());
        }),
        ("unknown-boot", &|beside, url| {
            leave_partial_file(beside, url, "\"1-0\"", &[0..MIB]);
            rewrite_checkpoint(beside, |note| note.boot.clear());
        }),
        ("torn", &|beside, url| {
            leave_partial_file(beside, url, "\"1-0\"", &[0..MIB]);
            let len = fs::metadata(beside).unwrap().len();
            fs::File::options().write(true).open(beside).unwrap().set_len(len - 1).unwrap();
        }),
        ("garbage", &|beside, _| fs::write(beside, vec![7; MIB as usize]).unwrap()),
        ("empty", &|beside, _| fs::write(beside, b"").unwrap()),
    ];
    for (name, make) in cases {
        let (dir, file, beside) = download_paths();
        let path = origin.serve(name, FaultPlan::default());
        make(&beside, &origin.url(&path));
        assert_eq!(assert_completes(&origin, name, &file), [""; 0], "{name}");
        assert_eq!(names(dir.path()), ["file"], "{name}");
    }
}

#[test]
fn synced_bytes_survive_a_reboot() {
    let origin = origin();
    let (_dir, file, beside) = download_paths();
    let path = origin.serve("synced", FaultPlan::default());
    leave_partial_file(&beside, &origin.url(&path), "\"1-0\"", &[0..MIB]);
    rewrite_checkpoint(&beside, |note| {
        note.boot = b"another".to_vec();
        note.is_synced = true;
    });
    assert_eq!(assert_completes(&origin, "synced", &file), [format!("bytes={MIB}-")]);
}

#[test]
fn changed_etag_restarts_the_download() {
    let origin = origin();
    let (dir, file, beside) = download_paths();
    let path = origin.serve("changed", FaultPlan::default());
    leave_partial_file(&beside, &origin.url(&path), "\"0-0\"", &[0..MIB]);
    assert_eq!(assert_completes(&origin, "changed", &file), [format!("bytes={MIB}-")]);
    assert_eq!(origin.seen("changed").requests.len(), 1, "the answer is the new start");
    assert_eq!(names(dir.path()), ["file"]);
    // The content changes between two runs.
    let (_dir, file, _) = download_paths();
    let plan = FaultPlan {
        breaks: vec![BodyBreak::close_at(MIB).times(1)],
        change: Some(ContentChangeTrigger::Requests(1)),
        new_size: Some(SIZE - 5),
        ..FaultPlan::default()
    };
    let url = origin.url(&origin.serve("between", plan.clone()));
    assert_eq!(exit_code(&fetch(&Client::new(), &url, &options(), FileSink::new(&file))), 18);
    assert_success(&fetch(&Client::new(), &url, &options(), FileSink::new(&file)));
    assert_same(&fs::read(&file).unwrap(), &content(&plan, 1)[..SIZE as usize - 5]);
}

#[test]
fn partial_file_in_use_is_not_modified() {
    let origin = origin();
    let (dir, file, beside) = download_paths();
    let url = origin.url(&origin.serve("locked", FaultPlan::default()));
    leave_partial_file(&beside, &url, "\"1-0\"", &[0..MIB]);
    let held = PartialFile::open(&beside, &Target::parse(&url).unwrap(), false).unwrap();
    assert!(PartialFile::open(&beside, &Target::parse(&url).unwrap(), false).is_none());
    let before = fs::read(&beside).unwrap();
    assert_eq!(assert_completes(&origin, "locked", &file), [""; 0]);
    assert!(fs::read(&beside).unwrap() == before, "it was written to");
    assert_eq!(held.present_ranges().byte_count(), MIB);
    drop(held);
    assert_eq!(names(dir.path()), [".file.haul-part", "file"]);
}

#[test]
fn partial_file_is_not_written_through_links() {
    let origin = origin();
    let (dir, file, beside) = download_paths();
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, &beside).unwrap();
    origin.serve("link", FaultPlan::default());
    assert_eq!(assert_completes(&origin, "link", &file), [""; 0]);
    assert_eq!(fs::read(&victim).unwrap(), b"precious");

    let (_dir, file, beside) = download_paths();
    fs::create_dir(&beside).unwrap();
    origin.serve("directory", FaultPlan::default());
    assert_eq!(assert_completes(&origin, "directory", &file), [""; 0]);

    // A hard link of a partial file may belong to somebody else.
    let (dir, file, beside) = download_paths();
    let url = origin.url(&origin.serve("twin", FaultPlan::default()));
    leave_partial_file(&beside, &url, "\"1-0\"", &[0..MIB]);
    let twin = dir.path().join("twin");
    fs::hard_link(&beside, &twin).unwrap();
    let before = fs::read(&twin).unwrap();
    assert_eq!(assert_completes(&origin, "twin", &file), [""; 0]);
    assert!(fs::read(&twin).unwrap() == before);
}

#[test]
#[cfg(linux_calls)]
fn too_small_disk_is_an_error_before_fetching() {
    let origin = origin();
    let (dir, file, _) = download_paths();
    let path = origin.serve("huge", FaultPlan { size: 1 << 62, rate: Some(MIB), ..FaultPlan::default() });
    let outcome = fetch(&Client::new(), &origin.url(&path), &common::retrying(3), FileSink::new(&file));
    assert_eq!((exit_code(&outcome), outcome.facts.body_bytes), (23, 0), "{:?}", outcome.result);
    assert_eq!((names(dir.path()).len(), origin.seen("huge").requests.len()), (0, 1));
}

/// Starts a server that suggests the file name `name` for a body of five bytes.
fn peer_suggesting_name(name: &str) -> H1Peer {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\nContent-Disposition: attachment; filename=\"{name}\"\r\n\r\nhello"
    );
    H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head)])
}

fn named(clobber: ClobberMode) -> FileOptions {
    FileOptions { named_by_response: true, clobber, ..FileOptions::default() }
}

#[test]
fn response_named_file_replaces_no_file_by_default() {
    let (dir, file, _) = download_paths();
    let peer = peer_suggesting_name("suggested.txt");
    let get = |clobber| {
        exit_code(&fetch(&Client::new(), &peer.url("/"), &options(), FileSink::with_options(&file, named(clobber))))
    };
    assert_eq!(get(ClobberMode::Own), 0);
    assert_eq!(names(dir.path()), ["suggested.txt"]);
    fs::write(dir.path().join("suggested.txt"), "mine").unwrap();
    assert_eq!((get(ClobberMode::Own), get(ClobberMode::Refuse)), (23, 23));
    assert_eq!(fs::read(dir.path().join("suggested.txt")).unwrap(), b"mine");
    assert_eq!((get(ClobberMode::Number), get(ClobberMode::Number)), (0, 0));
    assert_eq!(names(dir.path()), ["suggested.txt", "suggested.txt.1", "suggested.txt.2"]);
    assert_eq!(get(ClobberMode::Replace), 0);
    assert_eq!(fs::read(dir.path().join("suggested.txt")).unwrap(), b"hello");
}

#[test]
fn suggested_file_name_stays_in_its_directory() {
    let outer = TempDir::new().unwrap();
    for name in ["../../up", "/etc/absolute", "..", ".", "a/b/c", "..\\\\up"] {
        let dir = outer.path().join("inner");
        fs::create_dir(&dir).unwrap();
        let sink = FileSink::with_options(dir.join("own"), named(ClobberMode::Own));
        assert_success(&fetch(&Client::new(), &peer_suggesting_name(name).url("/"), &options(), sink));
        assert_eq!(names(outer.path()), ["inner"], "{name}");
        assert_eq!(names(&dir).len(), 1, "{name}: {:?}", names(&dir));
        fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn clobber_mode_number_stops_at_one_hundred() {
    let origin = origin();
    let (dir, file, _) = download_paths();
    fs::write(&file, "mine").unwrap();
    for number in 1..100 {
        fs::write(dir.path().join(format!("file.{number}")), "").unwrap();
    }
    let numbered =
        || FileSink::with_options(&file, FileOptions { clobber: ClobberMode::Number, ..FileOptions::default() });
    // A download with a checkpoint, and one without.
    for (size, code) in [(MIB * 2, 0), (10, 23)] {
        let url = origin.url(&origin.serve(&size.to_string(), FaultPlan { size, ..FaultPlan::default() }));
        assert_eq!(exit_code(&fetch(&Client::new(), &url, &options(), numbered())), code);
    }
    assert_eq!(fs::metadata(dir.path().join("file.100")).unwrap().len(), MIB * 2);
    assert_eq!((fs::read(&file).unwrap(), names(dir.path()).len()), (b"mine".to_vec(), 101));
}

fn checksum(bytes: &[u8]) -> ExpectedChecksum {
    ExpectedChecksum::new(HashAlgorithm::Sha256, digest(&SHA256, bytes).as_ref().to_vec()).unwrap()
}

#[test]
fn file_with_wrong_checksum_is_not_renamed() {
    let origin = origin();
    for size in [SIZE, 100] {
        let bytes = &all()[..size as usize];
        let url = origin.url(&origin.serve(&size.to_string(), FaultPlan { size, ..FaultPlan::default() }));
        let (dir, file, _) = download_paths();
        let with = |checksum, remove_on_error| {
            let options = FileOptions { checksum: Some(checksum), remove_on_error, ..FileOptions::default() };
            FileSink::with_options(&file, options)
        };
        let outcome = fetch(&Client::new(), &url, &options(), with(checksum(b"x"), true));
        assert_eq!((exit_code(&outcome), names(dir.path()).len()), (56, 0), "{:?}", names(dir.path()));
        let outcome = fetch(&Client::new(), &url, &options(), with(checksum(b"x"), false));
        assert_eq!((exit_code(&outcome), names(dir.path())), (56, vec![".file.haul-part".to_owned()]));
        assert_success(&fetch(&Client::new(), &url, &options(), with(checksum(bytes), false)));
        assert_same(&fs::read(&file).unwrap(), bytes);
        assert_eq!(names(dir.path()), ["file"]);
        assert!(ranges(&origin.seen(&size.to_string())).is_empty(), "what was wrong is not completed");
    }
}

#[test]
fn checksum_covers_resumed_split_and_appended_files() {
    let origin = origin();
    let (_dir, file, beside) = download_paths();
    let url = origin.url(&origin.serve("resumed", FaultPlan::default()));
    leave_partial_file(&beside, &url, "\"1-0\"", &[5..MIB]);
    let with = |checksum| FileOptions { checksum: Some(checksum), ..FileOptions::default() };
    assert_success(&fetch(&Client::new(), &url, &options(), FileSink::with_options(&file, with(checksum(&all())))));

    let url = origin.url(&origin.serve("split", ranges::rate_limited_plan()));
    assert_success(&fetch(
        &Client::new(),
        &url,
        &ranges::splitting(),
        FileSink::with_options(&file, with(checksum(&all()))),
    ));
    assert!(!ranges(&origin.seen("split")).is_empty());

    let url = origin.url(&origin.serve("added", FaultPlan::default()));
    let adding = |sum: &[u8]| FileOptions { append: Some(AppendPosition::AtEnd), ..with(checksum(sum)) };
    for there in [1000, SIZE as usize] {
        fs::write(&file, &all()[..there]).unwrap();
        assert_success(&fetch(&Client::new(), &url, &options(), FileSink::with_options(&file, adding(&all()))));
        assert_same(&fs::read(&file).unwrap(), &all());
        fs::write(&file, &all()[..there]).unwrap();
        let outcome = fetch(&Client::new(), &url, &options(), FileSink::with_options(&file, adding(&all()[there..])));
        assert_eq!(exit_code(&outcome), 56, "a checksum of what was added is none of the file");
    }
}

#[test]
fn checksum_is_verified_for_pipes_and_devices() {
    let origin = origin();
    let url = origin.url(&origin.serve("passing", FaultPlan::default()));
    for (sum, code) in [(checksum(&all()), 0), (checksum(b"x"), 56)] {
        let once = NonRestartableSink::default();
        let outcome = fetch(&Client::new(), &url, &options(), ChecksumSink::new(once.clone(), sum.clone()));
        assert_eq!(exit_code(&outcome), code);
        assert_same(&once.taken(), &all());
        let device = FileOptions { checksum: Some(sum), ..FileOptions::default() };
        let outcome = fetch(&Client::new(), &url, &options(), FileSink::with_options("/dev/null", device));
        assert_eq!(exit_code(&outcome), code);
    }
}

#[test]
fn remove_on_error_leaves_no_files() {
    let origin = origin();
    let breaks = vec![BodyBreak::close_at(MIB + 300)];
    let url = origin.url(&origin.serve("broken", FaultPlan { breaks, ..FaultPlan::default() }));
    let (dir, file, beside) = download_paths();
    let removing = FileOptions { remove_on_error: true, ..FileOptions::default() };
    assert_eq!(
        exit_code(&fetch(&Client::new(), &url, &options(), FileSink::with_options(&file, removing.clone()))),
        18
    );
    assert_eq!(names(dir.path()), [""; 0]);
    leave_partial_file(&beside, &url, "\"1-0\"", &[0..MIB]);
    assert_eq!(exit_code(&fetch(&Client::new(), &url, &options(), FileSink::with_options(&file, removing))), 18);
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn old_file_remains_until_replacement_is_complete() {
    let origin = origin();
    let breaks = vec![BodyBreak::close_at(MIB + 300).times(1)];
    let url = origin.url(&origin.serve("broken", FaultPlan { breaks, ..FaultPlan::default() }));
    let (dir, file, _) = download_paths();
    fs::write(&file, "old").unwrap();
    let syncing = || FileSink::with_options(&file, FileOptions { sync: true, ..FileOptions::default() });
    assert_eq!(exit_code(&fetch(&Client::new(), &url, &options(), syncing())), 18);
    assert_eq!(fs::read(&file).unwrap(), b"old");
    assert_success(&fetch(&Client::new(), &url, &options(), syncing()));
    assert_same(&fs::read(&file).unwrap(), &all());
    assert_eq!((origin.seen("broken").twice(), names(dir.path())), (0, vec!["file".to_owned()]));
}

/// Starts a server that announces a body of 1 GiB and closes the connection after 20 MiB.
fn peer_announcing_1_gib(etag: &str) -> H1Peer {
    let head = format!("HTTP/1.1 200 OK\r\n{etag}Accept-Ranges: bytes\r\nContent-Length: {}\r\n\r\n", 1_u64 << 30);
    H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send([head.as_bytes(), &vec![b'x'; 20 << 20]].concat())])
}

#[test]
fn failed_download_reserves_only_received_bytes() {
    // On tmpfs as well, where reserved space is memory.
    for place in [std::env::temp_dir(), PathBuf::from("/dev/shm")] {
        let Ok(dir) = TempDir::new_in(&place) else { continue };
        let file = dir.path().join("file");
        let peer = peer_announcing_1_gib("ETag: \"x\"\r\n");
        assert_eq!(exit_code(&fetch(&Client::new(), &peer.url("/"), &options(), FileSink::new(&file))), 18);
        let beside = PartialFile::partial_path(&file).unwrap();
        assert_eq!(names(dir.path()), [".file.haul-part"]);
        let metadata = fs::metadata(&beside).unwrap();
        assert_eq!(metadata.len(), (1 << 30) + 2 * SLOT_SIZE, "the note can be found");
        let taken = metadata.blocks() * 512;
        assert!((20 * MIB..21 * MIB).contains(&taken), "{} takes {taken}", place.display());
        // A download that cannot be resumed leaves nothing.
        let peer = peer_announcing_1_gib("");
        let other = dir.path().join("other");
        assert_eq!(exit_code(&fetch(&Client::new(), &peer.url("/"), &options(), FileSink::new(other))), 18);
        assert_eq!(names(dir.path()), [".file.haul-part"]);
    }
}

#[test]
fn announced_length_is_reserved_in_steps() {
    let (_dir, _, beside) = download_paths();
    let target = Target::parse("http://h/x").unwrap();
    let validator = Validator::strong(Some(b"\"x\""), None, None).unwrap();
    let total = 1 << 30;
    let partial = Arc::new(PartialFile::create(&beside, 0o666, &target, total, &validator, false).unwrap());
    let taken = || fs::metadata(&beside).unwrap().blocks() * 512;
    let slack = 256 << 10;
    assert!(taken() <= slack, "{} before the first byte", taken());
    let mut writer = partial.writer(0..total).unwrap();
    let mut written = 0;
    for (until, most) in [(1, 16), (15, 16), (16, 48), (40, 48), (48, 112)] {
        while written < until * MIB {
            writer.write(&vec![b'x'; MIB as usize]).unwrap();
            written += MIB;
        }
        assert!(taken() <= most * MIB + slack, "{until} MiB: {}", taken());
    }
}

/// Checks that a batch requests each missing range of a partial file, as other fetches do.
#[test]
fn batch_completes_a_partial_file() {
    let origin = origin();
    let (dir, file, beside) = download_paths();
    let path = origin.serve("batch", FaultPlan::default());
    leave_partial_file(&beside, &origin.url(&path), "\"1-0\"", &[1..1000, MIB..2 * MIB]);
    let (url, output) = (origin.url(&path), file.clone());
    common::with_time_limit("batch", move || {
        let client = Client::new();
        let batch = client.batch(BatchOptions::default());
        batch.submit_into(client.get(&url).decode(false).build().unwrap(), Box::new(FileSink::new(&output)));
        let finished = batch.next().unwrap().expect("a result");
        assert_success(finished.outcome());
    });
    assert_same(&fs::read(&file).unwrap(), &all());
    assert_eq!(ranges(&origin.seen("batch")), ["bytes=0-0", "bytes=1000-1048575", "bytes=2097152-"]);
    assert_eq!(names(dir.path()), ["file"]);
}

/// Checks that an error page may replace the file whose content an earlier run has begun.
#[test]
fn error_page_replaces_a_partial_file() {
    let peer = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone"),
    ]);
    let (_dir, file, beside) = download_paths();
    leave_partial_file(&beside, &peer.url("/"), "\"1-0\"", &[0..1000]);
    let outcome = fetch(&Client::new(), &peer.url("/"), &options(), FileSink::new(&file));
    assert_success(&outcome);
    assert_eq!((outcome.facts.status, fs::read(&file).unwrap()), (404, b"gone".to_vec()));
}

/// Checks a server that answers the request for the second missing range with the whole content.
#[test]
fn full_response_fills_only_the_missing_range() {
    let all = all();
    let head = |status: &str, more: &str, length: usize| {
        ScriptStep::send(format!("HTTP/1.1 {status}\r\nETag: \"1-0\"\r\n{more}Content-Length: {length}\r\n\r\n"))
    };
    let first = vec![
        ScriptStep::ReadHead,
        head("206 Part", &format!("Content-Range: bytes 0-0/{SIZE}\r\n"), 1),
        ScriptStep::Send(all[..1].to_vec()),
        ScriptStep::Close,
    ];
    let whole = vec![ScriptStep::ReadHead, head("200 OK", "", all.len()), ScriptStep::Send(all.clone())];
    let peer = H1Peer::start(vec![first, whole]);
    let (_dir, file, beside) = download_paths();
    leave_partial_file(&beside, &peer.url("/"), "\"1-0\"", &[1..1000, 2000..SIZE]);
    assert_success(&fetch(&Client::new(), &peer.url("/"), &options(), FileSink::new(&file)));
    assert_same(&fs::read(&file).unwrap(), &all);
    assert_eq!(peer.connections(), 2);
}
