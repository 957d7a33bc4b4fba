//! Tests of `haul job report`: the HTML page is complete, safe against hostile texts, and of
//! bounded size.

use crate::common;

use std::path::Path;

use common::{HAUL, program, run, run_in};
use rusqlite::{Connection, params};

/// Creates a job with these rows: URL, status, exit code, error, end in milliseconds since 1970,
/// and duration in microseconds.
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
fn job_report_has_counts_hosts_and_causes() {
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
fn job_report_escapes_hostile_texts() {
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
    assert!(page.contains("<b>50,000</b>"));
}

#[test]
fn report_of_an_empty_job_is_valid() {
    let dir = tempfile::tempdir().unwrap();
    job(dir.path(), std::iter::empty());
    assert!(report(dir.path()).contains("<b>0</b><span class=\"soft\">URLs</span>"));
}

/// A page with a script that shows the report at two widths, and checks what a reader relies on.
/// The script writes the problems that it finds into this page. The test replaces `TEXTS` and
/// `DARK`.
const CHECK: &str = r##"<!DOCTYPE html><meta charset="utf-8"><body><script>
const texts = TEXTS, dark = DARK, problems = [];
const check = (holds, what) => { if (!holds) problems.push(what); };
const judge = (frame, width) => {
  const page = frame.contentDocument, all = [...page.querySelectorAll("*")];
  check(page.scripts.length === 1 && page.styleSheets.length === 1, "a script or a style is not the page's own");
  const foreign = "img,iframe,object,embed,a,form,link,base,audio,video,foreignObject,[src],[href],[style]";
  check(page.querySelectorAll(foreign).length === 0, "an element is not the page's own");
  check(all.every((one) => one.getAttributeNames().every((name) => !name.startsWith("on"))), "a handler");
  check(page.title === "Job j" && !window.hacked, "a script of others has run");
  const cells = [...page.querySelectorAll("td.t")].map((cell) => cell.textContent);
  for (const text of texts) check(cells.includes(text), "no cell has " + text);
  const names = [...page.querySelectorAll("svg title")].map((title) => title.textContent);
  check(names.length > 0 && names.every((name) => texts.some((text) => name.startsWith(text))), "a title is another's");
  check(page.documentElement.scrollWidth <= width, "the page is wider than " + width);
  for (const chart of page.querySelectorAll(".chart, .numbers, p"))
    check(chart.getBoundingClientRect().right <= width, "a part is wider than " + width);
  check(page.querySelectorAll(".chart").length === 2, "a chart is missing");
  const back = dark ? "rgb(20, 24, 29)" : "rgb(255, 255, 255)";
  check(getComputedStyle(page.body).backgroundColor === back, "the colour");
  for (const table of page.querySelectorAll("table")) {
    const heads = [...table.tHead.rows[0].cells];
    for (const column of heads.keys()) {
      const isNumber = heads[column].className === "n";
      const order = () => [...table.tBodies[0].rows].map((row) => row.cells[column])
        .map((cell) => isNumber ? Number(cell.dataset.v) : cell.textContent);
      const sorted = (values) => values.toSorted(isNumber ? (a, b) => b - a : (a, b) => a.localeCompare(b));
      heads[column].click();
      check(order().join() === sorted(order()).join(), "a click does not sort " + heads[column].textContent);
      heads[column].click();
      check(order().join() === sorted(order()).toReversed().join(), "a second click does not reverse");
    }
  }
};
let left = 2;
for (const width of [390, 1100]) {
  const frame = document.createElement("iframe");
  Object.assign(frame, { src: "report.html", width, height: 900, frameBorder: 0 });
  frame.onload = () => {
    judge(frame, width);
    left -= 1;
    if (left === 0) document.body.append("problems: " + (problems.join("; ") || "none") + ".");
  };
  document.body.append(frame);
}
</script>"##;

/// Returns the name of the installed browser. `None` if no browser is installed, or if it cannot
/// run here.
fn browser() -> Option<&'static str> {
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let found = browsers.into_iter().find(|name| program(name).arg("--version").output().is_ok());
    found.or_else(|| common::installed("chromium", "the report in a browser"))
}

/// Opens a page in the browser, which runs in the directory `dir`. Returns what the browser has
/// printed and logged.
#[track_caller]
fn browse(browser: &str, dir: &Path, dark: bool, args: &[&str], page: &str) -> (String, String) {
    let mut command = program(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]);
    // So the script of a page may read the page in its frame, and time passes as fast as there is
    // work.
    command.args(["--allow-file-access-from-files", "--virtual-time-budget=20000"]);
    command.arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)));
    command.arg(format!("--user-data-dir={}", dir.join("profile").display())).args(args);
    command.arg(format!("file://{}", dir.join(page).display())).env("HOME", dir).current_dir(dir);
    let ran = run(&mut command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    (String::from_utf8_lossy(&ran.stdout).into_owned(), ran.stderr)
}

