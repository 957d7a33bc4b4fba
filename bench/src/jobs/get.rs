//! One big GET over plain HTTP: thrown away, into a pipe, to a file.

use super::bulk::{ARIA2, CURL, Client, HAUL, HTCAT, MEMORY_MB, Sink, Store, limits};
use super::{Bench, Job};
use crate::Result;
use crate::card::{Card, Contestant, Goal, Unit, What};

pub(super) const JOB: Job = Job { name: "get", about: "1 GiB, plain; parts null, pipe, file", set_up };

const LEN: u64 = 1 << 30;
const ALL: [Client; 4] = [Client::Haul, Client::Curl, Client::Libcurl, Client::Htcat];

fn set_up(bench: &mut Bench) -> Result<Vec<Card>> {
    let store = Store::open(bench)?;
    let len = bench.length(LEN);
    let body = store.plain(store.server.addr, len)?;
    let card = |part, mut contestants: Vec<Contestant>, limit: Vec<Contestant>, mut goals: Vec<Goal>| {
        // The last one does the least work.
        let least = limit.last().map(|contestant| contestant.name);
        contestants.extend(limit);
        goals.push(Goal::most(What::Rss, HAUL, MEMORY_MB));
        Card {
            part,
            contestants: bench.entries(contestants),
            baseline: CURL,
            limit: least,
            goals,
            rounds: 7,
            warm_up: true,
            one_core: false,
            calls: true,
            server: store.server.name.clone(),
            unit: Unit::Bytes(len),
        }
    };
    let cards = vec![
        card(
            "null",
            body.to(Sink::Null, &ALL),
            vec![limits::recv(&body), limits::splice(&body)],
            vec![
                Goal::most(What::Cpu, HAUL, 0.12),
                Goal::ratio(What::Cpu, HAUL, CURL, 0.2),
                Goal::ratio(What::Wall, HAUL, HTCAT, 1.0),
            ],
        ),
        card(
            "pipe",
            body.to(Sink::Pipe, &ALL),
            vec![limits::splice_pipe(&body)],
            vec![Goal::most(What::Client, HAUL, 0.12), Goal::ratio(What::Client, HAUL, CURL, 0.2)],
        ),
        card(
            "file",
            body.to(Sink::File, &[&ALL[..], &[Client::Aria2]].concat()),
            vec![limits::splice_file(&body)],
            vec![Goal::ratio(What::Wall, HAUL, CURL, 0.4), Goal::ratio(What::Wall, HAUL, ARIA2, 1.0)],
        ),
    ];
    bench.hold(store.server);
    Ok(cards)
}
