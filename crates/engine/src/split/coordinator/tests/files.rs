//! Tests of parts that are written directly to a file.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use super::*;

const TOTAL: u64 = 16 << 20;

/// Makes a download into a partial file in a new directory.
fn download(rate: u64) -> (SplitDownload, Arc<PartialFile>, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let target = Target::parse("http://h/").unwrap();
    let path = dir.path().join("part");
    let file = Arc::new(PartialFile::create(&path, 0o600, &target, TOTAL, &validator(), false).unwrap());
    let setup = SplitSetup { total: TOTAL, rate, file: Some(Arc::clone(&file)), ..SplitSetup::default() };
    (SplitDownload::new(setup), file, dir)
}

/// Makes the sink of a part, as the coordinator makes it for the part's transfer.
fn sink(download: &SplitDownload, file: &Arc<PartialFile>, part: &Transfer) -> FilePartSink {
    let writer = file.writer(download.missing(part)).unwrap();
    FilePartSink { coordinator: Arc::clone(&download.coordinator), id: part.part_id().unwrap(), writer }
}

#[test]
fn file_parts_begin_at_the_end_of_the_body() {
    let (download, _file, _dir) = download(1_100_000);
    let part = download.next().unwrap();
    assert_eq!(download.missing(&part), TOTAL - 1_100_000..TOTAL);
    assert_eq!(download.coordinator.state().window.claim_end(0), Some(TOTAL - 1_100_000));
}

#[test]
fn file_part_size_follows_the_rate_within_limits() {
    let size = |rate, total| {
        let (download, _file, _dir) = download(rate);
        let mut state = download.coordinator.state();
        state.window = PartTracker::new(total, ByteRangeSet::new(), PartFetchOrder::Anywhere);
        download.coordinator.part_size(&state)
    };
    assert_eq!(size(1000, 1 << 30), 1 << 20);
    assert_eq!(size(RATE, 1 << 30), RATE);
    assert_eq!(size(40_000_000, 1 << 30), 16 << 20);
    assert_eq!(size(40_000_000, 24 << 20), 2 << 20, "twice six parts are left");
}

#[test]
fn part_sink_writes_at_its_offset_and_counts() {
    let (mut download, file, _dir) = download(RATE);
    let part = download.next().unwrap();
    let missing = download.missing(&part);
    let mut sink = sink(&download, &file, &part);
    sink.bytes(OfferedBodyBytes::borrowed(b"abc")).unwrap();
    sink.pieces(&mut [IoSlice::new(b"de"), IoSlice::new(b"f")]).unwrap();
    let descriptor = sink.direct().unwrap();
    assert_eq!(rustix::io::write(descriptor, b"ghi").unwrap(), 3);
    sink.moved(3);
    sink.bytes(OfferedBodyBytes::borrowed(b"j")).unwrap();
    assert!(!sink.restart());
    assert_eq!(download.missing(&part).start, missing.start + 10);
    assert_eq!(*download.counter.bytes.lock().unwrap(), 10);
    let mut read = [0; 10];
    assert_eq!(rustix::io::pread(file.file().as_fd(), &mut read, missing.start).unwrap(), 10);
    assert_eq!(&read, b"abcdefghij");
    // The transfer's facts count the bytes of the parts, too.
    download.end(part, Ok(()));
    download.end_first(Ok(()));
    let (transfer, outcome) = download.coordinator.finish(Ok(()));
    assert!(matches!(outcome, SplitOutcome::ContinueAlone));
    assert_eq!(transfer.facts.body_bytes, POSITION + 10);
}

#[test]
fn part_sink_names_its_file_in_errors() {
    let (download, file, dir) = download(RATE);
    let part = download.next().unwrap();
    let error = sink(&download, &file, &part).write_error(io::ErrorKind::StorageFull.into());
    assert_eq!(error.kind(), ErrorKind::Write);
    assert!(error.to_string().contains(&*dir.path().join("part").to_string_lossy()), "{error}");
}

#[test]
fn unwritable_file_pauses_requests_and_keeps_the_range() {
    let (mut download, file, dir) = download(RATE);
    let content = dir.path().join("moved");
    std::fs::rename(file.path(), &content).unwrap();
    assert!(download.next().is_none());
    assert_eq!(download.coordinator.state().failures.count, 1);
    std::fs::rename(&content, file.path()).unwrap();
    download.now = download.coordinator.state().failures.paused_until.unwrap();
    let part = download.next().unwrap();
    assert_eq!(download.missing(&part).end, TOTAL);
}
