//! The kinds of hosts, and how many of each a network has.

use std::time::Duration;

/// The time that a late name takes to be answered.
pub const LATE_NAME: Duration = Duration::from_secs(3);
/// The time that a slow host takes for each page.
pub const SLOW_HOST: Duration = Duration::from_secs(1);

/// The behaviour of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostKind {
    /// Sends pages at once.
    Good,
    /// Sends each page after [`SLOW_HOST`].
    Slow,
    /// Like [`Good`](HostKind::Good), but its name is answered after [`LATE_NAME`].
    LateName,
    /// Answers every request with 503.
    Unavailable,
    /// Refuses connections.
    Refusing,
    /// Drops SYN packets.
    DropsSyn,
    /// Accepts connections, and never answers.
    Silent,
    /// Resets connections when it accepts them.
    ResetsConnections,
    /// Resets connections after the request.
    ResetsRequests,
    /// Has a name that does not exist.
    NameMissing,
    /// Has a name for which the name server fails.
    NameFails,
    /// Has a name for which the name server never answers.
    NameUnanswered,
}

impl HostKind {
    /// All kinds.
    pub const ALL: [HostKind; 12] = [
        HostKind::Good,
        HostKind::Slow,
        HostKind::LateName,
        HostKind::Unavailable,
        HostKind::Refusing,
        HostKind::DropsSyn,
        HostKind::Silent,
        HostKind::ResetsConnections,
        HostKind::ResetsRequests,
        HostKind::NameMissing,
        HostKind::NameFails,
        HostKind::NameUnanswered,
    ];

    /// Returns true if a client gets the host's pages when each may take `limit`.
    pub fn is_healthy(self, limit: Duration) -> bool {
        match self {
            HostKind::Good => true,
            HostKind::Slow => limit > SLOW_HOST,
            HostKind::LateName => limit > LATE_NAME,
            _ => false,
        }
    }
}

/// The kind of each host of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostMix {
    /// Shares of the hosts are broken, the others are good.
    Shares(FaultShares),
    /// The first hosts are of one kind, so many of them; the others are good.
    First(usize, HostKind),
}

/// The shares of hosts that are not good, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultShares {
    /// Hosts that refuse connections.
    pub refuse: usize,
    /// Hosts that drop SYN packets or, every other one, never answer.
    pub silent: usize,
    /// Hosts whose names are missing, fail, are never answered, or late, in turn.
    pub bad_name: usize,
    /// Hosts whose names are late.
    pub late_name: usize,
    /// Hosts that reset connections or, every other one, requests.
    pub reset: usize,
    /// Slow hosts.
    pub slow: usize,
}

impl FaultShares {
    /// The common load: 10 % refuse, 5 % are silent, 5 % have bad names, 5 % reset.
    pub const COMMON: FaultShares = FaultShares { refuse: 10, silent: 5, bad_name: 5, late_name: 0, reset: 5, slow: 0 };

    /// The kinds of faults of the common load in the same proportions, `dead` percent in all (a multiple of 5).
    pub const fn dead(dead: usize) -> FaultShares {
        let part = dead / 5;
        FaultShares { refuse: 2 * part, silent: part, bad_name: part, late_name: 0, reset: part, slow: 0 }
    }
}

impl HostMix {
    /// Returns the kind of the host with this index. Any hundred hosts in a row have the exact
    /// shares.
    pub fn kind(&self, host: usize) -> HostKind {
        match self {
            HostMix::First(count, kind) => {
                if host < *count {
                    *kind
                } else {
                    HostKind::Good
                }
            }
            // 37 has no common factor with 100: neighbours are of different kinds.
            HostMix::Shares(shares) => shares.kind(host * 37 % 100, host / 100),
        }
    }
}

impl FaultShares {
    /// Returns the kind for a number below 100. `turn` chooses among kinds that take turns.
    fn kind(self, number: usize, turn: usize) -> HostKind {
        use HostKind as Kind;

        let kinds: [(usize, &[HostKind]); 6] = [
            (self.refuse, &[Kind::Refusing]),
            (self.silent, &[Kind::DropsSyn, Kind::Silent]),
            (self.bad_name, &[Kind::NameMissing, Kind::NameFails, Kind::NameUnanswered, Kind::LateName]),
            (self.late_name, &[Kind::LateName]),
            (self.reset, &[Kind::ResetsConnections, Kind::ResetsRequests]),
            (self.slow, &[Kind::Slow]),
        ];
        let mut first = 0;
        for (share, kinds) in kinds {
            if number < first + share {
                return kinds[(number + turn) % kinds.len()];
            }
            first += share;
        }
        Kind::Good
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_shares_are_exact() {
        let mix = HostMix::Shares(FaultShares::COMMON);
        let count = |kinds: &[HostKind]| (0..1000).filter(|host| kinds.contains(&mix.kind(*host))).count();
        assert_eq!(count(&[HostKind::Good]), 750);
        assert_eq!(count(&[HostKind::Refusing]), 100);
        assert_eq!((count(&[HostKind::DropsSyn]), count(&[HostKind::Silent])), (25, 25));
        assert_eq!((count(&[HostKind::ResetsConnections]), count(&[HostKind::ResetsRequests])), (25, 25));
        let names = [HostKind::NameMissing, HostKind::NameFails, HostKind::NameUnanswered, HostKind::LateName];
        assert_eq!(count(&names), 50);
        assert!(names.iter().all(|name| count(&[*name]) >= 12));
        assert_eq!(FaultShares::dead(25), FaultShares::COMMON);
        assert_eq!(HostMix::Shares(FaultShares::dead(0)).kind(7), HostKind::Good);
        let first = HostMix::First(2, HostKind::Unavailable);
        assert_eq!([1, 2].map(|host| first.kind(host)), [HostKind::Unavailable, HostKind::Good]);
    }

    #[test]
    fn late_names_are_healthy_with_enough_time() {
        let limits = [2, 5].map(Duration::from_secs);
        assert_eq!(limits.map(|limit| HostKind::LateName.is_healthy(limit)), [false, true]);
        assert_eq!(limits.map(|limit| HostKind::Slow.is_healthy(limit)), [true, true]);
        let healthy = HostKind::ALL.iter().filter(|kind| kind.is_healthy(limits[1])).count();
        assert_eq!(healthy, 3);
    }
}
