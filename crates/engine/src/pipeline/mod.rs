//! The pure parts of the extraction pipeline: find matches in bodies, remove repeated values, sort
//! values.
//!
//! ```text
//! body pieces ── Extractor (one a body, on any core) ── values ──┬── Distinct ── the next stage's URLs
//!                                                                └── Sorter ──── what is printed
//! ```
//!
//! Here is no thread, no socket and no order of pages: the fleet runs extractors wherever a body arrives and passes their
//! values on in order. Only [`Distinct`] and [`Sorter`] touch the disk, and only past their memory budget.
//!
//! ```
//! use haul::pipeline::{Extractor, ExtractPattern};
//!
//! let mut extractor = Extractor::new(ExtractPattern::new("AS([0-9]{1,9})")?);
//! let mut found = Vec::new();
//! for piece in ["see AS1", "5169, AS32934"] {
//!     extractor.push(piece.as_bytes(), &mut |value| Ok(found.push(value.to_vec())))?;
//! }
//! extractor.finish(&mut |value| Ok(found.push(value.to_vec())))?;
//! assert_eq!(found, [b"15169", b"32934"]);
//! # Ok::<(), haul::Error>(())
//! ```

mod distinct;
mod extract;
mod lookahead;
mod match_finder;
mod pattern_shape;
mod prefilter;
mod run_matcher;
mod sort;
mod spill;
#[cfg(test)]
mod tests;

pub use distinct::{DeferredValues, Distinct, DistinctResult};
pub use extract::{ExtractPattern, Extractor};
pub use sort::{SortedValues, Sorter};
