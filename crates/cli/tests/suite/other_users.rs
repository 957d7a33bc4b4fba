//! Tests of attacks by other users of the same machine, which need root: files of other users in
//! directories such as /tmp, and programs with more privileges than their caller.

use crate::common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use common::third_party_servers::is_root;
use common::{HAUL, installed, origin, program, run, run_in, skipped};
use testkit::h1_peer::{H1Peer, ScriptStep};

const NOBODY: u32 = 65534;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Creates a file of another user that everybody can write.
fn foreign_file(path: &Path) {
    fs::write(path, "old").unwrap();
    set_mode(path, 0o666);
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
}

/// Returns true if the kernel refuses to open another user's file in a sticky directory with
/// `O_CREAT` (`fs.protected_regular`).
fn kernel_refuses(path: &Path) -> bool {
    fs::OpenOptions::new().write(true).create(true).truncate(false).open(path).is_err()
}

#[test]
fn replaced_file_in_shared_directory_changes_owner() {
    if !is_root() {
        return skipped("a file of another user in a shared directory: only root can make it");
    }
    for directory_mode in [0o1777, 0o777, 0o1755] {
        for length in [3, 2 << 20] {
            let dir = tempfile::tempdir().unwrap();
            set_mode(dir.path(), directory_mode);
            let file = dir.path().join("file");
            foreign_file(&file);
            let content = "x".repeat(length);
            let head =
                format!("HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head + &content)]);
            let is_refused = kernel_refuses(&file);
            let ran = run_in(dir.path(), HAUL, &["-sS", "-o", "file", &peer.url("/")]);
            if is_refused {
                assert!(ran.failed(23).contains("file: Permission denied"), "{}", ran.stderr);
                assert_eq!(fs::read(&file).unwrap(), b"old");
                continue;
            }
            assert_eq!((ran.code, &*ran.stderr), (0, ""));
            assert!(fs::read_to_string(&file).unwrap() == content, "{directory_mode:o} {length}");
            let metadata = fs::metadata(&file).unwrap();
            assert_eq!((metadata.uid(), metadata.gid()), (0, 0), "{directory_mode:o} {length}");
            assert_eq!(metadata.mode() & 0o022, 0, "{directory_mode:o} {length}");
        }
    }
}

#[test]
fn error_of_opening_unwritable_file_is_reported() {
    let Some(sleep) = installed("sleep", "a file that the kernel does not open for writing").filter(|_| is_root())
    else {
        return skipped("a file of another user that cannot be written: only root can make it");
    };
    let dir = tempfile::tempdir().unwrap();
    set_mode(dir.path(), 0o1777);
    let file = dir.path().join("file");
    let found = run(program("sh").args(["-c", &format!("cp \"$(command -v {sleep})\" file")]).current_dir(dir.path()));
    assert_eq!(found.code, 0, "{}", found.stderr);
    set_mode(&file, 0o777);
    chown(&file, Some(NOBODY), None).unwrap();
    // A rename over a running program would succeed.
    let mut running = program(&file).arg("600").spawn().unwrap();
    let peer = common::page("new");
    let ran = run_in(dir.path(), HAUL, &["-sS", "-o", "file", &peer.url("/")]);
    running.kill().unwrap();
    running.wait().unwrap();
    let text = ran.failed(23);
    assert!(text.contains("Text file busy") || text.contains("Permission denied"), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().uid(), NOBODY);
}

#[test]
fn set_user_id_program_ignores_its_environment() {
    let Some(setpriv) = installed("setpriv", "a set-user-ID program").filter(|_| is_root()) else {
        return skipped("a set-user-ID program: only root can make one");
    };
    let dir = tempfile::tempdir().unwrap();
    set_mode(dir.path(), 0o777);
    let copy = dir.path().join("haul");
    fs::copy(HAUL, &copy).unwrap();
    let origin = origin();
    let authority = dir.path().join("ca.pem");
    fs::write(&authority, origin.ca_pem()).unwrap();
    let url = origin.https_url("/small");
    let log = dir.path().join("keys");
    let asked = |variables: &[(&str, &Path)]| {
        let mut command = program(setpriv);
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy).args(["-sS", &url]);
        command.envs(variables.iter().copied()).current_dir(dir.path());
        run(&mut command)
    };
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let variables: [&[(&str, &Path)]; 4] = [
        &[("SSL_CERT_FILE", &authority), ("SSLKEYLOGFILE", &log)],
        &[("SSL_CERT_FILE", &authority), ("SSL_CERT_DIR", &empty)],
        &[("CURL_CA_BUNDLE", &authority)],
        &[("https_proxy", Path::new("http://127.0.0.1:1")), ("SSL_CERT_FILE", &authority)],
    ];
    set_mode(&copy, 0o755);
    let codes: Vec<i32> = variables.iter().map(|variables| asked(variables).code).collect();
    if !log.exists() {
        return skipped("a call of another user: this program's directory is closed to it");
    }
    assert_eq!(codes, [0, 0, 0, 7], "other programs obey their environment");
    fs::remove_file(&log).unwrap();
    set_mode(&copy, 0o4755);
    let marker = dir.path().join("marker");
    let mut probe = program(setpriv);
    probe.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy);
    run(probe.args(["-s", "-o", "marker", &origin.url("/small")]).current_dir(dir.path())).ok();
    if fs::metadata(&marker).unwrap().uid() != 0 {
        return skipped("a set-user-ID program: this file system is mounted with nosuid");
    }
    for variables in variables {
        let ran = asked(variables);
        assert!(ran.failed(60).contains("certificate"), "{variables:?}: {}", ran.stderr);
    }
    assert!(!log.exists(), "no keys are logged");
}
