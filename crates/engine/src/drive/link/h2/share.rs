//! Memory limit of each HTTP/2 connection for bytes that no sink has taken: its share of the limit
//! for all.
//!
//! The window of a connection is such a bound, for what no sink takes is not given back to it. With one window for each of
//! many connections behind an output that has stopped, memory would have none. So a new connection has three quarters of what
//! the others have left, and [`LEAST`] in any case: of 64 connections all together have less than 32 MiB.
//!
//! ```
//! use haul::drive::link::h2::Windows;
//! let windows = Windows::default();
//! let first = windows.share();
//! let second = windows.share();
//! assert_eq!((first.window(), second.window()), (9 << 20, 9 << 18));
//! drop(first);
//! assert!(windows.share().window() > 7 << 20);
//! ```
//!
//! Equal shares were the alternative. Most runs have one such connection, or one that carries the most, and it is the first.

use std::sync::{Arc, Mutex};

use crate::sync::IgnorePoison;

/// The number of bytes that all connections together may hold, besides the minimum of each.
const ALL: u32 = 12 << 20;
/// The minimum for a connection.
const LEAST: u32 = 256 << 10;
/// The number of concurrent responses that a connection has room for, if that leaves each a useful
/// window.
const STREAMS: u32 = 64;
/// The least and greatest initial window of a stream.
const STREAM: std::ops::RangeInclusive<u32> = (16 << 10)..=(256 << 10);
/// The window of a rate-limited response is the amount that arrives in this part of a second, with
/// a minimum.
const PACED_PARTS: u64 = 16;
const LEAST_PACED: u32 = 4 << 10;

/// The memory that a client's connections may hold; clones share it.
#[derive(Debug, Clone)]
pub struct Windows {
    left: Arc<Mutex<u32>>,
}

impl Default for Windows {
    fn default() -> Self {
        Self { left: Arc::new(Mutex::new(ALL)) }
    }
}

impl Windows {
    /// Takes a share for a connection. Dropping it returns the memory.
    #[must_use]
    pub fn share(&self) -> Share {
        let mut left = self.left.lock().ignore_poison();
        let window = (*left / 4 * 3).max(LEAST);
        let taken = window.min(*left);
        *left -= taken;
        Share { windows: self.clone(), window, taken }
    }
}

/// The memory that one connection may hold.
#[derive(Debug)]
pub struct Share {
    windows: Windows,
    window: u32,
    taken: u32,
}

impl Share {
    /// The window of the connection, in bytes.
    #[must_use]
    pub fn window(&self) -> u32 {
        self.window
    }

    /// The window that each stream begins with.
    #[must_use]
    pub fn stream_window(&self) -> u32 {
        (self.window / STREAMS).clamp(*STREAM.start(), *STREAM.end())
    }

    /// Returns the first window of a rate-limited response, at `rate` bytes per second. The server
    /// fills it at full speed, so it has to be a small part of a second's amount. It grows if the
    /// round trip is too long for that.
    ///
    /// ```
    /// let share = haul::drive::link::h2::Windows::default().share();
    /// assert_eq!((share.paced_window(1 << 20), share.paced_window(100)), (64 << 10, 4 << 10));
    /// assert_eq!(share.paced_window(u64::MAX), share.stream_window());
    /// ```
    #[must_use]
    pub fn paced_window(&self, rate: u64) -> u32 {
        let most = self.stream_window();
        u32::try_from(rate / PACED_PARTS).map_or(most, |window| window.clamp(LEAST_PACED, most))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        *self.windows.left.lock().ignore_poison() += self.taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_together_stay_below_a_bound_and_give_everything_back() {
        let windows = Windows::default();
        for _ in 0..3 {
            let shares: Vec<_> = (0..64).map(|_| windows.share()).collect();
            assert!(shares.iter().all(|share| share.window() >= LEAST && share.stream_window() <= share.window() / 16));
            assert!(shares.iter().map(|share| share.window()).sum::<u32>() < 32 << 20);
            drop(shares);
            assert_eq!(*windows.left.lock().unwrap(), ALL);
        }
    }
}
