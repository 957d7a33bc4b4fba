//! The faults for which curl ends a run before its first request.
//!
//! curl prepares the transfers that it runs at the same time before it begins the first one. An
//! invalid glob, an output file without a name or a missing upload ends the run. curl then prints
//! the error and the text of `-w` for each transfer that it has prepared so far.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use haul::{Error, ErrorKind, Result};
use haul_policy::glob::{ExpandedGlobUrl, GlobValues};
use haul_policy::output_name_placeholders::no_columns;

use super::url_uploads::{UrlUpload, uploads};
use crate::plan::{OutputArg, RunPlan, UrlGroup, UrlSource};
use crate::run::engine_options::output_options::output_file_path;
use crate::run::engine_options::url_to_allowed_target::parse_target;
use crate::run::parse_glob;
use crate::run::report::error_message;
use crate::run::report::file_metadata;
use crate::run::report::progress::ProgressReporter;
use crate::run::report::reporter::{SharedByUrlGroups, UrlGroupReporter};

/// An error for which curl ends a run before its first request.
pub(crate) struct FirstTransferError {
    pub(crate) error: Error,
    /// The transfers that curl has prepared, the one with the error last. Empty if curl has found
    /// the error before it has prepared a transfer.
    prepared: Vec<PreparedTransfer>,
}

/// A transfer that curl has prepared: the index of its group among the groups of the run in
/// parallel, the index of the URL's source in the group, and the URL.
struct PreparedTransfer {
    group: usize,
    source: usize,
    url: String,
}

impl From<Error> for FirstTransferError {
    fn from(error: Error) -> Self {
        Self { error, prepared: Vec::new() }
    }
}

/// Checks the transfers that curl prepares before its first request: the glob of the first URL, and
/// with `-Z` the globs, output names and uploads of all URLs that may be transferred at the same
/// time. Checks nothing if haul does not act as curl.
///
/// # Errors
/// A glob is invalid, the name of an output file is empty, or a file to upload cannot be read.
pub(crate) fn check(plan: &RunPlan, groups: &[Arc<UrlGroup>]) -> std::result::Result<(), FirstTransferError> {
    if !plan.global.persona.is_curl() {
        return Ok(());
    }
    let count = if plan.global.parallel { plan.global.parallel_max } else { 1 };
    let mut prepared = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        for (source, url) in group.urls.iter().enumerate() {
            let UrlSource::Argument(url) = url else { continue };
            for upload in uploads(group, source)? {
                let single = || std::iter::once(ExpandedGlobUrl { url: url.to_owned(), parts: GlobValues::default() });
                let glob = group.is_glob(source, url).then(|| parse_glob(url)).transpose()?;
                let urls: Box<dyn Iterator<Item = ExpandedGlobUrl>> = match &glob {
                    Some(glob) => Box::new(glob.iter()),
                    None => Box::new(single()),
                };
                for expansion in urls {
                    prepared.push(PreparedTransfer { group: number, source, url: expansion.url.clone() });
                    if plan.global.parallel
                        && let Err(error) = check_transfer(group, source, &upload, expansion)
                    {
                        return Err(FirstTransferError { error, prepared });
                    }
                    if prepared.len() == count {
                        return Ok(());
                    }
                }
            }
        }
    }
    Ok(())
}

/// Checks the name of the output file of a transfer, and the file that it uploads. `source` is the
/// index of the URL's source in the group. Nothing is checked for a URL that is invalid, because
/// its error comes first.
fn check_transfer(group: &UrlGroup, source: usize, upload: &UrlUpload, expansion: ExpandedGlobUrl) -> Result<()> {
    let ExpandedGlobUrl { url, parts } = expansion;
    let has_file = matches!(group.output_of_source(source), OutputArg::File(_));
    let is_upload = matches!(upload, UrlUpload::File(..));
    if !has_file && !is_upload {
        return Ok(());
    }
    let Ok(target) = parse_target(&group.stages[0], &upload.named_url(&url)) else { return Ok(()) };
    if has_file {
        let parts = upload.with_named_values(parts);
        let path = output_file_path(group, source, &target, &url, &parts, &no_columns, 1);
        if let Err(error) = path
            && error_message::is_empty_output_name(&error)
        {
            return Err(error);
        }
    }
    let UrlUpload::File(file, _) = upload else { return Ok(()) };
    check_can_be_read(Path::new(file)).map_err(|error| {
        Error::with_source(ErrorKind::Read, format!("failed to read {}", Path::new(file).display()), error)
    })
}

/// Checks that a file exists and, if it is a regular file, that it can be opened. A FIFO is not
/// opened, because that would wait for its writer.
fn check_can_be_read(path: &Path) -> std::io::Result<()> {
    match path.metadata()?.is_file() {
        true => File::open(path).map(drop),
        false => Ok(()),
    }
}

impl FirstTransferError {
    /// Prints the text of `-w` for each prepared transfer, and the error for each but the last.
    /// Also creates the files of `-D` and `--etag-save`, as curl does when it prepares a transfer.
    pub(crate) fn report_prepared(
        &self,
        plan: &RunPlan,
        groups: &[Arc<UrlGroup>],
        progress: &Arc<ProgressReporter>,
        before: &SharedByUrlGroups,
    ) {
        let mut reporter: Option<(usize, UrlGroupReporter)> = None;
        for (number, transfer) in self.prepared.iter().enumerate() {
            let group = &groups[transfer.group];
            if reporter.as_ref().is_none_or(|(of, _)| *of != transfer.group) {
                let earlier = groups[..transfer.group].iter().map(|group| group.urls.len() as u64).sum::<u64>();
                let before = SharedByUrlGroups { urls: before.urls + earlier, ..before.clone() };
                let opened = UrlGroupReporter::new(&plan.global, group, Arc::clone(progress), before);
                reporter = opened.ok().map(|opened| (transfer.group, opened));
            }
            if let Some(tag) = &group.stages[0].request.etag_save {
                let _ = file_metadata::check_can_be_saved(group, tag);
            }
            if let Some((_, reporter)) = &reporter {
                let text =
                    reporter.report_unusable_url(&transfer.url, &transfer.url, transfer.source as u64, &self.error);
                // The error of the transfer is the one to report.
                let _ = reporter.print(text);
            }
            if number + 1 < self.prepared.len() && plan.global.shows_errors() {
                progress.print_error(&self.error, None);
            }
        }
    }
}
