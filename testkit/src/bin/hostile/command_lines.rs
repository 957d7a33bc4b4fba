//! The command lines of haul that are run against hostile replies.

use std::io;
use std::path::{Path, PathBuf};

use testkit::hostile::HostileProtocol;
use testkit::rng::Rng;

/// A command line of haul, and the destination of the reply's body.
pub(crate) struct ClientCommandLine {
    pub(crate) args: Vec<String>,
    pub(crate) place: HostileBodyDestination,
    /// True if haul may send more requests than the server answers. It then waits until its time
    /// limit.
    pub(crate) may_stall: bool,
}

/// The destination of the reply's body, if haul accepts the reply.
pub(crate) enum HostileBodyDestination {
    Stdout,
    File(PathBuf),
    /// The destination depends on other options of the command, so it is not checked.
    Unknown,
}

/// Lists of options with which haul delivers the body of a reply unchanged.
const COMMON_OPTIONS: &[&[&str]] = &[
    &[],
    &[],
    &["-v"],
    &["-b", "", "-c", "jar"],
    &["--hsts", "hsts", "--alt-svc", "alt"],
    &["--etag-save", "etag"],
    &["-D", "heads", "--no-location"],
    &["-u", "me:secret"],
    &["--retry", "0"],
    &["--limit-rate", "50M"],
    &["--trace", "trace"],
];

/// Lists of options that change how haul processes a reply.
const RARE_OPTIONS: &[&[&str]] = &[
    &["--compressed"],
    &["-i"],
    &["-OJ"],
    &["-OJ", "--compressed", "-b", "", "-c", "jar"],
    &["-I"],
    &["-u", "me:secret", "--anyauth"],
    &["-u", "me:secret", "--digest"],
    &["-r", "0-9"],
    &["-C", "-", "-o", "partial"],
    &["--split", "4", "-o", "split"],
    &["-z", "partial", "-R", "-o", "dated"],
    &["-d", "a=1"],
    &["-T", "partial"],
    &["-H", "Expect: 100-continue", "-T", "partial"],
    &["--raw"],
    &["--ignore-content-length"],
    &["--extract", "[a-f]+", "--unique", "--sort"],
    &["--extract", "([a-z])", "--then", "{}"],
    &["-w", "%{json}%{header_json}", "--stats=json"],
    &["-X", "HEAD"],
    &["--fail-with-body", "--max-filesize", "1000"],
    &["-e", ";auto", "--location-trusted", "--post301"],
    &["--retry-all-errors", "--retry", "2"],
    &["--tr-encoding"],
    &["--http0.9"],
];

/// Returns a random command line of haul, which must be run in the directory `dir`. The files that
/// the command needs are written there.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn random_command(
    rng: &mut Rng,
    protocol: HostileProtocol,
    url: &str,
    dir: &Path,
) -> io::Result<ClientCommandLine> {
    std::fs::write(dir.join("partial"), b"a part of something\n")?;
    let mut args: Vec<String> = Vec::new();
    if rng.below(5) == 0 {
        args.push("curl".to_owned());
    }
    let fixed = ["-q", "-sS", "-A", "x", "--retry-delay", "0.01", "--retry-max-time", "1"];
    args.extend(fixed.map(str::to_owned));
    let prior = if protocol == HostileProtocol::Http2 { "--http2-prior-knowledge" } else { "--http1.1" };
    args.push(prior.to_owned());
    let own = |options: &[&str]| options.iter().map(|&option| option.to_owned()).collect::<Vec<_>>();
    let mut place = HostileBodyDestination::Unknown;
    let mut may_stall = false;
    match rng.below(12) {
        0..=5 => {
            args.extend(own(COMMON_OPTIONS[rng.below(COMMON_OPTIONS.len() as u64) as usize]));
            place = HostileBodyDestination::Stdout;
            if rng.below(3) == 0 {
                args.extend(own(&["-o", "out"]));
                place = HostileBodyDestination::File(dir.join("out"));
            }
            args.push(url.to_owned());
        }
        6 => {
            // Several over one connection.
            let many = [&["-Z"][..], &["--pipeline", "3"], &["--unordered"], &["--next"]];
            args.extend(own(many[rng.below(many.len() as u64) as usize]));
            args.extend([url, url, url].map(str::to_owned));
            may_stall = true;
        }
        7 if protocol == HostileProtocol::Http1 => {
            // A forwarding proxy may send the same; one that is asked for a tunnel may send
            // anything.
            let proxy = url.trim_end_matches("/file");
            args.extend(own(&["-x", proxy, "http://example.test/file"]));
            place = HostileBodyDestination::Stdout;
            if rng.below(3) == 0 {
                args.extend(own(&["-p", "-U", "me:secret", "--proxy-anyauth"]));
                place = HostileBodyDestination::Unknown;
                may_stall = true;
            }
        }
        7 => {
            let scheme = ["socks4", "socks5", "socks5h", "https"][rng.below(4) as usize];
            args.extend(own(&["-x", &url.replacen("http", scheme, 1), "http://example.test/file"]));
            may_stall = true;
        }
        _ => {
            args.extend(own(RARE_OPTIONS[rng.below(RARE_OPTIONS.len() as u64) as usize]));
            args.push(url.to_owned());
            may_stall = args.iter().any(|arg| arg == "-T" || arg == "--then" || arg == "--split");
        }
    }
    Ok(ClientCommandLine { args, place, may_stall })
}
