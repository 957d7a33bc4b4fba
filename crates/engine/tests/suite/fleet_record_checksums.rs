//! Tests of a fleet's records: the checksums of files, which do not delay other transfers.

use crate::common;

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use common::{following, one_thread, start_origin, with_time_limit};
use haul::Client;
use haul::fleet::{
    BodyDestination, FinishedTransferContent, Fleet, FleetItem, FleetJob, FleetStage, RecordOptions, TransferReporter,
    WholeOrPiecewiseText,
};
use haul::sink::checksum::HashAlgorithm;
use haul::sink::descriptor_writer::DescriptorWriter;
use haul::sink::file::{AppendPosition, FileOptions};
use haul::transfer::TransferOutcome;
use testkit::h1_peer::{H1Peer, ScriptStep};

/// The URL and the checksum of each reported transfer, in the order of the reports.
type ReportedChecksums = Arc<Mutex<Vec<(String, Option<Vec<u8>>)>>>;

/// A reporter that records the checksums. It can also end the hashing of a large file early: when
/// the fleet reports the transfer of another file, the reporter truncates the large file.
#[derive(Clone, Default)]
struct ChecksumReporter {
    reports: ReportedChecksums,
    /// The path of the large file, which is being hashed, and the URL of the other file, whose
    /// report triggers the truncation. `None` to truncate no file.
    truncates: Option<(PathBuf, String)>,
}

impl TransferReporter for ChecksumReporter {
    fn finished(&self, _: &FleetJob, _: &TransferOutcome) -> Option<Vec<u8>> {
        None
    }

    fn record(
        &self,
        job: &FleetJob,
        outcome: &mut TransferOutcome,
        content: FinishedTransferContent,
    ) -> WholeOrPiecewiseText {
        assert!(outcome.result.is_ok(), "{}: {:?}", job.url, outcome.result);
        if let Some((path, _)) = self.truncates.as_ref().filter(|(_, url)| *url == job.url) {
            OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(0)).unwrap();
        }
        self.reports.lock().unwrap().push((job.url.clone(), content.file_checksum));
        WholeOrPiecewiseText::Whole(b"line\n".to_vec())
    }
}

fn stages() -> Vec<FleetStage> {
    let records = RecordOptions { max_content: 1 << 20, keeps_body: true, file_checksum: Some(HashAlgorithm::Sha256) };
    vec![FleetStage { options: Arc::new(following()), records: Some(records), ..FleetStage::default() }]
}

fn to_file(url: &str, path: &Path, append: Option<AppendPosition>) -> FleetItem {
    let options = FileOptions { append, ..FileOptions::default() };
    FleetItem::new(url, BodyDestination::File { path: path.to_owned(), options })
}

/// Runs a fleet with one thread. Returns the reports.
fn run(items: Vec<FleetItem>, reporter: ChecksumReporter) -> Vec<(String, Option<Vec<u8>>)> {
    with_time_limit("the fleet", move || {
        let output = DescriptorWriter::new(File::create("/dev/null").unwrap().into());
        let items = Box::new(items.into_iter().map(Ok));
        let summary = Fleet::new(stages(), one_thread()).run(&Client::new(), items, output, reporter.clone()).unwrap();
        assert_eq!(summary.failed, 0);
        std::mem::take(&mut *reporter.reports.lock().unwrap())
    })
}

fn checksum(path: &Path) -> Option<Vec<u8>> {
    Some(HashAlgorithm::Sha256.hash_file(&File::open(path).unwrap()).unwrap())
}

#[test]
fn files_are_hashed_while_written() {
    let origin = start_origin();
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = ["a", "b", "c"].map(|name| dir.path().join(name)).to_vec();
    // The last one is large enough for a partial file.
    let urls = ["/bytes/0", "/bytes/70000", "/bytes/9000000"].map(|path| origin.url(path));
    let items = urls.iter().zip(&paths).map(|(url, path)| to_file(url, path, None)).collect();
    let mut reports = run(items, ChecksumReporter::default());
    reports.sort();
    let mut expected: Vec<_> = urls.iter().zip(&paths).map(|(url, path)| (url.clone(), checksum(path))).collect();
    expected.sort();
    assert_eq!(reports, expected);
}

#[test]
fn completed_partial_files_are_hashed_as_a_whole() {
    let origin = start_origin();
    let dir = tempfile::tempdir().unwrap();
    let (path, url) = (dir.path().join("f"), origin.url("/bytes/5000000"));
    run(vec![to_file(&url, &path, None)], ChecksumReporter::default());
    let whole = checksum(&path);
    OpenOptions::new().write(true).open(&path).unwrap().set_len(4_000_000).unwrap();
    let reports = run(vec![to_file(&url, &path, Some(AppendPosition::AtEnd))], ChecksumReporter::default());
    assert_eq!(reports, [(url, whole)]);
}

/// Hashes a file of 64 GiB. The report of the other transfer, which must not wait for the end of
/// the hashing, truncates this file.
#[test]
fn hashing_a_large_file_delays_no_transfer() {
    const LENGTH: u64 = 64 << 30;

    let dir = tempfile::tempdir().unwrap();
    let (large, small) = (dir.path().join("large"), dir.path().join("small"));
    File::create(&large).unwrap().set_len(LENGTH).unwrap();
    let (last, total) = (LENGTH + 2, LENGTH + 3);
    let rest = format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {LENGTH}-{last}/{total}\r\nContent-Length: 3\r\n\r\nabc"
    );
    let first = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(rest)]);
    let second = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::Await(1),
        ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsmall"),
    ]);
    let (large_url, small_url) = (first.url("/large"), second.url("/small"));
    let items = vec![to_file(&large_url, &large, Some(AppendPosition::AtEnd)), to_file(&small_url, &small, None)];
    let reporter = ChecksumReporter { truncates: Some((large.clone(), small_url.clone())), ..Default::default() };
    let running = thread::spawn(move || run(items, reporter));
    // The large file is complete: its checksum is computed from now on.
    while fs::metadata(&large).unwrap().len() == LENGTH {
        thread::sleep(Duration::from_millis(1));
    }
    second.release();
    let reports = running.join().unwrap();
    assert_eq!(reports.iter().map(|(url, _)| url).collect::<Vec<_>>(), [&small_url, &large_url]);
    assert_eq!(reports[0].1, checksum(&small));
    assert!(reports[1].1.is_some());
}
