//! The replacement of an existing file by a body: the file's real path, its owner and permissions,
//! and the method if no file can be renamed to its path.
//!
//! | what is at the path | how the body gets there |
//! |---|---|
//! | nothing, a regular file | the complete new file is renamed to the path |
//! | a link to a file | the new file is renamed to the path of the linked file; the link stays |
//! | a mount point, a file in a directory that allows no new file | see below |
//!
//! In the last case, the complete body is copied into the existing file. If there is no space for
//! a temporary file with the body, the body is written into the existing file as it arrives.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::FileSink;
use super::disk_space_reservation::{DiskSpaceReservation, allocate, check_length_fits, is_full};
use super::file_sink_descriptor::OutputFileState;
use super::temporary_and_final_names::{ClobberMode, directory_of, prevents_replacement};
use crate::system::file_metadata_and_flags::{self, MetadataExt, OpenOptionsExt, device_and_inode, fchown};

/// The owner, group and permissions of an existing file that a new file replaces.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileOwnership {
    owner: u32,
    group: u32,
    mode: u32,
    /// True if another user owns the file, and its directory allows other users to create files.
    is_foreign: bool,
}

impl FileOwnership {
    fn from_metadata(metadata: &Metadata, path: &Path) -> Self {
        let is_foreign = !file_metadata_and_flags::is_own(metadata)
            && fs::metadata(directory_of(path)).is_ok_and(|directory| directory.mode() & 0o1002 != 0);
        Self { owner: metadata.uid(), group: metadata.gid(), mode: metadata.mode() & 0o777, is_foreign }
    }

    /// Gives this owner, group and permissions to `file`, as far as this process is allowed to.
    /// Does nothing if the replaced file belongs to another user in a directory such as /tmp:
    /// otherwise, that user would become the owner of a file that root downloads.
    pub(super) fn apply_to(self, file: &File) {
        if self.is_foreign {
            return;
        }
        let Ok(metadata) = file.metadata() else { return };
        if (metadata.uid(), metadata.gid()) != (self.owner, self.group)
            && fchown(file, Some(self.owner), Some(self.group)).is_err()
        {
            let _ = fchown(file, None, Some(self.group));
        }
        if metadata.mode() & 0o777 != self.mode {
            let _ = file_metadata_and_flags::set_mode(file, self.mode);
        }
    }
}

impl FileSink {
    /// Returns true if an existing file at the target's path may be replaced, according to the
    /// [`ClobberMode`] of the sink.
    fn replaces(&self) -> bool {
        self.clobber.replaces()
    }

    /// Finds the existing file at the path of the sink. Returns its metadata, or `None` if no file
    /// exists. Stores in `target` the path to which a complete new file can be renamed, such as the
    /// path to which a link leads.
    ///
    /// If `makes` is true and the path is a link to a missing file, creates that file and removes
    /// it again, because only this reveals whether the kernel follows the link.
    ///
    /// # Errors
    /// Errors of the file system; [`io::ErrorKind::AlreadyExists`] if the user did not choose the
    /// name, and a link, a FIFO, a device or a directory has it. With [`ClobberMode::Number`], the
    /// result is `None` instead of this error, because the new file gets a numbered name.
    pub(super) fn find_existing(&mut self, makes: bool) -> io::Result<Option<Metadata>> {
        (self.target, self.replaced) = (Some(self.path.clone()), None);
        let Some(found) = none_if_missing(fs::symlink_metadata(&self.path))? else { return Ok(None) };
        if self.is_guarded {
            return match (found.is_file(), self.clobber) {
                (true, _) => Ok(Some(self.replaces_file(found))),
                // The name exists, so the new file gets a numbered one.
                (false, ClobberMode::Number) => Ok(None),
                (false, _) => Err(special_file_error()),
            };
        }
        if !found.is_symlink() {
            return Ok(Some(self.replaces_file(found)));
        }
        let followed = none_if_missing_link(fs::metadata(&self.path))?;
        if self.replaces() && followed.as_ref().is_none_or(Metadata::is_file) {
            self.target = self.link_target(followed.as_ref(), makes)?;
        }
        Ok(followed.map(|metadata| self.replaces_file(metadata)))
    }

