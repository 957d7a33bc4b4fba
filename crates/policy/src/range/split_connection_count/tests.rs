use super::*;

const MS: Duration = Duration::from_millis(1);

fn seen(ms: u32, received: u64, waited_ms: u32) -> FirstStreamSample {
    FirstStreamSample { now: MonotonicTime(0) + MS * ms, received, remaining: 1 << 30, waited: MS * waited_ms }
}

/// Returns a sample after the split, in which each of `connections` has one request.
fn several(ms: u32, received: u64, connections: usize) -> SplitSample {
    SplitSample { now: MonotonicTime(0) + MS * ms, received, delivering: connections, requests: connections }
}

/// Returns true if a trial with several connections is worthwhile after a window of 100 ms.
/// `middle` and `end` are the samples at the middle and at the end of the window. `idle` contains
/// the total idle times of all cores then, in ms.
fn tries(splitter: &mut SplitPlanner, middle: FirstStreamSample, end: FirstStreamSample, idle: [u32; 2]) -> bool {
    assert!(!splitter.is_worth_trying(middle, || Some(MS * idle[0])));
    splitter.is_worth_trying(end, || Some(MS * idle[1]))
}

fn probing(most: usize, rate_of_one: u64) -> SplitPlanner {
    let mut splitter = SplitPlanner::new(most, MonotonicTime(0));
    assert!(tries(&mut splitter, seen(50, rate_of_one / 20, 45), seen(100, rate_of_one / 10, 90), [0, 50]));
    splitter
}

/// Returns the final number of connections. `one` is the rate of one connection, and `rate(n)`
/// the rate of `n` connections together, both in bytes a second.
fn settles_at(most: usize, one: u64, rate: impl Fn(usize) -> u64) -> usize {
    let mut splitter = probing(most, one);
    let mut received = 0;
    splitter.on_first_part(MonotonicTime(0) + MS * 150);
    let mut wanted = 2;
    for ms in 150..2000 {
        received += rate(wanted) / 1000;
        wanted = splitter.wanted_connections(several(ms, received, wanted), || Some(MS * ms));
    }
    assert!(splitter.has_finished_measuring());
    wanted
}

#[test]
fn per_connection_rate_limit_gets_all_connections() {
    assert_eq!(settles_at(6, 5_000_000, |n| 5_000_000 * n as u64), 6);
    assert_eq!(settles_at(3, 36_000_000, |n| 36_000_000 * n as u64), 3);
}

#[test]
fn obvious_speed_gain_is_decided_after_100_ms() {
    let settles_by = |rate: u64| {
        let mut splitter = probing(6, 5_000_000);
        splitter.on_first_part(MonotonicTime(0));
        assert_eq!(splitter.wanted_connections(several(0, 0, 4), || None), 4);
        (1..).find(|&ms| {
            splitter.wanted_connections(several(ms, rate * u64::from(ms) / 1000, 4), || None);
            !matches!(splitter.phase, SplitPhase::Measuring(_))
        })
    };
    assert_eq!([20_000_000, 12_000_000, 5_000_000].map(settles_by), [Some(100), Some(200), Some(200)]);
}

#[test]
fn full_link_keeps_one_connection() {
    assert_eq!(settles_at(6, 10_000_000, |_| 10_000_000), 1);
    assert_eq!(settles_at(6, 10_000_000, |n| 10_000_000 / n as u64), 1);
}

#[test]
fn small_gain_keeps_two_connections() {
    assert_eq!(settles_at(6, 10_000_000, |n| if n > 1 { 13_000_000 } else { 10_000_000 }), 2);
}

