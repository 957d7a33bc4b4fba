//! Runs transfers one after the other: a single upload, uploads with `--no-parallel`, and every URL
//! of the curl persona without `-Z`.
//!
//! Each transfer is reported before the next one begins. The blocking driver runs it without
//! another thread. Globs are expanded step by step, so that a million URLs need no memory.

use std::ops::ControlFlow;
use std::sync::Arc;

use haul::{Client, Error, ErrorKind, Result};
use haul_policy::glob::GlobValues;

use crate::plan::{OutputArg, RequestBodyArg, RunPlan, UrlGroup, UrlSource};
use crate::run::parse_glob;
use crate::run::report::reporter::UrlGroupReporter;
use crate::run::report::{error_message, file_metadata};
use crate::run::transfers::single_url::{self, SingleUrlTransfer};
use crate::run::transfers::state_stores::StateStores;
use crate::run::transfers::url_uploads::{UrlUpload, uploads};

/// Returns true if the URLs of a URL group are transferred one after the other. This is the case
/// for a single upload and for uploads without parallel transfers. If haul acts as curl, it is also
/// the case for runs without `-Z`, for a single URL, and for `file:` URLs.
pub(crate) fn is_sequential(plan: &RunPlan, group: &UrlGroup) -> bool {
    // A job is a run of the fleet, whatever the number of its URLs.
    if plan.global.job.is_some() {
        return false;
    }
    let has_uploads = (0..group.urls.len()).any(|index| group.upload_of_source(index).is_some());
    let is_alone = crate::run::only_url(group).is_some();
    let uploads_in_turn = has_uploads && (!plan.global.parallel || is_alone);
    // Files have no server to be asked beside others.
    let is_curls = plan.global.persona.is_curl()
        && (!plan.global.parallel || is_alone || group.has_file_url())
        && group.stages.len() == 1
        && !group.stages[0].takes_values()
        && group.stages[0].pagination.is_none()
        && group.urls.iter().all(|source| matches!(source, UrlSource::Argument(_)));
    uploads_in_turn || is_curls
}

/// Runs the transfers of a URL group one after the other. Unless haul acts as curl, returns the
/// exit code of the first failure. If haul acts as curl, returns the exit code of the last transfer
/// or, with `-Z`, of the first failure.
pub(crate) fn run(
    client: &Client,
    plan: &RunPlan,
    group: &UrlGroup,
    reporter: &Arc<UrlGroupReporter>,
    stores: &mut StateStores,
) -> Result<u8> {
    let mut serial = SequentialRun { client, plan, group, reporter, stores, exit_code: 0 };
    serial.transfer_all()?;
    Ok(serial.exit_code)
}

/// The state of a URL group whose transfers run one after the other. Its methods return `Break` if
/// no further transfer may run.
struct SequentialRun<'a> {
    client: &'a Client,
    plan: &'a RunPlan,
    group: &'a UrlGroup,
    reporter: &'a Arc<UrlGroupReporter>,
    stores: &'a mut StateStores,
    exit_code: u8,
}

