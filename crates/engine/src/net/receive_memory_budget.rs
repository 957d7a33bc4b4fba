//! The receive budget of an HTTP/2 or HTTP/3 connection: its share of the memory in which all
//! connections of a client may buffer bytes that no sink has accepted.
//!
//! A connection's flow-control window is its budget, since bytes that no sink accepts are not
//! returned to the window. With a fixed window for each connection, many connections together could
//! use unbounded memory when the output stops. So a new connection gets three quarters of the
//! memory that the other connections have not reserved, and at least [`MIN_CONNECTION_BUDGET`]: 64
//! connections together have less than 32 MiB. Connections for the parts of split downloads over
//! HTTP/3 have another 8 MiB.
//!
//! ```
//! use haul::drive::connection::h2::SharedRecvMemory;
//! let memory = SharedRecvMemory::default();
//! let first = memory.reserve();
//! let second = memory.reserve();
//! assert_eq!((first.connection_window(), second.connection_window()), (9 << 20, 9 << 18));
//! drop(first);
//! assert!(memory.reserve().connection_window() > 7 << 20);
//! ```
//!
//! Rejected: equal budgets. Most runs have a single such connection, or a first one that carries
//! most of the traffic.

use std::sync::{Arc, Mutex};

use crate::ignore_poison::IgnorePoison;

/// The receive memory, in bytes, that all connections of a client together may reserve. A
/// connection may use its minimum budget even if none of this memory is left.
const MAX_SHARED_MEMORY: u32 = 12 << 20;
/// The receive memory, in bytes, that all connections for parts of split downloads together may
/// reserve in addition to [`MAX_SHARED_MEMORY`]. The first connection of a split download has
/// reserved most of that memory, so the connections for its parts would get only the minimum
/// budget.
#[cfg(feature = "http3")]
const MAX_PART_MEMORY: u32 = 8 << 20;
/// The receive budget, in bytes, of a connection for parts of split downloads. The smaller budget
/// [`MIN_CONNECTION_BUDGET`] would limit a part to 2.5 MB/s at a round trip of 100 ms.
#[cfg(feature = "http3")]
const PART_BUDGET: u32 = 1 << 20;
/// The minimum receive budget of a connection, in bytes. A new connection gets this budget even if
/// the other connections have reserved all of [`MAX_SHARED_MEMORY`].
const MIN_CONNECTION_BUDGET: u32 = 256 << 10;
/// The number of concurrent responses that a connection is assumed to have. Each stream's initial
/// window is the connection's window divided by this number.
const ASSUMED_STREAMS: u32 = 64;
/// The minimum and maximum initial flow-control window of a stream, in bytes.
const STREAM_WINDOW_BOUNDS: std::ops::RangeInclusive<u32> = (16 << 10)..=(256 << 10);
/// The divisor that turns a rate limit (bytes per second) into the initial window of a rate-limited
/// response. The window holds the bytes of a sixteenth of a second, but at least
/// [`MIN_PACED_WINDOW`] bytes.
const PACED_WINDOW_DIVISOR: u64 = 16;
const MIN_PACED_WINDOW: u32 = 4 << 10;

/// The receive memory that all HTTP/2 and HTTP/3 connections of a client share. Clones refer to the
/// same memory.
#[derive(Debug, Clone)]
pub struct SharedRecvMemory {
    left: Arc<Mutex<u32>>,
    #[cfg(feature = "http3")]
    left_for_parts: Arc<Mutex<u32>>,
}

impl Default for SharedRecvMemory {
    fn default() -> Self {
        Self {
            left: Arc::new(Mutex::new(MAX_SHARED_MEMORY)),
            #[cfg(feature = "http3")]
            left_for_parts: Arc::new(Mutex::new(MAX_PART_MEMORY)),
        }
    }
}

impl SharedRecvMemory {
    /// Reserves receive memory for a new connection: three quarters of the memory that is left, or
    /// the minimum budget. Dropping the budget returns the memory.
    #[must_use]
    pub fn reserve(&self) -> ConnectionReceiveBudget {
        let mut left = self.left.lock().ignore_poison();
        let window = (*left / 4 * 3).max(MIN_CONNECTION_BUDGET);
        let taken = window.min(*left);
        *left -= taken;
        ConnectionReceiveBudget { left: Arc::clone(&self.left), window, taken }
    }

