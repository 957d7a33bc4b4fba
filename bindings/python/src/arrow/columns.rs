//! Columns in the Arrow format that grow row by row.
//!
//! Each column has a bitmap of the rows that are not null, and the buffers of its type
//! (<https://arrow.apache.org/docs/format/Columnar.html>). A struct has a child column for each
//! member, which has as many rows as the struct. A list has one child column with the items of all
//! rows, and the offsets at which each row ends.

use std::sync::Arc;

use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBufferBuilder};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field};

/// The values of a column of an Arrow table, in the buffers of the column's type.
enum ColumnValues {
    Boolean(BooleanBufferBuilder),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float64(Vec<f64>),
    Text { ends: Vec<i32>, bytes: Vec<u8> },
    LargeText { ends: Vec<i64>, bytes: Vec<u8> },
    LargeBinary { ends: Vec<i64>, bytes: Vec<u8> },
    Struct(Vec<Column>),
    List { ends: Vec<i32>, items: Box<Column> },
    Map { ends: Vec<i32>, entries: Box<Column> },
}

/// A column of an Arrow table under construction: its name, values and nulls.
pub(super) struct Column {
    name: String,
    is_nullable: bool,
    valid: NullBufferBuilder,
    values: ColumnValues,
}

impl Column {
    fn new(name: &str, values: ColumnValues) -> Self {
        Self { name: name.to_owned(), is_nullable: true, valid: NullBufferBuilder::new(0), values }
    }

    pub(super) fn boolean(name: &str) -> Self {
        Self::new(name, ColumnValues::Boolean(BooleanBufferBuilder::new(0)))
    }

    pub(super) fn int32(name: &str) -> Self {
        Self::new(name, ColumnValues::Int32(Vec::new()))
    }

    pub(super) fn int64(name: &str) -> Self {
        Self::new(name, ColumnValues::Int64(Vec::new()))
    }

    pub(super) fn float64(name: &str) -> Self {
        Self::new(name, ColumnValues::Float64(Vec::new()))
    }

    pub(super) fn text(name: &str) -> Self {
        Self::new(name, ColumnValues::Text { ends: vec![0], bytes: Vec::new() })
    }

    pub(super) fn large_text(name: &str) -> Self {
        Self::new(name, ColumnValues::LargeText { ends: vec![0], bytes: Vec::new() })
    }

    pub(super) fn large_binary(name: &str) -> Self {
        Self::new(name, ColumnValues::LargeBinary { ends: vec![0], bytes: Vec::new() })
    }

    pub(super) fn structure(name: &str, members: Vec<Column>) -> Self {
        Self::new(name, ColumnValues::Struct(members))
    }

    pub(super) fn list(name: &str, item: Column) -> Self {
        Self::new(name, ColumnValues::List { ends: vec![0], items: Box::new(item) })
    }

