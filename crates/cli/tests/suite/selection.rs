//! Tests of `--select` and `--select-json`, and of `--then '{}'` with links of pages.

use crate::common;

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use common::peak_memory::peak_memory;
use common::small_site::SmallSite;
use common::{HAUL, run_haul, run_in};

const HTML: &str = "text/html";

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[test]
fn selected_texts_and_attributes_are_printed() {
    let site = SmallSite::of(&[(
        "/dir/",
        HTML,
        "<title>T</title><base href='/b/'><h1>One\n <b>&amp;</b> two</h1><a class=title href='x?a&amp;b'>x</a>\
         <a class=title href=//o.example/y>y</a><meta name=d content='z'><a class=title href=mailto:a@b>",
    )]);
    let url = site.url("/dir/");
    let printed = |args: &[&str]| run_haul([&[&*url], args].concat()).text();
    let links = format!("{}\nhttp://o.example/y\nmailto:a@b\n", site.url("/b/x?a&b"));
    assert_eq!(printed(&["--select", "a.title@href"]), links);
    assert_eq!(printed(&["--select", "h1"]), "One & two\n");
    assert_eq!(printed(&["--select", "meta[name=d]@content", "--select", "title"]), "T\nz\n");
    assert_eq!(printed(&["--select", "a@href", "--extract", "[?](.)"]), "a\n");
    assert_eq!(printed(&["--select", "a", "--sort", "--select", "a"]), "x\nx\ny\ny\n");
    assert_eq!(printed(&["--select", "a", "--unique", "--select", "a"]), "x\ny\n");
}

#[test]
fn pages_are_decoded_by_charset_before_selection() {
    let pages: [(&str, Vec<u8>); 4] = [
        ("text/html; charset=iso-8859-1", b"<p>caf\xe9</p>".to_vec()),
        ("text/html", b"<meta charset=windows-1251><p>caf\xe9</p>".to_vec()),
        ("text/html", b"<p>caf\xe9</p>".to_vec()),
        ("text/html", b"\xff\xfe<\0p\0>\0c\0<\0/\0p\0>\0".to_vec()),
    ];
    let site = SmallSite::start(move |target| pages.get(target[1..].parse::<usize>().ok()?).cloned());
    let urls: Vec<String> = (0..4).map(|number| site.url(&format!("/{number}"))).collect();
    let args = ["--select", "p"].into_iter().map(str::to_owned).chain(urls);
    assert_eq!(run_haul(args).text(), "café\ncafй\ncafé\nc\n");
}

#[test]
fn json_values_are_printed_in_order() {
    let site = SmallSite::of(&[
        (
            "/one",
            "application/json",
            r#"{"items": [{"id": 1, "n": "a \"b\""}, {"n": "c", "id": 2.0}], "z": {"y": 1, "x": [2]}}"#,
        ),
        ("/lines", "application/x-ndjson", "{\"id\":1}\n{\"id\":2,\"t\":{\"a\":[1]}}\n"),
    ]);
    let printed = |args: &[&str]| run_haul(args).text();
    assert_eq!(printed(&["--select-json", "$.items[*].n", &site.url("/one")]), "a \"b\"\nc\n");
    assert_eq!(printed(&["--select-json", "$.z", &site.url("/one")]), "{\"y\":1,\"x\":[2]}\n");
    let both = ["--select-json", "$.id", "--select-json", "$.t", &site.url("/lines")];
    assert_eq!(printed(&both), "1\n2\n{\"a\":[1]}\n");
    let filtered = ["--select-json", "$.items[?@.id > 1].n", "--extract", "[a-z]", &site.url("/one")];
    assert_eq!(printed(&filtered), "c\n");
}

