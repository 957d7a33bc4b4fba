//! The settings of the archive of a run (`--warc`).
//!
//! ```
//! assert_eq!(haul_cli::plan::WarcArgs::default().path, None);
//! ```

use std::path::PathBuf;

use crate::warc::file_name::ArchiveName;

/// The settings of the WARC archive, to which the requests and responses of a run are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WarcArgs {
    /// `--warc`: the file of the archive. Its records are compressed if the name ends in `.gz`.
    /// `None` without an archive.
    pub path: Option<PathBuf>,
    /// `--warc-max-size`: the maximum size, in bytes, of one archive file; `None` is no limit. When
    /// this size is reached, the next record begins another file. The file names then contain
    /// numbers.
    pub max_size: Option<u64>,
    /// `--warc-secrets`: keeps credentials in request records, in a file that only its owner may
    /// read.
    pub keeps_secrets: bool,
}

impl WarcArgs {
    /// Returns the name of the archive; `None` without an archive.
    pub fn archive_name(&self) -> Option<ArchiveName> {
        Some(ArchiveName::new(self.path.clone()?, self.max_size.is_some()))
    }
}
