//! Files that a later run can complete. Such a file contains the received part of a body, and a
//! checkpoint: a record of the received ranges. The file is in the target's directory.
//!
//! ```text
//!  dir/.NAME.haul-part    content, in any order           two checkpoints; the newer one counts
//!                         ├──────────────────────────────┼────────┬────────┤
//!                         0                            total    +4 KiB   +8 KiB
//! ```
//!
//! The kernel keeps the writes of a killed process, so the checkpoint is written after the bytes to
//! which it refers, and needs no sync. A crash of the machine may lose these bytes, so a checkpoint
//! from before a reboot is used only if the bytes were synced first. There are two checkpoints,
//! each with a checksum, which are written alternately: if one is incomplete, the other one is
//! still valid.
//!
//! Content and checkpoint are in one file. So the checkpoint cannot be lost or belong to other
//! content, and a single rename makes the file the target.
//!
//! The file is locked (`flock`) while it is being written, so that two runs with the same target do
//! not write to it at the same time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use aws_lc_rs::digest::{SHA256, digest};
use haul_policy::range::byte_range_set::ByteRangeSet;
use haul_policy::range::checkpoint::{self, Checkpoint, SLOT_SIZE};
use haul_policy::range::validator::Validator;
use haul_policy::target::Target;
#[cfg(unix)]
use rustix::fd::{AsFd, BorrowedFd};

use super::ExistingPartialContent;
use super::file::disk_space_reservation::{self, DiskSpaceReservation};
use crate::ignore_poison::IgnorePoison;
use crate::system::file_metadata_and_flags::{self, FileExt, OpenOptionsExt};

/// The number of bytes, received over all connections together, after which the checkpoint of a
/// partial file (the record of its received ranges) is written again. If the process is killed, at
/// most this many bytes must be received again.
const CHECKPOINT_INTERVAL: u64 = 4 << 20;
/// The interval that replaces `CHECKPOINT_INTERVAL` if the options request that a partial file is
/// synced to the disk: the number of received bytes after which the file is synced and its
/// checkpoint is written again. This interval is longer, since a sync takes time.
const SYNCED_CHECKPOINT_INTERVAL: u64 = 64 << 20;

/// A file with a part of some content, which a later run of the program can complete. It is in the
/// directory of the final file.
#[derive(Debug)]
pub struct PartialFile {
    file: File,
    path: PathBuf,
    total: u64,
    syncs: bool,
    progress: Mutex<CheckpointProgress>,
}

/// The last checkpoint of a partial file, and the number of bytes written since. The checkpoint
/// lists the ranges of the content that the file contains.
#[derive(Debug)]
struct CheckpointProgress {
    checkpoint: Checkpoint,
    sequence: u64,
    /// The number of bytes written since the last checkpoint.
    bytes_since_checkpoint: u64,
    /// True if the file is complete or was removed, so that no further checkpoints are written.
    is_over: bool,
}

/// Returns a hash of the URL without its fragment and credentials. A later run of the program
/// compares it to check that a partial file belongs to the same URL.
fn target_hash(target: &Target) -> [u8; 32] {
    let mut identity = [0; 32];
    identity.copy_from_slice(digest(&SHA256, target.to_url().as_bytes()).as_ref());
    identity
}

impl PartialFile {
    /// Returns the path of the partial file for the file at `target`. Returns `None` if the file
    /// name would be too long.
    #[must_use]
    pub fn partial_path(target: &Path) -> Option<PathBuf> {
        let mut name = std::ffi::OsString::from(".");
        name.push(target.file_name()?);
        name.push(".haul-part");
        (name.len() <= 255).then(|| target.with_file_name(name))
    }

    /// Opens the partial file that an earlier run of the program left for this target. Returns
    /// `None` if there is no such file, or if another process uses it. If the file is damaged or
    /// belongs to another target, removes it and returns `None`.
    #[must_use]
    pub fn open(path: &Path, target: &Target, syncs: bool) -> Option<Self> {
        let file = open_existing(path)?;
        let stored = read_checkpoint(&file).filter(|(_, checkpoint)| {
            checkpoint.identity == target_hash(target)
                && checkpoint.is_reliable_in_boot(&super::boot_id::read())
                && checkpoint.done.byte_count() > 0
        });
        let Some((sequence, checkpoint)) = stored else {
            // The file belongs to this user and is locked here; the next run may make a new one.
            let _ = fs::remove_file(path);
            return None;
        };
        let progress = CheckpointProgress { sequence, bytes_since_checkpoint: 0, is_over: false, checkpoint };
        let total = progress.checkpoint.total;
        Some(Self { file, path: path.to_owned(), total, syncs, progress: Mutex::new(progress) })
    }