    /// Reserves receive memory for a connection that receives parts of a split download:
    /// `PART_BUDGET` bytes of the memory that only such connections may reserve. If less of that
    /// memory is left, the connection gets as much as an ordinary one
    /// ([`SharedRecvMemory::reserve`]).
    #[cfg(feature = "http3")]
    #[must_use]
    pub(super) fn reserve_for_parts(&self) -> ConnectionReceiveBudget {
        let mut left = self.left_for_parts.lock().ignore_poison();
        if *left < PART_BUDGET {
            drop(left);
            return self.reserve();
        }
        *left -= PART_BUDGET;
        ConnectionReceiveBudget { left: Arc::clone(&self.left_for_parts), window: PART_BUDGET, taken: PART_BUDGET }
    }
}

/// The receive budget of one connection: the number of received bytes that may wait until the
/// program accepts them.
#[derive(Debug)]
pub struct ConnectionReceiveBudget {
    /// The number of bytes that are still free in the memory from which this budget was reserved:
    /// the memory for all connections, or the memory for parts of split downloads. All budgets of
    /// that memory share the number. Dropping this budget adds `taken` to it.
    left: Arc<Mutex<u32>>,
    window: u32,
    taken: u32,
}

impl ConnectionReceiveBudget {
    /// Returns the flow-control window of the connection, in bytes.
    #[must_use]
    pub fn connection_window(&self) -> u32 {
        self.window
    }

    /// Returns the initial flow-control window of each stream, in bytes.
    #[must_use]
    pub fn stream_window(&self) -> u32 {
        (self.window / ASSUMED_STREAMS).clamp(*STREAM_WINDOW_BOUNDS.start(), *STREAM_WINDOW_BOUNDS.end())
    }

    /// Returns the initial window of a response that is limited to `rate` bytes per second. The
    /// server fills the window at full speed, so the window holds only the bytes of a sixteenth of
    /// a second. The window grows later if the round trip is too long for its size.
    ///
    /// ```
    /// let budget = haul::drive::connection::h2::SharedRecvMemory::default().reserve();
    /// assert_eq!((budget.paced_window(1 << 20), budget.paced_window(100)), (64 << 10, 4 << 10));
    /// assert_eq!(budget.paced_window(u64::MAX), budget.stream_window());
    /// ```
    #[must_use]
    pub fn paced_window(&self, rate: u64) -> u32 {
        let most = self.stream_window();
        u32::try_from(rate / PACED_WINDOW_DIVISOR).map_or(most, |window| window.clamp(MIN_PACED_WINDOW, most))
    }
}

impl Drop for ConnectionReceiveBudget {
    fn drop(&mut self) {
        *self.left.lock().ignore_poison() += self.taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive_budgets_stay_bounded_and_are_returned() {
        let memory = SharedRecvMemory::default();
        for _ in 0..3 {
            let budgets: Vec<_> = (0..64).map(|_| memory.reserve()).collect();
            assert!(budgets.iter().all(|budget| budget.connection_window() >= MIN_CONNECTION_BUDGET
                && budget.stream_window() <= budget.connection_window() / 16));
            assert!(budgets.iter().map(|budget| budget.connection_window()).sum::<u32>() < 32 << 20);
            drop(budgets);
            assert_eq!(*memory.left.lock().unwrap(), MAX_SHARED_MEMORY);
        }
    }

    #[cfg(feature = "http3")]
    #[test]
    fn part_budgets_are_equal_and_bounded() {
        let memory = SharedRecvMemory::default();
        let first = memory.reserve();
        for _ in 0..3 {
            let budgets: Vec<_> = (0..256).map(|_| memory.reserve_for_parts().connection_window()).collect();
            assert_eq!(budgets, [PART_BUDGET; 256], "each is returned at once");
            let budgets: Vec<_> = (0..256).map(|_| memory.reserve_for_parts()).collect();
            assert!(budgets[..8].iter().all(|budget| budget.connection_window() == PART_BUDGET));
            assert_eq!(budgets[255].connection_window(), MIN_CONNECTION_BUDGET);
        }
        assert_eq!(first.connection_window(), 9 << 20);
    }
}
