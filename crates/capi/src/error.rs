//! Errors of failed calls: a status number, and an error object with the details.
//!
//! Every fallible function of this interface runs in `catch_panic`. This turns a panic into
//! [`haul_status::Internal`], and stores a [`CallFailure`] as the thread's last error. So functions
//! need no error argument, which most callers would set to NULL.
//!
//! ```
//! use haul_c::error::{haul_error_code, haul_last_error, haul_status};
//! use haul_c::request::haul_request_new;
//!
//! // SAFETY: both strings end with NUL.
//! let request = unsafe { haul_request_new(c"GET".as_ptr(), c"gopher://h/".as_ptr()) };
//! assert!(request.is_none());
//! // SAFETY: the error is used before the next call that fails.
//! assert_eq!(unsafe { haul_error_code(haul_last_error()) }, haul_status::UnsupportedScheme);
//! ```

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use haul::ErrorKind;

use crate::c_arguments;

/// The result of a call: 0 or one of curl's exit codes. Later versions may add codes: treat an
/// unknown code as a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum haul_status {
    /// Success.
    Ok = 0,
    /// The scheme of the URL or of a redirect is neither http nor https, or the peer does not speak
    /// HTTP.
    UnsupportedScheme = 1,
    /// An argument or a setting is not valid.
    Setup = 2,
    /// The URL cannot be parsed.
    Url = 3,
    /// The name of a proxy has no address.
    ProxyResolve = 5,
    /// The name of the host has no address.
    Resolve = 6,
    /// No address of the host accepted the connection, or a proxy refused the tunnel.
    Connect = 7,
    /// The head of the reply violates the syntax of HTTP.
    Protocol = 8,
    /// The peer violated HTTP/2.
    Http2 = 16,
    /// The body ended before its announced length.
    PartialBody = 18,
    /// The status was 400 or above, if the caller treats that as a failure.
    HttpStatus = 22,
    /// A callback that receives the reply's head or body reported a failure.
    Write = 23,
    /// The length of the request's body is unknown, but HTTP/1.0 requires it.
    Upload = 25,
    /// The request's body, or a file that it consists of, could not be read.
    Read = 26,
    /// A time limit was reached.
    Timeout = 28,
    /// The server does not support range requests correctly.
    Range = 33,
    /// The TLS handshake failed.
    TlsHandshake = 35,
    /// The content changed during the transfer.
    Changed = 36,
    /// The interface or local address cannot be used.
    Interface = 45,
    /// There were more redirects than allowed.
    TooManyRedirects = 47,
    /// The connection closed before the first line of a reply was complete.
    EmptyReply = 52,
    /// The request could not be sent.
    Send = 55,
    /// The reply could not be received.
    Receive = 56,
    /// The client's certificate or its key cannot be used.
    ClientCertificate = 58,
    /// The server's certificate cannot be verified.
    PeerCertificate = 60,
    /// The content coding (such as gzip) is broken or unknown.
    ContentCoding = 61,
    /// The body is larger than allowed.
    TooLarge = 63,
    /// The request's body has to be sent again, but cannot be.
    Rewind = 65,
    /// The file of CA certificates cannot be used.
    CaFile = 77,
    /// The server's public key is not among the pinned keys.
    PinnedKey = 90,
    /// The server reset an HTTP/2 stream before the reply was complete.
    Http2Stream = 92,
    /// The server requires authentication that haul cannot do.
    Auth = 94,
    /// The server violated HTTP/3 or QUIC, or reset an HTTP/3 stream before the reply was complete.
    Http3 = 95,
    /// The QUIC handshake failed, but not because of TLS.
    QuicConnect = 96,
    /// A SOCKS proxy refused the connection.
    Proxy = 97,
    /// The head of the request or reply has too many fields, or one of its lines is too long.
    HeadTooLarge = 100,
    /// A callback asked to stop.
    Interrupted = 130,
    /// A fault in haul itself.
    Internal = 255,
}

