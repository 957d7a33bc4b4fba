//! The program as which haul behaves: haul itself, or curl.
//!
//! | called as | persona |
//! |---|---|
//! | `haul …` | [`ProgramPersona::Haul`] |
//! | `haul curl …`, or by the name `curl` (a link) | [`ProgramPersona::Curl`] |
//!
//! The defaults of each persona are in
//! [`GlobalArgs::with_defaults`](crate::plan::GlobalArgs::with_defaults) and
//! [`TransferArgs::with_defaults`](crate::plan::TransferArgs::with_defaults). Only this module
//! examines the name by which the program was called.
//!
//! ```
//! use haul_cli::program_persona::ProgramPersona;
//!
//! let called = |words: &[&str]| ProgramPersona::from_words(words.iter().map(Into::into));
//! assert_eq!(called(&["/usr/bin/curl", "-s", "h"]).0, ProgramPersona::Curl);
//! assert_eq!(called(&["haul", "curl", "-s", "h"]), (ProgramPersona::Curl, vec!["-s".into(), "h".into()]));
//! assert_eq!(called(&["haul", "-s", "curl"]), (ProgramPersona::Haul, vec!["-s".into(), "curl".into()]));
//! assert!(ProgramPersona::Curl.is_curl() && ProgramPersona::Haul.user_agent().starts_with("haul/"));
//! ```

use std::ffi::OsString;
use std::path::Path;

/// haul's version, for `--version`, messages and the default `User-Agent`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of curl whose options and behaviour haul imitates when it acts as curl.
pub const CURL_VERSION: &str = "8.22.0";

/// The program whose defaults, messages and behaviour haul has in this run: haul or curl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramPersona {
    /// haul itself: it follows redirects, fails on error statuses, and fetches URLs in parallel.
    #[default]
    Haul,
    /// curl: haul behaves as curl 8 does, for scripts that were written for curl.
    Curl,
}

impl ProgramPersona {
    /// Determines the persona from a command line that begins with the program's name. Returns the
    /// persona and the remaining arguments.
    pub fn from_words(words: impl IntoIterator<Item = OsString>) -> (ProgramPersona, Vec<OsString>) {
        let mut words = words.into_iter();
        let program = words.next().unwrap_or_default();
        let name = Path::new(&program).file_stem().unwrap_or_default();
        let mut rest: Vec<OsString> = words.collect();
        if name == "curl" {
            return (ProgramPersona::Curl, rest);
        }
        if rest.first().is_some_and(|first| first == "curl") {
            rest.remove(0);
            return (ProgramPersona::Curl, rest);
        }
        (ProgramPersona::Haul, rest)
    }

    /// Returns the name of the program for messages: `haul` or `curl`.
    pub fn name(self) -> &'static str {
        match self {
            ProgramPersona::Haul => "haul",
            ProgramPersona::Curl => "curl",
        }
    }

    /// Returns true if haul acts as curl.
    pub fn is_curl(self) -> bool {
        self == ProgramPersona::Curl
    }

    /// Returns the default value of the header field `User-Agent`.
    pub fn user_agent(self) -> String {
        match self {
            ProgramPersona::Haul => format!("haul/{VERSION}"),
            ProgramPersona::Curl => format!("curl/{CURL_VERSION}"),
        }
    }
}
