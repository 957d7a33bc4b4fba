//! Easy handles: `curl_easy_init`, `curl_easy_perform` and related functions.
//!
//! An easy handle owns its options, its cookies, and an engine client, whose connections end with
//! the handle. A lock protects them. The lock is never held while a callback runs, so callbacks may
//! use the handle.

use std::ffi::{OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use haul::net::dns::Resolver;
use haul::net::proxy::ProxyAuthCache;
use haul::state::alt_svc::AltSvcCache;
use haul::state::auth::AuthCache;
use haul::state::cookie_jar::{CookieFileConventions, SharedCookieJar};
use haul::state::hsts::HstsCache;
use haul::state::http3::Http3Cache;
use haul::transfer::TransferOutcome;
use haul::{Client, ErrorKind};

use crate::client_settings::ClientSettings;
use crate::codes::{
    CURLE_BAD_FUNCTION_ARGUMENT, CURLE_FAILED_INIT, CURLE_OK, CURLE_RECURSIVE_API_CALL, CURLE_SETOPT_OPTION_SYNTAX,
    CURLE_UNSUPPORTED_PROTOCOL, CURLcode, code_of,
};
use crate::handle_table::{HandleTable, OpaqueHandle, catch_panic, lock};
use crate::headers::HeaderStore;
use crate::info::TransferInfo;
use crate::mime::DuplicatedFormCopy;
use crate::options::{EasyOptions, curlopt_numbers as opt};
use crate::request::{self, ReusableRequest, TransferFailure};
use crate::share::{Share, ShareReference};
use crate::transfer::callbacks::Callbacks;
use crate::transfer::easy_driver;
use crate::transfer::error_text::{ERROR_SIZE, error_text};
use crate::transfer::running::RunningTransfer;

/// The table of live easy handles.
pub(crate) static EASY: HandleTable<Easy> = HandleTable::new();

/// An easy handle (`CURL *`): the options and the state of the transfers that a C program makes
/// with it.
pub struct Easy {
    /// The id of the handle, by which it is looked up in a handle table.
    pub(crate) number: usize,
    pub(crate) state: Mutex<EasyState>,
    /// The transfer in progress; `None` if no transfer runs.
    running: Mutex<Option<Arc<RunningTransfer>>>,
}

/// The options of an easy handle, and the state that the handle keeps from one transfer to the
/// next.
#[derive(Default)]
pub struct EasyState {
    pub(crate) options: EasyOptions,
    pub(crate) infos: TransferInfo,
    pub(crate) headers: HeaderStore,
    cookies: Option<SharedCookieJar>,
    /// The number of files of `CURLOPT_COOKIEFILE` that have already been read.
    files_read: usize,
    share: Option<ShareReference>,
    client: Option<(ClientSettings, Client)>,
    pub(crate) auth_cache: AuthCache,
    pub(crate) proxy_auth_cache: ProxyAuthCache,
    pub(crate) http3_cache: Http3Cache,
    hsts: Option<HstsCache>,
    alt_svc: Option<AltSvcCache>,
    /// The parts of the last request that the handle's next request can use again.
    pub(crate) reusable_request: ReusableRequest,
    is_performing: bool,
    /// The id of the current or last transfer (`CURLINFO_XFER_ID`); `None` before the first one.
    pub(crate) transfer_id: Option<i64>,
    /// The number of transfers that `curl_easy_perform` has begun with this handle.
    performed: i64,
    /// The id of the multi handle to which the handle was added; `None` if it was not added to one.
    pub(crate) multi: Option<usize>,
    /// The form copy that the current call of `curl_easy_setopt` has replaced; `None` between two
    /// calls. The call drops the copy after it has unlocked the handle, because that runs callbacks
    /// of the C program.
    pub(crate) replaced_form: Option<Arc<DuplicatedFormCopy>>,
}

impl Easy {
    fn new(number: usize, mut state: EasyState) -> Self {
        state.auth_cache = AuthCache::with_basic_for_origins();
        Self { number, state: Mutex::new(state), running: Mutex::default() }
    }

    /// Returns the transfer in progress of this handle; `None` if no transfer runs.
    pub(crate) fn running(&self) -> Option<Arc<RunningTransfer>> {
        lock(&self.running).clone()
    }

    /// Sets the transfer in progress of this handle; `None` if no transfer runs.
    pub(crate) fn set_running(&self, running: Option<Arc<RunningTransfer>>) {
        *lock(&self.running) = running;
    }
}

impl EasyState {
    /// Returns the cookie jar of the handle or of its share, after reading the cookie files that
    /// were not read yet. Returns `None` if cookies are not used.
    pub(crate) fn cookie_jar(&mut self) -> Option<SharedCookieJar> {
        let shared = self.share.as_ref().and_then(ShareReference::cookies);
        if !self.options.has_cookies && shared.is_none() && self.cookies.is_none() {
            return None;
        }
        let own = || SharedCookieJar::with_style(CookieFileConventions::Curl);
        let jar = shared.unwrap_or_else(|| self.cookies.get_or_insert_with(own).clone());
        let files = &self.options.cookie_files;
        for path in &files[self.files_read.min(files.len())..] {
            if path.is_empty() {
                continue;
            }
            let path = Path::new(OsStr::from_bytes(path));
            // As in libcurl, a file that cannot be read has no cookies.
            if self.options.is_on(opt::COOKIESESSION) {
                // Only the session cookies of files are left out, not those of earlier responses.
                let from_file = own();
                let _ = from_file.import(path);
                from_file.clear_session();
                jar.import_text(&from_file.to_text());
            } else {
                let _ = jar.import(path);
            }
        }
        self.files_read = files.len();
        Some(jar)
    }

    /// Executes a line of `CURLOPT_COOKIELIST`: adds a cookie, or performs a command such as `ALL`.
    pub(crate) fn change_cookies(&mut self, line: Option<&[u8]>) -> Result<(), CURLcode> {
        let Some(line) = line else { return Ok(()) };
        let line_in_capitals = line.to_ascii_uppercase();
        // Only a cookie starts the use of cookies; a command applies to those that there are.
        self.options.has_cookies |= !matches!(line_in_capitals.as_slice(), b"ALL" | b"SESS" | b"FLUSH" | b"RELOAD");
        let Some(jar) = self.cookie_jar() else { return Ok(()) };
        match line_in_capitals.as_slice() {
            b"ALL" => jar.change(|jar| jar.retain(|_| false)),
            b"SESS" => jar.clear_session(),
            b"FLUSH" => self.save_cookies(),
            b"RELOAD" => {
                self.files_read = 0;
                self.cookie_jar();
            }
            _ => {
                jar.import_text(line);
            }
        }
        Ok(())
    }

    /// Removes the cookies, unless they belong to a share, and stops using cookies.
    pub(crate) fn forget_cookies(&mut self) {
        (self.cookies, self.files_read, self.options.has_cookies) = (None, 0, false);
    }

    /// Writes the cookies to the file of `CURLOPT_COOKIEJAR`, if there is one.
    fn save_cookies(&mut self) {
        let Some(path) = self.options.bytes(opt::COOKIEJAR).map(<[u8]>::to_vec) else { return };
        let Some(jar) = self.cookie_jar() else { return };
        if path == b"-" {
            use std::io::Write;
            let _ = std::io::stdout().write_all(&jar.to_text());
        } else {
            // As in libcurl, a failure is not reported.
            let _ = jar.replace_by(Path::new(OsStr::from_bytes(&path)), None);
        }
    }

    /// Returns all cookies of the handle as lines in the format of a cookie file.
    pub(crate) fn cookie_lines(&mut self) -> Vec<Vec<u8>> {
        let Some(jar) = self.cookie_jar() else { return Vec::new() };
        let text = jar.to_text();
        let is_cookie = |line: &&[u8]| !line.is_empty() && (!line.starts_with(b"#") || line.starts_with(b"#HttpOnly_"));
        // The file begins with the newest cookie, the list with the oldest.
        text.rsplit(|b| *b == b'\n').filter(is_cookie).map(<[u8]>::to_vec).collect()
    }

    /// Returns the cache of hosts that must be reached over TLS (HSTS); `None` if HSTS is not used.
    pub(crate) fn hsts(&mut self) -> Result<Option<HstsCache>, TransferFailure> {
        const ENABLE: i64 = 1;
        if let Some(shared) = self.share.as_ref().and_then(ShareReference::hsts) {
            return Ok(Some(shared));
        }
        let is_on = self.options.number(opt::HSTS_CTRL).unwrap_or(0) & ENABLE != 0;
        if !is_on && !self.options.has(opt::HSTS) {
            return Ok(None);
        }
        if self.hsts.is_none() {
            let cache = HstsCache::new();
            if let Some(path) = self.options.bytes(opt::HSTS).filter(|path| !path.is_empty()) {
                let _ = cache.load(Path::new(OsStr::from_bytes(path)));
            }
            self.hsts = Some(cache);
        }
        Ok(self.hsts.clone())
    }

    /// Returns the cache of alternative services; `None` if Alt-Svc is not used.
    pub(crate) fn alt_svc(&mut self) -> Result<Option<AltSvcCache>, TransferFailure> {
        if !self.options.is_on(opt::ALTSVC_CTRL) && !self.options.has(opt::ALTSVC) {
            return Ok(None);
        }
        if self.alt_svc.is_none() {
            let cache = AltSvcCache::new();
            if let Some(path) = self.options.bytes(opt::ALTSVC).filter(|path| !path.is_empty()) {
                let _ = cache.load(Path::new(OsStr::from_bytes(path)));
            }
            self.alt_svc = Some(cache);
        }
        Ok(self.alt_svc.clone())
    }

    /// Writes the cookies, the HSTS hosts and the alternative services to the files that the
    /// options name.
    fn save(&mut self) {
        /// `CURLHSTS_READONLYFILE`.
        const HSTS_READ_ONLY: i64 = 1 << 1;
        /// `CURLALTSVC_READONLYFILE`.
        const ALTSVC_READ_ONLY: i64 = 1 << 2;
        self.save_cookies();
        let options = &self.options;
        let writable = |file, control, read_only| {
            let is_writable = options.number(control).unwrap_or(0) & read_only == 0;
            options.bytes(file).filter(|path| !path.is_empty() && is_writable)
        };
        if let (Some(hsts), Some(path)) = (&self.hsts, writable(opt::HSTS, opt::HSTS_CTRL, HSTS_READ_ONLY)) {
            let _ = hsts.save(Path::new(OsStr::from_bytes(path)));
        }
        let path = writable(opt::ALTSVC, opt::ALTSVC_CTRL, ALTSVC_READ_ONLY);
        if let (Some(alt_svc), Some(path)) = (&self.alt_svc, path) {
            let _ = alt_svc.save(Path::new(OsStr::from_bytes(path)));
        }
    }

    /// Sets the share (`CURLSH`) of the handle; `None` removes it.
    pub(crate) fn set_share(&mut self, share: Option<Arc<Share>>) {
        if share.is_none() && self.share.as_ref().is_some_and(|share| share.cookies().is_some()) {
            // As in libcurl, the cookies stay in the share, and nothing else is written to a file.
            self.options.has_cookies = false;
        }
        self.share = share.map(ShareReference::new);
        self.client = None;
    }

    /// Returns the engine's client for the transfers of this handle. If the handle's share has a
    /// client, returns that client.
    ///
    /// # Errors
    /// The options for name resolution are not valid.
    fn client(&mut self) -> Result<Client, TransferFailure> {
        let settings = ClientSettings::from_options(&self.options);
        let resolver = self.share.as_ref().and_then(ShareReference::resolver);
        let is_shared = resolver.is_some();
        let shared = self.share.as_ref().and_then(|share| share.client(|| settings.client(resolver.clone())));
        if let Some(shared) = shared {
            settings.set_servers(shared.resolver())?;
            return Ok(shared);
        }
        match &self.client {
            Some((known, client)) if *known == settings => {
                if is_shared {
                    settings.set_servers(client.resolver())?;
                }
                Ok(client.clone())
            }
            // A new client: no earlier name servers are left in its resolver.
            _ => {
                let client = settings.client(resolver);
                settings.set_servers(client.resolver())?;
                self.client = Some((settings, client.clone()));
                Ok(client)
            }
        }
    }

    /// Returns true while `curl_easy_perform` runs the transfer of this handle.
    pub(crate) fn is_performing(&self) -> bool {
        self.is_performing
    }

    /// Returns the DNS resolver of the share object (`CURLOPT_SHARE`) that this handle uses. A
    /// multi handle takes the resolver of its first easy handle for all of its transfers. Returns
    /// `None` if the handle has no share object, or if that object does not share resolved host
    /// names.
    pub(crate) fn shared_resolver(&self) -> Option<Resolver> {
        self.share.as_ref().and_then(ShareReference::resolver)
    }

    /// Passes the addresses in the options (`CURLOPT_RESOLVE`) to the resolver of a client.
    pub(crate) fn set_resolver(&self, client: &Client) -> Result<(), TransferFailure> {
        let options = &self.options;
        for line in options.string_list(opt::RESOLVE) {
            let line = String::from_utf8_lossy(line);
            let failed = |_| {
                let text = format!("Couldn't parse CURLOPT_RESOLVE entry '{line}'");
                TransferFailure::new(CURLE_SETOPT_OPTION_SYNTAX, text)
            };
            client.resolver().add_override(&line).map_err(failed)?;
        }
        Ok(())
    }

    /// Writes a message to the error buffer of the C program.
    fn write_error(&self, text: &str) {
        let buffer = self.options.pointer(opt::ERRORBUFFER).cast::<u8>();
        if buffer.is_null() {
            return;
        }
        let mut length = text.len().min(ERROR_SIZE - 1);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        // SAFETY: libcurl's contract: the buffer has `CURL_ERROR_SIZE` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), buffer, length);
            buffer.add(length).write(0);
        }
    }

    /// Prepares the handle for a new transfer: clears the facts about the previous one.
    pub(crate) fn begin_transfer(&mut self) {
        // The program may still have the text of CURLINFO_EFFECTIVE_METHOD.
        let custom_method = self.infos.custom_method.take();
        self.infos = TransferInfo::with_url(self.options.bytes(opt::URL));
        self.infos.custom_method = custom_method;
        self.headers = HeaderStore::default();
        self.write_error("");
    }

    /// Ends a transfer that could not begin. Returns its result.
    pub(crate) fn fail_transfer(&mut self, failure: &TransferFailure) -> CURLcode {
        self.write_error(&failure.text);
        failure.code
    }

    /// Records the end of a transfer: stores the facts about it for `curl_easy_getinfo`, and
    /// returns its result. `url` is the URL that the program set.
    pub(crate) fn end_transfer(&mut self, running: &RunningTransfer, outcome: &TransferOutcome, url: &str) -> CURLcode {
        self.infos.set_at_end(&self.options, outcome, url);
        if let Some(head) = &outcome.head {
            let _ = running.store_only_head(head);
        }
        self.headers.add(running.take_heads_from(self.headers.len()));
        if let Some(failure) = running.failure() {
            self.write_error(&failure.text);
            return failure.code;
        }
        match &outcome.result {
            Ok(()) => CURLE_OK,
            Err(error) => {
                self.infos.os_error = error.io_source().and_then(std::io::Error::raw_os_error).unwrap_or(0).into();
                let text = error_text(error, outcome, url);
                self.write_error(&text);
                match error.kind() {
                    // The only cause is a content coding that the server was not asked for.
                    ErrorKind::Protocol if outcome.facts.head_bytes == 0 => CURLE_UNSUPPORTED_PROTOCOL,
                    kind => code_of(kind),
                }
            }
        }
    }
}

