//! The target of a request: the URL in the options, parsed for the engine.

use haul::Target;
use haul_policy::target::{Scheme, TargetError};
use haul_policy::urlencode::percent_encode;

use super::{TransferFailure, check_protocol};
use crate::codes::{CURLE_LOGIN_DENIED, CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT};
use crate::handle_table::lock;
use crate::options::{EasyOptions, curlopt_numbers as opt};
use crate::url::{URLS, UrlPart, UrlParts, flags};

/// Returns the target, and the URL as the C program gave it.
pub(super) fn target(options: &EasyOptions) -> Result<(Target, String), TransferFailure> {
    let url = url_text(options)?;
    let scheme = match options.text(opt::DEFAULT_PROTOCOL).as_deref() {
        Some(name) if name.eq_ignore_ascii_case("https") => Scheme::Https,
        Some(name) if !name.eq_ignore_ascii_case("http") => return Err(unsupported(name)),
        _ => Scheme::Http,
    };
    let with_port = match options.number(opt::PORT).filter(|port| *port > 0) {
        Some(port) => with_port(&url, port),
        None => None,
    };
    let path_as_is = options.is_on(opt::PATH_AS_IS);
    let target =
        Target::parse_with(with_port.as_deref().unwrap_or(&url), scheme, path_as_is).map_err(|error| match &error {
            TargetError::UnsupportedScheme(name) => unsupported(name),
            error => TransferFailure::new(CURLE_URL_MALFORMAT, format!("URL rejected: {error}")),
        })?;
    check_protocol(options, &target)?;
    if options.is_on(opt::DISALLOW_USERNAME_IN_URL) && target.userinfo_bytes().is_some() {
        return Err(TransferFailure::new(CURLE_LOGIN_DENIED, "the URL has a user name, which is not allowed"));
    }
    Ok((target, url))
}

fn unsupported(scheme: &str) -> TransferFailure {
    let text = format!("Protocol \"{scheme}\" not supported");
    TransferFailure::new(CURLE_UNSUPPORTED_PROTOCOL, text)
}

/// Returns the text of `CURLOPT_CURLU` or `CURLOPT_URL`. Bytes that are not UTF-8 are
/// percent-encoded.
fn url_text(options: &EasyOptions) -> Result<String, TransferFailure> {
    let handle = options.pointer(opt::CURLU);
    let bytes = if handle.is_null() {
        options.bytes(opt::URL).map(<[u8]>::to_vec)
    } else {
        let url = URLS.get(handle).and_then(|parts| lock(&parts).get(UrlPart::Url, 0).ok());
        // Parts may have spaces (`CURLU_ALLOW_SPACE`).
        url.map(|url| {
            url.iter().flat_map(|b| if *b == b' ' { b"%20" } else { std::slice::from_ref(b) }).copied().collect()
        })
    };
    let bytes = bytes.ok_or_else(|| TransferFailure::new(CURLE_URL_MALFORMAT, "No URL set"))?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => error
            .as_bytes()
            .utf8_chunks()
            .map(|chunk| format!("{}{}", chunk.valid(), percent_encode(chunk.invalid())))
            .collect(),
    })
}

/// Returns the URL with `port` in place of its port; `None` if the URL cannot be parsed.
fn with_port(url: &str, port: i64) -> Option<String> {
    let mut parts = UrlParts::default();
    parts.set(UrlPart::Url, Some(url.as_bytes()), flags::GUESS_SCHEME).ok()?;
    parts.set(UrlPart::Port, Some(port.to_string().as_bytes()), 0).ok()?;
    String::from_utf8(parts.get(UrlPart::Url, 0).ok()?).ok()
}

/// Returns `url`, the URL that the C program has set, in its normalised form. This is the value of
/// `CURLINFO_EFFECTIVE_URL` after a transfer without redirects.
pub(crate) fn url_for_info(url: &str) -> String {
    let normal = || {
        let mut parts = UrlParts::default();
        parts.set(UrlPart::Url, Some(url.as_bytes()), flags::GUESS_SCHEME).ok()?;
        String::from_utf8(parts.get(UrlPart::Url, 0).ok()?).ok()
    };
    normal().unwrap_or_else(|| url.to_owned())
}

/// Returns the URL of `target`, to which a redirect leads, with its fragment. This is the value of
/// `CURLINFO_EFFECTIVE_URL` after a redirect that was followed, and of `CURLINFO_REDIRECT_URL`
/// after one that was not.
pub(crate) fn target_url(target: &Target) -> String {
    match target.fragment() {
        Some(fragment) => format!("{}#{fragment}", target.to_url()),
        None => target.to_url(),
    }
}
