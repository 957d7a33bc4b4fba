//! Tests of rate limits, turns, and the times at which requests start.

use super::*;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const RECORD: u64 = 16 * 1024;

/// A xorshift random number generator.
struct TestRng(u64);

impl TestRng {
    fn up_to(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        if most == u64::MAX { self.0 } else { self.0 % (most + 1) }
    }
}

/// Returns the largest number of bytes taken in any window of one second. The busiest window
/// begins and ends when bytes are taken, so only such windows are checked.
fn busiest_second(takes: &[(MonotonicTime, u64)]) -> u64 {
    let (mut oldest, mut sum, mut most) = (0, 0, 0);
    for (at, bytes) in takes {
        sum += bytes;
        while takes[oldest].0.0 + SECOND <= at.0 {
            sum -= takes[oldest].1;
            oldest += 1;
        }
        most = most.max(sum);
    }
    most
}

/// Returns the smallest number of bytes taken in any window of one second before `end`. Such a
/// window begins just after bytes are taken.
fn idlest_second(takes: &[(MonotonicTime, u64)], end: MonotonicTime) -> u64 {
    let until = |time: u64| takes.partition_point(|(at, _)| at.0 <= time);
    let starts = takes.iter().map(|(at, _)| at.0).take_while(|at| at + SECOND <= end.0);
    starts.map(|at| takes[until(at)..until(at + SECOND)].iter().map(|(_, n)| n).sum()).min().unwrap_or(0)
}

/// Simulates ten seconds of `takers` transfers that share a limit of `rate` bytes per second. Each
/// transfer takes bytes, in multiples of `whole`, at most `late` after bytes are available. Returns
/// the time and size of each take, and the end time.
fn run(rate: u64, takers: u64, late: Duration, whole: u64, seed: u64) -> (Vec<(MonotonicTime, u64)>, MonotonicTime) {
    let mut dice = TestRng(seed | 1);
    let mut now = MonotonicTime(7 * SECOND);
    let end = MonotonicTime(17 * SECOND);
    let mut bucket = TokenBucket::new(rate, now);
    let mut takes = Vec::new();
    while now <= end {
        for _ in 0..takers {
            let there = bucket.available(now);
            if there > 0 {
                let moved = (1 + dice.up_to(there - 1)).next_multiple_of(whole);
                bucket.remove(moved);
                takes.push((now, moved));
            }
        }
        let ready = bucket.ready_at(now, dice.up_to(rate));
        assert!(bucket.clone().available(ready) > 0);
        now = ready.max(now + Duration::from_nanos(dice.up_to(late.as_nanos() as u64)));
    }
    (takes, end)
}

#[test]
fn rate_is_kept_within_five_percent_each_second() {
    for (seed, rate) in [3_000, 10_240, 100_000, 1 << 20, 36_000_000, 1 << 30].into_iter().enumerate() {
        for takers in [1, 2, 7, 64] {
            let (takes, end) = run(rate, takers, Duration::from_millis(2), 1, seed as u64 + 1000 * takers);
            let (low, high) = (idlest_second(&takes, end), busiest_second(&takes));
            assert!(high <= rate + rate / 20, "{rate} B/s, {takers} takers: {high}");
            assert!(low >= rate - rate / 20, "{rate} B/s, {takers} takers: {low}");
        }
    }
}

#[test]
fn transfers_of_whole_records_keep_the_rate() {
    for rate in [900_000, 1 << 20, 10 << 20, 500 << 20] {
        for takers in [1, 5] {
            let (takes, end) = run(rate, takers, Duration::from_millis(1), RECORD, rate + takers);
            let (low, high) = (idlest_second(&takes, end), busiest_second(&takes));
            assert!(high <= rate + rate / 20, "{rate} B/s, {takers} takers: {high}");
            assert!(low >= rate - rate / 20, "{rate} B/s, {takers} takers: {low}");
        }
    }
    // At a slow rate one record is seconds: then it is exact on the whole, to one record.
    let (takes, _) = run(1000, 3, Duration::ZERO, RECORD, 5);
    let sum: u64 = takes.iter().map(|(_, bytes)| bytes).sum();
    assert!(sum <= 10_000 + RECORD + 31 && takes.len() == 1, "{takes:?}");
}

