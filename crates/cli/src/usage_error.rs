//! The errors in a command line, with curl's wording.
//!
//! A flag returns only the reason why it refuses a value ([`UsageErrorReason`]). The parser adds
//! the position ([`ArgPosition`]), an option of the command line or a line of a config file. Both
//! form a [`UsageError`].
//!
//! ```
//! use haul_cli::usage_error::{ArgPosition, UsageErrorReason, UsageError};
//!
//! let error = UsageError::new(ArgPosition::Option("--foo".into()), UsageErrorReason::Unknown);
//! assert_eq!(
//!     error.to_string(),
//!     "haul: there is no option --foo\nhaul: 'haul --help all' lists the options",
//! );
//! assert_eq!(error.exit_code(), 2);
//! ```

use std::fmt;
use std::path::{Path, PathBuf};

use haul_policy::secret_fields::without_userinfo;
use haul_policy::terminal_text::is_unsafe_on_terminal;

use crate::config_file::DEPTH_MAX;
use crate::program_persona::{ProgramPersona, VERSION};
use crate::wrap_message::{columns, wrapped};
use crate::{did_you_mean, help};

/// The maximum length, in bytes, of a user's text that an error message quotes.
const PRINTABLE_MAX: usize = 120;

/// The reason why an option, or the command line as a whole, is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageErrorReason {
    /// Neither haul nor curl has such an option.
    Unknown,
    /// The option needs a value, but none follows.
    RequiresParameter,
    /// A value is attached to an option that takes none, as in `--silent=yes`.
    TrailingGarbage,
    /// `--no-` precedes the name of an option that takes a value or cannot be negated.
    NotReversible,
    /// The value of the option is not a number.
    BadNumber,
    /// The value of the option is a negative number.
    Negative,
    /// The value is a number that is too large for the option.
    TooLarge,
    /// The value of the option is empty.
    Blank,
    /// The value of the option is not valid UTF-8.
    NotUtf8,
    /// `--next` follows a group of options that contains no URL.
    MissingUrlBeforeNext,
    /// The subject of `--help` begins with a dash, but is not an option. Occurs only if haul acts
    /// as curl.
    NoSuchHelp,
    /// A group of options (`--next` separates groups) contains no URL.
    NoUrl,
    /// The command line is empty. curl prints only the hint about `--help` in this case.
    NothingAsked,
    /// Config files include each other in a loop, or are nested too deeply.
    TooDeep,
    /// The value of `--resolve` or `--connect-to` is malformed. The text shows the expected form.
    /// The exit code is 49, as in curl.
    BadSyntax(&'static str),
    /// The value of a proxy option is invalid. As in curl, which notices this only when it
    /// connects, the exit code differs from the code of other usage errors.
    Proxy {
        /// curl's exit code: 5, or 7 for an unknown scheme.
        code: u8,
        /// The error message. It does not contain the value, which may include a password.
        text: String,
    },
    /// The scheme of `--proto-default` is not supported.
    Protocol,
    /// haul does not support this option of curl. The text gives the reason.
    Refused(&'static str),
    /// The value of an output option is the name of a directory, not of a file, such as `dir/` or
    /// `..`. As in curl, which notices this when it opens the file, the exit code is 23.
    Directory,
    /// The name of an output file contains a placeholder for a glob that does not exist.
    GlobName {
        /// The name of the output file as the user gave it.
        template: String,
        /// The offset in `template` of the first byte after the invalid placeholder.
        position: usize,
    },
    /// `-F` names an encoder that does not exist. As in curl, which notices this when it builds the
    /// form, the exit code is 43.
    Encoder,
    /// Two options imply different request methods. The text names both methods. If haul acts as
    /// curl, this error is printed in the form of a warning, as curl prints it, but haul still
    /// ends.
    Methods(String),
    /// The option is used wrongly. The text explains why.
    BadUse(String),
    /// A file that an option names cannot be read.
    Read {
        /// The name of the file as the user gave it.
        path: String,
        /// The text of the error with which the system call failed.
        error: String,
    },
}

impl UsageErrorReason {
    /// Returns a [`UsageErrorReason::BadUse`] whose message is `text`.
    pub fn bad_use(text: impl Into<String>) -> Self {
        UsageErrorReason::BadUse(text.into())
    }

    /// Returns a [`UsageErrorReason::Read`] for a file that could not be read because of `error`.
    pub fn unreadable_file(path: &std::path::Path, error: &std::io::Error) -> Self {
        UsageErrorReason::Read { path: printable(path.as_os_str().as_encoded_bytes()), error: error.to_string() }
    }
}

impl fmt::Display for UsageErrorReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UsageErrorReason::Unknown => f.write_str("is unknown"),
            UsageErrorReason::RequiresParameter => f.write_str("requires parameter"),
            UsageErrorReason::TrailingGarbage => f.write_str("had unsupported trailing garbage"),
            UsageErrorReason::NotReversible => f.write_str("the given option cannot be reversed with a --no- prefix"),
            UsageErrorReason::BadNumber => f.write_str("expected a proper numerical parameter"),
            UsageErrorReason::Negative => f.write_str("expected a positive numerical parameter"),
            UsageErrorReason::TooLarge => f.write_str("too large number"),
            UsageErrorReason::Blank => f.write_str("blank argument where content is expected"),
            UsageErrorReason::NotUtf8 => f.write_str("the value is not valid UTF-8"),
            UsageErrorReason::MissingUrlBeforeNext => f.write_str("missing URL before --next"),
            UsageErrorReason::NoSuchHelp => f.write_str("Incorrect option name to show help for, see curl -h"),
            UsageErrorReason::NoUrl | UsageErrorReason::NothingAsked => f.write_str("(2) no URL specified"),
            UsageErrorReason::TooDeep => f.write_str("config files include each other too deeply"),
            UsageErrorReason::Encoder => f.write_str("is badly used here (no such \";encoder=\")"),
            UsageErrorReason::BadSyntax(form) => write!(f, "is badly used here (expected {form})"),
            UsageErrorReason::Directory => {
                f.write_str("is badly used here (names a directory; -O --output-dir DIRECTORY)")
            }
            UsageErrorReason::Protocol => f.write_str("a specified protocol is unsupported, haul has http and https"),
            UsageErrorReason::Refused(why) => write!(f, "is not supported by haul {VERSION} ({why})"),
            UsageErrorReason::GlobName { template, position } => {
                write!(f, "is badly used here (no glob exists with the name before byte {position} of {template})")
            }
            UsageErrorReason::Methods(text) => f.write_str(text),
            UsageErrorReason::BadUse(text) | UsageErrorReason::Proxy { text, .. } => {
                write!(f, "is badly used here ({text})")
            }
            UsageErrorReason::Read { .. } => f.write_str("error encountered when reading a file"),
        }
    }
}

