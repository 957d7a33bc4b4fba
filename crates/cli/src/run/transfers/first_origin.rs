//! The origin of the first URL of a URL group, which alone may receive the credentials of later
//! stages (`--then`).
//!
//! The first URL is the one that the user wrote first, even if this run does not request it: an
//! earlier run of the job has fetched it, `--skip-existing` or `--shard` skips it, or it is no URL.
//! Otherwise the credentials would go to the origin of another URL.

use std::io::{BufReader, Cursor};
use std::sync::{Arc, OnceLock};

use haul::{Result, Target};
use haul_policy::target::{Origin, Scheme};

use crate::job::JobRun;
use crate::plan::{UrlGroup, UrlSource};
use crate::run::transfers::list_reader::ListReader;

/// The origin of the first URL of a URL group. It is set once: to `None` if the first URL is no URL.
pub(crate) struct FirstOrigin {
    origin: Arc<OnceLock<Option<Origin>>>,
    default_scheme: Scheme,
}

impl FirstOrigin {
    /// Creates the origin for the URLs of `group`, which sets `origin`.
    pub(crate) fn new(group: &UrlGroup, origin: Arc<OnceLock<Option<Origin>>>) -> Self {
        Self { origin, default_scheme: group.stages[0].transfer.redirect.default_scheme }
    }

    /// Sets the origin to that of the first URL. `url` is `None` if there is an error in its place.
    /// Does nothing if the origin is already set.
    pub(super) fn set(&self, url: Option<&str>) {
        let target = || Target::parse_with(url?, self.default_scheme, false).ok();
        self.origin.get_or_init(|| target().map(|target| target.origin()));
    }

    /// Sets the origin before the URLs are read, because the transfers of later stages that an
    /// earlier run of the job has left come before the URLs. Does nothing if the first URL is in a
    /// list of which the job has no line yet.
    pub(crate) fn set_for_job(&self, group: &UrlGroup, job: &JobRun) {
        for (index, source) in group.urls.iter().enumerate() {
            match first_url_of_source(group, index, source, job) {
                Ok(Some(url)) => return self.set(Some(&url)),
                Ok(None) if job.is_list_begun(index) => {}
                Ok(None) => return,
                Err(_) => return self.set(None),
            }
        }
    }
}

/// Returns the first URL of a source, an argument or a list. Returns `None` for an empty list, and
/// for a list of which the job has no line yet.
fn first_url_of_source(group: &UrlGroup, index: usize, source: UrlSource<'_>, job: &JobRun) -> Result<Option<String>> {
    match source {
        UrlSource::Argument(url) if !group.is_glob(index, url) => Ok(Some(url.to_owned())),
        UrlSource::Argument(url) => Ok(crate::run::parse_glob(url)?.iter().next_url()),
        UrlSource::InputFile(name) => match job.beginning_of_copied_list(index)? {
            Some(text) => {
                ListReader::from_reader(Box::new(BufReader::new(Cursor::new(text))), name).next_url()?.transpose()
            }
            None => ListReader::open(name)?.next_url()?.transpose(),
        },
    }
}
