//! Runs transfers: a single URL, URLs one after the other, or many URLs in parallel.

mod checksums;
mod descriptor_limit;
pub(crate) mod group_items;
mod hash_index;
mod list_reader;
mod listing_files;
mod local_file;
pub(crate) mod output_names;
pub(crate) mod parallel;
pub(crate) mod progress_signal;
mod record_items;
mod record_requests;
mod row_requests;
pub(crate) mod run_total;
pub(crate) mod sequential;
pub(crate) mod shard_filter;
pub(crate) mod signals;
pub(crate) mod single_url;
pub(crate) mod state_stores;
mod url_items;
pub(crate) mod url_uploads;
pub(crate) mod virtual_host;
