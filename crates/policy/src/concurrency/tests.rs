use super::*;

#[test]
fn limit_grows_during_long_bodies_after_a_refusal() {
    let mut host = ConcurrencyLimit::new(50);
    let at = |seconds| MonotonicTime(0) + Duration::from_secs(seconds);
    let (first_byte, total) = (Duration::from_millis(10), Duration::from_millis(20));
    // A long body is being received when a second request is refused.
    let kind = CompletionKind::Refused;
    assert_eq!(
        host.on_completion(CompletionSample {
            now: at(10),
            first_byte,
            total,
            in_flight: 2,
            on_new_connection: true,
            kind
        }),
        1
    );
    assert_eq!(host.on_silence(at(12)), 1, "too early after the refusal");
    assert_eq!(host.on_silence(at(16)), 2);
    assert_eq!((17..60).map(|second| host.on_silence(at(second))).max(), Some(INITIAL_LIMIT));
}

const FIRST_SAMPLE: CompletionSample = CompletionSample {
    now: MonotonicTime(1_000_000_000),
    first_byte: Duration::from_millis(100),
    total: Duration::from_millis(100),
    in_flight: 6,
    on_new_connection: true,
    kind: CompletionKind::Served,
};

/// Returns a host's limit that has grown to 16 and may grow to 50. A request that does not queue
/// takes `base` ns.
fn grown(base: u64) -> ConcurrencyLimit {
    ConcurrencyLimit { limit: 16, base, has_jumped: true, ..ConcurrencyLimit::new(50) }
}

fn testing(usual: usize, mean: u64) -> SearchPhase {
    SearchPhase::Testing { usual, mean, is_second_test: false }
}

fn probing(usual: usize, mean: u64) -> SearchPhase {
    SearchPhase::Probing { usual, mean }
}

#[test]
fn queue_length_decides_the_next_phase() {
    for (base, mean, count, phase, limit, left) in [
        (16, 16, 16, probing(16, 16), 17, 0),
        (15, 16, 16, probing(16, 16), 17, 0),
        (14, 16, 16, SearchPhase::Measuring, 16, 0),
        (13, 16, 16, SearchPhase::Measuring, 16, 16),
        (13, 16, 47, SearchPhase::Measuring, 16, 47),
        (13, 16, 48, testing(16, 16), 13, 0),
        (12, 16, 16, SearchPhase::Measuring, 16, 16),
        (8, 16, 16, testing(16, 16), 8, 0),
        (2, 16, 16, testing(16, 16), 6, 0),
    ] {
        let mut host = grown(base);
        host.window.count = count;
        host.measure(mean, MonotonicTime(1));
        assert_eq!((host.phase, host.limit, host.window.count), (phase, limit, left), "{base} of {mean} ns, {count}");
    }
}

#[test]
fn pause_and_refusal_forbid_trials() {
    let later = MonotonicTime(2);
    let judged = |host: ConcurrencyLimit, mean| {
        let mut host = host;
        host.measure(mean, MonotonicTime(1));
        (host.phase, host.limit)
    };
    let none = |limit| (SearchPhase::Measuring, limit);
    assert_eq!(judged(ConcurrencyLimit { try_at: later, ..grown(16) }, 16), none(16), "no probe");
    assert_eq!(judged(ConcurrencyLimit { try_at: later, ..grown(8) }, 16), (testing(16, 16), 8));
    assert_eq!(judged(ConcurrencyLimit { try_at: later, bound: 40, ..grown(8) }, 16), none(16), "the host bore it");
    assert_eq!(judged(ConcurrencyLimit { try_at: later, limit: 6, ..grown(3) }, 6), none(6));
    assert_eq!(judged(ConcurrencyLimit { limit: 6, ..grown(3) }, 6), (testing(6, 6), LOW_TEST_LIMIT));
    assert_eq!(judged(ConcurrencyLimit { limit: 50, ..grown(16) }, 16), none(50), "no more than the maximum");
    assert_eq!(judged(ConcurrencyLimit { is_shared: true, ..grown(2) }, 16), (probing(16, 16), 17));
    assert_eq!(judged(ConcurrencyLimit { has_jumped: false, ..grown(16) }, 16), none(50));
    assert_eq!(judged(ConcurrencyLimit { has_jumped: false, bound: 16, ..grown(16) }, 16), (probing(16, 16), 17));
}

