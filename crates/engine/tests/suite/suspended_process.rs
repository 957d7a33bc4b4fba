//! Tests of a process that is suspended (SIGSTOP) for longer than the idle timeout of its QUIC
//! connection: the connection is not used again, and a transfer on it ends.
//!
//! Each test runs this test program again as a child that fetches. The test suspends the child
//! until the server has given up the connection.

use crate::common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use common::{DRIVERS, DriverKind, TEST_TIMEOUT, trusting_ca, with_time_limit};
use haul::Client;
use haul::request::Http3Policy;
use testkit::h3_peer::{H3Peer, H3ScriptConnection, data, headers};
use testkit::http3::Http3Settings;
use testkit::test_certificates::TestCertificates;

const URL: &str = "HAUL_TEST_CHILD_URL";
const CA: &str = "HAUL_TEST_CHILD_CA";
const DRIVER: &str = "HAUL_TEST_CHILD_DRIVER";
const RETRIES: &str = "HAUL_TEST_CHILD_RETRIES";

/// The mark before the outcome of a fetch in the standard error of a child.
const MARK: &str = "outcome: ";

/// A child that fetches one URL for each line of its standard input, with one client.
struct FetchingChild {
    child: Child,
    output: BufReader<ChildStderr>,
}

impl FetchingChild {
    fn start(peer: &H3Peer, ca: &std::path::Path, driver: DriverKind, retries: u32) -> FetchingChild {
        let name = "suspended_process::child_fetches_each_path_of_its_input";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--ignored", "--nocapture"])
            .env(URL, peer.url(""))
            .env(CA, ca)
            .env(DRIVER, format!("{driver:?}"))
            .env(RETRIES, retries.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stderr.take().unwrap());
        FetchingChild { child, output }
    }

    fn fetch(&mut self, path: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{path}").unwrap();
    }

    /// Returns the exit code, the body and the error message of the next fetch.
    fn outcome(&mut self) -> (u8, String, String) {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the child ended");
            if let Some(outcome) = line.trim_end().strip_prefix(MARK) {
                let mut parts = outcome.splitn(3, '|').map(str::to_owned);
                let exit = parts.next().unwrap().parse().unwrap();
                return (exit, parts.next().unwrap(), parts.next().unwrap());
            }
        }
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for FetchingChild {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program of a [`FetchingChild`]. Does nothing if it is not started as such a child.
#[test]
#[ignore = "other tests run it as a child process"]
fn child_fetches_each_path_of_its_input() {
    let Ok(url) = std::env::var(URL) else { return };
    let (mut options, _ca) = trusting_ca(&std::fs::read_to_string(std::env::var(CA).unwrap()).unwrap());
    options.http3 = Http3Policy::Only;
    options.retry.max = std::env::var(RETRIES).unwrap().parse().unwrap();
    options.retry.delay = Some(Duration::ZERO);
    let driver = DRIVERS.into_iter().find(|driver| std::env::var(DRIVER).unwrap() == format!("{driver:?}")).unwrap();
    let client = Client::new();
    for path in std::io::stdin().lines() {
        let got = driver.get(&client, &format!("{url}{}", path.unwrap()), &options);
        eprintln!("\n{MARK}{}|{}|{}", got.exit, String::from_utf8_lossy(&got.body), got.message);
    }
}

fn start(
    identity: &TestCertificates,
    serve: impl Fn(usize, &mut H3ScriptConnection) -> std::io::Result<()> + Send + Sync + 'static,
) -> H3Peer {
    let settings = Http3Settings::new().idle_timeout(Duration::from_secs(1));
    H3Peer::start_with(settings, identity, serve)
}

fn answer(conn: &mut H3ScriptConnection, body: &str) -> std::io::Result<()> {
    let request = conn.request()?;
    conn.send(request.stream, [headers(&[(":status", "200")]), data(body.as_bytes())].concat())?;
    conn.finish(request.stream)
}

fn ca_file(peer: &H3Peer) -> tempfile::NamedTempFile {
    let (_, file) = trusting_ca(peer.ca_pem());
    file
}

#[test]
fn pooled_quic_connection_is_not_used_after_suspension() {
    for driver in DRIVERS {
        let (ended, ends) = mpsc::channel();
        let ended = Mutex::new(ended);
        let peer = start(&TestCertificates::generate(), move |number, conn| {
            conn.greet(&[])?;
            answer(conn, &format!("from {number}"))?;
            conn.wait_closed()?;
            ended.lock().unwrap().send(()).map_err(std::io::Error::other)
        });
        let ca = ca_file(&peer);
        with_time_limit("the child", move || {
            let mut child = FetchingChild::start(&peer, ca.path(), driver, 0);
            child.fetch("/1");
            assert_eq!(child.outcome(), (0, "from 0".into(), String::new()), "{driver:?}");
            child.signal("-STOP");
            ends.recv_timeout(TEST_TIMEOUT).unwrap();
            child.fetch("/2");
            child.signal("-CONT");
            assert_eq!(child.outcome(), (0, "from 1".into(), String::new()), "{driver:?}");
        });
    }
}

#[test]
fn transfer_ends_after_its_process_was_suspended() {
    for (driver, retries) in [(DriverKind::Blocking, 0), (DriverKind::Reactor, 0), (DriverKind::Blocking, 1)] {
        let (told, tells) = mpsc::channel();
        let told = Mutex::new(told);
        let peer = start(&TestCertificates::generate(), move |number, conn| {
            let tell = || told.lock().unwrap().send(()).map_err(std::io::Error::other);
            conn.greet(&[])?;
            if number > 0 {
                answer(conn, "whole")?;
                return conn.wait_closed();
            }
            let request = conn.request()?;
            conn.send(request.stream, [headers(&[(":status", "200")]), data(b"who")].concat())?;
            conn.wait_for_pings(1)?;
            tell()?;
            conn.wait_closed()?;
            tell()
        });
        let ca = ca_file(&peer);
        with_time_limit("the child", move || {
            let mut child = FetchingChild::start(&peer, ca.path(), driver, retries);
            child.fetch("/");
            tells.recv_timeout(TEST_TIMEOUT).unwrap();
            child.signal("-STOP");
            // The idle timeout of the server has passed.
            tells.recv_timeout(TEST_TIMEOUT).unwrap();
            child.signal("-CONT");
            let (exit, body, message) = child.outcome();
            if retries > 0 {
                assert_eq!((exit, body.as_str()), (0, "whole"), "{message}");
            } else {
                assert_eq!((exit, body.as_str()), (56, "who"), "{driver:?} {message}");
                assert!(message.contains("the server sent nothing for too long"), "{message}");
            }
        });
    }
}