/// The reason for a failure: a haul_status, a text, and details.
#[derive(Debug, Clone)]
pub struct haul_error {
    status: haul_status,
    text: CString,
    url: Option<CString>,
    errno: c_int,
    is_connect: bool,
    is_tls: bool,
}

/// The error of a failed function. `catch_panic` stores it as the thread's last error.
#[derive(Debug)]
pub struct CallFailure(Box<haul_error>);

impl CallFailure {
    /// Creates a failure with this status and error text.
    #[must_use]
    pub fn new(status: haul_status, text: impl Into<String>) -> Self {
        let (text, url) = (c_text(text.into()), None);
        Self(Box::new(haul_error { status, text, url, errno: 0, is_connect: false, is_tls: false }))
    }

    /// Creates the failure for an argument or a setting that cannot be used.
    #[must_use]
    pub fn setup(text: impl Into<String>) -> Self {
        Self::new(haul_status::Setup, text)
    }

    /// Converts the failure to the error object that C receives.
    #[must_use]
    pub fn into_error(self) -> Box<haul_error> {
        self.0
    }

    /// Returns a copy of the failure.
    #[must_use]
    pub(crate) fn duplicate(&self) -> Self {
        Self(self.0.clone())
    }

    /// Returns the haul_status of the failure.
    #[must_use]
    pub fn status(&self) -> haul_status {
        self.0.status
    }
}

impl std::fmt::Display for CallFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.text.to_string_lossy())
    }
}

impl std::error::Error for CallFailure {}

impl From<haul::Error> for CallFailure {
    fn from(error: haul::Error) -> Self {
        Self(Box::new(haul_error {
            status: status_of(error.kind()),
            text: c_text(error.to_string()),
            url: error.url().map(|url| c_text(url.to_owned())),
            errno: error.io_source().and_then(std::io::Error::raw_os_error).unwrap_or(0),
            is_connect: error.is_connect(),
            is_tls: error.is_tls(),
        }))
    }
}

impl From<Box<haul_error>> for CallFailure {
    fn from(error: Box<haul_error>) -> Self {
        Self(error)
    }
}

/// Converts an error kind of the engine to a status. A kind without a status of its own becomes
/// [`haul_status::Internal`].
fn status_of(kind: ErrorKind) -> haul_status {
    match kind {
        ErrorKind::UnsupportedScheme => haul_status::UnsupportedScheme,
        ErrorKind::Url => haul_status::Url,
        ErrorKind::ProxyResolve => haul_status::ProxyResolve,
        ErrorKind::Resolve => haul_status::Resolve,
        ErrorKind::Connect => haul_status::Connect,
        ErrorKind::Protocol => haul_status::Protocol,
        ErrorKind::Http2 => haul_status::Http2,
        ErrorKind::Http2Stream => haul_status::Http2Stream,
        ErrorKind::Http3 => haul_status::Http3,
        ErrorKind::QuicConnect => haul_status::QuicConnect,
        ErrorKind::PartialBody => haul_status::PartialBody,
        ErrorKind::Status => haul_status::HttpStatus,
        ErrorKind::Write => haul_status::Write,
        ErrorKind::Upload => haul_status::Upload,
        ErrorKind::Read => haul_status::Read,
        ErrorKind::Timeout => haul_status::Timeout,
        ErrorKind::Range => haul_status::Range,
        ErrorKind::TlsHandshake => haul_status::TlsHandshake,
        ErrorKind::Changed => haul_status::Changed,
        ErrorKind::Interface => haul_status::Interface,
        ErrorKind::TooManyRedirects => haul_status::TooManyRedirects,
        ErrorKind::EmptyReply => haul_status::EmptyReply,
        ErrorKind::Send => haul_status::Send,
        ErrorKind::Receive | ErrorKind::Checksum => haul_status::Receive,
        ErrorKind::PeerCertificate => haul_status::PeerCertificate,
        ErrorKind::ContentCoding => haul_status::ContentCoding,
        ErrorKind::TooLarge => haul_status::TooLarge,
        ErrorKind::ClientCertificate => haul_status::ClientCertificate,
        ErrorKind::Rewind => haul_status::Rewind,
        ErrorKind::Auth => haul_status::Auth,
        ErrorKind::CaFile => haul_status::CaFile,
        ErrorKind::Proxy => haul_status::Proxy,
        ErrorKind::HeadTooLarge => haul_status::HeadTooLarge,
        ErrorKind::PinnedKey => haul_status::PinnedKey,
        ErrorKind::Setup => haul_status::Setup,
        ErrorKind::Interrupted => haul_status::Interrupted,
        _ => haul_status::Internal,
    }
}

