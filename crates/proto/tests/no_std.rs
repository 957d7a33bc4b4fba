//! Checks that the attributes and features that make the crate `no_std` are set. The crate cannot
//! do I/O, because it cannot name `std`; the compiler enforces that.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a source folder") {
        let path = entry.expect("a source file").path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn crate_is_no_std_without_unsafe() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(folder.join("lib.rs")).expect("lib.rs");
    for switch in ["#![no_std]", "#![forbid(unsafe_code)]"] {
        assert!(lib.lines().any(|line| line == switch), "{switch} is unconditional");
    }
    let mut found = Vec::new();
    sources(&folder, &mut found);
    assert!(found.len() > 10);
    for path in found {
        let text = fs::read_to_string(&path).expect("a source file");
        assert!(!text.contains("extern crate std"), "{}: std would come in by this door", path.display());
    }
}
