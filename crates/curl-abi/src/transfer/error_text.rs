//! The messages of failed transfers for `CURLOPT_ERRORBUFFER`. They contain the words of libcurl's
//! messages, because programs search for them.

use haul::transfer::TransferOutcome;
use haul::{Error, ErrorKind, Target};

/// The maximum length in bytes of a message in an error buffer (`CURL_ERROR_SIZE`), including its
/// NUL.
pub(crate) const ERROR_SIZE: usize = 256;

/// Returns the message of a failed transfer. `url` is the URL that the C program set.
pub(crate) fn error_text(error: &Error, outcome: &TransferOutcome, url: &str) -> String {
    let (target, facts) = (&outcome.target, &outcome.facts);
    let cause = || error.cause();
    let millis = facts.total.as_millis();
    match error.kind() {
        ErrorKind::Resolve => format!("Could not resolve host: {}", host_as_given(url, target)),
        ErrorKind::ProxyResolve => match cause().split_once("could not resolve host: ") {
            Some((_, host)) => format!("Could not resolve proxy: {}", host.split(':').next().unwrap_or(host)),
            None => cause(),
        },
        ErrorKind::Connect if facts.connect_status >= 300 => {
            format!("CONNECT tunnel failed, response {}", facts.connect_status)
        }
        ErrorKind::Connect => {
            let (host, port) = (target.host_text(), target.port());
            format!("Failed to connect to {host} port {port} after {millis} ms: {}", cause())
        }
        ErrorKind::Status => {
            format!("The requested URL returned error: {}", error.status().unwrap_or(facts.status))
        }
        ErrorKind::Timeout if facts.requests == 0 => format!("Connection timed out after {millis} milliseconds"),
        ErrorKind::Timeout => timeout_text(outcome, millis, &cause()),
        ErrorKind::PartialBody => match announced_length(outcome).and_then(|all| all.checked_sub(facts.body_bytes)) {
            Some(missing) => format!("transfer closed with {missing} bytes remaining to read"),
            None => "transfer closed with outstanding read data remaining".to_owned(),
        },
        ErrorKind::Range => "HTTP server does not seem to support byte ranges. Cannot resume.".to_owned(),
        ErrorKind::TooManyRedirects => format!("Maximum ({}) redirects followed", facts.redirects),
        ErrorKind::EmptyReply => "Empty reply from server".to_owned(),
        ErrorKind::TooLarge => "Maximum file size exceeded".to_owned(),
        ErrorKind::PeerCertificate if cause().contains("not valid for") => {
            format!("SSL: no alternative certificate subject name matches target host name '{}'", target.host_text())
        }
        ErrorKind::PeerCertificate => format!("SSL certificate problem: {}", certificate_fault(&cause()).1),
        _ => cause(),
    }
}

/// Returns the host of a target, spelt in upper and lower case as in `url`.
fn host_as_given(url: &str, target: &Target) -> String {
    let host = target.host_text();
    let found = url.to_ascii_lowercase().find(host).and_then(|at| url.get(at..at + host.len()));
    found.unwrap_or(host).to_owned()
}

fn announced_length(outcome: &TransferOutcome) -> Option<u64> {
    let length = outcome.head.as_ref()?.get("content-length")?;
    std::str::from_utf8(length).ok()?.trim().parse().ok()
}

fn timeout_text(outcome: &TransferOutcome, millis: u128, cause: &str) -> String {
    let got = outcome.facts.body_bytes;
    match announced_length(outcome).filter(|_| got > 0) {
        _ if cause.contains("slow") => cause.to_owned(),
        Some(all) => format!("Operation timed out after {millis} milliseconds with {got} out of {all} bytes received"),
        None => format!("Operation timed out after {millis} milliseconds with {got} bytes received"),
    }
}

/// Returns OpenSSL's error number and message for a certificate error. `cause` is haul's message
/// for the error.
fn certificate_fault(cause: &str) -> (i64, &str) {
    let why = cause.rsplit(": ").next().unwrap_or(cause);
    match why {
        "no trusted certificate has signed it" => (20, "unable to get local issuer certificate"),
        "it is a CA's own and not a trusted one" => (18, "self-signed certificate"),
        "it has expired" | "a CA certificate of its chain has expired" => (10, "certificate has expired"),
        "it is not valid yet" | "a CA certificate of its chain is not valid yet" => (9, "certificate is not yet valid"),
        "a signature does not fit" => (7, "certificate signature failure"),
        other => (1, other),
    }
}

/// Returns the result of verifying the server's certificate for `CURLINFO_SSL_VERIFYRESULT`: 0 for
/// success, otherwise OpenSSL's error number.
pub(crate) fn verify_result(outcome: &TransferOutcome) -> i64 {
    match &outcome.result {
        Err(error) if error.kind() == ErrorKind::PeerCertificate => certificate_fault(&error.cause()).0,
        _ => outcome.facts.certificate_fault.as_deref().map_or(0, |fault| certificate_fault(fault).0),
    }
}
