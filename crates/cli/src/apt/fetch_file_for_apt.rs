//! Fetches one file for apt: sends the request to the server, and the messages to apt.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haul::interrupt_callback::InterruptCallback;
use haul::net::dns::{AddressFamily, is_onion};
use haul::net::proxy::ProxyOptions;
use haul::net::tls::{ClientCertificateFiles, TlsOptions};
use haul::request::{Request, RequestOptions, RequestOverrides};
use haul::{Client, Error, ErrorKind, Response, Target};
use haul_policy::auth;
use haul_policy::proxy::{Proxy, ProxyEnvironment};
use haul_policy::redirect::RedirectRules;
use haul_policy::retry::RetryRules;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::auth_conf::AptAuthFiles;
use super::config::AptConfig;
use super::download_file::{self, PartialFileSizeAndTime};
use super::drop_privileges;
use super::message::AptMessage;
use crate::date;
use crate::usage_error::one_line;

/// The maximum number of parallel fetches from one host, each on its own connection. (apt's own
/// method instead pipelines up to ten requests on one connection.)
const PARALLEL_MAX: usize = 4;
/// The maximum length, 64 KiB, of an error response's content that is read and discarded, so that
/// the connection can be reused.
const DRAIN_MAX: u64 = 64 << 10;
/// The characters of a path that some servers misread, with their percent-encoded form. For
/// example, S3 reads `+` as a space.
const CHARACTERS_TO_ENCODE: [(&str, &str); 3] = [("+", "%2b"), ("~", "%7e"), (" ", "%20")];

/// Fetches files for apt, with the options of apt's configuration.
pub(super) struct AptAcquirer {
    client: Client,
    config: AptConfig,
    credentials: AptAuthFiles,
}

/// The reason why a file could not be fetched, which is sent to apt as `400 URI Failure`.
struct UriFailureReason {
    message: String,
    /// The value of the message field `FailReason`, such as `HttpError404`; `None` if the field is
    /// not sent.
    reason: Option<String>,
    /// True if a retry or another mirror may succeed (the message field `Transient-Failure`).
    is_transient: bool,
}

impl From<String> for UriFailureReason {
    fn from(message: String) -> Self {
        Self { message, reason: None, is_transient: false }
    }
}

impl UriFailureReason {
    /// Returns the failure for a file whose size differs from the size that apt expects. `how`
    /// describes the difference.
    fn wrong_size(how: &str) -> Self {
        let reason = Some("MaximumSizeExceeded".to_owned());
        Self { message: format!("File has unexpected size {how}"), reason, is_transient: false }
    }
}

/// The error that ends the fetch of one file for apt.
enum AptFileFetchError {
    /// Reading apt's messages or writing messages to apt failed. This ends the program.
    AptPipe(io::Error),
    File(UriFailureReason),
}

impl From<io::Error> for AptFileFetchError {
    fn from(error: io::Error) -> Self {
        Self::AptPipe(error)
    }
}

impl From<UriFailureReason> for AptFileFetchError {
    fn from(failure: UriFailureReason) -> Self {
        Self::File(failure)
    }
}

impl From<String> for AptFileFetchError {
    fn from(message: String) -> Self {
        UriFailureReason::from(message).into()
    }
}

impl From<Error> for AptFileFetchError {
    fn from(error: Error) -> Self {
        failure_reason(&error).into()
    }
}

/// A file that apt requests by `600 URI Acquire`.
struct AptRequestedFile<'a> {
    asked: &'a AptMessage,
    uri: &'a str,
    path: &'a Path,
    /// The scheme of the file's URI, such as `https` or `tor+https`.
    method: &'a str,
    target: Target,
}

impl<'a> AptRequestedFile<'a> {
    fn from_message(asked: &'a AptMessage, uri: &'a str, path: &'a Path) -> Result<Self, AptFileFetchError> {
        let (method, url) = split_uri(uri);
        let target = Target::parse(&url).map_err(|error| error.to_string())?;
        Ok(Self { asked, uri, path, method, target })
    }
}

/// The meaning of a response for the file that apt requests. It follows from the status and the
/// header fields of the response.
enum AptResponseMeaning {
    /// The response has the content of the requested file, beginning at the offset `start` (in
    /// bytes).
    Content {
        start: u64,
    },
    /// The existing file is already complete; its size in bytes is `size`.
    Whole {
        size: u64,
    },
    /// The existing partial file is not the beginning of the server's content, so that the whole
    /// content must be requested again.
    Changed,
    /// The server's content has not changed since the date of apt's copy (status 304).
    Unchanged,
    /// A redirect. apt itself follows it, by a new request.
    Elsewhere,
    Refused,
}

