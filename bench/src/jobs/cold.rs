//! One small plain request from start to end of the process.

use super::{Bench, Job, SiteFiles, plain};
use crate::Result;
use crate::contest::{Card, Check, Goal, What};
use crate::digest::Print;

pub(super) const JOB: Job = Job { name: "cold", about: "one small plain request, a process each", set_up };

fn set_up(bench: &mut Bench) -> Result<Card> {
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let host = server.addr;
    let proof = |tool: &str| Check::Proof(format!("{tool} -s http://{host}/small"), Print::of(b"small\n"));
    let entries = vec![
        plain("haul", &format!("haul -s -o /dev/null http://{host}/small"), proof("$HAUL")),
        plain("curl", &format!("curl -s -o /dev/null http://{host}/small"), proof("$CURL")),
    ];
    let server_name = server.name.clone();
    bench.hold(server);
    Ok(Card {
        contestants: bench.entries(entries),
        baseline: "curl",
        goals: vec![
            Goal { what: What::Cpu, of: "haul", against: "curl", at_most: 1.0 },
            Goal { what: What::Wall, of: "haul", against: "curl", at_most: 1.0 },
        ],
        rounds: 200,
        warm_up: true,
        server: server_name,
        requests: Some(1),
    })
}
