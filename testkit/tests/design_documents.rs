//! Checks that the documents match the repository. In `docs/design/faults.md` and
//! `docs/design/trust.md` each fault and refusal names an existing test, and so does each claim in
//! `docs/design/threats.md`. Each hop in `docs/design/tour.md` names an existing function. Links
//! and paths lead to existing files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The headings of those columns in the documents' tables that contain test names.
const HEADINGS: [&str; 3] = ["test", "tests", "run by"];
/// Abbreviations of directories in the tables of `docs/design/faults.md` and
/// `docs/design/threats.md`, each with its directory.
const DIRECTORIES: [(&str, &str); 5] = [
    ("E/", "crates/engine/tests/"),
    ("C/", "crates/cli/tests/"),
    ("P/", "crates/policy/tests/"),
    ("H/", "crates/proto/tests/"),
    ("Y/", "bindings/python/tests/"),
];
/// Abbreviations of test files in the tables of `docs/design/trust.md`, each with its file.
const FILES: [(&str, &str); 3] = [
    ("P", "crates/policy/tests/advisories.rs"),
    ("E", "crates/engine/tests/suite/advisories.rs"),
    ("C", "crates/cli/tests/suite/safe_file_names_and_terminal_text.rs"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns the rows of the tables in a document that have a column of test names. Each row consists
/// of its first cell (the subject) and its cell of test names.
fn table_rows(document: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join(document)).unwrap();
    let (mut found, mut names_tests, mut in_table) = (Vec::new(), false, false);
    for line in text.lines() {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if !line.starts_with('|') {
            in_table = false;
        } else if !in_table {
            in_table = true;
            names_tests = HEADINGS.contains(cells.last().unwrap());
        } else if names_tests && !line.starts_with("|---") {
            found.push((cells[0].to_owned(), (*cells.last().unwrap()).to_owned()));
        }
    }
    found
}

/// Returns the path of the test file `name` in `directory`, or in the subdirectory `suite` if the
/// file is there.
fn in_test_directory(directory: &str, name: &str) -> PathBuf {
    let joined = root().join(directory).join("suite").join(name);
    if joined.exists() { joined } else { root().join(directory).join(name) }
}

/// Returns the path of the test file that a word in a table denotes, abbreviated or not; `None` if
/// the word denotes no file.
fn named_file(word: &str) -> Option<PathBuf> {
    if !word.ends_with(".rs") && !word.ends_with(".py") {
        return None;
    }
    let full = DIRECTORIES.iter().find_map(|(short, long)| Some(in_test_directory(long, word.strip_prefix(short)?)));
    if full.is_some() {
        return full;
    }
    let beside = DIRECTORIES.iter().map(|(_, directory)| in_test_directory(directory, word)).find(|path| path.exists());
    Some(beside.unwrap_or_else(|| root().join(word)))
}

fn is_test_name(word: &str) -> bool {
    word.contains('_') && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        || word.chars().all(|c| c.is_ascii_lowercase())
}

/// Returns the names of the rows of the fault table (one row per fault) that the program `faults`
/// can run.
fn fault_rows() -> BTreeSet<String> {
    let listed = Command::new(env!("CARGO_BIN_EXE_faults")).arg("--list").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    listed.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

fn is_fault_row(word: &str, rows: &BTreeSet<String>) -> bool {
    match word.strip_suffix('*') {
        Some(start) => rows.iter().any(|row| row.starts_with(start)),
        None => rows.contains(word),
    }
}

/// Checks that every test named in a document's tables exists. Returns the number of named tests.
fn check_named_tests(document: &str) -> usize {
    let (rows, mut named, mut current) = (fault_rows(), 0, None::<(PathBuf, String)>);
    let mut missing = Vec::new();
    for (about, cell) in table_rows(document) {
        let before = named;
        // Words in backquotes are every second piece.
        let pieces: Vec<_> = cell.split('`').collect();
        for (at, word) in pieces.iter().enumerate() {
            let letter =
                FILES.iter().find(|(letter, _)| at % 2 == 0 && word.trim_start_matches(", ").trim() == *letter);
            let path = letter.map(|(_, path)| root().join(path)).or_else(|| named_file(word).filter(|_| at % 2 == 1));
            if let Some(path) = path {
                let text = fs::read_to_string(&path).unwrap_or_default();
                if text.is_empty() {
                    missing.push(format!("{about}: there is no {}", path.display()));
                }
                named += usize::from(at % 2 == 1);
                current = Some((path, text));
            } else if at % 2 == 0 {
                continue;
            } else if is_fault_row(word, &rows) || word.starts_with("make ") || word.starts_with("faults --") {
                named += 1;
            } else if is_test_name(word) {
                named += 1;
                let is_there =
                    |text: &str| ["fn", "def"].iter().any(|keyword| text.contains(&format!("{keyword} {word}(")));
                if !current.as_ref().is_some_and(|(_, text)| is_there(text)) {
                    let place = current.as_ref().map(|(path, _)| path.display().to_string());
                    missing.push(format!("{about}: there is no {word} in {place:?}"));
                }
            } else {
                missing.push(format!("{about}: {word} is neither a test nor a row of faults"));
            }
        }
        if named == before {
            missing.push(format!("{about}: no test is named"));
        }
    }
    assert!(missing.is_empty(), "{document}:\n{}", missing.join("\n"));
    named
}

#[test]
fn faults_and_refusals_name_existing_tests() {
    assert!(check_named_tests("docs/design/faults.md") > 100);
}

#[test]
fn trust_tables_name_existing_tests() {
    assert!(check_named_tests("docs/design/trust.md") > 40);
}

#[test]
fn threat_tables_name_existing_tests() {
    assert!(check_named_tests("docs/design/threats.md") > 100);
}

/// Returns the paths of the Markdown files in the repository, relative to its root.
fn documents() -> Vec<String> {
    let listed = Command::new("git").args(["ls-files", "*.md"]).current_dir(root()).output();
    // An unpacked archive has no index: the directories with documents are listed instead.
    let listed = listed.ok().filter(|listed| listed.status.success()).map(|listed| listed.stdout);
    if let Some(listed) = listed.filter(|listed| !listed.is_empty()) {
        return String::from_utf8(listed).unwrap().lines().map(str::to_owned).collect();
    }
    let mut found = Vec::new();
    for directory in ["", "docs/", "docs/design/", "bench/results/"] {
        for entry in fs::read_dir(root().join(directory)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            found.extend(name.ends_with(".md").then(|| format!("{directory}{name}")));
        }
    }
    found
}

/// Returns the targets of the links in a Markdown text. Code blocks are skipped.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        let mut rest = if in_code { "" } else { line };
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            found.extend(rest.find(')').map(|end| &rest[..end]));
        }
    }
    found
}

