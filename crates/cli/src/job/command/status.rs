//! `haul job status`: the state of a job, for a person or as JSON.

use std::fmt::Write;
use std::path::Path;

use haul::Result;
use haul_policy::terminal_text::escaped_json;
use indicatif::{HumanBytes, HumanDuration};
use serde_json::json;

use super::url_counts_by_state::JobCounts;
use crate::job::job_error_from_sqlite_or_io::database_error;
use crate::job::open_and_lock_job_file::{self, StoredJobSettings};
use crate::job::url_row::now_ms;
use crate::job::{refresh, stored_command_line};
use crate::usage_error::remove_control_characters;

/// The state of a job: running, stopped, or complete.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JobState {
    Running,
    Stopped,
    Complete,
}

/// The facts that `haul job status` shows.
struct JobStatus<'a> {
    path: &'a Path,
    state: JobState,
    settings: StoredJobSettings,
    counts: JobCounts,
    /// The number of the job's URLs that are not finished. `None` as long as no run has read all
    /// lists of URLs (such as globs and files) to their ends.
    left: Option<u64>,
    /// The results of the last run with `--refresh` (requests all URLs again), such as `changed`,
    /// each with its number of URLs.
    changes: Vec<(String, u64)>,
}

/// Returns the text that `haul job status` prints.
pub(super) fn status_text(path: &Path, as_json: bool) -> Result<String> {
    let (connection, settings) = open_and_lock_job_file::open_to_read(path)?;
    let is_running = open_and_lock_job_file::running_process(path, &connection).is_some();
    let counts = JobCounts::read(&connection).map_err(|error| database_error(path, error))?;
    let changes = refresh::changes(&connection, settings.refresh_round).map_err(|error| database_error(path, error))?;
    let left = match settings.total {
        Some(total) if !settings.refresh_is_complete => {
            let left = refresh::unfinished_urls(&connection, settings.refresh_round, total);
            Some(left.map_err(|error| database_error(path, error))?)
        }
        total => total.map(|total| counts.unfinished_urls(total)),
    };
    let state = match (is_running, left) {
        (true, _) => JobState::Running,
        (false, Some(0)) => JobState::Complete,
        (false, _) => JobState::Stopped,
    };
    let status = JobStatus { path, state, settings, counts, left, changes };
    Ok(if as_json { status.json_text() } else { status.plain_text() })
}

impl JobStatus<'_> {
    fn plain_text(&self) -> String {
        let Self { path, state, settings, counts, left, changes } = self;
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:<10} {}", remove_control_characters(value));
        };
        line("job", &path.to_string_lossy());
        line("command", &stored_command_line::to_shell_text(&settings.command));
        line("directory", &settings.directory.to_string_lossy());
        let process = counts.last_run.as_ref().map_or(0, |run| run.process);
        line(
            "state",
            &match state {
                JobState::Running => format!("running, process {process}"),
                JobState::Stopped => {
                    let option = if settings.refresh_is_complete { "" } else { " --refresh" };
                    format!("stopped; 'haul --job {}{option}' goes on", path.display())
                }
                JobState::Complete => "complete".to_owned(),
            },
        );
        line("done", &counts.done.to_string());
        line("failed", &counts.failed.to_string());
        if counts.again > 0 {
            line("again", &counts.again.to_string());
        }
        if counts.skipped > 0 {
            line("skipped", &counts.skipped.to_string());
        }
        line(
            "left",
            &left.map_or("not known before a run has read the whole list".to_owned(), |left| left.to_string()),
        );
        line("bytes", &format!("{} ({})", counts.bytes, HumanBytes(counts.bytes)));
        if !changes.is_empty() {
            line("refresh", &refresh::changes_text(changes));
        }
        if let Some(rate) = self.rate() {
            line("rate", &format!("{rate:.1} URLs/s in the last run"));
            if let Some(left) = left.filter(|_| *state == JobState::Running && rate > 0.0) {
                let seconds = (left as f64 / rate).ceil();
                line("time left", &HumanDuration(std::time::Duration::from_secs_f64(seconds.min(1e9))).to_string());
            }
        }
        for cause in &counts.causes {
            let status = cause.status.map_or(String::new(), |status| format!(", status {status}"));
            line("  failure", &format!("{} × ({}{status}) {}", cause.count, cause.exit_code, cause.error));
        }
        text
    }

    fn json_text(&self) -> String {
        let Self { path, state, settings, counts, left, changes } = self;
        let causes = counts.causes.iter().map(|cause| {
        json!({ "exit_code": cause.exit_code, "status": cause.status, "count": cause.count, "error": cause.error })
    });
        let run = counts.last_run.as_ref().map(|run| {
            json!({
                "process": run.process,
                "started": run.started,
                "ended": run.ended,
                "exit_code": run.exit_code,
                "finished": run.finished,
            })
        });
        let refreshed = changes.iter().map(|(change, count)| (change.clone(), json!(count)));
        let refreshed: serde_json::Map<_, _> = refreshed.collect();
        let value = json!({
            "job": path.to_string_lossy(),
            "command": stored_command_line::to_shell_text(&settings.command),
            "directory": settings.directory.to_string_lossy(),
            "created": settings.created,
            "state": match state {
                JobState::Running => "running",
                JobState::Stopped => "stopped",
                JobState::Complete => "complete",
            },
            "total": settings.total,
            "done": counts.done,
            "failed": counts.failed,
            "again": counts.again,
            "skipped": counts.skipped,
            "left": left,
            "bytes": counts.bytes,
            "rate": self.rate(),
            "refresh": refreshed,
            "causes": causes.collect::<Vec<_>>(),
            "last_run": run,
        });
        escaped_json(format!("{value}\n"))
    }

    /// Returns the average number of URLs per second that the last run finished; `None` if it
    /// finished no URL.
    fn rate(&self) -> Option<f64> {
        let run = self.counts.last_run.as_ref().filter(|run| run.finished > 0)?;
        let end = match self.state {
            JobState::Running => now_ms(),
            _ => run.ended.or(run.last)?,
        };
        let seconds = end.saturating_sub(run.started).max(1) as f64 / 1000.0;
        Some(run.finished as f64 / seconds)
    }
}