#[test]
fn invalid_json_fails_after_printing_earlier_values() {
    let site = SmallSite::of(&[
        ("/html", HTML, "<p>error</p>"),
        ("/cut", "application/json", "{\"a\":1}\n{\"a\":2}\n{\"a\""),
        ("/good", "application/json", "{\"a\":3}"),
    ]);
    let ran = run_haul(["--select-json", "$.a", &site.url("/html"), &site.url("/cut"), &site.url("/good")]);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "1\n2\n3\n");
    assert_eq!(ran.code, 61);
    let errors = &ran.stderr;
    let expected = format!("{}: the body is not JSON: expected value at line 1 column 1", site.url("/html"));
    assert!(errors.contains(&expected), "{errors}");
    assert!(errors.contains("/cut: the body is not JSON: EOF while parsing"), "{errors}");
}

#[test]
fn large_json_documents_are_refused_by_memory_limit() {
    let body = format!("[{}0]", "1,".repeat(200_000));
    let site = SmallSite::start(move |_| Some(("application/json", body.clone().into_bytes())));
    let url = site.url("/");
    let args = ["--select-json", "$[0]", &url];
    assert_eq!(run_haul(args).text(), "1\n");
    let ran = run_haul([&args[..], &["--max-memory", "1M"]].concat());
    assert!(ran.failed(63).contains("raise --max-memory"), "{}", ran.stderr);
}

