//! One big GET over TLS 1.3: thrown away, into a pipe.

use super::bulk::{CURL, Client, HAUL, HTCAT, MEMORY_MB, Sink, Store, limits};
use super::{Bench, Job};
use crate::Result;
use crate::card::{Card, Goal, Unit, What};

pub(super) const JOB: Job = Job { name: "get-tls", about: "1 GiB over TLS 1.3, AES-128-GCM; parts null, pipe", set_up };

const LEN: u64 = 1 << 30;
const ALL: [Client; 4] = [Client::Haul, Client::Curl, Client::Libcurl, Client::Htcat];

fn set_up(bench: &mut Bench) -> Result<Vec<Card>> {
    let store = Store::open(bench)?;
    let len = bench.length(LEN);
    let body = store.tls(store.server.tls, len)?;
    let card = |part, sink, what| {
        let mut contestants = body.to(sink, &ALL);
        contestants.push(limits::aes(&body));
        Card {
            part,
            contestants: bench.entries(contestants),
            baseline: CURL,
            limit: Some(limits::AES),
            goals: vec![
                Goal::most(what, HAUL, 0.25),
                Goal::ratio(what, HAUL, CURL, 1.0 / 2.8),
                Goal::ratio(What::Wall, HAUL, HTCAT, 1.0),
                Goal::most(What::Rss, HAUL, MEMORY_MB),
            ],
            rounds: 7,
            warm_up: true,
            one_core: false,
            calls: true,
            server: format!("{}, TLS 1.3", store.server.name),
            unit: Unit::Bytes(len),
        }
    };
    let cards = vec![card("null", Sink::Null, What::Cpu), card("pipe", Sink::Pipe, What::Client)];
    bench.hold(store.server);
    Ok(cards)
}
