//! The mean duration of transfers from each host, so that the progress line can name the slowest.

use std::collections::HashMap;
use std::time::Duration;

/// The maximum number of hosts whose transfer durations are recorded. The durations of transfers
/// from further hosts are ignored.
const MAX_HOSTS: usize = 1000;

/// The durations of finished transfers by host.
#[derive(Debug, Default)]
pub(super) struct HostTimes {
    hosts: HashMap<String, (u64, Duration)>,
}

impl HostTimes {
    /// Adds the duration of a transfer from a host.
    pub(super) fn add(&mut self, host: &str, time: Duration) {
        if let Some((count, sum)) = self.hosts.get_mut(host) {
            *count += 1;
            *sum = sum.saturating_add(time);
        } else if self.hosts.len() < MAX_HOSTS {
            self.hosts.insert(host.to_owned(), (1, time));
        }
    }

    /// Returns the host with the longest mean duration. Returns `None` with fewer than two hosts.
    pub(super) fn slowest(&self) -> Option<(String, Duration)> {
        let mean = |(host, (count, sum)): (&String, &(u64, Duration))| (sum.div_f64(*count as f64), host.clone());
        let (time, host) = self.hosts.iter().map(mean).max()?;
        (self.hosts.len() > 1).then_some((host, time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowest_host_has_the_longest_mean() {
        let mut times = HostTimes::default();
        times.add("a", Duration::from_secs(3));
        assert_eq!(times.slowest(), None, "there is no other host");
        times.add("b", Duration::from_secs(4));
        times.add("b", Duration::from_secs(1));
        assert_eq!(times.slowest(), Some(("a".to_owned(), Duration::from_secs(3))));
    }

    #[test]
    fn number_of_measured_hosts_is_bounded() {
        let mut times = HostTimes::default();
        for number in 0..MAX_HOSTS + 10 {
            times.add(&number.to_string(), Duration::from_secs(1));
        }
        assert_eq!(times.hosts.len(), MAX_HOSTS);
    }
}
