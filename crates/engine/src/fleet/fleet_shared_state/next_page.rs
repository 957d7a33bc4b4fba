//! The end of a page of a listing: the page that follows, and the slot of the window for it.

use haul_policy::target::Target;

use super::FleetRun;
use crate::Result;
use crate::fleet::dispatch::PaginatedListing;
use crate::fleet::reported_job_and_destination::FleetJob;
use crate::pagination::{PageContentObserver, PageFindings, PageStep};
use crate::transfer::TransferOutcome;

/// The page of a paginated listing that is fetched after a finished transfer, if there is one.
pub(super) enum ListingContinuation {
    /// No page follows: the transfer belongs to no listing, or was its last page.
    Last,
    /// The requested page does not exist, because the listing ended with the previous page. The
    /// transfer is neither counted nor reported.
    Beyond,
    /// The target of the page that follows, or the error that prevents its request.
    Next(Result<Target>),
}

impl FleetRun {
    /// Returns true if a request to `target` may contain the credentials of its stage. The first
    /// stage trusts every input URL, and each later page of a listing that has the origin of the
    /// first page. A later stage trusts the origin in its URL template, and the origin of the first
    /// URL that the user wrote. Other origins come from pages or lists, and are not trusted.
    pub(super) fn is_trusted(&self, stage: usize, target: &Target, listing: Option<&PaginatedListing>) -> bool {
        let origin = target.origin();
        let Some(template) = &self.stages[stage].template else {
            return listing.is_none_or(|listing| *listing.origin() == origin);
        };
        template.literal_origin().is_some_and(|literal| literal == origin)
            || self.dispatch.lock().first_origin() == Some(&origin)
    }

    /// Decides which page of the paginated listing follows after the page that this finished
    /// transfer has fetched, if any. If an error status means that the listing ended before this
    /// page, changes the outcome to a success.
    pub(super) fn end_of_page(
        &self,
        job: &FleetJob,
        outcome: &mut TransferOutcome,
        observer: Option<Box<PageContentObserver>>,
    ) -> ListingContinuation {
        let Some(listing) = &job.listing else { return ListingContinuation::Last };
        let mut progress = listing.progress();
        if outcome.result.is_err() {
            if outcome.head.as_ref().is_some_and(|head| progress.ends_at(head.status())) {
                outcome.result = Ok(());
                return ListingContinuation::Beyond;
            }
            return ListingContinuation::Last;
        }
        let findings = observer.map_or_else(|| Ok(PageFindings::default()), |observer| observer.finish());
        let step = findings
            .map_err(|error| error.with_url(outcome.target.to_url()))
            .and_then(|findings| progress.next_of(outcome.head.as_ref(), &outcome.target, findings));
        drop(progress);
        match step {
            Ok(PageStep::Next(target)) => ListingContinuation::Next(Ok(target)),
            Ok(PageStep::End(end)) => {
                self.report.listing_ended(job, &outcome.target, &end);
                ListingContinuation::Last
            }
            Err(error) => ListingContinuation::Next(Err(error)),
        }
    }

    /// Adds a job for the next page of a listing after a finished page. If the output is in input
    /// order, the body of the next page continues the body of the finished page in the output
    /// window (an ordered queue of bodies).
    pub(super) fn begin_next_page(&self, job: &FleetJob, next: Result<Target>) {
        let window = &self.windows[job.stage];
        let slot = if window.pages_share_slot() {
            window.end_page(job.slot);
            job.slot
        } else {
            self.stop_on_error(window.finish_slot(job.slot));
            window.reserve_slot()
        };
        self.dispatch.push_page(job, slot, next, &self.stages[job.stage]);
    }
}
