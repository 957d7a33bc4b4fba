//! The texts of `haul ftp --help` and `haul fetch --help`.

/// The text of `haul ftp --help`.
pub(crate) const FTP: &str = "\
Fetches URLs with the command line of OpenBSD's ftp(1).

Usage: haul ftp [options] URL ...

  -4, -6                 Use IPv4 or IPv6 only
  -C                     Continue a file that is there in part
  -c FILE                Read cookies from FILE
  -M, -m                 Hide, or show, the progress meter
  -N NAME                Call the program NAME in errors
  -o FILE                Write to FILE; - is standard output
  -S OPTIONS             cafile=FILE, capath=DIR, dont (verify no certificate), do, muststaple,
                         protocols=VERSIONS; separated by commas
  -s ADDRESS             Connect from this address
  -T                     Leave a file alone that is as new as the server's
  -U AGENT               Send this User-Agent
  -u                     Do not set a file's date
  -V, -v                 Print less, or more
  -w SECONDS             Time limit for connecting
  --agent[=SOCKET]       Keep connections between calls in a background process
  --agent-idle SECONDS   How long that process lives without a call
  --help                 Print this help

Letters that concern the FTP protocol are accepted and mean nothing.
The guide is docs/package-managers.md; `haul --help` has the options of haul itself.
";

/// The text of `haul fetch --help`.
pub(crate) const FETCH: &str = "\
Fetches URLs with the command line of FreeBSD's fetch(1).

Usage: haul fetch [options] URL ...

  -4, -6                 Use IPv4 or IPv6 only
  -A                     Fail at a temporary redirect (302, 303, 307)
  -a                     Retry failures that may pass
  -d                     Use no proxy
  -M, -m                 Leave a file alone that is as new as the server's
  -n                     Do not set a file's date
  -o FILE                Write to FILE, or into it if it is a directory; - is standard output
  -q, -v                 Print less, or more
  -r                     Continue a file that is there in part
  -S BYTES               Fail unless the content has this length
  -T SECONDS             Time limit for a silent server
  -w SECONDS             Wait between retries; as -a
  --agent[=SOCKET]       Keep connections between calls in a background process
  --agent-idle SECONDS   How long that process lives without a call
  --help                 Print this help

Letters that concern the FTP protocol are accepted and mean nothing.
The guide is docs/package-managers.md; `haul --help` has the options of haul itself.
";

#[cfg(test)]
mod tests {
    use super::super::ftp_command_args::FtpArgs;
    use super::super::{FtpProgram, freebsd_fetch_args, help_text};

    /// Returns the option letters with which the lines of a help text begin.
    fn letters(help: &str) -> impl Iterator<Item = char> {
        let lines = help.lines().filter_map(|line| line.strip_prefix("  -"));
        let names = lines.filter(|line| !line.starts_with('-')).flat_map(|line| {
            let end = line.find("  ").unwrap_or(line.len());
            line[..end].split(", -").map(str::to_owned).collect::<Vec<_>>()
        });
        names.filter_map(|name| name.chars().next())
    }

    #[test]
    fn ftp_help_lists_only_accepted_letters() {
        for (program, some) in [(FtpProgram::Ftp, "CoSTw"), (FtpProgram::Fetch, "AaroSTw")] {
            let named: String = letters(help_text(program)).collect();
            assert!(some.chars().all(|letter| named.contains(letter)), "{program:?}: {named}");
            for letter in named.chars() {
                let words = || [format!("-{letter}"), "1".to_owned(), "http://h/".to_owned()].map(Into::into);
                let parsed = match program {
                    FtpProgram::Ftp => FtpArgs::parse(words()),
                    FtpProgram::Fetch => freebsd_fetch_args::parse(words()),
                };
                let told = parsed.err().unwrap_or_default();
                assert!(!told.contains("unknown option"), "{program:?} {letter}: {told}");
            }
        }
    }
}