    /// Makes a new partial file for `total` bytes of content, and checks that the disk has space
    /// for them. The space is reserved only as the bytes are written.
    ///
    /// # Errors
    /// An error of the file system; [`io::ErrorKind::StorageFull`] or
    /// [`io::ErrorKind::FileTooLarge`] if there is no space; [`io::ErrorKind::WouldBlock`] if
    /// another process uses the file.
    pub fn create(
        path: &Path,
        mode: u32,
        target: &Target,
        total: u64,
        validator: &Validator,
        syncs: bool,
    ) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(mode);
        let file = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // The file was left by a run for another target, or its content has changed on the
                // server.
                if open_existing(path).is_none() {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                fs::remove_file(path)?;
                options.open(path)?
            }
            opened => opened?,
        };
        file_metadata_and_flags::try_lock(&file).inspect_err(|error| {
            // If another run has locked the file meanwhile, it writes to it. If locks do not work
            // (NFS without its daemon), the file is useless.
            if error.kind() != io::ErrorKind::WouldBlock {
                let _ = fs::remove_file(path);
            }
        })?;
        let checkpoint = Checkpoint {
            identity: target_hash(target),
            boot: super::boot_id::read(),
            is_synced: false,
            total,
            validator: validator.clone(),
            done: ByteRangeSet::new(),
        };
        let progress = CheckpointProgress { checkpoint, sequence: 0, bytes_since_checkpoint: 0, is_over: false };
        let partial = Self { file, path: path.to_owned(), total, syncs, progress: Mutex::new(progress) };
        let has_room = disk_space_reservation::check_length_fits(&partial.file, total.saturating_add(2 * SLOT_SIZE));
        // The space for the checkpoints is allocated now, so that they can be written even when the
        // disk is full.
        if let Err(error) =
            has_room.and_then(|()| disk_space_reservation::allocate(&partial.file, total, 2 * SLOT_SIZE))
        {
            partial.remove();
            return Err(error);
        }
        Ok(partial)
    }

    /// Returns the first missing range, and the length and validator of the content, with which a
    /// transfer can complete the file. Returns `None` if nothing is missing.
    #[must_use]
    pub fn existing_content(&self) -> Option<ExistingPartialContent> {
        let progress = self.progress();
        let checkpoint = &progress.checkpoint;
        let gap = checkpoint.done.first_gap(0, self.total).unwrap_or(self.total..self.total);
        Some(ExistingPartialContent { gap, known: Some((self.total, checkpoint.validator.clone())) })
    }

    /// Returns the first range after the offset `from` that is missing in the file. Returns `None`
    /// if nothing is missing there.
    #[must_use]
    pub fn next_gap(&self, from: u64) -> Option<Range<u64>> {
        self.progress().checkpoint.done.first_gap(from, self.total)
    }

    /// Returns the ranges of the content that the file contains.
    #[must_use]
    pub fn present_ranges(&self) -> ByteRangeSet {
        self.progress().checkpoint.done.clone()
    }

    /// Returns the length in bytes of the whole content.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the open partial file, for reading.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns a writer for the range `span`, which writes each byte at its offset in the file.
    ///
    /// # Errors
    /// The file cannot be opened again. (Each writer needs a separate descriptor, since a
    /// descriptor has only one position.)
    pub fn writer(self: &Arc<Self>, span: Range<u64>) -> io::Result<PartialFileWriter> {
        let mut options = OpenOptions::new();
        let mut file = file_metadata_and_flags::do_not_follow(options.write(true)).open(&self.path)?;
        check_same_file(file_metadata_and_flags::is_same_file(&self.file, &file)?)?;
        io::Seek::seek(&mut file, io::SeekFrom::Start(span.start))?;
        let space = DiskSpaceReservation::new(span.start, span.end);
        Ok(PartialFileWriter { partial: Arc::clone(self), file, at: span.start, space })
    }

    /// Records that the bytes of the range `span` were written. Writes a checkpoint if one is due.
    fn on_written(&self, span: Range<u64>) {
        let mut progress = self.progress();
        progress.bytes_since_checkpoint += span.end - span.start;
        progress.checkpoint.done.insert(span);
        let every = if self.syncs { SYNCED_CHECKPOINT_INTERVAL } else { CHECKPOINT_INTERVAL };
        if progress.bytes_since_checkpoint >= every {
            self.write_checkpoint(&mut progress);
        }
    }

    /// Writes the checkpoint (the record of the received ranges) to the partial file. Ignores
    /// errors, because without a checkpoint a later run of the program only receives more bytes
    /// than necessary.
    fn write_checkpoint(&self, progress: &mut CheckpointProgress) {
        progress.bytes_since_checkpoint = 0;
        progress.checkpoint.is_synced = self.syncs && self.file.sync_data().is_ok();
        progress.sequence += 1;
        let slot = self.total + (progress.sequence % 2) * SLOT_SIZE;
        let _ = self.file.write_all_at(&progress.checkpoint.encode(progress.sequence), slot);
    }

    /// Completes the file: removes the checkpoints (the records of the received ranges), which
    /// follow the content, and syncs the file if the options request that.
    ///
    /// # Errors
    /// An error of the file system, or bytes are missing.
    pub fn complete(&self) -> io::Result<()> {
        let mut progress = self.progress();
        if !progress.checkpoint.done.is_complete(self.total) {
            return Err(io::Error::other("bytes are missing"));
        }
        check_same_file(file_metadata_and_flags::is_file_itself_at(&self.file, &self.path)?)?;
        progress.is_over = true;
        self.file.set_len(self.total)?;
        if self.syncs {
            self.file.sync_all()?;
        }
        Ok(())
    }

    /// Removes the file, so that a later run of the program fetches the content from the beginning.
    pub fn remove(&self) {
        self.progress().is_over = true;
        // Another run may have removed it already.
        let _ = fs::remove_file(&self.path);
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, CheckpointProgress> {
        self.progress.lock().ignore_poison()
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        let mut progress = self.progress();
        if progress.is_over {
            return;
        }
        if progress.checkpoint.done.byte_count() == 0 {
            let _ = fs::remove_file(&self.path);
            return;
        }
        // The space that was reserved for missing bytes is released. Some systems release none
        // after the end of a file, so the file is extended first.
        if self.file.metadata().is_ok_and(|metadata| metadata.len() < self.total) {
            let _ = self.file.set_len(self.total);
        }
        for gap in progress.checkpoint.done.gaps(self.total) {
            disk_space_reservation::release_blocks(&self.file, gap.start, gap.end - gap.start);
        }
        self.write_checkpoint(&mut progress);
    }
}

