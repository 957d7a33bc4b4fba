//! The values of the variables of `-w` for one transfer, and their formatting.

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use haul::transfer::FollowedRedirect;
use haul::{ResponseHead, Target};
use haul_policy::{Host, file_url};

use super::{WriteOutVariable, certificates, url_parts_as_written};

/// The values that `-w` can print about one transfer. The `Default` value describes a transfer that
/// failed before it connected.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOutValues<'a> {
    /// The status code of the last response; 0 if there was none.
    pub response_code: u16,
    /// The URL as given. In a stage after `--then`, the URL that the stage made from an extracted
    /// value.
    pub url: &'a str,
    /// The URL of the last request, after redirects.
    pub url_effective: &'a str,
    /// The number of body bytes that the transfer received, before content decoding.
    pub size_download: u64,
    /// The number of body bytes that the transfer wrote to its output.
    pub size_delivered: u64,
    /// The time from the start of the transfer until the host name was resolved.
    pub time_namelookup: Duration,
    /// The time from the start of the transfer until the TCP connection was established.
    pub time_connect: Duration,
    /// The time from the start of the transfer until the TLS handshake was complete; zero without
    /// TLS.
    pub time_appconnect: Duration,
    /// The time from the start of the transfer until the first byte of the response.
    pub time_starttransfer: Duration,
    /// The time from the start of the transfer to its end.
    pub time_total: Duration,
    /// The number of connections that were opened for the transfer.
    pub num_connects: u64,
    /// The number of redirects that were followed.
    pub num_redirects: u64,
    /// The value of `Content-Type` in the last response; `None` if that response has no such field.
    pub content_type: Option<&'a str>,
    /// The exit code of this transfer. 0 means success.
    pub exit_code: u8,
    /// The error message of the transfer; `None` if it succeeded.
    pub error: Option<&'a str>,
    /// The method of the last request.
    pub method: &'a str,
    /// The path of the output file; `None` for standard output.
    pub filename: Option<&'a str>,
    /// The scheme of the last request's URL, after redirects.
    pub scheme: &'a str,
    /// The HTTP version of the last response, `1`, `1.1`, `2` or `3`; empty if there was none.
    pub http_version: &'a str,
    /// The id of the last connection, counted from 0 in this run; `None` if there was no
    /// connection.
    pub connection: Option<u64>,
    /// The IP address of the peer of the last connection; `None` if it is unknown.
    pub remote_ip: Option<IpAddr>,
    /// The certificates that the server presented, in DER, the server's own certificate first.
    pub certificates: &'a [Vec<u8>],
    /// The path of the Unix socket of the last connection; `None` for TCP.
    pub remote_socket: Option<&'a str>,
    /// The port of the peer of the last connection; `None` for a Unix socket.
    pub remote_port: Option<u16>,
    /// The local IP address of the last connection; `None` if it is unknown.
    pub local_ip: Option<IpAddr>,
    /// The local port of the last connection; `None` for a Unix socket.
    pub local_port: Option<u16>,
    /// The number of the URL for `%{urlnum}`, from 0.
    pub url_number: u64,
    /// The id of the transfer for `%{xfer_id}`, from 0. `None` if nothing was transferred.
    pub transfer_number: Option<u64>,
    /// The status code of a proxy's last response to `CONNECT`; 0 if there was none.
    pub connect_code: u16,
    /// The number of times that the transfer was retried.
    pub num_retries: u64,
    /// True if the transfer used a proxy.
    pub proxy_used: bool,
    /// The result of verifying the proxy's certificate, as an error number of OpenSSL; 0 for
    /// success.
    pub proxy_verify_result: u32,
    /// The result of verifying the server's certificate, as an error number of OpenSSL; 0 for
    /// success.
    pub verify_result: u32,
    /// The target of the redirect in the last response, if the redirect was not followed. `None` if
    /// it was followed, or if the response is no redirect.
    pub redirect_url: Option<&'a str>,
    /// The value of `Referer` in the last request; `None` if that request has no such field.
    pub referer: Option<&'a str>,
    /// The number of bytes of all response heads that the transfer received.
    pub size_header: u64,
    /// The number of bytes of all requests that the transfer sent, including their content.
    pub size_request: u64,
    /// The number of bytes of request content that the transfer sent.
    pub size_upload: u64,
    /// The time from the start of the transfer until the head of the last request was sent.
    pub time_pretransfer: Duration,
    /// The time from the start of the transfer until the last byte of the last request was sent.
    pub time_posttransfer: Duration,
    /// The time from the start of the transfer until the last redirect was followed; zero without
    /// redirects.
    pub time_redirect: Duration,
    /// The head of the last response; `None` if there was none.
    pub head: Option<&'a ResponseHead>,
    /// The redirects that the transfer followed. Always empty if the format of `-w` prints no
    /// header fields of redirects.
    pub history: &'a [FollowedRedirect],
    /// The time at which `-w` is printed, since the start of 1970.
    pub now: Duration,
}

