//! One GET whose connection already uses the whole link: the cost of trying more.

use std::time::Duration;

use testkit::relay::Relay;

use super::bulk::{Body, Client, HAUL, HAUL_ONE, Sink, Store, at_most};
use super::{Bench, Job};
use crate::Result;
use crate::card::{Card, Goal, Unit, What};

pub(super) const JOB: Job = Job {
    name: "unlimited",
    about: "default against --split 1 where one stream fills the link; parts null, file, tls, shared",
    set_up,
};

const LEN: u64 = 1 << 30;
/// A link whose rate all connections share.
const SHARED: (Duration, u64, u64) = (Duration::from_millis(20), 100_000_000, 300_000_000);

fn set_up(bench: &mut Bench) -> Result<Vec<Card>> {
    let store = Store::open(bench)?;
    let len = bench.length(LEN);
    let card = |part, body: &Body, sink, len, server| Card {
        part,
        contestants: bench.entries(body.to(sink, &[Client::Haul, Client::HaulOne, Client::Curl])),
        baseline: HAUL_ONE,
        limit: None,
        goals: vec![Goal::ratio(What::Wall, HAUL, HAUL_ONE, 1.05)],
        rounds: 7,
        warm_up: true,
        one_core: false,
        calls: false,
        server,
        unit: Unit::Bytes(len),
    };
    let server = &store.server;
    let (plain, tls) = (store.plain(server.addr, len)?, store.tls(server.tls, len)?);
    let (rtt, rate, shared_len) = SHARED;
    let shared_len = at_most(bench, shared_len);
    let relay = Relay::to(server.addr).rtt(rtt).handshake(true).total_rate(rate).start()?;
    let shared = store.plain(relay.addr(), shared_len)?;
    let relayed =
        format!("{}, behind a relay of {} ms, {} MB/s in all", server.name, rtt.as_millis(), rate / 1_000_000);
    let cards = vec![
        card("null", &plain, Sink::Null, len, server.name.clone()),
        card("file", &plain, Sink::File, len, server.name.clone()),
        card("tls", &tls, Sink::Null, len, format!("{}, TLS 1.3", server.name)),
        card("shared", &shared, Sink::Null, shared_len, relayed),
    ];
    bench.hold(relay);
    bench.hold(store.server);
    Ok(cards)
}
