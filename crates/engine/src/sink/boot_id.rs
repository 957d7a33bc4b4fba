//! The identifier of the current boot of this computer. Bytes that were written before a restart
//! may be lost. Bytes that were written during the current boot are not lost.

/// Returns the identifier. Returns an empty vector if it is unknown.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn read() -> Vec<u8> {
    let text = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim_ascii().iter().copied().take(haul_policy::range::checkpoint::MAX_BOOT).collect()
}

/// Returns the identifier of the session, on Apple's systems, or else the time of the boot. Returns
/// an empty vector if the system does not tell. (A clock that was set changes the time of the boot:
/// then bytes are fetched again.)
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "openbsd")))]
pub(super) fn read() -> Vec<u8> {
    const NAME: &std::ffi::CStr =
        if cfg!(target_vendor = "apple") { c"kern.bootsessionuuid" } else { c"kern.boottime" };
    let mut value = vec![0; haul_policy::range::checkpoint::MAX_BOOT];
    let mut len = value.len();
    // SAFETY: the name ends with NUL, the system writes at most `len` bytes to `value`, and no value
    // is set.
    let result =
        unsafe { libc::sysctlbyname(NAME.as_ptr(), value.as_mut_ptr().cast(), &raw mut len, std::ptr::null_mut(), 0) };
    value.truncate(if result == 0 { len } else { 0 });
    value
}

/// Returns the time of the boot, which OpenBSD has under a number. Returns an empty vector if the
/// system does not tell.
#[cfg(target_os = "openbsd")]
pub(super) fn read() -> Vec<u8> {
    let name = [libc::CTL_KERN, libc::KERN_BOOTTIME];
    let mut value = vec![0; haul_policy::range::checkpoint::MAX_BOOT];
    let mut len = value.len();
    // SAFETY: the name has two numbers, the system writes at most `len` bytes to `value`, and no
    // value is set.
    let result =
        unsafe { libc::sysctl(name.as_ptr(), 2, value.as_mut_ptr().cast(), &raw mut len, std::ptr::null_mut(), 0) };
    value.truncate(if result == 0 { len } else { 0 });
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_id_stays_the_same() {
        assert!(!read().is_empty());
        assert_eq!(read(), read());
    }
}
