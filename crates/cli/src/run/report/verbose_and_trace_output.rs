//! The traces of `-v`, `--trace`, `--trace-ascii` and `-D`: prints requests, responses and
//! connections while transfers run.
//!
//! | | heads | bodies | each line |
//! |---|---|---|---|
//! | `-v` | yes | no | `> `, `< `, `* ` |
//! | `--trace-ascii` | yes | as text | an offset, 64 characters |
//! | `--trace` | yes | as hex and text | an offset, 16 bytes |
//!
//! No trace contains secrets, because other people may read a log.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use haul::trace::{TraceEvent, TransferObserver, trailer_lines};
use haul::{Error, ResponseHead, Result};
use haul_policy::secret_fields::is_hidden_field;
use haul_policy::terminal_text::escape_for_terminal;

use crate::file_and_environment_access::Stdout;
use crate::plan::{GlobalArgs, StageArgs, TraceArgs, TraceFormat, UrlGroup};
use crate::run::report::error_message;
use crate::run::report::file_metadata;
use crate::run::report::header_or_trace_file::HeaderOrTraceFile;

/// An observer that writes the events of transfers to a trace (`-v`, `--trace`), and response heads
/// to the file of `-D`.
pub(crate) struct Tracer {
    args: TraceArgs,
    out: HeaderOrTraceFile,
    /// The file of `-D`, which receives response heads; `None` if the option is not given.
    heads: Option<HeaderOrTraceFile>,
    /// True if the file of `-D` receives each line of a head twice, as curl prints it with `-i` and
    /// `-D -`.
    doubles_heads: bool,
    /// True if the file of `-D` also receives the heads of a proxy's responses to `CONNECT`.
    connect_heads: bool,
    /// True if the entity tag of a response is printed on standard output (`--etag-save -`), as
    /// soon as its head arrives.
    prints_tag: bool,
    /// The error of writing the entity tag to standard output (`--etag-save -`); `None` if there
    /// was none.
    lost_tag: Mutex<Option<io::Error>>,
    /// True if a warning is printed before each retry of a transfer, as curl does without `-s`.
    prints_retries: bool,
    /// True if the error of a failed try is printed before the transfer is retried, as curl does.
    prints_failures: bool,
    /// True once [`Tracer::write_failure`] has returned an error of the trace file. The error is
    /// thus reported only once.
    is_failure_reported: AtomicBool,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("args", &self.args).finish_non_exhaustive()
    }
}

/// Returns true if the trace (`-v`, `--trace`) is written to the same file as standard output.
pub(crate) fn is_trace_on_stdout(args: &TraceArgs) -> bool {
    let path = args.file.as_deref().unwrap_or(Path::new("%"));
    args.form != TraceFormat::Off && HeaderOrTraceFile::is_stdout(path)
}

impl Tracer {
    /// Returns the observer for `-v`, `--trace`, `-D`, `--etag-save -`, and for curl's warnings
    /// about retries. `None` if the run needs none of these.
    pub(crate) fn open(global: &GlobalArgs, group: &UrlGroup, stage: &StageArgs) -> Result<Option<Arc<Self>>> {
        let args = &global.trace;
        let heads = match &stage.report.dump_header {
            Some(path) => {
                // Errors in it are reported when the file is opened.
                let _ = file_metadata::make_directories(group, path);
                Some(HeaderOrTraceFile::open(path)?)
            }
            None => None,
        };
        let retries_as_curl = global.persona.is_curl() && stage.transfer.options.retry.max > 0;
        let prints_retries = retries_as_curl && !global.silent;
        let prints_failures = retries_as_curl && global.shows_errors();
        let prints_tag = stage.request.etag_save.as_deref() == Some(Path::new("-"));
        let is_quiet = args.form == TraceFormat::Off && !prints_retries && !prints_failures;
        if heads.is_none() && is_quiet && !prints_tag {
            return Ok(None);
        }
        let out = match &args.file {
            Some(path) => match HeaderOrTraceFile::open(path) {
                // As curl, which says nothing of the file.
                Err(_) if global.persona.is_curl() => HeaderOrTraceFile::stderr(),
                opened => opened?,
            },
            None => HeaderOrTraceFile::stderr(),
        };
        let connect_heads = !stage.proxy.suppress_connect_headers;
        Ok(Some(Arc::new(Self {
            args: args.clone(),
            out,
            heads,
            doubles_heads: stage.report.doubles_heads,
            connect_heads,
            prints_tag,
            lost_tag: Mutex::default(),
            prints_retries,
            prints_failures,
            is_failure_reported: AtomicBool::new(false),
        })))
    }

