//! Tests of hosts that accept connections but do not answer: URLs of other hosts are fetched in the
//! meantime.

use crate::common;

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use common::{run, single_stage, threads, with_time_limit};
use haul::fleet::FleetOptions;
use haul::{Client, RequestOptions};
use testkit::origin::Origin;

/// Starts an origin on all addresses of the loopback network.
fn good_hosts() -> Arc<Origin> {
    Arc::new(Origin::builder().ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED)).start().unwrap())
}

/// A server on all addresses of the loopback network that does not answer before it is released.
struct SilentServer {
    port: u16,
}

impl SilentServer {
    /// Starts a server that answers only after `origin` has received this number of requests.
    fn until(origin: &Arc<Origin>, requests: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let released = Arc::new((Mutex::new(false), Condvar::new()));
        let (of_server, origin) = (Arc::clone(&released), Arc::clone(origin));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let released = Arc::clone(&of_server);
                thread::spawn(move || answer_when_released(&stream, &released));
            }
        });
        thread::spawn(move || {
            while origin.log().len() < requests {
                thread::sleep(Duration::from_millis(10));
            }
            *released.0.lock().unwrap() = true;
            released.1.notify_all();
        });
        Self { port }
    }

    fn url(&self, host: usize, number: usize) -> String {
        format!("http://127.0.77.{}:{}/{number}", 1 + host, self.port)
    }
}

fn answer_when_released(stream: &TcpStream, (is_released, changed): &(Mutex<bool>, Condvar)) {
    let mut lines = BufReader::new(stream).lines();
    while lines.by_ref().map_while(Result::ok).any(|line| line.is_empty()) {
        drop(changed.wait_while(is_released.lock().unwrap(), |is_released| !*is_released).unwrap());
        if (&mut &*stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nlate\n").is_err() {
            return;
        }
    }
}

fn good_urls(origin: &Origin, count: usize) -> impl Iterator<Item = String> {
    let port = origin.http_addr().port();
    (0..count).map(move |number| format!("http://127.0.78.{}:{port}/small/{number}", 1 + number % 50))
}

/// Runs a fleet with unordered output. Returns the numbers of successful and failed transfers.
fn outcome(options: FleetOptions, urls: Vec<String>) -> (u64, u64) {
    let options = FleetOptions { unordered: true, ..options };
    let work = move || run(&Client::new(), single_stage(&RequestOptions::default()), options, urls);
    let got = with_time_limit("a run with silent hosts", work);
    (got.summary().succeeded, got.summary().failed)
}

#[test]
fn silent_hosts_do_not_delay_other_hosts() {
    let origin = good_hosts();
    let silent = SilentServer::until(&origin, 100);
    let urls = (0..8).map(|host| silent.url(host, 0)).chain(good_urls(&origin, 100)).collect();
    assert_eq!(outcome(FleetOptions { parallel: 4, ..threads(1) }, urls), (108, 0));
}

#[test]
fn many_urls_of_silent_host_delay_no_others() {
    for count in [1, 2] {
        let origin = good_hosts();
        let silent = SilentServer::until(&origin, 50);
        let urls = (0..600).map(|number| silent.url(0, number)).chain(good_urls(&origin, 50)).collect();
        let options = FleetOptions { parallel: 4, per_host: Some(1), ..threads(count) };
        assert_eq!(outcome(options, urls), (650, 0));
    }
}
