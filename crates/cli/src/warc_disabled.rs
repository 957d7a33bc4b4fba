//! Archives in a build without the feature `warc`: only the names of their files.

#[path = "warc/file_name.rs"]
pub mod file_name;
