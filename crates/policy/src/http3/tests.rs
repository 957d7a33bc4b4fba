use super::*;

const NOW: MonotonicTime = MonotonicTime(7);

fn site() -> QuicEndpoint {
    QuicEndpoint::new("site.example", 443)
}

fn endpoint(number: u16) -> QuicEndpoint {
    QuicEndpoint::new("alt.example", number)
}

#[test]
fn policy_off_never_tries_http3() {
    let memory = Http3FailureHistory::default();
    assert_eq!(memory.choose(Http3Policy::Off, &site(), [endpoint(1)], NOW), Http3Choice::Off);
}

#[test]
fn learned_policy_tries_only_offered_endpoints() {
    let memory = Http3FailureHistory::default();
    assert_eq!(memory.choose(Http3Policy::Learned, &site(), [], NOW), Http3Choice::Off);
    let offered = [endpoint(1), endpoint(2)];
    assert_eq!(memory.choose(Http3Policy::Learned, &site(), offered, NOW), Http3Choice::Race(endpoint(1)));
}

#[test]
fn broken_http3_endpoint_is_followed_by_the_next() {
    let mut memory = Http3FailureHistory::default();
    let choose = |memory: &Http3FailureHistory, policy| memory.choose(policy, &site(), [endpoint(1)], NOW);
    memory.on_failed(&site(), &endpoint(1), Http3Failure::Broken, NOW);
    assert_eq!(choose(&memory, Http3Policy::Race), Http3Choice::Race(site()));
    memory.on_failed(&site(), &site(), Http3Failure::Broken, NOW);
    assert_eq!(choose(&memory, Http3Policy::Race), Http3Choice::Off);
    assert_eq!(choose(&memory, Http3Policy::Only), Http3Choice::Only(site()));
    let other = QuicEndpoint::new("other.example", 443);
    let others = memory.choose(Http3Policy::Learned, &other, [endpoint(1)], NOW);
    assert_eq!(others, Http3Choice::Race(endpoint(1)), "the failure is one of its origin");
}

#[test]
fn broken_time_doubles_until_the_endpoint_works() {
    let mut memory = Http3FailureHistory::default();
    let mut now = NOW;
    let mut life = FIRST_BROKEN_TIME;
    for _ in 0..20 {
        memory.on_failed(&site(), &site(), Http3Failure::Broken, now);
        // Further reports of the same time do not count.
        memory.on_failed(&site(), &site(), Http3Failure::Broken, now);
        let end = now + life;
        assert!(
            memory.is_broken(&site(), &site(), MonotonicTime(end.0 - 1)) && !memory.is_broken(&site(), &site(), end)
        );
        (now, life) = (end, (life * 2).min(MAX_BROKEN_TIME));
    }
    memory.on_connected(&site(), &site());
    memory.on_failed(&site(), &site(), Http3Failure::Broken, now);
    assert!(!memory.is_broken(&site(), &site(), now + FIRST_BROKEN_TIME));
}

#[test]
fn silent_http3_endpoint_gets_no_further_head_start() {
    let mut memory = Http3FailureHistory::default();
    assert!(memory.has_head_start(&site(), &site()));
    memory.on_failed(&site(), &site(), Http3Failure::Silent, NOW);
    let later = NOW + FIRST_BROKEN_TIME;
    assert_eq!(memory.choose(Http3Policy::Race, &site(), [], later), Http3Choice::Race(site()));
    assert!(!memory.has_head_start(&site(), &site()));
    memory.on_connected(&site(), &site());
    assert!(memory.has_head_start(&site(), &site()));
}

#[test]
fn several_silent_endpoints_stop_all_http3_attempts() {
    let mut memory = Http3FailureHistory::default();
    let fresh = QuicEndpoint::new("fresh.example", 443);
    for number in 0..4 {
        assert_eq!(memory.choose(Http3Policy::Race, &fresh, [], NOW), Http3Choice::Race(fresh.clone()));
        memory.on_failed(&endpoint(number), &endpoint(number), Http3Failure::Silent, NOW);
    }
    assert_eq!(memory.choose(Http3Policy::Race, &fresh, [], NOW), Http3Choice::Off);
    assert_eq!(memory.choose(Http3Policy::Only, &fresh, [], NOW), Http3Choice::Only(fresh.clone()));
    assert_eq!(memory.choose(Http3Policy::Race, &fresh, [], NOW + FIRST_BROKEN_TIME), Http3Choice::Race(fresh.clone()));
    assert!(!memory.has_head_start(&fresh, &fresh));
    memory.on_connected(&fresh, &fresh);
    assert!(memory.has_head_start(&fresh, &fresh));
}

#[test]
fn number_of_remembered_http3_failures_is_bounded() {
    let mut memory = Http3FailureHistory::default();
    for number in 0..MAX_FAILURES + 10 {
        let origin = QuicEndpoint::new(&format!("h{number}"), 443);
        memory.on_failed(&origin, &origin, Http3Failure::Broken, MonotonicTime(number as u64));
    }
    assert_eq!(memory.failures.len(), MAX_FAILURES);
    let first = QuicEndpoint::new("h0", 443);
    assert!(!memory.is_broken(&first, &first, MonotonicTime(0)));
}

proptest::proptest! {
    /// Compares the history with a model. An endpoint is tried if and only if its last failure is
    /// old enough. After an endpoint was silent, it gets no head start until it works again.
    #[test]
    fn http3_failure_history_agrees_with_a_model(steps in proptest::collection::vec((0u8..3, 0u64..2_000), 1..60)) {
        let mut memory = Http3FailureHistory::default();
        let mut now = NOW;
        let (mut until, mut count, mut was_silent) = (NOW, 0u32, false);
        for (event, seconds) in steps {
            now = now + Duration::from_secs(seconds);
            let is_tried = memory.choose(Http3Policy::Race, &site(), [], now) == Http3Choice::Race(site());
            assert_eq!(is_tried, now >= until);
            assert_eq!(memory.has_head_start(&site(), &site()), !was_silent);
            if !is_tried {
                continue;
            }
            if event == 0 {
                memory.on_connected(&site(), &site());
                (until, count, was_silent) = (now, 0, false);
                continue;
            }
            let failure = if event == 1 { Http3Failure::Silent } else { Http3Failure::Broken };
            memory.on_failed(&site(), &site(), failure, now);
            until = now + FIRST_BROKEN_TIME.saturating_mul(1 << count.min(16)).min(MAX_BROKEN_TIME);
            (count, was_silent) = (count + 1, was_silent || event == 1);
        }
    }
}

#[test]
fn history_is_empty_without_failures() {
    let mut memory = Http3FailureHistory::default();
    assert!(memory.is_empty());
    memory.on_failed(&site(), &endpoint(1), Http3Failure::Broken, NOW);
    assert!(!memory.is_empty());
    memory.on_connected(&site(), &endpoint(1));
    assert!(memory.is_empty());
}