/// Makes an easy handle.
#[unsafe(no_mangle)]
pub extern "C" fn curl_easy_init() -> OpaqueHandle {
    catch_panic(std::ptr::null_mut(), || EASY.insert(|number| Easy::new(number, EasyState::default())))
}

/// Frees an easy handle. If a callback of a transfer in progress calls this, the transfer still
/// continues to its end.
#[unsafe(no_mangle)]
pub extern "C" fn curl_easy_cleanup(easy: OpaqueHandle) {
    catch_panic((), || {
        let Some(object) = EASY.get(easy) else { return };
        let multi = lock(&object.state).multi;
        if let Some(multi) = multi {
            crate::multi::remove(multi, object.number);
        }
        if EASY.remove(easy).is_some() {
            lock(&object.state).save();
        }
    });
}

/// Makes a handle with the same options. In-memory cookies, connections and the share are not
/// copied.
#[unsafe(no_mangle)]
pub extern "C" fn curl_easy_duphandle(easy: OpaqueHandle) -> OpaqueHandle {
    catch_panic(std::ptr::null_mut(), || {
        let Some(easy) = EASY.get(easy) else { return std::ptr::null_mut() };
        let state = lock(&easy.state);
        let (mut options, infos) = (state.options.clone(), state.infos.copy_with_url_only());
        drop(state);
        let mut tree = request::form_tree(&options);
        tree.detach_callbacks();
        options.form = (!tree.parts.is_empty()).then(|| Arc::new(DuplicatedFormCopy(tree)));
        EASY.insert(|number| Easy::new(number, EasyState { options, infos, ..EasyState::default() }))
    })
}

