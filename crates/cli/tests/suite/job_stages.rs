//! Tests of jobs with stages, listings and unique values. `job_kills.rs` kills such jobs at
//! random moments.

use crate::common;

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::Command;

use common::gated_site::GatedSite;
use common::small_site::SmallSite;
use common::{HAUL, eventually, haul, run_in};

fn appending(dir: &Path, args: &[&str]) -> Command {
    let out = OpenOptions::new().create(true).append(true).open(dir.join("out")).unwrap();
    let mut command = haul(args);
    command.current_dir(dir).stdout(out);
    command
}

fn count(dir: &Path, condition: &str) -> i64 {
    let query = format!("SELECT count(*) FROM url WHERE {condition}");
    rusqlite::Connection::open(dir.join("j")).and_then(|job| job.query_row(&query, [], |row| row.get(0))).unwrap_or(0)
}

/// Starts a site with an index page, which links to the first `count` pages of the site `pages`.
fn index(pages: &GatedSite, count: usize) -> SmallSite {
    let links: String = (0..count).map(|page| format!("<{}>\n", pages.site.url(&format!("/{page}")))).collect();
    SmallSite::start(move |target| (target == "/index").then(|| ("text/plain", links.clone().into_bytes())))
}

#[test]
fn killed_job_does_not_repeat_finished_stages() {
    let (dir, pages) = (tempfile::tempdir().unwrap(), GatedSite::start(10));
    let (dir, index) = (dir.path(), index(&pages, 20));
    let url = index.url("/index");
    let args = ["--job", "j", "-s", "--parallel-max", "4", "--extract", "<([^>]+)>", "--then", "{}", &url];
    let mut child = appending(dir, &args).spawn().unwrap();
    eventually("ten pages are noted", || count(dir, "stage = 1 AND state = 'done'") == 10);
    eventually("the index is noted", || count(dir, "stage = 0 AND state = 'done'") == 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(count(dir, "stage = 1 AND state = 'queued'"), 10);
    let status = run_in(dir, HAUL, &["job", "status", "--json", "j"]).text();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!((&status["done"], &status["left"], &status["total"]), (&11.into(), &10.into(), &1.into()));
    pages.open();
    assert!(appending(dir, &["--job", "j", "-s"]).status().unwrap().success());
    let expected: String = (0..20).map(|page| format!("page {page}\n")).collect();
    assert_eq!(fs::read_to_string(dir.join("out")).unwrap(), expected);
    assert_eq!(index.requests(), ["/index"]);
    for page in 0..10 {
        let target = format!("/{page}");
        assert_eq!(pages.site.requests().iter().filter(|request| **request == target).count(), 1, "{target}");
    }
}

#[test]
fn job_retry_repeats_stage_pages_with_their_values() {
    let (dir, pages) = (tempfile::tempdir().unwrap(), GatedSite::start(9));
    let dir = dir.path();
    pages.open();
    let links = format!("<{}>\n<{}>\n", pages.site.url("/1"), pages.site.url("/x"));
    let index = SmallSite::start(move |_| Some(("text/plain", links.clone().into_bytes())));
    let url = index.url("/");
    let args = ["--job", "j", "-s", "--extract", "<([^>]+)>", "--then", "{}", "-o", "f-{name}", &url];
    assert_eq!(appending(dir, &args).status().unwrap().code(), Some(22));
    assert_eq!(run_in(dir, HAUL, &["job", "list", "--failed", "j"]).text(), pages.site.url("/x\n"));
    run_in(dir, HAUL, &["job", "retry", "j"]).text();
    assert_eq!(appending(dir, &["--job", "j", "-s"]).status().unwrap().code(), Some(22));
    assert_eq!(pages.site.requests(), ["/1", "/x", "/x"]);
    assert_eq!(index.requests().len(), 1);
    run_in(dir, HAUL, &["job", "retry", "--all", "j"]).text();
    assert_eq!(appending(dir, &["--job", "j", "-s"]).status().unwrap().code(), Some(22));
    assert_eq!((index.requests().len(), pages.site.requests().len()), (2, 5));
}

#[test]
fn job_refuses_sort_depth_and_unordered_pages() {
    let dir = tempfile::tempdir().unwrap();
    for (options, text) in [
        (&["--extract", "a", "--sort"][..], "a job sorts unique values; add --unique"),
        (&["--extract", "a", "-w", "x", "--then", "http://h/{}"], "-w and -i belong to the last stage"),
        (&["--extract", "a", "--sort", "--then", "http://h/{}"], "--sort belongs to the last stage"),
        (&["--extract", "a", "--depth", "2"], "the levels of --depth cannot go on after a kill"),
        (&["--paginate-query", "page", "--unordered"], "the pages of a listing have an order"),
    ] {
        let refused = run_in(dir.path(), HAUL, &[&["--job", "j", "http://h/"], options].concat());
        assert_eq!(refused.code, 2);
        assert!(refused.stderr.contains(text), "{options:?}: {}", refused.stderr);
    }
}
