//! HTTP/3: one large body, many small bodies on one connection, and a body over a link that loses
//! packets.
//!
//! The link of the part `loss` is testkit's relay of IP packets between two network namespaces, so
//! that TCP loses segments, too. It needs root, and runs with `--slow` only: at 1 % loss and 20 ms,
//! the server's congestion control allows each client one or two MB/s.

use std::process::Command;
use std::time::Duration;

use testkit::ip_relay::IpRelay;
use testkit::lossy_link_model::LinkConditions;

use super::language_client_jobs::LanguageClient;
use super::large_body_common::MEMORY_MB;
use super::{BenchJob, JobEnvironment, SMALL_BODY_LENGTH, command_program, home, shell_program};
use crate::Result;
use crate::body_files::LargeBodyFiles;
use crate::compared_programs_and_goals::{BenchProgram, JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::http3_server::Http3Server;
use crate::output_digest::OutputDigest;

pub(super) const JOB: BenchJob = BenchJob {
    name: "h3",
    about: "HTTP/3: 1 GiB by one stream, 20,000 replies of 300 bytes, 100 MB over a lossy link; parts body, small, loss",
    set_up,
};

const LEN: u64 = 1 << 30;
const REPLIES: usize = 20_000;
const LOSSY_LEN: u64 = 100_000_000;
const ROUND_TRIP: Duration = Duration::from_millis(20);
const LOSS: f64 = 0.01;

const HAUL: &str = "haul";
const HAUL_HTTP2: &str = "haul, HTTP/2";
const CURL: &str = "curl";
const CURL_HTTP2: &str = "curl, HTTP/2";
const QUIC_GO: &str = "quic-go";
const QUINN: &str = "quinn + h3";
/// The clients that `http3.py` supports.
const PYTHON: [LanguageClient; 2] = [("niquests", "niquests", "niquests"), ("curl_cffi", "curl_cffi", "curl_cffi")];

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let bodies = LargeBodyFiles::new(&home().join("work"), bench.options.seed)?;
    let server = Http3Server::start(&bodies, bench.options.seed, &bench.work, bench.options.embedded)?;
    let mut job_parts = vec![body_part(bench, &bodies, &server)?, small_part(bench, &bodies, &server)?];
    bench.keep_running(server);
    if bench.options.slow {
        job_parts.extend(loss_part(bench, &bodies)?);
    }
    Ok(job_parts)
}

/// Makes the part of the job that fetches one body of 1 GiB.
fn body_part(bench: &JobEnvironment, bodies: &LargeBodyFiles, server: &Http3Server) -> Result<JobPart> {
    let len = bench.length(LEN);
    let print = bodies.prepare(len)?;
    let url = format!("https://{}{}", server.addr, LargeBodyFiles::path(len));
    let told = |proof: String| OutputCheck::PrintedLength(Some(format!("{proof} {url}")), print.clone());
    let say = "-o /dev/null -w %{size_download}";
    let haul = "-s --http3-only --cacert ca.pem";
    let mut bench_programs =
        vec![command_program(HAUL, &format!("haul {haul} {say} {url}"), told(format!("$HAUL {haul}")))];
    if has_curl_http3(bench) {
        bench_programs.push(command_program(CURL, &format!("curl {haul} {say} {url}"), told(format!("$CURL {haul}"))));
    }
    let (quic_go, quinn) = ("quicgo-client -cacert ca.pem", "quinn-client ca.pem");
    bench_programs.push(command_program(QUIC_GO, &format!("{quic_go} -discard {url}"), told(quic_go.to_owned())));
    bench_programs.push(command_program(
        QUINN,
        &format!("bench {quinn} discard {url}"),
        told(format!("$BENCH {quinn}")),
    ));
    bench_programs.extend(python(bench, &format!("one {url}"), &print));
    Ok(JobPart {
        part: "body",
        bench_programs: bench.allowed_programs(bench_programs),
        baseline: QUINN,
        limit: None,
        goals: vec![
            PartGoal::at_most(MetricKind::Cpu, HAUL, 2.0),
            PartGoal::ratio_to_best_peer(MetricKind::Cpu, HAUL, 0.7),
            PartGoal::ratio_to_best_peer(MetricKind::Wall, HAUL, 1.0),
            PartGoal::at_most(MetricKind::Rss, HAUL, MEMORY_MB),
        ],
        rounds: 3,
        warm_up: false,
        one_core: false,
        calls: true,
        server: server.name.clone(),
        unit: WorkPerRun::Bytes(len),
    })
}

