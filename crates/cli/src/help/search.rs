//! The search of `--help WORD` in the names and descriptions of options, and in the guides.

use std::collections::BTreeSet;

use super::{append_formatted, spelled_names};
use crate::did_you_mean::OTHER_NAMES;
use crate::flags::{FLAGS, FlagSpec};
use crate::guide_section_index::{self, GuideSection};

/// The maximum number of guide sections in the search results. The options in the results have the
/// same limit, except that options whose names contain the words are always listed.
const MAX_RESULTS: usize = 12;

/// The rank of an option among the search results, by the part of the option's documentation that
/// contains the words. The best rank is the first variant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SearchRank {
    Name,
    OtherName,
    Help,
    Documentation,
}

/// Returns the help text for a search: the options and the sections of guides that contain all
/// words of `subject`. Returns `None` if no option and no section contains them.
pub(super) fn search_results(subject: &str) -> Option<String> {
    let words = words_of(subject);
    if words.is_empty() {
        return None;
    }
    let (options, sections) = (matching_options(&words, None), matching_sections(&words));
    if options.is_empty() && sections.is_empty() {
        return None;
    }
    let mut text = String::new();
    append_options(&mut text, &format!("Options about {subject}:"), &options);
    append_sections(&mut text, &sections);
    Some(text)
}

/// Returns the related options and guide sections for `subject`, the name of `option`.
pub(super) fn other_results(subject: &str, option: &FlagSpec) -> String {
    let words = words_of(subject);
    let mut text = String::new();
    let options = matching_options(&words, Some(option.long));
    if !options.is_empty() {
        append_options(&mut text, &format!("\nOther options about {subject}:"), &options);
    }
    append_sections(&mut text, &matching_sections(&words));
    text
}

fn words_of(subject: &str) -> Vec<String> {
    subject.split_whitespace().map(str::to_lowercase).collect()
}

/// Returns the options whose names or documentation contain all `words`, the best first. The option
/// `without` is left out.
fn matching_options(words: &[String], without: Option<&str>) -> Vec<FlagSpec> {
    let specs = FLAGS.iter().map(|flag| flag.spec()).filter(|spec| Some(spec.long) != without);
    let mut found: Vec<(SearchRank, FlagSpec)> =
        specs.filter_map(|spec| Some((words.iter().map(|word| rank(&spec, word)).max()??, spec))).collect();
    // The others keep the order of their names.
    found.sort_by_key(|(rank, _)| *rank);
    let is_shown = |(at, (rank, _)): &(usize, (SearchRank, FlagSpec))| *rank < SearchRank::Help || *at < MAX_RESULTS;
    found.into_iter().enumerate().filter(is_shown).map(|(_, (_, spec))| spec).collect()
}

/// Returns the rank of the best part of an option's documentation in which a word occurs; `None` if
/// the word does not occur.
fn rank(spec: &FlagSpec, word: &str) -> Option<SearchRank> {
    let is_other_name = || OTHER_NAMES.iter().any(|(other, ours)| *other == word && ours.contains(&spec.long));
    let places = [
        (SearchRank::Name, has_word(spec.long, word)),
        (SearchRank::OtherName, is_other_name()),
        (SearchRank::Help, has_word(spec.help, word)),
        (SearchRank::Documentation, has_word(spec.doc, word)),
    ];
    places.iter().find(|(_, has)| *has).map(|(rank, _)| *rank)
}

/// Returns true if a word of `text` begins with `word`, ignoring case.
fn has_word(text: &str, word: &str) -> bool {
    let text = text.to_lowercase();
    let is_start = |at: usize| !text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
    !word.is_empty() && text.match_indices(word).any(|(at, _)| is_start(at))
}

/// Returns sections of guides: first the sections whose title contains all words, then the sections
/// that mention an option whose name contains all words.
fn matching_sections(words: &[String]) -> Vec<GuideSection<'static>> {
    let has_all = |text: &str| words.iter().all(|word| has_word(text, word));
    let titled = guide_section_index::sections().filter(|section| has_all(section.title));
    let mentioning = guide_section_index::sections().filter(|section| section.options().any(has_all));
    let mut seen = BTreeSet::new();
    titled.chain(mentioning).filter(|section| seen.insert(section.place)).take(MAX_RESULTS).collect()
}

fn append_options(text: &mut String, title: &str, options: &[FlagSpec]) {
    if options.is_empty() {
        return;
    }
    append_formatted(text, format_args!("{title}\n"));
    let width = options.iter().map(|spec| spelled_names(spec).len()).filter(|&width| width < 32).max().unwrap_or(0);
    for spec in options {
        append_formatted(text, format_args!(" {:<width$}  {}\n", spelled_names(spec), spec.help));
    }
}

fn append_sections(text: &mut String, sections: &[GuideSection<'_>]) {
    if sections.is_empty() {
        return;
    }
    let separator = if text.is_empty() { "" } else { "\n" };
    append_formatted(text, format_args!("{separator}Guides:\n"));
    let width = sections.iter().map(|section| section.place.len()).max().unwrap_or(0);
    for section in sections {
        append_formatted(text, format_args!(" {:<width$}  {}\n", section.place, section.title));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(subject: &str) -> String {
        search_results(subject).unwrap_or_default()
    }

    #[test]
    fn help_search_finds_words_in_options_and_guides() {
        for (subject, expected) in [
            ("timeout", &["--connect-timeout", "--max-time", "--stall-time"][..]),
            ("jar", &["--cookie-jar"]),
            ("unique", &["--unique", "docs/many-pages.md"]),
            ("TIMEOUT connect", &["--connect-timeout"]),
            ("no-check-certificate", &["--insecure"]),
            ("crawl", &["--depth"]),
            ("manifest", &["--checksum"]),
            ("failures", &["docs/jobs.md#failures"]),
        ] {
            let text = found(subject);
            assert!(expected.iter().all(|part| text.contains(part)), "{subject}: {text}");
        }
        assert!(found("unique").find("--unique") < found("unique").find("Guides:"));
    }

    #[test]
    fn help_search_for_unknown_words_finds_nothing() {
        for subject in ["xyzzy", "", " ", "imeout"] {
            assert_eq!(search_results(subject), None, "{subject:?}");
        }
    }

    #[test]
    fn help_of_an_option_lists_related_options() {
        let option = FLAGS.iter().map(|flag| flag.spec()).find(|spec| spec.long == "retry").expect("--retry");
        let text = other_results("retry", &option);
        assert!(text.contains("Other options about retry:") && text.contains("--retry-delay"), "{text}");
        assert!(!text.contains("--retry <"), "{text}");
    }

    #[test]
    fn help_search_matches_only_beginnings_of_words() {
        assert!(has_word("The Time limit", "time") && has_word("max-time", "time") && has_word("timeout", "time"));
        assert!(!has_word("sometimes", "time") && !has_word("anything", ""));
    }
}
