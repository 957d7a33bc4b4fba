//! HTTP/2 as a user has it: figures, heads, extraction, memory, and the servers that people run.

mod common;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use common::measure::{in_this_process, peak_memory};
use common::servers::{Server, found, free_port, is_root, make_open};
use common::{installed, list, program, run, run_haul, skipped};
use testkit::frames::{FramePeer, data, headers, rst, window_update};
use testkit::identity::Identity;
use testkit::origin::Origin;
use testkit::pattern::Pattern;
use testkit::relay::Relay;
use testkit::site::Site;

const KNOWING: &str = "--http2-prior-knowledge";
/// What haul may need beyond its budget, in KiB.
const OWN: u64 = 32 << 10;

#[test]
fn a_measured_run() {
    in_this_process();
}

fn origin() -> Origin {
    Origin::builder().http2(100).site(Site::scaled(3, 200).cached()).start().unwrap()
}

#[test]
fn figures_and_heads_are_those_of_curl() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca");
    fs::write(&ca, origin.ca_pem()).unwrap();
    let ca = ca.to_str().unwrap();
    let format = "%{http_version} %{response_code} %{size_download} %{num_connects} %{content_type}\n";
    let (plain, secure) = (origin.url("/bytes/70000"), origin.https_url("/bytes/70000"));
    let curl = installed("curl", "the comparison with curl's figures");
    for args in [
        &[KNOWING, &*plain][..],
        &["--http2", "--cacert", ca, &secure],
        &["--http1.1", "--cacert", ca, &secure],
        &[KNOWING, "-I", &plain],
    ] {
        let all = [&["-s", "-o", "/dev/null", "-w", format], args].concat();
        let got = run_haul(&all).text();
        let version = if args[0] == "--http1.1" { "1.1 200 " } else { "2 200 " };
        assert!(got.starts_with(version), "{args:?}: {got}");
        if let Some(curl) = curl {
            assert_eq!(got, run(program(curl).args(&all)).text(), "{args:?}");
        }
    }
    let head = dir.path().join("head");
    let body = run_haul([KNOWING, "-D", head.to_str().unwrap(), &plain]).ok();
    assert!(body == origin.pattern().slice(0, 70_000));
    let head = fs::read_to_string(&head).unwrap();
    assert!(head.starts_with("HTTP/2 200 \r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let with = run_haul([KNOWING, "-i", &plain]).ok();
    // The date of another second has the same length.
    assert_eq!(with.len(), head.len() + body.len());
    assert!(with.ends_with(&body) && with.starts_with(b"HTTP/2 200 \r\n"));
}

#[test]
fn two_stages_over_one_connection_give_the_known_answer() {
    let origin = origin();
    let args = [
        KNOWING,
        "--threads",
        "1",
        &origin.url("/[1-3]"),
        "--extract",
        "AS[0-9]{1,9}",
        "--then",
        &origin.url("/{}"),
        "--extract",
        "[0-9.]{7,15}/[0-9]{1,2}",
        "--unique",
        "--sort",
    ];
    // What was said before the URL holds for the second stage, too.
    assert!(run_haul(args).ok() == origin.site().known_answer().text);
    for path in origin.site().as_paths() {
        assert_eq!(origin.hits(&path), 1, "{path}");
    }
    assert_eq!(origin.connections(), 1);
}

#[test]
fn a_list_of_many_is_whole_and_in_order() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let file = list(dir.path(), "list", (0..5_000).map(|n| origin.url(&format!("/small/{n}"))));
    let got = run_haul([KNOWING, "--threads", "1", "--input-file", file.to_str().unwrap()]).text();
    assert_eq!(got, (0..5_000).map(|n| format!("small {n}\n")).collect::<String>());
    assert_eq!(origin.connections(), 1);
}

