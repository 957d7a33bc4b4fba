//! The mapping from a value of one stage to a request of the next stage.

use haul_policy::target::Target;

use super::reported_job_and_destination::BodyDestination;
use crate::Result;
use crate::request::RequestOptions;

/// A mapping from a value that one stage extracted to a request of the next stage, and to the
/// destination of the response's body. The page of a value is the resource that this request
/// fetches. For each value, [`url`](Self::url) and [`destination`](Self::destination) are called at
/// most once. [`options`](Self::options) is called for each page that is fetched, also for later
/// pages of a paginated listing.
pub trait ExtractedValueMapper: Send + Sync {
    /// Returns the URL to fetch for a value. `url` is the URL that the stage's URL template has
    /// made from the value. By default, returns `url`.
    fn url(&self, _value: &[u8], url: String) -> String {
        url
    }

    /// Returns the destination of the page of a value, or `None` if the page need not be fetched.
    /// `target` is the page's URL. The method is called for the values in their order.
    ///
    /// # Errors
    /// The value cannot be used. Its page counts as failed.
    fn destination(&self, value: &[u8], target: &Target) -> Result<Option<BodyDestination>>;

    /// Returns the destination of the second or a later page of a paginated listing. The first page
    /// of the listing is the page that was requested for `_value`. `_page` is the number of the
    /// page in the listing (2 for the second page), and `_target` its URL. Default: the output of
    /// the fleet.
    ///
    /// # Errors
    /// There is no destination for the page. The page counts as failed, and the listing ends.
    fn page_destination(&self, _value: &[u8], _page: u64, _target: &Target) -> Result<BodyDestination> {
        Ok(BodyDestination::Output)
    }

    /// Returns the options for the request that is made from `_value`. `None` means the options in
    /// `_options`: those that all requests of the stage share, without the credentials if the
    /// target must not receive them. Default: `None`.
    fn options(&self, _value: &[u8], _options: &RequestOptions) -> Option<RequestOptions> {
        None
    }
}
