//! Tests of `--refresh`: conditional requests for the URLs of a job, and the effects on its files.

use crate::common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use common::daily_site::DailySite;
use common::{HAUL, eventually, haul, list, run_in};
use testkit::h1_peer::{H1Peer, ScriptStep};

/// A test site whose pages have versions. Pages with an even number have entity tags, the other
/// pages have dates.
struct ChangingSite {
    address: String,
    state: Arc<(Mutex<SiteState>, Condvar)>,
}

/// The pages of a [`ChangingSite`], and the requests that it has received.
#[derive(Default)]
struct SiteState {
    /// The version of each page; 0 for a page that no longer exists.
    versions: Vec<u32>,
    /// The requests: the number of the page, the condition, and the status of the response.
    requests: Vec<(usize, Option<String>, u16)>,
    /// The number of the first page whose responses are delayed; `None` if no response is delayed.
    waits_from: Option<usize>,
}

impl ChangingSite {
    fn start(pages: usize) -> ChangingSite {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = SiteState { versions: vec![1; pages], ..SiteState::default() };
        let state = Arc::new((Mutex::new(state), Condvar::new()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(&stream, &shared));
            }
        });
        ChangingSite { address, state }
    }

    fn change(&self, change: impl FnOnce(&mut SiteState)) {
        change(&mut self.state.0.lock().unwrap());
        self.state.1.notify_all();
    }

    /// Returns the requests since the last call, sorted.
    fn requests(&self) -> Vec<(usize, Option<String>, u16)> {
        let mut requests = std::mem::take(&mut self.state.0.lock().unwrap().requests);
        requests.sort();
        requests
    }

    fn list(&self, dir: &Path) {
        let pages = self.state.0.lock().unwrap().versions.len();
        list(dir, "list", (0..pages).map(|page| format!("http://{}/{page}", self.address)));
    }
}

fn serve(stream: &TcpStream, (state, changed): &(Mutex<SiteState>, Condvar)) -> Option<()> {
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let page: usize = head.split(' ').nth(1)?.trim_start_matches('/').parse().ok()?;
        let field = |name: &str| {
            let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let condition = field("if-none-match").or_else(|| field("if-modified-since"));
        let mut state = changed
            .wait_while(state.lock().unwrap(), |state| state.waits_from.is_some_and(|from| page >= from))
            .unwrap();
        let version = state.versions[page];
        let (name, validator) = match page % 2 {
            0 => ("ETag", format!("\"v{version}\"")),
            _ => ("Last-Modified", format!("Sun, 0{version} Nov 2020 08:49:37 GMT")),
        };
        let (status, body) = match version {
            0 => (404, String::new()),
            _ if condition.as_ref() == Some(&validator) => (304, String::new()),
            _ => (200, format!("page {page}, version {version}\n")),
        };
        state.requests.push((page, condition, status));
        drop(state);
        let length = if status == 304 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        write!(writer, "HTTP/1.1 {status} X\r\n{name}: {validator}\r\n{length}\r\n{body}").ok()?;
    }
}

fn content(dir: &Path, page: usize) -> String {
    fs::read_to_string(dir.join(page.to_string())).unwrap()
}

const ARGS: [&str; 6] = ["--job", "j", "-O", "--remote-name-all", "--input-file", "list"];

#[test]
fn refresh_fetches_only_what_has_changed() {
    let (dir, site) = (tempfile::tempdir().unwrap(), ChangingSite::start(6));
    let dir = dir.path();
    site.list(dir);
    run_in(dir, HAUL, &ARGS).ok();
    assert!(site.requests().iter().all(|(_, condition, status)| (condition, *status) == (&None, 200)));
    let before = fs::metadata(dir.join("0")).unwrap().modified().unwrap();
    site.change(|state| {
        state.versions[2] = 2;
        state.versions[3] = 2;
        state.versions[4] = 0;
    });
    let ran = run_in(dir, HAUL, &["--job", "j", "--refresh", "--retry", "0"]);
    assert_eq!(ran.code, 22);
    assert!(ran.stderr.contains("Note: refreshed: 2 changed, 3 fresh, 1 vanished"), "{}", ran.stderr);
    let statuses: Vec<u16> = site
        .requests()
        .iter()
        .map(|(_, condition, status)| {
            assert!(condition.is_some());
            *status
        })
        .collect();
    assert_eq!(statuses, [304, 304, 200, 200, 404, 304]);
    for (page, version) in [(0, 1), (1, 1), (2, 2), (3, 2), (4, 1), (5, 1)] {
        assert_eq!(content(dir, page), format!("page {page}, version {version}\n"));
    }
    assert_eq!(fs::metadata(dir.join("0")).unwrap().modified().unwrap(), before);
    for (option, pages) in [("--changed", &[2, 3][..]), ("--vanished", &[4]), ("--fresh", &[0, 1, 5])] {
        let expected: String = pages.iter().map(|page| format!("http://{}/{page}\n", site.address)).collect();
        assert_eq!(run_in(dir, HAUL, &["job", "list", option, "j"]).text(), expected, "{option}");
    }
    let status = run_in(dir, HAUL, &["job", "status", "j"]).text();
    assert!(status.contains("refresh    2 changed, 3 fresh, 1 vanished"), "{status}");
    // Without --refresh nothing is requested, and the next refresh has the new validators.
    assert_eq!(run_in(dir, HAUL, &ARGS).code, 22);
    assert!(site.requests().is_empty());
    site.change(|state| state.versions[4] = 1);
    let ran = run_in(dir, HAUL, &["--job", "j", "--refresh"]);
    assert!(ran.stderr.contains("Note: refreshed: 6 fresh"), "{}", ran.stderr);
    assert_eq!(ran.code, 0);
}

