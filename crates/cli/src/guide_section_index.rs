//! The index of the guides in `docs`, by which `--help WORD` finds their sections.
//!
//! `haul --generate DIRECTORY` writes the index from the headings of the guides and the options
//! that each section mentions, so that the program has it without the guides.
//!
//! ```
//! use haul_cli::guide_section_index;
//!
//! assert!(guide_section_index::sections().any(|section| section.place == "docs/jobs.md#failures"));
//! ```

use std::collections::BTreeSet;
use std::path::Path;

/// The index of the guides: a line for each section, with its file and anchor, its title and its
/// options, separated by tabs.
const INDEX: &str = include_str!("guide_index.txt");

/// The pages in `docs` that are not guides: benchmark results and a generated table.
const EXCLUDED_PAGES: [&str; 2] = ["benchmarks.md", "curl-compat.md"];

/// A section of a guide in the directory `docs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuideSection<'a> {
    /// The file and the anchor, such as `docs/jobs.md#failures`.
    pub place: &'a str,
    /// The title of the guide and the heading of the section.
    pub title: &'a str,
    /// The long names of the options that the section mentions, without dashes. Blanks separate
    /// them.
    options: &'a str,
}

impl<'a> GuideSection<'a> {
    /// Returns the long names of the options that the section mentions, without dashes.
    pub fn options(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.options.split(' ').filter(|name| !name.is_empty())
    }
}

/// Returns the sections of all guides.
pub fn sections() -> impl Iterator<Item = GuideSection<'static>> {
    INDEX.lines().filter_map(|line| {
        let mut parts = line.split('\t');
        Some(GuideSection { place: parts.next()?, title: parts.next()?, options: parts.next()? })
    })
}

/// Generates the index from the guides in the directory `docs`.
///
/// # Errors
/// A guide cannot be read.
pub fn generate(docs: &Path) -> std::io::Result<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(docs)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") && !EXCLUDED_PAGES.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names.sort();
    let pages = names.iter().map(|name| Ok(index_page(name, &std::fs::read_to_string(docs.join(name))?)));
    pages.collect()
}

/// Returns the index lines of a guide: one for the text before the first section, and one for each
/// section.
fn index_page(name: &str, text: &str) -> String {
    let mut lines = String::new();
    let mut title = name;
    let mut place = format!("docs/{name}");
    let mut heading = String::new();
    let mut options = BTreeSet::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let (level, rest) = (line.bytes().take_while(|byte| *byte == b'#').count(), line.trim_start_matches('#'));
        match level {
            1 if !is_code => title = rest.trim(),
            2 | 3 if !is_code => {
                lines.push_str(&index_line(&place, title, &heading, &options));
                options.clear();
                heading = rest.trim().replace('`', "");
                place = format!("docs/{name}#{}", anchor(&heading));
            }
            _ => options.extend(options_in(line)),
        }
    }
    lines + &index_line(&place, title, &heading, &options)
}

fn index_line(place: &str, title: &str, heading: &str, options: &BTreeSet<&str>) -> String {
    let names: Vec<&str> = options.iter().copied().collect();
    let title = title.replace('`', "");
    let separator = if heading.is_empty() { "" } else { ": " };
    format!("{place}\t{title}{separator}{heading}\t{}\n", names.join(" "))
}

/// Returns the anchor that GitHub gives to a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Returns the long names of haul's options in a text, without dashes.
fn options_in(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let words = text.split(move |c| !is_part(c)).filter_map(|word| word.strip_prefix("--"));
    words.filter(|name| crate::flags::find_long(name.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guide_sections_have_anchors_titles_and_options() {
        let text = "# The guide\n\nBegin with `--silent`.\n\n## First `--job`, then\n```sh\n# no --heading\nhaul --job f \
                    -s\n```\n### What's this?\n";
        let lines = index_page("g.md", text);
        let expected = "docs/g.md\tThe guide\tsilent\ndocs/g.md#first---job-then\tThe guide: First --job, then\tjob\n\
                        docs/g.md#whats-this\tThe guide: What's this?\t\n";
        assert_eq!(lines, expected);
    }

    #[test]
    fn every_guide_index_line_is_a_section() {
        assert_eq!(sections().count(), INDEX.lines().count());
        assert!(sections().flat_map(|section| section.options()).any(|name| name == "job"));
    }
}