    /// Returns the error of a write to the trace file; `None` if there was none. Later calls return
    /// `None`, so that the error is reported once.
    pub(crate) fn write_failure(&self) -> Option<Error> {
        self.out
            .failure()
            .filter(|_| self.args.file.is_some() && !self.is_failure_reported.swap(true, Ordering::Relaxed))
    }

    /// Returns the error of writing the entity tag to standard output; `None` if there was none.
    /// Later calls return `None`, so that the error is reported once.
    pub(crate) fn entity_tag_failure(&self) -> Option<io::Error> {
        self.lost_tag.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Writes a response head to the file of `-D`. Does nothing if the option is not given.
    pub(crate) fn dump_head(&self, raw: &[u8]) {
        let doubled = self.doubles_heads.then(|| repeat_each_line(raw));
        let raw = doubled.as_deref().unwrap_or(raw);
        match &self.heads {
            Some(heads) if heads.is_terminal() => heads.write(&escape_for_terminal(raw)),
            Some(heads) => heads.write(raw),
            None => {}
        }
    }
}

impl TransferObserver for Tracer {
    fn event(&self, event: &TraceEvent<'_>) {
        if let TraceEvent::Response { head } = event
            && let Some(tag) = file_metadata::entity_tag_line(head).filter(|_| self.prints_tag)
        {
            *self.lost_tag.lock().unwrap_or_else(PoisonError::into_inner) = Stdout.write_all(&tag).err();
        }
        match event {
            TraceEvent::Response { head } | TraceEvent::Interim { head } => self.dump_head(head.raw()),
            TraceEvent::Connect { head } if self.connect_heads => self.dump_head(head.raw()),
            TraceEvent::Trailers { fields } => self.dump_head(&trailer_lines(fields.raw())),
            _ => {}
        }
        if let (TraceEvent::Retry { failed: Some(failed), .. }, true) = (event, self.prints_failures)
            && let Err(error) = &failed.result
        {
            crate::run::print_error_line(&error_message::curl_line(error, Some(failed)));
        }
        if let (TraceEvent::Retry { trouble, wait, left, .. }, true) = (event, self.prints_retries) {
            return crate::run::print_error_line(&format!(
                "Warning: {}",
                error_message::retry_notice(*trouble, *wait, *left)
            ));
        }
        let text = match self.args.form {
            TraceFormat::Off => return,
            TraceFormat::Lines => self.lines(event),
            TraceFormat::Ascii | TraceFormat::Hex => self.dump(event),
        };
        self.out.write(&text);
    }

    fn wants_content(&self) -> bool {
        matches!(self.args.form, TraceFormat::Ascii | TraceFormat::Hex)
    }

