//! Runs the examples of the README and the guides as they are printed. An example is a block of
//! shell commands in a document, which runs in an empty directory. `$site` is the address of the
//! test site, and https://example.com leads to the test site through a proxy. If a block of plain
//! text follows, it is the output that the commands must print.

use crate::common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use testkit::test_certificates::TestCertificates;

use common::{HAUL, installed, program, run};

/// The host names in the guides, all of which lead to the test site.
const HOSTS: [&str; 5] = ["example.com", "api.example.com", "s3.example.com", "other.example", "h"];

/// A site with everything that the recipes need: a shop, a login, an API, listings, a sitemap,
/// files, and broken links.
pub(crate) struct GuideSite {
    address: String,
    /// The certificate authority of https://example.com in PEM.
    authority: String,
    is_over: Arc<AtomicBool>,
}

impl Drop for GuideSite {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // It wakes the thread that accepts.
        let _ = TcpStream::connect(&self.address);
    }
}

/// A request that the test site has received.
struct SiteRequest {
    method: String,
    path: String,
    head: String,
    body: String,
}

impl GuideSite {
    pub(crate) fn start() -> GuideSite {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let is_over = Arc::new(AtomicBool::new(false));
        let (ends, site) = (Arc::clone(&is_over), format!("http://{address}"));
        let visits = Arc::new(Mutex::new(Vec::new()));
        let identity = TestCertificates::for_names(&HOSTS);
        let tls = identity.server_config(&[b"http/1.1"]);
        thread::spawn(move || {
            for stream in listener.incoming().flatten().take_while(|_| !ends.load(Ordering::SeqCst)) {
                let (site, visits, tls) = (site.clone(), Arc::clone(&visits), Arc::clone(&tls));
                thread::spawn(move || serve_client(stream, &site, &visits, tls));
            }
        });
        GuideSite { address, authority: identity.ca_pem().to_owned(), is_over }
    }
}

/// Serves a connection to the site, or to its proxy, whose tunnels all lead to the site. Returns
/// `None` at the end of the connection.
fn serve_client(mut stream: TcpStream, site: &str, visits: &Mutex<Vec<String>>, tls: Arc<ServerConfig>) -> Option<()> {
    let mut first = [0; 16];
    stream.peek(&mut first).ok()?;
    if !first.starts_with(b"CONNECT ") {
        return serve(stream, site, visits, first.windows(5).any(|part| part == b" http"));
    }
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?;
    serve(StreamOwned::new(ServerConnection::new(tls).ok()?, stream), "https://example.com", visits, true)
}

/// Returns the page of a proxied host, which is the same for any path: links and a few elements, or
/// JSON. A listing ends after three pages.
fn any_page(request: &SiteRequest) -> (&'static str, &'static str, String) {
    const JSON: &str = "Content-Type: application/json\r\n";
    const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";
    match request.path.as_str() {
        "/7" => return ("404 Not Found", HTML, String::new()),
        "/8" if request.head.contains("example.net") => return ("403 Forbidden", HTML, String::new()),
        "/8" => return ("302 Found", "Location: http://example.net/8\r\n", String::new()),
        _ => {}
    }
    let query = request.path.split_once('?').map_or("", |(_, query)| query);
    let number = |name: &str| {
        let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        value.and_then(|value| value.parse::<u64>().ok()).unwrap_or(0)
    };
    if number("page") > 3 || number("offset") > 0 {
        return ("404 Not Found", JSON, "{}\n".to_owned());
    }
    let is_html = ["/list", "/sitemap", "/news", "/item/"].iter().any(|begin| request.path.starts_with(begin));
    if !is_html && (request.path.contains("api") || request.path.contains("items") || request.path.contains("events")) {
        let item = "{\"id\": 5, \"name\": \"Chair\", \"price\": 4, \"url\": \"https://example.com/items/1\"}";
        return ("200 OK", JSON, format!("{{\"items\": [{item}], \"id\": 5, \"next\": null, \"meta\": {{}}}}\n"));
    }
    let html = "<title>A page</title><meta name=\"description\" content=\"About it\"><h1>Chair</h1><h2>Red</h2>\n\
                <a class=\"item\" href=\"/item/5\">id=5</a> <a href=\"/news\">AS64500</a> 192.0.2.0/24\n";
    ("200 OK", HTML, html.to_owned())
}