#[test]
fn faster_window_lowers_the_base_by_a_quarter() {
    let base = |mean| {
        let mut host = grown(1000);
        host.measure(mean, MonotonicTime(1));
        host.base
    };
    assert_eq!([600, 1000, 1200].map(base), [900, 1000, 1000]);
}

#[test]
fn doubted_base_returns_after_the_pause() {
    let base = |limit, try_at| {
        let mut host = ConcurrencyLimit { limit, try_at, doubted_base: Some(500), ..grown(1000) };
        host.measure(1000, MonotonicTime(1));
        (host.base, host.doubted_base)
    };
    assert_eq!(base(16, MonotonicTime(1)), (500, None));
    assert_eq!(base(16, MonotonicTime(2)), (1000, Some(500)));
    assert_eq!(base(6, MonotonicTime(1)), (1000, Some(500)));
}

#[test]
fn even_first_window_raises_the_limit() {
    let limit = |milliseconds: [u64; 6]| {
        let mut host = ConcurrencyLimit::new(50);
        for time in milliseconds.map(Duration::from_millis) {
            host.on_completion(CompletionSample { first_byte: time, total: time, ..FIRST_SAMPLE });
        }
        host.limit()
    };
    assert_eq!(limit([100, 100, 100, 100, 100, 140]), 50);
    assert_eq!(limit([100, 100, 100, 100, 100, 141]), 6, "one waited");
    assert_eq!(limit([100, 137, 137, 137, 137, 137]), 6, "most waited");
    assert_eq!(limit([1; 6]), 50);
    let near = Duration::from_micros(999);
    let mut host = ConcurrencyLimit::new(50);
    (0..60).for_each(|_| {
        host.on_completion(CompletionSample { first_byte: near, ..FIRST_SAMPLE });
    });
    assert_eq!(host.limit(), 6, "a near host needs no more");
}

#[test]
fn window_size_depends_on_phase_and_refusals() {
    let size = |phase, limit, count| {
        let refusals = Refusals { count, ..Refusals::default() };
        ConcurrencyLimit { phase, limit, refusals, ..ConcurrencyLimit::new(50) }.window_size()
    };
    assert_eq!(size(SearchPhase::Measuring, 16, 0), 16);
    assert_eq!([13, 3].map(|limit| size(testing(20, 1), limit, 0)), [26, MIN_TRIAL_REQUESTS]);
    assert_eq!(
        [1, 2, 3, 99].map(|count| size(SearchPhase::Recovering, 2, count)),
        [6, 12, 24, 6 << MAX_RECOVERY_DOUBLINGS]
    );
}

/// Checks that a test that halves the limit keeps the lower limit if the request rate is more than
/// 70 % of the usual rate (so requests had queued), and at least 90 % of the best rate.
#[test]
fn test_compares_rates_of_fewer_requests() {
    let ended = |mean, best_rate, base| {
        let mut host = ConcurrencyLimit { limit: 10, best_rate, ..grown(base) };
        host.end_test(20, 1000, mean, false, MonotonicTime(1));
        (host.limit, host.base, host.doubted_base)
    };
    assert_eq!(ended(700, 0.0, 5), (10, 5, None));
    assert_eq!(ended(720, 0.0, 5), (20, 1000, Some(5)));
    assert_eq!(ended(720, 0.0, 0), (20, 1000, None));
    assert_eq!(ended(625, 0.018, 5), (20, 1000, Some(5)), "slower than the best window");
    assert_eq!(ended(625, 0.017, 5), (10, 5, None));
}

#[test]
fn probe_is_kept_for_half_of_the_gain() {
    let limit = |mean| {
        let mut host = ConcurrencyLimit { limit: 11, ..grown(1000) };
        host.end_probe(10, 1000, mean, MonotonicTime(1));
        host.limit
    };
    assert_eq!([1000, 1040, 1060, 1200].map(limit), [11, 11, 10, 10]);
}

