//! Tests the adaptive limit on concurrent requests against simulated hosts, in virtual time.
//!
//! A host works on `capacity` requests at a time, each for a round trip, and one processor sends
//! its responses one after the other. Further requests queue or are refused. A client with one
//! processor reads the responses. Other programs may use either processor for a while.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use haul_policy::MonotonicTime;
use haul_policy::concurrency::{CompletionKind, CompletionSample, ConcurrencyLimit, INITIAL_LIMIT, MAX_LIMIT};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
/// The delay before a refused request is repeated. With the adaptive limit, the delay applies only
/// if no other request was running.
const RETRY_PAUSE: u64 = SECOND;

/// The reaction of a host to a request while the host works on as many requests as it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overload {
    Queue,
    /// The connection is refused.
    Refuse,
    /// The connection is reset after half a round trip.
    Reset,
    /// The response is 503, after a round trip.
    Unavailable,
}

/// The additional cost of the first request on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionCost {
    None,
    /// A round trip before the request.
    Connect,
    /// The first request arrives a round trip later.
    SlowFirstRequest,
}

/// A simulated host: its capacity, its delays in nanoseconds, and its reaction to overload.
#[derive(Clone, Copy, Debug)]
struct SimulatedHost {
    /// The number of requests that the host works on at a time.
    capacity: usize,
    overload: Overload,
    round_trip: u64,
    connection_cost: ConnectionCost,
    size: u64,
    /// A response may take longer by up to this share of the round trip.
    jitter: f64,
    /// The mean time between two pauses of a processor in nanoseconds; 0 for no pauses. A pause, in
    /// which other programs use the processor, lasts half of that time on average.
    pauses: u64,
}

impl SimulatedHost {
    /// Returns the processor time of the host and of the client for one response, in nanoseconds.
    fn work(&self) -> (u64, u64) {
        (20_000 + self.size / 2, 12_000 + self.size / 2)
    }
}

