//! `curl_easy_getinfo`: information about the last transfer of a handle.

mod get;

use std::cell::OnceCell;
use std::ffi::{CStr, CString, c_int};
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haul::net::tls::certificate_details;
use haul::transfer::TransferOutcome;
use haul::transfer_facts::TransferFacts;
use haul::{ErrorKind, ProtocolVersion, ResponseHead, Target};
use haul_policy::redirect::location_text;
use haul_policy::retry::parse_retry_after;

pub use get::haul_curl_easy_getinfo;

use crate::options::curlauth_constants::{AUTH_AWS, AUTH_BASIC, AUTH_BEARER, AUTH_DIGEST, AUTH_NEGOTIATE};
use crate::options::{EasyOptions, curlopt_numbers as opt};
use crate::request::{PreparedRequest, TimeCondition, modified, target_url, url_for_info};
use crate::slist::{self, curl_slist};
use crate::transfer::error_text::verify_result;
use crate::transfer::running::TransferProgress;

/// The information about the last transfer of a handle, which `curl_easy_getinfo` returns.
#[derive(Default)]
pub(crate) struct TransferInfo {
    /// The status of the last response; 0 without a response.
    pub(crate) status: i64,
    connect_status: i64,
    effective_url: EffectiveUrl,
    content_type: Option<CString>,
    redirect_url: Option<CString>,
    referer: Option<CString>,
    method: Option<CString>,
    /// The value of `CURLOPT_CUSTOMREQUEST` when the C program last asked for the method.
    pub(crate) custom_method: Option<CString>,
    scheme: Option<CString>,
    peer: Option<SocketAddressText>,
    local: Option<SocketAddressText>,
    times: InfoTimes,
    uploaded: u64,
    downloaded: u64,
    delivered: u64,
    header_size: u64,
    request_size: u64,
    redirects: i64,
    connects: i64,
    /// The length of the content that the last response announces. `None` if it announces none.
    announced: Option<u64>,
    upload_length: Option<u64>,
    verify_result: i64,
    file_time: Option<i64>,
    condition_unmet: bool,
    http_version: i64,
    auth_available: i64,
    proxy_auth_available: i64,
    auth_used: i64,
    proxy_auth_used: i64,
    retry_after: i64,
    used_proxy: bool,
    connection: Option<u64>,
    certificates: CertificateInfo,
    /// The error number of the operating system; 0 without an error.
    pub(crate) os_error: i64,
}

/// The address of a socket. Its text is made when a program requests it.
struct SocketAddressText {
    address: SocketAddr,
    text: OnceCell<CString>,
}

impl SocketAddressText {
    fn new(address: SocketAddr) -> Self {
        Self { address, text: OnceCell::new() }
    }

    fn ip(&self) -> &CStr {
        self.text.get_or_init(|| CString::new(self.address.ip().to_string()).unwrap_or_default())
    }

    fn port(&self) -> i64 {
        self.address.port().into()
    }
}

/// The URL of `CURLINFO_EFFECTIVE_URL`. The C program's own URL is normalised only when the program
/// asks for it.
#[derive(Clone, Default)]
enum EffectiveUrl {
    /// The C program has not set a URL.
    #[default]
    Unknown,
    /// The URL as text, which is returned unchanged.
    Text(CString),
    /// The C program's own URL, and its normalised form once it was requested.
    Own { url: String, normal: OnceCell<CString> },
}

impl EffectiveUrl {
    fn text(url: Option<&[u8]>) -> Self {
        url.and_then(|url| CString::new(url).ok()).map_or(Self::Unknown, Self::Text)
    }

    /// Stores the C program's own URL. Does nothing if the same URL is stored already: the program
    /// may have a pointer to the stored normalised form, which must stay valid.
    fn set_own(&mut self, own: &str) {
        if !matches!(self, Self::Own { url, .. } if url == own) {
            *self = Self::Own { url: own.to_owned(), normal: OnceCell::new() };
        }
    }

    /// Stores the URL of a redirect, unless it is stored already: the C program may have a pointer
    /// to it.
    fn set_redirected(&mut self, url: &str) {
        if !matches!(self, Self::Text(text) if text.as_bytes() == url.as_bytes()) {
            *self = Self::text(Some(url.as_bytes()));
        }
    }

