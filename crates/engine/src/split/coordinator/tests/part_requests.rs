//! Tests of the number, the size, the start and the connection of requested parts.

use super::*;

/// Returns the setup of a download over TLS whose first transfer uses this version of HTTP.
fn over_tls(version: ProtocolVersion) -> SplitSetup {
    SplitSetup { url: "https://h/", version, ..SplitSetup::default() }
}

#[test]
fn one_part_is_requested_until_ranges_are_proved() {
    let download = SplitDownload::new(SplitSetup::default());
    let part = download.next().unwrap();
    assert!(download.next().is_none());
    download.begin(&part);
    assert_eq!(download.all_next().len(), 2, "four connections are measured, with the first transfer");
    assert_eq!(download.coordinator.state().delivering_parts(), 1);
}

#[test]
fn measured_gain_leads_to_all_connections() {
    let mut download = SplitDownload::new(SplitSetup::default());
    let mut parts = vec![download.next().unwrap()];
    download.begin(&parts[0]);
    parts.extend(download.all_next());
    parts.iter().for_each(|part| download.begin(part));
    assert!(download.next().is_none(), "four connections deliver, and the measurement begins");
    for part in &parts {
        download.receive(part, 400_000);
    }
    download.now += Duration::from_millis(100);
    assert_eq!(download.all_next().len(), 2 + 5, "two connections, and one more request for each but the first");
    assert_eq!(download.wanted(), 6);
    assert_eq!(*download.counter.connections.lock().unwrap(), [2, 3, 4, 5, 6]);
}

