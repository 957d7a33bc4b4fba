//! Iterates over the URLs of a URL group. They come from arguments, globs and files of URLs. Each
//! URL may have an upload.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul::body::upload::RequestBody;
use haul::fleet::{BodyDestination, FleetItem, ItemUserData, ListingPageDestinationChooser, PerItemRequestOptions};
use haul::request::{RequestOverrides, method};
use haul::sink::file::FileOptions;
use haul::sink::temporary_and_final_names::ClobberMode;
use haul::{Error, ErrorKind, RequestOptions, Result, Target};
use haul_policy::glob::{GlobExpansions, GlobValues};
use haul_policy::output_name_placeholders::{ColumnLookup, no_columns};
use haul_policy::protocols::ProtocolSet;
use haul_policy::target::{Origin, Scheme};

use crate::checksum::ChecksumList;
use crate::job::{EarlierFetch, JobRun, UrlCursor, UrlRunState};
use crate::plan::{NetrcFileText, OutputArg, UrlGroup, UrlSource, append_query};
use crate::record_input::RecordInputFormat;
use crate::run::engine_options::output_options::{
    append_whole_response, avoid_blocked_path, fixed_output_path, is_common_output, options_for, output_file_path,
    reserve_first_stage_output_name,
};
use crate::run::engine_options::request_body::UploadContent;
use crate::run::engine_options::url_to_allowed_target::{parse_target, refuse_login, refuse_protocol};
use crate::run::report::reporter::UrlGroupReporter;
use crate::run::report::run_counts::RunCounts;
use crate::run::report::urlnum_variable::UrlNumbers;
use crate::run::transfers::expected_checksum;
use crate::run::transfers::first_origin::FirstOrigin;
use crate::run::transfers::jsonl_record_requests::RecordRequestBase;
use crate::run::transfers::list_reader::ListReader;
use crate::run::transfers::listing_page_output_files::{ListingPageFiles, PageNaming};
use crate::run::transfers::record_items::CsvListRequestReader;
use crate::run::transfers::reserved_output_names::ReservedOutputNames;
use crate::run::transfers::shard_filter::ShardFilter;
use crate::run::transfers::url_uploads::{UrlUpload, uploads};

/// Iterates over the URLs of a URL group, as items (transfers to run) for the engine's fleet. A
/// file of URLs is read line by line as items are needed.
pub(crate) struct UrlItems {
    pub(super) group: Arc<UrlGroup>,
    /// The checksum list (SHA256SUMS), with its URL or file name; `None` if `--checksum` names no
    /// list.
    list: Option<(Arc<ChecksumList>, String)>,
    at: usize,
    pub(super) current: OpenUrlSource,
    /// The upload (`-T`) that is being sent to the URLs of the current argument or list.
    upload: UrlUpload,
    /// The further uploads, after `upload`, to the URLs of the current argument or list. There are
    /// several uploads if the value of `-T` is a glob.
    uploads: VecDeque<UrlUpload>,
    pub(super) requests: UrlGroupRequestSettings,
    /// The settings for the records in the group's JSON Lines lists; `None` if each line of a list
    /// is a URL.
    pub(super) records: Option<RecordRequestBase>,
    /// True if the group's URLs are paginated listings, and the pages after the first need
    /// destinations of their own or a check of their URLs' schemes (`--proto`).
    has_listings: bool,
    /// The origin of the last URL that was parsed for the name of its output file; `None` if that
    /// URL is invalid, or before the first one. The next URL shares this value if its origin is the
    /// same.
    near: Option<Origin>,
    /// The index of a URL source (an argument or a list), and the destination that the bodies of
    /// all its URLs share, such as standard output. `None` if no such destination is known, for
    /// example before the first URL.
    common: Option<(usize, BodyDestination)>,
    /// The number of items made so far, including those of earlier URL groups (`--next` separates
    /// groups) that run in parallel with this group. Counted only if haul acts as curl.
    made: u64,
    /// The number of URL sources (arguments and lists) in the earlier URL groups (`--next`
    /// separates groups) that run in parallel with this group.
    earlier_sources: u64,
    numbers: UrlNumbers,
    pub(super) shard: ShardFilter,
    pub(super) names: ReservedOutputNames,
    /// The number of URLs read so far, including the skipped URLs.
    pub(super) position: u64,
    job: Option<JobWithUrlStateCursor>,
    counts: ProgressCountsForList,
    /// The reporter that prints `-w` for the URLs that `--skip-existing` skips. `None` if skipped
    /// URLs are not reported.
    skip_reporter: Option<Arc<UrlGroupReporter>>,
    /// The origin that the iterator sets when it reads the first URL; `None` if nothing needs it.
    first_origin: Option<FirstOrigin>,
}

