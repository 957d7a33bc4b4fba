//! The output of a job: standard output, or the file of `-o` that all bodies, records or values
//! share. If the output is a regular file, a later run continues after the last output that is
//! committed in the job's file.
//!
//! | output | after a kill |
//! |---|---|
//! | a regular file | the part after the last recorded record is removed; each record occurs once |
//! | a pipe, a socket, a terminal | the reader keeps what was written; a record may occur twice |

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::path::Path;

use haul::system::file_metadata_and_flags::{self, OpenOptionsExt, OwnedFile};
use haul::{Error, ErrorKind, Result};

use crate::system::standard_streams;

/// The identity of the output file of a job (`--job`): its device number and its inode number. On
/// Windows, those of the volume and of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobOutputIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl JobOutputIdentity {
    fn of_file(file: &File) -> std::io::Result<Self> {
        let (device, inode) = file_metadata_and_flags::identity(file)?;
        Ok(Self { device, inode })
    }
}

/// The output file or standard output of a run of a job (`--job`), prepared for writing.
#[derive(Debug)]
pub(super) struct PreparedJobRunOutput {
    /// The descriptor to which the output is written.
    pub(super) descriptor: OwnedFile,
    /// The identity of the output file; `None` if the output is not a regular file.
    pub(super) identity: Option<JobOutputIdentity>,
    /// The offset in the file, in bytes, at which the output of the job begins.
    pub(super) start: u64,
    /// The offset in the file, in bytes, at which this run continues to write.
    pub(super) end: u64,
    /// A message about the output for the user; `None` if there is none.
    pub(super) note: Option<String>,
}