impl AptAcquirer {
    /// Reads apt's credentials, gives up root's rights, and creates the HTTP client.
    ///
    /// # Errors
    /// A message for apt's user that says which of these steps failed.
    pub(super) fn new(config: AptConfig) -> Result<Self, String> {
        let credentials = AptAuthFiles::read(&config);
        drop_privileges::become_user_named(config.value("apt::sandbox::user"))?;
        // Now, since it may start threads, which keep the rights they start with.
        Ok(Self { client: Client::new(), config, credentials })
    }

    /// Returns the number of parallel fetches allowed from the host of the requested URI: 1 if a
    /// rate limit is set or pipelining is off, else at most [`PARALLEL_MAX`].
    pub(super) fn max_parallel(&self, asked: &AptMessage) -> usize {
        let Ok(wanted) = AptRequestedFile::from_message(asked, asked.get("URI").unwrap_or_default(), Path::new(""))
        else {
            return 1;
        };
        let number = |name| self.config.get(wanted.method, name, wanted.target.host_text())?.parse::<usize>().ok();
        match (number("dl-limit"), number("pipeline-depth")) {
            (Some(1..), _) | (_, Some(0)) => 1,
            (_, depth) => depth.unwrap_or(PARALLEL_MAX).min(PARALLEL_MAX),
        }
    }

    /// Serves one `600 URI Acquire` message of apt: fetches the file, and reports the result.
    ///
    /// # Errors
    /// The connection to apt failed.
    pub(super) fn acquire(
        &self,
        asked: &AptMessage,
        say: &mut impl FnMut(&AptMessage) -> io::Result<()>,
    ) -> io::Result<()> {
        let (Some(uri), Some(path)) = (asked.get("URI"), asked.get("Filename")) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let wanted = AptRequestedFile::from_message(asked, uri, Path::new(path));
        let answer = match wanted.and_then(|wanted| self.fetch(&wanted, say)) {
            Ok(answer) => answer,
            Err(AptFileFetchError::File(failure)) => AptMessage::new(400, "URI Failure")
                .with_optional_field("FailReason", failure.reason)
                .with_field("Message", failure.message)
                .with_field("URI", uri)
                .with_optional_field("Transient-Failure", failure.is_transient.then_some("true")),
            Err(AptFileFetchError::AptPipe(error)) => return Err(error),
        };
        say(&answer)
    }

    fn fetch(
        &self,
        wanted: &AptRequestedFile<'_>,
        say: &mut impl FnMut(&AptMessage) -> io::Result<()>,
    ) -> Result<AptMessage, AptFileFetchError> {
        let AptRequestedFile { asked, uri, path, target, .. } = wanted;
        let authorization = self.authorization(target, uri, say)?;
        let options = Arc::new(RequestOptions { authorization, ..self.options(wanted)? });
        let done =
            AptMessage::new(201, "URI Done").with_field("URI", uri).with_field("Filename", path.to_string_lossy());
        let mut partial = PartialFileSizeAndTime::read(path).filter(|_| self.is_enabled(wanted, "allowranges"));
        if let Some(partial) = partial.filter(|partial| download_file::is_complete_file(path, partial.size, asked)) {
            return already_complete(wanted, done, partial.size, say);
        }
        let (mut response, start) = loop {
            let own =
                RequestOverrides { fields: conditional_fields(asked, partial.as_ref()), ..RequestOverrides::default() };
            let sent = self.client.send(Request::new(target.clone(), Arc::clone(&options), own));
            let mut response = sent.map_err(|error| request_failure_reason(wanted, &error))?;
            match self.response_meaning(&response, wanted, partial.as_ref()) {
                AptResponseMeaning::Content { start } => break (response, start),
                AptResponseMeaning::Whole { size } => {
                    drain(&mut response);
                    return already_complete(wanted, done, size, say);
                }
                AptResponseMeaning::Changed => {
                    drain(&mut response);
                    let _ = fs::remove_file(path);
                    partial = None;
                }
                AptResponseMeaning::Unchanged => {
                    let _ = fs::remove_file(path);
                    let time = asked.get("Last-Modified").unwrap_or_default();
                    return Ok(done.with_field("IMS-Hit", "true").with_field("Last-Modified", time));
                }
                AptResponseMeaning::Elsewhere => {
                    let led = self.redirect(wanted, &response);
                    drain(&mut response);
                    return Ok(led?);
                }
                AptResponseMeaning::Refused => {
                    let failure = self.refusal_reason(&response);
                    drain(&mut response);
                    return Err(failure.into());
                }
            }
        };
        let date = last_modified(&response);
        let modified = date.map(apt_date);
        let size = response.content_length().and_then(|length| start.checked_add(length));
        let resumed = (start > 0).then(|| start.to_string());
        let began = AptMessage::new(200, "URI Start").with_field("URI", uri);
        let began = began
            .with_optional_field("Size", size.map(|size| size.to_string()))
            .with_optional_field("Last-Modified", modified.as_ref());
        say(&began.with_optional_field("Resume-Point", resumed.as_ref()))?;
        if let Some((size, wanted)) = size.and_then(|size| Some((size, download_file::wanted_size(asked, size)?))) {
            download_file::keep_partial_file(path);
            return Err(UriFailureReason::wrong_size(&format!("({size} != {wanted}). Mirror sync in progress?")).into());
        }
        let date = date.or(partial.filter(|_| start > 0).map(|partial| partial.modified));
        let digests = download_file::receive_to_file(&mut response, path, start, date, asked)?;
        let done = with_digests(done, digests).with_optional_field("Resume-Point", resumed);
        Ok(done.with_optional_field("Last-Modified", modified))
    }

