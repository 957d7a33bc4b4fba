//! Wakers for async tasks of the program. A woken task makes the descriptor of a batch readable,
//! which the program's event loop watches.

use std::sync::{Arc, Weak};
use std::task::Wake;

use crate::std_or_loom_sync::atomic::{AtomicBool, Ordering};

/// A queue of the program's tasks that were woken. The program takes their ids from the queue and
/// polls the tasks.
pub(super) trait WokenTaskQueue: Send + Sync + Sized + 'static {
    /// Adds the waker's task to the queue, and notifies the program.
    fn add_woken(&self, waker: Arc<TaskWaker<Self>>);
}

/// A waker for a task of the program, made by [`Batch::task_waker`](super::Batch::task_waker).
pub(super) struct TaskWaker<Q: WokenTaskQueue> {
    queue: Weak<Q>,
    task: u64,
    /// True while the task is in the queue of woken tasks.
    is_woken: AtomicBool,
}

impl<Q: WokenTaskQueue> TaskWaker<Q> {
    pub(super) fn new(queue: Weak<Q>, task: u64) -> Self {
        Self { queue, task, is_woken: AtomicBool::new(false) }
    }

    /// Returns the id of the task. Call this after the waker was removed from the queue. The next
    /// wake-up then adds the waker to the queue again.
    pub(super) fn take(&self) -> u64 {
        self.is_woken.store(false, Ordering::SeqCst);
        self.task
    }
}

impl<Q: WokenTaskQueue> Wake for TaskWaker<Q> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_woken.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Some(queue) = self.queue.upgrade() {
            queue.add_woken(Arc::clone(self));
        }
    }
}
