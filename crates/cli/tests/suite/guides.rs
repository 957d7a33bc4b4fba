//! Runs the examples of the guides as they are printed. An example is a block of shell commands in
//! a document, which runs in an empty directory; `$site` is the address of the test's site. If a
//! block of plain text follows, it is what the commands print.

use crate::common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use common::{HAUL, installed, program, run};

/// A site with what the recipes need: a shop, a login, an API, listings, a sitemap, files, and
/// broken links.
struct GuideSite {
    address: String,
    is_over: Arc<AtomicBool>,
}

impl Drop for GuideSite {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // It wakes the thread that accepts.
        let _ = TcpStream::connect(&self.address);
    }
}

/// A request that the site has received.
struct SiteRequest {
    method: String,
    path: String,
    head: String,
    body: String,
}

impl GuideSite {
    fn start() -> GuideSite {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let is_over = Arc::new(AtomicBool::new(false));
        let (ends, site) = (Arc::clone(&is_over), format!("http://{address}"));
        let visits = Arc::new(Mutex::new(Vec::new()));
        thread::spawn(move || {
            for stream in listener.incoming().flatten().take_while(|_| !ends.load(Ordering::SeqCst)) {
                let (site, visits) = (site.clone(), Arc::clone(&visits));
                thread::spawn(move || serve(&stream, &site, &visits));
            }
        });
        GuideSite { address, is_over }
    }
}

/// Serves the requests of one connection. Returns `None` at its end.
fn serve(mut stream: &TcpStream, site: &str, visits: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let lower = head.to_ascii_lowercase();
        let length = lower.split_once("content-length: ").and_then(|(_, rest)| rest.split("\r\n").next()?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).ok()?;
        let mut words = head.split(' ');
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let body = String::from_utf8_lossy(&body).into_owned();
        let is_first = {
            let mut visits = visits.lock().unwrap();
            let is_first = !visits.contains(&path);
            visits.push(path.clone());
            is_first
        };
        let (status, fields, content) = reply(&SiteRequest { method, path, head, body }, site, is_first);
        let length = content.len();
        write!(stream, "HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\n\r\n{content}").ok()?;
    }
}

/// Returns the status, the header fields and the body of the reply to a request. `is_first` is true
/// for the first request of a path.
fn reply(request: &SiteRequest, site: &str, is_first: bool) -> (&'static str, &'static str, String) {
    const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";
    const JSON: &str = "Content-Type: application/json\r\n";
    let html = |text: &str| ("200 OK", HTML, text.to_owned());
    let items = [("Chair, red", "10.50"), ("Table", "99.00"), ("Lamp", "7.25")];
    let item = |number: &str| items.get(number.parse::<usize>().ok()?.checked_sub(1)?);
    match (request.method.as_str(), request.path.as_str()) {
        ("GET" | "HEAD", "/shop") => {
            let link = |number| format!("<li><a href=\"items/{number}\">item {number}</a></li>\n");
            html(&format!("<ul>\n{}</ul>\n", (1..=3).map(link).collect::<String>()))
        }
        ("GET" | "HEAD", "/news") => {
            html("<ul><li><a href=\"items/1\">1</a></li></ul><a rel=\"next\" href=\"?page=2#top\">older</a>\n")
        }
        ("GET" | "HEAD", "/news?page=2") => {
            html("<ul><li><a href=\"/items/2\">2</a></li><li><a href=\"/items/3\">3</a></li></ul>\n")
        }
        ("GET" | "HEAD", "/sitemap.xml") => {
            let entry = |number| format!("<url><loc>{site}/items/{number}</loc></url>\n");
            let entries: String = (1..=3).map(entry).collect();
            ("200 OK", "Content-Type: application/xml\r\n", format!("<urlset>\n{entries}</urlset>\n"))
        }
        ("GET" | "HEAD", "/links") => {
            let link = |path| format!("<a href=\"{path}\">{path}</a>\n");
            html(&["items/1", "/items/9#top", "/shop", "mailto:me@h.example"].map(link).concat())
        }
        ("GET" | "HEAD", "/flaky/2") if is_first => ("500 Internal Server Error", HTML, "try again\n".to_owned()),
        ("GET" | "HEAD", path) if path.starts_with("/flaky/") => html(&format!("page {path}\n")),
        ("GET", "/login") => {
            let fields = "Set-Cookie: session=s1; Path=/; HttpOnly\r\nContent-Type: text/html\r\n";
            ("200 OK", fields, "<form><input name=\"csrf\" value=\"t0k&amp;n\"></form>".replace("&amp;", "-"))
        }
        ("POST", "/login") => {
            let is_right = request.head.contains("session=s1") && request.body == "csrf=t0k-n&user=me&password=word";
            match is_right {
                true => ("302 Found", "Set-Cookie: session=s2; Path=/\r\nLocation: /account\r\n", String::new()),
                false => ("403 Forbidden", HTML, "wrong token\n".to_owned()),
            }
        }
        ("GET", "/account") if request.head.contains("session=s2") => html("<h1>Hello, me</h1>\n"),
        ("GET", "/account") => ("403 Forbidden", HTML, "log in first\n".to_owned()),
        ("GET", path) if path.starts_with("/api/items?page=") => {
            let page: usize = path.trim_start_matches("/api/items?page=").parse().unwrap_or(0);
            let Some((name, price)) = page.checked_sub(1).and_then(|at| items.get(at)) else {
                return ("404 Not Found", JSON, "{\"error\": \"no such page\"}\n".to_owned());
            };
            let next = if page < items.len() { format!("\"/api/items?page={}\"", page + 1) } else { "null".to_owned() };
            let json = format!("{{\"items\": [{{\"name\": \"{name}\", \"price\": {price}}}], \"next\": {next}}}\n");
            ("200 OK", JSON, json)
        }
        ("POST", "/api/items") => ("201 Created", JSON, format!("{{\"got\": {}}}\n", request.body)),
        ("GET" | "HEAD", path) => match path.strip_prefix("/items/").and_then(item) {
            Some((name, price)) => html(&format!("<h1>{name}</h1>\n<span class=\"price\">{price}</span>\n")),
            None => ("404 Not Found", HTML, "no such page\n".to_owned()),
        },
        _ => ("405 Method Not Allowed", HTML, String::new()),
    }
}