/// Converts a text to a C string. A NUL in the text, which a peer may have sent, becomes `?`.
pub(crate) fn c_text(text: String) -> CString {
    CString::new(text).unwrap_or_else(|error| {
        let bytes = error.into_vec().into_iter().map(|byte| if byte == 0 { b'?' } else { byte });
        CString::new(bytes.collect::<Vec<_>>()).unwrap_or_default()
    })
}

thread_local! {
    static LAST_ERROR: RefCell<Option<Box<haul_error>>> = const { RefCell::new(None) };
}

/// Stores a failure as the thread's last error. Does nothing if the thread is already ending.
/// Returns the status of the failure.
fn set_last_error(fault: CallFailure) -> haul_status {
    let status = fault.0.status;
    let _ = LAST_ERROR.try_with(|last| last.replace(Some(fault.0)));
    status
}

fn panic_failure(payload: &(dyn Any + Send)) -> CallFailure {
    let what = payload.downcast_ref::<&str>().copied().map(str::to_owned);
    let what = what.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    CallFailure::new(haul_status::Internal, format!("a fault in haul itself: {what}"))
}

/// Runs the body of a function that C calls, and returns its status. Catches a panic, so that it
/// does not unwind into C. A failure or a panic becomes the thread's last error.
///
/// haul stays usable after a panic: locks that the panic has poisoned are used as before, because
/// code that may panic never leaves the data under a lock half changed.
pub(crate) fn catch_panic(body: impl FnOnce() -> Result<(), CallFailure>) -> haul_status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => haul_status::Ok,
        Ok(Err(fault)) => set_last_error(fault),
        Err(payload) => set_last_error(panic_failure(&*payload)),
    }
}

/// Runs the body of a function that creates an object. Returns `None` if the body fails or panics;
/// the failure or the panic becomes the thread's last error.
pub(crate) fn catch_panic_new<T>(body: impl FnOnce() -> Result<T, CallFailure>) -> Option<T> {
    let mut made = None;
    catch_panic(|| body().map(|value| made = Some(value)));
    made
}

/// Runs the body of a function that cannot fail. Returns `or` after a panic, which becomes the
/// thread's last error.
pub(crate) fn catch_panic_or<T>(or: T, body: impl FnOnce() -> T) -> T {
    catch_panic_new(|| Ok(body())).unwrap_or(or)
}

/// Returns the error of the last failed call in this thread; NULL if none has failed. It is valid
/// until another call in this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn haul_last_error() -> *const haul_error {
    let found = LAST_ERROR.try_with(|last| last.borrow().as_deref().map(std::ptr::from_ref));
    found.ok().flatten().unwrap_or(std::ptr::null())
}

/// Returns a copy of an error, which the caller keeps and frees; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn haul_error_clone(error: Option<&haul_error>) -> Option<Box<haul_error>> {
    catch_panic_or(None, || error.cloned().map(Box::new))
}

