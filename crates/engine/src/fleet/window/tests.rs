use super::*;

/// Collects what leaves; the flag says whether it has room.
#[derive(Default, Clone)]
struct Seen(Arc<Mutex<(Vec<u8>, bool)>>);

impl Seen {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().0.clone()).unwrap()
    }

    fn fill(&self, full: bool) {
        self.0.lock().unwrap().1 = full;
    }
}

impl Outlet for Seen {
    fn bytes(&mut self, bytes: &[u8]) -> Result<Room> {
        self.0.lock().unwrap().0.extend_from_slice(bytes);
        self.flush()
    }

    fn records(&mut self, records: &mut Records) -> Result<Room> {
        let lines = records.to_lines();
        records.clear();
        self.bytes(&lines)
    }

    fn rest(&mut self, tail: Option<Tail>) -> Result<Option<Tail>> {
        Ok(tail)
    }

    fn flush(&mut self) -> Result<Room> {
        Ok(if self.0.lock().unwrap().1 { Room::Full } else { Room::Free })
    }
}

/// The same, but for a stage and not for a printer.
struct Eager(Seen);

impl Outlet for Eager {
    fn bytes(&mut self, bytes: &[u8]) -> Result<Room> {
        self.0.bytes(bytes)
    }

    fn records(&mut self, records: &mut Records) -> Result<Room> {
        self.0.records(records)
    }

    fn rest(&mut self, tail: Option<Tail>) -> Result<Option<Tail>> {
        Ok(tail)
    }

    fn flush(&mut self) -> Result<Room> {
        self.0.flush()
    }

    fn may_run_ahead(&self) -> bool {
        true
    }
}

#[derive(Default)]
struct Woken(Mutex<Vec<usize>>);

impl Wake for Woken {
    fn wake(&self, token: usize) {
        self.0.lock().unwrap().push(token);
    }
}

fn window(order: Order, budget: usize, slots: u64) -> (Window, Seen) {
    let seen = Seen::default();
    let window = Window::new(order, budget, Box::new(seen.clone()));
    for slot in 0..slots {
        assert_eq!(window.reserve(), slot);
    }
    (window, seen)
}

fn put(window: &Window, slot: u64, text: &str) {
    window.bytes(slot, Lease::borrowed(text.as_bytes())).unwrap();
}

#[test]
fn the_head_streams_and_the_others_wait_for_it() {
    let (window, seen) = window(Order::Input, 10_000, 3);
    put(&window, 1, "b");
    put(&window, 0, "a");
    assert_eq!(seen.text(), "a");
    window.finish(1).unwrap();
    put(&window, 2, "c");
    put(&window, 0, "a");
    window.finish(0).unwrap();
    assert_eq!(seen.text(), "aabc");
    put(&window, 2, "c");
    assert_eq!(seen.text(), "aabcc");
    window.finish(2).unwrap();
    assert!(window.is_empty());
}

#[test]
fn behind_the_head_credit_ends_at_the_budget() {
    let (window, seen) = window(Order::Input, 2000, 3);
    let woken = Arc::new(Woken::default());
    let waker: Arc<dyn Wake> = woken.clone();
    put(&window, 1, &"b".repeat(1700));
    assert_eq!(window.credit(2, Some(&waker), 22), 0);
    assert_eq!(window.credit(0, Some(&waker), 20), u64::MAX);
    window.finish(0).unwrap();
    assert_eq!(seen.text().len(), 1700);
    assert_eq!(*woken.0.lock().unwrap(), [22]);
    assert!(window.credit(2, None, 0) > 1000);
}

#[test]
fn a_full_outlet_takes_no_credit_and_gives_it_back_when_flushed() {
    let (window, seen) = window(Order::Input, 10_000, 2);
    let woken = Arc::new(Woken::default());
    let waker: Arc<dyn Wake> = woken.clone();
    seen.fill(true);
    put(&window, 0, "a");
    assert_eq!(window.credit(0, Some(&waker), 7), 0);
    put(&window, 0, "b");
    window.finish(0).unwrap();
    put(&window, 1, "c");
    assert_eq!(seen.text(), "a");
    assert_eq!(window.flush().unwrap(), Room::Full);
    seen.fill(false);
    assert_eq!(window.flush().unwrap(), Room::Free);
    assert_eq!(seen.text(), "abc");
    assert_eq!(*woken.0.lock().unwrap(), [7]);
}

#[test]
fn whole_bodies_leave_as_they_are_completed() {
    let (window, seen) = window(Order::Whole, 10_000, 3);
    put(&window, 0, "a");
    put(&window, 2, "c");
    put(&window, 1, "b");
    window.finish(2).unwrap();
    put(&window, 0, "a");
    window.finish(0).unwrap();
    window.finish(1).unwrap();
    assert_eq!(seen.text(), "caab");
    assert!(window.is_empty());
}

