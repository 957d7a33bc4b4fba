//! The lines of `--events`: one JSON object for each event. `docs/events.schema.json` describes
//! them.

use std::time::{Duration, SystemTime};

use haul::Error;
use haul_policy::terminal_text::escape_json;
use serde::Serialize;
use serde_json::json;

use crate::date::iso_text;
use crate::program_persona::VERSION;
use crate::run::report::run_counts::RunCountsSnapshot;

/// The facts about an ended transfer that its line of `--events` contains.
pub(super) struct EndedTransfer<'a> {
    /// The URL as given, without user and password.
    pub(super) url: &'a str,
    /// The URL of the last request; `None` if no request was sent.
    pub(super) effective_url: Option<&'a str>,
    /// The index of the transfer's stage, from 0 (`--then` separates stages).
    pub(super) stage: usize,
    /// The status of the last response; `None` without one.
    pub(super) status: Option<u16>,
    pub(super) bytes: u64,
    pub(super) time: Duration,
    pub(super) attempts: u32,
    pub(super) file: Option<&'a str>,
    pub(super) error: Option<&'a Error>,
    /// The remedy for the error. Empty if no remedy is known.
    pub(super) remedy: &'a str,
}

/// Returns the line of `--events` for the start of a run at this time. `total` is the number of
/// URLs; `None` if it is unknown.
pub(super) fn run_started_line(time: SystemTime, total: Option<u64>) -> Vec<u8> {
    let line = EventLine::begin_at(time, "start").with_member("version", VERSION);
    line.with_member("process", std::process::id()).with_member("total", total).finish()
}

/// Returns the line of `--events` for a transfer that has ended.
pub(super) fn transfer_ended_line(transfer: &EndedTransfer<'_>) -> Vec<u8> {
    let line = EventLine::begin_now(if transfer.error.is_some() { "failed" } else { "done" })
        .with_member("url", transfer.url)
        .with_member("effective_url", transfer.effective_url)
        .with_member("stage", transfer.stage)
        .with_member("status", transfer.status)
        .with_member("bytes", transfer.bytes)
        .with_member("seconds", transfer.time.as_secs_f64())
        .with_member("attempts", transfer.attempts);
    match (transfer.error, transfer.file) {
        (Some(error), _) => line.with_member("error", error_object(error, transfer.remedy)).finish(),
        (None, Some(file)) => line.with_member("file", file).finish(),
        (None, None) => line.finish(),
    }
}

fn error_object(error: &Error, remedy: &str) -> serde_json::Value {
    json!({
        "code": error.exit_code(),
        "name": error.kind().name(),
        "message": error.cause(),
        "remedy": Some(remedy).filter(|text| !text.is_empty()),
    })
}

/// Returns the line of `--events` for a failed attempt that will be retried after `pause`.
pub(super) fn retry_line(url: &str, pause: Duration, cause: &str) -> Vec<u8> {
    EventLine::begin_now("retry")
        .with_member("url", url)
        .with_member("pause", pause.as_secs_f64())
        .with_member("cause", cause)
        .finish()
}

/// Returns the line of `--events` for the progress of a run.
pub(super) fn progress_line(progress: &RunCountsSnapshot) -> Vec<u8> {
    EventLine::begin_now("progress")
        .with_counts(progress)
        .with_member("running", progress.running)
        .with_member("rate", progress.byte_rate())
        .with_member("total", progress.total)
        .with_member("left", progress.remaining_time().map(|left| left.as_secs()))
        .finish()
}

/// Returns the line of `--events` for the end of a run.
pub(super) fn run_finished_line(progress: &RunCountsSnapshot, exit_code: u8) -> Vec<u8> {
    EventLine::begin_now("end").with_counts(progress).with_member("exit_code", exit_code).finish()
}

/// The JSON line of an event under construction.
struct EventLine(Vec<u8>);

impl EventLine {
    /// Begins the line of an event that happens now.
    fn begin_now(event: &str) -> Self {
        Self::begin_at(SystemTime::now(), event)
    }

    /// Begins the line of an event that happens at `time`.
    fn begin_at(time: SystemTime, event: &str) -> Self {
        Self(b"{".to_vec()).with_member("event", event).with_member("time", iso_text(time))
    }

    /// Adds a member to the JSON object of the line.
    fn with_member(mut self, name: &str, value: impl Serialize) -> Self {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        self.0.extend_from_slice(format!("\"{name}\":").as_bytes());
        // Texts and numbers always have a form in JSON, and memory takes all bytes.
        let from = self.0.len();
        let _ = serde_json::to_writer(&mut self.0, &value);
        escape_json(&mut self.0, from);
        self
    }

    fn with_counts(self, progress: &RunCountsSnapshot) -> Self {
        self.with_member("elapsed", progress.elapsed.as_secs_f64())
            .with_member("done", progress.done)
            .with_member("failed", progress.failed)
            .with_member("skipped", progress.skipped)
            .with_member("bytes", progress.bytes)
    }

    /// Returns the finished line, with its line feed.
    fn finish(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"}\n");
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn event_line_escapes_any_text_as_json() {
        let line = EventLine::begin_at(UNIX_EPOCH, "done")
            .with_member("url", "a\"\n\u{1b}\\ä")
            .with_member("status", None::<u16>)
            .finish();
        let expected = "{\"event\":\"done\",\"time\":\"1970-01-01T00:00:00.000000Z\",\
                        \"url\":\"a\\\"\\n\\u001b\\\\ä\",\"status\":null}\n";
        assert_eq!(String::from_utf8_lossy(&line), expected);
    }
}
