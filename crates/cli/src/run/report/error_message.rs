//! The error message of a failed transfer: one line, in haul's or curl's words.
//!
//! haul's message contains the URL, the error and its cause. The curl persona prints curl's
//! message, because scripts search for it. Where curl has many messages (as for TLS), the cause is
//! printed as it is.

use std::time::Duration;

use haul::net::dns::is_onion;
use haul::trace::system_error_text;
use haul::transfer::TransferOutcome;
use haul::{Error, ErrorKind, ResponseHead, Target};
use haul_policy::glob::GlobError;
use haul_policy::retry::{AttemptOutcome as Trouble, is_transient_status};
use haul_policy::target::Scheme;

use crate::program_persona::ProgramPersona;
use crate::run::report::remedy::{self, SELF_SIGNED, UNKNOWN_ISSUER};
use crate::run::report::transfer_report::TransferReport;
use crate::stderr_terminal::MessageColors;
use crate::usage_error::mark_position;

/// Returns the line that is printed on standard error for an error. `failed` is the failed
/// transfer; `None` if the transfer did not begin.
pub(crate) fn error_line(persona: ProgramPersona, error: &Error, failed: Option<&TransferReport<'_>>) -> String {
    colored_line(persona, error, failed, MessageColors::default())
}

/// Returns the line that is printed on standard error for an error, in colours.
pub(crate) fn colored_line(
    persona: ProgramPersona,
    error: &Error,
    failed: Option<&TransferReport<'_>>,
    colors: MessageColors,
) -> String {
    match persona {
        // Never cut: the cause is at the end, and a URL may be long.
        ProgramPersona::Haul => {
            let text = crate::usage_error::one_line(&error.to_string());
            let duration = failed.map(|report| remedy::duration_text(error, report)).unwrap_or_default();
            let remedy = remedy::remedy(error, failed);
            let separator = if remedy.is_empty() { "" } else { "; " };
            let remedy = colors.remedy(&remedy);
            colors.message(&format!("haul: ({}) {text}{duration}{separator}{remedy}", error.exit_code()))
        }
        ProgramPersona::Curl => curl_line(error, failed.map(|report| report.outcome)),
    }
}

/// Returns the line that curl prints on standard error for an error. `outcome` is `None` if the
/// transfer did not begin.
pub(crate) fn curl_line(error: &Error, outcome: Option<&TransferOutcome>) -> String {
    if is_lost_at_end(error, outcome) {
        return "curl: Failed writing body".to_owned();
    }
    format!("curl: ({}) {}", error.exit_code(), haul_text(error, outcome))
}

/// Returns the message for a file other than the response body that could not be written. If haul
/// acts as curl, the message is a warning, because such an error does not change curl's exit code.
pub(crate) fn side_output_error(persona: ProgramPersona, error: &Error) -> String {
    match persona {
        ProgramPersona::Haul => error_line(persona, error, None),
        ProgramPersona::Curl => format!("Warning: {}", crate::usage_error::one_line(&error.to_string())),
    }
}

/// Returns the warning that curl prints before a retry. It contains `wait`, the pause before the
/// retry in seconds, and `left`, the number of remaining retries.
pub(crate) fn retry_notice(trouble: Trouble, wait: Duration, left: u32) -> String {
    let problem = match trouble {
        Trouble::Status(status) if is_transient_status(status) => ": HTTP error",
        Trouble::ConnectRefused => ": connection refused",
        Trouble::ConnectTimeout | Trouble::Timeout | Trouble::Dns { .. } => ": timeout",
        _ => "(retrying all errors)",
    };
    let (whole, rest) = (wait.as_secs(), wait.subsec_millis());
    let fraction = if rest == 0 { String::new() } else { format!(".{rest:03}") };
    let s = if (whole, rest) == (1, 0) { "" } else { "s" };
    let tries = if left == 1 { "retry" } else { "retries" };
    format!("Problem {problem}. Retrying in {whole}{fraction} second{s}. {left} {tries} left.")
}

/// Returns the text that `%{errormsg}` of `-w` prints for a failed transfer. The error line on
/// standard error contains this text, too.
pub(crate) fn text_for(persona: ProgramPersona, error: &Error, outcome: Option<&TransferOutcome>) -> String {
    match persona {
        ProgramPersona::Haul => error.to_string(),
        ProgramPersona::Curl => haul_text(error, outcome),
    }
}

