//! The client: the state that all transfers of a program share. It contains connections, resolved
//! names, TLS contexts, buffers, and the options with which requests start.
//!
//! A new client starts no thread, reads no file, and allocates no large buffer before it is needed.
//!
//! ```
//! # let origin = testkit::origin::Origin::builder().start().unwrap();
//! # let url = origin.url("/small");
//! let client = haul::Client::new();
//! let page = client.get(&url).send()?.text()?;
//! assert_eq!(page, "small\n");
//! # Ok::<(), haul::Error>(())
//! ```
//!
//! # Threads and forks
//!
//! Any number of threads can use a client at once. It also works in a child process (`fork`): the
//! child opens new connections, and closes its copies of the parent's connections without sending
//! anything. A [`Response`] belongs to the process that sent the request.

mod builder;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Instant;

use haul_policy::target::{Origin, Scheme, Target, TargetError};

pub use builder::ClientBuilder;

use crate::Result;
use crate::batch::executor::RequestExecutor;
use crate::batch::{Batch, BatchOptions, FetchAll};
use crate::body::delivery::BodyDelivery;
use crate::buffer_pool::BufferPool;
use crate::drive::blocking;
use crate::drive::connection::HttpConnection;
use crate::drive::connection::h2::SharedRecvMemory;
use crate::drive::worker_inbox::{WorkerInbox, WorkerMessage};
use crate::fork;
use crate::ignore_poison::IgnorePoison;
use crate::net::connection_descriptor_budget::ConnectionDescriptorBudget;
use crate::net::dns::Resolver;
use crate::net::pool::{ConnectionKey, ConnectionPool, PoolLimits};
#[cfg(feature = "http3")]
use crate::net::quic::{DatagramBufferPool, QuicConnectionLoad, QuicReceiveMemory};
use crate::net::tls::TlsContexts;
use crate::request::{Request, RequestBuilder, RequestOptions};
use crate::response::{self, BufferedResponse, Response, ResponseFuture};
use crate::sink::Sink;
use crate::stats::ClientStats;
use crate::transfer::{Transfer, TransferOutcome};

/// The size in bytes of a read buffer. A larger buffer would save few system calls, since a body of
/// 49 KiB already arrives in one or two reads. A smaller buffer would need many more.
const READ_BUFFER_SIZE: usize = 128 << 10;

/// The number of idle connections that the client may keep in any case. Beyond it, the number also
/// depends on the process's limit on file descriptors.
const ALWAYS_ALLOWED_IDLE: usize = 16;

/// The default limit on concurrent asynchronous requests of a client. Each request may need a file
/// descriptor.
const MAX_REQUESTS: usize = 1024;

/// A client, shared by all transfers of a program. Clones are cheap and share everything.
#[derive(Clone)]
pub struct Client {
    inner: Arc<ClientStateHandle>,
}

/// A handle to a client's state. All clones of a client that the program has share one handle. When
/// the program drops its last clone, the handle stops the thread for asynchronous requests. The
/// clones in the client's own threads have separate handles, which do not stop it.
struct ClientStateHandle {
    core: Arc<ClientCore>,
    is_program_owned: bool,
}

impl Drop for ClientStateHandle {
    fn drop(&mut self) {
        if self.is_program_owned
            && let Some(executor) = self.core.existing_process_state().and_then(|parts| parts.executor.get())
        {
            executor.stop_after_running();
        }
    }
}

/// The state of a client: its settings, and the state for the process that made the client.
struct ClientCore {
    options: Arc<RequestOptions>,
    limits: PoolLimits,
    max_requests: usize,
    first: PerProcessState,
}