/// The position of an error: an option of the command line, or a line of a config file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgPosition {
    /// The error concerns the command line as a whole.
    Whole,
    /// The error concerns this option of the command line, as written. Its value is left out,
    /// because it may be a secret.
    Option(String),
    /// The error concerns one line of a config file.
    Config {
        /// The option that named the config file; `None` for the default config file.
        by: Option<Box<str>>,
        /// The name of the config file as the user gave it; `<stdin>` for `-`.
        file: Box<str>,
        /// The number of the line in the config file, from 1.
        line: u64,
        /// The option in the line as written, without its value.
        option: String,
    },
}

/// An error that prevents a command line from being run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError {
    position: ArgPosition,
    reason: UsageErrorReason,
    /// The file of `--stderr` to which the message is written; `None` for standard error.
    stderr: Option<Box<PathBuf>>,
}

impl UsageError {
    /// Creates a usage error from a reason and the position of the option.
    pub fn new(position: ArgPosition, reason: UsageErrorReason) -> Self {
        UsageError { position, reason, stderr: None }
    }

    /// Returns this error, changed so that its message is written to the file `stderr`. `stderr` is
    /// `None` if the options before the error do not contain `--stderr`: the message is then
    /// written to standard error.
    pub fn written_to(self, stderr: Option<PathBuf>) -> Self {
        UsageError { stderr: stderr.map(Box::new), ..self }
    }

