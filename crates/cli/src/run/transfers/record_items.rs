//! Creates the fleet items for the records in a list: JSON lines (`--jsonl-in`) or rows
//! (`--csv-in`).

use std::path::Path;
use std::sync::Arc;

use haul::fleet::{BodyDestination, FleetItem};
use haul::{Error, ErrorKind, Result};
use haul_policy::glob::GlobValues;
use haul_policy::output_name_placeholders::no_columns;

use super::jsonl_record_requests::ListedRequest;
use super::list_reader::{ListLineNumber, ListReader, NumberedRecord, OpenCsvList};
use super::listing_page_output_files::{self, PageNaming};
use super::row_requests::RowRequestBuilder;
use super::url_items::{OpenUrlSource, UrlItems};
use crate::plan::{OutputArg, RecordInputArgs};
use crate::record_input::{CsvRow, JsonlRequest, RecordInputFormat};
use crate::run::engine_options::output_options::{in_output_dir, options_for, reserve_first_stage_output_name};

/// A `--csv-in` list that is being read.
pub(super) struct CsvListRequestReader {
    rows: OpenCsvList,
    requests: RowRequestBuilder,
    /// The row whose requests are being created, and the index of its next request. `None` between
    /// two rows.
    current: Option<(Arc<CsvRow>, usize)>,
}

impl CsvListRequestReader {
    /// Returns the next row, and the index of the URL on the command line into which its values are
    /// inserted. A row is returned once for each URL. Returns `None` at the end of the list.
    fn next(&mut self) -> Result<Option<(Arc<CsvRow>, usize)>> {
        let (row, number) = match self.current.take() {
            Some(current) => current,
            None => match self.rows.next_row()? {
                Some(row) => (Arc::new(row), 0),
                None => return Ok(None),
            },
        };
        if number + 1 < self.requests.per_row() {
            self.current = Some((Arc::clone(&row), number + 1));
        }
        Ok(Some((row, number)))
    }
}

impl UrlItems {
    /// Opens a list whose lines or rows describe requests. The next items (transfers to run) are
    /// made from this list.
    pub(super) fn open_records(&mut self, list: ListReader, args: &RecordInputArgs) -> Result<()> {
        self.current = match args.format {
            RecordInputFormat::JsonLines => OpenUrlSource::Records(list),
            RecordInputFormat::Csv | RecordInputFormat::Tsv => {
                let rows = list.into_rows(args.format)?;
                let options = &self.requests.options;
                let requests = RowRequestBuilder::new(&self.group, args, options, rows.columns(), rows.name())?;
                OpenUrlSource::Rows(Box::new(CsvListRequestReader { rows, requests, current: None }))
            }
        };
        Ok(())
    }

    /// Returns the item (the transfer to run) for the next row of the open list. Returns `None` at
    /// the end of the list, and `Some(Ok(None))` for a row that is in another shard or that
    /// `--skip-existing` skips.
    pub(super) fn next_row_item(&mut self, source: usize) -> Option<Result<Option<FleetItem>>> {
        // Taken out, since the list is used together with the names of the output files.
        let OpenUrlSource::Rows(mut list) = std::mem::replace(&mut self.current, OpenUrlSource::None) else {
            return None;
        };
        let (row, number) = match list.next() {
            Ok(Some(next)) => next,
            Ok(None) => return None,
            Err(error) => return Some(Err(error)),
        };
        self.position += 1;
        let id = list.requests.value(&row, "id");
        let id =
            id.and_then(|id| serde_json::to_string(&String::from_utf8_lossy(&id)).ok()).map(String::into_boxed_str);
        let made = self.item_of_row(source, &list.requests, &row, number);
        let made = made.map_err(|error| list.rows.error_at_row(&row, &error));
        self.current = OpenUrlSource::Rows(list);
        Some(Ok(self.finished_item(id, made)))
    }

    fn item_of_row(
        &mut self,
        source: usize,
        requests: &RowRequestBuilder,
        row: &Arc<CsvRow>,
        number: usize,
    ) -> Result<Option<FleetItem>> {
        let Some(listed) = self.shard.chosen(requests.request(row, number))? else { return Ok(None) };
        let url = self.check_url(listed.url)?;
        let columns = |name: &str| requests.value(row, name);
        let destination = self.destination(source, &url, &url, &GlobValues::default(), &columns)?;
        self.check_login(&url)?;
        let naming = || PageNaming::Columns(Arc::clone(requests.columns()), Arc::clone(row));
        Ok(destination.map(|destination| FleetItem {
            request: Some(Box::new(listed.request)),
            is_users_origin: listed.is_trusted,
            later_pages: self.later_pages(source, naming),
            ..FleetItem::new(url, destination)
        }))
    }

