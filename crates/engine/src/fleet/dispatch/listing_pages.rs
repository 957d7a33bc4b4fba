//! The pages of paginated listings in the queue. A page is queued when its previous page has ended.
//! If the output is in input order, the body of the page directly follows the body of the previous
//! page.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use haul_policy::secret_fields::without_userinfo;
use haul_policy::target::{Origin, Target};

use super::{BodyDestination, Dispatcher, FleetJob, JobWithError, QueuedOrRunningJob, placeholder_target};
use crate::fleet::fleet_input_item::PerItemRequestOptions;
use crate::fleet::{FleetStage, ListingPageDestinationChooser};
use crate::ignore_poison::IgnorePoison;
use crate::pagination::Listing;
use crate::{Error, ErrorKind, Result};

/// A paginated listing: a sequence of pages, each linked from the previous page. The transfers of
/// all its pages share this value.
pub(in crate::fleet) struct PaginatedListing {
    progress: Mutex<Listing>,
    /// The origin of the URL of the first page.
    origin: Origin,
    /// The value of the previous stage from which the URL of the first page was made; `None` if the
    /// URL comes from the input.
    value: Option<Box<[u8]>>,
    /// The settings of the first page's request that differ from the settings of the stage. The
    /// requests for all later pages use these settings, too. `None` if there is no difference.
    request: Option<Box<PerItemRequestOptions>>,
    /// The destinations of the bodies of the second and later pages. `None` if the stage's
    /// [`ExtractedValueMapper`](crate::fleet::ExtractedValueMapper) chooses them, or if all pages
    /// are written to the fleet's output.
    destinations: Option<Arc<dyn ListingPageDestinationChooser>>,
}

impl fmt::Debug for PaginatedListing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PaginatedListing").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl PaginatedListing {
    pub(in crate::fleet) fn progress(&self) -> MutexGuard<'_, Listing> {
        self.progress.lock().ignore_poison()
    }

    pub(in crate::fleet) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the destination of the body of the second or a later page: the output of the fleet,
    /// or a file. `page` is the number of the page, `target` its URL, and `before` the destination
    /// of the previous page.
    ///
    /// # Errors
    /// The function that chooses the destinations fails, or there is none and the previous page was
    /// written to a file.
    fn destination(
        &self,
        stage: &FleetStage,
        page: u64,
        target: &Target,
        before: &BodyDestination,
    ) -> Result<BodyDestination> {
        match (&self.destinations, &stage.value_mapper, &self.value) {
            (Some(destinations), ..) => destinations.destination(page, target),
            (None, Some(value_mapper), Some(value)) => value_mapper.page_destination(value, page, target),
            (None, ..) if *before == BodyDestination::Output => Ok(BodyDestination::Output),
            (None, ..) => Err(Error::new(ErrorKind::Write, "this page of the listing has no file of its own")),
        }
    }
}

impl QueuedOrRunningJob {
    /// Makes the job the first page of a new paginated listing, if the job's stage of the fleet
    /// fetches listings ([`FleetStage::pagination`]); otherwise returns the job unchanged.
    /// `destinations` chooses where the later pages are written. Returns the job with an error if the
    /// URL cannot begin a listing.
    pub(super) fn in_listing(
        mut self: Box<Self>,
        stage: &FleetStage,
        destinations: Option<Arc<dyn ListingPageDestinationChooser>>,
    ) -> Result<Box<Self>, Box<JobWithError>> {
        let Some(pagination) = &stage.pagination else { return Ok(self) };
        self.job.order = self.job.order.iter().copied().chain([0]).collect();
        let target = self.target.take().expect("a job that has not started has a target");
        let listing = Listing::new(pagination, &target);
        match listing {
            Ok(progress) => {
                self.job.listing = Some(Arc::new(PaginatedListing {
                    origin: progress.origin(),
                    progress: Mutex::new(progress),
                    value: self.value.clone(),
                    request: self.request.clone(),
                    destinations,
                }));
                self.target = Some(target);
                Ok(self)
            }
            Err(error) => {
                let error = error.with_url(without_userinfo(&self.job.url).escape_debug().to_string());
                Err(Box::new(JobWithError { job: self.job, target, error }))
            }
        }
    }
}

impl Dispatcher {
    /// Adds the page after `previous` to the queue. `next` is the page's target, or the error that
    /// prevents its request. `slot` is the number of the page's place in the output window (the
    /// ordered queue of bodies) of its stage.
    pub(in crate::fleet) fn push_page(&self, previous: &FleetJob, slot: u64, next: Result<Target>, stage: &FleetStage) {
        let Some(listing) = &previous.listing else { return };
        let page = previous.page + 1;
        let mut order = previous.order.to_vec();
        if let Some(last) = order.last_mut() {
            *last += 1;
        }
        let found = next.and_then(|target| {
            let destination = listing.destination(stage, page, &target, &previous.destination);
            Ok((destination.map_err(|error| error.with_url(target.to_url()))?, target))
        });
        let mut state = self.lock();
        state.outstanding[previous.stage] += 1;
        let job = FleetJob { page, slot, order: order.into(), ..previous.clone() };
        match found {
            Ok((destination, target)) => {
                let job = FleetJob { url: target.to_url(), destination, ..job };
                let (value, request) = (listing.value.clone(), listing.request.clone());
                let request_bytes = request.as_deref().map_or(0, PerItemRequestOptions::kept_bytes);
                let job = QueuedOrRunningJob { job, target: Some(target), value, request, request_bytes };
                self.push(&mut state, Box::new(job));
            }
            Err(error) => {
                let url = error.url().map_or_else(|| job.url.clone(), str::to_owned);
                let job = FleetJob { url, destination: BodyDestination::Output, ..job };
                state.errors.push_back(JobWithError { job, target: placeholder_target(), error });
            }
        }
    }
}
