//! `bench partition`: a simulation of many tasks that fetch a list of URLs. It compares three rules
//! that decide which task fetches a URL. `docs/scale-out.md` explains the figures.
//!
//! The largest hosts have most of the URLs: their sizes follow Zipf's law. Each host limits the
//! rate of requests from all tasks together, and each task fetches URLs at a fixed rate. A task
//! ends when it has fetched its share, and the slowest of its hosts has permitted the last request.
//! The model assumes that a wait for one host does not delay requests to others: a task has so many
//! hosts that it can always request a URL of another one.

use testkit::rng::Rng;

use crate::Result;

/// The settings of a simulation: the numbers of URLs, of hosts, and of tasks (the processes of a
/// cluster that share the URLs), and the rates at which tasks fetch and hosts permit requests.
#[derive(Clone, Copy)]
struct SimulationSettings {
    urls: f64,
    hosts: usize,
    tasks: usize,
    /// The number of URLs per second that a task fetches.
    task_rate: f64,
    /// The shortest time, in seconds, in which a large host allows all its URLs to be fetched.
    host_time: f64,
    /// The lowest request rate that a host permits, in requests per second.
    least_host_rate: f64,
}

/// The settings for the cluster that `docs/scale-out.md` describes.
const GUIDE: SimulationSettings = SimulationSettings {
    urls: 1e9,
    hosts: 10_000_000,
    tasks: 1000,
    task_rate: 1000.0,
    host_time: 3600.0,
    least_host_rate: 1.0,
};

/// A rule that decides which task fetches a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartitionRule {
    /// Each URL belongs to a random task. Each task may use an equal part of a host's rate.
    RandomUrls,
    /// Each host belongs to one task, by its hash.
    WholeHosts,
    /// Each host belongs to one task. But a host with more URLs than a tenth of a task's share is
    /// split among several tasks, each of which may use a part of the host's rate.
    SplitHosts,
}

/// The outcome of a simulation: the total time, the number of pairs of a task and a host that it
/// contacts, and the number of URLs of the largest task.
struct PartitionOutcome {
    /// The time until the last URL is fetched, in seconds.
    seconds: f64,
    /// The number of pairs of a host and a task that contacts it. For each pair, a name is looked
    /// up and connections are opened.
    contacts: f64,
    /// The number of URLs of the task that has to fetch the most URLs.
    largest: f64,
}

impl SimulationSettings {
    /// Returns the number of URLs of each host, in descending order.
    fn sizes(&self) -> Vec<f64> {
        let harmonic: f64 = (1..=self.hosts).map(|rank| 1.0 / rank as f64).sum();
        (1..=self.hosts).map(|rank| (self.urls / harmonic / rank as f64).max(1.0)).collect()
    }

    /// Returns the request rate that a host permits, in requests per second.
    fn host_rate(&self, size: f64) -> f64 {
        (size / self.host_time).max(self.least_host_rate)
    }

    /// Returns a lower bound on the time to fetch all URLs, in seconds, for any partition of the
    /// URLs.
    fn ideal(&self, sizes: &[f64]) -> f64 {
        let total: f64 = sizes.iter().sum();
        let hosts = sizes.iter().map(|size| (size - 1.0) / self.host_rate(*size)).fold(0.0, f64::max);
        hosts.max(total / (self.tasks as f64 * self.task_rate))
    }

    fn run(&self, sizes: &[f64], rule: PartitionRule, seed: u64) -> PartitionOutcome {
        match rule {
            PartitionRule::RandomUrls => self.by_url(sizes),
            PartitionRule::WholeHosts => self.by_host(sizes, f64::INFINITY, seed),
            PartitionRule::SplitHosts => {
                let total: f64 = sizes.iter().sum();
                self.by_host(sizes, total / self.tasks as f64 / 10.0, seed)
            }
        }
    }

    /// Splits hosts with more than `most` URLs into parts of at most `most` URLs, and assigns each
    /// part to a task.
    fn by_host(&self, sizes: &[f64], most: f64, seed: u64) -> PartitionOutcome {
        let mut rng = Rng::new(seed);
        let mut shares = vec![0.0_f64; self.tasks];
        let (mut contacts, mut slowest) = (0.0, 0.0_f64);
        for &size in sizes {
            let parts = (size / most).ceil().clamp(1.0, self.tasks as f64);
            // Parts of one host go to consecutive tasks, as by `split -n r/K/N`.
            let first = rng.below(self.tasks as u64) as usize;
            for part in 0..parts as usize {
                shares[(first + part) % self.tasks] += size / parts;
            }
            contacts += parts;
            let of_part = (size / parts).ceil() - 1.0;
            slowest = slowest.max(of_part / (self.host_rate(size) / parts));
        }
        let largest = shares.iter().copied().fold(0.0, f64::max);
        PartitionOutcome { seconds: slowest.max(largest / self.task_rate), contacts, largest }
    }

    /// Returns the outcome if each URL is assigned to a random task. `sizes` contains the number of
    /// URLs of each host. The outcome is computed, not drawn at random: the number of a host's URLs
    /// in a task is assumed to have a Poisson distribution.
    fn by_url(&self, sizes: &[f64]) -> PartitionOutcome {
        let tasks = self.tasks as f64;
        let (mut contacts, mut slowest) = (0.0, 0.0_f64);
        let mut known = (0.0, 0.0);
        for &size in sizes {
            contacts += tasks * (1.0 - (-size / tasks).exp());
            let mean = (size / tasks * 1e3).round() / 1e3;
            if known.0 != mean {
                known = (mean, largest_of_poisson(mean, tasks));
            }
            let wait = (known.1 - 1.0).max(0.0) / (self.host_rate(size) / tasks);
            slowest = slowest.max(wait);
        }
        let largest = sizes.iter().sum::<f64>() / tasks;
        PartitionOutcome { seconds: slowest.max(largest / self.task_rate), contacts, largest }
    }
}