    /// Returns the error of a write to the file of `-D`; `None` if there was none. The error fails
    /// the transfer. An error of the trace file does not fail the transfer.
    fn failure(&self) -> Option<Error> {
        self.heads.as_ref()?.failure()
    }
}

impl Tracer {
    fn lines(&self, event: &TraceEvent<'_>) -> Vec<u8> {
        let (mark, text): (char, Cow<'_, str>) = match event {
            TraceEvent::Info(text) => ('*', text.as_ref().into()),
            TraceEvent::Retry { trouble, wait, left, .. } => {
                ('*', error_message::retry_notice(*trouble, *wait, *left).into())
            }
            TraceEvent::Request { head } => ('>', sent_head(head).into()),
            TraceEvent::Response { head } | TraceEvent::Interim { head } | TraceEvent::Connect { head } => {
                ('<', shown_head(head.raw()).into())
            }
            TraceEvent::Trailers { fields } => ('<', shown_head(fields.raw()).into()),
            TraceEvent::NotHttp { line } => ('<', shown_head(line).into()),
            _ => return Vec::new(),
        };
        let ignored = if let TraceEvent::Connect { head } = event { ignored_fields(head) } else { String::new() };
        let stamp = self.time_prefix();
        let line = |line: &str| {
            let text = line.trim_end_matches(['\r', '\n']);
            let end = if line.ends_with("\r\n") { "\r\n" } else { "\n" };
            format!("{stamp}{mark} {}{end}", crate::usage_error::remove_control_characters(text))
        };
        let mut text: String = text.split_inclusive('\n').map(line).collect();
        text.extend(ignored.lines().map(|line| format!("{stamp}* {line}\n")));
        text.into_bytes()
    }

    fn dump(&self, event: &TraceEvent<'_>) -> Vec<u8> {
        match event {
            TraceEvent::Info(text) => self.info(text),
            TraceEvent::Retry { trouble, wait, left, .. } => {
                self.info(&error_message::retry_notice(*trouble, *wait, *left))
            }
            TraceEvent::Request { head } => self.block("=> Send header", sent_head(head).as_bytes()),
            TraceEvent::Response { head } | TraceEvent::Interim { head } | TraceEvent::Connect { head } => {
                self.blocks(head.raw())
            }
            TraceEvent::Trailers { fields } => self.blocks(fields.raw()),
            TraceEvent::NotHttp { line } => self.blocks(line),
            TraceEvent::Sent(bytes) => self.block("=> Send data", bytes),
            TraceEvent::Received(bytes) => self.block("<= Recv data", bytes),
            TraceEvent::Milestone { .. } => Vec::new(),
        }
    }

    fn info(&self, text: &str) -> Vec<u8> {
        format!("{}* {}\n", self.time_prefix(), crate::usage_error::remove_control_characters(text)).into_bytes()
    }

    /// Formats the lines of a response head for `--trace` or `--trace-ascii`. As in curl, each line
    /// becomes a block under the title `<= Recv header`.
    fn blocks(&self, raw: &[u8]) -> Vec<u8> {
        let block = |line: &str| self.block("<= Recv header", line.as_bytes());
        shown_head(raw).split_inclusive('\n').flat_map(block).collect()
    }

    fn block(&self, title: &str, bytes: &[u8]) -> Vec<u8> {
        let length = bytes.len();
        let mut out = format!("{}{title}, {length} bytes (0x{length:x})\n", self.time_prefix()).into_bytes();
        match self.args.form {
            TraceFormat::Hex => append_hex(bytes, &mut out),
            _ => append_ascii(bytes, &mut out),
        }
        out
    }

