//! Archives of exchanges, which `--warc` writes, in the format WARC/1.1 (ISO 28500:2017).
//!
//! ```text
//!  transfer ─▶ WarcExchange ─▶ 2 × RecordedMessage ─▶ encode ─▶ ArchiveFile
//!                                in memory, or in a    one gzip   one append for a
//!                                temporary file        member     request and its response
//! ```
//!
//! | module | content |
//! |---|---|
//! | `archive_recorder` | [`WarcArchive`], the recorder of a run |
//! | `exchange` | the record of one exchange, while it is made |
//! | `message_spool` | a request or response in memory or in a temporary file, with its digests |
//! | `archive_file` | the files of the archive, and appending to them |
//! | `records_awaiting_job_commit` | records that wait until a job has noted their transfers |
//! | [`record_head`] | the heads of records |
//! | [`digest`] | digests in Base32 |
//! | [`gzip_member`] | records as gzip members |
//! | [`file_name`] | the names of numbered files |
//! | [`strip_credentials`] | request heads without credentials |
//! | [`payload_dedup`] | the payloads that the archive has, for revisit records |
//!
//! The modules in links do no I/O. `docs/design/warc.md` has the rules.
//!
//! Left out: `resource`, `metadata` and `conversion` records, segmented records, and a CDX index.

mod archive_file;
mod archive_recorder;
pub mod digest;
mod exchange;
pub mod file_name;
pub mod gzip_member;
mod memory_budget;
mod message_spool;
pub mod payload_dedup;
pub mod record_head;
mod records_awaiting_job_commit;
pub mod strip_credentials;

pub use archive_recorder::WarcArchive;
