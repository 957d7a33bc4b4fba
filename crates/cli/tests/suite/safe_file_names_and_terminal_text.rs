//! Tests of dangers for the user's own machine, one for each class: file names that servers choose,
//! symlinks of other users, files that others can read, control characters on a terminal, secrets
//! in the output. `docs/design/trust.md` lists all classes.

use crate::common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use common::third_party_servers::is_root;
use common::{
    HAUL, RunningCommand, can_trace, eventually, haul, installed, names, page, program, run, run_haul, run_in, skipped,
};
use rustix::fs::{CWD, FlockOperation, Mode, flock, mkfifoat};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;
use testkit::test_certificates::TestCertificates;

/// Starts a server whose response suggests a file name with this value of `Content-Disposition`.
fn naming(disposition: &str) -> H1Peer {
    let reply = format!(
        "HTTP/1.1 200 OK\r\nContent-Disposition: attachment; filename=\"{disposition}\"\r\nContent-Length: 3\r\n\
         Connection: close\r\n\r\nnew"
    );
    H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)])
}

#[test]
fn cve_2020_8177_server_name_stays_in_directory() {
    for (suggested, name) in [
        ("plain.txt", Some("plain.txt")),
        ("/etc/evil", Some("evil")),
        ("../../evil", Some("evil")),
        ("..\\\\evil", Some("evil")),
        ("a/b/evil", Some("evil")),
        (".bashrc", None),
        ("..", None),
        ("", None),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let ran = run_haul(["--output-dir", inner.to_str().unwrap(), "-OJ", &naming(suggested).url("/from-url")]);
        assert_eq!(ran.code, 0, "{suggested}: {}", ran.stderr);
        assert_eq!(names(dir.path()), ["inner"], "{suggested}");
        let [made] = &names(&inner)[..] else { panic!("{suggested}: {:?}", names(&inner)) };
        if let Some(name) = name {
            assert_eq!(made, name, "{suggested}");
        }
        assert!(!made.starts_with('.'), "{suggested}: {made}");
        // A second download does not replace the existing file.
        fs::write(inner.join(made), "mine").unwrap();
        let ran = run_haul(["--output-dir", inner.to_str().unwrap(), "-OJ", &naming(made).url("/from-url")]);
        assert_eq!(ran.code, 23, "{suggested}");
        assert_eq!(fs::read_to_string(inner.join(made)).unwrap(), "mine", "{suggested}");
    }
}

#[test]
fn symlink_at_server_chosen_name_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(dir.path().join("victim"), "mine").unwrap();
    for to in ["victim", "not-there-yet"] {
        symlink(dir.path().join(to), inner.join("link")).unwrap();
        run_haul(["--output-dir", inner.to_str().unwrap(), "-OJ", &naming("link").url("/x")]);
        assert_eq!(fs::read_to_string(dir.path().join("victim")).unwrap(), "mine", "{to}");
        assert!(!dir.path().join("not-there-yet").exists(), "{to}");
        fs::remove_file(inner.join("link")).unwrap();
    }
}