/// The progress counts that the iterator over a list of URLs updates. The iterator counts each URL
/// that it skips. At the end of the list, the iterator sets the total number of URLs, if
/// `are_all_urls` is true.
#[derive(Default)]
pub(crate) struct ProgressCountsForList {
    /// The progress counts of the run; `None` if the run does not need them.
    pub(crate) counts: Option<Arc<RunCounts>>,
    /// True if the run has no URLs besides those of this list.
    pub(crate) are_all_urls: bool,
}

/// The job (`--job`) of the run, and a cursor over the states that it has stored for the URLs. The
/// states show which URLs an earlier run has already fetched.
struct JobWithUrlStateCursor {
    job: Arc<JobRun>,
    cursor: UrlCursor,
    is_at_end: bool,
}

/// The request settings that all URLs of a URL group (`--next` separates groups) share.
pub(crate) struct UrlGroupRequestSettings {
    /// The request options of the URL group.
    pub(crate) options: Arc<RequestOptions>,
    /// The content of each request; `None` if `options` contains the content.
    pub(crate) body: Option<RequestBody>,
    /// True if transfers of other URL groups run in parallel with those of this group. Each item (a
    /// transfer to run) then carries these settings, because the groups have different ones.
    pub(crate) runs_with_other_groups: bool,
    /// The value that each item carries for its reporter; `None` if one reporter reports all items
    /// of the parallel run.
    pub(crate) context: Option<ItemUserData>,
}

impl UrlGroupRequestSettings {
    /// Returns the request settings of one item (a transfer to run). Returns `None` if the item
    /// uses the settings that all transfers of the first stage share. `upload` is the content to
    /// upload and its method.
    fn request_for_item(&self, upload: Option<(UploadContent, &str)>) -> Option<Box<PerItemRequestOptions>> {
        let Some((content, name)) = upload else {
            let overrides = || RequestOverrides { body: self.body.clone(), ..RequestOverrides::default() };
            let shared = || PerItemRequestOptions { options: Some(Arc::clone(&self.options)), overrides: overrides() };
            return self.runs_with_other_groups.then(|| Box::new(shared()));
        };
        let overrides =
            RequestOverrides { method: Some(method(name)), body: Some(content.body), ..RequestOverrides::default() };
        let is_part = self.options.resume_from.is_some() || self.options.range.is_some() || content.range.is_some();
        let options = match is_part {
            // They are about what is sent.
            true => Arc::new(RequestOptions {
                content_range: content.range,
                resume_from: None,
                range: None,
                ..RequestOptions::clone(&self.options)
            }),
            false => Arc::clone(&self.options),
        };
        Some(Box::new(PerItemRequestOptions { options: Some(options), overrides }))
    }
}

/// The source of URLs that is being read, and from which the next items (transfers to run) are
/// made.
pub(super) enum OpenUrlSource {
    None,
    Glob(GlobExpansions),
    /// A file with one URL per line.
    File(ListReader),
    /// A file with one request per line.
    Records(ListReader),
    /// A file with a header line. The values of each row replace placeholders in the command line.
    Rows(Box<CsvListRequestReader>),
}

impl UrlItems {
    pub(crate) fn new(
        group: &Arc<UrlGroup>,
        requests: UrlGroupRequestSettings,
        list: Option<(Arc<ChecksumList>, String)>,
        numbers: UrlNumbers,
        names: ReservedOutputNames,
        shard: ShardFilter,
    ) -> Self {
        let json = group.records.as_ref().filter(|args| args.format == RecordInputFormat::JsonLines);
        Self {
            group: Arc::clone(group),
            list,
            at: 0,
            current: OpenUrlSource::None,
            upload: UrlUpload::Nothing,
            uploads: VecDeque::new(),
            records: json.map(|args| RecordRequestBase::new(group, args, &requests.options)),
            requests,
            has_listings: ListingPageFiles::are_needed(group),
            near: None,
            common: None,
            made: 0,
            earlier_sources: 0,
            numbers,
            shard,
            names,
            position: 0,
            job: None,
            counts: ProgressCountsForList::default(),
            skip_reporter: None,
            first_origin: None,
        }
    }