    /// Returns the prefix of a trace line: the time of day in UTC for `--trace-time`, and the ids
    /// of transfer and connection for `--trace-ids`. Empty without these options.
    fn time_prefix(&self) -> String {
        let ids = if self.args.ids { "[0-0] " } else { "" };
        if !self.args.time {
            return ids.to_owned();
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let day = now.as_secs() % 86_400;
        format!("{:02}:{:02}:{:02}.{:06} {ids}", day / 3600, day / 60 % 60, day % 60, now.subsec_micros())
    }
}

/// Returns a trace line for each field that would frame content (`Content-Length`,
/// `Transfer-Encoding`) in a successful response to CONNECT. Such a response has no content (RFC
/// 9110 section 9.3.6).
fn ignored_fields(head: &ResponseHead) -> String {
    let status = head.status();
    let framing = ["Content-Length", "Transfer-Encoding"].into_iter().filter(|_| (200..300).contains(&status));
    let found = framing.filter(|name| head.get(name).is_some());
    found.map(|name| format!("Ignoring {name} in CONNECT {status} response\n")).collect()
}

/// Returns the text with each line written twice.
fn repeat_each_line(raw: &[u8]) -> Vec<u8> {
    raw.split_inclusive(|&byte| byte == b'\n').flat_map(|line| [line, line].concat()).collect()
}

fn append_hex(bytes: &[u8], out: &mut Vec<u8>) {
    for (row, line) in bytes.chunks(16).enumerate() {
        let mut text = format!("{:04x}: ", row * 16);
        for at in 0..16 {
            text.push_str(&line.get(at).map_or("   ".to_owned(), |byte| format!("{byte:02x} ")));
        }
        text.extend(line.iter().map(|&byte| printable_or_dot(byte)));
        text.push('\n');
        out.extend_from_slice(text.as_bytes());
    }
}

/// Formats bytes for `--trace-ascii`, as lines of at most 64 characters. A CR LF also ends a line.
fn append_ascii(bytes: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = rest.windows(2).take(65).position(|pair| pair == b"\r\n");
        let (length, skipped) = end.map_or((rest.len().min(64), 0), |end| (end, 2));
        let text: String = rest[..length].iter().map(|&byte| printable_or_dot(byte)).collect();
        out.extend_from_slice(format!("{at:04x}: {text}\n").as_bytes());
        at += length + skipped;
    }
}

fn printable_or_dot(byte: u8) -> char {
    if (0x20..0x7f).contains(&byte) { char::from(byte) } else { '.' }
}

/// Returns the text of a request's head with CR LF line ends, and with the empty line at its end.
fn sent_head(head: &str) -> String {
    format!("{head}\n").replace('\n', "\r\n")
}

/// Returns the text of a response's head with its original line ends. The values of cookies and
/// tokens are replaced by `[redacted]`.
fn shown_head(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.split_at(line.trim_end_matches(['\r', '\n']).len());
        let name = line.split_once(':').map_or("", |(name, _)| name.trim());
        // A status line may have a colon as well.
        if !name.contains(' ') && is_hidden_field(name) {
            shown.push_str(name);
            shown.push_str(": [redacted]");
        } else if name.eq_ignore_ascii_case("location") {
            shown.push_str(&with_user_hidden(line));
        } else {
            shown.push_str(line);
        }
        shown.push_str(end);
    }
    shown
}

/// Replaces the user and password in the URL of this trace line by `***`. Unlike
/// [`haul_policy::secret_fields::without_userinfo`], this function keeps an `@` in the path of the
/// URL.
fn with_user_hidden(line: &str) -> Cow<'_, str> {
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
    fn trace_redacts_set_cookie_values() {
        let raw = b"HTTP/1.1 401 No token: x\r\nSet-Cookie: sid=hunter2\r\nDate: x\r\nSET-COOKIE2 : hunter2\r\n\r\n";
        let shown = "HTTP/1.1 401 No token: x\r\nSet-Cookie: [redacted]\r\nDate: x\r\nSET-COOKIE2: [redacted]\r\n\r\n";
        assert_eq!(shown_head(raw), shown);
    }

    #[cfg(unix)]
    #[test]
    fn trace_on_stdout_is_recognized_by_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let is_shared = |form, path: &Path| {
            is_trace_on_stdout(&TraceArgs { form, file: Some(path.into()), ..TraceArgs::default() })
        };
        assert!(is_shared(TraceFormat::Lines, Path::new("-")));
        assert!(is_shared(TraceFormat::Hex, Path::new("/dev/fd/1")));
        assert!(!is_shared(TraceFormat::Off, Path::new("-")));
        assert!(!is_shared(TraceFormat::Hex, file.path()));
    }

    #[test]
    fn trace_redacts_passwords_in_redirects() {
        for (line, shown) in [
            ("Location: http://u:hunter2@h/@x", "Location: http://***@h/@x"),
            ("location://u@h?a", "location://***@h?a"),
            ("Location: /@me", "Location: /@me"),
            ("Location: https://h/@me?x=//a@b", "Location: https://h/@me?x=//a@b"),
        ] {
            assert_eq!(shown_head(line.as_bytes()), shown);
        }
    }
}