#[test]
fn server_chosen_name_never_opens_fifo_or_device() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    mkfifoat(CWD, dir.join("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
    // A reader, so that no open for writing waits or fails.
    let fifo = fs::File::options().read(true).write(true).open(dir.join("fifo")).unwrap();
    symlink("/dev/null", dir.join("device")).unwrap();
    fs::write(dir.join("victim"), "mine").unwrap();
    symlink("victim", dir.join("link")).unwrap();
    for name in ["fifo", "device", "link"] {
        for persona in [&[][..], &["curl"]] {
            for options in [&[][..], &["--clobber"]] {
                let peer = naming(name);
                let url = peer.url("/x");
                let ran = run_in(dir, HAUL, &[persona, options, &["-sS", "-OJ", &url]].concat());
                assert_eq!(ran.code, 23, "{name} {persona:?} {options:?}: {}", ran.stderr);
                // Of many URLs, too.
                let ran = run_in(dir, HAUL, &[persona, options, &["-sS", "-Z", "-OJ", &url, "-OJ", &url]].concat());
                assert_eq!(ran.code, 23, "{name} {persona:?} {options:?}: {}", ran.stderr);
            }
        }
        let ran = run_in(dir, HAUL, &["-sS", "--no-clobber", "-OJ", &naming(name).url("/x")]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        assert_eq!(fs::read(dir.join(format!("{name}.1"))).unwrap(), b"new", "another name is found");
    }
    assert_eq!(rustix::io::ioctl_fionread(&fifo).unwrap(), 0, "nothing went into the FIFO");
    assert_eq!(fs::read(dir.join("victim")).unwrap(), b"mine");
    for (name, is_kept) in [("device", "/dev/null"), ("link", "victim")] {
        assert_eq!(fs::read_link(dir.join(name)).unwrap(), Path::new(is_kept));
    }
}

/// The kernel refuses to follow symbolic links of other users in directories such as /tmp
/// (`fs.protected_symlinks`). The test simulates this with strace: opening the link, or reading its
/// metadata, fails.
#[test]
fn symlink_refused_by_kernel_is_not_followed() {
    if !can_trace("links that the kernel refuses") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("victim"), "mine").unwrap();
    symlink(dir.join("victim"), dir.join("to-victim")).unwrap();
    symlink(dir.join("new-victim"), dir.join("to-nothing")).unwrap();
    let peer = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send(
            "HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Max-Age=60\r\nETag: \"x\"\r\nContent-Length: 3\r\nConnection: close\r\n\r\nnew",
        ),
    ]);
    let url = peer.url("/");
    for link in ["to-victim", "to-nothing"] {
        for option in ["-o", "-c", "-D", "--trace", "--etag-save", "--hsts", "--alt-svc"] {
            let mut command = program("strace");
            command.args(["-f", "-qq", "-o", "/dev/null", "-P", link]);
            command.args(["-e", "trace=openat,open,creat,stat,newfstatat,statx"]);
            command.args(["-e", "inject=openat,open,creat,stat,newfstatat,statx:error=EACCES"]);
            command.arg(HAUL).args(["-sS", option, link, &url]).current_dir(dir);
            let ran = run(&mut command);
            assert_eq!(fs::read(dir.join("victim")).unwrap(), b"mine", "{option} {link}");
            assert!(!dir.join("new-victim").exists(), "{option} {link}");
            assert_ne!(ran.code, 0, "{option} {link}");
            assert!(ran.stderr.contains(link), "{option} {link}: {}", ran.stderr);
            assert_eq!(names(dir), ["to-nothing", "to-victim", "victim"], "{option}");
        }
    }
}

/// The kernel follows at most 40 symbolic links in a path, so haul must refuse a chain of 41. If
/// haul read the links itself, it would write to a file that the kernel does not open.
#[test]
fn chain_of_too_many_links_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("41"), "mine").unwrap();
    for link in 0..41 {
        symlink(format!("{}", link + 1), dir.join(link.to_string())).unwrap();
    }
    let before = names(dir);
    let reply = "HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Max-Age=60\r\nETag: \"x\"\r\nContent-Length: 3\r\n\r\nnew";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)]);
    for option in ["-o", "-c", "-D", "--trace", "--etag-save", "--hsts", "--alt-svc"] {
        let ran = run_in(dir, HAUL, &["-sS", option, "0", &peer.url("/")]);
        assert_ne!(ran.code, 0, "{option}");
        assert!(ran.stderr.contains("symbolic link"), "{option}: {}", ran.stderr);
        assert_eq!(fs::read(dir.join("41")).unwrap(), b"mine", "{option}");
        assert!(names(dir) == before && (0..41).all(|link| dir.join(link.to_string()).is_symlink()), "{option}");
    }
}