    /// Returns the item (the transfer to run) for a record of a list. An invalid record becomes an
    /// item that fails, so that the records after it are still fetched. Returns `None` if the
    /// record is in another shard, or `--skip-existing` skips it.
    pub(super) fn item_of_record(&mut self, source: usize, numbered: NumberedRecord) -> Result<Option<FleetItem>> {
        self.position += 1;
        let NumberedRecord { position, id, record } = numbered;
        let made = match record {
            Ok(record) => self.item_of_request(source, record, &position),
            Err(_) if !self.shard.contains_unusable_urls() => Ok(None),
            Err(error) => Err(error),
        };
        Ok(self.finished_item(id, made))
    }

    /// Returns the item (the transfer to run) in `made`, with the id of its record. If `made` is an
    /// error, returns an item that fails with this error. Returns `None` if `made` contains no
    /// item.
    fn finished_item(&self, id: Option<Box<str>>, made: Result<Option<FleetItem>>) -> Option<FleetItem> {
        let context = self.requests.context.clone();
        let item = made.unwrap_or_else(|error| Some(FleetItem::failed(error)))?;
        Some(FleetItem { id, context, ..item })
    }

    fn item_of_request(
        &mut self,
        source: usize,
        record: JsonlRequest,
        position: &ListLineNumber,
    ) -> Result<Option<FleetItem>> {
        let Self { records: Some(records), shard, .. } = self else { return Ok(None) };
        let output = record.output.clone();
        let Some(listed) = shard.chosen(records.request(record, position))? else { return Ok(None) };
        let ListedRequest { url, mut request, is_trusted } = listed;
        if let Some(option) = self.shared_by().filter(|_| output.is_some()) {
            let text = format!("with {option} all values go to one output: leave {option} out, or the key");
            return Err(Error::new(ErrorKind::Read, format!("{position}: key \"output\": {text}")));
        }
        let url = if is_trusted { self.prepare_url(url)? } else { self.check_url(url)? };
        let destination = match &output {
            Some(name) => self.file_of_record(name, &url, position)?,
            None => self.destination(source, &url, &url, &GlobValues::default(), &no_columns)?,
        };
        self.check_login(&url)?;
        let stage = &self.group.stages[0];
        if let (Some(_), Some(options)) = (&output, &mut request.options)
            && options.fail_with_body
            && !stage.transfer.options.fail_with_body
        {
            // A failed status has its body in the JSON line, but makes no file.
            Arc::make_mut(options).fail_with_body = false;
        }
        let naming = || output.map_or_else(|| PageNaming::Globs(GlobValues::default()), PageNaming::Record);
        Ok(destination.map(|destination| FleetItem {
            request: Some(Box::new(request)),
            is_users_origin: is_trusted,
            later_pages: self.later_pages(source, naming),
            ..FleetItem::new(url, destination)
        }))
    }

    /// Returns the option (`--sort` or `--unique`) for which the extracted values of all responses
    /// must go to a single output; `None` if neither is given.
    fn shared_by(&self) -> Option<&'static str> {
        match self.group.stages.as_slice() {
            [stage] if stage.sort => Some("--sort"),
            [stage] if stage.unique => Some("--unique"),
            _ => None,
        }
    }

    /// Returns the destination of the response body for a record that names an output file. Returns
    /// `None` if the file exists and `--skip-existing` is given.
    fn file_of_record(&self, name: &Path, url: &str, position: &ListLineNumber) -> Result<Option<BodyDestination>> {
        let has_pages = self.group.stages[0].pagination.is_some();
        let path = listing_page_output_files::file_of_record(&self.group, name, 1);
        if has_pages && path == in_output_dir(&self.group, name.as_os_str().to_owned()) {
            let text = "the pages of a listing need a name each: write {page} into it, as in \"list-{page}.json\"";
            return Err(Error::new(ErrorKind::Read, format!("{position}: key \"output\": {text}")));
        }
        let output = OutputArg::File(path.clone().into_os_string());
        if !reserve_first_stage_output_name(&self.group, &self.names, &output, &path, url)? {
            return Ok(None);
        }
        let options = options_for(&self.group, &output, None, Some(&self.names));
        let options = listing_page_output_files::options_of_record(&self.group, options);
        Ok(Some(BodyDestination::File { path, options }))
    }
}
