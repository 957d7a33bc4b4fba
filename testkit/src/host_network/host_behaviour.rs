//! The behaviours of hosts, and the share of each behaviour in a network.

use std::time::Duration;

/// The time after which the name server answers a query for a
/// [`LateName`](HostBehaviour::LateName).
pub const LATE_NAME_DELAY: Duration = Duration::from_secs(3);
/// The time after which a [`Slow`](HostBehaviour::Slow) host answers each request for a page.
pub const SLOW_HOST_DELAY: Duration = Duration::from_secs(1);

/// The behaviour of a host of a [`HostNetwork`](super::HostNetwork), or of the name server for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostBehaviour {
    /// Sends each page without a delay.
    Good,
    /// Sends each page [`SLOW_HOST_DELAY`] after the request for it.
    Slow,
    /// Sends each page without a delay, but the name server answers queries for its name only after
    /// [`LATE_NAME_DELAY`].
    LateName,
    /// Answers every request with status 503.
    Unavailable,
    /// Refuses TCP connections.
    Refusing,
    /// Drops SYN packets, so that connecting takes until the client's timeout.
    DropsSyn,
    /// Accepts connections, but never answers a request.
    Silent,
    /// Resets connections when it accepts them.
    ResetsConnections,
    /// Resets each connection when its first request has arrived, without an answer.
    ResetsRequests,
    /// Has a name for which the name server answers NXDOMAIN.
    NameMissing,
    /// Has a name for which the name server answers SERVFAIL.
    NameFails,
    /// Has a name for which the name server never answers.
    NameUnanswered,
}

impl HostBehaviour {
    /// All behaviours of hosts. The page server of a network has one port for each of them, in this
    /// order.
    pub const ALL: [HostBehaviour; 12] = [
        HostBehaviour::Good,
        HostBehaviour::Slow,
        HostBehaviour::LateName,
        HostBehaviour::Unavailable,
        HostBehaviour::Refusing,
        HostBehaviour::DropsSyn,
        HostBehaviour::Silent,
        HostBehaviour::ResetsConnections,
        HostBehaviour::ResetsRequests,
        HostBehaviour::NameMissing,
        HostBehaviour::NameFails,
        HostBehaviour::NameUnanswered,
    ];

    /// Returns true if a client that waits at most `limit` for each page receives the pages of a
    /// host with this behaviour.
    pub fn is_healthy(self, limit: Duration) -> bool {
        match self {
            HostBehaviour::Good => true,
            HostBehaviour::Slow => limit > SLOW_HOST_DELAY,
            HostBehaviour::LateName => limit > LATE_NAME_DELAY,
            _ => false,
        }
    }
}

/// The distribution of behaviours, good or faulty, among the hosts of a
/// [`HostNetwork`](super::HostNetwork).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostMix {
    /// The given shares of the hosts are broken, spread evenly; all other hosts are good.
    Shares(FaultShares),
    /// The given number of hosts, beginning with the first, have the given behaviour; all other
    /// hosts are good.
    First(usize, HostBehaviour),
}

/// The percentage of hosts with each kind of fault, among all hosts of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultShares {
    /// The percentage of hosts that refuse connections.
    pub refuse: usize,
    /// The percentage of hosts that do not answer. Half of these hosts drop SYN packets. The other
    /// half accept connections and send nothing.
    pub silent: usize,
    /// The percentage of hosts with bad names: the name is missing, fails, is never answered, or is
    /// answered late, in turn.
    pub bad_name: usize,
    /// The percentage of hosts for whose names the name server answers late.
    pub late_name: usize,
    /// The percentage of hosts that reset connections. Half of these hosts reset a connection when
    /// they accept it, the other half when its first request has arrived.
    pub reset: usize,
    /// The percentage of slow hosts.
    pub slow: usize,
}

impl FaultShares {
    /// The usual shares: 10 % of the hosts refuse connections, 5 % do not respond, 5 % have names
    /// that the name server resolves late or not at all, and 5 % reset connections.
    pub const COMMON: FaultShares = FaultShares { refuse: 10, silent: 5, bad_name: 5, late_name: 0, reset: 5, slow: 0 };