    /// Decides what a response means for the requested file. `partial` is the partial file from an
    /// earlier download; `None` if there is none.
    fn response_meaning(
        &self,
        response: &Response,
        wanted: &AptRequestedFile<'_>,
        partial: Option<&PartialFileSizeAndTime>,
    ) -> AptResponseMeaning {
        let leads_on = || self.is_enabled(wanted, "allowredirect") && response.header("location").is_some();
        // Some servers and caches do not mind If-Range.
        let is_of = |partial: &PartialFileSizeAndTime| {
            last_modified(response).is_none_or(|date| seconds(date) == seconds(partial.modified))
        };
        let is_all = |partial: &PartialFileSizeAndTime| match download_file::has_trusted_digest(wanted.asked) {
            true => download_file::has_expected_digest(wanted.path, wanted.asked),
            false => download_file::ends_at(response, partial.size),
        };
        match (response.status(), partial) {
            (200, _) => AptResponseMeaning::Content { start: 0 },
            (206, Some(partial)) if download_file::begins_at(response, partial.size) && is_of(partial) => {
                AptResponseMeaning::Content { start: partial.size }
            }
            (416, Some(partial)) if is_all(partial) => AptResponseMeaning::Whole { size: partial.size },
            (206 | 416, Some(_)) => AptResponseMeaning::Changed,
            (304, _) => AptResponseMeaning::Unchanged,
            (301 | 302 | 303 | 307 | 308, _) if leads_on() => AptResponseMeaning::Elsewhere,
            (201..=299, None) => AptResponseMeaning::Content { start: 0 },
            _ => AptResponseMeaning::Refused,
        }
    }

    /// Returns the value of the header field `Authorization` from apt's credentials. Returns `None`
    /// if apt has no credentials for the URI, or if the URI itself contains credentials. Calls
    /// `say` with a warning for each matching entry of apt's `auth.conf` that may not be used.
    fn authorization(
        &self,
        target: &Target,
        uri: &str,
        say: &mut impl FnMut(&AptMessage) -> io::Result<()>,
    ) -> Result<Option<Vec<u8>>, AptFileFetchError> {
        if target.userinfo().is_some() {
            return Ok(None);
        }
        let (login, warnings) = self.credentials.find(target);
        for warning in warnings {
            say(&AptMessage::new(104, "Warning").with_field("URI", uri).with_field("Message", warning))?;
        }
        let login = login.map(|(user, password)| auth::Credentials::new(user, password)).transpose();
        Ok(login.map_err(|error| error.to_string())?.map(|login| login.basic_authorization()))
    }

    /// Returns the boolean configuration item `name` of apt for this file's apt method and host.
    /// Returns true if the item is not set.
    fn is_enabled(&self, wanted: &AptRequestedFile<'_>, name: &str) -> bool {
        self.config.is_enabled(wanted.method, name, wanted.target.host_text(), true)
    }