/// Sets all options to their defaults. Connections, cookies and the share are kept.
#[unsafe(no_mangle)]
pub extern "C" fn curl_easy_reset(easy: OpaqueHandle) {
    catch_panic((), || {
        let Some(easy) = EASY.get(easy) else { return };
        let mut state = lock(&easy.state);
        let has_cookies = state.options.has_cookies;
        let new = EasyOptions { has_cookies, ..EasyOptions::default() };
        let old = std::mem::replace(&mut state.options, new);
        state.files_read = 0;
        state.reusable_request = ReusableRequest::default();
        state.infos = TransferInfo::default();
        state.headers = HeaderStore::default();
        drop(state);
        // Dropped without the lock, since this may call a callback of the program.
        drop(old);
    });
}

/// Performs the transfer that the options describe, and waits for its end.
#[unsafe(no_mangle)]
pub extern "C" fn curl_easy_perform(easy: OpaqueHandle) -> CURLcode {
    catch_panic(CURLE_FAILED_INIT, || {
        let Some(easy) = EASY.get(easy) else { return CURLE_BAD_FUNCTION_ARGUMENT };
        {
            let mut state = lock(&easy.state);
            if state.is_performing {
                return CURLE_RECURSIVE_API_CALL;
            }
            if state.multi.is_some() {
                return CURLE_FAILED_INIT;
            }
            state.is_performing = true;
            state.transfer_id = Some(state.performed);
            state.performed += 1;
        }
        let code = catch_panic(CURLE_FAILED_INIT, || perform(&easy));
        lock(&easy.state).is_performing = false;
        code
    })
}