    /// Sets the reporter of the URLs that `--skip-existing` skips.
    pub(crate) fn with_skip_reporter(self, reporter: &Arc<UrlGroupReporter>) -> Self {
        Self { skip_reporter: Some(Arc::clone(reporter)), ..self }
    }

    /// Makes the iterator set `first_origin` when it reads its first URL.
    pub(crate) fn with_first_origin(self, first_origin: Option<FirstOrigin>) -> Self {
        Self { first_origin, ..self }
    }

    /// Sets the progress counts in which the iterator counts the URLs that it skips. At the end of
    /// the list, the iterator also sets the total number of URLs, if the run has no other URLs.
    pub(crate) fn with_counts(self, counts: ProgressCountsForList) -> Self {
        Self { counts, ..self }
    }

    /// Makes the iterator number its items after the items of `earlier`, which iterates over the
    /// previous URL group of the same run.
    pub(crate) fn numbered_after(self, earlier: &UrlItems) -> Self {
        let earlier_sources = earlier.earlier_sources + earlier.group.urls.len() as u64;
        Self { made: earlier.made, earlier_sources, ..self }
    }

    /// Skips the items (transfers to run) that the job has finished. The remaining items are
    /// numbered by their position in the list.
    pub(crate) fn with_job(self, job: &Arc<JobRun>) -> Result<Self> {
        let cursor = job.cursor()?;
        Ok(Self { job: Some(JobWithUrlStateCursor { job: Arc::clone(job), cursor, is_at_end: false }), ..self })
    }

    /// Returns the item (the transfer to run) for a URL of the source with the index `source`.
    /// Returns `None` if the URL is in another shard, or `--skip-existing` skips it.
    fn item_of_url(&mut self, source: usize, given: String, parts: GlobValues) -> Result<Option<FleetItem>> {
        self.set_first_origin(self.position, Some(&given));
        self.position += 1;
        if !self.shard.contains(&given) {
            return Ok(None);
        }
        let parts = self.upload.with_named_values(parts);
        let (url, content) = match &self.upload {
            UrlUpload::Nothing => (self.prepare_url(given)?, None),
            upload => {
                let shown = || crate::usage_error::shown_url(&given);
                let (url, content) = upload.for_url(&given, &self.group).map_err(|error| error.with_url(shown()))?;
                // A file is named after the URL without the name of the uploaded file.
                (self.prepare_url(url)?, content.map(|content| (content, given)))
            }
        };
        let named_after = content.as_ref().map_or(&*url, |(_, given)| given);
        let Some(destination) = self.destination(source, &url, named_after, &parts, &no_columns)? else {
            return Ok(None);
        };
        self.check_login(&url)?;
        let method = self.group.stages[0].request.method_for(self.group.upload_of_source(source));
        let request = self.requests.request_for_item(content.map(|(content, _)| (content, method)));
        let context = self.requests.context.clone();
        let later_pages = self.later_pages(source, || PageNaming::Globs(parts.clone()));
        Ok(Some(FleetItem { request, context, later_pages, ..FleetItem::new(url, destination) }))
    }

    /// Returns the destination of the response body of a URL. `named_after` is the URL from which
    /// the file's name is derived. Returns `None` if the file exists and `--skip-existing` is
    /// given.
    pub(super) fn destination(
        &mut self,
        source: usize,
        url: &str,
        named_after: &str,
        parts: &GlobValues,
        columns: &ColumnLookup<'_>,
    ) -> Result<Option<BodyDestination>> {
        if let Some(common) = self.common_destination(source) {
            return Ok(Some(common.clone()));
        }
        let group = Arc::clone(&self.group);
        let output = group.output_of_source(source);
        let is_shared = group.stages.len() == 1 && group.shared_output().is_some();
        if is_shared || output.is_stdout() {
            if self.list.is_some() {
                let message = "a list of checksums requires a file for each body; use -O or -o with #1";
                return Err(Error::new(ErrorKind::Setup, message).with_url(crate::usage_error::shown_url(url)));
            }
            self.common = Some((source, BodyDestination::Output));
            return Ok(Some(BodyDestination::Output));
        }
        if self.list.is_none()
            && let Some(path) = fixed_output_path(&group, source)?
        {
            return self.file_destination(source, path, url, None);
        }
        // Only a name taken from the URL needs a URL that can be parsed; the engine says why
        // another one cannot.
        let path_as_is = group.stages[0].transfer.options.path_as_is;
        let parsed = Target::parse_near(named_after, self.near.as_ref(), Scheme::Http, path_as_is);
        self.near = parsed.as_ref().map(Target::origin).ok();
        let Ok(target) = parsed else { return Ok(Some(BodyDestination::Output)) };
        match output_file_path(&group, source, &target, named_after, parts, columns, 1)? {
            Some(path) => {
                let path = avoid_blocked_path(&group, &self.names, output, path);
                self.file_destination(source, path, url, Some(&target))
            }
            None => Ok(Some(BodyDestination::Output)),
        }
    }