/// The rule that determines the number of concurrent requests.
enum ConcurrencyRule {
    Fixed(usize),
    Adaptive(Box<ConcurrencyLimit>),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SimulationEvent {
    /// A request arrives at the host.
    Arrives(SimulatedRequest),
    /// The host has worked on a request for a round trip.
    Worked(SimulatedRequest),
    /// The host's processor has sent a response.
    Sent(SimulatedRequest),
    /// The end of a response (`true`), or a refusal (`false`), arrives at the client.
    Ends(SimulatedRequest, bool),
    /// The client's processor has read a response (`true`) or a refusal (`false`).
    Handled(SimulatedRequest, bool),
    /// The delay before a refused request is repeated is over.
    Again,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SimulatedRequest {
    number: usize,
    began: u64,
    on_new_connection: bool,
    first_byte: u64,
}

#[derive(Default)]
struct SimulationOutcome {
    /// The virtual time in nanoseconds at which the last response was read.
    time: u64,
    /// The largest number of requests at the host beyond its capacity, measured after the time
    /// [`Simulation::settles`].
    over: usize,
    refused: usize,
    /// The maximum number of concurrent requests.
    most: usize,
}

/// A simulation of a client and a host in virtual time.
struct Simulation {
    host: SimulatedHost,
    rule: ConcurrencyRule,
    now: u64,
    events: BinaryHeap<Reverse<(u64, usize, SimulationEvent)>>,
    pushed: usize,
    to_start: usize,
    idle: usize,
    in_flight: usize,
    working: usize,
    queue: VecDeque<SimulatedRequest>,
    host_free: u64,
    client_free: u64,
    random: u64,
    outcome: SimulationOutcome,
}

impl Simulation {
    fn run(host: SimulatedHost, rule: ConcurrencyRule, pages: usize) -> SimulationOutcome {
        let mut simulation = Simulation::new(host, rule, 1);
        simulation.fetch(pages);
        simulation.outcome
    }

    fn new(host: SimulatedHost, rule: ConcurrencyRule, random: u64) -> Simulation {
        Simulation {
            host,
            rule,
            now: 0,
            events: BinaryHeap::new(),
            pushed: 0,
            to_start: 0,
            idle: 0,
            in_flight: 0,
            working: 0,
            queue: VecDeque::new(),
            host_free: 0,
            client_free: 0,
            random,
            outcome: SimulationOutcome::default(),
        }
    }

    /// Fetches `pages` pages, and records the outcome.
    fn fetch(&mut self, pages: usize) {
        self.to_start = pages;
        let mut left = pages;
        self.start();
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            self.now = at;
            left -= usize::from(matches!(event, SimulationEvent::Handled(_, true)));
            self.on_event(event);
            if left == 0 {
                break;
            }
        }
        assert_eq!(left, 0, "{:?}", self.host);
        self.outcome.time = self.now;
    }

    fn push(&mut self, at: u64, event: SimulationEvent) {
        self.pushed += 1;
        self.events.push(Reverse((at, self.pushed, event)));
    }

    /// Returns the virtual time in nanoseconds at which the limit on concurrent requests must have
    /// come near the host's capacity. [`SimulationOutcome::over`] is measured only after this time.
    fn settles(&self) -> u64 {
        SECOND + (self.host.jitter * 2.0 * SECOND as f64) as u64
    }

    fn limit(&self) -> usize {
        match &self.rule {
            ConcurrencyRule::Fixed(limit) => *limit,
            ConcurrencyRule::Adaptive(limit) => limit.limit(),
        }
    }

    fn start(&mut self) {
        while self.to_start > 0 && self.in_flight < self.limit() {
            self.to_start -= 1;
            self.in_flight += 1;
            self.outcome.most = self.outcome.most.max(self.in_flight);
            let connects = self.idle == 0;
            self.idle = self.idle.saturating_sub(1);
            let cost = if connects { self.host.connection_cost } else { ConnectionCost::None };
            let arrives = self.now + if cost == ConnectionCost::None { 0 } else { self.host.round_trip };
            let began = if cost == ConnectionCost::Connect { arrives } else { self.now };
            let request = SimulatedRequest { number: self.pushed, began, on_new_connection: connects, first_byte: 0 };
            self.push(arrives, SimulationEvent::Arrives(request));
        }
    }

    /// Returns a random number from 0 to less than 1.
    fn draw(&mut self) -> f64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as f64 / (1u64 << 31) as f64
    }

    /// Returns the time that a processor needs for some work, including a random pause.
    fn processor_time(&mut self, work: u64) -> u64 {
        if self.host.pauses > 0 && self.draw() < work as f64 / self.host.pauses as f64 {
            return work + (self.host.pauses as f64 * self.draw()) as u64;
        }
        work
    }

    fn work_on(&mut self, request: SimulatedRequest) {
        self.working += 1;
        let share = self.draw();
        let time = self.host.round_trip as f64 * (1.0 + self.host.jitter * share);
        self.push(self.now + time as u64, SimulationEvent::Worked(request));
    }

    fn on_event(&mut self, event: SimulationEvent) {
        let host = self.host;
        let (host_work, client_work) = host.work();
        match event {
            SimulationEvent::Arrives(request) => {
                if self.now > self.settles() {
                    let over = (self.working + self.queue.len() + 1).saturating_sub(host.capacity);
                    self.outcome.over = self.outcome.over.max(over);
                }
                match host.overload {
                    _ if self.working < host.capacity => self.work_on(request),
                    Overload::Queue => self.queue.push_back(request),
                    Overload::Refuse => self.push(self.now, SimulationEvent::Ends(request, false)),
                    Overload::Reset => self.push(self.now + host.round_trip / 2, SimulationEvent::Ends(request, false)),
                    Overload::Unavailable => {
                        self.push(self.now + host.round_trip, SimulationEvent::Ends(request, false))
                    }
                }
            }
            SimulationEvent::Worked(request) => {
                self.host_free = self.host_free.max(self.now) + self.processor_time(host_work);
                self.push(self.host_free, SimulationEvent::Sent(request));
            }
            SimulationEvent::Sent(request) => {
                self.working -= 1;
                self.push(self.now, SimulationEvent::Ends(request, true));
                if let Some(next) = self.queue.pop_front() {
                    self.work_on(next);
                }
            }
            SimulationEvent::Ends(mut request, is_served) => {
                request.first_byte = self.now.max(self.client_free);
                self.client_free = request.first_byte + self.processor_time(client_work);
                self.push(self.client_free, SimulationEvent::Handled(request, is_served));
            }
            SimulationEvent::Handled(request, is_served) => self.on_handled(request, is_served),
            SimulationEvent::Again => {
                self.to_start += 1;
                self.start();
            }
        }
    }

