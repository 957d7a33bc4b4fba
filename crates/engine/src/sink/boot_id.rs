//! The identifier of the current boot of this computer. After a crash and restart, bytes that were
//! written during an earlier boot may be lost. Bytes that were written during the current boot are
//! not lost.

/// Returns the identifier of the current boot, which changes when the system restarts. Returns an
/// empty vector if it is unknown.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn read() -> Vec<u8> {
    let text = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim_ascii().iter().copied().take(haul_policy::range::checkpoint::MAX_BOOT).collect()
}

/// Returns an identifier of the current boot: the UUID of the boot session on Apple's systems, and
/// the boot time on other systems. Returns an empty vector if it is unknown. (The boot time changes
/// if the user sets the clock. haul then fetches the content of partial files again, although it is
/// still valid.)
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android", target_os = "openbsd"))))]
pub(super) fn read() -> Vec<u8> {
    const NAME: &std::ffi::CStr =
        if cfg!(target_vendor = "apple") { c"kern.bootsessionuuid" } else { c"kern.boottime" };
    let mut value = vec![0; haul_policy::range::checkpoint::MAX_BOOT];
    let mut len = value.len();
    // SAFETY: the name ends with NUL, the system writes at most `len` bytes to `value`, and no
    // value is set.
    let result =
        unsafe { libc::sysctlbyname(NAME.as_ptr(), value.as_mut_ptr().cast(), &raw mut len, std::ptr::null_mut(), 0) };
    value.truncate(if result == 0 { len } else { 0 });
    value
}

/// Returns an empty vector, because Windows has no identifier of the current boot.
#[cfg(windows)]
pub(super) fn read() -> Vec<u8> {
    Vec::new()
}

/// Returns the boot time as the identifier of the current boot. This is the variant for OpenBSD,
/// where `sysctl` identifies values by numbers. Returns an empty vector if the boot time is
/// unknown.
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
    fn boot_id_is_the_same_in_each_call() {
        assert!(!read().is_empty());
        assert_eq!(read(), read());
    }
}