    /// Returns the destination of a body that is written to the file `path`. Returns `None` if the
    /// file exists and `--skip-existing` is given. `target` is the URL that gives the file its
    /// name; `None` if the name does not depend on a URL.
    fn file_destination(
        &mut self,
        source: usize,
        path: PathBuf,
        url: &str,
        target: Option<&Target>,
    ) -> Result<Option<BodyDestination>> {
        let group = &*self.group;
        let output = group.output_of_source(source);
        if !reserve_first_stage_output_name(group, &self.names, output, &path, url)? {
            if let Some(reporter) = &self.skip_reporter {
                reporter.write_out_skipped(url, &path, self.earlier_sources + source as u64)?;
            }
            return Ok(None);
        }
        let checksum = match (&self.list, target) {
            (Some((list, url_or_path)), Some(target)) => {
                Some(expected_checksum::find_in_list(list, url_or_path, target, Some(&path))?)
            }
            _ => None,
        };
        let mut options = options_for(group, output, checksum, Some(&self.names));
        if !matches!(self.upload, UrlUpload::Nothing) {
            options = append_whole_response(options);
        }
        let of_list = || self.is_named_by_list(source, output).then(|| path.parent().map(Path::to_owned));
        let beneath = options.beneath.or_else(|| of_list().flatten());
        // A single URL has no other with which it could share the destination.
        let is_common = self.list.is_none()
            && !matches!(self.current, OpenUrlSource::None)
            && is_common_output(group, &self.names, output, &path);
        let destination = BodyDestination::File { path, options: FileOptions { beneath, ..options } };
        self.common = is_common.then(|| (source, destination.clone()));
        Ok(Some(destination))
    }

    /// Returns the destination of the bodies of all URLs of the source with the index `source`.
    /// Returns `None` if their destinations differ, or if no URL of the source has been processed
    /// yet.
    fn common_destination(&self, source: usize) -> Option<&BodyDestination> {
        self.common.as_ref().filter(|(of, _)| *of == source).map(|(_, destination)| destination)
    }

    /// Returns true if `-O` derives the output file names from URLs in a list. If haul acts as
    /// curl, always returns false, because curl treats names from lists like names from the command
    /// line.
    fn is_named_by_list(&self, source: usize, output: &OutputArg) -> bool {
        let is_list =
            self.group.urls.is_listed(source) || matches!(self.group.urls.get(source), Some(UrlSource::InputFile(_)));
        is_list && *output == OutputArg::RemoteName && !self.group.in_place
    }

    /// Returns an object for the second and later pages of a paginated listing. The object chooses
    /// the output of each page, and checks the protocol of the page's URL. Returns `None` if the
    /// URLs are not listings, or if their later pages need neither a separate output nor a check.
    pub(super) fn later_pages(
        &self,
        source: usize,
        naming: impl FnOnce() -> PageNaming,
    ) -> Option<Arc<dyn ListingPageDestinationChooser>> {
        let group = self.has_listings.then(|| Arc::clone(&self.group))?;
        Some(Arc::new(ListingPageFiles { group, source, naming: naming(), names: self.names.clone() }))
    }

    /// Returns an error if the URL contains a user name and `--disallow-username-in-url` is given,
    /// or if `-n` is given and the netrc file is missing.
    pub(super) fn check_login(&self, url: &str) -> Result<()> {
        let stage = &self.group.stages[0];
        if !stage.request.no_user_in_url && stage.request.auth.netrc != NetrcFileText::Missing {
            return Ok(());
        }
        let Ok(target) = parse_target(stage, url) else { return Ok(()) };
        refuse_login(stage, &target).map_err(|error| error.with_url(crate::usage_error::shown_url(url)))
    }

