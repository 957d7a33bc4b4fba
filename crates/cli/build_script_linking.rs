//! Build script code that `httphaul-cli` and `httphaul-capi` share (the latter by a symbolic link):
//! how the program and the library are linked on a system with glibc (docs/design/startup.md).
//!
//! ```ignore
//! if build_script_linking::is_native_glibc() {
//!     build_script_linking::link_unwinder();
//! }
//! ```

use std::env;
use std::path::Path;
use std::process::Command;

const UNWINDER: &str = "libgcc_eh.a";
/// The first version of glibc whose dynamic loader reads packed relocations (DT_RELR).
const PACKED_SINCE: (u32, u32) = (2, 36);
/// The linker argument that stores relative relocations in a compact form (DT_RELR), which makes
/// the library smaller.
pub(crate) const PACK_RELOCATIONS: &str = "-Wl,-z,pack-relative-relocs";

/// Returns true if the target of the build is Linux with glibc, and is also the system that builds
/// (no cross-compilation).
pub(crate) fn is_native_glibc() -> bool {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let is_native = env::var("HOST").ok() == env::var("TARGET").ok();
    is_native && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu")
}

/// Returns true if this system's dynamic loader reads packed relocations.
pub(crate) fn reads_packed_relocations() -> bool {
    glibc_version().is_some_and(|version| version >= PACKED_SINCE)
}

/// Links the unwinder statically if the C compiler has it as an archive. Otherwise, the program
/// uses the shared library `libgcc_s.so.1`.
pub(crate) fn link_unwinder() {
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