/// Makes the part of the job that fetches many small bodies on one connection, 50 at a time.
fn small_part(bench: &JobEnvironment, bodies: &LargeBodyFiles, server: &Http3Server) -> Result<JobPart> {
    let count = bench.count(REPLIES);
    let body = bodies.prepare(SMALL_BODY_LENGTH as u64)?;
    let path = LargeBodyFiles::path(body.len);
    let urls: Vec<String> = (0..count).map(|n| format!("https://{}{path}?{n}", server.addr)).collect();
    bench.write_url_lists(&urls)?;
    let all = bodies.repeated(body.len, count)?;
    let told = |proof: &str| OutputCheck::PrintedLength(Some(proof.to_owned()), all.clone());
    let haul = "-s --threads 1 --unordered --parallel-max 50 --http3-only --cacert ca.pem";
    let mut bench_programs = vec![command_program(
        HAUL,
        &format!("haul {haul} -o /dev/null --input-file list"),
        OutputCheck::CheckedOnce(format!("$HAUL {haul} --input-file list"), all.clone()),
    )];
    if has_curl_http3(bench) {
        let curl = "-s -Z --parallel-max 50 --http3-only --cacert ca.pem -K";
        let proof = OutputCheck::CheckedOnce(format!("$CURL {curl} stdout.cfg"), all.clone());
        bench_programs.push(command_program(CURL, &format!("curl {curl} null.cfg"), proof));
    }
    let quic_go = "quicgo-client -cacert ca.pem -parallel 50 -list list";
    bench_programs.push(command_program(QUIC_GO, &format!("{quic_go} -discard"), told(quic_go)));
    bench_programs.push(command_program(
        QUINN,
        "bench quinn-client ca.pem discard-list list",
        told("$BENCH quinn-client ca.pem list list"),
    ));
    bench_programs.extend(python(bench, "list list", &all));
    Ok(JobPart {
        part: "small",
        bench_programs: bench.allowed_programs(bench_programs),
        baseline: QUINN,
        limit: None,
        goals: vec![
            PartGoal::ratio_to_best_peer(MetricKind::Cpu, HAUL, 0.6),
            PartGoal::ratio_to_best_peer(MetricKind::Wall, HAUL, 1.0),
        ],
        rounds: 5,
        warm_up: false,
        one_core: false,
        calls: true,
        server: server.name.clone(),
        unit: WorkPerRun::Requests(count),
    })
}

/// Makes the part of the job that fetches a body over a lossy link, by HTTP/3 and by HTTP/2; `None`
/// if this process may not create network namespaces.
fn loss_part(bench: &mut JobEnvironment, bodies: &LargeBodyFiles) -> Result<Option<JobPart>> {
    let conditions = LinkConditions::new().rtt(ROUND_TRIP).loss(LOSS).seed(bench.options.seed);
    let relay = match IpRelay::start(&conditions) {
        Ok(relay) => relay,
        Err(error) => {
            println!("h3:loss: skipped, no network namespaces: {error}");
            return Ok(None);
        }
    };
    let len = bench.length(LOSSY_LEN);
    let print = bodies.prepare(len)?;
    // The certificates of the other server have the same file names, so these are in a separate
    // directory.
    let work = bench.work.join("loss");
    std::fs::create_dir_all(&work)?;
    let server = Http3Server::start_in(relay.far(), bodies, &work)?;
    let url = format!("https://{}{}", server.addr, LargeBodyFiles::path(len));
    let enter = format!("exec nsenter {}", relay.near().nsenter_option());
    let client = |name, line: &str| {
        shell_program(name, format!("{enter} {line} {url}"), OutputCheck::PrintedLength(None, print.clone()))
    };
    let common = "-s --cacert loss/ca.pem -o /dev/null -w %{size_download}";
    let mut bench_programs = vec![
        client(HAUL, &format!("$HAUL --http3-only {common}")),
        client(HAUL_HTTP2, &format!("$HAUL --http2 {common}")),
        client(CURL_HTTP2, &format!("$CURL --http2 {common}")),
    ];
    if has_curl_http3(bench) {
        bench_programs.push(client(CURL, &format!("$CURL --http3-only {common}")));
    }
    bench_programs.push(client(QUIC_GO, "quicgo-client -cacert loss/ca.pem -discard"));
    bench_programs.push(client(QUINN, "$BENCH quinn-client loss/ca.pem discard"));
    let goals = vec![
        PartGoal::ratio(MetricKind::Wall, HAUL, HAUL_HTTP2, 1.0),
        PartGoal::ratio_to_best_peer(MetricKind::Wall, HAUL, 1.0),
    ];
    let job_part = JobPart {
        part: "loss",
        bench_programs: bench.allowed_programs(bench_programs),
        baseline: QUINN,
        limit: None,
        goals,
        rounds: 3,
        warm_up: false,
        one_core: false,
        calls: false,
        server: format!("{}, 1 % of packets lost, 20 ms round trip", server.name),
        unit: WorkPerRun::Bytes(len),
    };
    bench.keep_running(server);
    bench.keep_running(relay);
    Ok(Some(job_part))
}

/// Returns the Python clients that are installed. `words` are the arguments of `http3.py` after the
/// client's name.
fn python(bench: &JobEnvironment, words: &str, all: &OutputDigest) -> Vec<BenchProgram> {
    if bench.options.smoke {
        return Vec::new();
    }
    super::python::bench_programs(bench, "http3.py", &PYTHON, &format!("ca.pem {words}"), all)
}

/// Returns true if the curl that is compared supports HTTP/3.
fn has_curl_http3(bench: &JobEnvironment) -> bool {
    let version = bench.program("curl").and_then(|curl| Command::new(curl).arg("--version").output().ok());
    version.is_some_and(|output| String::from_utf8_lossy(&output.stdout).contains(" HTTP3"))
}
