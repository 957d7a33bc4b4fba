//! Tests of the pause before a refused request is sent again.

use super::*;
use crate::request::{RetryObserver, RetryPause};

fn once() -> RetryRules {
    RetryRules { max: 1, ..RetryRules::default() }
}

fn refused() -> Error {
    Error::new(ErrorKind::Http2Stream, "refused")
}

#[test]
fn repetition_of_a_refused_request_continues_its_attempt() {
    let caps = haul_policy::queue::QueueCaps { total: 1, per_host: 1 };
    let slot = haul_policy::queue::JobQueue::<(), u8>::new(caps).push(&0, 0, ());
    let rules = RetryRules { delay: Some(SECOND), ..once() };
    let mut transfer = transfer(RequestOptions { max_time: Some(SECOND * 60), ..retrying(rules) });
    let (deadline, now) = (transfer.deadline().unwrap(), Instant::now());
    let pause = transfer.backoff(0, &refused(), now).unwrap();
    transfer.resume_with_slot(slot, true, now + pause);
    assert_eq!(transfer.deadline(), Some(deadline));
    let pause = transfer.backoff(1, &refused(), now).unwrap();
    transfer.resume_with_slot(slot, true, now + pause + SECOND * 9);
    assert_eq!(transfer.deadline(), Some(deadline + SECOND * 9), "the wait for the slot");
}

#[test]
fn pause_of_a_refused_request_obeys_retry_rules() {
    let pause = |rules: RetryRules| transfer(retrying(rules)).backoff(0, &refused(), Instant::now());
    let delay = Some(SECOND * 60);
    assert_eq!(pause(RetryRules { delay, ..once() }), delay);
    let without_retries = pause(RetryRules { delay, max: 0, ..once() });
    assert!(without_retries.is_some_and(|pause| pause < SECOND * 10), "{without_retries:?}");
    assert_eq!(pause(RetryRules { delay, max_time: Some(SECOND * 30), ..once() }), None);
}

#[test]
fn pause_of_a_refused_request_is_reported() {
    #[derive(Debug, Default)]
    struct Waits(Mutex<Vec<Duration>>);

    impl RetryObserver for Waits {
        fn begins(&self, pause: &RetryPause<'_>) {
            self.0.lock().unwrap().push(pause.wait);
        }
    }

    let waits = Arc::new(Waits::default());
    let rules = RetryRules { delay: Some(SECOND), ..once() };
    let mut transfer = transfer(RequestOptions { pauses: Some(Arc::clone(&waits) as _), ..retrying(rules) });
    transfer.backoff(0, &refused(), Instant::now());
    assert_eq!(*waits.0.lock().unwrap(), [SECOND]);
}