#[test]
fn warm_connections_correct_the_base() {
    let base = |nanoseconds| {
        let mut host = ConcurrencyLimit { warm: Some(WarmConnectionSums::default()), ..grown(1000) };
        (0..6).for_each(|_| host.correct_base(nanoseconds));
        assert!(host.warm.is_none());
        host.base
    };
    assert_eq!([700, 850, 1500].map(base), [700, 1000, 1000]);
}

#[test]
fn silence_lasts_twice_the_last_request() {
    let mut host = ConcurrencyLimit::new(50);
    host.on_completion(CompletionSample { total: Duration::from_secs(2), ..FIRST_SAMPLE });
    assert_eq!(host.on_silence(FIRST_SAMPLE.now + Duration::from_millis(3999)), 6);
    assert_eq!(host.on_silence(FIRST_SAMPLE.now + Duration::from_secs(4)), 7);
}

#[test]
fn recovering_limit_below_six_grows_by_one() {
    let recovered = |limit, refusals| {
        let mut host = ConcurrencyLimit {
            limit,
            bound: limit,
            phase: SearchPhase::Recovering,
            try_at: MonotonicTime(2),
            refusals,
            ..ConcurrencyLimit::new(50)
        };
        host.recover(MonotonicTime(1));
        (host.phase, host.limit)
    };
    let none = Refusals::default();
    assert_eq!(recovered(3, none), (SearchPhase::Recovering, 4));
    assert_eq!(recovered(5, none), (SearchPhase::Recovering, 6));
    assert_eq!(recovered(6, none), (SearchPhase::Measuring, 6));
    assert_eq!(recovered(3, Refusals { at_growth: true, ..none }), (SearchPhase::Recovering, 3));
}

#[test]
fn shared_connection_begins_at_the_maximum() {
    let host = ConcurrencyLimit::of_shared_connection(50);
    assert_eq!((host.is_shared(), host.limit()), (true, 50));
    assert!(!ConcurrencyLimit::new(50).is_shared());
}

#[test]
fn first_window_within_a_pause_changes_nothing() {
    let after_six = |host: ConcurrencyLimit| {
        let mut host = host;
        (0..6).for_each(|_| {
            host.on_completion(FIRST_SAMPLE);
        });
        host.limit()
    };
    let later = FIRST_SAMPLE.now + Duration::from_nanos(1);
    assert_eq!(after_six(ConcurrencyLimit { try_at: later, ..ConcurrencyLimit::new(50) }), 6);
    assert_eq!(after_six(ConcurrencyLimit { try_at: FIRST_SAMPLE.now, ..ConcurrencyLimit::new(50) }), 50);
    assert_eq!(after_six(ConcurrencyLimit { limit: 6, ..ConcurrencyLimit::of_shared_connection(50) }), 50);
}

#[test]
fn only_requests_of_a_full_host_count() {
    let mut host = ConcurrencyLimit::new(50);
    (0..6).for_each(|_| {
        host.on_completion(CompletionSample { in_flight: 5, ..FIRST_SAMPLE });
    });
    assert_eq!((host.limit(), host.window.count), (6, 0), "the limit held no request back");
    host.on_completion(FIRST_SAMPLE);
    assert_eq!(host.window.count, 1);
    let mut host = ConcurrencyLimit { phase: SearchPhase::Recovering, bound: 32, ..ConcurrencyLimit::new(50) };
    (0..6).for_each(|_| {
        host.on_completion(CompletionSample { in_flight: 1, ..FIRST_SAMPLE });
    });
    assert_eq!(host.limit(), 32, "after a refusal, each served request counts");
}

#[test]
fn request_counts_if_it_began_in_the_window() {
    let counted = |since: u64| {
        let window = SampleWindow { since: MonotonicTime(since), ..SampleWindow::default() };
        let mut host = ConcurrencyLimit { window, ..ConcurrencyLimit::new(50) };
        host.on_completion(FIRST_SAMPLE);
        host.window.count
    };
    let start = FIRST_SAMPLE.start_time().0;
    assert_eq!(start, 900_000_000);
    assert_eq!([start - 1, start, start + 1].map(counted), [1, 1, 0]);
}