/// The part of a client's state that a forked child process cannot share with its parent.
struct PerProcessState {
    generation: u32,
    resolver: Resolver,
    tls: TlsContexts,
    pool: ConnectionPool<HttpConnection>,
    connection_descriptor_budget: Arc<ConnectionDescriptorBudget>,
    buffer_pool: Arc<BufferPool>,
    recv_memory: SharedRecvMemory,
    /// The receive buffers for QUIC. Their memory is allocated with the first QUIC connection.
    #[cfg(feature = "http3")]
    datagram_buffers: DatagramBufferPool,
    stats: ClientStats,
    /// The origin of the URL that was parsed last; see [`Client::target`]. `None` before the first
    /// URL.
    last_origin: Mutex<Option<Origin>>,
    /// The executor for asynchronous requests; created on first use.
    executor: OnceLock<Arc<RequestExecutor>>,
    /// The inboxes of the event loops that use connections of this client. An event loop wakes up
    /// when a message arrives in its inbox.
    inboxes: Mutex<Vec<Weak<WorkerInbox>>>,
    /// The number of calls of [`Client::close_idle`] so far. Event loops compare it to notice a new
    /// call.
    close_count: AtomicU32,
    /// The state for a forked child of the process to which this state belongs. It is set only in
    /// the memory of the child.
    child: OnceLock<Box<PerProcessState>>,
}

impl PerProcessState {
    fn new(resolver: Resolver, limits: PoolLimits) -> Self {
        fork::register_fork_handler();
        Self {
            generation: fork::fork_count(),
            resolver,
            tls: TlsContexts::default(),
            pool: ConnectionPool::new(limits),
            connection_descriptor_budget: Arc::default(),
            buffer_pool: BufferPool::new(READ_BUFFER_SIZE),
            recv_memory: SharedRecvMemory::default(),
            #[cfg(feature = "http3")]
            datagram_buffers: DatagramBufferPool::default(),
            stats: ClientStats::default(),
            last_origin: Mutex::default(),
            executor: OnceLock::new(),
            inboxes: Mutex::default(),
            close_count: AtomicU32::new(0),
            child: OnceLock::new(),
        }
    }
}

impl ClientCore {
    /// Returns the state for the current process. In a forked child, the first call makes a new
    /// state.
    fn process_state(&self) -> &PerProcessState {
        let mut parts = &self.first;
        let generation = fork::fork_count();
        while parts.generation != generation {
            parts = parts.child.get_or_init(|| {
                // Closes only the descriptors, and sends nothing.
                drop(parts.pool.try_drain());
                Box::new(PerProcessState::new(parts.resolver.clone(), self.limits))
            });
        }
        parts
    }

    /// Returns the state for the current process. Returns `None` in a forked child that has not
    /// used the client yet.
    fn existing_process_state(&self) -> Option<&PerProcessState> {
        let generation = fork::fork_count();
        let mut all = std::iter::successors(Some(&self.first), |parts| parts.child.get().map(Box::as_ref));
        all.find(|parts| parts.generation == generation)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// Makes a client with the default settings of [`ClientBuilder`].
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Makes a client that uses this resolver to look up host names.
    #[must_use]
    pub fn with_resolver(resolver: Resolver) -> Self {
        Self::builder().resolver(resolver).build()
    }

    /// Makes a builder for a client with other settings.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    fn with_settings(
        options: Arc<RequestOptions>,
        resolver: Resolver,
        limits: PoolLimits,
        max_requests: usize,
    ) -> Self {
        let core = ClientCore { options, limits, max_requests, first: PerProcessState::new(resolver, limits) };
        Self { inner: Arc::new(ClientStateHandle { core: Arc::new(core), is_program_owned: true }) }
    }

    fn process_state(&self) -> &PerProcessState {
        self.inner.core.process_state()
    }

    /// Returns a clone of this client for one of the client's own threads. The clone does not keep
    /// the client alive: when the program has dropped all its clones, the thread ends.
    pub(crate) fn for_thread(&self) -> Self {
        Self { inner: Arc::new(ClientStateHandle { core: Arc::clone(&self.inner.core), is_program_owned: false }) }
    }

