//! Tests of groups (`next`) and uploads that run in parallel: all requests are sent before the
//! first response, and each has the settings of its group.

use crate::common;

use std::fs;
use std::path::Path;

use common::{RunningCommand, eventually, haul, page, received, run_haul};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

/// The number of requests that must arrive before the test server answers one. haul begins with
/// this number of connections to a host.
const REQUESTS: usize = 6;

/// Starts a server that answers only after the test has released it. Each request has content of
/// this length in bytes.
fn waiting_peer(length: usize) -> H1Peer {
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n";
    H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::ReadBytes(length),
        ScriptStep::Await(1),
        ScriptStep::send(reply),
    ])
}

/// Runs haul until all requests have arrived, lets the server answer them, and returns haul's
/// output.
fn run_released(peer: &H1Peer, args: &[&str]) -> String {
    let running = RunningCommand::start(&mut haul(args));
    eventually("all requests arrive", || peer.connections() == REQUESTS);
    peer.release();
    running.wait().text()
}

/// Writes a config file with one group for each of these texts. Returns its path.
fn config(dir: &Path, groups: impl IntoIterator<Item = String>) -> String {
    let path = dir.join("requests.cfg");
    fs::write(&path, groups.into_iter().collect::<Vec<_>>().join("next\n")).unwrap();
    path.display().to_string()
}

/// Returns the bodies that the server received, sorted.
fn sent_bodies(peer: &H1Peer) -> Vec<String> {
    let body = |connection| received(peer, connection).split_once("\r\n\r\n").unwrap().1.to_owned();
    let mut bodies: Vec<String> = (0..peer.connections()).map(body).collect();
    bodies.sort();
    bodies
}

#[test]
fn groups_of_a_config_file_run_in_parallel() {
    let peer = waiting_peer("item=0".len());
    let dir = tempfile::tempdir().unwrap();
    let url = peer.url("/");
    let group = |n| format!("url = {url}{n}\ndata = item={n}\nwrite-out = \"{n} %{{http_code}}\\n\"\n");
    let file = config(dir.path(), (0..REQUESTS).map(group));
    let printed = run_released(&peer, &["-K", &file]);
    let expected: String = (0..REQUESTS).map(|n| format!("ok\n{n} 200\n")).collect();
    assert_eq!(printed, expected);
    assert_eq!(sent_bodies(&peer), (0..REQUESTS).map(|n| format!("item={n}")).collect::<Vec<_>>());
}

/// Runs the recipe in the guide `docs/many-pages.md`, in which each entry of the list begins with
/// `next`.
#[test]
fn guide_recipe_posts_a_list_in_parallel() {
    let origin = Origin::builder().start().unwrap();
    let guide = include_str!("../../../../docs/many-pages.md");
    let recipe = guide.lines().find(|line| line.starts_with("seq 2000 | sed")).unwrap();
    let recipe = recipe.replace("http://h/orders", &origin.url("/echo")).replace("| haul", "| $GET");
    let ran = common::bash(common::HAUL, &recipe);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let mut bodies: Vec<u32> = Vec::new();
    for request in origin.log() {
        assert_eq!(request.method, "POST");
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        bodies.push(body.strip_prefix("item=").unwrap().parse().unwrap());
    }
    bodies.sort_unstable();
    assert_eq!(bodies, (1..=2000).collect::<Vec<_>>());
}

#[test]
fn command_line_groups_run_in_parallel_with_z() {
    let peer = waiting_peer(1);
    let urls: Vec<String> = (0..REQUESTS).map(|n| peer.url(&format!("/{n}"))).collect();
    let groups: Vec<&str> = urls.iter().flat_map(|url| ["--next", "-d", "x", url]).skip(1).collect();
    assert_eq!(run_released(&peer, &[&["-Z"], &*groups].concat()), "ok\n".repeat(REQUESTS));
}

#[test]
fn parallel_curl_groups_are_numbered_in_order() {
    let peer = waiting_peer(1);
    let format = "%{urlnum} %{xfer_id}\n";
    let urls: Vec<String> = (0..REQUESTS).map(|n| peer.url(&format!("/{n}"))).collect();
    let pairs = urls.chunks(2).flat_map(|pair| ["--next", "-d", "x", "-w", format, &*pair[0], &*pair[1]]);
    let args: Vec<&str> = ["curl", "-q", "-sSZ"].into_iter().chain(pairs.skip(1)).collect();
    let running = RunningCommand::start(&mut haul(args));
    eventually("all requests arrive", || peer.connections() == REQUESTS);
    peer.release();
    let expected: String = (0..REQUESTS).map(|n| format!("ok\n{n} {n}\n")).collect();
    assert_eq!(running.wait().text(), expected);
}

#[test]
fn curl_groups_run_one_after_another_without_z() {
    let origin = Origin::builder().start().unwrap();
    let (one, two) = (origin.url("/small/1"), origin.url("/small/2"));
    let format = "%{num_connects}\n";
    let printed = common::curl(&["-s", "-w", format, &one, "--next", "-w", format, &two]).text();
    assert_eq!(printed, "small 1\n1\nsmall 2\n0\n");
}

#[test]
fn command_line_groups_run_one_after_another() {
    let origin = Origin::builder().start().unwrap();
    let (one, two) = (origin.url("/small/1"), origin.url("/small/2"));
    let format = "%{num_connects}\n";
    for args in [&[][..], &["--no-parallel", "-Z", "--no-parallel"]] {
        let groups = ["-w", format, &one, "--next", "-w", format, &two];
        // The second request uses the connection of the first.
        assert_eq!(run_haul([args, &groups].concat()).text(), "small 1\n1\nsmall 2\n0\n");
    }
}

