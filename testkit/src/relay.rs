//! A relay on loopback that adds a round-trip time, jitter and a rate limit to connections.
//!
//! The relay records when each piece of data arrives, and forwards it half a round trip later, so
//! the delay does not reduce the bandwidth. Jitter delays a piece further. All later pieces in that
//! direction wait too, so that nothing is reordered. The TCP handshake is only delayed if this is
//! requested.
//!
//! ```
//! use std::time::Duration;
//! use testkit::{origin::Origin, relay::Relay};
//!
//! let origin = Origin::builder().start().unwrap();
//! let relay = Relay::to(origin.http_addr()).rtt(Duration::from_millis(20)).start().unwrap();
//! assert_ne!(relay.addr(), origin.http_addr());
//! assert_eq!(relay.connections(), 0);
//! ```
//!
//! Not supported: loss and reordering.

mod timer;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{self, Runtime};
use tokio::sync::{Semaphore, mpsc as channel};

use crate::lock_even_if_poisoned::lock;
use crate::rng::{Rng, mix};
use timer::PieceTimer;

/// The largest number of bytes that one direction of a relayed connection may have in flight. A
/// connection with its two directions uses at most twice this memory.
const IN_FLIGHT: u32 = 16 << 20;
/// The length of the queue of a rate-limited direction, which acts like the queue of a router. It
/// is given as the time that the queued data take at the rate limit. The relay's buffer holds this
/// queue and the data in flight.
const QUEUE: Duration = Duration::from_millis(20);
/// The maximum number of bytes that the relay reads in one call and forwards.
const PIECE: usize = 64 << 10;
/// The largest burst that a rate-limited direction may send above its rate limit after a pause,
/// given as the time that the burst takes at the rate limit.
const CATCH_UP: Duration = Duration::from_millis(5);

/// The settings of a relay; made by [`Relay::to`].
pub struct RelayBuilder {
    listen: SocketAddr,
    to: SocketAddr,
    link: LinkSettings,
}

#[derive(Clone, Copy)]
struct LinkSettings {
    rtt: Duration,
    jitter: Duration,
    seed: u64,
    handshake: bool,
    rate: Option<u64>,
    total_rate: Option<u64>,
}

impl RelayBuilder {
    /// Sets the address to listen on. Default: any port of 127.0.0.1.
    pub fn listen(mut self, addr: SocketAddr) -> RelayBuilder {
        self.listen = addr;
        self
    }

    /// Sets the round-trip time. Half of it is added in each direction. Default: zero.
    pub fn rtt(mut self, rtt: Duration) -> RelayBuilder {
        self.link.rtt = rtt;
        self
    }

    /// Sets the maximum jitter. A random time up to this maximum is added to the delay of each
    /// piece of data, without changing the order of pieces. Default: zero.
    pub fn jitter(mut self, most: Duration) -> RelayBuilder {
        self.link.jitter = most;
        self
    }

    /// Sets the seed of the jitter: with equal seeds, connection N of two relays has equal delays.
    /// Default: 1.
    pub fn seed(mut self, seed: u64) -> RelayBuilder {
        self.link.seed = seed;
        self
    }

    /// Sets whether the TCP handshake of a relayed connection also takes one round-trip time.
    /// Default: no.
    pub fn handshake(mut self, charged: bool) -> RelayBuilder {
        self.link.handshake = charged;
        self
    }

    /// Sets the rate limit of each connection in each direction, in bytes a second. Default:
    /// unlimited.
    pub fn rate(mut self, bytes_a_second: u64) -> RelayBuilder {
        self.link.rate = Some(bytes_a_second.max(1));
        self
    }

    /// Sets the rate limit of all connections together in each direction, in bytes a second.
    /// Default: unlimited.
    pub fn total_rate(mut self, bytes_a_second: u64) -> RelayBuilder {
        self.link.total_rate = Some(bytes_a_second.max(1));
        self
    }

