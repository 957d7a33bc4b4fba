//! One GET with a rate limit on every connection, as in object stores: the gain of more
//! connections.
//!
//! nginx's `limit_rate` limits a request; the relay limits the connection, and delays the TCP
//! handshake by a round trip.

use std::time::Duration;

use testkit::relay::Relay;

use super::bulk::{ARIA2, CURL, Client, HAUL, HTCAT, Sink, Store, at_most};
use super::{Bench, Job};
use crate::Result;
use crate::card::{Card, Goal, Unit, What};

pub(super) const JOB: Job =
    Job { name: "limited", about: "each connection held to a rate, 20 ms round trip; parts tls-5, plain-36", set_up };

const RTT: Duration = Duration::from_millis(20);

/// A link to a body.
struct Link {
    part: &'static str,
    tls: bool,
    /// Bytes a second of each connection.
    rate: u64,
    len: u64,
}

const LINKS: [Link; 2] = [
    Link { part: "tls-5", tls: true, rate: 5_000_000, len: 100_000_000 },
    Link { part: "plain-36", tls: false, rate: 36_000_000, len: 500_000_000 },
];

fn set_up(bench: &mut Bench) -> Result<Vec<Card>> {
    let store = Store::open(bench)?;
    let (mut cards, mut relays) = (Vec::new(), Vec::new());
    for link in LINKS {
        let len = at_most(bench, link.len);
        let to = if link.tls { store.server.tls } else { store.server.addr };
        let relay = Relay::to(to).rtt(RTT).handshake(true).rate(link.rate).start()?;
        let body = if link.tls { store.tls(relay.addr(), len)? } else { store.plain(relay.addr(), len)? };
        relays.push(relay);
        let mut contestants = body.to(Sink::Watched, &[Client::Haul, Client::Curl, Client::Htcat]);
        // It needs a file; at these rates the disk does not matter.
        contestants.extend(body.to(Sink::File, &[Client::Aria2]));
        cards.push(Card {
            part: link.part,
            contestants: bench.entries(contestants),
            baseline: CURL,
            limit: None,
            goals: vec![
                Goal::ratio(What::Wall, HAUL, CURL, 0.25),
                Goal::ratio(What::Wall, HAUL, HTCAT, 1.0),
                Goal::ratio(What::Wall, HAUL, ARIA2, 1.0),
                Goal::ratio(What::FirstByte, HAUL, CURL, 1.1),
            ],
            rounds: 3,
            warm_up: false,
            // Under strace the transfer takes twice as long, and its calls depend on how the pieces
            // arrive.
            one_core: false,
            calls: false,
            server: format!(
                "{}{}, behind a relay of {} ms, {} MB/s a connection",
                store.server.name,
                if link.tls { ", TLS 1.3" } else { "" },
                RTT.as_millis(),
                link.rate / 1_000_000
            ),
            unit: Unit::Bytes(len),
        });
    }
    bench.hold(relays);
    bench.hold(store.server);
    Ok(cards)
}
