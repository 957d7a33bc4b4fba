//! Ports on which nothing listens. They are used for servers of other projects, whose configuration
//! must contain a port before they start, and for tests of refused connections.
//!
//! ```
//! let port = testkit::unused_port::unused_port();
//! assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
//! ```

use std::net::{TcpListener, UdpSocket};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// The range from which ports are chosen. It does not overlap with 32768 to 60999, the ports that
/// Linux assigns to sockets which do not specify a port. A chosen port therefore stays unused until
/// the test uses it.
const RANGE: std::ops::Range<u16> = 10_000..32_000;

/// Returns a port that no socket of 127.0.0.1 uses, neither for TCP nor for UDP. It is never
/// returned twice in a process, and other processes start at other ports.
pub fn unused_port() -> u16 {
    static NEXT: OnceLock<AtomicU16> = OnceLock::new();
    let length = RANGE.end - RANGE.start;
    let next = NEXT.get_or_init(|| AtomicU16::new((std::process::id() * 200 % u32::from(length)) as u16));
    loop {
        let port = RANGE.start + next.fetch_add(1, Ordering::Relaxed) % length;
        let address = ("127.0.0.1", port);
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return port;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returned_ports_are_unused_and_distinct() {
        let taken = TcpListener::bind(("127.0.0.1", unused_port())).unwrap();
        let taken = taken.local_addr().unwrap().port();
        let ports: std::collections::BTreeSet<u16> = (0..100).map(|_| unused_port()).collect();
        assert_eq!(ports.len(), 100);
        assert!(!ports.contains(&taken) && ports.iter().all(|port| RANGE.contains(port)));
    }
}
