//! Decides which URL groups (operations) run in parallel with each other, as one list.
//!
//! A `next` in a config file (`-K`) separates the requests of a list, so its groups run in
//! parallel. A group waits for the groups before it if it may depend on them: if it uses cookies
//! that they may change, reads a file that they write, or changes a setting that belongs to the
//! whole run.

use std::path::{Path, PathBuf};

use crate::plan::{BodyArg, FormPartSource, GlobalArgs, OutputArg, TraceFormat, UploadArg, UrlGroup, UrlSource};
use crate::run::engine_options::output_options::in_output_dir;

/// Returns the number of URL groups at the beginning of `operations` that run in parallel. It is 1
/// if the first one runs alone.
pub(crate) fn count(global: &GlobalArgs, operations: &[UrlGroup]) -> usize {
    let Some((first, others)) = operations.split_first() else { return 0 };
    let is_off = global.persona.is_curl() || !global.parallel || global.trace.form != TraceFormat::Off;
    if is_off || others.first().is_none_or(|next| !next.is_listed) || !may_join(first) {
        return 1;
    }
    let mut written: Vec<PathBuf> = written_files(first).collect();
    let mut count = 1;
    for group in others {
        let reads_written = || read_files(group).any(|file| written.iter().any(|output| output == file));
        if !group.is_listed || !may_join(group) || !shares_settings(first, group) || reads_written() {
            break;
        }
        written.extend(written_files(group));
        count += 1;
    }
    count
}

/// Returns true if a group extracts no values, and has no listings and no state that other groups
/// may depend on.
fn may_join(group: &UrlGroup) -> bool {
    let [stage] = group.stages.as_slice() else { return false };
    !stage.takes_values()
        && stage.pagination.is_none()
        && group.checksum.is_none()
        && !stage.transfer.cookies.is_on()
        && stage.report.dump_header.is_none()
        && stage.request.etag_save.is_none()
        && !reads_stdin(group)
}

/// Returns true if the groups agree in the settings that belong to the client of the whole run, and
/// in the stores that transfers change.
fn shares_settings(first: &UrlGroup, group: &UrlGroup) -> bool {
    let (first, group) = (&first.stages[0].transfer, &group.stages[0].transfer);
    first.resolve == group.resolve
        && first.dns == group.dns
        && (&first.doh_url, first.doh_insecure) == (&group.doh_url, group.doh_insecure)
        && first.hsts == group.hsts
        && first.alt_svc == group.alt_svc
}

/// Returns true if a group reads standard input, which can be read only once.
fn reads_stdin(group: &UrlGroup) -> bool {
    let of_urls = |source| source == UrlSource::InputFile("-");
    let of_form = |source: &&FormPartSource| **source == FormPartSource::Stdin;
    group.urls.iter().any(of_urls)
        || group.uploads.iter().any(|upload| matches!(upload, UploadArg::Stdin { .. }))
        || match &group.stages[0].request.body {
            Some(BodyArg::Stdin) => true,
            Some(BodyArg::Multipart(form)) => form.sources().iter().any(of_form),
            _ => false,
        }
}

/// Returns the files that a group reads while it runs.
fn read_files(group: &UrlGroup) -> impl Iterator<Item = &Path> {
    let uploads = group.uploads.iter().filter_map(|upload| match upload {
        UploadArg::File(file) => Some(Path::new(file)),
        UploadArg::Nothing | UploadArg::Stdin { .. } => None,
    });
    let body = match &group.stages[0].request.body {
        Some(BodyArg::File(path)) => vec![path.as_path()],
        Some(BodyArg::Multipart(form)) => {
            let paths = form.sources().into_iter().filter_map(|source| match source {
                FormPartSource::File(path) => Some(path.as_path()),
                FormPartSource::Stdin => None,
            });
            paths.collect()
        }
        _ => Vec::new(),
    };
    let lists = group.urls.iter().filter_map(|source| match source {
        UrlSource::InputFile(path) => Some(Path::new(path)),
        UrlSource::Argument(_) => None,
    });
    uploads.chain(body).chain(lists)
}

/// Returns the files that a group writes, as far as their names are known before the run.
fn written_files(group: &UrlGroup) -> impl Iterator<Item = PathBuf> {
    let name = |output: &OutputArg| match output {
        OutputArg::File(name) => Some(name.clone()),
        OutputArg::Stdout | OutputArg::RemoteName | OutputArg::MirroredPath | OutputArg::Null => None,
    };
    group.outputs.iter().filter_map(name).map(|name| in_output_dir(group, name))
}
