//! The connection settings of a request: HTTP version, TLS, proxies, addresses, sockets.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haul::RequestOptions;
use haul::net::dns::AddressFamily;
use haul::net::local_address::{LocalInterface, PortRange, UnixSocketAddress};
use haul::net::proxy::{NoProxy, Proxy, ProxyAuthScheme, ProxyOptions, SocksGssapi};
use haul::net::socket::TcpKeepalive;
use haul::net::tls::{ClientCertificateFiles, Passphrase, Pem, TlsOptions, TlsVersion, key_pin};
use haul::request::{ConnectToRule, Http3Policy};
use haul_policy::auth::Credentials;
use haul_policy::proxy::{ProxyKind, ProxyParseError};

use super::{CONNECT_TIMEOUT, TransferFailure, fields, millis};
use crate::codes::{
    CURLE_BAD_FUNCTION_ARGUMENT, CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_PROXY, CURLE_INTERFACE_FAILED,
    CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_URL_MALFORMAT,
};
use crate::options::{
    EasyOptions,
    curlauth_constants::{AUTH_BASIC, AUTH_DIGEST, AUTH_NEGOTIATE},
    curlopt_numbers as opt,
};

/// The value of `CURLOPT_HTTP_VERSION` for HTTP/1.0 (`CURL_HTTP_VERSION_1_0`).
pub(super) const HTTP_1_0: i64 = 1;
const HTTP_1_1: i64 = 2;
const HTTP_2_PRIOR_KNOWLEDGE: i64 = 5;
const HTTP_3: i64 = 30;
const HTTP_3_ONLY: i64 = 31;

/// The `CURLOPT` numbers of the TLS options: one set for the server, and one for an https proxy.
struct TlsOptionNumbers {
    verify: u32,
    ca_file: u32,
    ca_path: u32,
    ca_blob: u32,
    crl_file: u32,
    certificate: u32,
    certificate_blob: u32,
    key: u32,
    key_blob: u32,
    password: u32,
    version: u32,
    ciphers: u32,
    tls13_ciphers: u32,
    pins: u32,
}

const SERVER_TLS: TlsOptionNumbers = TlsOptionNumbers {
    verify: opt::SSL_VERIFYPEER,
    ca_file: opt::CAINFO,
    ca_path: opt::CAPATH,
    ca_blob: opt::CAINFO_BLOB,
    crl_file: opt::CRLFILE,
    certificate: opt::SSLCERT,
    certificate_blob: opt::SSLCERT_BLOB,
    key: opt::SSLKEY,
    key_blob: opt::SSLKEY_BLOB,
    password: opt::KEYPASSWD,
    version: opt::SSLVERSION,
    ciphers: opt::SSL_CIPHER_LIST,
    tls13_ciphers: opt::TLS13_CIPHERS,
    pins: opt::PINNEDPUBLICKEY,
};

const PROXY_TLS: TlsOptionNumbers = TlsOptionNumbers {
    verify: opt::PROXY_SSL_VERIFYPEER,
    ca_file: opt::PROXY_CAINFO,
    ca_path: opt::PROXY_CAPATH,
    ca_blob: opt::PROXY_CAINFO_BLOB,
    crl_file: opt::PROXY_CRLFILE,
    certificate: opt::PROXY_SSLCERT,
    certificate_blob: opt::PROXY_SSLCERT_BLOB,
    key: opt::PROXY_SSLKEY,
    key_blob: opt::PROXY_SSLKEY_BLOB,
    password: opt::PROXY_KEYPASSWD,
    version: opt::PROXY_SSLVERSION,
    ciphers: opt::PROXY_SSL_CIPHER_LIST,
    tls13_ciphers: opt::PROXY_TLS13_CIPHERS,
    pins: opt::PROXY_PINNEDPUBLICKEY,
};