fn perform(easy: &Arc<Easy>) -> CURLcode {
    lock(&easy.state).begin_transfer();
    let form = request::ready_form(easy);
    let mut state = lock(&easy.state);
    let prepared = match form.and_then(|form| request::prepare(&mut state, easy.number, form)) {
        Ok(prepared) => prepared,
        Err(failure) => return state.fail_transfer(&failure),
    };
    let client = state.client().and_then(|client| state.set_resolver(&client).map(|()| client));
    let client = match client {
        Ok(client) => client,
        Err(failure) => return state.fail_transfer(&failure),
    };
    state.infos.set_at_start(&prepared);
    let callbacks = Callbacks::from_options(&state.options);
    drop(state);
    let running = Arc::new(RunningTransfer::new(Arc::clone(easy), callbacks, prepared.time_limit));
    easy.set_running(Some(Arc::clone(&running)));
    let url = prepared.url.clone();
    let outcome = easy_driver::run(&client, prepared, &running);
    easy.set_running(None);
    match outcome {
        Ok(outcome) => {
            running.on_end(&outcome);
            lock(&easy.state).end_transfer(&running, &outcome, &url)
        }
        Err(failure) => lock(&easy.state).fail_transfer(&failure),
    }
}

/// Pauses or continues the directions of a transfer in progress, as the `CURLPAUSE_` bits say.
#[unsafe(no_mangle)]
pub extern "C" fn curl_easy_pause(easy: OpaqueHandle, bits: c_int) -> CURLcode {
    catch_panic(CURLE_FAILED_INIT, || {
        let Some(easy) = EASY.get(easy) else { return CURLE_BAD_FUNCTION_ARGUMENT };
        let running = lock(&easy.running).clone();
        match running {
            Some(running) => {
                running.set_paused(bits);
                CURLE_OK
            }
            None => CURLE_BAD_FUNCTION_ARGUMENT,
        }
    })
}

