//! HTTP/2 as a user has it: figures, heads, extraction, memory, and the servers that people run.

mod common;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use common::measure::{in_this_process, measured, peak_memory};
use common::servers::{Server, found, free_port, is_root, make_open};
use common::{haul, installed, list, program, run, run_haul, skipped};
use testkit::frames::{Conn, Frame, FramePeer, block, data, headers, headers_open, rst, window_update};
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
fn memory_is_bounded_with_many_connections_and_a_reader_that_stopped() {
    // Of each size: one that its windows hold back, and one that is complete before anybody asks.
    let origins: Vec<_> = (0..10).map(|_| Origin::builder().http2(1_000).record(false).start().unwrap()).collect();
    let dir = tempfile::tempdir().unwrap();
    for size in [400_000, 200_000] {
        let urls = (0..1_000).map(|n| origins[n % 10].url(&format!("/bytes/{size}")));
        let file = list(dir.path(), "list", urls);
        let expected = origins[0].pattern().slice(0, size);
        let args = [KNOWING, "--parallel-max", "1000", "--max-memory", "1M", "--input-file", file.to_str().unwrap()];
        let peak = peak_memory(&args, |mut from| {
            let mut before = 0;
            common::eventually("the windows are full", || {
                std::thread::sleep(std::time::Duration::from_millis(200));
                let now = origins.iter().map(Origin::requests).sum();
                std::mem::replace(&mut before, now) == now && now > 0
            });
            let mut body = Vec::new();
            for n in 0..1_000 {
                body.clear();
                from.by_ref().take(size as u64).read_to_end(&mut body).unwrap();
                assert!(body == expected, "body {n} of {size}: {} bytes", body.len());
            }
            assert_eq!(from.read(&mut [0]).unwrap(), 0, "no more than the bodies");
        });
        assert!(peak <= (1 << 10) + OWN, "{size}: {peak} KiB");
    }
}

