//! Tests that no body replaces a file that haul itself reads as a list or writes: the files of a
//! numbered archive, the list, and the files of options such as `-D`.

use crate::common;

use std::fs;

use common::small_site::SmallSite;
use common::{HAUL, list, names, run_in};

fn site() -> SmallSite {
    SmallSite::start(|target| Some(("text/plain", format!("page {target}\n").into_bytes())))
}

#[cfg(feature = "warc")]
#[test]
fn body_never_replaces_a_numbered_archive_file() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let dir = dir.path();
    list(dir, "list", ["/x", "/a-00001.warc"].map(|target| site.url(target)));
    let archive = ["-sS", "--warc", "a.warc", "--warc-max-size", "1M"];
    let many = ["-O", "--remote-name-all", "--input-file", "list"];
    let refused = run_in(dir, HAUL, &[&archive[..], &many].concat());
    assert!(refused.failed(23).contains("a-00001.warc is a file of the archive of this run"), "{}", refused.stderr);
    assert!(fs::read(dir.join("a-00000.warc")).unwrap().starts_with(b"WARC/1.1"));
    assert_eq!(names(dir), ["a-00000.warc", "list", "x"]);
    fs::remove_file(dir.join("a-00000.warc")).unwrap();
    for options in [["-D", "a-00001.warc"], ["-c", "./a-00000.warc"], ["--trace", "a-00000.warc"]] {
        let url = site.url("/x");
        let refused = run_in(dir, HAUL, &[&archive[..], &options, &[&url]].concat());
        assert_eq!(refused.code, 2, "{options:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("a file of the archive"), "{options:?}: {}", refused.stderr);
    }
    run_in(dir, HAUL, &["-sS", "--warc", "a.warc", "-O", &site.url("/a-00000.warc")]).ok();
}

#[test]
fn body_never_replaces_a_list_or_option_file() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let dir = dir.path();
    let path = list(dir, "list", [site.url("/list")]);
    let text = fs::read_to_string(&path).unwrap();
    for options in [&["-O", "--remote-name-all"][..], &["-o", "list"], &["-o", "{name}"]] {
        let refused = run_in(dir, HAUL, &[&["-sS", "--input-file", "list"], options].concat());
        assert!(refused.failed(23).contains("list is the list of this run"), "{options:?}: {}", refused.stderr);
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{options:?}");
    }
    let url = site.url("/f");
    for option in ["-D", "-c", "--etag-save", "--hsts", "--trace", "--trace-ascii", "--stderr"] {
        let ran = run_in(dir, HAUL, &["-sS", option, "f", "-O", &url]);
        assert_eq!(ran.code, 23, "{option}: {}", ran.stderr);
        let _ = fs::remove_file(dir.join("f"));
    }
    run_in(dir, HAUL, &["-sS", "-D", "-", "-O", &site.url("/-")]).text();
}
