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

/// A host whose limit has grown to 16 of 50. A request that does not wait takes `base` ns.
fn grown(base: u64) -> ConcurrencyLimit {
    ConcurrencyLimit { limit: 16, base, has_jumped: true, ..ConcurrencyLimit::new(50) }
}

fn testing(usual: usize, mean: u64) -> LimitPhase {
    LimitPhase::Testing { usual, mean, goes_on: false }
}

fn probing(usual: usize, mean: u64) -> LimitPhase {
    LimitPhase::Probing { usual, mean }
}

#[test]
fn queue_length_decides_the_next_phase() {
    for (base, mean, count, phase, limit, left) in [
        (16, 16, 16, probing(16, 16), 17, 0),
        (15, 16, 16, probing(16, 16), 17, 0),
        (14, 16, 16, LimitPhase::Measuring, 16, 0),
        (13, 16, 16, LimitPhase::Measuring, 16, 16),
        (13, 16, 47, LimitPhase::Measuring, 16, 47),
        (13, 16, 48, testing(16, 16), 13, 0),
        (12, 16, 16, LimitPhase::Measuring, 16, 16),
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
    let none = |limit| (LimitPhase::Measuring, limit);
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
    let size = |phase, limit, strikes| {
        let refusals = Refusals { strikes, ..Refusals::default() };
        ConcurrencyLimit { phase, limit, refusals, ..ConcurrencyLimit::new(50) }.window_size()
    };
    assert_eq!(size(LimitPhase::Measuring, 16, 0), 16);
    assert_eq!([13, 3].map(|limit| size(testing(20, 1), limit, 0)), [26, MIN_TRIAL_REQUESTS]);
    assert_eq!([1, 2, 3, 99].map(|strikes| size(LimitPhase::Recovering, 2, strikes)), [6, 12, 24, 6 << MAX_STRIKES]);
}

/// Half as many requests show a queue with more than 70 % of the rate of all.
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
            phase: LimitPhase::Recovering,
            try_at: MonotonicTime(2),
            refusals,
            ..ConcurrencyLimit::new(50)
        };
        host.recover(MonotonicTime(1));
        (host.phase, host.limit)
    };
    let none = Refusals::default();
    assert_eq!(recovered(3, none), (LimitPhase::Recovering, 4));
    assert_eq!(recovered(5, none), (LimitPhase::Recovering, 6));
    assert_eq!(recovered(6, none), (LimitPhase::Measuring, 6));
    assert_eq!(recovered(3, Refusals { at_growth: true, ..none }), (LimitPhase::Recovering, 3));
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