#[test]
fn hostile_peers_cost_no_memory() {
    /// More than fits into all sockets and limits on the way.
    const FOREVER: u64 = 200_000;
    type Worst = fn(&mut Conn) -> u64;
    let cases: [(&str, &str, Worst); 8] = [
        ("PING", "16", |conn| conn.flood(Frame::PING, 0, 0, &[0; 8], FOREVER)),
        ("SETTINGS", "16", |conn| conn.flood(Frame::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 9], FOREVER)),
        ("WINDOW_UPDATE", "16", |conn| conn.flood(Frame::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1], FOREVER)),
        ("unknown frames", "16", |conn| conn.flood(0xee, 0, 0, &[7; 16_000], FOREVER)),
        ("interim heads", "92", |conn| {
            conn.flood(Frame::HEADERS, Frame::END_HEADERS, 1, &block(&[(":status", "103"), ("a", "b")]), FOREVER)
        }),
        ("CONTINUATION", "16", |conn| {
            conn.send(headers_open(1, &block(&[(":status", "200")])))
                .map_or(0, |()| conn.flood(Frame::CONTINUATION, 0, 1, &block(&[("x", &"y".repeat(10_000))]), FOREVER))
        }),
        ("HPACK bomb", "16", |conn| {
            // A field of 4,000 bytes in the table, named by a byte each: 60 MB of head in 15 KB.
            let mut bomb = vec![0x88, 0x40, 1, b'x', 127, 0xa1, 0x1e];
            bomb.extend([b'y'; 4_000]);
            bomb.extend([0xbe; 12_000]);
            conn.flood(Frame::HEADERS, Frame::END_HEADERS, 1, &bomb, FOREVER)
        }),
        ("RST_STREAM", "92", |conn| conn.flood(Frame::RST_STREAM, 0, 1, &[0, 0, 0, 2], FOREVER)),
    ];
    for (what, code, worst) in cases {
        let peer = FramePeer::start(move |_, conn| {
            conn.greet(&[])?;
            conn.request()?;
            if worst(conn) < FOREVER { Ok(()) } else { panic!("it was taken to the end") }
        });
        let args = [KNOWING, "--retry", "0", &peer.url("/")];
        let (ended, said, peak) = measured(&args, |mut from| {
            let mut body = Vec::new();
            from.read_to_end(&mut body).unwrap();
            assert!(body.is_empty(), "{what}");
        });
        assert_eq!((ended.as_str(), said.lines().count()), (code, 1), "{what}: {said}");
        assert!(peak <= 64 << 10, "{what}: {peak} KiB");
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
        // Parts go by HTTP/1.1, and one at a time by the first connection, once its share is done.
        let fits = if split == "1" { 1..=1 } else { 2..=4 };
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
        for name in ["root", "dav"] {
            fs::create_dir(files.path().join(name)).unwrap();
        }
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

    /// An upload arrives as it was, whether its length is known or not; `arrived` finds it, from the answer or elsewhere.
    fn check_uploads(&self, what: &str, url: &str, args: &[&str], arrived: impl Fn(&[u8]) -> Vec<u8>) {
        let content = Pattern::new(2).slice(0, upload_size());
        let file = self.path().join("upload");
        fs::write(&file, &content).unwrap();
        let (ca, file) = (self.path().join("ca"), file.to_str().unwrap());
        for (given, from) in [(file, None), ("-", Some(file))] {
            let said = "%{stderr}%{http_version} %{exitcode}";
            let all = [args, &["-s", "--cacert", ca.to_str().unwrap(), "-T", given, "-w", said, url]].concat();
            let mut command = haul(&all);
            if let Some(from) = from {
                command.stdin(fs::File::open(from).unwrap());
            }
            let ran = run(&mut command);
            assert_eq!((ran.code, ran.stderr.as_str()), (0, "2 0"), "{what}, {given}");
            assert!(arrived(&ran.stdout) == content, "{what}, {given}");
        }
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
        // Ten times as many as the servers take at once.
        let many = list(self.path(), "many", (0..1_000).map(|n| format!("{base}/{}", self.sizes[n % 4])));
        let expected: Vec<u8> = (0..1_000).flat_map(|n| Pattern::new(1).slice(0, self.sizes[n % 4])).collect();
        let all = ["--parallel-max", "1000", "--input-file", many.to_str().unwrap()];
        assert!(run_haul([&common[..], &all].concat()).ok() == expected, "{what}: many");
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
         http2_max_concurrent_streams 100; client_max_body_size 0; dav_methods PUT; ssl_certificate {dir}/leaf; ssl_certificate_key {dir}/key; }} }}"
    );
    let file = files.path().join("conf");
    fs::write(&file, conf).unwrap();
    let mut command = Command::new(nginx);
    command.arg("-c").arg(&file).arg("-e").arg(files.path().join("log"));
    let _server = Server::start(&mut command, port);
    for (what, port, args, scheme) in
        [("nginx over TLS", port, ["--http2"], "https"), ("nginx", plain, [KNOWING], "http")]
    {
        files.check(what, port, &args, scheme);
        let put = files.path().join("root/put");
        let arrived = |_: &[u8]| fs::read(&put).unwrap();
        files.check_uploads(what, &format!("{scheme}://localhost:{port}/put"), &args, arrived);
    }
}

