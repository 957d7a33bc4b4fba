//! Compiles C programs against the header and the library of this build, and runs them.
//!
//! `HAUL_C_FLAGS` adds flags to the compiler (`-fsanitize=address`), `HAUL_C_WRAPPER` a program to
//! run them under (`valgrind -q --error-exitcode=9`): `make c-memory` uses both.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::env;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use testkit::run_compiled_c_program::CProgram;

pub fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns `true` if a program is installed. If not, prints that the test is skipped.
pub fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

/// Returns `true` if the C++ compiler has `std::expected`. If not, prints that the test is skipped.
pub fn has_expected() -> bool {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("expected.cpp");
    std::fs::write(&source, "#include <expected>\nstd::expected<int, int> has = 1;\n").unwrap();
    let compiled = Command::new("c++").args(["-std=c++23", "-fsyntax-only"]).arg(&source).output();
    let has = compiled.is_ok_and(|output| output.status.success());
    if !has {
        eprintln!("SKIPPED: the C++ compiler has no std::expected");
    }
    has
}

/// Returns the path of the shared library, which Cargo puts beside the test programs.
pub fn built_library() -> PathBuf {
    let built = env::current_exe().unwrap().parent().unwrap().join("libhaul_c.so");
    assert!(built.exists(), "{} is not there", built.display());
    built
}

/// A temporary directory for compiled programs. It contains the library, under the names with which
/// the programs link to it.
pub struct BuildDirectory {
    dir: TempDir,
}

impl BuildDirectory {
    /// Creates the directory; `None` if there is no C compiler.
    pub fn new() -> Option<Self> {
        if !has("cc") {
            return None;
        }
        let dir = TempDir::new().unwrap();
        let built = built_library();
        for name in ["libhaul.so", "libhaul.so.0"] {
            symlink(&built, dir.path().join(name)).unwrap();
        }
        Some(Self { dir })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Compiles a C program; warnings are errors.
    pub fn compile(&self, source: &str) -> CProgram {
        self.compile_by("cc", &["-std=c11", "-D_GNU_SOURCE", "-Wno-cast-function-type"], source)
    }

    /// Compiles a program with another compiler and with these flags, which may name libraries.
    pub fn compile_by(&self, compiler: &str, flags: &[&str], source: &str) -> CProgram {
        let source = crate_dir().join(source);
        let program = self.path(source.file_stem().unwrap().to_str().unwrap());
        let mut cc = Command::new(compiler);
        let (libraries, flags): (Vec<&str>, Vec<&str>) = flags.iter().partition(|flag| flag.starts_with("-l"));
        cc.args(flags).args(["-Wall", "-Wextra", "-Werror", "-g", "-pthread"]);
        cc.arg("-I").arg(crate_dir().join("include"));
        cc.arg(&source).arg("-o").arg(&program);
        cc.arg("-L").arg(self.dir.path()).arg(format!("-Wl,-rpath,{}", self.dir.path().display())).arg("-lhaul");
        cc.args(libraries);
        cc.args(env::var("HAUL_C_FLAGS").unwrap_or_default().split_whitespace());
        let output = cc.output().unwrap();
        assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
        CProgram::new(&program)
    }
}
