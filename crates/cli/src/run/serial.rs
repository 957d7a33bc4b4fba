//! URLs one after the other, each with what is sent to it: uploads, and every URL as `curl` without `-Z`.
//!
//! Each transfer is told of before the next one begins, and each has the whole process to itself: the blocking driver, no
//! thread. Globs are expanded as they are needed, so that a million of URLs costs no memory.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul::body::upload::Body;
use haul::{Client, Error, ErrorKind, Result};
use haul_policy::glob::Glob;

use super::report::Reporter;
use super::single::{self, Job};
use super::stores::Stores;
use super::{carried, has_glob};
use crate::plan::{Operation, Plan, Upload, UrlSource, name_upload};

/// Whether an operation is carried out so.
pub(super) fn is_wanted(plan: &Plan, operation: &Operation) -> bool {
    let uploads = (0..operation.urls.len()).any(|index| operation.upload_of(index).is_some());
    let is_curls = plan.global.persona.is_curl()
        && !plan.global.parallel
        && operation.stages.len() == 1
        && operation.stages[0].extract.is_none()
        && operation.urls.iter().all(|source| matches!(source, UrlSource::Argument(_)));
    uploads || is_curls
}

/// Carries them out. The answer is the first failure's exit code; as `curl`, the last transfer's.
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
        let Some(UrlSource::Argument(source)) = operation.urls.get(index) else {
            return Err(Error::new(ErrorKind::Setup, "-T has no place beside a list of URLs"));
        };
        let mut each = |url: &str, parts: &[String]| -> Result<bool> {
            for (url, upload) in contents(operation, index, url)? {
                let began = Instant::now();
                let job = Job { url: &url, index, number, parts, upload };
                let code = match single::run(client, &plan.global, operation, job, reporter, stores) {
                    Ok(code) => code,
                    // What one URL is wrong by does not concern the others.
                    Err(error) if plan.global.persona.is_curl() => super::tell(plan, reporter.progress(), &error),
                    Err(error) => return Err(error),
                };
                number += 1;
                if exit_code == 0 || plan.global.persona.is_curl() {
                    exit_code = code;
                }
                if code != 0 && plan.global.fail_early {
                    return Ok(false);
                }
                pause(plan.global.pace, began.elapsed());
            }
            Ok(true)
        };
        if operation.globoff || !has_glob(source) {
            if !each(source, &[])? {
                return Ok(exit_code);
            }
            continue;
        }
        for expansion in glob(source)?.iter() {
            if !each(&expansion.url, &expansion.parts)? {
                return Ok(exit_code);
            }
        }
    }
    Ok(exit_code)
}

/// `--rate`: a transfer that was shorter is waited for.
fn pause(pace: Option<Duration>, took: Duration) {
    if let Some(left) = pace.and_then(|pace| pace.checked_sub(took)) {
        std::thread::sleep(left);
    }
}

fn glob(url: &str) -> Result<Glob> {
    Glob::parse(url)
        .map_err(|error| Error::new(ErrorKind::Url, error.to_string()).with_url(crate::usage::shown_url(url)))
}

/// What goes to this URL, and by which name.
fn contents(operation: &Operation, index: usize, url: &str) -> Result<Vec<(String, Option<Body>)>> {
    match operation.upload_of(index) {
        None | Some(Upload::Nothing) => Ok(vec![(url.to_owned(), None)]),
        Some(Upload::Stdin { .. }) => Ok(vec![(url.to_owned(), Some(Body::reader(std::io::stdin())))]),
        Some(Upload::File(file)) if operation.globoff || !has_glob(file) => {
            Ok(vec![(name_upload(url, file), Some(carried::file(Path::new(file))?))])
        }
        Some(Upload::File(files)) => glob(files)?
            .iter()
            .map(|file| Ok((name_upload(url, &file.url), Some(carried::file(Path::new(&file.url))?))))
            .collect(),
    }
}
