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
use crate::request::{TimeCondition, modified, target_url, url_for_info};
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
    shown: Option<Box<curl_certinfo>>,
}

// SAFETY: the lists belong to this struct, and nothing changes them.
unsafe impl Send for CertificateInfo {}

impl CertificateInfo {
    fn new(certificates: &[Vec<u8>]) -> Self {
        let list = |der: &Vec<u8>| {
            let details = certificate_details(der);
            let mut lines: Vec<String> = details.iter().map(|(name, value)| format!("{name}:{value}")).collect();
            let text = STANDARD.encode(der);
            let rows: Vec<&str> = (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
            let pem = rows.join("\n");
            lines.push(format!("Cert:-----BEGIN CERTIFICATE-----\n{pem}\n-----END CERTIFICATE-----\n"));
            slist::new_list(lines.iter().map(String::as_bytes))
        };
        Self { lists: certificates.iter().map(list).collect(), shown: None }
    }

    /// Returns a pointer to the struct that the C program reads.
    fn public_struct(&mut self) -> *mut curl_certinfo {
        let (count, lists) = (c_int::try_from(self.lists.len()).unwrap_or(0), self.lists.as_mut_ptr());
        let shown = self.shown.insert(Box::new(curl_certinfo { num_of_certs: count, certinfo: lists }));
        &raw mut **shown
    }
}

impl Drop for CertificateInfo {
    fn drop(&mut self) {
        for list in self.lists.drain(..) {
            // SAFETY: made by `list_of`, and the contract lets programs use it only until now.
            unsafe { slist::curl_slist_free_all(list) };
        }
    }
}

/// Returns a text for C; `None` for an empty text.
fn c_text(text: &str) -> Option<CString> {
    CString::new(text).ok().filter(|text| !text.is_empty())
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

    /// Stores the length of the content that the next request sends; `None` if it is unknown.
    pub(crate) fn set_upload_length(&mut self, length: Option<u64>) {
        self.upload_length = length;
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
            self.effective_url = EffectiveUrl::text(Some(target_url(target).as_bytes()));
        }
        self.scheme = c_text(target.scheme().as_str());
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
        self.peer = facts.peer.map(SocketAddressText::new);
        self.local = facts.local.map(SocketAddressText::new);
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
        let content_type = head.get_all("content-type").last();
        self.content_type = content_type.and_then(|value| CString::new(value).ok()).filter(|text| !text.is_empty());
        self.on_challenges(head);
    }

    /// Stores the authentication schemes that a response offers. A response without a challenge
    /// leaves those of the last challenge.
    pub(crate) fn on_challenges(&mut self, head: &ResponseHead) {
        let (server, proxy) = (auth_schemes(head, "www-authenticate"), auth_schemes(head, "proxy-authenticate"));
        self.auth_available = if server == 0 { self.auth_available } else { server };
        self.proxy_auth_available = if proxy == 0 { self.proxy_auth_available } else { proxy };
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
        self.effective_url = match facts.redirects {
            0 if has_scheme(url) => EffectiveUrl::Own { url: url.to_owned(), normal: OnceCell::new() },
            // The scheme may come from CURLOPT_DEFAULT_PROTOCOL.
            0 => {
                let url = format!("{}://{url}", outcome.target.scheme().as_str());
                EffectiveUrl::Own { url, normal: OnceCell::new() }
            }
            _ => EffectiveUrl::text(Some(target_url(&outcome.target).as_bytes())),
        };
        self.scheme = c_text(outcome.target.scheme().as_str());
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
        self.certificates = CertificateInfo::new(facts.certificates.as_deref().unwrap_or_default());
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