/// Creates an error with HAUL_STATUS_SETUP and this text, for a binding that refuses an argument
/// itself. The caller frees it with haul_error_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_error_new_setup(text: *const c_char) -> Option<Box<haul_error>> {
    catch_panic_new(|| {
        // SAFETY: the header's contract: strings end with NUL.
        let text = unsafe { c_arguments::required_text(text, "text") }?;
        Ok(CallFailure::setup(text).into_error())
    })
}

/// Frees an error, made by haul_error_clone or haul_error_new_setup.
#[unsafe(no_mangle)]
pub extern "C" fn haul_error_free(error: Option<Box<haul_error>>) {
    catch_panic_or((), || drop(error));
}

/// Returns the status of an error; HAUL_STATUS_OK for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_error_code(error: *const haul_error) -> haul_status {
    // SAFETY: the header's contract: NULL or an error that has not been freed.
    unsafe { error.as_ref() }.map_or(haul_status::Ok, |error| error.status)
}

/// Returns the text of an error in the form "URL: what happened: why", terminated by NUL; "" for
/// NULL. The text never contains credentials.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_error_text(error: *const haul_error) -> *const c_char {
    // SAFETY: as in haul_error_code.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.text.as_ptr())
}

/// Returns the URL of the request that failed; NULL if the error is not about a request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_error_url(error: *const haul_error) -> *const c_char {
    // SAFETY: as in haul_error_code.
    let url = unsafe { error.as_ref() }.and_then(|error| error.url.as_ref());
    url.map_or(std::ptr::null(), |url| url.as_ptr())
}

/// Returns the errno of the failed system call; 0 if no system call failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_error_errno(error: *const haul_error) -> c_int {
    // SAFETY: as in haul_error_code.
    unsafe { error.as_ref() }.map_or(0, |error| error.errno)
}

/// Returns true if a time limit was reached.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_error_is_timeout(error: *const haul_error) -> bool {
    // SAFETY: as in haul_error_code.
    unsafe { haul_error_code(error) == haul_status::Timeout }
}

/// Returns true if no connection could be made, or none in time: the cause is a name, an address, a
/// proxy or TLS. No part of the request was sent, so the request may be repeated regardless of its
/// method.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_error_is_connect(error: *const haul_error) -> bool {
    // SAFETY: as in haul_error_code.
    unsafe { error.as_ref() }.is_some_and(|error| error.is_connect)
}

/// Returns true if the request failed because no address was found for the host or for a proxy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_error_is_resolve(error: *const haul_error) -> bool {
    // SAFETY: as in haul_error_code.
    matches!(unsafe { haul_error_code(error) }, haul_status::Resolve | haul_status::ProxyResolve)
}

/// Returns true if TLS failed: the handshake, a certificate of either side, or the file of CA
/// certificates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_error_is_tls(error: *const haul_error) -> bool {
    // SAFETY: as in haul_error_code.
    unsafe { error.as_ref() }.is_some_and(|error| error.is_tls)
}

/// Returns true if the program used haul wrongly: an invalid argument, setting or URL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_error_is_usage(error: *const haul_error) -> bool {
    use haul_status::{Setup, UnsupportedScheme, Url};
    // SAFETY: as in haul_error_code.
    matches!(unsafe { haul_error_code(error) }, Setup | UnsupportedScheme | Url)
}

/// Returns true if a callback asked to stop.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_error_is_interrupted(error: *const haul_error) -> bool {
    // SAFETY: as in haul_error_code.
    unsafe { haul_error_code(error) == haul_status::Interrupted }
}

/// Returns the meaning of a haul_status in a few words; "unknown" if the number is not a
/// haul_status. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn haul_status_text(status: c_int) -> *const c_char {
    status_text(status).as_ptr()
}

