//! Runs transfers one after the other: uploads, and every URL of the curl persona without `-Z`.
//!
//! Each transfer is reported before the next one begins. The blocking driver runs it without
//! another thread. Globs are expanded step by step, so that a million URLs need no memory.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use haul::{Client, Error, ErrorKind, Result};
use haul_policy::file_url;
use haul_policy::glob::GlobValues;

use crate::plan::{OutputArg, RunPlan, UploadArg, UrlGroup, UrlSource, name_upload};
use crate::run::engine_options::request_body::UploadContent;
use crate::run::engine_options::target_url::target_of;
use crate::run::glob;
use crate::run::report::reporter::Reporter;
use crate::run::transfers::single_url::{self, UrlJob};
use crate::run::transfers::state_stores::StateStores;

/// Returns true if the URLs of a URL group are transferred one after the other. This is so for
/// uploads, and with the curl persona for runs without `-Z`, for a single URL, and for `file:`
/// URLs.
pub(crate) fn is_sequential(plan: &RunPlan, operation: &UrlGroup) -> bool {
    let uploads = (0..operation.urls.len()).any(|index| operation.upload_of(index).is_some());
    // Files have no server to be asked beside others.
    let is_local = |source| matches!(source, UrlSource::Argument(url) if file_url::is_file_url(url));
    let is_alone = crate::run::only_url(operation).is_some();
    let is_curls = plan.global.persona.is_curl()
        && (!plan.global.parallel || is_alone || operation.urls.iter().any(is_local))
        && operation.stages.len() == 1
        && operation.stages[0].extract.is_empty()
        && operation.urls.iter().all(|source| matches!(source, UrlSource::Argument(_)));
    uploads || is_curls
}

/// Runs the transfers of a URL group one after the other. With the haul persona, returns the exit
/// code of the first failure. With the curl persona, returns that of the last transfer or, with
/// `-Z`, of the last failure.
pub(crate) fn run(
    client: &Client,
    plan: &RunPlan,
    operation: &UrlGroup,
    reporter: &Arc<Reporter>,
    stores: &mut StateStores,
) -> Result<u8> {
    let mut serial = SequentialRun { client, plan, operation, reporter, stores, exit_code: 0 };
    serial.all()?;
    Ok(serial.exit_code)
}

/// The state of a URL group whose transfers run one after the other. Its methods return `Break` if
/// no further transfers may run.
struct SequentialRun<'a> {
    client: &'a Client,
    plan: &'a RunPlan,
    operation: &'a UrlGroup,
    reporter: &'a Arc<Reporter>,
    stores: &'a mut StateStores,
    exit_code: u8,
}

