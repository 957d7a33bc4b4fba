mod listing_pages;

use super::*;
use crate::body::decoder_memory_budget::DecoderMemoryShare;

/// A sink that collects the content that it gets from a window. The flag is true while the sink has
/// no room.
#[derive(Default, Clone)]
struct CollectingSink(Arc<Mutex<(Vec<u8>, bool)>>);

impl CollectingSink {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().0.clone()).unwrap()
    }

    fn fill(&self, full: bool) {
        self.0.lock().unwrap().1 = full;
    }
}

impl StageSink for CollectingSink {
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<OutputReadiness> {
        self.0.lock().unwrap().0.extend_from_slice(bytes);
        self.flush()
    }

    fn write_records(&mut self, records: &mut ExtractedValues) -> Result<OutputReadiness> {
        let lines = records.to_lines();
        records.clear();
        self.write_bytes(&lines)
    }

    fn finish(&mut self, tail: Option<StageEndValues>) -> Result<Option<StageEndValues>> {
        Ok(tail)
    }

    fn flush(&mut self) -> Result<OutputReadiness> {
        Ok(if self.0.lock().unwrap().1 { OutputReadiness::Full } else { OutputReadiness::Free })
    }
}

/// A [`CollectingSink`] that allows streaming slots to keep content while the sink has no room.
struct AcceptsOutOfOrderSink(CollectingSink);

impl StageSink for AcceptsOutOfOrderSink {
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<OutputReadiness> {
        self.0.write_bytes(bytes)
    }

    fn write_records(&mut self, records: &mut ExtractedValues) -> Result<OutputReadiness> {
        self.0.write_records(records)
    }

    fn finish(&mut self, tail: Option<StageEndValues>) -> Result<Option<StageEndValues>> {
        Ok(tail)
    }

    fn flush(&mut self) -> Result<OutputReadiness> {
        self.0.flush()
    }

    fn may_receive_while_full(&self) -> bool {
        true
    }
}

#[derive(Default)]
struct WakeRecorder(Mutex<Vec<usize>>);

impl TransferWaker for WakeRecorder {
    fn wake(&self, token: usize) {
        self.0.lock().unwrap().push(token);
    }
}

fn window(order: DeliveryOrder, budget: usize, slots: u64) -> (OrderedWindow, CollectingSink) {
    let seen = CollectingSink::default();
    let window = OrderedWindow::new(order, budget, Box::new(seen.clone()));
    for slot in 0..slots {
        assert_eq!(window.reserve_slot(), slot);
    }
    (window, seen)
}

fn put(window: &OrderedWindow, slot: u64, text: &str) {
    window.add_bytes(slot, OfferedBodyBytes::borrowed(text.as_bytes())).unwrap();
}

#[test]
fn first_body_streams_and_later_bodies_wait() {
    let (window, seen) = window(DeliveryOrder::Input, 10_000, 3);
    put(&window, 1, "b");
    put(&window, 0, "a");
    assert_eq!(seen.text(), "a");
    window.finish_slot(1).unwrap();
    put(&window, 2, "c");
    put(&window, 0, "a");
    window.finish_slot(0).unwrap();
    assert_eq!(seen.text(), "aabc");
    put(&window, 2, "c");
    assert_eq!(seen.text(), "aabcc");
    window.finish_slot(2).unwrap();
    assert!(window.is_empty());
}

#[test]
fn later_bodies_get_credit_within_the_budget() {
    let (window, seen) = window(DeliveryOrder::Input, 2000, 3);
    let woken = Arc::new(WakeRecorder::default());
    let waker: Arc<dyn TransferWaker> = woken.clone();
    put(&window, 1, &"b".repeat(1700));
    assert_eq!(window.credit(2, Some(&waker), 22), 0);
    assert_eq!(window.credit(0, Some(&waker), 20), u64::MAX);
    window.finish_slot(0).unwrap();
    assert_eq!(seen.text().len(), 1700);
    assert_eq!(*woken.0.lock().unwrap(), [22]);
    assert!(window.credit(2, None, 0) > 1000);
}

#[test]
fn repeated_request_for_credit_wakes_once() {
    let (window, _seen) = window(DeliveryOrder::Input, 2000, 3);
    let woken = Arc::new(WakeRecorder::default());
    let waker: Arc<dyn TransferWaker> = woken.clone();
    put(&window, 1, &"b".repeat(1700));
    for token in [21, 22, 22] {
        assert_eq!(window.credit(2, Some(&waker), token), 0);
        assert!(!window.is_first(2, Some(&waker), token));
    }
    window.finish_slot(0).unwrap();
    assert_eq!(*woken.0.lock().unwrap(), [22]);
}

