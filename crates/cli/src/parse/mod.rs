//! Parses the arguments into [`ParsedArgs`], with curl's grammar.
//!
//! `-abc` bundles letters. `-ofile` and `-o file` are the same, and so are `--opt value` and
//! `--opt=value`. `--no-opt` turns a switch off, `--` ends the options, and everything else is a
//! URL. Long names must be complete: curl no longer accepts unique prefixes because new options
//! made them ambiguous. A config file (`-K`) is read as if its lines stood on the command line.
//!
//! ```
//! use haul_cli::{file_and_environment_access::SystemFilesAndEnvironment, parse::parse};
//!
//! let args = ["-sSo", "out", "http://example.com/", "--no-location"].map(Into::into);
//! let parsed = parse(args, &mut SystemFilesAndEnvironment).unwrap();
//! assert!(parsed.global.silent && parsed.global.show_error);
//! assert!(!parsed.groups[0].stages[0].transfer.options.redirects.follow);
//! ```
//!
//! No crate for argument parsing is used. In curl's grammar `-o=x` names the file `=x`, options
//! that only curl has need their own message, and config files contain the same options.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use haul_policy::file_names_by_system::OsFamily;

use crate::config_file::{ConfigFileEntry, ConfigFileError, ConfigFileReader, DEPTH_MAX};
use crate::expand_variables::{self, OptionVariables, VariableAssignment, VariableSource};
use crate::file_and_environment_access::FilesAndEnvironment;
use crate::flag_value::FlagValue;
use crate::flags::{self, Flag, FlagSyntax, unsupported};
use crate::given_option::{GivenOption, URL};
use crate::home_files::{account_home, curlrc_paths};
use crate::parsed_args::{InfoOption, ParsedArgs};
use crate::program_persona::ProgramPersona;
use crate::secret_arguments::{self, SecretArgumentPart};
use crate::system::os_text::OsStringExt;
use crate::url_sources;
use crate::usage_error::{ArgPosition, UsageError, UsageErrorReason, printable};

mod stdin_config_end;

/// Parses a command line of haul itself, not of haul acting as curl. The arguments do not include
/// the program's name.
pub fn parse<I>(args: I, files: &mut dyn FilesAndEnvironment) -> Result<ParsedArgs, UsageError>
where
    I: IntoIterator<Item = OsString>,
{
    parse_as(ProgramPersona::Haul, args, files)
}

/// Parses the default config file (`.curlrc` if haul acts as curl), and then the command line. The
/// arguments do not include the program's name.
pub fn parse_as<I>(
    persona: ProgramPersona,
    args: I,
    files: &mut dyn FilesAndEnvironment,
) -> Result<ParsedArgs, UsageError>
where
    I: IntoIterator<Item = OsString>,
{
    parse_into(ParsedArgs::with_defaults(persona), args, files)
}

/// Parses a command line of haul itself, not of haul acting as curl, and stores its options as they
/// were given ([`ParsedArgs::given`]).
pub fn parse_recorded<I>(args: I, files: &mut dyn FilesAndEnvironment) -> Result<ParsedArgs, UsageError>
where
    I: IntoIterator<Item = OsString>,
{
    let parsed = ParsedArgs::with_defaults(ProgramPersona::Haul);
    parse_into(ParsedArgs { given: Some(Vec::new()), ..parsed }, args, files)
}

fn parse_into<I>(parsed: ParsedArgs, args: I, files: &mut dyn FilesAndEnvironment) -> Result<ParsedArgs, UsageError>
where
    I: IntoIterator<Item = OsString>,
{
    let persona = parsed.global.persona;
    let mut parser = CommandLineParser {
        args: parsed,
        files,
        depth: 0,
        opened_by: None,
        variables: OptionVariables::default(),
        secret: None,
    };
    let read = parser.parse_command_line(persona, args);
    // curl writes to the file of --stderr from then on.
    let stderr = parser.args.global.stderr.clone().filter(|_| persona.is_curl());
    read.map(|()| parser.args).map_err(|error| error.written_to(stderr))
}

/// Returns true if the first argument of the command line is `-q` or `--disable`, which disables
/// the default config file. As in curl, these have no such effect in any other position.
fn disables_curlrc(first: &OsStr) -> bool {
    first == "--disable" || first.as_encoded_bytes().starts_with(b"-q")
}