#[test]
fn fast_stalled_and_short_streams_are_not_split() {
    let mut splitter = SplitPlanner::new(6, MonotonicTime(0));
    let mut next = |received: u64, waited_ms: u32, remaining: u64| {
        let begin = splitter.received;
        let ms = u32::try_from(splitter.since.0 / 1_000_000).unwrap();
        let sample = |ms, received| FirstStreamSample { remaining, ..seen(ms, received, 0) };
        let waited = splitter.waited + MS * waited_ms;
        let middle = sample(ms + 50, begin + received / 2);
        let end = FirstStreamSample { waited, ..sample(ms + 100, begin + received) };
        tries(&mut splitter, middle, end, [ms, ms + 100])
    };
    assert!(!next(MAX_RATE_TO_SPLIT / 10, 100, 1 << 30));
    assert!(!next(500_000, 20, 1 << 30), "it waits for the output, not for the network");
    assert!(!next(500_000, 100, 1_000_000), "little is left");
    assert!(!next(0, 100, 1 << 30), "nothing came at all");
    assert!(next(500_000, 100, 1 << 30));
    assert!(!SplitPlanner::new(1, MonotonicTime(0)).is_worth_trying(seen(100, 500_000, 100), || None));
}

#[test]
fn busy_cores_prevent_splitting_fast_streams() {
    for (rate, first_share, idle_ms, is_tried) in [
        (150_000_000_u64, 50, 50, true),
        (150_000_000, 50, 10, false),
        (150_000_000, 15, 50, false),
        (150_000_000, 90, 50, false),
        (5_000_000, 0, 0, true),
    ] {
        let mut splitter = SplitPlanner::new(6, MonotonicTime(0));
        let all = rate / 10;
        let middle = seen(50, all * first_share / 100, 45);
        let is_worth = tries(&mut splitter, middle, seen(100, all, 90), [7, 7 + idle_ms]);
        assert_eq!(is_worth, is_tried, "{rate}, {first_share} %, {idle_ms} ms idle");
    }
}

/// Returns the successive numbers of connections during a body of `bytes`, and the duration in
/// milliseconds. `rate` returns, for a time and a number of connections, the total rate in
/// bytes a second, and whether a core is idle.
fn simulate(bytes: u64, rate: impl Fn(u32, usize) -> (u64, bool)) -> (Vec<usize>, u32) {
    let mut splitter = SplitPlanner::new(6, MonotonicTime(0));
    let (mut received, mut idle, mut connections, mut active, mut is_split) = (0, 0, vec![1], 1, false);
    for ms in 0..60_000 {
        let last = *connections.last().unwrap();
        // Connections that are no longer wanted complete their parts one after another.
        active = if active > last && ms % 100 == 0 { active - 1 } else { active.max(last) };
        let (now_rate, is_idle) = rate(ms, active);
        received += now_rate / 1000;
        idle += u32::from(is_idle);
        if received >= bytes {
            return (connections, ms);
        }
        let sample = FirstStreamSample { remaining: bytes - received, ..seen(ms, received, ms) };
        let now = sample.now;
        if !is_split && splitter.is_worth_trying(sample, || Some(MS * idle)) {
            is_split = true;
            splitter.on_first_part(now);
        }
        let wanted =
            if is_split { splitter.wanted_connections(several(ms, received, active), || Some(MS * idle)) } else { 1 };
        if wanted != last {
            connections.push(wanted);
        }
    }
    panic!("it has not ended");
}

#[test]
fn simulated_rate_limited_server_keeps_all_connections() {
    for each in [1_000_000, 20_000_000, 90_000_000] {
        let (connections, ms) = simulate(each * 30, |_, n| (each * n as u64, true));
        assert_eq!(connections.last(), Some(&6), "{each}");
        assert!(ms < 5_800, "{each}: {ms} ms");
    }
}

