//! The texts of `--help` and `--version`, generated from the table of flags and the index of the
//! guides.
//!
//! ```
//! use haul_cli::program_persona::ProgramPersona;
//!
//! let text = haul_cli::help::help(ProgramPersona::Haul, Some("tls")).unwrap();
//! assert!(text.contains(" -k, --insecure"));
//! assert!(haul_cli::help::help(ProgramPersona::Haul, Some("--insecure")).unwrap().contains("haul -k"));
//! assert!(haul_cli::help::help(ProgramPersona::Haul, Some("jar")).unwrap().contains("--cookie-jar"));
//! assert!(haul_cli::help::help(ProgramPersona::Haul, Some("nonsense")).is_err());
//! ```

mod search;

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::did_you_mean;
use crate::flags::{self, FLAGS, Flag, FlagSpec, FlagSyntax, HelpCategory, curl_help_categories};
use crate::program_persona::VERSION;
use crate::program_persona::{CURL_VERSION, ProgramPersona};
use crate::usage_error::{ArgPosition, UsageError, UsageErrorReason, printable};

/// The features that `--version` can list: those features of curl that some build of haul has, with
/// curl's names and in curl's order.
const FEATURES: &str = "alt-svc AsynchDNS brotli ECH GSS-API HSTS HTTP2 HTTP3 HTTPS-proxy IDN IPv6 Kerberos Largefile \
                        libz PSL SPNEGO SSL threadsafe UnixSockets zstd";

/// Returns the features of this build that `--version` lists.
fn features() -> String {
    let has = |name: &&str| match *name {
        "HTTP3" => haul::HAS_HTTP3,
        "GSS-API" | "Kerberos" | "SPNEGO" => haul::HAS_NEGOTIATE,
        "UnixSockets" => cfg!(unix),
        _ => true,
    };
    FEATURES.split(' ').filter(has).collect::<Vec<_>>().join(" ")
}

/// The release date of the version of curl that haul claims to be when it acts as curl.
const CURL_DATE: &str = "2026-09-02";

/// The width in columns to which the help texts of `--help OPTION` and `--manual` are wrapped.
const WIDTH: usize = 78;

/// Returns the text that `--help SUBJECT` prints.
///
/// The subject is a category, `all`, `category` (which lists the categories), an option, or words
/// to search for. Without a subject the text lists the most used options.
pub fn help(persona: ProgramPersona, subject: Option<&str>) -> Result<String, UsageError> {
    let program = persona.name();
    let mut text = String::new();
    match subject {
        None => {
            append_formatted(&mut text, format_args!("Usage: {program} [options...] <url>\n"));
            append_option_list(&mut text, persona, |spec| spec.important);
            text.push_str(
                "\nThis is not the full help; this menu is split into categories.\n\
                 Use \"--help category\" to get an overview of all categories, which are:\n",
            );
            let names: Vec<_> = categories(persona).into_keys().collect();
            append_wrapped(&mut text, &format!("{}.", names.join(", ")), "");
            text.push_str(
                "Use \"--help all\" to list all options\n\
                 Use \"--help --option\" to view documentation for a given option\n",
            );
            if !persona.is_curl() {
                text.push_str("Use \"--help WORD\" to search options and guides, such as \"--help timeout\"\n");
                text.push_str("Use \"haul doctor URL\" to see what happens when a URL is fetched\n");
            }
        }
        Some(subject) if is_subject(persona, subject, "all") => {
            append_formatted(&mut text, format_args!("Usage: {program} [options...] <url>\n"));
            append_option_list(&mut text, persona, |_| true);
        }
        Some(subject) if is_subject(persona, subject, "category") => append_categories(&mut text, persona),
        Some(subject) => match categories(persona).iter().find(|(name, _)| is_subject(persona, subject, name)) {
            Some((subject, about)) => {
                append_formatted(&mut text, format_args!("{subject}: {about}\n"));
                append_option_list(&mut text, persona, |spec| {
                    spec.category.name() == *subject
                        || persona.is_curl() && curl_help_categories::is_in_category(subject, spec.long)
                });
            }
            None => match flag_of(subject) {
                Some(flag) => {
                    append_option_description(&mut text, &flag.spec());
                    if !persona.is_curl() && !subject.starts_with('-') {
                        text.push_str(&search::other_results(subject, &flag.spec()));
                    }
                }
                // No failure to curl, but no help either.
                None if persona.is_curl() && subject.starts_with('-') => {
                    return Err(UsageError::new(ArgPosition::Whole, UsageErrorReason::NoSuchHelp));
                }
                None if persona.is_curl() => {
                    text.push_str("Unknown category provided, here is a list of all categories:\n\n");
                    append_categories(&mut text, persona);
                }
                None => match search::search_results(subject) {
                    Some(found) => text.push_str(&found),
                    None => return Err(unknown_subject_error(subject)),
                },
            },
        },
    }
    Ok(text)
}