#[test]
fn full_sink_stops_credit_until_the_next_flush() {
    let (window, seen) = window(DeliveryOrder::Input, 10_000, 2);
    let woken = Arc::new(WakeRecorder::default());
    let waker: Arc<dyn TransferWaker> = woken.clone();
    seen.fill(true);
    put(&window, 0, "a");
    assert_eq!(window.credit(0, Some(&waker), 7), 0);
    put(&window, 0, "b");
    window.finish_slot(0).unwrap();
    put(&window, 1, "c");
    assert_eq!(seen.text(), "a");
    assert_eq!(window.flush().unwrap(), OutputReadiness::Full);
    seen.fill(false);
    assert_eq!(window.flush().unwrap(), OutputReadiness::Free);
    assert_eq!(seen.text(), "abc");
    assert_eq!(*woken.0.lock().unwrap(), [7]);
}

#[test]
fn completion_order_outputs_bodies_as_they_complete() {
    let (window, seen) = window(DeliveryOrder::Whole, 10_000, 3);
    put(&window, 0, "a");
    put(&window, 2, "c");
    put(&window, 1, "b");
    window.finish_slot(2).unwrap();
    put(&window, 0, "a");
    window.finish_slot(0).unwrap();
    window.finish_slot(1).unwrap();
    assert_eq!(seen.text(), "caab");
    assert!(window.is_empty());
}

#[test]
fn body_beyond_the_budget_gets_exclusive_output() {
    let (window, seen) = window(DeliveryOrder::Whole, 1000, 2);
    let waker: Arc<dyn TransferWaker> = Arc::new(WakeRecorder::default());
    put(&window, 0, &"a".repeat(900));
    assert_eq!(window.credit(1, None, 0), 0, "who only looks claims nothing");
    assert_eq!(window.credit(1, Some(&waker), 0), u64::MAX, "it claims the sink");
    put(&window, 1, "b");
    window.finish_slot(0).unwrap();
    put(&window, 1, "b");
    assert_eq!(seen.text(), "bb");
    window.finish_slot(1).unwrap();
    assert_eq!(seen.text(), format!("bb{}", "a".repeat(900)));
    assert!(window.is_empty());
}

#[test]
fn restarted_body_loses_exclusive_output() {
    let (window, seen) = window(DeliveryOrder::Whole, 2000, 2);
    put(&window, 0, &"a".repeat(1800));
    let woken = Arc::new(WakeRecorder::default());
    let waker: Arc<dyn TransferWaker> = woken.clone();
    assert_eq!(window.credit(1, Some(&waker), 0), u64::MAX, "it claims the sink");
    assert_eq!(window.credit(0, Some(&waker), 10), 0);
    assert!(window.restart_slot(1), "nothing of it has left");
    assert_eq!(*woken.0.lock().unwrap(), [10], "another may have it meanwhile");
    window.finish_slot(0).unwrap();
    assert_eq!(seen.text().len(), 1800);
    put(&window, 1, "b");
    window.finish_slot(1).unwrap();
    assert!(window.is_empty());
}

#[test]
fn first_body_waits_like_others_in_completion_order() {
    let (window, _) = window(DeliveryOrder::Whole, 2000, 3);
    put(&window, 1, &"b".repeat(1800));
    let woken = Arc::new(WakeRecorder::default());
    let waker: Arc<dyn TransferWaker> = woken.clone();
    assert_eq!(window.credit(2, Some(&waker), 12), u64::MAX, "it claims the sink");
    assert_eq!(window.credit(0, Some(&waker), 10), 0);
    put(&window, 2, "c");
    window.flush().unwrap();
    assert!(woken.0.lock().unwrap().is_empty(), "nothing has become free");
    window.finish_slot(2).unwrap();
    assert_eq!(*woken.0.lock().unwrap(), [10]);
}

