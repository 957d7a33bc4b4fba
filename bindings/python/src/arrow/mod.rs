//! Results of a batch as columns in the Arrow format: the basis of `haul.arrow.fetch`.
//!
//! ```text
//!  PyBatch ──▶ ArrowTableBuilder::collect ──▶ result_columns::push_row ──▶ Column ──▶ ArrayData ──▶ two capsules
//! ```
//!
//! `columns` appends rows to plain vectors. The crates `arrow-data` and `arrow-schema` check the
//! finished columns and make the two structs of the Arrow C data interface; see
//! `docs/design/arrow.md`.

mod columns;
mod result_columns;
mod results;

pub(crate) use results::ArrowTableBuilder;
