//! Tests of `haul ftp` in place of OpenBSD's ftp(1). pkg_add runs it once for each file, and may
//! stop reading early (docs/package-managers.md).

use crate::common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::time::Duration;

use common::agent::TestAgentDirectory;
use common::{HAUL, REFUSED, haul, installed, program, run};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;
use testkit::packages::{PackageCatalogue, PackageMirror, PackageReadMeasurement, PkgAddEmulator, SignedGzipPackage};
use testkit::relay::Relay;
use testkit::test_certificates::TestCertificates;

/// The maximum number of bytes of a package that the server may send in addition to the bytes that
/// the reader needs before it stops.
const WASTE: u64 = 64 << 10;

/// A user ID that no user of the machine has. The tests give it to files of "another user".
const OTHER: u32 = 65_533;

struct PackageReadRun {
    run: PackageReadMeasurement,
    mirror: PackageMirror,
    catalogue: PackageCatalogue,
}

/// Reads the beginning of each of `packages` packages, as pkg_add does, with `fetcher` as the
/// download command. If `far` is true, the connection to the mirror has a round-trip time of 20 ms.
fn read_packages(fetcher: &[&str], packages: usize, tls: bool, far: bool) -> PackageReadRun {
    let identity = tls.then(TestCertificates::generate);
    let catalogue = PackageCatalogue::new(7, packages);
    let mirror = PackageMirror::start(catalogue.clone(), identity.as_ref()).unwrap();
    let relay = Relay::to(mirror.addr()).rtt(Duration::from_millis(if far { 20 } else { 0 })).start().unwrap();
    let base = mirror.url_by(relay.addr(), "");
    let dir = tempfile::tempdir().unwrap();
    let mut words: Vec<String> = fetcher.iter().map(|word| (*word).to_owned()).collect();
    if let Some(identity) = &identity {
        let ca = dir.path().join("ca.pem");
        fs::write(&ca, identity.ca_pem()).unwrap();
        let ca = ca.to_str().unwrap();
        if fetcher.contains(&"ftp") {
            words.extend(["-S".to_owned(), format!("cafile={ca},session=/dev/fd/9")]);
        } else {
            words.extend(["--cacert".to_owned(), ca.to_owned()]);
        }
    }
    let run = PkgAddEmulator { fetcher: &words, base: &base }.run(&catalogue.needed_parts()).unwrap();
    PackageReadRun { run, mirror, catalogue }
}

fn check_waste(pass: &PackageReadRun) {
    for package in pass.catalogue.packages() {
        let (sent, floor) = (pass.mirror.sent(&package.name), package.min_sent_bytes() as u64);
        assert!(sent >= floor && sent <= floor + WASTE, "{}: {sent} bytes sent, {floor} needed", package.name);
    }
    let index = pass.mirror.sent("");
    assert!(index <= pass.mirror.coded_index(), "the index came gzipped: {index}");
    assert_eq!(pass.run.error_output, "", "nothing for the user to see");
}

#[test]
fn package_reads_with_agent_use_one_connection() {
    for tls in [false, true] {
        // On a busy machine a call can come before the last one has given its connection back: not
        // three times over.
        let mut passes = (0..3).map(|_| {
            let agent = TestAgentDirectory::new();
            read_packages(&[HAUL, "ftp", &agent.option()], 70, tls, true)
        });
        let pass = passes.find(|pass| pass.mirror.connections() == 1).expect("a run by one connection");
        check_waste(&pass);
        assert_eq!(pass.run.calls, 71, "TLS: {tls}");
        let trips = pass.mirror.requests() as f64 / pass.run.calls as f64;
        assert!(trips <= 1.1, "{trips} round trips a call");
    }
}