/// Opens and locks an existing partial file. Returns `None` unless it is a regular file that
/// belongs to this user (not checked on Windows) and has only one name.
fn open_existing(path: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    let file = file_metadata_and_flags::do_not_follow(options.read(true).write(true)).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let is_ours = metadata.is_file()
        && file_metadata_and_flags::has_one_name(&file, &metadata)
        && file_metadata_and_flags::is_own(&metadata);
    (is_ours && file_metadata_and_flags::try_lock(&file).is_ok()).then_some(file)
}

/// Returns an error if `is_same` is false: the path of the open partial file then leads to another
/// file, whose content would be wrong.
fn check_same_file(is_same: bool) -> io::Result<()> {
    if is_same { Ok(()) } else { Err(io::Error::other("the partial file was replaced by another")) }
}

fn read_checkpoint(file: &File) -> Option<(u64, Checkpoint)> {
    // The first checkpoint is in the second of the two positions, so that the file's length always
    // tells the content's.
    let total = file.metadata().ok()?.len().checked_sub(2 * SLOT_SIZE)?;
    let mut slots = vec![0; 2 * SLOT_SIZE as usize];
    let read = read_to_end_at(file, &mut slots, total)?;
    checkpoint::latest(&slots[..read]).filter(|(_, checkpoint)| checkpoint.total == total)
}

fn read_to_end_at(file: &File, bytes: &mut [u8], offset: u64) -> Option<usize> {
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(read)
}

/// A writer that fills a [`PartialFile`] from an offset on, byte after byte.
#[derive(Debug)]
pub struct PartialFileWriter {
    partial: Arc<PartialFile>,
    file: File,
    at: u64,
    space: DiskSpaceReservation,
}

impl PartialFileWriter {
    /// Writes all of the pieces.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn write_pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        self.space.reserve_ahead(&self.file);
        super::file::write_all(&self.file, pieces)?;
        self.on_moved_bytes(bytes);
        Ok(())
    }

    /// Writes all of the bytes.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.space.reserve_ahead(&self.file);
        (&self.file).write_all(bytes)?;
        self.on_moved_bytes(bytes.len() as u64);
        Ok(())
    }

    /// Returns the descriptor to which the next bytes may be written without this writer. The
    /// caller must report these bytes by [`PartialFileWriter::on_moved_bytes`].
    #[cfg(unix)]
    pub fn descriptor(&mut self) -> BorrowedFd<'_> {
        self.space.reserve_ahead(&self.file);
        self.file.as_fd()
    }

    /// Records that `bytes` bytes were written directly to the descriptor that
    /// [`PartialFileWriter::descriptor`] returned.
    pub fn on_moved_bytes(&mut self, bytes: u64) {
        self.space.on_written(bytes);
        self.partial.on_written(self.at..self.at + bytes);
        self.at += bytes;
    }

    /// Returns the partial file to which this writer writes.
    #[must_use]
    pub fn partial(&self) -> &Arc<PartialFile> {
        &self.partial
    }
}