/// The beginning of the engine's message for an error of writing to standard output.
const LOST_OUTPUT_TEXT: &str = "failed to write the output";

/// The size, in bytes, of the buffer in which curl collects standard output. curl writes a body
/// that is shorter than this buffer only at the end of the transfer, and notices a write error only
/// then.
const OUTPUT_BUFFER: u64 = 4096;

/// The maximum number of bytes that curl passes to its output in one call.
const MAX_PASSED: u64 = 16 << 10;

/// Returns true if standard output could not be written, and the body is short enough for curl's
/// output buffer. curl notices such an error only at the end of the transfer.
fn is_lost_at_end(error: &Error, outcome: Option<&TransferOutcome>) -> bool {
    is_lost_output(error) && outcome.is_none_or(|outcome| outcome.facts.body_bytes < OUTPUT_BUFFER)
}

/// Returns true if the body could not be written to standard output.
fn is_lost_output(error: &Error) -> bool {
    error.kind() == ErrorKind::Write && error.cause().starts_with(LOST_OUTPUT_TEXT)
}

fn haul_text(error: &Error, outcome: Option<&TransferOutcome>) -> String {
    let cause = || crate::usage_error::one_line(&error.cause());
    let Some(outcome) = outcome else {
        return match error.kind() {
            ErrorKind::Url => match glob_flaw(error) {
                Some(flaw) => mark_position(&flaw.to_string(), flaw.position, error.url().unwrap_or_default()),
                None => format!("URL rejected: {}", cause().trim_start_matches("the URL cannot be used: ")),
            },
            ErrorKind::UnsupportedScheme => match cause().split_once(": protocol ") {
                Some((_, scheme)) => format!("Protocol {scheme}"),
                None => match cause().split_once(" is not among the protocols") {
                    Some((scheme, _)) => format!("Protocol \"{scheme}\" is disabled"),
                    None => cause(),
                },
            },
            _ => cause(),
        };
    };
    let (target, facts) = (&outcome.target, &outcome.facts);
    let millis = facts.total.as_millis();
    match error.kind() {
        ErrorKind::UnsupportedScheme
            if error.cause().contains("HTTP/") || facts.head_bytes == 0 && facts.connects > 0 =>
        {
            "Received HTTP/0.9 when not allowed".to_owned()
        }
        ErrorKind::Resolve if is_onion(target.host_text()) => "Not resolving .onion address (RFC 7686)".to_owned(),
        ErrorKind::Resolve => format!("Could not resolve host: {}", target.host_text()),
        ErrorKind::ProxyResolve => match cause().split_once("could not resolve host: ") {
            Some((_, host)) => format!("Could not resolve proxy: {}", host.split(':').next().unwrap_or(host)),
            None => cause(),
        },
        ErrorKind::PeerCertificate => certificate_text(&cause(), target),
        // The proxy's no to CONNECT.
        ErrorKind::Connect if facts.connect_status >= 300 => cause(),
        ErrorKind::Connect => {
            let cause = error.cause();
            let peer = peer_description(&cause, target, facts.proxy_used);
            format!("Failed to connect to {peer} after {millis} ms: Could not connect to server")
        }
        ErrorKind::PartialBody => partial_body_text(outcome),
        ErrorKind::Status => format!("The requested URL returned error: {}", error.status().unwrap_or(facts.status)),
        // Whatever has to be shaken hands with before a request goes out is part of connecting.
        ErrorKind::Timeout if facts.requests == 0 => {
            format!("Connection timed out after {millis} milliseconds")
        }
        ErrorKind::Timeout if error.cause().contains("slow") => slow_transfer_text(&cause()),
        ErrorKind::Timeout => timeout_text(outcome, millis),
        ErrorKind::Range => "HTTP server does not seem to support byte ranges. Cannot resume.".to_owned(),
        ErrorKind::TooManyRedirects => format!("Maximum ({}) redirects followed", facts.redirects),
        ErrorKind::EmptyReply => "Empty reply from server".to_owned(),
        ErrorKind::PinnedKey => "SSL: public key does not match pinned public key".to_owned(),
        ErrorKind::Protocol if error.cause().contains("not HTTP/1") => "Invalid status line".to_owned(),
        ErrorKind::TooLarge => match exceeded_limit(error).filter(|_| facts.body_bytes > 0) {
            Some(limit) => format!("Exceeded the maximum allowed file size ({limit}) with {limit} bytes"),
            None => "Maximum file size exceeded".to_owned(),
        },
        ErrorKind::ContentCoding if error.cause().contains("more than 5 content codings") => {
            let coded = |field| outcome.head.as_ref().is_some_and(|head| coding_count(head, field) > MAX_CODINGS);
            let which = if coded("transfer-encoding") { "transfer" } else { "content" };
            format!("Reject response exceeding limit of {MAX_CODINGS} {which} encodings")
        }
        ErrorKind::Proxy
            if error.cause().contains("SOCKS cannot express") && target.host_text().len() > MAX_SOCKS_HOST =>
        {
            "SOCKS5: the destination hostname is too long to be resolved remotely by the proxy.".to_owned()
        }
        ErrorKind::Receive => match error.io_source() {
            Some(source) => format!("Recv failure: {}", system_error_text(source)),
            None => cause(),
        },
        ErrorKind::Send => match error.io_source() {
            Some(source) => format!("Send failure: {}", system_error_text(source)),
            None => cause(),
        },
        ErrorKind::Write if is_lost_output(error) => {
            let passed = facts.body_bytes.min(MAX_PASSED);
            format!("Failure writing output to destination, passed {passed} returned 0")
        }
        _ => cause(),
    }
}

