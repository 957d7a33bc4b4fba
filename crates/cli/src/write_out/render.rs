//! The facts of one transfer and how each of them prints.

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use haul::transfer::FollowedRedirect;
use haul::{ResponseHead, Target};
use haul_policy::Host;

use super::{Variable, certificates, url_spelling};

/// The facts that `-w` can print about one transfer. `Default` is a transfer that failed before it
/// connected.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransferFacts<'a> {
    /// Status of the last reply; 0 without one.
    pub response_code: u16,
    /// The URL as given, or as a stage built it.
    pub url: &'a str,
    /// The URL fetched last, after redirects.
    pub url_effective: &'a str,
    /// Body bytes as transferred.
    pub size_download: u64,
    /// Body bytes as written.
    pub size_delivered: u64,
    /// From the start until the name was resolved.
    pub time_namelookup: Duration,
    /// From the start until the connection was up.
    pub time_connect: Duration,
    /// From the start until TLS was up; zero without TLS.
    pub time_appconnect: Duration,
    /// From the start until the first byte of the reply.
    pub time_starttransfer: Duration,
    /// From the start to the end.
    pub time_total: Duration,
    /// New connections made.
    pub num_connects: u64,
    /// Redirects followed.
    pub num_redirects: u64,
    /// `Content-Type` of the last reply.
    pub content_type: Option<&'a str>,
    /// The transfer's own exit code.
    pub exit_code: u8,
    /// The error message; `None` if the transfer succeeded.
    pub error: Option<&'a str>,
    /// Method of the last request.
    pub method: &'a str,
    /// The file written to.
    pub filename: Option<&'a str>,
    /// Scheme of the last URL.
    pub scheme: &'a str,
    /// `1`, `1.1`, `2`, `3`; empty without a reply.
    pub http_version: &'a str,
    /// The number of the last connection.
    pub connection: Option<u64>,
    /// The address connected to.
    pub remote_ip: Option<IpAddr>,
    /// The certificates that the server showed, its own first, in DER.
    pub certificates: &'a [Vec<u8>],
    /// The file of the local socket connected to.
    pub remote_socket: Option<&'a str>,
    /// The port connected to, where there is one.
    pub remote_port: Option<u16>,
    /// The local address.
    pub local_ip: Option<IpAddr>,
    /// The local port, where there is one.
    pub local_port: Option<u16>,
    /// Position of the URL in its operation, from 0.
    pub url_number: u64,
    /// Position of the transfer among all transfers of the run.
    pub transfer_number: u64,
    /// Status of a proxy's last answer to CONNECT; 0 without one.
    pub connect_code: u16,
    /// Further tries made.
    pub num_retries: u64,
    /// The transfer went through a proxy.
    pub proxy_used: bool,
    /// The verification result of the proxy's certificate, by OpenSSL's numbers.
    pub proxy_verify_result: u32,
    /// The verification result of the server's certificate, by OpenSSL's numbers.
    pub verify_result: u32,
    /// The URL that the last response redirects to.
    pub redirect_url: Option<&'a str>,
    /// `Referer` of the request.
    pub referer: Option<&'a str>,
    /// Bytes of all heads received.
    pub size_header: u64,
    /// Bytes of all requests sent, heads and content.
    pub size_request: u64,
    /// Bytes of content sent.
    pub size_upload: u64,
    /// From the start until the request went out.
    pub time_pretransfer: Duration,
    /// From the start until redirects had been followed.
    pub time_redirect: Duration,
    /// The head of the last reply.
    pub head: Option<&'a ResponseHead>,
    /// The redirects that were followed, where they were kept.
    pub history: &'a [FollowedRedirect],
    /// The time of the output, since 1970.
    pub now: Duration,
}

