//! MIT's Kerberos library, loaded at run time: those functions of the C bindings (RFC 2744) that
//! Negotiate needs.
//!
//! Only this module calls the library. All pointers that it passes to the library are valid for the
//! call. Memory that the library has allocated is released by the matching function of the library.
//! All other code uses [`SecurityContext`].

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::{Delegation, NegotiateError, SecurityContext, SecurityLibrary};

/// The file name of MIT Kerberos's GSS-API library. The number is the version of its binary
/// interface.
const LIBRARY_NAME: &str = "libgssapi_krb5.so.2";

/// The object identifier of SPNEGO, 1.3.6.1.5.5.2 (RFC 4178).
static SPNEGO: &[u8] = b"\x2b\x06\x01\x05\x05\x02";
/// The object identifier of Kerberos, 1.2.840.113554.1.2.2 (RFC 1964).
static KERBEROS: &[u8] = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02";
/// The object identifier of host-based service names such as `HTTP@host`, 1.2.840.113554.1.2.1.4
/// (RFC 2744 section 4.1).
static HOST_BASED_SERVICE: &[u8] = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04";

const GSS_C_DELEG_FLAG: u32 = 1;
const GSS_C_MUTUAL_FLAG: u32 = 2;
const GSS_C_REPLAY_FLAG: u32 = 4;
const GSS_C_DELEG_POLICY_FLAG: u32 = 32768;
const GSS_S_COMPLETE: u32 = 0;
/// The major status for a failure that the minor status describes.
const GSS_S_FAILURE: u32 = 13 << 16;
/// The bits in a major status that indicate an error (`GSS_ERROR`).
const ERROR_BITS: u32 = 0xffff_0000;
const GSS_C_GSS_CODE: c_int = 1;
const GSS_C_MECH_CODE: c_int = 2;
/// The maximum number of messages that are read for one GSS-API status code.
const MAX_MESSAGES: usize = 8;

/// The C type `gss_buffer_desc`: the length and the address of a byte string.
#[repr(C)]
struct GssBuffer {
    length: usize,
    value: *mut c_void,
}

impl GssBuffer {
    const EMPTY: Self = Self { length: 0, value: ptr::null_mut() };

    /// Returns a buffer that points to `bytes`. The library only reads from it.
    fn borrowing(bytes: &[u8]) -> Self {
        Self { length: bytes.len(), value: bytes.as_ptr().cast_mut().cast() }
    }
}

/// The C type `gss_OID_desc`: an object identifier.
#[repr(C)]
struct GssOid {
    length: u32,
    elements: *mut c_void,
}

impl GssOid {
    fn from_der(bytes: &'static [u8]) -> Self {
        Self { length: bytes.len() as u32, elements: bytes.as_ptr().cast_mut().cast() }
    }
}

/// The C types `gss_name_t`, `gss_ctx_id_t` and `gss_cred_id_t`: pointers to structures of the
/// library.
type GssHandle = *mut c_void;

type GssImportNameFn = unsafe extern "C" fn(*mut u32, *const GssBuffer, *const GssOid, *mut GssHandle) -> u32;
type GssReleaseNameFn = unsafe extern "C" fn(*mut u32, *mut GssHandle) -> u32;
type GssReleaseBufferFn = unsafe extern "C" fn(*mut u32, *mut GssBuffer) -> u32;
type GssDeleteSecContextFn = unsafe extern "C" fn(*mut u32, *mut GssHandle, *mut GssBuffer) -> u32;
type GssDisplayStatusFn = unsafe extern "C" fn(*mut u32, u32, c_int, *const GssOid, *mut u32, *mut GssBuffer) -> u32;
type GssWrapFn =
    unsafe extern "C" fn(*mut u32, GssHandle, c_int, u32, *const GssBuffer, *mut c_int, *mut GssBuffer) -> u32;
type GssUnwrapFn =
    unsafe extern "C" fn(*mut u32, GssHandle, *const GssBuffer, *mut GssBuffer, *mut c_int, *mut u32) -> u32;
type GssInitSecContextFn = unsafe extern "C" fn(
    minor: *mut u32,
    credential: GssHandle,
    context: *mut GssHandle,
    name: GssHandle,
    mechanism: *const GssOid,
    flags: u32,
    time: u32,
    bindings: *const c_void,
    input: *const GssBuffer,
    actual_mechanism: *mut *const GssOid,
    output: *mut GssBuffer,
    actual_flags: *mut u32,
    actual_time: *mut u32,
) -> u32;

/// The functions of the GSS-API library. They stay valid, because the library is never unloaded.
pub(super) struct GssLibrary {
    import_name: GssImportNameFn,
    release_name: GssReleaseNameFn,
    release_buffer: GssReleaseBufferFn,
    delete_context: GssDeleteSecContextFn,
    display_status: GssDisplayStatusFn,
    init_context: GssInitSecContextFn,
    wrap: GssWrapFn,
    unwrap: GssUnwrapFn,
}

