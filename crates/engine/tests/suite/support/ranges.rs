//! Helpers for tests of range requests: a rate-limited origin, a sink that cannot restart, and
//! common checks.
use std::sync::Arc;

use haul::buffer_pool::OfferedBodyBytes;
use haul::request::SplitDownloadOptions;
use haul::sink::Sink;
use haul::transfer::TransferOutcome;
use haul::{Client, Error, RequestOptions, Target};
use testkit::byte_pattern::BytePattern;
use testkit::faulty::{FaultPlan, FaultyOrigin, FaultyRequestLog, WrongContentRange};

use crate::common::{BufferSink, retrying, trusting_ca, with_time_limit};

pub(crate) const MIB: u64 = 1 << 20;
/// The size in bytes of a body that takes two seconds at [`RATE`]. That is long enough for a split
/// download on any machine.
pub(crate) const SIZE: u64 = 4 * MIB;
/// The rate in bytes per second to which the origin limits each connection.
pub(crate) const RATE: u64 = 2 * MIB;

pub(crate) fn origin() -> FaultyOrigin {
    FaultyOrigin::builder().start().expect("an origin")
}

/// Returns the plan of an origin without faults that limits the rate of each connection.
pub(crate) fn rate_limited_plan() -> FaultPlan {
    FaultPlan { size: SIZE, rate: Some(RATE), ..FaultPlan::default() }
}

/// Returns the content that an origin with this plan serves. `version` is 0 for the content before
/// the change that the plan contains, and 1 for the content after it.
pub(crate) fn content(plan: &FaultPlan, version: u64) -> Vec<u8> {
    BytePattern::new(plan.seed + version).slice(0, plan.size as usize)
}

/// Returns request options for a split download over up to six connections, with a few retries
/// without delay.
pub(crate) fn splitting() -> RequestOptions {
    RequestOptions { split: SplitDownloadOptions { connections: 6, ..SplitDownloadOptions::default() }, ..retrying(3) }
}

/// Returns the options of [`splitting`] for the origin's TLS port, and the file with the CA
/// certificate. The file must outlive the options.
pub(crate) fn splitting_over_tls(origin: &FaultyOrigin) -> (RequestOptions, tempfile::NamedTempFile) {
    let (trusting, file) = trusting_ca(origin.ca_pem());
    (RequestOptions { tls: trusting.tls, ..splitting() }, file)
}

/// A sink that cannot restart once it has received bytes, like a pipe.
#[derive(Default, Clone)]
pub(crate) struct NonRestartableSink(BufferSink);

impl NonRestartableSink {
    pub(crate) fn taken(&self) -> Vec<u8> {
        self.0.bytes()
    }
}

impl Sink for NonRestartableSink {
    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> haul::Result<()> {
        Sink::bytes(&mut self.0, offered)
    }

    fn restart(&mut self) -> bool {
        self.0.bytes().is_empty()
    }
}

/// Fetches a URL into this sink with the blocking driver. If this takes too long, the test fails.
pub(crate) fn fetch(
    client: &Client,
    url: &str,
    options: &RequestOptions,
    sink: impl Sink + 'static,
) -> TransferOutcome {
    let (client, owned, options) = (client.clone(), url.to_owned(), Arc::new(options.clone()));
    with_time_limit(url, move || client.fetch(Target::parse(&owned).expect("a URL"), options, Box::new(sink)))
}

/// Returns the exit code of a transfer; 0 for a success.
pub(crate) fn exit_code(outcome: &TransferOutcome) -> u8 {
    outcome.result.as_ref().err().map_or(0, Error::exit_code)
}

/// Asserts that a transfer has succeeded.
#[track_caller]
pub(crate) fn assert_success(outcome: &TransferOutcome) {
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
}

/// Returns the values of the Range fields that the origin has received, in order of arrival.
pub(crate) fn ranges(seen: &FaultyRequestLog) -> Vec<String> {
    seen.requests.iter().filter_map(|request| request.range.clone()).collect()
}

/// Returns the offsets of the first and last byte of a closed range such as `0-99`. Returns `None`
/// for other ranges.
pub(crate) fn closed_range(range: &str) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// Asserts that a body was requested in parts, and that each part was requested as a closed range
/// with If-Range.
#[track_caller]
pub(crate) fn assert_split(seen: &FaultyRequestLog) {
    assert_eq!(seen.requests[0].range, None, "the first request is a plain GET");
    let parts = &seen.requests[1..];
    assert!(!parts.is_empty(), "it was not split");
    for part in parts {
        let range = part.range.as_deref().unwrap();
        assert!(closed_range(range).is_some_and(|(first, last)| first <= last && last < SIZE), "{range}");
        assert_eq!(part.if_range.as_deref(), Some("\"1-0\""));
        assert_eq!(part.status, 206);
    }
    // Bytes that a server sends after a part was cut, before it notices.
    assert!(seen.twice() <= SIZE / 4, "{} bytes were sent twice", seen.twice());
}

/// Returns fault plans under which a split download is not possible, and their names. Most plans
/// give wrong answers to range requests. With each plan, the first stream must deliver the whole
/// body.
pub(crate) fn refusals() -> Vec<(&'static str, FaultPlan)> {
    vec![
        ("ignores Range", FaultPlan { ignore_range: true, ..rate_limited_plan() }),
        ("another start", FaultPlan { content_range: Some(WrongContentRange::Start(1)), ..rate_limited_plan() }),
        ("another end", FaultPlan { content_range: Some(WrongContentRange::End(-1)), ..rate_limited_plan() }),
        ("another total", FaultPlan { content_range: Some(WrongContentRange::Total(5)), ..rate_limited_plan() }),
        ("another unit", FaultPlan { content_range: Some(WrongContentRange::Unit), ..rate_limited_plan() }),
        ("no Content-Range", FaultPlan { content_range: Some(WrongContentRange::Missing), ..rate_limited_plan() }),
        ("a longer part", FaultPlan { part_length: 10, ..rate_limited_plan() }),
        ("a shorter part", FaultPlan { part_length: -10, ..rate_limited_plan() }),
        ("a coded part", FaultPlan { gzip: true, ..rate_limited_plan() }),
        ("416", FaultPlan { refuse_416: u64::MAX / 2, ..rate_limited_plan() }),
        ("503", FaultPlan { unavailable: u64::MAX / 2, ..rate_limited_plan() }),
        // A pause of a host does not stop a stream in progress.
        ("503 for an hour", FaultPlan { unavailable: u64::MAX / 2, retry_after: Some(3600), ..rate_limited_plan() }),
        ("resets all but one", FaultPlan { connections: Some(1), ..rate_limited_plan() }),
    ]
}