#[test]
fn browser_shows_hostile_report_texts_as_text() {
    let Some(browser) = browser() else { return };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let attack = "top.hacked = parent.hacked = document.title = 1";
    let urls = [
        format!("http://h/</title></svg><script>{attack}</script>"),
        format!("javascript:{attack}//\"><img src=x onerror='{attack}'>"),
        format!("http://<svg onload='{attack}'>/"),
        format!("http://h/--></style><script>{attack}</script>"),
        format!("http://h/&quot;' onmouseover='{attack}' style='position:fixed"),
        format!("http://h/<foreignObject><iframe srcdoc='<script>{attack}</script>'>"),
        format!("http://h/{}", "a".repeat(250)),
    ];
    let rows = urls.iter().cycle().take(70).enumerate().map(|(number, url)| {
        let (number, code) = (number as i64, if number % 3 == 0 { 22 } else { 0 });
        let error = if code == 0 { String::new() } else { url.clone() };
        (url.clone(), 500, code, error, 1_000_000 + number * 1000, 2000 + number * 37 % 90_000)
    });
    job(dir, rows);
    std::fs::write(dir.join("report.html"), report(dir)).unwrap();
    let texts = serde_json::to_string(&urls).unwrap().replace('<', "\\u003c");
    for dark in [false, true] {
        let check = CHECK.replace("TEXTS", &texts).replace("DARK", &dark.to_string());
        std::fs::write(dir.join("check.html"), check).unwrap();
        let (dom, log) = browse(browser, dir, dark, &["--dump-dom"], "check.html");
        assert!(dom.contains("problems: none."), "{dom}\n{log}");
        assert!(!log.contains("Content Security Policy") && !log.contains("Uncaught"), "{log}");
    }
}

/// Takes screenshots of the report as on a desktop and on a phone, in light and dark colours.
/// `HAUL_SCREENSHOTS=DIR` keeps two of them, which `docs/jobs.md` shows.
#[test]
fn browser_draws_report_in_light_and_dark() {
    let Some(browser) = browser() else { return };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let row = |number: i64| {
        let failed = number % 9 == 0;
        let (status, code, error) = match number % 27 {
            0 => (503, 22, "the server answered 503"),
            _ if failed => (404, 22, "the server answered 404"),
            _ => (200, 0, ""),
        };
        let time = 2_000 + number * 37 % 90_000;
        let ended = 1_000_000 + number * (number + 300) * 95 / 540 + number % 7 * 300;
        (format!("https://h{}.example/page/{number}", number % 5), status, code, error.to_owned(), ended, time)
    };
    job(dir, (0..600).map(row));
    let command = r#"[{"name":"output","value":"{host}/{path}"},{"name":"input-file","value":"pages.txt"}]"#;
    let settings = "UPDATE job SET command = ?1, directory = '/srv/mirror', created = 1767225600000";
    Connection::open(dir.join("j")).unwrap().execute(settings, [command]).unwrap();
    std::fs::write(dir.join("report.html"), report(dir)).unwrap();
    // A window of a browser may not be as narrow as a phone, but a frame may.
    let phone = "<!DOCTYPE html><body style='margin:0'><iframe src=report.html width=390 height=844 frameborder=0>";
    std::fs::write(dir.join("phone.html"), phone).unwrap();
    for (page, size) in [("report.html", "1100,1000"), ("phone.html", "390,844")] {
        let pictures = [false, true].map(|dark| {
            let picture =
                dir.join(format!("{}{}.png", page.trim_end_matches(".html"), if dark { "-dark" } else { "" }));
            let shot = format!("--screenshot={}", picture.display());
            let (_, log) = browse(browser, dir, dark, &[&shot, &format!("--window-size={size}")], page);
            assert!(!log.contains("Content Security Policy") && !log.contains("Uncaught"), "{log}");
            std::fs::read(picture).unwrap_or_else(|error| panic!("{error}: {log}"))
        });
        assert!(pictures.iter().all(|picture| picture.starts_with(b"\x89PNG")) && pictures[0] != pictures[1]);
    }
    if let Some(kept) = std::env::var_os("HAUL_SCREENSHOTS") {
        for (from, to) in [("report.png", "job-report.png"), ("phone-dark.png", "job-report-phone.png")] {
            std::fs::copy(dir.join(from), Path::new(&kept).join(to)).unwrap();
        }
    }
}
