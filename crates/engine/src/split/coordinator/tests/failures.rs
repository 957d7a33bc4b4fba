//! Tests of failed parts, pauses and timeouts.

use super::*;

fn error(kind: ErrorKind) -> Error {
    Error::new(kind, "for a test")
}

/// Makes a download that wants six connections. Returns it with `delivering` parts whose responses
/// have begun, and one more part.
#[expect(clippy::vec_box, reason = "the coordinator passes boxed transfers")]
fn download_with_parts(delivering: usize) -> (SplitDownload, Vec<Box<Transfer>>, Box<Transfer>) {
    let download = SplitDownload::with_connections(SplitSetup::default(), 6);
    let mut parts: Vec<_> = (0..=delivering).map(|_| download.next().unwrap()).collect();
    let waiting = parts.pop().unwrap();
    parts.iter().for_each(|part| download.begin(part));
    (download, parts, waiting)
}

#[test]
fn refused_connection_lowers_the_limit() {
    for kind in [ErrorKind::Connect, ErrorKind::Status, ErrorKind::EmptyReply, ErrorKind::TlsHandshake] {
        let (download, _parts, waiting) = download_with_parts(3);
        download.end(waiting, Err(error(kind)));
        assert_eq!(download.wanted(), 3, "{kind:?}: the first and two others");
        assert!(!download.coordinator.is_run_over());
    }
}

#[test]
fn broken_part_does_not_lower_the_connection_limit() {
    let (download, _parts, waiting) = download_with_parts(3);
    download.end(waiting, Err(error(ErrorKind::Receive)));
    assert_eq!(download.wanted(), 6);
}

#[test]
fn refusal_without_delivering_parts_keeps_the_limit() {
    let (download, _parts, waiting) = download_with_parts(0);
    download.end(waiting, Err(error(ErrorKind::Connect)));
    assert_eq!(download.wanted(), 6);
    assert!(!download.coordinator.is_run_over());
}

#[test]
fn missing_descriptors_lower_the_connection_limit() {
    let (download, _parts, _waiting) = download_with_parts(2);
    download.coordinator.on_out_of_descriptors();
    assert_eq!(download.wanted(), 3);
}

#[test]
fn interrupt_callback_ends_the_download() {
    let interrupt = Some(InterruptCallback::new(|| true));
    let download = SplitDownload::with_connections(SplitSetup { interrupt, ..SplitSetup::default() }, 6);
    assert!(!download.coordinator.is_run_over(), "the first interval begins");
    let now = Instant::now();
    assert!(download.coordinator.next_timeout(now).is_some_and(|at| at <= now + CALLBACK_INTERVAL));
    std::thread::sleep(CALLBACK_INTERVAL);
    assert!(download.coordinator.is_run_over());
    assert_eq!(download.error_kind(), Some(ErrorKind::Interrupted));
}

#[test]
fn local_error_ends_the_download() {
    for kind in [ErrorKind::Write, ErrorKind::TooLarge, ErrorKind::Interrupted, ErrorKind::Setup] {
        let (download, mut parts, waiting) = download_with_parts(1);
        download.end(waiting, Err(error(kind)));
        assert_eq!(download.error_kind(), Some(kind));
        download.end(parts.remove(0), Err(error(ErrorKind::Changed)));
        assert_eq!(download.error_kind(), Some(kind), "the first error counts");
        assert!(download.next().is_none());
    }
}

#[test]
fn changed_content_continues_alone() {
    let (download, _parts, waiting) = download_with_parts(1);
    download.end(waiting, Err(error(ErrorKind::Changed)));
    assert!(download.continues_alone());
}

#[test]
fn only_a_timeout_after_the_deadline_ends_the_download() {
    let hour = Duration::from_secs(3600);
    for (max_time, kind, is_over) in [
        (Some(Duration::ZERO), ErrorKind::Timeout, true),
        (Some(Duration::ZERO), ErrorKind::Receive, false),
        (Some(hour), ErrorKind::Timeout, false),
        (None, ErrorKind::Timeout, false),
    ] {
        let download = SplitDownload::with_connections(SplitSetup { max_time, ..SplitSetup::default() }, 6);
        let part = download.next().unwrap();
        download.end(part, Err(error(kind)));
        assert_eq!(download.error_kind(), is_over.then_some(kind), "{max_time:?}");
        assert_eq!(download.coordinator.is_run_over(), is_over);
    }
}

#[test]
fn expired_url_without_delivering_parts_continues_alone() {
    for status in [401, 403, 404, 410] {
        let (download, _parts, waiting) = download_with_parts(0);
        download.end(waiting, Err(error(ErrorKind::Status).with_status(status)));
        assert!(download.continues_alone(), "{status}");
    }
    let (download, _parts, waiting) = download_with_parts(0);
    download.end(waiting, Err(error(ErrorKind::Status).with_status(503)));
    assert!(!download.coordinator.is_run_over(), "another status");
    let (download, _parts, waiting) = download_with_parts(1);
    download.end(waiting, Err(error(ErrorKind::Status).with_status(403)));
    assert!(!download.coordinator.is_run_over(), "another part still arrives");
}

