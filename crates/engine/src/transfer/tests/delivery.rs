//! Tests of the delivery of body bytes to the sink.

use std::io::IoSlice;

use super::*;
use crate::body::delivery::RegexInputKind;
use crate::extraction::{ExtractRegexes, PageSearch};
use crate::request::Validator;

/// A transfer whose response with these fields has begun.
fn receiving(sink: &TestSink, options: RequestOptions, text: &str) -> Box<Transfer> {
    let mut transfer = sink.transfer(options);
    respond(&mut transfer, text);
    assert_eq!(decision(&transfer), "deliver");
    transfer
}

fn get(sink: &TestSink) -> Box<Transfer> {
    receiving(sink, RequestOptions::default(), "200 OK\r\nContent-Length: 10")
}

fn receive(transfer: &mut Transfer, bytes: &[u8]) -> Result<()> {
    transfer.on_body(OfferedBodyBytes::borrowed(bytes), false, Instant::now())
}

/// Reports the bytes in pieces of one and the remaining bytes.
fn receive_pieces(transfer: &mut Transfer, bytes: &[u8]) -> Result<()> {
    let (first, rest) = bytes.split_at(1);
    transfer.on_pieces(&mut [IoSlice::new(first), IoSlice::new(rest)], Instant::now())
}

/// Makes the transfer the first stream of a split download that ends at the offset `end`.
fn split_at(transfer: &mut Transfer, end: u64, is_final: bool) -> Arc<FirstStreamEnd> {
    let stream_end = FirstStreamEnd::unlimited();
    transfer.begin_split(&stream_end, Instant::now());
    stream_end.set(end);
    if is_final {
        stream_end.make_final();
    }
    stream_end
}

#[test]
fn credit_depends_on_the_decision_and_the_sink() {
    let sink = TestSink::default();
    sink.state().credit = Some(7);
    let credit = |transfer: &mut Transfer| transfer.credit(Instant::now(), None, 0);
    let mut transfer = sink.transfer(RequestOptions::default());
    assert_eq!((credit(&mut transfer), transfer.is_ready(None, 0)), (ReceiveCredit::Bytes(7), true));
    respond(&mut transfer, "200 OK\r\nContent-Length: 10");
    assert_eq!((credit(&mut transfer), transfer.is_ready(None, 0)), (ReceiveCredit::Bytes(7), true));
    transfer.response.skip = 3;
    assert_eq!(credit(&mut transfer), ReceiveCredit::Bytes(10), "skipped bytes need no room");
    sink.state().credit = Some(0);
    assert_eq!((credit(&mut transfer), transfer.is_ready(None, 0)), (ReceiveCredit::Full, false));
    let mut waiting = sink.transfer(RequestOptions::default());
    assert_eq!((credit(&mut waiting), waiting.is_ready(None, 0)), (ReceiveCredit::Bytes(1), false), "a head may come");
    transfer.response.disposition = BodyDisposition::Complete;
    assert_eq!((credit(&mut transfer), transfer.is_ready(None, 0)), (ReceiveCredit::Bytes(u64::MAX), true));
}

#[test]
fn first_split_stream_stops_at_its_end() {
    let sink = TestSink::default();
    let mut transfer = get(&sink);
    let end = split_at(&mut transfer, 4, false);
    assert_eq!(transfer.credit(Instant::now(), None, 0), ReceiveCredit::Bytes(4));
    receive(&mut transfer, b"123").unwrap();
    assert_eq!((end.position(), transfer.position(), transfer.has_all_wanted_bytes()), (3, 3, false));
    end.make_final();
    receive(&mut transfer, b"456").unwrap();
    assert_eq!((end.position(), transfer.facts.body_bytes, sink.text().as_str()), (4, 4, "1234"));
    assert!(transfer.has_all_wanted_bytes());
    assert!(matches!(transfer.on_complete(Instant::now()), TransferStep::Done(Ok(()))));
    assert_eq!(sink.finished(), 0, "other parts are missing");
}

