//! Tests of cookies, HSTS and Alt-Svc: storing them from responses, in memory and in files that
//! many processes share.

mod common;

use std::process::{Child, Command};
use std::sync::Arc;
use std::{env, fs};

use common::{DRIVERS, DriverKind, following, start_origin, trusting_ca};
use haul::net::dns::{DnsCacheOptions, Resolver};
use haul::sink::memory::MemorySink;
use haul::state::alt_svc::AltSvcCache;
use haul::state::cookie_jar::SharedCookieJar;
use haul::state::hsts::HstsCache;
use haul::{Client, RequestOptions, Target};
use haul_policy::cookie::netscape;
use testkit::h1_peer::{H1Peer, ScriptStep};

const PROCESSES: usize = 20;
const REQUESTS: usize = 100;

/// The environment variable with which the test [`processes_sharing_a_jar_file_lose_no_cookie`]
/// passes the jar file, the child's number and the server's port to each child process.
const CHILD: &str = "HAUL_TEST_JAR";

fn cookie_of(request: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(request);
    text.lines().filter_map(|line| line.strip_prefix("Cookie: ")).next_back().map(str::to_owned)
}

#[test]
fn cookies_of_redirects_and_responses_are_stored() {
    for driver in DRIVERS {
        let set = |line: &str, more: &str| {
            vec![
                ScriptStep::ReadHead,
                ScriptStep::send(format!("HTTP/1.1 {line}\r\n{more}Connection: close\r\nContent-Length: 0\r\n\r\n")),
            ]
        };
        let many: String = (0..60).map(|i| format!("Set-Cookie: m{i:02}=1; Path=/many\r\n")).collect();
        let peer = H1Peer::start(vec![
            set("302 Go", "Location: /next\r\nSet-Cookie: a=1; Path=/\r\nSet-Cookie: deep=1; Path=/other\r\n"),
            set("200 OK", "Set-Cookie: b=2; Path=/\r\nSet-Cookie: a=; Max-Age=0; Path=/\r\n"),
            set("404 No", &many),
            set("200 OK", ""),
        ]);
        let jar = SharedCookieJar::new();
        let options = RequestOptions { jar: Some(jar.clone()), cookie: Some(b"own=0".to_vec()), ..following() };
        let client = Client::new();
        for path in ["/", "/x", "/many"] {
            assert_eq!(driver.get(&client, &peer.url(path), &options).exit, 0);
        }
        let sent: Vec<_> = (0..3).map(|n| cookie_of(&peer.received(n))).collect();
        assert_eq!(sent, [Some("own=0".into()), Some("a=1; own=0".into()), Some("b=2; own=0".into())], "{driver:?}");
        let last = cookie_of(&peer.received(3)).unwrap();
        assert_eq!(last.matches("m").count(), 50, "no more than fifty of one reply are taken");
    }
}

#[test]
fn redirect_drops_literal_cookie_and_sends_jar_cookie() {
    let second =
        H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")]);
    let to = second.url("/").replace("127.0.0.1", "localhost");
    let go = format!("HTTP/1.1 307 Go\r\nLocation: {to}\r\nSet-Cookie: first=1\r\nContent-Length: 0\r\n\r\n");
    let first = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(go)]);
    let jar = SharedCookieJar::new();
    jar.store_fields(&Target::parse(&to).unwrap(), [&b"second=2"[..]]);
    let options = RequestOptions { jar: Some(jar), cookie: Some(b"own=0".to_vec()), ..following() };
    assert_eq!(DriverKind::Blocking.get(&Client::new(), &first.url("/"), &options).exit, 0);
    assert_eq!(cookie_of(&first.received(0)).as_deref(), Some("own=0"));
    assert_eq!(cookie_of(&second.received(0)).as_deref(), Some("second=2"));
}

#[test]
fn hsts_upgrades_first_requests_and_redirects() {
    let origin = start_origin();
    let port = origin.https_addr().port();
    for driver in DRIVERS {
        origin.forget();
        let hsts = HstsCache::new();
        hsts.store_field(&Target::parse("https://localhost/").unwrap(), b"max-age=100");
        let (trusted, _ca) = trusting_ca(origin.ca_pem());
        let options = RequestOptions { hsts: Some(hsts), tls: trusted.tls, ..following() };
        // A port other than 80 does not change.
        let got = driver.get(&Client::new(), &format!("http://localhost:{port}/small"), &options);
        assert_eq!((got.ok(), got.last.starts_with("https:")), (&b"small\n"[..], true), "{driver:?}");
        let mut options = options;
        options.fields.push(("X-Api-Key".into(), b"k".to_vec()));
        let back = format!("https://localhost:{port}/redirect/302?to=http://localhost:{port}/echo");
        assert_eq!(driver.get(&Client::new(), &back, &options).exit, 0, "{driver:?}");
        let last = origin.log().pop().unwrap();
        assert!(last.tls && last.header("x-api-key") == Some("k"), "it is the first origin still: {last:?}");
    }
}

