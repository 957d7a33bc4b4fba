//! Runs transfers: a single URL, URLs one after the other, or many URLs in parallel.

pub(crate) mod curl_first_transfers;
mod expected_checksum;
mod file_url_transfer;
pub(crate) mod first_origin;
mod jsonl_record_requests;
mod list_reader;
mod listing_page_output_files;
mod on_disk_hash_index;
pub(crate) mod parallel;
#[cfg_attr(windows, path = "progress_signal_windows.rs")]
pub(crate) mod progress_signal;
mod record_items;
pub(crate) mod reserved_output_names;
mod row_requests;
pub(crate) mod sequential;
pub(crate) mod shard_filter;
#[cfg_attr(windows, path = "signals_windows.rs")]
pub(crate) mod signals;
pub(crate) mod single_url;
pub(crate) mod state_stores;
pub(crate) mod url_count;
mod url_items;
pub(crate) mod url_uploads;
pub(crate) mod urls_of_parallel_groups;
pub(crate) mod virtual_host_credential_guard;
