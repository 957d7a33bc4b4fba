//! Checks that each block of code in the README and the guides is tested. The comment `<!-- tested
//! by: FILE -->` before a block names its test. The comment `<!-- not run: REASON -->` gives the
//! reason why it has none.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::guides::{NOT_RUN, TESTED_BY};

/// The documents with code blocks that a test runs: the document, the language of the blocks, and
/// the file of the test.
const RUN_BY: &[(&str, &str, &str)] = &[
    ("README.md", "sh", "crates/cli/tests/suite/guides.rs"),
    ("docs/archives.md", "sh", "crates/cli/tests/suite/guides.rs"),
    ("docs/c.md", "c", "crates/capi/tests/installation.rs"),
    ("docs/c.md", "cmake", "crates/capi/tests/installation.rs"),
    ("docs/c.md", "cpp", "crates/capi/tests/installation.rs"),
    ("docs/curl.md", "sh", "crates/cli/tests/suite/guides.rs"),
    ("docs/exit-codes.md", "sh", "crates/cli/tests/suite/guides.rs"),
    ("docs/jobs.md", "sh", "crates/cli/tests/suite/guides.rs"),
    ("docs/many-pages.md", "sh", "crates/cli/tests/suite/guides.rs"),
    ("docs/one-big-get.md", "sh", "crates/cli/tests/suite/guides.rs"),
    ("docs/package-managers.md", "ini", "crates/cli/tests/suite/package_managers.rs"),
    ("docs/package-managers.md", "make", "crates/cli/tests/suite/package_manager_commands.rs"),
    ("docs/package-managers.md", "sh", "crates/cli/tests/suite/guides.rs"),
    ("docs/perl.md", "perl", "bindings/perl/t/42-guide.t"),
    ("docs/python.md", "python", "bindings/python/tests/test_guide.py"),
    ("docs/recipes.md", "sh", "crates/cli/tests/suite/guides.rs"),
    ("docs/records.md", "sh", "crates/cli/tests/suite/guides.rs"),
    ("docs/rust.md", "rust", "crates/engine/tests/rust_guide.rs"),
    ("docs/scale-out.md", "python", "bindings/python/tests/test_engines.py"),
    ("docs/scale-out.md", "sh", "crates/cli/tests/suite/guides.rs"),
    ("docs/scale-out.md", "yaml", "crates/cli/tests/suite/shards.rs"),
];

/// The minimum length, in bytes, of the reason in a `not run` comment before a code block.
const REASON_MIN: usize = 20;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the README and the guides, as paths from the root of the repository.
fn documents() -> Vec<String> {
    let guides = fs::read_dir(root().join("docs")).unwrap();
    let names = guides.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut documents: Vec<String> =
        names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    documents.push("README.md".to_owned());
    documents.sort();
    documents
}

/// Returns true if the test file `test` mentions the document.
fn is_used_by(test: &str, document: &str) -> bool {
    let name = document.rsplit('/').next().unwrap();
    fs::read_to_string(root().join(test)).is_ok_and(|text| text.contains(name))
}

/// Returns the code blocks of a document that no test runs, and for which the document gives no
/// reason. A `text` block after a block that is run counts as the output of that block. Adds the
/// document and the language to `run` for each block that is run because of [`RUN_BY`].
fn forgotten_blocks<'d>(document: &'d str, text: &'d str, run: &mut BTreeSet<(&'d str, &'d str)>) -> Vec<String> {
    let mut forgotten = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut before = "";
    // True while the last block was run, so that its output may follow.
    let mut has_run = false;
    while let Some((number, line)) = lines.next() {
        let mark = std::mem::replace(&mut before, line);
        let Some(language) = line.trim_start().strip_prefix("```") else {
            has_run &= line.is_empty();
            continue;
        };
        lines.by_ref().take_while(|(_, line)| line.trim_start() != "```").for_each(drop);
        let rest_of = |beginning| mark.strip_prefix(beginning)?.strip_suffix(" -->");
        let reason = rest_of(NOT_RUN);
        let is_output = language == "text" && has_run;
        let is_run = RUN_BY.iter().any(|(known, of, _)| (*known, *of) == (document, language));
        has_run = false;
        if rest_of(TESTED_BY).is_some_and(|test| is_used_by(test, document)) {
            continue;
        }
        match reason {
            Some(reason) if reason.len() >= REASON_MIN => continue,
            None if is_output => continue,
            None if is_run && line.starts_with("```") => {
                has_run = true;
                run.insert((document, language));
            }
            _ => forgotten.push(format!("{document}:{}: {line}", number + 1)),
        }
    }
    forgotten
}

#[test]
fn each_guide_block_is_tested_or_gives_reason() {
    let mut forgotten = Vec::new();
    let mut seen = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(root().join(&document)).unwrap();
        let mut run = BTreeSet::new();
        forgotten.extend(forgotten_blocks(&document, &text, &mut run));
        seen.extend(run.into_iter().map(|(document, language)| (document.to_owned(), language.to_owned())));
    }
    assert!(forgotten.is_empty(), "no test runs these blocks:\n{}", forgotten.join("\n"));
    for (document, language, test) in RUN_BY {
        assert!(is_used_by(test, document), "{test} does not run {document}");
        let is_seen = seen.iter().any(|(known, of)| (known.as_str(), of.as_str()) == (*document, *language));
        assert!(is_seen, "{document} has no block in {language}");
    }
}

/// Code blocks that no test runs contain calls of `make`. The targets of these calls must exist in
/// the Makefile.
#[test]
fn make_targets_in_the_guides_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    for document in documents() {
        let text = fs::read_to_string(root().join(&document)).unwrap();
        for line in text.lines().filter_map(|line| line.strip_prefix("make ")) {
            let words = line.split('#').next().unwrap().split_whitespace();
            for target in words.filter(|word| !word.contains('=')) {
                assert!(makefile.contains(&format!("\n{target}:")), "{document}: make {target}");
            }
        }
    }
}

#[test]
fn untested_guide_block_is_detected() {
    let forgotten = |text: &str| forgotten_blocks("docs/curl.md", text, &mut BTreeSet::new()).len();
    assert_eq!(forgotten("```sh\nhaul x\n```\n```text\nits output\n```\n"), 0);
    assert_eq!(forgotten("```text\nno output\n```\n"), 1);
    assert_eq!(forgotten("```sh\nhaul x\n```\nword\n```text\nno output\n```\n"), 1);
    assert_eq!(forgotten("```tcl\nputs x\n```\n"), 1);
    assert_eq!(forgotten("  ```sh\n  haul x\n  ```\n"), 1);
    assert_eq!(forgotten("<!-- not run: it needs another system -->\n```tcl\nputs x\n```\n"), 0);
    let tested = |test: &str| forgotten(&format!("<!-- tested by: {test} -->\n```tcl\nputs x\n```\n"));
    assert_eq!(tested("crates/cli/tests/suite/guides.rs"), 0);
    assert_eq!(tested("crates/cli/tests/suite/dns.rs"), 1);
    assert_eq!(forgotten("<!-- not run: -->\n```tcl\nputs x\n```\n"), 1);
}
