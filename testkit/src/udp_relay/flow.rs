//! A flow of the relay: one client address, and its datagrams.

use std::net::SocketAddr;

use mio::net::UdpSocket;

use super::Direction;
use crate::lossy_link_model::{LinkConditions, PacketLink};

/// A flow of the relay: a client address, and the relay's socket through which this client's
/// datagrams go to the server.
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

    /// Returns the number of the next datagram in `direction`, counted from 0, and increments the
    /// counter.
    pub(super) fn next_number(&mut self, direction: Direction) -> u64 {
        let number = &mut self.numbers[direction as usize];
        *number += 1;
        *number - 1
    }
}

/// A datagram that waits until it is due.
pub(super) struct WaitingDatagram {
    pub(super) flow: usize,
    pub(super) direction: Direction,
    pub(super) bytes: Vec<u8>,
}
