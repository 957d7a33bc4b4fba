//! Proxies of other people's making: tinyproxy, nghttpx and microsocks. Where they are not installed, this says so and passes.

mod common;

use std::io;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{DRIVERS, http2_origin, offering, start_origin, trusting};
use haul::net::proxy::ProxyOptions;
use haul::{Client, ErrorKind, RequestOptions, Version};
use haul_policy::proxy::Proxy;
use testkit::identity::Identity;

/// Ends with the test.
struct Running {
    child: Child,
    port: u16,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a program on a free port, and waits until it listens there. None where it is not installed.
fn start(program: &str, mut arguments: impl FnMut(u16) -> Vec<String>) -> Option<Running> {
    // Between the look for a free port and its use somebody else may take it.
    for _ in 0..20 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
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
                return Some(Running { child, port });
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

fn through(url: &str, options: &RequestOptions) -> RequestOptions {
    let mut proxy = ProxyOptions::default();
    proxy.proxy = Some(Proxy::parse(url).unwrap());
    RequestOptions { proxy: Some(proxy), ..options.clone() }
}

#[test]
fn tinyproxy_forwards_and_tunnels() {
    let folder = tempfile::tempdir().unwrap();
    let running = start("tinyproxy", |port| {
        let path = folder.path().join("conf");
        let text = format!("Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 50\nBasicAuth me secret\n");
        std::fs::write(&path, text).unwrap();
        vec!["-d".into(), "-c".into(), path.to_str().unwrap().into()]
    });
    let Some(running) = running else { return };
    let origin = start_origin();
    let (trusting, _file) = trusting(origin.ca_pem());
    let body = origin.pattern().slice(0, 500_000);
    for driver in DRIVERS {
        let options = through(&format!("http://me:secret@127.0.0.1:{}", running.port), &trusting);
        let client = Client::new();
        for url in [origin.url("/bytes/500000"), origin.https_url("/bytes/500000")] {
            assert!(driver.get(&client, &url, &options).ok() == body, "{driver:?} {url}");
        }
        assert!(origin.log().iter().all(|request| request.header("proxy-authorization").is_none()));
        let wrong = through(&format!("http://me:wrong@127.0.0.1:{}", running.port), &trusting);
        let got = driver.get(&client, &origin.https_url("/small"), &wrong);
        assert_eq!((got.kind, got.exit), (Some(ErrorKind::Receive), 56), "{}", got.message);
        let got = driver.get(&client, &origin.url("/small"), &wrong);
        assert!(matches!(got.status, 401 | 407), "{}", got.status);
    }
}

#[test]
fn microsocks_lets_through() {
    let running = start("microsocks", |port| {
        ["-i", "127.0.0.1", "-p", &port.to_string(), "-u", "me", "-P", "secret"].map(str::to_owned).to_vec()
    });
    let Some(running) = running else { return };
    let origin = start_origin();
    let (trusting, _file) = trusting(origin.ca_pem());
    for driver in DRIVERS {
        for kind in ["socks5", "socks5h"] {
            let options = through(&format!("{kind}://me:secret@127.0.0.1:{}", running.port), &trusting);
            let client = Client::new();
            for url in [origin.url("/small/5"), origin.https_url("/small/5")] {
                assert_eq!(driver.get(&client, &url, &options).ok(), b"small 5\n", "{driver:?} {kind}");
            }
            let wrong = through(&format!("{kind}://me:wrong@127.0.0.1:{}", running.port), &trusting);
            let got = driver.get(&client, &origin.url("/small/5"), &wrong);
            assert_eq!((got.kind, got.exit), (Some(ErrorKind::Proxy), 97), "{}", got.message);
        }
    }
}

/// `nghttpx` speaks TLS with us and passes CONNECTs on to tinyproxy; inside of the tunnel HTTP/2 is spoken with the origin,
/// in TLS of its own. With the proxy it is HTTP/1.1, or HTTP/2 as well.
#[test]
fn http2_goes_through_an_https_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let behind = start("tinyproxy", |port| {
        let path = folder.path().join("conf");
        std::fs::write(&path, format!("Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 50\n")).unwrap();
        vec!["-d".into(), "-c".into(), path.to_str().unwrap().into()]
    });
    let Some(behind) = behind else { return };
    let identity = Identity::generate();
    let [ca, leaf, key] =
        [("ca", identity.ca_pem().to_owned()), ("leaf", identity.chain_pem()), ("key", identity.key_pem())].map(
            |(name, pem)| {
                let path = folder.path().join(name);
                std::fs::write(&path, pem).unwrap();
                path
            },
        );
    let log = folder.path().join("log");
    let running = start("nghttpx", |port| {
        let options = ["--http2-proxy", "--workers=1", "--no-ocsp", "--errorlog-file=/dev/null"].map(str::to_owned);
        let ends = [format!("--frontend=127.0.0.1,{port}"), format!("--backend=127.0.0.1,{}", behind.port)];
        let logs = [format!("--accesslog-file={}", log.display()), "--accesslog-format=$alpn $method".to_owned()];
        let files = [&key, &leaf].map(|path| path.to_str().unwrap().to_owned());
        options.into_iter().chain(ends).chain(logs).chain(files).collect()
    });
    let Some(running) = running else { return };
    let origin = http2_origin(100);
    let (trusting, _file) = trusting(origin.ca_pem());
    let mut options = through(&format!("https://localhost:{}", running.port), &offering(trusting));
    let body = origin.pattern().slice(0, 3_000_000);
    for (http2, line) in [(false, "http/1.1 CONNECT"), (true, "h2 CONNECT")] {
        if let Some(proxy) = &mut options.proxy {
            proxy.tls.ca_file = Some(ca.clone());
            proxy.http2 = http2;
        }
        let before = origin.connections();
        for driver in DRIVERS {
            let client = Client::new();
            for len in [0, 1, 3_000_000] {
                let got = driver.get(&client, &origin.https_url(&format!("/bytes/{len}")), &options);
                assert!(got.ok() == &body[..len], "{driver:?}, {len}");
                assert_eq!(got.facts.version, Some(Version::Http2), "{driver:?}");
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
        let run = common::run(&Client::new(), common::fetching(&options), common::one_thread(), urls);
        assert_eq!(run.output, (0..200).map(|n| format!("small {n}\n")).collect::<String>().into_bytes());
        assert_eq!(origin.connections() - before, 7, "side by side in one tunnel");
        common::eventually("the proxy logs what it was asked for", || {
            std::fs::read_to_string(&log).is_ok_and(|log| log.lines().any(|one| one == line))
        });
    }
    // What needs no tunnel: requests for any origin share a connection with the proxy.
    let plain = start_origin();
    let urls = (0..200).map(|n| plain.url(&format!("/small/{n}")));
    let run = common::run(&Client::new(), common::fetching(&options), common::one_thread(), urls);
    assert_eq!(run.output, (0..200).map(|n| format!("small {n}\n")).collect::<String>().into_bytes());
    common::eventually("the proxy logs what it forwards", || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.lines().filter(|one| *one == "h2 GET").count() == 200)
    });
}
