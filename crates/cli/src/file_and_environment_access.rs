//! The trait through which the command line reads files, the environment and the terminal. Tests
//! implement it with fixed texts.
//!
//! ```
//! use haul_cli::file_and_environment_access::FilesAndEnvironment;
//! use std::{io::Read, path::Path};
//!
//! struct OneFile;
//! impl FilesAndEnvironment for OneFile {
//!     fn open(&mut self, _: &Path) -> std::io::Result<Box<dyn Read>> {
//!         Ok(Box::new(&b"url = http://example.com/"[..]))
//!     }
//! }
//! let args = ["-K", "any"].map(Into::into);
//! let parsed = haul_cli::parse::parse(args, &mut OneFile).unwrap();
//! assert_eq!(parsed.groups[0].urls.len(), 1);
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Read, Stdin, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use haul::body::upload::OneShotSource;

use crate::system::standard_streams;

/// Access to the files that options name, to the environment, and to the terminal.
pub trait FilesAndEnvironment {
    /// Opens a file for reading; `-` is standard input.
    fn open(&mut self, path: &Path) -> io::Result<Box<dyn Read>>;

    /// Opens a config file; `-` is standard input. The reader of standard input reads no further
    /// than the end of a line, so that an option of the config file can read the rest of the input
    /// as request content. The default implementation calls [`FilesAndEnvironment::open`].
    fn open_config(&mut self, path: &Path) -> io::Result<Box<dyn Read>> {
        self.open(path)
    }

    /// Returns the size in bytes of a file that an option names and that is read later. Returns
    /// `None` for a file without a reliable size, such as a pipe.
    ///
    /// Only a regular file is opened. If a pipe were opened and closed here, the program that
    /// writes to the pipe would lose its reader.
    fn size(&mut self, path: &Path) -> io::Result<Option<u64>> {
        self.open(path).map(|_| None)
    }

    /// Returns the time of a file's last modification, in seconds since 1970-01-01 00:00 UTC, or
    /// `None` if the file does not exist. The default implementation always returns `None`.
    fn modified(&mut self, _path: &Path) -> Option<u64> {
        None
    }

    /// Returns the value of an environment variable, or `None` if it is not set. The default
    /// implementation always returns `None`.
    fn variable(&self, _name: &str) -> Option<OsString> {
        None
    }

    /// Asks the user for a password on the terminal. The default implementation always fails.
    fn password(&mut self, _prompt: &str) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Reads a password from the next line of standard input. The caller uses this if there is no
    /// terminal on which to ask for the password.
    ///
    /// # Errors
    /// The errors of reading. The default implementation always fails.
    fn password_line(&mut self, _prompt: &str) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// True once a reader of [`io::stdin`] was created. The buffer of that reader may then hold bytes
/// of standard input.
static IS_READ_AHEAD: AtomicBool = AtomicBool::new(false);

/// Returns a reader of standard input, which shares the buffer of [`io::stdin`].
///
/// # Errors
/// An error if standard input is not open for reading. [`io::stdin`] itself would report an empty
/// input in that case.
pub(crate) fn stdin() -> io::Result<BlockingStdIn> {
    let stdin = BlockingStdIn::new();
    standard_streams::check_stdin(&stdin.0)?;
    Ok(stdin)
}

/// A reader of standard input. The reader waits for bytes even if another process has made the
/// descriptor non-blocking.
pub(crate) struct BlockingStdIn(Stdin);

impl BlockingStdIn {
    pub(crate) fn new() -> Self {
        IS_READ_AHEAD.store(true, Ordering::Relaxed);
        Self(io::stdin())
    }
}

impl Read for BlockingStdIn {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        retry_until_readable(|| self.0.read(into))
    }
}

/// Calls `read`, which reads standard input, and repeats the call as long as it fails with
/// `WouldBlock`. Waits before each further call until standard input is readable.
fn retry_until_readable<T>(mut read: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                standard_streams::wait_for_stdin()?;
            }
            read => return read,
        }
    }
}

/// A writer to standard output. Unlike [`io::stdout`], it fails if the descriptor is not open for
/// writing.
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        standard_streams::write_to_stdout(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the unread rest of standard input as the content of a request. The time limits of the
/// transfer also apply while haul waits for input, unless another reader has already buffered a
/// part of the input.
pub(crate) fn stdin_content() -> OneShotSource {
    let is_read = IS_READ_AHEAD.load(Ordering::Relaxed);
    let unread = if is_read { None } else { standard_streams::unbuffered_stdin() };
    unread.map_or_else(|| OneShotSource::new(BlockingStdIn::new()), OneShotSource::file)
}

/// A reader of standard input that returns at most one line at a time.
struct StdinLineReader;

impl Read for StdinLineReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut stdin = stdin()?.0.lock();
        retry_until_readable(|| {
            let ahead = stdin.fill_buf()?;
            let line = memchr::memchr(b'\n', ahead).map_or(ahead.len(), |at| at + 1);
            let count = line.min(into.len());
            into[..count].copy_from_slice(&ahead[..count]);
            stdin.consume(count);
            Ok(count)
        })
    }
}

/// The [`FilesAndEnvironment`] of the program: the real files, environment and terminal.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemFilesAndEnvironment;

impl FilesAndEnvironment for SystemFilesAndEnvironment {
    fn open(&mut self, path: &Path) -> io::Result<Box<dyn Read>> {
        if path == Path::new("-") {
            return Ok(Box::new(stdin()?));
        }
        let file = File::open(path)?;
        // Opening a directory succeeds on Unix and would only fail at the first read.
        if file.metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        Ok(Box::new(file))
    }

    fn open_config(&mut self, path: &Path) -> io::Result<Box<dyn Read>> {
        if path == Path::new("-") { Ok(Box::new(StdinLineReader)) } else { self.open(path) }
    }

    fn size(&mut self, path: &Path) -> io::Result<Option<u64>> {
        let metadata = std::fs::metadata(path)?;
        if metadata.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        if !metadata.is_file() {
            return Ok(None);
        }
        File::open(path)?.metadata().map(|metadata| Some(metadata.len()))
    }

    fn modified(&mut self, path: &Path) -> Option<u64> {
        let time = std::fs::metadata(path).ok()?.modified().ok()?;
        time.duration_since(std::time::UNIX_EPOCH).ok().map(|since| since.as_secs())
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        haul::trusted_environment_variables::variable(name)
    }

    fn password(&mut self, prompt: &str) -> io::Result<Vec<u8>> {
        standard_streams::ask_for_password(prompt)
    }

    fn password_line(&mut self, prompt: &str) -> io::Result<Vec<u8>> {
        let _ = write!(io::stderr(), "{prompt}");
        let mut line = Vec::new();
        // What follows the line is left for the next reader.
        let mut stdin = BlockingStdIn::new().0.lock();
        let outcome = retry_until_readable(|| {
            let room = PASSWORD_MAX.saturating_sub(line.len() as u64);
            stdin.by_ref().take(room).read_until(b'\n', &mut line)
        });
        let _ = writeln!(io::stderr());
        outcome.map(|_| remove_line_end(line))
    }
}

/// The length limit of a password that the user types, in bytes.
pub(crate) const PASSWORD_MAX: u64 = 4096;

/// Returns a line that was read, without its line end.
pub(crate) fn remove_line_end(mut line: Vec<u8>) -> Vec<u8> {
    while let Some(b'\n' | b'\r') = line.last() {
        line.pop();
    }
    line
}

/// Prints a line on standard error. Ignores errors, because standard error may be closed.
pub(crate) fn print_error_line(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
