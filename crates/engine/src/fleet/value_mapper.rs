//! The parts of a stage's requests that depend on the values of the stage before.

use haul_policy::target::Target;

use super::dispatch::BodyDestination;
use crate::Result;
use crate::request::RequestOptions;

/// Decides by a value how its page is requested, and where the page goes. Each method is called
/// once for a value.
pub trait ValueMapper: Send + Sync {
    /// The URL to fetch, of the one that the stage's template made. Default: that one.
    fn url(&self, _value: &[u8], url: String) -> String {
        url
    }

    /// The destination of the page; `None` if it need not be fetched. Called in the order in which
    /// values are passed on.
    ///
    /// # Errors
    /// When the value cannot be used: its page counts as failed.
    fn destination(&self, value: &[u8], target: &Target) -> Result<Option<BodyDestination>>;

    /// The options of the page's request; `None`, the default, if they are those of the stage. The
    /// given ones are without secrets where the target may not have them.
    fn options(&self, _value: &[u8], _options: &RequestOptions) -> Option<RequestOptions> {
        None
    }
}
