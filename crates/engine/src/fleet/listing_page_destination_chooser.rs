//! The destinations for the pages of a listing.

use std::fmt;

use haul_policy::target::Target;

use super::reported_job_and_destination::BodyDestination;
use crate::Result;

/// A function that chooses the destinations for the second and later pages of one paginated listing
/// ([`FleetStage::pagination`](super::FleetStage::pagination)).
pub trait ListingPageDestinationChooser: Send + Sync {
    /// Returns the destination of a page. `page` is its number, from 2, and `target` its URL. The
    /// method is called once for each page, in page order.
    ///
    /// # Errors
    /// There is no destination for the page. The page counts as failed, and the listing ends.
    fn destination(&self, page: u64, target: &Target) -> Result<BodyDestination>;
}

impl fmt::Debug for dyn ListingPageDestinationChooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ListingPageDestinationChooser(..)")
    }
}
