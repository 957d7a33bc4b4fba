//! Links the unwinder into the program where the C compiler has it to link: a shared library less
//! to map, relocate and initialise, which is an eighth of what a start takes
//! (docs/design/startup.md). Elsewhere it stays `libgcc_s.so.1`.
//!
//! Packs the relocations where the C library reads packed ones: less to read and to do at each
//! start.
//!
//! Defines the cfg `linux_calls`, as the build script of the engine does.

use std::env;
use std::path::Path;
use std::process::Command;

const UNWINDER: &str = "libgcc_eh.a";
/// The first glibc version, as (major, minor), whose dynamic loader reads packed relocations
/// (DT_RELR). The linker packs the relocations only if the system has this version or a later one.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    define_linux_calls();
    println!("cargo::rerun-if-env-changed=CC");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let is_native = env::var("HOST").ok() == env::var("TARGET").ok();
    if !is_native || !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return;
    }
    if glibc_version().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    // A compiler that has no such file repeats the bare name.
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let Ok(answer) = Command::new(compiler).arg(format!("-print-file-name={UNWINDER}")).output() else { return };
    let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
    if let Some(directory) = Path::new(answer.trim()).parent().filter(|directory| directory.is_absolute()) {
        println!("cargo::rustc-link-search=native={}", directory.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// Returns the version of this system's glibc as (major, minor); `None` if it is unknown.
fn glibc_version() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn define_linux_calls() {
    println!("cargo::rustc-check-cfg=cfg(linux_calls)");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if is_linux && env::var_os("CARGO_FEATURE_PORTABLE").is_none() {
        println!("cargo::rustc-cfg=linux_calls");
    }
}
