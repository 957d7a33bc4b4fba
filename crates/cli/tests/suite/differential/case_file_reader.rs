//! Reads the files of cases. Each case is a command line without the program's name.
//!
//! ```text
//! # a comment
//! file list.txt = one\ntwo\n          exists before each case below
//! -d @list.txt -H 'X: 1' $U/hello     words as a shell has them; $U the origin, $P its port, $D the directory
//!   stdin: text                       of the case above
//!   env: NAME=value
//!   allow: stdout: why                this part must differ (request, stdout, files, exit)
//! ```

use std::path::Path;

#[derive(Clone, Debug, Default)]
pub(crate) struct DifferentialCase {
    /// The name of the case file, and the number of the case's line, for messages.
    pub(crate) place: String,
    pub(crate) words: Vec<String>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) env: Vec<(String, String)>,
    /// The parts of the result that may differ between haul and curl, such as `stdout`, each with a
    /// reason.
    pub(crate) allowed: Vec<(String, String)>,
    /// The names and contents of the files that exist before the case is run.
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

/// Reads all cases (command lines to compare) of a case file.
pub(crate) fn read(path: &Path) -> Vec<DifferentialCase> {
    let text = std::fs::read_to_string(path).expect("a case file");
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut cases: Vec<DifferentialCase> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let place = format!("{name}:{}", at + 1);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(rest) = line.strip_prefix("file ") {
            let (name, content) = rest.split_once(" = ").unwrap_or_else(|| panic!("{place}: file NAME = content"));
            files.push((name.to_owned(), unescaped(content)));
            continue;
        }
        if let Some(directive) = line.strip_prefix("  ") {
            let case = cases.last_mut().unwrap_or_else(|| panic!("{place}: of which case?"));
            let (key, value) = directive.split_once(": ").unwrap_or_else(|| panic!("{place}: KEY: VALUE"));
            match key {
                "stdin" => case.stdin = unescaped(value),
                "env" => {
                    let (name, value) = value.split_once('=').expect("NAME=value");
                    case.env.push((name.to_owned(), value.to_owned()));
                }
                "allow" => {
                    let (part, why) = value.split_once(": ").unwrap_or_else(|| panic!("{place}: PART: WHY"));
                    assert!(["request", "stdout", "files", "exit"].contains(&part), "{place}: {part}");
                    case.allowed.push((part.to_owned(), why.to_owned()));
                }
                _ => panic!("{place}: {key} means nothing"),
            }
            continue;
        }
        cases.push(DifferentialCase { place, words: words(line), files: files.clone(), ..DifferentialCase::default() });
    }
    cases
}

fn unescaped(text: &str) -> Vec<u8> {
    text.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t").replace("\\0", "\0").into_bytes()
}

/// Splits the line of a case into words as a shell does, with single and double quotes. A backslash
/// has no special meaning.
fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => all.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    assert_eq!(quote, None, "unclosed quote in {line}");
    all.extend(word);
    all
}