impl SequentialRun<'_> {
    fn transfer_all(&mut self) -> Result<()> {
        let group = self.group;
        for (index, source) in group.urls.iter().enumerate() {
            let UrlSource::Argument(source) = source else {
                return Err(Error::new(ErrorKind::Setup, "-T cannot be used with a list of URLs"));
            };
            for upload in uploads(group, index)? {
                if self.transfer_source(index, source, &upload)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Transfers all URLs of `source`, which may be a glob. `index` is the index of the source.
    fn transfer_source(&mut self, index: usize, source: &str, upload: &UrlUpload) -> Result<ControlFlow<()>> {
        if !self.group.is_glob(index, source) {
            return self.transfer_url(index, source, GlobValues::default(), upload);
        }
        for expansion in parse_glob(source)?.iter() {
            if self.transfer_url(index, &expansion.url, expansion.parts, upload)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Transfers one URL. `index` is the index of its source, and `parts` contains the values of
    /// the globs in that source.
    fn transfer_url(
        &mut self,
        index: usize,
        url: &str,
        parts: GlobValues,
        upload: &UrlUpload,
    ) -> Result<ControlFlow<()>> {
        let global = &self.plan.global;
        let scheme = self.group.stages[0].transfer.redirect.default_scheme;
        if global.shard.is_some_and(|shard| !shard.contains_url(url, scheme)) {
            return Ok(ControlFlow::Continue(()));
        }
        self.reporter.wait_for_start_rate()?;
        let parts = upload.with_named_values(parts);
        let sent = match upload.for_url(url, self.group) {
            // A missing file ends the run, as in curl: the exit code of a later URL would hide the
            // error.
            Err(error) if error.kind() == ErrorKind::Read => {
                if let Some(tag) = self.group.stages[0].request.etag_save.as_ref().filter(|_| global.persona.is_curl())
                {
                    // curl makes this file first, even if it cannot read the other one.
                    let _ = file_metadata::check_can_be_saved(self.group, tag);
                }
                self.write_out_unbegun(index, url, &error)?;
                return Err(error);
            }
            sent => sent,
        };
        let done = sent.and_then(|(transfer_url, upload)| {
            let job = SingleUrlTransfer { url: &transfer_url, given: url, index, parts: &parts, upload };
            single_url::run(self.client, global, self.group, job, self.reporter, self.stores)
        });
        let began = done.is_ok();
        let code = match done {
            // An error in one URL does not affect the others, unless they depend on it.
            Err(error) if global.persona.is_curl() && !is_fatal_for_run(self.group, index, upload, &error) => {
                let is_sent = error.kind() == ErrorKind::PartialBody;
                let shown = if is_sent { &upload.named_url(url) } else { url };
                self.report(index, shown, &error)?
            }
            Err(error) => {
                self.write_out_unbegun(index, url, &error)?;
                return Err(error);
            }
            Ok(code) => code,
        };
        if global.persona.is_curl() && began {
            // Behind each transfer, as by curl.
            crate::run::report_unwritten_files(
                self.plan,
                self.reporter.progress(),
                &self.stores.print_jars(self.group),
            );
        }
        // With -Z no later transfer hides the failure of another, as in curl.
        if self.exit_code == 0 || global.persona.is_curl() && !global.parallel {
            self.exit_code = code;
        }
        let is_last = code != 0 && global.fail_early;
        Ok(if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Prints the error that prevented the start of a transfer, and the output of `-w` for the
    /// transfer. Returns the exit code.
    fn report(&self, index: usize, url: &str, error: &Error) -> Result<u8> {
        let code = crate::run::report_setup_error(self.plan, self.reporter.progress(), error);
        self.write_out_unbegun(index, url, error)?;
        Ok(code)
    }

    /// Prints the record (such as a `--jsonl` line) of a transfer that could not begin. If haul
    /// acts as curl, also prints the output of `-w` for the transfer.
    fn write_out_unbegun(&self, index: usize, url: &str, error: &Error) -> Result<()> {
        self.reporter.report_unbegun(url, error)?;
        let is_transfer = matches!(
            error.kind(),
            ErrorKind::Url | ErrorKind::UnsupportedScheme | ErrorKind::Read | ErrorKind::PartialBody
        ) || error_message::is_empty_output_name(error);
        match self.plan.global.persona.is_curl() && is_transfer {
            true => self.reporter.print(self.reporter.report_unusable_url(url, url, index as u64, error)),
            false => Ok(()),
        }
    }
}

/// Returns true if `error`, which prevented the start of a transfer, ends the whole run, as in
/// curl. There are five such errors:
///
/// * a signal that arrives before the transfer starts
/// * an error in the settings
/// * an output file whose name is empty in this URL, as the value of a glob
/// * a form whose file cannot be read
/// * an invalid URL, if the URL must be parsed before the transfer: to add a query or the name of
///   the uploaded file, or to derive the name of the output file
fn is_fatal_for_run(group: &UrlGroup, index: usize, upload: &UrlUpload, error: &Error) -> bool {
    let names = *group.output_of_source(index) == OutputArg::RemoteName;
    let is_named = matches!(upload, UrlUpload::File(..)) || group.stages[0].request.query.is_some();
    let is_form = matches!(group.stages[0].request.body, Some(RequestBodyArg::Multipart(_)));
    match error.kind() {
        ErrorKind::Setup | ErrorKind::Interrupted => true,
        ErrorKind::Write => matches!(group.output_of_source(index), OutputArg::File(_)),
        ErrorKind::Url => names || is_named,
        ErrorKind::Read => is_form,
        _ => false,
    }
}
