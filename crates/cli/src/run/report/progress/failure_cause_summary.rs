//! Counts the failures of a run by their causes, for the summary at the end of the run and to
//! suppress repeated error lines on a terminal.
//!
//! A terminal shows the first [`MAX_SHOWN_PER_CAUSE`] error lines for each pair of cause and host,
//! and at the end of the run the number of those that it did not show. A file or a pipe gets every
//! line.

use std::collections::HashMap;

use haul::{Error, ErrorKind};

/// The maximum number of error lines that a terminal shows for one pair of cause and host.
const MAX_SHOWN_PER_CAUSE: u64 = 3;

/// The maximum number of pairs of cause and host whose error lines are counted, so that only the
/// first few are shown. For any further pair, all error lines are shown.
const MAX_PAIRS: usize = 10_000;

/// The numbers of failures in a run, by cause and host.
#[derive(Debug, Default)]
pub(super) struct FailureCounts {
    /// The number of failures of each cause, in the order of their first occurrence.
    causes: Vec<(String, u64)>,
    /// The number of failures of each host and cause.
    pairs: HashMap<(String, String), RepeatedFailure>,
}

/// The failures at one host that have the same cause.
#[derive(Debug)]
struct RepeatedFailure {
    count: u64,
    exit_code: u8,
    /// The position of the pair of host and cause in the order of first occurrence.
    position: usize,
}

impl FailureCounts {
    /// Counts a failure at a host. Returns true if a terminal is to show the error line of this
    /// failure: it is one of the first [`MAX_SHOWN_PER_CAUSE`] with the same cause at the same
    /// host, or there are more than [`MAX_PAIRS`] pairs of cause and host.
    pub(super) fn add(&mut self, host: &str, error: &Error) -> bool {
        let label = label(error);
        match self.causes.iter_mut().find(|(cause, _)| *cause == label) {
            Some((_, count)) => *count += 1,
            None => self.causes.push((label, 1)),
        }
        let pair = (host.to_owned(), error.cause());
        let position = self.pairs.len();
        if position >= MAX_PAIRS && !self.pairs.contains_key(&pair) {
            return true;
        }
        let repeated = RepeatedFailure { count: 0, exit_code: error.exit_code(), position };
        let repeated = self.pairs.entry(pair).or_insert(repeated);
        repeated.count += 1;
        repeated.count <= MAX_SHOWN_PER_CAUSE
    }

    /// Returns one line for each pair of cause and host with more than [`MAX_SHOWN_PER_CAUSE`]
    /// failures, in the order of the first failures. The line contains the number of failures after
    /// the first [`MAX_SHOWN_PER_CAUSE`]. Removes the counts of all pairs.
    pub(super) fn folded_lines(&mut self) -> Vec<String> {
        let mut folded: Vec<_> =
            self.pairs.drain().filter(|(_, repeated)| repeated.count > MAX_SHOWN_PER_CAUSE).collect();
        folded.sort_by_key(|(_, repeated)| repeated.position);
        let line = |((host, cause), repeated): ((String, String), RepeatedFailure)| {
            let text = crate::usage_error::one_line(&format!("of {host}: {cause}"));
            format!("haul: ({}) {} more {text}", repeated.exit_code, repeated.count - MAX_SHOWN_PER_CAUSE)
        };
        folded.into_iter().map(line).collect()
    }

    /// Returns the causes with their numbers of failures, such as `3 x 404, 1 x timeout`; empty
    /// without failures.
    pub(super) fn causes(&self) -> String {
        let causes = self.causes.iter().map(|(cause, count)| format!("{count} x {cause}"));
        causes.collect::<Vec<_>>().join(", ")
    }
}

/// Returns the name of an error's cause: a status, or the kind of the error.
fn label(error: &Error) -> String {
    match (error.kind(), error.status()) {
        (ErrorKind::Status, Some(status)) => status.to_string(),
        (kind, _) => kind.name().replace('_', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_shows_three_errors_per_cause_and_host() {
        let mut failures = FailureCounts::default();
        let refused = || Error::new(ErrorKind::Connect, "connection refused");
        let shown: Vec<bool> = (0..5).map(|_| failures.add("a", &refused())).collect();
        assert_eq!(shown, [true, true, true, false, false]);
        assert!(failures.add("b", &refused()), "another host");
        assert!(failures.add("a", &Error::new(ErrorKind::Timeout, "slow")), "another cause");
        assert_eq!(failures.causes(), "6 x connect, 1 x timeout");
        assert_eq!(failures.folded_lines(), ["haul: (7) 2 more of a: connection refused"]);
        assert!(failures.folded_lines().is_empty());
    }

    #[test]
    fn number_of_counted_failure_causes_is_bounded() {
        let mut failures = FailureCounts::default();
        let error = Error::new(ErrorKind::Connect, "x");
        for number in 0..MAX_PAIRS + 10 {
            assert!(failures.add(&number.to_string(), &error));
        }
        assert_eq!(failures.pairs.len(), MAX_PAIRS);
    }
}
