//! Where a user of curl, or a script written for it, counts on what curl 8.22 does with an option: each case was found beside it.

mod common;

use std::fs;
use std::path::Path;

use common::{HAUL, Ran, page, program, run};
use testkit::raw::{RawPeer, Step};

/// haul in curl's place, in this directory.
fn curl_in(dir: &Path, args: &[&str]) -> Ran {
    run(program(HAUL).arg("curl").arg("-q").args(args).current_dir(dir))
}

fn curl(args: &[&str]) -> Ran {
    curl_in(Path::new("/"), args)
}

/// The request that came over a connection.
fn received(peer: &RawPeer, connection: usize) -> String {
    String::from_utf8_lossy(&peer.received(connection)).into_owned()
}

fn answer(head: &str) -> Vec<Step> {
    vec![Step::ReadHead, Step::send(format!("HTTP/1.1 {head}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"))]
}

#[test]
fn what_w_tells_may_get_lost_in_curls_place_and_content_may_not() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let url = peer.url("/");
    let to_full = |first: &[&str], args: &[&str]| {
        let mut command = program("sh");
        command.args(["-c", "exec \"$@\" >/dev/full", "sh", HAUL]).args(first).args(args).current_dir(dir.path());
        run(&mut command)
    };
    let told = ["-s", "-S", "-o", "file", "-w", "%{http_code}", &url];
    let ran = to_full(&["curl", "-q"], &told);
    assert!(ran.code == 0 && ran.stderr.starts_with("Warning: failed to write"), "{ran:?}");
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"x");
    assert_eq!(to_full(&["curl", "-q"], &["-s", "-w", "%{http_code}", &url]).code, 23);
    assert_eq!(to_full(&[], &told).code, 23, "in haul's own name it is what was asked for");
}
