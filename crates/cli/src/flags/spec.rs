//! The description of a flag: its names, documentation, value, help chapter and effect.

use crate::flag_value::FlagValue;
use crate::parsed_args::ParsedArgs;
use crate::usage_error::UsageReason;

/// A command line option.
pub trait Flag: Sync {
    /// Returns the names and the documentation of the flag.
    fn spec(&self) -> &'static FlagSpec;

    /// Stores the value, or returns the reason why it is refused.
    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageReason>;
}

/// The names and the documentation of a flag.
#[derive(Clone, Copy, Debug)]
pub struct FlagSpec {
    /// The name after `--`.
    pub long: &'static str,
    /// The letter after `-`.
    pub short: Option<char>,
    /// The value that follows the flag, if any.
    pub syntax: FlagSyntax,
    /// The chapter of the help that lists the flag.
    pub category: HelpCategory,
    /// True if the short help (`--help` without a subject) lists the flag.
    pub important: bool,
    /// The effect of the flag, in a few words.
    pub help: &'static str,
    /// The effect of the flag in sentences, with default, unit and hazards.
    pub doc: &'static str,
    /// A command line that uses the flag.
    pub example: &'static str,
    /// Long names of related flags.
    pub see_also: &'static [&'static str],
}

/// The form of the value of a flag, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagSyntax {
    /// No value; `--no-` turns the flag off.
    Switch,
    /// No value; there is no `--no-` form.
    Once,
    /// A value, described by this word. If the word is `file`, a value that begins with a dash
    /// causes a warning.
    Value(&'static str),
    /// An optional value, only as `--name=value`.
    Optional(&'static str),
    /// The next argument, if there is one.
    Trailing(&'static str),
}

impl FlagSyntax {
    /// Returns true if the letters after this flag's letter are its value.
    pub fn is_glued(self) -> bool {
        matches!(self, FlagSyntax::Value(_) | FlagSyntax::Optional(_) | FlagSyntax::Trailing(_))
    }
}

/// The chapters of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelpCategory {
    /// User names, passwords, tokens.
    Auth,
    /// The connections of a transfer.
    Connection,
    /// Extraction of values, and later stages.
    Extract,
    /// The program itself.
    General,
    /// Requests and responses.
    Http,
    /// The destination of bodies.
    Output,
    /// Several transfers at a time.
    Parallel,
    /// Requests with a body.
    Post,
    /// Proxies.
    Proxy,
    /// Limits of time and size, retries.
    Limits,
    /// Certificates and versions of TLS.
    Tls,
    /// The reports about transfers.
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

    /// Returns the name of the category for `--help`.
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

    /// Returns the title of the category.
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
            HelpCategory::Verbose => "What is told about transfers",
        }
    }
}
