//! Checks that `include/haul.h` equals the output of cbindgen and is valid C and C++.

mod common;

use std::fs;
use std::process::Command;

use common::{crate_dir, has};

fn header() -> String {
    fs::read_to_string(crate_dir().join("include/haul.h")).unwrap()
}

/// Returns `true` if cbindgen is installed in version 0.28 or later, which supports
/// `#[unsafe(no_mangle)]`.
fn has_cbindgen() -> bool {
    if !has("cbindgen") {
        return false;
    }
    let version = Command::new("cbindgen").arg("--version").output().unwrap().stdout;
    let version = String::from_utf8(version).unwrap();
    let minor = version.trim().strip_prefix("cbindgen 0.").and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    let is_new = minor.is_some_and(|minor| minor >= 28);
    if !is_new {
        eprintln!("SKIPPED: {} is too old", version.trim());
    }
    is_new
}

#[test]
fn header_equals_cbindgen_output() {
    if !has_cbindgen() {
        return;
    }
    let made = Command::new("cbindgen")
        .args(["-q", "--config", "cbindgen.toml", "--crate", "httphaul-capi", "."])
        .current_dir(crate_dir())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(
        String::from_utf8(made.stdout).unwrap() == header(),
        "the header is not that of the sources: run `make header`"
    );
}

#[test]
fn header_names_this_version() {
    let header = header();
    assert!(header.contains(&format!("#define HAUL_VERSION \"{}\"", env!("CARGO_PKG_VERSION"))));
    for (name, number) in [
        ("MAJOR", env!("CARGO_PKG_VERSION_MAJOR")),
        ("MINOR", env!("CARGO_PKG_VERSION_MINOR")),
        ("PATCH", env!("CARGO_PKG_VERSION_PATCH")),
    ] {
        assert!(header.contains(&format!("#define HAUL_VERSION_{name} {number}\n")), "{name}");
    }
}

#[test]
fn header_compiles_as_c_and_cpp_without_warnings() {
    for (compiler, language, standard) in [("cc", "c", "c99"), ("c++", "c++", "c++11")] {
        if !has(compiler) {
            continue;
        }
        let output = Command::new(compiler)
            .args(["-fsyntax-only", "-Wall", "-Wextra", "-pedantic", "-Werror", "-x", language])
            .arg(format!("-std={standard}"))
            .arg(crate_dir().join("include/haul.h"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Checks that every exported function is declared in the header, and that every declared function
/// is exported.
#[test]
fn header_declares_every_exported_function() {
    if !has("nm") {
        return;
    }
    let library = std::env::current_exe().unwrap().parent().unwrap().join("libhaul_c.so");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output().unwrap();
    let exported = String::from_utf8(output.stdout).unwrap();
    let mut exported: Vec<&str> = exported.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    exported.sort_unstable();
    let header = header();
    let mut declared: Vec<&str> = header
        .lines()
        .filter(|line| !line.starts_with("//") && !line.starts_with("typedef") && !line.starts_with([' ', '}', '#']))
        .filter_map(|line| line.split('(').next()?.split([' ', '*']).next_back())
        .filter(|name| name.starts_with("haul_"))
        .collect();
    declared.sort_unstable();
    assert_eq!(exported, declared);
}
