//! Helpers for all test programs: a function that fetches a URL with either driver, and fleets
//! whose output is captured. Every wait has a time limit.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::fs;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use futures_core::Stream;
use haul::buffer_pool::OfferedBodyBytes;
use haul::fleet::{
    BodyDestination, Fleet, FleetItem, FleetItems, FleetJob, FleetOptions, FleetStage, FleetSummary, TransferReporter,
};
use haul::net::happy_eyeballs::ConnectOptions;
use haul::net::proxy::{Proxy, ProxyOptions};
use haul::net::tls::TlsOptions;
use haul::sink::Sink;
use haul::sink::descriptor_writer::DescriptorWriter;
use haul::transfer::TransferOutcome;
use haul::transfer_facts::TransferFacts;
use haul::{Client, Error, ErrorKind, RequestOptions, Target};
use tempfile::NamedTempFile;
use testkit::origin::Origin;

/// The time after which a fetch or a fleet run of a test counts as hung, and fails the test.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Asserts that two bodies are equal, without printing their bytes.
#[track_caller]
pub fn assert_same(got: &[u8], expected: &[u8]) {
    let differs = got.iter().zip(expected).position(|(a, b)| a != b);
    assert_eq!((differs, got.len()), (None, expected.len()), "the first difference, and the length");
}

/// Returns a copy of `options` with the proxy at `url`.
pub fn with_proxy(url: &str, options: &RequestOptions) -> RequestOptions {
    let mut proxy = ProxyOptions::default();
    proxy.proxy = Some(Proxy::parse(url).unwrap());
    RequestOptions { proxy: Some(proxy), ..options.clone() }
}

/// Runs `work` in a separate thread for at most [`TEST_TIMEOUT`], so that a hang fails only the
/// current test. `what` names the work in the failure message.
pub fn with_time_limit<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    thread::spawn(move || sender.send(work()));
    match receiver.recv_timeout(TEST_TIMEOUT) {
        Ok(value) => value,
        Err(RecvTimeoutError::Disconnected) => panic!("{what}: it panicked"),
        Err(RecvTimeoutError::Timeout) => panic!("{what}: it hangs"),
    }
}

/// A request body that panics when it is read or polled.
pub struct PanickingContent;

impl Read for PanickingContent {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        panic!("on purpose");
    }
}

impl Stream for PanickingContent {
    type Item = io::Result<Vec<u8>>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        panic!("on purpose");
    }
}

/// The driver that runs a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverKind {
    /// The blocking driver, called by [`Client::fetch`].
    Blocking,
    /// The driver with an event loop, called by a [`Fleet`] that fetches one URL.
    Reactor,
}

pub const DRIVERS: [DriverKind; 2] = [DriverKind::Blocking, DriverKind::Reactor];

/// The result of one transfer, for comparison in tests.
#[derive(Debug, Clone)]
pub struct FetchOutcome {
    /// The URL that the test requested.
    pub url: String,
    /// The kind of the transfer's error; `None` after a success.
    pub kind: Option<ErrorKind>,
    /// The message of the transfer's error; empty after a success.
    pub message: String,
    /// curl's exit code for the transfer's error; 0 after a success.
    pub exit: u8,
    pub status: u16,
    pub facts: Box<TransferFacts>,
    /// The URL of the last request of the transfer, after redirects.
    pub last: String,
    /// The delivered body. Empty if a fleet fetched several URLs, since their bodies share one
    /// output.
    pub body: Vec<u8>,
}

impl FetchOutcome {
    fn of(url: &str, outcome: &TransferOutcome) -> Self {
        let error = outcome.result.as_ref().err();
        Self {
            url: url.to_owned(),
            kind: error.map(Error::kind),
            message: error.map(ToString::to_string).unwrap_or_default(),
            exit: error.map_or(0, Error::exit_code),
            status: outcome.facts.status,
            facts: outcome.facts.clone(),
            last: outcome.target.to_url(),
            body: Vec::new(),
        }
    }

