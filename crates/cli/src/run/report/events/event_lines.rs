//! The lines of `--events`: one JSON object for each event. `docs/events.schema.json` describes them.

use std::time::{Duration, SystemTime};

use haul::Error;
use serde_json::{Value, json};

use crate::date::iso_text;
use crate::program_persona::VERSION;
use crate::run::report::error_message;
use crate::run::report::run_counts::RunProgress;

/// The facts about an ended transfer that its event has.
pub(super) struct EndedTransfer<'a> {
    /// The URL as given, without user and password.
    pub(super) url: &'a str,
    /// The URL of the last request; `None` if no request was sent.
    pub(super) effective_url: Option<&'a str>,
    /// The number of its stage, from 0.
    pub(super) stage: usize,
    /// The status of the last response; `None` without one.
    pub(super) status: Option<u16>,
    pub(super) bytes: u64,
    pub(super) time: Duration,
    pub(super) attempts: u32,
    pub(super) file: Option<&'a str>,
    pub(super) error: Option<&'a Error>,
}

/// Returns the line of an event of this moment.
fn line(event: &str, members: Value) -> Vec<u8> {
    line_at(SystemTime::now(), event, members)
}

/// Adds the name and the time of an event to its members, and returns the line.
fn line_at(time: SystemTime, event: &str, mut members: Value) -> Vec<u8> {
    members["event"] = event.into();
    members["time"] = iso_text(time).into();
    let mut line = members.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Returns the line of the start of a run at this time.
pub(super) fn started(time: SystemTime, total: Option<u64>) -> Vec<u8> {
    line_at(time, "start", json!({ "version": VERSION, "process": std::process::id(), "total": total }))
}

/// Returns the line of a transfer that has ended.
pub(super) fn ended(transfer: &EndedTransfer<'_>) -> Vec<u8> {
    let mut members = json!({
        "url": transfer.url,
        "effective_url": transfer.effective_url,
        "stage": transfer.stage,
        "status": transfer.status,
        "bytes": transfer.bytes,
        "seconds": transfer.time.as_secs_f64(),
        "attempts": transfer.attempts,
    });
    if let Some(file) = transfer.file {
        members["file"] = file.into();
    }
    let Some(error) = transfer.error else { return line("done", members) };
    let remedy = error_message::remedy(error).trim_start_matches("; ");
    members["error"] = json!({
        "code": error.exit_code(),
        "name": error.kind().name(),
        "message": error.cause(),
        "remedy": Some(remedy).filter(|text| !text.is_empty()),
    });
    line("failed", members)
}

/// Returns the line of a failed attempt that another attempt follows.
pub(super) fn retried(url: &str, pause: Duration, cause: &str) -> Vec<u8> {
    line("retry", json!({ "url": url, "pause": pause.as_secs_f64(), "cause": cause }))
}

/// Returns the line of the progress of a run.
pub(super) fn progress(progress: &RunProgress) -> Vec<u8> {
    let mut members = counts(progress);
    members["running"] = progress.running.into();
    members["rate"] = progress.byte_rate().into();
    members["total"] = progress.total.into();
    members["left"] = progress.left().map(|left| left.as_secs()).into();
    line("progress", members)
}

/// Returns the line of the end of a run.
pub(super) fn finished(progress: &RunProgress, exit_code: u8) -> Vec<u8> {
    let mut members = counts(progress);
    members["exit_code"] = exit_code.into();
    line("end", members)
}

fn counts(progress: &RunProgress) -> Value {
    json!({
        "elapsed": progress.elapsed.as_secs_f64(),
        "done": progress.done,
        "failed": progress.failed,
        "skipped": progress.skipped,
        "bytes": progress.bytes,
    })
}
