//! The pages of the site into a web archive, plain and compressed: haul compared with wget.
//! testkit's reader reads the archives of both, which must contain all pages.
//!
//! ```text
//! bench read-warc FILE    checks an archive; prints the payload digests of its responses, sorted
//! ```

use testkit::warc_reader::{WarcReader, sha1};

use super::{BenchJob, JobEnvironment, SiteFiles, shell_program};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::output_digest::OutputDigest;

pub(super) const JOB: BenchJob =
    BenchJob { name: "warc", about: "5,703 pages into a web archive (WARC), plain and compressed", set_up };

const HAUL: &str = "haul --warc";
const HAUL_GZIP: &str = "haul --warc, gzip";
const WGET: &str = "wget --warc-file";
const WGET_GZIP: &str = "wget --warc-file, gzip";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let paths = files.site.as_paths();
    bench.write_page_lists(&format!("http://{}", server.addr), &paths)?;
    let page = |path: &String| sha1(&files.site.page(path).expect("the site has the paths it lists"));
    let mut digests: Vec<String> = paths.iter().map(|path| page(path) + "\n").collect();
    digests.sort();
    let expected = OutputDigest::from_bytes(digests.concat().as_bytes());
    let bench_program = |name: &'static str, archive: &str, run: String| {
        let run = format!("rm -f {archive} && {run}");
        let proof = format!("{run} && $BENCH read-warc {archive}");
        shell_program(name, run, OutputCheck::CheckedOnce(proof, expected.clone()))
    };
    let haul = |archive: &str| format!("$HAUL -s --warc {archive} -o /dev/null --input-file list");
    // wget also writes a manifest and its log at the end, which are small.
    let wget = |options: &str| {
        format!("wget -q --no-config --no-hsts --warc-tempdir=. --warc-file=w {options} -O /dev/null -i list")
    };
    let entries = vec![
        bench_program(HAUL, "h.warc", haul("h.warc")),
        bench_program(HAUL_GZIP, "h.warc.gz", haul("h.warc.gz")),
        bench_program(WGET, "w.warc", wget("--no-warc-compression")),
        bench_program(WGET_GZIP, "w.warc.gz", wget("")),
    ];
    let server_name = server.name.clone();
    bench.keep_running(server);
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(entries),
        baseline: WGET,
        limit: None,
        goals: vec![
            PartGoal::ratio(MetricKind::Wall, HAUL, WGET, 0.2),
            PartGoal::ratio(MetricKind::Wall, HAUL_GZIP, WGET_GZIP, 0.2),
        ],
        rounds: 5,
        warm_up: true,
        one_core: false,
        calls: false,
        server: server_name,
        unit: WorkPerRun::Requests(paths.len()),
    }])
}

/// Runs `bench read-warc FILE`: checks a web archive, and prints the payload digests of its
/// responses, sorted.
pub(crate) fn read(arguments: &[String]) -> Result<()> {
    let [archive] = arguments else { return Err("read-warc FILE".into()) };
    let archive = std::fs::read(archive)?;
    let mut digests = Vec::new();
    for record in WarcReader::new(&archive) {
        let record = record?;
        if record.field("WARC-Type") == Some("response") {
            digests.extend(record.field("WARC-Payload-Digest").map(str::to_owned));
        }
    }
    digests.sort_unstable();
    digests.iter().for_each(|digest| println!("{digest}"));
    Ok(())
}
