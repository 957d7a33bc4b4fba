//! The thread that reads datagrams, and forwards each datagram when it is due.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::UdpSocket;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::flow::{UdpFlow, WaitingDatagram};
use super::{DatagramFilter, DatagramVerdict, Direction, RelayControl, RelayControlState, connect};
use crate::lock_even_if_poisoned::lock;
use crate::lossy_link_model::LinkConditions;
use crate::timed_queue::TimedQueue;

pub(super) const WAKE: Token = Token(0);
const TIMER: Token = Token(1);
const CLIENTS: Token = Token(2);
/// The epoll token of flow 0. The token of flow N is larger by N. A flow relays the datagrams of
/// one client.
const FIRST_FLOW: usize = 3;
/// The maximum length of a datagram in bytes.
const LARGEST: usize = 65_535;

/// The event loop of a UDP relay, with its sockets and the datagrams that wait.
pub(super) struct RelayLoop {
    poll: Poll,
    /// A system timer for the next datagram. It is precise, while the timeouts of epoll are whole
    /// milliseconds.
    timer: OwnedFd,
    socket: UdpSocket,
    to: SocketAddr,
    conditions: LinkConditions,
    filter: Option<Box<DatagramFilter>>,
    shared: Arc<RelayControl>,
    flows: Vec<UdpFlow>,
    flow_of: HashMap<SocketAddr, usize>,
    queue: TimedQueue<WaitingDatagram>,
    is_blocked: [bool; 2],
}

impl RelayLoop {
    pub(super) fn new(
        poll: Poll,
        socket: std::net::UdpSocket,
        to: SocketAddr,
        conditions: LinkConditions,
        filter: Option<Box<DatagramFilter>>,
        shared: Arc<RelayControl>,
    ) -> io::Result<RelayLoop> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let mut socket = UdpSocket::from_std(socket);
        let registry = poll.registry();
        registry.register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        registry.register(&mut socket, CLIENTS, Interest::READABLE)?;
        Ok(RelayLoop {
            poll,
            timer,
            socket,
            to,
            conditions,
            filter,
            shared,
            flows: Vec::new(),
            flow_of: HashMap::new(),
            queue: TimedQueue::default(),
            is_blocked: [false; 2],
        })
    }

    /// Relays datagrams until the relay is dropped.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(64);
        let mut buffer = vec![0; LARGEST];
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                outcome => outcome?,
            }
            for event in &events {
                match event.token() {
                    WAKE => {
                        if !self.run_commands()? {
                            return Ok(());
                        }
                    }
                    TIMER => {
                        // The count of expirations does not matter.
                        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
                    }
                    CLIENTS => self.read_clients(&mut buffer)?,
                    Token(flow) => self.read_server(flow - FIRST_FLOW, &mut buffer),
                }
            }
            self.forward()?;
        }
    }

    /// Executes the commands that were sent to the thread. Returns false if the relay must stop.
    fn run_commands(&mut self) -> io::Result<bool> {
        let (rebind, injected) = {
            let state = &mut *lock(&self.shared.state);
            if state.stop {
                return Ok(false);
            }
            self.is_blocked = state.is_blocked;
            (std::mem::take(&mut state.rebind), std::mem::take(&mut state.injected))
        };
        if rebind {
            for (index, flow) in self.flows.iter_mut().enumerate() {
                let old = std::mem::replace(&mut flow.socket, UdpSocket::from_std(connect(self.to)?));
                drop(old);
                self.poll.registry().register(&mut flow.socket, Token(FIRST_FLOW + index), Interest::READABLE)?;
            }
        }
        let now = Instant::now();
        for (direction, bytes) in injected {
            for flow in 0..self.flows.len() {
                self.queue.push(now, WaitingDatagram { flow, direction, bytes: bytes.clone() });
            }
        }
        Ok(true)
    }

    fn read_clients(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        // An error is an ICMP message about a client that has gone, or that nothing is left.
        while let Ok((len, client)) = self.socket.recv_from(buffer) {
            let flow = match self.flow_of.get(&client) {
                Some(flow) => *flow,
                None => self.open_flow(client)?,
            };
            self.on_datagram(flow, Direction::Up, &buffer[..len]);
        }
        Ok(())
    }

    fn open_flow(&mut self, client: SocketAddr) -> io::Result<usize> {
        let number = self.flows.len();
        let mut socket = UdpSocket::from_std(connect(self.to)?);
        self.poll.registry().register(&mut socket, Token(FIRST_FLOW + number), Interest::READABLE)?;
        self.flows.push(UdpFlow::new(client, socket, &self.conditions, number as u64));
        self.flow_of.insert(client, number);
        self.count(|state| state.counts.flows += 1);
        Ok(number)
    }

    fn read_server(&mut self, flow: usize, buffer: &mut [u8]) {
        loop {
            match self.flows[flow].socket.recv(buffer) {
                Ok(len) => self.on_datagram(flow, Direction::Down, &buffer[..len]),
                // An ICMP message: the server's port is closed. There may be datagrams behind it.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(_) => return,
            }
        }
    }

    fn on_datagram(&mut self, flow: usize, direction: Direction, datagram: &[u8]) {
        let len = datagram.len() as u64;
        self.count(|state| match direction {
            Direction::Up => {
                (state.counts.up, state.counts.bytes_up) = (state.counts.up + 1, state.counts.bytes_up + len)
            }
            Direction::Down => {
                (state.counts.down, state.counts.bytes_down) = (state.counts.down + 1, state.counts.bytes_down + len);
            }
        });
        let now = Instant::now();
        let number = self.flows[flow].next_number(direction);
        let verdict = match &mut self.filter {
            _ if self.is_blocked[direction as usize] => DatagramVerdict::Drop,
            Some(filter) => filter(direction, number, datagram),
            None => DatagramVerdict::Pass,
        };
        match verdict {
            DatagramVerdict::Pass => {
                let arrivals = self.flows[flow].link(direction).arrivals_of_packet(now, datagram.len());
                if arrivals.is_empty() {
                    self.count(|state| state.counts.dropped += 1);
                }
                for due in arrivals {
                    self.queue.push(due, WaitingDatagram { flow, direction, bytes: datagram.to_vec() });
                }
            }
            DatagramVerdict::Drop => self.count(|state| state.counts.dropped += 1),
            DatagramVerdict::Replace(others) => {
                for bytes in others {
                    self.queue.push(now, WaitingDatagram { flow, direction, bytes });
                }
            }
        }
    }

    /// Sends the datagrams that are due, and sets the timer for the next datagram.
    fn forward(&mut self) -> io::Result<()> {
        loop {
            let now = Instant::now();
            while let Some(datagram) = self.queue.pop_due(now) {
                let flow = &self.flows[datagram.flow];
                // A full buffer or a closed port loses the datagram, as on any network.
                let _ = match datagram.direction {
                    Direction::Up => flow.socket.send(&datagram.bytes),
                    Direction::Down => self.socket.send_to(&datagram.bytes, flow.client),
                };
            }
            let Some(due) = self.queue.next_due() else { return Ok(()) };
            let left = due.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return self.set_timer(left);
            }
        }
    }

    fn set_timer(&self, left: Duration) -> io::Result<()> {
        let it_value = Timespec::try_from(left).map_err(io::Error::other)?;
        let once = Itimerspec { it_interval: Timespec::default(), it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    fn count(&self, change: impl FnOnce(&mut RelayControlState)) {
        change(&mut lock(&self.shared.state));
    }
}
