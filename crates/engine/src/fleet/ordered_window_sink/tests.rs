use std::sync::Mutex;

use haul_policy::target::Target;
use haul_proto::response_head::ResponseHead;

use super::*;
use crate::fleet::ordered_window::DeliveryOrder;
use crate::fleet::ordered_window::StageSink;
use crate::fleet::sinks_of_stages::{FleetOutputSink, StageEndValues};
use crate::sink::descriptor_writer::{DescriptorWriter, OutputReadiness};
use crate::sink::file::FileOptions;
use crate::transfer_facts::TransferFacts;

struct IdleWaker;

impl TransferWaker for IdleWaker {
    fn wake(&self, _token: usize) {}
}

/// Makes a window with a budget of 1,000 bytes and two reserved slots. It outputs to an unnamed
/// temporary file.
fn window(order: DeliveryOrder) -> Arc<OrderedWindow> {
    let output = DescriptorWriter::new(tempfile::tempfile().unwrap().into());
    let window = OrderedWindow::new(order, 1000, Box::new(FleetOutputSink::new(output, Arc::default())));
    assert_eq!((window.reserve_slot(), window.reserve_slot()), (0, 1));
    Arc::new(window)
}

/// Makes a sink of each kind for a slot. The sink with a file never opens it.
fn sinks(window: &Arc<OrderedWindow>, slot: u64) -> [Box<dyn Sink>; 2] {
    let in_window = || OrderedWindowSlotSink::new(Arc::clone(window), slot, Arc::new([slot]));
    let file = FileSink::with_options("unopened", FileOptions::default());
    [Box::new(in_window()), Box::new(PageFileAndValuesSink::new(in_window(), file))]
}

#[test]
fn sink_has_the_credit_of_its_slot() {
    let window = window(DeliveryOrder::Input);
    for (slot, credit) in [(0, u64::MAX), (1, 1000)] {
        let credits = sinks(&window, slot).map(|mut sink| sink.credit(None, 0));
        assert_eq!(credits, [credit; 2], "slot {slot}");
    }
}

#[test]
fn only_the_sink_of_the_head_slot_is_first() {
    let window = window(DeliveryOrder::Input);
    for (slot, is_first) in [(0, true), (1, false)] {
        assert_eq!(sinks(&window, slot).map(|mut sink| sink.is_first(None, 0)), [is_first; 2], "slot {slot}");
    }
}

#[test]
fn only_the_sink_with_exclusive_output_is_awaited() {
    let window = window(DeliveryOrder::Whole);
    assert_eq!(sinks(&window, 1).map(|sink| sink.is_awaited()), [false; 2]);
    window.add_bytes(0, OfferedBodyBytes::borrowed(&[b'a'; 1000])).unwrap();
    let waker: Arc<dyn TransferWaker> = Arc::new(IdleWaker);
    for mut sink in sinks(&window, 1) {
        assert_eq!(sink.credit(Some(&waker), 0), u64::MAX, "it claims the output");
    }
    assert_eq!(sinks(&window, 1).map(|sink| sink.is_awaited()), [true; 2]);
    assert_eq!(sinks(&window, 0).map(|sink| sink.is_awaited()), [false; 2]);
}

/// A sink of a stage that collects lists of values: the position of the list, and its lines.
#[derive(Default, Clone)]
struct ValueListRecorder(Arc<Mutex<Vec<(u64, String)>>>);

impl StageSink for ValueListRecorder {
    fn write_bytes(&mut self, _bytes: &[u8]) -> Result<OutputReadiness> {
        panic!("only values are expected")
    }

    fn write_records(&mut self, records: &mut ExtractedValues) -> Result<OutputReadiness> {
        let place = records.place.take().unwrap();
        assert_eq!(*place.order, [1], "the transfer of the values");
        self.0.lock().unwrap().push((place.before, String::from_utf8(records.to_lines()).unwrap()));
        records.clear();
        self.flush()
    }

    fn flush(&mut self) -> Result<OutputReadiness> {
        Ok(OutputReadiness::Free)
    }

    fn finish(&mut self, tail: Option<StageEndValues>) -> Result<Option<StageEndValues>> {
        Ok(tail)
    }
}

/// Makes a window with two reserved slots that records its values, and the sink of the second slot.
fn recorded_values() -> (Arc<OrderedWindow>, OrderedWindowSlotSink, ValueListRecorder) {
    let recorder = ValueListRecorder::default();
    let window = Arc::new(OrderedWindow::new(DeliveryOrder::Input, 10_000, Box::new(recorder.clone())));
    assert_eq!((window.reserve_slot(), window.reserve_slot()), (0, 1));
    let sink = OrderedWindowSlotSink::new(Arc::clone(&window), 1, Arc::new([1]));
    (window, sink, recorder)
}

fn put_values(sink: &mut impl Sink, values: &[&str]) {
    let mut list = ExtractedValues::default();
    values.iter().for_each(|value| list.push(value.as_bytes()));
    sink.records(&mut list).unwrap();
    assert!(list.is_empty());
}

fn lists(expected: &[(u64, &str)]) -> Vec<(u64, String)> {
    expected.iter().map(|(before, lines)| (*before, (*lines).to_owned())).collect()
}

#[test]
fn values_are_counted_from_the_last_restart() {
    let (window, mut sink, recorder) = recorded_values();
    put_values(&mut sink, &["lost", "lost"]);
    assert!(sink.restart());
    for values in [&["a"][..], &["b", "c"], &["d"]] {
        put_values(&mut sink, values);
    }
    window.finish_slot(0).unwrap();
    assert_eq!(*recorder.0.lock().unwrap(), lists(&[(0, "a\n"), (1, "b\nc\n"), (3, "d\n")]));
    assert!(!sink.restart(), "values have left");
}

#[test]
fn url_before_each_value_has_no_credentials() {
    let (window, sink, recorder) = recorded_values();
    let mut sink = sink.with_url("http://me:secret@h/x");
    put_values(&mut sink, &["a", "b"]);
    window.finish_slot(0).unwrap();
    assert_eq!(*recorder.0.lock().unwrap(), lists(&[(0, "http://***@h/x\ta\nhttp://***@h/x\tb\n")]));
}

/// Begins the response with status 200 whose body the sink receives.
fn begin(sink: &mut impl Sink) {
    let target = Target::parse("http://h/").unwrap();
    let head = ResponseHead::from_raw(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let facts = TransferFacts::new(std::time::Instant::now());
    let response = ResponseForSink {
        head: &head,
        target: &target,
        place: &target,
        history: &[],
        facts: &facts,
        length: None,
        offset: 0,
        total: None,
        validator: None,
        deadline: None,
    };
    sink.begin(&response).unwrap();
}

#[test]
fn page_goes_to_the_file_and_values_to_the_window() {
    let (window, values, recorder) = recorded_values();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("page");
    let mut sink = PageFileAndValuesSink::new(values, FileSink::new(&path));
    assert_eq!(sink.file_name(), Some(path.as_path()));
    begin(&mut sink);
    sink.page(b"lost").unwrap();
    put_values(&mut sink, &["lost"]);
    assert!(sink.restart(), "neither the page nor a value has left");
    begin(&mut sink);
    sink.page(b"<a>").unwrap();
    sink.bytes(OfferedBodyBytes::borrowed(b"</a>")).unwrap();
    put_values(&mut sink, &["a"]);
    sink.finish().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"<a></a>");
    window.finish_slot(0).unwrap();
    assert_eq!(*recorder.0.lock().unwrap(), lists(&[(0, "a\n")]));
    assert!(!sink.restart(), "a value has left");
}