/// Serves the requests of one connection. Returns `None` at the end of the connection.
fn serve(stream: impl Read + Write, site: &str, visits: &Mutex<Vec<String>>, is_proxied: bool) -> Option<()> {
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
        let (method, target) = (words.next()?.to_owned(), words.next()?);
        // A proxy gets the whole URL.
        let path = match target.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]).to_owned(),
            None => target.to_owned(),
        };
        let body = String::from_utf8_lossy(&body).into_owned();
        let is_first = {
            let mut visits = visits.lock().unwrap();
            let is_first = !visits.contains(&path);
            visits.push(path.clone());
            is_first
        };
        if path.ends_with("/half.iso") {
            // The rest never comes: a picture shows the progress.
            write!(reader.get_mut(), "HTTP/1.1 200 OK\r\nContent-Length: {HALF_ISO}\r\n\r\n").ok()?;
            reader.get_mut().write_all(&vec![b'x'; HALF_ISO / 2]).ok()?;
            reader.read_line(&mut head).ok()?;
            return None;
        }
        let request = SiteRequest { method, path, head, body };
        let (status, fields, content) = match reply(&request, site, is_first) {
            (status, ..) if is_proxied && status.starts_with("40") => any_page(&request),
            known => known,
        };
        let content = if request.path.ends_with(".tgz") { archive() } else { content.into_bytes() };
        let length = content.len();
        write!(reader.get_mut(), "HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\n\r\n").ok()?;
        reader.get_mut().write_all(&content).ok()?;
    }
}

/// The length, in bytes, that the test site announces for a file of which it sends only half.
const HALF_ISO: usize = 48 << 20;

/// Returns a compressed archive that contains no file.
fn archive() -> Vec<u8> {
    run(program("tar").args(["-cz", "-f", "-", "-T", "/dev/null"])).stdout
}

/// Returns the status, the header fields and the body of the response to a request. `is_first` is
/// true for the first request of a path.
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

/// A block of shell commands in a document, and the output that follows it in the document, if any.
struct GuideExample {
    line: usize,
    commands: String,
    output: Option<String>,
}

/// The beginning of a comment that precedes a block that is not run.
pub(crate) const NOT_RUN: &str = "<!-- not run: ";

/// The beginning of a comment that precedes a block and names the file of its test.
pub(crate) const TESTED_BY: &str = "<!-- tested by: ";

/// Returns the code block in a document that contains this text.
#[track_caller]
pub(crate) fn block_with(document: &str, text: &str) -> String {
    let guide = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document)).unwrap();
    let block = guide.split("```").skip(1).step_by(2).find(|block| block.contains(text));
    let block = block.unwrap_or_else(|| panic!("{document} has no block with {text}"));
    block.split_once('\n').expect("a language and lines").1.to_owned()
}

fn examples(document: &str) -> Vec<GuideExample> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document)).unwrap();
    let mut found: Vec<GuideExample> = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut before = "";
    while let Some((number, line)) = lines.next() {
        let mark = std::mem::replace(&mut before, line);
        let is_left_out = [NOT_RUN, TESTED_BY].iter().any(|beginning| mark.starts_with(beginning));
        let Some(language) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let block = block.join("\n") + "\n";
        match (language, found.last_mut()) {
            _ if is_left_out => {}
            ("sh", _) => found.push(GuideExample { line: number + 1, commands: block, output: None }),
            ("text", Some(example)) if example.output.is_none() => example.output = Some(block),
            _ => {}
        }
    }
    found
}

/// Returns a command that runs an example in a directory. `authority` is the file with the CA
/// certificate for the hosts.
pub(crate) fn example_command(commands: &str, site: &GuideSite, dir: &Path, authority: &Path) -> Command {
    let address = format!("http://{}", site.address);
    let programs = Path::new(HAUL).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    fs::write(authority, &site.authority).unwrap();
    let mut command = program("bash");
    command.args(["-euo", "pipefail", "-c", commands]).current_dir(dir);
    command.env("PATH", path).env("HOME", dir).env("USER", "me").env("site", &address).env("SSL_CERT_FILE", authority);
    command.env("http_proxy", &address).env("https_proxy", &address).env("no_proxy", "127.0.0.1");
    command
}

