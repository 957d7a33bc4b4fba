//! The job of a run (`--job`): its file, and the command line by which a later run recognizes it.
//!
//! ```
//! use haul_cli::plan::ResumableJobArgs;
//!
//! assert!(ResumableJobArgs::default().command.is_empty());
//! ```

use std::path::PathBuf;

use crate::given_option::GivenOption;

/// The job of a run (`--job`): the file with the state of the run, and the command line that it
/// stores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumableJobArgs {
    /// The file with the state of the job.
    pub file: PathBuf,
    /// The options that identify the job, in order. Values that are secret are left out.
    pub command: Vec<GivenOption>,
    /// The directory to which relative file names of the command line refer.
    pub directory: PathBuf,
    /// True if the command line is the one that the job has stored, because this run was started
    /// without URLs. A list from a pipe that the job has copied completely is then not read again.
    pub is_stored_command: bool,
}
