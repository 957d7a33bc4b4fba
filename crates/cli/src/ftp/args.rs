//! The command line of ftp(1), for the fetching of URLs.
//!
//! ```
//! use haul_cli::ftp::args::{FtpArgs, FtpOutput};
//!
//! let words = ["-S", "session=/dev/fd/3", "-o", "-", "https://example.test/a.tgz"].map(Into::into);
//! let args = FtpArgs::parse(words).unwrap();
//! assert_eq!((args.output, args.urls.len()), (FtpOutput::Stdout, 1));
//! assert!(FtpArgs::parse(["-o", "-"].map(Into::into)).is_err());
//! ```

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::agent::{AgentArgs, IDLE};

/// The parsed command line of ftp(1) or fetch(1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FtpArgs {
    /// The URLs to fetch, in order. Never empty.
    pub urls: Vec<String>,
    /// `-o`: the destination of the content.
    pub output: FtpOutput,
    /// `-C`: resume the existing part of the file.
    pub goes_on: bool,
    /// `-v` is true, `-V` is false; `None` without either, when only a terminal gets verbose
    /// output.
    pub verbose: Option<bool>,
    /// The progress meter: `-m` is true, `-M` false.
    pub meter: Option<bool>,
    /// `-N`: the program's name in errors.
    pub name: Option<String>,
    /// `-U`: the value of `User-Agent`.
    pub user_agent: Option<String>,
    /// `-w`: connection timeout.
    pub connect_timeout: Option<Duration>,
    /// `-c`: a file of cookies.
    pub cookies: Option<PathBuf>,
    /// `-T`, or fetch(1)'s `-m`: does not fetch a file that is as new as the server's.
    pub newer: bool,
    /// `-u`, or fetch(1)'s `-n`: does not set the modification time of files.
    pub drops_date: bool,
    /// `-4`, `-6`: the IP version to use.
    pub family: Option<u8>,
    /// `-s`: the local address of connections.
    pub source: Option<String>,
    /// `-S cafile=`: a file of trusted CA certificates.
    pub ca_file: Option<PathBuf>,
    /// `-S capath=`: a directory of trusted CA certificates.
    pub ca_path: Option<PathBuf>,
    /// `-S dont`: certificates are not checked.
    pub insecure: bool,
    /// `--agent`, `--agent-idle`; or `HAUL_AGENT`.
    pub agent: Option<AgentArgs>,
    /// The arguments of fetch(1); `None` if the command line has the grammar of ftp(1).
    pub fetch: Option<FetchArgs>,
}

/// The arguments that only fetch(1) has ([`fetch_args`](super::fetch_args)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchArgs {
    /// `-S`: the required length of the content.
    pub length: Option<u64>,
    /// `-A`: does not follow redirects.
    pub stays: bool,
    /// `-d`: uses no proxy.
    pub direct: bool,
    /// `-T`: receive (idle) timeout.
    pub timeout: Option<Duration>,
    /// `-a`, `-w`: the pause before a transient failure is retried.
    pub retry_after: Option<Duration>,
}

/// The destination of the content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FtpOutput {
    /// `-o -`.
    Stdout,
    /// `-o FILE`.
    File(PathBuf),
    /// A file with the name at the end of the URL's path.
    #[default]
    Named,
}

/// The letters that take a value. Some have no effect here: ports, control connections, titles, and
/// ftp's own retries (`DkPrx`).
const VALUED: &str = "oSNUwcsDkPrx";
/// The letters without a value that have no effect here.
const IGNORED: &str = "AadeEginpt";

