//! The standard streams of this process, its open descriptors, and questions on the terminal.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Stdin, Write};
use std::os::fd::AsFd;

use haul::system::file_metadata_and_flags::OwnedFile;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{Errno, retry_on_intr};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::file_and_environment_access::{PASSWORD_MAX, remove_line_end};

/// Returns an error if standard input is not open for reading. Reads nothing.
///
/// # Errors
/// `EBADF`, the error with which a read would fail.
pub(crate) fn check_stdin(stdin: &Stdin) -> io::Result<()> {
    match fcntl_getfl(stdin)?.contains(OFlags::WRONLY) {
        true => Err(Errno::BADF.into()),
        false => Ok(()),
    }
}

/// Waits until standard input can be read. Another process may have made it non-blocking.
///
/// # Errors
/// The errors of `poll(2)`.
pub(crate) fn wait_for_stdin() -> io::Result<()> {
    let stdin = io::stdin();
    retry_on_intr(|| poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None)).map(drop)?;
    Ok(())
}

/// Writes some bytes to standard output, without a buffer. Fails if it is not open for writing.
///
/// # Errors
/// The errors of `write(2)`.
pub(crate) fn write_to_stdout(bytes: &[u8]) -> io::Result<usize> {
    let stdout = io::stdout();
    loop {
        match rustix::io::write(&stdout, bytes) {
            // Another process that shares the descriptor made it non-blocking.
            Err(Errno::AGAIN) => poll(&mut [PollFd::new(&stdout, PollFlags::OUT)], None).map(drop)?,
            written => return Ok(written?),
        }
    }
}

/// Duplicates the descriptor of standard input, to read it without a buffer.
pub(crate) fn unbuffered_stdin() -> Option<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from).ok()
}

/// Duplicates the descriptor of standard output.
///
/// # Errors
/// The errors of `fcntl(2)`.
pub(crate) fn stdout_file() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// Duplicates the descriptor of standard error.
///
/// # Errors
/// The errors of `fcntl(2)`.
pub(crate) fn stderr_file() -> io::Result<File> {
    io::stderr().as_fd().try_clone_to_owned().map(File::from)
}

/// Returns true if each write to the file appends to it.
pub(crate) fn is_appending(file: &File) -> bool {
    fcntl_getfl(file).is_ok_and(|flags| flags.contains(OFlags::APPEND))
}

/// Makes standard error write to this file.
///
/// # Errors
/// The errors of `dup2(2)`.
pub(crate) fn redirect_stderr(file: File) -> io::Result<()> {
    Ok(rustix::stdio::dup2_stderr(file)?)
}

/// Duplicates the descriptor with this number, which must be open for writing.
///
/// # Errors
/// The descriptor is not open, or for reading only.
pub(crate) fn duplicate_for_writing(number: &str) -> io::Result<OwnedFile> {
    let number = number.parse().map_err(|_| io::Error::from(Errno::BADF))?;
    let descriptor = duplicate(number)?;
    if fcntl_getfl(&descriptor)? & OFlags::RWMODE == OFlags::RDONLY {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "it is open for reading only"));
    }
    Ok(descriptor)
}

/// Duplicates a descriptor of this process. If the kernel does not allow this, opens the descriptor
/// by its path in `/dev/fd`. This fails for a socket. For a file, the new descriptor has a separate
/// offset.
#[cfg(target_os = "linux")]
fn duplicate(number: i32) -> io::Result<OwnedFile> {
    use std::os::fd::AsRawFd;

    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

    let this = pidfd_open(getpid(), PidfdFlags::empty());
    // A number that the user has not opened may be that of the pidfd itself.
    let this = this.and_then(|this| if this.as_raw_fd() == number { Err(Errno::BADF) } else { Ok(this) });
    match this.and_then(|this| pidfd_getfd(this, number, PidfdGetfdFlags::empty())) {
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => open_descriptor_by_path(number),
        duplicate => Ok(duplicate?),
    }
}

/// Duplicates a descriptor of this process by its name in `/dev/fd`.
#[cfg(not(target_os = "linux"))]
fn duplicate(number: i32) -> io::Result<OwnedFile> {
    open_descriptor_by_path(number)
}

fn open_descriptor_by_path(number: i32) -> io::Result<OwnedFile> {
    let file = File::options().append(true).open(format!("/dev/fd/{number}"))?;
    Ok(OwnedFile::from(file))
}

/// Prints a prompt on the terminal and reads a line without echo. Restores the settings of the
/// terminal afterwards, even after an error.
///
/// # Errors
/// There is no terminal, or it cannot be read.
pub(crate) fn ask_for_password(prompt: &str) -> io::Result<Vec<u8>> {
    let terminal = File::options().read(true).write(true).open("/dev/tty")?;
    let before = tcgetattr(&terminal)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
    let answer = ask_without_echo(&terminal, prompt);
    tcsetattr(&terminal, OptionalActions::Flush, &before)?;
    answer
}

fn ask_without_echo(mut terminal: &File, prompt: &str) -> io::Result<Vec<u8>> {
    write!(terminal, "{prompt}")?;
    let mut line = Vec::new();
    BufReader::new(terminal.take(PASSWORD_MAX)).read_until(b'\n', &mut line)?;
    writeln!(terminal)?;
    Ok(remove_line_end(line))
}
