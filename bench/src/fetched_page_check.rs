//! Checks the output of a client that fetches pages from testkit's page server, and adds the
//! server's counts to the measurements of the run.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use testkit::host_network::HostNetwork;
use testkit::page_server::{PageServer, ServerCounts, page, page_key};

use crate::Result;

/// The check that the output of a client consists of the right pages of testkit's page server.
pub(crate) struct PageCheck {
    pub(crate) expected: ExpectedPages,
    /// The total length of the expected pages in bytes.
    pub(crate) len: u64,
    pub(crate) pages: Arc<PageServer>,
    /// The network of hosts that sends the pages; `None` if one page server sends them.
    pub(crate) network: Option<Rc<HostNetwork>>,
    /// True if clients connect to the page server, or to the hosts of `network`, by TLS.
    pub(crate) tls: bool,
    /// The rate limit (requests or bytes per second) that is set for the client, and with which the
    /// rate that the page servers measured is compared. `None` if the rate is not checked.
    pub(crate) rate: Option<ExpectedRate>,
}

/// The rate limit that is set for a client, in requests or in bytes, and the servers that measure
/// the rate that the client reaches.
pub(crate) struct ExpectedRate {
    pub(crate) unit: RateUnit,
    /// The rate limit that is set for the client, in requests or bytes per second (`unit`).
    pub(crate) per_second: f64,
    pub(crate) servers: Vec<Arc<PageServer>>,
}

/// The unit of a rate limit: requests or bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RateUnit {
    Requests,
    Bytes,
}

impl ExpectedRate {
    /// Returns the largest difference between the expected rate and the rate at a server, in
    /// percent.
    fn difference(&self) -> f64 {
        let differences = self.servers.iter().map(|server| {
            let rate = rate_of(&server.counts(), self.unit).unwrap_or(0.0);
            (rate / self.per_second - 1.0).abs() * 100.0
        });
        differences.fold(0.0, f64::max)
    }
}

/// Returns the rate that a server has measured in a run, in requests or bytes per second; `None` if
/// there were fewer than two requests. For requests, the rate is the number of intervals between
/// requests, divided by their total time.
fn rate_of(counts: &ServerCounts, unit: RateUnit) -> Option<f64> {
    let first = counts.first_request?;
    let (units, last) = match unit {
        RateUnit::Requests => (counts.requests.checked_sub(1)?, counts.last_request?),
        RateUnit::Bytes => (counts.page_bytes, counts.last_page?),
    };
    let time = last.saturating_sub(first).as_secs_f64();
    (time > 0.0).then(|| units as f64 / time)
}

/// The pages that a client has to fetch, and the format of its output.
pub(crate) enum ExpectedPages {
    /// The output consists of the pages themselves, in any order. Each page is one line that names
    /// its URL.
    Pages(RequiredAndOptionalPages),
    /// The output has a line with the length of each page. This format is for clients that would
    /// mix the bytes of several long pages in their output.
    Lengths { count: usize, len: usize },
}

/// The pages that a client must fetch, and the pages that it may fetch. Each page is identified by
/// its key ([`page_key`]).
#[derive(Clone)]
pub(crate) struct RequiredAndOptionalPages {
    /// The keys of the pages that a client must fetch.
    pub(crate) required: HashSet<u64>,
    /// The keys of pages that a client may fetch but need not fetch: the name server answers for
    /// their hosts so late that a request may exceed the client's time limit.
    pub(crate) optional: HashSet<u64>,
}

/// The results of the check of one run: the number of pages that the client fetched, and numbers
/// that the server counted, such as its connections and 503 responses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FetchedPageCounts {
    /// The number of pages in the client's output that are among the required pages, which the
    /// client has to fetch.
    pub(crate) fetched: usize,
    /// The number of required pages: the client must fetch all of them, because their hosts work.
    #[serde(rename = "healthy")]
    pub(crate) required: usize,
    /// The time from the start of the run to the last page that the server sent, in microseconds.
    pub(crate) last_page_us: u64,
    pub(crate) connections: u64,
    /// The number of full TLS handshakes (with certificates); `None` without TLS.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) full_handshakes: Option<u64>,
    /// The number of responses with status 503.
    pub(crate) refusals: u64,
    /// The number of queries to the name server; `None` if the job has no name server.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) queries: Option<usize>,
    /// The largest number of concurrent requests at the server after the first second. `None` if
    /// there was no request so late, or if the pages are on many hosts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) peak_later: Option<usize>,
    /// The largest difference between the rate limit of the client and the rate that a server
    /// measured, in percent of the limit; `None` if the rate is not checked. The rates are in
    /// requests or bytes per second.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) rate_difference: Option<f64>,
}

impl FetchedPageCounts {
    /// Returns a message with the number of required pages that were fetched, if any is missing.
    /// `None` if no required page is missing.
    pub(crate) fn fault(&self) -> Option<String> {
        let FetchedPageCounts { fetched, required, .. } = self;
        (fetched < required).then(|| format!("{fetched} of {required} required pages"))
    }
}

impl PageCheck {
    /// Starts a run: sets the counts of the page servers and the name server to zero.
    pub(crate) fn start_run(&self) {
        self.pages.start_run();
        self.rate.iter().flat_map(|rate| &rate.servers).for_each(|server| server.start_run());
        if let Some(network) = &self.network {
            drop(network.take_queries());
        }
    }