#[test]
fn signify_verifies_streamed_packages_without_waste() {
    if installed("signify-openbsd", "packages that are signed and checked by signify").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = |text: &str, args: &[&str]| {
        let mut command = program("bash");
        run(command.args(["-c", text, HAUL]).args(args).current_dir(dir.path())).text()
    };
    script("signify-openbsd -G -n -p key.pub -s key.sec", &[]);
    let sizes = [20_000, 70_000, 200_000, 9_000_000];
    let packages = sizes.iter().map(|size| {
        fs::write(dir.path().join("body"), testkit::byte_pattern::BytePattern::new(*size).slice(0, *size as usize))
            .unwrap();
        script("gzip -n1 < body > body.gz && signify-openbsd -zS -s key.sec -m body.gz -x signed.tgz", &[]);
        SignedGzipPackage::from_bytes(&format!("{size}.tgz"), fs::read(dir.path().join("signed.tgz")).unwrap(), 5000)
    });
    let catalogue = PackageCatalogue::from_packages(packages.collect());
    let mirror = PackageMirror::start(catalogue.clone(), None).unwrap();
    let agent = TestAgentDirectory::new();
    for option in [agent.option(), "-V".to_owned()] {
        mirror.reset_counts();
        for package in catalogue.packages() {
            let text =
                "\"$0\" ftp $1 -o - $2 | signify-openbsd -Vz -q -p key.pub 2> said | head -c 5000 | wc -c; cat said";
            assert_eq!(script(text, &[&option, &mirror.url(&package.name)]).trim(), "5000", "{}", package.name);
            let (sent, floor) = (mirror.sent(&package.name), package.min_sent_bytes() as u64);
            assert!(sent <= floor + WASTE, "{}: {sent} bytes sent, {floor} needed", package.name);
        }
        assert_eq!(mirror.connections(), if option == "-V" { sizes.len() as u64 } else { 1 });
        // A reader that wants all of the package gets it.
        let text = "\"$0\" ftp $1 -o - $2 | signify-openbsd -Vz -q -p key.pub | gunzip | wc -c";
        let last = sizes[sizes.len() - 1];
        assert_eq!(script(text, &[&option, &mirror.url(&format!("{last}.tgz"))]).trim(), last.to_string());
    }
}

#[test]
fn package_reads_without_agent_waste_few_bytes() {
    for tls in [false, true] {
        let pass = read_packages(&[HAUL, "ftp"], 12, tls, false);
        check_waste(&pass);
        assert_eq!(pass.mirror.connections(), 13, "each call has its own");
    }
}

#[test]
fn documented_curl_recipe_fetches_packages() {
    for more in [&[][..], &["--limit-rate", "900k"]] {
        let words = [&[HAUL, "-L", "-s", "-q", "-N"], more].concat();
        // No package of this few is so long that the rate would be felt for long.
        let pass = read_packages(&words, 4, false, false);
        assert_eq!(pass.run.error_output, "");
        assert_eq!(pass.run.calls, 5);
    }
    // pkg_add passes ftp(1)'s option `-S session=…`, which curl reads as `-S` and a URL; haul
    // ignores it.
    let origin = Origin::builder().start().unwrap();
    let args = ["-L", "-s", "-q", "-N", "-S", "session=/dev/fd/3", "-o", "-", &origin.url("/small")];
    assert_eq!(run(&mut haul(args)).text(), "small\n");
}

#[test]
fn ftp_error_messages_match_openbsds() {
    let origin = Origin::builder().start().unwrap();
    let ftp = |args: &[&str]| run(&mut haul([&["ftp"], args].concat()));
    let missing = origin.url("/nothing.tgz");
    let ran = ftp(&["-o", "-", &missing]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (1, format!("ftp: Error retrieving {missing}: 404 Not Found\n").as_str())
    );
    let ran = ftp(&["-N", "pkg_add", "-o", "-", &missing]);
    assert!(ran.stderr.starts_with("pkg_add: Error retrieving "), "{}", ran.stderr);
    let ran = ftp(&["-o", "-", REFUSED]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "ftp: connect: Connection refused\n"));
    let ran = ftp(&["-o", "-", "http://nowhere.invalid/"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "ftp: nowhere.invalid: no address associated with name\n"));
    let other = Origin::builder().start().unwrap();
    let ran = ftp(&["-o", "-", &origin.url(&format!("/redirect/302?to={}", other.url("/small")))]);
    assert_eq!((ran.code, &ran.stdout[..]), (0, &b"small\n"[..]));
    assert_eq!(ran.stderr, format!("Redirected to {}\n", other.url("/small")));
    let ran = ftp(&["-v", "-o", "-", &origin.url("/small")]);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(lines[0].starts_with("Requesting http://") && lines[1].contains(" bytes received in "), "{lines:?}");
    assert_eq!(ftp(&["-o", "-"]).code, 1);
}

#[test]
fn broken_connection_is_retried_for_packages() {
    let agent = TestAgentDirectory::new();
    for words in [&["ftp"][..], &["ftp", &agent.option()]] {
        let broken = H1Peer::start(vec![
            vec![ScriptStep::ReadHead, ScriptStep::Close],
            vec![
                ScriptStep::ReadHead,
                ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
                ScriptStep::Close,
            ],
        ]);
        assert_eq!(run(&mut haul([words, &["-o", "-", &broken.url("/p.tgz")]].concat())).text(), "ok");
    }
}

