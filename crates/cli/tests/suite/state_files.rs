//! Tests of the state that is kept between runs, with Apache: cookies, HSTS and Alt-Svc, and a
//! cookie jar that many processes write at once.

use crate::common;
use crate::servers;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;

use common::{CommandOutput, HAUL, RunningCommand, haul, list, run_haul};
use servers::compare_with_curl::{both, both_with, text};
use servers::start_apache::ApacheServer;

fn with<'a>(way: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    way.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

#[test]
fn cookies_are_sent_in_later_runs_and_redirects() {
    let Some(apache) = ApacheServer::start("cookies") else { return };
    let dir = tempfile::tempdir().unwrap();
    for (number, (port, way)) in apache.ways().into_iter().enumerate() {
        let url = apache.url(port, "/open/echo");
        let set = |cookie: &str| format!("{url}?set={cookie}");
        let cookie = |got: &str| {
            let line = got.lines().find_map(|line| line.strip_prefix("HTTP_COOKIE=").map(str::to_owned));
            line.unwrap_or_default()
        };
        // As text; and as an engine without a file, from one URL to the next.
        assert_eq!(cookie(&text(&both(&with(&way, &["-b", "a=1; b=2", &url])))), "a=1; b=2", "{way:?}");
        let got = text(&both(&with(&way, &["-b", "", "-Z", "--parallel-max", "1", &set("n=1;+Path=/"), &url])));
        assert_eq!(cookie(&got), "n=1", "{way:?} {got}");
        // Into a file, out of it, by another run; session cookies are junk with -j. curl reads what
        // haul has written.
        let jar = dir.path().join(format!("jar{number}"));
        let path = jar.to_str().unwrap();
        let urls = [set("kept=1;+Path=/;+Max-Age=600"), set("session=1;+Path=/")];
        run_haul(with(&way, &["-sS", "-c", path, "-o", "/dev/null", "-o", "/dev/null", &urls[0], &urls[1]])).ok();
        let file = fs::read_to_string(&jar).unwrap();
        assert!(file.starts_with("# Netscape HTTP Cookie File") && file.contains("\tkept\t1\n"), "{file}");
        assert_eq!(fs::metadata(&jar).unwrap().permissions().mode() & 0o077, 0, "it is its owner's");
        let sorted = |text: String| text.split("; ").map(str::to_owned).collect::<BTreeSet<_>>();
        let all = BTreeSet::from(["kept=1".to_owned(), "session=1".to_owned()]);
        // The order is curl's only in its persona (RFC 6265 section 5.4 asks for another).
        let pairs = |ran: &CommandOutput| sorted(cookie(&text(ran))).into_iter().collect::<Vec<_>>().join("; ");
        let read = |more: &[&str]| {
            let ran = both_with(&with(&way, &[&["-b", path], more, &[&*url]].concat()), pairs);
            sorted(cookie(&text(&ran)))
        };
        assert_eq!(read(&[]), all, "{way:?}");
        assert_eq!(read(&["-j"]), BTreeSet::from(["kept=1".to_owned()]), "{way:?}");
        assert_eq!(read(&["-b", "own=1"]).len(), 3, "{way:?}");
        // Removed by the server, and so from the file.
        let removed = set("kept=;+Path=/;+Max-Age=0");
        run_haul(with(&way, &["-sS", "-b", path, "-c", path, "-o", "/dev/null", &removed])).ok();
        assert!(!fs::read_to_string(&jar).unwrap().contains("\tkept\t"), "{way:?}");
        // Set where a redirect begins, sent where it leads.
        let chain = apache.url(port, "/302/here/open/echo?set=hop=1;+Path=/");
        let got = text(&both(&with(
            &way,
            &["-b", "", "-Z", "--parallel-max", "1", &set("first=1;+Path=/;+HttpOnly"), &chain],
        )));
        assert!(got.contains("HTTP_COOKIE=first=1\n"), "{way:?} {got}");
        // To the screen.
        let shown = set("shown=1;+Path=/;+Max-Age=600");
        let args = with(&way, &["-c", "-", "-o", "/dev/null", &shown]);
        let entries = |ran: &CommandOutput| {
            let text = String::from_utf8_lossy(&ran.stdout).into_owned();
            // Everything except the expiry time and the header comments.
            let lines = text.lines().filter(|line| !line.starts_with("# ") && !line.is_empty());
            lines
                .map(|line| line.split('\t').filter(|column| column.len() < 10))
                .map(|columns| columns.collect::<Vec<_>>().join("\t"))
                .collect()
        };
        let got = text(&both_with(&args, entries));
        assert!(got.contains("\tshown\t1\n"), "{way:?} {got}");
    }
}