    fn as_c_str(&self) -> &CStr {
        match self {
            Self::Unknown => c"",
            Self::Text(text) => text,
            Self::Own { url, normal } => normal.get_or_init(|| CString::new(url_for_info(url)).unwrap_or_default()),
        }
    }
}

/// The times of a transfer, measured from its start.
#[derive(Debug, Clone, Copy, Default)]
struct InfoTimes {
    name_lookup: Duration,
    connect: Duration,
    app_connect: Duration,
    pre_transfer: Duration,
    start_transfer: Duration,
    redirect: Duration,
    total: Duration,
}

/// A list of certificates, as `curl/curl.h` describes it.
#[repr(C)]
struct curl_certinfo {
    num_of_certs: c_int,
    certinfo: *mut *mut curl_slist,
}

/// The certificates of the last server. Programs read the lists until the next transfer.
#[derive(Default)]
struct CertificateInfo {
    lists: Vec<*mut curl_slist>,
    /// The struct that the C program reads; `None` before the program first asks for it.
    shown: Option<Box<curl_certinfo>>,
}

// SAFETY: the lists belong to this struct, and nothing changes them.
unsafe impl Send for CertificateInfo {}

impl CertificateInfo {
    /// Stores the certificates of a transfer that has ended.
    fn set(&mut self, certificates: &[Vec<u8>]) {
        let list = |der: &Vec<u8>| {
            let details = certificate_details(der);
            let mut lines: Vec<String> = details.iter().map(|(name, value)| format!("{name}:{value}")).collect();
            let text = STANDARD.encode(der);
            let rows: Vec<&str> = (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
            let pem = rows.join("\n");
            lines.push(format!("Cert:-----BEGIN CERTIFICATE-----\n{pem}\n-----END CERTIFICATE-----\n"));
            slist::new_list(lines.iter().map(String::as_bytes))
        };
        self.free_lists();
        self.lists = certificates.iter().map(list).collect();
        if self.shown.is_some() {
            self.public_struct();
        }
    }

    /// Returns a pointer to the struct that the C program reads. It stays valid until the next
    /// transfer.
    fn public_struct(&mut self) -> *mut curl_certinfo {
        let (count, lists) = (c_int::try_from(self.lists.len()).unwrap_or(0), self.lists.as_mut_ptr());
        let empty = || Box::new(curl_certinfo { num_of_certs: 0, certinfo: std::ptr::null_mut() });
        let shown = self.shown.get_or_insert_with(empty);
        (shown.num_of_certs, shown.certinfo) = (count, lists);
        &raw mut **shown
    }

    fn free_lists(&mut self) {
        for list in self.lists.drain(..) {
            // SAFETY: made by `list_of`, and the contract lets programs use it only until now.
            unsafe { slist::curl_slist_free_all(list) };
        }
    }
}

impl Drop for CertificateInfo {
    fn drop(&mut self) {
        self.free_lists();
    }
}

/// Returns a text for C; `None` for an empty text.
fn c_text(text: &str) -> Option<CString> {
    CString::new(text).ok().filter(|text| !text.is_empty())
}

/// Stores a text for C; `None` for an empty text. Keeps an equal text, because the C program may
/// have a pointer to it.
fn set_text(place: &mut Option<CString>, text: Option<&[u8]>) {
    let text = text.filter(|text| !text.is_empty());
    if place.as_deref().map(CStr::to_bytes) != text {
        *place = text.and_then(|text| CString::new(text).ok());
    }
}

/// Stores the address of a socket. Keeps an equal address, because the C program may have a pointer
/// to its text.
fn set_address(place: &mut Option<SocketAddressText>, address: Option<SocketAddr>) {
    if place.as_ref().map(|known| known.address) != address {
        *place = address.map(SocketAddressText::new);
    }
}

fn content_length(head: &ResponseHead) -> Option<u64> {
    match head.get("content-length") {
        // These responses have no content.
        None => matches!(head.status(), 204 | 304).then_some(0),
        Some(length) => std::str::from_utf8(length).ok()?.trim().parse().ok(),
    }
}

/// The longest time in seconds that `CURLINFO_RETRY_AFTER` reports, as in libcurl: six hours.
const MAX_RETRY_AFTER: i64 = 6 * 3600;

impl TransferInfo {
    /// Returns the information about a handle that has not transferred `url` yet.
    pub(crate) fn with_url(url: Option<&[u8]>) -> Self {
        Self { effective_url: EffectiveUrl::text(url), ..Self::default() }
    }

