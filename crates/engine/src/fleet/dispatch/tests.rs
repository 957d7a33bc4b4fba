use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::input_read_ahead::{MANY_STARTS, READ_FURTHER_AFTER, SECOND_QUEUE_TARGET};
use super::*;
use crate::fleet::HostStartRate;
use crate::fleet::item_source::ImmediateItemSource;
use crate::fleet::ordered_window::{DeliveryOrder, StageSink};
use crate::sink::descriptor_writer::OutputReadiness;
use crate::sink::extracted_value_list::ExtractedValues;

/// A sink that discards its content.
struct DiscardingSink;

impl StageSink for DiscardingSink {
    fn write_bytes(&mut self, _: &[u8]) -> Result<OutputReadiness> {
        Ok(OutputReadiness::Free)
    }

    fn write_records(&mut self, _: &mut ExtractedValues) -> Result<OutputReadiness> {
        Ok(OutputReadiness::Free)
    }

    fn flush(&mut self) -> Result<OutputReadiness> {
        Ok(OutputReadiness::Free)
    }

    fn finish(&mut self, values: Option<StageEndValues>) -> Result<Option<StageEndValues>> {
        Ok(values)
    }
}

/// A dispatcher for one stage whose hosts may have one transfer each, and the number of items that
/// it has read from its input.
struct DispatcherOfOneStage {
    dispatcher: Dispatcher,
    windows: Vec<Arc<OrderedWindow>>,
    stages: Vec<FleetStage>,
    read: Arc<AtomicUsize>,
    /// The host slots of the started transfers.
    started: Mutex<Vec<HostId>>,
}

impl DispatcherOfOneStage {
    fn new(urls: impl Iterator<Item = String> + Send + 'static) -> Self {
        Self::with_host_rate(urls, None)
    }

    fn with_host_rate(
        urls: impl Iterator<Item = String> + Send + 'static,
        host_start_rate: Option<HostStartRate>,
    ) -> Self {
        let read = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&read);
        let items = urls.map(move |url| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(FleetItem::new(url, BodyDestination::Output))
        });
        let source = Box::new(ImmediateItemSource(Box::new(items)));
        let options = FleetOptions { per_host: Some(1), host_start_rate, ..FleetOptions::default() };
        let caps = QueueCaps { total: 64, per_host: 1 };
        let window = OrderedWindow::new(DeliveryOrder::Free, 1 << 20, Box::new(DiscardingSink));
        Self {
            dispatcher: Dispatcher::new(caps, &options, 1, source, None),
            windows: vec![Arc::new(window)],
            stages: vec![FleetStage::default()],
            read,
            started: Mutex::default(),
        }
    }

    /// Ends all transfers that have started.
    fn end_transfers(&self) {
        self.started.lock().unwrap().drain(..).for_each(|host| self.dispatcher.release_host_slot(host));
    }

    /// Starts all transfers that may start at the time `now`. Returns their URLs.
    fn start_all(&self, now: Instant) -> Vec<String> {
        let view = StageWindowsAndSettings { windows: &self.windows, stages: &self.stages };
        let next = || match self.dispatcher.next(now, &view).unwrap()? {
            (host, NewJobOrRetry::New(started)) => {
                self.started.lock().unwrap().push(host);
                Some(started.target.to_url())
            }
            (_, NewJobOrRetry::Retry(_)) => panic!("no transfer is tried again"),
        };
        std::iter::from_fn(next).collect()
    }
}

#[test]
fn host_with_many_urls_does_not_stop_others() {
    let of_one_host = (0..8_000).map(|number| format!("http://a.test/{number}"));
    let of_others = ["http://b.test/", "http://c.test/"].map(str::to_owned);
    let fleet = DispatcherOfOneStage::new(of_one_host.chain(of_others));
    let now = Instant::now();
    assert_eq!(fleet.start_all(now), ["http://a.test/0"]);
    assert_eq!(fleet.read.load(Ordering::Relaxed), QUEUE_TARGET + 1);
    assert!(fleet.start_all(now + READ_FURTHER_AFTER).is_empty());
    assert_eq!(fleet.read.load(Ordering::Relaxed), SECOND_QUEUE_TARGET + 1024 + 1, "the rest is read in steps");
    let later = (2..9).flat_map(|step| fleet.start_all(now + READ_FURTHER_AFTER * step));
    assert_eq!(later.collect::<Vec<_>>(), ["http://b.test/", "http://c.test/"]);
}

#[test]
fn frequent_starts_of_one_host_stop_no_others() {
    let urls = (0..1_000).map(|number| format!("http://a.test/{number}")).chain(["http://b.test/".to_owned()]);
    let tenth = READ_FURTHER_AFTER / 10;
    let fleet = DispatcherOfOneStage::with_host_rate(urls, Some(HostStartRate::new(tenth)));
    let now = Instant::now();
    let started: Vec<_> = (0..11)
        .flat_map(|step| {
            let started = fleet.start_all(now + tenth * step);
            fleet.end_transfers();
            started
        })
        .collect();
    assert!(started.len() > 10 && started.contains(&"http://b.test/".to_owned()), "{started:?}");
}

#[test]
fn queue_of_a_fast_host_stays_short() {
    let fleet = DispatcherOfOneStage::new((0..u64::MAX).map(|number| format!("http://a.test/{number}")));
    let now = Instant::now();
    let mut started = 0;
    for step in 0..100 {
        for _ in 0..=MANY_STARTS {
            started += fleet.start_all(now + READ_FURTHER_AFTER * step).len();
            fleet.end_transfers();
        }
    }
    assert_eq!(started, 100 * (MANY_STARTS as usize + 1));
    assert!(fleet.read.load(Ordering::Relaxed) <= started + SECOND_QUEUE_TARGET);
}

#[test]
fn queue_of_a_blocked_host_is_bounded_by_bytes() {
    let fleet = DispatcherOfOneStage::new((0..u64::MAX).map(|number| format!("http://a.test/{number}")));
    let now = Instant::now();
    assert_eq!(fleet.start_all(now).len(), 1);
    assert!((1..100).all(|step| fleet.start_all(now + READ_FURTHER_AFTER * step).is_empty()));
    let job_bytes = size_of::<QueuedOrRunningJob>();
    let read = fleet.read.load(Ordering::Relaxed);
    assert!(read * job_bytes < MAX_QUEUED_BYTES && read * 2 * job_bytes > MAX_QUEUED_BYTES, "{read} {job_bytes}");
    assert!(fleet.start_all(now + READ_FURTHER_AFTER * 100).is_empty());
    assert_eq!(fleet.read.load(Ordering::Relaxed), read);
}