    fn on_handled(&mut self, request: SimulatedRequest, is_served: bool) {
        let sample = CompletionSample {
            now: MonotonicTime(self.now),
            first_byte: Duration::from_nanos(request.first_byte - request.began),
            total: Duration::from_nanos(self.now - request.began),
            in_flight: self.in_flight,
            on_new_connection: request.on_new_connection,
            kind: if is_served { CompletionKind::Served } else { CompletionKind::Refused },
        };
        self.in_flight -= 1;
        self.idle += usize::from(is_served || self.host.overload == Overload::Unavailable);
        let is_adaptive = match &mut self.rule {
            ConcurrencyRule::Fixed(_) => false,
            ConcurrencyRule::Adaptive(limit) => {
                limit.on_completion(sample);
                true
            }
        };
        if !is_served {
            self.outcome.refused += 1;
            if is_adaptive && sample.refused_load().is_some() {
                self.to_start += 1;
            } else {
                self.push(self.now + RETRY_PAUSE, SimulationEvent::Again);
            }
        }
        self.start();
    }
}

fn adaptive() -> ConcurrencyRule {
    ConcurrencyRule::Adaptive(Box::new(ConcurrencyLimit::new(MAX_LIMIT)))
}

fn best_fixed(host: SimulatedHost, pages: usize) -> (u64, usize) {
    // The best limit is the capacity of the host, or less if a processor is the bottleneck.
    let limits: &[usize] = match (host.capacity, host.overload) {
        (4, Overload::Queue) => &[4, 6],
        (4, _) => &[4],
        (32, Overload::Queue) => &[28, 32, 33],
        (32, _) => &[28, 32],
        _ => &[6, 28, MAX_LIMIT],
    };
    limits.iter().map(|&limit| (Simulation::run(host, ConcurrencyRule::Fixed(limit), pages).time, limit)).min().unwrap()
}

fn hosts() -> Vec<SimulatedHost> {
    let mut hosts = Vec::new();
    for overload in [Overload::Queue, Overload::Refuse, Overload::Reset, Overload::Unavailable] {
        for capacity in [4, 32, 1000] {
            for round_trip in [0, MS, 20 * MS, 100 * MS] {
                for size in [300, 50_000] {
                    for connection_cost in
                        [ConnectionCost::None, ConnectionCost::Connect, ConnectionCost::SlowFirstRequest]
                    {
                        hosts.push(SimulatedHost {
                            capacity,
                            overload,
                            round_trip,
                            connection_cost,
                            size,
                            jitter: 0.0,
                            pauses: 0,
                        });
                    }
                }
            }
        }
    }
    hosts
}

/// Checks that the adaptive limit takes at most `slower` times as long as the best fixed limit, and
/// exceeds the capacity of the host by at most `over` requests. Returns the outcome.
fn check(host: SimulatedHost, pages: usize, slower: f64, over: usize) -> SimulationOutcome {
    let (best, limit) = best_fixed(host, pages);
    let adaptive = Simulation::run(host, adaptive(), pages);
    let ratio = adaptive.time as f64 / best as f64;
    assert!(ratio <= slower, "{host:?}, {pages} pages: {ratio:.3} of the time with {limit}");
    assert!(adaptive.over <= over, "{host:?}, {pages} pages: {} more than its capacity", adaptive.over);
    adaptive
}

#[test]
fn adaptive_limit_is_near_best_fixed_limit() {
    for host in hosts() {
        // Each refused connection is opened again, and its first request is slow again.
        let reopens = host.connection_cost == ConnectionCost::SlowFirstRequest && host.overload != Overload::Queue;
        for pages in [500, 1500] {
            check(host, pages, if reopens { 1.3 } else { 1.2 }, 2);
        }
    }
}