    /// Returns the information for a copy of the handle: only the URL.
    pub(crate) fn copy_with_url_only(&self) -> Self {
        Self { effective_url: self.effective_url.clone(), ..Self::default() }
    }

    /// Records that the C program has set a new URL, or removed it (`None`).
    pub(crate) fn set_url(&mut self, url: Option<&[u8]>) {
        self.effective_url = EffectiveUrl::text(url);
    }

    /// Stores the URL and the length of the content of a request that is about to begin.
    pub(crate) fn set_at_start(&mut self, request: &PreparedRequest) {
        self.set_own_url(&request.url, &request.target);
        self.upload_length = request.content.length();
    }

    /// Stores the C program's URL as the effective one.
    fn set_own_url(&mut self, url: &str, target: &Target) {
        if has_scheme(url) {
            self.effective_url.set_own(url);
        } else {
            // The scheme may come from CURLOPT_DEFAULT_PROTOCOL.
            self.effective_url.set_own(&format!("{}://{url}", target.scheme().as_str()));
        }
    }

    /// Stores the progress of a transfer that has not ended, and the time since its start.
    pub(crate) fn set_progress(&mut self, progress: TransferProgress, elapsed: Duration) {
        self.downloaded = self.downloaded.max(progress.down);
        self.uploaded = self.uploaded.max(progress.up);
        self.times.total = elapsed;
    }

    /// Stores the information that is known when the body of a response begins.
    pub(crate) fn set_at_body_start(&mut self, facts: &TransferFacts, head: &ResponseHead, target: &Target) {
        self.set_exchange(facts, target);
        self.set_head(head);
    }

    /// Stores the facts about the current exchange and its target, before the header callback gets
    /// the head of the response.
    pub(crate) fn set_exchange(&mut self, facts: &TransferFacts, target: &Target) {
        self.set_facts(facts);
        if facts.redirects > 0 {
            self.effective_url.set_redirected(&target_url(target));
        }
        set_text(&mut self.scheme, Some(target.scheme().as_str().as_bytes()));
    }

    fn set_facts(&mut self, facts: &TransferFacts) {
        self.status = facts.status.into();
        self.connect_status = facts.connect_status.into();
        self.times = InfoTimes {
            name_lookup: facts.resolved,
            connect: facts.connected,
            app_connect: facts.secured,
            pre_transfer: facts.sent,
            start_transfer: facts.first_byte,
            redirect: facts.redirected,
            total: facts.total,
        };
        self.uploaded = facts.upload_bytes;
        self.downloaded = facts.body_bytes;
        self.delivered = facts.decoded_bytes.unwrap_or(facts.body_bytes);
        self.header_size = facts.head_bytes;
        self.request_size = facts.request_bytes;
        self.redirects = facts.redirects.into();
        self.connects = facts.connects.into();
        self.auth_used = facts.auth_scheme.map_or(0, auth_scheme_bit);
        self.proxy_auth_used = facts.proxy_auth_scheme.map_or(0, auth_scheme_bit);
        set_address(&mut self.peer, facts.peer);
        set_address(&mut self.local, facts.local);
        self.used_proxy = facts.proxy_used;
        self.connection = facts.connection;
        self.http_version = match facts.version {
            Some(ProtocolVersion::Http10) => 1,
            Some(ProtocolVersion::Http11) => 2,
            Some(ProtocolVersion::Http2) => 3,
            Some(ProtocolVersion::Http3) => 30,
            _ => 0,
        };
    }

    /// Stores the information from a response head, before the header callback gets the head.
    pub(crate) fn on_head(&mut self, head: &ResponseHead) {
        self.status = head.status().into();
        self.set_head(head);
    }

    fn set_head(&mut self, head: &ResponseHead) {
        self.announced = content_length(head);
        set_text(&mut self.content_type, head.get_all("content-type").last());
        self.on_challenges(head);
    }

    /// Adds the authentication schemes that a response offers to those of the transfer. As in
    /// libcurl, only a 401 or 407 offers schemes.
    pub(crate) fn on_challenges(&mut self, head: &ResponseHead) {
        match head.status() {
            401 => self.auth_available |= auth_schemes(head, "www-authenticate"),
            407 => self.proxy_auth_available |= auth_schemes(head, "proxy-authenticate"),
            _ => {}
        }
    }