/// Returns true for a word of the form `session=/dev/fd/N`, which haul ignores. OpenBSD's pkg_add
/// passes it as the value of `-S`, an option of ftp(1). haul's `-S` takes no value, so that haul
/// would fetch the word as a URL. No host can have this name. Ignoring the word lets pkg_add call
/// `haul -L -s -q -N`.
fn is_session_option(word: &str) -> bool {
    let number = word.strip_prefix("session=/dev/fd/");
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

struct CommandLineParser<'f> {
    args: ParsedArgs,
    files: &'f mut dyn FilesAndEnvironment,
    /// The number of config files that are open. Each one after the first is named by a `-K` in the
    /// one before it.
    depth: usize,
    /// The option that named the outermost open config file; `None` for the default config file.
    opened_by: Option<Box<str>>,
    variables: OptionVariables,
    /// The length in bytes of the last option's value, if this value is a secret and stands on the
    /// command line. `None` otherwise.
    secret: Option<usize>,
}

/// An error in an option on the command line or in a config file.
enum OptionError {
    Here {
        shown: Vec<u8>,
        reason: UsageErrorReason,
    },
    /// An error inside the config file that the option names.
    Deeper(UsageError),
}

impl OptionError {
    fn at_position(self, position: impl FnOnce(&[u8]) -> ArgPosition) -> UsageError {
        match self {
            OptionError::Here { shown, reason } => UsageError::new(position(&shown), reason),
            OptionError::Deeper(error) => error,
        }
    }
}

