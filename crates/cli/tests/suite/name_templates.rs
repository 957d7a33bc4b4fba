//! Tests of output files that are named after parts of the URL: `{host}/{path}`, `--mirror-paths`,
//! and `-O` with percent-decoding.

use crate::common;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use common::{CommandOutput, HAUL, eventually, names, page, program, run_in};
use testkit::origin::Origin;

fn run(dir: &Path, args: &[&str]) -> CommandOutput {
    run_in(dir, HAUL, args)
}

/// Returns the paths of all files below a directory, sorted.
fn files_below(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![String::new()];
    while let Some(at) = pending.pop() {
        for name in names(&dir.join(&at)) {
            let path = if at.is_empty() { name } else { format!("{at}/{name}") };
            match dir.join(&path).is_dir() {
                true => pending.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn output_names_contain_parts_of_the_url() {
    let peer = page("x");
    let port = peer.addr().port();
    let urls = ["/a/b.html?q=1", "/a/", "/c%20d/%C3%A9"].map(|path| peer.url(path));
    for (template, expected) in [
        ("{host}/{path}", ["127.0.0.1/a/b.html", "127.0.0.1/a/index.html", "127.0.0.1/c d/\u{e9}"].map(str::to_owned)),
        ("{scheme}-{port}-{name}", ["b.html", "index.html", "\u{e9}"].map(|name| format!("http-{port}-{name}"))),
        ("x/{name}.{query}", ["b.html.q=1", "index.html._", "\u{e9}._"].map(|name| format!("x/{name}"))),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let list = common::list(dir.path(), "list", &urls).display().to_string();
        run(dir.path(), &["--create-dirs", "--output-dir", "out", "-o", template, "--input-file", &list]).ok();
        assert_eq!(files_below(&dir.path().join("out")), expected, "{template}");
    }
}

#[test]
fn output_names_of_hostile_urls_stay_in_directory() {
    let peer = page("x");
    let urls = [
        "/..%2f..%2fescape",
        "/%2e%2e/%2e%2e/up",
        "/%2fetc%2fcron.d%2fx",
        "/.ssh/authorized_keys",
        "/a%00b%0ac%1b[31m",
        "/con/NUL.txt",
        "/%e2%80%aegpj.exe",
        "/x/..;/y?../../../z",
    ];
    for way in
        [&["-o", "{host}/{path}/{query}"][..], &["-o", "{query}/{name}"], &["--mirror-paths"], &["--remote-name-all"]]
    {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("1/2/3/inner");
        fs::create_dir_all(&inner).unwrap();
        let list = common::list(dir.path(), "list", urls.map(|path| peer.url(path))).display().to_string();
        let args = ["--path-as-is", "--create-dirs", "--output-dir", "1/2/3/inner", "--input-file", &list];
        run(dir.path(), &[&args[..], way].concat()).ok();
        let all = files_below(dir.path());
        assert_eq!(all.iter().filter(|path| path.starts_with("1/2/3/inner/")).count(), urls.len(), "{way:?}: {all:?}");
        assert_eq!(all.len(), urls.len() + 1, "{way:?}: {all:?}");
        for path in all {
            assert!(path.chars().all(|c| !c.is_control()), "{path:?}");
            assert!(path.split('/').all(|component| !component.starts_with('.')), "{path:?}");
        }
    }
}

#[test]
fn second_url_with_equal_generated_name_is_refused() {
    let origin = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let urls = [origin.url("/small/1?a"), origin.url("/small/1?b")];
    let args = ["--create-dirs", "-o", "{host}/{path}", "-o", "{host}/{path}", &urls[0], &urls[1]];
    let ran = run(dir.path(), &args);
    assert!(ran.failed(23).contains("is the output of"), "{}", ran.stderr);
    run(dir.path(), &["--mirror-paths", &urls[0], &urls[1]]).ok();
    let host = format!("127.0.0.1+{}", origin.http_addr().port());
    let expected = [format!("{host}/small/1?a"), format!("{host}/small/1?b"), "127.0.0.1/small/1".to_owned()];
    assert_eq!(files_below(dir.path()), expected);
}

#[test]
fn missing_directory_of_generated_name_is_reported() {
    let peer = page("x");
    let dir = tempfile::tempdir().unwrap();
    let ran = run(dir.path(), &["-o", "{host}/{path}", &peer.url("/a/b")]);
    assert!(ran.failed(23).contains("127.0.0.1/a/b"), "{}", ran.stderr);
    let deep = peer.url(&"/a".repeat(65));
    let ran = run(dir.path(), &["--mirror-paths", &deep]);
    assert!(ran.failed(23).contains("too long for a file name"), "{}", ran.stderr);
    assert_eq!(files_below(dir.path()), Vec::<String>::new());
}

#[test]
fn mirror_paths_names_pages_of_later_stages() {
    let origin = Origin::builder().start().unwrap();
    let index = page("id=1 id=2");
    let template = origin.url("/small/{}");
    let then = ["--extract", "id=([0-9])", "--then", &template];
    for (way, expected) in [
        (&["--mirror-paths"][..], [1, 2].map(|n| format!("127.0.0.1+{}/small/{n}", origin.http_addr().port()))),
        (&["--create-dirs", "-o", "{host}/{}-{name}"], [1, 2].map(|n| format!("127.0.0.1/{n}-{n}"))),
    ] {
        let dir = tempfile::tempdir().unwrap();
        run(dir.path(), &[&[&*index.url("/")], &then[..], way].concat()).ok();
        assert_eq!(files_below(dir.path()), expected);
    }
}

#[test]
fn curl_persona_keeps_remote_name_encoded() {
    let peer = page("x");
    let url = peer.url("/a%20b%2Fc.txt");
    for (program, expected) in [(&[][..], "a b_c.txt"), (&["curl", "-s"], "a%20b%2Fc.txt")] {
        let dir = tempfile::tempdir().unwrap();
        run(dir.path(), &[program, &["-O", &url]].concat()).ok();
        assert_eq!(names(dir.path()), [expected]);
    }
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), &["curl", "-s", "-o", "{host}", "-g", &url]).ok();
    assert_eq!(names(dir.path()), ["{host}"], "curl has no such placeholders");
}

#[test]
fn mirror_paths_saves_page_and_its_subpages() {
    let peer = page("x");
    let host = format!("127.0.0.1+{}", peer.addr().port());
    let urls = ["/docs", "/docs/intro", "/docs/intro/a"].map(|path| peer.url(path));
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let dir = tempfile::tempdir().unwrap();
        let list: Vec<&str> = order.iter().map(|index| &*urls[*index]).collect();
        for _ in 0..2 {
            run(dir.path(), &[&["--mirror-paths"][..], &list].concat()).ok();
            assert_eq!(files_below(&dir.path().join(&host)).len(), 3, "{order:?}: {:?}", files_below(dir.path()));
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let long = peer.url(&format!("/{}?{}", "n".repeat(150), "q".repeat(150)));
    run(dir.path(), &["-o", "{name}-{query}.html", &long]).ok();
    assert!(names(dir.path())[0].ends_with(".html"));
    // A single URL gives way to a directory that is there.
    fs::create_dir(dir.path().join("docs")).unwrap();
    run(dir.path(), &["-o", "{name}", &peer.url("/docs")]).ok();
    assert_eq!(fs::read(dir.path().join("docs.file")).unwrap(), b"x");
}

#[test]
fn generated_name_is_reserved_in_new_directory() {
    let origin = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut child = program(HAUL)
        .current_dir(dir.path())
        .args(["-sS", "--input-file", "-", "-o", "{host}/{path}", "--create-dirs"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut list = child.stdin.take().unwrap();
    for (path, file) in [("/small/1?a", "small/1"), ("/status/200", "status/200")] {
        writeln!(list, "{}", origin.url(path)).unwrap();
        eventually("the file is written", || dir.path().join("127.0.0.1").join(file).exists());
    }
    writeln!(list, "{}", origin.url("/small/1?b")).unwrap();
    drop(list);
    let ran = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(23) && text.contains("is the output of"), "{text}");
}

#[test]
fn generated_names_do_not_follow_symlinks() {
    let peer = page("x");
    let host = format!("127.0.0.1+{}", peer.addr().port());
    for (args, link) in [
        (&["--mirror-paths"][..], host.as_str()),
        (&["--create-dirs", "-o", "{host}/{path}"], "127.0.0.1"),
        (&["-o", "{name}"], "page"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("out")).unwrap();
        fs::create_dir_all(dir.path().join("outside")).unwrap();
        std::os::unix::fs::symlink("../outside", dir.path().join("out").join(link)).unwrap();
        let ran = run(dir.path(), &[&["-sS", "--output-dir", "out", &peer.url("/page")][..], args].concat());
        if link == "page" {
            // A directory is in the way, so the file has another name.
            assert_eq!(names(&dir.path().join("out")), ["page", "page.file"]);
        } else {
            assert!(ran.failed(23).contains("is a link, which is not followed"), "{args:?}: {}", ran.stderr);
        }
        assert!(files_below(&dir.path().join("outside")).is_empty(), "{args:?}");
    }
    // The user's own part of the name may be a link.
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", dir.path().join("link")).unwrap();
    run(dir.path(), &["-o", "link/{name}", &peer.url("/page")]).ok();
    assert_eq!(names(&dir.path().join("real")), ["page"]);
    let list = common::list(dir.path(), "list", [peer.url("/victim")]).display().to_string();
    std::os::unix::fs::symlink("real/page", dir.path().join("victim")).unwrap();
    let ran = run(dir.path(), &["--remote-name-all", "--input-file", &list]);
    assert!(ran.failed(23).contains("there is a link"), "{}", ran.stderr);
}
