//! What is told of transfers: a line for each failure, `-w` behind each body, heads for `-D` and `-v`.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use haul::fleet::{Destination, Job, Report};
use haul::trace::{Event, Trace};
use haul::transfer::Outcome;
use haul::{Error, ErrorKind, Result};

use super::progress::Progress;
use super::{error_line, say};
use crate::plan::{Global, Operation, StageArgs, WriteOut};
use crate::write_out::TransferFacts;

/// Reports the transfers of one operation.
pub(super) struct Reporter {
    shows_errors: bool,
    write_out: Vec<Option<WriteOut>>,
    traces: Vec<Option<Arc<dyn Trace>>>,
    progress: Arc<Progress>,
}

/// One transfer as the report needs it.
pub(super) struct Told<'a> {
    pub(super) url: &'a str,
    pub(super) number: u64,
    pub(super) stage: usize,
    pub(super) method: &'a str,
    pub(super) file: Option<&'a Path>,
    pub(super) outcome: &'a Outcome,
}

impl Reporter {
    pub(super) fn new(global: &Global, operation: &Operation, progress: Arc<Progress>) -> Result<Self> {
        Ok(Self {
            shows_errors: global.shows_errors(),
            write_out: operation.stages.iter().map(|stage| stage.report.write_out.clone()).collect(),
            traces: operation.stages.iter().map(|stage| trace(global, stage)).collect::<Result<_>>()?,
            progress,
        })
    }

    pub(super) fn trace(&self, stage: usize) -> Option<Arc<dyn Trace>> {
        self.traces.get(stage)?.clone()
    }

    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Tells of a transfer that is over; what belongs on standard output behind its body is returned.
    pub(super) fn tell(&self, told: &Told<'_>) -> Option<Vec<u8>> {
        let error = told.outcome.result.as_ref().err();
        self.progress.transfer_over(told.outcome.facts.body_bytes, error.is_some());
        if let Some(error) = error.filter(|_| self.shows_errors) {
            self.progress.clear();
            say(&error_line(error));
        }
        let write_out = self.write_out.get(told.stage)?.as_ref()?;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let text = error.map(ToString::to_string);
        let url_effective = told.outcome.target.to_url();
        let url = without_user(told.url);
        let facts = facts(told, &url, &url_effective, text.as_deref());
        write_out.render(&facts, &mut stdout, &mut stderr);
        if !stderr.is_empty() {
            self.progress.clear();
            let _ = std::io::stderr().write_all(&stderr);
        }
        Some(stdout)
    }
}

impl Report for ReporterRef {
    fn finished(&self, job: &Job, outcome: &Outcome) -> Option<Vec<u8>> {
        let file = match &job.destination {
            Destination::File { path, .. } => Some(path.as_path()),
            Destination::Output => None,
        };
        let method = self.methods.get(job.stage).map_or("GET", String::as_str);
        let told = Told { url: &job.url, number: job.number, stage: job.stage, method, file, outcome };
        self.reporter.tell(&told)
    }
}

/// A reporter as the fleet holds it.
pub(super) struct ReporterRef {
    pub(super) reporter: Arc<Reporter>,
    pub(super) methods: Vec<String>,
}

/// A URL as it was given, but for its user and password: what is printed ends up in logs.
fn without_user(url: &str) -> Cow<'_, str> {
    let from = url.find("://").map_or(0, |colon| colon + 3);
    let authority = url[from..].find(['/', '\\', '?', '#']).map_or(&url[from..], |length| &url[from..from + length]);
    match authority.rfind('@') {
        Some(at) => Cow::Owned(format!("{}{}", &url[..from], &url[from + at + 1..])),
        None => Cow::Borrowed(url),
    }
}

fn facts<'a>(told: &'a Told<'_>, url: &'a str, url_effective: &'a str, error: Option<&'a str>) -> TransferFacts<'a> {
    let (outcome, facts) = (told.outcome, &told.outcome.facts);
    let content_type = outcome.head.as_ref().and_then(|head| head.get("content-type"));
    TransferFacts {
        response_code: facts.status,
        url,
        url_effective,
        size_download: facts.body_bytes,
        time_namelookup: facts.resolved,
        time_connect: facts.connected,
        time_appconnect: facts.secured,
        time_starttransfer: facts.first_byte,
        time_total: facts.total,
        num_connects: facts.connects.into(),
        num_redirects: facts.redirects.into(),
        content_type: content_type.and_then(|value| std::str::from_utf8(value).ok()),
        exit_code: outcome.result.as_ref().err().map_or(0, Error::exit_code),
        error,
        method: told.method,
        filename: told.file.and_then(Path::to_str),
        scheme: outcome.target.scheme().as_str(),
        http_version: match facts.version {
            Some(haul::Version::Http10) => "1.0",
            Some(haul::Version::Http11) => "1.1",
            Some(haul::Version::Http2) => "2",
            _ => "",
        },
        remote_ip: facts.peer.map(|peer| peer.ip()),
        remote_port: facts.peer.map_or(0, |peer| peer.port()),
        local_ip: facts.local.map(|local| local.ip()),
        local_port: facts.local.map_or(0, |local| local.port()),
        url_number: told.number,
    }
}

