//! The standard streams of this process on Windows, and questions on the console. All streams are
//! binary: no line end is converted.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Stdin, Write};
use std::os::windows::io::{AsHandle, AsRawHandle, IntoRawHandle};

use haul::system::file_metadata_and_flags::OwnedFile;
use winapi_util::console::{mode, set_mode};
use windows_sys::Win32::System::Console::{
    ENABLE_ECHO_INPUT, ENABLE_LINE_INPUT, ENABLE_PROCESSED_INPUT, ReadConsoleW, STD_ERROR_HANDLE, SetStdHandle,
};

use crate::file_and_environment_access::{PASSWORD_MAX, remove_line_end};

/// Returns no error: a read finds out whether standard input is open.
///
/// # Errors
/// None.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(crate) fn check_stdin(_stdin: &Stdin) -> io::Result<()> {
    Ok(())
}

/// Returns at once, because a read of standard input always waits.
///
/// # Errors
/// None.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(crate) fn wait_for_stdin() -> io::Result<()> {
    Ok(())
}

/// Writes some bytes to standard output, without a buffer. Fails if it is not open for writing.
///
/// # Errors
/// The errors of `WriteFile`.
pub(crate) fn write_to_stdout(bytes: &[u8]) -> io::Result<usize> {
    stdout_file()?.write(bytes)
}

/// Duplicates the handle of standard input, to read it without a buffer. Returns `None` for a
/// console, whose text std converts to UTF-8.
pub(crate) fn unbuffered_stdin() -> Option<File> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return None;
    }
    stdin.as_handle().try_clone_to_owned().map(File::from).ok()
}

/// Duplicates the handle of standard output.
///
/// # Errors
/// The system has no handle left.
pub(crate) fn stdout_file() -> io::Result<File> {
    io::stdout().as_handle().try_clone_to_owned().map(File::from)
}

/// Duplicates the handle of standard error.
///
/// # Errors
/// The system has no handle left.
pub(crate) fn stderr_file() -> io::Result<File> {
    io::stderr().as_handle().try_clone_to_owned().map(File::from)
}

/// Returns false, because Windows does not report whether writes to an open file append to it. The
/// shell's `>>` only sets the position to the end of the file.
pub(crate) fn is_appending(_file: &File) -> bool {
    false
}

/// Makes standard error write to this file.
///
/// # Errors
/// The errors of `SetStdHandle`.
pub(crate) fn redirect_stderr(file: File) -> io::Result<()> {
    // SAFETY: the handle is open, and stays open until the process ends, because nothing owns it.
    let is_set = unsafe { SetStdHandle(STD_ERROR_HANDLE, file.into_raw_handle()) };
    if is_set == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the standard stream with this number. Other numbers name no handle.
///
/// # Errors
/// The number is neither 1 nor 2.
pub(crate) fn duplicate_for_writing(number: &str) -> io::Result<OwnedFile> {
    match number {
        "1" => stdout_file().map(OwnedFile::from),
        "2" => stderr_file().map(OwnedFile::from),
        _ => Err(io::Error::new(ErrorKind::Unsupported, "Windows has no descriptors but 1 and 2; name a file")),
    }
}

/// Prints a prompt on the console and reads a line without echo. Restores the mode of the console
/// afterwards, even after an error.
///
/// # Errors
/// There is no console, or it cannot be read.
pub(crate) fn ask_for_password(prompt: &str) -> io::Result<Vec<u8>> {
    let input = File::options().read(true).write(true).open("CONIN$")?;
    let mut output = File::options().read(true).write(true).open("CONOUT$")?;
    let before = mode(&input)?;
    set_mode(&input, (before | ENABLE_LINE_INPUT | ENABLE_PROCESSED_INPUT) & !ENABLE_ECHO_INPUT)?;
    let answer = write!(output, "{prompt}").and_then(|()| read_line(&input));
    set_mode(&input, before)?;
    writeln!(output)?;
    answer.map(remove_line_end)
}

/// Reads a line from the console, as UTF-8.
fn read_line(console: &File) -> io::Result<Vec<u8>> {
    let mut line = [0_u16; PASSWORD_MAX as usize];
    let mut length = 0;
    // SAFETY: the handle is open, `line` has as many units as the call may write, and `length` is
    // writable.
    let result = unsafe {
        let units = line.as_mut_ptr().cast();
        ReadConsoleW(console.as_raw_handle(), units, line.len() as u32, &raw mut length, std::ptr::null())
    };
    if result == 0 {
        return Err(io::Error::last_os_error());
    }
    let text = String::from_utf16(&line[..length as usize]);
    text.map(String::into_bytes).map_err(|_| ErrorKind::InvalidData.into())
}
