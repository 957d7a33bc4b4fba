//! docs/design/faults.md and docs/design/trust.md name a test for each fault and each refusal:
//! every line names one, and each named test exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The last column of the tables that name tests.
const HEADINGS: [&str; 3] = ["test", "tests", "run by"];
/// Abbreviations of directories in faults.md.
const DIRECTORIES: [(&str, &str); 5] = [
    ("E/", "crates/engine/tests/"),
    ("C/", "crates/cli/tests/"),
    ("P/", "crates/policy/tests/"),
    ("H/", "crates/proto/tests/"),
    ("Y/", "bindings/python/tests/"),
];
/// Abbreviations of files in trust.md.
const FILES: [(&str, &str); 3] = [
    ("P", "crates/policy/tests/trust.rs"),
    ("E", "crates/engine/tests/suite/advisories.rs"),
    ("C", "crates/cli/tests/suite/trust.rs"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The rows of the tables that name tests: the subject of each, and the cell with the tests.
fn lines(document: &str) -> Vec<(String, String)> {
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

/// A file of a directory of tests, or of the program that joins most of them.
fn in_directory(directory: &str, name: &str) -> PathBuf {
    let joined = root().join(directory).join("suite").join(name);
    if joined.exists() { joined } else { root().join(directory).join(name) }
}

/// The file that a word names, if it names one.
fn file(word: &str) -> Option<PathBuf> {
    if !word.ends_with(".rs") && !word.ends_with(".py") {
        return None;
    }
    let full = DIRECTORIES.iter().find_map(|(short, long)| Some(in_directory(long, word.strip_prefix(short)?)));
    if full.is_some() {
        return full;
    }
    let beside = DIRECTORIES.iter().map(|(_, directory)| in_directory(directory, word)).find(|path| path.exists());
    Some(beside.unwrap_or_else(|| root().join(word)))
}

fn is_name(word: &str) -> bool {
    word.contains('_') && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        || word.chars().all(|c| c.is_ascii_lowercase())
}

/// The names of the rows that `faults` runs.
fn rows() -> BTreeSet<String> {
    let listed = Command::new(env!("CARGO_BIN_EXE_faults")).arg("--list").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    listed.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

fn is_row(word: &str, rows: &BTreeSet<String>) -> bool {
    match word.strip_suffix('*') {
        Some(start) => rows.iter().any(|row| row.starts_with(start)),
        None => rows.contains(word),
    }
}

/// Checks the tables of a document; returns how many tests it names.
fn check(document: &str) -> usize {
    let (rows, mut named, mut current) = (rows(), 0, None::<(PathBuf, String)>);
    let mut missing = Vec::new();
    for (about, cell) in lines(document) {
        let before = named;
        // Words in backquotes are every second piece.
        let pieces: Vec<_> = cell.split('`').collect();
        for (at, word) in pieces.iter().enumerate() {
            let letter =
                FILES.iter().find(|(letter, _)| at % 2 == 0 && word.trim_start_matches(", ").trim() == *letter);
            let path = letter.map(|(_, path)| root().join(path)).or_else(|| file(word).filter(|_| at % 2 == 1));
            if let Some(path) = path {
                let text = fs::read_to_string(&path).unwrap_or_default();
                if text.is_empty() {
                    missing.push(format!("{about}: there is no {}", path.display()));
                }
                named += usize::from(at % 2 == 1);
                current = Some((path, text));
            } else if at % 2 == 0 {
                continue;
            } else if is_row(word, &rows) || word.starts_with("make ") || word.starts_with("faults --") {
                named += 1;
            } else if is_name(word) {
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
    assert!(check("docs/design/faults.md") > 100);
}

#[test]
fn every_secret_names_a_test_that_is_there() {
    assert!(check("docs/design/trust.md") > 40);
}