#[test]
fn output_file_as_mount_point_is_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (source, target) = (dir.join("source"), dir.join("target"));
    fs::write(&source, "an old file that is longer").unwrap();
    fs::write(&target, "").unwrap();
    let mount =
        || program("mount").arg("--bind").arg(&source).arg(&target).output().is_ok_and(|ran| ran.status.success());
    if !is_root() || !mount() {
        return skipped("a file that is a mount point: mount --bind is not permitted");
    }
    let unmounts = MountGuard(&target);
    let owner = fs::metadata(&source).unwrap().ino();
    for (persona, length) in [(&[][..], 3), (&[], 2 << 20), (&["curl"], 3), (&["curl"], 2 << 20)] {
        let content = "x".repeat(length);
        let head = format!("HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head + &content)]);
        let ran = run_in(dir, HAUL, &[persona, &["-sS", "-o", "target", &peer.url("/")]].concat());
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{persona:?} {length}");
        assert!(fs::read_to_string(&source).unwrap() == content, "{persona:?} {length}");
        assert_eq!(fs::metadata(&source).unwrap().ino(), owner);
        assert_eq!(names(dir), ["source", "target"], "no part stays behind");
    }
    // State files, too.
    fs::write(&source, "").unwrap();
    let set = "HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Max-Age=60\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(set)]);
    run_in(dir, HAUL, &["-sS", "-c", "target", &peer.url("/")]).ok();
    assert!(fs::read_to_string(&source).unwrap().contains("\ta\t1\n"));
    // A failed transfer leaves the old content.
    fs::write(&source, "old").unwrap();
    let ran = run_in(dir, HAUL, &["-sS", "--retry", "0", "-o", "target", &common::short_body().url("/")]);
    assert_eq!((ran.code, fs::read(&source).unwrap()), (18, b"old".to_vec()));
    drop(unmounts);
}

struct MountGuard<'a>(&'a Path);

impl Drop for MountGuard<'_> {
    fn drop(&mut self) {
        let _ = program("umount").arg(self.0).status();
    }
}

#[test]
fn file_in_unwritable_directory_is_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    let Some(setpriv) = installed("setpriv", "files of another user").filter(|_| is_root()) else {
        return skipped("a directory that is closed: the tests do not run as root");
    };
    let foreign = |temporary: &str, args: &[&str]| {
        let mut command = program(setpriv);
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", HAUL]).args(args);
        run(command.env("TMPDIR", temporary).current_dir(dir))
    };
    if foreign("/tmp", &["--version"]).code != 0 {
        return skipped("a call of another user: this program's directory is closed to it");
    }
    let file = dir.join("file");
    for temporary in ["/tmp", "/nonexistent"] {
        for length in [3, 2 << 20] {
            fs::write(&file, "an old file that is longer").unwrap();
            chown(&file, Some(65534), Some(65534)).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
            let content = "x".repeat(length);
            let head =
                format!("HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head + &content)]);
            let ran = foreign(temporary, &["-sS", "-o", "file", &peer.url("/")]);
            assert_eq!((ran.code, &*ran.stderr), (0, ""), "{temporary} {length}");
            assert!(fs::read_to_string(&file).unwrap() == content, "{temporary} {length}");
            let metadata = fs::metadata(&file).unwrap();
            assert_eq!((metadata.uid(), metadata.mode() & 0o777), (65534, 0o640));
            assert_eq!(names(dir), ["file"]);
        }
    }
    // A failed transfer leaves the old content: the new one is copied only when it is complete.
    fs::write(&file, "old").unwrap();
    let ran = foreign("/tmp", &["-sS", "--retry", "0", "-o", "file", &common::short_body().url("/")]);
    assert_eq!((ran.code, fs::read(&file).unwrap()), (18, b"old".to_vec()));
    // A file that cannot be written is reported with the reason.
    chown(&file, Some(0), Some(0)).unwrap();
    let ran = foreign("/tmp", &["-sS", "-o", "file", &page("new").url("/")]);
    assert!(ran.failed(23).contains("file: Permission denied"), "{}", ran.stderr);
}

#[test]
fn replaced_file_keeps_owner_and_mode() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    for length in [3, 2 << 20] {
        fs::write(&file, "old").unwrap();
        let _ = fs::remove_file(dir.path().join("twin"));
        fs::hard_link(&file, dir.path().join("twin")).unwrap();
        // Bits that the umask takes off, too.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        if is_root() {
            chown(&file, Some(65534), Some(65533)).unwrap();
        }
        let before = fs::metadata(&file).unwrap();
        let content = "x".repeat(length);
        let head = format!("HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head + &content)]);
        run_in(dir.path(), HAUL, &["-sS", "-o", "file", &peer.url("/")]).ok();
        let after = fs::metadata(&file).unwrap();
        assert_eq!((after.uid(), after.gid(), after.mode()), (before.uid(), before.gid(), before.mode()));
        assert!(fs::read_to_string(&file).unwrap() == content);
        assert_eq!(fs::read(dir.path().join("twin")).unwrap(), b"old", "another name of the old file is left alone");
    }
}

