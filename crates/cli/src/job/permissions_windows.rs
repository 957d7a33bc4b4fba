//! The checks of a job's file and of its directory on Windows: none. The access list of the directory
//! decides who can write the job, and a user's own directories are closed to others.

use std::fs::Metadata;
use std::path::Path;

use haul::Result;
use haul::sink::temporary_and_final_names::directory_of;

/// Accepts every directory for the file of a job. Only the check on Unix can refuse one.
///
/// # Errors
/// None.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(super) fn check_directory(_job: &Path) -> Result<()> {
    Ok(())
}

/// Allows this user to read every job. On Unix, this check refuses a job of another user.
///
/// # Errors
/// None.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(super) fn check_reader(_job: &Path, _metadata: &Metadata) -> Result<()> {
    Ok(())
}

/// Allows this user to run every job. On Unix, this check refuses a job that another user owns or
/// could have written.
///
/// # Errors
/// None.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(super) fn check_owner(_job: &Path, _metadata: &Metadata) -> Result<()> {
    Ok(())
}

/// Returns true if this process can create files in the directory of a job. Only an attempt shows
/// this: the function creates a file that is deleted at once.
pub(super) fn can_write_beside(job: &Path) -> bool {
    tempfile::tempfile_in(directory_of(job)).is_ok()
}
