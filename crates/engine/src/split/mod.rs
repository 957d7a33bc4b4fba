//! Split downloads: one large body over several connections.
//!
//! A split download begins like any transfer: the blocking driver sends a GET without a range and
//! delivers the body directly. A [`SplitRateMonitor`] measures its rate. If the network limits the
//! rate and many bytes are still missing, the connection moves to an event loop while its body is
//! still arriving, and a [coordinator] fetches further parts over other connections: see
//! `docs/design/splitting.md`.
//!
//! ```text
//!  blocking ──SplitRateMonitor: worth a try──▶ Coordinator ──▶ complete
//!     ▲                                        │
//!     └── alone, from the exact byte, when parts are refused or do not help
//! ```

mod coordinator;
mod part_sinks;
mod state;

use std::sync::Arc;
use std::time::Instant;

use haul_policy::range::split_connection_count::{FirstStreamSample, SplitPlanner};

use crate::Result;
use crate::client::Client;
use crate::drive::connection::HttpConnection;
use crate::drive::idle_cores::idle_time;
use crate::drive::worker::{self, Scheduler, WorkerOptions};
use crate::request::SplitDownloadOptions;
use crate::time_conversions;
use crate::transfer::{SplittableBody, Transfer};
use coordinator::SplitCoordinator;

/// Measures the rate of a transfer, and decides whether its body should be fetched over more
/// connections.
pub(crate) enum SplitRateMonitor {
    /// The measurement has not begun, because no response head has arrived yet. The value limits
    /// the split download.
    Waiting(SplitDownloadOptions),
    /// The body is not split: only one connection is allowed, or the body cannot be fetched in
    /// parts.
    Disabled,
    /// The rate of the transfer is being measured. The data is boxed to keep the monitor small,
    /// because few transfers are measured and the monitor is moved often.
    Measuring(Box<(SplitPlanner, SplittableBody)>),
}

impl SplitRateMonitor {
    /// Makes the monitor of a transfer. `split` limits the connections and the memory of a split
    /// download.
    pub(crate) fn new(split: SplitDownloadOptions) -> Self {
        if split.connections < 2 { Self::Disabled } else { Self::Waiting(split) }
    }

    /// Returns true if the body that this connection is receiving should be split now.
    pub(crate) fn is_worth_trying(&mut self, link: &HttpConnection, now: Instant) -> bool {
        match self {
            Self::Disabled => false,
            Self::Waiting(split) => {
                match link.front_transfer().and_then(Transfer::may_split) {
                    None => {}
                    Some(None) => *self = Self::Disabled,
                    Some(Some(body)) => {
                        let splitter = SplitPlanner::new(split.connections, time_conversions::to_monotonic_time(now));
                        *self = Self::Measuring(Box::new((splitter, body)));
                    }
                }
                false
            }
            Self::Measuring(measured) => {
                let sample = FirstStreamSample {
                    now: time_conversions::to_monotonic_time(now),
                    received: link.front_transfer().map_or(0, |transfer| transfer.facts.body_bytes),
                    remaining: link.remaining(),
                    waited: link.waited(),
                };
                measured.0.is_worth_trying(sample, idle_time)
            }
        }
    }
}

/// The result of a split download: the transfer is over, or continues on one connection.
pub(crate) enum SplitOutcome {
    /// The transfer is over, with this result.
    Done(Result<()>),
    /// The first transfer must receive the rest of the body alone, without further parts.
    ContinueAlone,
}

/// Splits the body of the transfer that is in progress on the connection `link`. Returns the
/// transfer, and the result of the split download.
///
/// # Errors
/// The unchanged connection, if the system cannot provide an event loop.
///
/// # Panics
/// No transfer is active on the connection, or the monitor is not measuring.
pub(crate) fn run(
    client: &Client,
    mut link: HttpConnection,
    monitor: SplitRateMonitor,
) -> Result<(Box<Transfer>, SplitOutcome), Box<HttpConnection>> {
    let SplitRateMonitor::Measuring(measured) = monitor else {
        panic!("only a monitor that measures asks for a split")
    };
    let (splitter, body) = *measured;
    let first = link.front_transfer_mut().expect("a body is under way");
    let split = first.options().split;
    let coordinator = SplitCoordinator::new(first, splitter, body, split.memory);
    let supply: Arc<dyn Scheduler> = coordinator.clone();
    let workers = WorkerOptions { threads: 1, depth: 2, per_host: split.connections, connects_at_once: false };
    match worker::run_with(client, &supply, workers, link) {
        Ok(result) => Ok(coordinator.finish(result)),
        Err(mut link) => {
            link.front_transfer_mut().expect("a body is under way").end_split();
            Err(link)
        }
    }
}