/// Does nothing: idle connections need no upkeep.
#[unsafe(no_mangle)]
pub extern "C" fn curl_easy_upkeep(easy: OpaqueHandle) -> CURLcode {
    catch_panic(CURLE_FAILED_INIT, || if EASY.get(easy).is_some() { CURLE_OK } else { CURLE_BAD_FUNCTION_ARGUMENT })
}

/// Always returns an error: a handle never keeps a connection for itself (`CURLOPT_CONNECT_ONLY`),
/// so there is nothing to receive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_easy_recv(
    easy: OpaqueHandle,
    _buffer: *mut c_void,
    _length: usize,
    received: *mut usize,
) -> CURLcode {
    refuse_raw_socket_io(easy, received)
}

/// Always returns an error: a handle never keeps a connection for itself (`CURLOPT_CONNECT_ONLY`),
/// so nothing can be sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_easy_send(
    easy: OpaqueHandle,
    _buffer: *const c_void,
    _length: usize,
    sent: *mut usize,
) -> CURLcode {
    refuse_raw_socket_io(easy, sent)
}

fn refuse_raw_socket_io(easy: OpaqueHandle, count: *mut usize) -> CURLcode {
    // SAFETY: libcurl's contract: NULL or writable.
    unsafe { crate::c_strings::write_unless_null(count, 0) };
    let Some(easy) = EASY.get(easy) else { return CURLE_BAD_FUNCTION_ARGUMENT };
    if lock(&easy.running).is_some() {
        return CURLE_RECURSIVE_API_CALL;
    }
    lock(&easy.state).write_error("CONNECT_ONLY is required");
    CURLE_UNSUPPORTED_PROTOCOL
}

