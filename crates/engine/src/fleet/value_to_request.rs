//! The mapping from a value of one stage to a request of the next stage.

use haul_policy::target::Target;

use super::reported_job_and_destination::BodyDestination;
use crate::Result;
use crate::request::RequestOptions;

/// A mapping from an extracted value to the request for its page, and to the destination of the
/// page. Each method is called once for each value.
pub trait ExtractedValueMapper: Send + Sync {
    /// Returns the URL to fetch. `url` is the URL that the stage's template has made. By default,
    /// returns `url`.
    fn url(&self, _value: &[u8], url: String) -> String {
        url
    }

    /// Returns the destination of the page, or `None` if the page need not be fetched. The method
    /// is called for the values in their order.
    ///
    /// # Errors
    /// The value cannot be used. Its page counts as failed.
    fn destination(&self, value: &[u8], target: &Target) -> Result<Option<BodyDestination>>;

    /// Returns the destination of a later page of the listing that begins with the page of this
    /// value. `_page` is the page's number, from 2, and `_target` its URL. Default: the output.
    ///
    /// # Errors
    /// There is no destination for the page. The page counts as failed, and the listing ends.
    fn page_destination(&self, _value: &[u8], _page: u64, _target: &Target) -> Result<BodyDestination> {
        Ok(BodyDestination::Output)
    }

    /// Returns the options for the page's request, or `None` to use the stage's options. If the
    /// target must not receive credentials, `_options` contains no credentials. By default, returns
    /// `None`.
    fn options(&self, _value: &[u8], _options: &RequestOptions) -> Option<RequestOptions> {
        None
    }
}
