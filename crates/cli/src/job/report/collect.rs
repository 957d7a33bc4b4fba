//! The figures of a job's report, collected in one pass over the rows of the job.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use rusqlite::{Connection, Row};

use super::histogram::TimeHistogram;
use crate::job::job_error_from_sqlite_or_io::DatabaseResult;

/// The maximum number of hosts with separate figures. All hosts that appear later are counted
/// together.
const MAX_HOSTS: usize = 100_000;
/// The maximum number of slowest URLs that the report shows.
const MAX_SLOWEST_URLS: usize = 50;
/// The maximum number of transfers in the waterfall chart.
pub(super) const MAX_WATERFALL_BARS: usize = 500;
/// The number of points on the time axis of the throughput chart.
pub(super) const TIMELINE_POINTS: usize = 160;

/// The outcome of a URL: the state, the exit code, and the status of its response (`None` without a
/// response).
pub(super) type OutcomeKey = (String, u8, Option<u16>);

/// A slow URL: its time in microseconds, the URL, and the status of its response (`None` without a
/// response).
pub(super) type SlowUrl = (u64, Box<str>, Option<u16>);

/// The figures of a job, which the report shows.
#[derive(Default)]
pub(super) struct ReportFigures {
    pub(super) urls: u64,
    pub(super) bytes: u64,
    pub(super) attempts: u64,
    pub(super) outcomes: BTreeMap<OutcomeKey, OutcomeCount>,
    pub(super) hosts: HashMap<Box<str>, HostFigures>,
    /// The sums for all hosts without an entry in `hosts`, which has at most [`MAX_HOSTS`] entries.
    pub(super) other_hosts: HostFigures,
    pub(super) first_byte: TimeHistogram,
    pub(super) total: TimeHistogram,
    /// The slowest URLs: the time in microseconds, the URL, and the status.
    slowest: BinaryHeap<Reverse<SlowUrl>>,
    pub(super) waterfall: Vec<WaterfallBar>,
    pub(super) timeline: ThroughputTimeline,
}

/// The number of URLs with the same outcome, and the error message of one of them.
#[derive(Default)]
pub(super) struct OutcomeCount {
    pub(super) count: u64,
    pub(super) error: Option<String>,
}

/// The figures of one host in the report about a job.
#[derive(Clone, Default)]
pub(super) struct HostFigures {
    pub(super) urls: u64,
    pub(super) failed: u64,
    pub(super) bytes: u64,
    /// The sum of the times until the first byte, in microseconds.
    pub(super) first_byte_us: u64,
    pub(super) total_us: u64,
    pub(super) timed: u64,
    pub(super) max_us: u64,
}

/// One transfer, as the waterfall chart shows it.
pub(super) struct WaterfallBar {
    pub(super) url: Box<str>,
    pub(super) failed: bool,
    /// The start time of the transfer, in microseconds since 1970-01-01 00:00 UTC.
    pub(super) start: u64,
    /// The times from the start, in microseconds, until: name resolved, connected, TLS secured,
    /// first byte, end.
    pub(super) times: [u64; 5],
}

/// The throughput of a job over its active time, which is the time in which one of its runs was
/// active.
#[derive(Default)]
pub(super) struct ThroughputTimeline {
    /// The runs of the job. Each has its start and its end in milliseconds since 1970, and the
    /// active time of all earlier runs in milliseconds.
    runs: Vec<(u64, u64, u64)>,
    /// The active time of all runs in milliseconds.
    pub(super) length: u64,
    pub(super) done: Vec<u64>,
    pub(super) failed: Vec<u64>,
    pub(super) bytes: Vec<u64>,
}

impl ThroughputTimeline {
    fn new(mut runs: Vec<(u64, u64)>) -> Self {
        runs.sort_unstable();
        let mut length = 0;
        let mut placed = Vec::with_capacity(runs.len());
        for (start, end) in runs {
            let end = end.max(start);
            placed.push((start, end, length));
            length += end - start;
        }
        let zeros = || vec![0; TIMELINE_POINTS];
        Self { runs: placed, length, done: zeros(), failed: zeros(), bytes: zeros() }
    }