#[test]
fn window_memory_is_limited_while_next_stage_is_full() {
    let seen = CollectingSink::default();
    let window = OrderedWindow::new(DeliveryOrder::Free, 2000, Box::new(AcceptsOutOfOrderSink(seen.clone())));
    let slot = window.reserve_slot();
    seen.fill(true);
    put(&window, slot, "a");
    let credit = window.credit(slot, None, 0);
    assert!((1..=2000).contains(&credit), "{credit}");
    put(&window, slot, &"b".repeat(2000));
    let woken = Arc::new(WakeRecorder::default());
    let waker: Arc<dyn TransferWaker> = woken.clone();
    assert_eq!(window.credit(slot, Some(&waker), 5), 0);
    window.finish_slot(slot).unwrap();
    assert_eq!(seen.text(), "a");
    seen.fill(false);
    window.flush().unwrap();
    assert_eq!(seen.text().len(), 2001);
    assert!(window.is_empty());
    assert_eq!(*woken.0.lock().unwrap(), [5]);
}

#[test]
fn body_waits_for_a_partly_written_body() {
    let (window, seen) = window(DeliveryOrder::Whole, 600, 2);
    put(&window, 0, "a");
    put(&window, 0, "a");
    seen.fill(true);
    window.finish_slot(0).unwrap();
    put(&window, 1, &"b".repeat(600));
    let waker: Arc<dyn TransferWaker> = Arc::new(WakeRecorder::default());
    assert_eq!(window.credit(1, Some(&waker), 0), 0, "the sink belongs to the record that is leaving");
    seen.fill(false);
    window.flush().unwrap();
    window.finish_slot(1).unwrap();
    assert_eq!(seen.text(), format!("aa{}", "b".repeat(600)));
}

#[test]
fn body_with_delivered_content_cannot_restart() {
    let (window, seen) = window(DeliveryOrder::Input, 10_000, 2);
    put(&window, 1, "wrong");
    assert!(window.restart_slot(1));
    put(&window, 1, "right");
    put(&window, 0, "x");
    assert!(!window.restart_slot(0));
    window.finish_slot(0).unwrap();
    window.finish_slot(1).unwrap();
    assert_eq!(seen.text(), "xright");
}

#[test]
fn unordered_output_streams_every_body() {
    let (window, seen) = window(DeliveryOrder::Free, 100, 3);
    put(&window, 2, "c");
    put(&window, 0, "a");
    window.finish_slot(2).unwrap();
    window.finish_slot(0).unwrap();
    window.finish_slot(1).unwrap();
    assert_eq!(seen.text(), "ca");
    assert!(window.is_empty());
}

/// Puts values into a slot: `times` lists with one value each, as one document may yield them.
fn put_values(window: &OrderedWindow, slot: u64, value: &str, times: usize) {
    for _ in 0..times {
        let mut values = ExtractedValues::default();
        values.push(value.as_bytes());
        window.add_records(slot, &mut values).unwrap();
        assert!(values.is_empty());
    }
}

/// Returns the number of bytes in memory of the content that a window keeps.
fn in_memory(window: &OrderedWindow) -> usize {
    let state = window.lock();
    let kept = state.slots.iter().chain(state.unordered.values()).flat_map(|slot| &slot.content);
    kept.filter(|content| !matches!(content, OrderedSlotPiece::Stored(_))).map(OrderedSlotPiece::cost).sum()
}

#[test]
fn values_beyond_the_budget_go_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let value = "v".repeat(64 << 10);
    for order in [DeliveryOrder::Input, DeliveryOrder::Whole] {
        let (window, seen) = window(order, 1 << 20, 5);
        let window = window.with_overflow_directory(dir.path());
        for slot in 1..5 {
            put_values(&window, slot, &value, 64);
        }
        put_values(&window, 3, "last", 1);
        assert!(in_memory(&window) <= (1 << 20) + MAX_BYTES_OVER_BUDGET);
        assert!(window.state.lock().unwrap().held >= 3 * 64 * value.len(), "they count as if they were in memory");
        assert_eq!(window.credit(4, None, 0), 0);
        // A transfer that starts again takes its values back.
        assert!(window.restart_slot(2));
        put_values(&window, 0, "first", 1);
        for slot in 0..5 {
            window.finish_slot(slot).unwrap();
        }
        let text = seen.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3 * 64 + 2);
        assert_eq!(lines.iter().filter(|line| **line == value).count(), 3 * 64);
        if order == DeliveryOrder::Input {
            assert_eq!((lines[0], lines[1 + 2 * 64]), ("first", "last"));
        }
        assert!(window.is_empty() && window.state.lock().unwrap().held == 0);
    }
}

