//! A request, which can be sent any number of times.
//!
//! ```
//! use haul_c::error::haul_status;
//! use haul_c::request::{haul_request_add_header, haul_request_free, haul_request_new};
//! // SAFETY: the strings end with NUL, and the request lives until it is freed.
//! unsafe {
//!     let mut request = haul_request_new(c"PUT".as_ptr(), c"http://h.example/".as_ptr()).unwrap();
//!     let status = haul_request_add_header(&mut *request, c"X-Many".as_ptr(), c"1".as_ptr());
//!     assert_eq!(status, haul_status::Ok);
//!     haul_request_free(Some(request));
//! }
//! ```

use std::borrow::Cow;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

use haul::body::request_trailers::Trailers;
use haul::request::{Request, RequestOverrides};
use haul::state::auth::AuthOptions;
use haul::trace::TransferObserver;
use haul::{RequestOptions, Target};
use haul_policy::target::{Scheme, TargetError};

use crate::auth_arguments::auth;
use crate::c_arguments;
use crate::callbacks::{UserPointer, haul_body_fn, haul_head_fn, haul_reserve_fn};
use crate::client::EngineWithOptions;
use crate::client_settings::{has_max_size, has_redirects, set_max_size, set_redirects, time_limit};
use crate::error::{CallFailure, catch_panic, catch_panic_new, catch_panic_or, haul_status};
use crate::reply_destination::ReplyCallbacks;
use crate::request_body::BodyContent;

/// A request to be sent. Only one thread may use it at a time.
#[derive(Clone)]
pub struct haul_request {
    method: Cow<'static, str>,
    target: Target,
    pub(crate) content: BodyContent,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    max_time: Option<Duration>,
    pub(crate) trailers: Option<Trailers>,
    pub(crate) own: PerRequestSettings,
    pub(crate) output: ReplyCallbacks,
}

/// The settings of one request. They override those of the client.
#[derive(Debug, Clone, Default)]
pub(crate) struct PerRequestSettings {
    pub(crate) without: Vec<String>,
    pub(crate) max_redirects: Option<u32>,
    pub(crate) max_size: Option<u64>,
    pub(crate) auth: Option<AuthOptions>,
    pub(crate) decode: bool,
    pub(crate) raw_path: bool,
    pub(crate) no_jar: bool,
    pub(crate) http10: bool,
    /// The observer that calls the caller's haul_step_fn; `None` if the caller has set none.
    pub(crate) steps: Option<Arc<dyn TransferObserver>>,
}

impl PerRequestSettings {
    /// Returns the client's options with these settings applied. Without such settings, which is
    /// the common case, the client's options are not copied.
    pub(crate) fn options(&self, shared: &EngineWithOptions) -> Arc<RequestOptions> {
        let Self { without, max_redirects, max_size, auth, decode, raw_path, no_jar, http10, steps } = self;
        let is_common = without.is_empty()
            && max_redirects.is_none_or(|max| has_redirects(&shared.options, max))
            && max_size.is_none_or(|bytes| has_max_size(&shared.options, bytes))
            && auth.is_none()
            && steps.is_none()
            && (!decode || shared.options.decode)
            && (!raw_path || shared.options.path_as_is)
            && (!http10 || shared.options.deviations.http10)
            && (!no_jar || shared.options.jar.is_none());
        if is_common {
            return Arc::clone(&shared.options);
        }
        let mut options = RequestOptions::clone(&shared.options);
        options.fields.retain(|(name, _)| !without.iter().any(|other| other.eq_ignore_ascii_case(name)));
        options.without.extend_from_slice(without);
        if let Some(max) = *max_redirects {
            set_redirects(&mut options, max);
        }
        if let Some(bytes) = *max_size {
            set_max_size(&mut options, bytes);
        }
        if let Some(auth) = auth {
            options.auth = auth.clone();
        }
        options.trace.clone_from(steps);
        options.decode |= decode;
        options.path_as_is |= raw_path;
        options.deviations.http10 |= http10;
        options.jar = options.jar.filter(|_| !no_jar);
        Arc::new(options)
    }
}