    /// Returns the active time, in milliseconds, at which each run except the first begins.
    pub(super) fn later_runs(&self) -> impl Iterator<Item = u64> {
        self.runs.iter().skip(1).map(|(_, _, before)| *before)
    }

    fn add(&mut self, ended: u64, is_failed: bool, bytes: u64) {
        let run = self.runs.partition_point(|(start, ..)| *start <= ended).saturating_sub(1);
        let Some((start, end, before)) = self.runs.get(run) else { return };
        let at = before + ended.clamp(*start, *end) - start;
        let point = (at as u128 * TIMELINE_POINTS as u128 / u128::from(self.length.max(1))) as usize;
        let point = point.min(TIMELINE_POINTS - 1);
        let counts = if is_failed { &mut self.failed } else { &mut self.done };
        counts[point] += 1;
        self.bytes[point] += bytes;
    }

    /// Returns the time, in seconds, that one point of the throughput chart covers.
    pub(super) fn seconds_of_point(&self) -> f64 {
        (self.length as f64 / 1000.0 / TIMELINE_POINTS as f64).max(1e-3)
    }
}

impl ReportFigures {
    /// Collects the figures of a job from its SQLite file.
    pub(super) fn read(connection: &Connection) -> DatabaseResult<Self> {
        let mut figures = Self { timeline: ThroughputTimeline::new(read_runs(connection)?), ..Self::default() };
        let mut rows = connection.prepare(
            "SELECT url, state, exit_code, status, error, size, attempts, ended, resolved_us, connected_us, \
             secured_us, first_byte_us, total_us FROM url WHERE state NOT IN ('skipped', 'queued') ORDER BY id",
        )?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            figures.add(row)?;
        }
        Ok(figures)
    }

    fn add(&mut self, row: &Row<'_>) -> DatabaseResult<()> {
        let number = |column: usize| -> DatabaseResult<u64> {
            Ok(row.get::<_, Option<i64>>(column)?.unwrap_or(0).max(0) as u64)
        };
        let url = row.get_ref(0)?.as_str().unwrap_or_default();
        let state = row.get_ref(1)?.as_str().unwrap_or_default();
        let (code, status) = (row.get::<_, Option<u8>>(2)?.unwrap_or(0), row.get::<_, Option<u16>>(3)?);
        let (size, ended) = (number(5)?, number(7)?);
        let is_failed = code != 0;
        self.urls += 1;
        self.bytes += size;
        self.attempts += number(6)?;
        let outcome = self.outcomes.entry((state.to_owned(), code, status)).or_default();
        outcome.count += 1;
        if is_failed && outcome.error.is_none() {
            outcome.error = row.get(4)?;
        }
        let times = [number(8)?, number(9)?, number(10)?, number(11)?, number(12)?];
        let [.., first_byte, total] = times;
        let host = host_of(url);
        if !self.hosts.contains_key(host) && self.hosts.len() < MAX_HOSTS {
            self.hosts.insert(host.into(), HostFigures::default());
        }
        let host = self.hosts.get_mut(host).unwrap_or(&mut self.other_hosts);
        host.urls += 1;
        host.failed += u64::from(is_failed);
        host.bytes += size;
        if total > 0 {
            host.timed += 1;
            host.first_byte_us += first_byte;
            host.total_us += total;
            host.max_us = host.max_us.max(total);
            self.total.add(total);
            if first_byte > 0 {
                self.first_byte.add(first_byte);
            }
            self.add_slow(url, status, total);
            if self.waterfall.len() < MAX_WATERFALL_BARS {
                let start = (ended * 1000).saturating_sub(total);
                self.waterfall.push(WaterfallBar { url: truncate_text(url).into(), failed: is_failed, start, times });
            }
        }
        self.timeline.add(ended, is_failed, size);
        Ok(())
    }

    fn add_slow(&mut self, url: &str, status: Option<u16>, total: u64) {
        let is_full = self.slowest.len() >= MAX_SLOWEST_URLS;
        if is_full && self.slowest.peek().is_some_and(|Reverse((least, ..))| *least >= total) {
            return;
        }
        self.slowest.push(Reverse((total, truncate_text(url).into(), status)));
        if is_full {
            self.slowest.pop();
        }
    }

    /// Returns the slowest URLs, the slowest first, and removes them from the figures.
    pub(super) fn take_slowest(&mut self) -> Vec<SlowUrl> {
        let slowest = std::mem::take(&mut self.slowest).into_sorted_vec();
        slowest.into_iter().map(|Reverse(slow)| slow).collect()
    }

    pub(super) fn failed(&self) -> u64 {
        self.outcomes.iter().filter(|((_, code, _), _)| *code != 0).map(|(_, figures)| figures.count).sum()
    }
}

