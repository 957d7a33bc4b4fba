//! The command line of ftp(1), reduced to the options for fetching URLs.
//!
//! ```
//! use haul_cli::ftp::ftp_command_args::{FtpArgs, FtpOutput};
//!
//! let words = ["-S", "session=/dev/fd/3", "-o", "-", "https://example.test/a.tgz"].map(Into::into);
//! let args = FtpArgs::parse(words).unwrap();
//! assert_eq!((args.output, args.urls.len()), (FtpOutput::Stdout, 1));
//! assert!(FtpArgs::parse(["-o", "-"].map(Into::into)).is_err());
//! ```

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use haul::net::tls::TlsVersion;

use crate::agent::{AgentArgs, DEFAULT_IDLE_TIME};

/// The parsed command line of ftp(1) or fetch(1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FtpArgs {
    /// The URLs to fetch, in order. Never empty.
    pub urls: Vec<String>,
    /// `-o`: the destination of the downloaded content.
    pub output: FtpOutput,
    /// `-C`: resumes the download of a partial file.
    pub resumes: bool,
    /// True for `-v`, false for `-V`. `None` if neither is given: output is then verbose only on a
    /// terminal.
    pub verbose: Option<bool>,
    /// True to show the progress meter (`-m`), false to hide it (`-M`); `None` without either
    /// option.
    pub meter: Option<bool>,
    /// `-N`: the program name with which error messages begin. `None` means `ftp` or `fetch`.
    pub name: Option<String>,
    /// `-U`: the value of the header field `User-Agent`. `None` without the option.
    pub user_agent: Option<String>,
    /// `-w`: the time limit for connecting to a server. `None` without the option.
    pub connect_timeout: Option<Duration>,
    /// `-c`: the file from which cookies are read. `None` without the option.
    pub cookies: Option<PathBuf>,
    /// `-T`, or `-m` of fetch(1): fetches only if the server's content is newer than the local
    /// file.
    pub newer: bool,
    /// `-u`, or `-n` of fetch(1): does not set the modification time of the file to the time that
    /// the server reports.
    pub ignores_server_date: bool,
    /// `-4`, `-6`: the only IP version to use, 4 or 6; `None` allows both.
    pub family: Option<u8>,
    /// `-s`: the local address of connections; `None` leaves the choice to the system.
    pub source: Option<String>,
    /// `-S cafile=`: a file of trusted CA certificates. `None` without the option.
    pub ca_file: Option<PathBuf>,
    /// `-S capath=`: a directory of trusted CA certificates. `None` without the option.
    pub ca_path: Option<PathBuf>,
    /// `-S dont`: does not verify the certificates of servers.
    pub insecure: bool,
    /// `--agent` and `--agent-idle`, or the environment variable `HAUL_AGENT`; `None` if the agent
    /// is not used.
    pub agent: Option<AgentArgs>,
    /// `-S muststaple`: requires a stapled OCSP response that confirms the certificate.
    pub requires_status: bool,
    /// `-S protocols`: the lowest TLS version; `None` for the default.
    pub min_tls: Option<TlsVersion>,
    /// `-S protocols`: the highest TLS version; `None` for the default.
    pub max_tls: Option<TlsVersion>,
    /// The arguments of fetch(1); `None` if the command line has the grammar of ftp(1).
    pub fetch: Option<FreebsdFetchArgs>,
}

/// The arguments that fetch(1) has and ftp(1) has not
/// ([`freebsd_fetch_args`](super::freebsd_fetch_args)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreebsdFetchArgs {
    /// `-S`: the length in bytes that the content must have; `None` accepts any length.
    pub length: Option<u64>,
    /// `-A`: a temporary redirect is an error. Permanent ones are followed.
    pub refuses_temporary_redirects: bool,
    /// `-d`: uses no proxy.
    pub direct: bool,
    /// `-T`: the maximum time without any received byte. `None` sets no limit.
    pub timeout: Option<Duration>,
    /// `-a`, `-w`: the time to wait before a failed transfer is retried. With `None`, failed
    /// transfers are not retried.
    pub retry_after: Option<Duration>,
}

