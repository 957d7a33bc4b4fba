//! The order of connection attempts to the addresses of one host (happy eyeballs, RFC 8305 section
//! 5). Each attempt begins when the previous one has failed, or has not succeeded after a delay.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::time_conversions;

/// The order of connection attempts to the addresses of a host: the addresses that were not
/// attempted yet, and the time of the next attempt.
#[derive(Debug)]
pub(super) struct AttemptOrder {
    /// All addresses so far, those that were attempted, too.
    known: Vec<SocketAddr>,
    waiting: VecDeque<SocketAddr>,
    next_at: Instant,
    delay: Duration,
}

impl AttemptOrder {
    /// Makes the order from `addresses`, which are sorted by preference. The address families
    /// alternate. The first address may be attempted now.
    pub(super) fn new(addresses: Vec<SocketAddr>, delay: Duration, now: Instant) -> Self {
        Self { known: addresses.clone(), waiting: interleave(addresses), next_at: now, delay }
    }

    /// Adds the addresses that are not in the order yet. They are attempted next, alternating with
    /// those that wait (RFC 8305 §5).
    pub(super) fn add(&mut self, addresses: Vec<SocketAddr>) {
        let mut waiting: Vec<_> = addresses.into_iter().filter(|address| !self.known.contains(address)).collect();
        self.known.extend(&waiting);
        waiting.extend(self.waiting.drain(..));
        self.waiting = interleave(waiting);
    }

    /// Returns the addresses that were not attempted yet, in order.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &SocketAddr> {
        self.waiting.iter()
    }

    /// Removes and returns the address to attempt now. Returns `None` if no address is left, or if
    /// the delay after the previous attempt is not over. `at_once` skips the delay; the caller sets
    /// it if no attempt is in progress or an attempt has failed.
    pub(super) fn next(&mut self, at_once: bool, now: Instant) -> Option<SocketAddr> {
        if at_once || now >= self.next_at { self.waiting.pop_front() } else { None }
    }

    /// Records that an attempt has begun at `now`. The next attempt follows after the attempt
    /// delay.
    pub(super) fn on_attempt_begun(&mut self, now: Instant) {
        self.next_at = time_conversions::add_saturating(now, self.delay);
    }

    /// Puts an address back at the front of the list, because it could not be attempted now.
    pub(super) fn postpone(&mut self, address: SocketAddr, now: Instant) {
        self.waiting.push_front(address);
        self.on_attempt_begun(now);
    }

    /// Removes all addresses, so that no further attempt begins.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Returns the time at which the next attempt begins; `None` if no address is left.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.next_at)
    }
}

/// Interleaves the address families, beginning with the family of the first address. Within a
/// family, the order does not change (RFC 8305 §4).
fn interleave(addresses: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
    let first_is_v4 = addresses.first().is_some_and(SocketAddr::is_ipv4);
    let (first, second): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|address| address.is_ipv4() == first_is_v4);
    let mut ordered = VecDeque::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    loop {
        let pair = (first.next(), second.next());
        if pair == (None, None) {
            return ordered;
        }
        ordered.extend(pair.0);
        ordered.extend(pair.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_addresses_are_attempted_next() {
        let list = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
        let now = Instant::now();
        let mut order = AttemptOrder::new(list(&["[::1]:1", "[::2]:1", "[::3]:1"]), Duration::ZERO, now);
        assert_eq!(order.next(true, now), Some("[::1]:1".parse().unwrap()));
        order.add(list(&["[::1]:1", "1.0.0.1:1", "[::2]:1", "1.0.0.2:1"]));
        let expected = list(&["1.0.0.1:1", "[::2]:1", "1.0.0.2:1", "[::3]:1"]);
        assert_eq!(order.addresses().copied().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn address_families_are_interleaved() {
        let list = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
        let order = interleave(list(&["[::1]:1", "[::2]:1", "[::3]:1", "1.0.0.1:1", "1.0.0.2:1"]));
        assert_eq!(order, list(&["[::1]:1", "1.0.0.1:1", "[::2]:1", "1.0.0.2:1", "[::3]:1"]));
        let order = interleave(list(&["1.0.0.1:1", "[::1]:1", "1.0.0.2:1"]));
        assert_eq!(order, list(&["1.0.0.1:1", "[::1]:1", "1.0.0.2:1"]));
        assert!(interleave(Vec::new()).is_empty());
    }
}