impl TransferFacts<'_> {
    /// All fields with this name, of one reply after the other up to the first without it, as in
    /// curl.
    pub(super) fn append_all(&self, name: &str, separator: &str, into: &mut Vec<u8>) {
        let heads = self.history.iter().map(|redirect| &redirect.head).chain(self.head);
        let values: Vec<_> =
            heads.map(|head| head.get_all(name).collect::<Vec<_>>()).take_while(|all| !all.is_empty()).collect();
        into.extend_from_slice(&values.concat().join(separator.as_bytes()));
    }

    pub(super) fn append(&self, variable: Variable, into: &mut Vec<u8>) {
        let written = match variable {
            Variable::Certs => certificates::append(self.certificates, into),
            Variable::FtpEntryPath => Ok(()),
            Variable::ConnId => match self.connection {
                Some(number) => write!(into, "{number}"),
                None => write!(into, "-1"),
            },
            Variable::NumCerts => write!(into, "{}", self.certificates.len()),
            Variable::TlsEarlyData => write!(into, "0"),
            Variable::ProxyVerifyResult => write!(into, "{}", self.proxy_verify_result),
            Variable::VerifyResult => write!(into, "{}", self.verify_result),
            Variable::TimeQueue => seconds(into, Duration::ZERO),
            Variable::HttpConnect => write!(into, "{:03}", self.connect_code),
            Variable::NumHeaders => write!(into, "{}", self.head.map_or(0, |head| head.fields().count())),
            Variable::NumRetries => write!(into, "{}", self.num_retries),
            Variable::ProxyUsed => write!(into, "{}", u8::from(self.proxy_used)),
            Variable::RedirectUrl => write!(into, "{}", self.redirect_url.unwrap_or_default()),
            Variable::Referer => write!(into, "{}", self.referer.unwrap_or_default()),
            Variable::SizeHeader => write!(into, "{}", self.size_header),
            Variable::SizeRequest => write!(into, "{}", self.size_request),
            Variable::SizeUpload => write!(into, "{}", self.size_upload),
            Variable::SpeedUpload => write!(into, "{}", self.speed(self.size_upload)),
            Variable::TimePreTransfer | Variable::TimePostTransfer => seconds(into, self.time_pretransfer),
            Variable::TimeRedirect => seconds(into, self.time_redirect),
            Variable::XferId => write!(into, "{}", self.transfer_number),
            Variable::ContentType => write!(into, "{}", self.content_type.unwrap_or_default()),
            Variable::ErrorMessage => write!(into, "{}", self.error.unwrap_or_default()),
            Variable::ExitCode => write!(into, "{}", self.exit_code),
            Variable::FilenameEffective => write!(into, "{}", self.filename.unwrap_or_default()),
            Variable::HttpVersion => match self.http_version {
                "" => write!(into, "0"),
                version => write!(into, "{version}"),
            },
            Variable::LocalIp => address(into, self.local_ip),
            Variable::LocalPort => port(into, self.local_port),
            Variable::Method => write!(into, "{}", self.method),
            Variable::NumConnects => write!(into, "{}", self.num_connects),
            Variable::NumRedirects => write!(into, "{}", self.num_redirects),
            Variable::RemoteIp => match self.remote_socket {
                Some(socket) => write!(into, "{socket}"),
                None => address(into, self.remote_ip),
            },
            Variable::RemotePort => port(into, self.remote_port),
            Variable::HttpCode | Variable::ResponseCode => write!(into, "{:03}", self.response_code),
            Variable::Scheme => write!(into, "{}", self.scheme),
            Variable::SizeDelivered => write!(into, "{}", self.size_delivered),
            Variable::SizeDownload => write!(into, "{}", self.size_download),
            Variable::SpeedDownload => write!(into, "{}", self.speed(self.size_download)),
            Variable::TimeAppConnect => seconds(into, self.time_appconnect),
            Variable::TimeConnect => seconds(into, self.time_connect),
            Variable::TimeNameLookup => seconds(into, self.time_namelookup),
            Variable::TimeStartTransfer => seconds(into, self.time_starttransfer),
            Variable::TimeTotal => seconds(into, self.time_total),
            Variable::Url => write!(into, "{}", self.url),
            Variable::UrlEffective => write!(into, "{}", self.url_effective),
            Variable::UrlNumber => write!(into, "{}", self.url_number),
            other => match url_part(other) {
                Some((part, false)) => write!(into, "{}", parts(self.url, part)),
                Some((part, true)) => write!(into, "{}", parts(self.url_effective, part)),
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

fn address(into: &mut Vec<u8>, address: Option<IpAddr>) -> std::io::Result<()> {
    match address {
        Some(address) => write!(into, "{address}"),
        None => Ok(()),
    }
}

/// Writes a port; as in curl, -1 for none.
fn port(into: &mut Vec<u8>, port: Option<u16>) -> std::io::Result<()> {
    write!(into, "{}", port.map_or(-1, i32::from))
}

fn seconds(into: &mut Vec<u8>, time: Duration) -> std::io::Result<()> {
    write!(into, "{}.{:06}", time.as_secs(), time.subsec_micros())
}

/// A component of a URL.
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

/// Returns the URL component of a variable, and true if it is one of the URL fetched last.
fn url_part(variable: Variable) -> Option<(UrlComponent, bool)> {
    Some(match variable {
        Variable::UrlFragment => (UrlComponent::Fragment, false),
        Variable::UrlHost => (UrlComponent::Host, false),
        Variable::UrlPath => (UrlComponent::Path, false),
        Variable::UrlPort => (UrlComponent::Port, false),
        Variable::UrlQuery => (UrlComponent::Query, false),
        Variable::UrlScheme => (UrlComponent::Scheme, false),
        Variable::UrlUser => (UrlComponent::User, false),
        Variable::UrlZoneId => (UrlComponent::ZoneId, false),
        Variable::UrleFragment => (UrlComponent::Fragment, true),
        Variable::UrleHost => (UrlComponent::Host, true),
        Variable::UrlePath => (UrlComponent::Path, true),
        Variable::UrlePort => (UrlComponent::Port, true),
        Variable::UrleQuery => (UrlComponent::Query, true),
        Variable::UrleScheme => (UrlComponent::Scheme, true),
        Variable::UrleUser => (UrlComponent::User, true),
        Variable::UrleZoneId => (UrlComponent::ZoneId, true),
        _ => return None,
    })
}

fn parts(url: &str, part: UrlComponent) -> String {
    let Ok(target) = Target::parse(url) else { return String::new() };
    match part {
        UrlComponent::Fragment => url.split_once('#').map_or("", |(_, fragment)| fragment).to_owned(),
        UrlComponent::Host => match target.host() {
            // As curl: an address in brackets, and its zone elsewhere.
            Host::V6(address, _) => format!("[{address}]"),
            _ => url_spelling::host(url, target.host_text()).unwrap_or(target.host_text()).to_owned(),
        },
        UrlComponent::Path => target.path().to_owned(),
        UrlComponent::Port => target.port().to_string(),
        UrlComponent::Query => target.path_and_query().split_once('?').map_or("", |(_, query)| query).to_owned(),
        UrlComponent::Scheme => target.scheme().as_str().to_owned(),
        UrlComponent::User => url_spelling::user(url).to_owned(),
        UrlComponent::ZoneId => match target.host() {
            Host::V6(_, Some(zone)) => zone.clone(),
            _ => String::new(),
        },
    }
}
