//! The client: what all transfers of a program share. Connections, names, TLS contexts, buffers.
//!
//! Making one costs nothing: no thread, no file read, no large buffer before it is needed.
//!
//! ```no_run
//! use std::sync::Arc;
//! use haul::sink::memory::Memory;
//! use haul::{Client, RequestOptions, Target};
//!
//! let client = Client::new();
//! let target = Target::parse("http://127.0.0.1:8080/")?;
//! let outcome = client.fetch(target, Arc::new(RequestOptions::default()), Box::new(Memory::default()));
//! outcome.result?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;
use std::time::Instant;

use haul_policy::target::Target;

use crate::body::path::BodyPath;
use crate::buffer::Shelf;
use crate::drive::link::Link;
use crate::drive::link::h2::Windows;
use crate::drive::{blocking, bulk};
use crate::net::dns::{DnsOptions, Resolver};
use crate::net::pool::{Key, Pool};
use crate::net::tls::TlsContexts;
use crate::request::RequestOptions;
use crate::sink::Sink;
use crate::stats::Stats;
use crate::transfer::{Outcome, Transfer};

/// The size of a read buffer. Larger ones save few calls (bodies of 49 KiB arrive in one or two), smaller ones cost many.
const READ_BUFFER: usize = 128 << 10;

/// The size of a buffer that a bulk body is read into. Each read makes the kernel tell the sender of the room that it left,
/// on loopback at our cost: a wake-up's worth of bytes ([`bulk::PIECE`]) is read at once.
const WIDE_BUFFER: usize = bulk::PIECE;

/// Shared by all transfers; cloning it is cheap and shares everything.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    resolver: Resolver,
    tls: TlsContexts,
    pool: Pool<Link>,
    shelf: Arc<Shelf>,
    wide: Arc<Shelf>,
    windows: Windows,
    stats: Stats,
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// A client with an empty pool.
    #[must_use]
    pub fn new() -> Self {
        Self::with_resolver(Resolver::new(DnsOptions::default()))
    }

    /// A client that asks this resolver for addresses.
    #[must_use]
    pub fn with_resolver(resolver: Resolver) -> Self {
        Self {
            inner: Arc::new(Inner {
                resolver,
                tls: TlsContexts::default(),
                pool: Pool::default(),
                shelf: Shelf::new(READ_BUFFER),
                wide: Shelf::new(WIDE_BUFFER),
                windows: Windows::default(),
                stats: Stats::default(),
            }),
        }
    }

    /// Fetches one target into a sink, waiting for it: no thread, no event loop.
    #[must_use]
    pub fn fetch(&self, target: Target, options: Arc<RequestOptions>, sink: Box<dyn Sink>) -> Outcome {
        let now = Instant::now();
        blocking::run(self, Transfer::new(target, options, BodyPath::new(sink), now, 0))
    }

    /// What its connections carried so far, those in the pool included.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.inner.stats
    }

    /// The resolver, for fixed answers.
    #[must_use]
    pub fn resolver(&self) -> &Resolver {
        &self.inner.resolver
    }

    pub(crate) fn tls(&self) -> &TlsContexts {
        &self.inner.tls
    }

    pub(crate) fn shelf(&self) -> &Arc<Shelf> {
        &self.inner.shelf
    }

    /// What its HTTP/2 connections may hold.
    pub(crate) fn windows(&self) -> &Windows {
        &self.inner.windows
    }

    /// Buffers for bulk bodies.
    pub(crate) fn wide(&self) -> &Arc<Shelf> {
        &self.inner.wide
    }

    pub(crate) fn take_idle(&self, key: &Key, now: Instant) -> Option<Link> {
        self.inner.pool.take(key, now)
    }

    pub(crate) fn put_idle(&self, link: Link, now: Instant) {
        self.inner.pool.put(Arc::clone(link.key()), link, now);
    }

    /// Closes the idle connections; what they carried is in [`Client::stats`] then.
    pub fn close_idle(&self) {
        for link in self.inner.pool.drain() {
            self.inner.stats.connection_closed(&link);
        }
    }
}