#[test]
fn debt_delays_all_transfers_until_it_is_paid() {
    let start = MonotonicTime(0);
    let mut bucket = TokenBucket::new(1000, start);
    bucket.remove(3031);
    let ready = bucket.ready_at(start, 1);
    assert_eq!(ready, MonotonicTime(3 * SECOND + 31 * SECOND / 1000));
    assert_eq!(bucket.available(MonotonicTime(ready.0 - 1)), 0);
    assert_eq!(bucket.available(ready), 31);
}

#[test]
fn unused_rate_does_not_accumulate() {
    for rate in [1, 31, 1000, 1 << 20, u64::MAX] {
        let mut bucket = TokenBucket::new(rate, MonotonicTime(0));
        let full = bucket.available(MonotonicTime(0));
        assert_eq!(full, bucket.burst());
        assert!(full <= (rate / 20).max(1));
        assert_eq!(bucket.available(MonotonicTime(3600 * SECOND)), full);
        assert_eq!(bucket.available(MonotonicTime(u64::MAX)), full);
    }
}

#[test]
fn slow_rates_need_few_wakeups() {
    for (rate, most) in
        [(1, 1), (20, 20), (100, 34), (1000, 33), (50_000, 33), (200_000, 50), (1 << 20, 129), (1 << 40, 129)]
    {
        let mut bucket = TokenBucket::new(rate, MonotonicTime(0));
        bucket.remove(bucket.burst());
        let (mut now, mut wakes) = (MonotonicTime(0), 0);
        while now < MonotonicTime(10 * SECOND) {
            now = bucket.ready_at(now, 1);
            let there = bucket.available(now);
            assert!(there > 0, "a wake-up for nothing at {rate} B/s");
            bucket.remove(there);
            wakes += 1;
        }
        assert!(wakes <= 10 * most, "{wakes} at {rate} B/s");
    }
}

#[test]
fn clock_that_goes_backwards_adds_no_tokens() {
    let mut bucket = TokenBucket::new(1_000_000, MonotonicTime(SECOND));
    bucket.remove(bucket.burst());
    assert_eq!(bucket.available(MonotonicTime(SECOND + SECOND / 100)), 10_000);
    bucket.remove(10_000);
    assert_eq!(bucket.available(MonotonicTime(0)), 0);
    assert_eq!(bucket.available(MonotonicTime(SECOND + SECOND / 100)), 0);
    let ready = bucket.ready_at(MonotonicTime(0), 10_000);
    assert_eq!(ready, MonotonicTime(SECOND + SECOND / 50));
    assert_eq!(bucket.available(ready), 10_000);
}

#[test]
fn extreme_rates_do_not_overflow() {
    let mut bucket = TokenBucket::new(1, MonotonicTime(0));
    for _ in 0..3 {
        bucket.remove(u64::MAX);
    }
    assert_eq!(bucket.ready_at(MonotonicTime(0), 1), MonotonicTime(u64::MAX));
    assert_eq!(bucket.available(MonotonicTime(u64::MAX)), 0);
    let mut bucket = TokenBucket::new(u64::MAX, MonotonicTime(0));
    bucket.remove(u64::MAX);
    assert!(bucket.ready_at(MonotonicTime(0), u64::MAX) <= MonotonicTime(SECOND + SECOND / 16));
    assert_eq!(TokenBucket::new(0, MonotonicTime(0)).burst(), 1);
}

#[test]
fn new_transfers_wait_until_debt_is_paid() {
    let start = MonotonicTime(SECOND);
    let mut bucket = SharedBucket::new(1000, start);
    assert_eq!(bucket.debt_until(start), None);
    bucket.remove(31);
    assert_eq!(bucket.debt_until(start), None, "it is empty, but owes nothing");
    bucket.remove(500);
    assert_eq!(bucket.debt_until(start), Some(MonotonicTime(SECOND * 3 / 2)));
    assert_eq!(bucket.debt_until(MonotonicTime(SECOND * 3 / 2)), None);
}

