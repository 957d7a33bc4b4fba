//! Sets the SONAME of the shared library, by which programs find it. The SONAME changes when the
//! interface changes incompatibly.
//!
//! Links the unwinder into the library where the C compiler has it to link, and packs the
//! relocations where the C library reads packed ones (docs/design/startup.md), as for the program
//! `haul`.

use std::env;
use std::path::Path;
use std::process::Command;

const UNWINDER: &str = "libgcc_eh.a";
/// The first glibc that reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let major = env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    match env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => println!("cargo::rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libhaul.{major}.dylib"),
        Ok("windows") => {}
        _ => println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhaul.so.{major}"),
    }
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let is_native = env::var("HOST").ok() == env::var("TARGET").ok();
    let is_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if !is_native || !is_glibc {
        return;
    }
    if glibc_version().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,pack-relative-relocs");
    }
    link_unwinder();
}

/// Links the unwinder statically, so that programs need not load `libgcc_s.so.1` with the library.
fn link_unwinder() {
    println!("cargo::rerun-if-env-changed=CC");
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let Ok(answer) = Command::new(compiler).arg(format!("-print-file-name={UNWINDER}")).output() else { return };
    let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
    // A compiler that has no such file repeats the bare name.
    if let Some(directory) = Path::new(answer.trim()).parent().filter(|directory| directory.is_absolute()) {
        println!("cargo::rustc-link-search=native={}", directory.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// Returns the version of this system's glibc, as major and minor number; `None` if it is unknown.
fn glibc_version() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
