//! The jobs of a dispatcher: waiting jobs, starting jobs, and jobs that cannot start.

use std::sync::Arc;

use haul_policy::target::Target;

use super::PaginatedListing;
use crate::Error;
use crate::fleet::fleet_input_item::PerItemRequestOptions;
use crate::fleet::reported_job_and_destination::{BodyDestination, FleetJob};

/// An entry of the dispatcher's queue. A job is a transfer with the data for its report.
pub(in crate::fleet) enum QueuedJob {
    /// A job that has not started.
    New(Box<QueuedOrRunningJob>),
    /// A job that waits to be tried again. The number is its key among the jobs in progress.
    Retry(usize),
}

/// A job of a fleet (a transfer with the data for its report) that is not reported yet. The job is
/// boxed from the time when it is queued: otherwise, some hundred bytes would be copied when it
/// moves from the queue to the jobs in progress, and again when it is finished.
pub(in crate::fleet) struct QueuedOrRunningJob {
    pub(in crate::fleet) job: FleetJob,
    /// The target of the request; `None` once the job has started.
    pub(super) target: Option<Target>,
    /// The value from which the job's URL was made: the previous stage of the fleet extracted it
    /// from a page. `None` if the URL comes from the input, or if no
    /// [`ExtractedValueMapper`](crate::fleet::ExtractedValueMapper) of the job's own stage needs
    /// the value.
    pub(super) value: Option<Box<[u8]>>,
    /// The settings of the request that differ from the settings of its stage; `None` if there is
    /// no difference.
    pub(super) request: Option<Box<PerItemRequestOptions>>,
    /// The number of bytes of memory that the job's request takes while it waits in the queue.
    pub(super) request_bytes: usize,
}

impl QueuedOrRunningJob {
    /// The approximate number of bytes of memory that a waiting job takes without its request: the
    /// job, its number in the order of the output, and its entries in the lines of the queue.
    const JOB_BYTES: usize = size_of::<Self>() + 128;

    /// Returns the number of bytes of memory that the job takes while it waits in the queue.
    pub(super) fn queued_bytes(&self) -> usize {
        Self::JOB_BYTES + self.request_bytes
    }
}

/// The next transfer to run in a host slot (a permit for one transfer to a host).
#[expect(clippy::large_enum_variant, reason = "it is moved once, into a transfer")]
pub(in crate::fleet) enum NewJobOrRetry {
    /// A new transfer, which is made from these data.
    New(TransferInputs),
    /// A job that is tried again: its transfer continues. The number is its key among the jobs in
    /// progress.
    Retry(usize),
}

/// The inputs from which a new transfer is made. The dispatcher keeps the data for the transfer's
/// report under the number `key` until the transfer ends.
pub(in crate::fleet) struct TransferInputs {
    pub(in crate::fleet) key: usize,
    pub(in crate::fleet) stage: usize,
    pub(in crate::fleet) slot: u64,
    pub(in crate::fleet) order: Arc<[u64]>,
    pub(in crate::fleet) destination: BodyDestination,
    pub(in crate::fleet) target: Target,
    pub(in crate::fleet) value: Option<Box<[u8]>>,
    pub(in crate::fleet) request: Option<Box<PerItemRequestOptions>>,
    pub(in crate::fleet) listing: Option<Arc<PaginatedListing>>,
}

/// A job (a transfer with the data for its report) that cannot be started, for example because its
/// URL is invalid. It is reported as failed with its error.
pub(in crate::fleet) struct JobWithError {
    pub(in crate::fleet) job: FleetJob,
    pub(in crate::fleet) target: Target,
    pub(in crate::fleet) error: Error,
}

/// Returns a placeholder for the target of a job whose URL is invalid. It appears only in reports.
pub(super) fn placeholder_target() -> Target {
    Target::parse("http://invalid/").expect("a URL")
}