#[test]
fn split_without_idle_cores_returns_to_one() {
    // One connection brings 1.3 GB/s, six bring 300 MB/s: there is no idle core. In the first
    // 150 ms, others use the processors.
    let starved = |ms: u32, n: usize| match (ms, n) {
        (..150, 1) => (120_000_000, false),
        (_, 1) => (1_300_000_000, false),
        _ => (300_000_000, false),
    };
    assert_eq!(simulate(3_000_000_000, starved).0, [1]);
    // Others begin when the body is already split.
    let later = |ms: u32, n: usize| match (ms, n) {
        (..400, n) => (60_000_000 * n as u64, true),
        (_, 1) => (1_300_000_000, false),
        _ => (300_000_000, false),
    };
    let (connections, ms) = simulate(3_000_000_000, later);
    assert_eq!(connections, [1, 4, 6, 1]);
    assert!(ms < 3_600, "{ms}");
}

#[test]
fn split_without_gain_returns_to_one_connection() {
    let slower = |ms: u32, n: usize| match (ms, n) {
        (..1000, n) => (5_000_000 * n as u64, true),
        (_, 1) => (5_000_000, true),
        (_, _) => (4_000_000, true),
    };
    let (connections, _) = simulate(60_000_000, slower);
    assert_eq!(connections, [1, 4, 6, 1]);
}

#[test]
fn refused_connections_lower_the_split_limit() {
    let mut splitter = probing(6, 5_000_000);
    splitter.on_first_part(MonotonicTime(1));
    splitter.on_connection_refused(4);
    assert_eq!(splitter.wanted_connections(several(2, 0, 3), || None), 3);
    splitter.on_connection_refused(1);
    assert_eq!(splitter.wanted_connections(several(3, 0, 0), || None), 1);
}

#[test]
fn two_connections_are_worth_a_trial() {
    for (most, is_tried) in [(1, false), (2, true)] {
        let mut splitter = SplitPlanner::new(most, MonotonicTime(0));
        assert_eq!(tries(&mut splitter, seen(50, 250_000, 45), seen(100, 500_000, 90), [0, 50]), is_tried, "{most}");
    }
}

#[test]
fn gain_below_three_twentieths_is_not_kept() {
    let settled = |rate: u64| settles_at(6, 10_000_000, |n| if n > 1 { rate } else { 10_000_000 });
    assert_eq!([11_400_000, 11_600_000, 14_900_000, 15_100_000].map(settled), [1, 2, 2, 6]);
}

#[test]
fn two_connections_are_judged_again() {
    let mut splitter =
        SplitPlanner { phase: SplitPhase::Settled(2), single: 1000, ..SplitPlanner::new(6, MonotonicTime(0)) };
    let now = |ms: u32| MonotonicTime(0) + MS * ms;
    assert_eq!(splitter.next_timeout(), Some(now(500)));
    assert_eq!(splitter.wanted_connections(several(499, 0, 2), || None), 2, "too early");
    assert_eq!(splitter.wanted_connections(several(500, 501, 2), || None), 2, "more than one stream brings");
    assert_eq!(splitter.next_timeout(), Some(now(1000)));
    assert_eq!(splitter.wanted_connections(several(1000, 1000, 2), || None), 1, "it may bring no more");
    assert!(matches!(splitter.phase, SplitPhase::Comparing(_)));
}

#[test]
fn stream_must_wait_for_half_of_the_window() {
    let tried = |waited_ms, remaining, rate: u64| {
        let mut splitter = SplitPlanner::new(6, MonotonicTime(0));
        let middle = FirstStreamSample { remaining, ..seen(50, rate / 20, 0) };
        let end = FirstStreamSample { remaining, ..seen(100, rate / 10, waited_ms) };
        tries(&mut splitter, middle, end, [0, 0])
    };
    assert_eq!([49, 50].map(|waited_ms| tried(waited_ms, 1 << 30, 5_000_000)), [false, true]);
    // 250 ms at the present rate.
    assert_eq!([1_249_999, 1_250_000].map(|remaining| tried(100, remaining, 5_000_000)), [false, true]);
    // No core is idle.
    assert_eq!([49_999_990, 50_000_000].map(|rate| tried(100, 1 << 30, rate)), [true, false]);
}