impl WriteOutValues<'_> {
    /// Appends the values of all header fields with this name to `into`, joined by the separator.
    /// Appends the values of one response after the other, and stops at the first response without
    /// a field of this name, as curl does.
    pub(super) fn append_all(&self, name: &str, separator: &str, into: &mut Vec<u8>) {
        let heads = self.history.iter().map(|redirect| &redirect.head).chain(self.head);
        let values: Vec<_> =
            heads.map(|head| head.get_all(name).collect::<Vec<_>>()).take_while(|all| !all.is_empty()).collect();
        into.extend_from_slice(&values.concat().join(separator.as_bytes()));
    }

    pub(super) fn append(&self, variable: WriteOutVariable, into: &mut Vec<u8>) {
        let written = match variable {
            WriteOutVariable::Certs => certificates::append(self.certificates, into),
            WriteOutVariable::FtpEntryPath => Ok(()),
            WriteOutVariable::ConnId => match self.connection {
                Some(number) => write!(into, "{number}"),
                None => write!(into, "-1"),
            },
            WriteOutVariable::NumCerts => write!(into, "{}", self.certificates.len()),
            WriteOutVariable::TlsEarlyData => write!(into, "0"),
            WriteOutVariable::ProxyVerifyResult => write!(into, "{}", self.proxy_verify_result),
            WriteOutVariable::VerifyResult => write!(into, "{}", self.verify_result),
            WriteOutVariable::TimeQueue => append_seconds(into, Duration::ZERO),
            WriteOutVariable::HttpConnect => write!(into, "{:03}", self.connect_code),
            WriteOutVariable::NumHeaders => write!(into, "{}", self.head.map_or(0, |head| head.fields().count())),
            WriteOutVariable::NumRetries => write!(into, "{}", self.num_retries),
            WriteOutVariable::ProxyUsed => write!(into, "{}", u8::from(self.proxy_used)),
            WriteOutVariable::RedirectUrl => write!(into, "{}", self.redirect_url.unwrap_or_default()),
            WriteOutVariable::Referer => write!(into, "{}", self.referer.unwrap_or_default()),
            WriteOutVariable::SizeHeader => write!(into, "{}", self.size_header),
            WriteOutVariable::SizeRequest => write!(into, "{}", self.size_request),
            WriteOutVariable::SizeUpload => write!(into, "{}", self.size_upload),
            WriteOutVariable::SpeedUpload => write!(into, "{}", self.speed(self.size_upload)),
            WriteOutVariable::TimePreTransfer => append_seconds(into, self.time_pretransfer),
            WriteOutVariable::TimePostTransfer => append_seconds(into, self.time_posttransfer),
            WriteOutVariable::TimeRedirect => append_seconds(into, self.time_redirect),
            WriteOutVariable::XferId => match self.transfer_number {
                Some(number) => write!(into, "{number}"),
                None => write!(into, "-1"),
            },
            WriteOutVariable::ContentType => write!(into, "{}", self.content_type.unwrap_or_default()),
            WriteOutVariable::ErrorMessage => write!(into, "{}", self.error.unwrap_or_default()),
            WriteOutVariable::ExitCode => write!(into, "{}", self.exit_code),
            WriteOutVariable::FilenameEffective => write!(into, "{}", self.filename.unwrap_or_default()),
            WriteOutVariable::HttpVersion => match self.http_version {
                "" => write!(into, "0"),
                version => write!(into, "{version}"),
            },
            WriteOutVariable::LocalIp => append_address(into, self.local_ip),
            WriteOutVariable::LocalPort => append_port(into, self.local_port),
            WriteOutVariable::Method => write!(into, "{}", self.method),
            WriteOutVariable::NumConnects => write!(into, "{}", self.num_connects),
            WriteOutVariable::NumRedirects => write!(into, "{}", self.num_redirects),
            WriteOutVariable::RemoteIp => match self.remote_socket {
                Some(socket) => write!(into, "{socket}"),
                None => append_address(into, self.remote_ip),
            },
            WriteOutVariable::RemotePort => append_port(into, self.remote_port),
            WriteOutVariable::HttpCode | WriteOutVariable::ResponseCode => write!(into, "{:03}", self.response_code),
            WriteOutVariable::Scheme => write!(into, "{}", self.scheme),
            WriteOutVariable::SizeDelivered => write!(into, "{}", self.size_delivered),
            WriteOutVariable::SizeDownload => write!(into, "{}", self.size_download),
            WriteOutVariable::SpeedDownload => write!(into, "{}", self.speed(self.size_download)),
            WriteOutVariable::TimeAppConnect => append_seconds(into, self.time_appconnect),
            WriteOutVariable::TimeConnect => append_seconds(into, self.time_connect),
            WriteOutVariable::TimeNameLookup => append_seconds(into, self.time_namelookup),
            WriteOutVariable::TimeStartTransfer => append_seconds(into, self.time_starttransfer),
            WriteOutVariable::TimeTotal => append_seconds(into, self.time_total),
            WriteOutVariable::Url => write!(into, "{}", self.url),
            WriteOutVariable::UrlEffective => write!(into, "{}", self.url_effective),
            WriteOutVariable::UrlNumber => write!(into, "{}", self.url_number),
            other => match url_part(other) {
                Some((part, false)) => write!(into, "{}", url_component(self.url, part)),
                Some((part, true)) => write!(into, "{}", url_component(self.url_effective, part)),
                None => Ok(()),
            },
        };
        written.expect("a vector takes every write");
    }

    fn speed(&self, bytes: u64) -> u64 {
        match self.time_total.as_micros() {
            0 => bytes,
            micros => {
                let speed = u128::from(bytes) * 1_000_000 / micros;
                u64::try_from(speed).unwrap_or(u64::MAX)
            }
        }
    }
}

