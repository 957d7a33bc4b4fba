//! Tests that the table of flags is consistent.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;

use super::*;
use crate::build_plan::resolve;
use crate::file_and_environment_access::FilesAndEnvironment;
use crate::parse::parse;

/// A [`FilesAndEnvironment`] in which every file exists. A file with the extension `hex` contains a
/// key. Any other file contains a line that is valid as a config line, as a header field and as
/// data.
struct AnyFileAccess;

impl FilesAndEnvironment for AnyFileAccess {
    fn open(&mut self, path: &Path) -> io::Result<Box<dyn Read>> {
        match path.extension() {
            Some(extension) if extension == "hex" => Ok(Box::new(&[b'7'; 64][..])),
            _ => Ok(Box::new(&b"url: http://example.com/"[..])),
        }
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        (name == "HOME").then(|| "/home/me".into())
    }
}

/// Splits a command line into words as a shell does. It supports only blanks and quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        let word = words.last_mut().expect("there is always one");
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') => words.push(String::new()),
            (_, c) => word.push(c),
        }
    }
    assert_eq!(quote, None, "unclosed quote in {line}");
    words
}

#[test]
fn flag_table_is_sorted_and_unique() {
    let names: Vec<_> = FLAGS.iter().map(|flag| flag.spec().long).collect();
    assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    let mut letters: Vec<_> = FLAGS.iter().filter_map(|flag| flag.spec().short).collect();
    let count = letters.len();
    letters.sort_unstable();
    letters.dedup();
    assert_eq!(letters.len(), count);
    assert!(letters.iter().all(char::is_ascii));
}

#[test]
fn flag_lookup_finds_every_name() {
    for flag in FLAGS {
        let spec = flag.spec();
        let found = find_long(spec.long.as_bytes()).expect(spec.long);
        assert_eq!(found.spec().long, spec.long);
        if let Some(letter) = spec.short {
            assert_eq!(find_short(letter as u8).expect(spec.long).spec().long, spec.long);
        }
        if let Some(positive) = spec.long.strip_prefix("no-") {
            assert!(find_long(positive.as_bytes()).is_none(), "--{} has two meanings", spec.long);
        }
    }
    assert!(find_long(b"").is_none() && find_long(b"maxtime").is_none());
    for letter in 0..=u8::MAX {
        let has_letter = |flag: &Flag| flag.spec().short == Some(char::from(letter));
        assert_eq!(find_short(letter).is_some(), FLAGS.iter().any(has_letter), "{letter}");
    }
}

#[test]
fn every_flag_is_documented() {
    for flag in FLAGS {
        let spec = flag.spec();
        let name = spec.long;
        assert!((3..=60).contains(&spec.help.len()), "{name}: {}", spec.help);
        assert!(!spec.help.ends_with('.'), "{name}: a summary has no full stop");
        assert!(spec.doc.len() > 20 && spec.doc.ends_with('.'), "{name}: {}", spec.doc);
        assert!(!spec.see_also.is_empty(), "{name} stands alone");
        for other in spec.see_also.split_ascii_whitespace() {
            assert_ne!(other, name);
            assert!(find_long(other.as_bytes()).is_some(), "{name}: see also {other}");
        }
    }
}

#[test]
fn flag_examples_use_their_flag_and_parse() {
    for flag in FLAGS {
        let spec = flag.spec();
        let words = words(spec.example);
        assert_eq!(words[0], "haul", "{}", spec.example);
        let long = |word: &String| {
            let name = word.split('=').next().unwrap_or_default();
            name == format!("--{}", spec.long) || name == format!("--no-{}", spec.long)
        };
        let short = |word: &String| match spec.short {
            Some(':') | None => false,
            Some(letter) => word.starts_with('-') && !word.starts_with("--") && word.contains(letter),
        };
        assert!(words.iter().any(|word| long(word) || short(word)), "{}", spec.example);
        let args = words[1..].iter().map(Into::into);
        let low = parse(args, &mut AnyFileAccess).unwrap_or_else(|error| panic!("{}: {error}", spec.example));
        assert_eq!(low.warnings, [""; 0], "{}", spec.example);
        // The command line of a job is stored in the job before it is resolved.
        let is_run = low.info.is_none() && low.agent_command.is_none() && low.global.job.is_none();
        if is_run {
            let plan = resolve(low, &mut AnyFileAccess);
            let plan = plan.unwrap_or_else(|error| panic!("{}: {error}", spec.example));
            assert_eq!(plan.warnings, [""; 0], "{}", spec.example);
        }
    }
}

/// The text of `-w` in the manual lists variables such as `%{url.host}` as `url.PART`, with a list
/// of the parts.
#[test]
fn write_out_manual_has_every_variable() {
    let doc = find_long(b"write-out").expect("-w").spec().doc;
    let words: Vec<_> = doc.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    for (name, _) in crate::write_out::WriteOutVariable::NAMES {
        let name = name.strip_prefix("url.").or(name.strip_prefix("urle.")).unwrap_or(name);
        assert!(words.contains(&name), "{name}");
    }
}

#[test]
fn unsupported_list_has_no_supported_flag() {
    for flag in FLAGS {
        let spec = flag.spec();
        assert!(!unsupported::has_name(spec.long.as_bytes()), "{}", spec.long);
        if let Some(letter) = spec.short {
            assert!(unsupported::option_of_letter(letter as u8).is_none(), "-{letter}");
        }
    }
    assert!(unsupported::has_name(b"proxy-http3") && unsupported::option_of_letter(b'Q').is_some());
    assert!(!unsupported::has_name(b"") && unsupported::option_of_letter(b'!').is_none());
}