#[test]
fn pieces_are_cut_at_stream_end() {
    for (is_final, expected) in [(true, "1234"), (false, "12345")] {
        let sink = TestSink::default();
        let mut transfer = get(&sink);
        split_at(&mut transfer, 4, is_final);
        receive_pieces(&mut transfer, b"12345").unwrap();
        assert_eq!((sink.text().as_str(), transfer.position()), (expected, expected.len() as u64));
    }
}

#[test]
fn bytes_after_the_wanted_range_are_dropped() {
    let surplus = |sink: &TestSink| {
        let mut transfer = get(sink);
        (transfer.progress.range.end, transfer.response.exceeds_range) = (Some(6), true);
        transfer
    };
    let sink = TestSink::default();
    let mut transfer = surplus(&sink);
    receive(&mut transfer, b"12345").unwrap();
    assert!(!transfer.has_all_wanted_bytes());
    receive(&mut transfer, b"6789").unwrap();
    assert_eq!((sink.text().as_str(), transfer.facts.body_bytes), ("123456", 6));
    assert!(transfer.has_all_wanted_bytes());
    transfer.response.disposition = BodyDisposition::Complete;
    assert!(!transfer.has_all_wanted_bytes(), "no bytes are wanted");
    let pieces = TestSink::default();
    let mut transfer = surplus(&pieces);
    receive_pieces(&mut transfer, b"12345678").unwrap();
    assert_eq!((pieces.text().as_str(), transfer.position()), ("123456", 6));
}

#[test]
fn skipped_bytes_are_not_delivered() {
    let sink = TestSink::default();
    let mut transfer = get(&sink);
    transfer.response.skip = 4;
    receive(&mut transfer, b"123").unwrap();
    assert_eq!((transfer.response.skip, sink.text().as_str()), (1, ""));
    receive_pieces(&mut transfer, b"456").unwrap();
    assert_eq!((sink.text().as_str(), transfer.facts.body_bytes, transfer.position()), ("56", 2, 2));
    receive(&mut transfer, b"7").unwrap();
    assert_eq!(sink.text(), "567");
}

#[test]
fn bytes_after_announced_range_are_an_error() {
    let validator = Validator::strong(Some(b"\"a\""), None, None).unwrap();
    let span = WantedContentRange::Rest { from: 5, to: None, total: 9, validator };
    let options = || RequestOptions { span: Some(span.clone()), ..RequestOptions::default() };
    let text = "206 X\r\nContent-Range: bytes 5-8/9\r\nETag: \"a\"";
    let sink = TestSink::default();
    let mut transfer = receiving(&sink, options(), text);
    receive(&mut transfer, b"6789").unwrap();
    assert_eq!(receive(&mut transfer, b"x").unwrap_err().kind(), ErrorKind::Receive);
    let mut pieces = receiving(&sink, options(), text);
    assert_eq!(receive_pieces(&mut pieces, b"67890").unwrap_err().kind(), ErrorKind::Receive);
    let mut own = receiving(&sink, RequestOptions { range: Some("0-1".into()), ..RequestOptions::default() }, "200 X");
    own.progress.range.total = Some(2);
    assert!(receive(&mut own, b"123").is_ok(), "the caller's range is not checked");
}