/// Returns the link anchors that GitHub generates for the headings of a Markdown text.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings
        .map(|heading| {
            let kept = heading.to_lowercase().replace(' ', "-");
            kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
        })
        .collect()
}

#[test]
fn relative_links_lead_to_files_and_headings() {
    let mut broken = Vec::new();
    // The table of contents of the site has links from another directory, which `make site` checks.
    for document in documents().into_iter().filter(|document| document != "scripts/site/SUMMARY.md") {
        let path = root().join(&document);
        let text = fs::read_to_string(&path).unwrap();
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let has_anchor = || anchors(&fs::read_to_string(&target).unwrap_or_default()).contains(anchor);
            if !target.exists() || !(anchor.is_empty() || has_anchor()) {
                broken.push(format!("{document}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Expands braces in a path: `src/{a,b}.rs` gives `src/a.rs` and `src/b.rs`.
fn expand_braces(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    choices.split(',').flat_map(|choice| expand_braces(&format!("{before}{choice}{after}"))).collect()
}

/// Returns the paths in a Markdown text that are in backquotes and relative to the root of the
/// repository. Paths that contain a placeholder (`*`, `DATE`) are skipped.
fn repository_paths(text: &str) -> Vec<String> {
    let is_path = |word: &&str| {
        let roots = ["crates/", "bindings/", "testkit/", "bench/src/", "scripts/", "docs/"];
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-{},".contains(c);
        roots.iter().any(|root| word.starts_with(root)) && word.chars().all(is_plain) && !word.contains("DATE")
    };
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.filter(is_path).flat_map(expand_braces).collect()
}

#[test]
fn paths_in_documents_exist() {
    let pages = documents().into_iter().filter(|document| document.starts_with("docs/"));
    let named = |page: String| {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        repository_paths(&text).into_iter().map(move |path| (page.clone(), path))
    };
    let missing: Vec<String> = pages
        .flat_map(named)
        .filter(|(_, path)| !root().join(path).exists())
        .map(|(page, path)| format!("{page}: {path}"))
        .collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Returns the rows of the table in `docs/design/tour.md`: the number of each row, and the file and
/// the function in the row.
fn hops() -> Vec<(usize, String, String)> {
    let text = fs::read_to_string(root().join("docs/design/tour.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let numbered = rows.filter_map(|(number, rest)| Some((number.parse().ok()?, rest)));
    let quoted = |text: &str, at| text.split('`').nth(at).unwrap_or_default().to_owned();
    numbered.map(|(number, rest): (usize, &str)| (number, quoted(rest, 1), quoted(rest, 3))).collect()
}

#[test]
fn tour_names_existing_files_and_functions() {
    let hops = hops();
    let numbers: Vec<usize> = hops.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>());
    assert!((10..=25).contains(&hops.len()), "{} hops", hops.len());
    let is_there = |file: &str, function: &str| {
        let text = fs::read_to_string(root().join(file)).unwrap_or_default();
        ["(", "<"].iter().any(|next| text.contains(&format!("fn {function}{next}")))
    };
    let missing: Vec<String> = hops
        .iter()
        .filter(|(_, file, function)| !is_there(file, function))
        .map(|(number, file, function)| format!("{number}: no fn {function} in {file}"))
        .collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
