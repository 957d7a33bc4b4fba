//! Suggestions for misspelt names: the options that a word was probably meant to be.
//!
//! ```
//! use haul_cli::did_you_mean;
//!
//! assert_eq!(did_you_mean::similar_options("max-tim"), ["--max-time"]);
//! assert_eq!(did_you_mean::similar_options("no-check-certificate"), ["--insecure"]);
//! assert!(did_you_mean::similar_options("xyzzy").is_empty());
//! ```

use std::collections::HashSet;

use crate::flags::{FLAGS, FlagSyntax};

/// The maximum number of suggestions for one word.
const MAX_SUGGESTIONS: usize = 3;

/// The names of options in other programs (wget, HTTPie, aria2, requests), each with haul's options
/// for the same purpose. The help is also searched for these names.
pub(crate) const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("accept-encoding", &["compressed"]),
    ("auth", &["user", "oauth2-bearer"]),
    ("background", &["agent"]),
    ("body", &["data", "json"]),
    ("ca-certificate", &["cacert"]),
    ("certificate", &["cert"]),
    ("check-certificate", &["insecure"]),
    ("concurrency", &["parallel-max", "parallel-max-host"]),
    ("content-disposition", &["remote-header-name"]),
    ("continue", &["continue-at"]),
    ("cookies", &["cookie", "cookie-jar"]),
    ("crawl", &["then", "depth"]),
    ("delay", &["rate", "retry-delay"]),
    ("directory-prefix", &["output-dir"]),
    ("follow-redirects", &["location"]),
    ("headers", &["header", "include"]),
    ("http-password", &["user"]),
    ("http-user", &["user"]),
    ("jobs", &["parallel-max", "job"]),
    ("load-cookies", &["cookie"]),
    ("manifest", &["checksum"]),
    ("max-concurrent-downloads", &["parallel-max"]),
    ("max-connection-per-server", &["split", "parallel-max-host"]),
    ("max-redirect", &["max-redirs"]),
    ("method", &["request"]),
    ("no-check-certificate", &["insecure"]),
    ("no-clobber", &["clobber", "skip-existing"]),
    ("no-verify", &["insecure"]),
    ("output-document", &["output"]),
    ("output-file", &["stderr", "output"]),
    ("password", &["user"]),
    ("post-data", &["data"]),
    ("post-file", &["data-binary"]),
    ("quiet", &["silent"]),
    ("recursive", &["then", "depth"]),
    ("redirect", &["location", "max-redirs"]),
    ("redirects", &["location", "max-redirs"]),
    ("resume", &["continue-at", "job"]),
    ("retries", &["retry"]),
    ("save-cookies", &["cookie-jar"]),
    ("server-response", &["include", "verbose"]),
    ("spider", &["head"]),
    ("sums", &["checksum"]),
    ("timeout", &["max-time", "connect-timeout", "stall-time"]),
    ("tries", &["retry"]),
    ("verify", &["cacert", "insecure"]),
    ("wait", &["rate"]),
];

/// Returns the options that the user probably meant by the unknown option `name`, the most likely
/// one first. The returned options have dashes before them, `name` has none.
pub fn similar_options(name: &str) -> Vec<String> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let dashed = |names: &[&str]| names.iter().take(MAX_SUGGESTIONS).map(|name| format!("--{name}")).collect();
    if let Some((_, ours)) = OTHER_NAMES.iter().find(|(other, _)| *other == name) {
        return dashed(ours);
    }
    let specs = || FLAGS.iter().map(|flag| flag.spec());
    let begun: Vec<&str> = specs().map(|spec| spec.long).filter(|long| long.starts_with(&name)).collect();
    if name.trim_end_matches('-').len() > 2 && (1..=MAX_SUGGESTIONS).contains(&begun.len()) {
        return dashed(&begun);
    }
    let reordered: Vec<&str> = specs().map(|spec| spec.long).filter(|long| are_permuted(long, &name)).collect();
    if !reordered.is_empty() {
        return dashed(&reordered);
    }
    let (prefix, positive) = match name.strip_prefix("no-") {
        Some(positive) => ("--no-", positive),
        None => ("--", name.as_str()),
    };
    let can_be_off = |syntax| prefix == "--" || syntax == FlagSyntax::Switch;
    let known = || specs().filter(|spec| can_be_off(spec.syntax)).map(|spec| spec.long);
    let others = OTHER_NAMES.iter().map(|(other, _)| *other).filter(|_| prefix == "--");
    let near = closest(positive, known().chain(others));
    let mut options: Vec<String> = Vec::new();
    for near in near {
        let other = OTHER_NAMES.iter().find(|(other, _)| *other == near);
        let ours = other.map_or_else(|| vec![format!("{prefix}{near}")], |(_, ours)| dashed(ours));
        options.extend(ours);
    }
    if options.is_empty() {
        // A longer form of an option, such as --output-directory.
        let begin = known().filter(|long| long.len() > 3 && positive.starts_with(long)).max_by_key(|long| long.len());
        options.extend(begin.map(|long| format!("{prefix}{long}")));
    }
    let mut seen = HashSet::new();
    options.retain(|option| seen.insert(option.clone()));
    options.truncate(MAX_SUGGESTIONS);
    options
}

/// Returns true if two names have the same words in different orders, such as `timeout-connect` and
/// `connect-timeout`.
fn are_permuted(one: &str, other: &str) -> bool {
    let words = |name: &str| {
        let mut words: Vec<String> = name.split('-').map(str::to_owned).collect();
        words.sort();
        words
    };
    one.len() == other.len() && words(one) == words(other)
}

/// Returns the `known` words that differ from a word by one or two typing errors, the most similar
/// word first.
pub(crate) fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Vec<&'k str> {
    // A short word is close to many.
    let most = match word.chars().count() {
        0..=2 => 0,
        3..=4 => 1,
        5..=8 => 2,
        _ => 3,
    };
    let distances = known.into_iter().map(|known| (strsim::damerau_levenshtein(word, known), known));
    let mut near: Vec<(usize, &str)> = distances.filter(|(distance, _)| (1..=most).contains(distance)).collect();
    near.sort_by_key(|(distance, _)| *distance);
    let best = near.first().map_or(0, |(distance, _)| *distance);
    near.into_iter().filter(|(distance, _)| *distance <= best).take(MAX_SUGGESTIONS).map(|(_, known)| known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_options_have_suggestions() {
        for (name, expected) in [
            ("outptu", &["--output"][..]),
            ("ouput", &["--output"]),
            ("no-locaton", &["--no-location"]),
            ("Max_Time", &["--max-time"]),
            ("remote-nam", &["--remote-name", "--remote-name-all"]),
            ("quiet", &["--silent"]),
            ("timeout", &["--max-time", "--connect-timeout", "--stall-time"]),
            ("insecur", &["--insecure"]),
            ("retires", &["--retry"]),
            ("timeout-connect", &["--connect-timeout"]),
            ("output-directory", &["--output-dir"]),
            ("contniue", &["--continue-at"]),
            ("zz", &[]),
            ("", &[]),
            ("something-else-entirely", &[]),
        ] {
            assert_eq!(similar_options(name), expected, "{name}");
        }
    }

    #[test]
    fn other_programs_option_names_map_to_existing_options() {
        assert!(OTHER_NAMES.is_sorted_by_key(|(other, _)| other), "sorted");
        for (other, ours) in OTHER_NAMES {
            assert!(crate::flags::find_long(other.as_bytes()).is_none() || *other == "no-clobber", "{other}");
            for name in *ours {
                assert!(crate::flags::find_long(name.as_bytes()).is_some(), "{other}: {name}");
            }
        }
    }
}