    /// Returns the file of `--stderr` to which the message is to be written; `None` for standard
    /// error.
    pub fn stderr(&self) -> Option<&Path> {
        self.stderr.as_ref().map(|path| path.as_path())
    }

    /// Returns the reason why the command line is refused.
    pub fn reason(&self) -> &UsageErrorReason {
        &self.reason
    }

    /// Returns the exit code of the process, which is one of curl's: 1 (`UNSUPPORTED_PROTOCOL`), 2
    /// (`FAILED_INIT`), 5 (`COULDNT_RESOLVE_PROXY`), 7 (`COULDNT_CONNECT`), 23 (`WRITE_ERROR`), 26
    /// (`READ_ERROR`), 43 (`BAD_FUNCTION_ARGUMENT`) or 49 (`SETOPT_OPTION_SYNTAX`).
    pub fn exit_code(&self) -> u8 {
        match self.reason {
            UsageErrorReason::NoSuchHelp => 0,
            UsageErrorReason::Protocol => 1,
            UsageErrorReason::Proxy { code, .. } => code,
            UsageErrorReason::Directory => 23,
            UsageErrorReason::Read { .. } => 26,
            UsageErrorReason::GlobName { .. } | UsageErrorReason::Encoder => 43,
            UsageErrorReason::BadSyntax(_) => 49,
            _ => 2,
        }
    }
}

impl UsageError {
    /// Returns the complete error message. Each of its lines begins with the program's name. The
    /// last line is a hint about `--help`.
    pub fn message_for(&self, program: &str) -> String {
        let is_curl = program == ProgramPersona::Curl.name();
        match &self.reason {
            UsageErrorReason::NoSuchHelp => self.reason.to_string(),
            UsageErrorReason::NothingAsked => help_hint(program),
            UsageErrorReason::Methods(text) if is_curl => wrapped("Warning: ", text, columns()),
            // The error appears when the output is opened, and curl prints no hint at its help.
            UsageErrorReason::GlobName { template, position } if is_curl => {
                let what = format!("no glob exists with this name in position {position}");
                format!("{program}: ({}) {}", self.exit_code(), mark_position(&what, *position, template))
            }
            _ => {
                let outer = self.config_message().filter(|_| is_curl).map(|outer| format!("{outer}\n"));
                let hint = if is_curl { help_hint(program) } else { self.plain_hint() };
                format!("{}\n{}{hint}", self.message_without_hint(program), outer.unwrap_or_default())
            }
        }
    }

    /// Returns the error message without the hint about `--help`.
    pub fn message_without_hint(&self, program: &str) -> String {
        let is_curl = program == ProgramPersona::Curl.name();
        let is_config = matches!(&self.position, ArgPosition::Option(option) if option == "-K" || option == "--config");
        if !is_curl {
            return self.plain_message(program);
        }
        let reason = self.reason.to_string();
        let badly = || "is badly used here".to_owned();
        // curl says what is wrong before it says where.
        let (before, reason) = match &self.reason {
            UsageErrorReason::Read { path, .. } if is_config => (format!("cannot read config from '{path}'"), reason),
            UsageErrorReason::Read { .. } if self.is_url() => (String::new(), reason),
            UsageErrorReason::Read { path, error } => (format!("cannot read '{path}': {error}"), reason),
            UsageErrorReason::BadUse(text) if self.position != ArgPosition::Whole => (text.clone(), badly()),
            UsageErrorReason::TooDeep => (format!("Max config file recursion level reached ({DEPTH_MAX})"), badly()),
            UsageErrorReason::MissingUrlBeforeNext if self.position != ArgPosition::Whole => (reason, badly()),
            _ => (String::new(), reason),
        };
        let mut said = match before.as_str() {
            "" => String::new(),
            before => format!("{program}: {before}\n"),
        };
        let where_and_why = match &self.position {
            ArgPosition::Whole => reason,
            ArgPosition::Option(option) => format!("option {option}: {reason}"),
            ArgPosition::Config { file, line, option, .. } => {
                format!("{file}:{line} config file option '{option}' {reason}")
            }
        };
        said.push_str(&format!("{program}: {where_and_why}"));
        said
    }

    /// Returns true if the position of the error is a URL or the option `--url`.
    fn is_url(&self) -> bool {
        matches!(&self.position, ArgPosition::Option(option) if option == "--url" || !option.starts_with('-'))
    }