    /// Returns the URL with the query of `-G` and `--url-query`. Adds the scheme of
    /// `--proto-default` if the URL has none.
    pub(super) fn prepare_url(&self, url: String) -> Result<String> {
        let url = match &self.group.stages[0].request.query {
            Some(query) => append_query(&url, query),
            None => url,
        };
        self.check_url(url)
    }

    /// Returns the URL, with the scheme of `--proto-default` if it has no scheme. Fails if
    /// `--proto` does not allow its scheme.
    pub(super) fn check_url(&self, url: String) -> Result<String> {
        let stage = &self.group.stages[0];
        let redirect = &stage.transfer.redirect;
        if redirect.protocols != ProtocolSet::default() {
            let target = Target::parse_with(&url, redirect.default_scheme, false);
            if let Ok(target) = target {
                refuse_protocol(stage, &target).map_err(|error| error.with_url(crate::usage_error::shown_url(&url)))?;
            }
        }
        let has_scheme = redirect.default_scheme == Scheme::Http || url.contains("://");
        Ok(if has_scheme { url } else { format!("{}://{url}", redirect.default_scheme.as_str()) })
    }

    /// Opens the next source of URLs (an argument, or a file of URLs). If `-T` names several files
    /// for the current source, opens the current source again for each of them. Returns the item of
    /// a single URL. Returns `Some(Ok(None))` if a glob or a file of URLs was opened, or if the URL
    /// is skipped. Returns `None` after the last source.
    fn open_next(&mut self) -> Option<Result<Option<FleetItem>>> {
        if self.uploads.is_empty() {
            let index = self.at;
            self.group.urls.get(index)?;
            self.at += 1;
            if self.group.upload_of_source(index).is_some() {
                match uploads(&self.group, index) {
                    Ok(all) => self.uploads = all.into(),
                    Err(error) => return Some(Err(error)),
                }
            }
        }
        self.upload = self.uploads.pop_front().unwrap_or(UrlUpload::Nothing);
        let index = self.at - 1;
        let source = self.group.urls.get(index)?;
        Some(match source {
            UrlSource::Argument(url) if !self.group.is_glob(index, url) => {
                let url = url.to_owned();
                self.item_of_url(index, url, GlobValues::default())
            }
            UrlSource::Argument(url) => crate::run::parse_glob(url).map(|glob| {
                self.current = OpenUrlSource::Glob(glob.iter());
                None
            }),
            UrlSource::InputFile(_) if !matches!(self.upload, UrlUpload::Nothing) => {
                self.uploads.clear();
                Err(Error::new(ErrorKind::Setup, "-T cannot be used with a list of URLs"))
            }
            UrlSource::InputFile(name) => {
                let name = name.to_owned();
                self.open_list(&name)
            }
        })
    }

    fn open_list(&mut self, name: &str) -> Result<Option<FleetItem>> {
        let source = self.at - 1;
        let format = self.group.records.as_ref().map(|args| args.format);
        let copied = self.job.as_ref().map(|of_job| of_job.job.open_list(source, name, format)).transpose()?.flatten();
        let list = match copied {
            Some(reader) => ListReader::from_reader(reader, name),
            None => ListReader::open(name)?,
        };
        match self.group.records.clone() {
            Some(args) => self.open_records(list, &args)?,
            None => self.current = OpenUrlSource::File(list),
        }
        Ok(None)
    }

    fn next_item(&mut self) -> Option<Result<FleetItem>> {
        loop {
            let number = self.position;
            let Some(found) = self.next_of_current().or_else(|| self.open_next()) else {
                self.end_list();
                return None;
            };
            let is_url = self.position > number || found.is_err();
            // A source that cannot be opened has a place in the list, too.
            self.position = if is_url { number + 1 } else { number };
            if is_url {
                self.set_first_origin(number, None);
            }
            let found = match is_url {
                true => self.apply_job_state(number, found),
                false => found,
            };
            match (found.transpose(), &self.counts.counts) {
                (Some(item), _) => return Some(item),
                (None, Some(counts)) if is_url => counts.count_skipped(),
                (None, _) => {}
            }
        }
    }

    /// Sets the origin of the first URL if `number` is the index of the first URL. `url` is `None`
    /// for an error in its place.
    fn set_first_origin(&self, number: u64, url: Option<&str>) {
        if let Some(first) = self.first_origin.as_ref().filter(|_| number == 0) {
            first.set(url);
        }
    }