    fn replaces_file(&mut self, metadata: Metadata) -> Metadata {
        if metadata.is_file() && self.replaces() {
            self.replaced = Some(FileOwnership::from_metadata(&metadata, self.target.as_deref().unwrap_or(&self.path)));
        }
        metadata
    }

    /// Checks that this process may write to the file that is about to be replaced: opens the file
    /// for writing, but does not change it. In a directory such as /tmp, the kernel may refuse this
    /// open for a file of another user, although it would allow a rename over that file. Does
    /// nothing if the file belongs to this user.
    ///
    /// # Errors
    /// The error of the open.
    pub(super) fn check_write_permission(&self) -> io::Result<()> {
        if !self.replaced.is_some_and(|replaced| replaced.is_foreign) {
            return Ok(());
        }
        let path = self.target.as_deref().unwrap_or(&self.path);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let options = match self.target {
            Some(_) => file_metadata_and_flags::do_not_follow_or_wait(&mut options),
            None => file_metadata_and_flags::do_not_wait(&mut options),
        };
        options.open(path).map(drop)
    }

    /// Returns the path of the file to which the symbolic link at the sink's path leads. `followed`
    /// is the metadata of the file that the kernel finds through the link; `None` if there is no
    /// such file. If `makes` is true, a missing file is created through the link, to find its path,
    /// and removed again. Returns `None` in two cases:
    /// * The file is missing, and `makes` is false.
    /// * The text of the link does not name the file that the kernel found, for example because the
    ///   link was changed in the meantime.
    ///
    /// # Errors
    /// The missing file cannot be created or removed, for example because the kernel refuses a link
    /// of another user in a directory such as /tmp.
    fn link_target(&self, followed: Option<&Metadata>, makes: bool) -> io::Result<Option<PathBuf>> {
        let made = match followed {
            Some(_) => None,
            None if makes => {
                let mut options = OpenOptions::new();
                options.write(true).create(true).truncate(false).mode(self.options.mode.unwrap_or(0o666));
                Some(options.open(&self.path)?.metadata()?)
            }
            None => return Ok(None),
        };
        let Some(opened) = made.as_ref().or(followed) else { return Ok(None) };
        let Ok(path) = fs::canonicalize(&self.path) else { return Ok(None) };
        let opened = device_and_inode(opened);
        let is_it =
            fs::symlink_metadata(&path).is_ok_and(|named| opened.is_some() && device_and_inode(&named) == opened);
        if !is_it {
            return Ok(None);
        }
        if made.is_some_and(|made| made.len() == 0) {
            fs::remove_file(&path)?;
        }
        Ok(Some(path))
    }

    /// Opens a file for the content if the target cannot be replaced by a rename, for example
    /// because it is a mount point. `why` is the error that prevents the rename. The opened file is
    /// an unnamed file in the directory for temporary files, and its complete content is later
    /// copied into the target. If that directory has no space for `length` bytes, opens the target
    /// itself instead.
    ///
    /// # Errors
    /// The error `why`, if the target cannot be opened for writing; otherwise an error of the file
    /// system.
    pub(super) fn open_temporary(&mut self, length: Option<u64>, why: io::Error) -> io::Result<OutputFileState> {
        let Ok(target) = self.open_target() else { return Err(why) };
        match tempfile::tempfile() {
            Ok(file) if length.is_none_or(|length| check_length_fits(&file, length).is_ok()) => {
                Ok(OutputFileState::Elsewhere(file))
            }
            _ => self.write_in_place(target),
        }
    }

    /// Truncates the target file `target`, and makes the sink write the body directly into it.
    fn write_in_place(&mut self, target: File) -> io::Result<OutputFileState> {
        target.set_len(0)?;
        // Another attempt begins at the first byte.
        self.was_long = Some(0);
        Ok(OutputFileState::InPlace(Arc::new(target)))
    }

