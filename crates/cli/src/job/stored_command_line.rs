//! The command line of a job: the options that identify it, how they are stored, and how a later
//! run is compared with them.
//!
//! ```text
//!  argv ─▶ parse_recorded ─▶ given options ─┬─▶ identity ─▶ stored in the job, secrets left out
//!                                           └─▶ limits, rates, verbosity, secrets: of this run only
//! ```

use std::ffi::OsString;

use haul_policy::secret_fields::drop_userinfo;
use serde_json::{Value, json};

use crate::given_option::{GivenOption, URL};
use crate::system::os_text::{OsStringExt, os_str};

/// The options that may differ between two runs of a job: limits, rates, parallelism, verbosity,
/// and reports about the run.
const CHANGEABLE_OPTIONS: &[&str] = &[
    "agent-idle",
    "connect-timeout",
    "events",
    "fail-early",
    "happy-eyeballs-timeout-ms",
    "job",
    "keepalive",
    "keepalive-cnt",
    "keepalive-intvl",
    "keepalive-time",
    "limit-rate",
    "limit-rate-total",
    "max-memory",
    "max-time",
    "parallel",
    "parallel-max",
    "parallel-max-host",
    "pipeline",
    "progress-bar",
    "progress-meter",
    "rate",
    "rate-host",
    "refresh",
    "retry",
    "retry-all-errors",
    "retry-connrefused",
    "retry-delay",
    "retry-max-time",
    "show-error",
    "silent",
    "speed-limit",
    "speed-time",
    "split",
    "stall-time",
    "stats",
    "stderr",
    "styled-output",
    "summary",
    "threads",
    "trace",
    "trace-ascii",
    "trace-config",
    "trace-ids",
    "trace-time",
    "verbose",
];

/// Returns the options that identify the job. The values of secrets are removed, but the position
/// and the name of each secret are kept.
pub(super) fn unchangeable_options(given: &[GivenOption]) -> Vec<GivenOption> {
    let identifying = given.iter().filter(|option| !CHANGEABLE_OPTIONS.contains(&option.name.as_str()));
    identifying.map(|option| GivenOption { value: stored_value(option), ..option.clone() }).collect()
}

fn stored_value(option: &GivenOption) -> Option<Vec<u8>> {
    option.value.clone().filter(|_| !option.is_secret)
}

/// Returns true if a command line has only secrets and options that may differ between two runs of
/// a job, such as `--job` and limits.
pub(super) fn has_only_changeable_options(given: &[GivenOption]) -> bool {
    unchangeable_options(given).iter().all(|option| option.is_secret)
}

/// Returns the first option whose value cannot be stored, with the reason: the value is not UTF-8,
/// or is a URL with credentials. Returns `None` if all values can be stored.
pub(super) fn first_unstorable(command: &[GivenOption]) -> Option<(&GivenOption, &'static str)> {
    command.iter().find_map(|option| {
        let value = option.value.as_deref()?;
        let Ok(text) = std::str::from_utf8(value) else {
            return Some((option, "its value is not UTF-8, and cannot be stored in a job"));
        };
        let has_login = match option.name.strip_prefix("expand-").unwrap_or(&option.name) {
            URL | "then" => drop_userinfo(text) != text,
            // The value need not be a URL.
            "checksum" | "doh-url" => text.contains(":/") && drop_userinfo(text) != text,
            _ => false,
        };
        has_login.then_some((option, "a job does not store the credentials in a URL; give them by -u or --netrc"))
    })
}

/// Returns the JSON text of a command line: an array with an object for each option.
pub(super) fn to_json(command: &[GivenOption]) -> String {
    let options = command.iter().map(|option| {
        let value = option.value.as_deref().map(String::from_utf8_lossy);
        match (option.is_secret, option.is_on, value) {
            (true, ..) => match &option.secret_name {
                Some(secret_name) => json!({ "name": option.name, "secret": true, "secret_name": secret_name }),
                None => json!({ "name": option.name, "secret": true }),
            },
            (false, false, _) => json!({ "name": option.name, "off": true }),
            (false, true, Some(value)) => json!({ "name": option.name, "value": value }),
            (false, true, None) => json!({ "name": option.name }),
        }
    });
    Value::Array(options.collect()).to_string()
}

