//! The remedies that error messages name: what the user can do about a failed transfer.
//!
//! A remedy depends on the error, and on the options of its transfer: a status 401 has one remedy
//! with credentials and another without.

mod broken_reply;

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use haul::net::dns::is_onion;
use haul::pagination::PaginationError;
use haul::transfer_facts::{PhaseTimes, TransferFacts, TransferPhase};
use haul::{Error, ErrorKind};
use haul_policy::glob::GlobErrorKind;

use crate::did_you_mean;
use crate::plan::{NetrcFileText, StageArgs};
use crate::run::report::error_message::glob_flaw;
use crate::run::report::transfer_report::TransferReport;

/// The engine's message for a certificate that no trusted CA has issued.
pub(super) const UNKNOWN_ISSUER: &str = "no trusted certificate has signed it";
/// The engine's message for a server whose certificate is an untrusted, self-signed CA certificate.
pub(super) const SELF_SIGNED: &str = "it is a CA's own and not a trusted one";

/// The minimum duration of a failed transfer that its error message states. Messages for shorter
/// transfers leave the duration out.
const MIN_SHOWN_DURATION: Duration = Duration::from_secs(1);

/// Returns the remedy for an error, such as the name of an option that solves the problem. `failed`
/// is the transfer; `None` if it has not begun. Returns an empty text if no remedy is known.
pub(crate) fn remedy(error: &Error, failed: Option<&TransferReport<'_>>) -> Cow<'static, str> {
    if let Some(listing) = listing_error(error) {
        return listing_remedy(listing).into();
    }
    let facts = failed.map(|report| &*report.outcome.facts);
    let settings = failed.and_then(|report| report.settings);
    let cause = error.cause();
    match error.kind() {
        ErrorKind::PeerCertificate => certificate_remedy(&cause).into(),
        ErrorKind::Status => {
            // The agent passes on the text of an error alone.
            let status = error.status().or(facts.map(|facts| facts.status));
            status_remedy(status.unwrap_or(0), settings).into()
        }
        ErrorKind::Connect => connection_remedy(error, &cause, facts).into(),
        ErrorKind::Resolve => name_remedy(&cause, failed).into(),
        ErrorKind::ProxyResolve => PROXY_ORIGIN.into(),
        ErrorKind::Timeout => time_limit_remedy(&cause, facts, settings),
        ErrorKind::Write | ErrorKind::Read => file_remedy(error, &cause, failed.is_some()).into(),
        ErrorKind::UnsupportedScheme if facts.is_some_and(|facts| facts.requests > 0) && !is_about_redirect(&cause) => {
            broken_reply::invalid_reply_remedy(failed).into()
        }
        ErrorKind::UnsupportedScheme => scheme_remedy(&cause).into(),
        ErrorKind::Url => url_remedy(error, &cause).into(),
        ErrorKind::TlsHandshake if cause.contains("ECHConfigList") => {
            "--doh-url or --dns-servers asks for the server's HTTPS record; --ech true goes on without encryption"
                .into()
        }
        ErrorKind::TlsHandshake => broken_reply::handshake_remedy(&cause, settings),
        ErrorKind::EmptyReply => broken_reply::no_reply_remedy(failed).into(),
        ErrorKind::PartialBody => broken_reply::short_body_remedy(settings).into(),
        ErrorKind::Receive | ErrorKind::Send => broken_reply::broken_connection_remedy(&cause).into(),
        ErrorKind::Http2 | ErrorKind::Http2Stream => "--http1.1 does without HTTP/2".into(),
        ErrorKind::Http3 | ErrorKind::QuicConnect => "--http2 does without HTTP/3".into(),
        ErrorKind::Protocol => "the server breaks HTTP: -v shows its reply; tell the server's operator".into(),
        ErrorKind::TooManyRedirects => "--max-redirs N sets another limit, --no-location follows no redirect".into(),
        ErrorKind::ContentCoding if cause.contains("coding") => {
            "--raw stores the content as the server sends it".into()
        }
        ErrorKind::ContentCoding if cause.starts_with("broken") => {
            "the content is not what the server's Content-Encoding says; --raw stores it as it is sent".into()
        }
        ErrorKind::TooLarge if cause.ends_with("that a record may have") => {
            "store bodies in files with -o or -O, leave them out with --jsonl=no-body, or raise --max-memory".into()
        }
        ErrorKind::TooLarge if cause.contains("bytes that are allowed") => {
            "--max-filesize sets this limit: raise it, for example to 20M".into()
        }
        ErrorKind::Checksum => {
            "the content has changed, or is damaged or forged: do not use it; check the expected checksum at its source"
                .into()
        }
        ErrorKind::CertificateStatus => {
            "without --cert-status, haul does not ask for this response; the server's operator configures it".into()
        }
        ErrorKind::EchRequired if cause.contains("no keys") => {
            "the server has none of these keys any more; --ech false sends its name unencrypted".into()
        }
        ErrorKind::EchRequired => {
            "the server has other keys than those that were used: -v shows them, and --ech ecl:BASE64 uses them".into()
        }
        ErrorKind::CaFile => ca_file_remedy(error, &cause).into(),
        ErrorKind::ClientCertificate => client_certificate_remedy(error).into(),
        ErrorKind::Setup if cause.contains("lowest TLS version") => {
            "raise --tls-max, or lower --tlsv1.3 to --tlsv1.2".into()
        }
        ErrorKind::Setup if cause.starts_with("CSS selector") || cause.starts_with("JSONPath") => {
            "for example: --select 'a[href]' or --select-json '$.items[*].id'; more by 'haul --help --select'".into()
        }
        ErrorKind::Range => broken_reply::range_remedy(&cause, settings).into(),
        ErrorKind::Auth | ErrorKind::Proxy if cause.contains("gss_init_sec_context") => {
            "get a Kerberos ticket with kinit; klist shows those that you have".into()
        }
        ErrorKind::Auth if cause.contains("offers only") && cause.contains("Negotiate") => {
            "--negotiate answers with the Kerberos ticket of the user".into()
        }
        ErrorKind::Auth if cause.contains("offers only NTLM") => {
            "haul does not support NTLM; the server has to offer Basic, Digest or Negotiate".into()
        }
        ErrorKind::Auth if cause.contains("Negotiate") => "-v shows the reply; do not trust it".into(),
        ErrorKind::Auth => "--anyauth allows every scheme that haul supports".into(),
        _ => "".into(),
    }
}

/// Returns the remedy for an error, independent of the transfer's settings; `None` if no remedy is
/// known.
pub(crate) fn remedy_alone(error: &Error) -> Option<&'static str> {
    match remedy(error, None) {
        Cow::Borrowed("") | Cow::Owned(_) => None,
        Cow::Borrowed(text) => Some(text),
    }
}