#[test]
fn core_is_idle_for_three_quarters_of_the_time() {
    let is_idle = |before, after| is_core_idle(Some(MS * before), Some(MS * after), MS * 100);
    assert_eq!([is_idle(5, 79), is_idle(5, 80), is_idle(9, 5)], [false, true, false]);
    assert!(is_core_idle(None, Some(MS), MS * 100) && is_core_idle(Some(MS), None, MS * 100));
    assert_eq!((per_second(7, MS * 2), per_second(0, MS), per_second(5, Duration::ZERO)), (3500, 0, 5_000_000_000));
    assert!(!lasts_long_enough(1 << 30, 0), "nothing arrives");
}

/// A planner in a phase that began at the time 0, for a stream of 1,000 bytes a second.
fn planner(phase: SplitPhase) -> SplitPlanner {
    SplitPlanner { phase, single: 1000, ..SplitPlanner::new(6, MonotonicTime(0)) }
}

#[test]
fn connections_open_for_a_second_at_most() {
    let after = |ms: u32, delivering| {
        let mut splitter = planner(SplitPhase::Opening(MonotonicTime(0)));
        assert_eq!(splitter.next_timeout(), Some(MonotonicTime(0) + MAX_OPENING_TIME));
        assert_eq!(splitter.wanted_connections(several(ms, 0, delivering), || None), 4);
        splitter.next_timeout().map(|at| at.since(MonotonicTime(0) + MS * ms))
    };
    assert_eq!([after(999, 3), after(1000, 3), after(999, 4)], [Some(MS), Some(MS * 100), Some(MS * 100)]);
}

#[test]
fn gain_is_measured_in_two_steps() {
    let measured = |ms: u32, received| {
        let look = MonotonicTime(0) + SHORT_MEASUREMENT;
        let mut splitter = planner(SplitPhase::Measuring(look));
        assert_eq!(splitter.next_timeout(), Some(look));
        let wanted = splitter.wanted_connections(several(ms, received, 4), || None);
        (wanted, splitter.has_finished_measuring())
    };
    assert_eq!(measured(99, 1000), (4, false), "too early");
    assert_eq!([measured(100, 249), measured(100, 250)], [(4, false), (6, true)]);
    // Below one and a half, one connection is measured again.
    assert_eq!([measured(199, 497), measured(200, 300), measured(200, 299)], [(4, false), (6, true), (1, false)]);
}

#[test]
fn busy_cores_end_the_measurement() {
    let measured = |ms: u32, received, idle_ms| {
        let mut splitter = planner(SplitPhase::Measuring(MonotonicTime(0)));
        (splitter.single, splitter.idle) = (80_000_000, Some(Duration::ZERO));
        splitter.wanted_connections(several(ms, received, 4), || Some(MS * idle_ms))
    };
    assert_eq!([measured(100, 9_999_999, 0), measured(100, 10_000_000, 0), measured(100, 10_000_000, 75)], [4, 1, 4]);
    // Over 200 ms: a rate that the processor may limit.
    assert_eq!(measured(200, 20_000_000, 200), 1);
}

#[test]
fn missing_connections_do_not_count_as_slow() {
    let reviewed = |received, delivering| {
        let mut splitter = planner(SplitPhase::Settled(3));
        splitter.wanted_connections(several(500, received, delivering), || None)
    };
    assert_eq!([reviewed(500, 2), reviewed(500, 3), reviewed(501, 3)], [3, 1, 3]);
    assert_eq!([reviewed(1, 3), reviewed(0, 3)], [1, 3], "nothing arrived at all");
    let busy = |received| {
        let mut splitter = planner(SplitPhase::Settled(3));
        splitter.idle = Some(Duration::ZERO);
        splitter.wanted_connections(several(500, received, 3), || Some(MS))
    };
    assert_eq!([busy(49_999_999), busy(50_000_000)], [3, 1]);
}