    /// Parses a URL like [`Target::parse_with`], with the default scheme `http`. If `path_as_is` is
    /// true, `.` and `..` segments in the path are kept. Parsing is five times as fast if the URL
    /// has the same origin as the previous one.
    ///
    /// # Errors
    /// The URL cannot be used.
    pub fn target(&self, url: &str, path_as_is: bool) -> std::result::Result<Target, TargetError> {
        // If another thread holds the lock, this one parses without the last origin.
        let Ok(mut last) = self.process_state().last_origin.try_lock() else {
            return Target::parse_with(url, Scheme::Http, path_as_is);
        };
        let target = Target::parse_near(url, last.as_ref(), Scheme::Http, path_as_is)?;
        if !last.as_ref().is_some_and(|origin| target.shares_origin(origin)) {
            *last = Some(target.origin());
        }
        Ok(target)
    }

    /// Starts a GET request (RFC 9110 section 9.3.1). The URL is a `&str`, a `String`, or the `url`
    /// crate's `Url`. The error for an invalid URL is returned when the request is sent or built.
    pub fn get(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request("GET", url)
    }

    /// Starts a HEAD request. Its response has the head of a response to a GET request, and no
    /// body.
    pub fn head(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request("HEAD", url)
    }

    /// Starts a POST request (RFC 9110 section 9.3.3).
    pub fn post(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request("POST", url)
    }

    /// Starts a PUT request (RFC 9110 section 9.3.4).
    pub fn put(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request("PUT", url)
    }

    /// Starts a PATCH request (RFC 5789).
    pub fn patch(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request("PATCH", url)
    }

    /// Starts a DELETE request (RFC 9110 section 9.3.5).
    pub fn delete(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request("DELETE", url)
    }

    /// Starts a request with any method (a string, or the `http` crate's `Method`). The method is
    /// sent exactly as given.
    pub fn request(&self, method: impl AsRef<str>, url: impl AsRef<str>) -> RequestBuilder {
        RequestBuilder::new(self, method.as_ref(), url.as_ref())
    }

    /// Starts a request with this method to a target that has already been parsed.
    pub fn request_to(&self, method: &str, target: Target) -> RequestBuilder {
        RequestBuilder::with_target(self, method, target)
    }

    /// Sends a request and waits for the head of the final response, after redirects, retries and
    /// authentication. It starts no thread and no event loop. Only the options in the request
    /// apply; they already include the options of the client that made the request.
    ///
    /// # Errors
    /// There was no response. A status of 400 or above is an error only if [`RequestOptions::fail`]
    /// is set.
    pub fn send(&self, request: Request) -> Result<Response> {
        response::send(self, request)
    }