#[test]
fn size_limit_counts_only_wanted_bytes() {
    let limited =
        |sink: &TestSink| receiving(sink, RequestOptions { max_size: Some(5), ..RequestOptions::default() }, "200 OK");
    let sink = TestSink::default();
    let mut transfer = limited(&sink);
    transfer.response.skip = 3;
    receive(&mut transfer, b"12345678").unwrap();
    assert_eq!(sink.text(), "45678");
    let sink = TestSink::default();
    let mut transfer = limited(&sink);
    (transfer.progress.range.end, transfer.response.exceeds_range) = (Some(5), true);
    receive(&mut transfer, b"123456789").unwrap();
    assert_eq!(sink.text(), "12345");
    for receive in [receive, receive_pieces] {
        let sink = TestSink::default();
        let mut transfer = limited(&sink);
        receive(&mut transfer, b"123").unwrap();
        assert_eq!(receive(&mut transfer, b"456").unwrap_err().kind(), ErrorKind::TooLarge);
        assert_eq!((sink.text().as_str(), transfer.position(), transfer.facts.body_bytes), ("12345", 5, 5));
    }
    let sink = TestSink::default();
    let mut whole = limited(&sink);
    receive_pieces(&mut whole, b"12345").unwrap();
    assert_eq!(sink.text(), "12345");
}

#[test]
fn moved_bytes_count_towards_size_limit() {
    let sink = TestSink::default();
    let mut transfer = receiving(&sink, RequestOptions { max_size: Some(5), ..RequestOptions::default() }, "200 OK");
    transfer.on_moved(2, Instant::now()).unwrap();
    transfer.on_moved(3, Instant::now()).unwrap();
    assert_eq!((transfer.position(), transfer.facts.body_bytes), (5, 5));
    assert_eq!(transfer.on_moved(1, Instant::now()).unwrap_err().kind(), ErrorKind::TooLarge);
    let error = transfer.write_error(std::io::Error::other("full"));
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Write, "failed to write the output: full"));
}

#[test]
fn unwanted_bodies_are_only_counted() {
    let sink = TestSink::default();
    for receive in [receive, receive_pieces] {
        let mut transfer = get(&sink);
        transfer.response.disposition = BodyDisposition::Again;
        transfer.facts.body_bytes = 2;
        receive(&mut transfer, b"123").unwrap();
        assert_eq!((transfer.facts.body_bytes, transfer.position(), sink.text().as_str()), (5, 0, ""));
    }
}

#[test]
fn bytes_go_around_the_transfer_only_unchanged() {
    let around = |transfer: &mut Transfer| {
        let received = transfer.receive_into_sink(rustix::stdio::stdin(), 9).is_some();
        (transfer.direct_descriptor().is_some(), received)
    };
    let sink = TestSink::default();
    assert_eq!(around(&mut get(&sink)), (true, true));
    assert_eq!(around(&mut sink.transfer(RequestOptions::default())), (false, false), "there is no response");
    let mut skipping = get(&sink);
    skipping.response.skip = 1;
    assert_eq!(around(&mut skipping), (false, false));
    let mut surplus = get(&sink);
    surplus.response.exceeds_range = true;
    assert_eq!(around(&mut surplus), (false, false));
    let mut split = get(&sink);
    split_at(&mut split, 4, false);
    assert_eq!(around(&mut split), (true, false));
    for (trace, expected) in
        [(Arc::new(ContentTrace) as Arc<dyn TransferObserver>, false), (Arc::new(InfoTexts::default()), true)]
    {
        let options = RequestOptions { trace: Some(trace), ..RequestOptions::default() };
        assert_eq!(around(&mut receiving(&sink, options, "200 OK")), (expected, expected));
    }
    let decoding = RequestOptions { decode: true, ..RequestOptions::default() };
    let mut coded = receiving(&sink, decoding, "200 OK\r\nContent-Encoding: gzip");
    assert_eq!(around(&mut coded), (false, false));
    assert!(!coded.delivers_body_as_received() && get(&sink).delivers_body_as_received());
}

/// A trace that stores the received content.
#[derive(Debug, Default)]
struct ReceivedContent(Mutex<Vec<u8>>);

impl TransferObserver for ReceivedContent {
    fn event(&self, event: &TraceEvent<'_>) {
        if let TraceEvent::Received(bytes) = event {
            self.0.lock().unwrap().extend_from_slice(bytes);
        }
    }

    fn wants_content(&self) -> bool {
        true
    }
}

