//! Tests of the coordinator without connections: each test plays the server and the clock.

mod failures;
#[cfg(unix)]
mod files;
mod part_requests;

use std::ops::Range;

use haul_policy::range::split_connection_count::FirstStreamSample;
use haul_policy::range::validator::Validator;
use haul_policy::target::Target;

use super::*;
use crate::buffer_pool::OfferedBodyBytes;
use crate::interrupt_callback::{CALLBACK_INTERVAL, InterruptCallback};
use crate::request::{RequestOptions, SplitDownloadOptions};

/// The offset in the body that the first transfer has reached when the split download begins.
const POSITION: u64 = 400_000;
/// The rate of the first transfer, in bytes a second.
const RATE: u64 = 4_000_000;
/// The minimum size in bytes of a part at [`RATE`].
const MIN_SIZE: u64 = 100_000;
/// The number of bytes that arrive at [`RATE`] in [`ARRIVAL_SLACK`].
const LEAD: u64 = 80_000;

/// The properties of a split download for a test.
struct SplitSetup {
    url: &'static str,
    version: ProtocolVersion,
    total: u64,
    memory: u64,
    rate: u64,
    setup_time: Duration,
    max_time: Option<Duration>,
    interrupt: Option<InterruptCallback>,
    file: Option<Arc<PartialFile>>,
}

impl Default for SplitSetup {
    fn default() -> Self {
        Self {
            url: "http://h/",
            version: ProtocolVersion::Http11,
            total: 64 << 20,
            memory: 14 << 20,
            rate: RATE,
            setup_time: Duration::ZERO,
            max_time: None,
            interrupt: None,
            file: None,
        }
    }
}

/// A sink that collects the output of a split download.
struct SplitOutputSink {
    output: Arc<Mutex<Vec<u8>>>,
    file: Option<Arc<PartialFile>>,
    counter: Arc<DirectWriteRecorder>,
}

impl Sink for SplitOutputSink {
    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        self.output.lock().unwrap().extend_from_slice(offered.bytes());
        Ok(())
    }

    fn partial_file(&mut self) -> Option<Arc<PartialFile>> {
        self.file.clone()
    }

    fn counter(&mut self) -> Option<Arc<dyn DirectWriteCounter>> {
        Some(self.counter.clone())
    }

    fn restart(&mut self) -> bool {
        false
    }
}

/// A counter that records its calls.
#[derive(Default)]
struct DirectWriteRecorder {
    bytes: Mutex<u64>,
    connections: Mutex<Vec<usize>>,
}

impl DirectWriteCounter for DirectWriteRecorder {
    fn count(&self, bytes: u64) {
        *self.bytes.lock().unwrap() += bytes;
    }

    fn set_connections(&self, connections: usize) {
        self.connections.lock().unwrap().push(connections);
    }
}

/// A split download whose responses come from the test.
struct SplitDownload {
    coordinator: Arc<SplitCoordinator>,
    /// The first transfer until it has ended.
    first: Option<Box<Transfer>>,
    output: Arc<Mutex<Vec<u8>>>,
    counter: Arc<DirectWriteRecorder>,
    now: Instant,
}

/// Returns the bytes of the body in this range.
fn content(span: Range<u64>) -> Vec<u8> {
    span.map(|offset| (offset % 251) as u8).collect()
}

/// Returns a planner that has measured `rate` for the first transfer, and the time of the last
/// measurement. It allows six connections.
fn planner(rate: u64) -> (SplitPlanner, Instant) {
    let begin = Instant::now();
    let mut planner = SplitPlanner::new(6, time_conversions::to_monotonic_time(begin));
    let mut is_worth_trying = |milliseconds| {
        let sample = FirstStreamSample {
            now: time_conversions::to_monotonic_time(begin + Duration::from_millis(milliseconds)),
            received: rate * milliseconds / 1000,
            remaining: u64::MAX,
            waited: Duration::from_millis(milliseconds),
        };
        planner.is_worth_trying(sample, || None)
    };
    assert_eq!([50, 100].map(&mut is_worth_trying), [false, true]);
    assert_eq!(planner.rate(), rate);
    (planner, begin + Duration::from_millis(100))
}

impl SplitDownload {
    fn new(setup: SplitSetup) -> Self {
        let mut options = RequestOptions {
            split: SplitDownloadOptions { connections: 6, memory: setup.memory },
            max_time: setup.max_time,
            interrupt: setup.interrupt,
            ..RequestOptions::default()
        };
        options.tls.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let (output, counter) = (Arc::default(), Arc::<DirectWriteRecorder>::default());
        let sink = SplitOutputSink { output: Arc::clone(&output), file: setup.file, counter: Arc::clone(&counter) };
        let (planner, now) = planner(setup.rate);
        let target = Target::parse(setup.url).unwrap();
        let mut first = Transfer::new(target, Arc::new(options), BodyDelivery::new(Box::new(sink)), Instant::now(), 0);
        first.push(&content(0..POSITION)).unwrap();
        first.facts.version = Some(setup.version);
        (first.facts.resolved, first.facts.first_byte) =
            (Duration::from_secs(1), Duration::from_secs(1) + setup.setup_time);
        let body = SplittableBody { total: setup.total, validator: validator() };
        let coordinator = SplitCoordinator::new(&mut first, planner, body, setup.memory);
        Self { coordinator, first: Some(first), output, counter, now }
    }

