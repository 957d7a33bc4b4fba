//! Settings of TLS that are passed in memory: versions, certificates, pinned keys.
//!
//! ```
//! use haul_c::client::haul_client_new;
//! use haul_c::error::haul_status;
//! use haul_c::tls_settings::haul_client_set_tls_versions;
//! let mut client = haul_client_new().unwrap();
//! // SAFETY: the client lives.
//! unsafe {
//!     assert_eq!(haul_client_set_tls_versions(&mut *client, 13, 13), haul_status::Ok);
//!     assert_eq!(haul_client_set_tls_versions(&mut *client, 10, 0), haul_status::Setup);
//! }
//! ```

use std::ffi::{c_char, c_int, c_void};

use haul::net::tls::{Passphrase, Pem, TlsOptions, TlsVersion};

use crate::c_arguments;
use crate::client::haul_client;
use crate::client_settings::change_options;
use crate::error::{CallFailure, haul_status};

/// Sets the lowest and the highest allowed version of TLS: 12 for TLS 1.2, 13 for TLS 1.3. 0 means
/// the default: TLS 1.2 as the lowest, 1.3 as the highest. A lowest version above the highest is
/// refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_tls_versions(client: *mut haul_client, min: c_int, max: c_int) -> haul_status {
    let version = |number, default| match number {
        0 => Ok(default),
        12 => Ok(TlsVersion::V1_2),
        13 => Ok(TlsVersion::V1_3),
        _ => Err(CallFailure::setup("a version of TLS is 12 or 13")),
    };
    // SAFETY: the header's contract: what is not NULL lives. So in all functions here.
    unsafe {
        change_options(client, |options| {
            let defaults = TlsOptions::default();
            let (lowest, highest) = (version(min, defaults.min_version)?, version(max, defaults.max_version)?);
            if lowest > highest {
                return Err(CallFailure::setup("the lowest version of TLS is above the highest"));
            }
            (options.tls.min_version, options.tls.max_version) = (lowest, highest);
            Ok(())
        })
    }
}

/// Sets the trusted CA certificates, which replace the system's, as PEM text of `len` bytes. The
/// text is copied. NULL removes this setting.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_ca_pem(
    client: *mut haul_client,
    pem: *const c_char,
    len: usize,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.tls.ca_pem = copy_bytes(pem.cast(), len).map(Pem::new);
            options.tls.common_name = true;
            Ok(())
        })
    }
}

/// Sets the client certificate, its intermediates and its key as PEM text of `len` bytes. The text
/// is copied. `passphrase` is the passphrase of the key; NULL if it has none. If `pem` is NULL, no
/// certificate is sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_client_certificate_pem(
    client: *mut haul_client,
    pem: *const c_char,
    len: usize,
    passphrase: *const c_char,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            let passphrase = c_arguments::optional_bytes(passphrase);
            options.tls.identity_pem = copy_bytes(pem.cast(), len).map(Pem::new);
            options.tls.passphrase = passphrase.map(Passphrase::new);
            Ok(())
        })
    }
}

/// Sets the public keys that a server may have: `count` SHA-256 hashes of their
/// SubjectPublicKeyInfo, 32 bytes each. If `count` is 0, any key is accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_pins(
    client: *mut haul_client,
    hashes: *const u8,
    count: usize,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            let len = count.checked_mul(32).ok_or_else(|| CallFailure::setup("too many hashes"))?;
            if count > 0 && hashes.is_null() {
                return Err(CallFailure::setup("hashes is NULL"));
            }
            let all = copy_bytes(hashes.cast(), len).unwrap_or_default();
            options.tls.pins = all.chunks_exact(32).filter_map(|hash| hash.try_into().ok()).collect();
            Ok(())
        })
    }
}

/// Copies `len` bytes from `data`. Returns `None` if `data` is NULL.
///
/// # Safety
/// `data` is NULL or points to `len` bytes.
unsafe fn copy_bytes(data: *const c_void, len: usize) -> Option<Vec<u8>> {
    // SAFETY: the caller guarantees it.
    (!data.is_null()).then(|| unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) }.to_vec())
}
