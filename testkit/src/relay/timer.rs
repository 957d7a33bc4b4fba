//! Forwards each piece of relayed data when it is due. All connections share one system timer
//! (timerfd), for which the runtime waits.
//!
//! The runtime's own timers have a resolution of one millisecond and would turn 20 ms into 22 ms. A
//! sleeping thread would have to be woken for each piece.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::mpsc::UnboundedSender;

use crate::lock_even_if_poisoned::lock;

/// The pieces of relayed data that wait to be forwarded, and a system timer for the earliest of
/// them.
pub(super) struct PieceTimer {
    /// The descriptor of the system timer (timerfd), read like a pipe: Tokio's pipe readers work
    /// with any non-blocking descriptor.
    clock: Receiver,
    state: Mutex<PieceTimerState>,
}

#[derive(Default)]
struct PieceTimerState {
    under_way: BinaryHeap<Reverse<TimedPiece>>,
    arrived: u64,
}

/// A piece of relayed data that waits to be forwarded. A piece without bytes marks the end of the
/// data in its direction.
struct TimedPiece {
    due: Instant,
    /// The number of the piece in the order of arrival. Of two pieces that are due at the same
    /// time, the piece with the lower number is forwarded first.
    number: u64,
    bytes: Bytes,
    to: UnboundedSender<Bytes>,
}

impl PieceTimer {
    /// Creates a timer without any scheduled piece of data. Must be called inside a Tokio runtime.
    pub(super) fn new() -> io::Result<PieceTimer> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let clock = Receiver::from_owned_fd_unchecked(timerfd_create(TimerfdClockId::Monotonic, flags)?)?;
        Ok(PieceTimer { clock, state: Mutex::default() })
    }

    /// Schedules `bytes` to be sent to the channel `to` at the time `due`.
    pub(super) fn send(&self, due: Instant, bytes: Bytes, to: &UnboundedSender<Bytes>) -> io::Result<()> {
        let mut state = self.state();
        state.arrived += 1;
        let piece = TimedPiece { due, number: state.arrived, bytes, to: to.clone() };
        let is_first = state.under_way.peek().is_none_or(|Reverse(first)| piece < *first);
        state.under_way.push(Reverse(piece));
        if is_first { self.set(due) } else { Ok(()) }
    }

    /// Forwards each piece when it is due, until the returned future is dropped.
    pub(super) async fn run(&self) -> io::Result<()> {
        loop {
            self.clock.readable().await?;
            match self.clock.try_read(&mut [0; 8]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                count => count?,
            };
            let mut state = self.state();
            let now = Instant::now();
            while state.under_way.peek().is_some_and(|Reverse(first)| first.due <= now) {
                if let Some(Reverse(piece)) = state.under_way.pop() {
                    // A missing receiver belongs to a connection that has failed.
                    let _ = piece.to.send(piece.bytes);
                }
            }
            if let Some(Reverse(first)) = state.under_way.peek() {
                self.set(first.due)?;
            }
        }
    }

    fn set(&self, due: Instant) -> io::Result<()> {
        // Zero would stop the timer.
        let left = due.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let it_value = Timespec::try_from(left).map_err(io::Error::other)?;
        let once = Itimerspec { it_interval: Timespec::default(), it_value };
        timerfd_settime(&self.clock, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, PieceTimerState> {
        lock(&self.state)
    }
}

impl TimedPiece {
    fn rank(&self) -> (Instant, u64) {
        (self.due, self.number)
    }
}

impl Ord for TimedPiece {
    fn cmp(&self, other: &TimedPiece) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for TimedPiece {
    fn partial_cmp(&self, other: &TimedPiece) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for TimedPiece {
    fn eq(&self, other: &TimedPiece) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for TimedPiece {}
