//! The pages of the site into a web archive, plain and compressed, against wget.

use testkit::warc_reader::sha1;

use super::{BenchJob, JobEnvironment, SiteFiles, shell};
use crate::Result;
use crate::digest::OutputDigest;
use crate::job_part::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob =
    BenchJob { name: "archives", about: "5,703 pages into a web archive (WARC), plain and compressed", set_up };

const HAUL: &str = "haul --warc";
const HAUL_GZIP: &str = "haul --warc, gzip";
const WGET: &str = "wget --warc-file";
const WGET_GZIP: &str = "wget --warc-file, gzip";

/// Prints the payload digests of the responses of an archive, sorted.
const DIGESTS: &str = "tr -d '\\r' | grep -a -A 20 '^WARC-Type: response' | grep -a '^WARC-Payload-Digest' | sort";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let paths = files.site.as_paths();
    bench.write_page_lists(&format!("http://{}", server.addr), &paths)?;
    let page = |path: &String| sha1(&files.site.page(path).expect("the site has the paths it lists"));
    let mut digests: Vec<String> = paths.iter().map(|path| format!("WARC-Payload-Digest: {}\n", page(path))).collect();
    digests.sort();
    let expected = OutputDigest::of(digests.concat().as_bytes());
    let contestant = |name: &'static str, archive: &str, run: String, unpack: &str| {
        let run = format!("rm -f {archive} && {run}");
        let proof = format!("{run} && {unpack} {archive} | {DIGESTS}");
        shell(name, run, OutputCheck::Proof(proof, expected.clone()))
    };
    let haul = |archive: &str| format!("$HAUL -s --warc {archive} -o /dev/null --input-file list");
    // wget also writes a manifest and its log at the end, which are small.
    let wget = |options: &str| {
        format!("wget -q --no-config --no-hsts --warc-tempdir=. --warc-file=w {options} -O /dev/null -i list")
    };
    let entries = vec![
        contestant(HAUL, "h.warc", haul("h.warc"), "cat"),
        contestant(HAUL_GZIP, "h.warc.gz", haul("h.warc.gz"), "zcat"),
        contestant(WGET, "w.warc", wget("--no-warc-compression"), "cat"),
        contestant(WGET_GZIP, "w.warc.gz", wget(""), "zcat"),
    ];
    let server_name = server.name.clone();
    bench.hold(server);
    Ok(vec![JobPart {
        part: "",
        contestants: bench.entries(entries),
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