#[test]
fn failure_before_the_first_part_stops_the_split() {
    let mut download = SplitDownload::new(SplitSetup::default());
    let part = download.next().unwrap();
    download.end(part, Err(error(ErrorKind::Status).with_status(416)));
    assert!(download.coordinator.state().is_stopped);
    assert_eq!(download.coordinator.state().window.claim_end(0), Some(64 << 20), "the first transfer gets the rest");
    assert!(download.next().is_none());
    assert!(!download.coordinator.is_run_over(), "the first transfer is active");
    download.end_first(Err(error(ErrorKind::Receive)));
    assert!(download.continues_alone());
}

#[test]
fn stopped_split_waits_for_its_parts() {
    let mut download = SplitDownload::with_connections(SplitSetup::default(), 2);
    let part = download.next().unwrap();
    download.coordinator.state().is_stopped = true;
    download.complete_first();
    assert!(download.next().is_none());
    assert!(!download.coordinator.is_run_over(), "a part is in flight");
    download.complete(part);
    assert!(download.continues_alone());
}

#[test]
fn paused_split_requests_no_part() {
    let (mut download, _parts, waiting) = download_with_parts(1);
    download.end(waiting, Err(error(ErrorKind::Receive)));
    let until = download.coordinator.state().failures.paused_until.unwrap();
    download.coordinator.state().received.last_at = until;
    assert_eq!(download.coordinator.next_timeout(until), Some(until));
    download.now = until - Duration::from_nanos(1);
    assert!(download.next().is_none());
    download.now = until;
    assert!(download.next().is_some());
}

#[test]
fn several_failures_in_a_row_continue_alone() {
    let download = SplitDownload::with_connections(SplitSetup::default(), 6);
    let parts: Vec<_> = (0..MAX_FAILURES).map(|_| download.next().unwrap()).collect();
    for (failures, part) in parts.into_iter().enumerate() {
        assert!(!download.coordinator.is_run_over(), "{failures} failures");
        download.end(part, Err(error(ErrorKind::Receive)));
    }
    assert!(download.continues_alone());
}

#[test]
fn received_bytes_end_a_row_of_failures() {
    let (mut download, parts, waiting) = download_with_parts(1);
    let count = |download: &SplitDownload| download.coordinator.state().failures.count;
    download.end(waiting, Err(error(ErrorKind::Receive)));
    // Bytes of the first transfer count, too.
    download.receive(&parts[0], 5_535);
    download.receive_first(60_000);
    drop(download.next());
    assert_eq!(count(&download), 1);
    download.receive(&parts[0], 1);
    assert_eq!(count(&download), 0, "64 KiB have arrived since");
}

#[test]
fn earlier_offset_of_the_first_transfer_counts_nothing() {
    let download = SplitDownload::with_connections(SplitSetup::default(), 2);
    let mut state = download.coordinator.state();
    assert!(!state.on_first_position(POSITION) && !state.on_first_position(POSITION - 1));
    assert!(state.on_first_position(POSITION + 1));
    assert_eq!((state.received.total, state.first.position), (1, POSITION + 1));
}

#[test]
fn silence_of_all_connections_continues_alone() {
    let (download, _parts, _waiting) = download_with_parts(1);
    let silent_at = download.coordinator.state().received.last_at + MAX_SILENCE;
    let before = silent_at - Duration::from_nanos(1);
    assert!(download.coordinator.next_timeout(before).is_some_and(|at| at <= silent_at));
    assert!(!download.coordinator.is_run_over());
    assert_eq!(download.coordinator.next_timeout(silent_at), Some(silent_at));
    assert!(download.continues_alone());
}

#[test]
fn aborted_split_outputs_no_further_part() {
    let mut download = SplitDownload::with_connections(SplitSetup::default(), 2);
    let part = download.next().unwrap();
    download.receive(&part, 10);
    download.coordinator.abort(error(ErrorKind::Interrupted));
    download.complete_first();
    download.assert_output(POSITION + LEAD);
}

#[test]
fn aborted_split_returns_the_error() {
    let mut download = SplitDownload::with_connections(SplitSetup::default(), 2);
    download.coordinator.abort(error(ErrorKind::Interrupted));
    assert!(download.coordinator.is_run_over());
    assert!(download.next().is_none());
    download.end_first(Ok(()));
    let SplitOutcome::Done(Err(ended)) = download.coordinator.finish(Ok(())).1 else { panic!("it has no error") };
    assert_eq!(ended.kind(), ErrorKind::Interrupted);
}
