//! A client: settings, connections and a cookie jar, which any number of threads can share.
//!
//! A lock protects the settings. A request holds the lock only while it clones a reference to the
//! settings. A setter replaces the settings by a changed copy if requests use them, so it never
//! changes requests in progress.
//!
//! ```
//! use haul_c::client::{haul_client_free, haul_client_new};
//! use haul_c::error::haul_status;
//! use haul_c::client_settings::haul_client_set_timeout;
//! let mut client = haul_client_new().unwrap();
//! // SAFETY: the client lives.
//! assert_eq!(unsafe { haul_client_set_timeout(&mut *client, 30_000) }, haul_status::Ok);
//! haul_client_free(Some(client));
//! ```

use std::ffi::c_char;
use std::sync::Arc;

use haul::fork::ForkSafeLock;
use haul::net::pool::PoolLimits;
use haul::{Client, RequestOptions};

use crate::c_arguments;
use crate::client_settings::time_limit;
use crate::error::{CallFailure, catch_panic, catch_panic_new, catch_panic_or, haul_status};
use crate::request::parse_url;

/// The number of redirects that a new client follows at most.
const MAX_REDIRECTS: u32 = 20;

/// State that requests share: settings, connections, and a cookie jar. Any number of threads may
/// use it at once.
pub struct haul_client {
    shared: ForkSafeLock<EngineWithOptions>,
}

/// The engine's client and the default request options. Each request takes a clone of both.
#[derive(Clone)]
pub(crate) struct EngineWithOptions {
    /// The HTTP engine with its connections, DNS answers and TLS sessions.
    pub(crate) engine: Client,
    /// The client's request options. The settings of a single request override them.
    pub(crate) options: Arc<RequestOptions>,
}

impl haul_client {
    /// Returns copies of the engine's client and of the default options, for a new request.
    pub(crate) fn shared(&self) -> EngineWithOptions {
        self.shared.read().clone()
    }

    /// Changes the client's settings for later requests. If `change` fails, the settings stay
    /// unchanged.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut RequestOptions) -> Result<(), CallFailure>,
    ) -> Result<(), CallFailure> {
        self.change_shared(|shared| {
            let mut options = RequestOptions::clone(&shared.options);
            change(&mut options)?;
            shared.options = Arc::new(options);
            Ok(())
        })
    }

    pub(crate) fn change_shared(
        &self,
        change: impl FnOnce(&mut EngineWithOptions) -> Result<(), CallFailure>,
    ) -> Result<(), CallFailure> {
        change(&mut self.shared.write())
    }

    fn with(shared: EngineWithOptions) -> Box<Self> {
        Box::new(Self { shared: ForkSafeLock::new(shared) })
    }
}

/// Returns the request options with which a new client begins.
fn defaults() -> RequestOptions {
    let mut options = RequestOptions::default();
    options.redirects.follow = true;
    options.redirects.max = MAX_REDIRECTS;
    options.keep_history = true;
    options
}

/// Creates a client with default settings and without a cookie jar. The client opens no connection
/// before its first request.
#[unsafe(no_mangle)]
pub extern "C" fn haul_client_new() -> Option<Box<haul_client>> {
    catch_panic_new(|| {
        Ok(haul_client::with(EngineWithOptions { engine: Client::new(), options: Arc::new(defaults()) }))
    })
}

/// Creates a client with the current settings of `client`. The two clients share connections and
/// cookie jar.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_clone(client: *const haul_client) -> Option<Box<haul_client>> {
    // SAFETY: the header's contract: NULL or a client that lives. So in all functions here.
    catch_panic_new(|| Ok(haul_client::with(unsafe { c_arguments::required_object(client, "client") }?.shared())))
}

/// Frees a client. Its connections are closed when all clients that share them are freed. Responses
/// and batches remain valid.
#[unsafe(no_mangle)]
pub extern "C" fn haul_client_free(client: Option<Box<haul_client>>) {
    catch_panic_or((), || drop(client));
}

