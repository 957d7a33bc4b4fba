//! Curves: how the cost grows with the number of pages, the length of a body, the number of
//! connections, the round trip, and the number of cores.
//!
//! Each point is a separate part, `CURVE@X`. `bench curves:pages` runs one curve. In every round,
//! haul and curl print how many bytes they received, and only this number is checked. The other
//! jobs check the bytes themselves.

use std::net::SocketAddr;
use std::time::Duration;

use testkit::relay::Relay;

use super::{BenchJob, JobEnvironment, SMALL_BODY_LENGTH, SiteFiles, command_program, shell_program};
use crate::Result;
use crate::body_files::LargeBodyFiles;
use crate::compared_programs_and_goals::{BenchProgram, JobPart, OutputCheck, WorkPerRun};
use crate::output_digest::OutputDigest;
use crate::server::SiteServer;

pub(super) const JOB: BenchJob =
    BenchJob { name: "curves", about: "how cost grows; parts pages, body, parallel, rtt, cores", set_up };

/// The parts of the job `curves` that differ in the number of fetched pages: the name and the
/// number of pages of each part. Each part is a point of one curve in a chart. If the site has
/// fewer pages, its pages are fetched repeatedly.
const PAGES: [(&str, usize); 4] =
    [("pages@100", 100), ("pages@1000", 1_000), ("pages@10000", 10_000), ("pages@100000", 100_000)];
/// The parts of the job `curves` that differ in the length of the fetched body: the name of each
/// part, and the length in bytes. Each part is a point of one curve in a chart.
const BODY: [(&str, u64); 8] = [
    ("body@1000", 1_000),
    ("body@10000", 10_000),
    ("body@100000", 100_000),
    ("body@1000000", 1_000_000),
    ("body@10000000", 10_000_000),
    ("body@100000000", 100_000_000),
    ("body@1000000000", 1_000_000_000),
    ("body@10000000000", 10_000_000_000),
];
/// The maximum length in bytes of a body whose file, which the server sends, is written to disk
/// completely. The file of a longer body is sparse: writing ten gigabytes takes too long for one
/// point of a curve.
const MAX_DENSE_BODY_LENGTH: u64 = 1_000_000_000;
/// The parts of the job `curves` that differ in the number of concurrent connections: the name and
/// the number of connections of each part. Each part is a point of one curve in a chart.
const PARALLEL: [(&str, usize); 4] =
    [("parallel@1", 1), ("parallel@10", 10), ("parallel@100", 100), ("parallel@1000", 1_000)];
const REPLIES: usize = 10_000;
/// The parts of the job `curves` that differ in the round-trip time: the name of each part, and the
/// time in milliseconds. Each part is a point of one curve in a chart.
const RTT: [(&str, u64); 6] =
    [("rtt@0", 0), ("rtt@1", 1), ("rtt@5", 5), ("rtt@20", 20), ("rtt@50", 50), ("rtt@100", 100)];
const RTT_PAGES: usize = 300;
/// The parts of the job `curves` that differ in the cores on which the client may run: the name of
/// each part, and the numbers of the cores. Each part is a point of one curve in a chart. The
/// server may use all cores.
const CORES: [(&str, &str); 2] = [("cores@1", "0"), ("cores@2", "0,1")];

const HAUL: &str = "haul";
const PIPELINED: &str = "haul --pipeline 32";
const CURL: &str = "curl";
const CURL_Z: &str = "curl -Z";
/// The option with which each client prints the number of received bytes.
const WRITE_OUT_SIZE: &str = r"-w %{size_download}\n";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let files = SiteFiles::prepare(bench.options)?;
    let pages = files.serve(bench)?;
    let bodies = LargeBodyFiles::new(&super::home().join("work"), bench.options.seed)?;
    // This server has its own configuration, and so its own directory.
    let dir = bench.work.join("bodies");
    std::fs::create_dir_all(&dir)?;
    let large = SiteServer::start(&files.site, bodies.root(), &dir, bench.options.embedded)?;

    let mut job_parts = Vec::new();
    for (part, count) in PAGES {
        job_parts.push(pages_part(bench, &files, pages.addr, part, bench.count(count), &pages.name)?);
    }
    for (part, len) in BODY {
        job_parts.push(body_part(bench, &bodies, &large, part, len)?);
    }
    for (part, connections) in PARALLEL {
        job_parts.push(parallel_part(bench, &pages, part, connections)?);
    }
    for (part, milliseconds) in RTT {
        job_parts.push(rtt_part(bench, &files, &pages, part, milliseconds)?);
    }
    for (part, cores) in CORES {
        job_parts.push(cores_part(bench, &files, &pages, part, cores));
    }
    bench.keep_running((pages, large));
    Ok(job_parts)
}