#[test]
fn hsts_from_tls_applies_to_later_runs() {
    let Some(apache) = ApacheServer::start("HSTS") else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("hsts");
    let (path, ca) = (file.to_str().unwrap(), apache.path("ca").display().to_string());
    let secure = apache.url(apache.tls_port, "/hsts");
    let plain = format!("http://localhost:{}/open/echo", apache.tls_port);
    for version in ["--http1.1", "--http2"] {
        let _ = fs::remove_file(&file);
        let options = ["-sS", version, "--cacert", &ca, "--hsts", path];
        // HSTS fields without TLS are ignored.
        run_haul([&options[..], &["-o", "/dev/null", &apache.url(apache.port, "/hsts")]].concat());
        assert!(!fs::read_to_string(&file).unwrap_or_default().contains("localhost"), "{version}");
        run_haul([&options[..], &["-o", "/dev/null", &secure]].concat());
        assert!(fs::read_to_string(&file).unwrap().contains("localhost \""), "{version}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0);
        // The port stays, the scheme does not.
        let got = run_haul([&options[..], &["-w", "%{url_effective}", &plain]].concat()).text();
        assert!(got.ends_with(&plain.replacen("http:", "https:", 1)), "{version} {got}");
        let without = run_haul(["-sS", version, &plain]);
        assert_ne!(without.code, 0, "without the file it is plain HTTP to a port that wants TLS");
        // curl's file is understood.
        fs::write(&file, "# by curl\nlocalhost \"20991231 23:59:59\"\n").unwrap();
        assert_eq!(run_haul([&options[..], &[&*plain]].concat()).code, 0);
    }
}

#[test]
fn alt_svc_file_matches_curls() {
    let Some(apache) = ApacheServer::start("Alt-Svc") else { return };
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (dir.path().join("ours"), dir.path().join("theirs"));
    let ca = apache.path("ca").display().to_string();
    let url = apache.url(apache.tls_port, "/alt");
    let args = |file: &Path| {
        ["-sS", "-o", "/dev/null", "--http1.1", "--cacert", &ca, "--alt-svc", file.to_str().unwrap(), &url]
            .map(str::to_owned)
    };
    let ran = run_haul(args(&ours));
    assert_eq!(ran.code, 22, "there is nothing there, but a field: {}", ran.stderr);
    let lines = |file: &Path| {
        let text = fs::read_to_string(file).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        // All but the time at which it ends.
        lines.map(|line| line.split(" \"").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(lines(&ours), [format!("h1 localhost {0} h2 localhost {0}", apache.tls_port)]);
    if let Some(curl) = common::installed("curl", "the comparison with curl") {
        common::run(common::program(curl).args(args(&theirs)));
        assert_eq!(lines(&ours), lines(&theirs));
    }
    // The file is read again and keeps its entry.
    run_haul([
        "-sS",
        "-o",
        "/dev/null",
        "--cacert",
        &ca,
        "--alt-svc",
        ours.to_str().unwrap(),
        &apache.url(apache.tls_port, "/open/echo"),
    ]);
    assert_eq!(lines(&ours).len(), 1);
}

/// Starts a server that sets a cookie in each response, named after the path of the request.
/// Returns the port of the server.
fn cookie_setter() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || set_cookies(&stream.unwrap()));
        }
    });
    port
}

fn set_cookies(stream: &TcpStream) {
    stream.set_nodelay(true).unwrap();
    let (mut lines, mut out) = (BufReader::new(stream).lines(), stream);
    let mut name = None;
    while let Some(Ok(line)) = lines.next() {
        if let Some(path) = line.strip_prefix("GET /") {
            name = path.split(' ').next().map(str::to_owned);
        }
        if line.is_empty() {
            let name = name.take().unwrap_or_default();
            let reply =
                format!("HTTP/1.1 200 OK\r\nSet-Cookie: {name}=1; Path=/; Max-Age=600\r\nContent-Length: 0\r\n\r\n");
            if out.write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Returns the names of the cookies in a cookie jar file. Asserts that the file is complete.
fn names(jar: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(jar).unwrap();
    assert!(text.starts_with("# Netscape HTTP Cookie File") && text.ends_with('\n'), "it is torn");
    let cookies = text.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    cookies
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            assert!(columns.len() == 7 && columns[6] == "1", "it is torn: {line}");
            columns[5].to_owned()
        })
        .collect()
}

#[test]
fn concurrent_processes_share_a_jar_without_loss() {
    let dir = tempfile::tempdir().unwrap();
    let port = cookie_setter();
    let jar = dir.path().join("jar");
    let path = jar.to_str().unwrap().to_owned();
    // A domain's list has room for 180: so each process is a host of its own to the server, as an
    // address of loopback.
    let processes: Vec<RunningCommand> = (0..20)
        .map(|process| {
            let urls = (0..100).map(|n| format!("http://127.0.1.{}:{port}/p{process}-{n}", process + 1));
            let input = list(dir.path(), &format!("list{process}"), urls);
            let relay = format!("::localhost:{port}");
            RunningCommand::start(&mut haul([
                "-sS",
                "-b",
                &path,
                "-c",
                &path,
                "--connect-to",
                &relay,
                "--input-file",
                input.to_str().unwrap(),
            ]))
        })
        .collect();
    for process in processes {
        process.wait().ok();
    }
    let expected: BTreeSet<String> =
        (0..20).flat_map(|process| (0..100).map(move |n| format!("p{process}-{n}"))).collect();
    assert_eq!(names(&jar), expected);
    assert_eq!(fs::metadata(&jar).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(common::names(dir.path()).len(), 21, "nothing is left beside it: {:?}", common::names(dir.path()));
}

#[test]
fn concurrent_shell_loops_share_a_jar_without_loss() {
    let dir = tempfile::tempdir().unwrap();
    let port = cookie_setter();
    let jar = dir.path().join("jar");
    let path = jar.to_str().unwrap();
    let loops: Vec<RunningCommand> = (0..20)
        .map(|process| {
            let script = format!(
                "for n in $(seq 0 9); do \"$GET\" -sS -b {path} -c {path} --connect-to ::localhost:{port} \
                 http://127.0.2.{}:{port}/s{process}-$n || exit; done",
                process + 1
            );
            let mut command = common::program("bash");
            command.args(["-c", &script]).env("GET", HAUL);
            RunningCommand::start(&mut command)
        })
        .collect();
    // A reader in between always sees a complete file.
    let mut seen = 0;
    common::eventually("all have begun", || {
        if jar.exists() && fs::metadata(&jar).unwrap().len() > 0 {
            let now = names(&jar).len();
            assert!(now >= seen, "{seen} cookies became {now}");
            seen = now;
        }
        seen >= 100
    });
    for process in loops {
        process.wait().ok();
    }
    assert_eq!(names(&jar).len(), 200);
}