/// Parses the JSON text that [`to_json`] returns. Returns `None` for a text of any other form.
pub(super) fn from_json(text: &str) -> Option<Vec<GivenOption>> {
    let Value::Array(options) = serde_json::from_str(text).ok()? else { return None };
    let option = |option: &Value| {
        let flag = |name: &str| option.get(name).and_then(Value::as_bool).unwrap_or(false);
        Some(GivenOption {
            name: option.get("name")?.as_str()?.to_owned(),
            is_on: !flag("off"),
            value: option.get("value").and_then(Value::as_str).map(|value| value.as_bytes().to_vec()),
            is_secret: flag("secret"),
            secret_name: option.get("secret_name").and_then(Value::as_str).map(str::to_owned),
        })
    };
    options.iter().map(option).collect()
}

/// Returns the complete command line of a run that continues a job. `stored` has the options that
/// the job stores, in which the values of secrets are missing. `given` has the options of this run:
/// the values of these secrets, and options that may differ between runs, such as limits. Any other
/// option of `given` is an error unless the job stores it with the same value.
///
/// # Errors
/// A text for the user: a secret is not given again, or an option does not belong to the job.
pub(super) fn continued_command_line(stored: &[GivenOption], given: &[GivenOption]) -> Result<Vec<OsString>, String> {
    let (mut secrets, others): (Vec<&GivenOption>, Vec<&GivenOption>) =
        given.iter().partition(|option| option.is_secret);
    let mut arguments = Vec::new();
    for option in stored {
        let option = match option.is_secret {
            false => option,
            true => match secrets.iter().position(|secret| is_same_secret(secret, option)) {
                Some(at) => secrets.remove(at),
                None => {
                    return Err(format!(
                        "the job was begun with {}, whose value is a secret and not stored; give it again",
                        shown_secret(option)
                    ));
                }
            },
        };
        arguments.push(to_argument(option));
    }
    let is_free = |option: &&&GivenOption| CHANGEABLE_OPTIONS.contains(&option.name.as_str());
    let foreign = others.iter().find(|option| !is_free(option) && !stored.contains(option));
    if let Some(option) = foreign.or(secrets.first()) {
        return Err(format!(
            "{} is no option of the job; leave it out to go on with the job, or begin another one with its URLs in \
             another file",
            if option.is_secret { shown_secret(option) } else { shown_name(option) }
        ));
    }
    arguments.extend(others.iter().filter(is_free).map(|option| to_argument(option)));
    Ok(arguments)
}

/// Returns the options of a run with absolute file names for `--events`, `--stderr`, `--trace` and
/// `--trace-ascii`, which a job does not store. The user gave these names relative to the current
/// directory, but a run that continues a job changes to the directory of the job.
///
/// # Errors
/// The working directory is unknown.
pub(super) fn with_absolute_files(given: &[GivenOption]) -> std::io::Result<Vec<GivenOption>> {
    let absolute = |option: &GivenOption| {
        let names_file = ["events", "stderr", "trace", "trace-ascii"].contains(&option.name.as_str());
        let is_stream = |value: &[u8]| [&b"-"[..], b"%"].contains(&value) || value.iter().all(u8::is_ascii_digit);
        let value = match option.value.as_deref().filter(|value| names_file && !is_stream(value)) {
            Some(name) => Some(std::path::absolute(os_str(name))?.into_os_string().into_vec()),
            None => option.value.clone(),
        };
        Ok(GivenOption { value, ..option.clone() })
    };
    given.iter().map(absolute).collect()
}

/// Returns true if two secrets belong to the same option and have the same name, or both have no
/// name. The name of a secret is its public part: for `-H`, the name of the header field.
fn is_same_secret(a: &GivenOption, b: &GivenOption) -> bool {
    (&a.name, &a.secret_name) == (&b.name, &b.secret_name)
}

fn shown_secret(option: &GivenOption) -> String {
    match &option.secret_name {
        Some(secret_name) => format!("--{} '{}'", option.name, crate::usage_error::printable(secret_name.as_bytes())),
        None => format!("--{}", option.name),
    }
}

fn to_argument(option: &GivenOption) -> OsString {
    let name = option.name.as_str();
    OsString::from_vec(match (&option.value, option.is_on) {
        (_, false) => format!("--no-{name}").into_bytes(),
        (None, true) => format!("--{name}").into_bytes(),
        (Some(value), true) if name == URL && value.first() != Some(&b'-') => value.clone(),
        (Some(value), true) => [format!("--{name}=").as_bytes(), value].concat(),
    })
}