#[test]
fn max_time_ends_wait_for_locked_cookie_jar() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("jar"), "").unwrap();
    let held = fs::File::open(dir.join("jar")).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let set = "HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Max-Age=60\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(set)]);
    let ran = run_in(dir, HAUL, &["-sS", "-m", "1", "-c", "jar", &peer.url("/")]);
    let told = ran.failed(28);
    assert!(told.contains("jar") && told.contains("holds its lock"), "{told}");
    // Without a limit it is waited for.
    let waiting = RunningCommand::start(haul(["-sS", "-c", "jar", &peer.url("/")]).current_dir(dir));
    eventually("both have been answered", || peer.connections() >= 2);
    drop(held);
    assert_eq!(waiting.wait().code, 0);
    assert!(fs::read_to_string(dir.join("jar")).unwrap().contains("\ta\t1\n"));
}

#[test]
fn failed_transfer_removes_only_its_own_file() {
    let broken = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"),
    ]);
    let dir = tempfile::tempdir().unwrap();
    let (file, beside) = (dir.path().join("file"), dir.path().join("beside"));
    fs::write(&file, "before").unwrap();
    fs::write(&beside, "mine").unwrap();
    let ran = run_haul(["--retry", "0", "--remove-on-error", "-o", file.to_str().unwrap(), &broken.url("/x")]);
    assert_eq!(ran.code, 18);
    assert_eq!(
        (fs::read_to_string(&file).unwrap(), fs::read_to_string(&beside).unwrap()),
        ("before".into(), "mine".into())
    );
    assert_eq!(names(dir.path()), ["beside", "file"]);
}

#[test]
fn state_files_are_readable_by_owner_only() {
    let origin = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let set = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send(
            "HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Max-Age=60\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
    ]);
    let ca = dir.path().join("ca");
    fs::write(&ca, origin.ca_pem()).unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    // A jar that others could read becomes private, too.
    fs::write(path("open-jar"), "").unwrap();
    fs::set_permissions(path("open-jar"), fs::Permissions::from_mode(0o666)).unwrap();
    for jar in ["jar", "open-jar"] {
        let mut command = haul(["-c", &path(jar), "--hsts", &path("hsts"), "--alt-svc", &path("alt"), &set.url("/")]);
        run(&mut command).ok();
        assert_eq!(fs::metadata(path(jar)).unwrap().permissions().mode() & 0o777, 0o600, "{jar}");
        assert!(fs::read_to_string(path(jar)).unwrap().contains("\ta\t1\n"));
    }
    for name in ["hsts", "alt"] {
        if let Ok(file) = fs::metadata(path(name)) {
            assert_eq!(file.permissions().mode() & 0o077, 0, "{name}");
        }
    }
}

#[test]
fn server_escape_sequences_never_reach_stderr() {
    let peer = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send(
            "HTTP/1.1 302 Found\r\nLocation: gopher\x1b[2J://evil\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
    ]);
    let ran = run_haul([&*peer.url("/")]);
    assert_ne!(ran.code, 0);
    assert!(!ran.stderr.contains('\x1b'), "{:?}", ran.stderr);
    // C1 controls and marks of text direction, too.
    let head = "HTTP/1.1 404 Not\u{9b}2J\r\nX-Odd: \u{9b}2J \u{202e}b\r\nContent-Length: 0\r\n\r\n";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head)]);
    let ran = run_haul(["-v", &*peer.url("/")]);
    assert!(ran.stderr.contains("X-Odd: ?2J ?b"), "{:?}", ran.stderr);
    assert!(!ran.stderr.contains(['\u{9b}', '\u{202e}']), "{:?}", ran.stderr);
}