/// A block of shell commands in a document, and the output that follows it, if the document shows
/// it.
struct GuideExample {
    line: usize,
    commands: String,
    output: Option<String>,
}

fn examples(document: &str) -> Vec<GuideExample> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(document)).unwrap();
    let mut found: Vec<GuideExample> = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let block = block.join("\n") + "\n";
        match (language, found.last_mut()) {
            ("sh", _) => found.push(GuideExample { line: number + 1, commands: block, output: None }),
            ("text", Some(example)) if example.output.is_none() => example.output = Some(block),
            _ => {}
        }
    }
    found
}

#[track_caller]
fn run_examples(document: &str, needed: &[&'static str]) {
    if needed.iter().any(|name| installed(name, document).is_none()) {
        return;
    }
    let found = examples(document);
    assert!(!found.is_empty(), "{document} has no examples");
    let programs = Path::new(HAUL).parent().unwrap();
    for example in found {
        let (site, dir) = (GuideSite::start(), tempfile::tempdir().unwrap());
        let address = format!("http://{}", site.address);
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = program("bash");
        command.args(["-euo", "pipefail", "-c", &example.commands]).current_dir(dir.path());
        command.env("PATH", path).env("HOME", dir.path()).env("site", &address);
        let ran = run(&mut command);
        let place = format!("docs/{document}:{}", example.line);
        assert_eq!(ran.code, 0, "{place}: {}", ran.stderr);
        let printed = String::from_utf8(ran.stdout).unwrap().replace(&address, "https://example.com");
        match example.output {
            Some(expected) => assert_eq!(printed, expected, "{place}: {}", ran.stderr),
            None => assert!(!printed.is_empty(), "{place} prints nothing: {}", ran.stderr),
        }
    }
}

#[test]
fn recipes_run_as_printed() {
    run_examples("recipes.md", &["jq", "sha256sum", "sqlite3"]);
}

#[cfg(feature = "job")]
#[test]
fn examples_of_the_jobs_guide_run_as_printed() {
    run_examples("jobs.md", &["jq", "sha256sum", "sqlite3"]);
}

#[test]
#[cfg(feature = "warc")]
fn examples_of_the_archives_guide_run_as_printed() {
    run_examples("archives.md", &["jq", "zcat"]);
}

#[test]
fn examples_of_the_records_guide_run_as_printed() {
    run_examples("records.md", &["jq", "sha256sum", "sqlite3"]);
}

#[test]
fn examples_of_the_scale_guide_run_as_printed() {
    run_examples("scale-out.md", &["jq", "sha256sum", "parallel"]);
}
