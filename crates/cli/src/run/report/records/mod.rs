//! The records of finished transfers: a JSON line for each (`--jsonl`), or rows of its values
//! (`--csv`).
//!
//! ```text
//! TransferReport ─┬▶ json_line ─▶ TransferRecord (facts) + line_pieces (body, values) ─┬▶ WholeOrPiecewiseText
//! RecordContent ──┴▶ csv_rows ─────────────────────────────────────────────────────┘
//! ```
//!
//! `docs/records.schema.json` describes the lines.

pub(crate) mod csv_rows;
mod json_line;
mod line_pieces;

pub(crate) use csv_rows::RowBuffering;
pub(crate) use json_line::{RecordedTransfer, StoredFile};
