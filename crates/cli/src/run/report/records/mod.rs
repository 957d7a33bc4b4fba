//! The records of finished transfers: a JSON line for each (`--jsonl`), or rows of its values
//! (`--csv`).
//!
//! ```text
//! TransferReport ─┬▶ json_line ─▶ TransferRecord (facts) + line_pieces (body, values) ─┬▶ WholeOrPiecewiseText
//! FinishedTransferContent ──┴▶ csv_rows ─────────────────────────────────────────────────────┘
//! ```
//!
//! `docs/records.schema.json` describes the lines.

mod json_line;
pub(crate) mod page_values_csv;
mod streamed_jsonl_line;

pub(crate) use json_line::{RecordedTransfer, StoredFile};
pub(crate) use page_values_csv::RowBuffering;
