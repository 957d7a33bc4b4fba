//! The README's figures. The text between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->` is
//! generated here; everything else is written by hand.

use crate::Result;
use crate::bench_record::BenchRecord;
use crate::job_part::MetricKind;

/// Returns the README with the figures of these results. A generated text stays unchanged if the
/// results lack a job that it needs.
pub(super) fn filled(readme: &str, record: &BenchRecord) -> Result<String> {
    let mut text = readme.to_owned();
    for (name, made) in [("site", site(record)), ("jobs", jobs(record))] {
        let (open, close) = (format!("<!-- bench:{name} -->\n"), format!("<!-- /bench:{name} -->"));
        let missing = || format!("README.md has no {} … {close}", open.trim());
        let start = text.find(&open).ok_or_else(missing)? + open.len();
        let end = start + text[start..].find(&close).ok_or_else(missing)?;
        if let Some(made) = made {
            text.replace_range(start..end, &made);
        }
    }
    Ok(text)
}

/// Returns the ratio of a contestant's result to that of the best peer, and the peer's name; `None`
/// if the results lack either.
fn ratio(record: &BenchRecord, sheet: &str, of: &str, what: MetricKind) -> Option<(f64, String)> {
    let sheet = record.sheet(sheet)?;
    let peer = sheet.best_peer(what)?;
    Some((sheet.ratio(what, of, &peer.name)?, peer.name.clone()))
}

fn site(record: &BenchRecord) -> Option<String> {
    let (wall, peer) = ratio(record, "site", "haul", MetricKind::Wall)?;
    let sheet = record.sheet("site")?;
    let cpu = sheet.ratio(MetricKind::Cpu, "haul", &peer)?;
    let memory = sheet.entry("haul")?.median(MetricKind::Rss)? / 1024.0;
    let text = format!(
        "On {} cores that nginx shared, that line on 5,706 pages took {wall:.2} of the wall time and {cpu:.2} of the CPU of the \
         best shell recipe whose answer is right ({peer}), in {memory:.0} MB: medians of {} rounds in turn, {}. \
         All figures are in [docs/benchmarks.md](docs/benchmarks.md); `make bench` repeats them.",
        record.host.cpus, sheet.rounds, record.date
    );
    Some(wrapped(&text) + "\n")
}

/// The rows of the table: a description, the part, the contestant, and the kind of result.
const ROWS: [(&str, &str, &str, MetricKind); 13] = [
    ("Thousands of pages, the whole job", "site", "haul", MetricKind::Wall),
    ("Fetching alone", "fetch", "haul --unordered", MetricKind::Cpu),
    ("20,000 replies of 300 bytes", "small", "haul --unordered", MetricKind::Cpu),
    ("A request in Perl", "perl:small", "Haul", MetricKind::Cpu),
    ("A request in Python", "python:small", "haul", MetricKind::Cpu),
    ("A request in C", "c-requests:small", "libhaul", MetricKind::Cpu),
    ("One big GET, plain, to a pipe", "get:pipe", "haul", MetricKind::Client),
    ("One big GET, plain, to a file", "get:file", "haul", MetricKind::Wall),
    ("One big GET by TLS", "get-tls:null", "haul", MetricKind::Cpu),
    ("50 bodies over one HTTP/2 connection", "h2-bulk", "haul", MetricKind::Cpu),
    ("5 bodies in one thread", "five", "haul", MetricKind::Cpu),
    ("URLs of 5,000 hosts, a quarter of them broken", "hosts:main", "haul, 300 at a time", MetricKind::Cpu),
    ("A package manager's fetcher, 20 ms away, TLS", "fetcher:tls", "haul agent", MetricKind::Wall),
];

/// The column titles of the table of jobs. "haul's share" is the ratio of haul's wall time or CPU
/// time to the best peer's.
pub(super) const JOB_HEAD: [&str; 5] = ["job", "haul's share", "of", "best peer", "`make bench JOB=`"];

/// Returns the rows of the table of jobs: description, ratio, wall or CPU, best peer, job.
pub(super) fn job_rows(record: &BenchRecord) -> Vec<[String; 5]> {
    ROWS.iter()
        .filter_map(|(about, sheet, of, what)| {
            let (ratio, peer) = ratio(record, sheet, of, *what)?;
            let what = if *what == MetricKind::Wall { "wall" } else { "CPU" };
            Some([(*about).to_owned(), format!("{ratio:.2}"), what.to_owned(), peer, format!("`{sheet}`")])
        })
        .collect()
}

fn jobs(record: &BenchRecord) -> Option<String> {
    let row = |cells: &[String; 5]| format!("| {} |\n", cells.join(" | "));
    let rows: String = job_rows(record).iter().map(row).collect();
    let head = format!("{}|---|---:|---|---|---|\n", row(&JOB_HEAD.map(str::to_owned)));
    (!rows.is_empty()).then(|| head + &rows)
}

/// Wraps the text at 120 characters.
fn wrapped(text: &str) -> String {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one from the start");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > 120 {
            lines.push(word.to_owned());
        } else {
            *line = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_record::tests::{entry, figures, record, sheet};

    const README: &str = "# haul\n<!-- bench:site -->\nold\n<!-- /bench:site -->\ntext\n<!-- bench:jobs -->\nold table\n\
                          <!-- /bench:jobs -->\nend\n";

    #[test]
    fn only_text_between_readme_markers_is_replaced() {
        let mut site = sheet(vec![
            entry("haul", vec![Ok(figures(0.25))]),
            entry("curl, a config", vec![Ok(figures(1.0))]),
            entry("xargs -P20 curl", vec![Err("wrong answer".to_owned())]),
        ]);
        site.job = "site".to_owned();
        let text = filled(README, &record(vec![site])).unwrap();
        assert!(text.starts_with("# haul\n<!-- bench:site -->\nOn 2 cores") && text.ends_with("-->\nend\n"));
        assert!(text.contains("0.25 of the\nwall") || text.contains("0.25 of the wall"));
        assert!(text.contains("| Thousands of pages, the whole job | 0.25 | wall | curl, a config | `site` |"));
        assert!(!text.contains("old"));
        assert!(text.lines().all(|line| line.chars().count() <= 120));
        // Making it twice changes nothing.
        let mut again = sheet(Vec::new());
        again.job = "other".to_owned();
        assert_eq!(filled(&text, &record(vec![again])).unwrap(), text);
        assert!(filled("# haul\n", &record(Vec::new())).is_err());
    }
}