/// The output that earlier runs of a job (`--job`) have written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EarlierOutput {
    pub(super) identity: Option<JobOutputIdentity>,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl EarlierOutput {
    /// Returns true if no earlier run has written output, or if `haul job retry --all` has
    /// discarded the output.
    fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

/// Prepares standard output for a run of a job (`--job`). If it is a regular file, truncates it to
/// the end of the output that earlier runs of the job have committed.
pub(super) fn standard_output(earlier: EarlierOutput) -> Result<PreparedJobRunOutput> {
    let cannot = |error| output_error("standard output", error);
    let file = standard_streams::stdout_file().map_err(cannot)?;
    if !file_metadata_and_flags::is_regular(&file).map_err(cannot)? {
        let is_lossy = !file_metadata_and_flags::is_char_device(&file);
        let text = "standard output is no file: after a kill, records may appear there twice; redirect it with >> FILE";
        let note = is_lossy.then(|| text.to_owned());
        return Ok(PreparedJobRunOutput { descriptor: file.into(), identity: None, start: 0, end: 0, note });
    }
    let appends = standard_streams::is_appending(&file);
    let identity = JobOutputIdentity::of_file(&file).map_err(cannot)?;
    let length = file.metadata().map_err(cannot)?.len();
    prepare(file, identity, length, appends, earlier, "standard output")
}

/// Opens the file of `-o`, and prepares it for the output of a run. If earlier runs of the job
/// wrote to the file, truncates it to the end of the output that they committed. For a new job,
/// truncates it to zero length. `earlier` describes the output of the earlier runs.
pub(super) fn named_file(path: &Path, mode: Option<u32>, earlier: EarlierOutput) -> Result<PreparedJobRunOutput> {
    let name = path.display().to_string();
    let mut options = OpenOptions::new();
    let file = options.create(true).write(true).truncate(false).mode(mode.unwrap_or(0o666)).open(path);
    let file = file.map_err(|error| output_error(&name, error))?;
    if !file_metadata_and_flags::is_regular(&file).map_err(|error| output_error(&name, error))? {
        return Ok(PreparedJobRunOutput { descriptor: file.into(), identity: None, start: 0, end: 0, note: None });
    }
    let identity = JobOutputIdentity::of_file(&file).map_err(|error| output_error(&name, error))?;
    if earlier.identity.is_none() || earlier.is_empty() && earlier.identity != Some(identity) {
        file.set_len(0).map_err(|error| output_error(&name, error))?;
        return Ok(PreparedJobRunOutput {
            descriptor: file.into(),
            identity: Some(identity),
            start: 0,
            end: 0,
            note: None,
        });
    }
    let length = file.metadata().map_err(|error| output_error(&name, error))?.len();
    prepare(file, identity, length, true, earlier, &name)
}

/// Prepares a regular file for the output of a run:
/// * If earlier runs of the job wrote to this file, truncates the file to the end of the output
///   that these runs have committed. Fails if a part of this output is missing.
/// * In any other file, the output begins at the end of the file if `appends` is true, and
///   otherwise at the file's current offset.
fn prepare(
    mut file: File,
    identity: JobOutputIdentity,
    length: u64,
    appends: bool,
    earlier: EarlierOutput,
    name: &str,
) -> Result<PreparedJobRunOutput> {
    // A file without output of the job may have been emptied.
    if earlier.identity == Some(identity) && !(earlier.is_empty() && length < earlier.end) {
        if length < earlier.end {
            let text = format!(
                "{name} has {length} bytes, but the job has written {}: a shell's > empties a file, and >> does not; \
                 restore it, or fetch everything again after 'haul job retry --all FILE'",
                earlier.end
            );
            return Err(Error::new(ErrorKind::Setup, text));
        }
        file.set_len(earlier.end).map_err(|error| output_error(name, error))?;
        file.seek(SeekFrom::Start(earlier.end)).map_err(|error| output_error(name, error))?;
        let EarlierOutput { start, end, .. } = earlier;
        return Ok(PreparedJobRunOutput { descriptor: file.into(), identity: Some(identity), start, end, note: None });
    }
    let at = if appends { SeekFrom::End(0) } else { SeekFrom::Current(0) };
    let start = file.seek(at).map_err(|error| output_error(name, error))?;
    let note = earlier.identity.filter(|_| !earlier.is_empty()).map(|_| {
        format!("{name} is another file than before, whose records end at byte {}; the rest comes here", earlier.end)
    });
    Ok(PreparedJobRunOutput { descriptor: file.into(), identity: Some(identity), start, end: start, note })
}

fn output_error(name: &str, error: std::io::Error) -> Error {
    Error::with_source(ErrorKind::Write, format!("failed to prepare {name} for the job"), error)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn prepared(path: &Path, earlier: EarlierOutput) -> Result<PreparedJobRunOutput> {
        named_file(path, None, earlier)
    }

    #[test]
    fn job_output_is_truncated_to_last_recorded_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let first = prepared(&path, EarlierOutput::default()).unwrap();
        File::from(first.descriptor).write_all(b"one\ntwo\nthr").unwrap();
        let earlier = EarlierOutput { identity: first.identity, start: 0, end: 8 };
        let second = prepared(&path, earlier).unwrap();
        assert_eq!((second.start, second.end), (0, 8));
        File::from(second.descriptor).write_all(b"three\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
        std::fs::write(&path, "").unwrap();
        let error = prepared(&path, earlier).unwrap_err();
        assert!(error.to_string().contains("has 0 bytes, but the job has written 8"), "{error}");
    }

    #[test]
    fn job_output_without_records_is_truncated_to_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        std::fs::write(&path, "of others\nold record\n").unwrap();
        let file = || OpenOptions::new().append(true).open(&path).unwrap();
        let metadata = file().metadata().unwrap();
        let identity = JobOutputIdentity::of_file(&file()).unwrap();
        let earlier = EarlierOutput { identity: Some(identity), start: 10, end: 10 };
        let begun = prepare(file(), identity, metadata.len(), true, earlier, "out").unwrap();
        assert_eq!((begun.start, begun.end), (10, 10));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "of others\n");
        // If the file was emptied meanwhile, the output begins at its end.
        file().set_len(0).unwrap();
        let begun = prepare(file(), identity, 0, true, earlier, "out").unwrap();
        assert_eq!((begun.start, begun.end, begun.note), (0, 0, None));
    }

    #[test]
    fn replaced_job_output_file_starts_at_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let identity = Some(JobOutputIdentity { device: 1, inode: 1 });
        let other = prepared(&path, EarlierOutput { identity, start: 0, end: 8 }).unwrap();
        assert_eq!((other.start, other.end), (0, 0));
        assert!(other.note.unwrap().contains("end at byte 8"));
    }
}
