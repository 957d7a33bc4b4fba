//! The refresh of a job (`--refresh`): the known validators of a URL, the results, and the end of
//! the refresh.

use rusqlite::{Connection, Row, params};

use super::job_error_from_sqlite_or_io::DatabaseResult;
use super::schema::FIRST_LATER_STAGE_ID;
use crate::job_types_in_every_build::EarlierFetch;
use crate::system::os_text::os_str;

impl EarlierFetch {
    /// Reads the columns `etag`, `last_modified`, `size` and `file` of a row. `first` is the index
    /// of the column `etag`. The other three columns follow it in this order.
    pub(super) fn from_row(row: &Row<'_>, first: usize) -> DatabaseResult<Self> {
        Ok(Self {
            etag: row.get(first)?,
            last_modified: row.get(first + 1)?,
            size: row.get::<_, Option<i64>>(first + 2)?.map(|size| size as u64),
            file: row.get_ref(first + 3)?.as_bytes_or_null()?.map(|name| os_str(name).into_owned().into()),
        })
    }
}

/// Returns the number of URLs for each result of a refresh (`--refresh`: requests all URLs again),
/// such as `changed`, sorted by the name of the result. `round` is the number of the refresh, from
/// 1.
pub(super) fn changes(connection: &Connection, round: u64) -> DatabaseResult<Vec<(String, u64)>> {
    let mut select = connection.prepare(
        "SELECT change, count(*) FROM url WHERE refresh_round = ?1 AND change IS NOT NULL \
         GROUP BY change ORDER BY change",
    )?;
    let rows = select.query_map(params![round as i64], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?;
    rows.collect()
}

/// Formats the results of a refresh (`--refresh`), with their numbers of URLs, as a text such as
/// `3 changed, 1 new`.
pub(super) fn changes_text(changes: &[(String, u64)]) -> String {
    let texts: Vec<String> = changes.iter().map(|(change, count)| format!("{count} {change}")).collect();
    if texts.is_empty() { "nothing".to_owned() } else { texts.join(", ") }
}

/// Returns the number of URLs that a refresh (`--refresh`: requests all URLs again) has not
/// requested yet. `round` is the number of the refresh. `total` is the number of URLs in the job's
/// lists.
pub(super) fn unfinished_urls(connection: &Connection, round: u64, total: u64) -> DatabaseResult<u64> {
    let count = "SELECT coalesce(sum(id < ?2 AND refresh_round = ?1), 0), \
                 coalesce(sum(id >= ?2 AND refresh_round <> ?1), 0) FROM url";
    let (asked, later) = connection.query_row(count, params![round as i64, FIRST_LATER_STAGE_ID], |row| {
        Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64))
    })?;
    Ok(total.saturating_sub(asked) + later)
}

/// Ends a refresh (`--refresh`: requests all URLs of a job again). Records in the job's file that
/// the refresh with the number `round` is complete, if all URLs of the job have been requested. A
/// URL that failed because of this computer, such as a full disk, counts as requested. Returns a
/// message for the user, which also says whether the refresh is complete.
pub(super) fn end_refresh(connection: &Connection, round: u64) -> DatabaseResult<String> {
    let note = "UPDATE job SET refresh_is_complete = 1 WHERE total = (SELECT count(*) FROM url \
                WHERE refresh_round = ?1 AND id < ?2) \
                AND NOT EXISTS (SELECT 1 FROM url WHERE id >= ?2 AND refresh_round <> ?1)";
    let is_complete = connection.execute(note, params![round as i64, FIRST_LATER_STAGE_ID])? > 0;
    let found = changes_text(&changes(connection, round)?);
    Ok(match is_complete {
        true => format!("refreshed: {found}"),
        false => format!("refreshed in part: {found}; --refresh goes on"),
    })
}