/// Returns the duration of a failed transfer, the number of its attempts, and the phase in which it
/// failed, for a message. Returns an empty text for a short transfer that was tried once and whose
/// error names its phase.
pub(crate) fn duration_text(error: &Error, report: &TransferReport<'_>) -> String {
    let facts = &report.outcome.facts;
    let PhaseTimes { resolve, connect, tls, wait, receive, pause } = facts.phase_times;
    let time = resolve + connect + tls + wait + receive + pause;
    let mut parts = Vec::new();
    match (time >= MIN_SHOWN_DURATION, facts.retries) {
        (false, 0) => {}
        (true, 0) => parts.push(format!("after {:.1} s", time.as_secs_f64())),
        (false, retries) => parts.push(format!("after {} attempts", retries + 1)),
        (true, retries) => parts.push(format!("after {:.1} s and {} attempts", time.as_secs_f64(), retries + 1)),
    }
    parts.extend(phase_text(error, facts));
    match parts.is_empty() {
        true => String::new(),
        false => format!(" ({})", parts.join(", ")),
    }
}

/// Returns a text that says in which phase a transfer failed; `None` if the error message says so
/// itself.
fn phase_text(error: &Error, facts: &TransferFacts) -> Option<String> {
    if !matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Receive | ErrorKind::Send) {
        return None;
    }
    match facts.phase {
        TransferPhase::Wait => Some("while it waited for the reply".to_owned()),
        TransferPhase::Receive => Some(format!("after {} bytes of the body", facts.body_bytes)),
        _ => None,
    }
}

/// Returns the reason why a paginated listing cannot continue; `None` for other errors.
fn listing_error(error: &Error) -> Option<&PaginationError> {
    std::error::Error::source(error)?.downcast_ref()
}

fn listing_remedy(listing: &PaginationError) -> &'static str {
    match listing {
        PaginationError::OtherOrigin { .. } => "--paginate-any allows that",
        PaginationError::TooManyPages { .. } => "--paginate-max N sets another limit",
        PaginationError::Unusable { wants_url: true, .. } => {
            "--paginate-query NAME makes it the value of a query parameter"
        }
        _ => "",
    }
}