#[test]
fn shared_bucket_gives_transfers_similar_shares() {
    for (rate, takers) in [(100_000, 3), (1 << 20, 64), (100 << 20, 200)] {
        let (mut now, mut dice) = (MonotonicTime(SECOND), TestRng(rate));
        let mut bucket = SharedBucket::new(rate, now);
        let (mut turns, mut taken) = (vec![now; takers], vec![0; takers]);
        let mut takes = Vec::new();
        while now.0 < 11 * SECOND {
            for taker in (0..takers).filter(|taker| turns[*taker] <= now).collect::<Vec<_>>() {
                // The first in each round would take everything, if all woke up at once.
                while turns[taker] <= now {
                    if let Ok(bytes) = bucket.request_bytes(u64::MAX, now, &mut turns[taker]) {
                        bucket.remove(bytes);
                        taken[taker] += bytes;
                        takes.push((now, bytes));
                    }
                }
            }
            now = turns.iter().min().copied().unwrap().max(now + Duration::from_nanos(dice.up_to(1_500_000)));
        }
        let (low, high) = (idlest_second(&takes, now), busiest_second(&takes));
        assert!(low >= rate - rate / 20 && high <= rate + rate / 20, "{rate} B/s: {low} to {high}");
        let share = 10 * rate / takers as u64;
        let (least, most) = (taken.iter().min().unwrap(), taken.iter().max().unwrap());
        assert!(*least > share / 2 && *most < share * 2, "{rate} B/s, {takers} takers: {least} to {most}");
    }
}

#[test]
fn late_request_starts_keep_the_rate() {
    for (interval, late) in [(1_000_000, 1_500_000), (10_000_000, 2_000_000), (500_000_000, 90_000_000)] {
        let (mut schedule, mut dice) = (StartSchedule::default(), TestRng(interval));
        let (mut now, mut starts) = (MonotonicTime(3 * SECOND), 0);
        while now < MonotonicTime(13 * SECOND) {
            starts += 1;
            let next = schedule.record_start(now, Duration::from_nanos(interval));
            now = if next > now { MonotonicTime(next.0 + dice.up_to(late)) } else { now };
        }
        let wanted = 10 * SECOND / interval;
        assert!((wanted - wanted / 100 - 1..=wanted + 1).contains(&starts), "{starts} at {interval} ns");
    }
}

#[test]
fn number_of_remembered_host_schedules_is_bounded() {
    let mut hosts = HostSchedules::new(Duration::from_secs(3600));
    for host in 0..200_000_u64 {
        assert_eq!(hosts.next_start(&host), None);
        let next = hosts.record_start(&host, MonotonicTime(host));
        assert_eq!((hosts.next_start(&host), next), (Some(next), MonotonicTime(host + 3600 * SECOND)));
        assert!(hosts.host_count() <= MAX_HOSTS);
    }
    // Those with the nearest time are dropped first.
    assert!((170_000..200_000).all(|host| hosts.next_start(&host).is_some()));
    let mut hosts = HostSchedules::new(Duration::from_millis(1));
    for host in 0..10_000_u64 {
        hosts.record_start(&host, MonotonicTime(host * SECOND));
    }
    assert!(hosts.host_count() <= 64, "those whose next start has passed are dropped");
}

#[test]
fn request_starts_missed_long_ago_are_dropped() {
    let (mut schedule, interval) = (StartSchedule::default(), Duration::from_millis(10));
    schedule.record_start(MonotonicTime(0), interval);
    let mut starts = 0;
    while schedule.next_start().is_none_or(|next| next <= MonotonicTime(SECOND)) {
        schedule.record_start(MonotonicTime(SECOND), interval);
        starts += 1;
    }
    assert_eq!(starts, 1);
    // 100 ms are made up for.
    while schedule.next_start().is_none_or(|next| next.0 <= SECOND + SECOND / 10) {
        schedule.record_start(MonotonicTime(SECOND + SECOND / 10), interval);
        starts += 1;
    }
    assert_eq!(starts, 11);
    let endless = schedule.record_start(MonotonicTime(u64::MAX), Duration::MAX);
    assert_eq!(endless, MonotonicTime(u64::MAX));
}

proptest! {
    #[test]
    fn promised_tokens_are_available_at_ready_time(
        rate in prop_oneof![1..100u64, 1..10_000_000u64, any::<u64>()],
        ops in proptest::collection::vec((0..SECOND, 0..200_000u64, any::<u64>()), 1..20),
    ) {
        let (mut now, mut bucket) = (MonotonicTime(0), TokenBucket::new(rate, MonotonicTime(0)));
        for (pause, bytes, want) in ops {
            now = now + Duration::from_nanos(pause);
            bucket.remove(bytes);
            let ready = bucket.ready_at(now, want);
            let want = want.clamp(1, bucket.burst());
            prop_assert!(ready >= now);
            if ready > now && ready < MonotonicTime(u64::MAX) {
                prop_assert!(bucket.clone().available(MonotonicTime(ready.0 - 1)) < want.max(bucket.grant), "too late");
            }
            prop_assert!(ready == MonotonicTime(u64::MAX) || bucket.clone().available(ready) >= want, "too early");
        }
    }
}