/// Returns curl's words for a transfer below the minimum speed. `cause` is the engine's text, which
/// has the speed and the time as numbers.
fn slow_transfer_text(cause: &str) -> String {
    let mut numbers = cause.split(' ').filter(|word| word.parse::<u64>().is_ok());
    match (numbers.next(), numbers.next()) {
        (Some(speed), Some(seconds)) => {
            format!("Operation too slow. Less than {speed} bytes/sec transferred the last {seconds} seconds")
        }
        _ => cause.to_owned(),
    }
}

/// Returns the limit, in bytes, that a body exceeds; `None` if the error message does not contain
/// the limit.
fn exceeded_limit(error: &Error) -> Option<u64> {
    error.cause().split_once("larger than the ")?.1.split(' ').next()?.parse().ok()
}

/// The maximum number of codings that curl accepts in the `Content-Encoding` or the
/// `Transfer-Encoding` of a response.
const MAX_CODINGS: usize = 5;

/// The maximum length, in bytes, of a host name in the SOCKS protocol.
const MAX_SOCKS_HOST: usize = 255;

/// Returns the number of codings in all header fields with this name.
fn coding_count(head: &ResponseHead, field: &str) -> usize {
    head.get_all(field).flat_map(|value| value.split(|&byte| byte == b',')).count()
}

/// Returns the syntax error in the glob of a URL; `None` for an error with another cause.
pub(super) fn glob_flaw(error: &Error) -> Option<&GlobError> {
    std::error::Error::source(error)?.downcast_ref()
}

/// curl's message for an output file whose name is empty, because the value of a glob is empty.
const EMPTY_OUTPUT_NAME: &str = "Failed writing received data to disk/application";

/// Returns the error of curl for an output file whose name is empty.
pub(crate) fn empty_output_name() -> Error {
    Error::new(ErrorKind::Write, EMPTY_OUTPUT_NAME)
}

/// Returns true if the error is that of an output file whose name is empty, if haul acts as curl.
pub(crate) fn is_empty_output_name(error: &Error) -> bool {
    error.kind() == ErrorKind::Write && error.to_string() == EMPTY_OUTPUT_NAME
}

/// Returns true if the error is a syntax error in the glob of a URL.
pub(crate) fn is_glob_flaw(error: &Error) -> bool {
    glob_flaw(error).is_some()
}

/// Returns curl's message for a certificate error. It contains the text of OpenSSL, for which
/// scripts search.
fn certificate_text(cause: &str, target: &Target) -> String {
    if cause.contains("not valid for") {
        let host = target.host_text();
        return format!("SSL: no alternative certificate subject name matches target host name '{host}'");
    }
    let why = last_reason(cause);
    let known = openssl_error(why).map_or(why, |(_, words)| words);
    format!("SSL certificate problem: {known}")
}

/// Returns the last part of an error message, which is the reason. The parts are separated by a
/// colon and a blank. A colon without a blank, as in a time of day, separates nothing.
fn last_reason(cause: &str) -> &str {
    cause.rsplit(": ").next().unwrap_or(cause)
}

