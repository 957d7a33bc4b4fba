//! The extraction pipeline: finds matches in bodies, removes repeated values, sorts values.
//!
//! ```text
//! body pieces ── PageSearch (one a body) ── values ──┬── Distinct ── the next stage's URLs
//!                 regex, CSS or JSONPath             └── Sorter ──── printed values
//! ```
//!
//! The module uses no threads and no sockets, and does not know the order of pages. The fleet runs
//! a search in the thread that receives a body, and passes the values on in order. Only
//! [`Distinct`] and [`Sorter`] use the disk, and only for data beyond their memory budget.
//!
//! ```
//! use haul::extraction::{Extractor, ExtractRegexes};
//!
//! let mut extractor = Extractor::new(ExtractRegexes::new("AS([0-9]{1,9})")?);
//! let mut found = Vec::new();
//! for piece in ["see AS1", "5169, AS32934"] {
//!     extractor.push(piece.as_bytes(), &mut |value| Ok(found.push(value.to_vec())))?;
//! }
//! extractor.finish(&mut |value| Ok(found.push(value.to_vec())))?;
//! assert_eq!(found, [b"15169", b"32934"]);
//! # Ok::<(), haul::Error>(())
//! ```

mod class_run_matcher;
mod contiguous_match_finder;
#[cfg(feature = "select")]
mod css;
mod distinct;
mod external_sort;
#[cfg(feature = "select")]
mod html;
#[cfg(feature = "select")]
mod inline_memchr;
#[cfg(feature = "select")]
mod json;
#[cfg(test)]
mod naive_model_tests;
mod page_search;
mod pattern_shape;
mod prefilter;
mod query_encoding_by_charset;
#[cfg(test)]
mod search_deadline_tests;
mod search_work_limit;
#[cfg(feature = "select")]
mod selected_value_regexes;
mod settled_matches;
mod sorted_runs_on_disk;
mod streaming_regex_search;

#[cfg(feature = "select")]
pub use css::CssQuery;
pub use distinct::{Distinct, DistinctOverflowValues, DistinctResult};
pub use external_sort::{SortedValues, Sorter};
#[cfg(feature = "select")]
pub use json::JsonPathQuery;
#[cfg(feature = "select")]
pub(crate) use json::{ParseFailure, with_first};
pub use page_search::{OnValue, PageInfo, PageQuery, PageSearch};
pub use streaming_regex_search::{ExtractRegexes, Extractor};
