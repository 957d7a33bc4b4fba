//! The types of jobs that exist with and without the feature `job`.

use std::path::PathBuf;

use haul::Error;

use crate::usage_error::UsageError;

/// The reason why the command line of a job cannot be run.
#[derive(Debug)]
pub enum JobCommandError {
    /// An option is wrong.
    Usage(UsageError),
    /// The job's file cannot be used.
    Job(Error),
}

/// The place of a URL in a job.
#[cfg_attr(not(feature = "job"), expect(dead_code, reason = "without jobs, no URL has a place"))]
pub(crate) enum UrlPlace {
    /// The URL has not been fetched.
    New,
    /// The URL needs no request in this run.
    Finished,
    /// The URL was fetched before, and is refreshed.
    Known(KnownUrl),
}

/// The validators of a URL that was fetched before, and its file.
pub(crate) struct KnownUrl {
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
    pub(crate) size: Option<u64>,
    pub(crate) file: Option<PathBuf>,
}