/// Runs a comparison of six connections with fewer. It begins at 500 ms, after the six have
/// together brought 1,200 bytes a second. Each step is a sample during the comparison: its time in
/// milliseconds, the bytes received since 500 ms, and the number of incomplete requests. Returns
/// the final number of connections (`None` while the comparison lasts), and the rate of one
/// connection.
fn compared(steps: &[(u32, u64, usize)]) -> (Option<usize>, u64) {
    let mut splitter = planner(SplitPhase::Settled(6));
    splitter.single = 2000;
    assert_eq!(splitter.wanted_connections(SplitSample { requests: 12, ..several(500, 600, 6) }, || None), 1);
    assert!(!splitter.has_finished_measuring());
    let mut wanted = 1;
    for &(ms, received, requests) in steps {
        assert!(!splitter.has_finished_measuring());
        let seen = SplitSample { requests, ..several(ms, 600 + received, requests.min(6)) };
        wanted = splitter.wanted_connections(seen, || None);
    }
    (splitter.has_finished_measuring().then_some(wanted), splitter.single)
}

#[test]
fn comparison_measures_one_connection_alone() {
    // The others complete their parts until 1,600 ms. What they brought does not count.
    let begin = (1600, 900, 1);
    let after = |received: u64| compared(&[(1000, 500, 7), (1500, 800, 4), begin, (2100, 900 + received, 1)]);
    assert_eq!(compared(&[begin, (2099, 1400, 1)]).0, None, "too early");
    assert_eq!(
        [after(400), after(401), after(521), after(522)],
        [(Some(6), 800), (Some(2), 802), (Some(2), 1042), (Some(1), 1044)]
    );
}

#[test]
fn comparison_ends_early_if_one_is_as_fast() {
    let begin = (1000, 400, 1);
    let after = |ms: u32, received: u64| compared(&[begin, (1000 + ms, 400 + received, 1)]).0;
    assert_eq!([after(199, 400), after(200, 208), after(200, 209)], [None, None, Some(1)]);
    assert_eq!(compared(&[(1000, 400, 2), (1300, 800, 2)]).0, None, "two are no single connection");
}

#[test]
fn rate_to_compare_with_is_known_while_one_is_measured() {
    let mut splitter = planner(SplitPhase::Settled(6));
    splitter.single = 2000;
    let mut rate_after = |ms, requests| {
        splitter.wanted_connections(several(ms, 600, requests), || None);
        splitter.rate_to_compare_with()
    };
    assert_eq!(
        [rate_after(400, 6), rate_after(500, 6), rate_after(600, 2), rate_after(700, 1)],
        [None, None, None, Some(1200)]
    );
}

#[test]
fn comparison_ends_early_if_half_are_slow() {
    let begin = (1000, 400, 3);
    assert_eq!(compared(&[begin, (1500, 700, 2)]), (Some(6), 200));
    assert_eq!(compared(&[begin, (1500, 900, 2)]).0, None, "three as fast as six may be as fast as one");
    assert_eq!(compared(&[(500, 0, 4), (1000, 50, 4)]).0, None, "more than half are left");
}

#[test]
fn short_dip_does_not_end_the_split() {
    // Two connections bring 4,000 bytes a second, more than six did before the comparison.
    let steps = [(1000, 400, 3), (1500, 2400, 2), (1600, 2500, 1), (2100, 3500, 1)];
    assert_eq!(compared(&steps), (Some(6), 2000));
    // One connection alone brings as much: it does not count as several.
    assert_eq!(compared(&[(1000, 400, 1), (1500, 2400, 1)]), (Some(1), 4000));
}

#[test]
fn comparison_without_any_byte_is_repeated() {
    let begin = (1000, 400, 1);
    assert_eq!(compared(&[begin, (1500, 400, 1)]).0, None);
    assert_eq!(compared(&[begin, (1500, 400, 1), (2000, 1400, 1)]), (Some(1), 2000));
    assert_eq!(compared(&[(1000, 400, 3), (1500, 400, 3)]).0, None);
}