/// Copies the connection options of an easy handle to a request.
pub(super) fn set_connection_options(
    options: &EasyOptions,
    request: &mut RequestOptions,
) -> Result<(), TransferFailure> {
    let version = options.number(opt::HTTP_VERSION).unwrap_or(0);
    request.tls = tls(options, &SERVER_TLS)?;
    request.tls.resume = options.number(opt::SSL_SESSIONID_CACHE) != Some(0);
    request.tls.keep_certificates = options.is_on(opt::CERTINFO);
    request.tls.groups = split_names(options, opt::SSL_EC_CURVES);
    request.tls.examine = !request.tls.verify;
    request.tls.common_name = true;
    request.tls.require_status = options.is_on(opt::SSL_VERIFYSTATUS);
    request.tls.ech.clone_from(&options.ech);
    request.tls.alpn = match version {
        _ if options.number(opt::SSL_ENABLE_ALPN) == Some(0) => Vec::new(),
        HTTP_1_0 | HTTP_1_1 => vec![b"http/1.1".to_vec()],
        HTTP_2_PRIOR_KNOWLEDGE => vec![b"h2".to_vec()],
        _ => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    request.prior_knowledge = version == HTTP_2_PRIOR_KNOWLEDGE;
    request.fresh_connection = options.is_on(opt::FRESH_CONNECT);
    request.closes_connection = options.is_on(opt::FORBID_REUSE);
    request.http3 = match version {
        HTTP_3 => Http3Policy::Race,
        HTTP_3_ONLY => Http3Policy::Only,
        _ if request.alt_svc.is_some() && haul::HAS_HTTP3 => Http3Policy::Learned,
        _ => Http3Policy::Off,
    };
    request.family = match options.number(opt::IPRESOLVE) {
        Some(1) => AddressFamily::V4,
        Some(2) => AddressFamily::V6,
        _ => AddressFamily::Any,
    };
    set_socket(options, request)?;
    request.connect_to = options.string_list(opt::CONNECT_TO).iter().filter_map(|line| connect_to(line)).collect();
    request.proxy = proxy(options)?;
    Ok(())
}

fn path(options: &EasyOptions, option: u32) -> Option<PathBuf> {
    options.bytes(option).filter(|path| !path.is_empty()).map(|path| PathBuf::from(OsStr::from_bytes(path)))
}

/// Splits the value of an option into names, at colons, commas and spaces. `None` if it is not set.
fn split_names(options: &EasyOptions, option: u32) -> Option<Vec<String>> {
    let text = options.text(option)?;
    Some(text.split([':', ',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect())
}

fn tls(options: &EasyOptions, numbers: &TlsOptionNumbers) -> Result<TlsOptions, TransferFailure> {
    let mut tls = TlsOptions::default();
    tls.verify = options.number(numbers.verify) != Some(0);
    tls.ca_file = path(options, numbers.ca_file);
    tls.ca_pem = options.bytes(numbers.ca_blob).map(Pem::new);
    let has_other_anchors = tls.ca_file.is_some() || tls.ca_pem.is_some();
    // As in libcurl, a directory that does not exist has no certificates. Without other
    // certificates, it is an error, because the system's must not take its place.
    tls.ca_path = path(options, numbers.ca_path).filter(|path| !has_other_anchors || path.is_dir());
    tls.crl_file = path(options, numbers.crl_file);
    tls.tls12_ciphers = split_names(options, numbers.ciphers);
    tls.tls13_ciphers = split_names(options, numbers.tls13_ciphers);
    tls.passphrase = options.bytes(numbers.password).map(Passphrase::new);
    if let Some(certificate) = options.bytes(numbers.certificate_blob) {
        let key = options.bytes(numbers.key_blob).unwrap_or_default();
        tls.identity_pem = Some(Pem::new([certificate, b"\n", key].concat()));
    } else if let Some(certificate) = path(options, numbers.certificate) {
        tls.identity = Some(ClientCertificateFiles { certificate, key: path(options, numbers.key) });
    }
    // TLS 1.0 and 1.1 are not supported: the lowest version is 1.2.
    const TLS_1_3: i64 = 7;
    let version = options.number(numbers.version).unwrap_or(0);
    if version & 0xffff == TLS_1_3 {
        tls.min_version = TlsVersion::V1_3;
    }
    match version >> 16 {
        0 | 1 | TLS_1_3 => {}
        _ => tls.max_version = TlsVersion::V1_2,
    }
    if let Some(pins) = options.text(numbers.pins) {
        tls.pins = pinned_keys(&pins)?;
    }
    Ok(tls)
}

/// Parses a list of public-key hashes, or reads the public key from a file.
fn pinned_keys(text: &str) -> Result<Vec<[u8; 32]>, TransferFailure> {
    let failure = |why: &str| TransferFailure::new(CURLE_SSL_PINNEDPUBKEYNOTMATCH, why);
    let pins: Vec<[u8; 32]> = if text.starts_with("sha256//") {
        let hash = |part: &str| STANDARD.decode(part.trim().strip_prefix("sha256//")?).ok()?.try_into().ok();
        text.split(';').filter_map(hash).collect()
    } else {
        let key = std::fs::read(text).map_err(|_| failure("the pinned public key cannot be read"))?;
        key_pin(&key).into_iter().collect()
    };
    if pins.is_empty() { Err(failure("no public key is pinned")) } else { Ok(pins) }
}

fn set_socket(options: &EasyOptions, request: &mut RequestOptions) -> Result<(), TransferFailure> {
    let connect = &mut request.connect;
    connect.timeout = millis(options, opt::CONNECTTIMEOUT_MS).unwrap_or(CONNECT_TIMEOUT);
    if let Some(delay) = millis(options, opt::HAPPY_EYEBALLS_TIMEOUT_MS) {
        connect.attempt_delay = delay;
    }
    let seconds = |option, default| {
        let seconds = options.number(option).unwrap_or(default).max(1);
        Duration::from_secs(seconds.unsigned_abs())
    };
    connect.keepalive = options.is_on(opt::TCP_KEEPALIVE).then(|| TcpKeepalive {
        idle: seconds(opt::TCP_KEEPIDLE, 60),
        interval: seconds(opt::TCP_KEEPINTVL, 60),
        count: options.number(opt::TCP_KEEPCNT).and_then(|count| u32::try_from(count).ok()),
    });
    if let Some(interface) = options.text(opt::INTERFACE).filter(|text| !text.is_empty()) {
        let failed = |_| TransferFailure::from(CURLE_INTERFACE_FAILED);
        connect.interface = Some(LocalInterface::parse(&interface).map_err(failed)?);
    }
    if let Some(first) = options.number(opt::LOCALPORT).filter(|port| *port > 0) {
        let first = u16::try_from(first).unwrap_or(u16::MAX);
        let count = u16::try_from(options.number(opt::LOCALPORTRANGE).unwrap_or(1).max(1)).unwrap_or(u16::MAX);
        connect.local_ports = Some(PortRange { first, last: first.saturating_add(count - 1) });
    }
    connect.unix_socket = match (options.bytes(opt::ABSTRACT_UNIX_SOCKET), path(options, opt::UNIX_SOCKET_PATH)) {
        (Some(name), _) => Some(UnixSocketAddress::Abstract(name.to_vec())),
        (None, Some(path)) => Some(UnixSocketAddress::Path(path)),
        (None, None) => None,
    };
    connect.haproxy_protocol = options.is_on(opt::HAPROXYPROTOCOL) || options.has(opt::HAPROXY_CLIENT_IP);
    if let Some(address) = options.text(opt::HAPROXY_CLIENT_IP) {
        let address: IpAddr = address.parse().map_err(|_| TransferFailure::from(CURLE_BAD_FUNCTION_ARGUMENT))?;
        connect.haproxy_client = Some(address);
    }
    Ok(())
}

/// Parses a line of `CURLOPT_CONNECT_TO`: `HOST:PORT:TO-HOST:TO-PORT`. Returns `None` for any other
/// line.
fn connect_to(line: &[u8]) -> Option<ConnectToRule> {
    let mut rest = std::str::from_utf8(line).ok()?;
    let mut part = || {
        let (text, after) = match rest.strip_prefix('[') {
            Some(inner) => {
                let (address, after) = inner.split_once(']')?;
                (address, after.strip_prefix(':').unwrap_or(after))
            }
            None => rest.split_once(':').unwrap_or((rest, "")),
        };
        rest = after;
        Some(text)
    };
    let (host, port, to_host, to_port) = (part()?, part()?, part()?, part()?);
    let name = |text: &str| (!text.is_empty()).then(|| text.to_ascii_lowercase());
    let number = |text: &str| match text {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    };
    Some(ConnectToRule { host: name(host), port: number(port)?, to_host: name(to_host), to_port: number(to_port)? })
}

fn proxy(options: &EasyOptions) -> Result<Option<ProxyOptions>, TransferFailure> {
    let mut proxy = ProxyOptions::from_environment();
    let kind = match options.number(opt::PROXYTYPE) {
        // CURLPROXY_HTTPS and CURLPROXY_HTTPS2. HTTP/1.1 is spoken with both.
        Some(2 | 3) => ProxyKind::Https,
        Some(4) => ProxyKind::Socks4,
        Some(5) => ProxyKind::Socks5,
        Some(6) => ProxyKind::Socks4a,
        Some(7) => ProxyKind::Socks5h,
        _ => ProxyKind::Http,
    };
    match options.text(opt::PROXY).as_deref() {
        // An empty name turns proxies off, those of the environment included.
        Some("") => return Ok(None),
        Some(text) => {
            let port = options.number(opt::PROXYPORT).filter(|port| *port > 0);
            let with_port = port.filter(|_| !has_port(text)).map(|port| format!("{text}:{port}"));
            proxy.proxy = Some(parse_proxy(with_port.as_deref().unwrap_or(text), kind)?);
        }
        None => {}
    }
    if let Some(text) = options.text(opt::PRE_PROXY).filter(|text| !text.is_empty()) {
        proxy.preproxy = Some(parse_proxy(&text, ProxyKind::Socks4)?);
    }
    if let Some(hosts) = options.text(opt::NOPROXY) {
        proxy.no_proxy = Some(NoProxy::parse_as_curl(&hosts));
    }
    if let Some(user) = options.bytes(opt::PROXYUSERNAME) {
        let password = options.bytes(opt::PROXYPASSWORD).unwrap_or_default();
        let credentials = Credentials::new(user, password);
        proxy.credentials = Some(credentials.map_err(|_| TransferFailure::from(CURLE_BAD_FUNCTION_ARGUMENT))?);
    }
    let schemes = options.number(opt::PROXYAUTH).unwrap_or(AUTH_BASIC);
    proxy.negotiate = super::credentials::negotiate(options, opt::PROXY_SERVICE_NAME);
    proxy.auth = match schemes & (AUTH_BASIC | AUTH_DIGEST | AUTH_NEGOTIATE) {
        AUTH_NEGOTIATE if haul::HAS_NEGOTIATE => ProxyAuthScheme::Negotiate,
        schemes if haul::HAS_NEGOTIATE && schemes & AUTH_NEGOTIATE != 0 => ProxyAuthScheme::AnyOrNegotiate,
        AUTH_DIGEST => ProxyAuthScheme::Digest,
        AUTH_BASIC => ProxyAuthScheme::Basic,
        _ => ProxyAuthScheme::Any,
    };
    // libcurl offers GSS-API to every SOCKS proxy by default; here, it has to be asked for.
    let has_gssapi = options.number(opt::SOCKS5_AUTH).is_some_and(|schemes| schemes & AUTH_NEGOTIATE != 0);
    proxy.socks_gssapi = (haul::HAS_NEGOTIATE && has_gssapi).then(|| {
        let mut negotiate = proxy.negotiate.clone();
        if !options.has(opt::PROXY_SERVICE_NAME) {
            negotiate.service = "rcmd".to_owned();
        }
        SocksGssapi { negotiate, nec: options.is_on(opt::SOCKS5_GSSAPI_NEC) }
    });
    proxy.tunnel = options.is_on(opt::HTTPPROXYTUNNEL);
    proxy.http10 = options.number(opt::PROXYTYPE) == Some(1);
    (proxy.fields, proxy.without) = fields::parse_header_lines(options.string_list(opt::PROXYHEADER));
    // With `CURLHEADER_UNIFIED`, servers and proxies get the same fields. A forwarded request has
    // them already.
    if options.number(opt::HEADEROPT) == Some(0) {
        (proxy.fields, proxy.without) = fields::parse_header_lines(options.string_list(opt::HTTPHEADER));
        proxy.fields_for_connect_only = true;
    }
    let has_tls = proxy
        .proxy
        .as_ref()
        .map_or_else(|| proxy.environment.has_https_proxy(), |given| given.kind() == ProxyKind::Https);
    if has_tls {
        proxy.tls = tls(options, &PROXY_TLS)?;
        proxy.tls.alpn = vec![b"http/1.1".to_vec()];
    }
    Ok(Some(proxy))
}

/// Returns true if the address of a proxy contains a port.
fn has_port(text: &str) -> bool {
    let authority = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
}

fn parse_proxy(text: &str, kind: ProxyKind) -> Result<Proxy, TransferFailure> {
    Proxy::parse_with(text, kind).map_err(|error| {
        let code = match error {
            ProxyParseError::Scheme => CURLE_COULDNT_CONNECT,
            ProxyParseError::Credentials => CURLE_URL_MALFORMAT,
            _ => CURLE_COULDNT_RESOLVE_PROXY,
        };
        let text = match error {
            ProxyParseError::Scheme | ProxyParseError::Credentials => error.to_string(),
            _ => format!("Unsupported proxy syntax in '{text}': {error}"),
        };
        TransferFailure::new(code, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::OptionValue;

    #[test]
    fn connect_to_lines_have_four_parts() {
        let rule = connect_to(b"h:80:[::1]:8080").unwrap();
        assert_eq!((rule.host.as_deref(), rule.port), (Some("h"), Some(80)));
        assert_eq!((rule.to_host.as_deref(), rule.to_port), (Some("::1"), Some(8080)));
        let rule = connect_to(b"::other:").unwrap();
        assert_eq!((rule.host, rule.port, rule.to_host.as_deref(), rule.to_port), (None, None, Some("other"), None));
        assert!(connect_to(b"h:x:y:1").is_none());
    }

    #[test]
    fn both_types_of_https_proxies_are_reached_by_tls() {
        for (number, kind) in [(0, ProxyKind::Http), (1, ProxyKind::Http), (2, ProxyKind::Https), (3, ProxyKind::Https)]
        {
            let mut options = EasyOptions::default();
            options.store(opt::PROXY, Some(OptionValue::Bytes(b"p.example:8443"[..].into())));
            options.store(opt::PROXYTYPE, Some(OptionValue::Number(number)));
            assert_eq!(proxy(&options).unwrap().unwrap().proxy.unwrap().kind(), kind, "{number}");
        }
    }

    #[test]
    fn proxy_ports_are_recognised() {
        for (text, expected) in
            [("h:80", true), ("http://u:1@h", false), ("socks5://h:1", true), ("h", false), ("[::1]:3", true)]
        {
            assert_eq!(has_port(text), expected, "{text}");
        }
    }
}
