//! DNS over HTTPS (RFC 8484): lookups by POST requests to a DNS server that is given as a URL.
//!
//! The requests go through a client of their own. It connects directly, keeps no cookies, follows
//! no redirects, and looks up the host of the URL with the system's resolver.
//!
//! ```
//! use haul::Client;
//! use haul::dns_over_https::DnsOverHttps;
//! use haul::net::tls::TlsOptions;
//!
//! let client = Client::new();
//! let server = DnsOverHttps::new("https://dns.example/dns-query", TlsOptions::default())?;
//! server.use_for(client.resolver());
//! assert!(DnsOverHttps::new("http://dns.example/dns-query", TlsOptions::default()).is_err());
//! # Ok::<(), haul::Error>(())
//! ```

use std::sync::Arc;
use std::time::Duration;

use haul_policy::target::{Scheme, Target};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::batch::{Batch, BatchOptions, BatchOrder};
use crate::net::dns::Resolver;
use crate::net::dns::custom_transport::{DnsChannel, DnsMessage, DnsTransport};
use crate::net::tls::TlsOptions;
use crate::{BufferedResponse, Client, Error, ErrorKind, Result};

/// The media type of DNS messages (RFC 8484 section 6).
const MEDIA_TYPE: &str = "application/dns-message";
/// The time limit for one request to the DNS server, including the connection that it may need.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of a DNS message in bytes (RFC 1035 section 4.2.2).
const MAX_MESSAGE: u64 = 65_535;
/// The maximum number of simultaneous requests to the DNS server. Further requests wait.
const MAX_PARALLEL: usize = 256;

/// A DNS server that is queried over HTTPS.
#[derive(Debug, Clone)]
pub struct DnsOverHttps {
    url: Target,
    tls: TlsOptions,
}

impl DnsOverHttps {
    /// Makes a DNS server with this URL. The TLS options apply to the connections to the server.
    ///
    /// # Errors
    /// [`ErrorKind::Url`] if the text is no https URL.
    pub fn new(url: &str, tls: TlsOptions) -> Result<Self> {
        let target = Target::parse(url).map_err(|error| Error::with_source(ErrorKind::Url, url, error))?;
        if target.scheme() != Scheme::Https {
            return Err(Error::new(ErrorKind::Url, format!("{url}: a DNS server must have an https URL")));
        }
        Ok(Self { url: target, tls })
    }

    /// Makes `resolver` send all later queries to this server. The host name in the server's own
    /// URL is looked up differently: with the addresses that the program has set in `resolver`
    /// before this call, or else with the system's resolver.
    pub fn use_for(self, resolver: &Resolver) {
        let own_names = resolver.without_servers();
        resolver.use_transport(Arc::new(HttpsTransport { server: self, own_names }));
    }
}

/// The transport by which a resolver sends its queries to a DNS server over HTTPS.
struct HttpsTransport {
    server: DnsOverHttps,
    /// The resolver that looks up the host in the DNS server's URL.
    own_names: Resolver,
}

impl DnsTransport for HttpsTransport {
    fn open(&self) -> Result<Box<dyn DnsChannel>> {
        let tls = self.server.tls.clone();
        let client = Client::builder()
            .resolver(self.own_names.clone())
            .follow(false)
            .decode(false)
            .timeout(REQUEST_TIMEOUT)
            .header("Accept", MEDIA_TYPE)
            .header("Content-Type", MEDIA_TYPE)
            .options(|options| {
                options.tls = tls;
                options.max_size = Some(MAX_MESSAGE);
                // The fewer fields, the less the server learns (RFC 8484 section 8.2).
                options.user_agent = None;
            })
            .build();
        let options = BatchOptions {
            max_parallel: MAX_PARALLEL,
            // One connection for all requests. A server without HTTP/2 gets one request at a time.
            per_host: Some(1),
            order: BatchOrder::Completion,
            ..BatchOptions::default()
        };
        let batch = client.batch(options);
        let fd = batch.fd().map_err(|error| {
            Error::with_source(ErrorKind::Resolve, "DNS over HTTPS has no descriptor for its results", error)
        })?;
        Ok(Box::new(HttpsChannel { url: self.server.url.clone(), text: self.server.url.to_url(), client, batch, fd }))
    }
}

/// The connection of one thread to the DNS server. Each query is a request of the HTTP client
/// `client`. The requests run in parallel in `batch`, which also collects the responses.
struct HttpsChannel {
    url: Target,
    text: String,
    client: Client,
    batch: Batch,
    fd: OwnedFd,
}

impl DnsChannel for HttpsChannel {
    fn server(&self) -> &str {
        &self.text
    }

    fn send(&mut self, query: Vec<u8>) -> u64 {
        let request = self.client.request_to("POST", self.url.clone()).body(query).build();
        self.batch.submit(request.expect("a target and constant fields are a valid request"))
    }

    fn receive(&mut self) -> Option<(u64, Result<DnsMessage>)> {
        let finished = self.batch.try_next()?;
        Some((finished.id(), finished.into_reply().and_then(to_dns_message)))
    }

    fn cancel(&mut self, number: u64) {
        self.batch.cancel(number);
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns the DNS message that a response contains.
///
/// # Errors
/// The response has no successful status, or contains no DNS message (RFC 8484 section 4.2).
fn to_dns_message(response: BufferedResponse) -> Result<DnsMessage> {
    let field = |name: &str| response.head.get(name).map(|value| String::from_utf8_lossy(value).into_owned());
    if response.status() != 200 {
        return Err(Error::new(ErrorKind::Resolve, format!("it answered with status {}", response.status())));
    }
    let media_type = field("content-type").unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case(MEDIA_TYPE) {
        return Err(Error::new(ErrorKind::Resolve, format!("it answered with {essence:?} instead of {MEDIA_TYPE}")));
    }
    let age = field("age").and_then(|age| age.trim().parse().ok()).map_or(Duration::ZERO, Duration::from_secs);
    Ok(DnsMessage { bytes: response.body, age })
}
