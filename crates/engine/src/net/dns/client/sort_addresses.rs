//! The order in which the addresses of a name are tried on this machine (RFC 6724).

use std::net::{IpAddr, SocketAddr, UdpSocket};

use haul_policy::dns::address_order::{DestinationAddress, sort};

/// Returns the addresses in the order in which to try them. Connects a UDP socket to each address
/// to learn the source address that the kernel would use; nothing is sent.
pub(super) fn sort_addresses(addresses: &[IpAddr]) -> Vec<IpAddr> {
    if addresses.len() < 2 {
        return addresses.to_vec();
    }
    let mut destinations: Vec<DestinationAddress> =
        addresses.iter().map(|&address| DestinationAddress { address, source: source_address(address) }).collect();
    sort(&mut destinations);
    destinations.into_iter().map(|one| one.address).collect()
}

fn source_address(destination: IpAddr) -> Option<IpAddr> {
    let any: SocketAddr = if destination.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect((destination, 53)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}
