//! The destination of `--events`: a file, or an open descriptor.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind as IoErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haul::interrupt_callback::InterruptCallback;
use haul::sink::descriptor_writer::DescriptorWriter;
use haul::system::file_metadata_and_flags::{FileTypeExt, OwnedFile, create, do_not_wait, is_regular};
use haul::{Error, ErrorKind, Result};

use crate::system::standard_streams::duplicate_for_writing;

/// The time between two attempts to open a FIFO that has no reader yet.
const FIFO_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The number of buffered bytes at which the event lines are written to the output.
const FLUSH_THRESHOLD: usize = 64 << 10;

/// The output of `--events`, with lines that are not written yet.
pub(super) struct EventOutput {
    writer: DescriptorWriter,
    /// The file name or the number of the descriptor, for error messages.
    path: PathBuf,
    /// The event file, which this run has truncated; `None` if the output is a descriptor, a pipe
    /// or a device.
    file: Option<File>,
    /// The number of bytes that were written. They are whole lines.
    written: u64,
    lines: Vec<u8>,
    is_read: bool,
}

impl EventOutput {
    /// Opens the output `path`: standard output for `-`, an open descriptor if `path` is its
    /// number, and otherwise the file with this name, which is truncated.
    ///
    /// Waits for the reader of a FIFO. `interrupt` ends this wait.
    ///
    /// # Errors
    /// The file cannot be opened, the descriptor is not open for writing, or a signal has arrived
    /// before the FIFO has a reader.
    pub(super) fn open(path: &Path, interrupt: Option<&InterruptCallback>) -> Result<Self> {
        let number = match path.to_str() {
            Some("-") => Some("1"),
            Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => Some(text),
            _ => None,
        };
        let refused = |cause, text: String| Error::with_source(ErrorKind::Write, text, cause);
        let (descriptor, file) = match number {
            Some(number) => {
                let failed = |cause| {
                    let text =
                        format!("the events cannot be written to descriptor {number}; open it, as by {number}>FILE");
                    refused(cause, text)
                };
                (duplicate_for_writing(number).map_err(failed)?, None)
            }
            None => {
                let failed = |cause| refused(cause, format!("failed to open {} for the events", path.display()));
                let file = match interrupt.filter(|_| is_fifo(path)) {
                    Some(interrupt) => open_fifo(path, interrupt)?,
                    None => create(path),
                };
                let file = file.map_err(failed)?;
                let copy = if is_regular(&file).is_ok_and(|is_regular| is_regular) {
                    Some(file.try_clone().map_err(failed)?)
                } else {
                    None
                };
                (OwnedFile::from(file), copy)
            }
        };
        let writer = DescriptorWriter::new(descriptor);
        Ok(Self { writer, path: path.to_owned(), file, written: 0, lines: Vec::new(), is_read: true })
    }

    /// Returns true until the reader of the output closes it. After that, nothing more is written.
    pub(super) fn has_reader(&self) -> bool {
        self.is_read
    }

    /// Adds an event line. Writes all buffered lines once they have `FLUSH_THRESHOLD` bytes.
    ///
    /// # Errors
    /// The output cannot be written. A file is then truncated to its last whole line.
    pub(super) fn add(&mut self, line: &[u8]) -> Result<()> {
        self.lines.extend_from_slice(line);
        if self.lines.len() < FLUSH_THRESHOLD { Ok(()) } else { self.flush() }
    }

    /// Writes all buffered lines, and waits until they are written.
    ///
    /// # Errors
    /// The output cannot be written. A file is then truncated to its last whole line.
    pub(super) fn flush(&mut self) -> Result<()> {
        let outcome = self.writer.write(&self.lines).and_then(|_| self.writer.drain(None));
        let Err(error) = outcome else {
            self.written += self.lines.len() as u64;
            self.lines.clear();
            return Ok(());
        };
        let has_gone = |kind| matches!(kind, IoErrorKind::BrokenPipe | IoErrorKind::ConnectionReset);
        if error.io_source().is_some_and(|source| has_gone(source.kind())) {
            self.is_read = false;
            return Ok(());
        }
        if let Some(file) = &self.file {
            // If this fails, too, the file ends with a part of a line, and the message below says
            // so.
            let _ = file.set_len(self.written);
        }
        let text = format!("the events in {} are incomplete", self.path.display());
        let cause = error.io_source().map_or_else(|| error.cause(), ToString::to_string);
        Err(Error::with_source(ErrorKind::Write, text, cause))
    }
}

fn is_fifo(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Opens a FIFO for writing as soon as it has a reader. The signals are blocked here, so they do
/// not end an `open(2)` that waits for the reader.
///
/// # Errors
/// `interrupt` has ended the wait. The inner result is the error of `open(2)`.
fn open_fifo(path: &Path, interrupt: &InterruptCallback) -> Result<std::io::Result<File>> {
    loop {
        match do_not_wait(OpenOptions::new().write(true)).open(path) {
            Err(error) if is_without_reader(&error) => interrupt.check()?,
            opened => return Ok(opened),
        }
        std::thread::sleep(FIFO_RETRY_INTERVAL);
    }
}

#[cfg(unix)]
fn is_without_reader(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(nix::errno::Errno::ENXIO as i32)
}

#[cfg(not(unix))]
fn is_without_reader(_error: &std::io::Error) -> bool {
    false
}
