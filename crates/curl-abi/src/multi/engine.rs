//! The engine's side of a multi handle: a client, and a batch whose thread serves all transfers.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use haul::Client;
use haul::batch::{Batch, BatchOptions, BatchOrder};
use haul::net::dns::Resolver;
use haul::net::pool::PoolLimits;

use super::state::MultiSettings;
use crate::client_settings::ClientSettings;
use crate::handle_table::lock;
use crate::request::TransferFailure;

/// The maximum number of concurrent requests, in all and to one host, unless the C program sets a
/// limit.
const MAX_CONCURRENT_REQUESTS: usize = 1 << 20;

/// The engine's client for a multi handle, and the client's batch, which runs the transfers at the
/// same time.
pub(super) struct MultiEngine {
    pub(super) client: Client,
    pub(super) batch: Batch,
    /// The descriptor that is readable while the batch has outcomes of finished transfers.
    fd: OwnedFd,
    /// The settings of the easy handle whose name servers the resolver asks.
    servers: Mutex<Option<ClientSettings>>,
    /// The settings of the first easy handle, and the resolver of its share object.
    first: (ClientSettings, Option<Resolver>),
}

impl MultiEngine {
    /// Makes the engine. `easy` are the settings of the first easy handle that is added, for the
    /// connection pool and name resolution, and `shared` is the resolver of its share object, if it
    /// has one. Returns `None` if the process cannot open another descriptor.
    pub(super) fn new(settings: &MultiSettings, easy: &ClientSettings, shared: Option<Resolver>) -> Option<Self> {
        let mut limits = easy.pool_limits();
        limits.connections = settings.max_idle.unwrap_or_else(|| PoolLimits::default().connections);
        let first = (easy.clone(), shared.clone());
        let resolver = shared.unwrap_or_else(|| easy.resolver());
        let client = Client::builder().pool(limits).resolver(resolver).build();
        let batch = client.batch(BatchOptions {
            max_parallel: settings.max_parallel.unwrap_or(MAX_CONCURRENT_REQUESTS),
            per_host: Some(settings.max_per_host.unwrap_or(MAX_CONCURRENT_REQUESTS)),
            order: BatchOrder::Completion,
            // Each transfer bounds its own memory.
            memory: u64::MAX,
            ..BatchOptions::default()
        });
        let fd = batch.fd().ok()?;
        Some(Self { client, batch, fd, servers: Mutex::default(), first })
    }

    /// Makes an engine with the same settings, for a forked child: the threads of this one run in
    /// the parent only.
    pub(super) fn for_child(&self, settings: &MultiSettings) -> Option<Self> {
        Self::new(settings, &self.first.0, self.first.1.clone())
    }

    /// Makes the resolver of all transfers ask the name servers that an easy handle sets, if they
    /// are others than those of the last easy handle.
    pub(super) fn set_servers(&self, settings: ClientSettings) -> Result<(), TransferFailure> {
        let mut last = lock(&self.servers);
        if !last.as_ref().is_some_and(|last| settings.has_servers_of(last)) {
            settings.set_servers(self.client.resolver())?;
            *last = Some(settings);
        }
        Ok(())
    }

    pub(super) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