#[test]
fn varying_response_times_do_not_lower_the_limit() {
    for (jitter, over) in [(0.2, 3), (1.0, 5)] {
        for host in hosts() {
            let host = SimulatedHost { jitter, ..host };
            check(host, 1500, 1.15, over);
        }
    }
}

#[test]
fn long_runs_are_as_fast_as_maximum_limit() {
    for host in hosts().into_iter().filter(|host| host.capacity == 1000) {
        let (pages, limit) = (5000, MAX_LIMIT);
        let fixed = Simulation::run(host, ConcurrencyRule::Fixed(limit), pages).time;
        let adaptive = Simulation::run(host, adaptive(), pages).time;
        assert!(adaptive as f64 <= fixed as f64 * 1.03, "{host:?}: {adaptive} and {fixed}");
    }
}

#[test]
fn near_hosts_get_six_connections() {
    for work in [5_000, 20_000, 100_000, 500_000, 5 * MS] {
        let host = SimulatedHost {
            capacity: 1000,
            overload: Overload::Queue,
            round_trip: 0,
            connection_cost: ConnectionCost::None,
            size: 2 * work,
            jitter: 0.0,
            pauses: 0,
        };
        let adaptive = check(host, 2000, 1.01, 0);
        assert_eq!(adaptive.most, INITIAL_LIMIT, "{work} ns a response");
    }
}

#[test]
fn adaptive_limit_causes_few_refusals() {
    for host in hosts().into_iter().filter(|host| host.overload != Overload::Queue) {
        let outcome = Simulation::run(host, adaptive(), 2000);
        let expected = match host.capacity {
            4 => 10,
            32 => 24,
            _ => 0,
        };
        assert!(outcome.refused <= expected, "{host:?}: {} refusals", outcome.refused);
    }
}

/// Returns a host that queues requests that exceed its capacity. The processors pause for a
/// millisecond at random times.
fn busy_host(capacity: usize, round_trip: u64, size: u64) -> SimulatedHost {
    let (overload, connection_cost) = (Overload::Queue, ConnectionCost::SlowFirstRequest);
    SimulatedHost { capacity, overload, round_trip, connection_cost, size, jitter: 0.0, pauses: 2 * MS }
}

/// Returns the outcomes of runs in which the processors pause at different times.
fn busy_outcomes(host: SimulatedHost, limit: Option<usize>, pages: usize) -> impl Iterator<Item = SimulationOutcome> {
    (1..60).map(move |seed| {
        let rule = limit.map_or_else(adaptive, ConcurrencyRule::Fixed);
        let mut simulation = Simulation::new(host, rule, seed);
        simulation.fetch(pages);
        simulation.outcome
    })
}

#[test]
fn processor_pauses_do_not_lower_the_limit() {
    for (round_trip, pages, slower) in [(MS, 5000, 1.15), (20 * MS, 1000, 1.15)] {
        for (size, capacity) in [(300, 32), (300, 1000), (50_000, 32), (50_000, 1000)] {
            let host = busy_host(capacity, round_trip, size);
            let median = |limit| {
                let mut times: Vec<u64> = busy_outcomes(host, limit, pages).map(|outcome| outcome.time).collect();
                times.sort_unstable();
                times[times.len() / 2] as f64
            };
            let ratio = median(None) / median(Some(MAX_LIMIT));
            assert!(ratio <= slower, "{host:?}: {ratio:.2} of the time with {MAX_LIMIT}");
        }
    }
}

#[test]
fn queues_lower_the_limit_on_busy_machines() {
    for (round_trip, pages) in [(MS, 5000), (20 * MS, 500), (100 * MS, 500)] {
        for size in [300, 50_000] {
            let host = busy_host(4, round_trip, size);
            let over = busy_outcomes(host, None, pages).filter(|outcome| outcome.over > 2).count();
            assert!(over <= 3, "{host:?}: more requests than its capacity in {over} of 59 runs");
        }
    }
}