#[test]
fn refresh_fetches_missing_or_altered_files_completely() {
    let (dir, site) = (tempfile::tempdir().unwrap(), ChangingSite::start(4));
    let dir = dir.path();
    site.list(dir);
    run_in(dir, HAUL, &ARGS).ok();
    site.requests();
    fs::remove_file(dir.join("1")).unwrap();
    fs::write(dir.join("2"), "cut").unwrap();
    assert_eq!(run_in(dir, HAUL, &["--job", "j", "-s", "--refresh"]).code, 0);
    let statuses: Vec<u16> = site.requests().iter().map(|(.., status)| *status).collect();
    assert_eq!(statuses, [304, 200, 200, 304]);
    assert_eq!(content(dir, 1), "page 1, version 1\n");
    assert_eq!(content(dir, 2), "page 2, version 1\n");
}

#[test]
fn killed_refresh_is_continued_by_next_run() {
    let (dir, site) = (tempfile::tempdir().unwrap(), ChangingSite::start(8));
    let dir = dir.path();
    site.list(dir);
    run_in(dir, HAUL, &ARGS).ok();
    site.requests();
    site.change(|state| {
        state.versions = vec![2; 8];
        state.waits_from = Some(5);
    });
    let mut child = haul(["--job", "j", "-s", "--refresh"]).current_dir(dir).spawn().unwrap();
    let refreshed = "SELECT count(*) FROM url WHERE refresh_round = 1";
    eventually("five are noted", || {
        let count =
            rusqlite::Connection::open(dir.join("j")).and_then(|job| job.query_row(refreshed, [], |row| row.get(0)));
        count.is_ok_and(|count: i64| count == 5)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    site.change(|state| state.waits_from = None);
    site.requests();
    let ran = run_in(dir, HAUL, &["--job", "j", "--refresh"]);
    assert!(ran.stderr.contains("Note: refreshed: 8 changed"), "{}", ran.stderr);
    let pages: Vec<usize> = site.requests().iter().map(|(page, ..)| *page).filter(|page| *page < 5).collect();
    assert_eq!(pages, [0_usize; 0]);
    for page in 0..8 {
        assert_eq!(content(dir, page), format!("page {page}, version 2\n"));
    }
}

#[test]
fn refresh_is_complete_despite_a_local_failure() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let site = DailySite::start(|target, day| Some(format!("{target}, day {day}\n")));
    // Two URLs have one file name, and another file becomes a directory.
    list(dir, "list", ["/a", "/b", "/c", "/a"].map(|target| site.url(target)));
    assert_eq!(run_in(dir, HAUL, &ARGS).code, 23);
    fs::remove_file(dir.join("b")).unwrap();
    fs::create_dir(dir.join("b")).unwrap();
    for day in 2..4 {
        site.set_day(day);
        let ran = run_in(dir, HAUL, &["--job", "j", "--refresh"]);
        assert_eq!(ran.code, 23);
        assert!(ran.stderr.contains("Note: refreshed: 2 changed\n"), "{}", ran.stderr);
        for page in ["a", "c"] {
            assert_eq!(fs::read_to_string(dir.join(page)).unwrap(), format!("/{page}, day {day}\n"));
        }
    }
    let states = run_in(dir, HAUL, &["job", "list", "j"]).text();
    let states: Vec<&str> = states.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(states, ["done", "again", "done", "failed"]);
}

#[test]
fn refresh_sends_no_invalid_entity_tags() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let long = format!("\"{}\"", "e".repeat(100_000));
    for tag in ["*", "unquoted", "\"a\", \"b\"", &long] {
        let head = format!("HTTP/1.1 200 OK\r\nETag: {tag}\r\nContent-Length: 2\r\n\r\nok");
        let reply = || vec![ScriptStep::ReadHead, ScriptStep::send(&head)];
        let server = H1Peer::start(vec![reply(), reply()]);
        run_in(dir, HAUL, &["--job", "j", "-s", "--out-null", &server.url("/")]).ok();
        run_in(dir, HAUL, &["--job", "j", "-s", "--refresh"]).ok();
        assert!(!String::from_utf8_lossy(&server.received(1)).to_lowercase().contains("if-none-match"), "{tag:.20}");
        fs::remove_file(dir.join("j")).unwrap();
    }
}