    /// Returns haul's own error message as one line: the position, the reason, and a suggestion if
    /// one is known.
    fn plain_message(&self, program: &str) -> String {
        let option = match &self.position {
            ArgPosition::Whole => None,
            ArgPosition::Option(option) | ArgPosition::Config { option, .. } => Some(option.as_str()),
        };
        let file = match &self.position {
            ArgPosition::Config { file, line, .. } => format!("{file}:{line}: "),
            _ => String::new(),
        };
        let reason = match (&self.reason, option) {
            (UsageErrorReason::Unknown, Some(option)) => {
                let meant = did_you_mean::similar_options(option.trim_start_matches('-'));
                let question = match meant.is_empty() {
                    true => String::new(),
                    false => format!("; did you mean {}?", meant.join(" or ")),
                };
                return format!("{program}: {file}there is no option {option}{question}");
            }
            (UsageErrorReason::Read { path, error }, _) if error.starts_with("No such file") => {
                format!("cannot read '{path}': {error}; check the name of the file")
            }
            (UsageErrorReason::Read { path, error }, _) => format!("cannot read '{path}': {error}"),
            (UsageErrorReason::BadUse(text) | UsageErrorReason::Proxy { text, .. }, _) => text.clone(),
            (UsageErrorReason::RequiresParameter, _) => "needs a value".to_owned(),
            (UsageErrorReason::TrailingGarbage, _) => "takes no value".to_owned(),
            (UsageErrorReason::NotReversible, _) => "has no form with --no-".to_owned(),
            (UsageErrorReason::BadNumber, _) => "the value is not a number".to_owned(),
            (UsageErrorReason::Negative, _) => "the value must be a positive number".to_owned(),
            (UsageErrorReason::TooLarge, _) => "the number is too large".to_owned(),
            (UsageErrorReason::Blank, _) => "the value is empty".to_owned(),
            (UsageErrorReason::BadSyntax(form), _) => format!("expected {form}"),
            (UsageErrorReason::Encoder, _) => "no such \";encoder=\"".to_owned(),
            (UsageErrorReason::Directory, _) => "names a directory; use -O --output-dir DIRECTORY".to_owned(),
            (UsageErrorReason::GlobName { template, position }, _) => {
                format!("no glob exists with the name before byte {position} of {template}")
            }
            (reason, _) => reason.to_string(),
        };
        match option.filter(|option| !option.is_empty()) {
            Some(option) => format!("{program}: {file}option {option}: {reason}"),
            None => format!("{program}: {file}{reason}"),
        }
    }

    /// Returns the last line of an error message in haul's wording (not curl's). Usually this is an
    /// example of the option's use, and the command that prints the option's help.
    fn plain_hint(&self) -> String {
        let option = match &self.position {
            ArgPosition::Option(option) | ArgPosition::Config { option, .. } => option.as_str(),
            ArgPosition::Whole => "",
        };
        match (&self.reason, help::flag_of(option)) {
            (UsageErrorReason::Unknown, _) => "haul: 'haul --help all' lists the options".to_owned(),
            (UsageErrorReason::NoUrl, _) => {
                "haul: give a URL, such as https://example.com/, or a list of URLs with --input-file".to_owned()
            }
            (_, Some(flag)) => {
                let spec = flag.spec();
                format!("haul: for example: {}; more by 'haul --help --{}'", spec.example, spec.long)
            }
            (_, None) => help_hint("haul"),
        }
    }

    /// Returns the line that curl adds to the message for an error in a config file. It names the
    /// option that named the config file. Returns `None` for any other error, and for the default
    /// config file.
    fn config_message(&self) -> Option<String> {
        let ArgPosition::Config { by: Some(by), .. } = &self.position else { return None };
        let reason = match &self.reason {
            UsageErrorReason::Unknown => "found an unknown config option".to_owned(),
            UsageErrorReason::BadUse(_) | UsageErrorReason::TooDeep => "is badly used here".to_owned(),
            reason => reason.to_string(),
        };
        Some(format!("{}: option {by}: {reason}", ProgramPersona::Curl.name()))
    }
}