#[test]
fn later_windows_last_at_least_ten_milliseconds() {
    let count = |base, nanoseconds| {
        let mut host = ConcurrencyLimit { limit: 6, base, ..grown(base) };
        (0..5).for_each(|_| {
            host.on_completion(FIRST_SAMPLE);
        });
        let now = FIRST_SAMPLE.now + Duration::from_nanos(nanoseconds);
        host.on_completion(CompletionSample { now, ..FIRST_SAMPLE });
        host.window.count
    };
    assert_eq!([9_999_999, 10_000_000].map(|nanoseconds| count(100_000_000, nanoseconds)), [6, 0]);
    assert_eq!(count(0, 0), 0, "the first window may be short");
}

#[test]
fn first_window_is_even_up_to_its_limits() {
    let after = |milliseconds: &[u64]| {
        let mut host = ConcurrencyLimit::new(50);
        for time in milliseconds.iter().copied().map(Duration::from_millis) {
            host.on_completion(CompletionSample { first_byte: time, total: time, ..FIRST_SAMPLE });
        }
        host
    };
    let mean = after(&[100, 136, 136, 136, 136, 136]);
    assert_eq!((mean.limit(), mean.base), (50, 130_000_000));
    assert_eq!(mean.window.since, FIRST_SAMPLE.now + Duration::from_millis(260), "two round trips");
    let uneven = [100, 137, 137, 137, 137, 137, 137, 137, 137, 137, 137, 137];
    assert_eq!((after(&uneven[..11]).limit(), after(&uneven).limit()), (6, 4), "two windows begin a test");
}

#[test]
fn shared_connection_at_the_maximum_tries_nothing() {
    let mut host = ConcurrencyLimit::of_shared_connection(6);
    (0..6).for_each(|_| {
        host.on_completion(FIRST_SAMPLE);
    });
    assert_eq!((host.limit(), host.base, host.window.count), (6, 0, 0));
}

#[test]
fn best_rate_is_that_of_the_fastest_window() {
    let rate = |mean, best_rate| {
        let mut host = ConcurrencyLimit { best_rate, ..grown(16) };
        host.measure(mean, MonotonicTime(1));
        host.best_rate
    };
    assert_eq!([rate(16, 0.0), rate(8, 1.0), rate(16, 1.5)], [1.0, 2.0, 1.5]);
    let ended = |mean| {
        let mut host = ConcurrencyLimit { limit: 10, best_rate: 0.001, ..grown(5) };
        host.end_test(20, 1000, mean, false, MonotonicTime(1));
        host.best_rate
    };
    assert_eq!([500, 1000].map(ended), [0.02, 0.02], "of the test, or of the usual limit");
}

#[test]
fn base_is_corrected_below_four_fifths() {
    let base = |nanoseconds| {
        let mut host = ConcurrencyLimit { warm: Some(WarmConnectionSums::default()), ..grown(1000) };
        (0..5).for_each(|_| host.correct_base(nanoseconds));
        assert!(host.warm.is_some() && host.base == 1000);
        host.correct_base(nanoseconds);
        host.base
    };
    assert_eq!([799, 800].map(base), [799, 1000]);
    let mut host = ConcurrencyLimit { warm: Some(WarmConnectionSums::default()), ..grown(1_000_000_000) };
    (0..6).for_each(|_| {
        host.on_completion(FIRST_SAMPLE);
    });
    assert_eq!(host.base, 1_000_000_000, "the connections are new");
}

#[test]
fn limit_of_four_is_never_tested_with_less() {
    let tested = |limit| {
        let mut host = ConcurrencyLimit { limit, ..grown(1) };
        host.begin_test(2, MonotonicTime(1));
        (host.phase, host.limit, host.window.since)
    };
    assert_eq!(tested(4), (SearchPhase::Measuring, 4, MonotonicTime(0)));
    assert_eq!(tested(5), (testing(5, 2), 4, MonotonicTime(1)));
    assert_eq!(tested(7), (testing(7, 2), 6, MonotonicTime(1)));
    assert_eq!(tested(20), (testing(20, 2), 10, MonotonicTime(1)));
}

