//! A relay of UDP datagrams on loopback that loses, delays, reorders and duplicates them, and that
//! can change the address of a client.
//!
//! Each client address is a flow, which has its own socket to the server: the server sees the port
//! of that socket. ECN marks are not relayed.
//!
//! ```
//! use testkit::http3::Http3Settings;
//! use testkit::origin::Origin;
//! use testkit::lossy_link_model::LinkConditions;
//! use testkit::udp_relay::UdpRelay;
//!
//! let origin = Origin::builder().http3(Http3Settings::new()).start().unwrap();
//! let relay = UdpRelay::to(origin.https_addr()).conditions(LinkConditions::new().loss(0.02)).start().unwrap();
//! assert_ne!(relay.addr(), origin.https_addr());
//! assert_eq!(relay.counts().flows, 0);
//! ```

mod event_loop;
mod flow;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use mio::{Poll, Waker};

use crate::http3::bind_udp;
use crate::lock_even_if_poisoned::lock;
use crate::lossy_link_model::LinkConditions;
use event_loop::{RelayLoop, WAKE};

/// The direction of a relayed datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The direction from the client to the server.
    Up,
    /// The direction from the server to the client.
    Down,
}

/// The decision of a filter about a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatagramVerdict {
    /// The datagram is relayed under the conditions of the link.
    Pass,
    /// The datagram is dropped.
    Drop,
    /// The given datagrams are relayed in place of the original datagram, without loss and delay.
    Replace(Vec<Vec<u8>>),
}

/// A filter, which decides what happens to a datagram. The number is the index of the datagram in
/// its flow and direction, from 0.
pub type DatagramFilter = dyn FnMut(Direction, u64, &[u8]) -> DatagramVerdict + Send;

/// The settings of a relay; made by [`UdpRelay::to`].
pub struct UdpRelayBuilder {
    listen: SocketAddr,
    to: SocketAddr,
    conditions: LinkConditions,
    filter: Option<Box<DatagramFilter>>,
}

impl UdpRelayBuilder {
    /// Sets the address to listen on. Default: any port of 127.0.0.1.
    pub fn listen(mut self, addr: SocketAddr) -> UdpRelayBuilder {
        self.listen = addr;
        self
    }

    /// Sets the conditions of the link. Default: a perfect link.
    pub fn conditions(mut self, conditions: LinkConditions) -> UdpRelayBuilder {
        self.conditions = conditions;
        self
    }

    /// Sets the filter, which is called for each datagram before the conditions of the link apply.
    /// Default: every datagram passes.
    pub fn filter(
        mut self,
        filter: impl FnMut(Direction, u64, &[u8]) -> DatagramVerdict + Send + 'static,
    ) -> UdpRelayBuilder {
        self.filter = Some(Box::new(filter));
        self
    }

    /// Binds the port and starts to relay.
    ///
    /// # Errors
    /// If the port cannot be bound or the thread cannot be started.
    pub fn start(self) -> io::Result<UdpRelay> {
        let socket = bind_udp(self.listen)?;
        let addr = socket.local_addr()?;
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        let shared = Arc::new(RelayControl::default());
        let mut relay = RelayLoop::new(poll, socket, self.to, self.conditions, self.filter, shared.clone())?;
        let thread = thread::Builder::new().name("testkit-udp-relay".into()).spawn(move || relay.run())?;
        Ok(UdpRelay { addr, shared, waker, thread: Some(thread) })
    }
}

/// A running relay of datagrams. Dropping it stops it.
pub struct UdpRelay {
    addr: SocketAddr,
    shared: Arc<RelayControl>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// The state that the handle of a relay shares with the relay's thread.
#[derive(Default)]
struct RelayControl {
    state: Mutex<RelayControlState>,
}

/// The counts of a relay, and the commands that a test has given to its thread.
#[derive(Default)]
struct RelayControlState {
    counts: RelayCounts,
    rebind: bool,
    is_blocked: [bool; 2],
    injected: Vec<(Direction, Vec<u8>)>,
    stop: bool,
}

/// The numbers of datagrams that a relay has handled so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounts {
    /// The number of client addresses.
    pub flows: u64,
    /// The number of datagrams received from clients.
    pub up: u64,
    /// The number of datagrams received from the server on all flows.
    pub down: u64,
    /// The number of datagrams that were not relayed: lost, too large, blocked or dropped by the
    /// filter.
    pub dropped: u64,
    /// The number of bytes received from clients.
    pub bytes_up: u64,
    /// The number of bytes received from the server.
    pub bytes_down: u64,
}

impl UdpRelay {
    /// Returns the default settings of a relay to the server at `to`.
    pub fn to(to: SocketAddr) -> UdpRelayBuilder {
        let listen = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        UdpRelayBuilder { listen, to, conditions: LinkConditions::new(), filter: None }
    }

    /// Returns the address on which the relay listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the numbers of datagrams handled so far.
    pub fn counts(&self) -> RelayCounts {
        lock(&self.shared.state).counts
    }

    /// Gives each flow a new socket to the server, like a NAT device that has lost its state: the
    /// server sees a new port. Datagrams to the old port are lost.
    pub fn rebind(&self) {
        self.command(|state| state.rebind = true);
    }

    /// Sets whether all datagrams in `direction` are dropped.
    pub fn set_blocked(&self, direction: Direction, is_blocked: bool) {
        self.command(|state| state.is_blocked[direction as usize] = is_blocked);
    }

    /// Sends a forged datagram, which neither end has sent, on every flow in `direction`. With
    /// [`Direction::Down`], its source is the relay's address, like that of the server's datagrams.
    pub fn inject(&self, direction: Direction, datagram: &[u8]) {
        self.command(|state| state.injected.push((direction, datagram.to_vec())));
    }

    fn command(&self, change: impl FnOnce(&mut RelayControlState)) {
        change(&mut lock(&self.shared.state));
        // This fails only if the thread has ended.
        let _ = self.waker.wake();
    }
}

impl Drop for UdpRelay {
    fn drop(&mut self) {
        self.command(|state| state.stop = true);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

/// Creates a non-blocking socket that is connected to the server.
fn connect(to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = bind_udp(SocketAddr::new(to.ip(), 0))?;
    socket.connect(to)?;
    Ok(socket)
}