    fn options(&self, wanted: &AptRequestedFile<'_>) -> Result<RequestOptions, String> {
        let (config, AptRequestedFile { asked, method, target, .. }) = (&self.config, wanted);
        let host = target.host_text();
        let get = |name| config.get(method, name, host);
        let number = |name| get(name).and_then(|text| text.parse::<u64>().ok());
        let is_on = |name, default| config.is_enabled(method, name, host, default);
        let patience = Duration::from_secs(number("timeout").unwrap_or(30));
        let mut options = RequestOptions {
            redirects: RedirectRules { follow: false, ..RedirectRules::default() },
            retry: RetryRules { max: 0, ..RetryRules::default() },
            max_size: asked.get("Maximum-Size").and_then(|size| size.parse().ok()),
            limit_rate: number("dl-limit").filter(|limit| *limit > 0).map(|limit| limit << 10),
            read_timeout: Some(patience),
            ..RequestOptions::default()
        };
        // Two methods must not write one file: the next apt starts its own.
        options.interrupt = is_on("dependonstdin", true).then(|| InterruptCallback::new(has_apt_exited));
        options.connect.timeout = patience;
        if let Some(agent) = get("user-agent") {
            options.user_agent = Some(agent.into());
        }
        options.referer = get("referer").map(Into::into);
        if config.bool_value("acquire::forceipv4", false) {
            options.family = AddressFamily::V4;
        } else if config.bool_value("acquire::forceipv6", false) {
            options.family = AddressFamily::V6;
        }
        options.tls = self.tls(method, host);
        options.tls.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Caches on the way must not give an index of yesterday.
        let cached = match asked.get("Index-File") {
            _ if is_on("no-cache", false) => Some("no-cache".to_owned()),
            Some("true") => Some(format!("max-age={}", number("max-age").unwrap_or(0))),
            _ if is_on("no-store", false) => Some("no-store".to_owned()),
            _ => None,
        };
        options.fields.extend(cached.map(|how| ("Cache-Control".to_owned(), how.into_bytes())));
        // Servers that negotiate give a compressed index in place of one that they lack.
        let is_bare = !target.path().rsplit('/').next().unwrap_or_default().contains('.');
        if is_bare && is_on("sendaccept", true) {
            options.fields.push(("Accept".to_owned(), b"text/*".to_vec()));
        }
        let mut proxy = ProxyOptions::default();
        // What apt has found out by `Proxy-Auto-Detect` comes with the file.
        match asked.get("Proxy").filter(|text| !text.is_empty()).or_else(|| get("proxy")) {
            Some("DIRECT" | "false") => {}
            Some(text) => proxy.proxy = Some(Proxy::parse(text).map_err(|error| error.to_string())?),
            None if method.starts_with("tor+") => {
                // Another user for each host is another way through Tor.
                let user: String = host.chars().filter(char::is_ascii_alphanumeric).take(255).collect();
                let text = format!("socks5h://apt-transport-tor:{user}@127.0.0.1:9050");
                proxy.proxy = Some(Proxy::parse(&text).map_err(|error| error.to_string())?);
            }
            None => proxy.environment = ProxyEnvironment::from_variables(environment_variable),
        }
        let host = proxy.proxy.as_ref().map(|proxy| proxy.host_text().to_owned()).unwrap_or_default();
        proxy.tls = self.tls("https", &host);
        options.proxy = Some(proxy);
        Ok(options)
    }

    fn tls(&self, method: &str, host: &str) -> TlsOptions {
        let get = |name| self.config.get(method, name, host);
        let mut options = TlsOptions::default();
        options.ca_file = get("cainfo").map(Into::into);
        options.crl_file = get("crlfile").map(Into::into);
        options.verify = self.config.is_enabled(method, "verify-peer", host, true);
        options.common_name = true;
        options.identity = get("sslcert").map(|certificate| ClientCertificateFiles {
            certificate: certificate.into(),
            key: get("sslkey").map(Into::into),
        });
        options
    }