    /// Asserts that the transfer succeeded, and returns the body.
    #[track_caller]
    pub fn ok(&self) -> &[u8] {
        assert_eq!((self.exit, self.message.as_str()), (0, ""), "{}", self.url);
        &self.body
    }
}

impl DriverKind {
    /// Fetches one URL with this driver, and returns the result.
    pub fn get(self, client: &Client, url: &str, options: &RequestOptions) -> FetchOutcome {
        let (client, owned, options) = (client.clone(), url.to_owned(), Arc::new(options.clone()));
        match self {
            Self::Blocking => with_time_limit(url, move || {
                let body = BufferSink::default();
                let target = Target::parse(&owned).expect("a URL");
                let outcome = client.fetch(target, options, Box::new(body.clone()));
                FetchOutcome { body: body.bytes(), ..FetchOutcome::of(&owned, &outcome) }
            }),
            Self::Reactor => {
                let stage = FleetStage { options, ..FleetStage::default() };
                let run = run(&client, vec![stage], one_thread(), [owned]);
                run.result.expect("the run goes to its end");
                assert_eq!(run.reports.len(), 1, "one transfer is reported once: {:?}", run.reports);
                FetchOutcome { body: run.output, ..run.reports[0].clone() }
            }
        }
    }
}

/// A sink that stores the body in shared memory, so that a test can read the body from a clone of
/// the sink.
#[derive(Debug, Default, Clone)]
pub struct BufferSink(Arc<Mutex<Vec<u8>>>);

impl BufferSink {
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Sink for BufferSink {
    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> haul::Result<()> {
        self.0.lock().unwrap().extend_from_slice(offered.bytes());
        Ok(())
    }

    fn restart(&mut self) -> bool {
        self.0.lock().unwrap().clear();
        true
    }
}

/// A reporter that stores the outcome of every finished transfer of a fleet.
#[derive(Default, Clone)]
pub struct RecordingReporter(Arc<Mutex<Vec<FetchOutcome>>>);

impl RecordingReporter {
    pub fn all(&self) -> Vec<FetchOutcome> {
        self.0.lock().unwrap().clone()
    }
}

impl TransferReporter for RecordingReporter {
    fn finished(&self, job: &FleetJob, outcome: &TransferOutcome) -> Option<Vec<u8>> {
        self.0.lock().unwrap().push(FetchOutcome::of(&job.url, outcome));
        None
    }
}

/// The result of a fleet run.
pub struct FleetRunResult {
    pub result: Result<FleetSummary, Error>,
    pub output: Vec<u8>,
    /// The results of the fleet's transfers, in order of completion.
    pub reports: Vec<FetchOutcome>,
}

impl FleetRunResult {
    #[track_caller]
    pub fn summary(&self) -> &FleetSummary {
        self.result.as_ref().expect("the run goes to its end")
    }

