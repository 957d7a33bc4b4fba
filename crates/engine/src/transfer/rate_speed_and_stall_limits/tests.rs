use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn limits(options: &RequestOptions, now: Instant) -> RateSpeedAndStallLimits {
    let mut limits = RateSpeedAndStallLimits::new(options, now);
    limits.begin_exchange(options, now);
    limits
}

fn stall(seconds: u64, awaits_head: bool) -> Option<StallLimit> {
    Some(StallLimit { time: SECOND * seconds as u32, awaits_head })
}

#[test]
fn silence_is_limited_by_the_state_of_the_exchange() {
    let now = Instant::now();
    let options = |read: Option<u64>, write: Option<u64>, stall| RequestOptions {
        read_timeout: read.map(Duration::from_secs),
        write_timeout: write.map(Duration::from_secs),
        stall,
        ..RequestOptions::default()
    };
    // The limits while the head is awaited, while the request is sent, and in the body.
    for (options, head, send, body) in [
        (options(None, None, None), None, None, None),
        (options(Some(5), None, None), Some(5), Some(5), Some(5)),
        (options(None, Some(7), None), None, Some(7), None),
        (options(Some(5), Some(7), None), Some(5), Some(7), Some(5)),
        (options(None, None, stall(3, false)), None, Some(3), Some(3)),
        (options(None, None, stall(3, true)), Some(3), Some(3), Some(3)),
        (options(Some(5), Some(7), stall(3, false)), Some(5), Some(3), Some(3)),
        (options(Some(2), Some(1), stall(3, true)), Some(2), Some(1), Some(2)),
    ] {
        let mut limits = limits(&options, now);
        let at = |seconds: Option<u32>| seconds.map(|seconds| now + SECOND * seconds);
        assert_eq!(limits.silence_deadline(), at(head), "head of {options:?}");
        limits.set_send_blocked(true, now);
        assert_eq!(limits.silence_deadline(), at(send), "request of {options:?}");
        limits.set_send_blocked(false, now);
        limits.on_head(now);
        assert_eq!(limits.silence_deadline(), at(body), "body of {options:?}");
        assert_eq!(limits.has_silence_limit(), head.or(send).or(body).is_some());
        assert_eq!(limits.is_measured(), limits.has_silence_limit());
        assert_eq!(limits.next_check(), limits.silence_deadline());
    }
}

#[test]
fn activity_and_pauses_restart_the_time_of_silence() {
    let now = Instant::now();
    let options = RequestOptions { read_timeout: Some(SECOND * 5), ..RequestOptions::default() };
    let mut limits = limits(&options, now);
    limits.on_activity(now + SECOND);
    assert_eq!(limits.silence_deadline(), Some(now + SECOND * 6));
    limits.on_received(10, now + SECOND * 2);
    assert_eq!(limits.silence_deadline(), Some(now + SECOND * 7));
    limits.set_paused(true, now + SECOND * 3);
    assert_eq!(limits.silence_deadline(), None);
    limits.set_paused(false, now + SECOND * 4);
    assert_eq!(limits.silence_deadline(), Some(now + SECOND * 9));
    limits.set_paused(false, now + SECOND * 5);
    assert_eq!(limits.silence_deadline(), Some(now + SECOND * 9), "it was not paused");
    limits.set_send_blocked(true, now + SECOND * 5);
    assert_eq!(limits.silence_deadline(), Some(now + SECOND * 10));
    limits.set_send_blocked(true, now + SECOND * 6);
    assert_eq!(limits.silence_deadline(), Some(now + SECOND * 10), "it was sent already");
}

#[test]
fn server_is_not_blamed_for_missing_content() {
    let now = Instant::now();
    let options = RequestOptions { read_timeout: Some(SECOND * 5), stall: stall(7, false), ..Default::default() };
    let mut starved = limits(&options, now);
    starved.set_starved(true, now + SECOND);
    assert_eq!(starved.silence_deadline(), None);
    starved.set_starved(false, now + SECOND * 2);
    assert_eq!(starved.silence_deadline(), Some(now + SECOND * 7));
    starved.on_head(now + SECOND * 2);
    starved.set_starved(true, now + SECOND * 3);
    assert_eq!(starved.silence_deadline(), Some(now + SECOND * 10));
    let awaiting = RequestOptions { stall: stall(7, true), ..options };
    let mut starved = limits(&awaiting, now);
    starved.set_starved(true, now + SECOND);
    assert_eq!(starved.silence_deadline(), Some(now + SECOND * 8));
}

#[test]
fn error_says_whether_the_server_was_silent_or_took_nothing() {
    let now = Instant::now();
    let (read_timeout, write_timeout) = (Some(SECOND * 5), Some(SECOND * 3));
    let mut limits = limits(&RequestOptions { read_timeout, write_timeout, ..Default::default() }, now);
    assert!(limits.check(now + SECOND * 4).is_none());
    let error = limits.check(now + SECOND * 5).unwrap();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Timeout, "the server was silent for 5s"));
    limits.set_send_blocked(true, now);
    let error = limits.check(now + SECOND * 3).unwrap();
    assert_eq!(error.to_string(), "the server took no data for 3s");
    limits.has_write_timeout = false;
    assert_eq!(limits.check(now + SECOND * 3).unwrap().to_string(), "the server was silent for 3s");
}

