//! The README's figures. The text between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->` is
//! generated here; everything else is written by hand.

use crate::Result;
use crate::bench_results_file::BenchRunResults;
use crate::compared_programs_and_goals::MetricKind;

/// Returns the README with the figures of these results. A generated passage stays unchanged if the
/// results lack a job that it needs.
pub(super) fn fill_readme(readme: &str, record: &BenchRunResults) -> Result<String> {
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

/// Returns the ratio of the result of the program `of` to the result of haul's best competitor in a
/// part of a benchmark job, and the competitor's name. `part_name` is the full name of the part,
/// `JOB` or `JOB:PART`. Returns `None` if one of the two results is missing.
fn ratio(record: &BenchRunResults, part_name: &str, of: &str, what: MetricKind) -> Option<(f64, String)> {
    let part_result = record.part(part_name)?;
    let peer = part_result.best_peer(what)?;
    Some((part_result.ratio(what, of, &peer.name)?, peer.name.clone()))
}

fn site(record: &BenchRunResults) -> Option<String> {
    let (wall, peer) = ratio(record, "site", "haul", MetricKind::Wall)?;
    let part_result = record.part("site")?;
    let cpu = part_result.ratio(MetricKind::Cpu, "haul", &peer)?;
    let memory = part_result.bench_program("haul")?.median(MetricKind::Rss)? / 1024.0;
    let text = format!(
        "On {} cores that nginx shared, that line on 5,706 pages took {wall:.2} of the wall time and {cpu:.2} of the CPU of the \
         best shell recipe whose answer is right ({peer}), in {memory:.0} MB: medians of {} rounds in turn, {}. \
         All figures are in [docs/benchmarks.md](docs/benchmarks.md); `make bench` repeats them.",
        record.host.cpus, part_result.rounds, record.date
    );
    Some(wrap_text(&text) + "\n")
}

/// The rows of the table of benchmark results: a description, the part of a benchmark job (`JOB` or
/// `JOB:PART`), and the program in that part whose figures count as haul's, such as
/// `haul --unordered`. The README shows the rows of [`README_PARTS`].
const ROWS: [(&str, &str, &str); 13] = [
    ("Thousands of pages, the whole job", "site", "haul"),
    ("Fetching alone", "fetch", "haul --unordered"),
    ("20,000 replies of 300 bytes", "small", "haul --unordered"),
    ("A request in Perl", "perl:small", "Haul"),
    ("A request in Python", "python:small", "haul"),
    ("A request in C", "c-requests:small", "libhaul"),
    ("One big GET, plain, to a pipe", "get:pipe", "haul"),
    ("One big GET, plain, to a file", "get:file", "haul"),
    ("One big GET by TLS", "get-tls:null", "haul"),
    ("50 bodies over one HTTP/2 connection", "h2-bulk", "haul"),
    ("5 bodies in one thread", "five", "haul"),
    ("URLs of 5,000 hosts, a quarter of them broken", "hosts:main", "haul, 300 at a time"),
    ("A package manager's fetcher, 20 ms away, TLS", "fetcher:tls", "haul agent"),
];

/// The parts of [`ROWS`] that the table in the README shows: many pages, many small responses, and
/// large bodies. In the part with large bodies, haul takes longer than its best competitor.
const README_PARTS: [&str; 3] = ["site", "small", "h2-bulk"];

/// The column titles of the table of jobs. The columns "wall" and "CPU" contain the ratio of haul's
/// time to the time of haul's best competitor.
pub(super) const JOB_HEAD: [&str; 4] = ["job", "wall", "CPU", "`make bench JOB=`"];

/// Returns the rows of the README's table of results: description, ratio of the wall time to that
/// of the best other program, ratio of the CPU time, part of the job.
pub(super) fn job_rows(record: &BenchRunResults) -> Vec<[String; 4]> {
    ROWS.iter().filter_map(|(about, part_name, of)| job_row(record, about, part_name, of)).collect()
}

fn job_row(record: &BenchRunResults, about: &str, part_name: &str, of: &str) -> Option<[String; 4]> {
    let is_client = record.part(part_name)?.bench_program(of)?.median(MetricKind::Client).is_some();
    let cpu = if is_client { MetricKind::Client } else { MetricKind::Cpu };
    let shares = [MetricKind::Wall, cpu].map(|what| {
        let (ratio, peer) = ratio(record, part_name, of, what)?;
        let behind = if ratio > 1.0 { ": behind" } else { "" };
        Some(format!("{ratio:.2} × {peer}{behind}"))
    });
    let [Some(wall), Some(cpu)] = shares else { return None };
    Some([about.to_owned(), wall, cpu, format!("`{part_name}`")])
}

fn jobs(record: &BenchRunResults) -> Option<String> {
    let row = |cells: &[String; 4]| format!("| {} |\n", cells.join(" | "));
    let of_readme = ROWS.iter().filter(|(_, part_name, _)| README_PARTS.contains(part_name));
    let rows: String = of_readme
        .filter_map(|(about, part_name, of)| job_row(record, about, part_name, of))
        .map(|cells| row(&cells))
        .collect();
    let head = format!("{}|---|---|---|---|\n", row(&JOB_HEAD.map(str::to_owned)));
    (!rows.is_empty()).then(|| head + &rows)
}

/// Wraps the text at 120 characters.
fn wrap_text(text: &str) -> String {
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
    use crate::bench_results_file::tests::{entry, figures, part_result, record};

    const README: &str = "# haul\n<!-- bench:site -->\nold\n<!-- /bench:site -->\ntext\n<!-- bench:jobs -->\nold table\n\
                          <!-- /bench:jobs -->\nend\n";

    #[test]
    fn only_text_between_readme_markers_is_replaced() {
        let mut site = part_result(vec![
            entry("haul", vec![Ok(figures(0.25))]),
            entry("curl, a config", vec![Ok(figures(1.0))]),
            entry("xargs -P20 curl", vec![Err("wrong answer".to_owned())]),
        ]);
        site.job = "site".to_owned();
        let text = fill_readme(README, &record(vec![site])).unwrap();
        assert!(text.starts_with("# haul\n<!-- bench:site -->\nOn 2 cores") && text.ends_with("-->\nend\n"));
        assert!(text.contains("0.25 of the\nwall") || text.contains("0.25 of the wall"));
        assert!(text.contains(
            "| Thousands of pages, the whole job | 0.25 × curl, a config | 0.25 × curl, a config | `site` |"
        ));
        assert!(!text.contains("old"));
        assert!(text.lines().all(|line| line.chars().count() <= 120));
        // Filling the README twice changes nothing.
        let mut again = part_result(Vec::new());
        again.job = "other".to_owned();
        assert_eq!(fill_readme(&text, &record(vec![again])).unwrap(), text);
        assert!(fill_readme("# haul\n", &record(Vec::new())).is_err());
    }

    #[test]
    fn jobs_table_marks_where_haul_is_slower() {
        let mut slow =
            part_result(vec![entry("haul", vec![Ok(figures(1.5))]), entry("libcurl", vec![Ok(figures(1.0))])]);
        slow.job = "h2-bulk".to_owned();
        let rows = job_rows(&record(vec![slow]));
        assert_eq!(rows[0][1], "1.50 × libcurl: behind", "{rows:?}");
    }
}
