//! The model of a link that loses, delays, reorders and duplicates packets.
//!
//! The model decides when each packet arrives; it moves no packets itself.
//! [`udp_relay`](crate::udp_relay) applies it to datagrams. The decisions depend only on the seed,
//! the direction and the number of the packet.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use testkit::lossy_link_model::{LinkConditions, PacketLink};
//!
//! let conditions = LinkConditions::new().rtt(Duration::from_millis(20)).loss(0.01);
//! let mut link = PacketLink::new(&conditions, 0);
//! let now = Instant::now();
//! let lost = (0..1000).filter(|_| link.arrivals_of_packet(now, 1200).is_empty()).count();
//! assert!((1..30).contains(&lost));
//! ```

use std::time::{Duration, Instant};

use crate::rng::{Rng, mix};

/// The default queue limit of a rate-limited link: a packet that would wait longer is dropped.
const DEFAULT_QUEUE: Duration = Duration::from_millis(50);
/// The default additional delay of a reordered packet, during which later packets overtake it.
const DEFAULT_REORDER_DELAY: Duration = Duration::from_millis(5);

/// The conditions of a link, which apply to both directions.
#[derive(Clone, Debug)]
pub struct LinkConditions {
    rtt: Duration,
    jitter: Duration,
    loss: f64,
    duplication: f64,
    reordering: f64,
    late: Duration,
    rate: Option<u64>,
    queue: Duration,
    mtu: Option<usize>,
    seed: u64,
}

impl Default for LinkConditions {
    fn default() -> LinkConditions {
        LinkConditions {
            rtt: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            late: DEFAULT_REORDER_DELAY,
            rate: None,
            queue: DEFAULT_QUEUE,
            mtu: None,
            seed: 1,
        }
    }
}

impl LinkConditions {
    /// Returns the conditions of a link without delay, loss, reordering and rate limit.
    pub fn new() -> LinkConditions {
        LinkConditions::default()
    }

    /// Sets the round-trip time. Half of it is added in each direction. Default: zero.
    pub fn rtt(mut self, rtt: Duration) -> LinkConditions {
        self.rtt = rtt;
        self
    }

    /// Sets the maximum jitter: a random time up to this maximum is added to the delay of each
    /// packet, which may change the order of packets. Default: zero.
    pub fn jitter(mut self, most: Duration) -> LinkConditions {
        self.jitter = most;
        self
    }

    /// Sets the probability that a packet is lost. Default: 0.
    pub fn loss(mut self, probability: f64) -> LinkConditions {
        self.loss = probability;
        self
    }

    /// Sets the probability that a packet arrives twice. Default: 0.
    pub fn duplication(mut self, probability: f64) -> LinkConditions {
        self.duplication = probability;
        self
    }

    /// Sets the probability that a packet is delayed so that later packets overtake it, and the
    /// additional delay. Default: 0.
    pub fn reordering(mut self, probability: f64, late: Duration) -> LinkConditions {
        (self.reordering, self.late) = (probability, late);
        self
    }

    /// Sets the rate limit of each direction in bytes a second. Packets wait in the link's queue;
    /// see [`queue`](LinkConditions::queue). Default: unlimited.
    pub fn rate(mut self, bytes_a_second: u64) -> LinkConditions {
        self.rate = Some(bytes_a_second.max(1));
        self
    }

    /// Sets the time for which a packet may wait in the queue of a rate-limited link. A packet that
    /// would wait longer is dropped. Default: 50 ms.
    pub fn queue(mut self, most: Duration) -> LinkConditions {
        self.queue = most;
        self
    }

    /// Sets the size in bytes beyond which packets are dropped without a message to the sender.
    /// Default: no limit.
    pub fn mtu(mut self, most: usize) -> LinkConditions {
        self.mtu = Some(most);
        self
    }

    /// Sets the seed of all random decisions. Default: 1.
    pub fn seed(mut self, seed: u64) -> LinkConditions {
        self.seed = seed;
        self
    }
}

/// The times at which the copies of a packet arrive: none if the packet is lost, two if it is
/// duplicated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCopyArrivals {
    times: [Option<Instant>; 2],
}

impl PacketCopyArrivals {
    /// Returns true if the packet is lost.
    pub fn is_empty(&self) -> bool {
        self.times[0].is_none()
    }
}

impl IntoIterator for PacketCopyArrivals {
    type Item = Instant;
    type IntoIter = std::iter::Flatten<std::array::IntoIter<Option<Instant>, 2>>;

    fn into_iter(self) -> Self::IntoIter {
        self.times.into_iter().flatten()
    }
}

/// A simulation of one direction of a link: decides for each packet whether and when it arrives.
#[derive(Debug)]
pub struct PacketLink {
    conditions: LinkConditions,
    rng: Rng,
    /// The time at which the last byte of the previous packet leaves a rate-limited link; `None`
    /// before the first packet.
    busy_until: Option<Instant>,
}

