//! One small plain request from start to end of the process.

use super::{Bench, Job, SiteFiles, plain};
use crate::Result;
use crate::card::{Card, Check, Goal, Unit, What};
use crate::digest::Print;

pub(super) const JOB: Job = Job { name: "cold", about: "one small plain request, a process each", set_up };

fn set_up(bench: &mut Bench) -> Result<Vec<Card>> {
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
    Ok(vec![Card {
        part: "",
        contestants: bench.entries(entries),
        baseline: "curl",
        limit: None,
        goals: vec![Goal::ratio(What::Cpu, "haul", "curl", 1.0), Goal::ratio(What::Wall, "haul", "curl", 1.0)],
        rounds: 200,
        warm_up: true,
        calls: true,
        server: server_name,
        unit: Unit::Requests(1),
    }])
}