/// Returns the error for an unknown subject of `--help`.
fn unknown_subject_error(subject: &str) -> UsageError {
    let position = ArgPosition::Option(format!("--help {}", printable(subject.as_bytes())));
    let meant = did_you_mean::similar_options(subject.trim_start_matches('-'));
    let reason = match meant.first() {
        Some(option) => format!("there is nothing about that; did you mean {option}?"),
        None => "there is nothing about that; --help category lists the categories".to_owned(),
    };
    UsageError::new(position, UsageErrorReason::bad_use(reason))
}

/// Returns the text of `--manual`: the documentation of every option.
pub fn manual(persona: ProgramPersona) -> String {
    let mut text = format!("Usage: {} [options...] <url>\n", persona.name());
    for flag in FLAGS {
        text.push('\n');
        append_option_description(&mut text, &flag.spec());
    }
    text
}

/// Returns the text of `--version`. It lists the features of curl that haul supports, because
/// scripts search the text for them.
pub fn version(persona: ProgramPersona) -> String {
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    match persona {
        ProgramPersona::Haul => {
            format!("haul {VERSION} ({arch}-{os})\nProtocols: http https\nFeatures: {}\n", features())
        }
        ProgramPersona::Curl => format!(
            "curl {CURL_VERSION} ({arch}-pc-{os}-gnu) libcurl/{CURL_VERSION} haul/{VERSION} rustls zlib brotli zstd\n\
             Release-Date: {CURL_DATE}\nProtocols: file http https\nFeatures: {}\n",
            features()
        ),
    }
}

/// Returns true if `subject`, the user's argument of `--help`, equals `name`. Case is ignored if
/// haul acts as curl.
fn is_subject(persona: ProgramPersona, subject: &str, name: &str) -> bool {
    subject == name || persona.is_curl() && subject.eq_ignore_ascii_case(name)
}

/// Returns the names of the help categories of options, each with its title. If haul acts as curl,
/// curl's categories are included.
fn categories(persona: ProgramPersona) -> BTreeMap<&'static str, &'static str> {
    let ours = HelpCategory::ALL.iter().map(|category| (category.name(), category.about()));
    ours.chain(curl_help_categories::categories().filter(|_| persona.is_curl())).collect()
}

fn append_categories(text: &mut String, persona: ProgramPersona) {
    for (name, about) in categories(persona) {
        append_formatted(text, format_args!(" {name:<12}{about}\n"));
    }
}

/// Returns the option that `subject` names, with or without dashes. A word that begins with `--no-`
/// names the option without `no-`. Returns `None` if there is no such option.
pub(crate) fn flag_of(subject: &str) -> Option<Flag> {
    if let Some(long) = subject.strip_prefix("--") {
        let positive = || flags::find_long(long.strip_prefix("no-")?.as_bytes());
        return flags::find_long(long.as_bytes()).or_else(positive);
    }
    match subject.strip_prefix('-').unwrap_or(subject).as_bytes() {
        [letter] => flags::find_short(*letter),
        name => flags::find_long(name),
    }
}

fn append_option_list(text: &mut String, persona: ProgramPersona, shown: impl Fn(&FlagSpec) -> bool) {
    let specs = || {
        FLAGS
            .iter()
            .map(|flag| flag.spec())
            .filter(|spec| shown(spec))
            .map(|spec| listed_name_and_description(persona, &spec))
    };
    // A long name of a value should not push every description to the right.
    let width = specs().map(|(names, _)| names.len()).filter(|&width| width < 32).max();
    let width = width.unwrap_or(0);
    for (names, help) in specs() {
        append_formatted(text, format_args!(" {names:<width$}  {help}\n"));
    }
}

/// Returns the names and the short description of an option, as `--help` lists them. If haul acts
/// as curl, an option that is on by default is listed as `--no-NAME`, as in curl.
fn listed_name_and_description(persona: ProgramPersona, spec: &FlagSpec) -> (String, &'static str) {
    match curl_help_categories::negated_description(spec.long) {
        _ if !persona.is_curl() => (spelled_names(spec), spec.help),
        Some(help) => (format!("    --no-{}", spec.long), help),
        None => (spelled_names(spec), spec.help.strip_suffix(" (default)").unwrap_or(spec.help)),
    }
}