impl haul_request {
    /// Creates the engine's request, with the settings of a client.
    pub(crate) fn prepare(&self, shared: &EngineWithOptions) -> Result<Request, CallFailure> {
        self.with(&self.content, self.trailers.clone(), shared)
    }

    /// Creates the engine's request, with the settings of a client, for a request that outlives
    /// this object and runs on another thread: memory of the caller is copied. Fails for a request
    /// with trailers.
    pub(crate) fn prepare_owned(&self, shared: &EngineWithOptions) -> Result<Request, CallFailure> {
        if self.trailers.is_some() {
            return Err(CallFailure::setup("a batch takes no trailers"));
        }
        self.with(&self.content.owned()?, None, shared)
    }

    fn with(
        &self,
        content: &BodyContent,
        trailers: Option<Trailers>,
        shared: &EngineWithOptions,
    ) -> Result<Request, CallFailure> {
        let mut fields = self.fields.clone();
        let body = content.body(&mut fields)?;
        if trailers.is_some() {
            fields.retain(|(name, _)| !name.eq_ignore_ascii_case("content-length"));
        }
        let particulars =
            RequestOverrides { method: Some(self.method.clone()), fields, body, trailers, max_time: self.max_time };
        Ok(Request::new(self.target.clone(), self.own.options(shared), particulars))
    }
}

/// Parses a URL. If `as_is` is true, dot segments in its path are kept.
pub(crate) fn parse_url(url: &str, as_is: bool) -> Result<Target, CallFailure> {
    Target::parse_with(url, Scheme::Http, as_is).map_err(|error| url_failure(&error))
}

/// Returns the failure for an invalid URL. The error text does not contain the URL, which may have
/// a password.
pub(crate) fn url_failure(error: &TargetError) -> CallFailure {
    let status = if error.exit_code() == 1 { haul_status::UnsupportedScheme } else { haul_status::Url };
    CallFailure::new(status, format!("the URL cannot be used: {error}"))
}

/// Checks a method name (RFC 9110 section 9.1). Common names are returned without an allocation.
pub(crate) fn parse_method(name: &str) -> Result<Cow<'static, str>, CallFailure> {
    c_arguments::check_field(name, b"").map_err(|_| CallFailure::setup("the method is no token"))?;
    Ok(haul::request::method(name))
}

/// Creates a request for `url`. `method` NULL means GET; the method is sent exactly as given.
/// Returns NULL if the method or the URL is not valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_new(method: *const c_char, url: *const c_char) -> Option<Box<haul_request>> {
    // SAFETY: the header's contract.
    unsafe { new(method, url, false) }
}

/// Creates a request like haul_request_new, but the path is sent as given: dot segments are not
/// removed (RFC 3986 section 5.2.4).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_new_raw(method: *const c_char, url: *const c_char) -> Option<Box<haul_request>> {
    // SAFETY: the header's contract.
    unsafe { new(method, url, true) }
}

/// Creates a request. If `raw_path` is true, dot segments in the URL's path are kept.
///
/// # Safety
/// `method` and `url` are NULL or end with NUL.
unsafe fn new(method: *const c_char, url: *const c_char, raw_path: bool) -> Option<Box<haul_request>> {
    catch_panic_new(|| {
        // SAFETY: the header's contract: what is not NULL lives, and strings end with NUL. So in
        // all functions here.
        let (method, url) =
            unsafe { (c_arguments::optional_text(method, "method")?, c_arguments::required_text(url, "url")?) };
        Ok(Box::new(haul_request {
            method: parse_method(method.unwrap_or("GET"))?,
            target: parse_url(url, raw_path)?,
            content: BodyContent::None,
            fields: Vec::new(),
            max_time: None,
            trailers: None,
            own: PerRequestSettings { raw_path, ..PerRequestSettings::default() },
            output: ReplyCallbacks::IN_MEMORY,
        }))
    })
}