#[test]
fn transfer_below_the_minimum_speed_fails() {
    let now = Instant::now();
    let speed = SpeedLimit { bytes_per_second: 100, time: SECOND * 2 };
    let options = RequestOptions { speed_limit: Some(speed), ..RequestOptions::default() };
    let mut limits = limits(&options, now);
    assert_eq!((limits.next_check(), limits.is_measured(), limits.has_silence_limit()), (Some(now), true, false));
    assert!(limits.check(now).is_none());
    let mut after = |second: u32, bytes| {
        limits.on_received(bytes, now + SECOND * second);
        limits.check(now + SECOND * second)
    };
    let error = (1..=10).find_map(|second| after(second, 1)).unwrap();
    assert_eq!(error.to_string(), "the transfer was slower than 100 bytes a second for 2 seconds");
    let mut limits = super::tests::limits(&options, now);
    assert!((1..=10).all(|second| {
        limits.on_received(200, now + SECOND * second);
        limits.check(now + SECOND * second).is_none()
    }));
}

#[test]
fn maximum_rate_bounds_the_received_bytes() {
    let now = Instant::now();
    // The bucket holds the bytes of a thirty-second part of a second.
    let options = RequestOptions { limit_rate: Some(3200), ..RequestOptions::default() };
    let mut limits = limits(&options, now);
    assert!(limits.is_limited());
    assert_eq!(limits.allow(0, now), ReceiveCredit::Full);
    assert_eq!(limits.allow(1000, now), ReceiveCredit::Bytes(100));
    assert_eq!(limits.allow(30, now), ReceiveCredit::Bytes(30));
    assert_eq!(limits.allow_with_head(1000, now), ReceiveCredit::Bytes(100));
    limits.on_received(100, now);
    let ReceiveCredit::Until(at) = limits.allow(1000, now) else { panic!("more bytes than allowed") };
    assert!(at > now && at <= now + SECOND / 32);
    assert_eq!(limits.allow_with_head(1000, now), ReceiveCredit::Bytes(1), "a head is not delayed");
    let mut part = limits.sharing_rate();
    assert!(matches!(part.allow(1000, now), ReceiveCredit::Until(_)), "a part has the same bucket");
    assert_eq!(limits.allow(1000, at), ReceiveCredit::Bytes(100));
    let unlimited = RateSpeedAndStallLimits::new(&RequestOptions::default(), now);
    assert!(!unlimited.is_limited() && unlimited.total().is_none() && unlimited.next_check().is_none());
}

#[test]
fn shared_rate_delays_also_the_head() {
    let now = Instant::now();
    let total = TotalRateLimit::new(3200);
    assert_eq!((total.bytes_per_second(), format!("{total:?}").as_str()), (3200, "TotalRateLimit(3200)"));
    let options = RequestOptions { limit_rate_total: Some(total.clone()), ..RequestOptions::default() };
    let mut limits = limits(&options, now);
    assert!(limits.is_limited() && limits.total().is_some());
    assert_eq!(total.wait_until(now), None);
    limits.on_received(3200, now);
    assert!(total.wait_until(now).is_some_and(|at| at > now));
    assert!(matches!(limits.allow(1000, now), ReceiveCredit::Until(_)));
    assert!(matches!(limits.allow_with_head(1000, now), ReceiveCredit::Until(_)));
}

#[test]
fn receiver_that_asks_early_keeps_its_turn() {
    let now = Instant::now() + SECOND;
    let options =
        RequestOptions { limit_rate_total: Some(TotalRateLimit::new(3_200_000)), ..RequestOptions::default() };
    let [mut first, mut second] = [(); 2].map(|()| limits(&options, now));
    assert_eq!(first.allow(u64::MAX, now), ReceiveCredit::Bytes(100_000));
    first.on_received(100_000, now);
    let turn = first.allow(1, now);
    assert!(matches!(turn, ReceiveCredit::Until(_)), "{turn:?}");
    for _ in 0..1000 {
        assert_eq!((first.allow(1, now), first.allow_with_head(1, now)), (turn, turn));
    }
    let ReceiveCredit::Until(at) = second.allow(1, now) else { panic!("more bytes than allowed") };
    assert!(at <= now + Duration::from_millis(16), "the first has only one turn");
}

#[test]
fn limits_of_the_request_precede_those_of_its_group() {
    let now = Instant::now();
    let group = TotalRateLimit::new(1);
    let own = RequestOptions {
        limit_rate_total: Some(TotalRateLimit::new(2)),
        stall: stall(3, true),
        ..RequestOptions::default()
    };
    for (options, rate, seconds) in [(RequestOptions::default(), 1, 9), (own, 2, 3)] {
        let mut limits = RateSpeedAndStallLimits::new(&options, now);
        limits.add(Some(&group), stall(9, true));
        limits.begin_exchange(&options, now);
        assert_eq!(limits.total().map(TotalRateLimit::bytes_per_second), Some(rate));
        assert_eq!(limits.silence_deadline(), Some(now + SECOND * seconds));
        let mut part = limits.sharing_rate();
        part.begin_exchange(&RequestOptions::default(), now);
        assert_eq!(part.silence_deadline(), limits.silence_deadline());
        assert_eq!(part.total().map(TotalRateLimit::bytes_per_second), Some(rate));
    }
    assert_eq!((milliseconds(Duration::ZERO), milliseconds(Duration::MAX)), (1, u32::MAX));
}