#[test]
fn each_connection_gets_one_request_ahead() {
    let mut download = SplitDownload::with_connections(SplitSetup::default(), 4);
    let mut parts = download.all_next();
    assert_eq!(parts.len(), 3 + 3, "none is sent ahead on the connection of the first transfer");
    assert_eq!(parts.iter().map(|part| part.address_index()).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(*download.counter.connections.lock().unwrap(), [2, 3, 4]);
    assert_eq!(download.coordinator.connections(), Some(4));
    download.complete_first();
    parts.extend(download.all_next());
    assert_eq!(parts.len(), 4 + 4);
    // Fewer connections are allowed now. The others end first.
    download.coordinator.state().splitter.on_connection_refused(4);
    while parts.len() > 2 {
        assert!(download.next().is_none(), "{} parts are in flight", parts.len());
        download.complete(parts.remove(0));
    }
    assert_eq!(download.all_next().len(), 1, "no request is sent ahead while connections are to be closed");
}

#[test]
fn two_connections_continue_the_split() {
    let mut download = SplitDownload::with_connections(SplitSetup::default(), 2);
    let parts = download.all_next();
    assert_eq!(parts.len(), 1 + 1);
    download.complete_first();
    parts.into_iter().for_each(|part| download.complete(part));
    assert_eq!(download.all_next().len(), 2 + 2);
    assert!(!download.coordinator.is_run_over());
}

#[test]
fn single_connection_continues_alone_after_the_last_part() {
    let mut download = SplitDownload::with_connections(SplitSetup::default(), 2);
    let mut parts = download.all_next();
    download.coordinator.state().splitter.on_connection_refused(2);
    assert!(download.next().is_none());
    assert!(!download.coordinator.is_run_over(), "the first transfer is active");
    download.complete_first();
    assert!(download.next().is_none());
    assert!(!download.coordinator.is_run_over(), "parts are in flight");
    while let Some(part) = parts.pop() {
        download.complete(part);
    }
    assert!(download.next().is_none());
    assert!(download.continues_alone());
    assert!(matches!(download.coordinator.finish(Ok(())).1, SplitOutcome::ContinueAlone));
    assert_eq!(download.counter.connections.lock().unwrap().last(), Some(&1));
}

#[test]
fn comparison_continues_with_one_connection() {
    let mut download = SplitDownload::with_connections(SplitSetup::default(), 3);
    let mut parts = download.all_next();
    download.complete_first();
    parts.iter().for_each(|part| download.receive(part, 150_000));
    let rate_to_compare_with = |download: &SplitDownload| download.coordinator.state().splitter.rate_to_compare_with();
    download.now += Duration::from_secs(1);
    assert!(download.next().is_none(), "three connections are slower than one was, so one is measured");
    assert_eq!(rate_to_compare_with(&download), None, "other connections still have requests");
    while parts.len() > 1 {
        download.complete(parts.remove(0));
        assert!(download.next().is_none(), "{} parts are in flight", parts.len());
    }
    assert!(rate_to_compare_with(&download).is_some());
    download.complete(parts.remove(0));
    assert!(download.next().is_some(), "one connection goes on with the next part");
    assert!(download.next().is_none());
    assert!(!download.coordinator.is_run_over());
}

#[test]
fn first_part_begins_where_the_first_transfer_will_be() {
    let start = |setup_time, memory| {
        let download = SplitDownload::new(SplitSetup { setup_time, memory, ..SplitSetup::default() });
        let part = download.next().unwrap();
        let start = download.missing(&part).start;
        assert_eq!(download.coordinator.state().window.claim_end(0), Some(start));
        start - POSITION
    };
    assert_eq!(start(Duration::ZERO, 14 << 20), LEAD);
    // 4 MB/s for 20 ms, and for one and a half times the setup.
    assert_eq!(start(Duration::from_millis(100), 14 << 20), 680_000);
    assert_eq!(start(Duration::from_millis(100), 1_000_001), 500_000, "half of the memory");
    assert_eq!(start(Duration::ZERO, 100_000), MIN_PIPE_PART_SIZE);
}

#[test]
fn first_transfer_keeps_its_end_after_the_first_part() {
    let download = SplitDownload::with_connections(SplitSetup::default(), 3);
    download.coordinator.state().splitter = planner(1_000_000).0;
    download.coordinator.state().splitter.on_connection_refused(7);
    assert!(download.next().is_some());
    assert_eq!(download.coordinator.state().window.claim_end(0), Some(POSITION + LEAD));
}

#[test]
fn part_size_for_a_pipe_depends_on_memory_and_remainder() {
    let size = |total, memory| {
        let download = SplitDownload::new(SplitSetup { total, memory, ..SplitSetup::default() });
        download.coordinator.part_size(&download.coordinator.state())
    };
    assert_eq!(size(64 << 20, 14 << 20), 1 << 20);
    assert_eq!(size(64 << 20, 14), 64 << 10);
    assert_eq!(size(POSITION + 2_400_000, 14 << 20), 200_000, "twice six parts are left");
    assert_eq!(size(POSITION + 1000, 14 << 20), MIN_SIZE);
}

#[test]
fn compared_connection_gets_longer_parts() {
    for (memory, size) in [(14 << 20, 2_000_000), (2 << 20, 1 << 20)] {
        let setup = SplitSetup { memory, rate: 40_000_000, ..SplitSetup::default() };
        let download = SplitDownload::with_connections(setup, 6);
        let mut state = download.coordinator.state();
        let sample = SplitSample {
            now: time_conversions::to_monotonic_time(download.now + Duration::from_secs(1)),
            received: 24_000_000,
            delivering: 6,
            requests: 1,
        };
        assert_eq!(state.splitter.wanted_connections(sample, || None), 1);
        assert_eq!(state.splitter.rate_to_compare_with(), Some(20_000_000));
        assert_eq!(download.coordinator.part_size(&state), size);
    }
}

#[test]
fn minimum_part_size_follows_the_rate() {
    for (rate, size) in [(1_000_000, 64 << 10), (RATE, MIN_SIZE), (45_000_000, 1 << 20)] {
        let download = SplitDownload::new(SplitSetup { rate, ..SplitSetup::default() });
        assert_eq!(min_part_size(&download.coordinator.state()), size, "at {rate} bytes a second");
    }
    assert_eq!(bytes_in(3_000_000, Duration::from_micros(1_500_000)), 4_500_000);
}

#[test]
fn parts_over_tls_avoid_http2() {
    let mut download = SplitDownload::with_connections(over_tls(ProtocolVersion::Http2), 3);
    let mut parts = download.all_next();
    assert_eq!(download.coordinator.connections(), Some(2), "the first connection counts by itself");
    assert!(parts.iter().all(|part| !part.offers_http2()));
    // The first connection stays open, for one part at a time.
    download.complete_first();
    download.complete(parts.remove(0));
    let offers = |download: &SplitDownload| download.next().unwrap().offers_http2();
    let part = download.next().unwrap();
    assert!(part.offers_http2());
    download.complete(parts.remove(0));
    assert!(!offers(&download), "the first connection is in use");
    download.complete(part);
    let part = download.next().unwrap();
    assert!(part.offers_http2());
    download.end(part, Err(Error::new(ErrorKind::Receive, "broken")));
    download.now += Duration::from_secs(3600);
    assert!(!offers(&download), "the first connection is closed");
}

#[test]
fn broken_first_transfer_closes_its_connection() {
    for (version, result) in
        [(ProtocolVersion::Http11, Ok(())), (ProtocolVersion::Http2, Err(Error::new(ErrorKind::Receive, "broken")))]
    {
        let mut download = SplitDownload::with_connections(over_tls(version), 3);
        let part = download.all_next().remove(0);
        download.receive_first(LEAD);
        download.end_first(result);
        assert!(download.coordinator.state().first.connection == FirstConnectionUse::Closed, "{version:?}");
        download.now += Duration::from_secs(3600);
        download.complete(part);
        assert!(!download.next().unwrap().offers_http2());
    }
}

#[test]
fn http3_parts_share_the_first_connection() {
    let mut download = SplitDownload::with_connections(over_tls(ProtocolVersion::Http3), 2);
    let part = download.all_next().remove(0);
    assert!(part.offers_http2());
    download.complete_first();
    download.complete(part);
    assert!(download.next().unwrap().offers_http2());
    assert_eq!(download.coordinator.connections(), Some(2));
}