    /// Returns the message `103 Redirect`, which makes apt request the target of a redirect. The
    /// URI in the message names the apt method that can fetch the target, such as `https` or
    /// `tor+https`.
    fn redirect(&self, wanted: &AptRequestedFile<'_>, response: &Response) -> Result<AptMessage, UriFailureReason> {
        let AptRequestedFile { uri, method, target, .. } = wanted;
        let location = response.head().get("location").unwrap_or_default();
        let rules = RedirectRules::default();
        let status = response.status();
        let hop = haul_policy::redirect::redirected_request(
            &rules,
            0,
            status,
            Some(location),
            "GET",
            target,
            &target.origin(),
        );
        let next = match hop {
            Ok(Some(hop)) => hop.target,
            Ok(None) => return Err(self.refusal_reason(response)),
            Err(error) => return Err(error.to_string().into()),
        };
        let (scheme, url) = (next.scheme().as_str(), next.to_url());
        // A URI that was fetched by Tor stays with Tor. `https+http` instead means a method that
        // takes both schemes.
        let (by, to) = match method.split_once('+') {
            Some((implementer, _)) if implementer != scheme => {
                (format!("{implementer}+{scheme}"), format!("{implementer}+{url}"))
            }
            _ => (scheme.to_owned(), url),
        };
        if is_tls(method) && !is_tls(scheme) {
            return Err(format!("Redirection from {method} to '{to}' is forbidden").into());
        }
        if by == *method && next.to_url() == target.to_url() {
            let reason = Some("RedirectionLoop".to_owned());
            return Err(UriFailureReason {
                message: "Redirection loop encountered".to_owned(),
                reason,
                is_transient: false,
            });
        }
        Ok(AptMessage::new(103, "Redirect").with_field("URI", uri).with_field("New-URI", to))
    }

    /// Returns the failure for an error status. The failure's message has the form that apt's own
    /// method prints, because users search apt's output for this form.
    fn refusal_reason(&self, response: &Response) -> UriFailureReason {
        let status = response.status();
        let reason = String::from_utf8_lossy(response.head().reason()).into_owned();
        let peer = response.facts().peer.filter(|_| self.config.bool_value("acquire::failure::showip", true));
        let peer = peer.map(|peer| format!(" [IP: {} {}]", peer.ip(), peer.port())).unwrap_or_default();
        UriFailureReason {
            message: one_line(&format!("{status}  {reason}{peer}")),
            reason: Some(format!("HttpError{status}")),
            is_transient: matches!(status, 408 | 429 | 500 | 502 | 503 | 504 | 599),
        }
    }
}

/// Returns true if an apt method or URL scheme uses TLS, such as `https` or `tor+https`.
fn is_tls(method: &str) -> bool {
    method.rsplit('+').next() == Some("https")
}

/// Returns true if apt has closed the pipe to standard input. Unread messages may remain in it.
fn has_apt_exited() -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default())).is_ok() && fds[0].revents().contains(PollFlags::HUP)
}

/// Reports to apt that the existing file is already complete, so that nothing was fetched.
fn already_complete(
    wanted: &AptRequestedFile<'_>,
    done: AptMessage,
    size: u64,
    say: &mut impl FnMut(&AptMessage) -> io::Result<()>,
) -> Result<AptMessage, AptFileFetchError> {
    let AptRequestedFile { asked, uri, path, .. } = wanted;
    let size = size.to_string();
    say(&AptMessage::new(200, "URI Start")
        .with_field("URI", uri)
        .with_field("Size", &size)
        .with_field("Resume-Point", &size))?;
    let digests = download_file::file_digests(path, asked).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(with_digests(done.with_field("Resume-Point", &size), digests))
}

/// Returns the value of the proxy variable `name` in the environment; `None` if it is unset or
/// empty. As in apt, the value of `http_proxy` is used if `https_proxy` is missing.
fn environment_variable(name: &str) -> Option<Vec<u8>> {
    let of = |name| {
        haul::trusted_environment_variables::variable(name).map(OsString::into_vec).filter(|value| !value.is_empty())
    };
    if name == "https_proxy" { of("https_proxy").or_else(|| of("http_proxy")) } else { of(name) }
}

/// Splits a URI into apt's method, such as `https` or `tor+https`, and the URL to request.
fn split_uri(uri: &str) -> (&str, String) {
    let Some((method, place)) = uri.split_once("://") else { return ("", uri.to_owned()) };
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let path = CHARACTERS_TO_ENCODE.iter().fold(path.to_owned(), |path, (plain, safe)| path.replace(plain, safe));
    let scheme = method.rsplit('+').next().unwrap_or(method);
    (method, format!("{scheme}://{host}{path}"))
}

fn last_modified(response: &Response) -> Option<SystemTime> {
    response.header("last-modified").and_then(|time| date::parse_http_date(time.as_bytes()))
}

