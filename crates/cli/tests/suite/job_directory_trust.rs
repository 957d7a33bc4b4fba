//! Tests of the check of a job's directory and of the SQLite files beside a job, with which other
//! users could replace its command line.

use crate::common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use common::small_site::SmallSite;
use common::third_party_servers::is_root;
use common::{CommandOutput, HAUL, names, run_in, skipped};

fn site() -> SmallSite {
    SmallSite::start(|_| Some(("text/plain", b"page\n".to_vec())))
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Creates a job in the file `j` of the directory.
fn make_job(dir: &Path, site: &SmallSite) {
    run_in(dir, HAUL, &["--job", "j", "-s", "--out-null", &site.url("/0")]).ok();
}

/// Runs, shows, lists, reports and changes the job. Returns the command line and the output of each
/// command.
fn use_job(dir: &Path, job: &str) -> Vec<(String, CommandOutput)> {
    let uses: [&[&str]; 6] = [
        &["--job", job],
        &["job", "status", job],
        &["job", "list", job],
        &["job", "report", job],
        &["job", "retry", "--all", job],
        &["job", "vacuum", job],
    ];
    uses.iter().map(|args| (args.join(" "), run_in(dir, HAUL, args))).collect()
}

fn is_refused(dir: &Path, job: &str, text: &str) {
    for (command, ran) in use_job(dir, job) {
        assert!(ran.failed(2).contains(text), "{command}: {}", ran.stderr);
    }
}

#[test]
fn job_in_world_writable_directory_is_refused() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let dir = dir.path();
    for mode in [0o777, 0o1777, 0o703] {
        set_mode(dir, mode);
        let refused = run_in(dir, HAUL, &["--job", "new", "--out-null", &site.url("/0")]);
        let text = refused.failed(2);
        assert!(text.contains("is writable for all users") && text.contains("directory of your own"), "{text}");
        assert_eq!(names(dir), [""; 0], "no job is made");
    }
    assert_eq!(site.requests().len(), 0);
    set_mode(dir, 0o700);
    make_job(dir, &site);
    set_mode(dir, 0o1777);
    is_refused(dir, "j", "is writable for all users");
    // A link from elsewhere leads to the same directory.
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(dir.join("j"), elsewhere.path().join("link")).unwrap();
    is_refused(elsewhere.path(), "link", "is writable for all users");
    symlink(dir.join("new"), elsewhere.path().join("dangling")).unwrap();
    let refused = run_in(elsewhere.path(), HAUL, &["--job", "dangling", "--out-null", &site.url("/0")]);
    assert!(refused.failed(2).contains("is writable for all users"), "{}", refused.stderr);
}

#[test]
fn job_in_own_group_writable_directory_runs() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    set_mode(dir.path(), 0o2775);
    make_job(dir.path(), &site);
    for (command, ran) in use_job(dir.path(), "j") {
        assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
    }
}

#[test]
fn invalid_sqlite_files_beside_job_are_refused() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let dir = dir.path();
    make_job(dir, &site);
    let before = fs::read(dir.join("j")).unwrap();
    fs::write(dir.join("other"), "x").unwrap();
    for suffix in ["journal", "wal", "shm"] {
        let path = dir.join(format!("j-{suffix}"));
        let _ = fs::remove_file(&path);
        symlink("other", &path).unwrap();
        is_refused(dir, "j", &format!("j-{suffix} beside it is a link"));
        fs::remove_file(&path).unwrap();

        fs::write(&path, "x").unwrap();
        set_mode(&path, 0o666);
        is_refused(dir, "j", &format!("j-{suffix} beside it is writable for others"));
        fs::remove_file(&path).unwrap();

        fs::create_dir(&path).unwrap();
        is_refused(dir, "j", &format!("j-{suffix} beside it is no regular file"));
        fs::remove_dir(&path).unwrap();
    }
    assert!(fs::read(dir.join("j")).unwrap() == before, "the job is as it was");
    assert_eq!(fs::read(dir.join("other")).unwrap(), b"x");
    run_in(dir, HAUL, &["--job", "j"]).ok();
}

#[test]
fn job_beside_another_users_files_is_refused() {
    if !is_root() {
        return skipped("another user's directory and journal: only root can make them");
    }
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let dir = dir.path();
    make_job(dir, &site);
    chown(dir, Some(65534), None).unwrap();
    is_refused(dir, "j", "belongs to another user (65534)");
    chown(dir, Some(0), None).unwrap();
    let journal = dir.join("j-journal");
    fs::write(&journal, "x").unwrap();
    set_mode(&journal, 0o600);
    chown(&journal, Some(65534), None).unwrap();
    is_refused(dir, "j", "j-journal beside it belongs to another user (65534)");
    fs::remove_file(&journal).unwrap();
    // Root may read another user's job in that user's directory, and run none.
    chown(dir, Some(65534), None).unwrap();
    chown(dir.join("j"), Some(65534), None).unwrap();
    run_in(dir, HAUL, &["job", "status", "j"]).ok();
    assert!(run_in(dir, HAUL, &["--job", "j"]).failed(2).contains("belongs to another user"));
}

#[test]
fn job_file_writable_for_others_is_refused() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    make_job(dir.path(), &site);
    set_mode(&dir.path().join("j"), 0o660);
    let refused = run_in(dir.path(), HAUL, &["--job", "j"]);
    assert!(refused.failed(2).contains("other users can write it"), "{}", refused.stderr);
}

#[test]
fn body_never_becomes_a_file_of_a_job() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let dir = dir.path();
    make_job(dir, &site);
    let before = fs::read(dir.join("j")).unwrap();
    for options in [&["-O"][..], &["-OJ"], &["-o", "#1"], &["-o", "{name}"], &["-O", "--no-clobber"]] {
        for name in ["j-wal", "j-shm", "j-journal"] {
            let url = site.url(&format!("/{{{name}}}"));
            let refused = run_in(dir, HAUL, &[&["-sS"], options, &[&url]].concat());
            let text = format!("{name} is a part of the job j");
            assert!(refused.failed(23).contains(&text), "{options:?} {name}: {}", refused.stderr);
            assert_eq!(names(dir), ["j"], "{options:?} {name}");
        }
    }
    for options in ["-O", "-OJ"] {
        let refused = run_in(dir, HAUL, &["-sS", options, &site.url("/j")]);
        assert!(refused.failed(23).contains("j is a job of haul"), "{options}: {}", refused.stderr);
    }
    assert_eq!(fs::read(dir.join("j")).unwrap(), before);
    run_in(dir, HAUL, &["-sS", "-O", "--remote-name-all", &site.url("/k-wal"), &site.url("/k")]).ok();
    assert_eq!(names(dir), ["j", "k", "k-wal"], "files of other databases are free");
}