    /// Makes a split download whose planner wants `connections` connections, and whose server is
    /// known to support range requests.
    fn with_connections(setup: SplitSetup, connections: usize) -> Self {
        let download = Self::new(setup);
        let mut state = download.coordinator.state();
        state.splitter.on_connection_refused(connections + 1);
        state.is_proved = true;
        if download.coordinator.file.is_none() {
            let id = state.first.id;
            state.window.shorten_first_claim(id, POSITION + LEAD);
        }
        drop(state);
        download.coordinator.first_end.make_final();
        download
    }

    fn next(&self) -> Option<Box<Transfer>> {
        self.coordinator.next(0, self.now)
    }

    /// Returns all transfers for parts that the coordinator requests now.
    #[expect(clippy::vec_box, reason = "the coordinator passes boxed transfers")]
    fn all_next(&self) -> Vec<Box<Transfer>> {
        std::iter::from_fn(|| self.next()).collect()
    }

    /// Returns the range that the transfer for a part still has to receive.
    fn missing(&self, part: &Transfer) -> Range<u64> {
        let state = self.coordinator.state();
        let part = &state.parts[&part.part_id().unwrap()];
        part.at..part.end
    }

    fn begin(&self, part: &Transfer) {
        self.coordinator.on_part_begun(part.part_id().unwrap());
    }

    /// Begins the response for a part unless it has begun, and delivers its next `bytes` bytes.
    fn receive(&self, part: &Transfer, bytes: u64) {
        self.begin(part);
        let at = self.missing(part).start;
        self.coordinator.on_part_bytes(part.part_id().unwrap(), &content(at..at + bytes)).unwrap();
    }

    fn end(&self, part: Box<Transfer>, result: Result<()>) {
        self.coordinator.on_finished(0, part, result);
    }

    /// Receives the rest of a part.
    fn complete(&self, part: Box<Transfer>) {
        let missing = self.missing(&part);
        self.receive(&part, missing.end - missing.start);
        self.end(part, Ok(()));
    }

    /// Makes the first transfer receive its next `bytes` bytes.
    fn receive_first(&mut self, bytes: u64) {
        let first = self.first.as_mut().unwrap();
        let at = first.position();
        first.push(&content(at..at + bytes)).unwrap();
        // The beginning of a split stores the offset of the first transfer, as its body does.
        first.begin_split(&self.coordinator.first_end, self.now);
    }

    fn end_first(&mut self, result: Result<()>) {
        self.coordinator.on_finished(0, self.first.take().unwrap(), result);
    }

    /// Makes the first transfer end where the first part begins.
    fn complete_first(&mut self) {
        self.receive_first(LEAD);
        self.end_first(Ok(()));
    }

    /// Asserts that the output is the beginning of the body, with this length.
    #[track_caller]
    fn assert_output(&self, length: u64) {
        let output = self.output.lock().unwrap();
        assert_eq!(output.len() as u64, length);
        assert!(*output == content(0..length), "the output has other bytes");
    }

    /// Returns the number of connections that the planner wants now.
    fn wanted(&self) -> usize {
        let sample =
            SplitSample { now: time_conversions::to_monotonic_time(self.now), received: 0, delivering: 0, requests: 0 };
        self.coordinator.state().splitter.clone().wanted_connections(sample, || None)
    }

    fn continues_alone(&self) -> bool {
        matches!(self.coordinator.state().outcome, Some(SplitOutcome::ContinueAlone))
    }

    /// Returns the kind of the error with which the download has ended, if there is one.
    fn error_kind(&self) -> Option<ErrorKind> {
        match &self.coordinator.state().outcome {
            Some(SplitOutcome::Done(Err(error))) => Some(error.kind()),
            _ => None,
        }
    }
}

fn validator() -> Validator {
    Validator::strong(Some(b"\"v\""), None, None).unwrap()
}

