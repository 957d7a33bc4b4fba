//! Runs a compiled C program, alone or under a wrapper such as valgrind.
//!
//! `HAUL_C_WRAPPER` names the wrapper and its arguments: `valgrind -q --error-exitcode=9`.
//!
//! ```
//! use std::path::Path;
//! use testkit::run_compiled_c_program::CProgram;
//!
//! assert_eq!(CProgram::new(Path::new("echo")).run_well(["one", "two"]), "one two\n");
//! ```

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The environment variables that set proxies. A [`CProgram`] runs without them.
const PROXIES: [&str; 7] =
    ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

/// A compiled C program that tests run, and the environment variables that are set for it.
#[derive(Clone, Debug)]
pub struct CProgram {
    path: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl CProgram {
    /// Creates a `CProgram` for the program at this path.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), environment: Vec::new() }
    }

    /// Sets an environment variable of the program.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Returns the path of the program.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs the program, without the environment variables that set proxies. If the environment
    /// variable `HAUL_C_WRAPPER` is set, its words are the command that runs the program.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        let wrapper = env::var("HAUL_C_WRAPPER").unwrap_or_default();
        let mut words = wrapper.split_whitespace();
        let mut command = match words.next() {
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(&self.path);
                command
            }
            None => Command::new(&self.path),
        };
        for name in PROXIES {
            command.env_remove(name);
        }
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        command.envs(environment).args(arguments).output().expect("the program starts")
    }

    /// Runs the program and returns its standard output.
    ///
    /// # Panics
    /// If the program fails.
    pub fn run_well<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> String {
        let output = self.run(arguments);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}: {}\n{out}{err}", self.path.display(), output.status);
        out.into_owned()
    }
}
