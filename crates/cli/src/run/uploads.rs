//! `-T`: each file to each URL of its source, one after the other.

use std::path::Path;
use std::sync::Arc;

use haul::body::upload::Body;
use haul::{Client, Error, ErrorKind, Result};
use haul_policy::glob::Glob;

use super::report::Reporter;
use super::single::{self, Job};
use super::stores::Stores;
use super::{carried, has_glob};
use crate::plan::{Operation, Plan, Upload, UrlSource, name_upload};

/// Whether anything is uploaded.
pub(super) fn are_there(operation: &Operation) -> bool {
    (0..operation.urls.len()).any(|index| operation.upload_of(index).is_some())
}

/// Carries them out; the answer is the first failure's exit code.
pub(super) fn run(
    client: &Client,
    plan: &Plan,
    operation: &Operation,
    reporter: &Arc<Reporter>,
    stores: &mut Stores,
) -> Result<u8> {
    let mut exit_code = 0;
    let mut number = 0;
    for index in 0..operation.urls.len() {
        let Some(UrlSource::Argument(url)) = operation.urls.get(index) else {
            return Err(Error::new(ErrorKind::Setup, "-T has no place beside a list of URLs"));
        };
        for (url, parts) in expanded(operation, url)? {
            for (url, content) in contents(operation, index, &url)? {
                let job = Job { url: &url, index, number, parts: &parts, upload: content };
                let code = single::run(client, &plan.global, operation, job, reporter, stores)?;
                number += 1;
                exit_code = if exit_code == 0 { code } else { exit_code };
                if code != 0 && plan.global.fail_early {
                    return Ok(code);
                }
            }
        }
    }
    Ok(exit_code)
}

/// The URLs that a source stands for, with the values of their globs.
fn expanded(operation: &Operation, url: &str) -> Result<Vec<(String, Vec<String>)>> {
    if operation.globoff || !has_glob(url) {
        return Ok(vec![(url.to_owned(), Vec::new())]);
    }
    let glob = Glob::parse(url)
        .map_err(|error| Error::new(ErrorKind::Url, error.to_string()).with_url(crate::usage::shown_url(url)))?;
    Ok(glob.iter().map(|expansion| (expansion.url, expansion.parts)).collect())
}

/// What goes to this URL, and by which name.
fn contents(operation: &Operation, index: usize, url: &str) -> Result<Vec<(String, Option<Body>)>> {
    match operation.upload_of(index) {
        None => Ok(vec![(url.to_owned(), None)]),
        Some(Upload::Nothing) => Ok(vec![(url.to_owned(), None)]),
        Some(Upload::Stdin { .. }) => Ok(vec![(url.to_owned(), Some(Body::reader(std::io::stdin())))]),
        Some(Upload::File(files)) => expanded(operation, files)?
            .into_iter()
            .map(|(file, _)| Ok((name_upload(url, &file), Some(carried::file(Path::new(&file))?))))
            .collect(),
    }
}