    /// Stores the information about a transfer that has ended. `url` is the URL that the C program
    /// set.
    pub(crate) fn set_at_end(&mut self, options: &EasyOptions, outcome: &TransferOutcome, url: &str) {
        let facts = &outcome.facts;
        self.set_facts(facts);
        if let Some(head) = &outcome.head {
            self.set_head(head);
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let retry_after = head.get("retry-after").and_then(|value| parse_retry_after(value, now.as_secs()));
            self.retry_after = retry_after.map_or(0, |wait| i64::try_from(wait.as_secs()).unwrap_or(i64::MAX));
            self.retry_after = self.retry_after.min(MAX_RETRY_AFTER);
            self.file_time = if options.is_on(opt::FILETIME) { modified(head) } else { None };
            self.condition_unmet = TimeCondition::is_unmet(options, head);
        }
        match facts.redirects {
            0 => self.set_own_url(url, &outcome.target),
            _ => self.effective_url.set_redirected(&target_url(&outcome.target)),
        }
        set_text(&mut self.scheme, Some(outcome.target.scheme().as_str().as_bytes()));
        self.redirect_url = redirect_url(options, outcome).as_deref().and_then(c_text);
        self.verify_result = verify_result(outcome);
        self.method = facts.method.as_deref().and_then(c_text);
        self.referer = match &facts.referer {
            Some(referer) => c_text(referer),
            None => options.text(opt::REFERER).as_deref().and_then(c_text),
        };
        if facts.redirects > 0 && facts.method.as_deref().is_some_and(|method| matches!(method, "GET" | "HEAD")) {
            // A redirect has dropped the content.
            self.upload_length = Some(0);
        }
        self.certificates.set(facts.certificates.as_deref().unwrap_or_default());
    }
}

/// Returns the URL of a redirect that was not followed; `None` if there was none.
fn redirect_url(options: &EasyOptions, outcome: &TransferOutcome) -> Option<String> {
    let is_refused =
        |error: &haul::Error| matches!(error.kind(), ErrorKind::TooManyRedirects | ErrorKind::UnsupportedScheme);
    if options.is_on(opt::FOLLOWLOCATION) && !outcome.result.as_ref().err().is_some_and(is_refused) {
        return None;
    }
    let head = outcome.head.as_ref().filter(|head| (300..400).contains(&head.status()))?;
    let location = location_text(head.get_all("location").find(|location| !location.is_empty())?);
    match outcome.target.join(&location) {
        Ok(target) => Some(target_url(&target)),
        // As in libcurl, a program also receives an invalid URL.
        Err(error) => (error.exit_code() == 1 || location.contains("://")).then_some(location),
    }
}

/// Returns the bits (`CURLAUTH_`) of the authentication schemes that a response offers in this
/// field.
fn auth_schemes(head: &ResponseHead, field: &str) -> i64 {
    // A field may have several challenges, whose parameters are separated by commas, too. A
    // parameter has an equals sign in its first word.
    let words = head.get_all(field).flat_map(|value| {
        value.split(|b| *b == b',').map(|part| part.trim_ascii().split(|b| *b == b' ').next().unwrap_or_default())
    });
    words.fold(0, |all, word| all | std::str::from_utf8(word).map_or(0, auth_scheme_bit))
}

/// Returns the bit (`CURLAUTH_`) of the authentication scheme with this name; 0 if it has none.
fn auth_scheme_bit(scheme: &str) -> i64 {
    const NTLM: i64 = 8;
    let bits = [
        ("Basic", AUTH_BASIC),
        ("Digest", AUTH_DIGEST),
        ("Negotiate", AUTH_NEGOTIATE),
        ("NTLM", NTLM),
        ("Bearer", AUTH_BEARER),
        ("AWS4-HMAC-SHA256", AUTH_AWS),
    ];
    bits.iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name)).map_or(0, |(_, bit)| *bit)
}

/// Returns true if the URL begins with a scheme.
fn has_scheme(url: &str) -> bool {
    url.find("://").is_some_and(|at| !url[..at].contains(['/', '?', '#']))
}
