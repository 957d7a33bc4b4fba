//! Links libcurl.so.4 from the static library of this build, compiles C programs against the
//! system's libcurl, and runs them with the libcurl.so.4 of this build.
//!
//! `HAUL_C_FLAGS` adds flags to the compiler, `HAUL_C_WRAPPER` a program to run them under, as in
//! the tests of the C interface.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use tempfile::TempDir;
use testkit::run_compiled_c_program::CProgram;

pub fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns `true` if a command succeeds. If not, prints that the test is skipped.
pub fn has(what: &str, command: &str) -> bool {
    let found = Command::new("sh").args(["-c", command]).output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("SKIPPED: {what} is not installed");
    }
    found
}

/// Returns the directory that contains the libcurl.so.4 of this build; `None` if there is no
/// linker.
pub fn library() -> Option<&'static Path> {
    static LINKED: OnceLock<Option<PathBuf>> = OnceLock::new();
    LINKED.get_or_init(link).as_deref()
}

fn link() -> Option<PathBuf> {
    if !has("cc", "command -v cc") {
        return None;
    }
    // Cargo leaves the static library beside the test programs. One of an older build may be there,
    // too.
    let beside = env::current_exe().unwrap().parent().unwrap().to_owned();
    let is_archive = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libhaul_curl") && name.ends_with(".a")
    };
    let time = |path: &PathBuf| path.metadata().and_then(|about| about.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let archives = fs::read_dir(beside).unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let archive = archives.filter(is_archive).max_by_key(time).expect("the static library is built");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libcurl");
    let library = directory.join("libcurl.so.4.8.0");
    let script = crate_dir().join("../../scripts/libcurl.sh");
    let newest = [time(&archive), time(&script), time(&crate_dir().join("libcurl.map"))].into_iter().max().unwrap();
    if !library.exists() || time(&library) < newest {
        let mut linker = Command::new("sh");
        linker.arg(script).arg(archive).arg(&directory).env("KEEP_DEBUG", "1");
        let output = linker.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    Some(directory)
}

/// A temporary directory for compiled programs.
pub struct BuildDirectory {
    dir: TempDir,
    library: &'static Path,
}

impl BuildDirectory {
    /// Creates the directory; `None` if there is no C compiler or no header of libcurl.
    pub fn new() -> Option<Self> {
        let has_header = has("libcurl4-openssl-dev", "printf '#include <curl/curl.h>\\n' | cc -E - >/dev/null");
        if !has_header {
            return None;
        }
        Some(Self { dir: TempDir::new().unwrap(), library: library()? })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Compiles a C program of `tests/c` against the system's libcurl; warnings are errors.
    pub fn compile(&self, name: &str) -> CProgram {
        let source = crate_dir().join("tests/c").join(name).with_extension("c");
        let program = self.path(name);
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-D_GNU_SOURCE", "-DCURL_DISABLE_DEPRECATION"]);
        cc.args(["-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations", "-g", "-pthread"]);
        cc.arg(&source).arg("-o").arg(&program).arg("-lcurl");
        cc.args(env::var("HAUL_C_FLAGS").unwrap_or_default().split_whitespace());
        let output = cc.output().unwrap();
        assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
        let library = env::var_os("HAUL_CURL_LIBRARY").map_or(self.library.to_owned(), PathBuf::from);
        CProgram::new(&program).with_env("LD_LIBRARY_PATH", library)
    }
}
