//! Tests of the memory use of body delivery: batches of extracted values, and bodies that wait for
//! each other.

use std::sync::atomic::{AtomicUsize, Ordering};

use haul_proto::response_head::ResponseHead;

use super::*;
use crate::extraction::{CssQuery, ExtractRegexes, PageQuery};
use crate::pagination::Pagination;
use crate::sink::memory::MemorySink;
use crate::transfer_facts::TransferFacts;

/// A sink that records the sizes of the batches of values that it gets.
#[derive(Default)]
struct BatchSizeSink {
    largest: Arc<AtomicUsize>,
    values: Arc<AtomicUsize>,
}

impl Sink for BatchSizeSink {
    fn begin(&mut self, _begin: &ResponseForSink<'_>) -> Result<()> {
        Ok(())
    }

    fn bytes(&mut self, _offered: OfferedBodyBytes<'_>) -> Result<()> {
        Ok(())
    }

    fn records(&mut self, records: &mut ExtractedValues) -> Result<()> {
        self.largest.fetch_max(records.value_bytes(), Ordering::Relaxed);
        self.values.fetch_add(records.len(), Ordering::Relaxed);
        records.clear();
        Ok(())
    }

    fn restart(&mut self) -> bool {
        true
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn long_values_are_delivered_in_small_batches() {
    let pattern = ExtractRegexes::new("ax+").unwrap();
    let sink = BatchSizeSink::default();
    let (largest, values) = (Arc::clone(&sink.largest), Arc::clone(&sink.values));
    let mut body =
        BodyDelivery::new(Box::new(sink)).with_search(PageSearch::new(pattern.into()), RegexInputKind::Bytes);
    let page = format!("a{}", "x".repeat(30_000)).repeat(100);
    body.push(OfferedBodyBytes::borrowed(page.as_bytes())).unwrap();
    body.finish().unwrap();
    assert_eq!(values.load(Ordering::Relaxed), 100);
    assert!(largest.load(Ordering::Relaxed) <= MAX_BATCH_BYTES + 30_001, "{largest:?}");
}

/// A waker that counts its wake-ups.
#[derive(Default)]
struct CountingWaker(AtomicUsize);

impl TransferWaker for CountingWaker {
    fn wake(&self, _token: usize) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn json_pages_of_listings_wait_for_shared_memory() {
    let memory = Arc::new(DecoderMemoryBudget::new(2 << 20));
    let pagination = Pagination::by_json("$.next").unwrap();
    let target = Target::parse("http://h/").unwrap();
    let head = ResponseHead::from_raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n").unwrap();
    let page = format!("{{\"next\": \"x\", \"pad\": \"{}\"}}", "x".repeat((1 << 20) - 30));
    let facts = TransferFacts::new(std::time::Instant::now());
    let woken = Arc::new(CountingWaker::default());
    let waker: Arc<dyn TransferWaker> = woken.clone();
    let mut pages: Vec<BodyDelivery> = (0..3)
        .map(|_| {
            let mut body = BodyDelivery::new(Box::new(MemorySink::default()))
                .with_decoder_memory(&memory)
                .with_page_observer(pagination.observer());
            let begin = ResponseForSink {
                head: &head,
                target: &target,
                place: &target,
                history: &[],
                facts: &facts,
                length: Some(page.len() as u64),
                offset: 0,
                total: None,
                validator: None,
                deadline: None,
            };
            body.begin(&begin, b"", b"", DecodeLimits::default()).unwrap();
            body.push(OfferedBodyBytes::borrowed(&page.as_bytes()[..300 << 10])).unwrap();
            body
        })
        .collect();
    let credits: Vec<bool> = pages.iter_mut().map(|body| body.credit(Some(&waker), 0) > 0).collect();
    assert_eq!(credits, [true, true, false], "two pages of 1 MiB fit in 2 MiB");
    let rest = &page.as_bytes()[300 << 10..];
    for body in &mut pages {
        body.push(OfferedBodyBytes::borrowed(rest)).unwrap();
        body.finish().unwrap();
    }
    assert_eq!((woken.0.load(Ordering::Relaxed), memory.used_bytes()), (1, 0));
    assert!(pages[2].credit(Some(&waker), 0) > 0);
    for body in &mut pages {
        body.take_page_observer().unwrap().finish().unwrap();
    }
}

#[test]
fn nested_matches_wait_for_shared_memory() {
    let memory = Arc::new(DecoderMemoryBudget::new(1 << 20));
    let query = PageQuery::css(&[CssQuery::new("div").unwrap()]).unwrap();
    let mut pages: Vec<BodyDelivery> = (0..2)
        .map(|_| {
            let search = PageSearch::with_memory(query.clone(), 1 << 20);
            BodyDelivery::new(Box::new(MemorySink::default()))
                .with_decoder_memory(&memory)
                .with_search(search, RegexInputKind::Bytes)
        })
        .collect();
    // 20 KB of text in 30 elements are values of 600 KB.
    let page = format!("{}{}", "<div>".repeat(30), "x".repeat(20_000));
    for body in &mut pages {
        body.push(OfferedBodyBytes::borrowed(page.as_bytes())).unwrap();
    }
    let credits: Vec<bool> = pages.iter_mut().map(|body| body.credit(None, 0) > 0).collect();
    assert_eq!(credits, [true, false]);
}
