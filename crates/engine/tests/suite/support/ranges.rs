//! Bodies that come in parts: an origin that holds each of them to a rate, sinks that cannot take anything back, and what
//! must be true of every such transfer.
use std::sync::Arc;

use haul::buffer::Lease;
use haul::request::Split;
use haul::sink::Sink;
use haul::transfer::Outcome;
use haul::{Client, Error, RequestOptions, Target};
use testkit::faulty::{Faulty, Plan, Seen};
use testkit::pattern::Pattern;

use crate::common::{BufferSink, bounded, retrying, trusting};

pub(crate) const MIB: u64 = 1 << 20;
/// Two seconds at [`RATE`]: worth more connections, whatever the load of the machine.
pub(crate) const SIZE: u64 = 4 * MIB;
/// What one connection brings a second.
pub(crate) const RATE: u64 = 2 * MIB;

pub(crate) fn origin() -> Faulty {
    Faulty::builder().start().expect("an origin")
}

/// A body that is held to a rate a connection.
pub(crate) fn held() -> Plan {
    Plan { size: SIZE, rate: Some(RATE), ..Plan::default() }
}

/// The content of a plan, before its change (0) and after it (1).
pub(crate) fn content(plan: &Plan, version: u64) -> Vec<u8> {
    Pattern::new(plan.seed + version).slice(0, plan.size as usize)
}

/// Up to six connections, and a few retries without a wait.
pub(crate) fn splitting() -> RequestOptions {
    RequestOptions { split: Split { connections: 6, ..Split::default() }, ..retrying(3) }
}

/// As [`splitting`], for the TLS side of this origin; the file has to live as long.
pub(crate) fn splitting_over_tls(origin: &Faulty) -> (RequestOptions, tempfile::NamedTempFile) {
    let (trusting, file) = trusting(origin.ca_pem());
    (RequestOptions { tls: trusting.tls, ..splitting() }, file)
}

/// Takes a body that cannot be taken back, as a pipe does.
#[derive(Default, Clone)]
pub(crate) struct NonRestartableSink(BufferSink);

impl NonRestartableSink {
    pub(crate) fn taken(&self) -> Vec<u8> {
        self.0.bytes()
    }
}

impl Sink for NonRestartableSink {
    fn bytes(&mut self, lease: Lease<'_>) -> haul::Result<()> {
        Sink::bytes(&mut self.0, lease)
    }

    fn restart(&mut self) -> bool {
        self.0.bytes().is_empty()
    }
}

/// Fetches into this sink; a hang is a failure of the test.
pub(crate) fn fetch(client: &Client, url: &str, options: &RequestOptions, sink: impl Sink + 'static) -> Outcome {
    let (client, owned, options) = (client.clone(), url.to_owned(), Arc::new(options.clone()));
    bounded(url, move || client.fetch(Target::parse(&owned).expect("a URL"), options, Box::new(sink)))
}

/// The exit code of what became of it.
pub(crate) fn exit(outcome: &Outcome) -> u8 {
    outcome.result.as_ref().err().map_or(0, Error::exit_code)
}

/// The same after checking that it went well.
#[track_caller]
pub(crate) fn went_well(outcome: &Outcome) {
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
}

/// Ranges asked for, in order of arrival.
pub(crate) fn ranges(seen: &Seen) -> Vec<String> {
    seen.requests.iter().filter_map(|request| request.range.clone()).collect()
}

/// First and last byte of a closed range.
pub(crate) fn closed(range: &str) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}