#[test]
fn cookie_of_a_group_reaches_the_next() {
    let login = common::answering(
        "HTTP/1.1 200 OK\r\nSet-Cookie: sid=1; Path=/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    let dir = tempfile::tempdir().unwrap();
    let jar = dir.path().join("jar").display().to_string();
    let group = |path: &str| format!("url = {}\ncookie = {jar}\ncookie-jar = {jar}\n", login.url(path));
    run_haul(["-K", &config(dir.path(), [group("/login"), group("/page")])]).ok();
    assert!(received(&login, 1).starts_with("GET /page"));
    assert!(received(&login, 1).contains("Cookie: sid=1\r\n"), "{}", received(&login, 1));
}

#[test]
fn uploads_run_in_parallel() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..REQUESTS {
        fs::write(dir.path().join(format!("f{n}")), format!("content {n}")).unwrap();
    }
    let peer = waiting_peer("content 0".len());
    let files = dir.path().join("f[0-5]").display().to_string();
    let url = peer.url("/dir/");
    let args = ["-T", &files, &url, "-w", "%{method} %{url}\n"];
    let expected: String = (0..REQUESTS).map(|n| format!("ok\nPUT {url}f{n}\n")).collect();
    assert_eq!(run_released(&peer, &args), expected);
    assert_eq!(sent_bodies(&peer), (0..REQUESTS).map(|n| format!("content {n}")).collect::<Vec<_>>());
}

#[test]
fn uploads_and_downloads_keep_their_settings() {
    let origin = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "0123456789").unwrap();
    let file = dir.path().join("a").display().to_string();
    let (echo, page) = (origin.url("/echo"), origin.url("/bytes/10"));
    let format = "%{method} %{size_upload} %{size_download}\n";
    let args = ["-w", format, "-C", "4", "-T", &file, "-T", "", &echo, &page, "-o", "/dev/null", "-o", "/dev/null"];
    assert_eq!(run_haul(args).text().lines().map(|line| &line[..5]).collect::<Vec<_>>(), ["PUT 6", "GET 0"]);
    let log = origin.log();
    let field = |path: &str, name: &str| log.iter().find(|request| request.target == path).unwrap().header(name);
    assert_eq!(field("/echo", "content-range"), Some("bytes 4-9/10"));
    assert_eq!((field("/echo", "range"), field("/bytes/10", "range")), (None, Some("bytes=4-")));
}

#[test]
fn failed_group_does_not_stop_other_groups() {
    let origin = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let gone = page("x");
    let refused = gone.url("/");
    drop(gone);
    let groups = [
        format!("url = {}\n", origin.url("/small/1")),
        format!("url = {}\nretry = 0\n", origin.url("/status/404")),
        format!("url = {refused}\nretry = 0\n"),
        format!("url = {}\n", origin.url("/small/3")),
    ];
    let ran = run_haul(["-K", &config(dir.path(), groups)]);
    assert_eq!(ran.code, 22, "{}", ran.stderr);
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), "small 1\nsmall 3\n");
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
}

#[test]
fn parallel_groups_never_overwrite_each_others_file() {
    let origin = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out").display().to_string();
    let group = |n: usize| format!("url = {}\noutput = {out}\n", origin.url(&format!("/small/{n}")));
    let ran = run_haul(["-K", &config(dir.path(), [group(1), group(2)])]);
    assert!(ran.failed(23).contains("is the output of"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&out).unwrap(), "small 1\n");
}

#[test]
fn parallel_groups_retry_only_idempotent_requests() {
    let origin = page("ok\n");
    let closing = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::Close]);
    let dir = tempfile::tempdir().unwrap();
    let group = |method: &str| {
        format!("url = {}\nrequest = {method}\ndata = x\nretry = 2\nretry-delay = 0\n", closing.url("/"))
    };
    for (method, tries) in [("POST", 1), ("PUT", 3)] {
        let before = closing.connections();
        let groups = [format!("url = {}\n", origin.url("/")), group(method)];
        let ran = run_haul(["-K", &config(dir.path(), groups)]);
        assert_eq!((ran.code, ran.stdout), (52, b"ok\n".to_vec()), "{}", ran.stderr);
        assert_eq!(closing.connections() - before, tries, "{method}");
    }
}

#[test]
fn group_waits_for_files_that_earlier_groups_write() {
    let origin = Origin::builder().start().unwrap();
    for (output, upload) in [
        ("remote-name", "7"),
        ("output = \"./file\"", "file"),
        ("output = \"{name}\"", "7"),
        ("output = \"sub/../file\"", "file"),
        ("output = \"file\"", "{file}"),
        ("mirror-paths", "127.0.0.1+{port}/small/7"),
        ("write-out = \"%output{file}small 7\\n\"\nout-null", "file"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        let upload = upload.replace("{port}", &origin.http_addr().port().to_string());
        fs::create_dir_all(dir.path().join(&upload).parent().unwrap()).unwrap();
        fs::write(dir.path().join(upload.replace(['{', '}'], "")), "old").unwrap();
        let groups = [
            format!("url = \"{}\"\n{output}\n", origin.url("/small/7")),
            format!("url = \"{}\"\nupload-file = \"{upload}\"\nout-null\n", origin.url("/echo")),
        ];
        origin.forget();
        common::run_in(dir.path(), common::HAUL, &["-sS", "-K", &config(dir.path(), groups)]).ok();
        let log = origin.log();
        let sent = log.iter().find(|request| request.method == "PUT").unwrap();
        assert_eq!(String::from_utf8_lossy(&sent.body), "small 7\n", "{output}");
    }
}
