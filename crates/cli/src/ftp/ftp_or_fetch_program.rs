//! The programs in whose place haul can be called: ftp(1) and fetch(1).

use std::ffi::OsStr;

/// The program whose command line and messages haul uses in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FtpProgram {
    /// OpenBSD's ftp(1).
    Ftp,
    /// FreeBSD's fetch(1).
    Fetch,
}

impl FtpProgram {
    /// Returns the name of the program (`ftp` or `fetch`), with which its messages begin.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ftp => "ftp",
            Self::Fetch => "fetch",
        }
    }

    /// Returns the program with the name `word`; `None` if the name is neither `ftp` nor `fetch`.
    pub(super) fn from_word(word: &OsStr) -> Option<Self> {
        [Self::Ftp, Self::Fetch].into_iter().find(|program| word == program.name())
    }
}
