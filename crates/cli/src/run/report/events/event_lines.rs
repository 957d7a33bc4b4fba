//! The lines of `--events`: one JSON object for each event. `docs/events.schema.json` describes them.

use std::time::{Duration, SystemTime};

use haul::Error;
use haul_policy::terminal_text::escape_json;
use serde::Serialize;
use serde_json::json;

use crate::date::iso_text;
use crate::program_persona::VERSION;
use crate::run::report::run_counts::RunProgress;

/// The facts about an ended transfer that its event has.
pub(super) struct EndedTransfer<'a> {
    /// The URL as given, without user and password.
    pub(super) url: &'a str,
    /// The URL of the last request; `None` if no request was sent.
    pub(super) effective_url: Option<&'a str>,
    /// The number of the transfer's stage, from 0.
    pub(super) stage: usize,
    /// The status of the last response; `None` without one.
    pub(super) status: Option<u16>,
    pub(super) bytes: u64,
    pub(super) time: Duration,
    pub(super) attempts: u32,
    pub(super) file: Option<&'a str>,
    pub(super) error: Option<&'a Error>,
    /// The remedy for the error; empty if there is none.
    pub(super) remedy: &'a str,
}

/// Returns the line of the start of a run at this time.
pub(super) fn started(time: SystemTime, total: Option<u64>) -> Vec<u8> {
    let line = EventLine::at(time, "start").field("version", VERSION);
    line.field("process", std::process::id()).field("total", total).end()
}

/// Returns the line of a transfer that has ended.
pub(super) fn ended(transfer: &EndedTransfer<'_>) -> Vec<u8> {
    let line = EventLine::now(if transfer.error.is_some() { "failed" } else { "done" })
        .field("url", transfer.url)
        .field("effective_url", transfer.effective_url)
        .field("stage", transfer.stage)
        .field("status", transfer.status)
        .field("bytes", transfer.bytes)
        .field("seconds", transfer.time.as_secs_f64())
        .field("attempts", transfer.attempts);
    match (transfer.error, transfer.file) {
        (Some(error), _) => line.field("error", error_object(error, transfer.remedy)).end(),
        (None, Some(file)) => line.field("file", file).end(),
        (None, None) => line.end(),
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

/// Returns the line of a failed attempt that another attempt follows.
pub(super) fn retried(url: &str, pause: Duration, cause: &str) -> Vec<u8> {
    EventLine::now("retry").field("url", url).field("pause", pause.as_secs_f64()).field("cause", cause).end()
}

/// Returns the line of the progress of a run.
pub(super) fn progress(progress: &RunProgress) -> Vec<u8> {
    EventLine::now("progress")
        .counts(progress)
        .field("running", progress.running)
        .field("rate", progress.byte_rate())
        .field("total", progress.total)
        .field("left", progress.left().map(|left| left.as_secs()))
        .end()
}

/// Returns the line of the end of a run.
pub(super) fn finished(progress: &RunProgress, exit_code: u8) -> Vec<u8> {
    EventLine::now("end").counts(progress).field("exit_code", exit_code).end()
}

/// A line under construction.
struct EventLine(Vec<u8>);

impl EventLine {
    /// Begins the line of an event of this moment.
    fn now(event: &str) -> Self {
        Self::at(SystemTime::now(), event)
    }

    /// Begins the line of an event.
    fn at(time: SystemTime, event: &str) -> Self {
        Self(b"{".to_vec()).field("event", event).field("time", iso_text(time))
    }

    /// Adds a member to the object.
    fn field(mut self, name: &str, value: impl Serialize) -> Self {
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

    fn counts(self, progress: &RunProgress) -> Self {
        self.field("elapsed", progress.elapsed.as_secs_f64())
            .field("done", progress.done)
            .field("failed", progress.failed)
            .field("skipped", progress.skipped)
            .field("bytes", progress.bytes)
    }

    /// Returns the finished line.
    fn end(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"}\n");
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn line_is_an_object_whatever_its_texts() {
        let line = EventLine::at(UNIX_EPOCH, "done").field("url", "a\"\n\u{1b}\\ä").field("status", None::<u16>).end();
        let expected = "{\"event\":\"done\",\"time\":\"1970-01-01T00:00:00.000000Z\",\
                        \"url\":\"a\\\"\\n\\u001b\\\\ä\",\"status\":null}\n";
        assert_eq!(String::from_utf8_lossy(&line), expected);
    }
}