#[test]
fn malformed_selectors_are_refused_before_fetching() {
    let site = SmallSite::of(&[]);
    let url = site.url("/");
    for (args, words) in [
        (&["--select", "a["][..], "CSS selector \"a[\""),
        (&["--select", "p:last-child"], "a page is read once"),
        (&["--select-json", "x"], "begins with $"),
        (&["--select", "a", "--select-json", "$"], "one or the other"),
        (&["--select", "a", "--extract-bytes", "--extract", "b"], "--extract-bytes"),
        (&["--select", "a", "-C", "5"], "cannot be gone on with"),
        (&["--select", "a", "-T", "/dev/null"], "--select out"),
        (&["--select", "a", "--checksum", "sha256:00"], "--checksum"),
    ] {
        let ran = run_haul([&[&*url], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
    assert!(site.requests().is_empty());
}

#[test]
fn selected_links_are_followed_without_fragments() {
    let site = SmallSite::of(&[
        ("/from", "redirect", "/dir/index"),
        (
            "/dir/index",
            HTML,
            "<a href='#top'>0</a><a href='a?x&amp;y#1'>1</a><a href=a?x&y#2>2</a><a href=../b>3</a><a href=mailto:x>4</a>\
             <a href='javascript:void(0)'>5</a><a href='data:,x'>6</a><a href=''>7</a><a href='ftp://h/'>8</a>",
        ),
        ("/dir/a?x&y", HTML, "<p>a"),
        ("/b", HTML, "<p>b"),
    ]);
    let args = [&*site.url("/from"), "--select", "a@href", "--then", "{}", "--select", "p", "--stats"];
    let ran = run_haul(args);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "a\nb\n");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("skipped      5 values"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("haul: ("), "{}", ran.stderr);
    assert_eq!(site.requests(), ["/b", "/dir/a?x&y", "/dir/index", "/from"]);
}

#[test]
fn selected_links_are_resolved_against_their_page() {
    let site = SmallSite::of(&[
        ("/from", "redirect", "/dir/index"),
        (
            "/dir/index",
            "text/html; charset=utf-8",
            "<base href=/no/><a href=\"a?x&amp;y\"><a href=\"/b#c\"><a href=\"#\">",
        ),
        ("/list", "text/plain", "href=\"/c?x&amp;y\""),
        ("/dir/a?x&y", HTML, "a"),
        ("/b", HTML, "b"),
        ("/c?x&amp;y", HTML, "c"),
    ]);
    let args = [&*site.url("/from"), &*site.url("/list"), "--extract", "href=\"([^\"]+)\"", "--then", "{}"];
    assert_eq!(run_haul(args).text(), "abc");
}

#[test]
fn invalid_links_are_reported() {
    let site =
        SmallSite::of(&[("/", HTML, "<a href='http://u:p@h/'><a href='http://[x/'><a href=/a>"), ("/a", HTML, "a")]);
    let ran = run_haul([&*site.url("/"), "--select", "a@href", "--then", "{}"]);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "a");
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("user or password") && !ran.stderr.contains("u:p"), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
}

#[test]
fn selected_values_name_urls_and_files_of_stages() {
    let site =
        SmallSite::of(&[("/", "application/json", r#"{"ids": ["a", "b"]}"#), ("/x/a", HTML, "A"), ("/x/b", HTML, "B")]);
    let dir = tempfile::tempdir().unwrap();
    let args = [&*site.url("/"), "--select-json", "$.ids[*]", "--then", &site.url("/x/{}"), "-o", "{}.txt"];
    run_in(dir.path(), HAUL, &args).ok();
    assert_eq!(fs::read(dir.path().join("a.txt")).unwrap(), b"A");
    assert_eq!(fs::read(dir.path().join("b.txt")).unwrap(), b"B");
    assert_eq!(lines(&site.requests().join("\n")), ["/", "/x/a", "/x/b"]);
}

/// Starts a server whose pages repeat one line until they have this number of bytes: `/html`
/// contains HTML, `/lines` JSON lines, and `/one` JSON documents without line breaks between them.
/// Returns the address.
fn start_large_site(bytes: u64) -> SocketAddr {
    const PAGES: [(&str, &str, &str); 3] = [
        ("/html", HTML, "<div class=a title='some title'><p>text &amp; text</p><a href=\"/x\">y</a></div>\n"),
        ("/lines", "application/x-ndjson", "{\"id\":1,\"text\":\"some text of a line\",\"list\":[1,2,3]}\n"),
        ("/one", "application/json", "{\"id\":1,\"text\":\"some text of a document\",\"list\":[{},{\"id\":2}]}"),
    ];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let target = head.split(' ').nth(1).unwrap_or_default();
            let Some((_, kind, line)) = PAGES.iter().find(|(path, ..)| *path == target) else { continue };
            let block = line.repeat((1 << 18) / line.len());
            let count = bytes.div_ceil(block.len() as u64);
            let length = count * block.len() as u64;
            let reply = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n");
            let mut sent = stream.write_all(reply.as_bytes());
            for _ in 0..count {
                sent = sent.and_then(|()| stream.write_all(block.as_bytes()));
            }
        }
    });
    address
}

/// The memory must not grow with the size of the page: `make selection-memory` runs this test with
/// 1 GiB.
#[test]
fn large_pages_are_selected_with_bounded_memory() {
    let mib = std::env::var("HAUL_SELECT_MIB").ok().map_or(32, |mib| mib.parse().expect("a number of MiB"));
    let address = start_large_site(mib << 20);
    for (option, query, target) in
        [("--select", "a@href", "/html"), ("--select-json", "$.id", "/lines"), ("--select-json", "$.id", "/one")]
    {
        let mut printed = String::new();
        let url = format!("http://{address}{target}");
        let peak = peak_memory(&["-s", &url, option, query, "--unique"], |mut output| {
            output.read_to_string(&mut printed).unwrap();
        });
        println!("{target} of {mib} MiB: {} MiB", peak >> 10);
        assert_eq!(printed.lines().count(), 1, "{option}: {printed}");
        assert!(peak <= 24 << 10, "{option} {target}: {peak} KiB");
    }
}

/// Each page yields 29 MB of values at once. The values wait until the values of the first page are
/// printed. The response for the first page is delayed until another page is complete.
#[test]
fn values_waiting_for_first_page_need_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let done = dir.path().join("done");
    let say = format!("%output{{>>{}}}x", done.display());
    let deep = format!("{}\"{}\"{}", "{\"a\":".repeat(120), "x".repeat(240_000), "}".repeat(120));
    let site = SmallSite::start(move |target| {
        if target != "/0" {
            return Some(("application/json", deep.clone().into_bytes()));
        }
        while fs::metadata(&done).map_or(0, |metadata| metadata.len()) == 0 {
            thread::sleep(Duration::from_millis(5));
        }
        Some(("application/json", b"{\"a\":0}".to_vec()))
    });
    let mut bytes = 0;
    let peak = peak_memory(&["-s", "--select-json", "$..a", "-w", &say, &site.url("/[0-6]")], |mut output| {
        bytes = io::copy(&mut output, &mut io::sink()).unwrap();
    });
    assert!(bytes > 6 * 28_000_000, "{bytes} bytes");
    assert!(peak <= 96 << 10, "{peak} KiB");
}

