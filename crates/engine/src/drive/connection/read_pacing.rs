//! Waits before the next read of a connection: for a large piece of a bulk body, or for the time
//! when a rate-limited transfer continues.
//!
//! ```text
//!  received bytes ──▶ LowWaterMark ──▶ set_low_water_mark
//! ```

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::drive::rcvlowat::LowWaterMark;
use crate::drive::zero_copy::{self, SideDescriptor, WaitResult};
use crate::net::stream::ConnectionStream;

/// The waits before the next read of one connection.
pub(super) struct ReadPacing {
    pub(super) low_water: LowWaterMark,
    /// The time when a transfer that reached its rate continues.
    pub(super) resumes_at: Option<Instant>,
    /// The time spent waiting for the server.
    pub(super) waited: Duration,
}

impl ReadPacing {
    /// Makes the waits of a connection whose bulk bodies are read in pieces of this size.
    pub(super) fn new(piece: usize) -> Self {
        Self { low_water: LowWaterMark::new(piece), resumes_at: None, waited: Duration::ZERO }
    }

    /// Waits like [`zero_copy::wait`], and no longer than until the low-water mark's timeout.
    pub(super) fn wait(
        &mut self,
        socket: BorrowedFd<'_>,
        sends: bool,
        beside: Option<SideDescriptor<'_>>,
        deadline: Option<Instant>,
    ) -> io::Result<WaitResult> {
        let began = Instant::now();
        let quiet = self.low_water.timeout().map(|at| at.saturating_duration_since(began));
        let waited = zero_copy::wait(socket, sends, beside, quiet, deadline);
        self.waited += began.elapsed();
        waited
    }
}

/// Sets how many received bytes wake the reader.
pub(super) fn set_low_water_mark(stream: &ConnectionStream, mark: usize) {
    // Without such a mark, every byte wakes the reader, which does no harm.
    let _ = stream.socket().set_recv_lowat(mark);
}