    /// Writes body bytes to the unnamed file in the directory for temporary files. If there is no
    /// space left, copies the content to the target, and writes all further bytes directly into the
    /// target.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(super) fn write_temporary(&mut self, bytes: &[u8]) -> io::Result<()> {
        let OutputFileState::Elsewhere(file) = &mut self.state else { return Ok(()) };
        let at = file.stream_position()?;
        match file.write_all(bytes) {
            Err(error) if is_full(&error) => {
                file.set_len(at)?;
                file.rewind()?;
                let mut target = self.open_target()?;
                target.set_len(0)?;
                let OutputFileState::Elsewhere(file) = &mut self.state else { return Ok(()) };
                io::copy(file, &mut target)?;
                target.write_all(bytes)?;
                (self.was_long, self.space) = (Some(0), DiskSpaceReservation::default());
                self.state = OutputFileState::InPlace(Arc::new(target));
                Ok(())
            }
            written => written,
        }
    }

    /// Copies the complete content of the body into the target, because no file can be renamed to
    /// the target. `why` is the error of the attempt to rename.
    ///
    /// # Errors
    /// The error `why`, if the target cannot be written or must not be replaced, or an error of the
    /// file system. If there is no space for the content, the target is unchanged.
    pub(super) fn copy_into_target(&self, content: &File, why: io::Error) -> io::Result<PathBuf> {
        if self.is_guarded || !self.replaces() || !prevents_replacement(&why) {
            return Err(why);
        }
        let Ok(target) = self.open_target() else { return Err(why) };
        let (old, length) = (target.metadata()?.len(), content.metadata()?.len());
        if let Err(full) = allocate(&target, 0, length) {
            // Blocks allocated so far are released.
            target.set_len(old)?;
            return Err(full);
        }
        let (mut from, mut to) = (content, &target);
        from.rewind()?;
        io::copy(&mut from, &mut to)?;
        target.set_len(length)?;
        self.sync_content(&target)?;
        Ok(self.path.clone())
    }

    /// Opens the target for writing, and creates it if it does not exist. Always sets `O_CREAT`,
    /// because only then does the kernel protect against files of other users in directories such
    /// as /tmp.
    fn open_target(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).read(self.options.checksum.is_some());
        options.mode(self.options.mode.unwrap_or(0o666)).open(&self.path)
    }

    /// Opens the file at `path` if it is a regular file; a server may have chosen this path.
    /// Refuses links, FIFOs and devices.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(super) fn open_guarded(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
        let file = file_metadata_and_flags::do_not_follow_or_wait(options).open(path)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(special_file_error()) }
    }
}

/// Converts the result of a `stat` call: returns `None` if the file does not exist, and other
/// errors unchanged.
fn none_if_missing(metadata: io::Result<Metadata>) -> io::Result<Option<Metadata>> {
    match metadata {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        metadata => metadata.map(Some),
    }
}

fn none_if_missing_link(metadata: io::Result<Metadata>) -> io::Result<Option<Metadata>> {
    none_if_missing(metadata).map_err(|error| {
        let message = format!(
            "the link is not followed: {}; remove it or name another file",
            crate::trace::system_error_text(&error)
        );
        io::Error::new(error.kind(), message)
    })
}

fn special_file_error() -> io::Error {
    let message = "there is a link, a FIFO or a device of this name, which a server, a URL or a list chose: remove it, \
                   or choose the name by -o";
    io::Error::new(io::ErrorKind::AlreadyExists, message)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn link_swapped_after_the_check_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let [seen, swapped, link] = ["seen", "swapped", "link"].map(|name| dir.path().join(name));
        fs::write(&seen, "").unwrap();
        fs::write(&swapped, "").unwrap();
        symlink(&swapped, &link).unwrap();
        let sink = FileSink::new(&link);
        let target_if_seen = |path: &Path| sink.link_target(Some(&fs::metadata(path).unwrap()), true).unwrap();
        assert_eq!(target_if_seen(&seen), None);
        assert_eq!(target_if_seen(&swapped), Some(swapped.canonicalize().unwrap()));
    }
}
