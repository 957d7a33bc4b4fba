//! Cookie jars. Clients can share a jar. Programs can read and set its cookies, and save it in a
//! file.
//!
//! ```
//! use haul_c::jar::{haul_jar_count, haul_jar_free, haul_jar_new, haul_jar_set};
//! let mut jar = haul_jar_new().unwrap();
//! // SAFETY: the jar lives, and the strings end with NUL.
//! unsafe {
//!     haul_jar_set(&mut *jar, c"http://h.example/".as_ptr(), c"sid=31; Path=/".as_ptr());
//!     assert_eq!(haul_jar_count(&mut *jar), 1);
//! }
//! haul_jar_free(Some(jar));
//! ```

use std::ffi::{OsStr, c_char, c_int, c_void};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use haul::state::cookie_jar::SharedCookieJar;
use haul_policy::cookie::{Cookie, CookieParts, lwp};

use crate::c_arguments::{self, haul_slice};
use crate::error::{CallFailure, catch_panic, catch_panic_new, catch_panic_or, haul_status};
use crate::request::parse_url;
use crate::version::allocate_copy;

/// A store of cookies, for any number of clients and threads. A haul_jar is a handle of the store.
#[derive(Debug, Clone, Default)]
pub struct haul_jar {
    pub(crate) jar: SharedCookieJar,
}

/// A cookie with its attributes.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct haul_cookie {
    /// The name of the cookie.
    pub name: haul_slice,
    /// The value of the cookie, as it is sent.
    pub value: haul_slice,
    /// The host to which the cookie is sent or, if `host_only` is false, the domain to whose hosts
    /// the cookie is sent; without a leading dot.
    pub domain: haul_slice,
    /// The path of the cookie. The cookie is sent for this path and all paths below it.
    pub path: haul_slice,
    /// The time of expiry in seconds since 1970; 0 for a session cookie. A negative time is before
    /// 1970: the cookie has expired.
    pub expires: i64,
    /// True if the cookie is sent only to the host in `domain`, not to its subdomains.
    pub host_only: bool,
    /// True if the cookie is sent only over TLS.
    pub secure: bool,
    /// True if the cookie is not available to scripts in pages (HttpOnly).
    pub http_only: bool,
}

/// Called with each cookie of a jar. The pointers are valid during the call, which may use the jar.
/// A value other than 0 ends the iteration.
pub type haul_cookie_fn = Option<unsafe extern "C" fn(user: *mut c_void, cookie: *const haul_cookie) -> c_int>;

/// Creates an empty cookie jar.
#[unsafe(no_mangle)]
pub extern "C" fn haul_jar_new() -> Option<Box<haul_jar>> {
    catch_panic_new(|| Ok(Box::default()))
}

/// Creates another handle of the same jar: both handles have the same cookies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_jar_clone(jar: *const haul_jar) -> Option<Box<haul_jar>> {
    // SAFETY: the header's contract: NULL or a jar that lives. So in all functions here.
    catch_panic_new(|| Ok(Box::new(unsafe { c_arguments::required_object(jar, "jar") }?.clone())))
}

/// Frees a handle of a jar. The jar itself is freed when no handle and no client uses it.
#[unsafe(no_mangle)]
pub extern "C" fn haul_jar_free(jar: Option<Box<haul_jar>>) {
    catch_panic_or((), || drop(jar));
}

/// Adds the cookies of a file in Netscape's format (curl, wget, browsers) or the format of Perl's
/// HTTP::Cookies. A missing file counts as empty. `refused` (may be NULL) receives the number of
/// lines that are not valid cookies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_jar_load(jar: *mut haul_jar, path: *const c_char, refused: *mut usize) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let (jar, path) = unsafe { (c_arguments::required_object(jar, "jar")?, file(path)?) };
        let count =
            if let Some(read) = lwp_file(path) { store_lwp_cookies(&jar.jar, read) } else { jar.jar.load(path)? };
        // SAFETY: NULL or the caller's own number.
        if let Some(refused) = unsafe { refused.as_mut() } {
            *refused = count;
        }
        Ok(())
    })
}

/// Writes the changes since haul_jar_load or the last save into a Netscape file: the cookies that
/// were set and removed. Writes atomically and with mode 0600. Cookies that other programs have
/// written to the file meanwhile are kept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_jar_save(jar: *const haul_jar, path: *const c_char) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let (jar, path) = unsafe { (c_arguments::required_object(jar, "jar")?, file(path)?) };
        Ok(jar.jar.save(path)?)
    })
}

/// The file format of a jar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum haul_jar_format {
    /// Netscape's format, as used by curl, wget and browsers.
    Netscape = 0,
    /// The format of Perl's HTTP::Cookies (`Set-Cookie3` lines).
    Lwp = 1,
}