impl PacketLink {
    /// Creates a direction of a link. Directions with different numbers make different random
    /// decisions.
    pub fn new(conditions: &LinkConditions, direction: u64) -> PacketLink {
        let rng = Rng::new(mix(conditions.seed, direction));
        PacketLink { conditions: conditions.clone(), rng, busy_until: None }
    }

    /// Decides whether and when a packet of `len` bytes that is sent at the time `now` arrives.
    pub fn arrivals_of_packet(&mut self, now: Instant, len: usize) -> PacketCopyArrivals {
        // All numbers are drawn for each packet, so that no condition changes the decisions of
        // another.
        let [loss, duplication, reordering, jitter] = [(); 4].map(|()| self.rng.next());
        let conditions = &self.conditions;
        if conditions.mtu.is_some_and(|most| len > most) || is_hit(loss, conditions.loss) {
            return PacketCopyArrivals::default();
        }
        let mut leaves = now;
        if let Some(rate) = conditions.rate {
            let starts = self.busy_until.map_or(now, |busy| busy.max(now));
            if starts.duration_since(now) > conditions.queue {
                return PacketCopyArrivals::default();
            }
            leaves = starts + Duration::from_secs_f64(len as f64 / rate as f64);
            self.busy_until = Some(leaves);
        }
        let mut arrives = leaves + conditions.rtt / 2;
        if !conditions.jitter.is_zero() {
            arrives += Duration::from_nanos(jitter % (conditions.jitter.as_nanos() as u64 + 1));
        }
        if is_hit(reordering, conditions.reordering) {
            arrives += conditions.late;
        }
        PacketCopyArrivals { times: [Some(arrives), is_hit(duplication, conditions.duplication).then_some(arrives)] }
    }
}

/// Returns true with this probability. `random` must be uniformly distributed over all 64-bit
/// numbers.
fn is_hit(random: u64, probability: f64) -> bool {
    const BITS: u32 = 53;
    ((random >> (u64::BITS - BITS)) as f64) < probability * (1u64 << BITS) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(conditions: &LinkConditions, count: usize) -> Vec<PacketCopyArrivals> {
        let (mut link, start) = (PacketLink::new(conditions, 0), Instant::now());
        (0..count).map(|_| link.arrivals_of_packet(start, 1000)).collect()
    }

    #[test]
    fn perfect_link_delivers_without_delay() {
        let start = Instant::now();
        let arrivals = PacketLink::new(&LinkConditions::new(), 0).arrivals_of_packet(start, 1500);
        assert_eq!(arrivals.into_iter().collect::<Vec<_>>(), [start]);
    }

    #[test]
    fn loss_and_duplication_match_probabilities_and_repeat() {
        let conditions = LinkConditions::new().loss(0.1).duplication(0.2);
        let passed = arrivals(&conditions, 10_000);
        let lost = passed.iter().filter(|arrivals| arrivals.is_empty()).count();
        let twice = passed.iter().filter(|arrivals| arrivals.times[1].is_some()).count();
        assert!((900..1100).contains(&lost) && (1650..1950).contains(&twice), "{lost} {twice}");
        let pattern =
            |passed: &[PacketCopyArrivals]| passed.iter().map(PacketCopyArrivals::is_empty).collect::<Vec<_>>();
        assert_eq!(pattern(&passed), pattern(&arrivals(&conditions, 10_000)));
        assert_eq!(pattern(&passed), pattern(&arrivals(&conditions.clone().rate(1 << 40), 10_000)));
        assert_ne!(pattern(&passed), pattern(&arrivals(&conditions.seed(2), 10_000)));
        assert!(arrivals(&LinkConditions::new().loss(1.0), 100).iter().all(PacketCopyArrivals::is_empty));
    }

    #[test]
    fn rate_limit_spaces_packets_and_bounds_queue() {
        let conditions = LinkConditions::new().rate(1_000_000).rtt(Duration::from_millis(10));
        let (mut link, start) = (PacketLink::new(&conditions, 0), Instant::now());
        let due: Vec<_> = (0..100).flat_map(|_| link.arrivals_of_packet(start, 1000)).map(|due| due - start).collect();
        assert_eq!(due[..2], [Duration::from_millis(6), Duration::from_millis(7)]);
        assert_eq!(due.len(), 51);
    }

    #[test]
    fn packets_beyond_the_mtu_are_dropped() {
        let mut link = PacketLink::new(&LinkConditions::new().mtu(1280), 0);
        let now = Instant::now();
        assert_eq!(
            (link.arrivals_of_packet(now, 1280).is_empty(), link.arrivals_of_packet(now, 1281).is_empty()),
            (false, true)
        );
    }

    #[test]
    fn reordered_packets_arrive_after_later_ones() {
        let conditions = LinkConditions::new().reordering(0.5, Duration::from_millis(3));
        let due: Vec<_> = arrivals(&conditions, 100).into_iter().flatten().collect();
        assert!(!due.is_sorted());
    }
}
