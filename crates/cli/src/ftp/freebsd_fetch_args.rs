//! The command line of FreeBSD's fetch(1), as the ports system calls it:
//! `fetch -Fpr -S SIZE -o FILE URL`.
//!
//! ```
//! use haul_cli::ftp::freebsd_fetch_args::parse;
//!
//! let words = ["-Fpr", "-S", "1234", "-o", "sub/a.tgz", "https://example.test/a.tgz"].map(Into::into);
//! let args = parse(words).unwrap();
//! assert!(args.resumes && args.fetch.unwrap().length == Some(1234));
//! ```
//!
//! haul needs this grammar because the ports system always passes `-Fpr` and `-S SIZE`, which mean
//! something else to curl: a form, and a URL.

use std::ffi::OsString;
use std::time::Duration;

use super::ftp_command_args::{self, FtpArgs, OptionLetterTable, seconds};

/// The letters of fetch(1)'s options that take a value. `B` (the size of a buffer) and `N` (a netrc
/// file) have no effect here.
const LETTERS_WITH_VALUE: &str = "BNoSTw";
/// The letters of fetch(1)'s options that take no value and have no effect here. `H`, `P`, `p` and
/// `U` concern passive FTP, `l` links to local files, `F` and `R` partial files, and `t` TCP.
/// (`-F` is always in effect: `-r` resumes a partial file without a comparison of the dates. The
/// caller of fetch(1) checks the result.)
const IGNORED_LETTERS: &str = "FHlPpRtU";

/// The default time to wait before a failed transfer is retried, as in fetch(1).
const RETRY_WAIT: Duration = Duration::from_secs(10);

/// Parses a command line of fetch(1), given without the program's name.
///
/// # Errors
/// The message about the invalid option or value.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<FtpArgs, String> {
    let mut args =
        ftp_command_args::parse(words, &OptionLetterTable { valued: LETTERS_WITH_VALUE, set, give: set_with_value })?;
    if args.urls.is_empty() {
        return Err("usage: fetch [-46AadFlMmnPpqRrUv] [-o file] [-S bytes] [-T seconds] [-w seconds] URL ...".into());
    }
    args.fetch.get_or_insert_default();
    if args.resumes && args.newer {
        return Err("the -m and -r flags are mutually exclusive".into());
    }
    Ok(args)
}

fn set(args: &mut FtpArgs, letter: char) -> Result<(), String> {
    let fetch = args.fetch.get_or_insert_default();
    match letter {
        '4' => args.family = Some(4),
        '6' => args.family = Some(6),
        'A' => fetch.refuses_temporary_redirects = true,
        'a' => fetch.retry_after = fetch.retry_after.or(Some(RETRY_WAIT)),
        'd' => fetch.direct = true,
        'M' | 'm' => args.newer = true,
        'n' => args.ignores_server_date = true,
        'q' => args.verbose = Some(false),
        'r' => args.resumes = true,
        'v' => args.verbose = Some(true),
        _ if IGNORED_LETTERS.contains(letter) => {}
        _ => return Err(format!("unknown option: -{letter}")),
    }
    Ok(())
}

fn set_with_value(args: &mut FtpArgs, letter: char, value: String) -> Result<(), String> {
    let fetch = args.fetch.get_or_insert_default();
    match letter {
        'S' => fetch.length = Some(value.parse().map_err(|_| format!("invalid size ({value})"))?),
        'T' => fetch.timeout = Some(seconds(&value, "-T")?).filter(|limit| !limit.is_zero()),
        'w' => fetch.retry_after = Some(seconds(&value, "-w")?),
        'o' => args.output_to(value),
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::ftp_command_args::FtpOutput;
    use super::*;

    fn read(line: &str) -> Result<FtpArgs, String> {
        parse(line.split(' ').map(OsString::from))
    }

    #[test]
    fn fetch_command_lines_of_freebsd_ports_are_accepted() {
        let args = read("-Fpr -S 77 -o dir/file http://h/file").unwrap();
        let fetch = args.fetch.unwrap();
        assert_eq!((args.resumes, fetch.length, args.ignores_server_date), (true, Some(77), false));
        assert_eq!((args.output, args.urls), (FtpOutput::File("dir/file".into()), vec!["http://h/file".to_owned()]));
        let args = read("-ApRrq http://h/file").unwrap();
        assert!(args.fetch.unwrap().refuses_temporary_redirects && args.verbose == Some(false));
        assert_eq!(read("-a u").unwrap().fetch.unwrap().retry_after, Some(RETRY_WAIT));
        assert_eq!(read("-aw3 u").unwrap().fetch.unwrap().retry_after, Some(Duration::from_secs(3)));
    }

    #[test]
    fn invalid_fetch_command_lines_are_refused() {
        for line in ["-Fpr", "-S much u", "-S", "-mr u", "-Z u", "--what u"] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