#[test]
fn test_down_to_six_goes_on_with_four() {
    let ended = |limit, usual, goes_on| {
        let mut host = ConcurrencyLimit { limit, ..grown(5) };
        host.end_test(usual, 1000, 100, goes_on, FIRST_SAMPLE.now);
        (host.phase, host.limit, host.base)
    };
    let further = SearchPhase::Testing { usual: 6, mean: 100, is_second_test: true };
    assert_eq!(ended(6, 7, false), (further, 4, 5));
    assert_eq!(ended(7, 8, false), (SearchPhase::Measuring, 7, 5));
    assert_eq!(ended(4, 6, false), (SearchPhase::Measuring, 6, 5));
    assert_eq!(ended(4, 5, true), (SearchPhase::Measuring, 5, 100));
    let slower = |usual, goes_on| {
        let mut host = ConcurrencyLimit { limit: 4, ..grown(5) };
        host.end_test(usual, 1000, 5000, goes_on, FIRST_SAMPLE.now);
        (host.limit, host.has_jumped, host.try_at > FIRST_SAMPLE.now)
    };
    assert_eq!(slower(6, false), (6, false, false));
    assert_eq!(slower(6, true), (6, true, false));
    assert_eq!(slower(7, false), (7, true, true));
}

/// A test of at most 6 requests is not compared with the best rate.
#[test]
fn test_below_six_needs_no_best_rate() {
    let base = |limit, usual, best_rate| {
        let mut host = ConcurrencyLimit { limit, best_rate, ..grown(5) };
        host.end_test(usual, 1000, 1, false, MonotonicTime(1));
        (host.limit, host.base)
    };
    assert_eq!(base(4, 6, 99.0), (6, 5));
    assert_eq!(base(7, 8, 99.0), (8, 1000));
    // A rate of exactly nine tenths of the best one is enough.
    assert_eq!([base(9, 10, 10.0), base(9, 10, 10.1)], [(9, 5), (10, 1000)]);
}

#[test]
fn probe_at_exactly_half_the_gain_is_kept() {
    let ended = |mean| {
        let mut host = ConcurrencyLimit { limit: 3, bound: 2, ..grown(5) };
        host.end_probe(2, 5, mean, FIRST_SAMPLE.now);
        (host.limit, host.bound, host.try_at > FIRST_SAMPLE.now)
    };
    assert_eq!(ended(6), (3, 3, false));
    assert_eq!(ended(7), (2, 2, true));
}

#[test]
fn trials_pause_sixteen_times_their_length() {
    let paused = |begin: u64, trial_pause, try_at| {
        let window = SampleWindow { begin: MonotonicTime(begin), ..SampleWindow::default() };
        let mut host = ConcurrencyLimit { window, trial_pause, try_at: MonotonicTime(try_at), ..grown(5) };
        host.pause_trials(MonotonicTime(1000));
        (host.try_at.0, host.trial_pause)
    };
    let nanoseconds = Duration::from_nanos;
    assert_eq!(paused(900, nanoseconds(5), 0), (2600, nanoseconds(10)));
    assert_eq!(paused(999, nanoseconds(500), 0), (1500, nanoseconds(1000)));
    assert_eq!(paused(999, nanoseconds(500), 9000), (9000, nanoseconds(1000)));
    assert_eq!(paused(999, MAX_PAUSE, 0).1, MAX_PAUSE);
}

#[test]
fn refusal_lowers_the_bound_and_pauses_probes() {
    let refused = |count, last: u64, in_flight, has_grown| {
        let refusals = Refusals { count, last: MonotonicTime(last), has_grown, at_growth: false };
        let mut host = ConcurrencyLimit { refusals, ..grown(5) };
        host.on_completion(CompletionSample { in_flight, kind: CompletionKind::Refused, ..FIRST_SAMPLE });
        host
    };
    let (start, now) = (FIRST_SAMPLE.start_time().0, FIRST_SAMPLE.now);
    let first = refused(0, 0, 10, false);
    assert_eq!((first.bound, first.limit, first.phase), (9, 6, SearchPhase::Recovering));
    assert_eq!((first.refusals.count, first.refusals.last, first.try_at), (1, now, now + FIRST_REFUSAL_PAUSE));
    assert_eq!(refused(2, 0, 10, false).try_at, now + FIRST_REFUSAL_PAUSE * 4, "each refusal doubles the pause");
    assert_eq!(refused(9, 0, 10, false).try_at, now + MAX_PAUSE);
    assert_eq!((refused(0, 0, 40, false).bound, refused(0, 0, 1, false).bound), (16, 1));
    // A request that began before the last refusal does not count again.
    assert_eq!(refused(2, start, 10, false).refusals.count, 3);
    let again = refused(2, start + 1, 10, false);
    assert_eq!((again.refusals.count, again.bound, again.limit), (2, 49, 6));
    assert_eq!([15, 16].map(|in_flight| refused(0, 0, in_flight, true).refusals.at_growth), [false, true]);
    assert!(!refused(0, 0, 16, false).refusals.at_growth);
}