/// Flag of haul_client_share: shares connections, DNS answers and TLS sessions.
pub const HAUL_SHARE_POOL: u32 = 1;
/// Flag of haul_client_share: shares the cookie jar.
pub const HAUL_SHARE_JAR: u32 = 2;

/// Makes `client` share the connections, the cookie jar or both with the client `with`: `what` is
/// HAUL_SHARE_POOL, HAUL_SHARE_JAR or both. A connection is only used by clients whose settings
/// match it (certificates, proxies, interface).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_share(
    client: *mut haul_client,
    with: *const haul_client,
    what: u32,
) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let (client, with) =
            unsafe { (c_arguments::required_object(client, "client")?, c_arguments::required_object(with, "with")?) };
        if what == 0 || what & !(HAUL_SHARE_POOL | HAUL_SHARE_JAR) != 0 {
            return Err(CallFailure::setup("what is to be shared is not known"));
        }
        // The state of `with` is copied before `client` is locked, because both may be the same
        // client.
        let theirs = with.shared();
        client.change_shared(|ours| {
            if what & HAUL_SHARE_POOL != 0 {
                ours.engine = theirs.engine;
            }
            if what & HAUL_SHARE_JAR != 0 {
                Arc::make_mut(&mut ours.options).jar = theirs.options.jar.clone();
            }
            Ok(())
        })
    })
}

/// Sets how many idle connections are kept: in all, to one server, and for how many milliseconds. 0
/// means the default: 4,096 connections in all, no limit for one server, and 118,000 ms. The client
/// gets a new, empty pool, and keeps its settings. Clients that share a pool share its limits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_pool(
    client: *mut haul_client,
    max_idle: usize,
    max_idle_per_server: usize,
    max_idle_ms: u64,
) -> haul_status {
    catch_panic(|| {
        let default = PoolLimits::default();
        let or = |value: usize, default: usize| if value > 0 { value } else { default };
        let limits = PoolLimits {
            connections: or(max_idle, default.connections),
            per_key: or(max_idle_per_server, default.per_key),
            idle: time_limit(max_idle_ms).unwrap_or(default.idle),
        };
        // SAFETY: the header's contract.
        unsafe { c_arguments::required_object(client, "client") }?.change_shared(|shared| {
            // The other clients keep their connections, and their name servers with them.
            let resolver = shared.engine.resolver().with_empty_cache();
            shared.engine = Client::builder().resolver(resolver).pool(limits).build();
            Ok(())
        })
    })
}

/// Closes the idle connections of this client and of the clients that share them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_close_idle(client: *mut haul_client) {
    catch_panic_or((), || {
        // SAFETY: the header's contract.
        if let Some(client) = unsafe { client.as_ref() } {
            client.shared().engine.close_idle();
        }
    });
}

/// Returns true if there is an idle, open connection for a request to `url`, and false if `url` is
/// not a valid URL. Another thread may take the connection, or its server may close it, before your
/// request is sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_is_warm(client: *const haul_client, url: *const c_char) -> bool {
    catch_panic_or(false, || {
        // SAFETY: the header's contract: strings end with NUL.
        let (client, url) = unsafe { (client.as_ref(), c_arguments::optional_text(url, "url")) };
        let (Some(client), Ok(Some(url))) = (client, url) else { return false };
        let shared = client.shared();
        parse_url(url, false).is_ok_and(|target| shared.engine.is_warm(&target, &shared.options))
    })
}

/// Returns three numbers of all clients that share the connections: the connections opened, the
/// requests sent and the body bytes received so far. Any pointer may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_stats(
    client: *const haul_client,
    connections: *mut u64,
    requests: *mut u64,
    bytes: *mut u64,
) {
    catch_panic_or((), || {
        // SAFETY: the header's contract.
        let Some(client) = (unsafe { client.as_ref() }) else { return };
        let totals = client.shared().engine.stats().totals();
        for (place, count) in
            [(connections, totals.connections), (requests, totals.requests), (bytes, totals.body_bytes)]
        {
            // SAFETY: NULL or the caller's own number.
            if let Some(place) = unsafe { place.as_mut() } {
                *place = count;
            }
        }
    });
}
