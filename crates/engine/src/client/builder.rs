//! The builder of clients with settings other than the defaults: [`ClientBuilder`].

use std::sync::Arc;
use std::time::Duration;

use haul_policy::proxy::Proxy;

use super::{Client, MAX_REQUESTS};
use crate::body::DecodeLimits;
use crate::interrupt_callback::InterruptCallback;
use crate::net::dns::Resolver;
use crate::net::pool::PoolLimits;
use crate::net::proxy::ProxyOptions;
use crate::request::RequestOptions;
use crate::state::cookie_jar::SharedCookieJar;
use crate::{Error, ErrorKind, Result};

/// The settings of a new [`Client`].
///
/// Requests start from [`RequestOptions::default`], with two differences: redirects are followed
/// (at most 50), and content is decoded. A status of 400 or above is an ordinary response. No
/// request is retried, except on a connection that the server closed while it was idle.
///
/// ```
/// use std::time::Duration;
/// use haul::Client;
/// use haul::state::cookie_jar::SharedCookieJar;
///
/// let client = Client::builder()
///     .user_agent("example/1.0")
///     .timeout(Duration::from_secs(30))
///     .jar(SharedCookieJar::new())
///     .options(|options| options.retry.max = 3)
///     .build();
/// assert_eq!(client.options().retry.max, 3);
/// ```
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder {
    options: RequestOptions,
    resolver: Option<Resolver>,
    limits: PoolLimits,
    max_requests: usize,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        let mut options = RequestOptions { decode: true, keep_history: true, ..RequestOptions::default() };
        options.redirects.follow = true;
        Self { options, resolver: None, limits: PoolLimits::default(), max_requests: MAX_REQUESTS }
    }
}

impl ClientBuilder {
    /// Sets `User-Agent`. Default: `haul/VERSION`.
    pub fn user_agent(mut self, name: impl Into<Vec<u8>>) -> Self {
        self.options.user_agent = Some(name.into());
        self
    }

    /// Adds a header field to all requests of the client. A field of the same name in a request
    /// replaces it.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<[u8]>) -> Self {
        self.options.fields.push((name.as_ref().to_owned(), value.as_ref().to_vec()));
        self
    }

    /// Sets the time limit for each attempt of a request, including the body. With
    /// [`send_async`](Client::send_async), the limit includes the time in the queue behind other
    /// requests. Default: no limit.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.options.max_time = Some(limit);
        self
    }

    /// Sets the time limit for connecting, including name lookup, proxies and TLS. Default 300 s.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.options.connect.timeout = limit;
        self
    }

    /// Sets the receive timeout: the longest time without a byte from the server. Default: no
    /// limit.
    pub fn read_timeout(mut self, limit: Duration) -> Self {
        self.options.read_timeout = Some(limit);
        self
    }

    /// Sets the cookie jar, in which cookies are stored and from which they are sent. Default: no
    /// cookies.
    pub fn jar(mut self, jar: SharedCookieJar) -> Self {
        self.options.jar = Some(jar);
        self
    }

    /// Sets whether haul follows redirects. Default: true.
    pub fn follow(mut self, follow: bool) -> Self {
        self.options.redirects.follow = follow;
        self
    }

    /// Sets whether haul requests and decodes compressed content. Default: true.
    pub fn decode(mut self, decode: bool) -> Self {
        self.options.decode = decode;
        self
    }

    /// Sets the limits for decoding: the maximum decoded size, and the maximum number of decoded
    /// bytes for each received byte. Default: 750 decoded bytes for each received byte, which
    /// applies after the first 8 MiB; no maximum size.
    ///
    /// ```
    /// use haul::Client;
    /// use haul::body::DecodeLimits;
    ///
    /// let mut limits = DecodeLimits::default();
    /// limits.max_output = Some(64 << 20);
    /// let client = Client::builder().decode_limits(limits).build();
    /// # drop(client);
    /// ```
    pub fn decode_limits(mut self, limits: DecodeLimits) -> Self {
        self.options.decode_limits = limits;
        self
    }

    /// Sets the proxy with the URL `url` for all requests.
    ///
    /// # Errors
    /// [`ErrorKind::ProxyResolve`] if the URL is malformed.
    pub fn proxy(mut self, url: &str) -> Result<Self> {
        let proxy = Proxy::parse(url)
            .map_err(|error| Error::with_source(ErrorKind::ProxyResolve, "the proxy's URL is malformed", error))?;
        self.options.proxy.get_or_insert_with(ProxyOptions::default).proxy = Some(proxy);
        Ok(self)
    }

    /// Uses the proxies from the environment variables `http_proxy`, `https_proxy`, `all_proxy` and
    /// `no_proxy`. Default: the environment is not used.
    pub fn proxy_from_environment(mut self) -> Self {
        let environment = ProxyOptions::from_environment().environment;
        self.options.proxy.get_or_insert_with(ProxyOptions::default).environment = environment;
        self
    }

    /// Sets a callback that haul calls during waits. It decides whether the waiting call ends with
    /// an error.
    pub fn interrupt(mut self, hook: InterruptCallback) -> Self {
        self.options.interrupt = Some(hook);
        self
    }

    /// Calls `change` to modify the options with which all requests of the client start.
    pub fn options(mut self, change: impl FnOnce(&mut RequestOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Sets the resolver for host names. Default: the system's.
    pub fn resolver(mut self, resolver: Resolver) -> Self {
        self.resolver = Some(resolver);
        self
    }

    /// Sets the limits on idle connections: their maximum number, and the time for which they are
    /// kept.
    pub fn pool(mut self, limits: PoolLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the maximum number of concurrent requests of [`send_async`](Client::send_async), at
    /// least one. Further requests wait. Each request may need a file descriptor. Default 1,024.
    pub fn max_requests(mut self, most: usize) -> Self {
        self.max_requests = most.max(1);
        self
    }

    /// Makes a client with the settings of this builder.
    #[must_use]
    pub fn build(self) -> Client {
        let Self { options, resolver, limits, max_requests } = self;
        Client::with_settings(Arc::new(options), resolver.unwrap_or_default(), limits, max_requests)
    }
}