#[test]
fn comparison_excludes_waits_for_responses() {
    let mut splitter = planner(SplitPhase::Settled(6));
    splitter.single = 2000;
    splitter.wanted_connections(several(500, 600, 6), || None);
    // One connection brings 1,000 bytes a second, and waits from 850 to 1,050 ms.
    for (ms, received, delivering, timeout) in
        [(600, 600, 1, 1100), (850, 850, 0, 1100), (950, 850, 0, 1200), (1050, 850, 1, 1300), (1200, 1000, 1, 1300)]
    {
        assert_eq!(splitter.wanted_connections(several(ms, received, delivering), || None), 1, "{ms}");
        assert_eq!(splitter.next_timeout(), Some(MonotonicTime(0) + MS * timeout), "{ms}");
    }
    assert_eq!(splitter.wanted_connections(several(1300, 1100, 1), || None), 2);
    assert_eq!((splitter.rate(), splitter.has_finished_measuring()), (1000, true));
}

#[test]
fn restarted_measurement_excludes_the_pause() {
    let now = |ms: u32| MonotonicTime(0) + MS * ms;
    let mut measuring = planner(SplitPhase::Measuring(now(100)));
    measuring.restart_measurement(several(1000, 10, 4), || None);
    assert_eq!(measuring.next_timeout(), Some(now(1100)));
    assert_eq!(measuring.wanted_connections(several(1100, 260, 4), || None), 6);
    let mut comparing = planner(SplitPhase::Settled(6));
    assert_eq!(comparing.wanted_connections(several(500, 400, 6), || None), 1);
    comparing.restart_measurement(several(2000, 500, 1), || None);
    assert_eq!(comparing.next_timeout(), Some(now(2500)));
    assert_eq!(comparing.wanted_connections(several(2500, 900, 1), || None), 1);
    assert_eq!((comparing.rate(), comparing.has_finished_measuring()), (800, true));
    let mut settled = planner(SplitPhase::Settled(6));
    settled.restart_measurement(several(2000, 500, 6), || None);
    assert_eq!(settled.next_timeout(), Some(now(2500)));
    let mut opening = planner(SplitPhase::Opening(now(0)));
    opening.restart_measurement(several(800, 0, 1), || None);
    assert_eq!(opening.next_timeout(), Some(now(1000)), "connections open for a second in all");
}

#[test]
fn refusal_during_a_comparison_keeps_the_split() {
    let refused = |connections: usize, refused_at| {
        let mut splitter = planner(SplitPhase::Settled(connections));
        assert_eq!(splitter.wanted_connections(several(500, 400, connections), || None), 1);
        splitter.on_connection_refused(refused_at);
        let is_comparing = !splitter.has_finished_measuring();
        splitter.wanted_connections(several(600, 500, 1), || None);
        // One connection brings 200 bytes a second, and several brought 800.
        (is_comparing, splitter.wanted_connections(several(1100, 600, 1), || None))
    };
    assert_eq!([refused(6, 2), refused(6, 1), refused(3, 2)], [(true, 5), (true, 5), (true, 2)]);
    assert_eq!(refused(2, 2), (false, 1), "the server accepted one");
}

#[test]
fn busy_cores_are_seen_right_after_a_comparison() {
    let after = |idle_ms: u32| {
        let mut splitter = planner(SplitPhase::Settled(6));
        splitter.single = 300_000_000;
        assert_eq!(splitter.wanted_connections(several(500, 100_000_000, 6), || Some(MS * 500)), 1);
        splitter.wanted_connections(several(600, 100_000_000, 1), || Some(MS * 600));
        assert_eq!(splitter.wanted_connections(several(1100, 101_000_000, 1), || Some(MS * 1100)), 6);
        splitter.wanted_connections(several(1600, 201_000_000, 6), || Some(MS * (1100 + idle_ms)))
    };
    assert_eq!([after(374), after(375)], [1, 6]);
}

