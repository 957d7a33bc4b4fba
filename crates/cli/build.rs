//! Links the unwinder into the program where the C compiler has it to link: a shared library less to map, relocate and
//! initialise, which is an eighth of what a start takes (docs/design/startup.md). Elsewhere it stays `libgcc_s.so.1`.
//!
//! Defines the cfg `linux_calls`, as the build script of the engine does.

use std::env;
use std::path::Path;
use std::process::Command;

const UNWINDER: &str = "libgcc_eh.a";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    define_linux_calls();
    println!("cargo::rerun-if-env-changed=CC");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let is_native = env::var("HOST").ok() == env::var("TARGET").ok();
    if !is_native || !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return;
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

fn define_linux_calls() {
    println!("cargo::rustc-check-cfg=cfg(linux_calls)");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if is_linux && env::var_os("CARGO_FEATURE_PORTABLE").is_none() {
        println!("cargo::rustc-cfg=linux_calls");
    }
}