/// The destination of the content that haul downloads as ftp(1) or fetch(1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FtpOutput {
    /// `-o -`: standard output.
    Stdout,
    /// `-o FILE`: the file with this name.
    File(PathBuf),
    /// A file in the working directory, named after the last segment of the URL's path.
    #[default]
    Named,
}

/// The letters of ftp(1)'s options that take a value. `DkPrx` have no effect here: they set ports,
/// control connections, titles, and the retries of ftp(1).
const LETTERS_WITH_VALUE: &str = "oSNUwcsDkPrx";
/// The letters of ftp(1)'s options without a value that have no effect here.
const IGNORED_LETTERS: &str = "AadeEginpt";

impl FtpArgs {
    /// Parses a command line of ftp(1), given without the program's name.
    ///
    /// # Errors
    /// The message about the invalid option or value.
    pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let args = parse(
            words,
            &OptionLetterTable { valued: LETTERS_WITH_VALUE, set: Self::set, give: Self::set_with_value },
        )?;
        if args.urls.is_empty() {
            return Err("usage: ftp [-46CMmTuVv] [-c cookie] [-N name] [-o output] [-S ssl_options] [-U useragent] [-w seconds] URL ...".into());
        }
        Ok(args)
    }

    /// Parses a long option of haul: `--agent` or `--agent-idle`. Returns false for any other name.
    fn parse_long_option(
        &mut self,
        long: &str,
        idle: &mut Duration,
        words: &mut dyn Iterator<Item = OsString>,
    ) -> Result<bool, String> {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        match name {
            "agent" => self.agent = Some(AgentArgs { socket: value.map(PathBuf::from), idle: DEFAULT_IDLE_TIME }),
            "agent-idle" => {
                let given = match value {
                    Some(value) => value.to_owned(),
                    None => next(words, "--agent-idle")?,
                };
                *idle = seconds(&given, "--agent-idle")?;
                if idle.is_zero() {
                    return Err("--agent-idle takes at least one second".into());
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set(&mut self, letter: char) -> Result<(), String> {
        match letter {
            // `R` is NetBSD's letter for it.
            'C' | 'R' => self.resumes = true,
            'V' => self.verbose = Some(false),
            'v' => self.verbose = Some(true),
            'M' => self.meter = Some(false),
            'm' => self.meter = Some(true),
            'T' => self.newer = true,
            'u' => self.ignores_server_date = true,
            '4' => self.family = Some(4),
            '6' => self.family = Some(6),
            _ if IGNORED_LETTERS.contains(letter) => {}
            _ => return Err(format!("unknown option: -{letter}")),
        }
        Ok(())
    }

    /// Applies `-o FILE`, which means the same in ftp(1) and fetch(1).
    pub(super) fn output_to(&mut self, value: String) {
        self.output = if value == "-" { FtpOutput::Stdout } else { FtpOutput::File(value.into()) };
    }

    fn set_with_value(&mut self, letter: char, value: String) -> Result<(), String> {
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

    /// Parses one option of the comma-separated list after `-S` of ftp(1), such as `cafile=FILE`.
    fn tls(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name {
            "cafile" if value.is_empty() => return Err("missing CA file".into()),
            "capath" if value.is_empty() => return Err("missing CA directory path".into()),
            "cafile" => self.ca_file = Some(value.into()),
            "capath" => self.ca_path = Some(value.into()),
            "dont" => self.insecure = true,
            "do" => self.insecure = false,
            "muststaple" => self.requires_status = true,
            "protocols" => (self.min_tls, self.max_tls) = tls_versions(value)?,
            "ciphers" if matches!(value, "secure" | "default" | "compat" | "legacy" | "insecure" | "all") => {}
            "ciphers" => return Err("-S ciphers takes secure, default, compat, legacy, insecure or all".into()),
            "depth" => return Err("-S depth is not supported: the depth of a chain has a fixed limit".into()),
            // A session's secrets stay in the process, or in the agent: what TLS is done with gives
            // them to no file. Without noverifytime haul is stricter.
            "session" | "noverifytime" | "" => {}
            _ => return Err(format!("unknown -S option: {name}")),
        }
        Ok(())
    }
}

/// Returns the lowest and the highest TLS version of `-S protocols=LIST`, the syntax of libtls:
/// names separated by colons. `None` stands for the default. haul has no version below 1.2.
fn tls_versions(list: &str) -> Result<(Option<TlsVersion>, Option<TlsVersion>), String> {
    let (mut has_12, mut has_13) = (false, false);
    for name in list.split(':') {
        match name.trim().to_ascii_lowercase().as_str() {
            "secure" | "default" | "all" | "legacy" | "tlsv1" => (has_12, has_13) = (true, true),
            "tlsv1.2" => has_12 = true,
            "tlsv1.3" => has_13 = true,
            _ => return Err("-S protocols takes tlsv1.2, tlsv1.3, tlsv1, secure, default, legacy or all".into()),
        }
    }
    Ok(((!has_12).then_some(TlsVersion::V1_3), (!has_13).then_some(TlsVersion::V1_2)))
}

/// The option letters of ftp(1) or fetch(1), and the functions that apply them.
pub(super) struct OptionLetterTable {
    /// The letters of the options that take a value.
    pub(super) valued: &'static str,
    /// Applies the option with this letter, which has no value. Returns a message if the option is
    /// unknown.
    pub(super) set: fn(&mut FtpArgs, char) -> Result<(), String>,
    /// Applies the option with this letter and this value. Returns a message if the value is wrong.
    pub(super) give: fn(&mut FtpArgs, char, String) -> Result<(), String>,
}

/// Parses a command line as getopt(3) does, but also accepts options after URLs.
pub(super) fn parse(words: impl IntoIterator<Item = OsString>, letters: &OptionLetterTable) -> Result<FtpArgs, String> {
    let mut args = FtpArgs::default();
    let mut idle = DEFAULT_IDLE_TIME;
    let words = &mut words.into_iter() as &mut dyn Iterator<Item = OsString>;
    while let Some(word) = words.next() {
        let Some(text) = word.to_str() else { return Err("an argument is not UTF-8".into()) };
        if let Some(long) = text.strip_prefix("--").filter(|long| !long.is_empty()) {
            if !args.parse_long_option(long, &mut idle, words)? {
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
            (args.output, args.resumes, args.verbose, args.meter),
            (FtpOutput::Stdout, true, Some(false), Some(false))
        );
        assert_eq!((args.name.as_deref(), args.user_agent.as_deref()), (Some("me"), Some("agent/1")));
        assert_eq!((args.connect_timeout, args.family), (Some(Duration::from_secs(5)), Some(4)));
        assert_eq!((args.ca_file, args.insecure), (Some("/a".into()), true));
    }

    #[test]
    fn openbsd_letters_t_and_u_take_no_value() {
        let args = parse("-Tu -o file http://h/a").unwrap();
        assert!(args.newer && args.ignores_server_date);
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
    fn tls_options_set_status_and_versions() {
        let args = parse("-S muststaple,protocols=tlsv1.3,ciphers=secure,session=/dev/fd/3 u").unwrap();
        assert_eq!((args.requires_status, args.min_tls, args.max_tls), (true, Some(TlsVersion::V1_3), None));
        let args = parse("-S protocols=tlsv1.2 u").unwrap();
        assert_eq!((args.requires_status, args.min_tls, args.max_tls), (false, None, Some(TlsVersion::V1_2)));
        let args = parse("-S protocols=tlsv1.2:tlsv1.3 u").unwrap();
        assert_eq!((args.min_tls, args.max_tls), (None, None));
    }

    #[test]
    fn invalid_ftp_command_lines_are_refused() {
        for line in ["-o -", "-o", "-Z u", "--what u", "-S what=1 u", "-w soon u", "-S cafile u", "--agent-idle u"] {
            assert!(parse(line).is_err(), "{line}");
        }
        for line in ["-S protocols=sslv3 u", "-S ciphers=NONE u", "-S depth=0 u", "--agent-idle 0 u"] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert_eq!(parse("-- -u").unwrap().urls, ["-u"]);
    }
}
