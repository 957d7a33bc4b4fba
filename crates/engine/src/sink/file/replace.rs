//! The file that a body takes the place of: where it is by the kernel's rules, whose it is, and how
//! it is written where no other file can take its place.
//!
//! | what is at the path | a complete body |
//! |---|---|
//! | nothing, a regular file | is renamed to it |
//! | a link to a file | is renamed to the file that the kernel opens through the link; the link stays |
//! | a mount point, a file in a directory that takes no new one | is copied into the file |
//! | the same, and nowhere is room for a copy | is written into the file as it comes |

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::OFlags;

use super::FileSink;
use super::naming::{Clobber, prevents_replacement};
use super::open_file::OpenFile;
use super::reservation::{SpaceReservation, allocate, fits, is_full};

/// Owner, group and permissions of a file that is replaced.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileOwnership {
    owner: u32,
    group: u32,
    mode: u32,
}

impl FileOwnership {
    fn of(metadata: &Metadata) -> Self {
        Self { owner: metadata.uid(), group: metadata.gid(), mode: metadata.mode() & 0o777 }
    }

    /// Gives the owner, group and permissions to another file, as far as this process may.
    pub(super) fn give_to(self, file: &File) {
        let Ok(metadata) = file.metadata() else { return };
        if (metadata.uid(), metadata.gid()) != (self.owner, self.group)
            && fchown(file, Some(self.owner), Some(self.group)).is_err()
        {
            let _ = fchown(file, None, Some(self.group));
        }
        if metadata.mode() & 0o777 != self.mode {
            let _ = file.set_permissions(Permissions::from_mode(self.mode));
        }
    }
}

impl FileSink {
    /// Returns whether an existing file is replaced.
    fn replaces(&self) -> bool {
        matches!(self.clobber, Clobber::Own | Clobber::Replace)
    }

    /// Determines what is at the path, and to which path a complete file can be renamed. `makes`:
    /// for a link that leads to nothing, makes a file and removes it again, since only the kernel
    /// knows whether the link may be followed.
    ///
    /// # Errors
    /// Those of the file system; [`io::ErrorKind::AlreadyExists`] where the server's name is that
    /// of a link, a FIFO or a device.
    pub(super) fn look(&mut self, makes: bool) -> io::Result<Option<Metadata>> {
        (self.target, self.replaced) = (Some(self.path.clone()), None);
        let Some(found) = found(fs::symlink_metadata(&self.path))? else { return Ok(None) };
        if self.is_guarded {
            return match (found.is_file(), self.clobber) {
                (true, _) => Ok(Some(self.replaces_file(found))),
                // The name is taken, so the new file gets another one.
                (false, Clobber::Number) => Ok(None),
                (false, _) => Err(special()),
            };
        }
        if !found.is_symlink() {
            return Ok(Some(self.replaces_file(found)));
        }
        let followed = found_by_link(fs::metadata(&self.path))?;
        if self.replaces() && followed.as_ref().is_none_or(Metadata::is_file) {
            self.target = self.link_target(followed.as_ref(), makes)?;
        }
        Ok(followed.map(|metadata| self.replaces_file(metadata)))
    }

    fn replaces_file(&mut self, metadata: Metadata) -> Metadata {
        if metadata.is_file() && self.replaces() {
            self.replaced = Some(FileOwnership::of(&metadata));
        }
        metadata
    }

    /// Returns the path of the file that the kernel opens through the link. Returns `None` if it
    /// has none, or if the link's text leads elsewhere than the kernel, which refuses other users'
    /// links in directories such as /tmp.
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
        let is_it = fs::symlink_metadata(&path).is_ok_and(|named| identity(&named) == identity(opened));
        if !is_it {
            return Ok(None);
        }
        if made.is_some_and(|made| made.len() == 0) {
            fs::remove_file(&path)?;
        }
        Ok(Some(path))
    }

    /// Opens what the content is gathered in where no file can be renamed to the target: a file
    /// without a name in the directory for temporary files, or where that has no room the target
    /// itself.
    ///
    /// # Errors
    /// `why`, if the target may not be written either.
    pub(super) fn open_temporary(&mut self, length: Option<u64>, why: io::Error) -> io::Result<OpenFile> {
        let Ok(target) = self.open_target() else { return Err(why) };
        match tempfile::tempfile() {
            Ok(file) if length.is_none_or(|length| fits(&file, length).is_ok()) => Ok(OpenFile::Elsewhere(file)),
            _ => self.directly(target),
        }
    }

    /// Writes into the target from now on.
    fn directly(&mut self, target: File) -> io::Result<OpenFile> {
        target.set_len(0)?;
        // Another try begins from the first byte.
        self.was_long = Some(0);
        Ok(OpenFile::InPlace(Arc::new(target)))
    }

    /// Writes to a file elsewhere. Where that has no room any more, what there is goes to the
    /// target, and so does the rest.
    ///
    /// # Errors
    /// Those of the file system.
    pub(super) fn write_temporary(&mut self, bytes: &[u8]) -> io::Result<()> {
        let OpenFile::Elsewhere(file) = &mut self.state else { return Ok(()) };
        let at = file.stream_position()?;
        match file.write_all(bytes) {
            Err(error) if is_full(&error) => {
                file.set_len(at)?;
                file.rewind()?;
                let mut target = self.open_target()?;
                target.set_len(0)?;
                let OpenFile::Elsewhere(file) = &mut self.state else { return Ok(()) };
                io::copy(file, &mut target)?;
                target.write_all(bytes)?;
                (self.was_long, self.space) = (Some(0), SpaceReservation::default());
                self.state = OpenFile::InPlace(Arc::new(target));
                Ok(())
            }
            written => written,
        }
    }

    /// Copies a complete content into the target, which no other file can take the place of for
    /// this reason.
    ///
    /// # Errors
    /// `why` where the target may not be written, or is not to be replaced; those of the file
    /// system. Where there is no room for the content the target is as it was.
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

    /// Opens the target by its name and the kernel's rules, which hold fully for an open that may
    /// create.
    fn open_target(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).read(self.options.checksum.is_some());
        options.mode(self.options.mode.unwrap_or(0o666)).open(&self.path)
    }

    /// Opens in place a file whose name the server chose. Refuses links, FIFOs and devices.
    ///
    /// # Errors
    /// Those of the file system.
    pub(super) fn open_guarded(options: &mut OpenOptions, path: &std::path::Path) -> io::Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(special()) }
    }
}

/// Treats a missing file as no error.
fn found(metadata: io::Result<Metadata>) -> io::Result<Option<Metadata>> {
    match metadata {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        metadata => metadata.map(Some),
    }
}

fn found_by_link(metadata: io::Result<Metadata>) -> io::Result<Option<Metadata>> {
    found(metadata).map_err(|error| {
        let message =
            format!("the link is not followed: {}; remove it or name another file", crate::trace::system_words(&error));
        io::Error::new(error.kind(), message)
    })
}

fn special() -> io::Error {
    let message = "there is a link, a FIFO or a device of the name that the server chose; -o names another";
    io::Error::new(io::ErrorKind::AlreadyExists, message)
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
