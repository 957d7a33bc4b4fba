//! A transfer of a fleet, as it appears in reports, and the destination of its body.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use super::dispatch::PaginatedListing;
use super::fleet_input_item::ItemUserData;
use crate::sink::file::FileOptions;

/// The destination of a transfer's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyDestination {
    /// The output that all transfers of the fleet share. Bodies are written to it in the order of
    /// the transfers.
    Output,
    /// A file for this body alone.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The options for writing the file.
        options: FileOptions,
    },
}

/// A transfer of a fleet: what is fetched, and its position in the output order. Reports about the
/// transfer contain it.
#[derive(Debug, Clone)]
pub struct FleetJob {
    /// The URL, as the user gave it or as a stage made it.
    pub url: String,
    /// The number of the transfer within its stage, counted from 0.
    pub number: u64,
    /// The position in the output order. It consists of the numbers of the transfers in earlier
    /// stages that led to this transfer, followed by the transfer's own number. For a page of a
    /// paginated listing, the index of the page (from 0) comes last.
    pub order: Arc<[u64]>,
    /// The index of the transfer's stage, counted from 0.
    pub stage: usize,
    /// The number of the page in its paginated listing, counted from 1. It is 1 if the stage is not
    /// paginated.
    pub page: u64,
    /// The destination of the body. After the transfer, its path is the final path of the file,
    /// which may differ from the requested one ([`FileOptions::named_by_response`],
    /// [`ClobberMode::Number`](crate::sink::temporary_and_final_names::ClobberMode::Number)).
    pub destination: BodyDestination,
    /// The HTTP method of the request, if its
    /// [`PerItemRequestOptions`](super::PerItemRequestOptions) set one; otherwise `None`.
    pub method: Option<Cow<'static, str>>,
    /// The [identifier](super::FleetItem::id) of the input item from which the transfer comes;
    /// `None` if it has none.
    pub id: Option<Box<str>>,
    /// The [context](super::FleetItem::context) of the input item from which the transfer comes;
    /// `None` if it has none.
    pub context: Option<ItemUserData>,
    pub(super) slot: u64,
    /// The paginated listing to which the page belongs; `None` if the stage is not paginated.
    pub(super) listing: Option<Arc<PaginatedListing>>,
}

impl FleetJob {
    /// Returns true if the transfer is a page of a paginated listing
    /// ([`FleetStage::pagination`](super::FleetStage::pagination)). All pages of a listing have the
    /// same [`number`](Self::number).
    #[must_use]
    pub fn is_page_of_listing(&self) -> bool {
        self.listing.is_some()
    }
}