#[test]
fn json_numbers_are_printed_as_written() {
    let text = r#"{"items":[{"id":123456789012345678901234567890,"price":2.50},{"id":7,"price":1e1}]}"#;
    let site = SmallSite::of(&[("/", "application/json", text)]);
    let url = site.url("/");
    let printed = |args: &[&str]| run_haul([&["-s", &*url], args].concat()).text();
    assert_eq!(printed(&["--select-json", "$.items[*].id"]), "123456789012345678901234567890\n7\n");
    assert_eq!(
        printed(&["--select-json", "$.items[?@.price < 5]"]),
        "{\"id\":123456789012345678901234567890,\"price\":2.50}\n"
    );
    let record = printed(&["--jsonl", "--select-json", "$..price"]);
    assert!(record.contains(r#""values":["2.50","1e1"]"#), "{record}");
    assert_eq!(printed(&["--csv", "--select-json", "p=$..price"]), "p\n2.50\n1e1\n");
}

/// Starts a server with the pages that the commands in the guide fetch.
fn guide_site() -> SmallSite {
    SmallSite::of(&[
        (
            "/list",
            HTML,
            "<meta name=description content='All items'><h1>Items</h1><a class=item href='item/1#top'>one</a>\
             <a class=item href=\"/item/2\">two</a><a href=\"mailto:me@h.example\">me</a><a rel=next href='/list2'>more</a>",
        ),
        ("/list2", HTML, "<h1>More</h1>"),
        ("/item/1", HTML, "<title>First</title><h1>Item 1</h1>"),
        ("/item/2", HTML, "<title>Second</title><h1>Item\n2</h1>"),
        (
            "/sitemap.xml",
            "application/xml",
            "<?xml version='1.0'?><urlset><url><loc>/item/1</loc></url><url><loc>/item/2</loc></url></urlset>",
        ),
        (
            "/api",
            "application/json",
            r#"{"items": [{"name": "a", "price": 5, "url": "item/1"}, {"name": "b", "price": 50, "url": "item/2"}]}"#,
        ),
        ("/events.ndjson", "application/x-ndjson", "{\"id\": 1}\n{\"id\": 2}\n{\"id\": 1}\n"),
    ])
}

/// Runs each command with `--select` or `--select-json` in the guide as it is printed there, with
/// the test server in place of `https://h`.
#[test]
fn guide_commands_print_expected_values() {
    let expected = [
        ("--depth", "{H}/list2\n"),
        ("a.item@href' --then", "Item 1\nItem 2\n"),
        ("href=\"([^\"]+)", "Item 2\n"),
        ("a.item@href'  ", "{H}/item/1#top\n{H}/item/2\n"),
        ("'h1' ", "Items\n"),
        ("description", "All items\n"),
        ("item/([0-9]+)", "1\n2\n"),
        ("sitemap", "First\nSecond\n"),
        ("].url'", "Item 1\n"),
        ("[*].name", "a\nb\n"),
        ("ndjson", "1\n2\n"),
    ];
    let guide = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/many-pages.md")).unwrap();
    let mut run = 0;
    for line in guide.lines().filter(|line| line.starts_with("haul https://h/") && line.contains(" --select")) {
        let site = guide_site();
        let script = line.replacen("haul https://h", &format!("\"$GET\" {}", site.url("")), 1);
        let ran = common::bash(HAUL, &script).text();
        let found = expected.iter().find(|(part, _)| line.contains(part));
        let (_, output) = found.unwrap_or_else(|| panic!("the test knows no output of {line}"));
        assert_eq!(ran, output.replace("{H}", &site.url("")), "{line}");
        run += 1;
    }
    assert_eq!(run, expected.len(), "the guide has a command for each output");
}

#[test]
fn depth_follows_links_fetching_each_once() {
    let page = |links: &[&str]| links.iter().map(|link| format!("<a href='{link}'></a>")).collect::<String>();
    let pages = [
        ("/1", page(&["2", "/3#x", "mailto:a@b", "1", "#top"])),
        ("/2", page(&["1", "4", "3"])),
        ("/3", page(&["4", "5"])),
        ("/4", page(&["5", "6", "2"])),
        ("/5", page(&["6", "1"])),
        ("/6", page(&["7"])),
    ];
    let start = || {
        let pages = pages.clone();
        SmallSite::start(move |target| {
            pages.iter().find(|(known, _)| *known == target).map(|(_, page)| (HTML, page.clone().into_bytes()))
        })
    };
    for (depth, printed, fetched) in [
        ("0", &["/2", "/3#x", "mailto:a@b", "/1", "/1#top"][..], &["/1"][..]),
        ("1", &["/2", "/3", "/4", "/5"], &["/1", "/2", "/3"]),
        ("2", &["/2", "/3", "/4", "/5", "/6"], &["/1", "/2", "/3", "/4", "/5"]),
        ("3", &["/2", "/3", "/4", "/5", "/6", "/7"], &["/1", "/2", "/3", "/4", "/5", "/6"]),
    ] {
        for end in [&[][..], &["--sort"], &["--max-memory", "256K"], &["--no-parallel"]] {
            let site = start();
            let url = |target: &&str| if target.starts_with('/') { site.url(target) } else { (*target).to_owned() };
            let ran =
                run_haul([&["-s", &*site.url("/1"), "--select", "a@href", "--depth", depth], end].concat()).text();
            let mut expected: Vec<String> = printed.iter().map(url).collect();
            if end == ["--sort"] {
                expected.sort();
            }
            assert_eq!(lines(&ran), expected, "--depth {depth} {end:?}");
            assert_eq!(site.requests(), fetched, "--depth {depth} {end:?}");
        }
    }
}

#[test]
fn depth_repeats_the_last_of_several_stages() {
    let site = SmallSite::of(&[
        ("/start", HTML, "<b>1</b>"),
        ("/p/1", HTML, "<a href=2></a>"),
        ("/p/2", HTML, "<a href=3></a><a href=1></a>"),
        ("/p/3", HTML, "<a href=2></a>"),
    ]);
    let then = site.url("/p/{}");
    let args = [&*site.url("/start"), "--select", "b", "--then", &then, "--select", "a@href", "--depth", "9"];
    assert_eq!(run_haul(args).text(), format!("{}\n{}\n", site.url("/p/2"), site.url("/p/3")));
    assert_eq!(site.requests(), ["/p/1", "/p/2", "/p/3", "/start"]);
    let dir = tempfile::tempdir().unwrap();
    let saved = [&args[..], &["-w", "%{http_code} %{url}\\n", "-o", "all"]].concat();
    let printed = run_in(dir.path(), HAUL, &saved).text();
    assert_eq!(printed.lines().count(), 3, "{printed}");
}

#[test]
fn depth_of_unsuitable_stages_is_refused() {
    let url = "http://127.0.0.1:1/";
    for (args, words) in [
        (&["--depth", "2"][..], "needs --extract or --select"),
        (&["--select", "a@href", "--depth", "101"], "at most 100"),
        (&["--select", "a@href", "--depth", "2", "-d", "x"], "a request with a body"),
        (&["--select", "a@href", "--depth", "2", "--then", "{}"], "only the last stage"),
    ] {
        let ran = run_haul([&[url], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
}