fn status_text(status: c_int) -> &'static CStr {
    match status {
        0 => c"done",
        1 => c"scheme neither http nor https",
        2 => c"argument or setting cannot be used",
        3 => c"URL cannot be parsed",
        5 => c"no address for the proxy",
        6 => c"no address for the host",
        7 => c"no connection",
        8 => c"reply is not HTTP",
        16 => c"rules of HTTP/2 broken",
        18 => c"body ended too early",
        22 => c"status of 400 or above",
        23 => c"body refused by its taker, or file not written",
        25 => c"request body of unknown length",
        26 => c"request body or file could not be read",
        28 => c"time limit ran out",
        33 => c"ranges not done rightly",
        35 => c"TLS handshake failed",
        36 => c"content changed",
        45 => c"interface cannot be used",
        47 => c"too many redirects",
        52 => c"empty reply",
        55 => c"request could not be sent",
        56 => c"reply could not be received",
        58 => c"client certificate cannot be used",
        60 => c"certificate not acceptable",
        61 => c"content coding broken",
        63 => c"body too large",
        65 => c"request body cannot be sent again",
        77 => c"CA certificates cannot be used",
        90 => c"public key is not a pinned one",
        92 => c"HTTP/2 stream broken off",
        94 => c"authentication cannot be done",
        95 => c"rules of HTTP/3 broken",
        96 => c"no QUIC connection",
        97 => c"proxy refused",
        100 => c"head too large",
        130 => c"interrupted",
        255 => c"fault in haul itself",
        _ => c"unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_a_status_and_an_error() {
        let status = catch_panic(|| panic!("on {}", "purpose"));
        assert_eq!(status, haul_status::Internal);
        // SAFETY: no call fails in between.
        let text = unsafe { CStr::from_ptr(haul_error_text(haul_last_error())) };
        assert_eq!(text.to_str(), Ok("a fault in haul itself: on purpose"));
        assert!(catch_panic_new::<()>(|| panic!("again")).is_none());
    }

    #[test]
    fn status_numbers_equal_engine_exit_codes() {
        let kinds = [
            ErrorKind::UnsupportedScheme,
            ErrorKind::Setup,
            ErrorKind::Url,
            ErrorKind::ProxyResolve,
            ErrorKind::Resolve,
            ErrorKind::Connect,
            ErrorKind::Protocol,
            ErrorKind::Http2,
            ErrorKind::PartialBody,
            ErrorKind::Status,
            ErrorKind::Write,
            ErrorKind::Upload,
            ErrorKind::Read,
            ErrorKind::Timeout,
            ErrorKind::Range,
            ErrorKind::TlsHandshake,
            ErrorKind::Changed,
            ErrorKind::Interface,
            ErrorKind::TooManyRedirects,
            ErrorKind::EmptyReply,
            ErrorKind::Send,
            ErrorKind::Receive,
            ErrorKind::Checksum,
            ErrorKind::ClientCertificate,
            ErrorKind::PeerCertificate,
            ErrorKind::ContentCoding,
            ErrorKind::TooLarge,
            ErrorKind::Rewind,
            ErrorKind::CaFile,
            ErrorKind::PinnedKey,
            ErrorKind::Http2Stream,
            ErrorKind::Auth,
            ErrorKind::Http3,
            ErrorKind::QuicConnect,
            ErrorKind::Proxy,
            ErrorKind::HeadTooLarge,
            ErrorKind::Interrupted,
            ErrorKind::Panicked,
        ];
        for kind in kinds {
            assert_eq!(status_of(kind) as c_int, c_int::from(kind.exit_code()), "{kind:?}");
            assert_ne!(status_text(kind.exit_code().into()), c"unknown", "{kind:?}");
        }
        assert_eq!(status_text(-1), c"unknown");
    }

    #[test]
    fn every_thread_has_its_own_last_error() {
        catch_panic(|| Err(CallFailure::setup("here")));
        std::thread::spawn(|| assert!(haul_last_error().is_null())).join().unwrap();
        assert!(!haul_last_error().is_null());
    }

    #[test]
    fn nul_from_peer_is_replaced_in_text() {
        assert_eq!(c_text("a\0b".into()).as_c_str(), c"a?b");
    }
}
