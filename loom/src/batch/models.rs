//! The models of a batch's memory budget and of its task wakers.

use std::sync::Arc;
use std::task::Waker;

use loom::sync::{Condvar, Mutex};
use loom::thread;

use super::memory_budget::MemoryBudget;
use super::task_waker::{TaskWaker, WokenTaskQueue};
use crate::sink::TransferWaker;

/// A connection driver that waits for free memory in a memory budget.
#[derive(Default)]
struct WaitingDriver {
    is_woken: Mutex<bool>,
    woken: Condvar,
}

impl TransferWaker for WaitingDriver {
    fn wake(&self, _: usize) {
        *self.is_woken.lock().unwrap() = true;
        self.woken.notify_one();
    }
}

impl WaitingDriver {
    /// Waits until the budget allows request `id` to receive a byte. Returns the allowed number of
    /// bytes.
    fn wait_for_credit(self: &Arc<Self>, budget: &MemoryBudget, id: u64) -> u64 {
        let waker: Arc<dyn TransferWaker> = Arc::clone(self) as _;
        loop {
            let credit = budget.credit(1, id, Some(&waker), 0);
            if credit > 0 {
                return credit;
            }
            let mut is_woken = self.is_woken.lock().unwrap();
            while !*is_woken {
                is_woken = self.woken.wait(is_woken).unwrap();
            }
            *is_woken = false;
        }
    }
}

/// Runs a driver for each request in `ids` on a full memory budget. Then calls `change`, which must
/// allow every driver to continue.
fn full_budget(change: fn(&MemoryBudget), ids: &'static [u64]) {
    loom::model(move || {
        let budget = Arc::new(MemoryBudget::new(1 << 20));
        budget.add(1 << 20);
        budget.set_nothing_ready(false);
        let drivers: Vec<_> = ids
            .iter()
            .map(|&id| {
                let budget = Arc::clone(&budget);
                thread::spawn(move || Arc::new(WaitingDriver::default()).wait_for_credit(&budget, id))
            })
            .collect();
        change(&budget);
        drivers.into_iter().for_each(|driver| assert_eq!(driver.join().unwrap(), 1));
    });
}

#[test]
fn released_memory_wakes_each_waiting_driver() {
    full_budget(|budget| assert!(budget.release(1 << 19)), &[1, 2]);
}

#[test]
fn driver_of_the_first_request_is_woken() {
    let first = |budget: &MemoryBudget| {
        budget.set_first(Some(7));
        budget.set_nothing_ready(true);
    };
    full_budget(first, &[7]);
    let ready = |budget: &MemoryBudget| {
        budget.set_nothing_ready(true);
        budget.set_first(Some(7));
    };
    full_budget(ready, &[7]);
}

/// The woken tasks of a completion queue, and the condition variable that announces them.
#[derive(Default)]
struct ModelTaskQueue {
    woken: Mutex<Vec<Arc<TaskWaker<ModelTaskQueue>>>>,
    notified: Condvar,
}

impl WokenTaskQueue for ModelTaskQueue {
    fn add_woken(&self, waker: Arc<TaskWaker<Self>>) {
        self.woken.lock().unwrap().push(waker);
        self.notified.notify_one();
    }
}

impl ModelTaskQueue {
    fn take_woken(&self) -> Vec<u64> {
        let mut woken = self.woken.lock().unwrap();
        while woken.is_empty() {
            woken = self.notified.wait(woken).unwrap();
        }
        let woken = std::mem::take(&mut *woken);
        woken.iter().map(|waker| waker.take()).collect()
    }
}

/// Wakes a task from two threads, each of which first adds to a shared value. Checks that the task
/// sees both changes. A wake must not be lost if it comes after the task was removed from the list
/// of woken tasks and before the task reads the value.
#[test]
fn task_sees_the_change_of_each_wake() {
    loom::model(|| {
        let queue = Arc::new(ModelTaskQueue::default());
        let waker = Waker::from(Arc::new(TaskWaker::new(Arc::downgrade(&queue), 3)));
        let values = Arc::new(Mutex::new(0));
        let threads = [1, 2].map(|value| {
            let (waker, values) = (waker.clone(), Arc::clone(&values));
            thread::spawn(move || {
                *values.lock().unwrap() += value;
                waker.wake();
            })
        });
        while *values.lock().unwrap() < 3 {
            assert_eq!(queue.take_woken(), [3]);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