/// Stores all cookies of the jar as text in `text`. `format` is a haul_jar_format. Free `text` with
/// haul_free; `len` (may be NULL) receives its length in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_jar_to_text(
    jar: *const haul_jar,
    format: c_int,
    text: *mut *mut c_char,
    len: *mut usize,
) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let (jar, place, len) = unsafe { (c_arguments::required_object(jar, "jar")?, text.as_mut(), len.as_mut()) };
        let place = place.ok_or_else(|| CallFailure::setup("text is NULL"))?;
        let written = match format {
            n if n == haul_jar_format::Netscape as c_int => jar.jar.to_text(),
            n if n == haul_jar_format::Lwp as c_int => jar.jar.with(|jar| lwp::write(jar, now())),
            _ => return Err(CallFailure::setup("format is no haul_jar_format")),
        };
        *place = allocate_copy(&written);
        if let Some(len) = len {
            *len = written.len();
        }
        Ok(())
    })
}

/// Adds the cookies of a text to the jar. The text is in either haul_jar_format. `refused` (may be
/// NULL) receives the number of lines that are not valid cookies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_jar_add_text(
    jar: *mut haul_jar,
    text: *const c_char,
    len: usize,
    refused: *mut usize,
) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let (jar, text, refused) = unsafe {
            (
                c_arguments::required_object(jar, "jar")?,
                c_arguments::bytes_with_length(text, len, "text")?,
                refused.as_mut(),
            )
        };
        let count = match lwp::read(text, now()) {
            Some(read) => store_lwp_cookies(&jar.jar, read),
            None => jar.jar.import_text(text),
        };
        if let Some(refused) = refused {
            *refused = count;
        }
        Ok(())
    })
}

/// Stores the value of the Cookie field for a request to `url` in `cookie`; NULL if there are no
/// cookies to send. Free the value with haul_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_jar_cookie_header(
    jar: *const haul_jar,
    url: *const c_char,
    cookie: *mut *mut c_char,
) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let (jar, url, place) = unsafe {
            (c_arguments::required_object(jar, "jar")?, c_arguments::required_text(url, "url")?, cookie.as_mut())
        };
        let place = place.ok_or_else(|| CallFailure::setup("cookie is NULL"))?;
        *place = std::ptr::null_mut();
        if let Some(value) = jar.jar.cookie_for(&parse_url(url, false)?) {
            *place = allocate_copy(&value);
        }
        Ok(())
    })
}

/// Stores the cookie of a Set-Cookie header in a reply from `url`. Returns HAUL_STATUS_SETUP if RFC
/// 6265bis forbids it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_jar_set(
    jar: *mut haul_jar,
    url: *const c_char,
    set_cookie: *const c_char,
) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let (jar, url, field) = unsafe {
            (
                c_arguments::required_object(jar, "jar")?,
                c_arguments::required_text(url, "url")?,
                c_arguments::required_bytes(set_cookie, "set_cookie")?,
            )
        };
        let target = parse_url(url, false)?;
        let refused = jar.jar.change(|jar| jar.set(&target, field, now()).err());
        refused.map_or(Ok(()), |refusal| Err(CallFailure::setup(format!("the cookie is refused: {refusal}"))))
    })
}

/// Stores a cookie unchanged, replacing the cookie of the same name, domain and path. Returns
/// HAUL_STATUS_SETUP if the cookie is not valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_jar_put(jar: *mut haul_jar, cookie: *const haul_cookie) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let (jar, cookie) =
            unsafe { (c_arguments::required_object(jar, "jar")?, c_arguments::required_object(cookie, "cookie")?) };
        // SAFETY: as above, for each part.
        let (name, value, path) = unsafe { (cookie.name.bytes(), cookie.value.bytes(), cookie.path.bytes()) };
        // SAFETY: as above.
        let domain = unsafe { cookie.domain.text("domain") }?;
        let parts = CookieParts {
            name: name.to_vec(),
            value: value.to_vec(),
            domain: domain.to_owned(),
            host_only: cookie.host_only,
            path: path.to_vec(),
            secure: cookie.secure,
            http_only: cookie.http_only,
            expires: expiry(cookie.expires),
            ..CookieParts::default()
        };
        let cookie =
            Cookie::new(parts).map_err(|refusal| CallFailure::setup(format!("the cookie is refused: {refusal}")))?;
        jar.jar.change(|jar| jar.insert(cookie));
        Ok(())
    })
}

/// Converts the time of expiry of a [`haul_cookie`]. 0 becomes `None`: a session cookie. A time
/// before 1970 becomes the first second of 1970.
fn expiry(seconds: i64) -> Option<u64> {
    (seconds != 0).then(|| u64::try_from(seconds).unwrap_or(1))
}

