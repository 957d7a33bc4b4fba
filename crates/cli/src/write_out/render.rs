//! The facts of one transfer and how each of them prints.

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use super::Variable;

/// What `-w` can tell about one transfer. `Default` is a transfer that got nowhere.
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
    /// What went wrong.
    pub error: Option<&'a str>,
    /// Method of the last request.
    pub method: &'a str,
    /// The file written to.
    pub filename: Option<&'a str>,
    /// Scheme of the last URL.
    pub scheme: &'a str,
    /// `1`, `1.1`, `2`, `3`; empty without a reply.
    pub http_version: &'a str,
    /// The address connected to.
    pub remote_ip: Option<IpAddr>,
    /// The port connected to.
    pub remote_port: u16,
    /// The local address.
    pub local_ip: Option<IpAddr>,
    /// The local port.
    pub local_port: u16,
    /// Position of the URL in its operation, from 0.
    pub url_number: u64,
}

impl TransferFacts<'_> {
    pub(super) fn append(&self, variable: Variable, into: &mut Vec<u8>) {
        let written = match variable {
            Variable::ContentType => write!(into, "{}", self.content_type.unwrap_or_default()),
            Variable::ErrorMessage => write!(into, "{}", self.error.unwrap_or_default()),
            Variable::ExitCode => write!(into, "{}", self.exit_code),
            Variable::FilenameEffective => write!(into, "{}", self.filename.unwrap_or_default()),
            Variable::HttpVersion => match self.http_version {
                "" => write!(into, "0"),
                version => write!(into, "{version}"),
            },
            Variable::LocalIp => address(into, self.local_ip),
            Variable::LocalPort => write!(into, "{}", self.local_port),
            Variable::Method => write!(into, "{}", self.method),
            Variable::NumConnects => write!(into, "{}", self.num_connects),
            Variable::NumRedirects => write!(into, "{}", self.num_redirects),
            Variable::RemoteIp => address(into, self.remote_ip),
            Variable::RemotePort => write!(into, "{}", self.remote_port),
            Variable::ResponseCode => write!(into, "{:03}", self.response_code),
            Variable::Scheme => write!(into, "{}", self.scheme),
            Variable::SizeDownload => write!(into, "{}", self.size_download),
            Variable::SpeedDownload => write!(into, "{}", self.speed()),
            Variable::TimeAppConnect => seconds(into, self.time_appconnect),
            Variable::TimeConnect => seconds(into, self.time_connect),
            Variable::TimeNameLookup => seconds(into, self.time_namelookup),
            Variable::TimeStartTransfer => seconds(into, self.time_starttransfer),
            Variable::TimeTotal => seconds(into, self.time_total),
            Variable::Url => write!(into, "{}", self.url),
            Variable::UrlEffective => write!(into, "{}", self.url_effective),
            Variable::UrlNumber => write!(into, "{}", self.url_number),
        };
        written.expect("a vector takes every write");
    }

    fn speed(&self) -> u64 {
        match self.time_total.as_micros() {
            0 => self.size_download,
            micros => {
                let speed = u128::from(self.size_download) * 1_000_000 / micros;
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

fn seconds(into: &mut Vec<u8>, time: Duration) -> std::io::Result<()> {
    write!(into, "{}.{:06}", time.as_secs(), time.subsec_micros())
}