/// Returns the hint about `--help`, which is the last line of an error message.
fn help_hint(program: &str) -> String {
    let manual = if program == ProgramPersona::Curl.name() { " or 'curl --manual'" } else { "" };
    format!("{program}: try '{program} --help'{manual} for more information")
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message_for("haul"))
    }
}

impl std::error::Error for UsageError {}

/// Converts bytes to text that is safe to print on a terminal: replaces control characters, and
/// truncates the text to `PRINTABLE_MAX` bytes.
pub fn printable(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(PRINTABLE_MAX)];
    let mut text = remove_control_characters(&String::from_utf8_lossy(cut));
    if cut.len() < bytes.len() {
        text.push_str("...");
    }
    text
}

/// Replaces control characters, and characters that change the direction of text, by `?`, so that
/// the text is safe to print on a terminal.
pub fn remove_control_characters(text: &str) -> String {
    text.chars().map(|c| if is_unsafe_on_terminal(c) { '?' } else { c }).collect()
}

/// The maximum length, in characters, of a message from [`mark_position`], as in curl.
const MARKED_MAX: usize = 511;

/// Returns a message of three lines: `what`, then `text`, then a `^` below the character of `text`
/// with the number `position`, counted from 1. The message is cut off after `MARKED_MAX`
/// characters.
pub fn mark_position(what: &str, position: usize, text: &str) -> String {
    let pointed =
        format!("{what}:\n{}\n{}^", remove_control_characters(text), " ".repeat(position.saturating_sub(1).max(1)));
    pointed.chars().take(MARKED_MAX).collect()
}

/// Joins the lines of a text to one line, separated by blanks, and replaces control characters.
pub fn one_line(text: &str) -> String {
    let lines: Vec<String> =
        text.lines().map(|line| remove_control_characters(line.trim())).filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// Returns a printable form of an invalid URL. Text that may be meant as user and password is
/// removed by [`without_userinfo`].
pub fn shown_url(url: &str) -> String {
    remove_control_characters(&without_userinfo(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_error_names_the_file_and_exits_26() {
        let io = std::io::Error::from(std::io::ErrorKind::NotFound);
        let error = UsageError::new(
            ArgPosition::Option("-K".into()),
            UsageErrorReason::unreadable_file(std::path::Path::new("/no/such"), &io),
        );
        assert_eq!(error.exit_code(), 26);
        let text = error.to_string();
        assert!(text.starts_with("haul: option -K: cannot read '/no/such': "), "{text}");
        let curls = error.message_for("curl");
        assert!(curls.contains("curl: option -K: error encountered when reading a file"), "{curls}");
    }

    #[test]
    fn usage_error_messages_name_the_remedy() {
        let message = |option: &str, reason| UsageError::new(ArgPosition::Option(option.into()), reason).to_string();
        let unknown = message("--max-tim", UsageErrorReason::Unknown);
        assert_eq!(
            unknown,
            "haul: there is no option --max-tim; did you mean --max-time?\nhaul: 'haul --help all' lists the options"
        );
        let number = message("-m", UsageErrorReason::BadNumber);
        let begin = "haul: option -m: the value is not a number\nhaul: for example: haul -m ";
        assert!(number.starts_with(begin) && number.ends_with("; more by 'haul --help --max-time'"), "{number}");
        let position = ArgPosition::Config { by: None, file: "c".into(), line: 3, option: "ouput".to_owned() };
        let config = UsageError::new(position, UsageErrorReason::Unknown).to_string();
        assert!(config.starts_with("haul: c:3: there is no option ouput; did you mean --output?"), "{config}");
    }

    #[test]
    fn control_characters_are_replaced_in_messages() {
        assert_eq!(printable(b"a\x1b[31m\xff"), "a?[31m\u{fffd}");
        assert_eq!(printable(&[b'x'; 500]).len(), PRINTABLE_MAX + 3);
        assert_eq!(one_line("a:\n    (\n    ^\n\x1berror\n"), "a: ( ^ ?error");
    }

    #[test]
    fn shown_url_hides_possible_passwords() {
        assert_eq!(shown_url("http://u:p?q@h:x/\x1b"), "http://***@h:x/?");
    }
}