#[test]
fn a_body_larger_than_the_budget_gets_the_outlet_to_itself() {
    let (window, seen) = window(Order::Whole, 1000, 2);
    let waker: Arc<dyn Wake> = Arc::new(Woken::default());
    put(&window, 0, &"a".repeat(900));
    assert_eq!(window.credit(1, None, 0), 0, "who only looks claims nothing");
    assert_eq!(window.credit(1, Some(&waker), 0), u64::MAX, "it claims the outlet");
    put(&window, 1, "b");
    window.finish(0).unwrap();
    put(&window, 1, "b");
    assert_eq!(seen.text(), "bb");
    window.finish(1).unwrap();
    assert_eq!(seen.text(), format!("bb{}", "a".repeat(900)));
    assert!(window.is_empty());
}

#[test]
fn a_claim_ends_when_its_body_is_tried_again() {
    let (window, seen) = window(Order::Whole, 2000, 2);
    put(&window, 0, &"a".repeat(1800));
    let woken = Arc::new(Woken::default());
    let waker: Arc<dyn Wake> = woken.clone();
    assert_eq!(window.credit(1, Some(&waker), 0), u64::MAX, "it claims the outlet");
    assert_eq!(window.credit(0, Some(&waker), 10), 0);
    assert!(window.restart(1), "nothing of it has left");
    assert_eq!(*woken.0.lock().unwrap(), [10], "another may have it meanwhile");
    window.finish(0).unwrap();
    assert_eq!(seen.text().len(), 1800);
    put(&window, 1, "b");
    window.finish(1).unwrap();
    assert!(window.is_empty());
}

#[test]
fn the_first_of_those_that_leave_whole_waits_as_the_others_do() {
    let (window, _) = window(Order::Whole, 2000, 3);
    put(&window, 1, &"b".repeat(1800));
    let woken = Arc::new(Woken::default());
    let waker: Arc<dyn Wake> = woken.clone();
    assert_eq!(window.credit(2, Some(&waker), 12), u64::MAX, "it claims the outlet");
    assert_eq!(window.credit(0, Some(&waker), 10), 0);
    put(&window, 2, "c");
    window.flush().unwrap();
    assert!(woken.0.lock().unwrap().is_empty(), "nothing has become free");
    window.finish(2).unwrap();
    assert_eq!(*woken.0.lock().unwrap(), [10]);
}

#[test]
fn what_feeds_a_full_stage_runs_ahead_inside_the_budget() {
    let seen = Seen::default();
    let window = Window::new(Order::Free, 2000, Box::new(Eager(seen.clone())));
    let slot = window.reserve();
    seen.fill(true);
    put(&window, slot, "a");
    let credit = window.credit(slot, None, 0);
    assert!((1..=2000).contains(&credit), "{credit}");
    put(&window, slot, &"b".repeat(2000));
    let woken = Arc::new(Woken::default());
    let waker: Arc<dyn Wake> = woken.clone();
    assert_eq!(window.credit(slot, Some(&waker), 5), 0);
    window.finish(slot).unwrap();
    assert_eq!(seen.text(), "a");
    seen.fill(false);
    window.flush().unwrap();
    assert_eq!(seen.text().len(), 2001);
    assert!(window.is_empty());
    assert_eq!(*woken.0.lock().unwrap(), [5]);
}

#[test]
fn a_record_half_out_is_not_interrupted_by_a_claim() {
    let (window, seen) = window(Order::Whole, 600, 2);
    put(&window, 0, "a");
    put(&window, 0, "a");
    seen.fill(true);
    window.finish(0).unwrap();
    put(&window, 1, &"b".repeat(600));
    let waker: Arc<dyn Wake> = Arc::new(Woken::default());
    assert_eq!(window.credit(1, Some(&waker), 0), 0, "the outlet belongs to the record that is leaving");
    seen.fill(false);
    window.flush().unwrap();
    window.finish(1).unwrap();
    assert_eq!(seen.text(), format!("aa{}", "b".repeat(600)));
}

#[test]
fn what_has_left_cannot_be_taken_back() {
    let (window, seen) = window(Order::Input, 10_000, 2);
    put(&window, 1, "wrong");
    assert!(window.restart(1));
    put(&window, 1, "right");
    put(&window, 0, "x");
    assert!(!window.restart(0));
    window.finish(0).unwrap();
    window.finish(1).unwrap();
    assert_eq!(seen.text(), "xright");
}

#[test]
fn free_slots_all_stream() {
    let (window, seen) = window(Order::Free, 100, 3);
    put(&window, 2, "c");
    put(&window, 0, "a");
    window.finish(2).unwrap();
    window.finish(0).unwrap();
    window.finish(1).unwrap();
    assert_eq!(seen.text(), "ca");
    assert!(window.is_empty());
}
