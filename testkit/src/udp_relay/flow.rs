//! The datagrams of one client address, and those that wait to be forwarded.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::time::Instant;

use mio::net::UdpSocket;

use super::Direction;
use crate::packet_link::{LinkConditions, PacketLink};

/// A client address and its socket to the server.
pub(super) struct UdpFlow {
    pub(super) client: SocketAddr,
    pub(super) socket: UdpSocket,
    links: [PacketLink; 2],
    numbers: [u64; 2],
}

impl UdpFlow {
    pub(super) fn new(client: SocketAddr, socket: UdpSocket, conditions: &LinkConditions, number: u64) -> UdpFlow {
        let links = [0, 1].map(|direction| PacketLink::new(conditions, 2 * number + direction));
        UdpFlow { client, socket, links, numbers: [0; 2] }
    }

    pub(super) fn link(&mut self, direction: Direction) -> &mut PacketLink {
        &mut self.links[direction as usize]
    }

    /// Returns the number of the next datagram in `direction`, and counts it.
    pub(super) fn next_number(&mut self, direction: Direction) -> u64 {
        let number = &mut self.numbers[direction as usize];
        *number += 1;
        *number - 1
    }
}

/// A datagram that waits to be forwarded.
pub(super) struct TimedDatagram {
    pub(super) due: Instant,
    /// The order of arrival. Of two datagrams that are due at one time, the one with the lower
    /// number is forwarded first.
    number: u64,
    pub(super) flow: usize,
    pub(super) direction: Direction,
    pub(super) bytes: Vec<u8>,
}

/// The datagrams that wait to be forwarded, in the order of their times.
#[derive(Default)]
pub(super) struct DatagramQueue {
    waiting: BinaryHeap<Reverse<TimedDatagram>>,
    arrived: u64,
}

impl DatagramQueue {
    pub(super) fn push(&mut self, due: Instant, flow: usize, direction: Direction, bytes: Vec<u8>) {
        self.arrived += 1;
        self.waiting.push(Reverse(TimedDatagram { due, number: self.arrived, flow, direction, bytes }));
    }

    /// Removes the first datagram that is due at the time `now`, and returns it.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<TimedDatagram> {
        self.next_due().filter(|due| *due <= now)?;
        self.waiting.pop().map(|Reverse(datagram)| datagram)
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse(first)| first.due)
    }
}

impl TimedDatagram {
    fn rank(&self) -> (Instant, u64) {
        (self.due, self.number)
    }
}

impl Ord for TimedDatagram {
    fn cmp(&self, other: &TimedDatagram) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for TimedDatagram {
    fn partial_cmp(&self, other: &TimedDatagram) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for TimedDatagram {
    fn eq(&self, other: &TimedDatagram) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for TimedDatagram {}