/// What `-v` and `-D` want to see.
fn trace(global: &Global, stage: &StageArgs) -> Result<Option<Arc<dyn Trace>>> {
    let heads: Option<Box<dyn Write + Send>> = match &stage.report.dump_header {
        Some(path) if path.as_os_str() == "-" => Some(Box::new(std::io::stdout())),
        Some(path) => Some(Box::new(File::create(path).map_err(|error| {
            Error::with_source(ErrorKind::Write, format!("failed to open {}", path.display()), error)
        })?)),
        None => None,
    };
    if heads.is_none() && !global.verbose {
        return Ok(None);
    }
    Ok(Some(Arc::new(Tracer { verbose: global.verbose, heads: heads.map(Mutex::new) })))
}

struct Tracer {
    verbose: bool,
    heads: Option<Mutex<Box<dyn Write + Send>>>,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("verbose", &self.verbose).finish_non_exhaustive()
    }
}

impl Trace for Tracer {
    fn event(&self, event: &Event<'_>) {
        if let (Event::Response { head }, Some(heads)) = (event, &self.heads) {
            // A head is lost only if its file is, and that shows when the next one is opened.
            let _ = heads.lock().unwrap_or_else(PoisonError::into_inner).write_all(head.raw());
        }
        if !self.verbose {
            return;
        }
        let (mark, text) = match event {
            Event::Info(text) => ('*', text.clone().into_owned()),
            Event::Request { head } => ('>', head.clone().into_owned()),
            Event::Response { head } => ('<', shown_head(head.raw())),
        };
        let lines: String = text.lines().map(|line| format!("{mark} {}\n", crate::usage::tamed(line))).collect();
        let _ = std::io::stderr().write_all(lines.as_bytes());
    }
}

/// A reply's head for people: what a cookie is set to is as good as a password.
fn shown_head(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    let mut shown = String::with_capacity(text.len());
    let mut is_hidden = false;
    for line in text.lines() {
        // A folded line (RFC 9112 section 5.2) belongs to the field before it.
        if is_hidden && line.starts_with([' ', '\t']) {
            continue;
        }
        let name = line.split_once(':').map_or("", |(name, _)| name.trim());
        let is = |field: &str| name.eq_ignore_ascii_case(field);
        is_hidden = is("set-cookie") || is("set-cookie2");
        if is_hidden {
            shown.push_str(name);
            shown.push_str(": [redacted]");
        } else if is("location") {
            shown.push_str(&without_userinfo(line));
        } else {
            shown.push_str(line);
        }
        shown.push('\n');
    }
    shown
}

/// Hides what stands before the host of the URL in this line.
fn without_userinfo(line: &str) -> Cow<'_, str> {
    let Some(start) = line.find("//").map(|slashes| slashes + 2) else { return line.into() };
    let authority = line[start..].split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rfind('@') {
        Some(at) => format!("{}***{}", &line[..start], &line[start + at..]).into(),
        None => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_that_are_set_are_not_shown() {
        let raw =
            b"HTTP/1.1 200 OK\r\nSet-Cookie: sid=hunter2\r\n more=hunter2\r\nDate: x\r\nSET-COOKIE2 : hunter2\r\n\r\n";
        let shown = "HTTP/1.1 200 OK\nSet-Cookie: [redacted]\nDate: x\nSET-COOKIE2: [redacted]\n\n";
        assert_eq!(shown_head(raw), shown);
    }

    #[test]
    fn passwords_of_a_redirect_are_not_shown() {
        for (line, shown) in [
            ("Location: http://u:hunter2@h/@x", "Location: http://***@h/@x"),
            ("location://u@h?a", "location://***@h?a"),
            ("Location: /@me", "Location: /@me"),
            ("Location: https://h/@me?x=//a@b", "Location: https://h/@me?x=//a@b"),
        ] {
            assert_eq!(shown_head(line.as_bytes()), format!("{shown}\n"));
        }
    }
}