    /// Binds the port and starts to relay.
    ///
    /// # Errors
    /// If the port cannot be bound or a thread cannot be started.
    pub fn start(self) -> io::Result<Relay> {
        let runtime =
            runtime::Builder::new_multi_thread().worker_threads(1).thread_name("testkit-relay").enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(self.listen))?;
        let addr = listener.local_addr()?;
        let connections = Arc::new(AtomicU64::new(0));
        let timer = {
            let _inside = runtime.enter();
            Arc::new(PieceTimer::new()?)
        };
        let ticking = Arc::clone(&timer);
        runtime.spawn(async move { ticking.run().await });
        let carrier = RelayForwarder {
            link: self.link,
            timer,
            up: Arc::new(LinkRatePace::new(self.link.total_rate)),
            down: Arc::new(LinkRatePace::new(self.link.total_rate)),
        };
        runtime.spawn(accept(listener, self.to, carrier, connections.clone()));
        Ok(Relay { addr, connections, runtime: Some(runtime) })
    }
}

/// A running relay. Dropping it stops it and closes its connections. Do not drop it inside an async
/// runtime.
pub struct Relay {
    addr: SocketAddr,
    connections: Arc<AtomicU64>,
    runtime: Option<Runtime>,
}

impl Relay {
    /// Returns the default settings of a relay that connects to the server at `to`.
    pub fn to(to: SocketAddr) -> RelayBuilder {
        let link = LinkSettings {
            rtt: Duration::ZERO,
            jitter: Duration::ZERO,
            seed: 1,
            handshake: false,
            rate: None,
            total_rate: None,
        };
        RelayBuilder { listen: (Ipv4Addr::LOCALHOST, 0).into(), to, link }
    }

    /// Returns the address on which the relay listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the number of connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.connections.load(SeqCst)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(2));
        }
    }
}

/// The pace of a rate-limited link. It stores the time at which the next byte may be sent.
struct LinkRatePace {
    rate: Option<u64>,
    next: Mutex<Option<Instant>>,
}

impl LinkRatePace {
    fn new(rate: Option<u64>) -> LinkRatePace {
        LinkRatePace { rate, next: Mutex::new(None) }
    }

    async fn wait_for_turn(&self, len: usize) {
        let Some(rate) = self.rate else { return };
        let leave = {
            let mut next = lock(&self.next);
            let now = Instant::now();
            let earliest = now.checked_sub(CATCH_UP).unwrap_or(now);
            let leave = next.map_or(now, |next| next.max(earliest)) + Duration::from_secs_f64(len as f64 / rate as f64);
            *next = Some(leave);
            leave
        };
        tokio::time::sleep_until(leave.into()).await;
    }
}

/// Forwards the data of a relay's connections with the delays and rate limits of the relay.
#[derive(Clone)]
struct RelayForwarder {
    link: LinkSettings,
    timer: Arc<PieceTimer>,
    up: Arc<LinkRatePace>,
    down: Arc<LinkRatePace>,
}

