//! Detects whether a process is a forked child of the process that made its connections.
//!
//! A forked child has copies of its parent's descriptors, so both would send on the same
//! connections. The child has only the thread that forked, so locks that other threads held stay
//! locked. In the child, [`fork_count`] returns a new value. A client then creates its shared state
//! anew, and closes the inherited connections without sending anything. State that the program
//! shares between requests, such as a cookie jar, must stay: it is behind a [`ForkSafeLock`], which
//! no other thread holds at a fork.
//!
//! A handler of `pthread_atfork` costs nothing without a fork. The alternative, `getpid`, would
//! cost a system call for each request. A child made by a plain `clone(2)` or `vfork(2)`, which run
//! no handlers, may only call `exec`.
//!
//! ```
//! let before = haul::fork::fork_count();
//! assert_eq!(haul::fork::fork_count(), before);
//! ```

use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(unix)]
use std::time::Duration;

use crate::ignore_poison::IgnorePoison;

static FORK_COUNT: AtomicU32 = AtomicU32::new(0);
/// The number of threads that hold a [`ForkSafeLock`], or wait for one.
static LOCKING_THREADS: AtomicU32 = AtomicU32::new(0);
/// The number of threads that are about to fork. While it is not 0, no further thread takes a
/// [`ForkSafeLock`].
static FORKING_THREADS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The number of guards of [`ForkSafeLock`]s that the current thread holds.
    static HELD_GUARDS: Cell<u32> = const { Cell::new(0) };
}

/// The time between two checks of a thread that waits for a fork, or with a fork.
#[cfg(unix)]
const FORK_CHECK_INTERVAL: Duration = Duration::from_micros(20);

/// Waits until no other thread holds a [`ForkSafeLock`]. A thread that holds one itself does not
/// wait, because other threads may wait for it.
#[cfg(unix)]
extern "C" fn before_fork() {
    if HELD_GUARDS.get() > 0 {
        return;
    }
    FORKING_THREADS.fetch_add(1, Ordering::SeqCst);
    while LOCKING_THREADS.load(Ordering::SeqCst) > 0 {
        std::thread::sleep(FORK_CHECK_INTERVAL);
    }
}

#[cfg(unix)]
extern "C" fn after_fork_in_parent() {
    if HELD_GUARDS.get() == 0 {
        FORKING_THREADS.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(unix)]
extern "C" fn after_fork_in_child() {
    FORK_COUNT.fetch_add(1, Ordering::Relaxed);
    // The child has only this thread.
    FORKING_THREADS.store(0, Ordering::SeqCst);
    LOCKING_THREADS.store(u32::from(HELD_GUARDS.get() > 0), Ordering::SeqCst);
}

/// Installs the handlers that count forks of this process and keep [`ForkSafeLock`]s free during
/// them. Must be called before the first connection is made.
#[cfg(unix)]
pub(crate) fn register_fork_handler() {
    use std::sync::Once;

    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers are functions that live as long as this code is loaded (the C
        // library takes handlers of an unloaded library out). All that they do in the child is to
        // read and write atomic numbers and a number of the thread that needs no initialization,
        // which is safe in a signal handler's circumstances. Where there is no memory for them,
        // forks go unnoticed, as without them.
        unsafe {
            libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child));
        }
    });
}

/// Does nothing, because Windows has no `fork`.
#[cfg(windows)]
pub(crate) fn register_fork_handler() {}

/// Returns the number of times that the current process or its ancestors were forked since the
/// first call of this function or the first client. It is 0 in the process that made that call, 1
/// in its child, and so on.
#[must_use]
pub fn fork_count() -> u32 {
    register_fork_handler();
    FORK_COUNT.load(Ordering::Relaxed)
}

/// A lock for state that requests share, such as a cookie jar. No other thread holds such a lock
/// while a thread forks, so that a forked child can use the state: `fork` waits until the other
/// threads have released their locks. Keep the lock only for a short time.
///
/// There is one exception: a thread that forks while it holds such a lock does not wait.
///
/// ```
/// use haul::fork::ForkSafeLock;
///
/// let number = ForkSafeLock::new(1);
/// *number.write() += 1;
/// assert_eq!(*number.read(), 2);
/// ```
pub struct ForkSafeLock<T>(RwLock<T>);

/// Read access to the value in a [`ForkSafeLock`].
pub struct ForkSafeReadGuard<'a, T> {
    // Fields are dropped in this order: the lock is released before the fork may begin.
    value: RwLockReadGuard<'a, T>,
    _turn: LockingTurn,
}

/// Exclusive access to the value in a [`ForkSafeLock`].
pub struct ForkSafeWriteGuard<'a, T> {
    // Fields are dropped in this order: the lock is released before the fork may begin.
    value: RwLockWriteGuard<'a, T>,
    _turn: LockingTurn,
}

/// The right of the current thread to hold a [`ForkSafeLock`]. While it exists, other threads do
/// not fork.
struct LockingTurn;

impl LockingTurn {
    fn begin() -> Self {
        let held = HELD_GUARDS.get();
        // A thread that holds a lock does not wait for a fork, since the fork waits for the thread.
        if held == 0 {
            wait_for_turn();
        }
        HELD_GUARDS.set(held + 1);
        Self
    }
}

impl Drop for LockingTurn {
    fn drop(&mut self) {
        let held = HELD_GUARDS.get() - 1;
        HELD_GUARDS.set(held);
        if held == 0 {
            LOCKING_THREADS.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Waits until no thread is about to fork, and counts the current thread among those that hold a
/// lock.
fn wait_for_turn() {
    loop {
        LOCKING_THREADS.fetch_add(1, Ordering::SeqCst);
        if FORKING_THREADS.load(Ordering::SeqCst) == 0 {
            return;
        }
        LOCKING_THREADS.fetch_sub(1, Ordering::SeqCst);
        #[cfg(unix)]
        std::thread::sleep(FORK_CHECK_INTERVAL);
    }
}

impl<T> ForkSafeLock<T> {
    /// Makes a lock around `value`.
    #[must_use]
    pub fn new(value: T) -> Self {
        register_fork_handler();
        Self(RwLock::new(value))
    }

    /// Waits for read access to the value. A panic of another thread that had access is ignored.
    pub fn read(&self) -> ForkSafeReadGuard<'_, T> {
        let turn = LockingTurn::begin();
        ForkSafeReadGuard { value: self.0.read().ignore_poison(), _turn: turn }
    }

    /// Waits for exclusive access to the value. A panic of another thread that had access is
    /// ignored.
    pub fn write(&self) -> ForkSafeWriteGuard<'_, T> {
        let turn = LockingTurn::begin();
        ForkSafeWriteGuard { value: self.0.write().ignore_poison(), _turn: turn }
    }
}

impl<T: Default> Default for ForkSafeLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for ForkSafeLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ForkSafeLock").field(&*self.read()).finish()
    }
}

impl<T> Deref for ForkSafeReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Deref for ForkSafeWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for ForkSafeWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
