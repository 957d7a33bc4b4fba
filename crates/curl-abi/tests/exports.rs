//! Checks the symbols of libcurl.so.4: its soname, its symbol versions, and that it exports the
//! functions of libcurl and nothing else.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use common::{crate_dir, has, library};

fn run(command: &str, arguments: &[&str], file: &Path) -> String {
    let output = Command::new(command).args(arguments).arg(file).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the exported symbols with their versions, such as `curl_free@@CURL_OPENSSL_4`.
fn exported(library: &Path) -> BTreeSet<String> {
    let symbols = run("nm", &["-D", "--defined-only", "--with-symbol-versions"], library);
    let named = symbols.lines().filter_map(|line| Some(line.split(' ').nth(2)?.to_owned()));
    // The version nodes are listed, too.
    named.filter(|name| name.starts_with("curl_") || !name.starts_with(|c: char| c.is_ascii_uppercase())).collect()
}

#[test]
fn library_exports_the_functions_of_its_map() {
    let (true, Some(directory)) = (has("nm", "command -v nm"), library()) else { return };
    let map = fs::read_to_string(crate_dir().join("libcurl.map")).unwrap();
    let names = map.lines().filter_map(|line| line.strip_prefix("    ")?.strip_suffix(';'));
    let expected: BTreeSet<String> =
        names.filter(|name| *name != "*").map(|name| format!("{name}@@CURL_OPENSSL_4")).collect();
    assert_eq!(exported(&directory.join("libcurl.so.4")), expected);
}

#[test]
fn library_has_every_symbol_of_the_systems_libcurl() {
    let system = Path::new("/usr/lib").join(format!("{}-linux-gnu/libcurl.so.4", std::env::consts::ARCH));
    let (true, Some(directory)) = (has("nm", "command -v nm") && system.exists(), library()) else { return };
    // Functions that are newer than the system's are allowed.
    let (ours, theirs) = (exported(&directory.join("libcurl.so.4")), exported(&system));
    let missing: Vec<_> = theirs.difference(&ours).filter(|name| name.ends_with("@@CURL_OPENSSL_4")).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn library_has_libcurls_soname() {
    let (true, Some(directory)) = (has("readelf", "command -v readelf"), library()) else { return };
    let dynamic = run("readelf", &["-d"], &directory.join("libcurl.so.4"));
    assert!(dynamic.contains("soname: [libcurl.so.4]"), "{dynamic}");
}
