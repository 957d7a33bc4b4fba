//! How a client is set up.

use std::sync::Arc;
use std::time::Duration;

use haul_policy::proxy::{Environment, Proxy};

use super::{Client, MOST_AT_ONCE};
use crate::body::DecodeLimits;
use crate::interrupt::Interrupt;
use crate::net::dns::Resolver;
use crate::net::pool::PoolLimits;
use crate::net::proxy::ProxyOptions;
use crate::request::RequestOptions;
use crate::state::jar::Jar;
use crate::{Error, ErrorKind, Result};

/// The settings of a [`Client`].
///
/// Its requests begin with [`RequestOptions::default`], but that redirects are followed (at most 50) and content is decoded.
/// A status of 400 or above is an ordinary response; nothing is tried again but what a server closed while it was idle.
///
/// ```
/// use std::time::Duration;
/// use haul::Client;
/// use haul::state::jar::Jar;
///
/// let client = Client::builder()
///     .user_agent("example/1.0")
///     .timeout(Duration::from_secs(30))
///     .jar(Jar::new())
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
        Self { options, resolver: None, limits: PoolLimits::default(), max_requests: MOST_AT_ONCE }
    }
}

impl ClientBuilder {
    /// `User-Agent`, in place of `haul/VERSION`.
    pub fn user_agent(mut self, name: impl Into<Vec<u8>>) -> Self {
        self.options.user_agent = Some(name.into());
        self
    }

    /// A field that all requests carry, unless they have one of this name themselves.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<[u8]>) -> Self {
        self.options.fields.push((name.as_ref().to_owned(), value.as_ref().to_vec()));
        self
    }

    /// How long an attempt may take in all, its body included. That of [`send_async`](Client::send_async) begins with the wait for
    /// its turn. Default: no limit.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.options.max_time = Some(limit);
        self
    }

    /// How long making a connection may take, with names, proxies and TLS. Default 300 s.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.options.connect.timeout = limit;
        self
    }

    /// How long a server may be silent while it is waited for. Default: no limit.
    pub fn read_timeout(mut self, limit: Duration) -> Self {
        self.options.read_timeout = Some(limit);
        self
    }

    /// Keeps cookies here, and sends them. Default: none are kept.
    pub fn jar(mut self, jar: Jar) -> Self {
        self.options.jar = Some(jar);
        self
    }

    /// Whether redirects are followed. Default yes.
    pub fn follow(mut self, follow: bool) -> Self {
        self.options.redirects.follow = follow;
        self
    }

    /// Whether compressed content is asked for and decoded. Default yes.
    pub fn decode(mut self, decode: bool) -> Self {
        self.options.decode = decode;
        self
    }

    /// What decoding may cost: how much may come of a body, and how much of each byte of it. Default: at most 750 bytes of each that is
    /// received, beyond the first 8 MiB.
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

    /// A proxy for all requests, by its URL.
    ///
    /// # Errors
    /// [`ErrorKind::ProxyResolve`] when it is none.
    pub fn proxy(mut self, url: &str) -> Result<Self> {
        let proxy = Proxy::parse(url)
            .map_err(|error| Error::with_source(ErrorKind::ProxyResolve, "the proxy's URL is none", error))?;
        self.options.proxy.get_or_insert_with(ProxyOptions::default).proxy = Some(proxy);
        Ok(self)
    }

    /// Proxies as the variables `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` say. Default: a library does not
    /// read its host's environment unasked.
    pub fn proxy_from_environment(mut self) -> Self {
        let environment = Environment::read(|name| std::env::var(name).ok());
        self.options.proxy.get_or_insert_with(ProxyOptions::default).environment = environment;
        self
    }

    /// Who is asked, while a call waits, whether it shall go on.
    pub fn interrupt(mut self, hook: Interrupt) -> Self {
        self.options.interrupt = Some(hook);
        self
    }

    /// Any of the options that requests begin with.
    pub fn options(mut self, change: impl FnOnce(&mut RequestOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Who is asked for addresses. Default: the system.
    pub fn resolver(mut self, resolver: Resolver) -> Self {
        self.resolver = Some(resolver);
        self
    }

    /// How many connections are kept idle, and for how long.
    pub fn pool(mut self, limits: PoolLimits) -> Self {
        self.limits = limits;
        self
    }

    /// How many requests of [`send_async`](Client::send_async) run at a time, one at least; others wait for their turn. Each may
    /// need a descriptor. Default 1,024.
    pub fn max_requests(mut self, most: usize) -> Self {
        self.max_requests = most.max(1);
        self
    }

    /// The client.
    #[must_use]
    pub fn build(self) -> Client {
        let Self { options, resolver, limits, max_requests } = self;
        Client::with_parts(Arc::new(options), resolver.unwrap_or_default(), limits, max_requests)
    }
}