/// Formats a time as apt does: as an HTTP date that ends in `+0000` where HTTP has `GMT`.
fn apt_date(time: SystemTime) -> String {
    date::http_date(seconds(time)).replace("GMT", "+0000")
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns the header fields that make the request for a file conditional. These are `Range` and
/// `If-Range` if there is a partial file to resume, else `If-Modified-Since` if apt names a date.
fn conditional_fields(asked: &AptMessage, partial: Option<&PartialFileSizeAndTime>) -> Vec<(String, Vec<u8>)> {
    let field = |name: &str, value: String| (name.to_owned(), value.into_bytes());
    match (partial, asked.get("Last-Modified")) {
        (Some(partial), _) => {
            let modified = date::http_date(seconds(partial.modified));
            vec![field("Range", format!("bytes={}-", partial.size)), field("If-Range", modified)]
        }
        (None, Some(time)) => {
            let since = date::parse_http_date(time.as_bytes())
                .map(|time| field("If-Modified-Since", date::http_date(seconds(time))));
            since.into_iter().collect()
        }
        (None, None) => Vec::new(),
    }
}

/// Returns the failure to report to apt for a request that got no response.
fn request_failure_reason(wanted: &AptRequestedFile<'_>, error: &Error) -> UriFailureReason {
    match error.kind() {
        ErrorKind::TooLarge => download_file::keep_partial_file(wanted.path),
        // No other time is better, nor any that apt knows of for a name that is not found.
        ErrorKind::Resolve if is_onion(wanted.target.host_text()) => {
            return format!("{}; tor+http and tor+https go there by Tor", one_line(&error.cause())).into();
        }
        _ => {}
    }
    failure_reason(error)
}

fn failure_reason(error: &Error) -> UriFailureReason {
    let reason = match error.kind() {
        ErrorKind::Timeout => Some("Timeout"),
        // A status comes from a proxy, which was reached.
        ErrorKind::Connect if error.status().is_none() => Some("ConnectionRefused"),
        ErrorKind::Resolve | ErrorKind::ProxyResolve => Some("ResolveFailure"),
        ErrorKind::TooLarge => return UriFailureReason::wrong_size(&one_line(&error.cause())),
        _ => None,
    };
    let broke = matches!(
        error.kind(),
        ErrorKind::Timeout
            | ErrorKind::PartialBody
            | ErrorKind::EmptyReply
            | ErrorKind::Send
            | ErrorKind::Receive
            | ErrorKind::Http2
            | ErrorKind::Http2Stream
    );
    let is_transient = broke || error.is_connect();
    UriFailureReason { message: one_line(&error.cause()), reason: reason.map(str::to_owned), is_transient }
}

fn with_digests(done: AptMessage, digests: Vec<(String, String)>) -> AptMessage {
    digests.into_iter().fold(done, |done, (name, value)| done.with_field(&name, value))
}

/// Reads and discards at most [`DRAIN_MAX`] bytes of a response, so that the connection of a short
/// response can be reused.
fn drain(response: &mut Response) {
    let _ = io::copy(&mut response.take(DRAIN_MAX), &mut io::sink());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_paths_percent_encode_ambiguous_characters() {
        assert_eq!(split_uri("http://h:80/p/a_1+b~2.deb").1, "http://h:80/p/a_1%2bb%7e2.deb");
        assert_eq!(split_uri("http://u+x@h").1, "http://u+x@h");
        assert_eq!(split_uri("https://h/a%2bb c").1, "https://h/a%2bb%20c");
        assert_eq!(split_uri("tor+https://h/a"), ("tor+https", "https://h/a".to_owned()));
    }

    #[test]
    fn conditional_request_uses_date_of_existing_file() {
        let asked = AptMessage::new(600, "URI Acquire").with_field("Last-Modified", "Wed, 01 May 2024 08:00:00 GMT");
        assert_eq!(conditional_fields(&asked, None)[0].0, "If-Modified-Since");
        let partial = PartialFileSizeAndTime { size: 7, modified: UNIX_EPOCH + Duration::from_secs(1_714_550_400) };
        let fields = conditional_fields(&asked, Some(&partial));
        assert_eq!(fields[0], ("Range".to_owned(), b"bytes=7-".to_vec()));
        assert_eq!(fields[1], ("If-Range".to_owned(), b"Wed, 01 May 2024 08:00:00 GMT".to_vec()));
    }
}