fn append_address(into: &mut Vec<u8>, address: Option<IpAddr>) -> std::io::Result<()> {
    match address {
        Some(address) => write!(into, "{address}"),
        None => Ok(()),
    }
}

/// Appends a port number to `into`, or -1 for `None`, as in curl.
fn append_port(into: &mut Vec<u8>, port: Option<u16>) -> std::io::Result<()> {
    write!(into, "{}", port.map_or(-1, i32::from))
}

fn append_seconds(into: &mut Vec<u8>, time: Duration) -> std::io::Result<()> {
    write!(into, "{}.{:06}", time.as_secs(), time.subsec_micros())
}

/// A component of a URL that a variable such as `%{url.host}` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UrlComponent {
    Fragment,
    Host,
    Path,
    Port,
    Query,
    Scheme,
    User,
    ZoneId,
}

/// Returns the component of a URL that a variable such as `%{url.host}` prints; `None` for other
/// variables. The second value is true for the URL of the last request, as in `%{urle.host}`.
fn url_part(variable: WriteOutVariable) -> Option<(UrlComponent, bool)> {
    Some(match variable {
        WriteOutVariable::UrlFragment => (UrlComponent::Fragment, false),
        WriteOutVariable::UrlHost => (UrlComponent::Host, false),
        WriteOutVariable::UrlPath => (UrlComponent::Path, false),
        WriteOutVariable::UrlPort => (UrlComponent::Port, false),
        WriteOutVariable::UrlQuery => (UrlComponent::Query, false),
        WriteOutVariable::UrlScheme => (UrlComponent::Scheme, false),
        WriteOutVariable::UrlUser => (UrlComponent::User, false),
        WriteOutVariable::UrlZoneId => (UrlComponent::ZoneId, false),
        WriteOutVariable::UrleFragment => (UrlComponent::Fragment, true),
        WriteOutVariable::UrleHost => (UrlComponent::Host, true),
        WriteOutVariable::UrlePath => (UrlComponent::Path, true),
        WriteOutVariable::UrlePort => (UrlComponent::Port, true),
        WriteOutVariable::UrleQuery => (UrlComponent::Query, true),
        WriteOutVariable::UrleScheme => (UrlComponent::Scheme, true),
        WriteOutVariable::UrleUser => (UrlComponent::User, true),
        WriteOutVariable::UrleZoneId => (UrlComponent::ZoneId, true),
        _ => return None,
    })
}

