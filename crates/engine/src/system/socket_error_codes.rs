//! The numbers of the errors of socket calls.

#[cfg(unix)]
pub(crate) use libc::{EADDRNOTAVAIL, EAFNOSUPPORT, ENETUNREACH};
#[cfg(all(unix, feature = "http3"))]
pub(crate) use libc::{ECONNREFUSED, EHOSTUNREACH, EINVAL, EIO, EMSGSIZE, ENETDOWN, ENOBUFS, ENOMEM, EPERM};
#[cfg(windows)]
pub(crate) use windows_sys::Win32::Networking::WinSock::{
    WSAEADDRNOTAVAIL as EADDRNOTAVAIL, WSAEAFNOSUPPORT as EAFNOSUPPORT, WSAEMFILE as EMFILE,
    WSAENETUNREACH as ENETUNREACH,
};
// Windows has no EPERM and no EIO for sockets. The errors that stand for them here are those after which
// haul does the same.
#[cfg(all(windows, feature = "http3"))]
pub(crate) use windows_sys::Win32::Networking::WinSock::{
    WSA_NOT_ENOUGH_MEMORY as ENOMEM, WSAEACCES as EPERM, WSAECONNREFUSED as ECONNREFUSED,
    WSAEHOSTUNREACH as EHOSTUNREACH, WSAEINVAL as EINVAL, WSAEMSGSIZE as EMSGSIZE, WSAENETDOWN as ENETDOWN,
    WSAENOBUFS as ENOBUFS, WSAEOPNOTSUPP as EIO,
};

/// Returns true if an error means that the process or the system has no free descriptor.
#[must_use]
pub(crate) fn lacks_descriptors(error: &std::io::Error) -> bool {
    #[cfg(unix)]
    return matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
    #[cfg(windows)]
    return matches!(error.raw_os_error(), Some(EMFILE));
}

/// Returns true if an error of `connect` means that the connection attempt has begun.
#[must_use]
pub(crate) fn is_connect_in_progress(error: &std::io::Error) -> bool {
    #[cfg(unix)]
    return matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR));
    #[cfg(windows)]
    return error.kind() == std::io::ErrorKind::WouldBlock;
}