/// Creates a part of the job, which is one point of a curve in a chart. It has few rounds, since
/// there are many points.
fn new_part(
    bench: &JobEnvironment,
    part: &'static str,
    entries: Vec<BenchProgram>,
    server: String,
    unit: WorkPerRun,
) -> JobPart {
    let baseline = entries.last().map_or(CURL, |entry| entry.name);
    JobPart {
        part,
        bench_programs: bench.allowed_programs(entries),
        baseline,
        limit: None,
        goals: Vec::new(),
        rounds: 3,
        warm_up: false,
        one_core: false,
        calls: false,
        server,
        unit,
    }
}

/// Creates the check that the sizes that a client prints add up to this number of bytes.
fn prints_total(len: u64) -> OutputCheck {
    OutputCheck::PrintedLength(None, OutputDigest { len, sha256: String::new() })
}

/// Returns the paths of `count` pages of the site, and the total length of these pages in bytes. If
/// the site has fewer pages, they are repeated.
fn cycled(files: &SiteFiles, count: usize) -> (Vec<String>, u64) {
    let numbers = files.site.as_numbers();
    let chosen = || numbers.iter().cycle().take(count);
    let len = chosen().map(|number| files.site.page_len(*number) as u64).sum();
    (chosen().enumerate().map(|(n, number)| format!("/AS{number}?{n}")).collect(), len)
}

fn pages_part(
    bench: &JobEnvironment,
    files: &SiteFiles,
    addr: SocketAddr,
    part: &'static str,
    count: usize,
    server: &str,
) -> Result<JobPart> {
    let (paths, len) = cycled(files, count);
    let [list, config] = ["list", "cfg"].map(|kind| format!("{part}.{kind}"));
    write_lists(bench, &list, &config, paths.iter().map(|path| format!("http://{addr}{path}")))?;
    let entries = vec![
        command_program(
            HAUL,
            &format!("haul -s --unordered -o /dev/null {WRITE_OUT_SIZE} --input-file {list}"),
            prints_total(len),
        ),
        command_program(CURL_Z, &format!("curl -s -Z -K {config} {WRITE_OUT_SIZE}"), prints_total(len)),
    ];
    Ok(new_part(bench, part, entries, server.to_owned(), WorkPerRun::Requests(count)))
}

fn body_part(
    bench: &JobEnvironment,
    bodies: &LargeBodyFiles,
    server: &SiteServer,
    part: &'static str,
    len: u64,
) -> Result<JobPart> {
    let len = len.min(bench.length(u64::MAX));
    if len > MAX_DENSE_BODY_LENGTH {
        bodies.create_sparse_body(len)?;
    } else {
        bodies.prepare(len)?;
    }
    let words = format!("-s -o /dev/null {WRITE_OUT_SIZE} http://{}{}", server.addr, LargeBodyFiles::path(len));
    let entries = [HAUL, CURL].map(|name| command_program(name, &format!("{name} {words}"), prints_total(len)));
    let mut job_part = new_part(bench, part, entries.into(), server.name.clone(), WorkPerRun::Bytes(len));
    if len < 10_000_000 {
        job_part.rounds = 15;
    }
    Ok(job_part)
}

