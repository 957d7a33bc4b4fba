//! The engine's side of a multi handle: a client, and a batch whose thread serves all transfers.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use haul::Client;
use haul::batch::{Batch, BatchOptions, BatchOrder};
use haul::net::dns::Resolver;
use haul::net::pool::PoolLimits;

use super::state::MultiSettings;

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
}

impl MultiEngine {
    /// Makes the engine. Returns `None` if the process cannot open another descriptor.
    pub(super) fn new(settings: &MultiSettings, resolver: Option<Resolver>) -> Option<Self> {
        let mut limits = PoolLimits::default();
        if let Some(most) = settings.max_idle {
            limits.connections = most;
        }
        let builder = Client::builder().pool(limits);
        let client = match resolver {
            Some(resolver) => builder.resolver(resolver).build(),
            None => builder.build(),
        };
        let batch = client.batch(BatchOptions {
            max_parallel: settings.max_parallel.unwrap_or(MAX_CONCURRENT_REQUESTS),
            per_host: Some(settings.max_per_host.unwrap_or(MAX_CONCURRENT_REQUESTS)),
            order: BatchOrder::Completion,
            // Each transfer bounds its own memory.
            memory: u64::MAX,
            ..BatchOptions::default()
        });
        let fd = batch.fd().ok()?;
        Some(Self { client, batch, fd })
    }

    pub(super) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
