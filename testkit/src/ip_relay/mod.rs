//! A link of IP packets between two network namespaces, which loses and delays packets of every
//! protocol: segments of TCP as well as datagrams of UDP.
//!
//! ```text
//!  near namespace                 this process                far namespace
//!  clients ── TUN device ──▶ PacketLink ──▶ ──▶ TUN device ── servers
//!  10.77.0.1              ◀── ◀── PacketLink ◀──              10.77.0.2
//! ```
//!
//! A TUN device passes each packet that its namespace sends to this process. A packet that this
//! process writes arrives in the namespace. The kernel splits large segments before that, so that
//! the link handles packets of at most 1,500 bytes, as a network does.
//!
//! Needs root (or CAP_NET_ADMIN) and the program `ip`. The namespaces have no names. They exist
//! until the relay is dropped and all processes in them have ended.
//!
//! ```no_run
//! use std::process::Command;
//! use testkit::ip_relay::{FAR_ADDR, IpRelay};
//! use testkit::lossy_link_model::LinkConditions;
//!
//! let relay = IpRelay::start(&LinkConditions::new().loss(0.01)).unwrap();
//! let mut ping = Command::new("nsenter");
//! ping.arg(relay.near().nsenter_option()).args(["ping", "-c1", &FAR_ADDR.to_string()]);
//! ```
//!
//! Not supported: rebinding, and conditions that differ by direction.

mod event_loop;
mod namespace;

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread::{self, JoinHandle};

use mio::{Poll, Waker};

use crate::lossy_link_model::LinkConditions;
use event_loop::{IpRelayLoop, WAKE};
pub use namespace::NetworkNamespace;

/// The address of the near namespace, for clients.
pub const NEAR_ADDR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// The address of the far namespace, for servers.
pub const FAR_ADDR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// A running link between two namespaces. Dropping it stops the relay.
pub struct IpRelay {
    near: NetworkNamespace,
    far: NetworkNamespace,
    counts: Arc<PacketCounts>,
    waker: Waker,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// The numbers of packets that a relay has read and dropped so far, in both directions together.
#[derive(Debug, Default)]
struct PacketCounts {
    read: AtomicU64,
    dropped: AtomicU64,
}

impl IpRelay {
    /// Creates both namespaces and starts to relay.
    ///
    /// # Errors
    /// If this process may not make namespaces and TUN devices, or `ip` fails.
    pub fn start(conditions: &LinkConditions) -> io::Result<IpRelay> {
        let (near, near_device) = NetworkNamespace::with_device(NEAR_ADDR, FAR_ADDR)?;
        let (far, far_device) = NetworkNamespace::with_device(FAR_ADDR, NEAR_ADDR)?;
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        let counts = Arc::new(PacketCounts::default());
        let mut relay = IpRelayLoop::new(poll, [near_device, far_device], conditions, counts.clone())?;
        let thread = thread::Builder::new().name("testkit-ip-relay".into()).spawn(move || relay.run())?;
        Ok(IpRelay { near, far, counts, waker, thread: Some(thread) })
    }

    /// Returns the namespace with [`NEAR_ADDR`].
    pub fn near(&self) -> &NetworkNamespace {
        &self.near
    }

    /// Returns the namespace with [`FAR_ADDR`].
    pub fn far(&self) -> &NetworkNamespace {
        &self.far
    }

    /// Returns the number of packets that the namespaces have sent so far.
    pub fn packets(&self) -> u64 {
        self.counts.read.load(SeqCst)
    }

    /// Returns the number of packets that were lost so far.
    pub fn dropped(&self) -> u64 {
        self.counts.dropped.load(SeqCst)
    }
}

impl Drop for IpRelay {
    fn drop(&mut self) {
        // This fails only if the thread has ended.
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}