/// Always returns an error: TLS sessions cannot be exported.
#[unsafe(no_mangle)]
pub extern "C" fn curl_easy_ssls_export(_easy: OpaqueHandle, _function: *mut c_void, _data: *mut c_void) -> CURLcode {
    crate::codes::CURLE_NOT_BUILT_IN
}

/// Always returns an error: TLS sessions cannot be imported.
#[unsafe(no_mangle)]
pub extern "C" fn curl_easy_ssls_import(
    _easy: OpaqueHandle,
    _key: *const c_char,
    _mac: *const u8,
    _mac_length: usize,
    _data: *const u8,
    _length: usize,
) -> CURLcode {
    crate::codes::CURLE_NOT_BUILT_IN
}

/// Always returns an error: WebSocket is not supported.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_ws_recv(
    easy: OpaqueHandle,
    _buffer: *mut c_void,
    _length: usize,
    received: *mut usize,
    _meta: *mut *const c_void,
) -> CURLcode {
    refuse_raw_socket_io(easy, received)
}

/// Always returns an error: WebSocket is not supported.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_ws_send(
    easy: OpaqueHandle,
    _buffer: *const c_void,
    _length: usize,
    sent: *mut usize,
    _fragment_size: i64,
    _flags: std::ffi::c_uint,
) -> CURLcode {
    refuse_raw_socket_io(easy, sent)
}

/// Returns NULL: WebSocket is not supported, so there are no frames.
#[unsafe(no_mangle)]
pub extern "C" fn curl_ws_meta(_easy: OpaqueHandle) -> *const c_void {
    std::ptr::null()
}
