//! The C examples: each is compiled and run, and its output is checked.

mod common;

use std::fs;
use std::path::Path;

use common::BuildDirectory;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;
use testkit::run_compiled_c_program::CProgram;

#[test]
fn get_example_prints_page_or_error() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (_origin, base) = Origin::start_with_base_url();
    let get = directory.compile("examples/get.c");
    assert_eq!(get.run_well([format!("{base}/small/5")]), "small 5\n");
    // The example requests content codings, so the text is sent encoded.
    assert_eq!(get.run_well([format!("{base}/text/100000")]).len(), 100_000);
    let refused = get.run(["http://127.0.0.1:1/"]);
    assert_eq!(refused.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("refused"));
    assert_eq!(get.run(["gopher://h/"]).status.code(), Some(1));
}

#[test]
fn download_example_saves_a_large_body() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (origin, base) = Origin::start_with_base_url();
    let (download, file) = (directory.compile("examples/download.c"), directory.path("body"));
    let said = download.run_well([format!("{base}/bytes/5000000"), file.display().to_string()]);
    assert!(said.starts_with("5000000 bytes"), "{said}");
    let body = fs::read(&file).unwrap();
    assert_eq!(origin.pattern().slice(0, 5_000_000), body);
}

#[test]
fn login_example_shares_and_saves_its_jar() {
    let Some(directory) = BuildDirectory::new() else { return };
    let form = "user=me&password=a%26b+c";
    let set = "HTTP/1.1 200 OK\r\nSet-Cookie: sid=31; Path=/; Max-Age=3600\r\nContent-Length: 2\r\n\r\nin";
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nwelcome";
    let peer = H1Peer::start(vec![vec![
        ScriptStep::ReadHead,
        ScriptStep::ReadBytes(form.len()),
        ScriptStep::send(set),
        ScriptStep::ReadHead,
        ScriptStep::send(page),
    ]]);
    let (login, jar) = (directory.compile("examples/login.c"), directory.path("cookies.txt"));
    let base = peer.url("/").trim_end_matches('/').to_owned();
    assert_eq!(login.run_well([base, jar.display().to_string()]), "welcome");
    assert_eq!(peer.connections(), 1);
    let sent = String::from_utf8(peer.received(0)).unwrap();
    assert!(sent.contains(&format!("\r\n\r\n{form}GET /private HTTP/1.1\r\n")), "{sent}");
    assert!(sent.contains("\r\nCookie: sid=31\r\n"), "{sent}");
    assert!(sent.contains("\r\nContent-Type: application/x-www-form-urlencoded\r\n"), "{sent}");
    assert!(fs::read_to_string(&jar).unwrap().contains("\tsid\t31"));
}

#[test]
fn batch_example_prints_in_argument_order() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (origin, base) = Origin::start_with_base_url();
    let batch = directory.compile("examples/batch.c");
    // The first is the slowest.
    let mut urls = vec![format!("{base}/delay/200/small/0")];
    urls.extend((1..40).map(|number| format!("{base}/bytes/{}", number * 1000)));
    let told = batch.run_well(&urls);
    let wanted: Vec<String> =
        urls.iter().enumerate().map(|(i, url)| format!("{url} 200 {}\n", if i == 0 { 8 } else { i * 1000 })).collect();
    assert_eq!(told, wanted.concat());
    assert!(origin.connections() <= 8, "{} connections", origin.connections());
    let failed = batch.run([format!("{base}/small"), "http://127.0.0.1:1/".to_owned()]);
    assert_eq!(failed.status.code(), Some(1));
    let told = String::from_utf8_lossy(&failed.stdout);
    assert!(told.starts_with(&format!("{base}/small 200 6\nhttp://127.0.0.1:1/ failed: ")), "{told}");
}

#[test]
fn loop_example_polls_the_batch_descriptor() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (_origin, base) = Origin::start_with_base_url();
    let program = directory.compile("examples/loop.c");
    let urls: Vec<String> = (0..30).map(|number| format!("{base}/delay/30/small/{number}")).collect();
    let told = program.run_well(&urls);
    let mut lines: Vec<&str> = told.lines().collect();
    lines.sort_unstable();
    let mut wanted: Vec<String> = urls.iter().map(|url| format!("{url} 200")).collect();
    wanted.sort_unstable();
    assert_eq!(lines, wanted);
}

/// Checks that a program in an event loop prints each URL with its status and length, and the error
/// of a refused connection.
fn check_event_loop(program: &CProgram) {
    let (_origin, base) = Origin::start_with_base_url();
    let urls: Vec<String> = (0..30).map(|number| format!("{base}/delay/30/bytes/{number}")).collect();
    let told = program.run_well(&urls);
    let mut lines: Vec<&str> = told.lines().collect();
    lines.sort_unstable();
    let mut wanted: Vec<String> = urls.iter().enumerate().map(|(i, url)| format!("{url} 200 {i}")).collect();
    wanted.sort_unstable();
    assert_eq!(lines, wanted);
    let failed = program.run([format!("{base}/small"), "http://127.0.0.1:1/".to_owned()]);
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&failed.stdout), format!("{base}/small 200 6\n"));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("http://127.0.0.1:1/: "));
    assert_eq!(program.run_well(["no url"; 0]), "");
}

#[cfg(target_os = "linux")]
#[test]
fn epoll_example_waits_for_batch_and_timer() {
    let Some(directory) = BuildDirectory::new() else { return };
    check_event_loop(&directory.compile("examples/epoll.c"));
}

#[test]
fn libuv_example_polls_the_batch_in_its_loop() {
    let Some(directory) = BuildDirectory::new() else { return };
    if !Path::new("/usr/include/uv.h").exists() {
        eprintln!("SKIPPED: libuv's header is not installed");
        return;
    }
    let flags = ["-std=c11", "-D_GNU_SOURCE", "-luv"];
    check_event_loop(&directory.compile_by("cc", &flags, "examples/uv.c"));
}
