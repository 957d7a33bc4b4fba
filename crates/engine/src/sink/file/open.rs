//! The opening of the file to which a body is written. It is one of these: a file without a name, a
//! temporary file in the directory of the target, a partial file, or the target itself.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use super::disk_space_reservation::{MIN_RESERVED_BODY, is_full};
use super::file_sink_descriptor::{DeviceFile, OutputFileState};
use super::open_beneath;
use super::partial::{PartialFile, PartialFileWriter};
use super::temporary_and_final_names::{self, prevents_replacement};
use super::{AppendPosition, File, FileSink, ResponseForSink, directory_mode};
use crate::system::file_metadata_and_flags::{self, DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};

impl FileSink {
    pub(super) fn open(&mut self, begin: Option<&ResponseForSink<'_>>) -> io::Result<OutputFileState> {
        if let Some(device) =
            self.devices.as_ref().filter(|_| !self.is_guarded).and_then(|devices| devices.find(&self.path))
        {
            return Ok(OutputFileState::from_device(device));
        }
        if file_metadata_and_flags::is_named_device(&self.path) {
            let file = OpenOptions::new().write(true).open(&self.path)?;
            return Ok(OutputFileState::from_device(DeviceFile::with_name(file, &self.path)));
        }
        if let Some(base) = &self.options.beneath {
            let make = self.options.create_dirs.then(|| directory_mode(self.options.in_place));
            open_beneath::check_beneath(base, temporary_and_final_names::directory_of(&self.path), make)?;
        }
        let renames = !self.options.in_place && self.options.append.is_none();
        let metadata = self.find_existing(renames)?;
        if let Some(metadata) = metadata.as_ref().filter(|metadata| !metadata.is_file()) {
            // The kernel refuses other users' FIFOs in directories such as /tmp, but only to an
            // open that may create.
            let device = DeviceFile::new(OpenOptions::new().write(true).create(true).truncate(false).open(&self.path)?);
            if let Some(devices) = self.devices.as_ref().filter(|_| metadata.file_type().is_char_device()) {
                devices.insert(&self.path, &device);
            }
            return Ok(OutputFileState::from_device(device));
        }
        if self.options.in_place && self.options.append.is_none() {
            if begin.is_some() {
                return Ok(OutputFileState::Due);
            }
            return self.open_in_place().map(|file| OutputFileState::InPlace(Arc::new(file)));
        }
        self.check_write_permission()?;
        if self.options.create_dirs {
            self.create_directories(temporary_and_final_names::directory_of(
                self.target.as_ref().unwrap_or(&self.path),
            ))?;
        }
        // Like a plain creation (the umask applies), but with no more permissions than the replaced
        // file.
        let asked = self.options.mode.unwrap_or(0o666);
        let mode = metadata.as_ref().map_or(asked, |metadata| metadata.permissions().mode() & 0o777);
        if self.options.append.is_some() {
            let mut options = OpenOptions::new();
            // It is read if the whole content is verified against a checksum.
            options.create(true).truncate(false).write(true).read(self.options.checksum.is_some()).mode(mode);
            let mut file = options.open(&self.path)?;
            let length = file.metadata()?.len();
            self.was_long.get_or_insert(length);
            // curl appends at the end whatever the offset; haul writes each byte at its offset.
            file.seek(match self.options.in_place || self.options.append == Some(AppendPosition::WholeAtEnd) {
                true => SeekFrom::End(0),
                false => SeekFrom::Start(begin.map_or(0, |begin| begin.offset)),
            })?;
            return Ok(OutputFileState::InPlace(Arc::new(file)));
        }
        let length = begin.and_then(|begin| begin.length);
        let Some(target) = self.target.clone() else {
            return self.open_temporary(length, file_metadata_and_flags::busy_error());
        };
        let parent = temporary_and_final_names::directory_of(&target);
        if let Some(partial) = begin.and_then(|begin| self.partial_for(begin, &target, mode).transpose()) {
            return partial.map(OutputFileState::Partial);
        }
        // If this fails for a reason that also prevents a file with a name, the error is reported
        // there.
        #[cfg(linux_calls)]
        if let Ok(file) = temporary_and_final_names::unnamed::create(parent, mode) {
            return Ok(OutputFileState::Unnamed(file));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(mode);
        // The closure opens the file because the errors of tempfile hide those of the system, and a
        // lack of descriptors is worth a retry.
        match temporary_and_final_names::with_temporary_name(parent, |path| options.open(path)) {
            Ok((file, path)) => Ok(OutputFileState::Beside(file, path)),
            Err(error) if self.replaced.is_some() && prevents_replacement(&error) => self.open_temporary(length, error),
            Err(error) => Err(error),
        }
    }

    fn create_directories(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(directory_mode(self.options.in_place)).create(path)
    }

    pub(super) fn open_in_place(&mut self) -> io::Result<File> {
        if self.options.create_dirs {
            self.create_directories(temporary_and_final_names::directory_of(&self.path))?;
        }
        let mut options = OpenOptions::new();
        options.write(true).read(self.options.checksum.is_some()).mode(self.options.mode.unwrap_or(0o666));
        // A second attempt writes the file that the first one has made.
        let is_own = self.is_begun || self.clobber.replaces();
        if is_own {
            options.create(true).truncate(true);
        } else {
            options.create_new(true);
        }
        for name in temporary_and_final_names::candidate_paths(&self.path.clone(), self.clobber) {
            let opened = if self.is_guarded { Self::open_guarded(&mut options, &name) } else { options.open(&name) };
            match opened {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => {
                    self.path = name;
                    self.is_begun = opened.is_ok();
                    return opened;
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Opens or creates the partial file for the body of this response. Returns `None` if no
    /// partial file is used: the body is too short, its length or its validator is unknown, or no
    /// partial file can be created.
    fn partial_for(
        &mut self,
        begin: &ResponseForSink<'_>,
        target: &Path,
        mode: u32,
    ) -> io::Result<Option<PartialFileWriter>> {
        if let Some(left) = self.left.take() {
            // The status decides, since the first missing range may begin at the first byte.
            if begin.head.status() == 206 {
                let end = left.next_gap(begin.offset).map_or(begin.offset, |gap| gap.end);
                return left.writer(begin.offset..end).map(Some);
            }
            left.remove();
        }
        let (Some(total), Some(validator), Some(path)) = (
            begin.total.filter(|&total| total >= MIN_RESERVED_BODY),
            begin.validator,
            PartialFile::partial_path(target),
        ) else {
            return Ok(None);
        };
        if begin.length != Some(total) {
            return Ok(None);
        }
        match PartialFile::create(&path, mode, begin.target, total, validator, self.options.sync) {
            Ok(partial) => Arc::new(partial).writer(0..total).map(Some),
            Err(error) if is_full(&error) => Err(error),
            // In any other case, the body can still be written to an ordinary file.
            Err(_) => Ok(None),
        }
    }
}