    /// Checks the file with a client's output. Returns the measurements of the run, including the
    /// number of missing pages, or a message about a damaged, unexpected or repeated page.
    pub(crate) fn check_output(&self, output: &Path) -> Result<Result<FetchedPageCounts, String>> {
        let counts = self.pages.counts();
        let reader = BufReader::with_capacity(256 << 10, File::open(output)?);
        let (fetched, required) = match &self.expected {
            ExpectedPages::Pages(keys) => (count_pages(reader, keys)?, keys.required.len()),
            ExpectedPages::Lengths { count, len } => (count_lengths(reader, *count, *len)?, *count),
        };
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(why) => return Ok(Err(format!("wrong answer: {why}"))),
        };
        Ok(Ok(FetchedPageCounts {
            fetched,
            required,
            last_page_us: u64::try_from(counts.last_page.unwrap_or_default().as_micros())?,
            connections: counts.connections,
            full_handshakes: self.tls.then_some(counts.full_handshakes),
            refusals: counts.refusals,
            queries: self.network.as_ref().map(|network| network.take_queries().len()),
            // The value has no meaning for many hosts at once.
            peak_later: counts.peak_later.filter(|_| self.network.is_none()),
            rate_difference: self.rate.as_ref().map(ExpectedRate::difference),
        }))
    }
}

/// Counts the required pages (those that the client must fetch) in a client's output. Returns their
/// number, or a message about a page that is damaged, unexpected or repeated.
fn count_pages(mut output: impl BufRead, keys: &RequiredAndOptionalPages) -> io::Result<Result<usize, String>> {
    let mut missing = keys.clone();
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        match key_of(&line) {
            Some(key) if missing.required.remove(&key) || missing.optional.remove(&key) => {}
            Some(_) => return Ok(Err(format!("unexpected page {:?}", start_of(&line)))),
            None => return Ok(Err(format!("damaged page {:?}", start_of(&line)))),
        }
        line.clear();
    }
    Ok(Ok(keys.required.len() - missing.required.len()))
}

/// Counts the lines with the length `len` in a client's output. A failed transfer has a line with
/// 0. Returns a message for any other line, and for more than `count` lines with `len`.
fn count_lengths(output: impl BufRead, count: usize, len: usize) -> io::Result<Result<usize, String>> {
    let mut fetched = 0;
    for line in output.lines() {
        match line?.parse::<usize>() {
            Ok(0) => {}
            Ok(said) if said == len && fetched < count => fetched += 1,
            said => return Ok(Err(format!("said {said:?}, not {len}"))),
        }
    }
    Ok(Ok(fetched))
}

/// Returns the key ([`page_key`]) of the page in a line of a client's output. The page server sends
/// each page as one line: the URL, a blank, and a text that depends on the URL. Returns `None` if
/// the line is not exactly the page of the URL with which it starts.
fn key_of(line: &[u8]) -> Option<u64> {
    let text = str::from_utf8(line).ok()?;
    let url = text.split(' ').next()?;
    let (host, path) = url.split_at(url.find('/')?);
    (page(host, path) == line).then(|| page_key(host, path))
}

fn start_of(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(40)]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use testkit::page_server::{PageTiming, PortBehavior};

    use super::*;

    #[test]
    fn page_check_accepts_pages_in_any_order() {
        let urls = [("a.test", "/60/1"), ("a.test", "/60/2"), ("b.test", "/60/1")];
        let keys = RequiredAndOptionalPages {
            required: urls.iter().map(|(host, path)| page_key(host, path)).collect(),
            optional: HashSet::from([page_key("late.test", "/60/1")]),
        };
        let check = PageCheck {
            expected: ExpectedPages::Pages(keys),
            len: 180,
            pages: Arc::new(PageServer::start(vec![PortBehavior::Pages(PageTiming::AT_ONCE)], None).unwrap()),
            network: None,
            tls: false,
            rate: None,
        };
        let pages = urls.map(|(host, path)| page(host, path));
        let file = std::env::temp_dir().join(format!("haul-bench-pages-{}", std::process::id()));
        let judge = |output: Vec<u8>| {
            std::fs::write(&file, output).unwrap();
            check.check_output(&file).unwrap()
        };
        let all = judge([&pages[2][..], &pages[0], &pages[1]].concat()).unwrap();
        assert_eq!((all.fetched, all.required, all.fault()), (3, 3, None));
        let some = judge([pages[1].clone(), page("late.test", "/60/1")].concat()).unwrap();
        assert_eq!(some.fault().unwrap(), "1 of 3 required pages");
        let mixed = [&pages[0][..30], &pages[1], &pages[0][30..]].concat();
        for wrong in [pages[0].repeat(2), page("c.test", "/60/1"), mixed, b"x".to_vec()] {
            assert!(judge(wrong).unwrap_err().starts_with("wrong answer"));
        }
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn lengths_of_failed_transfers_are_not_counted() {
        let judge = |output: &str| count_lengths(output.as_bytes(), 2, 300).unwrap();
        assert_eq!(judge("300\n300\n"), Ok(2));
        assert_eq!(judge("0\n300\n"), Ok(1));
        for wrong in ["299\n", "300\n300\n300\n", "x\n"] {
            assert!(judge(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn request_rate_is_measured_from_first_to_last() {
        let second = |seconds| Some(Duration::from_secs(seconds));
        let counts = ServerCounts {
            requests: 11,
            page_bytes: 3_000,
            first_request: second(2),
            last_request: second(7),
            last_page: second(8),
            ..ServerCounts::default()
        };
        assert_eq!(rate_of(&counts, RateUnit::Requests), Some(2.0));
        assert_eq!(rate_of(&counts, RateUnit::Bytes), Some(500.0));
        assert_eq!(rate_of(&ServerCounts::default(), RateUnit::Bytes), None);
    }
}