    /// Returns the URL and the exit code of each transfer, sorted by URL.
    pub fn exits(&self) -> Vec<(String, u8)> {
        let mut exits: Vec<_> = self.reports.iter().map(|got| (got.url.clone(), got.exit)).collect();
        exits.sort();
        exits
    }
}

/// Runs a fleet of these URLs and reads its output as fast as possible.
pub fn run<U: Into<String>>(
    client: &Client,
    stages: Vec<FleetStage>,
    options: FleetOptions,
    urls: impl IntoIterator<Item = U>,
) -> FleetRunResult {
    let items: Vec<_> = urls.into_iter().map(|url| Ok(item(url))).collect();
    run_reading(client, stages, options, Box::new(items.into_iter()), |mut pipe| {
        let mut output = Vec::new();
        pipe.read_to_end(&mut output).unwrap();
        output
    })
}

/// Runs a fleet. Meanwhile, `read` runs in another thread with the read end of the fleet's output
/// pipe.
pub fn run_reading(
    client: &Client,
    stages: Vec<FleetStage>,
    options: FleetOptions,
    items: FleetItems,
    read: impl FnOnce(io::PipeReader) -> Vec<u8> + Send + 'static,
) -> FleetRunResult {
    let client = client.clone();
    with_time_limit("the fleet", move || {
        let (reader, writer) = io::pipe().unwrap();
        let reading = thread::spawn(move || read(reader));
        let notes = RecordingReporter::default();
        let result =
            Fleet::new(stages, options).run(&client, items, DescriptorWriter::new(writer.into()), notes.clone());
        FleetRunResult { result, output: reading.join().expect("the reader"), reports: notes.all() }
    })
}

/// Returns the item of a fleet that fetches `url` to the fleet's output.
pub fn item(url: impl Into<String>) -> FleetItem {
    FleetItem::new(url, BodyDestination::Output)
}

/// Returns the stages of a fleet that fetches only the given URLs: a single stage without
/// extraction.
pub fn single_stage(options: &RequestOptions) -> Vec<FleetStage> {
    vec![FleetStage { options: Arc::new(options.clone()), ..FleetStage::default() }]
}

pub fn one_thread() -> FleetOptions {
    threads(1)
}

pub fn threads(count: usize) -> FleetOptions {
    FleetOptions { threads: Some(count), ..FleetOptions::default() }
}

pub fn start_origin() -> Origin {
    Origin::builder().start().unwrap()
}

/// Returns request options that trust the CA with the certificate `ca_pem`, and the file that
/// contains the certificate. The file must outlive the options.
pub fn trusting_ca(ca_pem: &str) -> (RequestOptions, NamedTempFile) {
    let file = NamedTempFile::new().unwrap();
    fs::write(file.path(), ca_pem).unwrap();
    let mut tls = TlsOptions::default();
    tls.ca_file = Some(file.path().to_owned());
    (RequestOptions { tls, ..RequestOptions::default() }, file)
}

/// Returns request options that follow redirects.
pub fn following() -> RequestOptions {
    let mut options = RequestOptions::default();
    options.redirects.follow = true;
    options
}

/// Returns request options with at most `times` retries, and without delay before each retry.
pub fn retrying(times: u32) -> RequestOptions {
    let mut options = RequestOptions::default();
    options.retry.max = times;
    options.retry.delay = Some(Duration::ZERO);
    options
}

/// Returns request options with the connect timeout `limit`.
pub fn with_connect_timeout(limit: Duration) -> RequestOptions {
    let connect = ConnectOptions { timeout: limit, ..ConnectOptions::default() };
    RequestOptions { connect, ..RequestOptions::default() }
}

/// Returns a copy of the options that uses HTTP/2 without negotiation (prior knowledge).
pub fn with_prior_knowledge(mut options: RequestOptions) -> RequestOptions {
    options.prior_knowledge = true;
    options
}

/// Returns a copy of the options that offers HTTP/2 in the TLS handshake (ALPN).
pub fn with_h2_alpn(mut options: RequestOptions) -> RequestOptions {
    options.tls.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    options
}

/// Starts an origin that speaks HTTP/2, and allows `streams` concurrent streams.
pub fn http2_origin(streams: u32) -> Origin {
    Origin::builder().http2(streams).start().unwrap()
}

/// A complete HTTP/1.1 response with the body `ok`.
pub const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Fetches one URL with a new client.
pub fn get(driver: DriverKind, url: &str, options: &RequestOptions) -> FetchOutcome {
    driver.get(&Client::new(), url, options)
}

/// Asserts that a transfer failed with this kind of error and this exit code, and that the error
/// message contains the URL of the last request.
#[track_caller]
pub fn assert_fails(got: &FetchOutcome, kind: ErrorKind, exit: u8) {
    assert_eq!((got.kind, got.exit), (Some(kind), exit), "{}: {}", got.url, got.message);
    assert!(got.message.contains(got.last.as_str()), "the message names the URL: {}", got.message);
}