    /// Applies what the job (`--job`) has stored for the item with the index `number`. `found` is
    /// the item, `None` for a URL to skip, or the error of a transfer that cannot begin. Returns
    /// `found` without a job, and `Ok(None)` for a finished item or a URL to skip. Turns an error
    /// into an item that fails. Makes a GET request conditional if an earlier run has fetched the
    /// URL.
    fn apply_job_state(&mut self, number: u64, found: Result<Option<FleetItem>>) -> Result<Option<FleetItem>> {
        let Some(JobWithUrlStateCursor { job, cursor, .. }) = &mut self.job else { return found };
        let known = match cursor.state_of_url(number)? {
            UrlRunState::Finished => return Ok(None),
            UrlRunState::New => None,
            UrlRunState::Known(known) => Some(known),
        };
        let item = match found {
            Ok(Some(item)) => item,
            Ok(None) => {
                job.skipped(number);
                return Ok(None);
            }
            Err(error) => FleetItem::failed(error),
        };
        let mut item = FleetItem { number: Some(number), ..item };
        let stage = &self.group.stages[0];
        if let Some(known) = known.filter(|_| stage.request.method == "GET") {
            // With -i, the file has the head, too, but the size is that of the body.
            let size = known.size.filter(|_| !stage.report.include);
            add_condition(&mut item, EarlierFetch { size, ..known });
        }
        Ok(Some(item))
    }

    /// Reports the end of the list of URLs to the job (`--job`) of the run, if there is one. Sets
    /// the total number of URLs in the progress counts, if the run has no other URLs.
    fn end_list(&mut self) {
        if let Some(counts) = self.counts.counts.as_ref().filter(|_| self.counts.are_all_urls) {
            counts.set_total(self.position);
        }
        let Some(of_job) = self.job.as_mut().filter(|of_job| !of_job.is_at_end) else { return };
        of_job.is_at_end = true;
        of_job.job.list_ended(self.position);
    }

    /// Returns the next item of the open glob or file of URLs. Returns `None` at its end or if none
    /// is open, and `Some(Ok(None))` for a URL that is skipped.
    fn next_of_current(&mut self) -> Option<Result<Option<FleetItem>>> {
        let source = self.at.saturating_sub(1);
        // The values of globs are for the names of files and for `--upload-file`.
        let needs_values = self.common_destination(source).is_none() || self.has_listings;
        let next = match &mut self.current {
            OpenUrlSource::None => return None,
            OpenUrlSource::Rows(_) => return self.next_row_item(source),
            OpenUrlSource::Glob(expansions) if !needs_values => {
                Ok(expansions.next_url().map(|url| (url, GlobValues::default())))
            }
            OpenUrlSource::Glob(expansions) => Ok(expansions.next().map(|expansion| (expansion.url, expansion.parts))),
            OpenUrlSource::File(list) => match list.next_url() {
                Ok(Some(Err(error))) => return Some(Err(error)),
                Ok(Some(Ok(url))) => Ok(Some((url, GlobValues::default()))),
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            },
            OpenUrlSource::Records(list) => match list.next_record() {
                Ok(Some(record)) => return Some(self.item_of_record(source, record)),
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            },
        };
        if let Ok(Some((url, parts))) = next {
            return Some(self.item_of_url(source, url, parts));
        }
        // A list that cannot be read has no further lines.
        self.current = OpenUrlSource::None;
        next.err().map(Err)
    }
}

/// Makes the request of an item conditional: the server sends the content only if it has changed.
/// Does nothing if the file of the earlier fetch no longer exists.
fn add_condition(item: &mut FleetItem, known: EarlierFetch) {
    let has_content = item.request.as_ref().is_some_and(|request| {
        request.overrides.body.is_some() || request.overrides.method.as_deref().is_some_and(|method| method != "GET")
    });
    let conditions = if has_content { Vec::new() } else { known.conditions() };
    if conditions.is_empty() {
        return;
    }
    if let BodyDestination::File { options, .. } = &mut item.destination {
        // The existing file is that of the job, also if the response chose its name.
        options.clobber = ClobberMode::Replace;
    }
    item.request.get_or_insert_default().overrides.fields.extend(conditions);
}

impl Iterator for UrlItems {
    type Item = Result<FleetItem>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.next_item()?;
        // Only curl numbers URLs by their source; haul numbers transfers.
        if self.group.in_place {
            self.numbers.add(self.made, self.earlier_sources + self.at.saturating_sub(1) as u64);
            self.made += 1;
        }
        Some(item)
    }
}