#[test]
fn memory_is_bounded_with_a_thousand_streams_and_a_reader_that_stopped() {
    let origin = Origin::builder().http2(1_000).record(false).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = list(dir.path(), "list", (0..1_000).map(|n| origin.url(&format!("/bytes/{}", 300_000 + n))));
    let expected = origin.pattern().slice(0, 301_000);
    for (memory, budget) in [("64M", 64 << 10), ("1M", 1 << 10)] {
        let args = [KNOWING, "--parallel-max", "1000", "--max-memory", memory, "--input-file", file.to_str().unwrap()];
        let peak = peak_memory(&args, |mut from| {
            // Until nothing more comes: all that may run ahead has.
            let mut before = 0;
            common::eventually("the windows are full", || {
                std::thread::sleep(std::time::Duration::from_millis(100));
                let now = origin.requests();
                std::mem::replace(&mut before, now) == now && now > 0
            });
            let mut body = Vec::new();
            for n in 0..1_000 {
                body.clear();
                from.by_ref().take(300_000 + n).read_to_end(&mut body).unwrap();
                assert!(body == expected[..300_000 + n as usize], "body {n}: {} bytes", body.len());
            }
            assert_eq!(from.read(&mut [0]).unwrap(), 0, "no more than the bodies");
        });
        assert!(peak <= budget + OWN, "{memory}: {peak} KiB");
    }
}

#[test]
fn one_large_body_is_fetched_over_several_connections_where_that_pays() {
    let origin = origin();
    let relay = Relay::to(origin.https_addr()).rate(4 << 20).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca");
    fs::write(&ca, origin.ca_pem()).unwrap();
    let url = format!("https://localhost:{}/bytes/40000000", relay.addr().port());
    for split in ["1", "4"] {
        let before = relay.connections();
        let got = run_haul(["--split", split, "--http2", "--cacert", ca.to_str().unwrap(), &url]).ok();
        assert!(got == origin.pattern().slice(0, 40_000_000), "{split}: {} bytes", got.len());
        let used = relay.connections() - before;
        // One more than may be busy at a time: parts go by HTTP/1.1, for which the first connection, once its share is
        // done, is of no use.
        let fits = if split == "1" { 1..=1 } else { 2..=5 };
        assert!(fits.contains(&used), "{used} connections for --split {split}");
    }
}

