//! Tests with third-party proxies: tinyproxy, nghttpx and microsocks. If a proxy is not installed,
//! its tests print that and pass.

use crate::common;

use std::io;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{DRIVERS, http2_origin, start_origin, trusting_ca, with_h2_alpn, with_proxy};
use haul::{Client, ErrorKind, ProtocolVersion, RequestOptions};
use testkit::test_certificates::TestCertificates;
use testkit::unused_port::unused_port;

/// A running third-party proxy. Its process is killed when the value is dropped.
struct ProxyProcess {
    child: Child,
    port: u16,
}

impl Drop for ProxyProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a proxy program on a free port, and waits until it listens. Returns `None` if the program
/// is not installed.
fn start(program: &str, mut arguments: impl FnMut(u16) -> Vec<String>) -> Option<ProxyProcess> {
    // Another process may take the free port before the program does.
    for _ in 0..20 {
        let port = unused_port();
        let spawned = Command::new(program).args(arguments(port)).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                eprintln!("{program} is not installed: skipped");
                return None;
            }
            Err(error) => panic!("{program}: {error}"),
        };
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(ProxyProcess { child, port });
            }
            if child.try_wait().unwrap().is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    panic!("{program} does not start");
}

#[test]
fn tinyproxy_forwards_and_tunnels_requests() {
    let folder = tempfile::tempdir().unwrap();
    let running = start("tinyproxy", |port| {
        let path = folder.path().join("conf");
        let text = format!("Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 50\nBasicAuth me secret\n");
        std::fs::write(&path, text).unwrap();
        vec!["-d".into(), "-c".into(), path.to_str().unwrap().into()]
    });
    let Some(running) = running else { return };
    let origin = start_origin();
    let (trusting, _file) = trusting_ca(origin.ca_pem());
    let body = origin.pattern().slice(0, 500_000);
    for driver in DRIVERS {
        let options = with_proxy(&format!("http://me:secret@127.0.0.1:{}", running.port), &trusting);
        let client = Client::new();
        for url in [origin.url("/bytes/500000"), origin.https_url("/bytes/500000")] {
            assert!(driver.get(&client, &url, &options).ok() == body, "{driver:?} {url}");
        }
        assert!(origin.log().iter().all(|request| request.header("proxy-authorization").is_none()));
        let wrong = with_proxy(&format!("http://me:wrong@127.0.0.1:{}", running.port), &trusting);
        let got = driver.get(&client, &origin.https_url("/small"), &wrong);
        assert_eq!((got.kind, got.exit), (Some(ErrorKind::Connect), 7), "{}", got.message);
        let got = driver.get(&client, &origin.url("/small"), &wrong);
        assert!(matches!(got.status, 401 | 407), "{}", got.status);
    }
}

#[test]
fn microsocks_accepts_credentials() {
    let running = start("microsocks", |port| {
        ["-i", "127.0.0.1", "-p", &port.to_string(), "-u", "me", "-P", "secret"].map(str::to_owned).to_vec()
    });
    let Some(running) = running else { return };
    let origin = start_origin();
    let (trusting, _file) = trusting_ca(origin.ca_pem());
    for driver in DRIVERS {
        for kind in ["socks5", "socks5h"] {
            let options = with_proxy(&format!("{kind}://me:secret@127.0.0.1:{}", running.port), &trusting);
            let client = Client::new();
            for url in [origin.url("/small/5"), origin.https_url("/small/5")] {
                assert_eq!(driver.get(&client, &url, &options).ok(), b"small 5\n", "{driver:?} {kind}");
            }
            let wrong = with_proxy(&format!("{kind}://me:wrong@127.0.0.1:{}", running.port), &trusting);
            let got = driver.get(&client, &origin.url("/small/5"), &wrong);
            assert_eq!((got.kind, got.exit), (Some(ErrorKind::Proxy), 97), "{}", got.message);
        }
    }
}

/// Waits until `holds` returns true. Fails the test if that takes too long.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

/// A running `nghttpx` in front of an HTTP/1.1 proxy or server.
struct NghttpxFront {
    running: ProxyProcess,
    folder: tempfile::TempDir,
}