    /// Sends a request as [`send`](Self::send) does. After a failure, returns the outcome of the
    /// transfer: the error, the last head, the redirects that were followed, and the times.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn send_or_outcome(&self, request: Request) -> std::result::Result<Response, Box<TransferOutcome>> {
        response::send_or_outcome(self, request)
    }

    /// Sends a request and waits for the whole response. This is the cheapest call if the body fits
    /// in memory: a body of known length is received directly into the returned memory.
    ///
    /// # Errors
    /// The errors of [`send`](Self::send), or the body ended early.
    pub fn call(&self, request: Request) -> Result<BufferedResponse> {
        response::call(self, request)
    }

    /// Sends a request and receives the body into the caller's sink, for example into a string of
    /// another language ([`Sink::receive`] takes bytes from the socket without a copy). The sink is
    /// returned even if the request fails.
    pub fn perform<S: Sink>(&self, request: Request, sink: S) -> (TransferOutcome, S) {
        response::perform(self, request, sink)
    }

    /// Returns a future that sends the request when the future is first polled, and resolves to the
    /// response when the response's head has arrived. The future works in any async runtime: one
    /// thread of the client serves all such requests and wakes their tasks. The thread starts with
    /// the first request. It ends after some idle time, or when the client has been dropped and no
    /// request is in progress. Dropping the future cancels the request.
    ///
    /// At most 1,024 requests run at a time ([`ClientBuilder::max_requests`]). For further
    /// requests, the time in the queue counts towards their [`timeout`](RequestBuilder::timeout). A
    /// response counts as running until all of its body but the last 256 KiB has been read, or
    /// until it is dropped. So a program that keeps the maximum number of responses unread and
    /// awaits another one waits for ever. Unread responses on one HTTP/2 connection also share its
    /// receive buffer of 9 MiB: from about 40 large unread responses of one server on, further
    /// requests to this server wait until the program reads or drops one of them.
    pub fn send_async(&self, request: Request) -> ResponseFuture {
        ResponseFuture::new(self, Ok(request))
    }

    /// Returns the executor for asynchronous requests. The first call creates it.
    pub(crate) fn executor(&self) -> &Arc<RequestExecutor> {
        self.process_state().executor.get_or_init(|| RequestExecutor::for_client(self.inner.core.max_requests))
    }

    /// Sends the requests of an iterator in parallel, and returns an iterator over the complete
    /// responses. See [`batch`](crate::batch).
    pub fn fetch_all<I>(&self, requests: I, options: BatchOptions) -> FetchAll<I::IntoIter>
    where
        I: IntoIterator<Item = Request>,
    {
        FetchAll::new(self, requests.into_iter(), options)
    }

    /// Makes a batch, to which the program submits requests one by one. The program can wait for
    /// the results in its own event loop ([`Batch::fd`]).
    #[must_use]
    pub fn batch(&self, options: BatchOptions) -> Batch {
        Batch::new(self, options)
    }

    /// Fetches one target into a sink. Returns after the end of the body. Starts no thread and no
    /// event loop. Only `options` apply; the options of the client are ignored.
    #[must_use]
    pub fn fetch(&self, target: Target, options: Arc<RequestOptions>, sink: Box<dyn Sink>) -> TransferOutcome {
        let now = Instant::now();
        blocking::run(self, Transfer::new(target, options, BodyDelivery::new(sink), now, 0))
    }

    /// Returns the options with which requests start.
    #[must_use]
    pub fn options(&self) -> &Arc<RequestOptions> {
        &self.inner.core.options
    }

    /// Returns the totals of all transfers of the client so far. Bytes and packets of a connection
    /// are added when the connection is closed.
    #[must_use]
    pub fn stats(&self) -> &ClientStats {
        &self.process_state().stats
    }

    /// Returns the resolver of the client, for example to add fixed addresses to it.
    #[must_use]
    pub fn resolver(&self) -> &Resolver {
        &self.process_state().resolver
    }

    pub(crate) fn tls(&self) -> &TlsContexts {
        &self.process_state().tls
    }

    pub(crate) fn buffer_pool(&self) -> &Arc<BufferPool> {
        &self.process_state().buffer_pool
    }

    /// Returns the budget of receive memory that the HTTP/2 and HTTP/3 connections of the client
    /// share.
    pub(crate) fn recv_memory(&self) -> &SharedRecvMemory {
        &self.process_state().recv_memory
    }

    /// Returns the receive memory that a new QUIC connection of this client needs. `load` is the
    /// number of transfers that it is expected to carry.
    #[cfg(feature = "http3")]
    pub(crate) fn quic_resources(&self, load: QuicConnectionLoad) -> QuicReceiveMemory<'_> {
        let parts = self.process_state();
        QuicReceiveMemory { buffers: &parts.datagram_buffers, recv_memory: &parts.recv_memory, load }
    }

    pub(crate) fn take_idle_connection(&self, key: &ConnectionKey, now: Instant) -> Option<HttpConnection> {
        self.process_state().pool.take_by_key(key, now)
    }

    pub(crate) fn take_idle_connection_for(
        &self,
        target: &Target,
        options: &RequestOptions,
        now: Instant,
    ) -> Option<HttpConnection> {
        self.process_state().pool.take_for_request(target, options, now)
    }

    pub(crate) fn put_idle_connection(&self, connection: HttpConnection, now: Instant) {
        let parts = self.process_state();
        if let Some(surplus) = parts.pool.add_idle(Arc::clone(connection.key()), connection, now) {
            parts.stats.connection_closed(&surplus);
        }
        while self.has_surplus_idle_connections() && self.close_oldest_pooled() {}
    }

    /// Returns true if there are more idle connections, in the pool and in the event loops, than
    /// the client's limits or the process's file descriptors allow.
    pub(crate) fn has_surplus_idle_connections(&self) -> bool {
        let (parts, limits) = (self.process_state(), self.pool_limits());
        let idle = parts.pool.len() + parts.connection_descriptor_budget.idle_connections();
        idle > limits.connections
            || (idle > ALWAYS_ALLOWED_IDLE && idle > parts.connection_descriptor_budget.max_idle())
    }

    /// Closes the least recently used connection of the pool. Returns false if the pool is empty.
    pub(crate) fn close_oldest_pooled(&self) -> bool {
        let parts = self.process_state();
        let oldest = parts.pool.take_oldest();
        if let Some(oldest) = &oldest {
            parts.stats.connection_closed(oldest);
        }
        oldest.is_some()
    }

    /// Returns the budget that limits the file descriptors for the connections of the client's
    /// event loops.
    pub(crate) fn connection_descriptor_budget(&self) -> &Arc<ConnectionDescriptorBudget> {
        &self.process_state().connection_descriptor_budget
    }

    /// Asks all event loops of the client to close one idle connection each, because an event loop
    /// lacks a file descriptor.
    pub(crate) fn request_descriptors(&self) {
        self.process_state().connection_descriptor_budget.reread_limit();
        self.send_to_inboxes(WorkerMessage::FreeDescriptor);
    }

    fn send_to_inboxes(&self, message: WorkerMessage) {
        let inboxes: Vec<_> = {
            let inboxes = self.process_state().inboxes.lock().ignore_poison();
            inboxes.iter().filter_map(Weak::upgrade).collect()
        };
        for inbox in inboxes {
            inbox.send(message);
        }
    }

    /// Returns true if the pool has an idle connection that a request to this target with these
    /// options can use: it is open and has no unread bytes. The result may soon be outdated,
    /// because another thread may take the connection, or the server may close it.
    #[must_use]
    pub fn is_warm(&self, target: &Target, options: &RequestOptions) -> bool {
        self.process_state().pool.has_for_request(target, options, Instant::now())
    }

    /// Returns the limits on the client's idle connections.
    pub(crate) fn pool_limits(&self) -> &PoolLimits {
        &self.inner.core.limits
    }

    /// Registers the inbox of an event loop that keeps connections for this client, so that
    /// [`Client::close_idle`] reaches it.
    pub(crate) fn register_inbox(&self, inbox: &Arc<WorkerInbox>) {
        let mut inboxes = self.process_state().inboxes.lock().ignore_poison();
        inboxes.retain(|inbox| inbox.strong_count() > 0);
        inboxes.push(Arc::downgrade(inbox));
    }

    /// Returns the number of calls of [`Client::close_idle`] so far. An event loop that sees a
    /// higher number than before closes its idle connections.
    pub(crate) fn close_idle_calls(&self) -> u32 {
        self.process_state().close_count.load(Ordering::Acquire)
    }

    /// Closes the client's idle connections, including the connections of the event loops of
    /// `send_async` and of batches. Later requests use new connections. [`Client::stats`] then
    /// includes the traffic of the closed connections.
    pub fn close_idle(&self) {
        let parts = self.process_state();
        // An event loop checks this count before it uses an idle connection, and before it puts one
        // into the pool.
        parts.close_count.fetch_add(1, Ordering::AcqRel);
        self.send_to_inboxes(WorkerMessage::CheckWork);
        for connection in parts.pool.drain() {
            parts.stats.connection_closed(&connection);
        }
    }
}
