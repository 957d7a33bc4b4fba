//! Waits of a link: bulk bodies wait for large pieces, transfers at their rate for their time.
//!
//! ```text
//!  came ──▶ Bulk ──▶ set_mark: how much has to be there before the socket wakes us
//! ```

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::drive::bulk::Bulk;
use crate::drive::direct::{self, Beside, Waited};
use crate::net::stream::Stream;

/// Of one link.
pub(super) struct Pace {
    pub(super) bulk: Bulk,
    /// The time when a transfer that reached its rate continues.
    pub(super) resumes_at: Option<Instant>,
    /// The time spent waiting for the server.
    pub(super) waited: Duration,
}

impl Pace {
    /// The pace of a link whose bulk bodies arrive in pieces of this size.
    pub(super) fn of(piece: usize) -> Self {
        Self { bulk: Bulk::of(piece), resumes_at: None, waited: Duration::ZERO }
    }

    /// Waits as [`direct::wait`] does, no longer than a bulk body may be quiet.
    pub(super) fn wait(
        &mut self,
        socket: BorrowedFd<'_>,
        sends: bool,
        beside: Option<Beside<'_>>,
        deadline: Option<Instant>,
    ) -> io::Result<Waited> {
        let began = Instant::now();
        let quiet = self.bulk.quiet_at().map(|at| at.saturating_duration_since(began));
        let waited = direct::wait(socket, sends, beside, quiet, deadline);
        self.waited += began.elapsed();
        waited
    }
}

/// From now on this many bytes wake us.
pub(super) fn set_mark(stream: &Stream, mark: usize) {
    // Where the system has no such mark, every byte does: no harm is done.
    let _ = stream.socket().set_recv_lowat(mark);
}