#[test]
fn refusals_expire_after_a_minute() {
    let count = |past| {
        let refusals = Refusals { count: 3, ..Refusals::default() };
        let mut host = ConcurrencyLimit { refusals, ..grown(5) };
        let now = MonotonicTime(0) + REFUSALS_EXPIRE_AFTER + Duration::from_nanos(past);
        host.on_completion(CompletionSample { now, kind: CompletionKind::Refused, ..FIRST_SAMPLE });
        host.refusals.count
    };
    assert_eq!([0, 1].map(count), [4, 1]);
}

#[test]
fn recovered_limit_returns_to_its_bound() {
    let recovered = |limit, bound, max, at_growth, now| {
        let mut host = ConcurrencyLimit { limit, bound, max, try_at: MonotonicTime(2), ..grown(5) };
        host.refusals.at_growth = at_growth;
        host.recover(MonotonicTime(now));
        (host.phase, host.limit, host.refusals.has_grown)
    };
    assert_eq!(recovered(6, 7, 50, false, 1), (SearchPhase::Measuring, 7, false));
    assert_eq!(recovered(3, 3, 3, false, 1), (SearchPhase::Measuring, 3, false), "the maximum is less than six");
    assert_eq!(recovered(3, 3, 50, true, 1), (SearchPhase::Recovering, 3, false));
    assert_eq!(recovered(3, 3, 50, true, 2), (SearchPhase::Recovering, 4, true));
    assert_eq!(recovered(3, 3, 50, false, 1), (SearchPhase::Recovering, 4, true));
}

#[test]
fn silence_raises_the_limit_by_a_sixth() {
    let raised = |limit, bound| {
        let mut host = ConcurrencyLimit { limit, bound, ..grown(5) };
        host.on_silence(MonotonicTime(0) + SILENCE_BEFORE_GROWTH)
    };
    assert_eq!([(6, 50), (7, 50), (12, 50), (13, 50)].map(|(limit, bound)| raised(limit, bound)), [7, 9, 14, 16]);
    assert_eq!([(49, 50), (7, 6)].map(|(limit, bound)| raised(limit, bound)), [50, 7]);
}

#[test]
fn silence_after_a_refusal_lasts_five_seconds() {
    let raised = |limit, max, nanoseconds| {
        let mut host = ConcurrencyLimit { limit, max, bound: 1, phase: SearchPhase::Recovering, ..grown(5) };
        let limit = host.on_silence(MonotonicTime(nanoseconds));
        (limit, host.bound)
    };
    assert_eq!([4_999_999_999, 5_000_000_000].map(|nanoseconds| raised(2, 50, nanoseconds)), [(2, 1), (3, 3)]);
    assert_eq!([raised(6, 50, 5_000_000_000).0, raised(3, 3, 5_000_000_000).0], [6, 3]);
}

#[test]
fn refused_load_depends_on_the_running_requests() {
    let load = |in_flight, kind| CompletionSample { in_flight, kind, ..FIRST_SAMPLE }.refused_load();
    let refused = |in_flight| load(in_flight, CompletionKind::Refused);
    assert_eq!([1, 2, 6].map(refused), [None, Some(RefusedLoad::Initial), Some(RefusedLoad::Initial)]);
    assert_eq!((refused(7), load(7, CompletionKind::Served)), (Some(RefusedLoad::Grown), None));
}