/// Removes the cookies with this domain, path and name. NULL matches any value. Succeeds even if no
/// cookie matches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_jar_remove(
    jar: *mut haul_jar,
    domain: *const c_char,
    path: *const c_char,
    name: *const c_char,
) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let (jar, domain) =
            unsafe { (c_arguments::required_object(jar, "jar")?, c_arguments::optional_text(domain, "domain")?) };
        // SAFETY: as above.
        let (path, name) = unsafe { (c_arguments::optional_bytes(path), c_arguments::optional_bytes(name)) };
        let domain = domain.map(|domain| domain.strip_prefix('.').unwrap_or(domain));
        let fits = |cookie: &CookieParts| {
            domain.is_none_or(|domain| cookie.domain.eq_ignore_ascii_case(domain))
                && path.is_none_or(|path| cookie.path == path)
                && name.is_none_or(|name| cookie.name == name)
        };
        jar.jar.change(|jar| jar.retain(|cookie| !fits(cookie.parts())));
        Ok(())
    })
}

/// Removes all cookies from the jar.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_jar_clear(jar: *mut haul_jar) {
    catch_panic_or((), || {
        // SAFETY: the header's contract.
        if let Some(jar) = unsafe { jar.as_ref() } {
            jar.jar.change(|jar| jar.retain(|_| false));
        }
    });
}

/// Removes all session cookies: those without a time of expiry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_jar_clear_session(jar: *mut haul_jar) {
    catch_panic_or((), || {
        // SAFETY: the header's contract.
        if let Some(jar) = unsafe { jar.as_ref() } {
            jar.jar.clear_session();
        }
    });
}

/// Returns the number of cookies that have not expired.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_jar_count(jar: *const haul_jar) -> usize {
    catch_panic_or(0, || {
        // SAFETY: the header's contract.
        let Some(jar) = (unsafe { jar.as_ref() }) else { return 0 };
        jar.jar.with(|jar| jar.iter().filter(|cookie| !cookie.is_expired(now())).count())
    })
}

/// Calls `look` for every cookie that has not expired, the oldest cookie first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_jar_each(jar: *const haul_jar, look: haul_cookie_fn, user: *mut c_void) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let jar = unsafe { c_arguments::required_object(jar, "jar") }?;
        let look = look.ok_or_else(|| CallFailure::setup("look is NULL"))?;
        // The cookies are copied, because the function may use the jar, and the jar must not be
        // locked meanwhile.
        let cookies: Vec<Cookie> =
            jar.jar.with(|jar| jar.iter().filter(|cookie| !cookie.is_expired(now())).cloned().collect());
        for cookie in &cookies {
            let parts = cookie.parts();
            let seen = haul_cookie {
                name: haul_slice::from_bytes(&parts.name),
                value: haul_slice::from_bytes(&parts.value),
                domain: haul_slice::from_bytes(parts.domain.as_bytes()),
                path: haul_slice::from_bytes(&parts.path),
                expires: parts.expires.map_or(0, |expires| i64::try_from(expires).unwrap_or(i64::MAX)),
                host_only: parts.host_only,
                secure: parts.secure,
                http_only: parts.http_only,
            };
            // SAFETY: a function of the caller's, with its own pointer and a cookie that lives
            // during the call.
            if unsafe { look(user, &raw const seen) } != 0 {
                break;
            }
        }
        Ok(())
    })
}

/// Converts the path of a file, which may contain any bytes on Unix, and is UTF-8 on Windows.
///
/// # Safety
/// `path` is NULL or points to bytes that end with NUL and stay unchanged during `'a`.
pub(crate) unsafe fn file<'a>(path: *const c_char) -> Result<&'a Path, CallFailure> {
    // SAFETY: the caller guarantees it.
    let bytes = unsafe { c_arguments::required_bytes(path, "path") }?;
    os_str(bytes).map(Path::new)
}

/// Converts bytes to an `OsStr`, such as the name of a file.
#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
fn os_str(bytes: &[u8]) -> Result<&OsStr, CallFailure> {
    use std::os::unix::ffi::OsStrExt;

    Ok(OsStr::from_bytes(bytes))
}

/// Converts UTF-8 to an `OsStr`, such as the name of a file. Fails for other bytes.
#[cfg(windows)]
fn os_str(bytes: &[u8]) -> Result<&OsStr, CallFailure> {
    std::str::from_utf8(bytes).map(OsStr::new).map_err(|_| CallFailure::setup("path is not valid UTF-8"))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Reads a cookie file of Perl's HTTP::Cookies. Returns `None` if the file is unreadable or has
/// another format; the caller then reads it as a Netscape cookie file.
fn lwp_file(path: &Path) -> Option<haul_policy::cookie::netscape::CookieFile> {
    lwp::read(&std::fs::read(path).ok()?, now())
}

fn store_lwp_cookies(jar: &SharedCookieJar, read: haul_policy::cookie::netscape::CookieFile) -> usize {
    jar.change(|jar| {
        for cookie in read.cookies {
            jar.insert(cookie);
        }
    });
    read.refused
}