#[track_caller]
fn run_examples(document: &str, needed: &[&'static str]) {
    if needed.iter().any(|name| installed(name, document).is_none()) {
        return;
    }
    let found = examples(document);
    assert!(!found.is_empty(), "{document} has no examples");
    for example in found {
        let (site, dir) = (GuideSite::start(), tempfile::tempdir().unwrap());
        let authority = tempfile::NamedTempFile::new().unwrap();
        let ran = run(&mut example_command(&example.commands, &site, dir.path(), authority.path()));
        let place = format!("{document}:{}", example.line);
        assert_eq!(ran.code, 0, "{place}: {}", ran.stderr);
        let address = format!("http://{}", site.address);
        let printed = String::from_utf8(ran.stdout).unwrap().replace(&address, "https://example.com");
        match example.output {
            Some(expected) => assert_eq!(printed, expected, "{place}: {}", ran.stderr),
            None => assert!(!printed.is_empty(), "{place} prints nothing: {}", ran.stderr),
        }
    }
}

/// Runs the examples of a guide whose hosts and files do not exist. The test site answers every URL
/// with a page that contains links and elements, or JSON, and each command must succeed. A line
/// that ends in `# refused` must fail, and print the text block after the example on standard
/// error. System directories in the examples are replaced by directories of the test.
#[track_caller]
fn run_imagined_examples(document: &str) {
    for example in examples(document) {
        let (site, dir) = (GuideSite::start(), tempfile::tempdir().unwrap());
        let authority = tempfile::NamedTempFile::new().unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        fs::write(dir.path().join("list"), "1\n2\n3\n").unwrap();
        fs::write(dir.path().join("list.txt"), "https://example.com/items/1\n").unwrap();
        fs::write(dir.path().join("users.csv"), "id,name,age\n1,Ada,36\n2,Bo,5\n").unwrap();
        let commands: String = example
            .commands
            .lines()
            .map(|line| line.replace("/var/run/", "$HOME/").replace("-o _pkgfetch ", ""))
            .map(|line| if line.ends_with("# refused") { format!("! {line}\n") } else { format!("{line}\n") })
            .collect();
        let ran = run(&mut example_command(&commands, &site, dir.path(), authority.path()));
        assert_eq!(ran.code, 0, "{document}:{}: {}\n{}", example.line, example.commands, ran.stderr);
        if let Some(expected) = example.output {
            assert_eq!(ran.stderr, expected, "{document}:{}", example.line);
        }
    }
}

#[test]
fn examples_of_the_pages_guide_are_accepted() {
    run_imagined_examples("docs/many-pages.md");
}

#[test]
fn examples_of_the_curl_guide_are_accepted() {
    run_imagined_examples("docs/curl.md");
}

#[test]
fn examples_of_the_exit_codes_are_accepted() {
    run_imagined_examples("docs/exit-codes.md");
}

#[test]
fn examples_of_the_download_guide_are_accepted() {
    run_imagined_examples("docs/one-big-get.md");
}

#[test]
fn examples_for_package_managers_are_accepted() {
    run_imagined_examples("docs/package-managers.md");
}

#[test]
fn examples_of_the_readme_run_as_printed() {
    run_examples("README.md", &[]);
}

#[test]
fn examples_of_the_recipes_run_as_printed() {
    run_examples("docs/recipes.md", &["jq", "sha256sum", "sqlite3"]);
}

#[cfg(feature = "job")]
#[test]
fn examples_of_the_jobs_guide_run_as_printed() {
    run_examples("docs/jobs.md", &["jq", "sha256sum", "sqlite3"]);
}

#[test]
#[cfg(feature = "warc")]
fn examples_of_the_archives_guide_run_as_printed() {
    run_examples("docs/archives.md", &["jq", "zcat"]);
}

#[test]
fn examples_of_the_records_guide_run_as_printed() {
    run_examples("docs/records.md", &["jq", "sha256sum", "sqlite3"]);
}

#[test]
fn examples_of_the_scale_guide_run_as_printed() {
    run_examples("docs/scale-out.md", &["jq", "sha256sum", "parallel"]);
}