#[test]
fn nghttpd() {
    let Some(nghttpd) = found("nghttpd", "HTTP/2") else { return };
    let files = Files::new();
    for (scheme, knows) in [("https", false), ("http", true)] {
        let port = free_port();
        let mut command = Command::new(&nghttpd);
        command.args(["-a", "127.0.0.1", "-m", "100", "--echo-upload", "--trailer", "x-end: yes", "-d"]);
        command.arg(files.path().join("root"));
        command.arg(port.to_string());
        if knows {
            command.arg("--no-tls");
        } else {
            command.args([files.path().join("key"), files.path().join("leaf")]);
        }
        let _server = Server::start(&mut command, port);
        let args = [if knows { KNOWING } else { "--http2" }];
        files.check("nghttpd", port, &args, scheme);
        files.check_uploads("nghttpd", &format!("{scheme}://localhost:{port}/echo"), &args, <[u8]>::to_vec);
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
    let (port, plain) = (free_port(), free_port());
    let dir = files.path().display();
    let load: String =
        ["mpm_event", "authz_core", "http2", "ssl", "socache_shmcb", "unixd", "dav", "dav_fs", "setenvif"]
            .iter()
            .filter(|name| modules.join(format!("mod_{name}.so")).exists())
            .map(|name| format!("LoadModule {name}_module {}/mod_{name}.so\n", modules.display()))
            .collect();
    let conf = format!(
        "{load}ServerRoot {dir}\nPidFile {dir}/pid\nErrorLog {dir}/log\nServerName localhost\nListen 127.0.0.1:{port}\n\
         Listen 127.0.0.1:{plain}\nDefaultRuntimeDir {dir}\nDocumentRoot {dir}/root\nProtocols h2 h2c\n\
         H2MaxSessionStreams 100\nDavLockDB {dir}/dav/lock\n<VirtualHost *:{port}>\nSSLEngine on\n\
         SSLCertificateFile {dir}/leaf\nSSLCertificateKeyFile {dir}/key\n</VirtualHost>\n<Directory {dir}/root>\n\
         Require all granted\nDav On\n</Directory>\n"
    );
    let file = files.path().join("conf");
    fs::write(&file, conf).unwrap();
    make_open(files.path());
    let mut command = Command::new(apache);
    command.arg("-f").arg(&file).args(["-X"]);
    let _server = Server::start(&mut command, port);
    for (what, port, args, scheme) in
        [("apache2 over TLS", port, ["--http2"], "https"), ("apache2", plain, [KNOWING], "http")]
    {
        files.check(what, port, &args, scheme);
        let put = files.path().join("root/put");
        let arrived = |_: &[u8]| fs::read(&put).unwrap();
        files.check_uploads(what, &format!("{scheme}://localhost:{port}/put"), &args, arrived);
    }
}

#[test]
fn caddy() {
    let Some(caddy) = found("caddy", "HTTP/2") else { return };
    let files = Files::new();
    let (port, plain) = (free_port(), free_port());
    // Uploads go on to an origin of ours, by HTTP/1.1.
    let origin = Origin::builder().start().unwrap();
    let dir = files.path().display();
    let site = format!(
        "root * {dir}/root\nhandle /echo {{\nreverse_proxy {}\n}}\nhandle {{\nfile_server\n}}\n",
        origin.http_addr()
    );
    let conf = format!(
        "{{\nadmin off\nauto_https off\nstorage file_system {dir}/caddy\nservers {{\nprotocols h1 h2 h2c\n}}\n}}\n\
         https://localhost:{port} {{\nbind 127.0.0.1\ntls {dir}/leaf {dir}/key\n{site}}}\n\
         http://localhost:{plain} {{\nbind 127.0.0.1\n{site}}}\n"
    );
    let file = files.path().join("Caddyfile");
    fs::write(&file, conf).unwrap();
    let mut command = Command::new(caddy);
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file).env("HOME", files.path());
    let _server = Server::start(&mut command, port);
    for (what, port, args, scheme) in
        [("caddy over TLS", port, ["--http2"], "https"), ("caddy", plain, [KNOWING], "http")]
    {
        files.check(what, port, &args, scheme);
        let arrived = |_: &[u8]| {
            let body = origin.log()[0].body.clone();
            origin.forget();
            body.to_vec()
        };
        files.check_uploads(what, &format!("{scheme}://localhost:{port}/echo"), &args, arrived);
    }
}

/// How much is uploaded to each: 10 MB, or what the environment says. (100 MB take a while where nothing is optimized.)
fn upload_size() -> usize {
    std::env::var("HAUL_TEST_UPLOAD").map_or(10_000_000, |size| size.parse().expect("a number of bytes"))
}