#[test]
fn rest_of_package_comes_from_the_first_mirror() {
    let package: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let part = |from: usize, to: usize| {
        let range = format!("Content-Range: bytes {from}-{}/{}\r\n", to - 1, package.len());
        let head = format!("HTTP/1.1 206 Part\r\nETag: \"one\"\r\n{range}Content-Length: {}\r\n\r\n", to - from);
        ScriptStep::Send([head.as_bytes(), &package[from..to]].concat())
    };
    let opening = 147_456;
    let agent = TestAgentDirectory::new();
    for words in [&["ftp"][..], &["ftp", &agent.option()]] {
        let rest = part(opening, package.len());
        let mirror = H1Peer::start(vec![vec![ScriptStep::ReadHead, part(0, opening), ScriptStep::ReadHead, rest]]);
        let to = mirror.url("/p.tgz");
        let reply = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let first = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send(reply)]]);
        let ran = run(&mut haul([words, &["-V", "-o", "-", &first.url("/p.tgz")]].concat()));
        assert_eq!((ran.code, ran.stdout == package), (0, true), "{}", ran.stderr);
        assert_eq!(first.connections(), 1, "another mirror may have another content");
    }
}

#[test]
fn ftp_saves_under_url_name_and_resumes_files() {
    let origin = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let whole = origin.pattern().slice(0, 90_000);
    let url = origin.url("/bytes/90000");
    let ftp = |args: &[&str]| {
        let mut command = program(HAUL);
        command.arg("ftp").args(args).current_dir(dir.path());
        assert_eq!(run(&mut command).text(), "");
    };
    ftp(&["-VM", &url]);
    assert!(fs::read(dir.path().join("90000")).unwrap() == whole);
    fs::write(dir.path().join("part"), &whole[..1234]).unwrap();
    ftp(&["-V", "-C", "-o", "part", &url]);
    assert!(fs::read(dir.path().join("part")).unwrap() == whole);
    let asked = origin.log().last().unwrap().header("range").map(str::to_owned);
    assert_eq!(asked.as_deref(), Some("bytes=1234-"));
    // By its name alone.
    let link = dir.path().join("ftp");
    std::os::unix::fs::symlink(HAUL, &link).unwrap();
    let mut command = program(&link);
    command.args(["-o", "-", &origin.url("/small")]);
    assert_eq!(run(&mut command).text(), "small\n");
}