/// Returns the difference between the stored command line and the command line of this run, as a
/// text for the user. Returns `None` if both identify the same job. The order of different options
/// within a stage does not matter.
pub(super) fn first_difference(stored: &[GivenOption], now: &[GivenOption]) -> Option<String> {
    let (stored, now) = (sorted(stored), sorted(now));
    let at = (0..stored.len().max(now.len())).find(|&at| stored.get(at) != now.get(at))?;
    Some(match (stored.get(at), now.get(at)) {
        (Some((_, old)), Some((_, new))) if old.name == new.name => {
            format!("{} is {}, and was {}", shown_name(new), shown_value(new), shown_value(old))
        }
        (Some((_, old)), new) if !now.iter().any(|(_, option)| option.name == old.name) || new.is_none() => {
            format!("{} is missing, which was {}", shown_name(old), shown_value(old))
        }
        (_, Some((_, new))) => format!("{} is {}, and was not given", shown_name(new), shown_value(new)),
        (old, None) => format!("{} is missing", old.map(|(_, old)| shown_name(old)).unwrap_or_default()),
    })
}

/// Returns the options sorted by stage and name. Options with the same name keep their order.
fn sorted(command: &[GivenOption]) -> Vec<(usize, GivenOption)> {
    let mut stage = 0;
    let in_stage = command.iter().map(|option| {
        stage += usize::from(option.name == "then");
        // Another secret is no other job.
        let value = option.value.clone().filter(|_| !option.is_secret);
        (stage, GivenOption { value, ..option.clone() })
    });
    let mut all: Vec<_> = in_stage.collect();
    all.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
    all
}

fn shown_name(option: &GivenOption) -> String {
    match option.name.as_str() {
        URL => "the URL".to_owned(),
        name if option.is_on => format!("--{name}"),
        name => format!("--no-{name}"),
    }
}

fn shown_value(option: &GivenOption) -> String {
    match &option.value {
        _ if option.is_secret => match &option.secret_name {
            Some(secret_name) => format!("a secret ({})", crate::usage_error::printable(secret_name.as_bytes())),
            None => "a secret".to_owned(),
        },
        Some(value) => format!("'{}'", crate::usage_error::printable(value)),
        None if option.is_on => "given".to_owned(),
        None => "turned off".to_owned(),
    }
}