    /// Makes a column of maps from text to lists of text.
    pub(super) fn text_lists_by_name(name: &str) -> Self {
        let key = Column { is_nullable: false, ..Column::text("key") };
        let members = vec![key, Column::list("value", Column::text("item"))];
        let entries = Column { is_nullable: false, ..Column::structure("entries", members) };
        Self::new(name, ColumnValues::Map { ends: vec![0], entries: Box::new(entries) })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Appends a null.
    pub(super) fn push_null(&mut self) {
        self.valid.append_null();
        match &mut self.values {
            ColumnValues::Boolean(values) => values.append(false),
            ColumnValues::Int32(values) => values.push(0),
            ColumnValues::Int64(values) => values.push(0),
            ColumnValues::Float64(values) => values.push(0.0),
            ColumnValues::Text { ends, .. } | ColumnValues::List { ends, .. } | ColumnValues::Map { ends, .. } => {
                ends.push(ends[ends.len() - 1]);
            }
            ColumnValues::LargeText { ends, .. } | ColumnValues::LargeBinary { ends, .. } => {
                ends.push(ends[ends.len() - 1]);
            }
            ColumnValues::Struct(members) => members.iter_mut().for_each(Column::push_null),
        }
    }

    /// Appends a Boolean value.
    pub(super) fn push_bool(&mut self, value: bool) {
        if let ColumnValues::Boolean(values) = &mut self.values {
            values.append(value);
            self.valid.append_non_null();
        }
    }

    /// Appends an integer to a column of integers; `None` appends a null.
    pub(super) fn push_int(&mut self, value: Option<u64>) {
        let Some(value) = value else { return self.push_null() };
        match &mut self.values {
            ColumnValues::Int32(values) => values.push(i32::try_from(value).unwrap_or(i32::MAX)),
            ColumnValues::Int64(values) => values.push(i64::try_from(value).unwrap_or(i64::MAX)),
            _ => return,
        }
        self.valid.append_non_null();
    }

    /// Appends a number to a column of floating-point numbers.
    pub(super) fn push_float(&mut self, value: f64) {
        if let ColumnValues::Float64(values) = &mut self.values {
            values.push(value);
            self.valid.append_non_null();
        }
    }

    /// Appends a text; `None` appends a null. The caller keeps the column below 2 GiB.
    pub(super) fn push_text(&mut self, value: Option<&str>) {
        let Some(value) = value else { return self.push_null() };
        self.push_bytes(value.as_bytes());
    }

    fn push_bytes(&mut self, value: &[u8]) {
        match &mut self.values {
            ColumnValues::Text { ends, bytes } => {
                bytes.extend_from_slice(value);
                ends.push(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
            }
            ColumnValues::LargeText { ends, bytes } | ColumnValues::LargeBinary { ends, bytes } => {
                bytes.extend_from_slice(value);
                ends.push(bytes.len() as i64);
            }
            _ => return,
        }
        self.valid.append_non_null();
    }

    /// Appends a value to a column of long texts or bytes, and takes ownership of the value. If the
    /// column has no bytes yet, the memory of the value becomes that of the column, without a copy.
    pub(super) fn push_owned(&mut self, value: Vec<u8>) {
        match &mut self.values {
            ColumnValues::LargeText { ends, bytes } | ColumnValues::LargeBinary { ends, bytes } if bytes.is_empty() => {
                ends.push(value.len() as i64);
                *bytes = value;
                self.valid.append_non_null();
            }
            _ => self.push_bytes(&value),
        }
    }

    /// Appends a struct. `push` must append one value to each member column.
    pub(super) fn push_struct(&mut self, push: impl FnOnce(&mut [Column])) {
        if let ColumnValues::Struct(members) = &mut self.values {
            push(members);
            self.valid.append_non_null();
        }
    }

    /// Appends a list. `push` appends its items to the item column. For a map, the items are its
    /// entries.
    pub(super) fn push_list(&mut self, push: impl FnOnce(&mut Column)) {
        if let ColumnValues::List { ends, items } | ColumnValues::Map { ends, entries: items } = &mut self.values {
            push(items);
            ends.push(i32::try_from(items.len()).unwrap_or(i32::MAX));
            self.valid.append_non_null();
        }
    }

    /// Returns the number of rows of the column.
    pub(super) fn len(&self) -> usize {
        self.valid.len()
    }

    /// Returns the name and the type of the column.
    pub(super) fn field(&self) -> Field {
        Field::new(self.name.as_str(), self.data_type(), self.is_nullable)
    }

    fn data_type(&self) -> DataType {
        match &self.values {
            ColumnValues::Boolean(_) => DataType::Boolean,
            ColumnValues::Int32(_) => DataType::Int32,
            ColumnValues::Int64(_) => DataType::Int64,
            ColumnValues::Float64(_) => DataType::Float64,
            ColumnValues::Text { .. } => DataType::Utf8,
            ColumnValues::LargeText { .. } => DataType::LargeUtf8,
            ColumnValues::LargeBinary { .. } => DataType::LargeBinary,
            ColumnValues::Struct(members) => DataType::Struct(members.iter().map(Column::field).collect()),
            ColumnValues::List { items, .. } => DataType::List(Arc::new(items.field())),
            ColumnValues::Map { entries, .. } => DataType::Map(Arc::new(entries.field()), false),
        }
    }

    /// Converts the column to Arrow's array data. The buffers are moved, not copied.
    ///
    /// # Errors
    /// The content breaks a rule of the format, which would be a bug of this module.
    pub(super) fn into_data(mut self) -> Result<ArrayData, ArrowError> {
        let (kind, rows) = (self.data_type(), self.len());
        let valid = self.valid.finish().map(|valid| valid.into_inner().into_inner());
        let bytes = |mut bytes: Vec<u8>| {
            bytes.shrink_to_fit();
            Buffer::from_vec(bytes)
        };
        let (buffers, children) = match self.values {
            ColumnValues::Boolean(values) => (vec![values.build().into_inner()], Vec::new()),
            ColumnValues::Int32(values) => (vec![Buffer::from_vec(values)], Vec::new()),
            ColumnValues::Int64(values) => (vec![Buffer::from_vec(values)], Vec::new()),
            ColumnValues::Float64(values) => (vec![Buffer::from_vec(values)], Vec::new()),
            ColumnValues::Text { ends, bytes: text } => (vec![Buffer::from_vec(ends), bytes(text)], Vec::new()),
            ColumnValues::LargeText { ends, bytes: text } | ColumnValues::LargeBinary { ends, bytes: text } => {
                (vec![Buffer::from_vec(ends), bytes(text)], Vec::new())
            }
            ColumnValues::Struct(members) => (Vec::new(), into_data(members)?),
            ColumnValues::List { ends, items } | ColumnValues::Map { ends, entries: items } => {
                (vec![Buffer::from_vec(ends)], vec![items.into_data()?])
            }
        };
        ArrayData::try_new(kind, rows, valid, 0, buffers, children)
    }
}

/// Converts columns to Arrow's array data, each by [`Column::into_data`].
pub(super) fn into_data(columns: Vec<Column>) -> Result<Vec<ArrayData>, ArrowError> {
    columns.into_iter().map(Column::into_data).collect()
}
