//! The report of a `--job` with 1,000,000 URLs of 20,000 hosts: the time to make it, and its size
//! of at most 3 MB. SQL statements make the rows of the job.

use std::process::Command;

use rusqlite::{Connection, params};
use testkit::origin::Origin;

use super::{BenchJob, JobEnvironment, shell_program};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::output_digest::OutputDigest;

pub(super) const JOB: BenchJob =
    BenchJob { name: "job-report", about: "haul job report of a job with 1,000,000 URLs, at most 3 MB", set_up };

const URLS: usize = 1_000_000;
const HAUL: &str = "haul job report";
/// The maximum size of the report page in bytes.
const MOST: usize = 3_000_000;

/// An SQL statement that adds rows with various hosts, times and outcomes. Its parameter is the
/// number of rows.
const ROWS: &str = "
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
INSERT INTO url (id, state, url, status, exit_code, error, attempts, redirects, size, ended, resolved_us,
    connected_us, first_byte_us, total_us, commit_number)
SELECT i, iif(i % 50 = 0, 'failed', 'done'), printf('https://host-%d.example/pages/%d?of=a-long-list', i % 20000, i),
    iif(i % 50 = 0, 404 + i % 100, 200), iif(i % 50 = 0, 22, 0),
    iif(i % 50 = 0, printf('the server answered %d', 404 + i % 100), NULL), 1 + i % 3 / 2, i % 4 / 3,
    i % 90000, 1700000000000 + i, i % 300, 1000 + i % 700, 5000 + i * 37 % 90000, 6000 + i * 37 % 950000, 1
FROM n";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let urls = bench.count(URLS);
    make_job(bench, urls)?;
    let count = "grep -o '<b>[0-9,]*</b>' page | head -n 1 | tr -d ,";
    let check = format!("$HAUL job report j >page && test $(wc -c <page) -le {MOST} && {count} && tail -n 1 page");
    let answer = OutputDigest::from_bytes(format!("<b>{urls}</b>\n</html>\n").as_bytes());
    let entries = vec![shell_program(HAUL, "exec $HAUL job report j", OutputCheck::CheckedOnce(check, answer))];
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(entries),
        baseline: HAUL,
        limit: None,
        goals: vec![PartGoal::at_most(MetricKind::Wall, HAUL, 10.0)],
        rounds: 3,
        warm_up: false,
        one_core: false,
        calls: false,
        server: "none".to_owned(),
        unit: WorkPerRun::Run,
    }])
}

/// Creates the file of a `--job` with this many URLs. haul fetches one URL, and an SQL statement
/// adds the rows of the other URLs.
fn make_job(bench: &JobEnvironment, urls: usize) -> Result<()> {
    let origin = Origin::builder().record(false).start()?;
    let haul = bench.program("haul").ok_or("haul is not installed")?;
    let mut command = Command::new(haul);
    command.current_dir(&bench.work).args(["-s", "--job", "j", "-o", "/dev/null", &origin.url("/small/1")]);
    if !command.status()?.success() {
        return Err("the job cannot be made".into());
    }
    let job = Connection::open(bench.work.join("j"))?;
    let last = 1_700_000_000_000_i64 + i64::try_from(urls)?;
    job.execute_batch("BEGIN; DELETE FROM url")?;
    job.execute("UPDATE run SET started = 1700000000000, ended = ?1", params![last])?;
    job.execute(ROWS, params![i64::try_from(urls)?])?;
    Ok(job.execute_batch("COMMIT")?)
}