#[test]
fn comparison_sets_its_timeout_anew() {
    let mut splitter = planner(SplitPhase::Settled(6));
    splitter.wanted_connections(several(500, 1, 6), || None);
    for (ms, requests, timeout) in [(600, 6, 1000), (700, 3, 1200), (800, 2, 1200), (900, 1, 1400)] {
        splitter.wanted_connections(several(ms, 1, requests), || None);
        assert_eq!(splitter.next_timeout(), Some(MonotonicTime(0) + MS * timeout), "{ms}");
    }
}

/// Returns the `rate` function of a lossy link for [`simulate`]. Up to 120 ms, in the slow start of
/// the first stream, the rate is `burst`. Later, the rate is `each` for each connection.
fn lossy(burst: u64, each: u64) -> impl Fn(u32, usize) -> (u64, bool) {
    move |ms, n| (if ms <= 120 { burst } else { each * n as u64 }, true)
}

#[test]
fn burst_of_the_first_stream_keeps_the_split() {
    // In congestion avoidance, six connections are slower than the burst was.
    for burst in [1_000_000, 4_000_000, 7_000_000, 20_000_000] {
        let (connections, ms) = simulate(30_000_000, lossy(burst, 1_000_000));
        assert_eq!(connections.last(), Some(&6), "{burst}: {connections:?}");
        assert!(ms < 6_500, "{burst}: {ms} ms");
    }
}

#[test]
fn burst_before_a_total_limit_ends_the_split() {
    for burst in [3_000_000, 6_000_000, 20_000_000] {
        let total = |ms: u32, _| (if ms <= 120 { burst } else { 3_000_000 }, true);
        let (connections, _) = simulate(30_000_000, total);
        assert_eq!(connections.last(), Some(&1), "{burst}: {connections:?}");
    }
}

/// A connection on a link that loses one packet in a hundred: its congestion window, and whether
/// its slow start goes on.
struct LossyConnection {
    packets: u64,
    is_in_slow_start: bool,
}

impl LossyConnection {
    const ROUND_TRIP_MS: u32 = 20;
    const PACKET: u64 = 1400;

    fn new() -> LossyConnection {
        LossyConnection { packets: 32, is_in_slow_start: true }
    }

    /// Returns the bytes that arrive in a round trip. `random` returns a random number below its
    /// argument.
    fn round_trip(&mut self, mut random: impl FnMut(u64) -> u64) -> u64 {
        let sent = self.packets;
        let lost = (0..sent).filter(|_| random(100) == 0).count() as u64;
        self.is_in_slow_start &= lost == 0;
        self.packets = match lost {
            0 if self.is_in_slow_start => sent * 2,
            0 => sent + 1,
            _ => (sent * 7 / 10).max(2),
        };
        (sent - lost) * Self::PACKET
    }
}

#[test]
fn simulated_lossy_link_keeps_all_connections() {
    for seed in 1..=200_u64 {
        let state = core::cell::Cell::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let random = |below: u64| {
            state.set(state.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
            (state.get() >> 33) % below
        };
        let links = core::cell::RefCell::new(Vec::<LossyConnection>::new());
        let now_rate = core::cell::Cell::new(0);
        let rate = |ms: u32, connections: usize| {
            if ms.is_multiple_of(LossyConnection::ROUND_TRIP_MS) {
                let mut links = links.borrow_mut();
                links.resize_with(connections, LossyConnection::new);
                let bytes: u64 = links.iter_mut().map(|link| link.round_trip(random)).sum();
                now_rate.set(bytes * 1000 / u64::from(LossyConnection::ROUND_TRIP_MS));
            }
            (now_rate.get(), true)
        };
        let (connections, ms) = simulate(40_000_000, rate);
        assert_eq!(connections.last(), Some(&6), "{seed}: {connections:?} {ms}");
        assert!(ms < 8_000, "{seed}: {ms} ms, {connections:?}");
    }
}