#[test]
fn binary_body_is_not_printed_on_terminal() {
    let Some(script) = installed("script", "what a terminal gets") else { return };
    let (binary, text) = (page("\x7fELF\0\x1b[2J"), page("just text"));
    // `script` runs the command on a terminal of its own and records its output.
    let on_terminal = |line: String| run(program(script).args(["-qec", &line, "/dev/null"]));
    let shown = |ran: &common::CommandOutput| String::from_utf8_lossy(&ran.stdout).into_owned();
    for url in [binary.url("/"), format!("{0} {0}", binary.url("/"))] {
        let ran = on_terminal(format!("{HAUL} -sS {url}"));
        assert_eq!(ran.code, 23, "{}", shown(&ran));
        assert!(shown(&ran).contains("-o -") && !shown(&ran).contains("ELF"), "{:?}", shown(&ran));
    }
    // With `-o -` binary output is printed; text always is.
    let ran = on_terminal(format!("{HAUL} -sS -o - {}", binary.url("/")));
    assert!(ran.code == 0 && shown(&ran).contains("ELF\0"), "{:?}", shown(&ran));
    let ran = on_terminal(format!("{HAUL} -sS {}", text.url("/")));
    assert_eq!((ran.code, shown(&ran).as_str()), (0, "just text"));
    // Into a pipe goes anything.
    assert!(run_haul(["-sS", &binary.url("/")]).text().contains("ELF\0"));
}

#[test]
fn printed_output_contains_no_secrets() {
    let echo = page("x");
    let dir = tempfile::tempdir().unwrap();
    let netrc = dir.path().join("netrc");
    fs::write(&netrc, "machine 127.0.0.1 login me password hunter2\n").unwrap();
    let url = echo.url("/p");
    let with_user = url.replacen("://", "://me:hunter2@", 1);
    let refused = "http://me:hunter2@127.0.0.1:1/";
    for args in [
        &["-v", "-u", "me:hunter2", &*url][..],
        &["-v", "--oauth2-bearer", "hunter2", &url],
        &["-v", "-b", "sid=hunter2", &url],
        &["-v", "-H", "Authorization: hunter2", &url],
        &["-v", "-H", "X-Api-Key: hunter2", &url],
        &["-v", "--netrc-file", netrc.to_str().unwrap(), &url],
        &["-v", &with_user],
        &["-v", "-w", "%{url} %{url_effective}", "--stats", &with_user],
        &[refused],
        &["-v", "-x", refused, &url],
        &["-v", "-x", "http://127.0.0.1:1", "-U", "me:hunter2", &url],
        &["--pass", "hunter2", "--cert", "/nonexistent", "https://127.0.0.1:1/"],
        &["http://me:hunter2@[bad/"],
    ] {
        let ran = run_haul(args);
        let told = format!("{}{}", String::from_utf8_lossy(&ran.stdout), ran.stderr);
        // Basic's form of it, too.
        for secret in ["hunter2", "bWU6aHVudGVyMg"] {
            assert!(!told.contains(secret), "{args:?}: {told}");
        }
    }
}

