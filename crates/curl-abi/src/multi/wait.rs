//! Waiting for transfers: `curl_multi_poll`, `curl_multi_wait`, `curl_multi_fdset`.

use std::ffi::{c_int, c_short, c_uint};
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use super::state::Multi;
use super::{DescriptorCount, with_multi};
use crate::c_strings;
use crate::codes::{CURLM_BAD_FUNCTION_ARGUMENT, CURLM_OK, CURLM_OUT_OF_MEMORY, CURLM_UNRECOVERABLE_POLL, CURLMcode};
use crate::handle_table::OpaqueHandle;

const WAIT_POLLIN: c_short = 1;
const WAIT_POLLPRI: c_short = 2;
const WAIT_POLLOUT: c_short = 4;

/// Pairs of event bits for `poll`: libcurl's bit and the system's bit for the same event.
const POLL_BIT_PAIRS: [(c_short, c_short); 3] =
    [(WAIT_POLLIN, libc::POLLIN), (WAIT_POLLPRI, libc::POLLPRI), (WAIT_POLLOUT, libc::POLLOUT)];

/// A file descriptor of the C program to wait for, with the layout of `curl/multi.h`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct curl_waitfd {
    fd: c_int,
    events: c_short,
    revents: c_short,
}

/// The libcurl function that waits: `curl_multi_wait` or `curl_multi_poll`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitKind {
    /// `curl_multi_wait`: returns immediately if there is nothing to wait for.
    Wait,
    /// `curl_multi_poll`: waits even without descriptors, and `curl_multi_wakeup` ends the wait.
    Poll,
}

fn convert_bits(bits: c_short, pairs: impl Iterator<Item = (c_short, c_short)>) -> c_short {
    pairs.filter(|(from, _)| bits & from != 0).fold(0, |all, (_, to)| all | to)
}

impl Multi {
    /// Waits for transfers, for the C program's descriptors, or until the timeout. Returns the
    /// number of descriptors with events.
    fn wait(&self, kind: WaitKind, extra: &mut [curl_waitfd], timeout: c_int) -> Result<c_int, CURLMcode> {
        let own = self.active_descriptors();
        if kind == WaitKind::Wait && own.is_empty() && extra.is_empty() {
            return Ok(0);
        }
        let entry = |fd: RawFd, events: c_short| libc::pollfd { fd, events, revents: 0 };
        let mut fds: Vec<libc::pollfd> = own.iter().map(|fd| entry(*fd, libc::POLLIN)).collect();
        fds.extend(extra.iter().map(|each| entry(each.fd, convert_bits(each.events, POLL_BIT_PAIRS.into_iter()))));
        if kind == WaitKind::Poll {
            fds.push(entry(self.wakeup.fd(), libc::POLLIN));
        }
        let due = c_int::try_from(self.timeout()).unwrap_or(-1);
        let timeout = if due >= 0 { timeout.min(due) } else { timeout };
        poll(&mut fds, timeout)?;
        let mut count = 0;
        for (at, fd) in fds.iter().enumerate() {
            if at >= own.len() + extra.len() {
                if fd.revents != 0 {
                    self.wakeup.clear();
                }
                continue;
            }
            count += c_int::from(fd.revents != 0);
            if let Some(each) = at.checked_sub(own.len()).and_then(|at| extra.get_mut(at)) {
                each.revents =
                    convert_bits(fd.revents, POLL_BIT_PAIRS.into_iter().map(|(ours, theirs)| (theirs, ours)));
            }
        }
        Ok(count)
    }
}

/// Calls `poll(2)` with a timeout in milliseconds. Returns `Ok` also if a signal interrupts the
/// call.
fn poll(fds: &mut [libc::pollfd], timeout: c_int) -> Result<(), CURLMcode> {
    let until = Instant::now() + Duration::from_millis(u64::from(timeout.unsigned_abs()));
    loop {
        // Rounded up: a wait that ends early would be repeated many times.
        let left = until.saturating_duration_since(Instant::now()).as_nanos().div_ceil(1_000_000);
        let left = c_int::try_from(left).unwrap_or(c_int::MAX).min(timeout);
        // SAFETY: the entries live during the call.
        let result = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, left) };
        if result >= 0 {
            return Ok(());
        }
        match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => return Ok(()),
            Some(libc::EAGAIN) if Instant::now() < until => {}
            _ => return Err(CURLM_UNRECOVERABLE_POLL),
        }
    }
}