fn parallel_part(
    bench: &JobEnvironment,
    server: &SiteServer,
    part: &'static str,
    connections: usize,
) -> Result<JobPart> {
    let replies = bench.count(REPLIES);
    let addr = server.addr;
    write_lists(
        bench,
        "small.list",
        "small.cfg",
        (0..replies).map(|n| format!("http://{addr}/bytes/{SMALL_BODY_LENGTH}?{n}")),
    )?;
    let len = (replies * SMALL_BODY_LENGTH) as u64;
    let haul = format!("haul -s --unordered --parallel-max {connections} --parallel-max-host {connections}");
    let entries = vec![
        command_program(
            HAUL,
            &format!("{haul} -o /dev/null {WRITE_OUT_SIZE} --input-file small.list"),
            prints_total(len),
        ),
        command_program(
            CURL_Z,
            &format!("curl -s -Z --parallel-max {connections} -K small.cfg {WRITE_OUT_SIZE}"),
            prints_total(len),
        ),
    ];
    Ok(new_part(bench, part, entries, server.name.clone(), WorkPerRun::Requests(replies)))
}

fn rtt_part(
    bench: &mut JobEnvironment,
    files: &SiteFiles,
    server: &SiteServer,
    part: &'static str,
    milliseconds: u64,
) -> Result<JobPart> {
    let relay = Relay::to(server.addr).rtt(Duration::from_millis(milliseconds)).start()?;
    let (paths, len) = cycled(files, bench.count(RTT_PAGES));
    let [list, config] = ["list", "cfg"].map(|kind| format!("{part}.{kind}"));
    write_lists(bench, &list, &config, paths.iter().map(|path| format!("http://{}{path}", relay.addr())))?;
    let haul = format!("-s --unordered -o /dev/null {WRITE_OUT_SIZE} --input-file {list}");
    let entries = vec![
        command_program(HAUL, &format!("haul {haul}"), prints_total(len)),
        command_program(PIPELINED, &format!("haul --pipeline 32 {haul}"), prints_total(len)),
        command_program(
            CURL_Z,
            &format!("curl -s -Z --parallel-max 50 -K {config} {WRITE_OUT_SIZE}"),
            prints_total(len),
        ),
    ];
    let name = format!("{}, behind a relay of {milliseconds} ms", server.name);
    bench.keep_running(relay);
    Ok(new_part(bench, part, entries, name, WorkPerRun::Requests(paths.len())))
}

/// Creates the part of the job in which the programs may run only on the cores `cores`, a list of
/// core numbers for `taskset` such as `0,1`. The programs fetch the site's index pages, extract AS
/// numbers, fetch the page of each number, and extract address blocks.
fn cores_part(
    bench: &JobEnvironment,
    files: &SiteFiles,
    server: &SiteServer,
    part: &'static str,
    cores: &str,
) -> JobPart {
    let host = server.addr;
    let answer = || OutputCheck::Output(files.answer.clone());
    let (numbers, blocks) = ("AS[0-9]{1,9}", "[0-9.]{7,15}/[0-9]{1,2}");
    let on_cores = |line: String| format!("taskset -cp {cores} $$ >/dev/null && {line}");
    let haul = format!(
        "exec $HAUL -s 'http://{host}/[1-3]' --extract '{numbers}' --then 'http://{host}/{{}}' --extract '{blocks}' \
         --unique --sort"
    );
    let config = format!(
        "$CURL -s 'http://{host}/[1-3]' | grep -oE '{numbers}' | sort -u | sed 's#.*#url = \"http://{host}/&\"#' | \
         $CURL -s -K - | grep -oE '{blocks}' | sort -u"
    );
    let entries = vec![
        shell_program(HAUL, on_cores(haul), answer()),
        shell_program("curl, a config", on_cores(config), answer()),
    ];
    new_part(
        bench,
        part,
        entries,
        server.name.clone(),
        WorkPerRun::Requests(bench.options.pages + testkit::site::INDEXES),
    )
}

/// Writes a URL list, and a config file for curl that fetches the same URLs to /dev/null.
fn write_lists(
    bench: &JobEnvironment,
    list: &str,
    config: &str,
    urls: impl Iterator<Item = String> + Clone,
) -> Result<()> {
    bench.write_lines(config, urls.clone().map(|url| format!("url = \"{url}\"\noutput = \"/dev/null\"")))?;
    bench.write_lines(list, urls)
}