    /// Returns shares in which `dead` percent of the hosts are broken, with the kinds of faults in
    /// the proportions of [`COMMON`](FaultShares::COMMON). `dead` must be a multiple of 5.
    pub const fn dead(dead: usize) -> FaultShares {
        let part = dead / 5;
        FaultShares { refuse: 2 * part, silent: part, bad_name: part, late_name: 0, reset: part, slow: 0 }
    }
}

impl HostMix {
    /// Returns the behaviour of the host with this index. With [`HostMix::Shares`], exactly the
    /// given percentage of any hundred consecutive hosts has each fault.
    pub fn behaviour(&self, host: usize) -> HostBehaviour {
        match self {
            HostMix::First(count, behaviour) => {
                if host < *count {
                    *behaviour
                } else {
                    HostBehaviour::Good
                }
            }
            // 37 and 100 have no common factor, so neighbouring hosts behave differently.
            HostMix::Shares(shares) => shares.behaviour(host * 37 % 100, host / 100),
        }
    }
}

impl FaultShares {
    /// Returns the behaviour of one host. The hosts of the network are divided into hundreds.
    /// `turn` is the index of the host's hundred, and `number` (0 to 99) identifies the host in the
    /// hundred. A fault of 5 percent affects five hosts of each hundred. If a fault has several
    /// behaviours, `number + turn` selects one: a silent host, for example, drops SYN packets or
    /// never answers a request.
    fn behaviour(self, number: usize, turn: usize) -> HostBehaviour {
        use HostBehaviour as Behaviour;

        let faults: [(usize, &[HostBehaviour]); 6] = [
            (self.refuse, &[Behaviour::Refusing]),
            (self.silent, &[Behaviour::DropsSyn, Behaviour::Silent]),
            (
                self.bad_name,
                &[Behaviour::NameMissing, Behaviour::NameFails, Behaviour::NameUnanswered, Behaviour::LateName],
            ),
            (self.late_name, &[Behaviour::LateName]),
            (self.reset, &[Behaviour::ResetsConnections, Behaviour::ResetsRequests]),
            (self.slow, &[Behaviour::Slow]),
        ];
        let mut first = 0;
        for (share, behaviours) in faults {
            if number < first + share {
                return behaviours[(number + turn) % behaviours.len()];
            }
            first += share;
        }
        Behaviour::Good
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_host_behaviours_are_exact() {
        let mix = HostMix::Shares(FaultShares::COMMON);
        let count =
            |behaviours: &[HostBehaviour]| (0..1000).filter(|host| behaviours.contains(&mix.behaviour(*host))).count();
        assert_eq!(count(&[HostBehaviour::Good]), 750);
        assert_eq!(count(&[HostBehaviour::Refusing]), 100);
        assert_eq!((count(&[HostBehaviour::DropsSyn]), count(&[HostBehaviour::Silent])), (25, 25));
        assert_eq!((count(&[HostBehaviour::ResetsConnections]), count(&[HostBehaviour::ResetsRequests])), (25, 25));
        let names = [
            HostBehaviour::NameMissing,
            HostBehaviour::NameFails,
            HostBehaviour::NameUnanswered,
            HostBehaviour::LateName,
        ];
        assert_eq!(count(&names), 50);
        assert!(names.iter().all(|name| count(&[*name]) >= 12));
        assert_eq!(FaultShares::dead(25), FaultShares::COMMON);
        assert_eq!(HostMix::Shares(FaultShares::dead(0)).behaviour(7), HostBehaviour::Good);
        let first = HostMix::First(2, HostBehaviour::Unavailable);
        assert_eq!([1, 2].map(|host| first.behaviour(host)), [HostBehaviour::Unavailable, HostBehaviour::Good]);
    }

    #[test]
    fn host_with_late_name_is_healthy_within_limit() {
        let limits = [2, 5].map(Duration::from_secs);
        assert_eq!(limits.map(|limit| HostBehaviour::LateName.is_healthy(limit)), [false, true]);
        assert_eq!(limits.map(|limit| HostBehaviour::Slow.is_healthy(limit)), [true, true]);
        let healthy = HostBehaviour::ALL.iter().filter(|behaviour| behaviour.is_healthy(limits[1])).count();
        assert_eq!(healthy, 3);
    }
}
