//! Decides how long to wait before the next read of a connection: until much of a bulk body has
//! arrived, or until a rate-limited transfer continues.
//!
//! ```text
//!  received bytes ──▶ LowWaterMark ──▶ set_low_water_mark
//! ```

use std::io;
use std::time::{Duration, Instant};

use rustix::fd::BorrowedFd;

use crate::drive::rcvlowat::LowWaterMark;
use crate::drive::zero_copy_to_sink::{self, ExtraPollDescriptor, ZeroCopyWaitResult};
use crate::net::stream::ConnectionStream;

/// The state that decides how long to wait before the next read of a connection.
pub(super) struct ReadPacing {
    pub(super) low_water: LowWaterMark,
    /// The time when a transfer that has reached its rate limit may receive again; `None` if no
    /// transfer has reached its limit.
    pub(super) resumes_at: Option<Instant>,
    /// The total time for which [`HttpConnection::wait`](super::HttpConnection::wait) has waited
    /// for the server.
    pub(super) waited: Duration,
}

impl ReadPacing {
    /// Makes the state for a connection. While a body arrives fast, the connection is read only
    /// when about `raised_mark` bytes are available (`SO_RCVLOWAT`).
    pub(super) fn new(raised_mark: usize) -> Self {
        Self { low_water: LowWaterMark::new(raised_mark), resumes_at: None, waited: Duration::ZERO }
    }

    /// Waits until the socket is readable (or writable, if `sends` is true), or until one of
    /// `extra_descriptors` (the sink's pipe or the source of an upload) is ready. The wait ends at
    /// `deadline`, or earlier if a raised low-water mark is not reached in time
    /// ([`LowWaterMark::timeout`]). Adds the elapsed time to `waited`, unless the output is full.
    pub(super) fn wait(
        &mut self,
        socket: BorrowedFd<'_>,
        sends: bool,
        extra_descriptors: [Option<ExtraPollDescriptor<'_>>; 2],
        deadline: Option<Instant>,
    ) -> io::Result<ZeroCopyWaitResult> {
        let began = Instant::now();
        let quiet = self.low_water.timeout().map(|at| at.saturating_duration_since(began));
        let waited = zero_copy_to_sink::wait(socket, sends, extra_descriptors, quiet, deadline);
        let is_output_full = |extra: &Option<_>| matches!(extra, Some(ExtraPollDescriptor::FullOutput(_)));
        if !extra_descriptors.iter().any(is_output_full) {
            self.waited += began.elapsed();
        }
        waited
    }

    /// Sleeps for the time `pause`, but not beyond `deadline`. Adds the elapsed time to `waited`.
    #[cfg(feature = "http3")]
    pub(super) fn pause(&mut self, pause: Duration, deadline: Option<Instant>) {
        let began = Instant::now();
        let left = deadline.map_or(pause, |at| at.saturating_duration_since(began));
        std::thread::sleep(pause.min(left));
        self.waited += began.elapsed();
    }
}

/// Sets the low-water mark of the connection's socket (`SO_RCVLOWAT`): the number of received
/// bytes, `mark`, at which the socket wakes its reader.
pub(super) fn set_low_water_mark(stream: &ConnectionStream, mark: usize) {
    // Without such a mark, every byte wakes the reader, which does no harm.
    let _ = stream.socket().set_recv_lowat(mark);
}