#[test]
fn hsts_and_alt_svc_need_a_verified_certificate() {
    let place = tempfile::tempdir().unwrap();
    let authority = testkit::test_certificates::TestCertificates::for_names(&["localhost"]);
    let reply = "HTTP/1.1 200 OK\r\nStrict-Transport-Security: max-age=9000\r\nAlt-Svc: h3=\":443\"\r\nContent-Length: 0\r\n\r\n";
    for (verify, known) in [(true, 1), (false, 0)] {
        let peer = H1Peer::start_tls(vec![vec![ScriptStep::ReadHead, ScriptStep::send(reply)]], &authority, &[]);
        let (mut options, _ca) = trusting_ca(authority.ca_pem());
        options.tls.verify = verify;
        let (hsts, alt_svc) = (HstsCache::new(), AltSvcCache::new());
        (options.hsts, options.alt_svc) = (Some(hsts.clone()), Some(alt_svc.clone()));
        let url = format!("https://localhost:{}/", peer.addr().port());
        assert_eq!(DriverKind::Blocking.get(&Client::new(), &url, &options).exit, 0);
        let plain = Target::parse("http://localhost/").unwrap();
        assert_eq!((usize::from(hsts.upgrade(&plain).is_some()), alt_svc.len()), (known, known));

        let (hsts_file, alt_svc_file) = (place.path().join("hsts"), place.path().join("alt-svc"));
        fs::write(&hsts_file, "other.example \"29990101 00:00:00\"\n").unwrap();
        hsts.save(&hsts_file).unwrap();
        alt_svc.save(&alt_svc_file).unwrap();
        let (again, alternatives) = (HstsCache::new(), AltSvcCache::new());
        again.load(&hsts_file).unwrap();
        alternatives.load(&alt_svc_file).unwrap();
        let is_known = |host: &str| again.upgrade(&Target::parse(host).unwrap()).is_some();
        assert_eq!((is_known("http://localhost/"), is_known("http://other.example/")), (known == 1, true));
        assert_eq!(alternatives.len(), known);
        let _ = fs::remove_file(&alt_svc_file);
    }
}

#[test]
fn jar_saves_again_after_a_failed_save() {
    let place = tempfile::tempdir().unwrap();
    let jar = SharedCookieJar::new();
    jar.store_fields(&Target::parse("http://h.example/").unwrap(), [&b"a=1"[..]]);
    assert!(jar.save(place.path().join("none/jar")).is_err());
    jar.save(place.path().join("jar")).unwrap();
    let again = SharedCookieJar::new();
    assert_eq!(again.load(place.path().join("jar")).unwrap(), 0);
    assert_eq!(again.with(|jar| jar.len()), 1);
}

/// If this process is a child process of the test, sends a hundred requests whose responses each
/// set a cookie, saves the jar after each, and returns true. Otherwise, returns false.
fn run_as_child() -> bool {
    let Ok(about) = env::var(CHILD) else { return false };
    let [file, number, port] = about.split('|').collect::<Vec<_>>()[..] else { panic!("{about}") };
    let client = Client::with_resolver(Resolver::new(DnsCacheOptions::default()));
    // Its own host, because a host may have 180 cookies.
    let host = format!("p{number}.test");
    client.resolver().add_override(&format!("{host}:{port}:127.0.0.1")).unwrap();
    let jar = SharedCookieJar::new();
    jar.load(file).unwrap();
    let options = Arc::new(RequestOptions { jar: Some(jar.clone()), ..RequestOptions::default() });
    for i in 0..REQUESTS {
        let target = Target::parse(&format!("http://{host}:{port}/set?c{i}")).unwrap();
        client.fetch(target, Arc::clone(&options), Box::new(MemorySink::default())).result.unwrap();
        jar.save(file).unwrap();
    }
    true
}

#[test]
fn processes_sharing_a_jar_file_lose_no_cookie() {
    if run_as_child() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("cookies.txt");
    let port = start_cookie_server();
    let spawn = |number: usize| -> Child {
        Command::new(env::current_exe().unwrap())
            .args(["--exact", "processes_sharing_a_jar_file_lose_no_cookie"])
            .stdout(std::process::Stdio::null())
            .env(CHILD, format!("{}|{number}|{port}", file.display()))
            .spawn()
            .unwrap()
    };
    let mut children: Vec<Child> = (0..PROCESSES).map(spawn).collect();
    let mut looks = 0;
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        let text = fs::read(&file).unwrap_or_default();
        let read = netscape::read(&text, 0);
        assert!(read.refused == 0 && (text.is_empty() || text.ends_with(b"\n")), "a torn file");
        looks += 1;
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(looks > 0 && children.iter_mut().all(|child| child.wait().unwrap().success()));
    let read = netscape::read(&fs::read(&file).unwrap(), 0);
    assert_eq!((read.cookies.len(), read.refused), (PROCESSES * REQUESTS, 0));
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing is left beside it");
}

/// Starts a server whose responses set the cookie that the request's query names. Returns the
/// server's port.
fn start_cookie_server() -> u16 {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let stream = stream.unwrap();
                let mut name = String::new();
                for line in BufReader::new(&stream).lines().map_while(Result::ok) {
                    if let Some((_, rest)) = line.split_once("/set?") {
                        name = rest.split(' ').next().unwrap().to_owned();
                    } else if line.is_empty() {
                        let reply = format!(
                            "HTTP/1.1 200 OK\r\nSet-Cookie: {name}=1; Max-Age=9999\r\nContent-Length: 0\r\n\r\n"
                        );
                        (&stream).write_all(reply.as_bytes()).unwrap();
                    }
                }
            });
        }
    });
    port
}