/// Returns the error number and the message of OpenSSL for `why`, the engine's text for a
/// certificate error. Returns `None` if OpenSSL has no such error.
fn openssl_error(why: &str) -> Option<(u32, &'static str)> {
    Some(match why {
        UNKNOWN_ISSUER => (20, "unable to get local issuer certificate"),
        SELF_SIGNED => (18, "self-signed certificate"),
        "a signature does not fit" => (7, "certificate signature failure"),
        "it has expired" | "a CA certificate of its chain has expired" => (10, "certificate has expired"),
        _ if why.starts_with("it expired on") => (10, "certificate has expired"),
        "it is not valid yet" | "a CA certificate of its chain is not valid yet" => (9, "certificate is not yet valid"),
        _ if why.starts_with("it is not valid before") => (9, "certificate is not yet valid"),
        "a certificate of its chain is no CA's" | "a CA certificate of its chain may not sign certificates" => {
            (79, "invalid CA certificate")
        }
        "a CA certificate of its chain allows fewer CA certificates below it" => {
            (25, "path length constraint exceeded")
        }
        "it is not for servers" | "a CA certificate of its chain is not for servers" => {
            (26, "unsuitable certificate purpose")
        }
        "a CA certificate of its chain may not sign revocation lists" => (35, "key usage does not include CRL signing"),
        "a CA certificate of its chain has an unknown critical extension" => (34, "unhandled critical extension"),
        _ => return None,
    })
}

/// Returns the result of verifying a certificate, as an error number of OpenSSL. It is 0 for
/// success, and 1 for an error for which OpenSSL has no number. `of_proxy` selects the certificate
/// of the proxy instead of the server's.
pub(crate) fn verify_result(outcome: &TransferOutcome, of_proxy: bool) -> u32 {
    let number = |why: &str| openssl_error(last_reason(why)).map_or(1, |(number, _)| number);
    let refused = outcome.result.as_ref().err().filter(|error| error.kind() == ErrorKind::PeerCertificate);
    match refused.map(Error::cause) {
        Some(cause) if cause.starts_with("the proxy") == of_proxy => number(&cause),
        Some(_) if of_proxy => outcome.facts.proxy_certificate_fault.as_deref().map_or(0, number),
        Some(_) => 0,
        None if of_proxy => outcome.facts.proxy_certificate_fault.as_deref().map_or(0, number),
        None => outcome.facts.certificate_fault.as_deref().map_or(0, number),
    }
}

/// Returns the description of the peer that did not answer, for an error message: the server, or
/// the proxy on the path to it. `cause` is the engine's text for the error, which names the peer.
fn peer_description(cause: &str, target: &Target, is_proxy: bool) -> String {
    let (host, port) = (target.host_text(), target.port());
    let cause = cause.strip_prefix("failed to connect to ").unwrap_or_default();
    if let Some((socket, _)) = cause.strip_prefix("the socket ").and_then(|rest| rest.split_once(": ")) {
        return format!("{host}:{port} over unix://{socket}");
    }
    match cause.split_once(": ").and_then(|(peer, _)| peer.split_once(" port ")) {
        // A tunnel's other end is the server.
        Some((peer, _)) if is_proxy && target.scheme() == Scheme::Https => format!("{host}:{port} over proxy {peer}"),
        Some((peer, at)) if is_proxy => format!("{peer}:{at} over proxy {peer}"),
        Some((peer, at)) if peer != host || at != port.to_string() => format!("{host}:{port} via {peer}:{at}"),
        _ => format!("{host}:{port}"),
    }
}

fn announced_length(outcome: &TransferOutcome) -> Option<u64> {
    let length = outcome.head.as_ref()?.get("content-length")?;
    std::str::from_utf8(length).ok()?.trim().parse().ok()
}

fn partial_body_text(outcome: &TransferOutcome) -> String {
    match announced_length(outcome).and_then(|length| length.checked_sub(outcome.facts.body_bytes)) {
        Some(missing) => format!("end of response with {missing} bytes missing"),
        None => "transfer closed with outstanding read data remaining".to_owned(),
    }
}

fn timeout_text(outcome: &TransferOutcome, millis: u128) -> String {
    let got = outcome.facts.body_bytes;
    match announced_length(outcome).filter(|_| got > 0) {
        Some(length) => {
            format!("Operation timed out after {millis} milliseconds with {got} out of {length} bytes received")
        }
        None => format!("Operation timed out after {millis} milliseconds with {got} bytes received"),
    }
}
