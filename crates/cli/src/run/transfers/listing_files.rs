//! The files of a listing's pages: `{page}` in the name of `-o`, or `-O`.

use std::sync::Arc;

use haul::fleet::{BodyDestination, PageDestination};
use haul::{Result, Target};
use haul_policy::glob::GlobValues;
use haul_policy::output_name::no_columns;
use haul_policy::protocols::ProtocolSet;

use crate::plan::UrlGroup;
use crate::run::engine_options::output_options::{claims_name, file_for, options_for};
use crate::run::engine_options::target_url::refuse_protocol;
use crate::run::transfers::output_names::OutputNames;

/// The destinations of the pages of one listing after the first page.
pub(crate) struct ListingFiles {
    pub(crate) operation: Arc<UrlGroup>,
    /// The index of the source from which the first URL comes.
    pub(crate) source: usize,
    /// The values of the globs in the first URL.
    pub(crate) parts: GlobValues,
    pub(crate) names: OutputNames,
}

impl ListingFiles {
    /// Returns true if the first stage of a URL group has listings whose pages need a destination
    /// each, or whose protocol is restricted.
    pub(crate) fn are_needed(operation: &UrlGroup) -> bool {
        let first = &operation.stages[0];
        let to_stdout = |source| operation.output_of(source).is_stdout();
        let is_restricted = first.transfer.redirect.protocols != ProtocolSet::default();
        let is_one = is_shared(operation) || (0..operation.urls.len()).all(to_stdout);
        first.pagination.is_some() && (is_restricted || !is_one)
    }
}

/// Returns true if all pages of the first stage are output to one place.
fn is_shared(operation: &UrlGroup) -> bool {
    operation.stages.len() == 1 && operation.shared_output().is_some()
}

impl PageDestination for ListingFiles {
    fn destination(&self, page: u64, target: &Target) -> Result<BodyDestination> {
        let Self { operation, source, parts, names } = self;
        refuse_protocol(&operation.stages[0], target)?;
        let (output, url) = (operation.output_of(*source), target.to_url());
        if is_shared(operation) || output.is_stdout() {
            return Ok(BodyDestination::Output);
        }
        let Some(path) = file_for(operation, *source, target, &url, parts, &no_columns, page)? else {
            return Ok(BodyDestination::Output);
        };
        claims_name(operation, names, output, &path, &url)?;
        Ok(BodyDestination::File { path, options: options_for(operation, output, None, Some(names)) })
    }
}
