//! C programs, compiled against the header and the library of this build, and run.
//!
//! `HAUL_C_FLAGS` adds flags to the compiler (`-fsanitize=address`), `HAUL_C_WRAPPER` a program to run them under
//! (`valgrind -q --error-exitcode=9`): `make c-memory` uses both.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use testkit::origin::Origin;

pub fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Whether a program is installed; a test that needs one that is not says so.
pub fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

/// A place for programs, with the library in it under the names that they look it up by.
pub struct Workshop {
    dir: TempDir,
}

impl Workshop {
    /// `None`, and a word about it, where there is no C compiler.
    pub fn new() -> Option<Self> {
        if !has("cc") {
            return None;
        }
        let dir = TempDir::new().unwrap();
        // Cargo leaves the library beside the test programs.
        let built = env::current_exe().unwrap().parent().unwrap().join("libhaul_c.so");
        assert!(built.exists(), "{} is not there", built.display());
        for name in ["libhaul.so", "libhaul.so.0"] {
            symlink(&built, dir.path().join(name)).unwrap();
        }
        Some(Self { dir })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Compiles a C program; warnings are errors.
    pub fn compile(&self, source: &str) -> Program {
        self.compile_by("cc", &["-std=c11", "-D_GNU_SOURCE", "-Wno-cast-function-type"], source)
    }

    /// The same by any compiler.
    pub fn compile_by(&self, compiler: &str, flags: &[&str], source: &str) -> Program {
        let source = crate_dir().join(source);
        let program = self.path(source.file_stem().unwrap().to_str().unwrap());
        let mut cc = Command::new(compiler);
        cc.args(flags).args(["-Wall", "-Wextra", "-Werror", "-g", "-pthread"]);
        cc.arg("-I").arg(crate_dir().join("include"));
        cc.arg(&source).arg("-o").arg(&program);
        cc.arg("-L").arg(self.dir.path()).arg(format!("-Wl,-rpath,{}", self.dir.path().display())).arg("-lhaul");
        cc.args(env::var("HAUL_C_FLAGS").unwrap_or_default().split_whitespace());
        let output = cc.output().unwrap();
        assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
        Program(program)
    }
}

pub struct Program(PathBuf);

impl Program {
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Runs it; what it says is part of a failure's message. Nobody's proxy is used.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        let wrapper = env::var("HAUL_C_WRAPPER").unwrap_or_default();
        let mut words = wrapper.split_whitespace();
        let mut command = match words.next() {
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(&self.0);
                command
            }
            None => Command::new(&self.0),
        };
        for name in ["http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env_remove(name);
        }
        command.args(arguments).output().unwrap()
    }

    /// The same where nothing may go wrong. Answers what it printed.
    pub fn run_well<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> String {
        let output = self.run(arguments);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}: {}\n{out}{err}", self.0.display(), output.status);
        out.into_owned()
    }
}

/// An origin and where it is, without the slash at the end.
pub fn origin() -> (Origin, String) {
    let origin = Origin::builder().threads(1).start().unwrap();
    let base = origin.url("/");
    let base = base.trim_end_matches('/').to_owned();
    (origin, base)
}
