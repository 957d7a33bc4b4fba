//! `ArrowTableBuilder`: collects the results of a batch in columns.
//!
//! ```python
//! results = ArrowTableBuilder("body", False)
//! rows = results.collect(batch, 1000, 16 << 20, 0)
//! schema, array = results.finish()  # two capsules of the Arrow C data interface
//! ```

use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_data::ArrayData;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType};
use haul::ErrorKind;
use haul::batch::FinishedRequest;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::columns::{self, Column};
use super::result_columns::{self, BodyColumnSettings, ContentColumns, ValuesColumnSettings};
use crate::batch::{PendingBatchRequest, PyBatch};
use crate::error::{FailurePhase, interrupted, to_exception};
use crate::value_extraction::PyPageQuery;

/// The name of the capsule with the schema, as the Arrow C data interface defines it.
const SCHEMA_CAPSULE: &CStr = c"arrow_schema";
const ARRAY_CAPSULE: &CStr = c"arrow_array";

/// The maximum number of bytes in the rows of a table: half of the 2 GiB that the 32-bit offsets of
/// text columns allow, because the last row may exceed the maximum by the length of a response
/// head.
const MAX_BYTES: u64 = 1 << 30;

/// A table under construction in which each row is the result of one request. The rows are in the
/// order of the requests.
#[pyclass(frozen, module = "haul._haul")]
pub(crate) struct ArrowTableBuilder {
    content: ContentColumns,
    rows: Mutex<CollectedRows>,
}

/// The rows that were collected since the last table was returned.
struct CollectedRows {
    columns: Vec<Column>,
    rows: usize,
    /// The approximate number of bytes of the collected rows.
    bytes: u64,
    /// A result that did not fit the table, and becomes the first row of the next table. `None` if
    /// there is no such result.
    held: Option<(FinishedRequest, PendingBatchRequest)>,
    /// True if the table must be returned before further results are appended.
    is_full: bool,
}

impl CollectedRows {
    fn new(content: &ContentColumns) -> Self {
        Self { columns: result_columns::columns(content), rows: 0, bytes: 0, held: None, is_full: false }
    }

    /// Appends a result and returns true. If the table already has rows and would exceed `most`
    /// bytes, keeps the result for the next table instead, and returns false.
    fn push(
        &mut self,
        content: &ContentColumns,
        finished: FinishedRequest,
        pending: PendingBatchRequest,
        most: u64,
    ) -> bool {
        let facts = &finished.outcome().facts;
        let size = facts.decoded_bytes.unwrap_or(facts.body_bytes);
        if self.rows > 0 && self.bytes + size > most {
            self.held = Some((finished, pending));
            self.is_full = true;
            return false;
        }
        self.bytes += result_columns::push_row(&mut self.columns, content, finished, pending);
        self.rows += 1;
        self.is_full = self.bytes >= most;
        true
    }
}

impl ArrowTableBuilder {
    fn rows(&self) -> MutexGuard<'_, CollectedRows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl ArrowTableBuilder {
    /// Creates an empty table. `body` is the name of the column with the bodies; `None` for no such
    /// column. The bodies are stored as text if `text` is true, otherwise as bytes. If `query` is
    /// given, the table has a column `values` with the values that the query finds in each page: a
    /// list or, if the parts of the query have `names`, a map.
    #[new]
    #[pyo3(signature = (body, text, query=None, names=None))]
    fn new(
        body: Option<String>,
        text: bool,
        query: Option<Py<PyPageQuery>>,
        names: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let body = match body {
            None => BodyColumnSettings::None,
            Some(name) if name.contains('\0') => {
                return Err(PyValueError::new_err("the name of a column cannot contain a NUL"));
            }
            Some(name) if text => BodyColumnSettings::Text(name),
            Some(name) => BodyColumnSettings::Binary(name),
        };
        let content = ContentColumns { body, values: query.map(|query| ValuesColumnSettings { query, names }) };
        let rows = Mutex::new(CollectedRows::new(&content));
        Ok(Self { content, rows })
    }

    /// Returns the names of the columns.
    fn names(&self) -> Vec<String> {
        self.rows().columns.iter().map(|column| column.name().to_owned()).collect()
    }

    /// Appends a row for a request that could not be sent. The parameter `bytes` is the size in
    /// bytes at which the table counts as full.
    fn push_failure(&self, method: &str, code: u8, name: &str, message: &str, bytes: u64) {
        let mut rows = self.rows();
        rows.bytes += result_columns::push_unsent(&mut rows.columns, method, code, name, message);
        rows.rows += 1;
        rows.is_full = rows.bytes >= bytes.min(MAX_BYTES);
    }

    /// Waits for results of `batch`, and appends at most `most` of them as rows. Stops early when
    /// the table is full, or when fewer than `ahead` requests of the batch are outstanding. The
    /// table is full if its rows have `bytes` bytes, or would exceed them with the next result.
    /// Returns the number of appended rows; 0 if the table is full or no request is outstanding.
    fn collect(&self, py: Python<'_>, batch: &PyBatch, most: usize, bytes: u64, ahead: usize) -> PyResult<usize> {
        let bytes = bytes.min(MAX_BYTES);
        let collected = py.detach(|| {
            let mut rows = self.rows();
            let mut taken = 0;
            while taken < most && !rows.is_full {
                let (finished, pending) = match rows.held.take() {
                    Some(held) => held,
                    None => {
                        let Some(finished) = batch.batch.next_bunch(1, None)?.pop() else { break };
                        let Some(pending) = batch.take_pending(finished.id()) else { continue };
                        (finished, pending)
                    }
                };
                taken += usize::from(rows.push(&self.content, finished, pending, bytes));
                if batch.batch.outstanding() < ahead {
                    break;
                }
            }
            Ok(taken)
        });
        collected.map_err(|error: haul::Error| match error.kind() {
            ErrorKind::Interrupted => interrupted(&error).unwrap_or_else(|| to_exception(&error, FailurePhase::Wait)),
            _ => to_exception(&error, FailurePhase::Wait),
        })
    }

    /// Returns the number of rows, and true if no further row can be appended: the program must
    /// first take the table (`finish`).
    fn rows_and_is_full(&self) -> (usize, bool) {
        let rows = self.rows();
        (rows.rows, rows.is_full)
    }

    /// Returns the rows as a struct array in capsules of the Arrow C data interface, and starts an
    /// empty table.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let mut next = CollectedRows::new(&self.content);
        let mut collected = self.rows();
        next.held = collected.held.take();
        let CollectedRows { columns, rows, .. } = std::mem::replace(&mut *collected, next);
        drop(collected);
        let (schema, array) = exported(columns, rows).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok((
            PyCapsule::new_with_value(py, schema, SCHEMA_CAPSULE)?,
            PyCapsule::new_with_value(py, array, ARRAY_CAPSULE)?,
        ))
    }
}

/// Returns columns as a struct array in the two structs of the Arrow C data interface. The
/// `release` functions of the structs free the columns.
fn exported(columns: Vec<Column>, rows: usize) -> Result<(FFI_ArrowSchema, FFI_ArrowArray), ArrowError> {
    let kind = DataType::Struct(columns.iter().map(Column::field).collect());
    let schema = FFI_ArrowSchema::try_from(&kind)?;
    let data = ArrayData::try_new(kind, rows, None, 0, Vec::new(), columns::into_data(columns)?)?;
    Ok((schema, FFI_ArrowArray::new(&data)))
}
