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
    // The list also contains the version nodes.
    named.filter(|name| name.starts_with("curl_") || !name.starts_with(|c: char| c.is_ascii_uppercase())).collect()
}

/// The variants of the library: the soname, and the version of the symbols.
const FLAVOURS: [(&str, &str); 2] = [("libcurl.so.4", "CURL_OPENSSL_4"), ("libcurl-gnutls.so.4", "CURL_GNUTLS_3")];

#[test]
fn libraries_export_the_functions_in_the_map_file() {
    let (true, Some(directory)) = (has("nm", "command -v nm"), library()) else { return };
    let map = fs::read_to_string(crate_dir().join("libcurl.map")).unwrap();
    let names: Vec<_> = map.lines().filter_map(|line| line.strip_prefix("    ")?.strip_suffix(';')).collect();
    for (soname, version) in FLAVOURS {
        let names = names.iter().filter(|name| **name != "*");
        let expected: BTreeSet<String> = names.map(|name| format!("{name}@@{version}")).collect();
        assert_eq!(exported(&directory.join(soname)), expected, "{soname}");
    }
}

/// The functions of libcurl 8.14 that older releases lack.
const NEWER: [&str; 5] = [
    "curl_easy_ssls_export",
    "curl_easy_ssls_import",
    "curl_global_trace",
    "curl_multi_get_handles",
    "curl_multi_waitfds",
];

#[test]
fn libraries_export_exactly_the_symbols_of_libcurl() {
    let (true, Some(directory)) = (has("nm", "command -v nm"), library()) else { return };
    for (soname, version) in FLAVOURS {
        let system = Path::new("/usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH)).join(soname);
        if !system.exists() {
            eprintln!("SKIPPED: {} is not installed", system.display());
            continue;
        }
        let (ours, theirs) = (exported(&directory.join(soname)), exported(&system));
        let is_versioned = |name: &&String| name.ends_with(&format!("@@{version}"));
        let missing: Vec<_> = theirs.difference(&ours).filter(is_versioned).collect();
        assert!(missing.is_empty(), "{soname}: {missing:?}");
        let is_newer = |name: &&String| NEWER.contains(&name.split('@').next().unwrap_or_default());
        let unknown: Vec<_> = ours.difference(&theirs).filter(|name| !is_newer(name)).collect();
        assert!(unknown.is_empty(), "{soname}: {unknown:?}");
    }
}

#[test]
fn libraries_have_the_sonames_of_libcurl() {
    let (true, Some(directory)) = (has("readelf", "command -v readelf"), library()) else { return };
    for (soname, _) in FLAVOURS {
        let dynamic = run("readelf", &["-d"], &directory.join(soname));
        assert!(dynamic.contains(&format!("soname: [{soname}]")), "{dynamic}");
    }
}