#[test]
fn parts_are_output_in_body_order() {
    let mut download = SplitDownload::new(SplitSetup { total: 1_000_000, ..SplitSetup::default() });
    let first_part = download.next().unwrap();
    assert_eq!(download.missing(&first_part), 480_000..580_000);
    assert!(download.next().is_none(), "the server has not proved that it supports ranges");
    download.begin(&first_part);
    let mut parts = download.all_next();
    assert_eq!(
        parts.iter().map(|part| download.missing(part)).collect::<Vec<_>>(),
        [580_000..680_000, 680_000..780_000]
    );
    let third = parts.pop().unwrap();
    download.receive(&third, 50_000);
    download.complete(parts.pop().unwrap());
    download.receive(&first_part, 30_000);
    download.assert_output(POSITION);
    download.complete_first();
    download.assert_output(510_000);
    download.receive(&first_part, 70_000);
    download.assert_output(580_000);
    download.end(first_part, Ok(()));
    download.assert_output(730_000);
    download.complete(third);
    download.assert_output(780_000);
    assert!(!download.coordinator.is_run_over());
    while let Some(part) = download.next() {
        download.complete(part);
    }
    download.assert_output(1_000_000);
    assert!(download.coordinator.is_run_over());
    let (transfer, outcome) = download.coordinator.finish(Ok(()));
    assert!(matches!(outcome, SplitOutcome::Done(Ok(()))));
    assert_eq!(transfer.facts.body_bytes, 1_000_000);
}

#[test]
fn bytes_that_the_first_transfer_delivered_are_skipped() {
    for early in [10_000, 30_000] {
        let mut download = SplitDownload::new(SplitSetup::default());
        let part = download.next().unwrap();
        assert_eq!(download.missing(&part).start, POSITION + LEAD);
        download.receive(&part, early);
        download.receive_first(LEAD + 20_000);
        download.end_first(Ok(()));
        download.assert_output(POSITION + LEAD + early.max(20_000));
        download.receive(&part, 5_000);
        download.assert_output(POSITION + LEAD + (early + 5_000).max(20_000));
        download.receive(&part, 40_000 - early);
        download.assert_output(POSITION + LEAD + 45_000);
    }
}

#[test]
fn interrupted_part_is_requested_from_its_missing_byte() {
    let mut download = SplitDownload::with_connections(SplitSetup::default(), 3);
    let [part, next] = <[_; 2]>::try_from(download.all_next().drain(..2).collect::<Vec<_>>()).ok().unwrap();
    let missing = download.missing(&part);
    download.receive(&part, 1000);
    download.receive(&next, 1);
    download.end(part, Err(Error::new(ErrorKind::Receive, "broken")));
    download.complete_first();
    download.assert_output(missing.start + 1000);
    download.now += Duration::from_secs(3600);
    let again = download.next().unwrap();
    assert_eq!(download.missing(&again), missing.start + 1000..missing.end);
    download.complete(again);
    download.assert_output(missing.end + 1);
}

#[test]
fn waiting_part_allocates_its_length_once() {
    let download = SplitDownload::with_connections(SplitSetup::default(), 2);
    let part = download.next().unwrap();
    let length = download.missing(&part).end - download.missing(&part).start;
    let buffer = || {
        let state = download.coordinator.state();
        let buffer = &state.parts[&part.part_id().unwrap()].buffer;
        (buffer.capacity() as u64, buffer.as_ptr())
    };
    download.receive(&part, 10);
    let (capacity, address) = buffer();
    assert!((length..length + length / 2).contains(&capacity), "{capacity} for {length}");
    download.receive(&part, length - 10);
    assert_eq!(buffer(), (capacity, address));
}

#[test]
fn received_bytes_of_all_connections_count() {
    let mut download = SplitDownload::with_connections(SplitSetup::default(), 3);
    let parts = download.all_next();
    download.receive_first(300);
    download.receive(&parts[0], 20);
    download.receive(&parts[1], 1);
    download.next();
    let state = download.coordinator.state();
    assert_eq!((state.received.total, state.received.by_parts), (321, 21));
    assert_eq!(state.delivering_parts(), 2);
    assert_eq!(state.window.missing_bytes(), (64 << 20) - POSITION - 321);
}

#[test]
fn body_that_ends_with_the_first_transfer_is_complete() {
    let mut download = SplitDownload::new(SplitSetup { total: POSITION + 1000, ..SplitSetup::default() });
    assert!(!download.coordinator.is_run_over());
    download.receive_first(1000);
    download.end_first(Ok(()));
    assert!(download.coordinator.is_run_over());
    assert!(matches!(download.coordinator.finish(Ok(())).1, SplitOutcome::Done(Ok(()))));
}

#[test]
fn part_sink_passes_its_bytes_on() {
    let mut download = SplitDownload::with_connections(SplitSetup::default(), 2);
    let part = download.next().unwrap();
    download.complete_first();
    let at = download.missing(&part).start;
    let coordinator = Arc::clone(&download.coordinator);
    let mut sink = PartToCoordinatorSink { coordinator, id: part.part_id().unwrap() };
    sink.bytes(OfferedBodyBytes::borrowed(&content(at..at + 10))).unwrap();
    assert!(!sink.restart(), "the coordinator has the bytes");
    download.assert_output(at + 10);
}