#[test]
fn values_stay_in_memory_without_an_overflow_directory() {
    let (window, seen) = window(DeliveryOrder::Input, 1 << 10, 2);
    let window = window.with_overflow_directory(std::path::Path::new("/nonexistent"));
    put_values(&window, 1, &"v".repeat(1 << 20), 4);
    assert!(in_memory(&window) >= 4 << 20);
    window.finish_slot(0).unwrap();
    window.finish_slot(1).unwrap();
    assert_eq!(seen.text().len(), 4 * ((1 << 20) + 1));
}

#[test]
fn only_the_streaming_slot_is_first() {
    let woken = Arc::new(WakeRecorder::default());
    let waker: Arc<dyn TransferWaker> = woken.clone();
    let (window, _) = window(DeliveryOrder::Input, 10_000, 2);
    assert!(window.is_first(0, Some(&waker), 10));
    assert!(!window.is_first(1, Some(&waker), 11));
    assert!(!window.is_first(1, None, 12));
    assert_eq!((window.head_slot(), window.awaited_slot()), (Some(0), Some(0)));
    window.finish_slot(0).unwrap();
    assert_eq!(*woken.0.lock().unwrap(), [11]);
    assert!(window.is_first(1, Some(&waker), 13));
    assert_eq!((window.head_slot(), window.awaited_slot()), (Some(1), Some(1)));
    assert!(window.pages_share_slot() && !window.is_claimed_by(1));
}

#[test]
fn free_order_has_no_first_slot() {
    let (window, _) = window(DeliveryOrder::Free, 10_000, 1);
    put(&window, 0, "a");
    assert!(!window.is_first(0, None, 0));
    assert_eq!((window.head_slot(), window.awaited_slot()), (None, None));
    assert!(!window.pages_share_slot() && !window.is_claimed_by(0));
}

#[test]
fn output_is_claimed_when_the_budget_is_exactly_used() {
    let waker: Arc<dyn TransferWaker> = Arc::new(WakeRecorder::default());
    let (window, _) = window(DeliveryOrder::Whole, 2000, 2);
    window.count_outside(0, 0, 2000 - SLOT_COST - 1);
    assert_eq!(window.credit(1, Some(&waker), 0), 1);
    assert_eq!((window.awaited_slot(), window.has_budget()), (None, true));
    window.count_outside(0, 2000 - SLOT_COST - 1, 2000 - SLOT_COST);
    assert!(!window.has_budget());
    assert_eq!(window.credit(1, Some(&waker), 0), u64::MAX);
    assert_eq!(window.awaited_slot(), Some(1));
    assert!(window.is_claimed_by(1) && !window.is_claimed_by(0));
    assert!(window.is_first(1, None, 0) && !window.is_first(0, None, 0));
    assert_eq!(window.credit(0, Some(&waker), 0), 0, "the sink has an owner");
}

#[test]
fn memory_outside_counts_until_the_page_ends() {
    let (window, _) = window(DeliveryOrder::Input, 10_000, 2);
    let free = || window.credit(1, None, 0) as usize;
    window.count_outside(1, 0, 3000);
    assert_eq!(free(), 7000 - 2 * SLOT_COST);
    window.count_outside(1, 3000, 1000);
    assert_eq!(free(), 9000 - 2 * SLOT_COST);
    window.end_page(1);
    assert_eq!(free(), 10_000 - 2 * SLOT_COST);
    window.count_outside(1, 0, 500);
    window.finish_slot(1).unwrap();
    assert_eq!(free(), 10_000 - 2 * SLOT_COST);
}

#[test]
fn flush_is_wanted_after_output_and_while_full() {
    let (window, seen) = window(DeliveryOrder::Input, 10_000, 2);
    put(&window, 1, "b");
    assert!(!window.wants_flush());
    put(&window, 0, "a");
    assert!(window.wants_flush() && !window.is_empty());
    window.flush().unwrap();
    assert!(!window.wants_flush());
    seen.fill(true);
    put(&window, 0, "a");
    window.flush().unwrap();
    assert!(window.wants_flush());
    window.finish_slot(0).unwrap();
    window.finish_slot(1).unwrap();
    seen.fill(false);
    window.flush().unwrap();
    assert!(window.is_empty());
    assert_eq!(seen.text(), "aab");
}

#[test]
fn window_with_a_full_sink_is_not_empty() {
    let (window, seen) = window(DeliveryOrder::Input, 10_000, 1);
    seen.fill(true);
    put(&window, 0, "a");
    window.finish_slot(0).unwrap();
    assert!(!window.is_empty());
    seen.fill(false);
    window.flush().unwrap();
    assert!(window.is_empty());
}