fn read_runs(connection: &Connection) -> DatabaseResult<Vec<(u64, u64)>> {
    let last: Option<i64> = connection.query_row("SELECT max(ended) FROM url", [], |row| row.get(0))?;
    let mut runs = connection.prepare("SELECT started, ended FROM run ORDER BY id LIMIT 100000")?;
    let runs = runs.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?)))?;
    let mut runs = runs.collect::<DatabaseResult<Vec<_>>>()?;
    // A killed run ends with its last row, or before the next run begins.
    let mut next = last.unwrap_or(0);
    for (started, ended) in runs.iter_mut().rev() {
        if ended.is_none() {
            *ended = Some(next.max(*started));
        }
        next = *started;
    }
    Ok(runs
        .into_iter()
        .map(|(started, ended)| (started.max(0) as u64, ended.unwrap_or(started).max(0) as u64))
        .collect())
}

/// Returns the host of a URL with its port. For a text that is not a URL, returns its beginning.
/// The result has at most 300 bytes.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    truncate_text(host.rsplit_once('@').map_or(host, |(_, host)| host))
}

/// Returns the first 300 bytes of a text, or fewer if a character would be split.
fn truncate_text(text: &str) -> &str {
    const MOST: usize = 300;
    let end = (0..=MOST.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_host_is_taken_from_any_url() {
        for (url, host) in [
            ("http://h:8/x?y#z", "h:8"),
            ("https://u@h?x", "h"),
            ("h/x", "h"),
            ("http://[::1]:3/", "[::1]:3"),
            ("", ""),
        ] {
            assert_eq!(host_of(url), host);
        }
        assert_eq!(host_of(&"ä".repeat(1000)).len(), 300);
    }

    #[test]
    fn throughput_timeline_omits_time_between_runs() {
        let mut timeline = ThroughputTimeline::new(vec![(1_000_000, 1_001_000), (9_000_000, 9_001_000)]);
        assert_eq!(timeline.length, 2_000);
        timeline.add(1_000_000, false, 5);
        timeline.add(9_000_000, true, 0);
        timeline.add(9_001_000, false, 0);
        assert_eq!(
            (timeline.done[0], timeline.failed[TIMELINE_POINTS / 2], timeline.done[TIMELINE_POINTS - 1]),
            (1, 1, 1)
        );
        assert_eq!(timeline.later_runs().collect::<Vec<_>>(), [1_000]);
    }

    #[test]
    fn slowest_urls_are_kept_in_order() {
        let mut figures = ReportFigures::default();
        (0..200_u64).for_each(|number| figures.add_slow(&number.to_string(), None, number * 7 % 200));
        let slowest = figures.take_slowest();
        assert_eq!(slowest.len(), MAX_SLOWEST_URLS);
        assert!(slowest.iter().map(|(time, ..)| *time).eq((150..200).rev()));
    }
}
