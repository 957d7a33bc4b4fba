//! `haul doctor URL`: a one-page report about what happens when a URL is fetched, for the question
//! "why does it not work here?" and for support tickets.
//!
//! ```text
//! options, URL ─▶ plan ─▶ probes: one fetch for each question ─▶ DiagnosisReport ─▶ text or JSON
//! ```
//!
//! The report contains no secrets: no credentials, no cookies, and no values of a query.

mod certificate_report_rows;
mod diagnosis_report;
mod network_settings_section;
mod probe_fetches;
mod probe_requests;

use std::ffi::OsString;
use std::io::Write;

use haul::{Error, ErrorKind};

use crate::build_plan;
use crate::file_and_environment_access::{Stdout, SystemFilesAndEnvironment};
use crate::parse;
use crate::plan::{RunPlan, UrlSource};
use crate::program_persona::ProgramPersona;
use crate::run::report::error_message;
use crate::secret_arguments;
use crate::stderr_terminal::MessageColors;
use crate::usage_error::{ArgPosition, UsageError, UsageErrorReason};

/// The text of `haul doctor --help`.
pub(crate) const HELP: &str = "\
Usage: haul doctor [options] URL

Shows what happens when URL is fetched: the environment, name lookup, each
address, TLS, HTTP versions, redirects, compression, ranges, validators, the
rate of one connection, and problems with their remedies. Some requests are
sent to the server, and up to 8 MiB are received. The page has no secrets, so
that you can send it to others.

 --format text|json      The form of the page. The default is text
 any option of haul      such as -k, --cacert, -x, --resolve, -H or -u

The exit code is that of fetching the URL.
";

/// The format in which the report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiagnosisFormat {
    Text,
    Json,
}

/// Returns true if the command line of a program is `haul doctor …`.
#[must_use]
pub fn is_doctor_command(words: &[OsString]) -> bool {
    let (persona, rest) = ProgramPersona::from_words(words.iter().cloned());
    !persona.is_curl() && rest.first().is_some_and(|first| first == "doctor")
}

/// Runs the command `haul doctor …`. `words` is the whole command line. Returns the exit code.
#[must_use]
pub fn run(words: &[OsString]) -> u8 {
    let colors = MessageColors::of_stderr(ProgramPersona::Haul);
    match run_diagnosis(&words[2.min(words.len())..]) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => {
            let line = error_message::colored_line(ProgramPersona::Haul, &error, None, colors);
            let _ = writeln!(std::io::stderr(), "{line}");
            error.exit_code()
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{}", colors.message(&error.message_for("haul")));
            error.exit_code()
        }
    }
}

fn run_diagnosis(words: &[OsString]) -> Result<haul::Result<u8>, UsageError> {
    if words.is_empty() || words.iter().any(|word| word == "--help" || word == "-h") {
        let _ = std::io::stdout().write_all(HELP.as_bytes());
        return Ok(Ok(0));
    }
    let (format, args) = split_off_format(words)?;
    let count = args.len();
    let parsed = parse::parse_as(ProgramPersona::Haul, args, &mut SystemFilesAndEnvironment)?;
    secret_arguments::blank_in_process_list(count, &parsed.secrets);
    let plan = build_plan::resolve(parsed, &mut SystemFilesAndEnvironment)?;
    let url = only_url(&plan)?;
    Ok(probe_fetches::diagnose(&plan, url).and_then(|report| {
        let text = match format {
            DiagnosisFormat::Text => report.to_text(),
            DiagnosisFormat::Json => haul_policy::terminal_text::escaped_json(format!("{:#}\n", report.to_json())),
        };
        match Stdout.write_all(text.as_bytes()) {
            // A reader that has closed the pipe has seen enough.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Error::with_source(ErrorKind::Write, "failed to write the output", error))
            }
            _ => Ok(report.exit_code),
        }
    }))
}

/// Removes `--format` and its value from the command line, by replacing each of these words by an
/// option without effect. The positions of all other words must not change, because secrets are
/// removed later by their positions.
fn split_off_format(words: &[OsString]) -> Result<(DiagnosisFormat, Vec<OsString>), UsageError> {
    let mut format = DiagnosisFormat::Text;
    let mut args = Vec::with_capacity(words.len());
    let no_effect = || OsString::from("--no-progress-meter");
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        let value = match text.strip_prefix("--format") {
            Some("") => {
                args.push(no_effect());
                words.next().and_then(|value| value.to_str())
            }
            Some(rest) if rest.starts_with('=') => Some(&rest[1..]),
            _ => {
                args.push(word.clone());
                continue;
            }
        };
        args.push(no_effect());
        format = match value {
            Some("text") => DiagnosisFormat::Text,
            Some("json") => DiagnosisFormat::Json,
            _ => {
                let reason = UsageErrorReason::bad_use("expected text or json");
                return Err(UsageError::new(ArgPosition::Option("--format".into()), reason));
            }
        };
    }
    Ok((format, args))
}

/// Returns the URL of a plan, which must contain exactly one.
///
/// # Errors
/// The plan has no URL, several of them, or a list.
fn only_url(plan: &RunPlan) -> Result<&str, UsageError> {
    let [group] = plan.groups.as_slice() else { return Err(one_url_error()) };
    match group.urls.get(0) {
        Some(UrlSource::Argument(url)) if group.urls.len() == 1 => Ok(url),
        _ => Err(one_url_error()),
    }
}

fn one_url_error() -> UsageError {
    let reason = UsageErrorReason::bad_use("it looks at one URL");
    UsageError::new(ArgPosition::Option("doctor".into()), reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_option_does_not_shift_other_arguments() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let (format, args) = split_off_format(&words(&["--format", "json", "-u", "a:b", "u"])).expect("valid");
        assert_eq!((format, args.len(), args[3].clone()), (DiagnosisFormat::Json, 5, "a:b".into()));
        let (format, args) = split_off_format(&words(&["u", "--format=text"])).expect("valid");
        assert_eq!((format, args.len()), (DiagnosisFormat::Text, 2));
        assert!(split_off_format(&words(&["--format", "xml", "u"])).is_err());
        assert!(split_off_format(&words(&["u", "--format"])).is_err());
    }
}