#[test]
fn refresh_requests_the_pages_of_each_stage() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // On the second day, the index has another link, one page has changed, and one is gone.
    let site = DailySite::start(|target, day| match (target, day) {
        ("/index", _) => Some((1..4 + day).map(|page| format!("<{page}>")).collect()),
        ("/same", _) => Some("<2>".to_owned()),
        ("/page/1", 2..) => None,
        ("/page/2", _) => Some(format!("page 2, day {day}\n")),
        (page, _) => Some(format!("{page}\n")),
    });
    list(dir, "list", [site.url("/index"), site.url("/same")]);
    let then = site.url("/page/{}");
    let args = ["--job", "j", "-s", "--extract", "<(.)>", "--then", &then, "-o", "p-#1", "--input-file", "list"];
    run_in(dir, HAUL, &args).ok();
    let page = |number: usize| fs::read_to_string(dir.join(format!("p-{number}"))).ok();
    assert_eq!((page(2).unwrap().as_str(), page(4).unwrap().as_str(), page(5)), ("page 2, day 1\n", "/page/4\n", None));
    site.set_day(2);
    let ran = run_in(dir, HAUL, &["--job", "j", "--refresh"]);
    assert_eq!(ran.code, 22, "{}", ran.stderr);
    let found = "Note: refreshed: 2 changed, 3 fresh, 1 new, 1 vanished";
    assert!(ran.stderr.contains(found), "{}", ran.stderr);
    assert_eq!(page(1).unwrap(), "/page/1\n", "the file of a page that is gone stays");
    assert_eq!((page(2).unwrap().as_str(), page(5).unwrap().as_str()), ("page 2, day 2\n", "/page/5\n"));
    let vanished = run_in(dir, HAUL, &["job", "list", "--vanished", "j"]).text();
    assert_eq!(vanished, format!("{}\n", site.url("/page/1")));
    let ran = run_in(dir, HAUL, &["--job", "j", "--refresh"]);
    assert!(ran.stderr.contains("Note: refreshed: 6 fresh, 1 vanished"), "{}", ran.stderr);
}

#[test]
fn refresh_prints_the_values_of_changed_pages() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let site = DailySite::start(|target, day| {
        let day = if target == "/1" { day } else { 1 };
        Some((0..=day).map(|value| format!("<{target} {value}>")).collect())
    });
    list(dir, "list", [site.url("/1"), site.url("/2")]);
    let values = |options: &[&str]| {
        let args =
            [&["--job", "j", "-s", "--extract", "<(.*?)>", "--input-file", "list", "-o", "out"], options].concat();
        site.set_day(1);
        run_in(dir, HAUL, &args).ok();
        site.set_day(2);
        run_in(dir, HAUL, &["--job", "j", "-s", "--refresh"]).ok();
        fs::remove_file(dir.join("j")).unwrap();
        fs::read_to_string(dir.join("out")).unwrap().replace('\n', ",")
    };
    let first = "/1 0,/1 1,/2 0,/2 1,";
    assert_eq!(values(&[]), format!("{first}/1 0,/1 1,/1 2,"));
    assert_eq!(values(&["--unique"]), format!("{first}/1 2,"));
    assert_eq!(values(&["--unique", "--sort"]), "/1 0,/1 1,/1 2,/2 0,/2 1,");
}

#[test]
fn refresh_with_incompatible_options_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (args, text) in [
        (&["--refresh", "http://h/"][..], "only a job knows what was fetched before"),
        (&["--job", "j", "--refresh", "--skip-existing", "-O", "http://h/x"], "--skip-existing leaves nothing"),
        (&["--job", "j", "--refresh", "--paginate-query", "p", "http://h/?p=1"], "a listing has no validators"),
        (&["--job", "j", "--refresh", "-z", "2020-01-01", "http://h/"], "the job has conditions of its own"),
    ] {
        let refused = run_in(dir.path(), HAUL, args);
        assert_eq!(refused.code, 2, "{args:?}");
        assert!(refused.stderr.contains(text), "{args:?}: {}", refused.stderr);
    }
}