impl NghttpxFront {
    fn start(behind: u16) -> Option<NghttpxFront> {
        let folder = tempfile::tempdir().unwrap();
        let identity = TestCertificates::generate();
        let pem = [("ca", identity.ca_pem().to_owned()), ("leaf", identity.chain_pem()), ("key", identity.key_pem())];
        for (name, pem) in pem {
            std::fs::write(folder.path().join(name), pem).unwrap();
        }
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let running = start("nghttpx", |port| {
            // The system's configuration uses another port.
            let options =
                ["--conf=/dev/null", "--http2-proxy", "--workers=1", "--no-ocsp", "--errorlog-file=/dev/null"];
            let options = options.map(str::to_owned);
            let ends = [format!("--frontend=127.0.0.1,{port}"), format!("--backend=127.0.0.1,{behind}")];
            let logs = [format!("--accesslog-file={}", path("log")), "--accesslog-format=$alpn $method".to_owned()];
            options.into_iter().chain(ends).chain(logs).chain([path("key"), path("leaf")]).collect()
        })?;
        Some(NghttpxFront { running, folder })
    }

    /// Returns a copy of `options` that uses nghttpx as the proxy. `http2` is true to connect to it
    /// with HTTP/2.
    fn before(&self, options: &RequestOptions, http2: bool) -> RequestOptions {
        let mut options = with_proxy(&format!("https://localhost:{}", self.running.port), options);
        if let Some(proxy) = &mut options.proxy {
            proxy.tls.ca_file = Some(self.folder.path().join("ca"));
            proxy.http2 = http2;
        }
        options
    }

    /// Waits until the log of nghttpx contains this line at least `times` times.
    fn logs(&self, line: &str, times: usize) {
        let log = self.folder.path().join("log");
        eventually("the proxy logs what it was asked for", || {
            std::fs::read_to_string(&log).is_ok_and(|log| log.lines().filter(|one| *one == line).count() >= times)
        });
    }
}

/// Checks requests over HTTP/2 through a chain of proxies: the client sends CONNECT to nghttpx,
/// which passes it on to tinyproxy, and speaks HTTP/2 with the origin inside the tunnel. The
/// connection to nghttpx itself is HTTP/1.1 or HTTP/2.
#[test]
fn http2_goes_through_an_https_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let behind = start("tinyproxy", |port| {
        let path = folder.path().join("conf");
        std::fs::write(&path, format!("Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 50\n")).unwrap();
        vec!["-d".into(), "-c".into(), path.to_str().unwrap().into()]
    });
    let Some(behind) = behind else { return };
    let Some(front) = NghttpxFront::start(behind.port) else { return };
    let origin = http2_origin(100);
    let (trusting, _file) = trusting_ca(origin.ca_pem());
    let body = origin.pattern().slice(0, 3_000_000);
    for (http2, line) in [(false, "http/1.1 CONNECT"), (true, "h2 CONNECT")] {
        let options = front.before(&with_h2_alpn(trusting.clone()), http2);
        let before = origin.connections();
        for driver in DRIVERS {
            let client = Client::new();
            for len in [0, 1, 3_000_000] {
                let got = driver.get(&client, &origin.https_url(&format!("/bytes/{len}")), &options);
                assert!(got.ok() == &body[..len], "{driver:?}, {len}");
                assert_eq!(got.facts.version, Some(ProtocolVersion::Http2), "{driver:?}");
            }
            for version in ["h2", "http/1.1"] {
                let mut options = options.clone();
                options.tls.alpn = vec![version.into()];
                options.method = "POST".into();
                options.body = Some(body.clone().into());
                origin.forget();
                driver.get(&client, &origin.https_url("/small"), &options).ok();
                assert!(origin.log()[0].body == body, "{driver:?}, {version}");
            }
        }
        assert_eq!(origin.connections() - before, 6, "one for each client and offer");
        let urls = (0..200).map(|n| origin.https_url(&format!("/small/{n}")));
        let run = common::run(&Client::new(), common::single_stage(&options), common::one_thread(), urls);
        assert_eq!(run.output, (0..200).map(|n| format!("small {n}\n")).collect::<String>().into_bytes());
        assert_eq!(origin.connections() - before, 7, "side by side in one tunnel");
        front.logs(line, 7);
    }
}

/// Checks that forwarded requests to any origin share one connection to the proxy. The test does
/// not use tinyproxy, which closes connections that nghttpx wants to reuse.
#[test]
fn forwarded_requests_share_an_https_proxy_connection() {
    let origin = start_origin();
    let Some(front) = NghttpxFront::start(origin.http_addr().port()) else { return };
    let options = front.before(&RequestOptions::default(), true);
    let urls = (0..200).map(|n| format!("http://{}.test/small/{n}", n % 7));
    let run = common::run(&Client::new(), common::single_stage(&options), common::one_thread(), urls);
    assert_eq!(String::from_utf8_lossy(&run.output), (0..200).map(|n| format!("small {n}\n")).collect::<String>());
    front.logs("h2 GET", 200);
    for driver in DRIVERS {
        assert_eq!(driver.get(&Client::new(), "http://x.test/small/1", &options).ok(), b"small 1\n", "{driver:?}");
    }
}
