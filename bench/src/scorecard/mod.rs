//! The files that are generated from results: `docs/benchmarks.md` and its charts, the table of
//! every job (`bench/results/rows.md`), the README's figures, and one HTML page.
//!
//! ```text
//! bench scorecard                               from the newest complete run under bench/results
//! bench scorecard bench/results/2026-….json
//! bench scorecard --check                       writes nothing; fails if a file in the repository would change
//! ```
//!
//! The only other input is `bench/causes.md`, in which people explain missed goals.

mod adaptive_connections_table;
mod bar_charts;
mod benchmark_pages;
mod chart_style;
mod goal_causes;
mod goal_verdict;
mod line_charts;
mod markdown_and_html;
mod overview_chart;
mod project_goals;
mod readme_figures;

use std::fs;
use std::path::{Path, PathBuf};

use crate::bench_results_file::BenchRunResults;
use crate::jobs::home;
use crate::{Result, scorecard::goal_causes::GoalCauses};

/// The directory of the charts, relative to the root of the repository.
const CHARTS: &str = "docs/benchmarks";

/// Runs `bench scorecard` with these arguments.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (mut check, mut file) = (false, None);
    for argument in arguments {
        match argument.as_str() {
            "--check" => check = true,
            word if word.starts_with('-') || file.is_some() => return Err("scorecard [--check] [FILE]".into()),
            word => file = Some(PathBuf::from(word)),
        }
    }
    let Some(path) = file.map_or_else(|| newest_record(&home().join("results")), |file| Ok(Some(file)))? else {
        println!("no results of the whole scorecard yet: bench all");
        return Ok(());
    };
    let record = BenchRunResults::read(&path)?;
    let made = generated_files(&record)?;
    if check {
        return check_unchanged(&repository_root(), &made);
    }
    let charts = repository_root().join(CHARTS);
    // Without this, the chart of a removed job would remain.
    let _ = fs::remove_dir_all(&charts);
    fs::create_dir_all(&charts)?;
    for (name, text) in &made {
        fs::write(repository_root().join(name), text)?;
    }
    let page = path.with_extension("html");
    fs::write(&page, benchmark_pages::html(&record, &causes()?)?)?;
    println!("docs/benchmarks.md, {CHARTS}, {}, README.md\n{}", benchmark_pages::ROWS_FILE, page.display());
    Ok(())
}

/// Returns the names and contents of the repository's files that are generated from results.
fn generated_files(record: &BenchRunResults) -> Result<Vec<(String, String)>> {
    let causes = causes()?;
    let mut made = vec![
        ("docs/benchmarks.md".to_owned(), benchmark_pages::markdown(record, &causes)?),
        (benchmark_pages::ROWS_FILE.to_owned(), benchmark_pages::rows_markdown(record)),
    ];
    for (name, svg) in benchmark_pages::charts(record)? {
        made.push((format!("{CHARTS}/{name}.svg"), svg));
    }
    let readme = fs::read_to_string(repository_root().join("README.md"))?;
    made.push(("README.md".to_owned(), readme_figures::fill_readme(&readme, record)?));
    Ok(made)
}

fn causes() -> Result<GoalCauses> {
    Ok(GoalCauses::read(&fs::read_to_string(home().join("causes.md"))?))
}

/// Fails if a file under `root` differs from its generated content. The error names the first such
/// file.
fn check_unchanged(root: &Path, made: &[(String, String)]) -> Result<()> {
    for (name, text) in made {
        let there = fs::read_to_string(root.join(name)).unwrap_or_default();
        if there != *text {
            return Err(format!("{name} is not what the results give: make scorecard").into());
        }
    }
    Ok(())
}

fn repository_root() -> PathBuf {
    home().join("..")
}

/// Returns the newest results file of a complete run, by date, then by name. `None` without such a
/// file.
fn newest_record(results: &Path) -> Result<Option<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(results)? {
        let path = entry?.path();
        // The directory also contains other results.
        if path.extension().is_some_and(|extension| extension == "json")
            && let Ok(record) = BenchRunResults::read(&path)
            && record.whole
        {
            found.push((record.date, path));
        }
    }
    Ok(found.into_iter().max().map(|(_, path)| path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_results_file::tests::{entry, figures, part_result, record};

    /// Checks that the documents in the repository match the newest results. `make scorecard`
    /// updates them.
    #[test]
    fn documents_match_the_newest_results() {
        run(&["--check".to_owned()]).unwrap();
    }

    #[test]
    fn check_detects_figures_edited_by_hand() {
        let dir = std::env::temp_dir().join(format!("haul-bench-scorecard-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let made = vec![("README.md".to_owned(), "0.28 of the wall time".to_owned())];
        fs::write(dir.join("README.md"), "0.28 of the wall time").unwrap();
        check_unchanged(&dir, &made).unwrap();
        fs::write(dir.join("README.md"), "0.20 of the wall time").unwrap();
        assert!(check_unchanged(&dir, &made).is_err());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn scorecard_uses_the_newest_complete_run() {
        let dir = std::env::temp_dir().join(format!("haul-bench-newest-{}", std::process::id()));
        let mut one = record(vec![part_result(vec![entry("haul", vec![Ok(figures(1.0))])])]);
        one.write(&dir).unwrap();
        one.date = "2026-03-04".to_owned();
        let whole = one.write(&dir).unwrap();
        (one.date, one.whole) = ("2026-05-06".to_owned(), false);
        one.write(&dir).unwrap();
        fs::write(dir.join("2026-09-09-other.json"), "{}").unwrap();
        assert_eq!(newest_record(&dir).unwrap(), Some(whole));
        fs::remove_dir_all(dir).unwrap();
    }
}