impl SequentialRun<'_> {
    fn all(&mut self) -> Result<()> {
        let operation = self.operation;
        for (index, source) in operation.urls.iter().enumerate() {
            let UrlSource::Argument(source) = source else {
                return Err(Error::new(ErrorKind::Setup, "-T cannot be used with a list of URLs"));
            };
            for upload in uploads(operation, index)? {
                if self.source(index, source, &upload)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Transfers all URLs of `source`, which may be a glob. `index` is the index of the source.
    fn source(&mut self, index: usize, source: &str, upload: &UrlUpload) -> Result<ControlFlow<()>> {
        if !self.operation.is_glob(index, source) {
            return self.one(index, source, GlobValues::default(), upload);
        }
        for expansion in glob(source)?.iter() {
            if self.one(index, &expansion.url, expansion.parts, upload)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Transfers one URL. `index` is the index of its source, and `parts` holds the values of the
    /// globs in that source.
    fn one(&mut self, index: usize, url: &str, parts: GlobValues, upload: &UrlUpload) -> Result<ControlFlow<()>> {
        let global = &self.plan.global;
        self.reporter.wait_for_pace();
        let parts = match upload {
            UrlUpload::File(_, named) => parts.with_named(named),
            UrlUpload::Nothing | UrlUpload::Stdin => parts,
        };
        let sent = match upload.for_url(url, self.operation) {
            // A missing file ends the run, as in curl: the exit code of a later URL would hide the
            // error.
            Err(error) if error.kind() == ErrorKind::Read => {
                self.write_out_unbegun(index, url, &error)?;
                return Err(error);
            }
            sent => sent,
        };
        let done = sent.and_then(|(place, upload)| {
            let job = UrlJob { url: &place, given: url, index, parts: &parts, upload };
            single_url::run(self.client, global, self.operation, job, self.reporter, self.stores)
        });
        let began = done.is_ok();
        let code = match done {
            // An error in one URL does not affect the others, unless they depend on it.
            Err(error) if global.persona.is_curl() && !ends_all(self.operation, index, upload, &error) => {
                self.report(index, url, &error)?
            }
            Err(error) => {
                self.write_out_unbegun(index, url, &error)?;
                return Err(error);
            }
            Ok(code) => code,
        };
        if global.persona.is_curl() && began {
            // Behind each transfer, as by curl.
            crate::run::report_unwritten_files(self.plan, self.reporter.progress(), &self.stores.print(self.operation));
        }
        let counts = match global.persona.is_curl() {
            // With -Z no success hides the failure of another transfer.
            true => code != 0 || !global.parallel,
            false => self.exit_code == 0,
        };
        if counts {
            self.exit_code = code;
        }
        let is_last = code != 0 && global.fail_early;
        Ok(if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Prints the error because of which a transfer could not begin, and the output of `-w` for it.
    /// Returns the exit code.
    fn report(&self, index: usize, url: &str, error: &Error) -> Result<u8> {
        let code = crate::run::report_setup_error(self.plan, self.reporter.progress(), error);
        self.write_out_unbegun(index, url, error)?;
        Ok(code)
    }

    /// Prints the output of `-w` for a transfer that could not begin. Only the curl persona prints
    /// it.
    fn write_out_unbegun(&self, index: usize, url: &str, error: &Error) -> Result<()> {
        let is_transfer = matches!(error.kind(), ErrorKind::Url | ErrorKind::UnsupportedScheme | ErrorKind::Read);
        match self.plan.global.persona.is_curl() && is_transfer {
            true => self.reporter.print(self.reporter.report_unusable_url(url, index as u64, error)),
            false => Ok(()),
        }
    }
}

/// Returns true if `error`, because of which a transfer could not begin, ends the whole run, as in
/// curl. This is an error in the settings, or an invalid URL on which the upload, the query or the
/// name of the output file depends.
fn ends_all(operation: &UrlGroup, index: usize, upload: &UrlUpload, error: &Error) -> bool {
    let names = *operation.output_of(index) == OutputArg::RemoteName;
    let is_named = matches!(upload, UrlUpload::File(..)) || operation.stages[0].request.query.is_some();
    error.kind() == ErrorKind::Setup || error.kind() == ErrorKind::Url && (names || is_named)
}

/// The content that is uploaded to the URLs of one source.
enum UrlUpload {
    Nothing,
    Stdin,
    /// The file at this path is uploaded. The values are those of the globs in the value of `-T`.
    File(OsString, GlobValues),
}

impl UrlUpload {
    /// Returns the URL to which the content is uploaded, and the content; `None` if nothing is
    /// uploaded. The name of the uploaded file is appended to a URL that does not end in a name.
    fn for_url(&self, url: &str, operation: &UrlGroup) -> Result<(String, Option<UploadContent>)> {
        let request = &operation.stages[0].request;
        Ok(match self {
            UrlUpload::Nothing => (url.to_owned(), None),
            UrlUpload::Stdin => (url.to_owned(), Some(UploadContent::stdin(request)?)),
            UrlUpload::File(file, _) => {
                let place = name_upload(url, file);
                // A file is not opened for an invalid URL, as in curl.
                if let Err(error) = target_of(&operation.stages[0], &place)
                    && error.kind() == ErrorKind::Url
                {
                    return Err(error);
                }
                (place, Some(UploadContent::of(Path::new(file), request)?))
            }
        })
    }
}

/// Returns the uploads for the source of URLs at this index, in order. As in curl, each upload is
/// sent to all URLs of the source.
fn uploads(operation: &UrlGroup, index: usize) -> Result<Vec<UrlUpload>> {
    Ok(match operation.upload_of(index) {
        None | Some(UploadArg::Nothing) => vec![UrlUpload::Nothing],
        Some(UploadArg::Stdin { .. }) => vec![UrlUpload::Stdin],
        Some(UploadArg::File(files)) => match files.to_str().filter(|_| !operation.globoff) {
            Some(files) => glob(files)?.iter().map(|file| UrlUpload::File(file.url.into(), file.parts)).collect(),
            None => vec![UrlUpload::File(files.clone(), GlobValues::default())],
        },
    })
}
