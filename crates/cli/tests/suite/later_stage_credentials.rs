//! Tests of the credentials of later stages (`--then`): only the origin of the first URL may receive
//! them, even if the run does not request the first URL.

use crate::common;

use std::fs;
use std::path::Path;

use common::gated_site::GatedSite;
use common::{HAUL, eventually, haul, run_in};
use rusqlite::Connection;
use testkit::origin::Origin;
use testkit::site::GeneratedSite;

/// Options that fetch the links of the pages, with credentials.
const THEN: [&str; 6] = ["--extract", r"\((http[^)]+)\)", "--then", "{}", "-u", "user:hunter2"];

fn origin() -> Origin {
    Origin::builder().site(GeneratedSite::scaled(3, 1).cached()).start().unwrap()
}

/// Returns the URL of a page of `origin` with a link to another page of it.
fn page_with_link(origin: &Origin) -> String {
    origin.url(&format!("/echo?({})", origin.url("/echo/linked")))
}

/// Returns, for each request of the linked page, whether it had credentials.
fn credentials(origin: &Origin) -> Vec<bool> {
    let log = origin.log();
    let linked = log.iter().filter(|request| request.target == "/echo/linked");
    linked.map(|request| request.header("authorization").is_some()).collect()
}

/// Makes the transfers of the later stage of the job `j` unfinished again.
fn repeat_later_stage(dir: &Path) {
    let job = Connection::open(dir.join("j")).unwrap();
    assert_eq!(job.execute("UPDATE url SET state = 'again' WHERE stage = 1", []).unwrap(), 1);
}

#[test]
fn skipped_or_invalid_first_url_lends_no_trust() {
    let (dir, first) = (tempfile::tempdir().unwrap(), origin());
    let dir = dir.path();
    fs::write(dir.join("1"), "present").unwrap();
    for (url, code) in [(first.url("/small/1"), 0), ("http://127.0.0.1:99999/x".to_owned(), 3)] {
        let other = origin();
        let second = page_with_link(&other);
        let args = ["-g", "-sS", "--skip-existing", "-o", "{name}", &url, "-o", "{name}", &second];
        let ran = run_in(dir, HAUL, &[&args[..], &THEN, &["--out-null"]].concat());
        assert_eq!((ran.code, credentials(&other)), (code, vec![false]), "{url}: {}", ran.stderr);
        fs::remove_file(dir.join("echo")).unwrap();
    }
}

#[test]
fn resumed_job_trusts_only_its_first_url() {
    let (dir, gated, other) = (tempfile::tempdir().unwrap(), GatedSite::start(0), origin());
    let dir = dir.path();
    let (first, second) = (gated.site.url("/1"), page_with_link(&other));
    let args = ["--job", "j", "-g", "-sS", "--unordered", "--unique", &first, &second];
    let mut child = haul([&args[..], &THEN, &["--out-null"]].concat()).current_dir(dir).spawn().unwrap();
    let done = "SELECT count(*) FROM url WHERE stage = 1 AND state = 'done'";
    eventually("the linked page is noted", || {
        let job = Connection::open_with_flags(dir.join("j"), rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE);
        job.and_then(|job| job.query_row(done, [], |row| row.get(0))).unwrap_or(0) == 1
    });
    child.kill().unwrap();
    child.wait().unwrap();
    repeat_later_stage(dir);
    gated.open();
    run_in(dir, HAUL, &["--job", "j", "-sS", "-u", "user:hunter2"]).ok();
    assert_eq!(credentials(&other), [false, false]);
}

#[test]
fn resumed_job_sends_credentials_to_its_first_origin() {
    let (dir, first) = (tempfile::tempdir().unwrap(), origin());
    let dir = dir.path();
    let url = page_with_link(&first);
    let args = ["--job", "j", "-g", "-sS", &url];
    run_in(dir, HAUL, &[&args[..], &THEN, &["--out-null"]].concat()).ok();
    repeat_later_stage(dir);
    run_in(dir, HAUL, &["--job", "j", "-sS", "-u", "user:hunter2"]).ok();
    assert_eq!(credentials(&first), [true, true]);
}
