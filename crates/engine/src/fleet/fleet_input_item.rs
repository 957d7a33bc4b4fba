//! An item of a fleet's input: a URL, the destination of its body, and the settings of its request.
//!
//! ```
//! use haul::fleet::{BodyDestination, FleetItem, PerItemRequestOptions};
//! use haul::request::RequestOverrides;
//!
//! let overrides = RequestOverrides { method: Some("POST".into()), body: Some("a=1".into()), ..RequestOverrides::default() };
//! let mut item = FleetItem::new("http://127.0.0.1/form", BodyDestination::Output);
//! item.request = Some(Box::new(PerItemRequestOptions { overrides, ..PerItemRequestOptions::default() }));
//! item.id = Some("7".into());
//! ```

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use haul_policy::redirect::SecretHandling;
use haul_policy::secret_fields::may_send;

use super::listing_page_destination_chooser::ListingPageDestinationChooser;
use super::reported_job_and_destination::BodyDestination;
use crate::Error;
use crate::request::{RequestOptions, RequestOverrides};

/// An item of a fleet's input: a URL, the destination of its body, and the settings of its request.
/// A fleet runs many transfers in parallel.
#[derive(Debug)]
pub struct FleetItem {
    /// The URL, as the user wrote it.
    pub url: String,
    /// The destination of the body: the fleet's output, or a file.
    pub destination: BodyDestination,
    /// The settings that apply to the request of this item alone. They take precedence over the
    /// options of the first stage ([`FleetStage::options`](super::FleetStage::options)), which
    /// apply to all items. Default: `None`, for the options of the first stage.
    pub request: Option<Box<PerItemRequestOptions>>,
    /// The identifier of the item, as JSON text. Reports about the transfer contain it unchanged.
    /// Default: none.
    pub id: Option<Box<str>>,
    /// A value of the caller. [`FleetJob::context`](super::FleetJob::context) passes it to the
    /// reports about the transfer. Default: none.
    pub context: Option<ItemUserData>,
    /// True if the user wrote the origin of the URL; false if the URL is from a list that somebody
    /// else wrote. The later stages of the fleet, which request URLs that are made from extracted
    /// values, send credentials only to trusted origins. The origin of the first item for which
    /// this field is true is one of them. Default: true.
    pub is_users_origin: bool,
    /// The number of the transfer ([`FleetJob::number`](super::FleetJob::number)), which must be
    /// greater than the numbers of earlier items. A list from which items are left out can thus
    /// keep the numbers of the other items. Default: `None`, for one more than the number of the
    /// previous item.
    pub number: Option<u64>,
    /// The error that prevents the request of this item. The item is then reported as a failed
    /// transfer. Default: none.
    pub error: Option<Error>,
    /// The destinations of the second and later pages, if the first stage fetches paginated
    /// listings ([`FleetStage::pagination`](super::FleetStage::pagination)). Default: the output of
    /// the fleet.
    pub later_pages: Option<Arc<dyn ListingPageDestinationChooser>>,
}

impl FleetItem {
    /// Makes an item with the defaults of all fields but `url` and `destination`. Its request has
    /// the options of the fleet's first stage
    /// ([`FleetStage::options`](super::FleetStage::options)).
    #[must_use]
    pub fn new(url: impl Into<String>, destination: BodyDestination) -> Self {
        Self {
            url: url.into(),
            destination,
            request: None,
            id: None,
            context: None,
            is_users_origin: true,
            number: None,
            error: None,
            later_pages: None,
        }
    }

    /// Makes an item that is reported as failed with this error.
    #[must_use]
    pub fn failed(error: Error) -> Self {
        let url = error.url().unwrap_or_default().to_owned();
        Self { error: Some(error), ..Self::new(url, BodyDestination::Output) }
    }

    /// Returns the number of bytes of memory that the texts and the request content of the item
    /// take.
    pub(super) fn kept_bytes(&self) -> usize {
        let request = self.request.as_deref().map_or(0, PerItemRequestOptions::kept_bytes);
        self.url.len() + self.id.as_deref().map_or(0, str::len) + request
    }
}

/// The settings of one request of a fleet (a parallel run of transfers) that differ from the
/// settings of its stage.
#[derive(Debug, Clone, Default)]
pub struct PerItemRequestOptions {
    /// The options of this request; `None` for the options of the first stage. Many items may share
    /// one value.
    pub options: Option<Arc<RequestOptions>>,
    /// The settings of the request that take precedence over `options`.
    pub overrides: RequestOverrides,
}

impl PerItemRequestOptions {
    /// Returns a copy without credentials, for a URL that comes from a page and not from the user.
    pub(super) fn without_secrets(&self) -> Self {
        let mut overrides = self.overrides.clone();
        overrides.fields.retain(|(name, _)| may_send(name, SecretHandling::Drop));
        Self { options: self.options.as_ref().map(|options| Arc::new(options.without_secrets())), overrides }
    }

    /// Returns the number of bytes of memory that are used only by this request, and not shared
    /// with other requests.
    pub(super) fn kept_bytes(&self) -> usize {
        let fields = self.overrides.fields.iter().map(|(name, value)| name.len() + value.len());
        let body = self.overrides.body.as_ref().and_then(|body| body.bytes());
        fields.sum::<usize>() + body.map_or(0, <[u8]>::len)
    }
}

/// A value of the caller that is attached to an item of a fleet's input ([`FleetItem`]). `Debug`
/// does not show the value.
#[derive(Clone)]
pub struct ItemUserData(Arc<dyn Any + Send + Sync>);

impl ItemUserData {
    /// Makes the user data of an item. Several items may share the value.
    pub fn new<T: Send + Sync + 'static>(value: Arc<T>) -> Self {
        Self(value)
    }

    /// Returns the value if it has the type `T`, and `None` otherwise.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for ItemUserData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ItemUserData(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_context_is_returned_only_for_its_type() {
        let context = ItemUserData::new(Arc::new(7_u32));
        assert_eq!(context.get::<u32>(), Some(&7));
        assert_eq!(context.get::<u64>(), None);
    }

    #[test]
    fn kept_bytes_include_url_content_fields_and_id() {
        let mut item = FleetItem::new("http://h/", BodyDestination::Output);
        assert_eq!(item.kept_bytes(), 9);
        let overrides = RequestOverrides {
            body: Some("0123456789".into()),
            fields: vec![("a".into(), b"bc".to_vec())],
            ..RequestOverrides::default()
        };
        item.request = Some(Box::new(PerItemRequestOptions { overrides, ..PerItemRequestOptions::default() }));
        item.id = Some("\"x\"".into());
        assert_eq!(item.kept_bytes(), 9 + 10 + 3 + 3);
    }
}