#[test]
fn verbose_output_hides_fields_that_look_secret() {
    let reply = "HTTP/1.1 200 OK\r\nX-Subject-Token: hunter2\r\nWWW-Authenticate: Basic realm=\"harmless\"\r\n\
                 X-Author: harmless\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)]);
    for form in [&["-v"][..], &["--trace-ascii", "%"], &["curl", "-q", "-v"]] {
        let fields =
            ["-H", "X-My-Secret-Thing: hunter2", "-H", "DD-API-KEY: hunter2", "-H", "Idempotency-Key: harmless"];
        let ran = run_haul([form, &fields, &[&*peer.url("/")]].concat());
        assert_eq!((ran.code, ran.stderr.contains("hunter2")), (0, false), "{form:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches("harmless").count(), 3, "{form:?}: {}", ran.stderr);
    }
    assert!(common::received(&peer, 0).contains("X-My-Secret-Thing: hunter2\r\n"), "only what is shown lacks it");
}

#[test]
fn service_key_headers_follow_redirects_only_for_curl() {
    let fields = ["X-JFrog-Art-Api: k", "CF-Access-Client-Secret: k", "Authorization: k", "Idempotency-Key: k"];
    for (persona, expected) in [
        (&["-L"][..], &["Idempotency-Key"][..]),
        (&["curl", "-q", "-sL"], &["X-JFrog-Art-Api", "CF-Access-Client-Secret", "Idempotency-Key"]),
        (
            &["curl", "-q", "-sL", "--location-trusted"],
            &["X-JFrog-Art-Api", "CF-Access-Client-Secret", "Authorization", "Idempotency-Key"],
        ),
    ] {
        let target = page("x");
        let moved = format!("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", target.url("/"));
        let peer = common::answering(moved);
        let mut args = persona.to_vec();
        fields.iter().for_each(|field| args.extend(["-H", field]));
        let url = peer.url("/");
        run_haul([&args[..], &[&*url]].concat()).ok();
        let sent = common::received(&target, 0);
        let kept: Vec<_> = sent.lines().filter_map(|line| line.strip_suffix(": k")).collect();
        assert_eq!(kept, expected, "{persona:?}");
    }
}

#[test]
fn secret_arguments_are_blanked_in_the_process_list() {
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::Await(1)]);
    let url = peer.url("/visible");
    for args in [
        &["-u", "me:hunter2"][..],
        &["-ume:hunter2"],
        &["--user=me:hunter2", "-U", "hunter2:x"],
        &["--oauth2-bearer", "hunter2", "-H", "X-Visible: 1"],
        &["-sHAuthorization: hunter2", "-H", "X-Api-Key: hunter2"],
        &["-b", "sid=hunter2", "--pass", "hunter2"],
        &["curl", "-q", "-su", "me:hunter2"],
    ] {
        let running = common::RunningCommand::start(&mut haul([args, &[&*url]].concat()));
        let list = format!("/proc/{}/cmdline", running.pid().as_raw_nonzero());
        let shown = || String::from_utf8(fs::read(&list).unwrap_or_default()).unwrap();
        common::eventually("the secret is blanked", || shown().contains("visible") && !shown().contains("hunter2"));
        let (shown, wanted) = (shown(), [&[HAUL][..], args, &[&*url, ""]].concat().join("\0"));
        assert_eq!(shown.len(), wanted.len(), "{shown:?}");
        assert!(shown.contains("/visible"), "{shown:?}");
        rustix::process::kill_process(running.pid(), rustix::process::Signal::TERM).unwrap();
        running.wait();
    }
    peer.release();
}

#[test]
fn headers_on_terminal_lose_control_characters() {
    let Some(script) = installed("script", "what a terminal gets") else { return };
    let reply = "HTTP/1.1 200 OK\r\nX-A: a\u{9b}2J\u{202e}b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)]);
    for option in ["-i", "-I", "-D - -o /dev/null", "-v"] {
        let line = format!("{HAUL} -sS {option} {}", peer.url("/"));
        let ran = run(program(script).args(["-qec", &line, "/dev/null"]));
        let shown = String::from_utf8(ran.stdout).unwrap();
        assert!(ran.code == 0 && shown.contains("X-A: a?2J?b"), "{option}: {shown:?}");
    }
    // A pipe or a file gets the received bytes unchanged.
    let text = run_haul(["-sSi", &peer.url("/")]).text();
    assert!(text.contains("X-A: a\u{9b}2J\u{202e}b\r\n"), "{text:?}");
}

