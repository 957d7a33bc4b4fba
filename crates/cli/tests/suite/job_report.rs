//! Tests of `haul job report`: the page is whole, safe against hostile texts, and of bounded size.

use crate::common;

use std::path::Path;
use std::process::Stdio;

use common::{HAUL, program, run_in};
use rusqlite::{Connection, params};

/// Makes a job with these rows: URL, status, exit code, error, end in milliseconds, time in microseconds.
fn job(dir: &Path, rows: impl Iterator<Item = (String, u16, u8, String, i64, i64)>) {
    let origin = common::origin();
    run_in(dir, HAUL, &["--job", "j", "-s", "-o", "a", &origin.url("/small")]).ok();
    let mut job = Connection::open(dir.join("j")).unwrap();
    let transaction = job.transaction().unwrap();
    transaction.execute("DELETE FROM url", []).unwrap();
    transaction.execute("UPDATE run SET started = 1000000, ended = 1100000", []).unwrap();
    let insert = "INSERT INTO url (id, state, url, status, exit_code, error, attempts, redirects, size, ended, \
                  connected_us, first_byte_us, total_us, commit_number) \
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, 0, 1000, ?7, 100, ?8, ?9, 1)";
    {
        let mut insert = transaction.prepare(insert).unwrap();
        for (id, (url, status, code, error, ended, total)) in rows.enumerate() {
            let state = if code == 0 { "done" } else { "failed" };
            insert.execute(params![id as i64, state, url, status, code, error, ended, total / 2, total]).unwrap();
        }
    }
    transaction.commit().unwrap();
}

fn report(dir: &Path) -> String {
    run_in(dir, HAUL, &["job", "report", "j"]).text()
}

#[test]
fn report_has_numbers_hosts_and_causes() {
    let dir = tempfile::tempdir().unwrap();
    job(
        dir.path(),
        (0..100).map(|number| {
            let failed = number % 10 == 0;
            let (status, code, error) = if failed { (503, 22, "the server answered 503") } else { (200, 0, "") };
            (
                format!("http://h{}.example/{number}", number % 3),
                status,
                code,
                error.to_owned(),
                1_000_000 + number * 1000,
                5000 + number,
            )
        }),
    );
    let page = report(dir.path());
    for text in [
        "<b>100</b><span class=\"soft\">URLs</span>",
        "<b>10</b><span class=\"soft\">failed</span>",
        "the server answered 503",
        "h0.example",
        "10.0 %",
        "<svg",
        "prefers-color-scheme: dark",
        "name=\"viewport\"",
    ] {
        assert!(page.contains(text), "{text} is missing");
    }
    assert!(page.ends_with("</html>\n"));
}

#[test]
fn hostile_texts_stay_texts_in_the_report() {
    let dir = tempfile::tempdir().unwrap();
    let hostile = [
        "http://h/</title><script>alert(1)</script>",
        "javascript:alert(1)//\"><img src=x onerror=alert(1)>",
        "http://<svg onload=alert(1)>/",
        "http://h/\u{202e}\u{1b}[31m'\"&amp;",
        "http://h/--></style><script>",
    ];
    job(
        dir.path(),
        hostile.iter().map(|text| ((*text).to_owned(), 500, 22, format!("it says {text}"), 1_000_000, 1000)),
    );
    let page = report(dir.path());
    // The only script and style are the page's own, which its policy names by their digests.
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (1, 1));
    assert_eq!((page.matches("<style").count(), page.matches("</style").count()), (1, 1));
    for text in ["<img", "onload=alert(1)>", "<svg onload", "\u{202e}", "\u{1b}", "href="] {
        assert!(!page.contains(text), "{text:?} is in the page");
    }
    assert!(page.contains("default-src 'none'") && !page.contains("unsafe-inline"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!page.contains("src=\"") && !page.contains("url("), "the page needs no other file");
}

#[test]
fn report_of_many_urls_and_hosts_is_small() {
    let dir = tempfile::tempdir().unwrap();
    job(
        dir.path(),
        (0..50_000).map(|number: i64| {
            let url = format!("http://host-{}.example/{}", number % 20_000, "x".repeat(200));
            (url, 200, 0, String::new(), 1_000_000 + number, 1000 + number % 777)
        }),
    );
    let page = report(dir.path());
    assert!(page.len() < 3 << 20, "{} bytes", page.len());
    assert!(page.contains("<b>50000</b>"));
}

#[test]
fn report_of_an_empty_job_is_a_page() {
    let dir = tempfile::tempdir().unwrap();
    job(dir.path(), std::iter::empty());
    assert!(report(dir.path()).contains("<b>0</b><span class=\"soft\">URLs</span>"));
}

/// Renders the page in a browser, if one is installed. `HAUL_SCREENSHOT=FILE` keeps the picture.
#[test]
fn browser_shows_the_report_without_errors() {
    let browsers = ["chromium", "chromium-browser", "google-chrome", "headless_shell"];
    let Some(browser) = browsers.into_iter().find(|name| common::installed(name, "the report in a browser").is_some())
    else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    job(
        dir.path(),
        (0..600).map(|number| {
            let code = if number % 9 == 0 { 22 } else { 0 };
            let status = if code == 0 { 200 } else { 404 };
            (
                format!("https://h{}.example/page/{number}", number % 5),
                status,
                code,
                String::new(),
                1_000_000 + number * 150,
                2000 + number * 37 % 90_000,
            )
        }),
    );
    std::fs::write(dir.path().join("report.html"), report(dir.path())).unwrap();
    let picture = dir.path().join("report.png");
    let page = format!("file://{}", dir.path().join("report.html").display());
    let shot = format!("--screenshot={}", picture.display());
    let mut command = program(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1100,1600", "--enable-logging=stderr"]);
    let ran = command.args([&shot, &page]).env("HOME", dir.path()).stdout(Stdio::null()).output().unwrap();
    let log = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && picture.exists(), "{log}");
    assert!(!log.contains("Content Security Policy") && !log.contains("Uncaught"), "{log}");
    if let Some(kept) = std::env::var_os("HAUL_SCREENSHOT") {
        std::fs::copy(&picture, kept).unwrap();
    }
}
