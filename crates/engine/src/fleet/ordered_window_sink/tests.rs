use super::*;
use crate::fleet::ordered_window::DeliveryOrder;
use crate::fleet::sinks_of_stages::FleetOutputSink;
use crate::sink::descriptor_writer::DescriptorWriter;
use crate::sink::file::FileOptions;

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