#[test]
fn server_errors_are_not_retried_for_packages() {
    let origin = Origin::builder().start().unwrap();
    for path in ["/status/503", "/status/500", "/retry-after/3600/small"] {
        let ran = run(&mut haul(["ftp", "-o", "-", &origin.url(path)]));
        assert_eq!((ran.code, origin.hits(path)), (1, 1), "{path}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("ftp: Error retrieving "), "{}", ran.stderr);
    }
}

#[test]
fn missing_package_over_http2_reports_404() {
    let origin = Origin::builder().http2(100).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca");
    fs::write(&ca, origin.ca_pem()).unwrap();
    let tls = format!("cafile={}", ca.display());
    let missing = origin.https_url("/nothing.tgz");
    let ran = run(&mut haul(["ftp", "-N", "error", "-S", &tls, "-o-", &missing]));
    assert_eq!((ran.code, ran.stderr), (1, format!("error: Error retrieving {missing}: 404 Not Found\n")));
}

#[test]
fn file_in_unwritable_directory_is_written_in_place() {
    let origin = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("SHA256.sig");
    fs::write(&file, "").unwrap();
    let own = fs::metadata(dir.path()).unwrap();
    let root = own.uid() == 0;
    if root {
        // As sysupgrade does it for its user.
        std::os::unix::fs::chown(&file, Some(OTHER), None).unwrap();
    }
    fs::set_permissions(dir.path(), Permissions::from_mode(if root { 0o711 } else { 0o555 })).unwrap();
    let mut command = haul(["ftp", "-Vmo", file.to_str().unwrap(), &origin.url("/small")]);
    if root {
        command.uid(OTHER).gid(OTHER);
    }
    let ran = run(&mut command);
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(fs::read(&file).unwrap(), b"small\n");
}

#[test]
fn ftp_copies_local_files() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a file"), "local\n").unwrap();
    let ftp = |args: &[&str]| {
        let mut command = program(HAUL);
        run(command.arg("ftp").args(args).current_dir(dir.path()))
    };
    let path = dir.path().join("a file");
    for url in [format!("file:{}", path.display()), format!("file://{}", path.display()), "FILE:./a file".to_owned()] {
        assert_eq!(ftp(&["-N", "fw_update", "-D", "Install", "-VM", "-o-", &url]).text(), "local\n", "{url}");
    }
    assert_eq!(ftp(&["-o", "copy", "file:a file"]).text(), "");
    assert_eq!(fs::read(dir.path().join("copy")).unwrap(), b"local\n");
    assert!(ftp(&["file:a file"]).stderr.contains("it is what is to be copied"));
    assert_eq!(fs::read(&path).unwrap(), b"local\n", "it was emptied");
    let ran = ftp(&["-o", "-", "file:/nowhere/a"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "ftp: Can't open file /nowhere/a: No such file or directory\n"));
    let ran = ftp(&["file:/nowhere/"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
}

#[test]
fn ftp_sets_file_date_and_skips_unmodified_file() {
    let date = "HTTP/1.1 200 OK\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 2\r\n\r\nhi";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(date), ScriptStep::Close]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a");
    let name = file.to_str().unwrap();
    let year = || fs::metadata(&file).unwrap().mtime() / (365 * 86_400) + 1970;
    assert_eq!(run(&mut haul(["ftp", "-V", "-o", name, &peer.url("/a")])).text(), "");
    assert_eq!(year(), 1994);
    assert_eq!(run(&mut haul(["ftp", "-Vu", "-o", name, &peer.url("/a")])).text(), "");
    assert!(year() > 2000);
    let unchanged = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 304 Not Modified\r\n\r\n"),
        ScriptStep::Close,
    ]);
    let ran = run(&mut haul(["ftp", "-V", "-T", "-o", name, &unchanged.url("/a")]));
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "ftp: File is not modified on the server\n"));
    assert_eq!(fs::read(&file).unwrap(), b"hi");
}

#[test]
fn ftp_uses_http_proxy_for_https() {
    let answer = "HTTP/1.1 403 no tunnel\r\nContent-Length: 0\r\n\r\n";
    let proxy = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(answer), ScriptStep::Close]);
    let ftp = |names: &[&str]| {
        let mut command = haul(["ftp", "-o", "-", &REFUSED.replace("http:", "https:")]);
        run(command.envs(names.iter().map(|name| (*name, proxy.url("/")))))
    };
    let refused = ftp(&["http_proxy"]).stderr;
    assert!(refused.starts_with("ftp: ") && refused.contains("403"), "{refused}");
    assert_eq!(ftp(&[]).stderr, "ftp: connect: Connection refused\n");
}

#[test]
fn quiet_ftp_hides_redirects_and_directory_needs_output() {
    let origin = Origin::builder().start().unwrap();
    let other = Origin::builder().start().unwrap();
    let url = origin.url(&format!("/redirect/302?to={}", other.url("/small")));
    let ran = run(&mut haul(["ftp", "-MVo", "-", &url]));
    assert_eq!((ran.stdout.as_slice(), ran.stderr.as_str()), (&b"small\n"[..], ""));
    let ran = run(&mut haul(["ftp", &origin.url("/small/")]));
    assert!(ran.code == 1 && ran.stderr.contains("(use -o)"), "{}", ran.stderr);
}

#[test]
fn ftp_and_fetch_print_their_help() {
    for (name, option) in [("ftp", "-S OPTIONS"), ("fetch", "-S BYTES")] {
        let printed = run(&mut haul([name, "--help"])).text();
        assert!(printed.contains(&format!("Usage: haul {name} ")) && printed.contains(option), "{printed}");
    }
}

#[test]
fn muststaple_requires_a_stapled_ocsp_response() {
    let origin = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    fs::write(&ca, origin.ca_pem()).unwrap();
    let url = origin.https_url("/small");
    let fetch = |options: &str| {
        let tls = format!("cafile={}{options}", ca.display());
        run(program(HAUL).args(["ftp", "-S", &tls, "-o", "-", &url]))
    };
    assert_eq!(fetch("").text(), "small\n");
    assert_eq!(fetch(",protocols=tlsv1.3").text(), "small\n");
    assert_eq!(fetch(",muststaple").code, 1, "this server staples none");
}
