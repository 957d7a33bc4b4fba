//! The state that is kept between runs: cookies, HSTS, Alt-Svc.
//!
//! Entries are bound to their hosts, so that a later `--then` may use them all: no page can
//! redirect them elsewhere.
//!
//! ```
//! use haul_cli::plan::{CookieArgs, StoreArg};
//!
//! assert!(!CookieArgs::default().is_on());
//! assert_eq!(StoreArg::default(), StoreArg::Off);
//! ```

use std::path::PathBuf;

/// The cookies of a stage, `-b TEXT` apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CookieArgs {
    /// `-b FILE`, in order: read, never written. `-` is standard input. A file that does not exist
    /// holds nothing.
    pub files: Vec<PathBuf>,
    /// `-b ''`: keep the cookies of servers, without any file.
    pub engine: bool,
    /// `-c`: the file to which the cookies are written at the end; it is not read. `-` is standard
    /// output.
    pub jar: Option<PathBuf>,
    /// Cookies are sent and written in curl's order, and by the host that a Host field names.
    pub as_curl: bool,
    /// `-j`: leave session cookies of `files` out.
    pub junk_session: bool,
}

impl CookieArgs {
    /// Returns true if cookies are stored and sent at all.
    pub fn is_on(&self) -> bool {
        self.engine || !self.files.is_empty() || self.jar.is_some()
    }
}

/// The file of HSTS or Alt-Svc entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreArg {
    /// The entries are not used.
    #[default]
    Off,
    /// An empty name: the entries are kept in memory for this run.
    Memory,
    /// The entries are read from this file at the start, and written to it at the end. The file
    /// need not exist.
    File(PathBuf),
}