/// Returns the GSS-API library. The first call loads it.
///
/// # Errors
/// [`NegotiateError::Library`] if the library is not installed, or lacks a function.
pub(super) fn library() -> Result<&'static GssLibrary, NegotiateError> {
    static LIBRARY: OnceLock<Result<GssLibrary, NegotiateError>> = OnceLock::new();
    LIBRARY.get_or_init(|| GssLibrary::open().map_err(missing_library_error)).as_ref().map_err(Clone::clone)
}

fn missing_library_error(error: libloading::Error) -> NegotiateError {
    NegotiateError::Library(format!(
        "the Kerberos library {LIBRARY_NAME} cannot be opened; on Debian, install libgssapi-krb5-2 ({error})"
    ))
}

impl GssLibrary {
    fn open() -> Result<Self, libloading::Error> {
        // SAFETY: the initialisers of MIT's library only prepare its own locks and tables. The
        // system's loader finds the library by its name, as for a program that links it.
        let library = unsafe { Library::open(Some(LIBRARY_NAME), RTLD_NOW | RTLD_LOCAL) }?;
        // SAFETY: each type is that of the function in RFC 2744, as <gssapi/gssapi.h> of this
        // version of the library declares it: OM_uint32 is u32, and pointers are not packed (they
        // are on macOS alone). The functions are copied out, and the library is never closed.
        let functions = unsafe {
            Self {
                import_name: *library.get::<GssImportNameFn>(b"gss_import_name\0")?,
                release_name: *library.get::<GssReleaseNameFn>(b"gss_release_name\0")?,
                release_buffer: *library.get::<GssReleaseBufferFn>(b"gss_release_buffer\0")?,
                delete_context: *library.get::<GssDeleteSecContextFn>(b"gss_delete_sec_context\0")?,
                display_status: *library.get::<GssDisplayStatusFn>(b"gss_display_status\0")?,
                init_context: *library.get::<GssInitSecContextFn>(b"gss_init_sec_context\0")?,
                wrap: *library.get::<GssWrapFn>(b"gss_wrap\0")?,
                unwrap: *library.get::<GssUnwrapFn>(b"gss_unwrap\0")?,
            }
        };
        std::mem::forget(library);
        Ok(functions)
    }

    /// Returns a copy of the bytes that the library wrote to `buffer`, and releases the library's
    /// memory.
    fn take_buffer(&self, mut buffer: GssBuffer) -> Vec<u8> {
        if buffer.value.is_null() {
            return Vec::new();
        }
        // SAFETY: the library has set `value` to `length` bytes, which stay valid until they are
        // released below, and it does not write to them meanwhile.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.value.cast::<u8>(), buffer.length) }.to_vec();
        let mut minor = 0;
        // SAFETY: both pointers are valid for the call, and the library allocated the buffer.
        unsafe { (self.release_buffer)(&raw mut minor, &raw mut buffer) };
        bytes
    }

    /// Returns the library's messages for a status code, formatted as in curl.
    fn messages(&self, status: u32, kind: c_int) -> String {
        let mut text = String::new();
        let mut more = 0;
        for _ in 0..MAX_MESSAGES {
            let (mut minor, mut message) = (0, GssBuffer::EMPTY);
            // SAFETY: all pointers are valid for the call. A null mechanism is the default one.
            let outcome = unsafe {
                (self.display_status)(&raw mut minor, status, kind, ptr::null(), &raw mut more, &raw mut message)
            };
            let message = self.take_buffer(message);
            if outcome & ERROR_BITS != 0 {
                break;
            }
            // Some messages have the NUL of C's strings at their end.
            let message = message.split(|&byte| byte == 0).next().unwrap_or_default();
            if !message.is_empty() {
                text.push_str(&String::from_utf8_lossy(message));
                text.push_str(". ");
            }
            if more == 0 {
                break;
            }
        }
        text
    }

    fn error(&self, what: &str, major: u32, minor: u32) -> NegotiateError {
        let major = if major == GSS_S_FAILURE { String::new() } else { self.messages(major, GSS_C_GSS_CODE) };
        let text = major + &self.messages(minor, GSS_C_MECH_CODE);
        NegotiateError::Refused(format!("{what} failed: {}", text.trim_end()))
    }
}

impl GssLibrary {
    fn context_by(
        &self,
        mechanism: &'static [u8],
        service: &str,
        host: &str,
        delegation: Delegation,
    ) -> Result<Box<dyn SecurityContext>, NegotiateError> {
        let text = format!("{service}@{host}");
        let (buffer, kind) = (GssBuffer::borrowing(text.as_bytes()), GssOid::from_der(HOST_BASED_SERVICE));
        let (mut minor, mut name) = (0, ptr::null_mut());
        // SAFETY: all pointers are valid for the call, `text` outlives it, and the library copies
        // the name.
        let major = unsafe { (self.import_name)(&raw mut minor, &raw const buffer, &raw const kind, &raw mut name) };
        if major & ERROR_BITS != 0 {
            return Err(self.error("gss_import_name()", major, minor));
        }
        let flags = match delegation {
            Delegation::None => 0,
            Delegation::Policy => GSS_C_DELEG_POLICY_FLAG,
            Delegation::Always => GSS_C_DELEG_FLAG,
        };
        let flags = flags | GSS_C_MUTUAL_FLAG | GSS_C_REPLAY_FLAG;
        let library = library()?;
        let context = ptr::null_mut();
        Ok(Box::new(GssContext { library, mechanism, name, context, flags, is_established: false }))
    }
}

