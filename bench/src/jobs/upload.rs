//! One large upload: of a file over plain HTTP, of a pipe, over TLS 1.3, and over HTTP/2.
//!
//! The server reads the content, keeps nothing, and replies with its length and checksum, which is
//! checked in every round.

use flate2::CrcReader;
use std::fs::File;
use std::io;
use testkit::origin::Origin;

use super::large_body_common::{CURL, HAUL, MEMORY_MB};
use super::{BenchJob, JobEnvironment, command_program, home, shell_program};
use crate::Result;
use crate::body_files::LargeBodyFiles;
use crate::compared_programs_and_goals::{BenchProgram, JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::output_digest::OutputDigest;
use crate::tls_files;

pub(super) const JOB: BenchJob = BenchJob { name: "upload", about: "PUT of 1 GiB; parts file, pipe, tls, h2", set_up };

const LEN: u64 = 1 << 30;
/// The flow-control window of the server's HTTP/2 streams and connections, in bytes.
const WINDOW: u32 = 4 << 20;
/// The displayed name of the upload program that only calls `sendfile` in a loop. It shows the
/// lower limit of the cost.
const SENDFILE: &str = "limit: sendfile";
const SPLICE: &str = "limit: splice";
const SEALED: &str = "limit: read, encrypt, write";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let len = bench.length(LEN);
    let bodies = LargeBodyFiles::new(&home().join("work"), bench.options.seed)?;
    bodies.prepare(len)?;
    let file = bodies.root().join(&LargeBodyFiles::path(len)[1..]);
    std::os::unix::fs::symlink(&file, bench.work.join("body"))?;
    let mut reader = CrcReader::new(File::open(&file)?);
    io::copy(&mut reader, &mut io::sink())?;
    let reply = OutputDigest::from_bytes(format!("{len} {:08x}\n", reader.crc().sum()).as_bytes());

    let http1 = Origin::builder().record(false).start()?;
    let http2 = Origin::builder().record(false).http2(128).http2_window(WINDOW).start()?;
    std::fs::write(bench.work.join(tls_files::CA), format!("{}{}", http1.ca_pem(), http2.ca_pem()))?;
    let check = || OutputCheck::Output(reply.clone());
    let of_file =
        |name, options: &str, url: &str| command_program(name, &format!("{name} -s {options}-T body {url}"), check());
    let of_pipe = |name, program: &str, url: &str| {
        shell_program(name, format!("$BENCH limit feed body | ${program} -s -T - {url}"), check())
    };
    let part = |part, bench_programs: Vec<BenchProgram>, limit, cpu: PartGoal, wall| JobPart {
        part,
        bench_programs: bench.allowed_programs(bench_programs),
        baseline: CURL,
        limit,
        goals: vec![
            cpu,
            PartGoal::ratio(MetricKind::Wall, HAUL, CURL, wall),
            PartGoal::at_most(MetricKind::Rss, HAUL, MEMORY_MB),
        ],
        rounds: 7,
        warm_up: true,
        one_core: false,
        calls: true,
        server: "embedded origin".to_owned(),
        unit: WorkPerRun::Bytes(len),
    };
    let url = http1.url("/discard");
    let limit = |name, how: &str| command_program(name, &format!("bench limit {how} body {url}"), check());
    let splice = shell_program(SPLICE, format!("$BENCH limit feed body | $BENCH limit splice-put body {url}"), check());
    let tls = format!("--cacert {} ", tls_files::CA);
    let (url_tls, url_h2) = (http1.https_url("/discard"), http2.https_url("/discard"));
    let of_curl = |cpu| PartGoal::ratio(MetricKind::Cpu, HAUL, CURL, cpu);
    // On the loopback, the kernel's part is most of the work: no ratio to curl can be much lower.
    let of_limit = PartGoal::ratio(MetricKind::Cpu, HAUL, SENDFILE, 1.1);
    let parts = vec![
        part(
            "file",
            vec![of_file(HAUL, "", &url), of_file(CURL, "", &url), limit(SENDFILE, "sendfile")],
            Some(SENDFILE),
            of_limit,
            1.0,
        ),
        part(
            "pipe",
            vec![of_pipe(HAUL, "HAUL", &url), of_pipe(CURL, "CURL", &url), splice],
            Some(SPLICE),
            of_curl(0.3),
            0.7,
        ),
        part(
            "tls",
            vec![of_file(HAUL, &tls, &url_tls), of_file(CURL, &tls, &url_tls), limit(SEALED, "sealed-put")],
            Some(SEALED),
            of_curl(0.5),
            1.0,
        ),
        part(
            "h2",
            vec![of_file(HAUL, &tls, &url_h2), of_file(CURL, &tls, &url_h2), limit(SEALED, "sealed-put")],
            Some(SEALED),
            of_curl(0.4),
            1.0,
        ),
    ];
    bench.keep_running(http1);
    bench.keep_running(http2);
    Ok(parts)
}