/// Returns the probable maximum of `count` values with a Poisson distribution of this mean.
fn largest_of_poisson(mean: f64, count: f64) -> f64 {
    if mean > 500.0 {
        return mean + (2.0 * mean * count.ln()).sqrt();
    }
    let (mut value, mut term, mut below) = (0.0, (-mean).exp(), 0.0);
    // Ends: the terms add up to 1, less than the rounding of doubles.
    while count * (1.0 - below - term) > 0.5 && value < mean * 10.0 + 100.0 {
        below += term;
        value += 1.0;
        term *= mean / value;
    }
    value
}

/// Runs `bench partition [--urls N] [--hosts N] [--tasks N] [--seed N]`: simulates how long the
/// tasks (processes) of a cluster take to fetch a list of URLs. Prints a table with the outcome of
/// each rule by which the URLs are assigned to tasks.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut cluster = GUIDE;
    let mut seed = 1;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a number"))?;
        match word.as_str() {
            "--urls" => cluster.urls = value.parse()?,
            "--hosts" => cluster.hosts = value.parse()?,
            "--tasks" => cluster.tasks = value.parse::<usize>()?.max(1),
            "--seed" => seed = value.parse()?,
            _ => return Err(format!("bench partition knows --urls, --hosts, --tasks and --seed, not {word}").into()),
        }
    }
    let sizes = cluster.sizes();
    let ideal = cluster.ideal(&sizes);
    println!(
        "{:.0} URLs, {} hosts, {} tasks, ideal {ideal:.0} s",
        sizes.iter().sum::<f64>(),
        sizes.len(),
        cluster.tasks
    );
    println!("{:14} {:>12} {:>8} {:>14} {:>14}", "rule", "seconds", "ideal x", "contacts", "largest task");
    for rule in [PartitionRule::RandomUrls, PartitionRule::WholeHosts, PartitionRule::SplitHosts] {
        let PartitionOutcome { seconds, contacts, largest } = cluster.run(&sizes, rule, seed);
        let name = format!("{rule:?}");
        println!("{name:14} {seconds:>12.0} {:>8.2} {contacts:>14.0} {largest:>14.0}", seconds / ideal);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: SimulationSettings = SimulationSettings {
        urls: 1e6,
        hosts: 10_000,
        tasks: 10,
        task_rate: 100.0,
        host_time: 600.0,
        least_host_rate: 1.0,
    };

    #[test]
    fn splitting_large_hosts_is_closest_to_the_ideal() {
        let sizes = SMALL.sizes();
        let ideal = SMALL.ideal(&sizes);
        let seconds = |rule| SMALL.run(&sizes, rule, 1).seconds;
        let (split, whole) = (seconds(PartitionRule::SplitHosts), seconds(PartitionRule::WholeHosts));
        assert!(ideal <= split && split < 1.5 * ideal, "{ideal} {split}");
        assert!(split <= whole, "{split} {whole}");
    }

    #[test]
    fn random_urls_contact_each_host_from_many_tasks() {
        let sizes = SMALL.sizes();
        let contacts = |rule| SMALL.run(&sizes, rule, 1).contacts;
        assert_eq!(contacts(PartitionRule::WholeHosts), 10_000.0);
        assert!(contacts(PartitionRule::RandomUrls) > 40_000.0);
    }

    #[test]
    fn simulation_with_the_same_seed_is_repeatable() {
        let sizes = SMALL.sizes();
        let largest = |seed| SMALL.run(&sizes, PartitionRule::WholeHosts, seed).largest;
        assert_eq!(largest(3), largest(3));
        assert_ne!(largest(3), largest(4));
    }

    /// Returns a number with a comma between groups of three digits.
    fn grouped(number: f64) -> String {
        let digits = format!("{number:.0}");
        let groups: Vec<&str> =
            digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap()).collect();
        groups.join(",")
    }

    #[test]
    fn guide_has_the_figures_of_the_simulation() {
        let guide = std::fs::read_to_string(crate::jobs::home().join("../docs/scale-out.md")).unwrap();
        let sizes = GUIDE.sizes();
        for (rule, beginning) in [
            (PartitionRule::RandomUrls, "| each URL to a random task"),
            (PartitionRule::WholeHosts, "| each host to one task"),
            (PartitionRule::SplitHosts, "| the same, and hosts with more"),
        ] {
            let row = guide.lines().find(|line| line.starts_with(beginning)).expect(beginning);
            for tasks in [1000, 10_000] {
                let cluster = SimulationSettings { tasks, ..GUIDE };
                let ideal = cluster.ideal(&sizes);
                assert_eq!(ideal.round(), 3600.0, "the guide names the ideal");
                let PartitionOutcome { seconds, contacts, .. } = cluster.run(&sizes, rule, 1);
                let times = seconds / ideal;
                let decimals = usize::from(times < 9.95);
                let figures = format!("{} s, {times:.decimals$} times", grouped(seconds));
                assert!(row.contains(&figures), "{row} lacks {figures}");
                let contacts = format!(" {:.0} million", contacts / 1e6);
                assert!(row.contains(&contacts), "{row} lacks{contacts}");
            }
        }
    }

    #[test]
    fn poisson_maximum_grows_with_the_count() {
        assert_eq!(largest_of_poisson(0.0, 1000.0), 0.0);
        assert!((8.0..14.0).contains(&largest_of_poisson(3.6, 1000.0)));
        assert!(largest_of_poisson(1000.0, 1000.0) > 1100.0);
    }
}