/// Does the work of `curl_multi_wait` and `curl_multi_poll`.
///
/// # Safety
/// The pointers are valid as libcurl's documentation of these functions demands.
unsafe fn wait(
    kind: WaitKind,
    multi: OpaqueHandle,
    extra: *mut curl_waitfd,
    count: c_uint,
    timeout: c_int,
    place: *mut c_int,
) -> CURLMcode {
    with_multi(multi, |multi| {
        if timeout < 0 || extra.is_null() && count > 0 {
            return CURLM_BAD_FUNCTION_ARGUMENT;
        }
        let extra: &mut [curl_waitfd] = match count {
            0 => &mut [],
            // SAFETY: the caller guarantees it.
            count => unsafe { std::slice::from_raw_parts_mut(extra, count as usize) },
        };
        let (code, ready) = match multi.wait(kind, extra, timeout) {
            Ok(ready) => (CURLM_OK, ready),
            Err(code) => (code, 0),
        };
        // SAFETY: libcurl's contract: NULL or writable.
        unsafe { c_strings::write_unless_null(place, ready) };
        code
    })
}

/// Waits until a transfer or one of the C program's descriptors in `extra` has an event. Returns
/// immediately if no transfer is in progress and `extra` is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_multi_wait(
    multi: OpaqueHandle,
    extra: *mut curl_waitfd,
    count: c_uint,
    timeout: c_int,
    place: *mut c_int,
) -> CURLMcode {
    // SAFETY: the same contract.
    unsafe { wait(WaitKind::Wait, multi, extra, count, timeout, place) }
}

/// Waits like [`curl_multi_wait`], but also if no transfer is in progress and `extra` is empty.
/// `curl_multi_wakeup` ends the wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_multi_poll(
    multi: OpaqueHandle,
    extra: *mut curl_waitfd,
    count: c_uint,
    timeout: c_int,
    place: *mut c_int,
) -> CURLMcode {
    // SAFETY: the same contract.
    unsafe { wait(WaitKind::Poll, multi, extra, count, timeout, place) }
}

/// Ends the `curl_multi_poll` that another thread is running. If no thread is running it, the next
/// call returns at once.
#[unsafe(no_mangle)]
pub extern "C" fn curl_multi_wakeup(multi: OpaqueHandle) -> CURLMcode {
    with_multi(multi, |multi| {
        multi.wakeup.notify();
        CURLM_OK
    })
}

/// Adds the descriptors that the C program must watch to sets for `select`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_multi_fdset(
    multi: OpaqueHandle,
    read: *mut libc::fd_set,
    _write: *mut libc::fd_set,
    _except: *mut libc::fd_set,
    highest: *mut c_int,
) -> CURLMcode {
    with_multi(multi, |multi| {
        let mut most = -1;
        let fds = multi.active_descriptors();
        for fd in fds {
            let fits = usize::try_from(fd).is_ok_and(|fd| fd < libc::FD_SETSIZE);
            if fits && !read.is_null() {
                // SAFETY: libcurl's contract: a set; and the descriptor fits in it.
                unsafe { libc::FD_SET(fd, read) };
                most = most.max(fd);
            }
        }
        // SAFETY: libcurl's contract: NULL or writable.
        unsafe { c_strings::write_unless_null(highest, most) };
        CURLM_OK
    })
}

/// Stores the descriptors that the C program must watch in an array. `*count` receives their
/// number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_multi_waitfds(
    multi: OpaqueHandle,
    places: *mut curl_waitfd,
    size: DescriptorCount,
    count: *mut DescriptorCount,
) -> CURLMcode {
    with_multi(multi, |multi| {
        let fds = multi.active_descriptors();
        for (at, fd) in fds.iter().enumerate().take(size as usize) {
            if !places.is_null() {
                let entry = curl_waitfd { fd: *fd, events: WAIT_POLLIN, revents: 0 };
                // SAFETY: libcurl's contract: the array has `size` entries.
                unsafe { places.add(at).write_unaligned(entry) };
            }
        }
        // SAFETY: libcurl's contract: NULL or writable.
        unsafe { c_strings::write_unless_null(count, DescriptorCount::try_from(fds.len()).unwrap_or(0)) };
        if fds.len() > size as usize { CURLM_OUT_OF_MEMORY } else { CURLM_OK }
    })
}
