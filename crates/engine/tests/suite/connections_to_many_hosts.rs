//! Tests of runs over many hosts: connections are kept, and dead hosts do not delay live hosts.

use crate::common;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use common::{TEST_TIMEOUT, one_thread, run, single_stage, start_origin};
use haul::fleet::FleetOptions;
use haul::net::dns::{DnsCacheOptions, Resolver};
use haul::net::pool::PoolLimits;
use haul::{Client, RequestOptions};
use testkit::origin::Origin;

/// The number of hosts: more than the number of connections that a fleet opens at the same time.
const HOSTS: usize = 150;
const ROUNDS: usize = 4;

/// Returns a client that resolves every name to this machine.
fn client_with(limits: PoolLimits) -> Client {
    let here = |_: &str| Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]);
    Client::builder().resolver(Resolver::with_lookup(DnsCacheOptions::default(), here)).pool(limits).build()
}

/// Fetches a page from each host in turn, several times.
fn fetch_in_turn(client: &Client, scheme: &str, address: SocketAddr) {
    let urls = (0..HOSTS * ROUNDS).map(|i| format!("{scheme}://h{}.test:{}/small", i % HOSTS, address.port()));
    let mut options = RequestOptions::default();
    options.tls.verify = false;
    // No host has two transfers at a time, even if one of its responses is late.
    let fleet = FleetOptions { parallel: 8, per_host: Some(1), ..one_thread() };
    let done = run(client, single_stage(&options), fleet, urls);
    assert_eq!((done.summary().succeeded, done.summary().failed), ((HOSTS * ROUNDS) as u64, 0));
}

#[test]
fn connections_to_many_hosts_are_kept() {
    for scheme in ["http", "https"] {
        let origin = start_origin();
        let address = if scheme == "http" { origin.http_addr() } else { origin.https_addr() };
        let client = client_with(PoolLimits::default());
        // The second run finds them in the pool.
        for _ in 0..2 {
            fetch_in_turn(&client, scheme, address);
            assert_eq!(origin.connections(), HOSTS as u64, "{scheme}");
        }
    }
}

#[test]
fn session_tickets_of_many_hosts_are_kept() {
    let origin = start_origin();
    let client = client_with(PoolLimits { connections: 0, ..PoolLimits::default() });
    fetch_in_turn(&client, "https", origin.https_addr());
    assert_eq!((origin.connections(), origin.full_handshakes()), ((HOSTS * ROUNDS) as u64, HOSTS as u64));
}

#[test]
fn pool_limit_applies_to_connections_of_a_fleet() {
    const KEPT: usize = 20;
    let origin = start_origin();
    let client = client_with(PoolLimits { connections: KEPT, ..PoolLimits::default() });
    fetch_in_turn(&client, "http", origin.http_addr());
    // The origin notices the end of a connection a little later.
    let mut open = origin.open_connections();
    for _ in 0..1000 {
        if open <= KEPT as u64 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        open = origin.open_connections();
    }
    assert_eq!(open, KEPT as u64);
}

/// A resolver whose look-ups of dead names get no answer before the origin has served some
/// requests.
struct UnansweredNameResolver {
    origin: Origin,
    served: u64,
    waiting: AtomicUsize,
    too_early: AtomicUsize,
    over: (Mutex<bool>, Condvar),
}

impl UnansweredNameResolver {
    fn look_up(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        if name.starts_with("dead") {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let mut over = self.over.0.lock().unwrap();
            for _ in 0..TEST_TIMEOUT.as_millis() / 40 {
                if *over || self.origin.requests() >= self.served {
                    break;
                }
                over = self.over.1.wait_timeout(over, Duration::from_millis(20)).unwrap().0;
            }
            if self.origin.requests() < self.served {
                *over = true;
                self.too_early.fetch_add(1, Ordering::SeqCst);
            }
            return Err(std::io::Error::other("no answer"));
        }
        Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
    }
}

#[test]
fn dead_hosts_do_not_delay_live_hosts() {
    const DEAD: usize = 9;
    const LIVE: usize = 30;
    let origin = start_origin();
    let port = origin.http_addr().port();
    let names = Arc::new(UnansweredNameResolver {
        origin,
        served: LIVE as u64,
        waiting: AtomicUsize::new(0),
        too_early: AtomicUsize::new(0),
        over: Default::default(),
    });
    let lookup = Arc::clone(&names);
    let client =
        Client::with_resolver(Resolver::with_lookup(DnsCacheOptions::default(), move |name| lookup.look_up(name)));
    let dead = (0..DEAD).map(|i| format!("http://dead{i}.test/"));
    let live = (0..LIVE).map(|i| format!("http://live{i}.test:{port}/small"));
    let options = FleetOptions { parallel: 3, ..one_thread() };
    let done = run(&client, single_stage(&RequestOptions::default()), options, dead.chain(live));
    assert_eq!(done.summary().succeeded, LIVE as u64, "{:?}", done.reports.last());
    // All of them were waiting when the last live host was served.
    assert_eq!((names.waiting.load(Ordering::SeqCst), names.too_early.load(Ordering::SeqCst)), (DEAD, 0));
}

#[test]
fn simultaneous_slow_connection_attempts_are_limited() {
    // Its queue of connections is full: further SYNs get no answer.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let mut filling = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        filling.push(stream);
    }
    let urls = (0..40).map(|i| format!("http://h{i}.test:{}/", address.port()));
    let client = client_with(PoolLimits::default());
    let limited = RequestOptions { max_time: Some(Duration::from_secs(2)), ..RequestOptions::default() };
    let done = run(&client, single_stage(&limited), FleetOptions { parallel: 2, ..one_thread() }, urls);
    assert_eq!(done.summary().causes, [(28, 40)]);
    let begun = |report: &common::FetchOutcome| report.facts.started;
    let first = done.reports.iter().map(begun).min().unwrap();
    // Two slots, and four extra slots for each of them.
    let early = done.reports.iter().filter(|report| begun(report) < first + Duration::from_millis(1900)).count();
    assert!((3..=10).contains(&early), "{early}");
}