/// Returns the command line as a user would write it, for messages.
pub(super) fn to_shell_text(command: &[GivenOption]) -> String {
    let word = |option: &GivenOption| {
        let word = match option.is_secret {
            true => match &option.secret_name {
                Some(secret_name) => format!("--{}={secret_name}: (secret)", option.name),
                None => format!("--{}=(secret)", option.name),
            },
            false => to_argument(option).to_string_lossy().into_owned(),
        };
        let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=./:@%+,".contains(&byte));
        match is_plain && !word.is_empty() {
            true => word,
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    };
    command.iter().map(word).fold("haul".to_owned(), |line, word| format!("{line} {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Vec<GivenOption> {
        let words = words.iter().map(|word| OsString::from(*word));
        let parsed =
            crate::parse::parse_recorded(words, &mut crate::file_and_environment_access::SystemFilesAndEnvironment);
        parsed.unwrap().given.unwrap()
    }

    fn differ(old: &[&str], new: &[&str]) -> Option<String> {
        first_difference(&unchangeable_options(&command(old)), &unchangeable_options(&command(new)))
    }

    #[test]
    fn limits_verbosity_and_order_may_differ_between_runs() {
        let old = ["--job", "f", "http://h/[1-3]", "--jsonl", "--rate", "5/s", "-v"];
        assert_eq!(differ(&old, &["--jsonl", "-s", "--parallel-max", "3", "--job=g", "http://h/[1-3]"]), None);
    }

    #[test]
    fn command_line_difference_names_the_option() {
        let old = ["--job", "f", "http://h/", "-o", "a"];
        let text = differ(&old, &["--job", "f", "http://h/", "-o", "b"]).unwrap();
        assert_eq!(text, "--output is 'b', and was 'a'");
        assert_eq!(differ(&old, &["http://h/"]).unwrap(), "--output is missing, which was 'a'");
        assert_eq!(differ(&["http://h/"], &["http://h/", "--jsonl"]).unwrap(), "--jsonl is given, and was not given");
        assert_eq!(differ(&["http://h/1"], &["http://h/2"]).unwrap(), "the URL is 'http://h/2', and was 'http://h/1'");
        assert!(differ(&["http://h/", "--no-location"], &["http://h/", "--location"]).is_some());
    }

    #[test]
    fn stored_command_has_no_secrets() {
        let given = command(&["-u", "me:pw", "-H", "Authorization: tok", "-H", "Accept: x", "http://h/"]);
        let stored = to_json(&unchangeable_options(&given));
        assert!(!stored.contains("pw") && !stored.contains("tok") && stored.contains("Accept: x"), "{stored}");
        let read = from_json(&stored).unwrap();
        assert_eq!(first_difference(&read, &unchangeable_options(&given)), None);
        assert_eq!(
            first_difference(
                &read,
                &unchangeable_options(&command(&[
                    "-u",
                    "you:other",
                    "-H",
                    "Authorization: x",
                    "-H",
                    "Accept: x",
                    "http://h/"
                ]))
            ),
            None
        );
    }

    #[test]
    fn continued_job_uses_secrets_of_new_run() {
        let stored = unchangeable_options(&command(&[
            "-u",
            "me:pw",
            "http://h/",
            "--extract",
            "x",
            "--then",
            "http://i/{}",
            "-u",
            "b:c",
        ]));
        let given = command(&["--job", "f", "-u", "me:new", "--rate", "5/s", "-u", "b:new"]);
        assert!(
            has_only_changeable_options(&given) && !has_only_changeable_options(&command(&["--job", "f", "--jsonl"]))
        );
        let words = continued_command_line(&stored, &given).unwrap();
        let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(
            words,
            [
                "--user=me:new",
                "http://h/",
                "--extract=x",
                "--then=http://i/{}",
                "--user=b:new",
                "--job=f",
                "--rate=5/s"
            ]
        );
        assert_eq!(
            continued_command_line(&stored, &command(&["--job", "f"])).unwrap_err().split(',').next().unwrap(),
            "the job was begun with --user"
        );
    }

    #[test]
    fn secret_header_fields_of_jobs_match_by_name() {
        let stored = unchangeable_options(&command(&["-H", "Authorization: a", "-H", "X-Api-Key: b", "http://h/"]));
        let stored = from_json(&to_json(&stored)).unwrap();
        let given = command(&["-H", "x-api-key: key", "-H", "authorization: tok"]);
        let words = continued_command_line(&stored, &given).unwrap();
        assert_eq!(words, ["--header=authorization: tok", "--header=x-api-key: key", "http://h/"]);
        let error = continued_command_line(&stored, &command(&["-H", "X-Api-Key: key"])).unwrap_err();
        assert!(error.contains("begun with --header 'authorization', whose value is a secret"), "{error}");
        let given = command(&["-H", "X-Api-Key: k", "-H", "Authorization: t", "-H", "Cookie: a=b"]);
        let error = continued_command_line(&stored, &given).unwrap_err();
        assert!(error.contains("--header 'cookie' is no option of the job"), "{error}");
        let other = unchangeable_options(&command(&["-H", "Authorization: a", "-H", "Cookie: b", "http://h/"]));
        assert_eq!(
            first_difference(&stored, &other).unwrap(),
            "--header is a secret (cookie), and was a secret (x-api-key)"
        );
    }

    #[test]
    fn run_of_a_job_may_repeat_stored_options() {
        let stored = unchangeable_options(&command(&["--jsonl", "-o", "a", "http://h/"]));
        let words = continued_command_line(&stored, &command(&["--job", "f", "-o", "a", "-v"])).unwrap();
        assert_eq!(words, ["--jsonl", "--output=a", "http://h/", "--job=f", "--verbose"]);
        let error = continued_command_line(&stored, &command(&["--job", "f", "--csv"])).unwrap_err();
        assert!(error.contains("--csv is no option of the job; leave it out"), "{error}");
    }

    #[test]
    fn file_names_not_stored_in_jobs_become_absolute() {
        let given = command(&["--job", "f", "--events", "e", "--trace", "-", "--stderr", "/log"]);
        let values = with_absolute_files(&given).unwrap().into_iter().map(|option| option.value.unwrap());
        let here = std::env::current_dir().unwrap().join("e").into_os_string().into_vec();
        assert_eq!(values.collect::<Vec<_>>(), [b"f".to_vec(), here, b"-".to_vec(), b"/log".to_vec()]);
    }

    #[test]
    fn url_with_a_password_is_not_stored() {
        let given = unchangeable_options(&command(&["http://u:p@h/"]));
        assert_eq!(first_unstorable(&given).unwrap().0.name, URL);
        assert_eq!(first_unstorable(&unchangeable_options(&command(&["http://h/a@b"]))), None);
    }
}
