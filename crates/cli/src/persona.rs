//! The program whose defaults and messages a run has: haul itself, or curl.
//!
//! | called as | persona |
//! |---|---|
//! | `haul …` | [`Persona::Haul`] |
//! | `haul curl …`, or by the name `curl` (a link) | [`Persona::Curl`] |
//!
//! A persona is the source of all defaults: the initial options of a group, the program's name in
//! messages, its exit. No other place asks for the program's name.
//!
//! ```
//! use haul_cli::persona::Persona;
//!
//! let called = |words: &[&str]| Persona::called(words.iter().map(Into::into));
//! assert_eq!(called(&["/usr/bin/curl", "-s", "h"]).0, Persona::Curl);
//! assert_eq!(called(&["haul", "curl", "-s", "h"]), (Persona::Curl, vec!["-s".into(), "h".into()]));
//! assert_eq!(called(&["haul", "-s", "curl"]), (Persona::Haul, vec!["-s".into(), "curl".into()]));
//! assert!(Persona::Haul.transfer().redirect.follow && !Persona::Curl.transfer().redirect.follow);
//! ```

use std::ffi::OsString;
use std::path::Path;

use crate::plan::{Global, RetryArgs, TransferArgs};
use crate::usage::VERSION;

/// The version of curl whose options and behaviour the curl persona has.
pub const CURL_VERSION: &str = "8.22.0";

/// The program whose defaults, messages and habits a run has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persona {
    /// haul itself: it follows redirects, error statuses are failures, and URLs are fetched in
    /// parallel.
    #[default]
    Haul,
    /// curl: a script written for curl 8 gets the same behaviour.
    Curl,
}

impl Persona {
    /// The persona of a whole command line, and the arguments that are left for it.
    pub fn called(words: impl IntoIterator<Item = OsString>) -> (Persona, Vec<OsString>) {
        let mut words = words.into_iter();
        let program = words.next().unwrap_or_default();
        let name = Path::new(&program).file_stem().unwrap_or_default();
        let mut rest: Vec<OsString> = words.collect();
        if name == "curl" {
            return (Persona::Curl, rest);
        }
        if rest.first().is_some_and(|first| first == "curl") {
            rest.remove(0);
            return (Persona::Curl, rest);
        }
        (Persona::Haul, rest)
    }

    /// Returns the program's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Persona::Haul => "haul",
            Persona::Curl => "curl",
        }
    }

    /// Returns true if the program behaves as curl wherever haul differs.
    pub fn is_curl(self) -> bool {
        self == Persona::Curl
    }

    /// Returns the `User-Agent` without `-A`.
    pub fn user_agent(self) -> String {
        match self {
            Persona::Haul => format!("haul/{VERSION}"),
            Persona::Curl => format!("curl/{CURL_VERSION}"),
        }
    }

    /// Settings of the whole run, as they begin.
    pub fn global(self) -> Global {
        match self {
            Persona::Haul => Global::default(),
            // curl has no limit for one host unless an option sets one.
            Persona::Curl => Global {
                persona: self,
                parallel: false,
                parallel_max: 50,
                parallel_max_host: usize::from(u16::MAX),
                ..Global::default()
            },
        }
    }

    /// Returns the transfer settings of a stage before any option.
    pub fn transfer(self) -> TransferArgs {
        let mut transfer = TransferArgs::default();
        if self.is_curl() {
            transfer.redirect.follow = false;
            transfer.fail = false;
            transfer.cookies.as_curl = true;
            transfer.split = Some(1);
            transfer.retry = RetryArgs { count: 0, ..RetryArgs::default() };
        }
        transfer
    }
}
