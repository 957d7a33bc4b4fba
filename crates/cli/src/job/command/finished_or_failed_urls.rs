//! `haul job list`: prints the finished URLs of a job, or its failed URLs in a format that
//! `--input-file` accepts.

use std::fmt::Write as _;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;

use haul::{Error, ErrorKind, Result};
use haul_policy::urlencode::percent_encode;

use super::JobCommandArguments;
use crate::job::job_error_from_sqlite_or_io::database_error;
use crate::job::open_and_lock_job_file;
use crate::usage_error::remove_control_characters;

/// Prints the URLs of a job on standard output, in the order in which the job's lists contain them.
pub(super) fn print(path: &Path, arguments: &JobCommandArguments) -> Result<()> {
    let (connection, settings) = open_and_lock_job_file::open_to_read(path)?;
    let change = ["fresh", "changed", "new", "vanished"].into_iter().find(|change| arguments.has(change));
    let is_bare = change.is_some() || arguments.has("failed");
    let condition = match change {
        Some(change) => format!("change = '{change}' AND refresh_round = {}", settings.refresh_round),
        None if is_bare => "state IN ('failed', 'again')".to_owned(),
        None => "state <> 'queued'".to_owned(),
    };
    let select = format!("SELECT state, status, exit_code, url, error FROM url WHERE {condition} ORDER BY id");
    let shows_control = !std::io::stdout().is_terminal();
    let mut output = BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    let mut line = String::new();
    let mut write_all = || -> std::result::Result<(), JobListError> {
        let mut statement = connection.prepare(&select)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            line.clear();
            let url = one_line(row.get_ref(3)?.as_str().unwrap_or_default());
            if is_bare {
                if url.is_empty() {
                    continue;
                }
                line.push_str(&url);
            } else {
                let state = row.get_ref(0)?.as_str().unwrap_or_default();
                let status = row.get::<_, Option<u16>>(1)?.map_or("-".to_owned(), |status| status.to_string());
                let code = row.get::<_, Option<u8>>(2)?.unwrap_or(0);
                let error = row.get_ref(4)?.as_str_or_null().ok().flatten().unwrap_or_default();
                let _ = write!(line, "{state}\t{status}\t{code}\t{url}\t{}", remove_control_characters(error));
            }
            let line = if shows_control { line.clone() } else { line.replace('\t', "  ") };
            output.write_all(if shows_control { line } else { remove_control_characters(&line) }.as_bytes())?;
            output.write_all(b"\n")?;
        }
        Ok(output.flush()?)
    };
    match write_all() {
        Ok(()) => Ok(()),
        Err(JobListError::Database(error)) => Err(database_error(path, error)),
        Err(JobListError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(JobListError::Output(error)) => {
            Err(Error::with_source(ErrorKind::Write, "failed to write the output", error))
        }
    }
}

/// The error that ends the printing of a job's URLs.
enum JobListError {
    Database(rusqlite::Error),
    Output(std::io::Error),
}

impl From<rusqlite::Error> for JobListError {
    fn from(error: rusqlite::Error) -> Self {
        JobListError::Database(error)
    }
}

impl From<std::io::Error> for JobListError {
    fn from(error: std::io::Error) -> Self {
        JobListError::Output(error)
    }
}

/// Returns a URL with its control characters percent-encoded, so that it stays on one line.
fn one_line(url: &str) -> String {
    match url.bytes().any(|byte| byte.is_ascii_control()) {
        false => url.to_owned(),
        true => {
            url.chars().map(|c| if c.is_ascii_control() { percent_encode(&[c as u8]) } else { c.to_string() }).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_list_percent_encodes_control_characters_of_urls() {
        assert_eq!(one_line("http://h/a\nb\t"), "http://h/a%0Ab%09");
        assert_eq!(one_line("http://h/ä"), "http://h/ä");
    }
}