/// Returns the text of a record that is produced in these pieces, and costs 1,000 bytes.
fn pieces(texts: &[&str]) -> WholeOrPiecewiseText {
    let texts: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    let pieces =
        crate::fleet::record_memory_sink::RecordTextIterator { pieces: Box::new(texts.into_iter()), cost: 1000 };
    WholeOrPiecewiseText::Pieces(pieces)
}

#[test]
fn interrupted_stage_completes_a_partly_written_record() {
    let (window, seen) = window(DeliveryOrder::Input, 10_000, 2);
    seen.fill(true);
    window.set_record(0, pieces(&["a", "b", "c"])).unwrap();
    assert_eq!(seen.text(), "a");
    window.finish_stage().unwrap();
    assert_eq!(seen.text(), "abc");
}

#[test]
fn interrupted_stage_drops_a_record_not_begun() {
    let (window, seen) = window(DeliveryOrder::Input, 10_000, 2);
    seen.fill(true);
    put(&window, 0, "x");
    window.finish_slot(0).unwrap();
    window.set_record(1, pieces(&["a", "b"])).unwrap();
    assert_eq!(window.credit(2, None, 0), (9000 - SLOT_COST) as u64);
    window.finish_stage().unwrap();
    assert_eq!(seen.text(), "x");
}

#[test]
fn empty_record_leaves_the_slot_untouched() {
    let (window, seen) = window(DeliveryOrder::Input, 10_000, 1);
    window.set_record(0, WholeOrPiecewiseText::Whole(Vec::new())).unwrap();
    assert!(!window.wants_flush() && window.restart_slot(0));
    window.set_record(0, WholeOrPiecewiseText::Whole(b"text".to_vec())).unwrap();
    assert!(!window.restart_slot(0));
    assert_eq!(seen.text(), "text");
}

#[test]
fn empty_body_that_leaves_wakes_no_transfer_without_room() {
    let (window, _) = window(DeliveryOrder::Input, 1000, 4);
    put(&window, 2, &"c".repeat(1000));
    let woken = Arc::new(WakeRecorder::default());
    let waker: Arc<dyn TransferWaker> = woken.clone();
    assert_eq!(window.credit(3, Some(&waker), 13), 0);
    window.finish_slot(0).unwrap();
    assert_eq!(window.head_slot(), Some(1));
    assert!(woken.0.lock().unwrap().is_empty(), "slot 2 still uses the budget up");
    window.finish_slot(1).unwrap();
    assert_eq!(*woken.0.lock().unwrap(), [13]);
}

#[test]
fn decoder_memory_reduces_the_budget_to_a_quarter() {
    let memory = Arc::new(DecoderMemoryBudget::new(1 << 20));
    let mut share = DecoderMemoryShare::new(&memory);
    let (window, _) = window(DeliveryOrder::Input, 8000, 2);
    let window = window.with_decoder_memory(&memory, 2);
    for (used, budget) in [(0, 8000), (6000, 5000), (12_000, 2000), (20_000, 2000)] {
        share.set_used_bytes(used);
        assert_eq!(window.credit(1, None, 0), budget, "the decoders of two windows use {used} bytes");
    }
}

/// Adds one value to slot 1 of a window that already keeps `held` bytes. The window has a budget of
/// 1,000 bytes. Slot 0 is not finished, so the window keeps the value: in a file (returns true) or
/// in memory (returns false).
fn value_goes_to_a_file(value_bytes: usize, held: usize) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let (window, _) = window(DeliveryOrder::Input, 1000, 2);
    let window = window.with_overflow_directory(dir.path());
    if held > 0 {
        window.count_outside(1, 0, held - 2 * SLOT_COST);
    }
    assert_eq!(window.lock().held, held);
    put_values(&window, 1, &"v".repeat(value_bytes), 1);
    in_memory(&window) == 0
}

#[test]
fn values_may_exceed_the_budget_by_one_mebibyte() {
    assert!(!value_goes_to_a_file(1_000_000, 0));
    assert!(value_goes_to_a_file(1_100_000, 0), "the first value can be too large");
    assert!(!value_goes_to_a_file(1000, 5000));
    assert!(value_goes_to_a_file(1000, 2_000_000));
    // The value uses up the memory exactly.
    let size = {
        let mut values = ExtractedValues::default();
        values.push(&[b'v'; 1000]);
        values.memory_size()
    };
    assert!(!value_goes_to_a_file(1000, 1000 + (1 << 20) - size));
    assert!(value_goes_to_a_file(1000, 1001 + (1 << 20) - size));
}