impl CommandLineParser<'_> {
    /// Reads the default config file (`.curlrc` if haul acts as curl), and then the words of the
    /// command line.
    fn parse_command_line<I>(&mut self, persona: ProgramPersona, args: I) -> Result<(), UsageError>
    where
        I: IntoIterator<Item = OsString>,
    {
        let mut args = args.into_iter().peekable();
        if persona.is_curl() && !args.peek().is_some_and(|first| disables_curlrc(first)) {
            self.read_curlrc()?;
            self.depth = 0;
        }
        let mut options = true;
        let mut number = 0;
        while let Some(arg) = args.next() {
            number += 1;
            let written = arg.as_encoded_bytes();
            if !options || written.first() != Some(&b'-') {
                self.add_url(written)?;
            } else if written == b"--" {
                options = false;
            } else {
                let next = args.peek().map(|next| next.as_encoded_bytes());
                let used = self
                    .parse_option(written, next)
                    .map_err(|refusal| refusal.at_position(|shown| ArgPosition::Option(printable(shown))))?;
                if used {
                    args.next();
                    number += 1;
                }
                if let Some(length) = self.secret.take() {
                    self.args.secrets.push(SecretArgumentPart { argument: number, length });
                }
                if self.args.info.is_some() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn add_url(&mut self, written: &[u8]) -> Result<(), UsageError> {
        // curl shows the argument itself, as if it were an option.
        let is_curl = self.args.global.persona.is_curl();
        let position = || ArgPosition::Option(if is_curl { printable(written) } else { "--url".to_owned() });
        let url = &*url_sources::to_text(written);
        if url.is_empty() && self.args.global.persona.is_curl() {
            return Err(UsageError::new(position(), UsageErrorReason::Blank));
        }
        if self.args.global.persona == ProgramPersona::Haul && is_session_option(url) {
            return Ok(());
        }
        // To curl an argument is the value of a --url.
        if let Some(list) = url.strip_prefix('@').filter(|_| self.args.global.persona.is_curl()) {
            return self.read_url_file(Path::new(list)).map_err(|reason| UsageError::new(position(), reason));
        }
        self.args.group().urls.push_url(url);
        self.record_option(URL, true, Some(url.as_bytes()));
        Ok(())
    }

    /// Records an option of the command line as it was given, if a job needs the options. Options
    /// in config files are not recorded; the config file is.
    fn record_option(&mut self, name: &str, is_on: bool, value: Option<&[u8]>) {
        if let Some(given) = self.args.given.as_mut().filter(|_| self.depth == 0) {
            given.push(GivenOption::new(name, is_on, value));
        }
    }

    /// Reads the file of URLs that curl's `--url @FILE` names. As in curl, it is read immediately
    /// and has one URL per line, in which brackets and braces are literal.
    fn read_url_file(&mut self, path: &Path) -> Result<(), UsageErrorReason> {
        let unreadable = |error: &std::io::Error| UsageErrorReason::unreadable_file(path, error);
        let mut source = BufReader::new(self.files.open(path).map_err(|error| unreadable(&error))?);
        let mut line = Vec::new();
        while source.read_until(b'\n', &mut line).map_err(|error| unreadable(&error))? > 0 {
            if let Some(url) = url_sources::url_in_line(&line) {
                self.args.group().urls.push_listed(&url_sources::to_text(url));
            }
            line.clear();
        }
        Ok(())
    }

    /// Applies one argument of the command line that begins with a dash. `next` is the following
    /// argument. Returns `true` if `next` was used as the value of the option.
    fn parse_option(&mut self, written: &[u8], next: Option<&[u8]>) -> Result<bool, OptionError> {
        match written.strip_prefix(b"--") {
            Some(long) => self.parse_long_option(written, long, next),
            None => self.parse_short_options(written, next),
        }
    }

    /// Applies a long option. `long` is `written` without its dashes; error messages show
    /// `written`. Returns `true` if the following argument, `next`, was used as the value.
    fn parse_long_option(&mut self, written: &[u8], long: &[u8], next: Option<&[u8]>) -> Result<bool, OptionError> {
        let (name, attached) = match long.iter().position(|&byte| byte == b'=') {
            Some(at) => (&long[..at], Some(&long[at + 1..])),
            None => (long, None),
        };
        let shown = &written[..written.len() - long.len() + name.len()];
        let here = |reason| OptionError::Here { shown: shown.to_vec(), reason };
        if let Some(name) = name.strip_prefix(b"expand-") {
            let (flag, _) = find_flag(name).map_err(here)?;
            if !matches!(flag.spec().syntax, FlagSyntax::Value(_)) {
                return Err(here(UsageErrorReason::bad_use("only an option with a value can be expanded")));
            }
            let Some(text) = attached.or(next) else { return Err(here(UsageErrorReason::RequiresParameter)) };
            let expanded = self.variables.expand(text).map_err(here)?;
            // The command line has but the names of variables.
            let given = self.args.given.take();
            self.apply_flag(flag, true, Some(&expanded), None, shown)?;
            self.args.given = given;
            self.secret = None;
            self.record_option(&format!("expand-{}", flag.spec().long), true, Some(text));
            return Ok(attached.is_none());
        }
        // Without what haul does not have, nothing changes.
        if name.strip_prefix(b"no-").is_some_and(unsupported::is_switch) {
            return Ok(false);
        }
        let (flag, on) = find_flag(name).map_err(here)?;
        self.apply_flag(flag, on, attached, next, shown)
    }

    /// Sets the variable that `text`, the value of `--variable`, defines.
    fn assign_variable(&mut self, text: &[u8]) -> Result<(), UsageErrorReason> {
        let Some(assignment) = VariableAssignment::parse(text)? else {
            if !self.args.global.persona.is_curl() {
                return Err(UsageErrorReason::bad_use("expected NAME=text, NAME@file or %NAME"));
            }
            self.args.warn(format!("Bad --variable syntax, skipping: {}", String::from_utf8_lossy(text)));
            return Ok(());
        };
        let variable = match assignment.environment {
            true => self.files.variable(assignment.name),
            false => None,
        };
        let value = match (variable, assignment.source) {
            (Some(value), _) => value.into_vec(),
            (None, Some(VariableSource::Text(text))) => text.to_vec(),
            (None, Some(VariableSource::File(file))) => {
                let mut bytes = Vec::new();
                let path = Path::new(file);
                let read = self.files.open(path).and_then(|mut file| file.read_to_end(&mut bytes));
                read.map_err(|error| UsageErrorReason::unreadable_file(path, &error))?;
                bytes
            }
            (None, None) => {
                let name = assignment.name;
                return Err(UsageErrorReason::bad_use(format!("the environment has no variable {name}")));
            }
        };
        self.variables.set(assignment.name, expand_variables::bytes_in_range(value, assignment.range));
        Ok(())
    }

    /// Applies the option letters after one dash, such as `-sSo`. The first letter that takes a
    /// value uses the rest of the argument, or the following argument `next` if nothing is left.
    /// Returns `true` if `next` was used.
    fn parse_short_options(&mut self, written: &[u8], next: Option<&[u8]>) -> Result<bool, OptionError> {
        // A lone dash is a letter that no option has.
        for at in 1..written.len().max(2) {
            let letter = written.get(at).copied().unwrap_or(0);
            let shown = &written[..written.len().min(at + 1)];
            let Some(flag) = flags::find_short(letter) else {
                let name = unsupported::option_of_letter(letter);
                let why = name.and_then(|name| unsupported::refusal_reason(name.as_bytes()));
                let reason = why.map_or(UsageErrorReason::Unknown, UsageErrorReason::Refused);
                return Err(OptionError::Here { shown: shown.to_vec(), reason });
            };
            let rest = &written[(at + 1).min(written.len())..];
            if flag.spec().syntax.is_glued() {
                let attached = (!rest.is_empty()).then_some(rest);
                return self.apply_flag(flag, true, attached, next, shown);
            }
            let before = (letter == b'v' && at > 1).then(|| self.args.global.trace.clone());
            self.apply_flag(flag, true, None, None, shown)?;
            if let Some(trace) = before {
                self.args.global.trace = trace;
                self.args.global.trace.raise_verbosity();
            }
        }
        Ok(false)
    }

    fn apply_flag(
        &mut self,
        flag: Flag,
        on: bool,
        attached: Option<&[u8]>,
        next: Option<&[u8]>,
        shown: &[u8],
    ) -> Result<bool, OptionError> {
        let here = |reason| OptionError::Here { shown: shown.to_vec(), reason };
        let takes = flag.spec().syntax;
        let value = match (takes, attached, next) {
            // curl passes over a value that a switch does not take.
            (FlagSyntax::Switch | FlagSyntax::Once, Some(_), _) if !self.args.global.persona.is_curl() => {
                return Err(here(UsageErrorReason::TrailingGarbage));
            }
            (FlagSyntax::Switch | FlagSyntax::Once, ..) => FlagValue::Switch(on),
            (_, Some(text), _) => FlagValue::Text(text),
            (FlagSyntax::Value(name), None, Some(text)) => {
                if (name.contains("file") || name == "path") && text.len() > 1 && text[0] == b'-' {
                    let text = printable(text);
                    self.args.warn(format!("The filename argument '{text}' looks like a flag."));
                }
                FlagValue::Text(text)
            }
            (FlagSyntax::Trailing(_), None, Some(text)) => FlagValue::Text(text),
            (FlagSyntax::Value(_), None, None) => return Err(here(UsageErrorReason::RequiresParameter)),
            (FlagSyntax::Optional(_) | FlagSyntax::Trailing(_), None, _) => FlagValue::Absent,
        };
        if let FlagValue::Text(text @ [0xe2, 0x80, 0x80..=0xbf, ..]) = value {
            let text = String::from_utf8_lossy(text);
            self.args.warn(format!("The argument '{text}' starts with a Unicode character. Maybe ASCII was intended?"));
        }
        if let FlagValue::Text(text) = value
            && self.depth == 0
            && secret_arguments::is_secret(flag.spec().long, text)
        {
            self.secret = Some(text.len());
        }
        match value {
            FlagValue::Switch(on) => self.record_option(flag.spec().long, on, None),
            FlagValue::Text(text) => self.record_option(flag.spec().long, true, Some(text)),
            FlagValue::Absent => self.record_option(flag.spec().long, true, None),
        }
        let groups = self.args.groups.len();
        flag.update(value, &mut self.args).map_err(here)?;
        if self.args.groups.len() > groups {
            self.args.group().is_listed = self.depth > 0;
        }
        if let Some(text) = self.args.variable.take() {
            self.assign_variable(&text).map_err(here)?;
        }
        if let Some(path) = self.args.list.take() {
            self.read_url_file(&path).map_err(here)?;
        }
        if let Some(path) = self.args.config.take() {
            self.read_config_file(&path, shown)?;
        }
        let separate = matches!(takes, FlagSyntax::Value(_) | FlagSyntax::Trailing(_));
        Ok(separate && attached.is_none() && matches!(value, FlagValue::Text(_)))
    }

    /// Reads the first `.curlrc` in curl's search path that can be opened. As in curl, an error in
    /// the file is reported and ends the reading of the file, but the transfers still run. An
    /// option that haul does not support is a fatal error.
    fn read_curlrc(&mut self) -> Result<(), UsageError> {
        let paths: Vec<_> = curlrc_paths(OsFamily::CURRENT, |name| self.files.variable(name), account_home()).collect();
        for path in paths {
            if self.files.open(&path).is_ok() {
                let read = self.read_config_file(&path, b"");
                let fault =
                    read.map_err(|refusal| refusal.at_position(|shown| ArgPosition::Option(printable(shown)))).err();
                if let Some(refused) =
                    fault.as_ref().filter(|fault| matches!(fault.reason(), UsageErrorReason::Refused(_)))
                {
                    return Err(refused.clone());
                }
                if fault.is_none() {
                    self.args.notes.push(format!("Read config file from '{}'", path.display()));
                }
                self.args.curlrc_fault = fault;
                return Ok(());
            }
        }
        Ok(())
    }

    fn read_config_file(&mut self, path: &Path, shown: &[u8]) -> Result<(), OptionError> {
        let here = |reason| OptionError::Here { shown: shown.to_vec(), reason };
        if self.depth == DEPTH_MAX {
            return Err(here(UsageErrorReason::TooDeep));
        }
        let source =
            self.files.open_config(path).map_err(|error| here(UsageErrorReason::unreadable_file(path, &error)))?;
        let is_stdin = path == Path::new("-");
        let file = match is_stdin {
            true => "<stdin>".to_owned(),
            false => printable(path.as_os_str().as_encoded_bytes()),
        };
        if self.depth == 0 {
            self.opened_by = (!shown.is_empty()).then(|| printable(shown).into());
        }
        let by = self.opened_by.clone();
        let position = |line, option: &[u8]| ArgPosition::Config {
            by: by.clone(),
            file: file.as_str().into(),
            line,
            option: printable(option),
        };
        let mut reader = ConfigFileReader::new(source);
        self.depth += 1;
        loop {
            let entry = match reader.next_entry() {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                Err(ConfigFileError::Io(error)) => return Err(here(UsageErrorReason::unreadable_file(path, &error))),
                Err(ConfigFileError::LineTooLong(line)) => {
                    let reason = UsageErrorReason::bad_use("the line is too long");
                    return Err(OptionError::Deeper(UsageError::new(position(line, b""), reason)));
                }
                Err(ConfigFileError::Nul(line)) => {
                    let reason =
                        UsageErrorReason::bad_use("the line holds a NUL byte; if the file is UTF-16, save it as UTF-8");
                    return Err(OptionError::Deeper(UsageError::new(position(line, b""), reason)));
                }
            };
            if let Some(oddity) = entry.oddity {
                let option = printable(entry.option);
                self.args.warn(format!("{file}:{} Option '{option}' {oddity}", entry.line));
            }
            self.apply_config_entry(&entry)
                .map_err(|refusal| OptionError::Deeper(refusal.at_position(|shown| position(entry.line, shown))))?;
            if self.args.global.persona.is_curl() {
                // curl shows the help and reads on; the rest of what ends a command line says
                // nothing here.
                if let Some(InfoOption::Help(subject)) = self.args.info.take() {
                    self.args.help_first.push(subject);
                }
            }
            if self.args.info.is_some() || (is_stdin && stdin_config_end::config_takes_stdin(&entry)) {
                break;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn apply_config_entry(&mut self, entry: &ConfigFileEntry<'_>) -> Result<(), OptionError> {
        let written = entry.option;
        let outcome = match written.first() {
            Some(b'-') => self.parse_option(written, entry.value),
            _ => self.parse_long_option(written, written, entry.value),
        };
        match outcome {
            // curl passes over an empty group in a config file and refuses it on the command line.
            Err(OptionError::Here { reason: UsageErrorReason::MissingUrlBeforeNext, .. }) => Ok(()),
            Err(refusal) => Err(refusal),
            Ok(used) if used || entry.value.is_none_or(<[u8]>::is_empty) => Ok(()),
            Ok(_) => {
                let reason = UsageErrorReason::TrailingGarbage;
                Err(OptionError::Here { shown: written.to_vec(), reason })
            }
        }
    }
}

/// Returns the flag with this long name. The second value is false if `name` begins with `no-`,
/// which turns the flag off, and true otherwise.
fn find_flag(name: &[u8]) -> Result<(Flag, bool), UsageErrorReason> {
    if let Some(flag) = flags::find_long(name) {
        return Ok((flag, true));
    }
    // curl has --buffer, too. Neither form has an effect.
    if name == b"buffer" {
        return flags::find_long(b"no-buffer").map(|flag| (flag, true)).ok_or(UsageErrorReason::Unknown);
    }
    let positive = name.strip_prefix(b"no-");
    match positive.and_then(flags::find_long) {
        Some(flag) => match flag.spec().syntax {
            FlagSyntax::Switch => Ok((flag, false)),
            _ => Err(UsageErrorReason::NotReversible),
        },
        None => {
            let why = unsupported::refusal_reason(name).or_else(|| positive.and_then(unsupported::refusal_reason));
            Err(why.map_or(UsageErrorReason::Unknown, UsageErrorReason::Refused))
        }
    }
}

#[cfg(test)]
mod tests;