fn certificate_remedy(cause: &str) -> &'static str {
    let is_proxy = cause.starts_with("the proxy");
    if [UNKNOWN_ISSUER, SELF_SIGNED].iter().any(|why| cause.ends_with(why)) {
        return match is_proxy {
            true => {
                "if it is self-signed, trust it with --proxy-cacert FILE, or skip verification with --proxy-insecure"
            }
            false => "if it is self-signed, trust it with --cacert FILE, or skip verification with -k",
        };
    }
    match (cause, is_proxy) {
        (cause, false) if cause.contains("not valid for") => {
            "use one of its names in the URL, or skip verification with -k"
        }
        (cause, false) if cause.contains("expired") => {
            "the server's operator must renew it; -k skips verification, also that of the name"
        }
        (cause, false) if cause.contains("not valid before") => "check the clock of this computer",
        _ => "",
    }
}

fn url_remedy(error: &Error, cause: &str) -> &'static str {
    match glob_flaw(error).map(|flaw| flaw.kind) {
        Some(GlobErrorKind::Range) => {
            "a range goes from the smaller to the larger value, such as [1-5]; -g takes brackets literally"
        }
        Some(_) => "-g takes braces and brackets literally",
        None if cause.contains("port number") => "correct the port, or leave it out",
        None => "",
    }
}

fn status_remedy(status: u16, settings: Option<&StageArgs>) -> &'static str {
    let has_credentials = settings.is_some_and(|stage| {
        let request = &stage.request;
        let auth = &request.auth;
        let has_field = request.fields.iter().any(|field| field.name().eq_ignore_ascii_case("authorization"));
        auth.user.is_some()
            || auth.bearer.is_some()
            || auth.signature.is_some()
            || auth.message_signature.is_some()
            || has_field
    });
    let reads_netrc = settings.is_some_and(|stage| stage.request.auth.netrc != NetrcFileText::Off);
    match status {
        401 if has_credentials || reads_netrc => {
            "the server does not accept these credentials: check user and password, or the token"
        }
        401 => "give credentials with -u USER, --oauth2-bearer TOKEN or --netrc",
        403 if has_credentials => "these credentials do not permit it; use those of another user",
        403 => "it may need credentials (-u), cookies (-b) or another client name (-A)",
        404 | 410 => "the server has nothing there: check the path of the URL",
        405 => "the server does not take this method there: leave out -X, or name another method with it",
        407 => PROXY_LOGIN,
        429 => "ask less often with --rate or --rate-host; --retry N tries again after the time that the server names",
        413 => "the server takes no body of this size; send less",
        416 => "the server does not have that range: check -r, or the size of the file that -C continues",
        500.. => "the fault is the server's: try later, or let haul retry with --retry N",
        _ => "",
    }
}

const PROXY_LOGIN: &str = "the proxy wants credentials; give them with -U USER:PASSWORD";
const PROXY_ORIGIN: &str =
    "the proxy comes from -x or a variable such as https_proxy; --noproxy '*' connects without one";
const PROXY_ADDRESS: &str = "this is the proxy, which comes from -x or a variable such as https_proxy: check its address, \
                             or connect without it with --noproxy '*'";

fn connection_remedy(error: &Error, cause: &str, facts: Option<&TransferFacts>) -> &'static str {
    let is_proxy = facts.is_some_and(|facts| facts.proxy_used);
    if let Some(status) = error.status() {
        return if status == 407 { PROXY_LOGIN } else { PROXY_ORIGIN };
    }
    // The agent passes on the text alone.
    let has = |words: &str| cause.contains(words);
    match () {
        () if is_proxy => PROXY_ADDRESS,
        () if has("Connection refused") => "nothing listens on that port: check port and server",
        () if has("unreachable") || has("No route to host") => {
            "check the network; -4 and -6 choose the kind of address"
        }
        () => "",
    }
}

