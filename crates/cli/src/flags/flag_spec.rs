//! The description of a flag: its names, its documentation, the form of its value, its help
//! category and its effect.

use crate::flag_value::FlagValue;
use crate::parsed_args::ParsedArgs;
use crate::usage_error::UsageErrorReason;

/// The definition of an option of the command line.
pub(super) trait FlagDefinition {
    /// Returns the names and the documentation of the flag. They are returned by value, because the
    /// loader would relocate a constant at each start.
    fn spec(&self) -> FlagSpec;

    /// Returns the long name of the flag, by which the sorted flags are searched.
    fn long(&self) -> &'static str {
        self.spec().long
    }

    /// Stores the value in `args`, or returns the reason why it is refused.
    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason>;
}

/// The names and the documentation of a flag.
#[derive(Clone, Copy, Debug)]
pub struct FlagSpec {
    /// The long name, without `--`.
    pub long: &'static str,
    /// The letter of the flag's short form, such as `m` for `-m`; `None` if the flag has none.
    pub short: Option<char>,
    /// The syntax of the flag's value.
    pub syntax: FlagSyntax,
    /// The category of the help that lists the flag.
    pub category: HelpCategory,
    /// True if `--help` without a subject, which lists only the most used flags, lists this flag.
    pub important: bool,
    /// The effect of the flag, in a few words.
    pub help: &'static str,
    /// The effect of the flag in full sentences, for the man page, with its default, unit and
    /// hazards.
    pub doc: &'static str,
    /// A command line that uses the flag.
    pub example: &'static str,
    /// The long names of related flags, separated by blanks. They are one string because the loader
    /// would have to relocate a list of strings at each start.
    pub see_also: &'static str,
}

/// The switches whose form with `--no-` works in curl's place only.
const ONE_WAY_SWITCHES: &[&str] = &["ca-native", "out-null", "proxy-ca-native"];

impl FlagSpec {
    /// Returns true if the form with `--no-` turns the flag off, whatever the program's name.
    pub fn is_turned_off_by_no(&self) -> bool {
        self.syntax == FlagSyntax::Switch && !ONE_WAY_SWITCHES.contains(&self.long)
    }
}

/// The syntax of a flag's value: none, required or optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagSyntax {
    /// No value. The form with `--no-` turns the flag off.
    Switch,
    /// The flag takes no value, and has no form with `--no-`.
    Once,
    /// A required value. The string of this variant is the name of the value in the help. If this
    /// name is `file`, a value that begins with a dash causes a warning.
    Value(&'static str),
    /// An optional value, which can only be given as `--name=value`. The string of this variant is
    /// the name of the value in the help.
    Optional(&'static str),
    /// An optional value, which is the next argument if there is one. The string of this variant is
    /// the name of the value in the help.
    Trailing(&'static str),
}

impl FlagSyntax {
    /// Returns true if the text after the flag's letter in the same argument is the flag's value,
    /// as in `-ofile`.
    pub fn is_glued(self) -> bool {
        matches!(self, FlagSyntax::Value(_) | FlagSyntax::Optional(_) | FlagSyntax::Trailing(_))
    }
}

/// The categories of the help, into which the flags are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelpCategory {
    /// Authentication: user names, passwords, tokens.
    Auth,
    /// The connections of a transfer: addresses, sockets, DNS.
    Connection,
    /// The extraction of values, and later stages (`--then`).
    Extract,
    /// The program itself, such as its help and its version.
    General,
    /// Requests and responses: methods, header fields, redirects.
    Http,
    /// The destination of bodies: files and standard output.
    Output,
    /// Several transfers at the same time.
    Parallel,
    /// Requests with content, such as POST.
    Post,
    /// Proxies, and authentication with them.
    Proxy,
    /// Limits of time and size, and retries.
    Limits,
    /// TLS: certificates, versions, cipher suites.
    Tls,
    /// The reports about transfers: traces, progress, `-w`.
    Verbose,
}

impl HelpCategory {
    /// Every category, sorted by name.
    pub const ALL: &[HelpCategory] = &[
        HelpCategory::Auth,
        HelpCategory::Connection,
        HelpCategory::Extract,
        HelpCategory::General,
        HelpCategory::Http,
        HelpCategory::Limits,
        HelpCategory::Output,
        HelpCategory::Parallel,
        HelpCategory::Post,
        HelpCategory::Proxy,
        HelpCategory::Tls,
        HelpCategory::Verbose,
    ];

    /// Returns the name of the category, as in `--help NAME`.
    pub fn name(self) -> &'static str {
        match self {
            HelpCategory::Auth => "auth",
            HelpCategory::Connection => "connection",
            HelpCategory::Extract => "extract",
            HelpCategory::General => "general",
            HelpCategory::Http => "http",
            HelpCategory::Limits => "limits",
            HelpCategory::Output => "output",
            HelpCategory::Parallel => "parallel",
            HelpCategory::Post => "post",
            HelpCategory::Proxy => "proxy",
            HelpCategory::Tls => "tls",
            HelpCategory::Verbose => "verbose",
        }
    }

    /// Returns the title of the category, which `--help category` prints.
    pub fn about(self) -> &'static str {
        match self {
            HelpCategory::Auth => "Authentication",
            HelpCategory::Connection => "Where connections lead",
            HelpCategory::Extract => "Extraction and stages",
            HelpCategory::General => "The program itself",
            HelpCategory::Http => "HTTP requests and replies",
            HelpCategory::Limits => "Time limits, size limits and retries",
            HelpCategory::Output => "Where bodies go",
            HelpCategory::Parallel => "Many transfers at once",
            HelpCategory::Post => "Requests with a body",
            HelpCategory::Proxy => "Proxies",
            HelpCategory::Tls => "TLS",
            HelpCategory::Verbose => "Reports about transfers",
        }
    }
}