#[test]
fn full_schedules_drop_the_earliest_quarter() {
    let mut schedules = HostSchedules::new(Duration::from_secs(3600));
    for host in 0..=MAX_HOSTS {
        schedules.record_start(&host, MonotonicTime(host as u64));
    }
    assert_eq!(schedules.host_count(), MAX_HOSTS - MAX_HOSTS / 4);
    assert_eq!(schedules.next_start(&(MAX_HOSTS / 4)), None);
    assert!(schedules.next_start(&(MAX_HOSTS / 4 + 1)).is_some());
}

#[test]
fn token_bucket_holds_31_milliseconds_of_the_rate() {
    let sizes = |rate| {
        let bucket = TokenBucket::new(rate, MonotonicTime(0));
        (bucket.burst, bucket.grant)
    };
    assert_eq!([0, 31, 64].map(sizes), [(1, 1), (1, 1), (2, 2)]);
    assert_eq!([4095 * 32, 4097 * 32].map(sizes), [(4095, 4095), (4097, 4096)]);
    assert_eq!(sizes(4 * 4097 * 32), (4 * 4097, 4097));
}

#[test]
fn waiting_transfers_get_turns_one_after_another() {
    let now = MonotonicTime(SECOND);
    let mut bucket = SharedBucket::new(3_200_000, now);
    let ask = |bucket: &mut SharedBucket, want| bucket.request_bytes(want, now, &mut MonotonicTime(0));
    assert_eq!((ask(&mut bucket, 7), ask(&mut bucket, u64::MAX)), (Ok(7), Ok(100_000)));
    bucket.remove(100_000);
    let turns: Vec<u64> = (0..3).map(|_| ask(&mut bucket, 1).unwrap_err().since(now).as_nanos() as u64).collect();
    assert_eq!(turns, [7_812_500, 15_625_000, 23_437_500], "25,000 bytes each");
    let last = (0..2000).map(|_| ask(&mut bucket, 1).unwrap_err()).max();
    assert_eq!(last, Some(now + LONGEST_TURN));
}

#[test]
fn asking_before_the_turn_delays_nobody() {
    let now = MonotonicTime(SECOND);
    let mut bucket = SharedBucket::new(3_200_000, now);
    bucket.remove(100_000);
    let mut turns = [MonotonicTime(0); 2];
    let first = bucket.request_bytes(1, now, &mut turns[0]).unwrap_err();
    for step in 0..1000 {
        let early = now + Duration::from_nanos(step);
        assert_eq!(bucket.request_bytes(1, early, &mut turns[0]), Err(first));
    }
    let second = bucket.request_bytes(1, now, &mut turns[1]).unwrap_err();
    assert_eq!(second.since(first), first.since(now));
    assert_eq!(bucket.request_bytes(u64::MAX, first, &mut turns[0]), Ok(25_000));
}

#[test]
fn start_late_by_a_tenth_is_made_up_for() {
    let (zero, interval) = (MonotonicTime(0), Duration::from_secs(1));
    let after = |late| {
        let mut schedule = StartSchedule::default();
        schedule.record_start(zero, interval);
        schedule.record_start(zero + interval + late, interval).since(zero)
    };
    assert_eq!(after(MAX_CATCH_UP), interval * 2);
    let later = MAX_CATCH_UP + Duration::from_nanos(1);
    assert_eq!(after(later), interval * 2 + later);
    let mut endless = StartSchedule::default();
    assert_eq!(endless.record_start(zero, Duration::MAX), zero + LONGEST_INTERVAL);
}

#[test]
fn expired_host_schedules_are_dropped_at_64() {
    let count = |hosts: u64, past| {
        let mut schedules = HostSchedules::new(Duration::from_secs(1));
        (0..hosts).for_each(|host| {
            schedules.record_start(&host, MonotonicTime(0));
        });
        schedules.record_start(&hosts, MonotonicTime(SECOND) + MAX_CATCH_UP + Duration::from_nanos(past));
        (schedules.host_count(), schedules.sweep_at)
    };
    assert_eq!([count(63, 1), count(64, 1), count(64, 0)], [(64, 64), (1, 64), (65, 128)]);
}

#[test]
fn starts_on_one_host_are_an_interval_apart() {
    let mut schedules = HostSchedules::new(Duration::from_secs(1));
    let next = ["a", "a", "b", "a"].map(|host| schedules.record_start(&host, MonotonicTime(0)));
    assert_eq!(next, [1, 2, 1, 3].map(|seconds| MonotonicTime(seconds * SECOND)));
}
