//! The origin of the first URL of a URL group, which alone may receive the credentials of later
//! stages (`--then`).
//!
//! The first URL is the one that the user wrote first, even if this run does not request it: an
//! earlier run of the job has fetched it, `--skip-existing` or `--shard` skips it, or it is no URL.
//! Otherwise the credentials would go to the origin of another URL.

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

    /// Sets the origin to that of the group's first URL, before the run of a job reads its URLs.
    /// The run begins with the transfers of later stages that an earlier run has left, and these
    /// need the origin. Does nothing if the first URL may be in a part of a list that the job has
    /// not copied yet.
    pub(crate) fn set_for_job(&self, group: &UrlGroup, job: &JobRun) {
        for (index, source) in group.urls.iter().enumerate() {
            match first_url_of_source(group, index, source, job) {
                Ok(FirstUrlOfSource::Url(url)) => return self.set(Some(&url)),
                Ok(FirstUrlOfSource::None) => {}
                Ok(FirstUrlOfSource::NotRead) => return,
                Err(_) => return self.set(None),
            }
        }
    }
}

/// The first URL of a source of URLs.
enum FirstUrlOfSource {
    Url(String),
    /// The source has no URL.
    None,
    /// The job has not copied the list to its end, and has no URL of it yet.
    NotRead,
}

/// Returns the first URL of a source, an argument or a list.
fn first_url_of_source(
    group: &UrlGroup,
    index: usize,
    source: UrlSource<'_>,
    job: &JobRun,
) -> Result<FirstUrlOfSource> {
    let (url, is_whole) = match source {
        UrlSource::Argument(url) if !group.is_glob(index, url) => (Some(url.to_owned()), true),
        UrlSource::Argument(url) => (crate::run::parse_glob(url)?.iter().next_url(), true),
        UrlSource::InputFile(name) => {
            let (mut list, is_whole) = match job.copied_lines(index)? {
                Some((lines, is_whole)) => (ListReader::from_reader(lines, name), is_whole),
                None => (ListReader::open(name)?, true),
            };
            (list.next_url()?.transpose()?, is_whole)
        }
    };
    Ok(match url {
        Some(url) => FirstUrlOfSource::Url(url),
        None if is_whole => FirstUrlOfSource::None,
        None => FirstUrlOfSource::NotRead,
    })
}
