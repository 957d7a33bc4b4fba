//! `haul job retry`: resets URLs, so that the next run fetches them again.

use std::path::Path;

use haul::Result;
use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::{JobCommandArguments, misuse_error, refused_change_error};
use crate::job::job_error_from_sqlite_or_io::database_error;
use crate::job::open_and_lock_job_file::JobFile;
use crate::job::schema::FIRST_LATER_STAGE_ID;

/// The condition, in SQL with its parameters, that selects the URLs of a job that the next run
/// fetches again (`haul job retry`).
struct RetryFilter {
    condition: String,
    parameters: Vec<Value>,
}

impl RetryFilter {
    fn from_arguments(arguments: &JobCommandArguments) -> Result<Self> {
        let mut filter = Self { condition: "state = 'failed'".to_owned(), parameters: Vec::new() };
        if let Some(status) = arguments.value("status") {
            let (from, to) = status_range(status).ok_or_else(|| {
                misuse_error("option --status: expected a status such as 503, or a class such as 5xx")
            })?;
            filter.add_condition("status BETWEEN ? AND ?", [Value::Integer(from), Value::Integer(to)]);
        }
        if let Some(cause) = arguments.value("cause") {
            let code =
                cause.parse::<u8>().map_err(|_| misuse_error("option --cause: expected an exit code, such as 28"))?;
            filter.add_condition("exit_code = ?", [Value::Integer(code.into())]);
        }
        if let Some(text) = arguments.value("url") {
            filter.add_condition("instr(url, ?) > 0", [Value::Text(text.to_owned())]);
        }
        Ok(filter)
    }

    fn add_condition<const N: usize>(&mut self, condition: &str, parameters: [Value; N]) {
        self.condition.push_str(" AND ");
        self.condition.push_str(condition);
        self.parameters.extend(parameters);
    }
}

/// Marks the URLs of a job that the arguments select, so that the next run fetches them again.
/// Returns a text for the user.
pub(super) fn reset_urls(path: &Path, arguments: &JobCommandArguments) -> Result<String> {
    let filter = RetryFilter::from_arguments(arguments)?;
    let sets_all = arguments.has("all");
    if sets_all && !filter.parameters.is_empty() {
        return Err(refused_change_error(path, "--all sets everything back; leave the other options out"));
    }
    let (file, _) = JobFile::open(path, false)?;
    let connection = &file.connection;
    let set_back = || {
        let transaction = connection.unchecked_transaction()?;
        let count = if sets_all {
            // The next run cuts the output back to where the job's part of it begins.
            transaction.execute("UPDATE job SET output_end = output_start, durable_output = output_start", [])?;
            transaction.execute("DELETE FROM stage_values", [])?;
            let later = transaction.execute("DELETE FROM url WHERE id >= ?1", [FIRST_LATER_STAGE_ID])?;
            later + transaction.execute("UPDATE url SET state = 'again' WHERE state <> 'again'", [])?
        } else {
            let update = format!("UPDATE url SET state = 'again' WHERE {}", filter.condition);
            transaction.execute(&update, params_from_iter(&filter.parameters))?
        };
        transaction.commit()?;
        Ok(count)
    };
    let count = set_back().map_err(|error| database_error(path, error))?;
    drop(file);
    let name = super::super::shown_name(path.as_os_str());
    Ok(match count {
        0 => format!("{name}: no URL is set back\n"),
        _ => format!("{name}: {count} URLs are set back; 'haul --job {name}' fetches them again\n"),
    })
}

/// Returns the first and the last status that `text` means: a status such as `503`, or a class such
/// as `5xx`. Returns `None` for any other text.
fn status_range(text: &str) -> Option<(i64, i64)> {
    if let Some(class) = text.strip_suffix("xx") {
        let class = class.parse::<i64>().ok().filter(|class| (1..=9).contains(class))?;
        return Some((class * 100, class * 100 + 99));
    }
    let status = text.parse::<i64>().ok().filter(|status| (100..=999).contains(status))?;
    Some((status, status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_retry_status_is_a_code_or_class() {
        assert_eq!(status_range("503"), Some((503, 503)));
        assert_eq!(status_range("5xx"), Some((500, 599)));
        for wrong in ["", "x", "5x", "xx", "20", "0xx", "1000", "-1xx"] {
            assert_eq!(status_range(wrong), None, "{wrong}");
        }
    }
}
