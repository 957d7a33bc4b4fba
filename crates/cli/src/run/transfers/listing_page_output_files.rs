//! The output files for the pages of a paginated listing. With `-O`, or with `{page}` in the name
//! of `-o` or of a record's `output`, each page has its own file.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul::fleet::{BodyDestination, ListingPageDestinationChooser};
use haul::sink::file::FileOptions;
use haul::{Result, Target};
use haul_policy::glob::GlobValues;
use haul_policy::protocols::ProtocolSet;

use crate::plan::{OutputArg, UrlGroup};
use crate::record_input::CsvRow;
use crate::run::engine_options::output_options::{
    avoid_blocked_path, fill_page_number, in_output_dir, options_for, output_file_path, reserve_first_stage_output_name,
};
use crate::run::engine_options::url_to_allowed_target::refuse_protocol;
use crate::run::transfers::reserved_output_names::ReservedOutputNames;

/// The output files for all pages of one paginated listing except the first page.
pub(crate) struct ListingPageFiles {
    pub(crate) group: Arc<UrlGroup>,
    /// The index, in the URL group, of the argument or list that contains the URL of the first
    /// page.
    pub(crate) source: usize,
    pub(crate) naming: PageNaming,
    pub(crate) names: ReservedOutputNames,
}

/// The source of the names of the output files for the pages of a paginated listing: the output
/// option of the command line, or a line of `--jsonl-in`.
pub(crate) enum PageNaming {
    /// The output option of the command line, such as `-o '#1.json'`. The values that the globs
    /// have in the URL of the first page replace the placeholders in the option's value.
    Globs(GlobValues),
    /// The output option of the command line, such as `-o '{id}.json'`. The fields are the names of
    /// the columns of a list (`--csv-in`, `--tsv-in`), and one row of the list. The values of the
    /// row replace the placeholders in the option's value.
    Columns(Arc<[String]>, Arc<CsvRow>),
    /// The value of the key `output` in a record (a line of `--jsonl-in`, which describes a
    /// request).
    Record(PathBuf),
}

impl ListingPageFiles {
    /// Returns true if the URLs of a URL group (`--next` separates groups) are paginated listings,
    /// and one of these conditions holds:
    ///
    /// * The pages after the first page need separate destinations.
    /// * `--proto` restricts the protocols of URLs, so that the URL of each further page must be
    ///   checked.
    pub(crate) fn are_needed(group: &UrlGroup) -> bool {
        let first = &group.stages[0];
        let to_stdout = |source| group.output_of_source(source).is_stdout();
        let is_restricted = first.transfer.redirect.protocols != ProtocolSet::default();
        let is_one = pages_share_file(group) || (0..group.urls.len()).all(to_stdout);
        // A record may name a file of its own.
        let has_records = group.records.is_some();
        first.pagination.is_some() && (is_restricted || has_records || !is_one)
    }
}

/// Returns true if a URL group without `--then` writes the bodies of all its pages to one output.
fn pages_share_file(group: &UrlGroup) -> bool {
    group.stages.len() == 1 && group.shared_output().is_some()
}

/// Returns the path of an output file in the output directory. `name` is the file name that a
/// record of `--jsonl-in` gives. If the URLs are paginated listings, the page's number `page`
/// replaces `{page}` in the name.
pub(crate) fn file_of_record(group: &UrlGroup, name: &Path, page: u64) -> PathBuf {
    in_output_dir(group, fill_page_number(&group.stages[0], name.as_os_str(), page).into_owned())
}

/// Returns `options`, changed for an output file that a record in a list names: the file must stay
/// below the output directory.
pub(crate) fn options_of_record(group: &UrlGroup, options: FileOptions) -> FileOptions {
    FileOptions { beneath: Some(in_output_dir(group, OsString::new())), ..options }
}

impl ListingPageDestinationChooser for ListingPageFiles {
    fn destination(&self, page: u64, target: &Target) -> Result<BodyDestination> {
        let Self { group, source, naming, names } = self;
        refuse_protocol(&group.stages[0], target)?;
        if pages_share_file(group) && !matches!(naming, PageNaming::Record(_)) {
            return Ok(BodyDestination::Output);
        }
        let url = target.to_url();
        let of_command_line = group.output_of_source(*source);
        let file = |parts: &GlobValues, row: Option<(&[String], &CsvRow)>| {
            let column = |name: &str| {
                let (columns, row) = row?;
                columns.iter().position(|column| column == name).map(|index| Cow::from(row.field(index)))
            };
            output_file_path(group, *source, target, &url, parts, &column, page)
        };
        let path = match naming {
            PageNaming::Record(name) => Some(file_of_record(group, name, page)),
            PageNaming::Globs(parts) => file(parts, None)?,
            PageNaming::Columns(columns, row) => file(&GlobValues::default(), Some((columns, row)))?,
        };
        let Some(path) = path else { return Ok(BodyDestination::Output) };
        let of_record = OutputArg::File(path.clone().into_os_string());
        let is_of_record = matches!(naming, PageNaming::Record(_));
        let output = if is_of_record { &of_record } else { of_command_line };
        let path = if is_of_record { path } else { avoid_blocked_path(group, names, output, path) };
        reserve_first_stage_output_name(group, names, output, &path, &url)?;
        let options = options_for(group, output, None, Some(names));
        let options = if is_of_record { options_of_record(group, options) } else { options };
        Ok(BodyDestination::File { path, options })
    }
}
