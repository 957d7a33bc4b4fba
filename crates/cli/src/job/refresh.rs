//! The end of a refresh, and what it has found.

use rusqlite::{Connection, params};

use super::job_error::DatabaseResult;
use super::schema::LATER_STAGES;

/// The results of a refresh, by the numbers of their URLs, in the order of their names.
pub(super) fn changes(connection: &Connection, round: u64) -> DatabaseResult<Vec<(String, u64)>> {
    let mut select = connection.prepare(
        "SELECT change, count(*) FROM url WHERE refresh_round = ?1 AND change IS NOT NULL \
         GROUP BY change ORDER BY change",
    )?;
    let rows = select.query_map(params![round as i64], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?;
    rows.collect()
}

/// Returns the results of a refresh as a text.
pub(super) fn shown(changes: &[(String, u64)]) -> String {
    let texts: Vec<String> = changes.iter().map(|(change, count)| format!("{count} {change}")).collect();
    if texts.is_empty() { "nothing".to_owned() } else { texts.join(", ") }
}

/// Notes the end of a refresh, if all URLs of the list were refreshed. Returns a text for the user.
pub(super) fn end(connection: &Connection, round: u64) -> DatabaseResult<String> {
    let note = "UPDATE job SET refresh_is_complete = 1 WHERE total = (SELECT count(*) FROM url \
                WHERE refresh_round = ?1 AND state <> 'again' AND id < ?2)";
    let is_complete = connection.execute(note, params![round as i64, LATER_STAGES])? > 0;
    let found = shown(&changes(connection, round)?);
    Ok(match is_complete {
        true => format!("refreshed: {found}"),
        false => format!("refreshed in part: {found}; --refresh goes on"),
    })
}
