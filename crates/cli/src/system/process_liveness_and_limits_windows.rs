//! Processes on Windows: whether another one runs.

use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::{ERROR_INVALID_PARAMETER, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_SYNCHRONIZE, WaitForSingleObject};

/// Returns true if a process with this ID exists and has not ended.
pub(crate) fn is_running(process: i32) -> bool {
    // SAFETY: the call takes no pointers.
    let handle = unsafe { OpenProcess(PROCESS_SYNCHRONIZE, 0, process.cast_unsigned()) };
    if handle.is_null() {
        // Another error, such as a missing right, means that the process exists.
        let error = std::io::Error::last_os_error().raw_os_error();
        return error != Some(ERROR_INVALID_PARAMETER.cast_signed());
    }
    // SAFETY: the handle is open, and nothing else closes it.
    let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
    // SAFETY: the handle is open until the end of this function.
    unsafe { WaitForSingleObject(handle.as_raw_handle(), 0) != WAIT_OBJECT_0 }
}

/// Does nothing, because Windows does not limit the number of open sockets and files.
pub(crate) fn raise_open_file_limit() {}