fn spelled_names(spec: &FlagSpec) -> String {
    let letter = match spec.short {
        Some(letter) => format!("-{letter}, "),
        None => "    ".to_owned(),
    };
    let value = match spec.syntax {
        FlagSyntax::Switch | FlagSyntax::Once => String::new(),
        FlagSyntax::Value(name) | FlagSyntax::Trailing(name) => format!(" <{name}>"),
        FlagSyntax::Optional(name) => format!("[={name}]"),
    };
    format!("{letter}--{}{value}", spec.long)
}

fn append_option_description(text: &mut String, spec: &FlagSpec) {
    append_formatted(text, format_args!("{}\n", spelled_names(spec).trim_start()));
    append_wrapped(text, spec.doc, "    ");
    if spec.is_turned_off_by_no() {
        append_wrapped(text, &format!("Turned off by --no-{}.", spec.long), "    ");
    }
    append_formatted(text, format_args!("\n    Example:\n      {}\n", spec.example));
    if !spec.see_also.is_empty() {
        let others: Vec<_> = spec.see_also.split_ascii_whitespace().map(|name| format!("--{name}")).collect();
        append_formatted(text, format_args!("\n    See also {}.\n", others.join(", ")));
    }
}

fn append_wrapped(text: &mut String, words: &str, indent: &str) {
    let mut column = 0;
    for word in words.split_ascii_whitespace() {
        if column > 0 && column + 1 + word.len() > WIDTH {
            text.push('\n');
            column = 0;
        }
        if column == 0 {
            text.push_str(indent);
            column = indent.len();
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.len();
    }
    text.push('\n');
}

fn append_formatted(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("a string takes every write");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_help_and_category_help_list_every_flag() {
        let all = help(ProgramPersona::Haul, None).expect("no subject is fine");
        assert!(all.contains("--help category"));
        let all = help(ProgramPersona::Haul, Some("all")).expect("all is a subject");
        for flag in FLAGS {
            let spec = flag.spec();
            let line = format!("--{}", spec.long);
            assert!(all.contains(&line), "{line}");
            let category = help(ProgramPersona::Haul, Some(spec.category.name())).expect("a category is a subject");
            assert!(category.contains(&line), "{line}");
            let own = help(ProgramPersona::Haul, Some(&line)).expect("an option is a subject");
            assert!(own.contains(spec.example), "{line}");
        }
        assert!(all.lines().all(|line| line.len() <= 100), "{all}");
    }

    #[test]
    fn curl_mode_help_has_the_categories_of_curl() {
        let has = |subject, option: &str| {
            let text = help(ProgramPersona::Curl, Some(subject)).expect("a subject of curl");
            text.split_ascii_whitespace().any(|word| word == option)
        };
        for option in ["--globoff", "--fail-early", "--parallel", "--proto-default", "--retry-all-errors"] {
            assert!(has("curl", option), "{option}");
        }
        for (subject, option) in
            [("timeout", "--max-time"), ("dns", "--resolve"), ("upload", "--json"), ("output", "--no-clobber")]
        {
            assert!(has(subject, option), "{subject} {option}");
        }
        for option in ["--no-progress-meter", "--no-keepalive", "--no-sessionid", "--no-alpn", "--no-npn"] {
            assert!(has("all", option), "{option}");
        }
        let most = help(ProgramPersona::Curl, None).expect("no subject is fine");
        assert!(most.contains(" curl, ") && !most.contains("(default)"), "{most}");
        assert!(help(ProgramPersona::Haul, None).expect("no subject is fine").contains("(default)"));
    }

    #[test]
    fn help_categories_are_sorted_and_all_used() {
        let names: Vec<_> = HelpCategory::ALL.iter().map(|category| category.name()).collect();
        assert!(names.is_sorted(), "{names:?}");
        for category in HelpCategory::ALL {
            assert!(FLAGS.iter().any(|flag| flag.spec().category == *category), "{category:?}");
        }
    }

    #[test]
    fn help_finds_options_by_any_spelling() {
        for subject in ["-m", "m", "--max-time", "max-time"] {
            assert!(help(ProgramPersona::Haul, Some(subject)).expect("known").contains("--max-time <seconds>"));
        }
        assert!(help(ProgramPersona::Haul, Some("--no-location")).expect("known").contains("--location"));
    }
}