#[test]
fn failures_have_curls_numbers_and_one_line() {
    let broken = FramePeer::start(|_, conn| {
        conn.greet(&[])?;
        loop {
            let asked = conn.request()?;
            conn.send(headers(asked.stream, false, &[(":status", "200"), ("content-length", "10")]))?;
            conn.send(data(asked.stream, false, b"abc"))?;
            match asked.path() {
                "/reset" => conn.send(rst(asked.stream, 2))?,
                "/breach" => conn.send(window_update(0, 0))?,
                _ => return conn.cut(),
            }
        }
    });
    for (path, code, times) in [("/reset", 92, 1), ("/reset", 92, 2), ("/breach", 16, 1), ("/lost", 18, 1)] {
        let urls = vec![broken.url(path); times];
        let ran = run_haul([KNOWING, "--retry", "0"].into_iter().chain(urls.iter().map(String::as_str)));
        assert_eq!(ran.code, code, "{path}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), times, "{path}: {}", ran.stderr);
        assert_eq!(ran.stdout, b"abc".repeat(times), "{path}: the exact prefix");
    }
}

/// Files, a certificate for localhost, and curl's word on each.
struct Files {
    dir: tempfile::TempDir,
    sizes: [usize; 5],
}

impl Files {
    fn new() -> Files {
        let files = Files { dir: tempfile::tempdir().unwrap(), sizes: [0, 1, 300, 100_000, 30_000_000] };
        let identity = Identity::generate();
        fs::create_dir(files.path().join("root")).unwrap();
        for size in files.sizes {
            fs::write(files.path().join(format!("root/{size}")), Pattern::new(1).slice(0, size)).unwrap();
        }
        for (name, pem) in
            [("ca", identity.ca_pem().to_owned()), ("leaf", identity.chain_pem()), ("key", identity.key_pem())]
        {
            fs::write(files.path().join(name), pem).unwrap();
        }
        files
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Bodies and figures of all files are the same by haul as by curl, one by one and together.
    fn check(&self, what: &str, port: u16, args: &[&str], scheme: &str) {
        let curl = installed("curl", what);
        let ca = self.path().join("ca");
        let base = format!("{scheme}://localhost:{port}");
        let common = [&["-s", "--cacert", ca.to_str().unwrap()], args].concat();
        let figures = "%{http_version} %{response_code} %{size_download}\n";
        for size in self.sizes {
            let url = format!("{base}/{size}");
            let args = [&common[..], &["-w", figures, &url]].concat();
            let got = run_haul(&args).ok();
            let expected = [Pattern::new(1).slice(0, size), format!("2 200 {size}\n").into_bytes()].concat();
            assert!(got == expected, "{what}, {size}: {} bytes", got.len());
            if let Some(curl) = curl {
                assert!(got == run(program(curl).args(&args)).ok(), "{what}, {size}: curl");
            }
        }
        let urls: Vec<String> = (0..200).map(|n| format!("{base}/{}", self.sizes[n % 4])).collect();
        let expected: Vec<u8> = (0..200).flat_map(|n| Pattern::new(1).slice(0, self.sizes[n % 4])).collect();
        let all = common.iter().copied().chain(urls.iter().map(String::as_str));
        assert!(run_haul(all).ok() == expected, "{what}: many");
        let missing = format!("{base}/missing");
        let ran = run_haul(common.iter().copied().chain([&*missing]));
        assert_eq!(ran.code, 22, "{what}: {}", ran.stderr);
    }
}

#[test]
fn nginx() {
    let Some(nginx) = found("nginx", "HTTP/2") else { return };
    let files = Files::new();
    let (port, plain) = (free_port(), free_port());
    let dir = files.path().display();
    let user = if is_root() { "user root;" } else { "" };
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {dir}/{name};"))
        .concat();
    let conf = format!(
        "{user} daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/log; events {{}} http {{ access_log off; \
         {temporary} server {{ listen 127.0.0.1:{port} ssl http2; listen 127.0.0.1:{plain} http2; root {dir}/root; \
         ssl_certificate {dir}/leaf; ssl_certificate_key {dir}/key; }} }}"
    );
    let file = files.path().join("conf");
    fs::write(&file, conf).unwrap();
    let mut command = Command::new(nginx);
    command.arg("-c").arg(&file).arg("-e").arg(files.path().join("log"));
    let _server = Server::start(&mut command, port);
    files.check("nginx over TLS", port, &["--http2"], "https");
    files.check("nginx", plain, &[KNOWING], "http");
}

#[test]
fn nghttpd() {
    let Some(nghttpd) = found("nghttpd", "HTTP/2") else { return };
    let files = Files::new();
    for (scheme, knows) in [("https", false), ("http", true)] {
        let port = free_port();
        let mut command = Command::new(&nghttpd);
        command.args(["-a", "127.0.0.1", "-d"]).arg(files.path().join("root")).arg("--trailer").arg("x-end: yes");
        command.arg(port.to_string());
        if knows {
            command.arg("--no-tls");
        } else {
            command.args([files.path().join("key"), files.path().join("leaf")]);
        }
        let _server = Server::start(&mut command, port);
        files.check("nghttpd", port, &[if knows { KNOWING } else { "--http2" }], scheme);
    }
}

#[test]
fn apache2() {
    let Some(apache) = found("apache2", "HTTP/2") else { return };
    let modules = Path::new("/usr/lib/apache2/modules");
    if !modules.join("mod_http2.so").exists() {
        return skipped("apache2: it has no mod_http2");
    }
    let files = Files::new();
    let port = free_port();
    let dir = files.path().display();
    let load: String = ["mpm_event", "authz_core", "http2", "ssl", "socache_shmcb", "unixd"]
        .iter()
        .filter(|name| modules.join(format!("mod_{name}.so")).exists())
        .map(|name| format!("LoadModule {name}_module {}/mod_{name}.so\n", modules.display()))
        .collect();
    let conf = format!(
        "{load}ServerRoot {dir}\nPidFile {dir}/pid\nErrorLog {dir}/log\nServerName localhost\nListen 127.0.0.1:{port}\n\
         DefaultRuntimeDir {dir}\nDocumentRoot {dir}/root\nProtocols h2\nSSLEngine on\nSSLCertificateFile {dir}/leaf\n\
         SSLCertificateKeyFile {dir}/key\n<Directory {dir}/root>\nRequire all granted\n</Directory>\n"
    );
    let file = files.path().join("conf");
    fs::write(&file, conf).unwrap();
    make_open(files.path());
    let mut command = Command::new(apache);
    command.arg("-f").arg(&file).args(["-X"]);
    let _server = Server::start(&mut command, port);
    files.check("apache2", port, &["--http2"], "https");
}
