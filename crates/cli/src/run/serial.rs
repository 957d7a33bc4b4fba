//! URLs one after the other, each with what is sent to it: uploads, and every URL as `curl` without `-Z`.
//!
//! Each transfer is told of before the next one begins, and each has the whole process to itself: the blocking driver, no
//! thread. Globs are expanded as they are needed, so that a million of URLs costs no memory.

use std::path::Path;
use std::sync::Arc;

use haul::{Client, Error, ErrorKind, Result};
use haul_policy::file_url;
use haul_policy::glob::Parts;

use super::carried::Part;
use super::glob;
use super::report::Reporter;
use super::single::{self, Job};
use super::stores::Stores;
use crate::plan::{Operation, Output, Plan, Upload, UrlSource, name_upload};

/// Whether an operation is carried out so.
pub(super) fn is_wanted(plan: &Plan, operation: &Operation) -> bool {
    let uploads = (0..operation.urls.len()).any(|index| operation.upload_of(index).is_some());
    // Files have no server to be asked beside others.
    let is_local = |source| matches!(source, UrlSource::Argument(url) if file_url::is_one(url));
    let is_curls = plan.global.persona.is_curl()
        && (!plan.global.parallel || operation.urls.iter().any(is_local))
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
    for index in 0..operation.urls.len() {
        let Some(UrlSource::Argument(source)) = operation.urls.get(index) else {
            return Err(Error::new(ErrorKind::Setup, "-T has no place beside a list of URLs"));
        };
        let mut each = |url: &str, parts: Parts, upload: &Sent| -> Result<bool> {
            reporter.pace(plan.global.pace);
            let parts = match upload {
                Sent::File(_, named) => parts.with_named(named),
                _ => parts,
            };
            let sent = match upload.for_url(url, operation) {
                // A file that is not there ends all, to curl too: the exit code of what follows would hide it.
                Err(error) if error.kind() == ErrorKind::Read => return Err(error),
                sent => sent,
            };
            let done = sent.and_then(|(url, upload)| {
                let job = Job { url: &url, index, parts: &parts, upload };
                single::run(client, &plan.global, operation, job, reporter, stores)
            });
            let began = done.is_ok();
            let code = match done {
                Ok(code) => code,
                // What one URL is wrong by does not concern the others, unless more is to be made of it.
                Err(error) if plan.global.persona.is_curl() && !is_built_on(operation, index, upload, &error) => {
                    let code = super::tell(plan, reporter.progress(), &error);
                    // To curl it was a transfer that ended before it began.
                    if matches!(error.kind(), ErrorKind::Url | ErrorKind::UnsupportedScheme) {
                        reporter.print(reporter.tell_unusable(url, index as u64, &error))?;
                    }
                    code
                }
                Err(error) => return Err(error),
            };
            if plan.global.persona.is_curl() && began {
                // Behind each transfer, as by curl.
                super::tell_lost(plan, reporter.progress(), &stores.print(operation));
            }
            if exit_code == 0 || plan.global.persona.is_curl() {
                exit_code = code;
            }
            if code != 0 && plan.global.fail_early {
                return Ok(false);
            }
            Ok(true)
        };
        for upload in uploads(operation, index)? {
            if !operation.is_glob(index, source) {
                if !each(source, Parts::default(), &upload)? {
                    return Ok(exit_code);
                }
                continue;
            }
            for expansion in glob(source)?.iter() {
                if !each(&expansion.url, expansion.parts, &upload)? {
                    return Ok(exit_code);
                }
            }
        }
    }
    Ok(exit_code)
}

/// Whether a URL that is none was to give a file its name, or to take one, or a query: that ends all, to curl too.
fn is_built_on(operation: &Operation, index: usize, upload: &Sent, error: &Error) -> bool {
    let names = *operation.output_of(index) == Output::RemoteName;
    let is_named = matches!(upload, Sent::File(..)) || operation.stages[0].request.query.is_some();
    error.kind() == ErrorKind::Url && (names || is_named)
}

/// What is sent to the URLs of a source.
enum Sent {
    Nothing,
    Stdin,
    /// A file, and what the globs of `-T` contributed to its name.
    File(String, Parts),
}

impl Sent {
    /// The content, and the URL that it goes to: with the name of the file where that has to be added.
    fn for_url(&self, url: &str, operation: &Operation) -> Result<(String, Option<Part>)> {
        Ok(match self {
            Sent::Nothing => (url.to_owned(), None),
            Sent::Stdin => (url.to_owned(), Some(Part::stdin())),
            Sent::File(file, _) => {
                let part = Part::of(Path::new(file), &operation.stages[0].request)?;
                (name_upload(url, file), Some(part))
            }
        })
    }
}

/// What is sent to the URLs of the source at this index, one after the other: as by curl, each file to all of them.
fn uploads(operation: &Operation, index: usize) -> Result<Vec<Sent>> {
    Ok(match operation.upload_of(index) {
        None | Some(Upload::Nothing) => vec![Sent::Nothing],
        Some(Upload::Stdin { .. }) => vec![Sent::Stdin],
        Some(Upload::File(file)) if operation.globoff => vec![Sent::File(file.clone(), Parts::default())],
        Some(Upload::File(files)) => glob(files)?.iter().map(|file| Sent::File(file.url, file.parts)).collect(),
    })
}