async fn accept(listener: TcpListener, to: SocketAddr, carrier: RelayForwarder, connections: Arc<AtomicU64>) {
    loop {
        let Ok((near, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let number = connections.fetch_add(1, SeqCst);
        let carrier = carrier.clone();
        tokio::spawn(async move {
            // If the far side cannot be reached, the near side sees a close.
            if let Ok(far) = TcpStream::connect(to).await {
                carrier.forward_both_ways(near, far, number).await;
            }
        });
    }
}

impl RelayForwarder {
    async fn forward_both_ways(self, near: TcpStream, far: TcpStream, number: u64) {
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        if self.link.slowest().is_some() {
            // The kernel's own buffers would grow to megabytes and act as a cache, too.
            for socket in [&near, &far] {
                let _ = SockRef::from(socket).set_recv_buffer_size(self.link.max_in_flight() as usize);
            }
        }
        let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
        let charge = if self.link.handshake { self.link.rtt } else { Duration::ZERO };
        let up = self.forward_one_way(near_in, far_out, &self.up, charge, mix(self.link.seed, 2 * number));
        let down =
            self.forward_one_way(far_in, near_out, &self.down, Duration::ZERO, mix(self.link.seed, 2 * number + 1));
        tokio::join!(up, down);
    }

    /// Relays one direction of a connection until the end of its data or the first error, and then
    /// shuts down the write side of `to`. The opposite direction continues until its own end.
    async fn forward_one_way(
        &self,
        from: OwnedReadHalf,
        to: OwnedWriteHalf,
        total: &LinkRatePace,
        charge: Duration,
        seed: u64,
    ) {
        let room = Semaphore::new(self.link.max_in_flight() as usize);
        let (sender, receiver) = channel::unbounded_channel();
        let pace = LinkRatePace::new(self.link.rate);
        tokio::join!(self.read(from, sender, &room, charge, seed), write(to, receiver, &room, &pace, total));
    }

    async fn read(
        &self,
        mut from: OwnedReadHalf,
        to: channel::UnboundedSender<Bytes>,
        room: &Semaphore,
        charge: Duration,
        seed: u64,
    ) {
        if !charge.is_zero() {
            tokio::time::sleep(charge).await;
        }
        // At a rate, pieces of 5 ms keep the flow even.
        let piece = self.link.slowest().map_or(PIECE, |rate| (rate / 200).clamp(256, PIECE as u64) as usize);
        let mut forward_schedule = PieceForwardSchedule { link: self.link, rng: Rng::new(seed), last: Instant::now() };
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(piece);
            let len = from.read_buf(&mut (&mut buffer).limit(piece)).await.unwrap_or(0);
            // A link does not acknowledge: a sender whose buffer is full must not wait for what we
            // would collect for 40 ms. Sending takes the setting back, so it is made each time.
            let _ = SockRef::from(from.as_ref()).set_tcp_quickack(true);
            let bytes = buffer.split().freeze();
            let due = forward_schedule.due();
            // Closed when the writer has given up.
            let Ok(permit) = room.acquire_many(len as u32).await else { return };
            permit.forget();
            let sent = match due {
                Some(due) => self.timer.send(due, bytes, &to).is_ok(),
                None => to.send(bytes).is_ok(),
            };
            if !sent || len == 0 {
                return;
            }
        }
    }
}

impl LinkSettings {
    fn slowest(&self) -> Option<u64> {
        [self.rate, self.total_rate].into_iter().flatten().min()
    }

    /// Returns the number of bytes that one direction of a connection may have in flight.
    fn max_in_flight(&self) -> u32 {
        let held = |rate: u64| (rate as f64 * (self.rtt + self.jitter + QUEUE).as_secs_f64()) as u64;
        let room = self.slowest().map_or(u64::from(IN_FLIGHT), held);
        room.clamp(128 << 10, u64::from(IN_FLIGHT)) as u32
    }
}

/// Computes the time at which the relay forwards each piece of data of one direction.
struct PieceForwardSchedule {
    link: LinkSettings,
    rng: Rng,
    last: Instant,
}

impl PieceForwardSchedule {
    /// Returns the time at which a piece of data that arrives now must be forwarded; `None` if the
    /// direction has no delay.
    fn due(&mut self) -> Option<Instant> {
        let LinkSettings { rtt, jitter, .. } = self.link;
        if rtt.is_zero() && jitter.is_zero() {
            return None;
        }
        let by_chance = Duration::from_nanos(self.rng.below(jitter.as_nanos() as u64 + 1));
        self.last = self.last.max(Instant::now() + rtt / 2 + by_chance);
        Some(self.last)
    }
}

async fn write(
    mut to: OwnedWriteHalf,
    mut from: channel::UnboundedReceiver<Bytes>,
    room: &Semaphore,
    pace: &LinkRatePace,
    total: &LinkRatePace,
) {
    while let Some(bytes) = from.recv().await {
        if bytes.is_empty() {
            break;
        }
        pace.wait_for_turn(bytes.len()).await;
        total.wait_for_turn(bytes.len()).await;
        if to.write_all(&bytes).await.is_err() {
            break;
        }
        room.add_permits(bytes.len());
    }
    let _ = to.shutdown().await;
    room.close();
}