#[test]
fn values_on_terminal_lose_control_characters() {
    let Some(script) = installed("script", "what a terminal gets") else { return };
    let page = page("<i>a&#27;[31m\u{9b}2J\u{202e}b</i><p>{\"k\":\"a\u{9b}2J\u{202e}b\"}");
    let value = "a\u{1b}[31m\u{9b}2J\u{202e}b";
    for (options, shown) in [
        ("--select i", "a?[31m?2J?b"),
        ("--select i --unique", "a?[31m?2J?b"),
        ("--select i --sort", "a?[31m?2J?b"),
        ("--select i --csv", "a?[31m?2J?b"),
        ("--select i --csv --unique", "a?[31m?2J?b"),
        ("--extract a.*b", "a?2J?b"),
    ] {
        let line = format!("{HAUL} -sS {options} {}", page.url("/"));
        let ran = run(program(script).args(["-qec", &line, "/dev/null"]));
        let text = String::from_utf8(ran.stdout).unwrap();
        assert!(ran.code == 0 && text.contains(shown), "{options}: {text:?}");
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{options}: {text:?}");
    }
    // A pipe gets the value as it is, and JSON an equal one.
    for options in [&["--select", "i"][..], &["--select", "i", "--csv"]] {
        let text = run_haul([&["-sS"], options, &[&page.url("/")]].concat()).text();
        assert!(text.contains(value), "{options:?}: {text:?}");
    }
    let text = run_haul(["-sS", "--select", "i", "--jsonl", &page.url("/")]).text();
    assert!(text.contains(r#""values":["a\u001b[31m\u009b2J\u202eb"]"#), "{text:?}");
    let text = run_haul(["-sS", "--jsonl", &page.url("/")]).text();
    assert!(text.contains(r"a\u009b2J\u202eb") && !text.contains('\u{9b}'), "{text:?}");
}

#[test]
fn json_header_values_escape_control_characters() {
    let reply = "HTTP/1.1 200 OK\r\nX-A: a\u{9b}2J\u{202e}b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)]);
    for options in [&["-w", "%{header_json}"][..], &["--jsonl"]] {
        let text = run_haul([&["-sS"], options, &[&peer.url("/")]].concat()).text();
        assert!(text.contains(r"a\u009b2J\u202eb"), "{options:?}: {text:?}");
    }
}

#[test]
fn http_proxy_in_capitals_is_ignored() {
    // The "httpoxy" class: in a CGI program, HTTP_PROXY is a field of the request.
    let echo = page("direct");
    let mut command = haul([&*echo.url("/")]);
    assert_eq!(run(command.env("HTTP_PROXY", "http://127.0.0.1:1")).text(), "direct");
}

#[test]
fn non_utf8_proxy_variable_is_not_ignored() {
    let origin = Origin::builder().start().unwrap();
    for proxy in [&b"\xff"[..], b"http://prox\xe9:1"] {
        for persona in [&[][..], &["curl", "-q"]] {
            let mut command = haul(persona);
            let ran = run(command.args(["-sS", &origin.url("/small")]).env("http_proxy", OsStr::from_bytes(proxy)));
            assert_eq!((ran.code, origin.requests()), (5, 0), "{}", ran.stderr);
        }
    }
    let proxy = H1Peer::start(vec![vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ]]);
    let place = proxy.url("").replace("http://", "");
    let url = [b"http://us\xe9r:p\xff@", place.as_bytes()].concat();
    run(haul(["http://a.example/"]).env("http_proxy", OsStr::from_bytes(&url))).ok();
    let sent = String::from_utf8(proxy.received(0)).unwrap();
    assert!(sent.contains("Proxy-Authorization: Basic dXPpcjpw/w==\r\n"), "{sent}");
}

#[test]
fn common_name_is_accepted_with_explicit_ca() {
    let origin = Origin::builder().identity(TestCertificates::by_subject("localhost")).start().unwrap();
    let (dir, url) = (tempfile::tempdir().unwrap(), origin.https_url("/small"));
    let ca = dir.path().join("ca.pem");
    fs::write(&ca, origin.ca_pem()).unwrap();
    let ca = ca.display();
    for args in [
        &["-sS", "--cacert", &ca.to_string()][..],
        &["curl", "-q", "-sS", "--cacert", &ca.to_string()],
        &["ftp", "-o", "-", "-S", &format!("cafile={ca}")],
    ] {
        assert_eq!(run_haul([args, &[&url]].concat()).text(), "small\n", "{args:?}");
    }
    run_haul(["-sS", &url]).failed(60);
}

#[test]
fn disallow_username_refuses_only_urls_with_user() {
    let origin = Origin::builder().start().unwrap();
    let with_user = origin.url("/small/1").replace("http://", "http://me:secret@");
    let ran = run_haul(["--disallow-username-in-url", &with_user, &origin.url("/small/2")]);
    assert_eq!((ran.code, origin.requests(), &ran.stdout[..]), (67, 1, &b"small 2\n"[..]));
    assert!(ran.stderr.contains("has a user name") && !ran.stderr.contains("secret"), "{}", ran.stderr);
}