fn name_remedy(cause: &str, failed: Option<&TransferReport<'_>>) -> &'static str {
    match failed {
        Some(report) if is_onion(report.outcome.target.host_text()) => {
            "use a SOCKS proxy that resolves it, with -x socks5h://"
        }
        Some(report) if matches!(report.outcome.target.host_text(), "http" | "https") => {
            "a colon is missing after http or https: write https://HOST/PATH"
        }
        _ if cause.contains("reserved") => "use a name that can exist",
        _ => "check the spelling and the network; --dns-servers asks another name server",
    }
}

/// Returns the remedy for an exceeded time limit: the option that sets the limit, and its value.
fn time_limit_remedy(cause: &str, facts: Option<&TransferFacts>, settings: Option<&StageArgs>) -> Cow<'static, str> {
    let Some(transfer) = settings.map(|stage| &stage.transfer) else { return "".into() };
    let is_connecting = facts.is_some_and(|facts| facts.requests == 0);
    let limit = |option: &str, limit: Duration| format!("raise {option}, which is {} s", limit.as_secs_f64()).into();
    if cause.contains("silent for") {
        return "--stall-time SECONDS sets another limit".into();
    }
    if cause.contains("slow") {
        return "--speed-limit and --speed-time set this limit".into();
    }
    match (transfer.connect_timeout, transfer.max_time) {
        (Some(connect), Some(max)) if is_connecting && connect < max => limit("--connect-timeout", connect),
        (Some(connect), None) if is_connecting => limit("--connect-timeout", connect),
        (None, None) if is_connecting => "--connect-timeout SECONDS sets another limit".into(),
        (_, Some(max)) => limit("--max-time", max),
        _ => "".into(),
    }
}

/// Returns the remedy for an error of a file. `is_output` is true if it is the output of a
/// transfer, whose directory `--create-dirs` makes.
fn file_remedy(error: &Error, cause: &str, is_output: bool) -> &'static str {
    if cause.starts_with("its values are no rows") {
        return "use --jsonl, or expressions that find the same number of values";
    }
    match (error.kind(), error.io_source().map(io::Error::kind)) {
        (ErrorKind::Write, Some(io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)) if is_output => {
            "the directory does not exist; --create-dirs makes it"
        }
        (ErrorKind::Write, Some(io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)) => {
            "the file or its directory does not exist"
        }
        (ErrorKind::Write, Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)) => {
            "-o and --output-dir name another place"
        }
        (ErrorKind::Write, Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)) => {
            "free some space, or choose another place with --output-dir"
        }
        (ErrorKind::Read, Some(io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)) => {
            "check the name of the file; - is standard input"
        }
        (ErrorKind::Read, Some(io::ErrorKind::PermissionDenied)) => "you may not read this file: check its permissions",
        (ErrorKind::Write, Some(io::ErrorKind::IsADirectory)) => "-O --output-dir DIRECTORY names the file in it",
        _ => "",
    }
}

/// Returns the remedy for an error in a file of CA certificates.
fn ca_file_remedy(error: &Error, cause: &str) -> &'static str {
    match error.io_source().map(io::Error::kind) {
        _ if cause.contains("No such file") => "check the name after --cacert or --capath",
        Some(io::ErrorKind::PermissionDenied) => "you may not read this file: check its permissions",
        _ if cause.contains("of this system") || cause.contains("on this system") || cause.contains("the system's") => {
            "install the package ca-certificates, or name a file with --cacert"
        }
        _ => "--cacert needs a file in PEM, with blocks that begin with -----BEGIN CERTIFICATE-----",
    }
}

/// Returns the remedy for an error in a client certificate or its private key.
fn client_certificate_remedy(error: &Error) -> &'static str {
    match error.io_source().map(io::Error::kind) {
        Some(io::ErrorKind::NotFound) => "check the names after --cert and --key",
        _ => "--cert names a certificate in PEM, --key its private key, --pass the password of the key",
    }
}

/// Returns true if `cause`, the text of an error about an unsupported scheme, says that a redirect
/// led to the URL with this scheme. An error of this kind that does not say so, but comes after a
/// request, means that the response is not valid HTTP.
fn is_about_redirect(cause: &str) -> bool {
    cause.contains("redirect")
}

fn scheme_remedy(cause: &str) -> &'static str {
    let scheme = cause.split('"').nth(1).unwrap_or_default();
    match did_you_mean::closest(scheme, ["http", "https"]).first() {
        Some(&"http") => "did you mean http://?",
        Some(_) => "did you mean https://?",
        None if is_about_redirect(cause) => "haul has http and https; --no-location -v shows where the redirect leads",
        None if cause.contains("not supported") => "haul has http and https",
        None => "",
    }
}

#[cfg(test)]
mod tests;