#[test]
fn trace_gets_all_received_content() {
    let trace = Arc::new(ReceivedContent::default());
    let options = RequestOptions { trace: Some(trace.clone()), ..RequestOptions::default() };
    let sink = TestSink::default();
    let mut transfer = receiving(&sink, options, "200 OK");
    transfer.response.skip = 1;
    receive(&mut transfer, b"12").unwrap();
    receive_pieces(&mut transfer, b"345").unwrap();
    transfer.response.disposition = BodyDisposition::Complete;
    receive(&mut transfer, b"6").unwrap();
    assert_eq!((&trace.0.lock().unwrap()[..], sink.text().as_str()), (&b"123456"[..], "2345"));
}

#[test]
fn measured_body_is_delivered_and_not_paused_afterwards() {
    let sink = TestSink::default();
    let options = RequestOptions { read_timeout: Some(SECOND * 5), ..RequestOptions::default() };
    let mut transfer = sink.transfer(options);
    request(&mut transfer);
    respond(&mut transfer, "200 OK\r\nContent-Length: 10");
    for receive in [receive, receive_pieces] {
        receive(&mut transfer, b"123").unwrap();
        assert!(transfer.silence_deadline().is_some());
    }
    assert_eq!(sink.text(), "123123");
    transfer.set_paused(true, Instant::now());
    assert_eq!(transfer.silence_deadline(), None);
}

#[test]
fn limits_follow_the_state_of_the_request() {
    let (read, write) = (Some(SECOND * 500), Some(SECOND * 300));
    let options = RequestOptions { read_timeout: read, write_timeout: write, ..RequestOptions::default() };
    let mut transfer = transfer(options.clone());
    let later = Instant::now() + SECOND * 100;
    transfer.speed.begin_exchange(&options, later);
    assert_eq!(transfer.silence_deadline(), Some(later + SECOND * 500));
    transfer.on_upload_progress();
    assert!(transfer.silence_deadline() < Some(later + SECOND * 500), "the time begins at the activity");
    let before = transfer.silence_deadline();
    transfer.set_sending(true);
    assert!(transfer.silence_deadline() < before, "the write timeout is shorter");
    transfer.set_sending(false);
    transfer.set_starved(true);
    assert_eq!(transfer.silence_deadline(), None);
    assert!(transfer.check_speed(Instant::now() + SECOND * 900).is_none());
    transfer.set_starved(false);
    assert!(transfer.check_speed(Instant::now() + SECOND * 900).is_some());
}

#[test]
fn silence_is_measured_again_after_a_delivery() {
    for (is_last, is_measured) in [(false, true), (true, false)] {
        let options = RequestOptions { read_timeout: Some(SECOND * 500), ..RequestOptions::default() };
        let mut transfer = receiving(&TestSink::default(), options.clone(), "200 OK");
        let later = Instant::now() + SECOND * 100;
        transfer.speed.begin_exchange(&options, later);
        transfer.on_body(OfferedBodyBytes::borrowed(b"1"), is_last, later).unwrap();
        assert_eq!(transfer.silence_deadline() < Some(later + SECOND * 500), is_measured);
    }
}

#[test]
fn time_limit_ends_a_far_reading_search() {
    let options = RequestOptions { total_time: Some(Duration::ZERO), ..RequestOptions::default() };
    let mut transfer = transfer(options);
    let pattern = ExtractRegexes::new("(?s)<p>.*?</p>|<p>").unwrap();
    transfer.body = BodyDelivery::new(Box::new(TestSink::default()))
        .with_search(PageSearch::new(pattern.into()), RegexInputKind::Bytes);
    respond(&mut transfer, "200 OK");
    receive(&mut transfer, "<p>".repeat(20_000).as_bytes()).unwrap();
    assert_eq!(error_of(transfer.on_complete(Instant::now())).kind(), ErrorKind::Timeout);
}