fn url_component(url: &str, part: UrlComponent) -> String {
    if file_url::is_file_url(url) {
        let Ok(rest) = file_url::path_query_fragment(url) else { return String::new() };
        return match part {
            UrlComponent::Scheme => "file".to_owned(),
            // To curl it has a port, but no host.
            UrlComponent::Port => "0".to_owned(),
            UrlComponent::Host | UrlComponent::User | UrlComponent::ZoneId => String::new(),
            UrlComponent::Path | UrlComponent::Query | UrlComponent::Fragment => {
                url_component(&format!("http://localhost{rest}"), part)
            }
        };
    }
    let target = match (Target::parse(url), url.split_once("://")) {
        (Ok(target), _) => target,
        // Another scheme has the same parts, but no default port.
        (Err(error), Some((scheme, rest))) if error.exit_code() == 1 => {
            let Ok(target) = Target::parse(&["http://", rest].concat()) else { return String::new() };
            match part {
                UrlComponent::Scheme => return scheme.to_ascii_lowercase(),
                UrlComponent::Port => return target.explicit_port().map(|port| port.to_string()).unwrap_or_default(),
                _ => target,
            }
        }
        _ => return String::new(),
    };
    let spelled =
        || url_parts_as_written::path(url, target.path_and_query()).unwrap_or(target.path_and_query().to_owned());
    match part {
        UrlComponent::Fragment => url.split_once('#').map_or("", |(_, fragment)| fragment).to_owned(),
        UrlComponent::Host => match target.host() {
            // As curl: an address in brackets, and its zone elsewhere.
            Host::V6(address, _) => format!("[{address}]"),
            _ => url_parts_as_written::host(url, target.host_text()).unwrap_or(target.host_text()).to_owned(),
        },
        UrlComponent::Path => spelled().split('?').next().unwrap_or_default().to_owned(),
        UrlComponent::Port => target.port().to_string(),
        UrlComponent::Query => spelled().split_once('?').map_or("", |(_, query)| query).to_owned(),
        UrlComponent::Scheme => target.scheme().as_str().to_owned(),
        UrlComponent::User => url_parts_as_written::user(url).to_owned(),
        UrlComponent::ZoneId => match target.host() {
            Host::V6(_, Some(zone)) => zone.clone(),
            _ => String::new(),
        },
    }
}
