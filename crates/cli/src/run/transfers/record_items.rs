//! Makes the items of the records in a list: of JSON lines (`--jsonl-in`) and of rows (`--csv-in`).

use std::path::PathBuf;
use std::sync::Arc;

use haul::Result;
use haul::fleet::{BodyDestination, FleetItem};
use haul_policy::glob::GlobValues;
use haul_policy::output_name::no_columns;

use super::list_reader::{ListReader, NumberedRecord, OpenRows};
use super::record_requests::ListedRequest;
use super::row_requests::RowRequests;
use super::url_items::{OpenUrlSource, UrlItems};
use crate::plan::{OutputArg, RecordArgs};
use crate::record_input::{CsvRow, JsonlRequest, RecordFormat};
use crate::run::engine_options::output_options::{claims_name, in_output_dir, options_for};

/// A `--csv-in` list that is being read.
pub(super) struct RowSource {
    rows: OpenRows,
    requests: RowRequests,
    /// The row whose requests are being made, and the number of the next one.
    current: Option<(Arc<CsvRow>, usize)>,
}

impl RowSource {
    /// Returns the next row, and the number of the URL of the command line that it fills. Returns
    /// `None` at the end of the list.
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
    /// Opens a list of records as the current source.
    pub(super) fn open_records(&mut self, list: ListReader, args: &RecordArgs) -> Result<()> {
        self.current = match args.format {
            RecordFormat::JsonLines => OpenUrlSource::Records(list),
            RecordFormat::Csv | RecordFormat::Tsv => {
                let rows = list.into_rows(args.format)?;
                let options = &self.requests.options;
                let requests = RowRequests::new(&self.operation, args, options, rows.columns(), rows.name())?;
                OpenUrlSource::Rows(Box::new(RowSource { rows, requests, current: None }))
            }
        };
        Ok(())
    }

    /// Returns the next item of the open list of rows. Returns `None` at its end, and
    /// `Some(Ok(None))` for a row that `--skip-existing` skips.
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
        let id = list.requests.value(&row, "id");
        let id =
            id.and_then(|id| serde_json::to_string(&String::from_utf8_lossy(&id)).ok()).map(String::into_boxed_str);
        let made = self.request_of_row(source, &list.requests, &row, number);
        let made = made.map_err(|error| list.rows.at(&row, &error));
        self.current = OpenUrlSource::Rows(list);
        Some(Ok(self.finished_item(id, made)))
    }

    fn request_of_row(
        &mut self,
        source: usize,
        requests: &RowRequests,
        row: &CsvRow,
        number: usize,
    ) -> Result<Option<(ListedRequest, BodyDestination)>> {
        let listed = requests.request(row, number)?;
        let url = self.usable(listed.url)?;
        let columns = |name: &str| requests.value(row, name);
        let destination = self.destination(source, &url, &url, &GlobValues::default(), &columns)?;
        self.check_login(&url)?;
        Ok(destination.map(|destination| (ListedRequest { url, ..listed }, destination)))
    }

    /// Returns the item for a record of a list. A wrong record is an item that fails, so that the
    /// records after it are not lost. Returns `None` if `--skip-existing` skips the record.
    pub(super) fn item_of_record(&mut self, source: usize, numbered: NumberedRecord) -> Result<Option<FleetItem>> {
        let NumberedRecord { place, id, record } = numbered;
        let made = record.and_then(|record| self.request_of_record(source, record, &place));
        Ok(self.finished_item(id, made))
    }

    /// Returns the item of a record. An error makes an item that fails.
    fn finished_item(
        &self,
        id: Option<Box<str>>,
        made: Result<Option<(ListedRequest, BodyDestination)>>,
    ) -> Option<FleetItem> {
        let context = self.requests.context.clone();
        match made {
            Ok(made) => made.map(|(listed, destination)| FleetItem {
                request: Some(Box::new(listed.request)),
                id,
                context,
                is_users_origin: listed.is_trusted,
                ..FleetItem::new(listed.url, destination)
            }),
            Err(error) => Some(FleetItem { id, context, ..FleetItem::failed(error) }),
        }
    }

    fn request_of_record(
        &mut self,
        source: usize,
        record: JsonlRequest,
        place: &str,
    ) -> Result<Option<(ListedRequest, BodyDestination)>> {
        let Some(records) = &self.records else { return Ok(None) };
        let output = record.output.clone();
        let listed = records.request(record, place)?;
        let url = self.prepared(listed.url)?;
        let destination = match output {
            Some(path) => self.file_of_record(path, &url)?,
            None => self.destination(source, &url, &url, &GlobValues::default(), &no_columns)?,
        };
        self.check_login(&url)?;
        Ok(destination.map(|destination| (ListedRequest { url, ..listed }, destination)))
    }

    /// Returns the destination of the response body of a record that names its file. Returns `None`
    /// if the file exists and `--skip-existing` is given.
    fn file_of_record(&self, name: PathBuf, url: &str) -> Result<Option<BodyDestination>> {
        if self.operation.stages.len() == 1 && self.operation.shared_output().is_some() {
            return Ok(Some(BodyDestination::Output));
        }
        let path = in_output_dir(&self.operation, name.into_os_string());
        let output = OutputArg::File(path.clone().into_os_string());
        if !claims_name(&self.operation, &self.names, &output, &path, url)? {
            return Ok(None);
        }
        let options = options_for(&self.operation, &output, None, Some(&self.names));
        Ok(Some(BodyDestination::File { path, options }))
    }
}