impl SecurityLibrary for GssLibrary {
    fn context(
        &self,
        service: &str,
        host: &str,
        delegation: Delegation,
    ) -> Result<Box<dyn SecurityContext>, NegotiateError> {
        self.context_by(SPNEGO, service, host, delegation)
    }

    fn socks_context(
        &self,
        service: &str,
        host: &str,
        delegation: Delegation,
    ) -> Result<Box<dyn SecurityContext>, NegotiateError> {
        self.context_by(KERBEROS, service, host, delegation)
    }
}

/// A GSS-API security context: the state of one authentication with a peer.
struct GssContext {
    library: &'static GssLibrary,
    mechanism: &'static [u8],
    name: GssHandle,
    context: GssHandle,
    flags: u32,
    is_established: bool,
}

// SAFETY: the library allows calls from any thread, as long as no two threads use one context or
// name at the same time (MIT's documentation of thread safety). Both belong to this value alone,
// and each call needs it mutably.
unsafe impl Send for GssContext {}

impl SecurityContext for GssContext {
    fn step(&mut self, token: Option<&[u8]>) -> Result<Vec<u8>, NegotiateError> {
        let input = token.map_or(GssBuffer::EMPTY, GssBuffer::borrowing);
        let mechanism = GssOid::from_der(self.mechanism);
        let (mut minor, mut output) = (0, GssBuffer::EMPTY);
        // SAFETY: all pointers are null or valid for the call. `context` is null or was set by the
        // last call, and the library replaces it. The library only reads the token and the
        // mechanism. The credential, the bindings and the unwanted results may be null (RFC 2744
        // section 5.19).
        let major = unsafe {
            (self.library.init_context)(
                &raw mut minor,
                ptr::null_mut(),
                &raw mut self.context,
                self.name,
                &raw const mechanism,
                self.flags,
                0,
                ptr::null(),
                &raw const input,
                ptr::null_mut(),
                &raw mut output,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        let answer = self.library.take_buffer(output);
        if major & ERROR_BITS != 0 {
            return Err(self.library.error("gss_init_sec_context()", major, minor));
        }
        self.is_established = major == GSS_S_COMPLETE;
        if token.is_none() && answer.is_empty() {
            return Err(NegotiateError::Refused("the Kerberos library made no token".to_owned()));
        }
        Ok(answer)
    }

    fn is_established(&self) -> bool {
        self.is_established
    }

    fn wrap(&mut self, message: &[u8]) -> Result<Vec<u8>, NegotiateError> {
        let (input, mut minor, mut output) = (GssBuffer::borrowing(message), 0, GssBuffer::EMPTY);
        // SAFETY: all pointers are null or valid for the call, the library only reads the message,
        // and refuses a null context. It protects against changes only (no confidentiality), by the
        // default algorithm. The result about confidentiality may be null (RFC 2744 section 5.34).
        let major = unsafe {
            (self.library.wrap)(&raw mut minor, self.context, 0, 0, &raw const input, ptr::null_mut(), &raw mut output)
        };
        let wrapped = self.library.take_buffer(output);
        if major & ERROR_BITS != 0 { Err(self.library.error("gss_wrap()", major, minor)) } else { Ok(wrapped) }
    }

    fn unwrap(&mut self, wrapped: &[u8]) -> Result<Vec<u8>, NegotiateError> {
        let (input, mut minor, mut output) = (GssBuffer::borrowing(wrapped), 0, GssBuffer::EMPTY);
        // SAFETY: all pointers are null or valid for the call, the library only reads the message,
        // and refuses a null context. Both last results may be null (RFC 2744 section 5.33).
        let major = unsafe {
            (self.library.unwrap)(
                &raw mut minor,
                self.context,
                &raw const input,
                &raw mut output,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        let message = self.library.take_buffer(output);
        if major & ERROR_BITS != 0 { Err(self.library.error("gss_unwrap()", major, minor)) } else { Ok(message) }
    }
}

impl Drop for GssContext {
    fn drop(&mut self) {
        let mut minor = 0;
        // SAFETY: the library made both handles, or they are null, which it accepts. Nothing uses
        // them afterwards. A null output buffer asks for no token.
        unsafe {
            (self.library.delete_context)(&raw mut minor, &raw mut self.context, ptr::null_mut());
            (self.library.release_name)(&raw mut minor, &raw mut self.name);
        }
    }
}
