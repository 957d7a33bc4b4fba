//! The files that keep state between runs: cookies, HSTS hosts and alternative services.
//!
//! Each entry applies only to its own host. So stages after `--then` may use all entries.
//!
//! ```
//! use haul_cli::plan::{CookieArgs, StateFileArg};
//!
//! assert!(!CookieArgs::default().are_enabled());
//! assert_eq!(StateFileArg::default(), StateFileArg::Off);
//! ```

use std::path::PathBuf;

/// The cookie files and the cookie jar of a stage (`--then` separates stages). (The cookies of
/// `-b TEXT` are part of the request.)
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CookieArgs {
    /// `-b FILE`: files from which cookies are read, in order; `-` is standard input. A missing
    /// file counts as empty.
    pub files: Vec<PathBuf>,
    /// `-b ''`: stores and sends cookies during the run without reading a file.
    pub engine: bool,
    /// `-c`: the file to which the cookies are written at the end. `-` means standard output.
    /// `None` without the option. The file is not read.
    pub jar: Option<PathBuf>,
    /// True if haul acts as curl: cookies are sent and written in curl's order. If `-H` sets the
    /// field `Host`, cookies are matched with the host in that field instead of the URL's host.
    pub as_curl: bool,
    /// `-j`: ignores the session cookies in `files`.
    pub junk_session: bool,
}

impl CookieArgs {
    /// Returns true if cookies are stored and sent during the run.
    pub fn are_enabled(&self) -> bool {
        self.engine || !self.files.is_empty() || self.jar.is_some()
    }
}

/// The storage of HSTS entries (`--hsts`) or Alt-Svc entries (`--alt-svc`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StateFileArg {
    /// The option is not given: entries are neither stored nor used.
    #[default]
    Off,
    /// Memory: the option has an empty value, and the entries are lost at the end of the run.
    Memory,
    /// The entries are read from this file at the start and written to it at the end. The file need
    /// not exist at the start.
    File(PathBuf),
}