/// Returns a copy of a request. Later changes of its settings and body do not affect the original.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_clone(request: *const haul_request) -> Option<Box<haul_request>> {
    // SAFETY: the header's contract.
    catch_panic_new(|| Ok(Box::new(unsafe { c_arguments::required_object(request, "request") }?.clone())))
}

/// Frees a request. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn haul_request_free(request: Option<Box<haul_request>>) {
    catch_panic_or((), || drop(request));
}

/// Sets a header of the request, in place of all headers of that name that the request, the client
/// or haul would send. With a NULL value, no header of that name is sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_set_header(
    request: *mut haul_request,
    name: *const c_char,
    value: *const c_char,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change(request, |request| {
            let name = c_arguments::required_text(name, "name")?;
            let value = c_arguments::optional_bytes(value);
            c_arguments::check_field(name, value.unwrap_or_default())?;
            request.fields.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
            request.own.without.retain(|other| !other.eq_ignore_ascii_case(name));
            match value {
                Some(value) => request.fields.push((name.to_owned(), value.to_vec())),
                None => request.own.without.push(name.to_owned()),
            }
            Ok(())
        })
    }
}

/// Adds a header, beside other headers of the same name in this request. The first header of a name
/// replaces the headers of that name that the client or haul would send.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_add_header(
    request: *mut haul_request,
    name: *const c_char,
    value: *const c_char,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change(request, |request| {
            let (name, value) =
                (c_arguments::required_text(name, "name")?, c_arguments::required_bytes(value, "value")?);
            c_arguments::check_field(name, value)?;
            request.fields.push((name.to_owned(), value.to_vec()));
            Ok(())
        })
    }
}

/// Sets the time limit for the whole request, in milliseconds; 0 for the client's setting.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_set_timeout(request: *mut haul_request, ms: u64) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change(request, |request| {
            request.max_time = time_limit(ms);
            Ok(())
        })
    }
}

/// Sets the maximum number of redirects that this request follows; 0 for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_set_max_redirects(request: *mut haul_request, max: u32) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change(request, |request| {
            request.own.max_redirects = Some(max);
            Ok(())
        })
    }
}

/// Sets the maximum size of the reply's body in bytes; 0 for no limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_set_max_size(request: *mut haul_request, bytes: u64) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change(request, |request| {
            request.own.max_size = Some(bytes);
            Ok(())
        })
    }
}

/// Sets the credentials of this request, as haul_client_set_auth does for all requests of a client.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_set_auth(
    request: *mut haul_request,
    kind: c_int,
    user: *const c_char,
    secret: *const c_char,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change(request, |request| {
            request.own.auth = Some(auth(kind, user, secret)?);
            Ok(())
        })
    }
}

/// Sets the functions that receive the reply, as in haul_call. Each function may be NULL; at most
/// one of `reserve` and `on_body` may be set. A batch ignores them, because it stores bodies
/// itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_request_set_output(
    request: *mut haul_request,
    on_head: haul_head_fn,
    reserve: haul_reserve_fn,
    on_body: haul_body_fn,
    user: *mut c_void,
) -> haul_status {
    let output = ReplyCallbacks { on_head, reserve, on_body, user: UserPointer(user) };
    // SAFETY: the header's contract.
    unsafe {
        change(request, |request| {
            output.check()?;
            request.output = output;
            Ok(())
        })
    }
}

/// Calls the closure `change` with `request`, and returns the closure's result as a haul_status.
///
/// # Safety
/// `request` is NULL or valid, and no other code uses it during the call.
pub(crate) unsafe fn change(
    request: *mut haul_request,
    change: impl FnOnce(&mut haul_request) -> Result<(), CallFailure>,
) -> haul_status {
    // SAFETY: the caller guarantees it.
    catch_panic(|| change(unsafe { request.as_mut() }.ok_or_else(|| CallFailure::setup("request is NULL"))?))
}
