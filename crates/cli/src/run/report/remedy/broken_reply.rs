//! The remedies for servers that close the connection early, or that do not speak TLS or HTTP as
//! expected.

use std::borrow::Cow;

use haul::net::tls::TlsVersion;
use haul_policy::target::Scheme;

use super::PROXY_ORIGIN;
use crate::plan::{HttpVersion, StageArgs, TransferArgs};
use crate::run::report::transfer_report::TransferReport;

/// Returns the remedy for a connection that broke while a request or a response was transferred.
pub(super) fn broken_connection_remedy(cause: &str) -> &'static str {
    match cause.contains("it wants a client certificate") {
        true => "present one with -E FILE, and its key with --key FILE if it is in another file",
        false => "the server, or a firewall or proxy on the way, ended it: try again, or let haul retry with --retry N",
    }
}

/// Returns the remedy for a failed TLS handshake. It contains the versions that haul offered,
/// because a server that refuses an offer gives no reason.
pub(super) fn handshake_remedy(cause: &str, settings: Option<&StageArgs>) -> Cow<'static, str> {
    if cause.starts_with("the proxy") {
        return PROXY_ORIGIN.into();
    }
    if cause.contains("does not speak TLS") {
        return "try http:// instead of https://".into();
    }
    let offer =
        settings.map(|stage| format!("haul offered {}; ", offered_versions(&stage.transfer))).unwrap_or_default();
    let closed = ["closed the connection", "broke"].iter().any(|words| cause.contains(words));
    let plain = if closed { "if the port does not speak TLS, use http://; " } else { "" };
    format!("{offer}{plain}{}'haul doctor URL' shows more", tls_offer_remedy(cause, settings)).into()
}

/// Returns advice on the options that change haul's offer in the TLS handshake. If the server
/// refuses the offered TLS versions, only options for the TLS version help.
fn tls_offer_remedy(cause: &str, settings: Option<&StageArgs>) -> &'static str {
    let Some(transfer) = settings.map(|stage| &stage.transfer) else { return "" };
    let is_version = cause.ends_with("ProtocolVersion");
    let options = &transfer.tls.options;
    let is_http1 = !transfer.tls.alpn || matches!(transfer.http_version, HttpVersion::Http10 | HttpVersion::Http11);
    match (options.min_version, options.max_version) {
        (TlsVersion::V1_3, _) => "try without --tlsv1.3; ",
        (_, TlsVersion::V1_3) if is_version => "the server has older versions only, which are not safe; ",
        _ if is_version => "try without --tls-max; ",
        (_, TlsVersion::V1_3) if is_http1 => "try --tls-max 1.2; ",
        (_, TlsVersion::V1_3) => "try --http1.1 or --tls-max 1.2; ",
        _ if is_http1 => "",
        _ => "try --http1.1; ",
    }
}

/// Returns the TLS versions and the HTTP versions that haul offers in a handshake.
fn offered_versions(transfer: &TransferArgs) -> String {
    let tls = &transfer.tls;
    let versions = match (tls.options.min_version, tls.options.max_version) {
        (TlsVersion::V1_3, _) => "TLS 1.3 alone",
        (_, TlsVersion::V1_2) => "TLS 1.2 alone",
        _ => "TLS 1.2 and 1.3",
    };
    let protocols = match transfer.http_version {
        _ if !tls.alpn => "no ALPN",
        HttpVersion::Http10 | HttpVersion::Http11 => "ALPN http/1.1",
        HttpVersion::Http2PriorKnowledge => "ALPN h2",
        _ => "ALPN h2, http/1.1",
    };
    format!("{versions} with {protocols}")
}

/// Returns the remedy for a connection that was closed before the response.
pub(super) fn no_reply_remedy(failed: Option<&TransferReport<'_>>) -> &'static str {
    match is_plain_http(failed) {
        true => "if the port speaks TLS, use https://; otherwise try again, or let haul retry with --retry N",
        false => "the server may be overloaded: try again, or let haul retry with --retry N",
    }
}

/// Returns the remedy for a response that is not HTTP.
pub(super) fn invalid_reply_remedy(failed: Option<&TransferReport<'_>>) -> &'static str {
    match is_plain_http(failed) {
        true => "if the port speaks TLS, use https://; otherwise it is not a web server; --http0.9 prints the reply",
        false => "it is not a web server; --http0.9 prints the reply",
    }
}

/// Returns the remedy for a response that does not contain the requested range, or contains a range
/// that was not requested.
pub(super) fn range_remedy(cause: &str, settings: Option<&StageArgs>) -> &'static str {
    match settings.is_some_and(|stage| stage.request.continue_at.is_some()) {
        true => "the server cannot continue this file: leave out -C to fetch it whole",
        false if cause.starts_with("asked for no range") || cause.starts_with("asked for the range") => {
            "the server breaks HTTP: -v shows its reply; tell the server's operator"
        }
        false => "--split 1 fetches the whole body by one request, without ranges",
    }
}

/// Returns the remedy for a body that ended before its announced length.
pub(super) fn short_body_remedy(settings: Option<&StageArgs>) -> &'static str {
    match settings.is_some_and(|stage| stage.transfer.options.deviations.ignore_length) {
        true => "try again, or let haul retry with --retry N",
        false => {
            "try again, or let haul retry with --retry N; -C - continues a file; --ignore-content-length accepts such a body"
        }
    }
}

fn is_plain_http(failed: Option<&TransferReport<'_>>) -> bool {
    failed.is_some_and(|report| report.outcome.target.scheme() == Scheme::Http)
}
