//! The completion of a file to which a body was written. It verifies the checksum, syncs the file
//! if requested, and renames it to its target.

use std::fs::{self, File};
use std::io::{self, Seek};

use super::file_sink_descriptor::OutputFileState;
use super::partial::PartialFile;
use super::temporary_and_final_names;
#[cfg(linux_calls)]
use super::temporary_and_final_names::ClobberMode;
use super::{AppendPosition, FileSink};
use crate::Result;
use crate::system::file_metadata_and_flags::{self, sync_directory};

impl FileSink {
    pub(super) fn rename_to_target(&mut self, state: OutputFileState) -> io::Result<()> {
        match &state {
            OutputFileState::InPlace(file) => {
                self.truncate_rest(file)?;
                return self.sync_content(file);
            }
            OutputFileState::Null(file) => return self.sync_content(file),
            _ => {}
        }
        let clobber = self.clobber;
        let target = self.target.clone().unwrap_or_else(|| self.path.clone());
        let give_ownership = |file: &File| self.replaced.iter().for_each(|replaced| replaced.apply_to(file));
        let named = match state {
            #[cfg(linux_calls)]
            OutputFileState::Unnamed(file) => {
                give_ownership(&file);
                self.sync_content(&file)?;
                temporary_and_final_names::unnamed::link_at_target(&file, &target, clobber, self.options.sync)
                    .or_else(|why| self.copy_into_target(&file, why))
            }
            OutputFileState::Beside(file, beside) => {
                give_ownership(&file);
                self.sync_content(&file)?;
                temporary_and_final_names::rename_file(&beside, &target, clobber)
                    .or_else(|why| self.copy_into_target(&file, why))
            }
            OutputFileState::Partial(writer) => {
                let partial = writer.partial();
                give_ownership(partial.file());
                temporary_and_final_names::rename_file(partial.path(), &target, clobber).or_else(|why| {
                    let copied = self.copy_into_target(partial.file(), why);
                    // Without its checkpoint, no later run can use the file.
                    partial.remove();
                    copied
                })
            }
            OutputFileState::Elsewhere(file) => {
                return self.copy_into_target(&file, file_metadata_and_flags::busy_error()).map(drop);
            }
            OutputFileState::InPlace(_) | OutputFileState::Null(_) | OutputFileState::Due | OutputFileState::Closed => {
                return Ok(());
            }
        }?;
        if self.options.sync {
            sync_directory(temporary_and_final_names::directory_of(&named))?;
        }
        if named != target {
            self.path = named;
        }
        Ok(())
    }

    /// Truncates the file after the last byte of the body. This is necessary if the body is written
    /// from an offset on ([`AppendPosition::At`]): the old content may be longer than the new
    /// content, and its end would remain.
    fn truncate_rest(&self, mut file: &File) -> io::Result<()> {
        if !matches!(self.options.append, Some(AppendPosition::At(_))) || !self.appends_to_file() {
            return Ok(());
        }
        let end = file.stream_position()?;
        if end < file.metadata()?.len() { file.set_len(end) } else { Ok(()) }
    }

    pub(super) fn sync_content(&self, file: &File) -> io::Result<()> {
        // A file that cannot be synced (a device, a pipe) fails with EINVAL.
        match if self.options.sync { file.sync_all() } else { Ok(()) } {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced,
        }
    }

    /// Returns true if the body is to be appended to an existing regular file.
    pub(super) fn appends_to_file(&self) -> bool {
        self.options.append.is_some() && fs::metadata(&self.path).is_ok_and(|metadata| metadata.is_file())
    }

    /// Returns an error if the written content does not have the expected checksum. The content
    /// then remains in a partial file, so that the user can inspect it. With the option
    /// `remove_on_error`, the content is removed instead.
    pub(super) fn check_checksum(&mut self) -> Result<()> {
        let Some(checksum) = &self.options.checksum else { return Ok(()) };
        let found = match (self.hasher.take(), &self.state) {
            (Some(hasher), _) => Ok(hasher.finish()),
            (None, OutputFileState::Partial(writer)) => checksum.hash_file(writer.partial().file()),
            // Nothing was missing, so there was no response.
            (None, OutputFileState::Closed) if self.appends_to_file() => {
                File::open(&self.path).and_then(|file| checksum.hash_file(&file))
            }
            (None, state) => match state.file() {
                Some(file) => checksum.hash_file(file),
                None => return Ok(()),
            },
        };
        let found = found.map_err(|error| self.error(error))?;
        checksum.check(&found).inspect_err(|_| {
            // The partial content is kept for inspection, but not under its final name.
            let Some(beside) =
                self.target.as_deref().and_then(PartialFile::partial_path).filter(|_| !self.options.remove_on_error)
            else {
                return;
            };
            match &self.state {
                #[cfg(linux_calls)]
                OutputFileState::Unnamed(file) => {
                    let _ =
                        temporary_and_final_names::unnamed::link_at_target(file, &beside, ClobberMode::Replace, false);
                }
                OutputFileState::Beside(_, path) => {
                    let _ = fs::rename(path, beside);
                }
                _ => {}
            }
        })
    }
}