impl FtpArgs {
    /// Parses a command line, given without the program's name.
    ///
    /// # Errors
    /// A line that says what is wrong with it.
    pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let args = parse(words, &OptionLetters { valued: VALUED, set: Self::set, give: Self::give })?;
        if args.urls.is_empty() {
            return Err("usage: ftp [-46CMmTuVv] [-c cookie] [-N name] [-o output] [-S ssl_options] [-U useragent] [-w seconds] URL ...".into());
        }
        Ok(args)
    }

    /// Parses a long option. Both grammars have the same ones, which are haul's own: those of the
    /// agent.
    fn long(
        &mut self,
        long: &str,
        idle: &mut Duration,
        words: &mut dyn Iterator<Item = OsString>,
    ) -> Result<bool, String> {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        match name {
            "agent" => self.agent = Some(AgentArgs { socket: value.map(PathBuf::from), idle: IDLE }),
            "agent-idle" => {
                let given = match value {
                    Some(value) => value.to_owned(),
                    None => next(words, "--agent-idle")?,
                };
                *idle = seconds(&given, "--agent-idle")?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set(&mut self, letter: char) -> Result<(), String> {
        match letter {
            // `R` is NetBSD's letter for it.
            'C' | 'R' => self.goes_on = true,
            'V' => self.verbose = Some(false),
            'v' => self.verbose = Some(true),
            'M' => self.meter = Some(false),
            'm' => self.meter = Some(true),
            'T' => self.newer = true,
            'u' => self.drops_date = true,
            '4' => self.family = Some(4),
            '6' => self.family = Some(6),
            _ if IGNORED.contains(letter) => {}
            _ => return Err(format!("unknown option: -{letter}")),
        }
        Ok(())
    }

    /// Stores the value of `-o`, which both grammars have.
    pub(super) fn output_to(&mut self, value: String) {
        self.output = if value == "-" { FtpOutput::Stdout } else { FtpOutput::File(value.into()) };
    }

    fn give(&mut self, letter: char, value: String) -> Result<(), String> {
        match letter {
            // As if it had not been given.
            'o' if value.is_empty() => self.output = FtpOutput::Named,
            'o' => self.output_to(value),
            'N' => self.name = Some(value),
            'U' => self.user_agent = Some(value),
            'w' => self.connect_timeout = Some(seconds(&value, "-w")?).filter(|limit| !limit.is_zero()),
            'c' => self.cookies = Some(value.into()),
            's' => self.source = Some(value),
            'S' => return value.split(',').try_for_each(|option| self.tls(option)),
            _ => {}
        }
        Ok(())
    }

    /// Parses one value of `-S`.
    fn tls(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name {
            "cafile" if value.is_empty() => return Err("missing CA file".into()),
            "capath" if value.is_empty() => return Err("missing CA directory path".into()),
            "cafile" => self.ca_file = Some(value.into()),
            "capath" => self.ca_path = Some(value.into()),
            "dont" => self.insecure = true,
            "do" => self.insecure = false,
            // A session's secrets stay in the process, or in the agent: what TLS is done with gives
            // them to no file.
            "session" | "depth" | "ciphers" | "protocols" | "muststaple" | "noverifytime" | "" => {}
            _ => return Err(format!("unknown -S option: {name}")),
        }
        Ok(())
    }
}

/// The option letters of a grammar, and the functions that apply them.
pub(super) struct OptionLetters {
    /// The letters that take a value.
    pub(super) valued: &'static str,
    /// Applies a letter without a value.
    pub(super) set: fn(&mut FtpArgs, char) -> Result<(), String>,
    /// Applies a letter with its value.
    pub(super) give: fn(&mut FtpArgs, char, String) -> Result<(), String>,
}

/// Parses a command line as getopt(3) does, but also accepts options after URLs.
pub(super) fn parse(words: impl IntoIterator<Item = OsString>, letters: &OptionLetters) -> Result<FtpArgs, String> {
    let mut args = FtpArgs::default();
    let mut idle = IDLE;
    let words = &mut words.into_iter() as &mut dyn Iterator<Item = OsString>;
    while let Some(word) = words.next() {
        let Some(text) = word.to_str() else { return Err("an argument is not UTF-8".into()) };
        if let Some(long) = text.strip_prefix("--").filter(|long| !long.is_empty()) {
            if !args.long(long, &mut idle, words)? {
                return Err(format!("unknown option: --{long}"));
            }
        } else if text == "--" {
            break;
        } else if let Some(bundle) = text.strip_prefix('-').filter(|bundle| !bundle.is_empty()) {
            let mut rest = bundle.chars();
            while let Some(letter) = rest.next() {
                if !letters.valued.contains(letter) {
                    (letters.set)(&mut args, letter)?;
                    continue;
                }
                let glued = rest.as_str();
                let value = if glued.is_empty() { next(words, &format!("-{letter}"))? } else { glued.to_owned() };
                (letters.give)(&mut args, letter, value)?;
                break;
            }
        } else {
            args.urls.push(text.to_owned());
        }
    }
    for word in words {
        args.urls.push(word.into_string().map_err(|_| "an argument is not UTF-8")?);
    }
    if let Some(agent) = &mut args.agent {
        agent.idle = idle;
    }
    Ok(args)
}

fn next(words: &mut dyn Iterator<Item = OsString>, option: &str) -> Result<String, String> {
    let word = words.next().ok_or_else(|| format!("{option} needs a value"))?;
    word.into_string().map_err(|_| format!("the value of {option} is not UTF-8"))
}

pub(super) fn seconds(text: &str, option: &str) -> Result<Duration, String> {
    text.parse().map(Duration::from_secs).map_err(|_| format!("{option} takes seconds: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<FtpArgs, String> {
        FtpArgs::parse(line.split(' ').map(OsString::from))
    }

    #[test]
    fn ftp_letters_bundle_and_values_may_be_attached() {
        let args =
            parse("-VMCo- -Nme -U agent/1 -w5 -S cafile=/a,session=/dev/fd/9,dont http://h/ -4 https://i/").unwrap();
        assert_eq!(args.urls, ["http://h/", "https://i/"]);
        assert_eq!(
            (args.output, args.goes_on, args.verbose, args.meter),
            (FtpOutput::Stdout, true, Some(false), Some(false))
        );
        assert_eq!((args.name.as_deref(), args.user_agent.as_deref()), (Some("me"), Some("agent/1")));
        assert_eq!((args.connect_timeout, args.family), (Some(Duration::from_secs(5)), Some(4)));
        assert_eq!((args.ca_file, args.insecure), (Some("/a".into()), true));
    }

    #[test]
    fn openbsd_letters_t_and_u_take_no_value() {
        let args = parse("-Tu -o file http://h/a").unwrap();
        assert!(args.newer && args.drops_date);
        assert_eq!((args.output, args.urls), (FtpOutput::File("file".into()), vec!["http://h/a".to_owned()]));
        let words = ["-o", "", "http://h/a"].map(OsString::from);
        assert_eq!(FtpArgs::parse(words).unwrap().output, FtpOutput::Named);
    }

    #[test]
    fn agent_options_name_socket_and_idle_time() {
        let agent = parse("--agent=/run/a --agent-idle 5 u").unwrap().agent.unwrap();
        assert_eq!((agent.socket, agent.idle), (Some("/run/a".into()), Duration::from_secs(5)));
        assert_eq!(parse("--agent-idle=7 --agent u").unwrap().agent.unwrap().idle, Duration::from_secs(7));
    }

    #[test]
    fn invalid_ftp_command_lines_are_refused() {
        for line in ["-o -", "-o", "-Z u", "--what u", "-S what=1 u", "-w soon u", "-S cafile u", "--agent-idle u"] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert_eq!(parse("-- -u").unwrap().urls, ["-u"]);
    }
}
