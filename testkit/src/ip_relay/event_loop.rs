//! The thread that reads packets from both devices, and writes each packet when it is due.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::PacketCounts;
use crate::lossy_link_model::{LinkConditions, PacketLink};
use crate::timed_queue::TimedQueue;

pub(super) const WAKE: Token = Token(2);
const TIMER: Token = Token(3);
/// The maximum length of a packet in bytes.
const LARGEST: usize = 65_535;

pub(super) struct IpRelayLoop {
    poll: Poll,
    /// A system timer for the next packet. It is precise, while the timeouts of epoll are whole
    /// milliseconds.
    timer: OwnedFd,
    /// The TUN devices: first that of the near namespace (for clients), then that of the far one
    /// (for servers). The index of a device is also its token in epoll.
    devices: [File; 2],
    /// The simulated links, in the order of `devices`. A packet that is read from a device passes
    /// through the link with the same index.
    links: [PacketLink; 2],
    /// The delayed packets, each with the index of the device to which it is written.
    queue: TimedQueue<(usize, Vec<u8>)>,
    counts: Arc<PacketCounts>,
}

impl IpRelayLoop {
    pub(super) fn new(
        poll: Poll,
        devices: [File; 2],
        conditions: &LinkConditions,
        counts: Arc<PacketCounts>,
    ) -> io::Result<IpRelayLoop> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let registry = poll.registry();
        registry.register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        for (number, device) in devices.iter().enumerate() {
            registry.register(&mut SourceFd(&device.as_raw_fd()), Token(number), Interest::READABLE)?;
        }
        let links = [0, 1].map(|direction| PacketLink::new(conditions, direction));
        Ok(IpRelayLoop { poll, timer, devices, links, queue: TimedQueue::default(), counts })
    }

    /// Relays packets until the relay is dropped.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(8);
        let mut buffer = vec![0; LARGEST];
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                outcome => outcome?,
            }
            for event in &events {
                match event.token() {
                    WAKE => return Ok(()),
                    TIMER => {
                        // The count of expirations does not matter.
                        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
                    }
                    Token(device) => self.read(device, &mut buffer),
                }
            }
            self.forward()?;
        }
    }

    /// Reads the packets that a network namespace has sent through its TUN device, which has the
    /// index `device`. Queues each packet for the other device after the delay of the link, unless
    /// the link loses the packet.
    fn read(&mut self, device: usize, buffer: &mut [u8]) {
        while let Ok(len) = (&self.devices[device]).read(buffer) {
            self.counts.read.fetch_add(1, Relaxed);
            let arrivals = self.links[device].arrivals_of_packet(Instant::now(), len);
            if arrivals.is_empty() {
                self.counts.dropped.fetch_add(1, Relaxed);
            }
            for due in arrivals {
                self.queue.push(due, (1 - device, buffer[..len].to_vec()));
            }
        }
    }

    /// Writes the packets that are due, and sets the timer for the next packet.
    fn forward(&mut self) -> io::Result<()> {
        loop {
            let now = Instant::now();
            while let Some((device, packet)) = self.queue.pop_due(now) {
                // A packet that a namespace does not take is lost, as on any network.
                let _ = (&self.devices[device]).write(&packet);
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
}
