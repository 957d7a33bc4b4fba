//! The SQLite tables of a job's file. `docs/jobs.md` describes them for users.

use rusqlite::Connection;

use super::job_error_from_sqlite_or_io::DatabaseResult;
use crate::job_file_names::APPLICATION_ID;

/// The version of the tables in a job's SQLite file. A version of haul that knows only older tables
/// refuses the file.
pub(super) const VERSION: i32 = 2;

/// The number of low bits of a URL's id that contain the URL's number within the stage. The high
/// bits contain the stage.
pub(super) const NUMBER_BITS: u32 = 40;

/// The lowest id of a URL in a later stage. All URLs of the first stage have lower ids.
pub(super) const FIRST_LATER_STAGE_ID: i64 = 1 << NUMBER_BITS;

const TABLES: &str = "
CREATE TABLE job (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    haul_version TEXT NOT NULL,
    created INTEGER NOT NULL,
    directory TEXT NOT NULL,
    command TEXT NOT NULL,
    total INTEGER,
    refresh_round INTEGER NOT NULL DEFAULT 0,
    refresh_is_complete INTEGER NOT NULL DEFAULT 1,
    output_device INTEGER,
    output_inode INTEGER,
    output_start INTEGER NOT NULL DEFAULT 0,
    output_end INTEGER NOT NULL DEFAULT 0,
    archive_number INTEGER,
    archive_end INTEGER NOT NULL DEFAULT 0,
    last_commit INTEGER NOT NULL DEFAULT 0,
    durable_commit INTEGER NOT NULL DEFAULT 0,
    durable_output INTEGER NOT NULL DEFAULT 0,
    durable_archive_number INTEGER NOT NULL DEFAULT 0,
    durable_archive_end INTEGER NOT NULL DEFAULT 0,
    boot TEXT,
    is_clean INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    process INTEGER NOT NULL,
    started INTEGER NOT NULL,
    ended INTEGER,
    exit_code INTEGER
) STRICT;
CREATE TABLE list (
    source INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    is_copied INTEGER NOT NULL,
    is_complete INTEGER NOT NULL,
    size INTEGER NOT NULL,
    modified INTEGER,
    sha256 TEXT
) STRICT;
CREATE TABLE list_text (
    id INTEGER PRIMARY KEY,
    text BLOB NOT NULL
) STRICT;
CREATE TABLE url (
    id INTEGER PRIMARY KEY,
    stage INTEGER GENERATED ALWAYS AS (id >> 40) VIRTUAL,
    number INTEGER GENERATED ALWAYS AS (id & 1099511627775) VIRTUAL,
    state TEXT NOT NULL,
    url TEXT NOT NULL,
    status INTEGER,
    exit_code INTEGER,
    error TEXT,
    attempts INTEGER NOT NULL,
    redirects INTEGER NOT NULL,
    size INTEGER,
    etag TEXT,
    last_modified TEXT,
    sha256 TEXT,
    file TEXT,
    ended INTEGER NOT NULL,
    resolved_us INTEGER,
    connected_us INTEGER,
    secured_us INTEGER,
    first_byte_us INTEGER,
    total_us INTEGER,
    commit_number INTEGER NOT NULL,
    queued_commit INTEGER,
    refresh_round INTEGER NOT NULL DEFAULT 0,
    change TEXT,
    value BLOB
) STRICT;
CREATE TABLE stage_values (
    id INTEGER PRIMARY KEY,
    stage INTEGER NOT NULL,
    is_printed INTEGER NOT NULL,
    lines BLOB NOT NULL,
    commit_number INTEGER NOT NULL
) STRICT;
CREATE TABLE payload (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL,
    record BLOB NOT NULL,
    url TEXT NOT NULL,
    date INTEGER NOT NULL,
    commit_number INTEGER NOT NULL
) STRICT;
CREATE INDEX url_failed ON url (id) WHERE state IN ('failed', 'again');
";

/// Creates the tables of a new job, within the open transaction.
pub(super) fn create(connection: &Connection) -> DatabaseResult<()> {
    connection
        .execute_batch(&format!("{TABLES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_number_bits_agree_with_the_schema() {
        assert!(TABLES.contains(&format!("id >> {NUMBER_BITS}")));
        assert!(TABLES.contains(&format!("id & {}", (1_u64 << NUMBER_BITS) - 1)));
    }
}
