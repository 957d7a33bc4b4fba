//! The files that keep state between runs: cookies, HSTS, Alt-Svc.
//!
//! Each entry applies only to its own hosts. Therefore stages after `--then` may use all entries.
//!
//! ```
//! use haul_cli::plan::{CookieArgs, StateFileArg};
//!
//! assert!(!CookieArgs::default().is_on());
//! assert_eq!(StateFileArg::default(), StateFileArg::Off);
//! ```

use std::path::PathBuf;

/// The cookie settings of a stage, without `-b TEXT`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CookieArgs {
    /// `-b FILE`, in order: files that are read, but not written. `-` is standard input. A missing
    /// file counts as empty.
    pub files: Vec<PathBuf>,
    /// `-b ''`: stores and sends cookies, without reading any file.
    pub engine: bool,
    /// `-c`: the file to which the cookies are written at the end. It is not read. `-` is standard
    /// output.
    pub jar: Option<PathBuf>,
    /// True if cookies are sent and written in curl's order, and matched with the host in a Host
    /// field.
    pub as_curl: bool,
    /// `-j`: ignores the session cookies in `files`.
    pub junk_session: bool,
}

impl CookieArgs {
    /// Returns true if cookies are stored and sent at all.
    pub fn is_on(&self) -> bool {
        self.engine || !self.files.is_empty() || self.jar.is_some()
    }
}

/// The place where HSTS or Alt-Svc entries are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StateFileArg {
    /// The entries are not used.
    #[default]
    Off,
    /// The option has an empty value: the entries are kept in memory for this run.
    Memory,
    /// The entries are read from this file at the start, and written to it at the end. The file
    /// need not exist.
    File(PathBuf),
}
