//! The URLs that a repeated stage has already met, so that each is fetched only once.

use std::sync::{Arc, Mutex};

use crate::extraction::{Distinct, DistinctResult};
use crate::ignore_poison::IgnorePoison;
use crate::{Error, ErrorKind, Result};

/// A set of the URLs that a repeated stage has already queued. A repeated stage
/// ([`FleetStage::depth`](super::FleetStage::depth)) extracts links from its pages, and requests
/// them in its next repetition. All repetitions share the set, so each URL is fetched only once.
#[derive(Clone)]
pub(super) struct KnownUrls {
    urls: Arc<Mutex<Distinct>>,
}

impl KnownUrls {
    /// Makes a set that uses at most about `memory` bytes.
    pub(super) fn new(memory: u64) -> Self {
        Self { urls: Arc::new(Mutex::new(Distinct::new(memory, std::env::temp_dir()))) }
    }

    /// Adds a URL. Returns true if it was not in the set.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] if there is no memory for the URL.
    pub(super) fn is_new(&self, url: &[u8]) -> Result<bool> {
        match self.urls.lock().ignore_poison().push(url)? {
            DistinctResult::New => Ok(true),
            DistinctResult::Old => Ok(false),
            DistinctResult::Deferred => Err(Error::new(
                ErrorKind::TooLarge,
                "repeated stages found more URLs than fit in their memory; raise --max-memory, or lower --depth",
            )),
        }
    }
}
